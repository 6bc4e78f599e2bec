"""Consolidation by a model at the default top N, with default budgets. G9, A9; finding L-4.

The scripted model behaves as real ones do: it knows what it is shown, opens what it is curious
about, writes as much as it sees fit, and its answer ends where its tokens do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recollect.config import Settings
from recollect.consolidation.pages import MEMORY, SUMMARY
from recollect.models.protocol import ChatRole, Usage
from recollect.processing import Verdict, Work
from recollect.types.facts import Draft
from recollect.types.records import Outcome
from recollect_conformance.scripted import Scripted, answer, calls
from recollect_conformance.scripted_frames import Ending, Received
from tests.consolidated_spaces import Open, asked, opening, told, wants_summary

pytestmark = pytest.mark.parametrize("store_url", ["sqlite-file"], indirect=True)

SESSIONS = Settings().consolidation_top_n
BUDGET = Settings().agent_tokens_max
GROUPS = 40
CHARS_PER_TOKEN = 4
LESSONS = 20
OPENED = 2  # sessions that the model opens for a part


def group_of(number: int) -> str:
    return f"service-{number % GROUPS:02}"


def raw_memory(number: int) -> str:
    """Of 3 KB, as an extraction leaves them."""
    lessons = "\n".join(
        f"- lesson {number}.{each}: `make check-{number}-{each}` fails on {group_of(number)} until "
        "the cache below build/ is removed; the user asked for this to be done first."
        for each in range(LESSONS)
    )
    return (
        f"---\ndescription: Repair of {group_of(number)}\ntask_group: {group_of(number)}\n"
        f"task_outcome: success\nkeywords: cache, build\n---\n\n## Task 1\n\n{lessons}\n"
    )


class Extracted:
    """Phase 1 as if a model had done it."""

    def process(self, work: Work) -> Verdict:
        number = int(work.session.key)
        told = f"{group_of(number)} was repaired after check {number} had failed. " * 6
        draft = Draft(
            upto=work.records[-1].seq,
            raw_memory=raw_memory(number),
            rollout_summary=f"# Repair {number}\n\n{told}",
            rollout_slug=f"repair-{group_of(number)}",
        )
        return Verdict(outcome=Outcome.EXTRACTED, draft=draft, extractor="model")


@dataclass
class Writer:
    """Opens some sessions of each part, then writes a line of each, as long as it may be.

    Its first answer is cut off in the middle, and goes on where it stopped.
    """

    tokens: int = 0
    cut: int = 0
    largest: int = 0
    sections: set[str] = field(default_factory=set)

    def __call__(self, received: Received) -> Scripted:
        done = sum(each.role is ChatRole.TOOL for each in received.messages)
        names = [n for each in asked(received) for n in told(received, each) if n[0] == "s"]
        if done < min(OPENED, len(names)):
            wanted = {"session": names[done]}
            return calls(("session_read", wanted), usage=self.usage(received, json.dumps(wanted)))
        said = [each.text for each in received.messages if each.role is ChatRole.ASSISTANT]
        text = self.written(received).removeprefix("".join(said))
        if not self.cut:
            self.cut += 1
            part = text[: len(text) // 2]
            return answer(part, usage=self.usage(received, part), ending=Ending.LENGTH)
        return answer(text, usage=self.usage(received, text))

    def written(self, received: Received) -> str:
        if wants_summary(received):
            return "Somebody who repairs services."
        self.sections.update(asked(received))
        sections = []
        for each in asked(received):
            lines = told(received, each)
            (most,) = re.findall(f"“{each}” at most ([\\d,]+) bytes", received.prompt)
            chars = int(most.replace(",", "")) // len(lines) - 4
            listed = (f"- {text[:chars]} [{name}]" for name, text in lines.items())
            sections.append("\n".join([f"## {each}", *listed]))
        return "\n\n".join(sections)

    def usage(self, received: Received, text: str) -> Usage:
        """What a provider would count."""
        sent: Mapping[str, object] = received.body
        size = len(json.dumps(sent, ensure_ascii=False)) // CHARS_PER_TOKEN
        self.largest = max(self.largest, size)
        self.tokens += size + len(text) // CHARS_PER_TOKEN + 1
        return Usage(input_tokens=size, output_tokens=len(text) // CHARS_PER_TOKEN + 1)


@pytest.fixture
def opened(store_url: str, tmp_path: Path) -> Iterator[Open]:
    with opening(store_url, tmp_path / "published") as found:
        yield found


def test_as_many_sessions_as_are_selected_are_consolidated_with_default_budgets(
    opened: Open,
) -> None:
    writer = Writer()
    here = opened(writer, worker_batch=SESSIONS)
    for number in range(SESSIONS):
        here.told(str(number), "Repair it.")
    report = here.memory.worker(Extracted()).drain()
    assert (report.processed, report.generations) == (SESSIONS, 1)
    generation, body = here.space.generations.get(), here.body(MEMORY)
    raw_tokens = sum(len(raw_memory(number)) for number in range(SESSIONS)) // CHARS_PER_TOKEN
    assert generation.made_by.startswith("openai:scripted/")
    assert "left to the rules" not in generation.note
    assert all(f"on {group_of(each)}\n" in body for each in range(GROUPS))
    assert all(f"check {each} had failed" in body for each in range(SESSIONS))
    assert here.body(SUMMARY) == "Somebody who repairs services."
    assert len(re.findall(r"\[\[.*?\]\]", body)) >= SESSIONS, "where to read more"
    assert writer.tokens < BUDGET
    assert writer.tokens < 1.5 * raw_tokens
    asked_before = len(here.server.requests)
    here.told("256", "Repair it.")
    here.clock.advance(10)
    here.memory.worker(Extracted()).drain()
    assert len(here.server.requests) - asked_before <= 6, "what changed, and the summary"
