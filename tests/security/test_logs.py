"""Logs without content: what was said, learned, answered or raised stands in no line (N9).

Names that say where something is do: those of spaces, agents, files and sessions' ids.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.profile import AgentProfile, Hooks
from recollect.errors import NotFound, PermanentFailure, RecollectError
from recollect_conformance.scripted import ScriptedServer, answer, calls, status
from recollect_conformance.scripted_frames import Received
from tests.e2e.http_world import World
from tests.hosted_agents import tool
from tests.scripted_answers import extracted, fact

CANARY = "zanzibar"
SAID = f"I moved to {CANARY}."


class Kept(logging.Handler):
    """Keeps every record."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def lines() -> Iterator[list[logging.LogRecord]]:
    """Everything that Recollect logs; at the end none of it may have the canary."""
    ours, kept = logging.getLogger("recollect"), Kept()
    level = ours.level
    ours.addHandler(kept)
    ours.setLevel(logging.DEBUG)
    yield kept.records
    ours.removeHandler(kept)
    ours.setLevel(level)
    formatter = logging.Formatter()
    shown = [f"{formatter.format(record)} {record.args!r}" for record in kept.records]
    assert [line for line in shown if CANARY in line.lower()] == []


def talk(space: recollect.Space) -> recollect.Session:
    session = space.session(f"telegram:{CANARY}", source="api", project=CANARY)
    session.append("user", SAID, name=CANARY, metadata={CANARY: CANARY}, key=f"{CANARY}-1")
    session.append("assistant", SAID)
    session.compact(summary=SAID)
    session.append("user", f"{CANARY} again, remember that I prefer {CANARY} tea.")
    session.sleep()
    return session


def test_a_whole_life_without_a_model_leaves_no_word_in_the_log(
    lines: list[logging.LogRecord], tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"data_dir": str(tmp_path), "metrics": True, "audit": "all"}
    with recollect.open(tmp_path / "memory.db", settings=settings) as memory:
        space = memory.space("alice")
        session = talk(space)
        memory.work(all=True)
        space.facts.add(SAID, tags=[CANARY], metadata={"at": CANARY})
        space.documents.write(f"~/memory/{CANARY}", SAID, title=CANARY)
        space.recall(CANARY)
        space.context(CANARY)
        with pytest.raises(NotFound):
            space.documents.read(f"~/{CANARY}")
        memory.work(all=True, again=True)
        space.forget(session=session)
        space.forget(everything=True)
    assert {record.name for record in lines} & {"recollect.phase1", "recollect.agents.memory_agent"}


@pytest.mark.parametrize(
    "script",
    [
        [status(400, f"cannot read {SAID}")],
        [status(401, f"no {CANARY} for you")],
        [status(503, f"{CANARY} is busy")],
        [f"{SAID} is no JSON"] * 2,
        [{CANARY: SAID}] * 2,
        [extracted(fact(SAID, [99], topic=CANARY))] * 2,
        [answer(extracted(fact(SAID, [1])))],
    ],
)
def test_what_a_model_or_its_provider_says_is_in_no_line(
    lines: list[logging.LogRecord], script: list[Any]
) -> None:
    with (
        ScriptedServer(script) as server,
        recollect.open(
            ":memory:",
            settings={"model_base_url": server.url, "model_retries": 0},
            model="openai:scripted",
        ) as memory,
    ):
        talk(memory.space("alice"))
        memory.work()
        told = [job.last_error or "" for job in memory.status().jobs]
        assert server.requests
    assert lines or not told


@pytest.mark.parametrize("error", [ValueError(SAID), PermanentFailure(SAID), RecollectError(SAID)])
def test_what_a_processor_raises_is_told_by_its_class(
    lines: list[logging.LogRecord], error: Exception
) -> None:
    class Broken:
        def process(self, work: recollect.Work) -> recollect.Verdict:
            raise error

    with recollect.open(":memory:") as memory:
        talk(memory.space("alice"))
        memory.work(Broken())
        assert CANARY in (memory.status().jobs[0].last_error or "")
    assert [line for line in lines if type(error).__name__ in line.getMessage()]


def test_what_happens_in_a_turn_is_in_no_line(lines: list[logging.LogRecord]) -> None:
    """A tool, a hook and a model that fail, with the canary in all that they say."""

    def broken(_: object) -> None:
        raise ValueError(SAID)

    def play(received: Received) -> Any:
        is_last = "tool" in {message.role for message in received.messages}
        return status(400, SAID) if is_last else calls(("look", {"for": CANARY}))

    with (
        ScriptedServer(play) as server,
        recollect.open(
            ":memory:",
            settings={"model_base_url": server.url, "model_retries": 0, "job_failures_max": 1},
            model="openai:scripted",
        ) as memory,
        memory.agents(
            default=AgentProfile(tools=[tool("look", broken)]),
            hooks=Hooks(before=broken, after=broken),
        ) as system,
        pytest.raises(RecollectError),
    ):
        system.ask("assistant", SAID, space="alice")
    said = " ".join(line.getMessage() for line in lines)
    assert "the hook before failed: ValueError" in said
    assert "tool look failed: ValueError" in said


def test_no_request_is_in_the_log_of_the_server(lines: list[logging.LogRecord]) -> None:
    with recollect.open(":memory:") as memory:
        world = World(memory)
        secret = world.key("alice")
        for path in (f"/v1/spaces/alice/facts?q={CANARY}", f"/v1/{CANARY}", f"/{CANARY}"):
            world.ask("GET", path, secret, headers={"X-Request-Id": f"{CANARY}!"})
        world.ask("POST", "/v1/spaces/alice/facts", secret, json={"content": SAID})
        world.ask("POST", "/v1/spaces/alice/facts", secret, json={CANARY: [SAID]})
        world.ask("GET", f"/v1/spaces/{CANARY}", CANARY)
        memory.close()
        world.ask("GET", "/v1/spaces/alice/facts/" + CANARY, secret)
    assert len([line for line in lines if line.name == "recollect.interfaces.http.app"]) == 7
