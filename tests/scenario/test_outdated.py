"""What was corrected, deleted or replaced does not come back as if it held: T-2, rows T4 and T6.

At once after the change, without a new pass, on both databases.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.clock import ManualClock

ALLERGY = "I am allergic to walnuts."
HOME = "I live in Lisbon with my two cats, and I work as a nurse at the harbour clinic."
ASKED = "What am I allergic to?"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(store_url: str, clock: ManualClock) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={}, clock=clock) as memory:
        session = memory.space("alice").session("k")
        for said in (ALLERGY, HOME, "My favourite colour is teal."):
            session.append("user", said)
        memory.work(all=True)
        clock.advance(86_400)
        yield memory


@pytest.fixture
def alice(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def fact_with(space: recollect.Space, word: str) -> recollect.Fact:
    [fact] = [each for each in space.facts.list(50) if word in each.content]
    return fact


def test_what_a_person_corrected_is_told_as_it_is_now(alice: recollect.Space) -> None:
    """The story of the tutorial, without any kind or limit."""
    assert "walnuts" in alice.context(ASKED).text
    fact = fact_with(alice, "walnuts")
    alice.facts.update(fact.id, content="The user is allergic to hazelnuts.")
    block = alice.context(ASKED)
    assert block.citations[0].hit.text == "The user is allergic to hazelnuts."
    assert "walnuts" not in block.text
    hits = alice.recall(ASKED, limit=50)
    assert hits[0].text == "The user is allergic to hazelnuts."
    assert not [hit for hit in hits if "walnuts" in hit.text]


def test_what_a_person_deleted_is_not_told(alice: recollect.Space) -> None:
    alice.facts.delete(fact_with(alice, "teal").id)
    assert "teal" not in alice.context("What is my favourite colour?").text
    assert not [hit for hit in alice.recall("favourite colour", limit=50) if "teal" in hit.text]


def test_a_record_is_kept_for_what_else_it_says(alice: recollect.Space) -> None:
    alice.facts.delete(fact_with(alice, "Lisbon").id)
    [record] = alice.recall("Where do I work as a nurse?", kinds=["record"], limit=1)
    assert "Lisbon" not in record.text
    assert "nurse at the harbour clinic" in record.text


def test_what_was_replaced_stands_below_what_holds_and_says_so(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    alice.session("later").append("user", "I moved to Porto.")
    memory.work(all=True)
    hits = alice.recall("Where do I live?", limit=50)
    assert "Porto" in hits[0].text
    [old] = [hit for hit in hits if hit.kind == "record" and "Lisbon" in hit.text]
    assert old.outdated_at is not None
    assert "Porto" in old.replaced_by
    block = alice.context("Where do I live?")
    [line] = [
        line for line in block.text.splitlines() if "Lisbon" in line and "Earlier" not in line
    ]
    assert f"outdated since {old.outdated_at.date()}: " in line
    assert block.text.index("Porto") < block.text.index("Lisbon")


def test_a_question_about_the_past_finds_what_held_then(
    memory: recollect.Memory, alice: recollect.Space
) -> None:
    alice.session("later").append("user", "I moved to Porto.")
    memory.work(all=True)

    def score(question: str) -> float:
        hits = alice.recall(question, kinds=["record"])
        return next(hit.score for hit in hits if "Lisbon" in hit.text)

    assert score("Where did I live before?") > score("Where do I live?")


def test_as_of_a_time_everything_is_as_it_was_said(
    alice: recollect.Space, clock: ManualClock
) -> None:
    before = clock.now()
    clock.advance(60)
    alice.facts.delete(fact_with(alice, "walnuts").id)
    assert not [hit for hit in alice.recall(ASKED) if "walnuts" in hit.text]
    assert [hit for hit in alice.recall(ASKED, as_of=before) if "walnuts" in hit.text]


# The story of the tutorial: somebody says where they live, moves, and a fact is edited.


@pytest.fixture
def moved(memory: recollect.Memory, alice: recollect.Space) -> recollect.Space:
    alice.session("later").append("user", "I moved to Porto.")
    memory.work(all=True)
    return alice


def kinds_of(space: recollect.Space, question: str, word: str) -> list[str]:
    return [hit.kind.value for hit in space.recall(question, limit=50) if word in hit.text]


@pytest.mark.parametrize(
    "question",
    [
        "Where did I live before?",
        "Where did I use to live?",
        "Where was my old home?",
        "What changed?",
    ],
)
def test_what_held_before_is_a_fact_in_its_own_right(moved: recollect.Space, question: str) -> None:
    facts = moved.recall(question, kinds=["fact"])
    old = next(hit for hit in facts if "Lisbon" in hit.text)
    new = next(hit for hit in facts if "Porto" in hit.text)
    assert old.outdated_at is not None
    assert "Porto" in old.replaced_by
    assert facts.index(new) < facts.index(old)
    assert new.outdated_at is None
    assert old.score == sum(old.why.values())
    block = moved.context(question)
    [line] = [line for line in block.text.splitlines() if line.startswith("- The user lives in Li")]
    assert f"outdated since {old.outdated_at.date()}: " in line
    assert block.text.index("Porto") < block.text.index(line)


def test_who_asks_about_now_is_told_no_fact_that_is_over(moved: recollect.Space) -> None:
    assert "fact" not in kinds_of(moved, "Where do I live?", "Lisbon")
    assert "Porto" in moved.recall("Where do I live?")[0].text
    assert "Porto" in moved.context("Where do I live?").citations[0].hit.text


def test_what_a_person_took_back_is_not_told_of_the_past(moved: recollect.Space) -> None:
    [old] = [
        hit for hit in moved.recall("Where did I live before?", kinds=["fact"]) if "Lis" in hit.text
    ]
    moved.facts.delete(old.id)
    for question in ("Where did I live before?", "What changed?"):
        assert not [hit for hit in moved.recall(question, limit=50) if "Lisbon" in hit.text]
        assert "Lisbon" not in moved.context(question).text


def test_a_page_of_memory_does_not_bring_back_what_was_taken_back(moved: recollect.Space) -> None:
    """Nor does it say it any more itself."""
    assert "walnuts" in moved.documents.read("MEMORY").body
    moved.facts.update(fact_with(moved, "walnuts").id, content="The user is allergic to hazelnuts.")
    moved.facts.delete(fact_with(moved, "teal").id)
    assert "walnuts" not in moved.documents.read("MEMORY").body
    for question in (ASKED, "walnuts", "What is my favourite colour?", "teal"):
        for kinds in (None, ["document"], ["document", "summary"]):
            told = moved.context(question, kinds=kinds).text
            told += repr([hit.text for hit in moved.recall(question, limit=50, kinds=kinds)])
            assert "walnuts" not in told
            assert "teal" not in told
    pages = moved.context("Where do I live?", kinds=["document"]).text.splitlines()
    assert all("until" in line for line in pages if "Lisbon" in line)
