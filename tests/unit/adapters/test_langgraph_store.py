"""N8: our LangGraph store beside LangGraph's own, which is the model: what one says, both say.

Order is the one thing they may differ in, where the interface promises none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore, _compare_values

import recollect
from recollect import aio
from recollect.adapters.langgraph_store import RecollectStore, fits
from recollect.clock import ManualClock
from recollect.errors import InvalidValue, TooLarge
from tests.unit.strategies import any_text, json_values

# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6

few_labels = st.sampled_from(("users", "Users", "a.b", "a/b", "", "*", "..", "ß" * 200)) | any_text
namespaces = st.lists(few_labels, max_size=3).map(tuple)
few_keys = st.sampled_from(("k", "K", "", "~/x", "con", "é", "e\u0301", "y" * 5000)) | any_text
values = st.dictionaries(any_text, json_values, max_size=3) | st.fixed_dictionaries(
    {"n": st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(("1", "x")), "t": json_values}
)
filters = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-3, 3)
        | st.dictionaries(st.sampled_from(("$eq", "$ne")), st.integers(-3, 3), min_size=1),
        "t": json_values.filter(lambda value: "$" not in repr(value)),
    },
)
paths = st.lists(few_labels, max_size=2).map(tuple)
conditions = paths.map(lambda path: MatchCondition("prefix", path)) | paths.map(
    lambda path: MatchCondition("suffix", path)
)
ops: st.SearchStrategy[Op] = (
    st.tuples(namespaces, few_keys, values | st.none()).map(lambda given: PutOp(*given))
    | st.tuples(namespaces, few_keys).map(lambda given: GetOp(*given))
    | st.tuples(namespaces, filters, st.just(1000)).map(lambda given: SearchOp(*given))
    | st.tuples(
        st.lists(conditions, max_size=2).map(tuple), st.none() | st.integers(0, 3), st.just(1000)
    ).map(lambda given: ListNamespacesOp(*given))
)


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


@pytest.fixture
def store(space: recollect.Space) -> RecollectStore:
    return RecollectStore(space)


@pytest.fixture(scope="module")
def many() -> Iterator[recollect.Memory]:
    """One memory for all examples; each begins with nothing in it."""
    with recollect.open(":memory:") as memory:
        yield memory


def plain(result: Any) -> Any:
    """A result without times, and without an order that nobody promises."""
    match result:
        case Item():
            return (result.namespace, result.key, result.value)
        case list() if result and isinstance(result[0], Item):
            return sorted((plain(item) for item in result), key=repr)
        case _:
            return result


class Model(InMemoryStore):
    """Theirs, which lists a namespace that holds nothing as well; their databases do not."""

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        for empty in [namespace for namespace, items in self._data.items() if not items]:
            del self._data[empty]
        return super()._handle_list_namespaces(op)


@given(batches=st.lists(st.lists(ops, max_size=6), min_size=1, max_size=5))
@settings(max_examples=60)
def test_batches_do_what_they_do_in_langgraphs_own_store(
    many: recollect.Memory, batches: list[list[Op]]
) -> None:
    space = many.space("examples")
    space.documents.purge("~/langgraph")
    ours, theirs = RecollectStore(space), Model()
    for batch in batches:
        expected = [plain(result) for result in theirs.batch(batch)]
        assert [plain(result) for result in ours.batch(batch)] == expected


@given(wanted=json_values, value=json_values)
@settings(max_examples=200)
def test_values_are_compared_as_in_langgraphs_own_store(wanted: Any, value: Any) -> None:
    try:
        expected = _compare_values(value, wanted)
    except (TypeError, ValueError):
        return
    assert fits({"field": value}, {"field": wanted}) == expected


@pytest.mark.parametrize("how", ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
def test_every_operator_compares_numbers_as_langgraphs_own_store_does(
    store: RecollectStore, how: str
) -> None:
    theirs = InMemoryStore()
    for each in (store, theirs):
        for key, number in {"a": 1, "b": 2.5, "c": "2.5", "d": -7, "e": True}.items():
            each.put(("n",), key, {"number": number})
    for wanted in (2.5, 1, "1", -7.0):
        asked = {"number": {how: wanted}}
        ours, expected = (plain(each.search(("n",), filter=asked)) for each in (store, theirs))
        assert ours == expected


def test_what_cannot_be_compared_does_not_fit_and_what_nobody_knows_is_refused(
    store: RecollectStore,
) -> None:
    store.put(("n",), "a", {"number": None, "day": "2026-05-01"})
    assert store.search(("n",), filter={"number": {"$gt": 1}}) == []
    assert len(store.search(("n",), filter={"day": {"$lt": "2026-06-01"}})) == 1
    with pytest.raises(InvalidValue, match="unknown operator"):
        store.search(("n",), filter={"number": {"$near": 1}})


def test_reads_of_a_batch_see_what_was_there_before_and_the_last_put_wins(
    store: RecollectStore,
) -> None:
    results = store.batch(
        [
            PutOp(("n",), "k", {"v": 1}),
            GetOp(("n",), "k"),
            PutOp(("n",), "k", None),
            PutOp(("n",), "k", {"v": 3}),
        ]
    )
    assert results == [None, None, None, None]
    item = store.get(("n",), "k")
    assert item is not None
    assert item.value == {"v": 3}


def test_an_item_keeps_when_it_was_made_and_says_when_it_was_changed(
    store: RecollectStore, clock: ManualClock
) -> None:
    store.put(("n",), "k", {"v": 1})
    made = clock.now()
    clock.advance(60)
    store.put(("n",), "k", {"v": 2})
    item = store.get(("n",), "k")
    assert item is not None
    assert (item.created_at, item.updated_at) == (made, clock.now())


def test_search_is_newest_first_and_pages_through_everything_once(
    store: RecollectStore, clock: ManualClock
) -> None:
    for number in range(7):
        clock.advance(1)
        store.put(("n", str(number % 2)), f"k{number}", {"number": number})
    pages = [store.search(("n",), limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [[item.value["number"] for item in page] for page in pages] == [
        [6, 5, 4],
        [3, 2, 1],
        [0],
        [],
    ]


def test_a_question_ranks_what_fits_and_the_rest_follows_without_a_score(
    store: RecollectStore,
) -> None:
    store.put(("users", "will"), "food", {"memory": "Will likes ramen and dislikes olives"})
    store.put(("users", "will"), "work", {"memory": "Will is a carpenter", "kind": "work"})
    store.put(("users", "ana"), "food", {"memory": "Ana likes ramen as well"})
    found = store.search(("users", "will"), query="who eats ramen?")
    assert [(item.key, item.score is not None) for item in found] == [
        ("food", True),
        ("work", False),
    ]
    assert [item.key for item in store.search(("users", "will"), query="ramen", limit=1)] == [
        "food"
    ]
    assert [item.key for item in store.search(("users",), query="ramen", offset=2)] == ["work"]
    filtered = store.search(("users",), query="ramen", filter={"kind": "work"})
    assert [(item.key, item.score) for item in filtered] == [("work", None)]


def test_an_item_is_ranked_by_the_fields_that_it_names_or_not_at_all(store: RecollectStore) -> None:
    value = {"memory": "likes ramen", "notes": [{"text": "plays chess"}]}
    store.put(("n",), "whole", value)
    store.put(("n",), "part", value, index=["notes[*].text"])
    store.put(("n",), "none", value, index=False)

    def ranked(query: str) -> set[str]:
        return {item.key for item in store.search(("n",), query=query) if item.score is not None}

    assert ranked("chess") == {"whole", "part"}
    assert ranked("ramen") == {"whole"}
    assert {item.key for item in store.search(("n",), query="ramen")} == {"whole", "part", "none"}


@pytest.mark.parametrize(
    ("op", "complaint"),
    [
        (PutOp(("n",), "k", {"v": {1, 2}}), "not JSON"),
        (PutOp(("n",), "k", {"v": float("nan")}), "not JSON"),
        (PutOp(("n",), "k", {"v": 1}, ttl=5.0), "do not expire"),
        (PutOp(("n",), "k", {"v": 1}, index="text"), "index is"),  # type: ignore[arg-type]
        (PutOp(("n",), "k", ["v"]), "a mapping"),  # type: ignore[arg-type]
        (PutOp(("n",), 7, {"v": 1}), "a key is text"),  # type: ignore[arg-type]
        (PutOp("names", "k", {"v": 1}), "a tuple of texts"),  # type: ignore[arg-type]
        (PutOp((1,), "k", {"v": 1}), "a tuple of texts"),  # type: ignore[arg-type]
        (PutOp(("n",) * 61, "k", {"v": 1}), "at most 60 labels"),
        (PutOp(("n",), SECRET, {"v": 1}), "secret"),
        (PutOp(("n", f"{'no ' * 60} {SECRET}"), "k", {"v": 1}), "only be part of a value"),
        (SearchOp(("n",), None, -1), "whole numbers"),
        (ListNamespacesOp(offset=-1), "whole numbers"),
        (object(), "unsupported operation"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_of_its_batch_is(
    store: RecollectStore, op: Any, complaint: str
) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        store.batch([PutOp(("fine",), "k", {"v": 1}), op])
    assert store.search(()) == []


def test_a_value_that_is_too_large_is_refused_and_what_was_there_stays(
    store: RecollectStore,
) -> None:
    store.put(("n",), "k", {"v": 1})
    with pytest.raises(TooLarge, match="at most"):
        store.put(("n",), "k", {"v": "x" * 300_000})
    item = store.get(("n",), "k")
    assert item is not None
    assert item.value == {"v": 1}


def test_the_checks_of_the_interface_hold(store: RecollectStore) -> None:
    for namespace in ((), ("a.b",), ("",), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"v": 1})
    with pytest.raises(NotImplementedError, match="TTL"):
        store.put(("n",), "k", {"v": 1}, ttl=1)


def test_a_secret_in_a_value_is_redacted_like_everything_that_is_kept(
    store: RecollectStore,
) -> None:
    store.put(("n",), "k", {"login": {"password": SECRET, "user": "will"}})
    item = store.get(("n",), "k")
    assert item is not None
    assert item.value["login"]["user"] == "will"
    assert SECRET not in str(item.value)


def test_a_page_that_somebody_wrote_between_the_items_is_no_item(
    store: RecollectStore, space: recollect.Space
) -> None:
    store.put(("n",), "k", {"v": 1})
    [page] = [node.path for node in space.documents.tree("~/langgraph") if node.depth == 3]
    folder = page.rpartition("/")[0]
    space.documents.write(f"{folder}/notes", "These are the memories of a graph.")
    copied = space.documents.read(page).body
    space.documents.write(f"{folder}/copy", copied)
    assert [item.key for item in store.search(())] == ["k"]
    assert store.list_namespaces() == [("n",)]


def test_the_asynchronous_methods_do_the_same(memory: recollect.Memory) -> None:
    async def play() -> None:
        store = RecollectStore(aio.Memory(memory).space("alice"))
        puts = (store.aput(("n", str(n % 3)), f"k{n}", {"number": n}) for n in range(12))
        await asyncio.gather(*puts)
        item = await store.aget(("n", "1"), "k4")
        assert item is not None
        assert item.value == {"number": 4}
        await store.adelete(("n", "1"), "k4")
        assert await store.aget(("n", "1"), "k4") is None
        assert len(await store.asearch(("n",), limit=100)) == 11
        assert await store.alist_namespaces(suffix=("*",), max_depth=1) == [("n",)]

    asyncio.run(play())
