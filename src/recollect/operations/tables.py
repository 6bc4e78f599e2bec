"""Which tables hold what a space is, in which order they are copied, and how their rows are named.

A database numbers rows as it likes. Here a row is told by what it is called in every database (a
session by its id, a key by its agent and its name), and numbers only say what came first. So the
same content is the same text, whichever database it lies in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


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


def _table(
    name: str,
    *order: str,
    left_out: Iterable[str] = (),
    from_zero: Iterable[str] = (),
    named: Mapping[str, Naming] | None = None,
    renamed: Mapping[str, Mapping[str, str]] | None = None,
) -> Table:
    return Table(
        name=name,
        order=order,
        left_out=frozenset(left_out) | {"space"},
        from_zero=frozenset(from_zero),
        named=named or {},
        renamed=renamed or {},
    )


def _numbered(
    name: str,
    number: str,
    *,
    left_out: Iterable[str] = (),
    named: Mapping[str, Naming] | None = None,
) -> Table:
    return _table(name, number, left_out=[number, *left_out], named=named)


_OF_KEY = {"key_id": Naming.KEY}
_OF_DOCUMENT = {"document_key": Naming.DOCUMENT}

# Whoever refers to a row comes after it.
TABLES: tuple[Table, ...] = (
    _table("spaces", "space", left_out=["number"]),
    _table("agents", "id"),
    _numbered("session_keys", "id"),
    _table("sessions", "id", named=_OF_KEY),
    _numbered("session_history", "id", named={"key_id": Naming.SESSION}),
    _table("retained_records", "session_id", "position"),
    _table("summaries", "session_id"),
    _table("session_ranges", "session_id", "pass", "first_seq"),
    _table("staged_drafts", "session_id"),
    _numbered("extractions", "key"),
    _numbered("facts", "key"),
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
