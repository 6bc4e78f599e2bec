"""Who did what: written before it is done, ended afterwards, read by page, gone with its space."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from recollect.types.access import DONE, SPACE_FORGOTTEN, AuditEntry, AuditQuery
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness

HOUR = timedelta(hours=1)
EVERYTHING = AuditQuery()


def _begun(
    store: Harness,
    number: int = 1,
    *,
    space: str | None = SPACE,
    actor: str = "library",
    verb: str = "facts.add",
) -> AuditEntry:
    entry = AuditEntry(
        id=f"entry-{number:03}",
        space=space,
        at=store.now(),
        actor=actor,
        verb=verb,
        targets=(f"fact-{number}", "key:7"),
    )
    store.handle.audit.begin(entry)
    return entry


def _listed(store: Harness, query: AuditQuery = EVERYTHING) -> list[AuditEntry]:
    return store.handle.audit.list(query, 100, None)


@case("N9", "what is about to be done is written down, and its outcome once it is done")
def an_entry_is_begun_and_ended(store: Harness) -> None:
    first, second = _begun(store, 1), _begun(store, 2)
    assert _listed(store) == [second, first]
    ended = replace(first, outcome=DONE, targets=(*first.targets, "fact-9"))
    store.handle.audit.end(ended)
    failed = replace(second, outcome="StoreBusy")
    store.handle.audit.end(failed)
    assert _listed(store) == [failed, ended]


@case("N9", "entries are listed a page at a time, the newest first, also those of one moment")
def entries_are_listed_by_page(store: Harness) -> None:
    for number in (2, 1, 3):
        _begun(store, number)
    store.clock.advance(-1)
    _begun(store, 4)
    store.clock.advance(2)
    _begun(store, 0)
    page = store.handle.audit.list(EVERYTHING, 2, None)
    rest = store.handle.audit.list(EVERYTHING, 9, page[-1])
    assert [each.id[-1] for each in page + rest] == ["0", "3", "2", "1", "4"]
    assert store.handle.audit.list(EVERYTHING, 9, rest[-1]) == []


@case("N9 P9", "entries are told by space, by who, by what and by when; the store's are no space's")
def entries_are_told_apart(store: Harness) -> None:
    mine = _begun(store, 1, actor="key:1")
    theirs = _begun(store, 2, space="other", verb="erasure.forget_fact")
    store.clock.advance(HOUR.total_seconds())
    of_the_store = _begun(store, 3, space=None, verb="api_keys.add")
    assert _listed(store, AuditQuery(space=SPACE)) == [mine]
    assert _listed(store, AuditQuery(space="other")) == [theirs]
    assert _listed(store, AuditQuery(space="third")) == []
    assert _listed(store, AuditQuery(actor="key:1")) == [mine]
    assert _listed(store, AuditQuery(verb="erasure.forget_fact")) == [theirs]
    assert _listed(store, AuditQuery(space=SPACE, verb="erasure.forget_fact")) == []
    assert _listed(store, AuditQuery(since=store.now())) == [of_the_store]
    assert _listed(store) == [of_the_store, theirs, mine]


@case("N9", "old entries are dropped, the oldest first and so many at a time")
def old_entries_are_dropped(store: Harness) -> None:
    for number in (1, 2, 3):
        _begun(store, number, space=None if number == 2 else f"space {number}")
        store.clock.advance(60)
    cutoff = store.now()
    kept = _begun(store, 4)
    assert store.handle.audit.prune(cutoff, 2) == 2
    assert [each.id for each in _listed(store)] == [kept.id, "entry-003"]
    assert store.handle.audit.prune(cutoff, 2) == 1
    assert store.handle.audit.prune(cutoff, 2) == 0
    assert _listed(store) == [kept]


@case("N9 P11", "of a forgotten space only that it was forgotten stays written down")
def entries_go_with_their_space(store: Harness) -> None:
    store.append(store.key())
    entry, other, of_the_store = (
        _begun(store, number, space=space)
        for number, space in ((1, SPACE), (2, "other"), (3, None))
    )
    forgotten = replace(_begun(store, 4, verb=SPACE_FORGOTTEN), targets=())
    store.handle.erasure.forget_space(SPACE, store.now(), store.now())
    store.handle.audit.end(replace(forgotten, outcome=DONE))
    store.handle.audit.end(replace(entry, outcome=DONE))
    assert _listed(store) == [replace(forgotten, outcome=DONE), of_the_store, other]


@case("N9 P1", "entries outlive the store that was closed")
def entries_are_there_after_reopening(store: Harness) -> None:
    entry = _begun(store)
    if not store.is_volatile:
        store.reopen()
    assert _listed(store) == [entry]
