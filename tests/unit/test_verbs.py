"""The list of verbs is what there is: no surface lacks what it says, and none has more."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

import recollect
from recollect import aio
from recollect.interfaces.cli.main import cli
from recollect.interfaces.http.app import Api
from recollect.interfaces.mcp.server import MemoryOnDemand, MemoryServer
from recollect.interfaces.mcp.tools import Terms
from recollect.verbs import OWNERS, VERBS, Effect, Verb
from tests.tables import every_row
from tests.unit.interfaces.mcp.talking import Talk

BY_NAME = {verb.name: verb for verb in VERBS}
METHODS = [verb for verb in VERBS if verb.method is not None]

# How importers and agents put records in; not for callers.
INTERNAL = {"session.admitted", "session.admitted_text", "session.adopt"}
INTERNAL |= {"facts.remember"}  # what space.remember does
# Public in Python alone: where an agent's sessions are kept.
NOT_AWAITED = {"memory.store_of"}


def test_no_two_rows_have_a_name_or_a_place() -> None:
    assert len(BY_NAME) == len(VERBS)
    places = [place for verb in VERBS for place in (*verb.http, *verb.commands)]
    assert len(places) == len(set(places))
    tools = [tool for verb in VERBS for tool in verb.tools]
    assert len(tools) == len(set(tools))


@every_row("verb", VERBS)
def test_every_verb_says_what_it_does(verb: Verb) -> None:
    assert verb.says.endswith(".")


def test_every_public_method_is_a_verb() -> None:
    public = {
        f"{owner}.{name}"
        for owner, kind in OWNERS.items()
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }
    assert public - INTERNAL == {verb.name for verb in METHODS}


@every_row("verb", METHODS)
def test_a_verb_is_said_pages_as_it_says_and_is_a_coroutine(verb: Verb) -> None:
    assert verb.method is not None
    assert not verb.pages or verb.pages in inspect.signature(verb.method).parameters
    if verb.name in NOT_AWAITED:
        return
    owner, _, name = verb.name.partition(".")
    awaited = getattr(getattr(aio, OWNERS[owner].__name__), name)
    is_handle = verb.is_handle
    assert inspect.iscoroutinefunction(awaited) is not is_handle, verb.name


def test_http_has_the_routes_that_the_list_says_with_their_scopes() -> None:
    listed = {place: verb.scope for verb in VERBS for place in verb.http}
    with recollect.open(":memory:") as memory:
        served = {f"{route.method} {route.path}": route.scope for route in Api(memory).operations}
    assert served == listed


def test_the_command_line_has_the_commands_that_the_list_says() -> None:
    listed = {name for verb in VERBS for name in verb.commands}
    assert set(_commands(cli, ())) == listed


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _commands(below, (*path, name))
    if path and not (isinstance(command, click.Group) and not command.invoke_without_command):
        yield " ".join(path)


def test_mcp_has_the_tools_that_the_list_says_with_their_hints(tmp_path: Path) -> None:
    listed = {name: verb for verb in VERBS for name in verb.tools}
    opened = MemoryOnDemand(lambda: recollect.open(tmp_path / "memory.db"), work=False)
    server = MemoryServer(opened, Terms(space="alice", agent="helper"))
    tools = Talk(memory=opened(), server=server).tools()
    assert {tool.name for tool in tools} == set(listed)
    for tool in tools:
        verb, hints = listed[tool.name], tool.annotations
        assert hints is not None
        assert hints.read_only_hint is (verb.effect is Effect.READ)
        assert hints.destructive_hint is (verb.effect is Effect.DESTRUCTIVE)
        assert hints.idempotent_hint is verb.is_idempotent


def test_the_examples_run_in_their_order(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memory.db") as memory:
        names = {"memory": memory, "archive": tmp_path / "archive", "folder": tmp_path / "notes"}
        for verb in VERBS:
            if verb.example:
                exec(verb.example, names)
