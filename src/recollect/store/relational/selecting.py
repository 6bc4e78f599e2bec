"""What the next generation of a space is made of: rows become a selection, memos and standings.

Owns G2 (which memories are selected, in which order) and G3 (what is added, retained and removed).
Only reads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from recollect.clock import from_micros, to_micros
from recollect.store.relational import rows
from recollect.store.relational.database import Connection, Row
from recollect.types.facts import Source
from recollect.types.generations import (
    Memo,
    Pick,
    Removed,
    RemovedBecause,
    Selection,
    SelectionClock,
    SelectionPolicy,
    Standing,
)
from recollect.types.records import Mode

SOURCES_MAX = 20  # of a fact that are looked at
_EXTRACTION_COLUMNS = 14
_QUERIES = {
    SelectionClock.GENERATED: "select_memories",
    SelectionClock.SOURCE: "select_memories_by_source",
}
_BY_MODE = {
    Mode.ENABLED: RemovedBecause.UNSELECTED,
    Mode.DISABLED: RemovedBecause.DISABLED,
    Mode.POLLUTED: RemovedBecause.POLLUTED,
}


def select(c: Connection, space: str, policy: SelectionPolicy, now: datetime) -> Selection:
    names = {"space": space}
    unused = timedelta(days=policy.max_unused_days)
    ends_after = unused + timedelta(microseconds=1)  # on the last moment it is still selected
    wanted = {**names, "cutoff": to_micros(now - unused), "limit": policy.top_n}
    state, selected, before, buried, pages, [ending] = c.rows_each(
        [
            ("get_consolidation", names),
            (_QUERIES[policy.clock], wanted),
            ("selected_before", names),
            ("removed_memories", names),
            ("summary_documents", names),
            ("next_fact_change", {**names, "now": to_micros(now)}),
        ]
    )
    paths = {row[0]: row[1] for row in pages}
    picks = [(_pick(row, paths), _is_consumed(row)) for row in selected]
    revision, generation, digest = (
        (state[0][0], state[0][3], state[0][4]) if state else (0, 0, None)
    )
    leaving = [from_micros(row[5]) + ends_after for row in selected]
    ends = [] if ending[0] is None else [from_micros(ending[0])]
    return Selection(
        space=space,
        revision=revision,
        added=tuple(pick for pick, is_consumed in picks if not is_consumed),
        retained=tuple(pick for pick, is_consumed in picks if is_consumed),
        removed=_removed({row[0] for row in selected}, before, buried, paths),
        generation=generation,
        digest=digest,
        expires_at=min([*leaving, *ends], default=None),
    )


def _pick(row: Row, paths: dict[str, str]) -> Pick:
    return Pick(
        session_id=row[0],
        revision=row[1],
        source_updated_at=from_micros(row[2]),
        path=paths.get(row[0]),
    )


def _is_consumed(row: Row) -> bool:
    return bool(row[3]) and row[4] == row[1]


def _removed(
    selected: set[str],
    before: Sequence[Row],
    buried: Sequence[Row],
    paths: dict[str, str],
) -> tuple[Removed, ...]:
    """What was part of the last generation: still there and not selected, or gone."""
    reasons = {row[0]: _BY_MODE[Mode(row[1])] for row in before if row[0] not in selected}
    for session_id in paths:  # as after a generation was restored
        if session_id not in selected:
            reasons.setdefault(session_id, RemovedBecause.UNSELECTED)
    # A session that was emptied and has come to something again is no longer gone, unless it was
    # forgotten: of that nothing may be left.
    for session_id, reason in buried:
        because = RemovedBecause(reason)
        if session_id not in selected or because is RemovedBecause.FORGOTTEN:
            reasons[session_id] = because
    return tuple(
        Removed(session_id=session_id, because=because, path=paths.get(session_id))
        for session_id, because in sorted(reasons.items())
    )


def memos(c: Connection, space: str, session_ids: Sequence[str]) -> list[Memo]:
    asked = [("load_memo", {"space": space, "session_id": each}) for each in session_ids]
    found = c.rows_each(asked) if asked else []
    return [_memo(row) for each in found for row in each]


def _memo(row: Row) -> Memo:
    revision, opened_at, first_said_at, key, agent_id, project = row[_EXTRACTION_COLUMNS:]
    began_at = opened_at if first_said_at is None else min(opened_at, first_said_at)
    return Memo(
        extraction=rows.extraction(row[:_EXTRACTION_COLUMNS]),
        revision=revision,
        began_at=from_micros(began_at),
        key=key,
        agent_id=agent_id,
        project=project,
    )


def standings(
    c: Connection, space: str, session_ids: Sequence[str], now: datetime, limit: int
) -> list[Standing]:
    selected = frozenset(session_ids)
    sessions = json.dumps(sorted(selected))
    wanted = {
        "space": space,
        "at": to_micros(now),
        "is_now": True,
        "sessions": sessions,
        "sources_max": SOURCES_MAX,
        "limit": limit,
    }
    found = [(row[0], rows.fact(row[1:])) for row in c.rows("standing_facts", wanted)]
    supported = []
    for key, fact in found:
        kept = tuple(source for source in fact.sources if source.session_id in selected)
        if not kept and fact.source_count > len(fact.sources):
            later = {**wanted, "key": key, "limit": SOURCES_MAX}
            kept = tuple(_source(row) for row in c.rows("standing_sources", later))
        source = kept[0].session_id if kept else None
        supported.append(replace(fact, sources=kept, source=source))
    named = sorted({fact.source for fact in supported if fact.source is not None})
    asked = [("project_of_session", {"space": space, "id": each}) for each in named]
    projects = [each[0][0] if each else None for each in (c.rows_each(asked) if asked else [])]
    by_session = dict(zip(named, projects, strict=True))
    return [
        Standing(fact=fact, project=by_session.get(fact.source) if fact.source else None)
        for fact in supported
    ]


def _source(row: Row) -> Source:
    return Source(session_id=row[0], seq=row[1], seq_to=row[2], quote=row[3])
