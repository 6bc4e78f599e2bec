"""Forgetting: a session, a record or a fact, with all that rests on it alone, in one transaction.

Runs at work on it lose their claims and store nothing. Lock order on PostgreSQL: the job of the
agent that speaks in a session comes before its key, as in a turn; the jobs of agents that were told
of the session come after it and its own job, as where it is handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any

from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.messages import Role
from recollect.store.relational.database import Aggregate, Connection, Params, Row
from recollect.store.relational.derived import Rerendered, render_again
from recollect.store.relational.document_rows import purge_documents, raise_versions
from recollect.store.relational.fact_changes import (
    erase_sourceless,
    release_superseded,
    settle_trust,
)
from recollect.store.relational.indexing import erase_entries
from recollect.store.relational.jobs import make_due, note_change, record_rest
from recollect.store.relational.page_inputs import (
    Taken,
    all_of,
    drop_pages,
    drop_pages_on_fact,
    file_again,
    revoke_agent,
    revoke_memory_agents,
)
from recollect.store.relational.records import INBOX, bury_keys
from recollect.store.relational.rows import reader
from recollect.types.access import SPACE_FORGOTTEN
from recollect.types.agents import Life
from recollect.types.facts import ForgettableSession, Receipt, SessionsMeant, Source, content_key
from recollect.types.generations import RemovedBecause
from recollect.types.recall import EntryKind
from recollect.types.records import MarkCause, Outcome

_EVERY = 2**62
FORGOTTEN = "forgotten"
_EMPTIED = '{"forgotten": true}'  # the metadata of a record that was
PIECE = 200  # rows that one transaction erases
_FIRST = -1  # below every key
_NAMED = ("ledger", "audit", "keys", "vectors")  # where the name of a forgotten space may stay


class Erasure(Aggregate):
    """Forgetting for good. A receipt of None: the space has no such thing."""

    def forget_session(
        self, space: str, session_id: str, now: datetime, *, all_pages: bool = False
    ) -> Receipt | None:
        """Erase a session and what rests on it alone.

        Here and below: pages that a model wrote from it go whole, and what else they were written
        from is filed again; those that somebody else wrote on are `left`, or go with `all_pages`.
        The summaries of the sessions that compactions carried its words into go with it. Its append
        keys are known from then on, and nothing is stored under them.
        """
        job = partial(_forget_session, space=space, session_id=session_id, now=now)
        return self._erased(space, partial(job, all_pages=all_pages))

    def forget_record(
        self, space: str, session_id: str, seq: int, now: datetime, *, all_pages: bool = False
    ) -> Receipt | None:
        """Erase a record, what rests on it alone, and every text that may carry it.

        An empty note keeps its number. A new pass over what is left of its session is due.
        """
        job = partial(_forget_record, space=space, session_id=session_id, seq=seq, now=now)
        return self._erased(space, partial(job, all_pages=all_pages))

    def forget_fact(
        self, space: str, fact_id: str, now: datetime, *, all_pages: bool = False
    ) -> Receipt | None:
        """Erase a fact with its history and its sources; its sessions do not bring it back.

        What its sessions came to does not say it any more.
        """
        job = partial(_forget_fact, space=space, fact_id=fact_id, now=now)
        receipt = self._erased(space, partial(job, all_pages=all_pages))
        if receipt is None:  # an earlier forgetting may have died before its scrub
            self._database.scrub()
        return receipt

    def _erased(self, space: str, job: Callable[[Connection], Receipt | None]) -> Receipt | None:
        """Run a transaction, then return its result once no file holds what it deleted."""
        receipt = self._database.erase(space, job)
        if receipt is None:
            return None
        return replace(receipt, is_complete=self._database.scrub() and not receipt.left)

    def moment(self, space: str, now: datetime) -> datetime:
        """A time by which everything existed: now, or the time of the newest, if that is later."""
        row = self._row(space, "newest_moment", {"space": space})
        return now if row is None or row[0] is None else max(now, from_micros(row[0]))

    def forgettable(
        self,
        space: str,
        meant: SessionsMeant,
        before: datetime,
        after: ForgettableSession | None,
        limit: int,
    ) -> list[ForgettableSession]:
        """A page of the sessions that had begun by a time, the oldest first."""
        page = {
            "space": space,
            "before": to_micros(before),
            "any_agent": meant.agent_id is None,
            "agent_id": meant.agent_id or "",
            "any_source": meant.source is None,
            "source": meant.source or "",
            "after": -1 if after is None else to_micros(after.created_at),
            "after_id": "" if after is None else after.id,
            "limit": limit,
        }
        return self._page(reader(ForgettableSession), space, "forgettable_sessions", page)

    def forget_sessions(
        self, space: str, session_ids: Sequence[str], now: datetime, *, all_pages: bool = False
    ) -> Receipt:
        """Erase sessions one after the other, each in its own transaction."""
        total = Receipt(space=space, at=now)
        for session_id in session_ids:
            job = partial(_forget_session, space=space, session_id=session_id, now=now)
            receipt = self._database.erase(space, partial(job, all_pages=all_pages))
            total = total if receipt is None else total.plus(receipt)
        return replace(total, is_complete=self._database.scrub() and not total.left)

    def forget_agent(self, space: str, agent_id: str, before: datetime) -> int:
        """Remove an agent's life, signals, and inbox up to a time; return the number of items."""
        names = {"space": space, "agent_id": agent_id}
        keys = self._rows(space, "keys_of_agent", names)
        items = sum(
            self._database.erase(
                space, partial(_forget_life, space=space, key=row[0], before=before)
            )
            for row in keys
        )
        self._database.scrub()
        return items

    def forget_facts(self, space: str, before: datetime, now: datetime) -> int:
        """Erase every fact there was by a time, with its history; return their number."""
        facts, after = 0, _FIRST
        while found := self._database.erase(
            space, partial(_erase_facts, space=space, before=before, now=now, after=after)
        ):
            facts, after = facts + len(found), found[-1]
        return facts

    def forget_space(self, space: str, before: datetime, now: datetime) -> Receipt:
        """Erase what a space has left by a time: documents, forgotten sessions, and its name.

        What was spent stays in the books. The receipt says where the name does.
        """
        documents, versions = self._forget_documents(space, before)
        items, after = 0, _FIRST
        while found := self._database.erase(
            space, partial(_clear_next, space=space, before=before, after=after)
        ):
            items, after = items + found[1], found[0]
        name_in = self._database.erase(space, lambda c: _drop_rest(c, space, now))
        return Receipt(
            space=space,
            at=now,
            documents=documents,
            versions=versions,
            items=items,
            name_in=name_in,
            is_complete=self._database.scrub(),
        )

    def _forget_documents(self, space: str, before: datetime) -> tuple[int, int]:
        documents, versions, after = 0, 0, _FIRST
        while found := self._database.erase(
            space, partial(_erase_documents, space=space, before=before, after=after)
        ):
            documents, after = documents + len(found), found[-1][0]
            versions += sum(row[3] for row in found)
        return documents, versions


# a session


def _forget_session(
    c: Connection, space: str, session_id: str, now: datetime, *, all_pages: bool
) -> Receipt | None:
    names = {"space": space, "id": session_id}
    at = to_micros(now)
    key = c.row("key_of_session", names)
    if key is None:
        return None
    # Before the key, as in a turn: a run at work on them loses its claim.
    revoke_agent(c, space, key[0])
    c.run("forget_own_items", {**names, "said": INBOX})
    # Appending and rotating rely on the session staying open while they hold its key.
    c.row("lock_key", {"space": space, "key_id": key[0]})
    before = c.row("lock_session", names)
    if before is None:  # the whole space was forgotten meanwhile
        return None
    counted = c.row("count_session", names)
    assert counted is not None
    cause = MarkCause.END.value
    c.run("close_forgotten", {**names, "cause": cause, "reason": FORGOTTEN, "now": at})
    record_rest(c, names, before[1], before[0], Outcome.SKIPPED, FORGOTTEN, now)
    c.run("lock_runs", names)
    c.run("forget_job", names)
    _forget_told(c, names)
    c.run("lock_memory", {"space": space})
    facts = _forget_facts(c, space, session_id, now)
    c.run("forget_statements", names)
    buried, extraction = _bury(c, space, session_id, at)
    bury_keys(c, {**names, "first": 1, "last": _EVERY}, now)
    erase_entries(c, EntryKind.RECORD, "delete_records", {**names, "upto": _EVERY})
    reach("forget.deleted")
    c.run("delete_retained", names)
    c.run("delete_retained_from", names)
    summaries = len(c.rows("forget_summaries", names))
    c.run("forget_calls", names)
    c.run("drop_staged", names)
    c.run("forget_usages", names)
    c.run("forget_questions", names)
    c.run("note_forgotten", {**names, "now": at})
    pages = _forget_pages(c, space, all_of(session_id, facts), now, all_pages=all_pages)
    if counted[1] or extraction or buried:
        note_change(c, space, now, is_urgent=True)
    return Receipt(
        space=space,
        session_id=session_id,
        records=int(counted[0]),
        facts=len(facts),
        sources=int(counted[1]),
        extractions=int(extraction),
        summaries=summaries,
        **pages,
        at=now,
        sessions=1,
    )


def _revoke_told(c: Connection, space: str, session_ids: Sequence[str]) -> None:
    """Take their claims from the agents that were told of sessions, and from all memory-agents."""
    told = [c.rows("agents_told", {"space": space, "id": each}) for each in session_ids]
    revoke_memory_agents(c, space, {row[0] for found in told for row in found})


def _bury(c: Connection, space: str, session_id: str, at: int) -> tuple[bool, bool]:
    """Remove what a session came to: whether a generation has it, and whether it came to anything.

    Pages are made anew without it, and their earlier versions go.
    """
    own = {"space": space, "session_id": session_id}
    grave = {**own, "reason": RemovedBecause.FORGOTTEN.value, "now": at}
    buried = c.row("bury_memory", grave) is not None
    return buried, bool(erase_entries(c, EntryKind.SUMMARY, "delete_extraction", own))


def _bury_piece(c: Connection, space: str, name: str, at: int) -> bool:
    """Have earlier versions of pages go, where there are any."""
    reason = RemovedBecause.FORGOTTEN.value
    grave = {"space": space, "name": name, "reason": reason, "now": at}
    return c.row("bury_piece", grave) is not None


def _forget_told(c: Connection, names: Params) -> None:
    """Remove what agents were to be told of a session, and what they said of it.

    After the session and its job, as where it is handed over to them.
    """
    _revoke_told(c, names["space"], [names["id"]])
    c.rows("forget_items", names)
    told = [
        {"space": names["space"], "session_id": row[0], "first_seq": row[1], "last_seq": row[2]}
        for row in c.rows("told_of", names)
    ]
    for stretch in told:
        c.run("delete_told_retained", stretch)
        erase_entries(c, EntryKind.RECORD, "delete_told_records", stretch)
        c.rows("forget_summaries", {"space": names["space"], "id": stretch["session_id"]})
    c.run("forget_told", names)


def _forget_facts(c: Connection, space: str, session_id: str, now: datetime) -> list[str]:
    """Remove the session from the sources of facts, and the facts that have no other: their ids."""
    names = {"space": space, "session_id": session_id}
    found = [row[0] for row in c.rows("session_facts", names)]
    for key in found:
        c.run("withdraw_sources", {**names, "fact_key": key})
    return _settle(c, space, found, now)


def _settle(c: Connection, space: str, found: list[int], now: datetime) -> list[str]:
    """Erase those of some facts that have lost their last source; their ids."""
    erased = {key: erase_sourceless(c, space, key, now, by=FORGOTTEN) for key in found}
    for key in found:
        if erased[key] is None:
            settle_trust(c, space, key, now, by=FORGOTTEN)
    return [each for each in erased.values() if each is not None]


# a record


def _forget_record(
    c: Connection, space: str, session_id: str, seq: int, now: datetime, *, all_pages: bool
) -> Receipt | None:
    names = {"space": space, "id": session_id}
    record = {**names, "seq": seq}
    found = c.row("find_record", record)
    if found is None:
        return None
    revoke_agent(c, space, found[0])
    if found[2] is not None:
        said = {"said": INBOX, "append_key": found[2]}
        c.run("forget_own_item", {"space": space, "key_id": found[0], **said})
    c.row("lock_key", {"space": space, "key_id": found[0]})
    before = c.row("lock_session", names)
    found = c.row("find_record", record)
    if before is None or found is None:
        return None
    is_read = seq <= (before[1] or 0)
    if _is_forgotten(found):  # by somebody who may not have come to the pages
        if is_read:
            _request_pass(c, space, session_id, now)
        return Receipt(space=space, at=now, record=f"{session_id}:{seq}")
    c.run("lock_runs", names)
    make_due(c, "revoke_runs", names)
    if is_read:  # what agents were told of it they are told again by the pass to come
        _forget_told(c, names)
    else:
        revoke_memory_agents(c, space)
    c.run("lock_memory", {"space": space})
    make_due(c, "revoke_consolidation", {"space": space})
    facts, sources = _forget_record_facts(c, space, session_id, seq, now)
    texts, buried = Rerendered(), False
    if is_read:
        texts = render_again(c, space, [session_id], now, RemovedBecause.FORGOTTEN)
        buried = _bury_piece(c, space, f"record {session_id} {seq}", to_micros(now))
    bury_keys(c, {**names, "first": seq, "last": seq}, now)
    _empty_record(c, space, session_id, seq, found)
    reach("forget.deleted")
    c.run("count_turns", names)
    summaries = len(c.rows("forget_summaries", names))
    c.run("drop_staged", names)
    c.run("forget_uses", {"space": space, "kind": "record", "entry_id": f"{session_id}:{seq}"})
    c.run("forget_questions", names)
    gone = frozenset({session_id, *facts})
    taken = Taken(names=gone, is_gone=lambda each: _is_of(each, session_id, seq))
    pages = _forget_pages(c, space, taken, now, all_pages=all_pages)
    if is_read:
        _request_pass(c, space, session_id, now)
    reworded = len(texts.changed) + len(texts.emptied)
    if sources or reworded or buried:
        note_change(c, space, now, is_urgent=True)
    return Receipt(
        space=space,
        record=f"{session_id}:{seq}",
        records=1,
        facts=len(facts),
        sources=sources,
        extractions=reworded,
        summaries=summaries,
        **pages,
        at=now,
    )


def _request_pass(c: Connection, space: str, session_id: str, now: datetime) -> None:
    """What was learned from the other records is learned again."""
    which = {"any_space": False, "space": space, "any_key": False, "key": session_id}
    make_due(c, "request_passes", {**which, "now": to_micros(now)})


def _is_forgotten(record: Row) -> bool:
    return bool(record[1] == Role.NOTE and record[5] == _EMPTIED and not record[6])


def _forget_record_facts(
    c: Connection, space: str, session_id: str, seq: int, now: datetime
) -> tuple[list[str], int]:
    """The ids of facts that rested on a record alone, and how many sources went with it."""
    names = {"space": space, "session_id": session_id, "seq": seq}
    found = [row[0] for row in c.rows("record_facts", names)]
    sources = sum(len(c.rows("withdraw_record", {**names, "fact_key": key})) for key in found)
    return _settle(c, space, found, now), sources


def _empty_record(c: Connection, space: str, session_id: str, seq: int, record: Row) -> None:
    """Put an empty note in the place of a record, so that nothing else gets its number.

    A row of its own: what is found by words and vectors goes with the one that is deleted.
    """
    place = {"space": space, "session_id": session_id}
    stretch = {**place, "first_seq": seq, "last_seq": seq}
    c.run("delete_told_retained", stretch)
    erase_entries(c, EntryKind.RECORD, "delete_told_records", stretch)
    key_id, _, _, said_at, created_at, *_ = record
    empty = {"name": None, "content": "", "body": None, "append_key": None, "words": ""}
    c.run(
        "insert_record",
        {
            **place,
            **empty,
            "seq": seq,
            "key_id": key_id,
            "role": Role.NOTE.value,
            "said_at": said_at,
            "now": created_at,
            "metadata": _EMPTIED,
        },
    )


def _is_of(source: Source, session_id: str, seq: int) -> bool:
    """Whether a source is a record; one that names none is of all of them."""
    is_named = source.seq <= seq <= source.seq_to
    return source.session_id == session_id and (is_named or not source.seq_to)


# a fact


def _forget_fact(
    c: Connection, space: str, fact_id: str, now: datetime, *, all_pages: bool
) -> Receipt | None:
    names = {"space": space, "id": fact_id}
    at = to_micros(now)
    found = c.row("find_any_fact", names)
    if found is None:
        return None
    own = {"space": space, "fact_key": found[0]}
    own_sessions = sorted({row[0] for row in c.rows("sources_of_fact", own)})
    for session_id in own_sessions:  # a run may have got to it, and have staged it
        run = {"space": space, "id": session_id}
        c.run("lock_runs", run)
        make_due(c, "revoke_runs", run)
        c.run("drop_staged", run)
    # They may be about to write it on a page. Before the memory of the space, as in a turn.
    _revoke_told(c, space, own_sessions)
    c.run("lock_memory", {"space": space})
    found = c.row("find_any_fact", names)
    if found is None:
        return None
    make_due(c, "revoke_consolidation", {"space": space})
    key, content, *successor, deleted_at = found
    sources = c.rows("sources_of_fact", {**own, "fact_key": key})
    known = {content_key(content), *(row[0] for row in c.rows("statements_of_fact", names))}
    # Its sessions still say it, and would bring it back.
    graves = {
        (session_id, statement)
        for session_id, _, _, quote in sources
        for statement in (*known, content_key(quote))
    }
    for session_id, statement in sorted(graves):
        grave = {"space": space, "content_key": statement, "session_id": session_id}
        c.run("bury_statement", {**grave, "by": FORGOTTEN, "now": at})
    c.run("erase_changes", names)
    erase_entries(c, EntryKind.FACT, "erase_fact", own)
    c.run("forget_uses", {"space": space, "kind": "fact", "entry_id": fact_id})
    taken = Taken(names=frozenset({fact_id}), is_gone=lambda _: False)
    # Its own sessions, which still say it, are not filed again.
    pages = _forget_pages(c, space, taken, now, all_pages=all_pages, besides=own_sessions)
    written = drop_pages_on_fact(c, space, fact_id, sources, now)
    pages["documents"] += written.documents
    pages["versions"] += written.versions
    reach("forget.deleted")
    if deleted_at is None:
        release_superseded(c, names, (successor[0], successor[1]), now, by=FORGOTTEN)
    texts = render_again(c, space, own_sessions, now, RemovedBecause.FORGOTTEN)
    # An id may say something itself.
    digest = sha256(fact_id.encode(errors="surrogatepass")).hexdigest()
    _bury_piece(c, space, f"fact {digest[:32]}", at)
    for session_id in texts.changed:  # whose pages said it
        _bury_piece(c, space, f"record {session_id} of a fact", at)
    note_change(c, space, now, is_urgent=True)
    return Receipt(
        space=space,
        at=now,
        fact_id=fact_id,
        facts=1,
        sources=len(sources),
        extractions=len(texts.emptied),
        **pages,
    )


def _forget_pages(
    c: Connection,
    space: str,
    taken: Taken,
    now: datetime,
    *,
    all_pages: bool,
    besides: Collection[str] = (),
) -> dict[str, Any]:
    """Drop the pages that rest on what is gone, and have the rest filed again: for the receipt.

    Those that stay do not name it any more. Not filed again are sessions that are named `besides`.
    """
    dropped = drop_pages(c, space, taken, now, is_erased=True, all_pages=all_pages)
    file_again(c, space, dropped.sessions.difference(besides), now)
    counted = {"documents": dropped.documents, "versions": dropped.versions}
    return {**counted, "left": tuple(dropped.left)}


# all of a space


def _erase_facts(
    c: Connection, *, space: str, before: datetime, now: datetime, after: int
) -> list[int]:
    """Erase the next so many facts; their keys."""
    c.run("lock_memory", {"space": space})
    make_due(c, "revoke_consolidation", {"space": space})
    old = {"space": space, "before": to_micros(before), "after": after, "limit": PIECE}
    found = [row[0] for row in c.rows("old_facts", old)]
    erased = [{"space": space, "fact_key": key} for key in found]
    erase_entries(c, EntryKind.FACT, "erase_fact", *erased)
    c.run("forget_changes", {"space": space, "before": to_micros(before)})
    if found:
        note_change(c, space, now, is_urgent=True)
    return found


def _erase_documents(c: Connection, *, space: str, before: datetime, after: int) -> list[Row]:
    c.row("lock_tree", {"space": space})
    old = {"space": space, "before": to_micros(before), "after": after, "limit": PIECE}
    found = c.rows("old_documents", old)
    purge_documents(c, space, [row[0] for row in found])
    if found:
        raise_versions(c, space, max(row[2] for row in found))
    live = sum(row[1] is None for row in found)
    if live:
        c.run("count_documents", {"space": space, "more": -live})
    return found


def _forget_life(c: Connection, *, space: str, key: int, before: datetime) -> int:
    """End an agent and remove what waits for it; return the number of items.

    Its row stays while its key does: a call that posts to it locks that row before its job.
    """
    names = {"space": space, "key_id": key}
    own = {"space": space, "job_key": str(key)}
    c.row("lock_life", names)
    make_due(c, "revoke_agent", own)
    items = len(c.rows("forget_inbox", {**names, "before": to_micros(before)}))
    c.run("forget_own_signals", names)
    if c.row("has_items", names) is None:
        c.run("void_agent_job", own)
        c.run("set_life", {**names, "life": Life.DEAD.value, "now": to_micros(before)})
    return items


def _clear_next(
    c: Connection, *, space: str, before: datetime, after: int
) -> tuple[int, int] | None:
    """Remove the next key of which a session was forgotten, with its items.

    One at a time: a transaction that holds the session of one may wait for the life of another.
    """
    row = c.row("key_left", {"space": space, "after": after})
    if row is None:
        return None
    c.run("reserve_keys", {"space": space})
    return row[0], _clear_key(c, {"space": space, "key_id": row[0]}, before)


def _clear_key(c: Connection, key: Params, before: datetime) -> int:
    # Its life and its job before the key, as in a turn.
    items = _forget_life(c, space=key["space"], key=key["key_id"], before=before)
    c.row("lock_key", key)
    c.run("drop_told_by", key)
    c.run("drop_ranges", key)
    c.run("drop_jobs", key)
    c.run("drop_sessions", key)
    c.run("forget_life", key)
    if c.row("drop_key", key) is not None:
        c.run("drop_agent_job", {"space": key["space"], "job_key": str(key["key_id"])})
    return items


def _drop_rest(c: Connection, space: str, now: datetime) -> tuple[str, ...]:
    """Remove what is left of a space; where its name stays, if nothing has come there since."""
    names = {"space": space}
    c.run("drop_agents", names)  # before the memory, as where a memory-agent is made
    c.run("lock_memory", names)
    c.run("drop_generations", names)
    c.run("drop_generation_documents", names)
    c.run("drop_tombstones", names)
    c.run("drop_all_inputs", names)
    c.run("drop_usages", names)
    c.run("drop_contexts", names)
    c.run("drop_calls", names)
    c.run("drop_imported", names)
    c.run("drop_import_cursors", names)
    c.run("drop_audit", {**names, "kept": SPACE_FORGOTTEN})
    c.run("drop_space", names)
    if c.row("find_space", names) is not None:
        c.run("settle_consolidation", names)
        c.run("rest_consolidation", names)
        note_change(c, space, now)
        return ()
    c.run("drop_consolidation_job", names)
    c.run("drop_tree", names)
    c.run("drop_consolidation", names)
    row = c.row("name_left", names)
    assert row is not None
    return tuple(place for place, is_there in zip(_NAMED, row, strict=True) if is_there)
