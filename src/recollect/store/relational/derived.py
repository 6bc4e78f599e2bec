"""What sessions came to follows their facts: what was corrected, deleted or forgotten is not said.

In the transaction that changes the fact, and wherever a session's texts are stored again. Whoever
comes here holds the space's memory (`lock_memory`), and notes afterwards that it has changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.clock import to_micros
from recollect.restating import SessionTexts, Withdrawn, restated
from recollect.stemming import indexed_summary
from recollect.store.relational.database import Asked, Connection, Params, Row
from recollect.store.relational.indexing import erase_entries, put_entry
from recollect.store.relational.rows import storable
from recollect.types.facts import Draft, NewFact, content_key
from recollect.types.generations import RemovedBecause
from recollect.types.recall import EntryKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Restated:
    """The sessions whose texts say something else now, and those of which nothing was left."""

    changed: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()


def restate_sessions(
    c: Connection,
    fact: Params,
    content: str,
    now: datetime,
    *,
    instead: str = "",
    because: RemovedBecause = RemovedBecause.EMPTIED,
) -> Restated:
    """Let the sessions a fact was learned from say what is said `instead` of it, or nothing.

    `fact` names it by its space, id and key; its sources and its history have to be there still.
    """
    space = fact["space"]
    quotes: dict[str, list[str]] = defaultdict(list)
    for session_id, quote in c.rows("quotes_of_fact", {"space": space, "fact_key": fact["key"]}):
        quotes[session_id].append(quote)
    if not quotes:
        return Restated()
    said = [*(row[2] for row in c.rows("fact_changes", fact)), content]
    changed, emptied = [], []
    for session_id in sorted(quotes):
        gone = Withdrawn(statements=tuple(said), quotes=tuple(quotes[session_id]), instead=instead)
        names = {"space": space, "session_id": session_id}
        texts = _restate(c, names, gone, fact["key"])
        if texts is None:
            continue
        if texts.is_empty:
            emptied.append(session_id)
            c.run("bury_memory", {**names, "reason": because.value, "now": to_micros(now)})
            erase_entries(c, EntryKind.SUMMARY, "delete_extraction", names)
        else:
            changed.append(session_id)
            _store(c, names, texts, now)
    return Restated(changed=tuple(changed), emptied=tuple(emptied))


def _restate(c: Connection, names: Params, gone: Withdrawn, key: int) -> SessionTexts | None:
    """What a session's texts come to; none: they do not change."""
    row = c.row("extraction_texts", names)
    if row is None:
        return None
    before = SessionTexts(raw_memory=row[0], rollout_summary=row[1], rollout_slug=row[2])
    kept = [each[0] for each in c.rows("session_statements", {**names, "key": key})]
    after = restated(before, (gone,), kept)
    return None if after == before else after


def _store(c: Connection, names: Params, texts: SessionTexts, now: datetime) -> None:
    memory, summary = storable(texts.raw_memory), storable(texts.rollout_summary)
    said = {
        **names,
        "raw_memory": memory,
        "rollout_summary": summary,
        "rollout_slug": texts.rollout_slug,
        "words": indexed_summary(memory, summary, texts.rollout_slug),
        "now": to_micros(now),
    }
    put_entry(c, EntryKind.SUMMARY, "reword_extraction", said)


# what is stored again


@dataclass(frozen=True, slots=True, kw_only=True)
class Disputes:
    """What a session must not bring back, and what of it was said there again."""

    facts: Sequence[Row] = ()  # that somebody has changed or deleted
    buried: Sequence[Row] = ()  # statements by their keys
    anew: Sequence[Row] = ()  # where facts were said after they had been taken back

    def places(self, key: str) -> set[tuple[int, int, int]]:
        """Where a statement was said again: the key of the fact, and the records."""
        return {(row[0], row[1], row[2]) for row in self.anew if content_key(row[3]) == key}


def disputes_asked(session: Params) -> list[Asked]:
    """What has to be known of a session before its texts are stored again, as `Disputes` has it."""
    return [("session_disputes", session), ("buried_statements", session), ("said_anew", session)]


def without_disputed(draft: Draft, disputes: Disputes, unsaid: Collection[NewFact]) -> Draft:
    """A draft whose texts do not say what somebody has corrected, deleted or forgotten.

    `unsaid` are those of its facts that must not come back.
    """
    if not disputes.facts and not disputes.buried:
        return draft
    believed = [each for each in draft.facts if each not in unsaid]
    kept = [*(each.content for each in believed), *(row[3] for row in disputes.anew)]
    stand = {content_key(storable(each)) for each in kept}
    quoted = [*(each.quote for each in believed), *(row[4] for row in disputes.anew)]
    gone, known, standing = _disputed(disputes.facts, stand)
    # Of what was forgotten no word is kept but those that say it again here.
    gone += [
        Withdrawn(statements=(each.content,), quotes=(each.quote,))
        for each in unsaid
        if content_key(storable(each.content)) not in known | stand
    ]
    gone.append(
        Withdrawn(keys=frozenset(row[0] for row in disputes.buried) - set(map(content_key, quoted)))
    )
    texts = SessionTexts(
        raw_memory=draft.raw_memory,
        rollout_summary=draft.rollout_summary,
        rollout_slug=draft.rollout_slug,
    )
    after = restated(texts, gone, [*kept, *standing])
    return replace(
        draft,
        raw_memory=after.raw_memory,
        rollout_summary=after.rollout_summary,
        rollout_slug=after.rollout_slug,
    )


def _disputed(
    disputes: Sequence[Row], stand: Collection[str]
) -> tuple[list[Withdrawn], set[str], list[str]]:
    """What is not said any more, the keys of all that was said of it, and what is said now.

    `stand` are the keys of what is said, whatever became of it before.
    """
    facts: dict[str, list[Row]] = defaultdict(list)
    for row in disputes:
        facts[row[0]].append(row)
    gone, known, standing = [], set[str](), []
    for found in facts.values():
        _, content, is_there, _, _ = found[0]
        statements = tuple(dict.fromkeys([*(row[4] for row in found), content]))
        quotes = tuple(dict.fromkeys(row[3] for row in found))
        known.update(map(content_key, statements))
        if is_there:
            standing.append(content)
        # The words it was learned from say what it said first.
        is_quoted = content_key(statements[0]) not in stand
        gone.append(
            Withdrawn(
                statements=statements,
                quotes=quotes if is_quoted else (),
                instead=content if is_there else "",
            )
        )
    return gone, known, standing
