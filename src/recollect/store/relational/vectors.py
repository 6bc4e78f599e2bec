"""Vectors as rows: what has none yet is found, what was made is kept, what changed is told."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from itertools import groupby

from recollect.recollection import EntryKind, NewVector, Unembedded, VectorChanges
from recollect.store.relational.database import Connection, Database

LATE_RECORDS = 2000  # that are looked at again, for those whose number is lower than their turn
TEXT_CHARS_MAX = 8000  # of an entry, that an embedder is shown

_PENDING = {
    EntryKind.FACT: "unembedded_facts",
    EntryKind.SUMMARY: "unembedded_summaries",
    EntryKind.DOCUMENT: "unembedded_documents",
}
_PUT = {
    EntryKind.FACT: "put_fact_vector",
    EntryKind.SUMMARY: "put_summary_vector",
    EntryKind.DOCUMENT: "put_document_vector",
    EntryKind.RECORD: "put_record_vector",
}


class RelationalVectors:
    """Implements `recollect.store.protocol.Vectors`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pending(self, model: str, limit: int) -> builtins.list[Unembedded]:
        def job(c: Connection) -> list[Unembedded]:
            found: list[Unembedded] = []
            for kind, name in _PENDING.items():
                page = {"model": model, "limit": limit - len(found), "chars_max": TEXT_CHARS_MAX}
                found += [
                    Unembedded(space=row[0], kind=kind, key=row[1], text=row[2], mark=row[3])
                    for row in c.rows(name, page)
                ]
                if len(found) >= limit:
                    return found
            return found + _pending_records(c, model, limit - len(found))

        return self._database.read(None, job)

    def put(self, model: str, vectors: Sequence[NewVector]) -> int:
        by_space = sorted(vectors, key=lambda each: each.entry.space)
        for space, group in groupby(by_space, key=lambda each: each.entry.space):
            self._put(space, model, list(group))
        records = [each.entry.key for each in vectors if each.entry.kind is EntryKind.RECORD]
        upto = {"model": model, "upto": max(records, default=0)}
        self._database.write(None, lambda c: c.run("set_embedded_upto", upto))
        return len(vectors)

    def _put(self, space: str, model: str, vectors: Sequence[NewVector]) -> None:
        def job(c: Connection) -> None:
            c.run("lock_vectors", {"space": space})
            for kind, name in _PUT.items():
                given = [
                    {
                        "space": space,
                        "model": model,
                        "entry_key": each.entry.key,
                        "mark": each.entry.mark,
                        "text": each.entry.text,
                        "chars_max": TEXT_CHARS_MAX,
                        "vector": each.vector,
                    }
                    for each in vectors
                    if each.entry.kind is kind
                ]
                if given:
                    c.run_many(name, given)

        self._database.write(space, job)

    def changes(
        self, space: str, model: str, after: int, dropped_after: int, limit: int
    ) -> VectorChanges:
        names = {"space": space, "model": model, "limit": limit}

        def job(c: Connection) -> VectorChanges:
            # In this order: on PostgreSQL the second may see more than the first. What went after
            # it came is then told as gone, and what came after it went is told the next time.
            added = c.rows("vectors_after", {**names, "after": after})
            dropped = c.rows("dropped_after", {**names, "after": dropped_after})
            return VectorChanges(
                added=[(row[0], row[1], row[2], bytes(row[3])) for row in added],
                dropped=[(row[1], row[2]) for row in dropped],
                upto=added[-1][0] if added else after,
                dropped_upto=dropped[-1][0] if dropped else dropped_after,
                is_all=len(added) < limit and len(dropped) < limit,
            )

        return self._database.read(space, job)

    def delete_others(self, model: str, limit: int) -> bool:
        others = self._database.read(None, lambda c: c.rows("other_models", {"model": model}))
        if not others:
            return False
        names = {"model": others[0][0], "limit": limit}

        def job(c: Connection) -> None:
            if len(c.rows("delete_vectors_of", names)) < limit:
                c.run("forget_model", names)

        self._database.write(None, job)
        return True


def _pending_records(c: Connection, model: str, limit: int) -> list[Unembedded]:
    row = c.row("embedded_upto", {"model": model})
    after = 0 if row is None else row[0] - LATE_RECORDS
    page = {"model": model, "after": after, "limit": limit, "chars_max": TEXT_CHARS_MAX}
    return [
        # A text that nothing may be learned from is empty here, and so is its vector.
        Unembedded(
            space=each[0],
            kind=EntryKind.RECORD,
            key=each[1],
            text=each[2] if each[4] else "",
            mark=each[3],
        )
        for each in c.rows("unembedded_records", page)
    ]
