"""Consolidation by a model at the default top N, with default budgets. G9, A9; finding L-4.

The scripted model behaves as real ones do: it knows what it is shown, it writes as much as it sees
fit, and its answer ends where its tokens do.
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
from recollect_conformance.scripted import Called, Scripted, answer, calls
from recollect_conformance.scripted_frames import Ending, Received
from tests.consolidated_spaces import SPACE, Open, opening

pytestmark = pytest.mark.parametrize("store_url", ["sqlite-file"], indirect=True)

SESSIONS = Settings().consolidation_top_n
GROUPS = 40
CHARS_PER_TOKEN = 4
LESSONS = 12  # of the longest memory

_SHOWN = re.compile(r"- \[added\] (\S+) (\S+)\n(`{3,})\n(.*?)\n\3", re.DOTALL)
_GROUP = re.compile(r"- task_group: (.+)")
_LESSON = re.compile(r"- (lesson .+)")


def group_of(number: int) -> str:
    return f"service-{number % GROUPS:02}"


def raw_memory(number: int) -> str:
    """1 to 3 KB, as an extraction leaves them."""
    count = LESSONS // 3 + number % (LESSONS - LESSONS // 3 + 1)
    lessons = "\n".join(
        f"- lesson {number}.{each}: `make check-{number}-{each}` fails on {group_of(number)} until "
        "the cache below build/ is removed; the user asked for this to be done first, every time, "
        "and said that a green run without it proves nothing."
        for each in range(count)
    )
    return (
        f"---\ndescription: Repair of {group_of(number)}\ntask_group: {group_of(number)}\n"
        f"task_outcome: success\nkeywords: cache, build\n---\n\n## Task 1\n\n{lessons}\n"
    )


class Extracted:
    """Phase 1 as if a model had done it."""

    def process(self, work: Work) -> Verdict:
        number = int(work.session.key)
        draft = Draft(
            upto=work.records[-1].seq,
            raw_memory=raw_memory(number),
            rollout_summary=f"# Repair {number}\n\n{group_of(number)} was repaired.",
            rollout_slug=f"repair-{group_of(number)}",
        )
        return Verdict(outcome=Outcome.EXTRACTED, draft=draft, extractor="model")


@dataclass
class Writer:
    """Writes a part of the handbook for each task group that it is shown, at first with every word.

    Told that it was cut off, it writes less, in pieces. The summary is written where it is asked
    for.
    """

    cut: int = 0
    groups: set[str] = field(default_factory=set)

    def __call__(self, received: Received) -> Scripted:
        chars = CHARS_PER_TOKEN * int(received.body["max_tokens"])
        request, *rest = received.messages
        done = sum(each.role is ChatRole.TOOL for each in rest)
        was_cut = any(each.role is ChatRole.USER and "cut off" in each.text for each in rest)
        body = self.handbook(request.text, lessons=1 if was_cut else LESSONS)
        pieces = list(in_pieces(body, chars // 2)) if was_cut else [body]
        given: list[Called] = [
            ("document_append", {"path": MEMORY, "text": piece}) for piece in pieces if piece
        ]
        if "and leave ~/memory/memory_summary" not in request.text:
            short = "Somebody who repairs services."
            given.append(("document_write", {"path": SUMMARY, "body": short}))
        if done >= len(given):
            return answer("Done.", usage=usage(received, "Done."))
        name, arguments = given[done] if was_cut else given[0]
        text = json.dumps(arguments)
        if len(text) > chars:
            self.cut += 1
            part = text[:chars]
            return calls((name, part), usage=usage(received, part), ending=Ending.LENGTH)
        return calls((name, arguments), usage=usage(received, text))

    def handbook(self, request: str, lessons: int) -> str:
        """What it would add to the handbook: lines of each session, and sources below them."""
        found: dict[str, list[tuple[str, str]]] = {}
        for day, path, _, text in _SHOWN.findall(request):
            (group,) = _GROUP.findall(text)
            said = "\n".join(f"- {each[:150]}" for each in _LESSON.findall(text)[:lessons])
            found.setdefault(group, []).append((said, f"[[{path}|{day}]]"))
        self.groups.update(found)
        parts = []
        for group, lines in found.items():
            claims = "\n".join(said for said, _ in lines)
            sources = ", ".join(link for _, link in lines[:5])
            parts.append(f"## {group}\n\n{claims}\n\nSources: {sources}\n\n")
        return "".join(parts)


def in_pieces(body: str, chars: int) -> Iterator[str]:
    piece = ""
    for part in re.split(r"(?=^## )", body, flags=re.MULTILINE):
        if piece and len(piece) + len(part) > chars:
            yield piece
            piece = ""
        piece += part
    yield piece


def usage(received: Received, text: str) -> Usage:
    """What a provider would count."""
    sent: Mapping[str, object] = received.body
    return Usage(
        input_tokens=len(json.dumps(sent)) // CHARS_PER_TOKEN,
        output_tokens=len(text) // CHARS_PER_TOKEN + 1,
    )


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
    raw_tokens = sum(len(raw_memory(number)) for number in range(SESSIONS)) // CHARS_PER_TOKEN
    generation = here.space.generations.get()
    body = here.body(MEMORY)
    links = sum(map(len, re.findall(r"\[\[.*?\]\]", body)))
    assert generation.made_by.startswith("openai:scripted/")
    assert writer.groups == {group_of(number) for number in range(GROUPS)}
    assert all(f"## {group}\n" in body for group in writer.groups)
    assert here.body(SUMMARY) == "Somebody who repairs services."
    assert writer.cut > 0, "an answer was too long, and the model was told"
    assert links < 0.4 * len(body)
    assert generation.spent.tokens < 7 * raw_tokens, "although every part was begun twice"
    assert generation.spent.calls < SESSIONS / 4
    assert here.memory.status(SPACE).spent_today.calls >= generation.spent.calls
