"""One portable archive: a zip of JSON lines per table, the documents as Markdown, and a manifest.

The same content gives the same bytes: members come in a fixed order, have no time and name no
store. The manifest holds the digest of every member, so that nothing is loaded from an archive that
was changed. Rows are streamed one by one; only the list of members is held in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote

from recollect.collection import check_space
from recollect.documents.front_matter import render
from recollect.errors import (
    InvalidArchive,
    InvalidValue,
    NotEmpty,
    NotFound,
    SchemaTooNew,
    StoreCorrupt,
    StoreDenied,
)
from recollect.operations.files import check_free, made_aside, put_into_place
from recollect.operations.tables import (
    TABLES,
    Digest,
    Line,
    digests,
    encoded,
    index,
    shapes,
    spaces,
)
from recollect.progress import counted_rows, tell
from recollect.store.protocol import Store
from recollect.store.relational.document_rows import document
from recollect.store.schema import newest_version
from recollect.store.whole import Access, Whole, first

FORMAT = "recollect-archive"
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 256 * 1024 * 1024
LINE_BYTES_MAX = 256 * 1024 * 1024
PIECE_BYTES = 1024 * 1024
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
_UNIX = 3
_MODE = 0o100600 << 16
_KNOWN = {table.name: table for table in TABLES}
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceEntry:
    """What the manifest says of one space."""

    space: str
    directory: str
    counts: Mapping[str, int]


def directory_of(space: str) -> str:
    """A directory for a space whose name may be anything."""
    name = quote(space, safe="")
    return f"spaces/{name.replace('.', '%2E') if name.startswith('.') else name}"


class ArchiveWriter:
    """Writes members in the order in which they come, and at the end the manifest, if all is well.

    A context manager: what is given up half-way is left as it is, for its file to be removed.
    """

    def __init__(self, file: IO[bytes], schema_version: int) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)
        self._schema_version = schema_version
        self._members: dict[str, dict[str, Any]] = {}
        self._spaces: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def member(self, name: str) -> Iterator[Callable[[bytes], None]]:
        """A member that is being written, by what puts some bytes into it."""
        sha, size = hashlib.sha256(), 0
        with self._zip.open(_info(name), "w", force_zip64=True) as stream:

            def put(data: bytes) -> None:
                nonlocal size
                stream.write(data)
                sha.update(data)
                size += len(data)

            yield put
        self._members[name] = {"bytes": size, "sha256": sha.hexdigest()}

    def end_space(self, space: str, counts: Mapping[str, int]) -> None:
        entry = {"space": space, "directory": directory_of(space), "counts": dict(counts)}
        self._spaces.append(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._finish()
        else:
            self._zip.fp = None  # or it would write to the end, at last, into a file that is closed

    def _finish(self) -> None:
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "schema_version": self._schema_version,
            "spaces": self._spaces,
            "members": self._members,
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True)
        with self._zip.open(_info(MANIFEST), "w", force_zip64=True) as stream:
            stream.write(text.encode() + b"\n")
        self._zip.close()


class Archive:
    """An archive that is read. `check` it before anything of it is used."""

    def __init__(self, file: zipfile.ZipFile, shown: str) -> None:
        self._zip = file
        self._shown = shown
        manifest = self._manifest()
        self.schema_version: int = manifest["schema_version"]
        self.spaces = [
            SpaceEntry(space=each["space"], directory=each["directory"], counts=each["counts"])
            for each in manifest["spaces"]
        ]
        self._members: Mapping[str, Mapping[str, Any]] = manifest["members"]

    def check(self) -> None:
        """Read every byte once: all that was written is there, as it was, and nothing else."""
        names = [info.filename for info in self._zip.infolist()]
        if len(names) != len(set(names)) or set(names) != {MANIFEST, *self._members}:
            raise self._wrong("its members are not those of its manifest")
        for name, said in self._members.items():
            sha = hashlib.sha256()
            with self._opened(name) as stream:
                while data := stream.read(PIECE_BYTES):
                    sha.update(data)
            if sha.hexdigest() != said["sha256"]:
                raise self._wrong(f"{name} was changed after it was written")
        self._check_tables()

    def digest(self, entry: SpaceEntry, table: str) -> Digest:
        """What the rows of a table come to where they are loaded."""
        said = self._members.get(_member_name(entry, table))
        sha = hashlib.sha256().hexdigest() if said is None else str(said["sha256"])
        return Digest(rows=entry.counts.get(table, 0), sha256=sha)

    def lines(self, entry: SpaceEntry, table: str) -> Iterator[Line]:
        """The rows of a table, digested as they pass: the file may have changed since `check`."""
        name = _member_name(entry, table)
        if name not in self._members:
            return
        sha, rows = hashlib.sha256(), 0
        with self._opened(name) as stream:
            while data := stream.readline(LINE_BYTES_MAX):
                sha.update(data)
                rows += 1
                yield self._line(name, data)
        if sha.hexdigest() != self._members[name]["sha256"] or rows != entry.counts.get(table):
            raise self._wrong(f"{name} is not what its manifest says")

    def _line(self, name: str, data: bytes) -> Line:
        try:
            line = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"{name} has a line that is not JSON") from error
        if not isinstance(line, dict):
            raise self._wrong(f"{name} has a line that is not an object")
        return line

    def _check_tables(self) -> None:
        for entry in self.spaces:
            prefix = f"{entry.directory}/"
            for name in self._members:
                inner = name.removeprefix(prefix)
                is_table = name.startswith(prefix) and inner.endswith(".jsonl")
                if is_table and "/" not in inner and inner.removesuffix(".jsonl") not in _KNOWN:
                    raise self._wrong(f"{name} is of a table that this Recollect does not know")

    def _manifest(self) -> Mapping[str, Any]:
        try:
            with self._opened(MANIFEST) as stream:
                data = stream.read(MANIFEST_BYTES_MAX + 1)
            manifest = json.loads(data)
        except (KeyError, ValueError, RecursionError) as error:
            raise self._wrong("it has no manifest that can be read") from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise self._wrong("its manifest is not one of Recollect")
        if manifest.get("format_version") != FORMAT_VERSION:
            raise self._wrong(
                f"it has format version {manifest.get('format_version')!r}; this Recollect reads"
                f" {FORMAT_VERSION}"
            )
        if not _is_well_formed(manifest):
            raise self._wrong("its manifest is incomplete")
        return manifest

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with self._zip.open(name) as stream:
                yield stream
        except _UNREADABLE as error:
            raise self._wrong(f"{name} cannot be read ({error})") from error

    def _wrong(self, why: str) -> InvalidArchive:
        return InvalidArchive(f"{self._shown}: {why}; nothing of it was loaded")


@contextlib.contextmanager
def opened(path: Path, schema_version: int) -> Iterator[Archive]:
    """An archive that is whole and that this version understands."""
    try:
        with zipfile.ZipFile(path) as file:
            archive = Archive(file, str(path))
            if archive.schema_version > schema_version:
                raise SchemaTooNew(
                    f"{path} was written with schema version {archive.schema_version}; this"
                    f" Recollect knows {schema_version}. Upgrade Recollect. Nothing was loaded."
                )
            archive.check()
            yield archive
    except zipfile.BadZipFile as error:
        raise InvalidArchive(f"{path} is not an archive, or was cut short ({error})") from error
    except FileNotFoundError as error:
        raise NotFound(f"there is no archive {path}") from error
    except OSError as error:
        raise StoreDenied(f"cannot read {path}: {error.strerror}") from error


@contextlib.contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """A new file, there once it is whole and durable, for its owner alone."""
    check_free(path, "an archive is never written over: name a new file")
    try:
        with made_aside(path) as aside:
            descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w+b") as file:
                yield file
            put_into_place(aside, path)
    except OSError as error:
        raise StoreDenied(f"cannot write {path}: {error.strerror}") from error


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = _UNIX
    info.external_attr = _MODE
    return info


def _member_name(entry: SpaceEntry, table: str) -> str:
    return f"{entry.directory}/{table}.jsonl"


def _is_well_formed(manifest: Mapping[str, Any]) -> bool:
    match manifest:
        case {"schema_version": int(), "spaces": list(spaces), "members": dict(members)}:
            has_digests = all(
                isinstance(said, dict) and isinstance(said.get("sha256"), str)
                for said in members.values()
            )
            return has_digests and all(map(_is_space, spaces))
        case _:
            return False


def _is_space(said: object) -> bool:
    match said:
        case {"space": str(space), "directory": str(directory), "counts": dict(counts)}:
            is_right = directory == directory_of(space)
            return is_right and all(isinstance(count, int) for count in counts.values())
        case _:
            return False


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


def export(store: Store, path: str | Path, *, space: str | None = None) -> Exported:
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


def load(store: Store, path: str | Path, *, space: str | None = None) -> Loaded:
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
        with archive.member(f"{directory_of(space)}/{name}.jsonl") as put:
            for line in shape.lines(space):
                counts[name] += 1
                put(encoded(line))
    _put_documents(archive, whole, space)
    archive.end_space(space, counts)
    return counts


def _put_documents(archive: ArchiveWriter, whole: Whole, space: str) -> None:
    """For people to read: what is loaded is the tables."""
    for found in map(document, whole.stream(_DOCUMENTS, {"space": space})):
        name = found.path.removeprefix("/")
        with archive.member(f"{directory_of(space)}/documents/{name}.md") as put:
            put(render(found))


def _check_name(name: str, path: Path) -> None:
    try:
        check_space(name)
    except InvalidValue as error:
        raise InvalidArchive(f"{path}: {error}") from error


def _already_there(store: Store, archive: Archive, entries: list[SpaceEntry]) -> list[str]:
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
    store: Store, archive: Archive, entry: SpaceEntry, path: Path, *, is_last: bool
) -> Mapping[str, int]:
    """One space in one transaction; a note says what it comes from while there are more of them."""
    with store.whole(Access.WRITE) as whole:
        known = shapes(whole)
        try:
            for shape in known:
                name = shape.table.name
                lines = counted_rows(archive.lines(entry, name), f"{entry.space}: {name}")
                shape.write(entry.space, lines)
            index(whole, entry.space)
        except InvalidValue as error:
            raise InvalidArchive(
                f"the space {entry.space!r} is inconsistent; nothing of it was loaded ({error})"
            ) from error
        if first(whole.stream(_STRAY_JOBS, {"space": entry.space})) is not None:
            raise InvalidArchive(
                f"the space {entry.space!r} has jobs for something that it does not hold;"
                " nothing of it was loaded"
            )
        is_ours = archive.schema_version == newest_version(whole.dialect)
        found = digests(whole, entry.space)
        for table, digest in found.items():
            said = archive.digest(entry, table)
            if digest.rows != said.rows or (is_ours and digest != said):
                raise StoreCorrupt(
                    f"{table} of {entry.space!r} differs once loaded; nothing was loaded"
                )
        if is_last:
            whole.run("DELETE FROM properties WHERE name = :name", {"name": NOTE})
        else:
            whole.run(_NOTE, {"name": NOTE, "value": str(path)})
    return {table: digest.rows for table, digest in found.items()}
