"""Document 002 (memories pipeline): when it runs, and phase 1, line by line. Rows X1 to X10."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.processing import Verdict, Work
from recollect.types.records import JobKind, JobState, LeasePolicy, Outcome, SessionOutcome
from recollect_conformance.scripted import Gate, Script, ScriptedServer, held, status
from recollect_conformance.scripted_frames import Received
from tests.scripted_answers import NOTHING, OTHERS_BY_RULES, extracted, fact

HOUR = 3600.0
SAID = "I live in Lisbon."


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


Open = Callable[..., recollect.Memory]


@pytest.fixture
def opened(store_url: str, clock: ManualClock) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_it(**settings: Any) -> recollect.Memory:
            given = {"consolidation": "off"} | settings  # phase 2 has tests of its own
            return stack.enter_context(recollect.open(store_url, settings=given, clock=clock))

        yield open_it


@pytest.fixture
def served(opened: Open) -> Iterator[Callable[..., tuple[recollect.Memory, ScriptedServer]]]:
    """A memory whose model is scripted."""
    with ExitStack() as stack:

        def serve(script: Script, **settings: Any) -> tuple[recollect.Memory, ScriptedServer]:
            server = stack.enter_context(ScriptedServer(script))
            given = {"model": "openai:scripted", "model_base_url": server.url, "model_retries": 0}
            return opened(**given | OTHERS_BY_RULES | settings), server

        yield serve


Served = Callable[..., tuple[recollect.Memory, ScriptedServer]]


def told(memory: recollect.Memory, key: str = "k", *texts: str, **birth: Any) -> recollect.Session:
    session = memory.space().session(key, agent=birth.pop("agent", "assistant"), **birth)
    for text in texts or (SAID,):
        session.append("user", text)
    return session


def marked(
    memory: recollect.Memory, key: str = "k", *texts: str, **birth: Any
) -> recollect.Session:
    session = told(memory, key, *texts, **birth)
    session.sleep()
    return session


def outcome(memory: recollect.Memory, session: recollect.Session) -> SessionOutcome | None:
    found = {each.session_id: each.outcome for each in memory.status().sessions}
    return found[session.id]


def scan_is_due(memory: recollect.Memory) -> bool:
    job = memory.store.leases.get(None, JobKind.STARTUP_SCAN, JobKind.STARTUP_SCAN)
    return job is not None and job.state is JobState.DUE and job.due_at is None


def scan_done(memory: recollect.Memory) -> None:
    """As after a scan: the next one is a day away."""
    memory.store.leases.ensure_recurring(JobKind.STARTUP_SCAN, None)
    memory.store.leases.make_due(JobKind.STARTUP_SCAN)
    memory.worker(Deaf()).drain()
    assert not scan_is_due(memory)


class Deaf:
    """Reads, and learns nothing."""

    def process(self, _: Work) -> Verdict:
        return Verdict(outcome=Outcome.NO_OUTPUT)


# "When it runs"


def test_the_pipeline_is_triggered_when_a_root_session_starts(opened: Open) -> None:
    memory = opened()
    scan_done(memory)
    told(memory)
    assert scan_is_due(memory)


def test_every_session_under_a_key_is_a_start(opened: Open, clock: ManualClock) -> None:
    memory = opened()
    session = told(memory)
    for rotate in (session.reset, session.end):
        clock.advance(HOUR)
        scan_done(memory)
        rotate()
        session.append("user", "a new conversation")
        assert scan_is_due(memory), rotate


def test_a_record_later_in_a_session_is_no_start(opened: Open, clock: ManualClock) -> None:
    memory = opened()
    session = told(memory)
    clock.advance(HOUR)
    scan_done(memory)
    session.append("user", "more")
    assert not scan_is_due(memory)


@pytest.mark.parametrize(
    "birth",
    [
        {"ephemeral": True},
        {"parent": "another-session"},
        {"agent": {"type": "subagent", "id": "helper"}},
        {"agent": {"type": "memory-agent", "id": "assistant"}},
    ],
    ids=["ephemeral", "with a parent", "a sub-agent's", "a memory-agent's"],
)
def test_it_is_not_triggered_by_a_session_that_is(opened: Open, birth: dict[str, Any]) -> None:
    memory = opened()
    scan_done(memory)
    told(memory, **birth)
    assert not scan_is_due(memory)


def test_it_is_not_triggered_when_memory_is_disabled_for_the_agent(opened: Open) -> None:
    memory = opened(agents={"assistant": False})
    scan_done(memory)
    told(memory)
    assert not scan_is_due(memory)


def test_it_is_not_triggered_when_the_setting_says_so(opened: Open) -> None:
    memory = opened(extract_on_session_start="off")
    scan_done(memory)
    told(memory)
    assert not scan_is_due(memory)


def test_without_a_store_a_session_starts_and_nothing_else_happens() -> None:
    with recollect.open(settings={"data_dir": "", "extract_on_session_start": "worker"}) as memory:
        assert told(memory).count() == 1
        names = {thread.name for thread in threading.enumerate()}
        assert "recollect-worker" not in names


def test_a_trigger_that_fails_never_fails_the_host(
    opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory = opened()
    scan_done(memory)

    def broken(_: JobKind) -> None:
        raise recollect.RecollectError("the store is having a moment")

    monkeypatch.setattr(memory.store.leases, "make_due", broken)
    assert told(memory).count() == 1
    assert "having a moment" in caplog.text


class Heard(logging.Handler):
    """Sets its event when a session has been processed."""

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.event.set()


def test_where_the_host_asked_for_it_a_worker_is_started_once_and_stopped_with_the_memory(
    store_url: str, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    heard = Heard()
    logger = logging.getLogger("recollect.phase1")
    logger.addHandler(heard)
    request.addfinalizer(lambda: logger.removeHandler(heard))
    caplog.set_level(logging.INFO, logger=logger.name)
    settings = {"extract_on_session_start": "worker", "worker_tick_seconds": 0.02}
    with recollect.open(store_url, settings=settings) as memory:
        marked(memory)
        marked(memory, "another")
        assert heard.event.wait(20)
        running = [each.name for each in threading.enumerate()]
        assert running.count("recollect-worker") == 1
    assert "recollect-worker" not in {thread.name for thread in threading.enumerate()}


# "Eligible rollouts are selected using startup claim rules"


def scanned(memory: recollect.Memory, *sessions: recollect.Session) -> list[bool]:
    memory.store.leases.ensure_recurring(JobKind.STARTUP_SCAN, None)
    memory.store.leases.make_due(JobKind.STARTUP_SCAN)
    memory.work(Deaf())
    return [session.state.processed_until is not None for session in sessions]


def test_from_allowed_interactive_sources(opened: Open, clock: ManualClock) -> None:
    memory = opened(scan_sources="cli, ide")
    sessions = [told(memory, source, source=source) for source in ("cli", "ide", "exec")]
    clock.advance(7 * HOUR)
    assert scanned(memory, *sessions) == [True, True, False]


def test_within_the_age_window_and_idle_long_enough(opened: Open, clock: ManualClock) -> None:
    memory = opened(scan_age_days_max=2, scan_idle_seconds=HOUR, idle_sweep_seconds=HOUR)
    old = told(memory, "old")
    clock.advance(timedelta(days=3).total_seconds())
    right = told(memory, "right")
    clock.advance(2 * HOUR)
    fresh = told(memory, "fresh")
    assert scanned(memory, old, right, fresh) == [False, True, False]


def test_what_is_left_out_by_source_or_age_is_so_for_the_sweep_until_all_is_asked_for(
    opened: Open, clock: ManualClock
) -> None:
    """X1, X2: one rule says who is learned from unasked, for the scan and for the idle sweep."""
    memory = opened(scan_sources="cli", scan_age_days_max=2)
    old = told(memory, "old", source="cli")
    clock.advance(timedelta(days=3).total_seconds())
    sessions = [told(memory, source, source=source) for source in ("cli", "exec")]
    clock.advance(HOUR)
    assert [planned.session.key for planned in memory.plan().sessions] == ["cli"]
    assert memory.sweep_idle() == 1
    memory.work()
    assert [each.state.processed_until for each in (old, *sessions)] == [None, 1, None]
    assert memory.status().passed_over == {old.id, sessions[1].id}
    assert {planned.session.id for planned in memory.plan(all=True).sessions} == {
        old.id,
        sessions[1].id,
    }
    assert memory.work(all=True).processed == 2
    assert [each.state.processed_until for each in (old, *sessions)] == [1, 1, 1]


def test_within_scan_and_claim_limits(opened: Open, clock: ManualClock) -> None:
    memory = opened(scan_sessions_max=2, idle_sweep_seconds=31_536_000)
    sessions = []
    for number in range(4):
        sessions.append(told(memory, f"s{number}"))
        clock.advance(60)
    clock.advance(7 * HOUR)
    assert scanned(memory, *sessions) == [False, False, True, True], "the most recent first"


def test_not_owned_by_another_worker_in_flight(opened: Open) -> None:
    memory = opened()
    session = marked(memory)
    policy = LeasePolicy()
    claim = memory.store.leases.claim("somebody else", policy, memory.clock.now())
    assert getattr(claim, "key", None) == session.id
    assert memory.work().processed == 0
    assert session.state.processed_until is None


def test_a_marked_session_is_due_whatever_its_age_source_or_idle_time(
    opened: Open, clock: ManualClock
) -> None:
    memory = opened(scan_sources="cli", scan_age_days_max=1)
    session = marked(memory, source="exec")
    clock.advance(timedelta(days=90).total_seconds())
    assert memory.work().processed == 1
    assert session.state.processed_until == 1


@pytest.mark.parametrize("mode", ["disabled", "polluted"])
def test_the_memory_mode_applies_to_marks_and_scans_alike(
    opened: Open, clock: ManualClock, mode: str
) -> None:
    memory = opened()
    session = told(memory)
    session.mode = mode
    session.append("user", "I like tea.")
    session.sleep()
    clock.advance(7 * HOUR)
    scanned(memory, session)
    assert len(memory.space().facts) == 0
    assert {span.outcome for span in memory.space().sessions.ranges(session.id)} <= {
        Outcome.SKIPPED
    }


# "What it does"


def test_content_is_filtered_down_to_what_is_memory_relevant(served: Served) -> None:
    memory, server = served([NOTHING])
    session = memory.space().session("k", agent="assistant")
    session.append("system", "SYSTEM PROMPT")
    session.append_many(
        [
            {"role": "user", "content": SAID},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "PRIVATE THOUGHT"},
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "c1", "name": "shell", "input": {"cmd": "ls"}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "README.md"}],
            },
            {"role": "user", "content": "## Relevant Memory\n\n- RECALLED FACT\n"},
        ]
    )
    session.sleep()
    memory.work()
    prompt = server.requests[0].prompt
    assert all(text in prompt for text in (SAID, "Let me look.", "shell", "README.md"))
    assert not any(text in prompt for text in ("SYSTEM PROMPT", "PRIVATE THOUGHT", "RECALLED FACT"))


def test_rollouts_go_to_the_model_in_parallel_with_a_concurrency_cap(served: Served) -> None:
    gates = [Gate() for _ in range(3)]
    lock, numbers = threading.Lock(), iter(range(3))

    def script(_: Received) -> Any:
        with lock:
            return held(gates[next(numbers)], NOTHING)

    memory, server = served(script, worker_concurrency=2)
    for number in range(3):
        marked(memory, f"s{number}")
    runner = threading.Thread(target=memory.work)
    runner.start()
    assert gates[0].arrived.wait(20)
    assert gates[1].arrived.wait(20)
    assert len(server.requests) == 2, "the third waits for its turn"
    gates[0].open()
    assert gates[2].arrived.wait(20)
    gates[1].open()
    gates[2].open()
    runner.join(20)
    assert memory.status().job_counts.get(JobState.DUE, 0) == 0


def test_structured_output_is_stored_as_the_stage_1_output(served: Served) -> None:
    answer = extracted(
        fact("The user lives in Lisbon.", [1]),
        raw_memory="## Home\noutcome: success",
        rollout_summary="Where the user lives.",
        rollout_slug="where-the-user-lives",
    )
    memory, _ = served([answer])
    session = marked(memory)
    memory.work()
    extraction = memory.space().sessions.extraction(session.id)
    assert extraction is not None
    assert extraction.raw_memory == "## Home\noutcome: success"
    assert extraction.rollout_summary == "Where the user lives."
    assert extraction.rollout_slug == "where-the-user-lives"
    assert (extraction.usage_count, extraction.selected_for_phase2) == (0, False)


def test_the_slug_is_optional(served: Served) -> None:
    memory, _ = served([extracted(rollout_slug=None)])
    session = marked(memory)
    memory.work()
    extraction = memory.space().sessions.extraction(session.id)
    assert extraction is not None
    assert extraction.rollout_slug is None


def test_failed_jobs_are_retried_later_instead_of_hot_looping(
    served: Served, clock: ManualClock
) -> None:
    memory, server = served(
        ["no JSON", "still none", extracted()],
        backoff_seconds=60,
        backoff_seconds_max=60,
        extract_repairs=0,
    )
    session = marked(memory)
    assert memory.work().failed == 1
    assert len(server.requests) == 1, "one try, then it waits"
    clock.advance(61)
    assert memory.work().failed == 1
    clock.advance(61)
    assert memory.work().processed == 1
    assert outcome(memory, session) is SessionOutcome.SUCCEEDED
    (progress,) = memory.status().sessions
    assert (progress.attempt, progress.last_error) == (3, None)


# "Job outcomes"


def test_succeeded_means_memory_was_produced(served: Served) -> None:
    memory, _ = served([extracted()])
    session = marked(memory)
    memory.work()
    assert outcome(memory, session) is SessionOutcome.SUCCEEDED
    assert memory.status().consolidations_due == 1


def test_succeeded_no_output_means_a_valid_run_without_anything_useful(served: Served) -> None:
    memory, _ = served([NOTHING])
    session = marked(memory)
    memory.work()
    assert outcome(memory, session) is SessionOutcome.SUCCEEDED_NO_OUTPUT
    assert memory.space().sessions.extraction(session.id) is None
    assert memory.status().consolidations_due == 0, "nothing changed"


def test_failed_comes_with_its_error_and_its_next_try(served: Served, clock: ManualClock) -> None:
    memory, _ = served([status(503, "down for maintenance")])
    session = marked(memory)
    memory.work()
    (progress,) = memory.status().sessions
    assert outcome(memory, session) is SessionOutcome.FAILED
    assert progress.last_error is not None
    assert "ModelUnavailable" in progress.last_error
    assert progress.next_try_at is not None
    assert progress.next_try_at >= clock.now()
    assert session.state.processed_until is None, "the cursor has not moved"


def test_an_exhausted_job_is_parked_and_new_activity_revives_it(
    served: Served, clock: ManualClock
) -> None:
    memory, server = served(
        ["no JSON", "still none", extracted()],
        job_failures_max=2,
        backoff_seconds=0,
        extract_repairs=0,
    )
    session = marked(memory)
    memory.work()
    assert memory.status().job_counts[JobState.PARKED] == 1
    memory.work()
    assert len(server.requests) == 2, "a parked job is left alone"
    session.append("user", "I moved to Porto.")
    session.sleep()
    memory.work()
    assert outcome(memory, session) is SessionOutcome.SUCCEEDED
    assert session.state.processed_until == 2


def test_a_permanent_error_is_parked_at_once(served: Served) -> None:
    memory, server = served([status(422, "this will never do")])
    session = marked(memory)
    memory.work()
    assert memory.status().job_counts[JobState.PARKED] == 1
    assert len(server.requests) == 1
    assert outcome(memory, session) is SessionOutcome.FAILED


def test_an_outage_of_the_provider_parks_nobody(served: Served, clock: ManualClock) -> None:
    """X7: a passing error is told from a lasting one, however long it takes to pass."""
    memory, server = served(lambda _: status(503), job_failures_max=2)
    session = marked(memory)
    delays = []
    for _ in range(8):
        assert memory.work().postponed == 1
        (job,) = [each for each in memory.status().jobs if each.kind is JobKind.EXTRACT]
        assert (job.state, job.failures) == (JobState.DUE, 0)
        assert job.due_at is not None
        delays.append((job.due_at - clock.now()).total_seconds())
        clock.advance(delays[-1] + 1)
    assert len(server.requests) == 8
    assert max(delays) <= 3600
    assert delays[-1] > delays[0], "it asks less and less often"
    (progress,) = memory.status().sessions
    assert progress.outcome is SessionOutcome.FAILED
    assert session.state.processed_until is None


@pytest.mark.parametrize("code", [401, 403, 404])
def test_what_no_call_survives_pauses_everything_and_counts_against_nobody(
    served: Served, clock: ManualClock, code: int
) -> None:
    memory, server = served(lambda _: status(code), model_pause_seconds=300)
    sessions = [marked(memory, f"s{number}") for number in range(3)]
    report = memory.work()
    assert (report.postponed, report.failed) == (3, 0)
    assert len(server.requests) <= 3
    for job in memory.status().jobs:
        assert job.state is JobState.DUE
        assert job.failures == 0
        assert job.why(clock.now()) == "paused"
        assert job.last_error is not None
    assert memory.work().postponed == 0, "nobody asks again before its time"
    assert all(session.state.processed_until is None for session in sessions)


def test_a_cap_pauses_visibly_and_the_next_day_goes_on(served: Served, clock: ManualClock) -> None:
    """X11, N4: the call that would exceed the cap is not made."""
    memory, server = served(lambda _: extracted(), spend_calls_per_day=2)
    for number in range(3):
        marked(memory, f"s{number}")
    report = memory.work()
    assert (report.processed, report.postponed, len(server.requests)) == (2, 1, 2)
    (job,) = [each for each in memory.status().jobs if each.kind is JobKind.EXTRACT]
    assert job.why(clock.now()) == "paused"
    assert job.last_error is not None
    assert "2 calls a day" in job.last_error
    assert job.due_at is not None
    clock.advance((job.due_at - clock.now()).total_seconds() + 1)
    assert memory.work().processed == 1
    assert memory.status().spent_today.calls == 1, "a day has its own account"


def test_a_run_has_a_budget_of_its_own(served: Served, clock: ManualClock) -> None:
    memory, server = served(lambda _: extracted(), spend_calls_per_run=1)
    for number in range(2):
        marked(memory, f"s{number}")
    assert memory.work().postponed == 1
    clock.advance(61)
    assert memory.work().processed == 1, "another run has its own"
    assert len(server.requests) == 2


def test_a_dry_run_says_what_would_be_sent_and_sends_nothing(served: Served) -> None:
    """N4."""
    memory, server = served([], model_input_price=1.0, model_output_price=1.0)
    session = marked(memory)
    plan = memory.plan()
    (planned,) = plan.sessions
    assert (planned.session.id, planned.records, planned.spent.calls) == (session.id, 1, 1)
    assert planned.prompt is not None
    assert SAID in planned.prompt
    assert plan.spent.tokens > 0
    assert plan.spent.cost_micros == plan.spent.tokens
    assert plan.extractor == "openai:scripted/prompt-3"
    assert server.requests == []
    assert session.state.processed_until is None
    assert memory.status().spent_today.calls == 0


def test_an_up_to_date_session_is_left_alone_and_a_newer_one_is_claimed_again(
    served: Served,
) -> None:
    memory, server = served([extracted(), extracted(raw_memory="## Home\nnewer")])
    session = marked(memory)
    memory.work()
    session.sleep()
    assert memory.work(all=True).processed == 0
    session.append("user", "I moved to Porto.")
    assert memory.work(all=True).processed == 1
    assert len(server.requests) == 2


def test_a_run_again_keeps_the_phase_2_baseline_of_the_one_row(served: Served) -> None:
    memory, _ = served([extracted(), extracted(raw_memory="## Home\nnewer")])
    session = marked(memory)
    memory.work()
    first = memory.space().sessions.extraction(session.id)
    session.append("user", "I moved to Porto.")
    session.sleep()
    memory.work()
    second = memory.space().sessions.extraction(session.id)
    assert first is not None
    assert second is not None
    assert second.raw_memory == "## Home\noutcome: success\nnewer"
    assert (second.usage_count, second.selected_for_phase2) == (
        first.usage_count,
        first.selected_for_phase2,
    )
    assert len(memory.space().sessions.extractions()) == 1
