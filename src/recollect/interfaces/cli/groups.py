"""Groups of commands: imported on first use, with suggestions for misspelled names.

The options that every command takes are here too, so that `--help` loads no more than this. Usage
errors are printed as JSON where a program asked for it.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from recollect.interfaces.cli.output import write_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

TARGET_NAMES = ("store", "space", "as_json")
PACKAGE = "recollect.interfaces.cli"


def store_files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The shell itself knows files best."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def target_options() -> list[click.Parameter]:
    """The options that every command takes, in the order of the help."""
    return [
        click.Option(
            ["--store"],
            metavar="URL",
            shell_complete=store_files,
            help="A path, sqlite:///…, postgresql://… or :memory:. Default: RECOLLECT_STORE, else"
            " a file in the user's data directory.",
        ),
        click.Option(["--space"], metavar="NAME", help="The tenant's space. Default: default."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, for programs."),
    ]


class CommandGroup(click.Group):
    """A group that suggests what was meant, and lists where no verb is given.

    `default` is the command that it is without a verb: the group takes its options, too.
    """

    def __init__(self, name: str, *, default: str | None = None, **more: Any) -> None:
        super().__init__(name, invoke_without_command=default is not None, **more)
        self.default = default

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        super().add_command(cmd, name)
        if cmd.name == self.default:
            self._list_by(cmd)

    def _list_by(self, verb: click.Command) -> None:
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


class RootGroup(CommandGroup):
    """The group that all commands are in. Whatever is wrong with a line of them comes by here.

    `sections` has the module and the summary of each; the module is imported when the command is
    used.
    """

    def __init__(
        self, name: str, *, sections: Mapping[str, Mapping[str, tuple[str, str]]], **more: Any
    ) -> None:
        super().__init__(name, **more)
        self._sections = sections
        self._known = {
            name: known for section in sections.values() for name, known in section.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._known, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._known:
            return super().get_command(ctx, cmd_name)
        place, summary = self._known[cmd_name]
        module = importlib.import_module(place if "." in place else f"{PACKAGE}.{place}")
        command = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
        assert isinstance(command, click.Command)
        command.short_help = summary
        section = next(each for each in self._sections.values() if cmd_name in each)
        others = ", ".join(f"recollect {other}" for other in section if other != cmd_name)
        command.epilog = f"See also: {others}. Exit codes and environment: recollect --help."
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # click would load every command here, and below.
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in self._known.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click would load every command here, to ask each for its summary.
        width = max(map(len, self._known))
        for title, section in self._sections.items():
            with formatter.section(title):
                rows = [(name.ljust(width), summary) for name, (_, summary) in section.items()]
                formatter.write_dl(rows)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        as_json, line = _asks_for_json(args), tuple(args)
        with _usage_errors(as_json=as_json):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_AS_JSON], context.meta[LINE] = as_json, line
        return context

    def invoke(self, ctx: click.Context) -> Any:
        with _usage_errors(as_json=ctx.meta.get(_AS_JSON, False)):
            return super().invoke(ctx)


LINE = f"{__name__}.line"  # the words that were given, as they were
_AS_JSON = f"{__name__}.as_json"
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())  # in newer versions of click


class WrongUsageError(click.UsageError):
    """What click found to be wrong, in the shape of our errors."""

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - it is for standard error
        content = {"type": "UsageError", "message": self.message, "retry_helps": False}
        write_json({"error": {**content, "mended_by": "caller"}}, to_stderr=True)


@contextmanager
def _usage_errors(*, as_json: bool) -> Iterator[None]:
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
