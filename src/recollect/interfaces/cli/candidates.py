"""Looks up in a store what Tab can offer, quickly, and without a trace or a word if it cannot.

Nothing is created, migrated or waited for: only a file that is there and up to date is opened, and
no server is asked. Whoever presses Tab wants a name, not an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import recollect
from recollect import config
from recollect.errors import RecollectError
from recollect.interfaces.cli.output import one_line
from recollect.memory import DEFAULT_SPACE
from recollect.operations.database_files import reading
from recollect.session import LIST_MAX
from recollect.store.address import path_of
from recollect.store.schema import newest_version

# Nobody waits at a prompt, and looking for a name is nothing to write down.
QUICK = {"sqlite_busy_timeout_ms": 200, "audit": "off", "metrics": False, "traces": False}

# What a shell would take apart or obey, and what would need escapes, is not put on a command line.
UNFIT = re.compile(r"[\s'\"\\$`!&|;<>(){}\[\]*?#]")
ROOT = "~/memory/"  # what a path is below, unless it says otherwise

Look = Callable[[recollect.Memory, str, str], Iterable[str]]


def offered(context: click.Context, incomplete: str, look: Look) -> list[CompletionItem]:
    """What of a store goes on as the user began; nothing where it cannot be had at once."""
    try:
        settings = config.load({**QUICK, **_given(context, "store")})
        path = _file(settings)
        if path is None:
            return []
        with recollect.open(path, settings=settings) as memory:
            space = _given(context, "space").get("space", DEFAULT_SPACE)
            found = dict.fromkeys(look(memory, space, incomplete))
    except (RecollectError, OSError):
        return []
    return [
        CompletionItem(each)
        for each in found
        if each.startswith(incomplete) and not UNFIT.search(each) and each == one_line(each)
    ]


def spaces(memory: recollect.Memory, _space: str, _incomplete: str) -> Iterable[str]:
    return memory.spaces()


def keys(memory: recollect.Memory, space: str, _incomplete: str) -> Iterator[str]:
    """The newest first."""
    return (state.key for state in memory.space(space).sessions.list(LIST_MAX))


def paths(memory: recollect.Memory, space: str, incomplete: str) -> Iterator[str]:
    """As they stand below ~/memory, or whole if the user began so."""
    for node in memory.space(space).documents.tree():
        yield node.path if incomplete.startswith("~") else node.path.removeprefix(ROOT)


def _given(context: click.Context, name: str) -> dict[str, str]:
    """What stands on the line for an option, nearest to the cursor; empty: nothing does."""
    current: click.Context | None = context
    while current is not None:
        value = current.params.get(name)
        if value:
            return {name: value}
        current = current.parent
    return {}


def _file(settings: config.Settings) -> Path | None:
    """The file of a store that opening it would not change; an error if there is none."""
    if settings.store is None and (settings.database == "per-agent" or not settings.data_dir):
        return None
    path = path_of(settings.store or settings.path())
    if path is None:
        return None
    with reading(path) as source:
        version = source.execute("SELECT max(version) FROM schema_version").get
    return path if version == newest_version("sqlite") else None
