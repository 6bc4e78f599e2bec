"""The tables of a space's content, their order for copying, and the portable names of their rows.

Databases number rows differently. Here a row is identified by what names it in every database (a
session by its id, a key by its agent and its name), and numbers only give an order. So the same
content is the same text, whichever database holds it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from recollect.errors import InvalidArchive
from recollect.progress import counted_rows
from recollect.store.whole import Column, Values, Whole

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What stands for the value of a column: what is read, by what it is called behind the name of
    the column, and what is written of it. `{name}` is the column; what was read is called alike."""

    read: Mapping[str, str] = field(default_factory=lambda: {"": "t.{name}"})
    write: str = "{value}"


def _number_of(table: str, number: str, where: str) -> str:
    return f"(SELECT o.{number} FROM {table} o WHERE o.space = :space AND {where})"


def _id_of(table: str, number: str = "key") -> str:
    return f"(SELECT o.id FROM {table} o WHERE o.space = t.space AND o.{number} = t.{{name}})"


def _key_read(number: str) -> dict[str, str]:
    where = f"FROM session_keys k WHERE k.space = t.space AND k.id = {number})"
    return {"agent": f"(SELECT k.agent_id {where}", "key": f"(SELECT k.key {where}"}


_KEY_NUMBER = _number_of("session_keys", "id", "o.agent_id = {agent} AND o.key = {key}")
_IS_AGENT = "t.kind IN ('agent', 'memory-agent')"

# A stable key: its agent and its name.
KEY = Naming(read=_key_read("t.{name}"), write=_KEY_NUMBER)
FACT = Naming(read={"id": _id_of("facts")}, write=_number_of("facts", "key", "o.id = {id}"))
DOCUMENT = Naming(
    read={"id": _id_of("documents")}, write=_number_of("documents", "key", "o.id = {id}")
)
# What it went with may be gone for good: then it went by itself. It may also come after it, so
# that its number is written when all are there.
DELETED_WITH = Naming(
    read={
        "id": "CASE WHEN t.deleted_at IS NULL THEN NULL"
        f" ELSE COALESCE({_id_of('documents')}, t.id) END"
    },
    write="CASE WHEN CAST({id} AS TEXT) IS NULL THEN NULL ELSE 0 END",
)
# Nothing: a record has the key of its session.
OF_SESSION = Naming(read={}, write=_number_of("sessions", "key_id", "o.id = {session_id}"))
# Jobs of agents are called by the number of a stable key.
JOB_KEY = Naming(
    read={
        "": f"CASE WHEN {_IS_AGENT} THEN NULL ELSE t.{{name}} END",
        **_key_read(f"CASE WHEN {_IS_AGENT} THEN CAST(t.{{name}} AS BIGINT) END"),
    },
    write=f"COALESCE(CAST({{value}} AS TEXT), CAST({_KEY_NUMBER} AS TEXT))",
)
# Who holds a job is of no use elsewhere: what was claimed is due there.
JOB_STATE = Naming(read={"": "CASE t.state WHEN 'claimed' THEN 'due' ELSE t.state END"})
FROM_ZERO = Naming(read={"": "0"})  # a number that begins anew wherever a row comes to
_PLAIN = Naming()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of which a part belongs to every space."""

    name: str
    order: tuple[str, ...]
    left_out: frozenset[str]
    named: Mapping[str, Naming]


def _table(name: str, *order: str, left_out: Iterable[str] = (), **named: Naming) -> Table:
    return Table(name=name, order=order, left_out=frozenset(left_out) | {"space"}, named=named)


def _numbered(name: str, number: str, left_out: Iterable[str] = (), **named: Naming) -> Table:
    return _table(name, number, left_out=[number, *left_out], **named)


# A table comes after those that it refers to.
TABLES: tuple[Table, ...] = (
    _table("spaces", "space", left_out=["number"]),
    _table("agents", "id"),
    _numbered("session_keys", "id"),
    _table("sessions", "id", key_id=KEY),
    _numbered("session_history", "id", key_id=OF_SESSION),
    _table("retained_records", "session_id", "position"),
    _table("summaries", "session_id"),
    _table("session_ranges", "session_id", "pass", "first_seq"),
    _table("staged_drafts", "session_id"),
    _numbered("extractions", "key"),
    _numbered("facts", "key"),
    _table("fact_sources", "fact_key", "session_id", "seq", "seq_to", fact_key=FACT),
    _numbered("fact_history", "id"),
    _numbered("ledger", "id"),
    _table("spending", "day"),
    # Which files were written is of one directory: elsewhere there are none of them yet.
    _table("consolidations", "space", files_generation=FROM_ZERO),
    _table("removed_memories", "session_id"),
    _table("trees", "space"),
    _numbered("documents", "key", deleted_with=DELETED_WITH),
    _table("document_versions", "document_key", "version", document_key=DOCUMENT),
    _table(
        *("document_references", "document_key", "target_path_key", "kind"),
        document_key=DOCUMENT,
        target_key=DOCUMENT,
    ),
    _table("document_redirects", "path_key", document_key=DOCUMENT),
    _table("generations", "number"),
    _table("generation_documents", "document_id", "first_generation"),
    _table("derived_inputs", "kind", "id", "input_kind", "input_id", "seq", "seq_to"),
    _table("usages", "turn_id", "kind", "entry_kind", "entry_id"),
    _table("agent_lives", "key_id", key_id=KEY),
    _numbered("inbox", "id", key_id=KEY),
    _table("signals", "key_id", "name", key_id=KEY),
    _table("told_records", "about_session", "session_id", "first_seq"),
    _table("imported_items", "source", "item"),
    _table("import_cursors", "source", "place"),
    _numbered("jobs", "id", ["owner", "lease_expires_at", "token"], key=JOB_KEY, state=JOB_STATE),
)

# Of the store, not of a space. A migration takes them along; no archive holds them: what lets
# somebody in, or salts a digest, does not travel with what is remembered.
OF_THE_STORE: tuple[str, ...] = ("properties", "api_keys", "audit")

# What is made anew from the rest, or belongs to one store alone.
LEFT_OUT: Mapping[str, str] = {
    "schema_version": "every store has its own",
    "serving_states": "who has signed in here has not signed in there",
    "vectors": "made again by the embedder that is set",
    "embeddings": "made again with the vectors",
    "dropped_vectors": "tells running processes which vectors are gone",
    "vector_spaces": "counts vectors",
    "embedded_records": "says how far vectors have been made",
    "indexed_records": "says how far the index of words goes",
    "postings": "an index of words",
    "contexts": "refers to entries by the keys that one store gives them",
}


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SIXTY_FOUR_BITS = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The number of a space's rows in a table, and a digest of their content."""

    rows: int
    sha256: str


class Tally:
    """Counts and digests lines as they pass."""

    def __init__(self) -> None:
        self._rows = 0
        self._sha = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self._rows += 1
        self._sha.update(data)

    def digest(self) -> Digest:
        return Digest(rows=self._rows, sha256=self._sha.hexdigest())


class Shape:
    """Reads and writes one table of one database."""

    def __init__(self, table: Table, columns: Sequence[Column], whole: Whole) -> None:
        self._table = table
        self._whole = whole
        self._types = {column.name: column for column in columns}
        self._columns = [name for name in self._types if name not in table.left_out]
        self._reads = dict(sorted(self._fields()))

    @property
    def table(self) -> Table:
        return self._table

    def lines(self, space: str) -> Iterator[Line]:
        """The rows of a space, in an order that does not depend on the database."""
        read = ", ".join(self._reads.values())
        order = ", ".join(self._sorted(name) for name in self._table.order)
        text = f"SELECT {read} FROM {self._table.name} t WHERE t.space = :space ORDER BY {order}"
        rows = self._whole.stream(text, {"space": space})
        for row in counted_rows(rows, f"{space}: {self._table.name}"):
            yield dict(zip(self._reads, row, strict=True))

    def digest(self, space: str) -> Digest:
        tally = Tally()
        for line in self.lines(space):
            tally.add(encoded(line))
        return tally.digest()

    def write(self, space: str, lines: Iterable[Line]) -> None:
        """Insert rows. All of them have the fields of the first, or it is no archive of ours."""
        rest = iter(lines)
        start = next(rest, None)
        if start is None:
            return
        names = sorted(start)
        later: list[Values] = []  # documents that were deleted with one that may come after them

        def values() -> Iterator[Values]:
            for line in chain((start,), rest):
                if sorted(line) != names:
                    raise InvalidArchive(f"{self._table.name}: rows with different fields")
                other = line.get("deleted_with.id")
                if other is not None:
                    later.append({"space": space, "id": line["id"], "other": other})
                yield self._bound(space, names, line)

        self._whole.run_many(self._insertion(names), values())
        if later:
            self._whole.run_many(_DELETED_WITH, later)

    def clear(self, space: str) -> None:
        self._whole.run(f"DELETE FROM {self._table.name} WHERE space = :space", {"space": space})

    def _fields(self) -> Iterator[tuple[str, str]]:
        """The fields of a line, each by what it is called and how it is read."""
        for name in self._columns:
            for suffix, read in self._table.named.get(name, _PLAIN).read.items():
                yield f"{name}.{suffix}" if suffix else name, read.format(name=name)

    def _sorted(self, name: str) -> str:
        is_text = self._whole.dialect == "postgres" and self._types[name].is_text
        return f't.{name} COLLATE "C"' if is_text else f"t.{name}"

    def _insertion(self, names: Sequence[str]) -> str:
        unknown = set(names) - set(self._reads)
        if unknown:
            raise InvalidArchive(
                f"{self._table.name} has no {min(unknown)!r}; a newer Recollect wrote this,"
                " or it is not an archive of Recollect"
            )
        numbers = {name: f":v{number}" for number, name in enumerate(names)}
        given: dict[str, str] = {"space": ":space"}
        for name in self._columns:
            value = self._value(name, numbers)
            if value is not None:
                given[name] = value
        columns, values = ", ".join(given), ", ".join(given.values())
        return f"INSERT INTO {self._table.name} ({columns}) VALUES ({values})"

    def _value(self, name: str, numbers: Mapping[str, str]) -> str | None:
        """What is inserted into a column; none: nothing is said of it."""
        naming = self._table.named.get(name, _PLAIN)
        if "" in naming.read and name not in numbers:
            return None
        inner = {suffix: numbers[f"{name}.{suffix}"] for suffix in naming.read if suffix}
        return naming.write.format(
            value=numbers.get(name), session_id=numbers.get("session_id"), **inner
        )

    def _bound(self, space: str, names: Sequence[str], line: Line) -> Values:
        bound: dict[str, Any] = {"space": space}
        for number, name in enumerate(names):
            value = line[name]
            if not _fits(value):
                raise InvalidArchive(f"{self._table.name}: {name} holds a value no store can hold")
            column = self._types.get(name)
            if column is not None and column.is_boolean and value is not None:
                value = bool(value)
            bound[f"v{number}"] = value
        return bound


_DELETED_WITH = """
UPDATE documents SET deleted_with = (
    SELECT o.key FROM documents o WHERE o.space = :space AND o.id = :other)
WHERE space = :space AND id = :id
"""


def shapes(whole: Whole) -> list[Shape]:
    """Every table that holds a part of spaces, in the order in which it is copied."""
    found = whole.tables()
    return [Shape(table, found[table.name], whole) for table in TABLES]


def clear(whole: Whole, space: str) -> None:
    """Remove all of a space, and what finds it."""
    for shape in reversed(shapes(whole)):
        shape.clear(space)
    found_by = ["vectors", *(["postings"] if whole.dialect == "postgres" else [])]
    for table in found_by:
        whole.run(f"DELETE FROM {table} WHERE space = :space", {"space": space})


def index(whole: Whole, space: str) -> None:
    """Have what was written be found by its words; on SQLite it is."""
    if whole.dialect == "postgres":
        for table in ENTRIES:
            whole.run(posting(table, "AND e.space = :space"), {"space": space})


# What is found by its words: by which letter, and the column of its number.
ENTRIES = {
    "session_history": ("r", "id"),
    "facts": ("f", "key"),
    "extractions": ("s", "key"),
    "documents": ("d", "key"),
}


def posting(table: str, condition: str = "") -> str:
    """What makes the postings of a table on PostgreSQL."""
    letter, key = ENTRIES[table]
    return (
        "INSERT INTO postings (space, kind, word, key)"
        f" SELECT DISTINCT e.space, CAST('{letter}' AS \"char\"), left(w, 128), e.{key}"
        f" FROM {table} e CROSS JOIN unnest(string_to_array(e.words, ' ')) w"
        f" WHERE w <> '' {condition} ON CONFLICT (space, kind, word, key) DO NOTHING"
    )


def spaces(whole: Whole) -> list[str]:
    order = 'space COLLATE "C"' if whole.dialect == "postgres" else "space"
    return [row[0] for row in whole.stream(f"SELECT space FROM spaces ORDER BY {order}")]


def digests(whole: Whole, space: str) -> dict[str, Digest]:
    return {shape.table.name: shape.digest(space) for shape in shapes(whole)}


def encoded(line: Line) -> bytes:
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode() + b"\n"


def tallied(lines: Iterable[Line], tally: Tally) -> Iterator[Line]:
    """The same lines, counted and digested on the way."""
    for line in lines:
        tally.add(encoded(line))
        yield line


def _fits(value: object) -> bool:
    match value:
        case None:
            return True
        case bool():
            return False
        case int():
            return value in _SIXTY_FOUR_BITS
        case str():
            return _UNSTORABLE.search(value) is None
        case _:
            return False
