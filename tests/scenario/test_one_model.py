"""L-3: one model does everything unless another is named, and what each job takes can be seen."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.consolidation.pages import MEMORY
from recollect.models.protocol import ChatRole
from recollect.types.status import ModelUse
from recollect_conformance.scripted import Scripted, ScriptedServer, calls, status
from recollect_conformance.scripted_frames import Received
from tests.consolidated_spaces import keeper
from tests.hosted_agents import ON_BOTH, is_memory_agents
from tests.scripted_answers import extracted, fact

SPACE = "alice"
SAID = "I live in Lisbon."
PAGE = "~/memory/places"
RULES = {"extractor": "rules", "memory_agent_model": "rules", "consolidation_model": "rules"}
PURPOSES = {"extract": "extractor", "memory-agent": "memory_agent_model"}
PURPOSES |= {"consolidate": "consolidation_model"}
DAY = 86_400.0


def player(received: Received) -> Scripted:
    """A model that does all three jobs."""
    if not received.tools:
        return extracted(fact("The user lives in Lisbon.", [1], quote=SAID))
    if not is_memory_agents(received):
        return keeper(received)
    if received.messages[-1].role is ChatRole.TOOL:
        return "Filed."
    return calls(("document_write", {"path": PAGE, "body": "# Places\n\n- Lisbon, by a model"}))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(clock: ManualClock) -> Iterator[ScriptedServer]:
    with ScriptedServer(player) as server:
        yield server


def talk(memory: recollect.Memory, *keys: str) -> None:
    for key in keys or ("k",):
        session = memory.space(SPACE).session(key, "assistant")
        session.append("user", SAID, name="Alice")
        session.sleep()


def asked(memory: recollect.Memory) -> Counter[str]:
    """How often a model was asked, by purpose, as the ledger has it."""
    found = memory.store.ledger.calls(SPACE, None, 100, None)
    return Counter(call.purpose for call in found)


def uses(memory: recollect.Memory) -> dict[str, ModelUse]:
    return {use.job: use for use in memory.status().models}


WAYS: dict[str, Callable[[ScriptedServer, ManualClock], dict[str, Any]]] = {
    "settings": lambda server, _: {
        "settings": {"model": "openai:scripted", "model_base_url": server.url}
    },
    "name": lambda server, _: {
        "model": "openai:scripted",
        "settings": {"model_base_url": server.url},
    },
    "object": lambda server, clock: {"model": server.model(clock=clock), "settings": {}},
}


@ON_BOTH
@pytest.mark.parametrize("way", WAYS)
def test_a_model_alone_distils_files_and_writes_the_handbook(
    store_url: str, server: ScriptedServer, clock: ManualClock, way: str
) -> None:
    with recollect.open(store_url, **WAYS[way](server, clock), clock=clock) as memory:
        talk(memory)
        report = memory.work()
        assert (report.processed, report.failed, report.generations) == (1, 0, 1)
        assert asked(memory) == {"extract": 1, "memory-agent": 1, "consolidate": 3}
        space = memory.space(SPACE)
        assert [each.content for each in space.facts.list()] == ["The user lives in Lisbon."]
        assert "by a model" in space.documents.read(PAGE).body
        assert space.generations.get().made_by.startswith("openai:scripted/")


@ON_BOTH
@pytest.mark.parametrize("off", PURPOSES)
def test_rules_do_the_one_job_that_is_set_to_rules(
    store_url: str, server: ScriptedServer, clock: ManualClock, off: str
) -> None:
    settings = {PURPOSES[off]: "rules", "model": "openai:scripted", "model_base_url": server.url}
    with recollect.open(store_url, settings=settings, clock=clock) as memory:
        talk(memory)
        report = memory.work()
        assert (report.processed, report.failed, report.generations) == (1, 0, 1)
        assert set(asked(memory)) == set(PURPOSES) - {off}
        space = memory.space(SPACE)
        assert space.facts.list()
        assert space.documents.search("Lisbon"), "it was filed, by whomever"
        assert "Lisbon" in space.documents.read(MEMORY).body or off != "consolidate"


@pytest.mark.parametrize("way", ["file", "environment"])
def test_a_settings_file_or_the_environment_names_the_model_and_switches_a_job_off(
    durable_store_url: str,
    server: ScriptedServer,
    clock: ManualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    wanted = {"model": "openai:scripted", "model_base_url": server.url}
    wanted |= {"memory_agent_model": "rules"}
    file = tmp_path / "recollect.toml"
    file.write_text("".join(f'{name} = "{value}"\n' for name, value in wanted.items()))
    if way == "environment":
        file.write_text("")
        for name, value in wanted.items():
            monkeypatch.setenv(f"RECOLLECT_{name.upper()}", value)
    with recollect.open(durable_store_url, settings=file, clock=clock) as memory:
        talk(memory)
        memory.work()
        assert set(asked(memory)) == {"extract", "consolidate"}


def test_each_job_may_have_a_model_of_its_own(clock: ManualClock) -> None:
    with contextlib.ExitStack() as stack:
        one, two, three = (stack.enter_context(ScriptedServer(player)) for _ in range(3))
        memory = stack.enter_context(
            recollect.open(
                ":memory:",
                settings={},
                model=one.model(clock=clock),
                memory_agent_model=two.model(clock=clock),
                consolidation_model=three.model(clock=clock),
                clock=clock,
            )
        )
        talk(memory)
        memory.work()
        assert [len(each.requests) for each in (one, two, three)] == [1, 1, 3]


def test_a_model_for_one_job_alone_leaves_the_others_to_rules(
    server: ScriptedServer, clock: ManualClock
) -> None:
    with recollect.open(
        ":memory:", settings={}, consolidation_model=server.model(clock=clock), clock=clock
    ) as memory:
        talk(memory)
        memory.work()
        assert set(asked(memory)) == {"consolidate"}
        by = {job: use.by for job, use in uses(memory).items()}
        assert (by["extraction"], by["memory-agent"]) == ("rules", "rules")


@ON_BOTH
def test_a_model_that_cannot_call_tools_leaves_the_filing_to_rules(
    store_url: str, clock: ManualClock
) -> None:
    def without_tools(received: Received) -> Scripted:
        return status(400, "no tools here") if received.tools else player(received)

    with (
        ScriptedServer(without_tools) as server,
        recollect.open(
            store_url,
            settings={"model_base_url": server.url, "consolidation": "off"},
            model="openai:scripted",
            clock=clock,
        ) as memory,
    ):
        talk(memory)
        report = memory.work()
        assert (report.processed, report.failed) == (1, 0)
        assert "Lisbon" in memory.space(SPACE).documents.search("Lisbon")[0].body


# what it costs


@ON_BOTH
def test_the_status_says_who_does_each_job_and_what_it_took_today_and_in_all(
    store_url: str, server: ScriptedServer, clock: ManualClock
) -> None:
    settings = {
        "model": "openai:scripted",
        "model_base_url": server.url,
        "model_input_price": 2.0,
        "model_output_price": 10.0,
    }
    with recollect.open(store_url, settings=settings, clock=clock) as memory:
        nothing = uses(memory)
        assert {use.by for use in nothing.values()} == {"openai:scripted", "off"}
        assert not any(use.in_all.calls for use in nothing.values())
        talk(memory)
        memory.work()
        first = uses(memory)
        assert {job: use.today.calls for job, use in first.items()} == {
            "extraction": 1,
            "memory-agent": 1,
            "consolidation": 3,
            "chat": 0,
            "embedding": 0,
        }
        assert all(use.today == use.in_all for use in first.values())
        total = memory.status(SPACE).spent_today
        assert sum(use.today.tokens for use in first.values()) == total.tokens > 0
        assert sum(use.today.cost_micros or 0 for use in first.values()) == total.cost_micros
        clock.advance(DAY)
        talk(memory, "another")
        memory.work()
        later = uses(memory)["extraction"]
        assert (later.today.calls, later.in_all.calls) == (1, 2)
        assert not any(use.in_all.calls for use in memory.status("bob").models)


def test_a_plan_names_the_jobs_that_it_cannot_reckon(
    server: ScriptedServer, clock: ManualClock
) -> None:
    settings = {"model_base_url": server.url, "consolidation_model": "rules"}
    with recollect.open(
        ":memory:", settings=settings, model="openai:scripted", clock=clock
    ) as memory:
        talk(memory)
        plan = memory.plan()
        assert plan.spent.calls == 1
        assert plan.not_included == {"memory-agent": "openai:scripted"}
        assert server.requests == []
    with recollect.open(":memory:", settings=RULES | settings, clock=clock) as memory:
        assert memory.plan().not_included == {}


# what it may cost


@ON_BOTH
def test_the_calls_of_a_day_are_capped_for_all_jobs_together(
    store_url: str, server: ScriptedServer, clock: ManualClock
) -> None:
    settings = {"model_base_url": server.url, "spend_calls_per_day": 2}
    with recollect.open(
        store_url, settings=settings, model="openai:scripted", clock=clock
    ) as memory:
        talk(memory)
        report = memory.work()
        assert (report.failed, report.generations) == (0, 1)
        made_by = memory.space(SPACE).generations.get().made_by
        assert made_by.startswith("rules"), "what waits for a model has not failed"
        assert len(server.requests) == memory.status().spent_today.calls == 2


@ON_BOTH
def test_the_calls_of_a_run_are_capped_for_all_jobs_together(
    store_url: str, server: ScriptedServer, clock: ManualClock
) -> None:
    settings = {"model_base_url": server.url, "spend_calls_per_run": 2}
    with recollect.open(
        store_url, settings=settings, model="openai:scripted", clock=clock
    ) as memory:
        talk(memory)
        memory.work()
        assert len(server.requests) == 2
        assert memory.space(SPACE).generations.get().made_by.startswith("rules")
        clock.advance(3600)
        assert memory.work().generations == 1, "another run has a budget of its own"
        assert memory.space(SPACE).generations.get().made_by.startswith("openai:scripted")


# without its key


def test_who_only_forgets_needs_no_key_for_a_model(
    durable_store_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application may have no key, where a worker elsewhere has one."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with recollect.open(durable_store_url, settings={}, clock=clock) as memory:
        talk(memory)
        memory.work()
    with recollect.open(
        durable_store_url, settings={}, model="openai:elsewhere", clock=clock
    ) as memory:
        space = memory.space(SPACE)
        session = space.find_session("k", "assistant")
        assert session is not None
        assert space.forget(session=session.id).is_complete
        assert len(space.generations.list()) == 2
        assert uses(memory)["consolidation"].by == "openai:elsewhere"
