"""Facts at other times than now, and by clocks that differ. Rows N1 and T4."""

from __future__ import annotations

from datetime import datetime, timedelta

import recollect
from recollect.clock import ManualClock

HOME = "where does Ana live? Lisbon Porto"


def facts_told(space: recollect.Space, as_of: datetime | None) -> set[str]:
    """What facts say, by each way of asking."""
    ways = [
        space.facts.list(as_of=as_of),
        space.facts.search(HOME, as_of=as_of),
        space.facts.search_metadata("a", 1, as_of=as_of),
    ]
    told = [{fact.content for fact in way} for way in ways]
    told.append({hit.text for hit in space.recall(HOME, kinds=["fact"], as_of=as_of)})
    assert all(each == told[0] for each in told)
    return told[0]


def test_as_of_a_time_before_an_edit_a_fact_says_what_it_said(durable_store_url: str) -> None:
    """T4: never what nobody believed then, and found by the words of then alone."""
    clock = ManualClock()
    with recollect.open(durable_store_url, clock=clock) as memory:
        space = memory.space("ana")
        before = clock.now()
        clock.advance(60)
        fact = space.facts.add("Ana lives in Lisbon.", metadata={"a": 1})
        clock.advance(60)
        then = clock.now()
        clock.advance(60)
        space.facts.update(fact.id, "Ana lives in Porto.")
        assert facts_told(space, before) == set()
        assert facts_told(space, then) == {"Ana lives in Lisbon."}
        assert facts_told(space, clock.now()) == {"Ana lives in Porto."}
        assert facts_told(space, None) == {"Ana lives in Porto."}
        assert "Lisbon" in space.context("Lisbon", as_of=then).text
        for word, as_of in (("Porto", then), ("Lisbon", None)):
            assert space.facts.search(word, as_of=as_of) == []
            assert space.recall(word, kinds=["fact"], as_of=as_of) == []


def test_what_a_host_stores_whose_clock_goes_ahead_is_there_for_the_others(
    durable_store_url: str,
) -> None:
    """T4: two hosts on one store; who asks about another time is told when it was learned."""
    behind = ManualClock()
    began = behind.now()
    ahead = ManualClock(behind.now() + timedelta(minutes=2))
    with (
        recollect.open(durable_store_url, clock=ahead) as first,
        recollect.open(durable_store_url, clock=behind) as second,
    ):
        here, there = first.space("ana"), second.space("ana")
        fact = here.facts.add("Ana likes tea.")
        for text in ("I live in Lisbon.", "I live in Porto."):
            ahead.advance(1)
            session = here.session(text)
            session.append("user", text, name="Ana")
            session.sleep()
            behind.advance(1)
            second.work()  # by the clock that is behind
        held = {"Ana likes tea.", "Ana lives in Porto."}
        assert {each.content for each in there.facts.list()} == held
        assert len(there.facts) == 2
        assert there.facts.search("tea")
        assert "tea" in there.context("tea").text
        asked = there.recall("tea Lisbon Porto", kinds=["fact"])
        assert {hit.text for hit in asked} == held
        assert there.facts.list(as_of=began) == []
        assert there.facts.update(fact.id, "Ana likes coffee.").content == "Ana likes coffee."
        assert there.facts.search("coffee")
