"""The reference of the command line: each command's own help, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from recollect.interfaces.cli.main import cli
from tools.reference.layout import fenced, page, table

WIDTH = 88  # of the help texts, whatever the terminal

PREFACE = """\
Every command takes `--store`, `--space` and `--json`, before its name or after it; what stands
after the name wins. `recollect completion` prints a script that lets your shell complete commands,
options and their values.

* **Standard output** carries the result and nothing else. Advice and errors go to standard error:
  one line `Error: …`, or with `--json` an object
  `{"error": {"type", "message", "retry_helps", "mended_by"}}`; [errors](errors.md) has the types.
* **For people** there is colour on a terminal; `NO_COLOR` turns it off, and a pipe gets plain text.
  Stored text is data: control characters in it are shown as escapes and never reach the terminal.
* **For programs** `--json` prints one JSON document: an array of records (`history`,
  `append --messages`), sessions (`sessions`), facts or changes (`facts list`, `search`, `history`),
  an object otherwise. Times are ISO 8601 in UTC.
"""
EXIT_CODES = {
    "0": "fine; also where nothing was found",
    "1": "the command failed, and an error says why; or it did its work and not all is well: a"
    " session failed (`work`), a generation did (`consolidate`), the store is not sound (`doctor`),"
    " edits could not be taken in (`docs load`), a question got no answer (`chat`). `hook` fails"
    " for nothing but wrong usage, since 2 would stop the agent that calls it",
    "2": "wrong usage; nothing was done",
}
ENVIRONMENT = {
    "`RECOLLECT_STORE`": "the store, where no `--store` is given: a path or an address",
    "`RECOLLECT_…`": "every other [setting](settings.md), as in `RECOLLECT_MARK_THRESHOLD`",
    "`OPENAI_API_KEY`, `OPENAI_BASE_URL`": "the key, and the address of any server that speaks the"
    " same protocol, for models and embedders",
    "`ANTHROPIC_API_KEY`": "the same for models of Anthropic",
    "`PGPASSWORD`, `PGPASSFILE` and others of libpq": "what is not in a `postgresql://` address",
    "`RECOLLECT_MCP_TOKEN`": "what clients of `recollect mcp --http` have to send",
    "`CLAUDE_CONFIG_DIR`, `CODEX_HOME`": "where the logs and settings of those agents lie"
    " (`import`, `watch`, `hook`)",
    "`XDG_DATA_HOME`, `XDG_CONFIG_HOME`": "where the store lies that nobody named, and the user's"
    " `recollect.toml`",
    "`NO_COLOR`": "no colour, also on a terminal",
}


def render() -> str:
    helps = [f"## `{words}`\n\n{fenced(text)}" for words, text in _help_of(cli, "recollect", None)]
    return page(
        "The command line",
        PREFACE,
        "## Exit codes",
        table(("code", "means"), EXIT_CODES.items()),
        "## Environment",
        table(("variable", "means"), ENVIRONMENT.items()),
        *helps,
    )


def _help_of(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
        color=False,
    )
    with context:
        yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for inner_name in command.list_commands(context):
            inner = command.get_command(context, inner_name)
            assert inner is not None
            yield from _help_of(inner, inner_name, context)
