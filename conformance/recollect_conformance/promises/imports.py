"""Imports: what comes in from other programs' files comes in once, with the cursor behind it."""

from __future__ import annotations

from dataclasses import replace

from recollect.messages import Role
from recollect.types.imports import Adopted, Arrival, Cursor, digest
from recollect.types.records import KeyRef, NewRecord
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness, seqs

LOG = Cursor(source="logs", place="/logs/one.jsonl", offset=100, line=3, head="ab", head_bytes=9)


def _arrival(name: str) -> Arrival:
    return Arrival(digest(name), NewRecord(role=Role.USER, content=f"says {name}"))


def _adopt(store: Harness, ref: KeyRef, *names: str, cursor: Cursor = LOG) -> Adopted:
    arrivals = [_arrival(name) for name in names]
    return store.handle.imports.adopt(ref, arrivals, cursor, NEVER, store.now(), store.new_id)


def _known(store: Harness, *names: str, space: str = SPACE, source: str = "logs") -> list[str]:
    found = store.handle.imports.known(space, source, [digest(name) for name in names])
    return [name for name in names if digest(name) in found]


@case("N7", "a batch is appended in its order, and comes back as it is stored")
def an_adopted_batch_is_appended(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    adopted = _adopt(store, ref, "b", "c", "a")
    assert seqs(adopted.records) == [2, 3, 4]
    assert adopted.known == 0
    assert list(adopted.records) == store.everything(ref)[1:]
    assert store.words(ref, 3) == ["says b", "says c", "says a"]


@case("N7", "what came in before is not stored again, and the rest of the batch is")
def what_came_in_before_is_left_out(store: Harness) -> None:
    ref = store.key()
    _adopt(store, ref, "a", "b")
    adopted = _adopt(store, ref, "b", "c", "a")
    assert [record.content for record in adopted.records] == ["says c"]
    assert adopted.known == 2
    assert store.words(ref) == ["says a", "says b", "says c"]


@case("N7", "an item that stands twice in a batch is stored once")
def an_item_twice_in_a_batch_is_stored_once(store: Harness) -> None:
    ref = store.key()
    adopted = _adopt(store, ref, "a", "a", "b")
    assert store.words(ref) == ["says a", "says b"]
    assert adopted.known == 1


@case("N7", "a copy in another session, as a resumed one has it, is not stored again")
def a_copy_in_another_session_is_left_out(store: Harness) -> None:
    first, resumed = store.key("first"), store.key("resumed")
    _adopt(store, first, "a", "b")
    adopted = _adopt(store, resumed, "a", "b", "c", cursor=replace(LOG, place="/logs/two.jsonl"))
    assert adopted.known == 2
    assert store.words(resumed) == ["says c"]


@case("N7", "a batch of nothing new opens no session and marks nothing, and the cursor moves")
def a_batch_of_nothing_new_changes_the_cursor_alone(store: Harness) -> None:
    ref = store.key()
    _adopt(store, ref, "a")
    ended = store.end(ref)
    adopted = _adopt(store, ref, "a", cursor=replace(LOG, offset=200))
    assert adopted.records == []
    assert store.sessions.rotations(ref) == [ended]
    moved = store.handle.imports.cursor(SPACE, "logs", LOG.place)
    assert moved is not None
    assert moved.offset == 200


@case("N7", "what comes in after the end opens the next session")
def an_import_after_the_end_opens_a_session(store: Harness) -> None:
    ref = store.key()
    _adopt(store, ref, "a")
    store.end(ref)
    _adopt(store, ref, "b")
    assert len(store.sessions.rotations(ref)) == 2
    assert store.words(ref) == ["says b"]


@case("N7 T9", "what was forgotten does not come back with its log")
def what_was_forgotten_does_not_come_back(store: Harness) -> None:
    ref = store.key()
    _adopt(store, ref, "a", "b")
    store.handle.erasure.forget_session(SPACE, store.current(ref).id, store.now())
    adopted = _adopt(store, ref, "a", "b")
    assert adopted.known == 2
    assert store.everything(ref) == []


@case("N7", "sources are told apart: the same digest in two of them is two items")
def sources_are_told_apart(store: Harness) -> None:
    ref = store.key()
    _adopt(store, ref, "a")
    assert _adopt(store, ref, "a", cursor=replace(LOG, source="others")).known == 0
    assert _known(store, "a", "b", source="others") == ["a"]


@case("N7", "a cursor comes back as it was moved, by source and place")
def a_cursor_comes_back_as_it_was_moved(store: Harness) -> None:
    imports = store.handle.imports
    assert imports.cursor(SPACE, "logs", LOG.place) is None
    _adopt(store, store.key(), "a")
    assert imports.cursor(SPACE, "logs", LOG.place) == LOG
    assert imports.cursor(SPACE, "others", LOG.place) is None
    assert imports.cursor(SPACE, "logs", LOG.place.upper()) is None
    other = replace(LOG, offset=2**40, line=2**33, head="cd", head_bytes=0, memo='{"ü": [1]}')
    _adopt(store, store.key(), "b", cursor=other)
    assert imports.cursor(SPACE, "logs", LOG.place) == other


@case("N7", "items that became something else than records are noted with the cursor")
def noted_items_are_known(store: Harness) -> None:
    imports = store.handle.imports
    imports.note(SPACE, [digest("a"), digest("b")], LOG, store.now())
    imports.note(SPACE, [digest("a")], replace(LOG, offset=7), store.now())
    assert _known(store, "a", "b", "c") == ["a", "b"]
    assert imports.cursor(SPACE, "logs", LOG.place) == replace(LOG, offset=7)


@case("N7 P9", "another space takes in the same items, and sees nothing of the first")
def imports_of_another_space_are_its_own(store: Harness) -> None:
    ref, theirs = store.key(), store.key(space="other")
    _adopt(store, ref, "a")
    assert _known(store, "a", space="other") == []
    assert store.handle.imports.cursor("other", "logs", LOG.place) is None
    assert _adopt(store, theirs, "a").known == 0
    assert store.words(theirs) == ["says a"]


@case("N7 P3", "of several that take in the same items at once, each item is stored by one")
def of_several_imports_at_once_each_item_is_stored_once(store: Harness) -> None:
    names = [f"item {number}" for number in range(12)]
    refs = [store.key(f"copy {number}") for number in range(4)]
    handles = [store.handle if store.is_volatile else store.second_handle() for _ in refs]

    def taking(number: int) -> Adopted:
        # Each in another order: nobody may wait for somebody who waits for them.
        turned = names[number * 3 :] + names[: number * 3]
        arrivals = [_arrival(name) for name in turned]
        place = replace(LOG, place=f"/logs/{number}")
        return handles[number].imports.adopt(
            refs[number], arrivals, place, NEVER, store.now(), store.new_id
        )

    adopted = store.at_once(*(lambda number=number: taking(number) for number in range(4)))
    said = [record.content for each in adopted for record in each.records]
    assert sorted(said) == sorted(f"says {name}" for name in names)
    assert sum(each.known for each in adopted) == 3 * len(names)


@case("N7 M6", "what comes in counts towards the mark like everything that is said")
def what_comes_in_is_marked(store: Harness) -> None:
    ref = store.key()
    arrivals = [_arrival(f"item {number}") for number in range(6)]
    policy = replace(NEVER, threshold=5)
    store.handle.imports.adopt(ref, arrivals, LOG, policy, store.now(), store.new_id)
    assert store.current(ref).invalidated_at == 6
