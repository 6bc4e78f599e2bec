"""A page's lines: claims come and go, and what people wrote stays to the character."""

from __future__ import annotations

from datetime import UTC, date, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from recollect.agents.organiser_lines import Line, Note, label_of
from recollect.agents.organiser_page import Page
from recollect.knowledge import Trust

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
DAY = date(2026, 11, 15)

BODIES = st.lists(
    st.sampled_from(
        (
            *("", "Text.", "- item", "# Title", "## Earlier", "## Sources", "## See also", "```"),
            *("[^0123456789]: user, 2026-11-15T12:00:00Z", "1. one", "   ", "[^1]: mine", "~~~"),
            *("- Own. (2026-11-15) [^0123456789]", "\r"),
        )
    ),
    max_size=14,
).map("\n".join)


def put(page: Page, text: str, until: date | None = None) -> str:
    label = label_of(text)
    line = Line(text=text, label=label, day=DAY, until=until)
    page.add(line, Note(label=label, trust=Trust.USER, at=NOON))
    return label


@given(BODIES | st.text(max_size=60))
def test_a_page_that_nothing_was_done_to_says_what_it_said(body: str) -> None:
    assert Page(body).body() == body


@given(BODIES, st.booleans())
@example("- item\n\n## Sources\n", False)
def test_claims_are_added_found_and_removed_between_what_people_wrote(
    body: str, is_over: bool
) -> None:
    page = Page(body)
    if page.is_open_ended:
        return
    label = put(page, "Likes tea.", DAY if is_over else None)
    again = Page(page.body())
    assert label in again.lines()
    assert again.is_own(label)
    assert again.is_earlier(label) == is_over
    kept = [line for line in body.split("\n") if line.strip() and not line.startswith("## ")]
    assert [line for line in page.body().split("\n") if line in kept] == kept
    again.remove(label)
    left = [line for line in again.body().split("\n") if line.strip()]
    assert [line for line in left if line in kept] == kept
    assert label not in again.body()


def test_a_new_page_has_lists_and_notes_apart() -> None:
    page = Page("")
    put(page, "Likes tea.")
    put(page, "Liked rum.", DAY)
    page.refer("[[~/memory/x|x]]")
    tea, rum = label_of("Likes tea."), label_of("Liked rum.")
    assert page.body().split("\n## ") == [
        f"- Likes tea. (2026-11-15) [^{tea}]\n",
        f"Earlier\n\n- Liked rum. (2026-11-15, until 2026-11-15) [^{rum}]\n",
        "See also\n\n- [[~/memory/x|x]]\n",
        "Sources\n\n" + "\n".join(f"[^{each}]: user, 2026-11-15T12:00:00Z" for each in (tea, rum)),
    ]


def test_a_line_goes_to_what_was_so_earlier_and_comes_back() -> None:
    page = Page("Mine.")
    label = put(page, "Likes tea.")
    before = page.body()
    page.move(label, DAY)
    assert page.is_earlier(label)
    page.move(label, None)
    assert page.body() == before


def test_of_a_line_that_somebody_changed_only_the_note_goes() -> None:
    page = Page("")
    label = put(page, "Likes tea.")
    changed = Page(page.body().replace("tea", "green tea"))
    assert not changed.is_own(label)
    changed.move(label, DAY)
    changed.remove(label)
    assert changed.body().strip() == f"- Likes green tea. (2026-11-15) [^{label}]"


def test_notes_of_lines_that_somebody_took_out_go() -> None:
    page = Page("")
    label = put(page, "Likes tea.")
    put(page, "Likes rum.")
    rows = [row for row in page.body().split("\n") if "tea" not in row]
    mended = Page("\n".join(rows))
    mended.drop_unused_notes()
    assert label not in mended.body()
    assert "rum" in mended.body()


def test_what_stands_in_code_is_not_ours() -> None:
    page = Page("")
    put(page, "Likes tea.")
    fenced = Page(f"```\n{page.body()}\n```")
    assert fenced.lines() == {}
    assert not fenced.is_open_ended
    assert Page("a\n```\nb").is_open_ended
