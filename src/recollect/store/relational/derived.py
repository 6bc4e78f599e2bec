"""Renders a session's texts from its facts, once one of those facts was corrected or deleted.

The texts are not edited: they are rendered from the facts that still rest on the session, in the
transaction that makes the change and after each later pass over the session. Callers hold the
space's memory (`lock_memory`), and note afterwards that it has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.clock import to_micros
from recollect.stemming import indexed_summary
from recollect.store.relational.database import Connection, Params, Row
from recollect.store.relational.indexing import erase_entries, put_entry
from recollect.store.relational.page_inputs import drop_pages_on_fact
from recollect.types.facts import Draft, content_key
from recollect.types.generations import RemovedBecause
from recollect.types.recall import EntryKind

STATEMENT_CHARS_MAX = 300
TEXT_CHARS_MAX = 8_000
_CUT = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerendered:
    """The sessions whose texts are rendered anew, and those of which nothing was left."""

    changed: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()


def rendered(statements: Iterable[Row]) -> str:
    """The facts of a session as a text, in the order they were said; of too many the last."""
    lines: dict[int, str] = {}
    for key, content, seq, seq_to, trust, _ in sorted(
        statements, key=lambda row: (row[2:4], row[0])
    ):
        text = " ".join(content.split())
        if len(text) > STATEMENT_CHARS_MAX:
            text = text[: STATEMENT_CHARS_MAX - 1] + _CUT
        place = f"#{seq}" if seq == seq_to else f"#{seq}-{seq_to}"
        lines.setdefault(key, f"- {text} [{place}, {trust}]" if seq_to else f"- {text} [{trust}]")
    kept, chars = list(lines.values()), 0
    for at in range(len(kept) - 1, -1, -1):
        chars += len(kept[at]) + 1
        if chars > TEXT_CHARS_MAX:
            return "\n".join(kept[at + 1 :])
    return "\n".join(kept)


def render_again(
    c: Connection, space: str, session_ids: Iterable[str], now: datetime, because: RemovedBecause
) -> Rerendered:
    """Replace the texts of sessions by what their facts say; one without any has none."""
    changed, emptied = [], []
    for session_id in sorted(session_ids):
        names = {"space": space, "session_id": session_id}
        text = rendered(c.rows("session_statements", names))
        if text:
            words = indexed_summary(text, text, None)
            said = {**names, "text": text, "words": words, "now": to_micros(now)}
            row = put_entry(c, EntryKind.SUMMARY, "reword_extraction", said)
            changed += [] if row is None else [session_id]
            continue
        c.run("bury_memory", {**names, "reason": because.value, "now": to_micros(now)})
        if erase_entries(c, EntryKind.SUMMARY, "delete_extraction", names):
            emptied.append(session_id)
    return Rerendered(changed=tuple(changed), emptied=tuple(emptied))


def take_back(
    c: Connection, space: str, fact_id: str, sources: Sequence[Row], now: datetime
) -> None:
    """Take the text of a corrected or deleted fact out of everything derived from it.

    `sources` are those it had. The caller has revoked the memory-agents before it locked the
    space's memory: one of them may be at work on a page.
    """
    render_again(c, space, {row[0] for row in sources}, now, RemovedBecause.EMPTIED)
    drop_pages_on_fact(c, space, fact_id, sources, now)


def following_facts(
    c: Connection, session: Params, draft: Draft, taken_back: Sequence[Row], *, always: bool
) -> Draft:
    """A draft with texts that say what its session's facts say, where anything was `taken_back`.

    Those facts are stored already. A statement that was said again since is not taken back.
    `always`: somebody reviews what was learned, and has not read the texts.
    """
    is_empty = not (draft.raw_memory.strip() or draft.rollout_summary.strip())
    if is_empty or not (always or taken_back):
        return draft
    statements = c.rows("session_statements", session)
    if not always and all(_is_said_again(each, statements) for each in taken_back):
        return draft
    text = rendered(statements)
    return replace(draft, raw_memory=text, rollout_summary=text, rollout_slug=None)


def _is_said_again(taken_back: Row, statements: Iterable[Row]) -> bool:
    """Whether a fact, or the words it was learned from, makes a statement further on."""
    key, upto = taken_back
    return any(
        upto is not None and seq_to > upto and key in (content_key(content), content_key(quote))
        for _, content, _, seq_to, _, quote in statements
    )
