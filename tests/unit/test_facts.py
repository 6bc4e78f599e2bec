"""T2, T3: facts as a caller holds them, checked and redacted before they are stored."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import aio, facts
from recollect.clock import ManualClock
from recollect.errors import InvalidValue, NotFound, TooLarge
from recollect.facts import QUOTE_CHARS_MAX, SOURCES_MAX, TAG_CHARS_MAX, TAGS_MAX
from recollect.session import LIST_MAX
from recollect.types.facts import Fact, FactEvent, Source, Trust
from recollect_conformance.scripted import ScriptedServer

# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6
TEA = "The user prefers tea"


@pytest.fixture
def mine(memory: recollect.Memory) -> recollect.Facts:
    return memory.space("alice").facts


def contents(found: list[Fact]) -> list[str]:
    return [each.content for each in found]


def source(**given: Any) -> Source:
    made: dict[str, Any] = {"session_id": "s1", "seq": 1, "seq_to": 1}
    return Source(**(made | given))


# redaction


EVERYWHERE: Mapping[str, Fact] = {
    "content": Fact(f"The key is {SECRET}"),
    "tags": Fact(TEA, tags=("detail", SECRET)),
    "metadata": Fact(TEA, metadata={"deep": [{"at": SECRET}]}),
    "a key of the metadata": Fact(TEA, metadata={SECRET: 1}),
    "a quote": Fact(TEA, sources=(source(quote=f"my key is {SECRET}"),)),
    "topic": Fact(TEA, topic=f"key:{SECRET}"),
}


@pytest.mark.parametrize("given_fact", EVERYWHERE.values(), ids=EVERYWHERE.keys())
def test_no_field_of_an_added_fact_stores_a_secret(mine: recollect.Facts, given_fact: Fact) -> None:
    stored = mine.add(given_fact)
    shown = repr((stored, mine.get(stored.id), mine.list(), mine.history(stored.id)))
    assert SECRET not in shown
    assert "[redacted:" in shown


@pytest.mark.parametrize(
    "changes",
    [
        {"content": f"The key is {SECRET}"},
        {"tags": [SECRET]},
        {"metadata": {"api_key": SECRET}},
    ],
    ids=["content", "tags", "metadata"],
)
def test_no_field_of_an_edited_fact_stores_a_secret(
    mine: recollect.Facts, changes: dict[str, Any]
) -> None:
    stored = mine.add(TEA)
    edited = mine.update(stored.id, **changes)
    shown = repr((edited, mine.get(stored.id), mine.history(stored.id)))
    assert SECRET not in shown
    assert "[redacted:" in shown


def test_the_same_secret_is_the_same_placeholder(mine: recollect.Facts) -> None:
    first, second = mine.add(f"first {SECRET}"), mine.add(f"second {SECRET}")
    assert first.content.removeprefix("first") == second.content.removeprefix("second")


# add


def test_a_statement_may_come_with_tags_and_metadata(mine: recollect.Facts) -> None:
    stored = mine.add(TEA, tags=["drink", "drink", "taste"], metadata={"n": [1, None, "x"]})
    assert (stored.tags, stored.metadata) == (("drink", "taste"), {"n": [1, None, "x"]})
    assert (stored.trust, stored.extractor, stored.space) == (Trust.USER, None, "alice")


def test_what_cannot_be_stored_in_a_text_is_replaced(mine: recollect.Facts) -> None:
    stored = mine.add("tea\x00time \ud800", tags=["a\x00b"])
    assert (stored.content, stored.tags) == ("tea\ufffdtime \ufffd", ("a\ufffdb",))
    assert mine.get(stored.id) == stored


@given(st.text())
def test_any_text_that_is_not_blank_is_a_fact(text: str) -> None:
    with recollect.open(":memory:", settings={"redaction_allow": ""}) as memory:
        space = memory.space()
        if not text.strip():
            with pytest.raises(InvalidValue):
                space.facts.add(text)
            return
        stored = space.facts.add(text)
        assert space.facts.list() == [stored]


BAD: Mapping[str, tuple[object, type[Exception]]] = {
    "nothing": (None, InvalidValue),
    "bytes": (b"tea", InvalidValue),
    "blanks": (" \n\t", InvalidValue),
    "content of another type": (Fact(7), InvalidValue),  # type: ignore[arg-type]
    "too long": ("x" * 2001, TooLarge),
    "too many tags": (Fact(TEA, tags=tuple(map(str, range(TAGS_MAX + 1)))), InvalidValue),
    "a tag that is too long": (Fact(TEA, tags=("x" * (TAG_CHARS_MAX + 1),)), TooLarge),
    "a tag that is a number": (Fact(TEA, tags=(7,)), InvalidValue),  # type: ignore[arg-type]
    "tags that are none": (Fact(TEA, tags=None), InvalidValue),  # type: ignore[arg-type]
    "metadata that is a list": (Fact(TEA, metadata=["x"]), InvalidValue),  # type: ignore[arg-type]
    "metadata that is too large": (Fact(TEA, metadata={"x": "x" * 65_536}), TooLarge),
    "an id with a line break": (Fact(TEA, id="a\nb"), InvalidValue),
    "an id that is too long": (Fact(TEA, id="x" * 2000), TooLarge),
    "a topic with a control character": (Fact(TEA, topic="a\x1bb"), InvalidValue),
    "an empty topic": (Fact(TEA, topic=""), InvalidValue),
    "a source that is a dict": (
        Fact(TEA, sources=({"session_id": "s"},)),  # type: ignore[arg-type]
        InvalidValue,
    ),
    "a source's session with a NUL": (Fact(TEA, source="a\x00b"), InvalidValue),
    "a source that ends before it begins": (
        Fact(TEA, sources=(source(seq=2, seq_to=1),)),
        InvalidValue,
    ),
    "a negative record": (Fact(TEA, sources=(source(seq=-1),)), InvalidValue),
    "a record beyond all numbers": (Fact(TEA, sources=(source(seq_to=2**62),)), InvalidValue),
    "a quote that is none": (Fact(TEA, sources=(source(quote=None),)), InvalidValue),
    "sources that are none": (Fact(TEA, sources=None), InvalidValue),  # type: ignore[arg-type]
    "too many sources": (
        Fact(TEA, sources=tuple(source(seq=n, seq_to=n) for n in range(SOURCES_MAX + 1))),
        TooLarge,
    ),
    "a time without a zone": (
        Fact(TEA, valid_to=datetime(2026, 1, 1)),  # noqa: DTZ001
        InvalidValue,
    ),
    "a time that is a date": (Fact(TEA, valid_from="2026-01-01"), InvalidValue),  # type: ignore[arg-type]
    "a trust of its own": (Fact(TEA, trust="root"), InvalidValue),  # type: ignore[arg-type]
    "a trust that is a list": (Fact(TEA, trust=[]), InvalidValue),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("bad", "error"), BAD.values(), ids=BAD.keys())
def test_a_bad_fact_is_a_typed_error_and_stores_nothing(
    mine: recollect.Facts, bad: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        mine.add(bad)
    assert type(raised.value) is error
    assert mine.list(every=True) == []


@pytest.mark.parametrize("tags", ["home", b"home", 7, {"home": 1}])
def test_tags_are_a_list_wherever_they_are_given(mine: recollect.Facts, tags: Any) -> None:
    with pytest.raises(InvalidValue):
        mine.add(TEA, tags=tags)
    stored = mine.add(TEA, tags=["home"])
    with pytest.raises(InvalidValue):
        mine.update(stored.id, tags=tags)
    assert mine.list() == [stored]


def test_a_fact_brings_its_own_tags_and_metadata(mine: recollect.Facts) -> None:
    beside: dict[str, Any]
    for beside in ({"tags": ["home"]}, {"metadata": {"n": 1}}):
        with pytest.raises(InvalidValue, match="its own"):
            mine.add(Fact(TEA), **beside)
    assert len(mine) == 0


def test_the_limits_themselves_are_within_them(mine: recollect.Facts) -> None:
    sources = tuple(source(seq=n, seq_to=n, quote="q" * 3000) for n in range(3))
    tags = tuple(f"{n:0{TAG_CHARS_MAX}}" for n in range(TAGS_MAX))
    stored = mine.add(Fact("x" * 2000, tags=tags, sources=sources))
    assert (len(stored.content), stored.tags) == (2000, tags)
    assert {len(each.quote) for each in stored.sources} == {QUOTE_CHARS_MAX}


# update


def test_an_update_changes_what_it_names_and_leaves_the_rest(
    mine: recollect.Facts, clock: ManualClock
) -> None:
    stored = mine.add(
        Fact(TEA, tags=("drink",), metadata={"n": 1}, topic="user:drink", sources=(source(),))
    )
    clock.advance(60)
    until = clock.now() + timedelta(days=1)
    assert mine.update(stored.id, tags=[]).tags == ()
    assert mine.update(stored.id, metadata={}).metadata == {}
    assert mine.update(stored.id, valid_to=until.isoformat()).valid_to == until
    assert mine.update(stored.id, valid_to=None).valid_to is None
    edited = mine.update(stored.id, "The user prefers cocoa")
    assert (edited.content, edited.id, edited.topic) == (
        "The user prefers cocoa",
        stored.id,
        "user:drink",
    )
    assert (edited.sources, edited.created_at) == (stored.sources, stored.created_at)


def test_an_update_that_names_nothing_changes_nothing_that_is_said(mine: recollect.Facts) -> None:
    stored = mine.add(TEA, tags=["drink"])
    edited = mine.update(stored.id)
    assert (edited.content, edited.tags, edited.valid_to) == (TEA, ("drink",), None)


@pytest.mark.parametrize(
    "changes",
    [
        {"content": ""},
        {"content": None},
        {"content": "x" * 2001},
        {"tags": ["x"] * (TAGS_MAX + 1)},
        {"tags": None},
        {"metadata": {"x": float("inf")}},
        {"metadata": "x"},
        {"valid_to": "soon"},
        {"valid_to": 7},
    ],
)
def test_a_bad_update_is_a_typed_error_and_changes_nothing(
    mine: recollect.Facts, changes: dict[str, Any]
) -> None:
    stored = mine.add(TEA, tags=["drink"], metadata={"n": 1})
    with pytest.raises(InvalidValue):
        mine.update(stored.id, **changes)
    assert mine.list(every=True) == [stored]
    assert [change.event for change in mine.history(stored.id)] == [FactEvent.ADDED]


def test_what_is_not_there_cannot_be_changed_or_deleted(mine: recollect.Facts) -> None:
    stored = mine.add(TEA)
    mine.delete(stored.id)
    for missing in (stored.id, "nobody", ""):
        with pytest.raises(NotFound, match="no fact"):
            mine.update(missing, TEA)
        with pytest.raises(NotFound, match="no fact"):
            mine.delete(missing)
        assert mine.get(missing) is None


def test_a_deleted_fact_keeps_its_history(mine: recollect.Facts) -> None:
    stored = mine.add(TEA)
    mine.delete(stored.id)
    assert [change.event for change in mine.history(stored.id)] == [
        FactEvent.ADDED,
        FactEvent.DELETED,
    ]
    assert (mine.list(every=True), len(mine)) == ([], 0)


@pytest.mark.parametrize("fact_id", [None, 7, "a\x00b", "\ud800", ["x"]])
def test_an_id_that_no_store_could_be_asked_for_is_a_typed_error(
    mine: recollect.Facts, fact_id: Any
) -> None:
    methods: list[Callable[[Any], object]] = [mine.get, mine.delete, mine.update, mine.history]
    for method in methods:
        with pytest.raises(InvalidValue):
            method(fact_id)


# reading


def test_pages_follow_each_other_without_a_gap(mine: recollect.Facts, clock: ManualClock) -> None:
    for number in range(7):
        mine.add(f"fact number {number}")
        clock.advance(number % 2)  # some share their moment
    pages: list[list[Fact]] = []
    while page := mine.list(limit=3, before=pages[-1][-1] if pages else None):
        pages.append(page)
    assert [len(page) for page in pages] == [3, 3, 1]
    found = [each.id for page in pages for each in page]
    assert found == [each.id for each in mine.list()]
    assert len(set(found)) == 7


@pytest.mark.parametrize("limit", [-1, LIST_MAX + 1, 1.5, None, True, "3"])
def test_a_limit_that_is_none_is_a_typed_error(mine: recollect.Facts, limit: Any) -> None:
    reads: list[Callable[[], object]] = [
        lambda: mine.list(limit),
        lambda: mine.search("tea", limit),
    ]
    if limit is not None:  # all of them
        reads.append(lambda: mine.search_metadata("k", "v", limit))
    for read in reads:
        with pytest.raises(InvalidValue, match="limit"):
            read()


def test_a_search_by_metadata_finds_all_or_a_page(memory: recollect.Memory) -> None:
    facts = memory.space("many").facts
    for number in range(60):
        facts.add(f"fact number {number}", metadata={"k": "v"})
    found = facts.search_metadata("k", "v")
    assert found == facts.list(100)
    page = facts.search_metadata("k", "v", 40)
    assert [*page, *facts.search_metadata("k", "v", 40, page[-1])] == found


def test_facts_are_listed_by_tag_and_by_session(mine: recollect.Facts) -> None:
    mine.add(Fact("a", id="a", tags=("x", "y"), sources=(source(session_id="s1"),)))
    mine.add(Fact("b", id="b", tags=("x",), source="s2"))
    assert contents(mine.list(tag="y")) == ["a"]
    assert contents(mine.list(session="s2")) == ["b"]
    assert contents(mine.list(tag="x", session="s1")) == ["a"]
    assert mine.list(tag="z") == mine.list(session="s3") == []
    with pytest.raises(InvalidValue):
        mine.list(tag=7)  # type: ignore[arg-type]


AS_OF: Mapping[str, Callable[[datetime], Any]] = {
    "an aware time": lambda at: at,
    "another zone": lambda at: at.astimezone(timezone(timedelta(hours=5, minutes=30))),
    "ISO text": lambda at: at.isoformat(),
    "ISO text with Z": lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ"),
}


@pytest.mark.parametrize("form", AS_OF.values(), ids=AS_OF.keys())
def test_the_past_can_be_asked_for_in_any_form_of_a_time(
    mine: recollect.Facts, clock: ManualClock, form: Callable[[datetime], Any]
) -> None:
    over = clock.now() + timedelta(hours=1)
    mine.add(Fact("The user is in Faro", metadata={"city": "Faro"}, valid_to=over))
    then = form(clock.now())
    clock.advance(7200)
    assert (len(mine), mine.list(), mine.search("Faro")) == (0, [], [])
    assert mine.search_metadata("city", "Faro") == []
    assert mine.count(as_of=then) == 1
    assert len(mine.list(as_of=then)) == len(mine.search("Faro", as_of=then)) == 1
    assert len(mine.search_metadata("city", "Faro", as_of=then)) == 1
    assert mine.count(as_of=form(over)) == 0, "it ends at that very moment"


@pytest.mark.parametrize("as_of", ["yesterday", "2026-01-01", 7, datetime(2026, 1, 1)])  # noqa: DTZ001
def test_a_moment_that_could_mean_anything_is_a_typed_error(
    mine: recollect.Facts, as_of: Any
) -> None:
    for read in (
        lambda: mine.list(as_of=as_of),
        lambda: mine.count(as_of),
        lambda: mine.search("tea", as_of=as_of),
        lambda: mine.search_metadata("k", "v", as_of=as_of),
    ):
        with pytest.raises(InvalidValue):
            read()


@pytest.mark.parametrize("query", [None, 7, b"tea", ["tea"]])
def test_a_query_is_text(mine: recollect.Facts, query: Any) -> None:
    with pytest.raises(InvalidValue):
        mine.search(query)


@pytest.mark.parametrize("value", ["1", 1, 1.5, True, False, None, "", "ü"])
def test_metadata_is_found_by_its_very_value(mine: recollect.Facts, value: Any) -> None:
    for number, each in enumerate(["1", 1, 1.5, True, False, None, "", "ü"]):
        mine.add(Fact(repr(each), id=str(number), metadata={"a.b": each}))
    assert contents(mine.search_metadata("a.b", value)) == [repr(value)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((7, "x"), ("k", ["x"]), ("k", {}), ("k", "\x00")),
        *(("k", number) for number in (math.nan, math.inf, -math.inf)),
    ],
)
def test_metadata_that_no_fact_can_have_is_a_typed_error(
    mine: recollect.Facts, key: Any, value: Any
) -> None:
    with pytest.raises(InvalidValue):
        mine.search_metadata(key, value)


def test_a_space_without_facts_still_has_its_facts(mine: recollect.Facts) -> None:
    assert (bool(mine), len(mine)) == (True, 0)


def test_a_space_that_holds_no_more_than_a_fact_is_a_space(memory: recollect.Memory) -> None:
    memory.space("bob").facts.add(TEA)
    assert memory.spaces() == ["bob"]


# for asyncio


def run(scenario: Callable[[aio.Memory], Awaitable[None]], **settings: Any) -> None:
    async def inside() -> None:
        async with await aio.open(":memory:", settings=settings, clock=ManualClock()) as opened:
            await scenario(opened)

    asyncio.run(inside())


def test_every_method_has_a_twin_that_can_be_awaited() -> None:
    def public(cls: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if name[0] != "_"}

    assert public(aio.Facts) == public(facts.Facts)
    for name in public(aio.Facts):
        assert inspect.iscoroutinefunction(getattr(aio.Facts, name)), name
        assert getattr(aio.Facts, name).__doc__ == getattr(facts.Facts, name).__doc__


def test_facts_can_be_awaited() -> None:
    async def scenario(opened: aio.Memory) -> None:
        mine = opened.space("alice").facts
        stored = await mine.add(TEA, tags=["drink"], metadata={"n": 1})
        assert await mine.get(stored.id) == stored
        assert await mine.list(tag="drink") == await mine.search("tea") == [stored]
        assert await mine.search_metadata("n", 1) == [stored]
        edited = await mine.update(stored.id, "The user prefers cocoa")
        assert (edited.content, await mine.count()) == ("The user prefers cocoa", 1)
        await mine.delete(stored.id)
        assert len(await mine.history(stored.id)) == 3
        with pytest.raises(NotFound):
            await mine.delete(stored.id)

    run(scenario)


def test_forgetting_can_be_awaited_by_session_or_by_id() -> None:
    async def scenario(opened: aio.Memory) -> None:
        space = opened.space("alice")
        ids = []
        for key in ("one", "two"):
            session = await space.session(key, agent="assistant")
            await session.append("user", "I live in Lisbon.")
            await session.sleep()
            ids.append(await session.id)
        await opened.work()
        assert await space.facts.count() > 0
        receipt = await space.forget(session=await space.session("one", agent="assistant"))
        assert (receipt.session_id, receipt.records) == (ids[0], 1)
        assert (await space.forget(session=ids[1])).session_id == ids[1]
        assert await space.facts.count() == 0
        with pytest.raises(NotFound):
            await space.forget(session="nobody's")

    run(scenario)


def test_a_plan_and_another_pass_can_be_awaited() -> None:
    async def scenario(opened: aio.Memory) -> None:
        session = await opened.space("alice").session("k", agent="assistant")
        await session.append("user", "I live in Lisbon.")
        await session.sleep()
        assert (await opened.plan("alice")).records == 1
        await opened.work()
        assert await opened.request_again(session=await session.id) == 1
        assert (await opened.plan()).records == 1
        assert (await opened.work()).processed == 1
        extraction = await opened.space("alice").sessions.extraction(await session.id)
        assert extraction is not None
        assert extraction.pass_number == 2

    run(scenario)


def test_a_model_can_be_named_when_a_memory_is_opened_by_a_coroutine() -> None:
    async def inside(url: str) -> None:
        settings = {"model_base_url": url}
        opened = await aio.open(":memory:", settings=settings, model="openai:scripted")
        async with opened:
            assert (await opened.plan()).extractor == "openai:scripted/prompt-3"

    with ScriptedServer() as server:
        asyncio.run(inside(server.url))


def test_times_are_kept_in_utc(mine: recollect.Facts) -> None:
    zone = timezone(timedelta(hours=-8))
    stored = mine.add(Fact(TEA, valid_from=datetime(2025, 12, 31, 16, tzinfo=zone)))
    assert stored.valid_from == datetime(2026, 1, 1, tzinfo=UTC)
