"""What the commands share that are about whole stores: how counts are said, and that it is all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import recollect
from recollect.errors import InvalidSetting, NotFound
from recollect.interfaces.cli.output import counted
from recollect.interfaces.cli.target import Target
from recollect.operations.database_files import path_of

Counts = Mapping[str, Mapping[str, int]]


def note_whole_store(target: Target) -> None:
    """A space that was named is heard, and said not to be heeded."""
    target.note_all_spaces("this concerns the whole store; recollect export takes one space")


def address_of(target: Target) -> str | Path:
    """Which store is meant, without opening it: it may not be there yet."""
    settings = target.settings()
    if target.store is not None:
        return target.store
    if settings.database == "per-agent":
        raise InvalidSetting("database is per-agent: name the store with --store")
    return settings.store or settings.path()


def open_existing(target: Target) -> recollect.Memory:
    """The memory of a store that is there: one that is made now is of no use to who copies it.

    NotFound: the file is not there; its name may be misspelt.
    """
    path = path_of(address_of(target))
    if path is not None and not path.exists():
        raise NotFound(
            f"there is no store {path}: check --store, or RECOLLECT_STORE and the settings that"
            " recollect config shows; nothing was made"
        )
    return target.open()


def in_words(counts: Counts) -> str:
    """`2 spaces: 3 sessions, 120 records, 40 facts, 12 documents`, as they stand in the tables."""
    named = {"sessions": "session", "session_history": "record", "facts": "fact"}
    named |= {"documents": "document"}
    totals = [
        counted(sum(each.get(table, 0) for each in counts.values()), noun)
        for table, noun in named.items()
    ]
    return f"{counted(len(counts), 'space')}: {', '.join(totals)}"
