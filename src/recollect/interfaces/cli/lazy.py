"""A click group that imports a command when it is used, so that --help and the others stay fast."""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """Knows its commands by name and summary; each lies in a module of that name, as `command`."""

    def __init__(
        self, *args: Any, package: str = "", summaries: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._package = package
        self._summaries = dict(summaries or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._summaries, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._summaries:
            return super().get_command(ctx, cmd_name)
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        module = importlib.import_module(f"{self._package}.{name}")
        command = module.command
        assert isinstance(command, click.Command)
        command.short_help = self._summaries[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click would load every command here, to ask each for its summary.
        rows = [(name, self._summaries.get(name, "")) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
