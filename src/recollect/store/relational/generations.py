"""Generations: published in one fenced transaction, listed, restored, pruned.

Owns G4 (exactly the consumed states are marked), G5 (the watermark never goes back, and what comes
during a run leaves the space due) and the part of G9 that is rows. Publishing locks the space's
memory first and then the job, as a change of memory does.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.ids import NewId
from recollect.store.relational import rows
from recollect.store.relational.database import (
    Aggregate,
    Asked,
    Connection,
    Row,
    in_each_space,
    moment,
    scope,
)
from recollect.store.relational.document_edits import apply_edits
from recollect.store.relational.document_rows import purge_deleted, raise_versions
from recollect.store.relational.indexing import erase_entries
from recollect.store.relational.jobs import make_due, note_change
from recollect.store.relational.rows import storable
from recollect.types.generations import (
    ConsolidationState,
    Generation,
    GenerationDocument,
    GenerationDraft,
    Memo,
    Outdated,
    Pick,
    Published,
    Removed,
    RemovedBecause,
    Selection,
    SelectionClock,
    SelectionPolicy,
    Standing,
)
from recollect.types.recall import EntryKind
from recollect.types.records import Claim, Mode, StaleClaim

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
            kept = tuple(map(rows.source, c.rows("standing_sources", later)))
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


NOTE_CHARS_MAX = 4000
_EVERY = 2**62


class GenerationStore(Aggregate):
    """Generations of a space's memory, and what the next one is made of."""

    def select(self, space: str, policy: SelectionPolicy, now: datetime) -> Selection:
        """What would be selected now, and how that differs from the last generation.

        The most used come first, then those used or made last. What changed since it was consumed
        counts as added; what was consumed and is not selected any more, or not there, as removed.
        """
        return self._database.read(space, lambda c: select(c, space, policy, now))

    def memos(self, space: str, session_ids: Sequence[str]) -> builtins.list[Memo]:
        """The extractions of sessions, in full and in this order; without those that are gone."""
        return self._database.read(space, lambda c: memos(c, space, session_ids))

    def standings(
        self, space: str, session_ids: Sequence[str], now: datetime, limit: int
    ) -> builtins.list[Standing]:
        """Facts that hold and that these sessions support, or somebody added; most used first.

        Each with those of its sources alone that lie in these sessions.
        """
        return self._database.read(space, lambda c: standings(c, space, session_ids, now, limit))

    def publish(
        self, claim: Claim, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Published | Outdated | StaleClaim:
        """Make a generation the current one, fenced by the token.

        Documents, generation, consumed memories and watermark go together. The job is done, or due
        again where something changed meanwhile. A draft made of what the current one was made of
        moves the watermark alone. Outdated: something it was made of may not be remembered any
        more; nothing was published, and the job is due at once. StaleVersion, DocumentExists,
        DocumentReferenced or NotFound: somebody changed the documents it was to replace.
        """
        assert draft.selection.space == claim.key, "a claim is on the space it names"

        def job(c: Connection) -> Published | Outdated | StaleClaim:
            c.run("lock_memory", {"space": claim.key})
            held = {"id": claim.job_id, "token": claim.token, "space": claim.key}
            if c.row("lock_consolidation", held) is None:
                c.run("drop_consolidation", {"space": claim.key})  # if the space was forgotten
                return StaleClaim()
            if _has_lost(c, draft.selection):
                make_due(c, "give_back", {**held, "due_at": None, "first_due_at": None})
                return Outdated()
            generation, completed = _put(c, draft, now, new_id)
            return Published(generation, is_due_again=_finish(c, claim.key, completed, now))

        published = self._database.write(claim.key, job)
        if isinstance(published, Published) and draft.selection.is_forgetting:
            self._database.scrub()
        return published

    def restore(
        self, space: str, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Generation:
        """Make a generation current by hand; a run under way is void."""

        def job(c: Connection) -> Generation:
            c.run("lock_memory", {"space": space})
            generation, completed = _put(c, draft, now, new_id)
            assert generation is not None, "there is something to restore"
            _finish(c, space, completed, now)
            return generation

        return self._database.write(space, job)

    def amend(self, space: str, draft: GenerationDraft, now: datetime, new_id: NewId) -> bool:
        """Replace the content of the current generation, under its number.

        Nothing is consumed, and what only it said before is erased. False: it is not current any
        more. StaleVersion and the like: as `publish`.
        """
        names = {"space": space, "number": draft.selection.generation}

        def job(c: Connection) -> bool:
            c.run("lock_memory", {"space": space})
            current = c.row("get_consolidation", {"space": space})
            if current is None or current[3] != draft.selection.generation:
                return False
            _put_documents(c, draft, draft.selection.generation, now, new_id)
            counted = c.row("count_generation", {"space": space})
            assert counted is not None
            how = {
                "made_by": storable(draft.made_by),
                "documents": counted[0],
                "parts": draft.parts,
            }
            c.run("amend_generation", {**names, **how})
            c.run("amend_digest", {"space": space, "digest": draft.digest})
            return True

        return self._database.write(space, job)

    def list(self, space: str, limit: int, before: int | None) -> builtins.list[Generation]:
        """A page of generations, the newest first."""
        page = {"space": space, "before": _EVERY if before is None else before, "limit": limit}
        return self._page(_generation, space, "list_generations", page)

    def get(self, space: str, number: int) -> Generation | None:
        names = {"space": space, "number": number}
        return self._one(_generation, space, "get_generation", names)

    def parts(self, space: str, number: int) -> str:
        """What a model wrote of a generation, by part, as it was stored; empty: nothing."""
        row = self._row(space, "parts_of_generation", {"space": space, "number": number})
        return "" if row is None else str(row[0])

    def documents(self, space: str, number: int) -> builtins.list[GenerationDocument]:
        """The documents of a generation that still exist."""
        names = {"space": space, "number": number}
        return self._page(rows.reader(GenerationDocument), space, "documents_of_generation", names)

    def states(
        self, space: str | None, limit: int, after: str, now: datetime | None
    ) -> builtins.list[ConsolidationState]:
        """The state of consolidation, a page of spaces in the order of their names."""
        page = {**scope(space), "after": after, "limit": limit, "now": _micros(now)}
        return self._page(_state, space, "consolidation_states", page)

    def request(self, space: str, now: datetime | None) -> bool:
        """Make a space due for consolidation as soon as nothing in it is left to distil.

        No cooldown, backoff or parking keeps it. False: it is paused.
        """
        names = {"space": space, "now": _micros(now)}

        def job(c: Connection) -> bool:
            c.run("lock_memory", {"space": space})
            if c.row("is_paused", {"space": space}) is not None:
                return False
            make_due(c, "request_consolidation", names)
            return True

        return self._database.write(space, job)

    def hurry(self, space: str | None) -> int:
        """Let the jobs that wait for a cooldown run at once; return their number."""

        def hurried(c: Connection, each: str) -> bool:
            return bool(make_due(c, "hurry_consolidation", {"space": each}))

        listed: Asked = ("cooling_consolidations", {})
        return sum(in_each_space(self._database, space, listed, hurried).values())

    def pause(self, space: str, now: datetime | None) -> None:
        """Stop consolidation of the space until it is resumed; a run under way is void."""

        def job(c: Connection) -> None:
            c.run("lock_memory", {"space": space})
            c.run("pause_consolidation", {"space": space, "now": moment(c, now)})
            c.run("rest_consolidation", {"space": space})

        self._database.write(space, job)

    def resume(self, space: str, now: datetime | None) -> None:
        def job(c: Connection) -> None:
            c.run("lock_memory", {"space": space})
            row = c.row("resume_consolidation", {"space": space})
            if row is not None and row[0] > row[1]:
                make_due(c, "request_consolidation", {"space": space, "now": _micros(now)})

        self._database.write(space, job)

    def expire(self, now: datetime | None, space: str | None = None) -> builtins.list[str]:
        """Make due the spaces that time alone has changed, one or all; return them."""

        def expired(c: Connection, each: str) -> bool:
            at = {"now": moment(c, now), "space": each}
            if c.row("expire_selection", at) is None:
                return False
            make_due(c, "make_consolidation_due", {"space": each})
            return True

        listed = ("expired_selections", {"now": _micros(now)})
        done = in_each_space(self._database, space, listed, expired)
        return [each for each, is_expired in done.items() if is_expired]

    def note_edits(self, space: str, now: datetime) -> None:
        """Note that people edited published files: the next generation is due."""

        def job(c: Connection) -> None:
            c.run("lock_memory", {"space": space})
            note_change(c, space, now)

        self._database.write(space, job)

    def prune(self, older_than: datetime, limit: int) -> int:
        """Drop memories that nobody has used since and no generation has, the oldest first."""
        cutoff = to_micros(older_than)
        which = {"cutoff": cutoff, "limit": limit}
        found = self._rows(None, "prunable_memories", which)
        return sum(self._prune(row[0], row[1], older_than) for row in found)

    def _prune(self, space: str, session_id: str, older_than: datetime) -> int:
        names = {"space": space, "session_id": session_id}
        reason = {"reason": RemovedBecause.PRUNED.value, "now": to_micros(older_than)}

        def job(c: Connection) -> int:
            c.run("lock_memory", {"space": space})
            c.run("bury_memory", {**names, **reason})
            old = {**names, "cutoff": to_micros(older_than)}
            return len(erase_entries(c, EntryKind.SUMMARY, "prune_memory", old))

        return self._database.write(space, job)

    def files_published(self, space: str, generation: int) -> None:
        """Note that the files of a generation were published."""
        names = {"space": space, "generation": generation}
        self._run(space, "files_published", names)

    def without_files(self, limit: int, space: str | None = None) -> builtins.list[tuple[str, int]]:
        """Spaces whose current generation was never written as files, with its number."""
        page = {**scope(space), "limit": limit}
        found = self._rows(space, "without_files", page)
        return [(row[0], row[1]) for row in found]


def _has_lost(c: Connection, selection: Selection) -> bool:
    """Whether something that was selected may not be remembered any more."""
    sessions = json.dumps([pick.session_id for pick in selection.picks])
    return c.row("lost_memories", {"space": selection.space, "sessions": sessions}) is not None


def _put(
    c: Connection, draft: GenerationDraft, now: datetime, new_id: NewId
) -> tuple[Generation | None, Row]:
    """Store a generation, none if it would be what the current one is; and the watermark."""
    selection = draft.selection
    space = selection.space
    row = c.row("get_consolidation", {"space": space})
    assert row is not None
    current = row[3]
    is_same = draft.digest == row[4] and not draft.changes.edits and not selection.removed
    number = current if is_same else current + 1
    if not is_same:
        changed = _put_documents(c, draft, number, now, new_id)
        reach("generation.documents")
        _mark(c, draft)
        _erase(c, draft, number)
        _insert(c, draft, number, changed, now)
        _prune(c, space, number - draft.kept)
        reach("generation.published")
    completed = c.row(
        "complete_consolidation",
        {
            "space": space,
            "revision": selection.revision,
            "generation": number,
            "digest": draft.digest,
            "is_new": not is_same,
            "not_before": to_micros(now) + round(draft.cooldown_seconds * 1_000_000),
            "expires_at": None if selection.expires_at is None else to_micros(selection.expires_at),
            "now": to_micros(now),
        },
    )
    assert completed is not None
    return None if is_same else _got(c, space, number), completed


def _put_documents(
    c: Connection, draft: GenerationDraft, number: int, now: datetime, new_id: NewId
) -> int:
    """Make the edits, and note which version of what the generation has; how many changed."""
    space = draft.selection.space
    sessions = {key: session_id for session_id, key in draft.summaries}
    made = apply_edits(c, space, draft.changes, now, new_id) if draft.changes.edits else []
    after = {document.id: document for document in made}
    changed = 0
    for document in after.values():
        names = {"space": space, "document_id": document.id, "generation": number}
        known = c.row("current_version", names)
        is_gone = document.deleted_at is not None
        if known is not None and not is_gone and known[0] == document.version:
            continue
        changed += 1
        closed = c.row("opened_document", names)
        if closed is None:
            closed = c.row("close_document", names)
        else:  # the generation is amended: nothing has what it said before
            gone = _erase_version(c, space, (document.id, closed[1], number))
            if gone:
                raise_versions(c, space, gone)
        if is_gone:
            continue
        session_id = sessions.get(document.path, None if closed is None else closed[0])
        c.run(
            "open_document",
            {**names, "version": document.version, "session_id": session_id},
        )
    return changed


def _mark(c: Connection, draft: GenerationDraft) -> None:
    """Mark what was consumed, in the state in which it was; what is removed is not any more.

    In the order of ids, as those who count uses go through the same rows.
    """
    selection = draft.selection
    added = {pick.session_id: pick for pick in selection.added}
    selected = {pick.session_id for pick in selection.picks}
    removed = {each.session_id for each in selection.removed} - selected
    removed.update(draft.unconsumed)
    for session_id in sorted(removed | added.keys()):
        names = {"space": selection.space, "session_id": session_id}
        pick = added.get(session_id)
        if pick is None:
            c.run("deselect_memory", names)
            continue
        seen = to_micros(pick.source_updated_at)
        c.run("consume_memory", {**names, "revision": pick.revision, "source_updated_at": seen})


def _erase(c: Connection, draft: GenerationDraft, number: int) -> None:
    """Drop the tombstones that were seen; of what was forgotten, earlier versions go for good."""
    selection = draft.selection
    space = selection.space
    if selection.is_forgetting:
        gone = c.rows("forgettable_documents", {"space": space})
        versions = [_erase_version(c, space, row) for row in gone]
        c.run("spoil_generations", {"space": space, "number": number})
        raise_versions(c, space, max(versions, default=0))
    for removed in selection.removed:
        names = {"space": space, "session_id": removed.session_id}
        c.run("drop_tombstone", {**names, "reason": removed.because.value})


def _erase_version(c: Connection, space: str, row: Row) -> int:
    """Remove a version that generations had, and a deleted document with its last one.

    The version up to which a document is gone; 0 where it stays.
    """
    document_id, version, first_generation = row
    names = {"space": space, "document_id": document_id}
    c.run("drop_generation_document", {**names, "first_generation": first_generation})
    c.row("erase_version", {"space": space, "id": document_id, "version": version})
    if c.row("has_generation_document", names) is None:
        return purge_deleted(c, space, document_id) or 0
    return 0


def _insert(
    c: Connection, draft: GenerationDraft, number: int, changed: int, now: datetime
) -> None:
    selection, spent = draft.selection, draft.spent
    counted = c.row("count_generation", {"space": selection.space})
    assert counted is not None
    c.run(
        "insert_generation",
        {
            "space": selection.space,
            "number": number,
            "now": to_micros(now),
            "made_by": storable(draft.made_by),
            "note": storable(draft.note[:NOTE_CHARS_MAX]),
            "added": len(selection.added),
            "retained": len(selection.retained),
            "removed": len(selection.removed),
            "documents": counted[0],
            "changed": changed,
            "calls": spent.calls,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "cost_micros": spent.cost_micros,
            "restored_from": draft.restored_from,
            "parts": draft.parts,
        },
    )


def _prune(c: Connection, space: str, upto: int) -> None:
    """Drop generations up to a number, and the versions that only they had."""
    if upto < 1:
        return
    c.run("prune_generations", {"space": space, "upto": upto})
    gone = c.rows("prunable_documents", {"space": space, "upto": upto})
    if version := max([_erase_version(c, space, row) for row in gone], default=0):
        raise_versions(c, space, version)


def _finish(c: Connection, space: str, completed: Row, now: datetime) -> bool:
    """Let the job rest, or be due again where something changed meanwhile; whether it is."""
    changed, consolidated, urgent, paused_at, not_before = completed
    is_due = changed > consolidated and paused_at is None
    due_at = None if not is_due or urgent > consolidated else not_before
    names = {"space": space, "now": to_micros(now), "is_due": is_due, "due_at": due_at}
    make_due(c, "finish_consolidation", names)
    return is_due


def _got(c: Connection, space: str, number: int) -> Generation:
    row = c.row("get_generation", {"space": space, "number": number})
    assert row is not None
    return _generation(row)


_generation = rows.reader(Generation)
_state = rows.reader(ConsolidationState)


def _micros(now: datetime | None) -> int | None:
    return None if now is None else to_micros(now)
