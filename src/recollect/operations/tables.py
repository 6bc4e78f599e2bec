"""Which tables hold what a space is, in which order they are copied, and how their rows are named.

A database numbers rows as it likes. Here a row is told by what it is called in every database (a
session by its id, a key by its agent and its name), and numbers only say what came first. So the
same content is the same text, whichever database it lies in.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from recollect.errors import InvalidArchive
from recollect.progress import counted_rows
from recollect.stemming import indexed_fact, indexed_record, indexed_summary
from recollect.store.whole import Column, Values, Whole

Line = Mapping[str, Any]


class Naming(Enum):
    """What stands for the number of another row."""

    KEY = auto()  # a stable key: its agent and its name
    FACT = auto()
    DOCUMENT = auto()
    SESSION = auto()  # nothing: a record has the key of its session
    AGENT_JOB = auto()  # jobs of agents are called by the number of a stable key


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of which a part belongs to every space."""

    name: str
    order: tuple[str, ...]
    left_out: frozenset[str] = frozenset()
    from_zero: frozenset[str] = frozenset()  # numbers that begin anew wherever a row comes to
    named: Mapping[str, Naming] = field(default_factory=dict)
    # By column: what earlier archives call a value, and what it is called now.
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # By which words a row of an earlier archive is found, that does not have them as they are now.
    words: Callable[[Line], str | None] | None = None

    @property
    def is_reread(self) -> bool:
        """Whether a row may be another where it is loaded."""
        return bool(self.from_zero) or self.words is not None


def _table(
    name: str,
    *order: str,
    left_out: Iterable[str] = (),
    from_zero: Iterable[str] = (),
    named: Mapping[str, Naming] | None = None,
    renamed: Mapping[str, Mapping[str, str]] | None = None,
    words: Callable[[Line], str | None] | None = None,
) -> Table:
    return Table(
        name=name,
        order=order,
        left_out=frozenset(left_out) | {"space"},
        from_zero=frozenset(from_zero),
        named=named or {},
        renamed=renamed or {},
        words=words,
    )


def _numbered(
    name: str,
    number: str,
    *,
    left_out: Iterable[str] = (),
    named: Mapping[str, Naming] | None = None,
    words: Callable[[Line], str | None] | None = None,
) -> Table:
    return _table(name, number, left_out=[number, *left_out], named=named, words=words)


def _words_of_record(line: Line) -> str | None:
    return indexed_record(line["content"]) if line["words"] is None else line["words"]


def _words_of_extraction(line: Line) -> str | None:
    said = line["raw_memory"], line["rollout_summary"], line["rollout_slug"]
    return indexed_summary(*said) if line["words"] is None else line["words"]


def _words_of_fact(line: Line) -> str | None:
    said = line["content"], line["topic"], json.loads(line["metadata"])
    return line["words"] if line.get("stemmed", 1) else indexed_fact(*said)


_OF_KEY = {"key_id": Naming.KEY}
_OF_DOCUMENT = {"document_key": Naming.DOCUMENT}

# Whoever refers to a row comes after it.
TABLES: tuple[Table, ...] = (
    _table("spaces", "space", left_out=["number"]),
    _table("agents", "id"),
    _numbered("session_keys", "id"),
    _table("sessions", "id", named=_OF_KEY),
    _numbered("session_history", "id", named={"key_id": Naming.SESSION}, words=_words_of_record),
    _table("retained_records", "session_id", "position"),
    _table("summaries", "session_id"),
    _table("session_ranges", "session_id", "pass", "first_seq"),
    _table("staged_drafts", "session_id"),
    _numbered("extractions", "key", words=_words_of_extraction),
    _numbered("facts", "key", words=_words_of_fact),
    _table(
        "fact_sources",
        *("fact_key", "session_id", "seq", "seq_to"),
        named={"fact_key": Naming.FACT},
    ),
    _numbered("fact_history", "id"),
    _numbered("ledger", "id"),
    _table("spending", "day"),
    # Which files were written is of one directory: elsewhere there are none of them yet.
    _table("consolidations", "space", from_zero=["files_generation"]),
    _table("removed_memories", "session_id"),
    _table("trees", "space"),
    _numbered("documents", "key", named={"deleted_with": Naming.DOCUMENT}),
    _table("document_versions", "document_key", "version", named=_OF_DOCUMENT),
    _table(
        "document_references",
        *("document_key", "target_path_key", "kind"),
        named={**_OF_DOCUMENT, "target_key": Naming.DOCUMENT},
    ),
    _table("document_redirects", "path_key", named=_OF_DOCUMENT),
    _table("generations", "number"),
    _table("generation_documents", "document_id", "first_generation"),
    _table("derived_inputs", "kind", "id", "input_kind", "input_id", "seq", "seq_to"),
    _table("contexts", "id"),
    _table("context_lines", "context_id", "position"),
    _table(
        "usages",
        *("turn_id", "kind", "entry_kind", "entry_id"),
        renamed={"kind": {"injected": "shown"}},
    ),
    _table("agent_lives", "key_id", named=_OF_KEY),
    _numbered("inbox", "id", named=_OF_KEY),
    _table("signals", "key_id", "name", named=_OF_KEY),
    _table("told_records", "about_session", "session_id", "first_seq"),
    _table("imported_items", "source", "item"),
    _table("import_cursors", "source", "place"),
    # Who holds a job is of no use elsewhere: what was claimed is due there.
    _numbered(
        "jobs",
        "id",
        left_out=["owner", "lease_expires_at", "token"],
        named={"key": Naming.AGENT_JOB},
    ),
)

# Of the store, not of a space. A migration takes them along; no archive holds them: what lets
# somebody in, or salts a digest, does not travel with what is remembered.
OF_THE_STORE: tuple[str, ...] = ("properties", "api_keys", "audit")

# What is made anew from the rest, or belongs to one store alone.
LEFT_OUT: Mapping[str, str] = {
    "schema_version": "every store has its own",
    "vectors": "made anew by whichever embedder there is",
    "embeddings": "made anew with the vectors",
    "dropped_vectors": "tells running processes which vectors are gone",
    "vector_spaces": "counts vectors",
    "embedded_records": "says how far vectors have been made",
    "indexed_records": "says how far the index of words goes",
    "postings": "an index of words",
}


_AGENT_JOBS = "('agent', 'memory-agent')"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SIXTY_FOUR_BITS = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """How many rows a table has of a space, and what they come to."""

    rows: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineField:
    """A field of a line: what it is called, how it is read, and what is written for it."""

    name: str
    read: str


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
    """How one table of one database is read and written."""

    def __init__(self, table: Table, columns: Sequence[Column], whole: Whole) -> None:
        self._table = table
        self._whole = whole
        self._columns = {
            column.name: column for column in columns if column.name not in table.left_out
        }
        self._parts = sorted(self._fields(), key=lambda part: part.name)
        self._names = [part.name for part in self._parts]
        self._types = {column.name: column for column in columns}

    @property
    def table(self) -> Table:
        return self._table

    def lines(self, space: str) -> Iterator[Line]:
        """The rows of a space, in an order that does not depend on the database."""
        read = ", ".join(part.read for part in self._parts)
        order = ", ".join(self._sorted(name) for name in self._table.order)
        text = f"SELECT {read} FROM {self._table.name} t WHERE t.space = :space ORDER BY {order}"
        rows = self._whole.stream(text, {"space": space})
        for row in counted_rows(rows, f"{space}: {self._table.name}"):
            yield dict(zip(self._names, row, strict=True))

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
            line: Line | None = start
            while line is not None:
                if sorted(line) != names:
                    raise InvalidArchive(f"{self._table.name}: rows with different fields")
                if line.get("deleted_with.id") is not None:
                    later.append(
                        {"space": space, "id": line["id"], "other": line["deleted_with.id"]}
                    )
                yield self._bound(space, names, line)
                line = next(rest, None)

        self._whole.run_many(self._insertion(names), values())
        if later:
            self._whole.run_many(_DELETED_WITH, later)

    def clear(self, space: str) -> None:
        self._whole.run(f"DELETE FROM {self._table.name} WHERE space = :space", {"space": space})

    def _fields(self) -> Iterator[_LineField]:
        for name in self._columns:
            match self._table.named.get(name):
                case None if name in self._table.from_zero:
                    yield _LineField(name=name, read="0")
                case None if self._table.name == "jobs" and name == "state":
                    yield _LineField(
                        name=name,
                        read="CASE t.state WHEN 'claimed' THEN 'due' ELSE t.state END",
                    )
                case None:
                    yield _LineField(name=name, read=f"t.{name}")
                case Naming.KEY:
                    found = f"FROM session_keys k WHERE k.space = t.space AND k.id = t.{name})"
                    yield _LineField(name=f"{name}.agent", read=f"(SELECT k.agent_id {found}")
                    yield _LineField(name=f"{name}.key", read=f"(SELECT k.key {found}")
                case Naming.FACT:
                    found = f"FROM facts f WHERE f.space = t.space AND f.key = t.{name}"
                    yield _LineField(name=f"{name}.id", read=f"(SELECT f.id {found})")
                case Naming.DOCUMENT if name == "deleted_with":
                    # What it went with may be gone for good: then it went by itself.
                    found = (
                        "SELECT d.id FROM documents d"
                        " WHERE d.space = t.space AND d.key = t.deleted_with"
                    )
                    known = f"COALESCE(({found}), t.id)"
                    yield _LineField(
                        name="deleted_with.id",
                        read=f"CASE WHEN t.deleted_at IS NULL THEN NULL ELSE {known} END",
                    )
                case Naming.DOCUMENT:
                    found = f"FROM documents d WHERE d.space = t.space AND d.key = t.{name}"
                    yield _LineField(name=f"{name}.id", read=f"(SELECT d.id {found})")
                case Naming.SESSION:
                    pass
                case Naming.AGENT_JOB:
                    is_agent = f"t.kind IN {_AGENT_JOBS}"
                    number = f"CASE WHEN {is_agent} THEN CAST(t.key AS BIGINT) END"
                    found = f"FROM session_keys k WHERE k.space = t.space AND k.id = {number})"
                    yield _LineField(
                        name=name, read=f"CASE WHEN {is_agent} THEN NULL ELSE t.{name} END"
                    )
                    yield _LineField(name=f"{name}.agent", read=f"(SELECT k.agent_id {found}")
                    yield _LineField(name=f"{name}.key", read=f"(SELECT k.key {found}")

    def _sorted(self, name: str) -> str:
        is_text = self._whole.dialect == "postgres" and self._types[name].is_text
        return f't.{name} COLLATE "C"' if is_text else f"t.{name}"

    def _insertion(self, names: Sequence[str]) -> str:
        unknown = set(names) - set(self._names)
        if unknown:
            raise InvalidArchive(
                f"{self._table.name} has no {min(unknown)!r}; a newer Recollect wrote this,"
                " or it is none of ours"
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
        match self._table.named.get(name):
            case None:
                return numbers.get(name)
            case Naming.SESSION:
                return _found("sessions", "key_id", id=numbers["session_id"])
            case Naming.DOCUMENT if name == "deleted_with":
                return f"CASE WHEN {_text(numbers[f'{name}.id'])} IS NULL THEN NULL ELSE 0 END"
            case Naming.FACT:
                return _found("facts", "key", id=numbers[f"{name}.id"])
            case Naming.DOCUMENT:
                return _found("documents", "key", id=numbers[f"{name}.id"])
            case Naming.KEY:
                return _key_of(name, numbers)
            case Naming.AGENT_JOB:
                number = f"CAST({_key_of(name, numbers)} AS TEXT)"
                return f"COALESCE({_text(numbers[name])}, {number})"

    def _bound(self, space: str, names: Sequence[str], line: Line) -> Values:
        bound: dict[str, Any] = {"space": space}
        for number, name in enumerate(names):
            value = 0 if name in self._table.from_zero else line[name]
            if not _fits(value):
                raise InvalidArchive(f"{self._table.name}: {name} is nothing that a store holds")
            if isinstance(value, str):
                value = self._table.renamed.get(name, {}).get(value, value)
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


def begun_anew(table: Table, line: Line) -> Line:
    """A line as it is read anywhere, also of an archive that says less or more than today's."""
    read = {**line, **{name: 0 for name in table.from_zero if name in line}}
    if table.words is not None:
        read["words"] = table.words(line)
        read.pop("stemmed", None)
    return read


def encoded(line: Line) -> bytes:
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode() + b"\n"


def tallied(
    lines: Iterable[Line], tally: Tally, put: Callable[[bytes], object] | None = None
) -> Iterator[Line]:
    """The same lines, counted and digested on the way."""
    for line in lines:
        data = encoded(line)
        tally.add(data)
        if put is not None:
            put(data)
        yield line


def _text(value: str) -> str:
    """A value by itself has no type that PostgreSQL could guess."""
    return f"CAST({value} AS TEXT)"


def _found(table: str, number: str, **names: str) -> str:
    where = " AND ".join(f"o.{name} = {value}" for name, value in names.items())
    return f"(SELECT o.{number} FROM {table} o WHERE o.space = :space AND {where})"


def _key_of(name: str, numbers: Mapping[str, str]) -> str:
    agent, key = numbers[f"{name}.agent"], numbers[f"{name}.key"]
    return _found("session_keys", "id", agent_id=agent, key=key)


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
