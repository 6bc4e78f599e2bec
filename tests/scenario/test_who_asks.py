"""A question in the first person is about who asks it: T-7, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.clock import ManualClock

ANA = ("My name is Ana.", "I live in Porto.", "I work as a nurse at the harbour clinic.")
HUSBAND = "My husband's name is Tom."
STANDING = "From now on please answer in German."
BEN = ("I'm Ben and I live in Faro.", "I work at the port.", "My daughter Lea is three.")


@pytest.fixture
def memory(store_url: str, clock: ManualClock) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={}, clock=clock) as memory:
        yield memory


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def home(memory: recollect.Memory) -> recollect.Space:
    """A space of two people."""
    space = memory.space("home")
    for name, lines in (("Ana", (*ANA, HUSBAND, STANDING)), ("Ben", BEN)):
        session = space.session(name)
        for line in lines:
            session.append("user", line, name=name)
    memory.work(all=True)
    return space


def answer(space: recollect.Space, question: str, speaker: str | None, beside: str = "") -> str:
    """What a list begins with; a block has it too."""
    best = space.recall(question, speaker=speaker)[0].text
    block = space.context(question, speaker=speaker, beside=beside or None)
    assert best in {each.hit.text for each in block.citations}
    return best


@pytest.mark.parametrize(("speaker", "where"), [("Ana", "Porto"), ("Ben", "Faro")])
def test_where_do_i_live_is_about_who_asks(home: recollect.Space, speaker: str, where: str) -> None:
    assert where in answer(home, "Where do I live?", speaker)
    first = home.context("Where do I live?", speaker=speaker).citations[0]
    assert where in first.hit.text


def test_my_name_is_not_my_husbands(home: recollect.Space) -> None:
    assert "Ana's name" in answer(home, "What's my name?", "Ana")
    assert "Tom" in answer(home, "What's my husband's name?", "Ana")
    assert "Ben" in home.recall("What's my name?", speaker="Ben")[0].text
    block = home.context("What's my name?", speaker="Ben")
    assert [line for line in block.text.splitlines() if "Ben" in line]


def test_now_is_no_word_of_an_answer(home: recollect.Space) -> None:
    assert "nurse" in answer(home, "Where do I work now?", "Ana")
    assert "port" in answer(home, "Where do I work now?", "Ben")


def test_my_daughter_is_nobody_elses(home: recollect.Space) -> None:
    assert "Lea" in answer(home, "How old is my daughter?", "Ben")
    home.session("Ana").append("user", "My daughter Eva is five.", name="Ana")
    assert "Eva" in answer(home, "How old is my daughter?", "Ana")


def test_who_spoke_last_beside_is_who_asks(home: recollect.Space) -> None:
    beside = home.session("Ben").id
    block = home.context("Where do I live?", beside=beside)
    assert "Faro" in block.citations[0].hit.text
    beside = home.session("Ana").id
    block = home.context("Where do I live?", beside=beside)
    assert "Porto" in block.citations[0].hit.text


def test_without_a_name_it_is_the_person_of_the_space(memory: recollect.Memory) -> None:
    space = memory.space("alone")
    session = space.session("k")
    for line in (*ANA, HUSBAND):
        session.append("user", line, name="Ana")
    session.append("user", "Hello, I live in Faro.", name="Guest")
    memory.work(all=True)
    assert "Porto" in answer(space, "Where do I live?", None)


def test_a_question_that_names_somebody_is_about_them(home: recollect.Space) -> None:
    assert "Faro" in answer(home, "Where does Ben live?", "Ana")
    assert "Faro" in answer(home, "What did Ben tell me about where he lives?", "Ana")


def test_a_hosted_agent_knows_who_writes_to_it(memory: recollect.Memory) -> None:
    space = memory.space("default")
    for name, line in (("Ana", "I live in Porto."), ("Ben", "I live in Faro.")):
        space.session(name).append("user", line, name=name)
        space.session(f"chat {name}").append("user", "Good morning to you.", name=name)
    memory.work(all=True)
    with memory.agents() as agents:
        ana = agents.ask("assistant", "Where do I live?", key="chat Ana").text
        ben = agents.ask("assistant", "Where do I live?", key="chat Ben").text
    assert 0 < ana.find("Porto") < ana.find("Faro") % (len(ana) + 1)
    assert 0 < ben.find("Faro") < ben.find("Porto") % (len(ben) + 1)
