"""A context: not what the prompt shows anyway, and of long turns what bears on the question."""

from __future__ import annotations

from pathlib import Path

import recollect


def test_records_of_the_session_that_is_shown_anyway_are_not_repeated(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory.db", settings=recollect.Settings()) as memory:
        space = memory.space()
        here, elsewhere = space.session("here"), space.session("elsewhere")
        here.append("user", "The harbour ferry leaves at nine on weekdays.")
        elsewhere.append("user", "The harbour ferry was repainted green last spring.")
        space.facts.add("The harbour ferry takes no cars.")

        def cited(beside: str | None) -> set[str]:
            block = space.context("When does the harbour ferry leave?", beside=beside)
            return {citation.hit.text for citation in block.citations}

        everything = cited(None)
        assert len(everything) == 3
        assert everything - cited(here.id) == {"The harbour ferry leaves at nine on weekdays."}
        assert everything - cited("another") == set()


ADVICE = (
    "Here are some hostels in Porto that other travellers liked a lot:\n\n"
    + "\n".join(
        f"{number}. Hostel {number}0 is near the river and is clean." for number in range(1, 30)
    )
    + "\n30. Casa Azul has a garden, a kitchen and a dog called Figo."
)


def test_a_long_answer_of_the_agent_is_shown_where_it_is_asked_for(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory.db", settings=recollect.Settings()) as memory:
        space = memory.space()
        session = space.session("travel")
        session.append("user", "Which hostels are there in Porto?")
        session.append("assistant", ADVICE)

        def shown(question: str, max_tokens: int) -> str:
            return space.context(question, max_tokens).text

        asked = "Which hostel in Porto with a garden did you recommend?"
        assert "a dog called Figo" in shown(asked, 300)
        wide, narrow = shown(asked, 2000), shown(asked, 300)
        assert wide.count("near the river") > 2 * narrow.count("near the river") > 0
        others = shown("Which hostels in Porto are near the river?", 2000)
        assert others.count("near the river") < wide.count("near the river")
