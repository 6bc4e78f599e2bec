"""N2: of a page the passage is shown that fits, without the notes about where it comes from."""

from __future__ import annotations

import pytest

from recollect.recall.statements import bearing, best_passage, without_notes

PAGE = """# Ana

- Ana lives in Porto. (2026-11-15) [^3f9a01c2d4]
- Ana likes teal. (2026-11-15) [^aaaa01c2d4]

## Sources

[^3f9a01c2d4]: user, 2026-11-15T10:00:00Z, 019a8f3e/12, fact 019a8f3f, on user:home
[^aaaa01c2d4]: user, 2026-11-15T10:00:00Z, 019a8f3e/13
"""


def test_the_notes_of_a_page_are_left_out() -> None:
    assert without_notes(PAGE) == (
        "# Ana\n\n- Ana lives in Porto. (2026-11-15)\n- Ana likes teal. (2026-11-15)"
    )


def test_the_sessions_that_the_summary_lists_answer_nothing() -> None:
    known = "## About the person\n\n- Ana lives in Porto."
    listed = f"{known}\n\n## Last sessions\n\n- 2026-05-03 Porto\n- 2026-05-01 Back in Porto"
    worth = {"porto": 1.0}
    assert bearing(listed, worth, 400) == "- Ana lives in Porto."
    assert bearing(f"{listed}\n\n## Index\n\n- Ports: Porto.", worth, 400).endswith(
        "- Ports: Porto."
    )
    written = "## Last sessions\n\nPorto was hot."
    assert bearing(written, worth, 400) == "Porto was hot."


@pytest.mark.parametrize(
    "text",
    [
        "As it says[^1].\n\n## Sources\n\n[^1]: The lease of 2024.",
        "## Sources",
        "a[^",
        "",
    ],
)
def test_what_people_note_stays(text: str) -> None:
    assert without_notes(text) == text


def test_the_passage_with_the_words_is_shown() -> None:
    text = "\n\n".join(f"Paragraph {at} is about nothing. " * 20 for at in range(9))
    text += "\n\nThe ferry leaves at nine."
    assert best_passage(text, {"ferri": 1.0}).endswith("The ferry leaves at nine.")
