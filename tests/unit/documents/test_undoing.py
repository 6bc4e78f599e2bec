"""Collections that can be put back: whatever is done to them, undone they are as before."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from recollect.documents.overlay import Journal, UndoDict, UndoList, UndoSet, undo

KEYS = st.integers(0, 5)
Changes = list[tuple[str, int, int]]


def changes(*names: str) -> st.SearchStrategy[Changes]:
    return st.lists(st.tuples(st.sampled_from(names), KEYS, KEYS), max_size=12)


def assert_undone(made: Callable[[], object], change: Callable[[], None], journal: Journal) -> None:
    before = made()
    journal.clear()
    change()
    undo(journal)
    assert made() == before
    assert journal == []


@given(first=changes("set"), then=changes("set", "del", "pop", "update"))
def test_a_mapping_is_as_before(first: Changes, then: Changes) -> None:
    journal: Journal = []
    mapping: UndoDict[int, int] = UndoDict(journal)
    mapping.update({key: value for _, key, value in first})

    def change() -> None:
        for name, key, value in then:
            if name == "set":
                mapping[key] = value
            elif name == "pop":
                mapping.pop(key, None)
            elif name == "update":
                mapping.update({key: value, value: key})
            elif key in mapping:
                del mapping[key]

    assert_undone(lambda: dict(mapping), change, journal)


@given(first=changes("add"), then=changes("add", "discard"))
def test_a_set_is_as_before(first: Changes, then: Changes) -> None:
    journal: Journal = []
    values: UndoSet[int] = UndoSet(journal)
    for _, key, _ in first:
        values.add(key)

    def change() -> None:
        for name, key, _ in then:
            (values.add if name == "add" else values.discard)(key)

    assert_undone(lambda: set(values), change, journal)


@given(first=changes("append"), then=changes("append", "insert", "set", "del"))
def test_a_list_is_as_before(first: Changes, then: Changes) -> None:
    journal: Journal = []
    values: UndoList[int] = UndoList(journal, [value for _, _, value in first])

    def change() -> None:
        for name, at, value in then:
            if name == "append":
                values.append(value)
            elif name == "insert":
                values.insert(min(at, len(values)), value)
            elif name == "set" and at < len(values):
                values[at] = value
            elif at < len(values):
                del values[at]

    assert_undone(lambda: list(values), change, journal)
