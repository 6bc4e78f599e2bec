"""P3, P5 and P7 while a model works: killed, told to stop or overtaken in the middle of a call.

The worker is the command as users run it; the model is scripted and holds its answer back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.processing import WorkReport
from recollect.types.facts import CallOutcome
from recollect.types.records import JobKind, JobState
from recollect_conformance.scripted import Gate, ScriptedServer, held
from recollect_conformance.scripted_frames import Received
from tests.crash.worker_child import wait_for
from tests.scripted_answers import OTHERS_BY_RULES, extracted, fact

SECONDS = 30
LEASE: dict[str, Any] = {"lease_seconds": 0.5, "worker_tick_seconds": 0.05} | OTHERS_BY_RULES
SAID = "I live in Lisbon."
ANSWER = extracted(fact("The user lives in Lisbon.", [1], quote=SAID))


@contextmanager
def worker(url: str, server: ScriptedServer, **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """`recollect worker` as a process of its own."""
    given = {"model": "openai:scripted", "model_base_url": server.url} | LEASE | settings
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")
    } | {f"RECOLLECT_{name.upper()}": str(value) for name, value in given.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "recollect", "worker", "--store", url],
        env=environment,
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


class Script:
    """Holds the first call back, and answers every other at once."""

    def __init__(self) -> None:
        self.gate = Gate()
        self._is_first = True

    def __call__(self, _: Received) -> Any:
        if self._is_first:
            self._is_first = False
            return held(self.gate, ANSWER)
        return ANSWER


def marked(memory: recollect.Memory) -> recollect.Session:
    session = memory.space("alice").session("k", agent="assistant")
    session.append("user", SAID)
    session.sleep()
    return session


def learned(memory: recollect.Memory) -> list[tuple[str, int]]:
    return [(each.content, len(each.sources)) for each in memory.space("alice").facts.list()]


def test_a_worker_killed_in_the_middle_of_a_call_leaves_nothing_and_is_replaced(
    durable_store_url: str,
) -> None:
    script = Script()
    with (
        ScriptedServer(script) as server,
        recollect.open(durable_store_url, settings=LEASE) as memory,
    ):
        session = marked(memory)
        with worker(durable_store_url, server) as victim:
            assert script.gate.arrived.wait(SECONDS)
            victim.kill()
            assert victim.wait(SECONDS) == -signal.SIGKILL
        assert learned(memory) == []
        assert session.state.processed_until is None
        with worker(durable_store_url, server):
            wait_for(lambda: session.state.processed_until == 1)
        assert learned(memory) == [("The user lives in Lisbon.", 1)]
        calls = memory.space("alice").sessions.calls(session.id)
        assert [call.outcome for call in calls] == [CallOutcome.ANSWERED, CallOutcome.RESERVED]
        assert [call.attempt for call in calls] == [2, 1], "a takeover counts as an attempt"
        spent = memory.status().spent_today
        assert spent.calls == 2, "what a dead call may have taken stays in the books"
        script.gate.open()


def test_a_worker_told_to_stop_in_the_middle_of_a_call_gives_the_job_back_unharmed(
    durable_store_url: str,
) -> None:
    script = Script()
    with (
        ScriptedServer(script) as server,
        recollect.open(durable_store_url, settings=LEASE) as memory,
    ):
        session = marked(memory)
        with worker(durable_store_url, server, worker_grace_seconds=0.05) as told:
            assert script.gate.arrived.wait(SECONDS)
            told.send_signal(signal.SIGTERM)
            assert told.wait(SECONDS) == 0, told.stdout and told.stdout.read()
        job = memory.store.leases.get("alice", JobKind.EXTRACT, session.id)
        assert job is not None
        assert (job.state, job.failures, job.takeovers) == (JobState.DUE, 0, 0)
        assert learned(memory) == []
        with worker(durable_store_url, server):
            wait_for(lambda: session.state.processed_until == 1)
        assert learned(memory) == [("The user lives in Lisbon.", 1)]
        script.gate.open()


def test_an_answer_that_comes_after_somebody_else_has_recorded_changes_nothing(
    durable_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that cannot renew is overtaken; not by SIGSTOP, which may freeze a transaction."""
    script = Script()
    with (
        ScriptedServer(script) as server,
        recollect.open(
            durable_store_url,
            settings={"model": "openai:scripted", "model_base_url": server.url} | LEASE,
        ) as memory,
    ):
        session = marked(memory)
        zombie = memory.worker(owner="zombie")
        monkeypatch.setattr(zombie, "renew_leases", lambda: None)
        report = WorkReport()
        thread = threading.Thread(target=lambda: report.add(zombie.tick()))
        thread.start()
        assert script.gate.arrived.wait(SECONDS)
        with worker(durable_store_url, server):
            wait_for(lambda: session.state.processed_until == 1)
        before = (learned(memory), memory.space("alice").sessions.ranges(session.id))
        script.gate.open()
        thread.join(SECONDS)
        assert (report.processed, report.stale) == (0, 1)
        assert (learned(memory), memory.space("alice").sessions.ranges(session.id)) == before


def test_the_lease_is_renewed_for_as_long_as_the_model_works(durable_store_url: str) -> None:
    script = Script()
    with (
        ScriptedServer(script) as server,
        recollect.open(durable_store_url, settings=LEASE) as memory,
    ):
        session = marked(memory)
        with worker(durable_store_url, server):
            assert script.gate.arrived.wait(SECONDS)
            first = memory.store.leases.get("alice", JobKind.EXTRACT, session.id)
            assert first is not None
            assert first.lease_expires_at is not None
            expires_at = first.lease_expires_at

            def is_renewed() -> bool:
                job = memory.store.leases.get("alice", JobKind.EXTRACT, session.id)
                assert job is not None
                assert (job.state, job.token) == (JobState.CLAIMED, first.token)
                return job.lease_expires_at is not None and (
                    job.lease_expires_at - expires_at
                ).total_seconds() > 2 * float(LEASE["lease_seconds"])

            wait_for(is_renewed)
            script.gate.open()
            wait_for(lambda: session.state.processed_until == 1)
        assert len(server.requests) == 1
