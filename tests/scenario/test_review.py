"""N13: what was learned waits for a person's yes, and nobody is told of it before.

Both databases; by rules, and once by a model that writes more than facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import InvalidValue, NotFound, NotWaiting
from recollect.hooks import context
from recollect.types.facts import Fact, Trust
from recollect_conformance.scripted import ScriptedServer
from tests.e2e.command_line import run, run_json
from tests.scripted_answers import extracted

SETTINGS = {"consolidation_cooldown_seconds": 0, "review": "all"}
LISBON, TEA = "The user lives in Lisbon.", "The user prefers tea over coffee."


@pytest.fixture
def memory(store_url: str) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings=SETTINGS, clock=ManualClock()) as opened:
        yield opened


def told(memory: recollect.Memory, key: str, text: str, project: str | None = None) -> str:
    session = memory.space().session(key, project=project)
    session.append("user", text)
    session.end()
    memory.work()
    return session.id


def everything_learned(memory: recollect.Memory, question: str) -> str:
    """All that an agent may be told but the records: blocks, recaps, hits, pages and texts."""
    space = memory.space()
    memory.work(all=True)
    kinds = ["summary", "document", "fact"]
    blocks = [space.context(question, 4000, kinds=kinds), space.context("")]
    nodes = space.documents.tree("~/memory", depth=9)
    return "\n".join(
        [
            *(block.text for block in blocks),
            context.at_start(memory, space.name, None, max_tokens=2000).text,
            *(hit.text for hit in space.recall(question, 50, kinds=kinds)),
            *(space.documents.read(node.path).body for node in nodes),
            *(each.raw_memory + each.rollout_summary for each in space.sessions.extractions()),
            *(fact.content for fact in space.facts.list()),
        ]
    )


def test_nothing_of_what_waits_is_told_until_it_is_accepted(memory: recollect.Memory) -> None:
    space = memory.space()
    told(memory, "one", "I live in Lisbon. I prefer tea over coffee.")
    question = "Does the user live in Lisbon and prefer tea?"
    assert "Lisbon" not in everything_learned(memory, question)
    assert [record.content for record in space.session("one").all(rotations=True)]
    assert {each.fact.content for each in space.facts.waiting()} == {LISBON, TEA}
    assert memory.status().unreviewed == 2

    assert [fact.content for fact in space.facts.accept(kind="preference")] == [TEA]
    shown = everything_learned(memory, question)
    assert TEA in shown
    assert "Lisbon" not in shown
    assert TEA in space.documents.read("~/memory/preferences").body

    told(memory, "two", "I moved to Porto. I live in Porto now.")
    space.facts.accept(person="Lisbon")
    assert LISBON in everything_learned(memory, question)
    proposed = [each for each in space.facts.waiting() if each.replaces]
    assert {each.replaces[0].content for each in proposed} == {LISBON}
    space.facts.accept(everything=True)
    shown = everything_learned(memory, question)
    assert "Porto" in shown
    assert LISBON not in [fact.content for fact in space.facts.list()]
    assert (space.facts.waiting(), memory.status().unreviewed) == ([], 0)


def test_what_waits_goes_on_waiting_when_the_setting_is_off(durable_store_url: str) -> None:
    with recollect.open(durable_store_url, settings=SETTINGS, clock=ManualClock()) as memory:
        told(memory, "one", "I live in Lisbon.")
    with recollect.open(durable_store_url, clock=ManualClock()) as memory:
        told(memory, "two", "I prefer tea over coffee. I live in Lisbon.")
        assert [fact.content for fact in memory.space().facts.list()] == [TEA]
        assert [each.fact.content for each in memory.space().facts.waiting()] == [LISBON]
        assert (memory.status().unreviewed, memory.status().review) == (1, "off")


def test_instructions_alone_may_have_to_wait(store_url: str) -> None:
    settings = {**SETTINGS, "review": "instructions"}
    with recollect.open(store_url, settings=settings, clock=ManualClock()) as memory:
        told(memory, "one", "I live in Lisbon. Always answer in German.")
        facts = memory.space().facts
        assert [fact.content for fact in facts.list()] == [LISBON]
        [proposed] = facts.waiting()
        assert "German" in proposed.fact.content
        assert "German" not in everything_learned(memory, "answer in German")


def test_a_model_says_nothing_before_it_is_reviewed(store_url: str) -> None:
    """Neither in its summary, nor on pages of a memory-agent."""
    answer = json.dumps(
        extracted(raw_memory="- The user keeps herons.", rollout_summary="On herons.")
    )
    with ScriptedServer(lambda _: answer) as server:
        settings: dict[str, Any] = {
            **SETTINGS,
            "model": "openai:scripted",
            "model_base_url": server.url,
            "consolidation_model": "rules",
        }
        with recollect.open(store_url, settings=settings, clock=ManualClock()) as memory:
            told(memory, "one", "I keep herons in the yard.")
            assert "heron" not in everything_learned(memory, "herons").lower()


def test_what_people_say_does_not_wait_and_what_agents_say_does(memory: recollect.Memory) -> None:
    facts = memory.space().facts
    assert facts.add("Ana drinks tea.").review is None
    agents = facts.add(Fact("Ana sings.", trust=Trust.AGENT))
    assert [each.id for each in facts.waiting()] == [agents.id]
    assert [fact.content for fact in facts.list()] == ["Ana drinks tea."]
    changed = facts.update(agents.id, metadata={"seen": True})
    assert changed.waits
    assert not facts.update(agents.id, "Ana sings tenor.").waits
    assert len(facts) == 2


def test_a_decision_says_which_facts_are_meant(memory: recollect.Memory) -> None:
    facts = memory.space().facts
    settled = facts.add("Ana drinks tea.")
    held = facts.add(Fact("Ana sings.", trust=Trust.AGENT))
    for decide in (facts.accept, facts.reject):
        with pytest.raises(InvalidValue, match="say which"):
            decide()
        with pytest.raises(InvalidValue, match="say which"):
            decide(held.id, everything=True)
        with pytest.raises(NotFound):
            decide("nothing")
        with pytest.raises(NotWaiting, match="does not wait"):
            decide(settled.id)
    other = memory.space("bob").facts
    assert (other.waiting(), other.accept(everything=True)) == ([], [])
    with pytest.raises(NotFound):
        other.accept(held.id)
    assert [each.id for each in facts.reject([held.id])] == [held.id]
    assert facts.get(held.id) is None


def test_a_person_reviews_on_the_command_line(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    with recollect.open(durable_store_url, settings=SETTINGS) as memory:
        memory.space().facts.add("Ana lives in Rome.")
        told(memory, "one", "I live in Lisbon. I prefer tea over coffee.", project="shop")
        told(memory, "two", "I moved to Porto.")
        memory.space().facts.accept(person="Lisbon")
        held = {each.fact.content: each.id for each in memory.space().facts.waiting()}
    listed = run("review", *store)
    assert listed.exit_code == 0, listed.output
    assert f"+ {TEA}" in listed.stdout
    assert f"- {LISBON}" in listed.stdout
    assert "to be reviewed" in run("status", *store).stdout
    in_project = run_json("review", "--project", "shop", *store)
    assert [each["fact"]["content"] for each in in_project] == [TEA]
    paged = run("review", "list", "--limit", "1", *store)
    assert "recollect review list --limit 1 --after" in paged.stderr

    edited = run("review", "edit", held[TEA], "The user prefers green tea.", *store)
    assert edited.stdout == f"Accepted fact {held[TEA]}: The user prefers green tea.\n"
    assert run("review", "accept", *store).exit_code == 2
    rejected = run_json("review", "reject", "--all", *store)
    assert all("Porto" in fact["content"] for fact in rejected)
    assert "Nothing" in run("review", *store).stderr
    refused = run("review", "accept", held[TEA], *store)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "rejected" in run("facts", "history", rejected[0]["id"], *store).stdout
    assert LISBON in [fact["content"] for fact in run_json("facts", *store)]


def test_a_person_has_something_remembered(durable_store_url: str) -> None:
    """N19: what was stored, whether it was known, what it replaced."""
    store = ("--store", durable_store_url)
    first = run("remember", "Ben lives in Porto.", *store)
    assert first.stdout.endswith(": Ben lives in Porto.\n")
    made = run_json("remember", "Ben", "moved", "to", "Faro", "in", "May", *store)
    assert made["fact"]["content"].startswith("Ben moved to Faro in May (2")
    assert made["fact"]["topic"] == "ben:home"
    assert [each["content"] for each in made["replaced"]] == ["Ben lives in Porto."]
    again = run("remember", "Ben moved to Faro in May", *store)
    assert again.stdout.startswith("Known already: fact")
    exact = "The office closes at 6."
    assert run_json("remember", exact, *store)["fact"]["content"] == exact
    with recollect.open(durable_store_url) as memory:
        assert memory.space().remember(exact).is_known
