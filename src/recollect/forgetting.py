"""Forgets sessions, records, facts and more, with all that rests on them: rows, pages and files.

Owns P11. Many sessions are forgotten one by one, and their pages with every few of them: repeating
a call that was interrupted finishes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from recollect import collection
from recollect.descriptors import Descriptor, cache_key, read_descriptor
from recollect.errors import InvalidValue, NotFound
from recollect.pipeline import Pipeline
from recollect.progress import tell
from recollect.runtime import Runtime
from recollect.session import Session
from recollect.stemming import asked_stems, stems
from recollect.store.protocol import Store
from recollect.types.facts import FactQuery, ForgettableSession, Receipt, SessionsMeant
from recollect.types.recall import EntryKind, Filters, Reach, Sought
from recollect.types.records import Record

SESSIONS_PAGE = 50  # between two looks at the pages of memory
KEEP, ERASE = "keep", "erase"
# What may still say it is looked for by this much of what was said: it is found, or it was little.
STATEMENTS_MAX = 200
STATEMENT_CHARS_MAX = 1000
RECORDS_READ = 500
FACTS_READ = 500
REMAINING_MAX = 20
STEMS_MIN = 2  # of a statement, besides common words: one is said by anybody
SHARE_MIN = 0.8  # of them in one passage
_PASSAGE = re.compile(r"\n+|(?<=[.!?])\s+")
_REACH = Reach(loaded=dict.fromkeys(EntryKind, 20), beside=0, chars=100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """What is to be forgotten: exactly one of these."""

    session: str | Session | None = None
    record: str | Record | None = None
    fact: str | None = None
    document: str | None = None
    agent: str | Mapping[str, Any] | Descriptor | None = None
    source: str | None = None
    everything: bool = False


def forget(
    runtime: Runtime, pipeline: Pipeline, space: str, wanted: ForgetRequest, *, pages: str = KEEP
) -> Receipt:
    """Erase for good. NotFound: there is no such thing here. InvalidValue: not exactly one.

    `pages` says what to do with pages that people wrote on what is forgotten: keep, or erase.
    """
    if pages not in (KEEP, ERASE):
        raise InvalidValue(f"pages is {KEEP!r} or {ERASE!r} (got {pages!r})")
    now = runtime.now()
    task = _Task(runtime=runtime, pipeline=pipeline, space=space, now=now, all_pages=pages == ERASE)
    told = runtime.told.watch(space)
    receipt = _forgotten(task, wanted)
    remaining = task.said.still_said(runtime.store, space, now, receipt.left)
    return replace(receipt, may_remain=remaining, told=told())


def _forgotten(task: _Task, wanted: ForgetRequest) -> Receipt:
    ways: dict[str, Callable[[Any], Receipt]] = {
        "session": task.session,
        "record": task.record,
        "fact": task.fact,
        "document": task.document,
        "agent": task.agent,
        "source": task.source,
    }
    given = {name: what for name in ways if (what := getattr(wanted, name)) is not None}
    is_all = collection.check_flag(wanted.everything, "everything")
    named = [*given, *(["everything"] if is_all else [])]
    if len(named) != 1:
        known = ", ".join((*ways, "everything"))
        raise InvalidValue(
            f"forget takes exactly one of {known} (got {', '.join(named) or 'none'})"
        )
    return task.everything() if is_all else ways[named[0]](given[named[0]])


def read_record(record: str | Record) -> tuple[str, int]:
    """The session and the number of a record that is given, or named as `session_id:seq`."""
    if isinstance(record, Record):
        return record.session_id, record.seq
    session_id, colon, number = collection.check_id(record).rpartition(":")
    if not colon or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise InvalidValue(
            f"a record is named by its session and its number, as in id:3: {record!r}"
        )
    return session_id, int(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What is being forgotten: where, and what was there by now."""

    runtime: Runtime
    pipeline: Pipeline
    space: str
    now: datetime
    all_pages: bool
    said: _Said = field(default_factory=lambda: _Said())  # noqa: PLW0108 - it is made below

    def session(self, session: str | Session) -> Receipt:
        session_id = session.id if isinstance(session, Session) else collection.check_id(session)

        def forgotten(store: Store) -> Receipt | None:
            self.said.note_session(store, self.space, session_id, self.now)
            return store.erasure.forget_session(
                self.space, session_id, self.now, all_pages=self.all_pages
            )

        return self._wherever(forgotten, f"session {session_id!r}")

    def record(self, record: str | Record) -> Receipt:
        session_id, seq = read_record(record)

        def forgotten(store: Store) -> Receipt | None:
            self.said.note_record(store, self.space, session_id, seq)
            return store.erasure.forget_record(
                self.space, session_id, seq, self.now, all_pages=self.all_pages
            )

        return self._wherever(forgotten, f"record {session_id}:{seq}")

    def fact(self, fact: str) -> Receipt:
        fact_id, store = collection.check_id(fact), self.runtime.store
        found = store.facts.get(self.space, fact_id)
        self.said.note(*(() if found is None else (found.content,)))
        receipt = store.erasure.forget_fact(self.space, fact_id, self.now, all_pages=self.all_pages)
        # Also of one that is gone: an interrupted call may have left its pages and files.
        left = self.pipeline.withdraw(self.space)
        if receipt is None:
            raise NotFound(f"space {self.space!r} has no fact {fact_id!r}")
        return receipt.leaving(left)

    def document(self, path: str) -> Receipt:
        documents = self.pipeline.documents(self.space)
        found = documents.find(path)
        self.said.note(*(() if found is None else (found.body,)))
        purged = documents.purge(path)
        left = self.pipeline.withdraw(self.space)
        if not purged.documents:
            raise NotFound(f"space {self.space!r} has no document {path!r}")
        receipt = Receipt(
            space=self.space,
            at=self.now,
            path=path,
            documents=purged.documents,
            versions=purged.versions,
            is_complete=purged.is_clean,
        )
        return receipt.leaving(left)

    def agent(self, named: str | Mapping[str, Any] | Descriptor) -> Receipt:
        agent = read_descriptor(named)
        agent_id = cache_key(agent)
        store, _ = self.runtime.store_of(agent)
        before = store.erasure.moment(self.space, self.now)
        receipt, gone = self._sessions(store, SessionsMeant(agent_id=agent_id), before)
        items = store.erasure.forget_agent(self.space, agent_id, before)
        if not gone:
            raise NotFound(f"space {self.space!r} has no sessions of {agent.id!r}")
        return replace(receipt, agent_id=agent_id, items=receipt.items + items)

    def source(self, named: str) -> Receipt:
        source = collection.check_label(named, "a source") or ""
        total, count = Receipt(space=self.space, at=self.now), 0
        for store in self._stores()[::-1]:  # a receipt is as complete as what was done last
            before = store.erasure.moment(self.space, self.now)
            receipt, gone = self._sessions(store, SessionsMeant(source=source), before)
            total, count = total.plus(receipt), count + gone
        if not count:
            raise NotFound(f"space {self.space!r} has no sessions from {source!r}")
        return replace(total, source=source)

    def everything(self) -> Receipt:
        """Sessions and facts first: what is made of them from then on is made of nothing."""
        total = Receipt(space=self.space, at=self.now)
        for store in self._stores()[::-1]:
            before = store.erasure.moment(self.space, self.now)  # some clocks are ahead of ours
            receipt, _ = self._sessions(store, SessionsMeant(), before, pages=False)
            facts = store.erasure.forget_facts(self.space, before, self.now)
            rest = store.erasure.forget_space(self.space, before, self.now)
            total = total.plus(receipt).plus(replace(rest, facts=facts))
        return total.leaving(self.pipeline.remove_files(self.space))

    def _stores(self) -> list[Store]:
        """Wherever something was said in this memory, its own store first."""
        kept = self.runtime.store
        return [kept, *(each for each in self.runtime.stores if each is not kept)]

    def _wherever(self, forgotten: Callable[[Store], Receipt | None], what: str) -> Receipt:
        for store in self._stores():
            receipt = forgotten(store)
            if receipt is None:
                continue
            if store is not self.runtime.store:  # what is told there never comes to the pages
                return receipt
            return receipt.leaving(self.pipeline.withdraw(self.space))
        raise NotFound(f"space {self.space!r} has no {what}")

    def _sessions(
        self, store: Store, meant: SessionsMeant, before: datetime, *, pages: bool = True
    ) -> tuple[Receipt, int]:
        """Forget sessions, and take what was filed from them off pages; how many there are.

        Also off pages that an attempt before this one did not come to.
        """
        total, count = Receipt(space=self.space, at=self.now), 0
        for page in self._pages(store, meant, before):
            # Also where none is left: an interrupted call may have left their files.
            left = [each.id for each in page if not each.is_forgotten]
            for session_id in left if pages else ():
                self.said.note_session(store, self.space, session_id, self.now)
            # Forgetting everything removes all pages too, those that people wrote included.
            all_pages = self.all_pages or not pages
            total = total.plus(
                store.erasure.forget_sessions(self.space, left, self.now, all_pages=all_pages)
            )
            if pages and store is self.runtime.store:
                self.pipeline.withdraw(self.space, publish=False)
            count += len(page)
            tell(f"{count:,} sessions forgotten", count)
        if count and pages and store is self.runtime.store:
            total = total.leaving(self.pipeline.withdraw(self.space))
        return total, count

    def _pages(
        self, store: Store, meant: SessionsMeant, before: datetime
    ) -> Iterable[list[ForgettableSession]]:
        after: ForgettableSession | None = None
        while page := store.erasure.forgettable(self.space, meant, before, after, SESSIONS_PAGE):
            yield page
            after = page[-1]


class _Said:
    """What is being forgotten, in words, until it has been looked for elsewhere. Kept nowhere."""

    def __init__(self) -> None:
        self._statements: dict[frozenset[str], tuple[str, ...]] = {}

    def note_session(self, store: Store, space: str, session_id: str, now: datetime) -> None:
        query = FactQuery(at=now, every=True, session_id=session_id)
        for fact in store.facts.list(space, query, FACTS_READ):
            if all(source.session_id == session_id for source in fact.sources):
                self.note(fact.content)
        self.note(
            *(each.content for each in store.records.after(space, session_id, 0, RECORDS_READ))
        )

    def note_record(self, store: Store, space: str, session_id: str, seq: int) -> None:
        found = store.records.after(space, session_id, seq - 1, 1)
        self.note(*(each.content for each in found if each.seq == seq))

    def note(self, *texts: str) -> None:
        """Remember what a text says, sentence by sentence, unless it is hardly anything."""
        for sentence in (each for text in texts for each in _passages(text)):
            sought = tuple(asked_stems(sentence[:STATEMENT_CHARS_MAX]))
            if len(sought) >= STEMS_MIN and len(self._statements) < STATEMENTS_MAX:
                self._statements.setdefault(frozenset(sought), sought)

    def still_said(
        self, store: Store, space: str, now: datetime, besides: Collection[str]
    ) -> tuple[str, ...]:
        """What has most of the words of something forgotten in one passage, by paths and ids."""
        kinds = Filters(kinds=frozenset(EntryKind) - {EntryKind.SUMMARY})
        found: dict[str, None] = {}
        said: dict[str, list[set[str]]] = {}  # by entry, the words of each passage
        for wanted, sought in self._statements.items():
            enough = SHARE_MIN * len(wanted)
            looked = store.search.candidates(space, Sought(stems=sought), kinds, now, _REACH)
            for entry in looked.entries:
                if entry.id in besides or entry.id in found:
                    continue
                if entry.id not in said:
                    said[entry.id] = [set(stems(each)) for each in _passages(entry.text)]
                if any(len(wanted & passage) >= enough for passage in said[entry.id]):
                    found[entry.id] = None
            if len(found) >= REMAINING_MAX:
                break
        return tuple(found)[:REMAINING_MAX]


def _passages(text: str) -> list[str]:
    return [each for each in _PASSAGE.split(text) if each.strip()]
