"""The same memory for asyncio: the same names, the same signatures, the same errors."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import aio, memory, session, space
from recollect.clock import ManualClock
from recollect.consolidation import generations
from recollect.errors import (
    AnswerPending,
    InvalidMessage,
    InvalidValue,
    StoreClosed,
    TurnFailed,
    UsageError,
)
from recollect.types.records import Mode

TWINS = [
    (memory.Memory, aio.Memory),
    (space.Space, aio.Space),
    (session.Sessions, aio.Sessions),
    (session.Session, aio.Session),
    (generations.Generations, aio.Generations),
]
# Not for callers who await: they have the synchronous twin as `.sync`.
SYNC_ONLY = {"settings", "clock", "adopt", "store", "runtime", "pipeline", "ref"}
SYNC_ONLY |= {"admitted", "admitted_text"}
# What needs no store, and is therefore not awaited.
PURE = {("Memory", "space"), ("Memory", "worker"), ("Worker", "wake"), ("Space", "memory_tool")}
PURE |= {("Memory", "agents")}


def public(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in inspect.getmembers_static(cls)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }


def attributes(instance: object) -> set[str]:
    own = {name for name in vars(instance) if not name.startswith("_")}
    return (own | set(public(type(instance)))) - SYNC_ONLY - {"sync"}


def run(scenario: Callable[[aio.Memory], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with await aio.open(":memory:") as opened:
            await scenario(opened)

    asyncio.run(inside())


# the same names


def test_every_name_has_its_twin() -> None:
    async def compare(opened: aio.Memory) -> None:
        space = opened.space()
        found = await space.session("k")
        assert space.generations.sync is space.sync.generations  # made on first use
        assert space.documents.sync is space.sync.documents
        for each in (opened, space, space.sessions, found, space.generations):
            assert attributes(each) == attributes(each.sync), type(each)

    run(compare)


@pytest.mark.parametrize(("core", "twin"), TWINS)
def test_every_method_is_a_coroutine(core: type, twin: type) -> None:
    for name, member in public(twin).items():
        if inspect.isfunction(member) and (twin.__name__, name) not in PURE:
            assert inspect.iscoroutinefunction(member), name
            assert bool(member.__doc__) is bool(public(core)[name].__doc__), name


@pytest.mark.parametrize(("core", "twin"), TWINS)
def test_a_method_that_is_written_out_takes_what_its_twin_takes(core: type, twin: type) -> None:
    for name, member in public(twin).items():
        if not inspect.isfunction(member):
            continue
        parameters = inspect.signature(member).parameters
        if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values()):
            assert member.__name__ == name  # passed on as it is, to the method of that name
            continue
        assert parameters == inspect.signature(public(core)[name]).parameters, name


def test_opening_takes_what_its_twin_takes() -> None:
    assert inspect.signature(aio.open).parameters == inspect.signature(memory.open).parameters


# the same behaviour


def test_fifty_appends_at_once_leave_no_hole() -> None:
    async def scenario(opened: aio.Memory) -> None:
        found = await opened.space().session("k")
        stored = await asyncio.gather(*(found.append("user", str(n)) for n in range(50)))
        assert sorted(record.seq for record in stored) == list(range(1, 51))
        assert [record.seq for record in await found.all()] == list(range(1, 51))
        assert {record.content for record in await found.all()} == {str(n) for n in range(50)}
        assert await found.count() == 50

    run(scenario)


def test_what_cannot_be_awaited_in_python_has_a_method() -> None:
    async def scenario(opened: aio.Memory) -> None:
        found = await opened.space().session("k")
        assert await found.count() == 0
        await found.set_summary("so far")
        assert await found.get_summary() == await found.summary == "so far"
        await found.set_mode("polluted")
        assert await found.mode is Mode.POLLUTED

    run(scenario)


def test_properties_are_awaited_as_they_stand() -> None:
    async def scenario(opened: aio.Memory) -> None:
        found = await opened.space("acme").session("k", agent="a")
        await found.append_many([{"role": "user", "content": "x"}])
        state = await found.state
        assert (await found.id, await found.max_seq) == (state.id, 1)
        assert (found.key, found.agent.id, state.space) == ("k", "a", "acme")

    run(scenario)


def test_the_marking_interface_can_be_awaited() -> None:
    async def scenario(opened: aio.Memory) -> None:
        space = opened.space()
        found = await space.session("k")
        await found.append("user", "x")
        await found.sleep()
        (due,) = await space.sessions.find_invalidated(limit=1)
        assert await space.sessions.mark_processed(
            due.id, processed_until=1, expected_invalidated_at=1
        )
        assert await space.sessions.find_invalidated() == []
        assert (await opened.status()).marked_count == 0
        assert await opened.spaces() == ["default"]
        assert await opened.sweep_idle() == 0

    run(scenario)


def test_finding_a_session_creates_nothing() -> None:
    async def scenario(opened: aio.Memory) -> None:
        assert await opened.space().find_session("k") is None
        await opened.space().session("k", agent="a", source="web")
        found = await opened.space().find_session("k")
        assert found is not None
        assert (await found.state).source == "web"

    run(scenario)


def test_errors_come_out_of_the_thread() -> None:
    async def scenario(opened: aio.Memory) -> None:
        found = await opened.space().session("k")
        with pytest.raises(InvalidMessage):
            await found.append("wizard", "x")
        with pytest.raises(InvalidValue):
            await found.recent(-1)
        with pytest.raises(InvalidValue):
            await opened.space().session("")
        with pytest.raises(InvalidValue):
            opened.space("")

    run(scenario)


def test_closing_twice_is_fine_and_everything_after_it_is_refused() -> None:
    async def scenario() -> None:
        opened = await aio.open(":memory:")
        found = await opened.space().session("k")
        await opened.close()
        await opened.close()
        with pytest.raises(StoreClosed):
            await found.append("user", "x")
        with pytest.raises(StoreClosed):
            await found.state

    asyncio.run(scenario())


def test_leaving_the_block_closes_and_lets_errors_out() -> None:
    async def scenario() -> None:
        async with await aio.open(":memory:") as opened:
            left.append(await opened.space().session("k"))
            _ = 1 / 0

    async def count(found: aio.Session) -> int:
        return await found.count()

    left: list[aio.Session] = []
    with pytest.raises(ZeroDivisionError):
        asyncio.run(scenario())
    with pytest.raises(StoreClosed):
        asyncio.run(count(left[0]))


def test_a_memory_is_opened_by_awaiting_it_by_entering_it_or_by_both() -> None:
    async def scenario() -> None:
        async with aio.open(":memory:") as entered:
            found = await entered.space().session("k")
        with pytest.raises(StoreClosed):
            await found.count()
        opened = await asyncio.create_task(aio.open(":memory:"))
        async with opened as both:
            assert both is opened
            assert await both.spaces() == []

    asyncio.run(scenario())


def test_a_memory_that_nobody_waits_for_any_more_is_closed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_open, closed = threading.Event(), threading.Event(), threading.Event()
    opening, closing = memory.open, memory.Memory.close

    def slowly(*args: Any, **kwargs: Any) -> memory.Memory:
        begun.set()
        assert may_open.wait(30)
        return opening(*args, **kwargs)

    def close(opened: memory.Memory) -> None:
        closing(opened)
        closed.set()

    monkeypatch.setattr(memory, "open", slowly)
    monkeypatch.setattr(memory.Memory, "close", close)

    async def scenario() -> None:
        task = asyncio.create_task(aio.open(":memory:"))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_open.set()
        assert await asyncio.to_thread(closed.wait, 30)

    asyncio.run(scenario())


# agents


def test_agents_are_asked_in_coroutines() -> None:
    async def scenario(opened: aio.Memory) -> None:
        async with opened.agents() as agents:
            assert (await agents.ask("assistant", "hello", timeout=30)).is_offline
            ticket = await agents.post("assistant", "again", id="m-1")
            reply = await ticket.result()
            assert ticket.is_settled
            assert await ticket.result(0) == reply

    run(scenario)


def test_an_answer_that_does_not_come_is_said_to_be_pending_or_failed() -> None:
    async def scenario(opened: aio.Memory) -> None:
        agents = opened.agents(only=True)
        with pytest.raises(AnswerPending, match=r"after 0\.01 s"):
            await agents.ask("assistant", "hello", timeout=0.01)
        ticket = await agents.post("assistant", "hello")
        waiting = asyncio.create_task(ticket.result())
        assert await agents.kill("assistant")
        with pytest.raises(TurnFailed):
            await waiting

    run(scenario)


def test_any_number_wait_for_answers_and_neither_calls_nor_closing_wait_for_them() -> None:
    """More waits than there are threads of any kind; the first half are cancelled."""

    async def scenario() -> None:
        opened = await aio.open(":memory:")
        session = await opened.space().session("k")
        agents = opened.agents(only=True)  # those who answer run elsewhere
        tickets = [await agents.post("assistant", "hello", key=f"chat {n}") for n in range(100)]
        waiting = [asyncio.create_task(ticket.result()) for ticket in tickets]
        asking = [
            asyncio.create_task(agents.ask("assistant", "hello", key=f"chat {n}"))
            for n in range(100)
        ]
        async with asyncio.timeout(60):
            await session.append("user", "while others wait")
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            await session.append("user", "after all were cancelled")
            await opened.close()
            found = await asyncio.gather(*asking, return_exceptions=True)
        assert all(task.cancelled() for task in waiting)
        assert {type(error) for error in found} == {StoreClosed}

    asyncio.run(scenario())


def test_settings_and_clock_are_passed_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        settings = {"data_dir": str(tmp_path), "mark_threshold": 0}
        async with await aio.open(settings=settings, clock=clock) as opened:
            found = await opened.space().session("k")
            record = await found.append("user", "x")
            assert record.created_at == clock.now()
            assert (await found.state).invalidated_at == 1
        assert (tmp_path / "memory.db").exists()

    asyncio.run(scenario())


def test_a_worker_is_started_ticked_and_stopped_by_coroutines() -> None:
    async def main() -> None:
        async with await aio.open(":memory:", settings={}) as opened:
            session = await opened.space("alice").session("k")
            await session.append("user", "hello")
            await session.sleep()
            worker = opened.worker(owner="one")
            report = await worker.tick()
            assert (worker.owner, report.processed, report.records) == ("one", 1, 1)
            await worker.start()
            worker.wake()
            await worker.stop()
            assert (await opened.work()).processed == 0
            assert await opened.retry() == 0

    asyncio.run(main())


def test_recall_context_and_citing_can_be_awaited() -> None:
    async def scenario(opened: aio.Memory) -> None:
        space = opened.space()
        fact = await space.facts.add("The lantern is lit.")
        (hit,) = await space.recall("lantern", 5, kinds=["fact"], filters={"trust": "user"})
        assert (hit.id, hit.text) == (fact.id, "The lantern is lit.")
        block = await space.context("lantern", max_tokens=200)
        assert "\n- The lantern is lit. [m1] (" in block.text
        assert await space.cite(block, "It is [m1].", turn="t") == 1
        assert await space.cite(block, "It is [m1].", turn="t") == 0
        assert await space.opened(block.citations, turn="t") == len(block.citations)
        assert not await space.context("door")
        with pytest.raises(InvalidValue):
            await space.recall("lantern", filters={"kind": "dream"})

    run(scenario)


def test_generations_are_made_compared_and_restored_in_coroutines() -> None:
    async def scenario(opened: aio.Memory) -> None:
        space = opened.space()
        first = await space.session("first")
        await first.append("user", "I live in Lisbon.")
        await first.sleep()
        assert (await opened.work()).generations == 1
        second = await space.session("second")
        await second.append("user", "I am allergic to penicillin.")
        await second.sleep()
        await opened.worker().tick()
        assert len((await space.generations.preview()).selection.added) == 1
        assert (await space.generations.run()).generations == 1
        assert [each.number for each in await space.generations.list()] == [2, 1]
        changes = {change.path: change for change in await space.generations.diff(1)}
        assert "+- The user is allergic" in changes["~/memory/MEMORY"].text
        await space.generations.rollback(1)
        assert (await space.generations.get()).restored_from == 1
        await space.generations.pause()
        assert (await space.generations.state()).paused_at is not None
        with pytest.raises(UsageError):
            await space.generations.run()
        await space.generations.resume()
        assert (await space.generations.state()).paused_at is None

    run(scenario)
