"""The list of what was published: for every file its document, version and hash. Values and JSON.

Beside it stands a list of what was loaded since: the same entries, for what is not any more as it
was published. The two together are what the files are compared with.

Whoever can write in the directory can write the manifest too, so what it says is checked like
anything that comes from outside, and gives nobody more than the holder has.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from recollect.documents.paths import EXTENSION, DocumentPath, read_path
from recollect.errors import InvalidPath, InvalidValue, SchemaTooNew
from recollect.types.pages import Content

NAME = ".recollect.json"
LOADED = ".recollect-loaded.json"
HIDDEN = frozenset({NAME, LOADED, f"{LOADED}.new"})  # ours, and no documents
FORMAT = 1
BYTES_MAX = 256 * 1024 * 1024
# The document at the top has no name of its own in its directory; no slug can be this one.
ROOT_FOLDER = "~"
ROOT_FILE = ROOT_FOLDER + EXTENSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One document of a generation. `sha256` empty: it is only a directory.

    `at` is when the version was made: a store that was restored from a copy uses numbers again.
    `has_sources`: a part of the file can change without a new version, when somebody is forgotten.
    `said`: the file was merged, and this is what it said; none: what the version says.
    """

    path: str
    id: str
    version: int
    sha256: str
    at: str = ""
    size_bytes: int = 0
    has_sources: bool = False
    said: Content | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What one generation consists of. `store` is the id of the store it came from."""

    store: str
    space: str
    root: DocumentPath
    generation: int
    published_at: str
    entries: tuple[ManifestEntry, ...]

    @cached_property
    def by_key(self) -> dict[str, ManifestEntry]:
        """Files, by the key of the path they stand for."""
        return {path_of(self.root, each.path).key: each for each in self.entries if each.sha256}

    @cached_property
    def folders(self) -> dict[str, ManifestEntry]:
        """Documents that are only directories, by key."""
        return {path_of(self.root, each.path).key: each for each in self.entries if not each.sha256}

    @cached_property
    def by_id(self) -> dict[str, ManifestEntry]:
        return {each.id: each for each in self.entries}

    def place(self, entry: ManifestEntry) -> DocumentPath:
        return path_of(self.root, entry.path)

    def checked(self) -> Manifest:
        """InvalidValue: it names a document or a file twice, or what no document can be."""
        try:
            keys = len(self.by_key) + len(self.folders.keys() - self.by_key.keys())
        except InvalidPath as error:
            raise InvalidValue(f"{NAME} is no list of what was published: {error}") from error
        if len({keys, len(self.by_id), len(self.entries)}) > 1:
            raise InvalidValue(f"{NAME} names a document or a file twice")
        return self


def path_of(root: DocumentPath, name: str) -> DocumentPath:
    """The document that a file or directory below a root stands for; InvalidPath: none can be."""
    if name in (ROOT_FILE, ROOT_FOLDER):
        return root
    where = root
    *folders, last = unicodedata.normalize("NFC", name).split("/")
    for slug in [*folders, last.removesuffix(EXTENSION)]:
        if slug.casefold().endswith(EXTENSION):
            raise InvalidPath(f"{slug!r} cannot be part of a path: it ends like a file")
        where = where.child(slug)
    return where


def file_of(root: DocumentPath, path: DocumentPath) -> str:
    """The file of a document, below the directory of a root."""
    name = folder_of(root, path) + EXTENSION
    path_of(root, name)
    return name


def folder_of(root: DocumentPath, path: DocumentPath) -> str:
    """The directory of what stands below a document."""
    return "/".join(path.slugs[len(root.slugs) :]) or ROOT_FOLDER


def write(manifest: Manifest) -> bytes:
    """As JSON."""
    head = {
        "format": FORMAT,
        "store": manifest.store,
        "space": manifest.space,
        "root": manifest.root.text,
        "generation": manifest.generation,
        "published_at": manifest.published_at,
    }
    return _lines(head, manifest.entries)


def write_loaded(published: Manifest, now: Manifest) -> bytes:
    """What differs by now from what was published."""
    known = published.by_id
    head = {
        "format": FORMAT,
        "generation": published.generation,
        "published_at": published.published_at,
        "gone": [each.id for each in published.entries if each.id not in now.by_id],
    }
    return _lines(head, [each for each in now.entries if known.get(each.id) != each])


def _lines(head: Mapping[str, object], entries: Iterable[ManifestEntry]) -> bytes:
    """As JSON, a line for each document."""
    lines = [f"{json.dumps(key)}: {_json(value)}," for key, value in head.items()]
    said = [(_said(each), each.sha256) for each in entries]
    files = [line for line, sha256 in said if sha256]
    folders = [line for line, sha256 in said if not sha256]
    lines += ['"files": [', ",\n".join(files), '],\n"folders": [', ",\n".join(folders), "]"]
    return "\n".join(["{", *lines, "}", ""]).encode()


def _said(entry: ManifestEntry) -> str:
    return _json(
        {"path": entry.path, "id": entry.id, "version": entry.version, "at": entry.at}
        | ({"sha256": entry.sha256, "bytes": entry.size_bytes} if entry.sha256 else {})
        | ({"sources": True} if entry.has_sources else {})
        | ({"said": asdict(entry.said)} if entry.said is not None else {})
    )


def published_text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def read(data: bytes) -> Manifest:
    """InvalidValue: it is no manifest. SchemaTooNew: a newer Recollect wrote it."""
    said = _object(data, NAME)
    try:
        manifest = Manifest(
            store=_text(said["store"]),
            space=_text(said["space"]),
            root=read_path(_text(said["root"])),
            generation=_number(said["generation"]),
            published_at=_text(said["published_at"]),
            entries=_entries(said),
        )
    except (KeyError, TypeError, InvalidPath) as error:
        raise InvalidValue(f"{NAME} is no list of what was published: {error}") from error
    return manifest.checked()


def read_loaded(published: Manifest, data: bytes) -> Manifest:
    """What was published, with what was loaded since. InvalidValue: it is no list of that."""
    said = _object(data, LOADED)
    try:
        when = (_number(said["generation"]), _text(said["published_at"]))
        if when != (published.generation, published.published_at):
            return published  # somebody has put it beside another generation
        changed = {each.id: each for each in _entries(said)}
        gone = {_text(each) for each in said["gone"]} | changed.keys()
    except (KeyError, TypeError) as error:
        raise InvalidValue(f"{LOADED} is no list of what was loaded: {error}") from error
    kept = [each for each in published.entries if each.id not in gone]
    return replace(published, entries=(*kept, *changed.values())).checked()


def _object(data: bytes, name: str) -> Mapping[str, Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{name} cannot be read: {type(error).__name__}") from error
    if not isinstance(said, Mapping) or type(said.get("format")) is not int:
        raise InvalidValue(f"{name} is no list of ours")
    if said["format"] > FORMAT:
        raise SchemaTooNew(f"{name} was written by a newer Recollect (format {said['format']})")
    return said


def _entries(said: Mapping[str, Any]) -> tuple[ManifestEntry, ...]:
    return (
        *(_entry(each, _text(each["sha256"])) for each in said["files"]),
        *(_entry(each, "") for each in said["folders"]),
    )


def _entry(said: Any, sha256: str) -> ManifestEntry:
    return ManifestEntry(
        path=_text(said["path"]),
        id=_text(said["id"]),
        version=_number(said["version"]),
        sha256=sha256,
        at=_text(said["at"]),
        size_bytes=_number(said["bytes"]) if sha256 else 0,
        has_sources=said.get("sources") is True,
        said=None if said.get("said") is None else _content(said["said"]),
    )


def _content(said: Any) -> Content:
    return Content(
        title=_text(said["title"]),
        description=_text(said["description"]),
        body=_text(said["body"]),
        tags=tuple(_text(each) for each in said["tags"]),
        links=tuple(_text(each) for each in said["links"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is missing")
    return value


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise TypeError("a number is missing")
    return value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
