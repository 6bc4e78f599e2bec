"""A click group that imports a command when it is used, so that --help and the others stay fast."""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """Knows its commands by name and summary; each lies in a module of that name, as `command`.

    `advice` is what a command's help ends with.
    """

    def __init__(
        self,
        *args: Any,
        package: str = "",
        summaries: Mapping[str, str] | None = None,
        advice: Callable[[str], str | None] = lambda _name: None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._advice = advice
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
        command.epilog = self._advice(cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # click would load every command here, and below.
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=summary)
            for name, summary in self._summaries.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click would load every command here, to ask each for its summary.
        rows = [(name, self._summaries.get(name, "")) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
