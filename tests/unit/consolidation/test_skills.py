"""Skills by rules: procedures that repeated and worked, and nothing a tool made up. Row G6."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.consolidation.handbook import tool_of
from recollect.consolidation.pages import LIMITS, SKILLS, Page
from recollect.documents.links import find_links
from recollect.documents.paths import read_path
from recollect.types.facts import Trust
from recollect.types.generations import Standing
from tests.tables import every_row
from tests.unit.consolidation.test_evidence import hostile_texts
from tests.unit.consolidation.test_handbook import SHOP, SITE, pages, standing
from tests.unit.strategies import any_text


def procedure(
    command: str, kind: str, *, sessions: str = "ab", project: str | None = SHOP, usage: int = 0
) -> Standing:
    text = f"`{command}` works ({kind})."
    return standing(
        f"In {project}, {text}" if project else text,
        project=project,
        sessions=sessions,
        trust=Trust.AGENT,
        tags=("procedure", kind),
        usage_count=usage,
    )


def lesson(text: str, *, project: str | None = SHOP, sessions: str = "c") -> Standing:
    told = f"In {project}, {text}" if project else text
    return standing(told, "lesson", project=project, sessions=sessions, trust=Trust.TOOL)


def skills(*standings: Standing, **limits: int) -> dict[str, Page]:
    """The skills by their names."""
    made = pages(*standings, recents=(), **limits)
    return {page.title: page for path, page in made.items() if path.startswith(f"{SKILLS}/")}


def test_a_skill_says_when_how_and_what_goes_wrong() -> None:
    (page,) = skills(
        procedure("make test", "test", sessions="abc"),
        procedure("make build", "build"),
        lesson("`make test` failed with `no disk` and passed after `make clean`."),
        lesson("`curl x` failed with `404`; `curl y` worked instead."),
    ).values()
    assert page.path == "~/memory/skills/working-in-shop-api/SKILL"
    assert page.title == "working-in-shop-api"
    assert page.description == (
        "Use when working in shop-api (/srv/shop-api). "
        "Build, test: 2 procedures that worked in 3 sessions."
    )
    assert (
        page.body
        == """## When

Use it when working in shop-api (/srv/shop-api).

## Steps

- `make build` works (build). (2026-05-03, 2 sessions)
- `make test` works (test). (2026-05-03, 3 sessions)

## Pitfalls

- `make test` failed with `no disk` and passed after `make clean`. (from a tool) (2026-05-03)"""
    )
    assert {source.session_id for source in page.sources} == {"a", "b", "c"}
    assert len(page.facts) == 3


@pytest.mark.parametrize(
    ("sessions", "is_one"), [(("ab",), False), (("abc",), True), (("ab", "cd"), True)]
)
def test_a_skill_takes_two_procedures_or_three_sessions(
    sessions: tuple[str, ...], is_one: bool
) -> None:
    told = [procedure(f"make {number}", "run", sessions=s) for number, s in enumerate(sessions)]
    assert bool(skills(*told)) is is_one


def test_what_worked_once_is_no_skill() -> None:
    assert skills(procedure("make a", "test", sessions="a"), procedure("make b", "run")) == {}
    assert skills(*(procedure(f"make {n}", "run", sessions="a") for n in range(9))) == {}


def test_a_session_that_is_not_selected_any_more_does_not_count() -> None:
    assert skills(procedure("make a", "test", sessions="abc"))
    assert skills(procedure("make a", "test", sessions="abz")) == {}


def test_what_a_tool_says_is_done_is_no_skill() -> None:
    told = [
        standing(f"`make {n}` works.", "procedure", project=SHOP, sessions="abc", trust=Trust.TOOL)
        for n in range(3)
    ]
    assert skills(*told) == {}


def test_skills_keep_projects_apart() -> None:
    made = skills(
        procedure("make test", "test", sessions="abc"),
        procedure("make test", "test", sessions="abc", project=SITE),
        lesson("`make test` failed with `no disk`; `make check` worked instead.", project=SITE),
    )
    assert made.keys() == {"working-in-shop-api", "working-in-website"}
    assert "no disk" not in made["working-in-shop-api"].body
    assert "no disk" in made["working-in-website"].body


def test_without_a_project_a_skill_is_of_a_tool() -> None:
    made = skills(
        procedure("docker compose build", "build", project=None),
        procedure("docker compose up", "run", project=None),
        procedure("npm test", "test", project=None),
        lesson("`docker compose up` failed with `in use`; `docker ps` worked.", project=None),
        lesson("`npm run build` failed with `in use`; `npm ci` worked.", project=None),
    )
    (page,) = made.values()
    assert page.title == "using-docker"
    assert page.description.startswith("Use when working with docker. Build, run: 2 procedures")
    assert page.body.count("in use") == 1


@every_row(
    ("text", "tool"),
    [
        ("`docker compose up` works (run).", "docker"),
        ("Run `CI=1 sudo /usr/bin/npm ci` first.", "npm"),
        (r"`C:\tools\make.exe all` works.", "make.exe"),
        ("Just do it.", ""),
        ("`$(whoami)` works.", ""),
        ("`sudo` works.", ""),
        ("`` works", ""),
    ],
)
def test_a_tool_is_the_first_word_of_a_command(text: str, tool: str) -> None:
    assert tool_of(text) == tool


def test_projects_whose_names_come_to_the_same_have_a_skill_each() -> None:
    made = skills(
        procedure("make test", "test", sessions="abc", project="/srv/Ünit"),
        procedure("make test", "test", sessions="abc", project="/srv/unit"),
        procedure("make test", "test", sessions="abc", project="/srv/проект"),
    )
    assert len(made) == 3
    assert sum(name.startswith("working-in-unit-") for name in made) == 2


def test_of_too_many_skills_those_of_most_use_stay() -> None:
    told = [
        procedure("make test", "test", sessions="abc", project=f"/srv/p{number}", usage=number)
        for number in range(30)
    ]
    assert skills(*told).keys() == {
        f"working-in-p{number}" for number in range(30 - LIMITS.skills, 30)
    }


def test_a_skill_is_bounded() -> None:
    told = [procedure(f"make {n}", "run", sessions="abcdefghij") for n in range(40)]
    pitfalls = [lesson(f"`make {n}` failed with `x{n}`; `make y` worked.") for n in range(40)]
    (page,) = skills(*told, *pitfalls).values()
    assert len(re.findall(r"works \(run\)", page.body)) == LIMITS.steps
    assert page.body.count("failed with") == LIMITS.steps
    assert len(page.body.encode()) < 24_576


commands = hostile_texts | st.sampled_from(("make test", "npm ci", "docker up"))


@given(
    st.lists(
        st.tuples(commands, st.sampled_from(("test", "run", "odd")), any_text | st.none()),
        max_size=6,
    ),
    st.randoms(),
)
def test_any_procedure_gives_a_skill_that_can_be_kept(
    told: list[tuple[str, str, str | None]], chance: random.Random
) -> None:
    standings = [
        procedure(command, kind, sessions="abc", project=project) for command, kind, project in told
    ]
    made = skills(*standings)
    assert made == skills(*chance.sample(standings, len(standings)))
    for name, page in made.items():
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name)
        assert read_path(page.path).text == page.path == f"{SKILLS}/{name}/SKILL"
        assert page.description
        assert "\n" not in page.description
        assert list(find_links(page.body)) == []
