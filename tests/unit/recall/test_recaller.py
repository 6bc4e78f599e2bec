"""A context beside a session: what the prompt shows anyway is not said again."""

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
