"""L-2, L-13: a session that is going on waits for a pause, a backfill goes through time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.importers.generic import GenericJsonl
from recollect.importers.running import Importing
from recollect.types.records import JobKind, JobState
from recollect_conformance.scripted import Scripted, ScriptedServer, calls
from recollect_conformance.scripted_frames import Received
from tests.hosted_agents import ON_BOTH
from tests.scripted_answers import extracted, fact

SPACE = "alice"
PAUSE = 300.0
ONE_JOB = {"memory_agent_model": "rules", "consolidation": "off"}


def learner(received: Received) -> Scripted:
    """Learns the last record of a stretch."""
    last = [line for line in received.prompt.splitlines() if line.startswith("[#")][-1]
    seq = int(last[2:].split()[0])
    said = received.prompt.rpartition("| ")[2].splitlines()[0]
    return extracted(fact(f"The user said: {said}", [seq]))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


Opened = Callable[..., recollect.Memory]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(learner) as server:
        yield server


@pytest.fixture
def opened(store_url: str, server: ScriptedServer, clock: ManualClock) -> Iterator[Opened]:
    memories = []

    def open_memory(**settings: Any) -> recollect.Memory:
        given = ONE_JOB | {"model_base_url": server.url} | settings
        memories.append(
            recollect.open(store_url, settings=given, model="openai:scripted", clock=clock)
        )
        return memories[-1]

    yield open_memory
    for memory in memories:
        memory.close()


def say(session: recollect.Session, count: int) -> None:
    for _ in range(count):
        session.append("user", f"This is sentence number {session.state.last_seq + 1}.")


def job_of(memory: recollect.Memory, session: recollect.Session) -> recollect.Job:
    job = memory.store.leases.get(SPACE, JobKind.EXTRACT, session.id)
    assert job is not None
    return job


def test_sixty_records_under_a_worker_take_one_call(
    opened: Opened, server: ScriptedServer, clock: ManualClock
) -> None:
    memory = opened(extract_pause_records=100)
    worker = memory.worker()
    session = memory.space(SPACE).session("k", "assistant")
    for number in range(1, 61):
        say(session, 1)
        worker.tick()
        clock.advance(20)
        if number == 6:
            assert session.state.invalidated_at == 6, "M6 stays as it is"
    assert server.requests == []
    clock.advance(PAUSE)
    worker.tick()
    assert len(server.requests) == 1
    assert session.state.processed_until == 60
    assert session.state.invalidated_at is None


def test_as_many_records_as_are_enough_do_not_wait(
    opened: Opened, server: ScriptedServer, clock: ManualClock
) -> None:
    memory = opened(extract_pause_records=30)
    worker = memory.worker()
    session = memory.space(SPACE).session("k", "assistant")
    for _ in range(60):
        say(session, 1)
        worker.tick()
        clock.advance(20)
    clock.advance(PAUSE)
    worker.tick()
    assert session.state.processed_until == 60
    assert 1 <= len(server.requests) <= 2


def test_what_waits_says_until_when_and_outlives_its_worker(
    durable_store_url: str, server: ScriptedServer, clock: ManualClock
) -> None:
    settings = ONE_JOB | {"model_base_url": server.url, "model": "openai:scripted"}
    with recollect.open(durable_store_url, settings=settings, clock=clock) as memory:
        session = memory.space(SPACE).session("k", "assistant")
        say(session, 6)
        assert memory.work().postponed == 1
        until = clock.now() + timedelta(seconds=PAUSE)
        job = job_of(memory, session)
        assert (job.state, job.due_at, job.failures, job.pauses) == (JobState.DUE, until, 0, 0)
        assert job.why(clock.now()) == f"waits for a pause until {until:%Y-%m-%d %H:%M:%S}Z"
        assert memory.plan().sessions == ()
    with recollect.open(durable_store_url, settings=settings, clock=clock) as memory:
        assert not memory.work(), "it is not its time yet"
        clock.advance(PAUSE)
        assert memory.work().processed == 1
        assert len(server.requests) == 1


ASKED: dict[str, Callable[[recollect.Memory, recollect.Session], object]] = {
    "invalidate": lambda memory, session: memory.space(SPACE).sessions.invalidate(session.id, 6),
    "a lower mark": lambda memory, session: memory.space(SPACE).sessions.invalidate(session.id, 3),
    "sleep": lambda memory, session: session.sleep(),
    "end": lambda memory, session: session.end(),
    "reset": lambda memory, session: session.reset(),
    "compact": lambda memory, session: session.compact("A summary."),
    "all": lambda memory, session: None,
}


@ON_BOTH
@pytest.mark.parametrize("way", ASKED)
@pytest.mark.parametrize("has_waited", [True, False])
def test_what_is_asked_for_does_not_wait(
    opened: Opened, server: ScriptedServer, way: str, has_waited: bool
) -> None:
    memory = opened()
    session = memory.space(SPACE).session("k", "assistant")
    say(session, 6)
    if has_waited:
        assert memory.work().postponed == 1
    ASKED[way](memory, session)
    assert memory.work(all=way == "all").processed == 1
    assert len(server.requests) == 1


def test_what_was_asked_for_is_not_asked_for_what_comes_later(
    opened: Opened, server: ScriptedServer, clock: ManualClock
) -> None:
    memory = opened()
    session = memory.space(SPACE).session("k", "assistant")
    say(session, 6)
    session.sleep()
    assert memory.work().processed == 1
    say(session, 6)
    report = memory.work()
    assert (report.processed, report.postponed) == (0, 1)
    clock.advance(PAUSE)
    assert memory.work().processed == 1


def test_rules_do_not_wait(durable_store_url: str, clock: ManualClock) -> None:
    with recollect.open(durable_store_url, settings={}, clock=clock) as memory:
        say(memory.space(SPACE).session("k", "assistant"), 6)
        report = memory.work()
        assert (report.processed, report.postponed) == (1, 0)


def test_nothing_waits_where_no_pause_is_set(opened: Opened) -> None:
    memory = opened(extract_pause_seconds=0)
    say(memory.space(SPACE).session("k", "assistant"), 6)
    assert memory.work().processed == 1


def test_what_failed_has_waited_already(store_url: str, clock: ManualClock) -> None:
    answers: Iterator[Scripted] = iter(["no", "no JSON", "", extracted(fact("It rains.", [1]))])
    with (
        ScriptedServer(lambda _: next(answers)) as failing,
        recollect.open(
            store_url,
            settings=ONE_JOB | {"model_base_url": failing.url},
            model="openai:scripted",
            clock=clock,
        ) as memory,
    ):
        session = memory.space(SPACE).session("k", "assistant")
        say(session, 6)
        memory.work()
        clock.advance(PAUSE)
        assert memory.work().failed == 1
        clock.advance(60)
        say(session, 1)
        report = memory.work()
        assert (report.processed, report.postponed) == (1, 0)


# a backfill


def log_of(path: Path, space: str, days: dict[str, int]) -> Path:
    """Conversations in one file, each on a day of its own, not in their order."""
    lines = [
        {
            "session": name,
            "id": f"{name}-{number}",
            "role": "user",
            "content": f"In {name} {space} said sentence {number}.",
            "at": f"2024-01-{day:02}T10:{number:02}:00Z",
        }
        for name, day in days.items()
        for number in range(8)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@ON_BOTH
def test_a_backfill_goes_through_each_space_in_the_order_of_time(
    opened: Opened, server: ScriptedServer, tmp_path: Path
) -> None:
    memory = opened(worker_concurrency=4)
    days = {"may": 5, "jan": 1, "sep": 9, "mar": 3, "feb": 2}
    for space in (SPACE, "bob"):
        log = log_of(tmp_path / f"{space}.jsonl", space, days)
        Importing(memory, space, GenericJsonl()).run([log])
    assert memory.work().processed == 2 * len(days)
    asked = [received.prompt for received in server.requests]
    for space in (SPACE, "bob"):
        own = [each for each in asked if f" {space} said" in each]
        new = [each.partition("# Transcript")[2] for each in own]
        order = [next(name for name in days if f"In {name} {space}" in each) for each in new]
        assert order == sorted(days, key=lambda name: days[name])
        known = own[1].partition("# Known facts")[2].partition("# Transcript")[0]
        assert f"In jan {space}" in known, "what the first came to is known to the next"


def test_a_session_that_fails_holds_up_none_of_its_space(
    store_url: str, clock: ManualClock, tmp_path: Path
) -> None:
    def fails_in_january(received: Received) -> Scripted:
        return "no JSON" if "In jan alice" in received.prompt else learner(received)

    days = {"feb": 2, "jan": 1, "mar": 3}
    with (
        ScriptedServer(fails_in_january) as server,
        recollect.open(
            store_url,
            settings=ONE_JOB | {"model_base_url": server.url},
            model="openai:scripted",
            clock=clock,
        ) as memory,
    ):
        Importing(memory, SPACE, GenericJsonl()).run([log_of(tmp_path / "a.jsonl", SPACE, days)])
        report = memory.work()
        assert (report.processed, report.failed) == (2, 1)


# what the memory-agent costs


@ON_BOTH
def test_filing_a_session_takes_no_more_than_distilling_it(
    store_url: str, clock: ManualClock
) -> None:
    said = [
        f"On day {number} I took the tram to the harbour, met my cousin {name} there, and we "
        f"decided to paint the {name} boat green before the {number}th of May."
        for number, name in enumerate(("Ana", "Bea", "Cleo", "Dora", "Eva") * 4, 1)
    ]
    sizes: Counter[str] = Counter()

    def both(received: Received) -> Scripted:
        facts = [fact(text, [number]) for number, text in enumerate(said[:12], 1)]
        page = {"path": "~/memory/people/alice", "body": "\n".join(f"- {each}" for each in said)}
        job, answer = ("file", page) if received.tools else ("extract", extracted(*facts))
        sizes[job] += len(json.dumps(received.body)) + len(json.dumps(answer))
        return calls(("document_write", page)) if received.tools else answer

    settings = {"consolidation": "off"}
    with (
        ScriptedServer(both) as server,
        recollect.open(
            store_url, settings=settings, model=server.model(clock=clock), clock=clock
        ) as memory,
    ):
        session = memory.space(SPACE).session("k", "assistant")
        session.append_many([{"role": "user", "name": "Alice", "content": each} for each in said])
        session.sleep()
        memory.work()
        assert [bool(each.tools) for each in server.requests] == [False, True]
        assert sizes["file"] <= sizes["extract"]
        booked = memory.store.ledger.calls(SPACE, session.id, 10, None)
        assert {each.purpose for each in booked} == {"extract", "memory-agent"}
