"""N10: what a person corrects is corrected everywhere: in facts, on the pages, and in recall."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.agents.withdrawing import correct
from recollect.clock import ManualClock
from recollect.space import Space

ANA = "~/memory/people/ana"


@pytest.fixture
def memory() -> Iterator[recollect.Memory]:
    settings = {"pipeline": "both", "consolidation_cooldown_seconds": 0.0}
    with recollect.open(":memory:", settings=settings, clock=ManualClock()) as opened:
        yield opened


@pytest.fixture
def space(memory: recollect.Memory) -> Space:
    space = memory.space("a")
    session = space.session("chat")
    session.append("user", "I live in Porto. I am vegetarian.", name="Ana")
    session.sleep()
    memory.work(all=True)
    assert "Porto" in space.documents.read(ANA).body
    return space


def fact_about(space: Space, word: str) -> recollect.Fact:
    return next(fact for fact in space.facts.list() if word in fact.content)


def texts(space: Space, query: str) -> list[str]:
    return [hit.text for hit in space.recall(query, kinds=["fact", "document"])]


def test_an_edited_fact_is_what_the_pages_say_at_once(
    memory: recollect.Memory, space: Space
) -> None:
    fact = fact_about(space, "Porto")
    space.facts.update(fact.id, "Ana lives in Braga.")
    page = space.documents.read(ANA)
    assert ("Porto" in page.body, "Braga" in page.body, "vegetarian" in page.body) == (
        False,
        True,
        True,
    )
    assert page.reason == "a fact was corrected"
    memory.work(all=True)
    found = texts(space, "Where does Ana live?")
    assert any("Braga" in text for text in found)
    assert not any("Porto" in text for text in found)


def test_a_deleted_fact_leaves_the_pages_at_once_and_its_history_stays(
    memory: recollect.Memory, space: Space
) -> None:
    space.facts.delete(fact_about(space, "Porto").id)
    page = space.documents.read(ANA)
    assert ("Porto" in page.body, "vegetarian" in page.body) == (False, True)
    assert "Porto" in space.documents.version(ANA, page.version - 1).body
    memory.work(all=True)
    assert not any("Porto" in text for text in texts(space, "Where does Ana live?"))


def test_a_fact_that_is_over_leaves_the_pages(space: Space) -> None:
    fact = fact_about(space, "Porto")
    space.facts.update(fact.id, valid_to="2020-01-01T00:00:00+00:00")
    assert "Porto" not in space.documents.read(ANA).body


def test_what_a_person_wrote_on_a_page_is_left_alone(space: Space) -> None:
    page = space.documents.read(ANA)
    space.documents.write(ANA, f"{page.body}\n\nShe loves Porto, and always will.\n")
    space.facts.update(fact_about(space, "Porto").id, "Ana lives in Braga.")
    body = space.documents.read(ANA).body
    assert "She loves Porto, and always will." in body
    assert "lives in Braga" in body


@pytest.mark.parametrize("edit", ["Ana's sister is called Maria.", None])
def test_nothing_is_left_of_what_was_corrected_when_its_session_is_forgotten(
    memory: recollect.Memory, space: Space, edit: str | None
) -> None:
    """P11, N10: a correction keeps what a page said before; forgetting keeps none of it."""
    session = space.session("other")
    session.append("user", "My sister is called Rita.", name="Ana")
    session.sleep()
    memory.work(all=True)
    fact = fact_about(space, "Rita")
    if edit is None:
        space.facts.delete(fact.id)
    else:
        space.facts.update(fact.id, edit)
    space.forget(session=session.id)
    tree = [node.path for node in space.documents.tree("~/memory")]
    gone = [each.path for each in space.documents.deleted("~/memory")]
    said = [each for path in (*tree, *gone) for each in space.documents.history(path)]
    assert not [each for each in said if "rita" in f"{each.title} {each.body}".lower()]
    assert not [each for each in said if "Maria" in each.body]
    assert "Porto" in space.documents.read(ANA).body


def test_of_two_edits_at_once_the_pages_say_what_the_fact_says(
    memory: recollect.Memory, space: Space
) -> None:
    fact = fact_about(space, "Porto")
    later = ["Ana lives in Lisbon."]

    def read() -> recollect.Fact | None:
        """The fact, which somebody else edits, pages and all, right after it was read."""
        known = space.facts.get(fact.id)
        while later:
            space.facts.update(fact.id, later.pop())
        return known

    correct(space.documents, fact.id, read, now=memory.clock.now())
    body = space.documents.read(ANA).body
    assert ("Porto" in body, "Lisbon" in body) == (False, True)


def test_a_fact_that_is_on_no_page_changes_none(space: Space) -> None:
    before = space.documents.tree()
    own = space.facts.add("The sky is blue.")
    space.facts.update(own.id, "The sky is grey.")
    space.facts.delete(own.id)
    assert space.documents.tree() == before
