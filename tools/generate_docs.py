"""Writes docs/reference from the commands and the settings themselves, so that it cannot rot.

python tools/generate_docs.py            write the files
python tools/generate_docs.py --check    exit 1 if they are not what would be written
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from recollect.config import Described, described
from recollect.interfaces.cli.config import bounds_in_words, in_words
from recollect.interfaces.cli.main import cli

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
WIDTH = 88  # of the help texts, whatever the terminal
NOTICE = "<!-- Written by tools/generate_docs.py (make docs); edit that, not this. -->"

CLI_PREFACE = """\
Every command takes `--store`, `--space` and `--json`, before its name or after it; what stands
after the name wins.

* **Exit codes**: 0 fine, 1 the command failed (`work`: or a session did), 2 wrong usage.
* **Standard output** carries the result and nothing else. Advice and errors go to standard error:
  one line `Error: …`, or with `--json` an object
  `{"error": {"type", "message", "retry_helps", "mended_by"}}`.
* **For people** there is colour on a terminal; `NO_COLOR` turns it off, and a pipe gets plain text.
  Stored text is data: control characters in it are shown as escapes and never reach the terminal.
* **For programs** `--json` prints one JSON document: an array of records (`history`,
  `append --messages`), sessions (`sessions`), facts or changes (`facts list`, `search`, `history`),
  an object otherwise. Times are ISO 8601 in UTC.
"""

SETTINGS_PREFACE = """\
A setting is taken from the first of these places that has it:

1. an explicit argument: `recollect.open(…, settings={"mark_threshold": 10})`, or an option of a
   command;
2. the environment: `RECOLLECT_` and the name in capitals;
3. a file: `recollect.toml`, `recollect.yaml` or `recollect.yml` in the working directory, else in
   the user's configuration directory; or the one file named with
   `recollect.open(…, settings="my.toml")`;
4. the default.

Every value is checked against its bounds wherever it comes from, and a name that does not exist is
an error. `recollect config` shows each setting's value and where it came from.
"""

SETTINGS_SECTIONS = """\
## The `agents` section

Memory can be switched off for single agents: `agents.<name>.memory.enabled` is `true` when omitted.
With `false` every call works and nothing is kept: no file is opened for that agent, and a running
conversation keeps its newest `max_history_len` records in the process. It can only be set in a file
or as an argument (`settings={"agents": {"scratch": False}}`), not in the environment.

## The `modules` section

`modules: memory.sqlite:` is another way to write the settings of the one global SQLite database:

| name | means | default |
|---|---|---|
| `path` | `sqlite_path` | `{data_dir}/memory.db` |
| `wal` | `sqlite_wal` | `true` |
| `busy_timeout` | `sqlite_busy_timeout_ms` | `5000` |

`{data_dir}` in a path stands for the setting of that name. An empty `data_dir` and no path switch
memory off altogether.

## Examples

`recollect.toml`, for a server with many agents:

```toml
store = "postgresql://recollect@db.example.org/memory?schema=recollect"
postgres_pool_max = 16
mark_threshold = 10          # more than ten unprocessed records mark a session
idle_sweep_seconds = 1800

[agents.scratch.memory]
enabled = false              # this agent's conversations are not kept
```

`recollect.yaml`, for one file that all agents share:

```yaml
modules:
  memory.sqlite:
    path: "/data/memory.db"   # created with its directory when it is first needed
    wal: true                 # readers do not wait for writers
    busy_timeout: 5000        # milliseconds to wait for another process's lock

agents:
  assistant:
    memory:
      enabled: true           # the same as leaving it out
```

`recollect.toml`, for a database per agent, in `{data_dir}/agents/<name>/memory.db`
(`recollect.open_agents()` opens them):

```toml
database = "per-agent"
data_dir = "/var/lib/recollect"
```
"""


def render_cli() -> str:
    """The reference of the command line: each command's own help."""
    parts = ["# The command line", NOTICE, CLI_PREFACE.rstrip()]
    parts += [
        f"## `{words}`\n\n```text\n{help_text.rstrip()}\n```" for words, help_text in _helps()
    ]
    return "\n\n".join(parts) + "\n"


def render_settings() -> str:
    """The reference of the settings: every one with its default and bounds."""
    rows = [
        "| setting | type | default | bounds | what it does |",
        "|---|---|---|---|---|",
        *map(_row, described()),
    ]
    table = "\n".join(rows)
    parts = ["# Settings", NOTICE, SETTINGS_PREFACE.rstrip(), "## Every setting", table]
    environment = (
        "In the environment `mark_threshold` is `RECOLLECT_MARK_THRESHOLD`, and so on;"
        " `true`, `yes`, `on` and `1` are true, `false`, `no`, `off` and `0` are false."
    )
    return "\n\n".join([*parts, environment, SETTINGS_SECTIONS.rstrip()]) + "\n"


def main(arguments: list[str]) -> int:
    is_check = arguments == ["--check"]
    if arguments and not is_check:
        print(__doc__, file=sys.stderr)
        return 2
    stale = False
    for name, text in (("cli.md", render_cli()), ("settings.md", render_settings())):
        file = REFERENCE / name
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        stale = True
        if is_check:
            print(f"docs/reference/{name} is out of date: run make docs", file=sys.stderr)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote docs/reference/{name}")
    return 1 if is_check and stale else 0


def _helps() -> Iterator[tuple[str, str]]:
    yield from _help_of(cli, "recollect", None)


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


def _row(setting: Described) -> str:
    bounds = bounds_in_words(setting).replace("|", "or")
    cells = (f"`{setting.name}`", setting.type.__name__, _default(setting), bounds, setting.doc)
    return f"| {' | '.join(cells)} |"


def _default(setting: Described) -> str:
    if setting.name == "data_dir":
        return "the user's data directory"  # another one on every machine
    return "none" if setting.default is None else f"`{in_words(setting.default)}`"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
