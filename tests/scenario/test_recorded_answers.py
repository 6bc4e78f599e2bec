"""Recorded answers, played through everything that is made of them. X1 to X11, G8.

The requests are the product's own, over real HTTP, of the sessions in tests/fixtures/recordings;
`tools/recordings.py` says how the answers were recorded, and records them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recollect.consolidation.pages import MEMORY, SUMMARY
from recollect.models.protocol import Request
from recollect.types.facts import Fact, Trust
from recollect_conformance.scripted import ScriptedServer
from tests.hosted_agents import ON_BOTH
from tools.recordings import AGAIN, FIXTURES, Played, RecordedModel, play

SPACES = sorted(file.stem for file in (FIXTURES / "sessions").glob("*.json"))
QUESTIONS: dict[str, list[tuple[str, list[str]]]] = json.loads(
    (FIXTURES / "questions.json").read_text()
)
KEPT_MIN = 0.99
FOUND_MIN = 0.93
BLOCK_TOKENS = 1000


def steps(space: str, url: str) -> Iterator[Played]:
    """A space after each batch of its sessions; a recording that does not fit fails here."""
    model = RecordedModel.of(space, FIXTURES / "answers")
    for played in play(FIXTURES / "sessions" / f"{space}.json", url, model):
        assert not model.complaint(), model.complaint()
        yield played


@contextmanager
def played_through(space: str, url: str) -> Iterator[Played]:
    """A space after all of its sessions, while its store is open."""
    for played in steps(space, url):
        if played.is_last:
            yield played


def given_facts(space: str) -> list[dict[str, Any]]:
    stored = json.loads((FIXTURES / "answers" / f"{space}.json").read_text())
    answers = [each["answer"] for each in stored if each["name"].startswith("extraction")]
    read = [json.loads(each) if isinstance(each, str) else each for each in answers]
    return [fact for each in read for fact in each["facts"]]


def told(played: Played) -> dict[str, Fact]:
    """All facts there are, also those that were replaced, by the end of their words."""
    return {each.content: each for each in played.space.facts.list(1000, every=True)}


def found(facts: dict[str, Fact], content: str) -> Fact | None:
    return next((fact for text, fact in facts.items() if text.endswith(content)), None)


@ON_BOTH
@pytest.mark.parametrize("space", SPACES)
def test_what_a_strong_model_answers_is_kept_and_found_again(store_url: str, space: str) -> None:
    before: dict[str, Fact] = {}
    for played in steps(space, store_url):
        facts = told(played)
        assert before.keys() <= facts.keys(), "an increment lost what was learned before"
        ended = {each.superseded_by for each in facts.values()} - {None}
        assert ended <= {each.id for each in facts.values()}
        before = facts
        if not played.is_last:
            continue
        given = given_facts(space)
        lost = [each for each in given if not _is_kept(found(facts, each["content"]), each)]
        assert len(lost) <= (1 - KEPT_MIN) * len(given), lost
        blocks = {
            asked: played.space.context(asked, BLOCK_TOKENS).text for asked, _ in QUESTIONS[space]
        }
        missing = [
            asked
            for asked, told in QUESTIONS[space]
            if not all(each in blocks[asked] for each in told)
        ]
        assert len(missing) <= (1 - FOUND_MIN) * len(QUESTIONS[space]), missing


def _is_kept(fact: Fact | None, given: dict[str, Any]) -> bool:
    """Whether a fact says about whom it is, and when it happened, as it was answered."""
    if fact is None:
        return False
    day = str(given.get("when", ""))[:10]
    is_dated = not day or (
        fact.happened_from is not None and f"{fact.happened_from:%Y-%m-%d}".startswith(day)
    )
    return is_dated and list(fact.about)[: len(given.get("about", ()))] == given.get("about", [])


ENDED = {
    "nora": ["just moved to Ghent", "three items at most", "12 June 2026", "6 km one way"],
    "dana-leo": ["12 September 2026", "opens in May 2026", "Studio Barro"],
    "tidewatch": ["only on Tuesdays", "without TypeScript", "with `make test`"],
    "jonas": ["nur mit Oxalsäure", "Elektriker bei Badenova"],
    "amelie": ["végane depuis 2022"],
}


@ON_BOTH
@pytest.mark.parametrize("space", ENDED)
def test_what_changes_over_sessions_replaces_what_it_names(store_url: str, space: str) -> None:
    """A new home, a date that moves, another approver: one holds, and history has both."""
    with played_through(space, store_url) as last:
        live = "\n".join(each.content for each in last.space.facts.list(1000))
        every = "\n".join(told(last))
        assert [each for each in ENDED[space] if each not in every] == []
        assert [each for each in ENDED[space] if each in live] == []


@ON_BOTH
def test_people_who_talk_to_each_other_are_believed(store_url: str) -> None:
    """Also the one in the assistant's seat, also after many increments."""
    with played_through("dana-leo", store_url) as last:
        doubted = [
            each.content for each in last.space.facts.list(1000) if each.trust is not Trust.USER
        ]
        assert doubted == []


@ON_BOTH
def test_pages_say_what_holds_now(store_url: str) -> None:
    with played_through("nora", store_url) as last:
        page = last.space.documents.read("~/memory/people/nora").body
        assert "Hundelgemsesteenweg 88" in page
        assert "52:40" in page
        assert page.count("[[~/memory/projects/roosje|Roosje]]") == 1
        boat = last.space.documents.read("~/memory/projects/roosje").body
        assert "Launch on 19 June 2026" in boat
        handbook = last.space.documents.read(MEMORY).body
        assert "Nora always wants measurements in millimetres" in handbook
        assert "19 June 2026" in handbook
        assert "Ledeberg" in last.space.documents.read(SUMMARY).body


@ON_BOTH
def test_a_project_s_section_says_each_rule_once(store_url: str) -> None:
    with played_through("tidewatch", store_url) as last:
        handbook = last.space.documents.read(MEMORY).body
        assert handbook.count("use pnpm, not npm") == 1
        assert handbook.count("Thursdays") == 1
        assert "make image push" in handbook
        page = last.space.documents.read("~/memory/projects/gullmap").body
        assert "TypeScript in strict mode (21 April 2026)" in page


def test_a_changed_prompt_names_the_recordings_that_are_stale(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    shipped = Path(__file__).parents[2] / "src/recollect/extraction/prompts/extract-request.md"
    text = shipped.read_text().replace("Answer now", "Answer at once")
    (prompts / "extract-request.md").write_text(text)
    model = RecordedModel.of("jonas", FIXTURES / "answers", is_lenient=True)
    file = FIXTURES / "sessions" / "jonas.json"
    (*_, _last) = play(file, ":memory:", model, prompts_dir=str(prompts))
    stale = "were made for another prompt: extraction-1, extraction-2, extraction-3; "
    assert model.complaint() == f"recordings of jonas {stale}{AGAIN}"


def test_a_recording_that_is_missing_is_no_answer() -> None:
    model = RecordedModel(space="nobody", recordings={})
    with ScriptedServer(model) as server, pytest.raises(Exception, match="401"):
        server.model(model_retries=0).complete(
            Request(system="You turn new records of a session into memory.", prompt="…")
        )
    assert model.missing == ["extraction-1"]
