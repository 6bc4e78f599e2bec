"""X5, X9: the three texts say what a session came to, and grow with it within a bound."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta

from recollect.extraction.piece import Block
from recollect.extraction.rules import RuleExtractor
from recollect.extraction.rules.texts import MEMORY_CHARS_MAX, SUMMARY_CHARS_MAX, slug_of
from recollect.types.facts import Draft, Extraction
from tests.tables import every_row
from tests.unit.extraction.material import (
    START,
    answered,
    at,
    called,
    extraction,
    piece,
    resulted,
    said,
    session,
)

EXTRACTOR = RuleExtractor()
CODING = (
    said(1, "Please fix the failing test. We use uv in this repo."),
    called(2, '{"command": "pytest -q"}', call_id="c2"),
    resulted(3, "E   KeyError: 'id'\n1 failed", call_id="c2"),
    called(4, json.dumps({"file_path": "/srv/shop/api.py"}), tool="Edit", call_id="c4"),
    resulted(5, "updated", tool="Edit", call_id="c4"),
    called(6, '{"command": "pytest -q"}', call_id="c6"),
    resulted(7, "4 passed", call_id="c6"),
    answered(8, "Fixed: the id was missing. Anything else?"),
    said(9, "Thanks, that works now!"),
)


def after(draft: Draft, seq: int) -> Extraction:
    """A draft as the store would give it back."""
    return extraction(
        raw_memory=draft.raw_memory,
        rollout_summary=draft.rollout_summary,
        rollout_slug=draft.rollout_slug,
        upto=draft.upto,
        source_updated_at=at(seq),
    )


def coding() -> Draft:
    return EXTRACTOR.extract(piece(*CODING, session=session(project="/srv/shop")))


def test_the_memory_of_a_coding_session_is_strict_and_compact() -> None:
    assert (
        coding().raw_memory
        == """\
---
description: Please fix the failing test
task: Please fix the failing test
task_group: /srv/shop
task_outcome: success
cwd: /srv/shop
keywords: api.py, repo, pytest, keyerror
---

## Task 1: Please fix the failing test
task: Please fix the failing test
task_group: /srv/shop
task_outcome: success
records: 1-9
### Preference signals
- In /srv/shop, the user instructs: "We use uv in this repo." [#1, user]
### Reusable knowledge
- In /srv/shop, `pytest -q` works (test). [#6-7, agent]
### Failures
- In /srv/shop, `pytest -q` failed with `KeyError: 'id'` and passed after changes to `api.py`. \
[#2-7, tool]
### References
- files: api.py"""
    )


def test_the_recap_of_a_coding_session_can_be_read() -> None:
    assert (
        coding().rollout_summary
        == """\
# Please fix the failing test

## What was asked
- Please fix the failing test. [#1]

## What came out
outcome: success
last said by the agent: Fixed: the id was missing.

## Key points
- In /srv/shop, the user instructs: "We use uv in this repo." [#1, user]
- In /srv/shop, `pytest -q` works (test). [#6-7, agent]
- In /srv/shop, `pytest -q` failed with `KeyError: 'id'` and passed after changes to `api.py`. \
[#2-7, tool]

## Files touched
- api.py"""
    )
    assert coding().rollout_slug == "fix-failing-test"


def test_a_talk_among_people_is_named_after_them() -> None:
    talk = piece(said(1, "I live in Rome.", name="Ana"), said(2, "I work at Siemens.", name="Ben"))
    draft = EXTRACTOR.extract(talk)
    assert draft.rollout_summary.startswith("# Conversation of Ana, Ben, 2026-05-01\n")
    assert draft.rollout_slug == "conversation-ana-ben-2026-05-01"


@every_row(
    ("last", "result", "outcome"),
    [
        ("Thanks, perfect!", "4 passed", "success"),
        ("Thanks, perfect!", "2 failed", "success"),
        ("Hm.", "4 passed", "success"),
        ("Hm.", "2 failed", "fail"),
        ("It still fails.", "2 failed", "fail"),
        ("That doesn't work.", "4 passed", "partial"),
    ],
)
def test_the_outcome_is_what_people_and_checks_say(last: str, result: str, outcome: str) -> None:
    blocks = (
        said(1, "We use uv here. Fix it."),
        called(2, '{"command": "pytest -q"}', call_id="c"),
        resulted(3, result, call_id="c"),
        answered(4, "Done."),
        said(5, last),
    )
    assert f"task_outcome: {outcome}\n" in EXTRACTOR.extract(piece(*blocks)).raw_memory


def test_a_background_session_says_so() -> None:
    blocks = (said(1, "Our staging server is called blue."), answered(2, "Noted."))
    draft = EXTRACTOR.extract(piece(*blocks, is_background=True))
    assert "no person took part" in draft.rollout_summary


def test_what_the_session_had_is_grown_by_what_is_new() -> None:
    """X9: the texts stand for the whole session, though only what is new was read."""
    first = coding()
    more = (said(10, "I prefer tabs over spaces."), answered(11, "Noted."))
    second = EXTRACTOR.extract(
        piece(*more, session=session(project="/srv/shop"), previous=after(first, 9))
    )
    assert second.raw_memory.count("## Task ") == 1
    assert "records: 1-11" in second.raw_memory
    assert "We use uv in this repo" in second.raw_memory
    assert "prefers tabs over spaces" in second.raw_memory
    assert "task_outcome: success" in second.raw_memory
    assert "We use uv in this repo" in second.rollout_summary
    assert "prefers tabs over spaces" in second.rollout_summary
    assert second.rollout_slug == first.rollout_slug
    assert [fact.seq for fact in second.facts] == [10]


def test_after_a_pause_a_new_task_begins() -> None:
    later = START + timedelta(days=2)
    block = dataclasses.replace(said(10, "I live in Rome."), at=later)
    second = EXTRACTOR.extract(piece(block, previous=after(coding(), 9)))
    assert "## Task 1: Please fix the failing test" in second.raw_memory
    assert "## Task 2: Session of 2026-05-03" in second.raw_memory


def test_what_another_extractor_wrote_is_kept() -> None:
    second = EXTRACTOR.extract(piece(said(2, "I live in Rome."), previous=extraction()))
    assert "## Tea\noutcome: success" in second.raw_memory
    assert second.rollout_summary.startswith("Tea was made.")
    assert "lives in Rome" in second.raw_memory
    assert second.rollout_slug == "tea"


def test_of_a_longer_memory_that_a_model_wrote_nothing_is_dropped() -> None:
    tasks = [f"## Task {number}\noutcome: success\n- a lesson of {number}" for number in range(400)]
    told = [f"Task {number} was done." for number in range(400)]
    before = extraction(raw_memory="\n\n".join(tasks), rollout_summary="\n".join(told))
    draft = EXTRACTOR.extract(piece(said(2, "I live in Rome."), previous=before))
    assert "lives in Rome" in draft.raw_memory
    assert [task for task in tasks if task not in draft.raw_memory] == []
    assert [each for each in told if each not in draft.rollout_summary] == []


def test_a_piece_with_nothing_to_say_leaves_the_texts_alone() -> None:
    draft = EXTRACTOR.extract(piece(said(10, "Thanks!"), previous=after(coding(), 9)))
    assert draft == Draft(upto=10)


def test_the_texts_stay_bounded_however_long_a_session_goes_on() -> None:
    previous: Extraction | None = None
    for number in range(1, 120):
        moment = START + timedelta(hours=8 * number)
        words = [f"I live in Town{number}x{each}, which my cousin likes." for each in range(6)]
        blocks: list[Block] = [
            dataclasses.replace(said(10 * number, " ".join(words)), at=moment),
            dataclasses.replace(answered(10 * number + 1, "I see."), at=moment),
        ]
        draft = EXTRACTOR.extract(piece(*blocks, previous=previous))
        assert len(draft.raw_memory) <= MEMORY_CHARS_MAX
        assert len(draft.rollout_summary) <= SUMMARY_CHARS_MAX
        previous = dataclasses.replace(after(draft, 1), source_updated_at=moment)
    assert previous is not None
    assert "Town119x5" in previous.raw_memory
    assert "Town119x5" in previous.rollout_summary


@every_row(
    ("words", "slug"),
    [
        (["Fix", "the", "Café!"], "fix-the-cafe"),
        (["a/b", "..", "c"], "a-b-c"),
        (["日本"], None),
        ([], None),
        (["word"] * 30, "-".join(["word"] * 12)),
        (["x" * 90], "x" * 60),
    ],
)
def test_a_slug_is_safe_and_short(words: list[str], slug: str | None) -> None:
    assert slug_of(words) == slug
