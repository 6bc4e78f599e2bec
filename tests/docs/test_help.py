"""The help of every command: complete, its examples understood, its neighbours there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from recollect.interfaces.cli.main import SECTIONS, cli
from tests.docs.test_documents import CODE_SPAN, DOCUMENTS, ROOT, blocks, prose
from tests.docs.walking import console, understood
from tests.tables import every_row
from tests.tidy.test_reference import walk

HELPS = list(walk(cli))
EXAMPLE = re.compile(r"^\s+(?:.*[|(] ?|[A-Z_]+=\S+ )?recollect (?P<arguments>.*)$")
# What a shell takes for itself: the rest of the line is not the command's.
SHELL = re.compile(r"\s(?:[|<>]|>>|&&|# ).*$|\)\"?\s*(?:#.*)?$")


def examples(command: click.Command) -> Iterator[list[str]]:
    """The commands in a help's list of examples."""
    _, _, listed = (command.help or "").partition("\b\n")
    for line in listed.splitlines():
        found = EXAMPLE.match(line)
        if found and not found["arguments"].endswith(("…",)):
            yield shlex.split(SHELL.sub("", found["arguments"]))


@every_row(("words", "command"), HELPS)
def test_a_help_says_what_how_and_shows_it(words: str, command: click.Command) -> None:
    said = command.help or ""
    assert re.search(r"[.:]\s", said + "\n"), "it says in a sentence what the command does"
    assert "Example" in said or "Try it" in said
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [each.opts for each in options if not each.help and not each.hidden] == []
    longest = max(map(len, said.splitlines()))
    assert longest <= 100, "a line that is kept as it is would be broken on a terminal"


@every_row(("words", "command"), HELPS)
def test_the_examples_of_a_help_are_understood(words: str, command: click.Command) -> None:
    shown = list(examples(command))
    assert shown
    for arguments in shown:
        understood(arguments)


@every_row("document", DOCUMENTS)
def test_a_command_that_is_mentioned_exists_with_its_options(document: Path) -> None:
    spans = [each for each in CODE_SPAN.findall(prose(document)) if each.startswith("recollect ")]
    assert [each for each in spans if unknown(each.split()[1:])] == []


def unknown(words: list[str]) -> list[str]:
    """What of a mentioned command there is not; the values of its options may be anything."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        inner = command.get_command(click.Context(command), words[0])
        if inner is None:
            return words[:1]
        command, words = inner, words[1:]
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    known.add("--help")
    return [each for each in words if re.fullmatch(r"--[a-z][a-z-]+", each) and each not in known]


def test_the_commands_of_the_readme_are_understood() -> None:
    shown = [each for block in blocks(ROOT / "README.md") for each in console(block.code)]
    own = [
        shlex.split(each.line, comments=True)[1:]
        for each in shown
        if each.line.startswith("recollect ")
    ]
    assert own
    for arguments in own:
        understood(arguments)


def test_a_wrong_example_is_noticed() -> None:
    with pytest.raises(click.NoSuchOption):
        understood(["recall", "tea", "--colour"])
    with pytest.raises(click.UsageError):
        understood(["history"])
    with pytest.raises(click.NoSuchOption):
        understood(["facts", "list", "--colour"])


def test_a_mention_of_what_is_not_there_is_noticed() -> None:
    assert unknown(["recall", "QUERY", "--explain"]) == []
    assert unknown(["recal"]) == ["recal"]
    assert unknown(["facts", "list", "--colour", "red"]) == ["--colour"]


def test_every_command_names_the_others_of_its_section() -> None:
    context = click.Context(cli)
    for section in SECTIONS.values():
        for name in section:
            command = cli.get_command(context, name)
            assert command is not None
            said = (command.epilog or "").partition(". ")[0].removeprefix("See also: ")
            assert said.split(", ") == [f"recollect {each}" for each in section if each != name]
