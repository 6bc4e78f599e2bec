"""Export and load: spaces into an archive, and out of one into a store that has none of them.

Owns that a space is loaded whole or not at all: its rows are read back and compared with the
archive before they are committed, in the transaction that wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recollect.collection import check_space
from recollect.document import Document
from recollect.documents.front_matter import render
from recollect.errors import InvalidArchive, InvalidValue, NotEmpty, NotFound, StoreCorrupt
from recollect.operations.archive import (
    Archive,
    ArchiveWriter,
    SpaceEntry,
    directory_of,
    opened,
    written,
)
from recollect.operations.rows import digests, encoded, shapes, spaces
from recollect.progress import counted_rows, tell
from recollect.store.relational.document_rows import document
from recollect.store.schema import newest_version
from recollect.store.whole import Access, Whole, WholeDatabase, first

_DOCUMENTS = """
SELECT d.key, d.id, d.space, d.path, d.path_key, d.title, d.description, d.body, d.tags, d.links,
    d.version, d.created_at, d.updated_at, d.deleted_at, d.author_kind, d.author, d.reason,
    d.provenance
FROM documents d WHERE d.space = :space AND d.deleted_at IS NULL ORDER BY d.path_key
"""

NOTE = "loading-from"
# What a space's jobs are about: one of its sessions, one of its agents, or all of it.
_STRAY_JOBS = """
SELECT 1 FROM jobs j WHERE j.space = :space AND NOT (
    (j.kind IN ('extract', 'extract-again') AND EXISTS (
        SELECT 1 FROM sessions s WHERE s.space = :space AND s.id = j.key))
    OR j.kind IN ('agent', 'memory-agent')
    OR (j.kind = 'consolidate' AND j.key = :space))
LIMIT 1
"""
_NOTE = """
INSERT INTO properties (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an archive holds, rows by space and table."""

    path: Path
    size_bytes: int
    spaces: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What came in from an archive, and which of its spaces were there already, the same."""

    path: Path
    spaces: Mapping[str, Mapping[str, int]]
    already_there: tuple[str, ...]


def export(store: WholeDatabase, path: str | Path, *, space: str | None = None) -> Exported:
    """Write one space, or all, as they are at one moment; others go on writing meanwhile.

    NotEmpty: something has that name already; nothing is ever written over.
    """
    path = Path(path)
    found: dict[str, Mapping[str, int]] = {}
    with store.whole(Access.READ) as whole:
        names = _wanted(spaces(whole), space, whole.location)
        version = newest_version(whole.dialect)
        with written(path) as file, ArchiveWriter(file, version) as archive:
            for number, name in enumerate(names):
                tell(f"reading {name}", number, len(names))
                found[name] = _put_space(archive, whole, name)
    return Exported(path=path, size_bytes=path.stat().st_size, spaces=found)


def load(store: WholeDatabase, path: str | Path, *, space: str | None = None) -> Loaded:
    """Take in the spaces of an archive. None of them may be there, unless it is the very same."""
    path = Path(path)
    with store.whole(Access.READ) as whole:  # who cannot be written to need not read it all
        version = newest_version(whole.dialect)
    with opened(path, version) as archive:
        entries = {entry.space: entry for entry in archive.spaces}
        names = _wanted(list(entries), space, str(path))
        for name in names:
            _check_name(name, path)
        already = _already_there(store, archive, [entries[name] for name in names])
        missing = [name for name in names if name not in already]
        loaded: dict[str, Mapping[str, int]] = {}
        for number, name in enumerate(missing, start=1):
            tell(f"loading {name}", number - 1, len(missing))
            is_last = number == len(missing)
            loaded[name] = _load_space(store, archive, entries[name], path, is_last=is_last)
    return Loaded(path=path, spaces=loaded, already_there=tuple(already))


def _wanted(there: list[str], asked: str | None, where: str) -> list[str]:
    if asked is None:
        return there
    if asked not in there:
        raise NotFound(f"{where} has no space {asked!r}")
    return [asked]


def _put_space(archive: ArchiveWriter, whole: Whole, space: str) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for shape in shapes(whole):
        name = shape.table.name
        counts[name] = 0
        with archive.member(f"{directory_of(space)}/{name}.jsonl") as member:
            for line in shape.lines(space):
                counts[name] += 1
                member.put(encoded(line))
    _put_documents(archive, whole, space)
    archive.end_space(space, counts)
    return counts


def _put_documents(archive: ArchiveWriter, whole: Whole, space: str) -> None:
    """For people to read: what is loaded is the tables."""
    for row in whole.stream(_DOCUMENTS, {"space": space}):
        found = document(row)
        with archive.member(f"{directory_of(space)}/documents{_file_name(found)}.md") as member:
            member.put(render(found))


def _file_name(found: Document) -> str:
    return found.path if found.path.startswith("/") else f"/{found.path}"


def _check_name(name: str, path: Path) -> None:
    try:
        check_space(name)
    except InvalidValue as error:
        raise InvalidArchive(f"{path}: {error}") from error


def _already_there(store: WholeDatabase, archive: Archive, entries: list[SpaceEntry]) -> list[str]:
    """Those that were loaded before, so that a load that was killed can be run again."""
    same: list[str] = []
    with store.whole(Access.READ) as whole:
        there = set(spaces(whole))
        for entry in entries:
            if entry.space not in there:
                continue
            found = digests(whole, entry.space)
            if any(archive.digest(entry, table) != digest for table, digest in found.items()):
                raise NotEmpty(
                    f"{whole.location} has a space {entry.space!r} already, and it is not the same;"
                    " nothing was loaded. Load into an empty store, or name another space"
                )
            same.append(entry.space)
    return same


def _load_space(
    store: WholeDatabase, archive: Archive, entry: SpaceEntry, path: Path, *, is_last: bool
) -> Mapping[str, int]:
    """One space in one transaction; a note says what it comes from while there are more of them."""
    with store.whole(Access.WRITE) as whole:
        known = shapes(whole)
        try:
            for shape in known:
                name = shape.table.name
                lines = counted_rows(archive.lines(entry, name), f"{entry.space}: {name}")
                shape.write(entry.space, lines)
        except InvalidValue as error:
            raise InvalidArchive(
                f"the space {entry.space!r} does not fit together; nothing of it was loaded"
                f" ({error})"
            ) from error
        if first(whole.stream(_STRAY_JOBS, {"space": entry.space})) is not None:
            raise InvalidArchive(
                f"the space {entry.space!r} has jobs for what is not in it;"
                " nothing of it was loaded"
            )
        is_ours = archive.schema_version == newest_version(whole.dialect)
        found = digests(whole, entry.space)
        for table, digest in found.items():
            said = archive.digest(entry, table)
            if digest.rows != said.rows or (is_ours and digest != said):
                raise StoreCorrupt(
                    f"{table} of {entry.space!r} did not come out as it went in; nothing was loaded"
                )
        if is_last:
            whole.run("DELETE FROM properties WHERE name = :name", {"name": NOTE})
        else:
            whole.run(_NOTE, {"name": NOTE, "value": str(path)})
    return {table: digest.rows for table, digest in found.items()}
