"""An edited page as statements: what is one, what is only around it, and how two pages differ."""

from __future__ import annotations

import pytest

from recollect.consolidation.edited_lines import (
    STATEMENT_CHARS_MAX,
    Difference,
    Line,
    LineKind,
    difference,
    is_of_project,
    is_said,
    lines_of,
)
from recollect.knowledge import Fact

PAGE = """What is known here, one statement per line.

## Preferences

- Prefers tea. (2026-01-02)
- Likes \\[\\[brackets]] and `a\\[0]`. ([[~/memory/rollout_summaries/a|2026-01-01]], 2 more)

## People

### Ana – the user's sister

- Lives in Ulm. (2026-01-01)

## Project shop

It is in /srv/shop. What worked there: [[~/memory/skills/shop/SKILL|shop]].

### How things are done

- Tests run with `make`. (inferred) (in shop, 2026-01-01, [[~/memory/rollout_summaries/b|b]])

3 more are left out here.

## Conflicts

- On the port:
  - It is 80. (from a tool) (in shop, 2026-01-02)

## What is in memory

- [[~/memory/MEMORY|The handbook]]: preferences (1)
- Skills: [[~/memory/skills/shop/SKILL|shop]]
"""


def read(body: str) -> dict[str, Line]:
    return {line.words: line for line in lines_of(body)}


def words(lines: tuple[Line, ...]) -> list[str]:
    return [line.words for line in lines]


def edited(old: str, new: str, page: str = PAGE) -> Difference:
    assert old in page
    return difference(page, page.replace(old, new))


def test_a_statement_is_told_without_its_day_its_sources_and_its_trust() -> None:
    items = [line.words for line in lines_of(PAGE) if line.kind is LineKind.ITEM]
    assert items == [
        "Prefers tea.",
        "Likes [[brackets]] and `a\\[0]`.",
        "Lives in Ulm.",
        "Tests run with `make`.",
        "It is 80.",
    ]


def test_what_stands_below_a_name_or_a_project_is_of_it() -> None:
    found = read(PAGE)
    assert found["Lives in Ulm."].statement == "Ana: Lives in Ulm."
    assert found["Prefers tea."].statement == "Prefers tea."
    done = found["Tests run with `make`."]
    assert (done.metadata, done.tags) == ({"project": "/srv/shop"}, ("instruction",))
    assert found["Prefers tea."].tags == ("preference",)
    assert found["Prefers tea."].metadata == {}


def test_somebody_who_is_named_is_not_named_twice() -> None:
    (line,) = lines_of("## People\n\n### Ana – a friend\n\n- ana likes tea")
    assert line.statement == "ana likes tea"


@pytest.mark.parametrize(
    "framing",
    [
        "## Another heading",
        "| a | b |",
        "> quoted",
        "<!-- a note -->",
        "---",
        "```\n- in code\n```",
        "- On something:",
        "- [[~/memory/MEMORY|The handbook]]",
        "- ~~Prefers milk.~~",
        "- (nothing yet)",
        "- …",
        "- " + "x" * STATEMENT_CHARS_MAX + "y",
    ],
)
def test_what_is_around_statements_is_none(framing: str) -> None:
    assert list(lines_of(framing)) == []


def test_a_line_goes_on_where_it_is_indented_and_nowhere_else() -> None:
    body = "- One that\n  goes on. (2026-01-01)\nBy itself,\nof two lines.\n1. [ ] Another"
    assert [line.words for line in lines_of(body)] == [
        "One that goes on.",
        "By itself, of two lines.",
        "Another",
    ]


def test_a_page_that_was_only_rearranged_says_the_same() -> None:
    found = difference("- A b.\n- C d. (2026-01-01)", "* C d. (2026-01-01)\n\n* a  b")
    assert (found.added, found.removed) == ((), ())
    same = difference("- A b.\n- C d.", "- C d.\n\n- A b.")
    assert same.rest_is_same(())


def test_a_changed_line_is_one_less_and_one_more() -> None:
    found = edited("Prefers tea.", "Prefers milk.")
    assert (words(found.added), words(found.removed)) == (["Prefers milk."], ["Prefers tea."])
    assert found.rest_is_same([*found.added, *found.removed])
    assert not found.rest_is_same(found.added)
    assert found.was(found.added[0]) == found.removed[0]


def test_a_line_that_has_nothing_of_another_was_not_made_of_it() -> None:
    found = edited("Prefers tea.", "Has two dogs.")
    assert found.was(found.added[0]) is None


def test_a_line_without_a_dash_is_a_statement_too() -> None:
    found = edited("## People", "Hates coffee.\n\n## People")
    assert words(found.added) == ["Hates coffee."]
    assert found.rest_is_same(found.added)


def test_our_own_words_that_were_rewritten_are_nobodys_statement() -> None:
    found = edited("What is known here, one", "All I know, a")
    assert (found.added, found.removed) == ((), ())
    assert not found.rest_is_same(())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## People", "## Folks"),
        ("(2026-01-02)", "(2026-01-03)"),
        ("- Skills:", "- All skills:"),
        ("3 more are", "4 more are"),
    ],
)
def test_a_change_of_the_frame_is_seen(old: str, new: str) -> None:
    found = edited(old, new)
    assert not found.rest_is_same([*found.added, *found.removed])


def test_what_was_taken_up_is_no_difference_any_more() -> None:
    found = edited("Prefers tea.", "Prefers milk.", PAGE.replace("## People", "## Folks"))
    found = difference(PAGE, found.after)
    base = found.taken_up([*found.added, *found.removed])
    again = difference(base, found.after)
    assert (again.added, again.removed) == ((), ())
    assert not again.rest_is_same(()), "a heading is another one still"


@pytest.mark.parametrize(
    ("line", "content", "same"),
    [
        ("- Prefers tea. (2026-01-02)", "prefers tea", True),
        ("- Prefers tea. (in shop)", "Prefers tea.", True),
        ("- Works (in Ulm)", "Works (in Ulm)", True),
        ("- Run `make`.", "In /srv/a, b/shop, run `make`.", True),
        ("- 1\\. comes first", "1. comes first", True),
        ("- Prefers tea.", "Prefers tea and milk.", False),
    ],
)
def test_a_fact_is_known_by_the_line_that_tells_it(line: str, content: str, same: bool) -> None:
    (told,) = lines_of(line)
    assert is_said(told, content) is same


def test_a_fact_is_of_the_project_that_it_names() -> None:
    (line,) = lines_of("## Project shop\n\n- Run `make`.")
    assert is_of_project(line, Fact("In /srv/shop, run `make`."))
    assert is_of_project(line, Fact("Run `make`.", metadata={"project": "/srv/shop/"}))
    assert not is_of_project(line, Fact("In /srv/other, run `make`."))


def test_a_line_of_brackets_comes_to_an_end() -> None:
    """It would not if all that a bracket might close were tried."""
    body = "- " + "(in a, [[" * (STATEMENT_CHARS_MAX // 9)
    assert len(list(lines_of("\n".join([body] * 50)))) == 50
