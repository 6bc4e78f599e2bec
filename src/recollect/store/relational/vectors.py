"""Vectors as rows: finds entries without one, stores new ones, and reports changes.

Owns that no record is missed: the progress of a model is noted only up to a point before which no
record can still be committed, and none is without a vector.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from recollect.clock import to_micros
from recollect.store.relational.database import Aggregate, Connection, Database, VectorSearch, scope
from recollect.types.recall import EntryKind, NewVector, Unembedded, VectorChanges

DROPPED_KEPT = 8192  # of a space, by which those who hold vectors are told what went
UNUSED = timedelta(days=1)  # after which the vectors of a model go
USE_SAID_AFTER = timedelta(hours=1)  # at the earliest, since it was last said
TEXT_CHARS_MAX = 8000  # of an entry, that an embedder is shown

_PENDING = {
    EntryKind.FACT: "unembedded_facts",
    EntryKind.SUMMARY: "unembedded_summaries",
    EntryKind.DOCUMENT: "unembedded_documents",
}
_HOLD = {
    EntryKind.FACT: "hold_fact",
    EntryKind.SUMMARY: "hold_summary",
    EntryKind.DOCUMENT: "hold_document",
    EntryKind.RECORD: "hold_record",
}


class _Seen(NamedTuple):
    """The newest record at some moment, and the transactions that were open or to come."""

    newest: int
    oldest_open: int
    next_one: int


class Vectors(Aggregate):
    """Vectors of entries by model. A vector goes with its entry, and when that changes."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._seen = _Seen(0, 0, 0)

    def pending(
        self, model: str, limit: int, space: str | None = None
    ) -> builtins.list[Unembedded]:
        """Entries of a space, or of all, that have no vector of a model yet."""
        which = {**scope(space), "model": model, "chars_max": TEXT_CHARS_MAX}

        def job(c: Connection) -> list[Unembedded]:
            found: list[Unembedded] = []
            for kind, name in _PENDING.items():
                found += [
                    Unembedded(space=row[0], kind=kind, key=row[1], text=row[2])
                    for row in c.rows(name, {**which, "limit": limit - len(found)})
                ]
                if len(found) >= limit:
                    return found
            return found + _pending_records(c, {**which, "limit": limit - len(found)})

        return self._database.read(space, job)

    def put(self, model: str, vectors: Sequence[NewVector]) -> int:
        """Store vectors, unless their entries are gone or changed; return the number given."""
        by_space = sorted(vectors, key=lambda each: each.entry.space)
        for space, group in groupby(by_space, key=lambda each: each.entry.space):
            self._put(space, model, list(group))
        self._go_on(model)
        return len(vectors)

    def _go_on(self, model: str) -> None:
        """Say how far the records have vectors, without a gap.

        A record of a transaction that is open has a number already, which may be lower than that of
        one we see. Once all that were open are over, nothing below what was seen then comes late.
        """
        before = self._seen

        def job(c: Connection) -> _Seen:
            row = c.row("newest_record", {})
            assert row is not None
            now = _Seen(*row)
            locked = c.row("lock_embedded", {"model": model})
            assert locked is not None
            if now.oldest_open >= now.next_one:
                settled = now.newest
            elif now.oldest_open >= before.next_one:
                settled = before.newest
            else:
                return now
            if settled > locked[0]:
                first = c.row("first_unembedded", {"model": model, "after": locked[0]})
                upto = settled if first is None else min(settled, first[0] - 1)
                c.run("set_embedded_upto", {"model": model, "upto": upto})
            return now

        now = self._database.write(None, job)
        if now.oldest_open >= before.next_one:
            self._seen = now

    def tend(self, model: str) -> None:
        """Do what makes comparing quicker, however long it takes; for when nothing is pending."""
        index = self._database.vector_index()
        if index is not None:
            index.tend(model)

    def search(self) -> VectorSearch | None:
        """The search that compares vectors in the store. None: the caller holds them in memory."""
        return self._database.vector_index()

    def _put(self, space: str, model: str, vectors: Sequence[NewVector]) -> None:
        index = self._database.vector_index()

        def job(c: Connection) -> None:
            c.run("lock_vectors", {"space": space})
            # Only of what it says still, in one order: the number of an entry may be another's.
            asked = [(_HOLD[each.entry.kind], _names(each)) for each in vectors]
            told = zip(vectors, c.rows_each(asked), strict=True)
            kept = [each for each, rows in told if rows and rows[0][0] == each.entry.text]
            c.run_many("put_vector", [{**_names(each), "model": model} for each in kept])
            if index is not None:
                index.add(c, space, model, kept)
            _prune_dropped(c, space)

        self._database.write(space, job)

    def changes(
        self, space: str, model: str, after: int, dropped_after: int, limit: int
    ) -> VectorChanges:
        """Return what was added and removed since earlier numbers, as of one moment.

        A caller that holds nothing yet passes 0 and is told of no removals. An `upto` of 0 in reply
        to another number means that the removals are no longer known: start over from 0.
        """
        names = {"space": space, "model": model, "limit": limit}

        def job(c: Connection) -> VectorChanges:
            newest = None if after else c.row("newest_dropped", names)
            # In this order: on PostgreSQL the second may see more than the first. What went after
            # it came is then told as gone, and what came after it went is told the next time.
            added = c.rows("vectors_after", {**names, "after": after})
            known = max(dropped_after, newest[0]) if newest else dropped_after
            dropped = c.rows("dropped_after", {**names, "after": known})
            if dropped and not dropped[0][1] and after:
                return VectorChanges(added=[], dropped=[], upto=0, dropped_upto=0, is_all=False)
            return VectorChanges(
                added=[(row[0], row[1], row[2], bytes(row[3])) for row in added],
                dropped=[(row[1], row[2]) for row in dropped if row[1] and not row[3]],
                upto=added[-1][0] if added else after,
                dropped_upto=dropped[-1][0] if dropped else known,
                is_all=len(added) < limit and len(dropped) < limit,
            )

        return self._database.read(space, job)

    def use(self, model: str, now: datetime) -> None:
        """Note that a model is used now; one that was never noted counts as used from now on."""
        models = self._models()
        unsaid = [each for each, used_at in models.items() if not used_at]
        if models.get(model, to_micros(now)) <= to_micros(now - USE_SAID_AFTER):
            unsaid.append(model)
        said = [{"model": each, "now": to_micros(now)} for each in unsaid]
        if said:
            self._database.write(None, lambda c: c.run_many("use_model", said))

    def delete_others(self, model: str, now: datetime, limit: int) -> bool:
        """Delete vectors of other models that nobody used for a day; whether there may be more."""
        models = self._models()
        unused_since = to_micros(now - UNUSED)
        unused = [
            other
            for other, used_at in models.items()
            if other != model and 0 < used_at <= unused_since
        ]
        if not unused:
            return False
        names = {"model": unused[0], "limit": limit}
        found = self._row(None, "space_of_vectors", names)
        if found is None:
            self._run(None, "forget_model", names)
            return True
        own = {**names, "space": found[0]}
        self._database.write(found[0], lambda c: c.run("delete_vectors_of", own))
        return True

    def _models(self) -> dict[str, int]:
        """The models that there are vectors of, and when somebody last said to have each."""
        return dict(self._rows(None, "models", {}))


def _prune_dropped(c: Connection, space: str) -> None:
    row = c.row("old_dropped", {"space": space, "kept": DROPPED_KEPT})
    if row is not None:
        c.run("prune_dropped", {"space": space, "upto": row[0]})
        c.run("set_pruned", {"space": space, "upto": row[0]})


def _pending_records(c: Connection, page: dict[str, object]) -> list[Unembedded]:
    row = c.row("embedded_upto", {"model": page["model"]})
    page = {**page, "after": 0 if row is None else row[0]}
    # A text that nothing may be learned from is empty here, and so is its vector.
    return [
        Unembedded(space=each[0], kind=EntryKind.RECORD, key=each[1], text=each[2])
        for each in c.rows("unembedded_records", page)
    ]


def _names(vector: NewVector) -> dict[str, object]:
    entry = vector.entry
    return {
        "space": entry.space,
        "kind": entry.kind.value,
        "entry_key": entry.key,
        "chars_max": TEXT_CHARS_MAX,
        "vector": vector.vector,
    }
