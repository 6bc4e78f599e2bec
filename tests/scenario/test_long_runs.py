"""Runs in more than one sitting: passes under a cap, pieces that part a call from its result.

Rows X3, X4, X8, X9, X11; promises P3, P8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.types.facts import Trust
from recollect.types.records import SessionOutcome
from recollect_conformance.scripted import Script, ScriptedServer, status, truncated
from recollect_conformance.scripted_frames import Received
from tests.scripted_answers import OTHERS_BY_RULES, extracted, fact

DAY = timedelta(days=1).total_seconds()
RECORDS = 12
# So small a stretch that a session of long records takes a call for each of them.
CHUNKED: dict[str, Any] = {"extract_chunk_tokens": 500}

Served = Callable[..., tuple[recollect.Memory, ScriptedServer]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def served(durable_store_url: str, clock: ManualClock) -> Iterator[Served]:
    with ExitStack() as stack:

        def serve(script: Script, **settings: Any) -> tuple[recollect.Memory, ScriptedServer]:
            server = stack.enter_context(ScriptedServer(script))
            given = {"model": "openai:scripted", "model_base_url": server.url, "model_retries": 0}
            given |= {"pipeline": "extraction"} | OTHERS_BY_RULES
            opened = recollect.open(durable_store_url, settings=given | settings, clock=clock)
            return stack.enter_context(opened), server

        yield serve


def shown(received: Received) -> list[int]:
    """The numbers of the records that a request shows."""
    headers = [line for line in received.prompt.splitlines() if line.startswith("[#")]
    return sorted({int(line[2:].split()[0]) for line in headers})


def counting(received: Received) -> dict[str, Any]:
    """A fact for every record that is shown, whose words are in it."""
    seqs = shown(received)
    return extracted(
        *(fact(f"Number {seq} was told.", [seq]) for seq in seqs),
        raw_memory=f"## Counting\nup to {seqs[-1]}",
    )


def long_session(memory: recollect.Memory) -> recollect.Session:
    session = memory.space().session("k", agent="assistant")
    for seq in range(1, RECORDS + 1):
        session.append("user", f"Number {seq} was told. " + "And so on and so forth. " * 70)
    session.sleep()
    return session


def contents(memory: recollect.Memory) -> set[str]:
    return {each.content for each in memory.space().facts.list(limit=100)}


ALL = {f"Number {seq} was told." for seq in range(1, RECORDS + 1)}


def test_a_long_session_goes_on_the_next_day_where_the_cap_stopped_it(
    served: Served, clock: ManualClock
) -> None:
    memory, server = served(counting, spend_calls_per_day=5, **CHUNKED)
    session = long_session(memory)
    days = 0
    while session.state.processed_until != RECORDS:
        memory.work()
        days += 1
        assert days <= RECORDS
        clock.advance(DAY)
    assert contents(memory) == ALL
    assert days > 1
    assert len(server.requests) <= RECORDS + 2, "no stretch is paid for twice"


def test_a_new_pass_is_resumed_the_next_day_and_replaces_all_at_once(
    served: Served, clock: ManualClock
) -> None:
    """Review 2: a pass larger than a day's cap comes to an end, and pays for no stretch twice."""
    memory, server = served(counting, extractor="rules")
    session = long_session(memory)
    memory.work()
    by_rules = memory.space().sessions.extraction(session.id)
    before = len(server.requests)
    memory.close()
    again, server = served(counting, spend_calls_per_day=5, **CHUNKED)
    assert again.request_again() == 1
    days = 0
    while days < RECORDS:
        again.work()
        days += 1
        kept = again.space().sessions.extraction(session_id := by_rules_id(again))
        if kept is not None and kept.pass_number == 2:
            break
        assert kept == by_rules, "the earlier pass stands until the new one is through"
        clock.advance(DAY)
    assert kept is not None
    assert (kept.pass_number, kept.upto) == (2, RECORDS)
    assert contents(again) == ALL
    assert days > 1
    assert len(server.requests) - before <= RECORDS + 2
    (span,) = again.space().sessions.ranges(session_id)
    assert (span.first_seq, span.last_seq, span.pass_number) == (1, RECORDS, 2)


def by_rules_id(memory: recollect.Memory) -> str:
    (session,) = memory.space().sessions.list()
    return session.id


def test_the_result_of_a_call_that_was_read_before_is_still_known_for_what_it_is(
    served: Served,
) -> None:
    """X4: what memory itself returned is left out, also when a mark parts call and result."""
    memory, server = served(lambda _: extracted())
    session = memory.space().session("k", agent="assistant")
    call = {"type": "tool_use", "id": "c1", "name": "search_memories", "input": {"query": "tea"}}
    session.append_many(
        [
            {"role": "user", "content": "What do I drink?"},
            {"role": "assistant", "content": [call]},
        ]
    )
    session.sleep()
    memory.work()
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "RECALLED: she drinks tea"}
    session.append_many(
        [
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": "You drink tea."},
        ]
    )
    session.sleep()
    memory.work()
    assert "You drink tea." in server.requests[1].prompt
    assert "RECALLED" not in server.requests[1].prompt


def test_what_an_agent_tells_another_is_not_the_word_of_a_person(served: Served) -> None:
    """Review 7: in a session that another one started, the user is an agent."""
    text = "Always deploy straight to production."
    memory, _ = served([extracted(fact(text, [1], kind="instruction", quote=text))])
    session = memory.space().session("k", agent="assistant", parent="another-session")
    session.append("user", text)
    session.sleep()
    memory.work()
    (learned,) = memory.space().facts.list()
    assert learned.trust is Trust.AGENT
    assert "instruction" not in learned.tags


def test_an_answer_that_breaks_off_is_booked_with_what_it_may_have_taken(served: Served) -> None:
    """Review 4: a flaky provider cannot spend past the caps unseen."""
    memory, server = served([truncated(), status(503), extracted()], model_retries=2)
    session = long_session(memory)
    plan = memory.plan()
    memory.work()
    assert len(server.requests) == 3
    (call,) = memory.space().sessions.calls(session.id)
    assert call.input_tokens > 100, "the answer that came, and the one that broke off"
    assert call.output_tokens >= plan.spent.output_tokens
    (progress,) = memory.status().sessions
    assert progress.outcome is SessionOutcome.SUCCEEDED


def test_a_worker_that_runs_on_has_a_new_budget_every_day(
    served: Served, clock: ManualClock
) -> None:
    memory, server = served(lambda _: extracted(), spend_calls_per_run=1)
    worker = memory.worker()
    for number in range(2):
        session = memory.space().session(f"s{number}", agent="assistant")
        session.append("user", "I live in Lisbon.")
        session.sleep()
    worker.drain()
    assert len(server.requests) == 1
    clock.advance(DAY)
    worker.drain()
    assert len(server.requests) == 2


def test_a_run_ends_although_what_was_put_off_is_due_again(
    served: Served, clock: ManualClock
) -> None:
    """Review 14: a refused key puts everything off; a long run does not chase its own tail."""

    def refuse(_: Received) -> Any:
        clock.advance(400)  # longer than the pause: all that was put off is due again
        return status(401)

    memory, server = served(refuse, model_pause_seconds=300, worker_batch=1)
    for number in range(3):
        session = memory.space().session(f"s{number}", agent="assistant")
        session.append("user", "I live in Lisbon.")
        session.sleep()
    report = memory.work()
    assert report.postponed <= 4
    assert len(server.requests) <= 4


# sessions that grow


TASKS = 160
AT_A_TIME = 4


def section(number: int, command: str = "") -> str:
    told = command or f"make build-{number}"
    return (
        f"## Task {number}\noutcome: success\n"
        f"- `{told}` builds part {number} of the shop; the cache has to be warm before it runs.\n"
        f"- The user wants the report of part {number} as a table, with the slowest step on top."
    )


def asked_tasks(received: Received) -> list[int]:
    """The tasks that the new records of a request are about."""
    transcript = received.prompt.partition("# Transcript of the new records")[2]
    return [int(number) for number in re.findall(r"Do task (\d+) ", transcript)]


Parts = list[dict[str, str]]


def earlier_parts(received: Received) -> Parts:
    """The memory that a request shows, as a model would give it back."""
    earlier = received.prompt.partition("raw_memory")[2].partition("rollout_summary")[0]
    lines = [line[2:] for line in earlier.splitlines() if line.startswith("| ")]
    found = re.findall(
        r"^\[(r\d+)\] (.*?)(?=\n\n\[r|\Z)", "\n".join(lines), re.DOTALL | re.MULTILINE
    )
    return [{"replaces": name, "text": text.strip()} for name, text in found]


def only_new(received: Received) -> Parts:
    """As the prompt asks for it."""
    return [{"text": section(number)} for number in asked_tasks(received)]


def all_again(received: Received) -> Parts:
    """A model that repeats all it was shown."""
    return [*earlier_parts(received), *only_new(received)]


def all_again_without_names(received: Received) -> Parts:
    return [{"text": part["text"]} for part in all_again(received)]


def all_again_as_one_text(received: Received) -> str:
    return "\n\n".join(part["text"] for part in all_again(received))


def all_again_in_short(received: Received) -> Parts:
    """One that repeats it, with less and less of what it says."""
    again = earlier_parts(received)
    short = [each | {"text": each["text"].partition("\n")[0] + "\n(as before)"} for each in again]
    return [*short, *only_new(received)]


def misnamed(received: Received) -> Parts:
    """One that gives its own sections the names of others."""
    new = [{"replaces": "r1"} | part for part in only_new(received)]
    return new if asked_tasks(received)[0] % 3 else []


def worker_on(answer: Callable[[Received], Parts | str]) -> Callable[[Received], dict[str, Any]]:
    def script(received: Received) -> dict[str, Any]:
        numbers = asked_tasks(received)
        return extracted(
            raw_memory=answer(received),
            rollout_summary="\n\n".join(f"Part {n} of the shop was built." for n in numbers),
        )

    return script


def tasks_in(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^## Task (\d+)$", text, re.MULTILINE)]


@pytest.mark.parametrize(
    "answer",
    [only_new, all_again, all_again_without_names, all_again_as_one_text, all_again_in_short],
)
def test_what_a_growing_session_came_to_is_never_shortened(
    served: Served, answer: Callable[[Received], Parts | str]
) -> None:
    """X9: 160 tasks in 40 increments, of which a request can show a part alone."""
    memory, server = served(worker_on(answer), consolidation="off")
    session = memory.space().session("k", agent="assistant")
    numbers = list(range(1, TASKS + 1))
    for first in range(0, TASKS, AT_A_TIME):
        for number in numbers[first : first + AT_A_TIME]:
            session.append("user", f"Do task {number} of the shop.")
        session.sleep()
        memory.work()
    assert len(server.requests) == TASKS / AT_A_TIME
    extraction = memory.space().sessions.extraction(session.id)
    assert extraction is not None
    assert tasks_in(extraction.raw_memory) == numbers, "each of them, once"
    missing = [n for n in numbers if section(n).splitlines()[-1] not in extraction.raw_memory]
    assert missing == []
    for number in numbers:
        assert extraction.rollout_summary.count(f"Part {number} of the shop was built.") == 1


def test_over_fifty_increments_only_what_an_answer_names_is_replaced(served: Served) -> None:
    """X9, T4: facts keep their place while a few of them are ended by name or by their topic."""

    def script(received: Received) -> dict[str, Any]:
        (number,) = asked_tasks(received)
        name = re.search(rf"^\| (f\d+) .*part {number - 1} of", received.prompt, re.MULTILINE)
        assert name or number % 10, "what is spoken of is shown"
        ends = [name[1]] if name and not number % 10 else []
        return extracted(
            fact(
                f"Task {number} built part {number} of the shop.",
                [number],
                topic="shop:parts",
                supersedes=ends,
                about=["shop", f"part {number}"],
            ),
            fact(f"The shop has {number} parts.", [number], topic="shop:size", single=True),
            raw_memory=only_new(received),
            rollout_summary=[{"text": f"Part {number} of the shop was built."}],
        )

    memory, server = served(script, consolidation="off")
    session = memory.space().session("k", agent="assistant")
    for number in range(1, 51):
        instead = "" if number % 10 else f" Part {number - 1} has to go."
        session.append("user", f"Do task {number} of the shop.{instead}")
        session.sleep()
        memory.work()
    assert len(server.requests) == 50
    assert "topics in use: " in server.requests[-1].prompt
    held = {each.content: each for each in memory.space().facts.list(limit=100)}
    ended = {9, 19, 29, 39, 49}
    kept = [f"Task {n} built part {n} of the shop." for n in range(1, 51) if n not in ended]
    assert held.keys() == {*kept, "The shop has 50 parts."}
    assert held[kept[0]].about == ("shop", "part 1")
    extraction = memory.space().sessions.extraction(session.id)
    assert extraction is not None
    assert tasks_in(extraction.raw_memory) == list(range(1, 51))
    assert extraction.rollout_summary.count("was built.") == 50


def test_an_earlier_section_is_corrected_by_its_name_and_no_other_by_mistake(
    served: Served,
) -> None:
    def script(received: Received) -> dict[str, Any]:
        if asked_tasks(received):
            return worker_on(misnamed)(received)
        name = re.search(r"^\| \[(r\d+)\] ## Task 7$", received.prompt, re.MULTILINE)
        assert name is not None, "what the new records are about is shown"
        given = {"replaces": name[1], "text": section(7, "make fast-7")}
        return extracted(raw_memory=[given], rollout_summary=[])

    memory, _ = served(script, consolidation="off")
    session = memory.space().session("k", agent="assistant")
    for number in range(1, 61):
        session.append("user", f"Do task {number} of the shop.")
        if number % AT_A_TIME == 0:
            session.sleep()
            memory.work()
    before = memory.space().sessions.extraction(session.id)
    session.append("user", "Task 7 was wrong: part 7 is built by make fast-7.")
    session.sleep()
    memory.work()
    after = memory.space().sessions.extraction(session.id)
    assert before is not None
    assert after is not None
    told = [n for n in range(1, 61) if ((n - 1) // AT_A_TIME * AT_A_TIME + 1) % 3]
    assert tasks_in(before.raw_memory) == told
    assert after.raw_memory == before.raw_memory.replace(section(7), section(7, "make fast-7"))
    assert after.rollout_summary == before.rollout_summary


def test_every_piece_of_a_long_session_adds_to_the_ones_before(served: Served) -> None:
    memory, server = served(worker_on(all_again), **CHUNKED, consolidation="off")
    session = memory.space().session("k", agent="assistant")
    for number in range(1, TASKS + 1):
        session.append("user", f"Do task {number} of the shop." + " Take your time." * 9)
    session.sleep()
    memory.work()
    calls = len(server.requests)
    assert calls > 10
    for _ in range(2):  # piece by piece as they come, and in a new pass over all of them
        extraction = memory.space().sessions.extraction(session.id)
        assert extraction is not None
        assert tasks_in(extraction.raw_memory) == list(range(1, TASKS + 1))
        memory.work(again=True)
    assert len(server.requests) == 3 * calls


def test_a_memory_that_is_full_stays_as_it_is_and_says_so(served: Served) -> None:
    memory, _ = served(worker_on(only_new), consolidation="off", memory_chars_max=1000)
    session = memory.space().session("k", agent="assistant")
    for number in range(1, 8):
        session.append("user", f"Do task {number} of the shop.")
        session.sleep()
        memory.work()
    extraction = memory.space().sessions.extraction(session.id)
    assert extraction is not None
    assert tasks_in(extraction.raw_memory) == [1, 2, 3, 4, 5]
    reasons = [span.reason for span in memory.space().sessions.ranges(session.id)]
    assert reasons[:5] == [None] * 5
    assert all(reason is not None and "memory_chars_max" in reason for reason in reasons[5:])
    assert len(reasons) == 7
