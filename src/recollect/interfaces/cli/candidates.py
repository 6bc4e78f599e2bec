"""The names in a store that Tab can offer.

They are looked up quickly, and without a trace or a word if that is not possible: nothing is
created, migrated or waited for. Only a file that exists and is up to date is opened, and no server
is asked. Whoever presses Tab wants a name, not an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import recollect
from recollect import config
from recollect.errors import RecollectError
from recollect.interfaces.cli.output import one_line
from recollect.memory import DEFAULT_SPACE
from recollect.operations.files import reading
from recollect.session import LIST_MAX
from recollect.store.address import path_of
from recollect.store.schema import newest_version

# Nobody waits at a prompt, and a look for a name is not recorded.
QUICK = {"sqlite_busy_timeout_ms": 200, "audit": "off", "metrics": False, "traces": False}
# What a shell would take apart or obey, and what would need escapes, is not put on a command line.
UNFIT = re.compile(r"[\s'\"\\$`!&|;<>(){}\[\]*?#]")
ROOT = "~/memory/"  # what a path is below, unless it says otherwise


def _paths(memory: recollect.Memory, space: str, incomplete: str) -> Iterable[str]:
    """As they stand below ~/memory, or whole if the user began so."""
    for node in memory.space(space).documents.tree():
        yield node.path if incomplete.startswith("~") else node.path.removeprefix(ROOT)


LOOKS: Mapping[str, Callable[[recollect.Memory, str, str], Iterable[str]]] = {
    "spaces": lambda memory, _space, _incomplete: memory.spaces(),
    "keys": lambda memory, space, _incomplete: (
        state.key for state in memory.space(space).sessions.list(LIST_MAX)
    ),
    "paths": _paths,
}


def offered(context: click.Context, incomplete: str, what: str) -> list[CompletionItem]:
    """The names in a store that go on as the user began; none where they cannot be had at once."""
    try:
        settings = config.load({**QUICK, **_given(context, "store")})
        path = _file(settings)
        if path is None:
            return []
        with recollect.open(path, settings=settings) as memory:
            space = _given(context, "space").get("space", DEFAULT_SPACE)
            found = dict.fromkeys(LOOKS[what](memory, space, incomplete))
    except (RecollectError, OSError):
        return []
    return [
        CompletionItem(each)
        for each in found
        if each.startswith(incomplete) and not UNFIT.search(each) and each == one_line(each)
    ]


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
