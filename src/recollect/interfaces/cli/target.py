"""What every command is told: which store, which space, and for whom to print; and how it fails."""

from __future__ import annotations

import functools
import os
import pwd
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self

import click

import recollect
from recollect import config
from recollect.errors import InvalidSetting, InvalidValue, NotFound, RecollectError
from recollect.interfaces.cli.options import TARGET_NAMES, target_options
from recollect.interfaces.cli.output import json_line, note, one_line, write_json
from recollect.observing.actors import acting
from recollect.store.address import path_of, without_password

P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a command works and how it answers; None is what nobody said."""

    store: str | None
    space: str | None
    as_json: bool
    directory: Path | None = None  # where settings are looked for; none: where we are

    def anywhere(self) -> Self:
        """The same without the settings of the working directory, for what agents start.

        They start it in whatever they work on, and a file in there is somebody else's: it could
        name the store that all is kept in, or the model that all is sent to.
        """
        return replace(self, directory=config.user_config_dir())

    @property
    def space_name(self) -> str:
        return config.DEFAULT_SPACE if self.space is None else self.space

    @property
    def arguments(self) -> str:
        """The options that lead another command to the same place, to be put into advice."""
        store = None if self.store is None else without_password(self.store)
        given = {"--store": store, "--space": self.space}
        return "".join(
            f" {option} {shlex.quote(one_line(value))}" for option, value in given.items() if value
        )

    def settings(self, **options: Any) -> recollect.Settings:
        """The settings, with those on top that options of a command set; None is not given."""
        given = {"store": self.store, **options}
        explicit = {name: value for name, value in given.items() if value is not None}
        return config.load(explicit, directory=self.directory)

    def open(self, agent: str | None = None, **options: Any) -> recollect.Memory:
        """The memory to work on; where every agent has its own, the one of this agent."""
        settings = self.settings(**options)
        if self.store is not None or settings.database != "per-agent":
            return recollect.open(self.store, settings=settings)
        if agent is None:
            raise InvalidSetting(
                "database is per-agent, each agent has a store of its own: name it with --store"
                " (or the agent with --agent, where the command takes one)"
            )
        return recollect.open_agents(settings).memory(_agent_name(agent))

    def open_existing(self, agent: str | None = None) -> recollect.Memory:
        """The memory of a store that is there already: to read it makes none.

        NotFound: the file is not there; its name may be misspelt.
        """
        path = self._file(agent)
        if path is not None and _is_missing(path):
            raise NotFound(
                f"there is no store at {path}; recollect append makes one. If one should be there,"
                " check --store, or RECOLLECT_STORE and the settings that recollect config shows"
            )
        return self.open(agent)

    def address(self) -> str | Path:
        """The store that is meant, without opening it: it may not be there yet."""
        settings = self.settings()
        if self.store is not None:
            return self.store
        if settings.database == "per-agent":
            raise InvalidSetting("database is per-agent: name the store with --store")
        if settings.store is None and not (settings.data_dir or settings.sqlite_path):
            return ":memory:"  # nothing is kept
        return settings.store or settings.path()

    def _file(self, agent: str | None) -> Path | None:
        settings = self.settings()
        if self.store is None and settings.database == "per-agent":
            return None if agent is None else settings.agent_path(_agent_name(agent))
        return path_of(self.address())

    def note_whole_store(self) -> None:
        """Say that a space that was named is not heeded."""
        self.note_all_spaces("this concerns the whole store; recollect export takes one space")

    def note_all_spaces(self, what: str) -> None:
        """For commands that are not about one space: say so, if one was named all the same."""
        if self.space is not None:
            self._note(f"--space is not heeded: {what}.")

    def note_unknown_variables(self) -> None:
        """Say which variables look like settings and are none, whosever they are."""
        for name in config.unknown_variables(os.environ):
            self._note(f"{one_line(name)} is not heeded: there is no such setting.")

    def _note(self, said: str) -> None:
        note(json_line({"note": said}) if self.as_json else said)


def with_target(function: Callable[Concatenate[Target, P], None]) -> Callable[P, None]:
    """Hand a command its target, and turn a RecollectError into one line and exit code 1."""

    @target_options
    @functools.wraps(function)
    def run(*args: Any, **given: Any) -> None:
        context = click.get_current_context()
        target = _read_target(context)
        own = {name: value for name, value in given.items() if name not in TARGET_NAMES}
        if _command(context) != "hook":
            target.note_unknown_variables()
        try:
            with acting(functools.partial(_actor, context)):
                function(target, *args, **own)
        except RecollectError as error:
            report(error, as_json=target.as_json)
            context.exit(1)

    return run


def report(error: RecollectError, *, as_json: bool) -> None:
    """Say on standard error what went wrong."""
    if as_json:
        content = {
            "type": type(error).__name__,
            "message": str(error),
            "retry_helps": error.retry_helps,
            "mended_by": error.mended_by.value,
        }
        write_json({"error": content}, to_stderr=True)
    else:
        note(f"{click.style('Error:', fg='red')} {one_line(str(error))}")


def _is_missing(path: Path) -> bool:
    """Whether nothing has this name; of what cannot be looked at, opening it says why."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def read_agent(name: str | None) -> str | Mapping[str, str] | None:
    """An agent as the user writes it: a name, or `/type/name` as `sessions` shows it."""
    if name is None or not name.startswith("/"):
        return name
    _, type_name, agent_id = (*name.split("/", 2), "")[:3]
    return {"type": type_name, "id": agent_id}


def _actor(context: click.Context) -> str:
    """In whose name a command works: an agent's, or that of the user of this machine."""
    command = _command(context)
    if command in ("mcp", "hook"):
        return command
    try:
        return f"cli:{pwd.getpwuid(os.getuid()).pw_name}"
    except KeyError:  # a container's user need not have a name
        return f"cli:{os.getuid()}"


def _command(context: click.Context) -> str:
    """The first word of what was asked for."""
    while context.parent is not None and context.parent.parent is not None:
        context = context.parent
    return context.info_name or ""


def _read_target(context: click.Context) -> Target:
    """What was said nearest to the command wins: after its name, then before it."""
    chain: list[Mapping[str, Any]] = []
    current: click.Context | None = context
    while current is not None:
        chain.append(current.params)
        current = current.parent

    def nearest(name: str) -> str | None:
        return next((given[name] for given in chain if given.get(name) is not None), None)

    for name in ("store", "space"):
        if nearest(name) == "":
            raise click.UsageError(f"--{name} is empty.", ctx=context)
    return Target(
        store=nearest("store"),
        space=nearest("space"),
        as_json=any(given.get("as_json") for given in chain),
    )


def _agent_name(agent: str) -> str:
    read = read_agent(agent)
    name = read if isinstance(read, str) else (read or {}).get("id")
    if not name:
        raise InvalidValue(f"not an agent: {agent!r}")
    return name
