"""Commands of functions: what a signature becomes on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
from click.testing import CliRunner, Result

from recollect.errors import InvalidValue
from recollect.interfaces.cli.commands import Opt, Output, Target, command, group


def read_names(text: str) -> tuple[str, ...]:
    if not text:
        raise InvalidValue("names separated by commas")
    return tuple(text.split(","))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Options that several commands share."""

    colour: Annotated[str, Opt("Its colour.", choices=("red", "blue"))] = "red"
    tags: Annotated[tuple[str, ...], Opt("Its tags.", "T", "--tag")] = ()


@command()
def paint(
    _at: Target,
    what: str,
    *,
    count: Annotated[int, Opt("How many.", "N", at_least=1, at_most=9)] = 2,
    shape: Shape,
    names: Annotated[Sequence[str] | None, Opt("Whose.", "A,B", read=read_names)] = None,
    into: Annotated[Path | None, Opt("Where to.", "PATH", is_file=True)] = None,
    dry: Annotated[bool, Opt("Only look.", name="--dry/--wet")] = False,
) -> Output:
    """Paint something; nothing is stored.

    It may take
    a while.

    Examples:
      recollect paint wall
    """
    given = {"what": what, "count": count, "colour": shape.colour, "tags": shape.tags}
    return Output({**given, "names": names, "into": into, "dry": dry}, [f"Painted {what}."], "Dry?")


def run(*arguments: str, of: click.Command = paint) -> Result:
    return CliRunner().invoke(of, arguments, catch_exceptions=False)


def painted(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    made: dict[str, Any] = json.loads(result.stdout)
    return made


def test_the_parameters_are_those_of_the_signature_and_of_its_dataclasses() -> None:
    expected = {"what": "wall", "count": 2, "colour": "red", "tags": [], "names": None}
    assert painted("wall") == {**expected, "into": None, "dry": False}
    given = ("--count", "3", "--colour", "blue", "--tag", "a", "--tag", "b", "--dry")
    made = painted("wall", *given, "--names", "x,y", "--into", "p")
    assert (made["count"], made["colour"], made["tags"]) == (3, "blue", ["a", "b"])
    assert (made["names"], made["into"], made["dry"]) == (["x", "y"], "p", True)


@pytest.mark.parametrize(
    "arguments",
    [(), ("wall", "--count", "0"), ("wall", "--colour", "green"), ("wall", "--names", "")],
)
def test_what_an_annotation_rules_out_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_an_answer_is_lines_for_people_with_advice_beside_them() -> None:
    result = run("wall")
    assert (result.stdout, result.stderr) == ("Painted wall.\n", "Dry?\n")


def test_the_help_is_the_docstring_and_a_list_shows_its_first_clause() -> None:
    shown = run("--help").stdout
    assert "  Paint something; nothing is stored.\n\n  It may take a while.\n" in shown
    assert "  Examples:\n    recollect paint wall\n" in shown
    assert "--colour [red|blue]" in shown
    assert paint.short_help == "Paint something."


def test_a_group_without_a_verb_is_its_list() -> None:
    @group(lists="list")
    def walls() -> None:
        """Walls.

        Examples:
          recollect walls
        """

    def list_(_at: Target, *, limit: Annotated[int, Opt("How many.", "N")] = 5) -> Output:
        """List walls."""
        return Output(limit, [f"{limit} walls"])

    command(walls)(list_)
    assert run("--limit", "3", of=walls).stdout == run("list", "--limit", "3", of=walls).stdout
    early = run("--limit", "3", "list", of=walls)
    assert (early.exit_code, "after the verb" in early.stderr) == (2, True)
    assert "Did you mean 'list'?" in run("lits", of=walls).stderr
