"""The list of what was published: for every file its document, version and hash. Values and JSON.

Whoever can write in the directory can write the manifest too, so what it says is checked like
anything that comes from outside, and gives nobody more than the holder has.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from recollect.documents.paths import EXTENSION, DocumentPath, read_path
from recollect.errors import InvalidPath, InvalidValue, SchemaTooNew

NAME = ".recollect.json"
FORMAT = 1
BYTES_MAX = 256 * 1024 * 1024
# The document at the top has no name of its own in its directory; no slug can be this one.
ROOT_FOLDER = "~"
ROOT_FILE = ROOT_FOLDER + EXTENSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One document of a generation. `sha256` empty: it is only a directory.

    `has_sources`: a part of the file can change without a new version, when somebody is forgotten.
    """

    path: str
    id: str
    version: int
    sha256: str
    has_sources: bool = False


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What one generation consists of."""

    space: str
    root: DocumentPath
    generation: int
    published_at: str
    entries: tuple[Entry, ...]

    @cached_property
    def by_key(self) -> dict[str, Entry]:
        """Files, by the key of the path they stand for."""
        return {path_of(self.root, each.path).key: each for each in self.entries if each.sha256}

    @cached_property
    def folders(self) -> dict[str, Entry]:
        """Documents that are only directories, by key."""
        return {path_of(self.root, each.path).key: each for each in self.entries if not each.sha256}

    @cached_property
    def by_id(self) -> dict[str, Entry]:
        return {each.id: each for each in self.entries}

    def place(self, entry: Entry) -> DocumentPath:
        return path_of(self.root, entry.path)


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
    """As JSON, a line for each document."""
    head = {
        "format": FORMAT,
        "space": manifest.space,
        "root": manifest.root.text,
        "generation": manifest.generation,
        "published_at": manifest.published_at,
    }
    lines = [f"{json.dumps(key)}: {_json(value)}," for key, value in head.items()]
    files = [_said(each) for each in manifest.entries if each.sha256]
    folders = [_said(each) for each in manifest.entries if not each.sha256]
    lines += ['"files": [', ",\n".join(files), '],\n"folders": [', ",\n".join(folders), "]"]
    return "\n".join(["{", *lines, "}", ""]).encode()


def _said(entry: Entry) -> str:
    return _json(
        {"path": entry.path, "id": entry.id, "version": entry.version}
        | ({"sha256": entry.sha256} if entry.sha256 else {})
        | ({"sources": True} if entry.has_sources else {})
    )


def published_text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def read(data: bytes) -> Manifest:
    """InvalidValue: it is no manifest. SchemaTooNew: a newer Recollect wrote it."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{NAME} cannot be read: {type(error).__name__}") from error
    if not isinstance(said, Mapping) or type(said.get("format")) is not int:
        raise InvalidValue(f"{NAME} is no list of what was published")
    if said["format"] > FORMAT:
        raise SchemaTooNew(f"{NAME} was written by a newer Recollect (format {said['format']})")
    try:
        manifest = Manifest(
            space=_text(said["space"]),
            root=read_path(_text(said["root"])),
            generation=_number(said["generation"]),
            published_at=_text(said["published_at"]),
            entries=(
                *(_entry(each, _text(each["sha256"])) for each in said["files"]),
                *(_entry(each, "") for each in said["folders"]),
            ),
        )
        keys = len(manifest.by_key) + len(manifest.folders.keys() - manifest.by_key.keys())
    except (KeyError, TypeError, InvalidPath) as error:
        raise InvalidValue(f"{NAME} is no list of what was published: {error}") from error
    if len({keys, len(manifest.by_id), len(manifest.entries)}) > 1:
        raise InvalidValue(f"{NAME} names a document or a file twice")
    return manifest


def _entry(said: Any, sha256: str) -> Entry:
    return Entry(
        path=_text(said["path"]),
        id=_text(said["id"]),
        version=_number(said["version"]),
        sha256=sha256,
        has_sources=said.get("sources") is True,
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
