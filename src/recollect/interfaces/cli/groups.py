"""Groups of commands: each imported when it is used, and wrong usage as programs read it."""

from __future__ import annotations

import difflib
import importlib
import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from recollect.interfaces.cli.output import write_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandGroup(click.Group):
    """A group that names the commands that come close to one that is not there."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_checked = not name.startswith("-") and not ctx.resilient_parsing
        if is_checked and self.get_command(ctx, name) is None:
            close = difflib.get_close_matches(name, self.list_commands(ctx))
            meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            ctx.fail(f"No such command {name!r}.{meant}")
        return super().resolve_command(ctx, args)


class ListingGroup(CommandGroup):
    """A group that lists where no verb is given, with the options that its verb for it takes."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **{"invoke_without_command": True, **more})

    def lists_by(self, verb: click.Command) -> None:
        """Take the options of a verb, and do what it does where none is given."""
        known = {parameter.name for parameter in self.params}
        taken = [each for each in verb.params if each.name not in known]
        options = [each for each in taken if isinstance(each, click.Option)]
        arguments = {each.name: None for each in taken if isinstance(each, click.Argument)}
        self.params += options

        def run(**given: Any) -> None:
            context = click.get_current_context()
            if context.invoked_subcommand is None:
                assert verb.callback is not None
                verb.callback(**given, **arguments)
                return
            for option in options:
                source = context.get_parameter_source(option.name or "")
                if source is ParameterSource.COMMANDLINE:
                    named, wanted = option.opts[0], context.invoked_subcommand
                    context.fail(f"Give {named} after the verb: {wanted} {named}, if it takes it.")

        self.callback = run


class LazyGroup(CommandGroup):
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


_IS_ASKED = f"{__name__}.is_asked"
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())  # in newer versions of click


class RootGroup(LazyGroup):
    """The group that all commands are in: whatever is wrong with a line of them comes by here."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        as_json = _asks_for_json(args)
        with _told(as_json=as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_IS_ASKED] = as_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        with _told(as_json=ctx.meta.get(_IS_ASKED, False)):
            return super().invoke(ctx)


class WrongUsageError(click.UsageError):
    """What click found to be wrong, in the shape of our errors."""

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - it is for standard error
        content = {"type": "UsageError", "message": self.message, "retry_helps": False}
        write_json({"error": {**content, "mended_by": "caller"}}, to_stderr=True)


@contextmanager
def _told(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        if not as_json or isinstance(error, _HELP):
            raise
        raise WrongUsageError(error.format_message()) from error


def _asks_for_json(args: Sequence[str]) -> bool:
    """Before the line is read, which may be what goes wrong."""
    words = list(args)
    return "--json" in (words[: words.index("--")] if "--" in words else words)
