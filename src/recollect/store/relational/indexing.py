"""Keeps postings and vectors in step with the entries that they find.

Owns that nothing of an entry's earlier text is left: every statement that stores an entry, changes
its text or removes it goes through here. Storing a vector locks the entry's row, so that a change
of the entry waits and then finds the vector. On SQLite full text follows its tables by triggers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from recollect.store.relational.contexts import forget_told
from recollect.store.relational.database import Connection, Params, Row
from recollect.types.recall import EntryKind, ref_of

_LETTERS = {
    EntryKind.RECORD: "r",
    EntryKind.FACT: "f",
    EntryKind.SUMMARY: "s",
    EntryKind.DOCUMENT: "d",
}
_KNOWN = {
    EntryKind.FACT: "words_of_fact",
    EntryKind.SUMMARY: "words_of_extraction",
    EntryKind.DOCUMENT: "words_of_document",
}


def put_entry(
    c: Connection, kind: EntryKind, name: str, params: Params, *, is_new: bool = False
) -> Row | None:
    """Run a statement that stores an entry, or has it say something else.

    It returns the key; none: it changed nothing. `words` are those the entry is found by from then
    on. `is_new`: there is no such entry yet.
    """
    before = [] if is_new else c.rows(_KNOWN[kind], params)
    row = c.row(name, params)
    if row is not None:
        _forget(c, params["space"], kind, before)
        posted = {"space": params["space"], "letter": _LETTERS[kind]}
        c.run("post", {**posted, "key": row[0], "words": params["words"]})
    return row


def erase_entries(c: Connection, kind: EntryKind, name: str, *params: Params) -> list[Row]:
    """Run a statement that deletes entries; it returns the key and the words of each."""
    erased: list[Row] = []
    for each in params:
        found = c.rows(name, each)
        _forget(c, each["space"], kind, found)
        gone = {ref_of(kind, key): words or "" for key, words in found}
        forget_told(c, each["space"], gone)
        erased += found
    return erased


def drop_vectors(c: Connection, space: str, kind: EntryKind, keys: Sequence[int]) -> None:
    """The vectors of some entries are of something else by now: they go, and that is told."""
    if keys:
        stale = {"space": space, "kind": kind.value, "keys": json.dumps(keys)}
        c.run("tell_dropped", stale)
        c.run("drop_vectors", stale)


def _forget(c: Connection, space: str, kind: EntryKind, entries: Sequence[Row]) -> None:
    if entries:
        c.run("go_by_index", {})
        posted = {"space": space, "letter": _LETTERS[kind]}
        c.run_many("unpost", [{**posted, "key": key, "words": words} for key, words in entries])
        drop_vectors(c, space, kind, [row[0] for row in entries])
