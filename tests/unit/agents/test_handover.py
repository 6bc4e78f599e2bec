"""What a session goes through: extraction, the memory-agent, or both; and what is handed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import NotFound
from recollect.processing import MEMORY_AGENT, HandingProcessor, Verdict, Work
from recollect.types.facts import Draft, NewFact, Trust
from recollect.types.records import Outcome
from tests.tables import every_row

SAID = "My favourite colour is teal."


class Extractor:
    """Finds nothing, or one thing."""

    name = "scripted/1"

    def __init__(self, *, finds: bool) -> None:
        self.finds = finds
        self.seen = 0

    def process(self, work: Work) -> Verdict:
        self.seen += 1
        first = work.records[0]
        fact = NewFact(content="x", seq=1, seq_to=1, valid_from=first.at, trust=Trust.USER)
        facts = (fact,) if self.finds else ()
        outcome = Outcome.EXTRACTED if self.finds else Outcome.NO_OUTPUT
        return Verdict(outcome=outcome, draft=Draft(upto=work.upto, facts=facts))


def handing(extraction: Any = None, *, reads_all: bool = False) -> HandingProcessor:
    return HandingProcessor(
        extraction=extraction, reads_all=reads_all, ensure_root=lambda _space: None
    )


def facts(count: int) -> Draft:
    now = ManualClock().now()
    fact = NewFact(content="x", seq=1, seq_to=1, valid_from=now, trust=Trust.USER)
    return Draft(upto=1, facts=(fact,) * count)


@every_row(
    ("verdict", "by_rules", "by_model"),
    [
        (Verdict(outcome=Outcome.HANDED_OVER), True, True),
        (Verdict(outcome=Outcome.EXTRACTED, draft=facts(1)), True, True),
        (Verdict(outcome=Outcome.EXTRACTED, draft=facts(0)), False, True),
        (Verdict(outcome=Outcome.NO_OUTPUT), False, True),
        (Verdict(outcome=Outcome.NO_OUTPUT, draft=facts(1)), True, True),
        (Verdict(outcome=Outcome.SKIPPED), False, False),
        (Verdict(outcome=Outcome.EXTERNAL), False, False),
    ],
)
def test_what_is_handed_over(verdict: Verdict, by_rules: bool, by_model: bool) -> None:
    """By rules it files facts; a model reads what was said. What is skipped is nobody's."""
    assert handing().hands_over(verdict) is by_rules
    assert handing(reads_all=True).hands_over(verdict) is by_model


def test_its_name_is_the_extractors_so_that_what_was_staged_is_known_again() -> None:
    assert handing().name == MEMORY_AGENT
    assert handing(Extractor(finds=True)).name == "scripted/1"


PIPELINES: Mapping[str, tuple[bool, bool]] = {  # facts are extracted, pages are filed
    "both": (True, True),
    "extraction": (True, False),
    "memory-agent": (True, True),  # no model reads: pages are rendered from facts
    "none": (False, False),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_settings_choose_what_a_session_goes_through(pipeline: str) -> None:
    with recollect.open(
        ":memory:", settings={"pipeline": pipeline, "consolidation": "off"}, clock=ManualClock()
    ) as memory:
        space = memory.space("alice")
        session = space.session("k")
        session.append("user", SAID, name="Alice")
        session.sleep()
        memory.work()
        is_extracted, is_filed = PIPELINES[pipeline]
        assert session.state.processed_until == 1
        assert bool(space.facts.search("teal")) is is_extracted
        assert bool(space.documents.search("teal")) is is_filed
        agents = [each.ref.agent_id for each in memory.store.agents.list("alice", 10)]
        assert agents == (["/memory-agent/assistant"] if is_filed else [])


def test_both_is_the_default_and_its_driver_is_the_rules() -> None:
    with recollect.open(":memory:", settings={}) as memory:
        assert memory.settings.pipeline == "both"
        assert memory.settings.memory_agent_model is None


def test_a_space_that_was_emptied_gets_its_root_again() -> None:
    """A5: a root is there as soon as something is filed, in a process that goes on as well."""
    with recollect.open(":memory:", settings={}, clock=ManualClock()) as memory:
        space = memory.space("alice")
        for _ in range(2):
            session = space.session("k")
            session.append("user", SAID)
            session.sleep()
            memory.work()
            root = space.documents.read("~/memory")
            assert root.title == "Memory"
            space.forget(everything=True)
            with pytest.raises(NotFound):
                space.documents.read("~/memory")


def test_what_had_no_facts_is_not_handed_over_by_rules() -> None:
    with recollect.open(":memory:", settings={}, clock=ManualClock()) as memory:
        session = memory.space("alice").session("k")
        session.append("user", "ok")
        session.sleep()
        memory.work()
        assert session.state.processed_until == 1
        assert memory.store.agents.list("alice", 10) == []
