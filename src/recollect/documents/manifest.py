"""The manifest of a published directory: every file's document, version and hash, as JSON.

A load rewrites it: from then on the files are compared with what was loaded. A process that can
write to the directory can write the manifest too, so its content is checked like any outside input
and grants no more than the holder of the tree may do.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recollect.documents.files import Folder
from recollect.documents.paths import EXTENSION, DocumentPath, read_path
from recollect.errors import InvalidPath, InvalidValue, SchemaTooNew

NAME = ".recollect.json"
HIDDEN = frozenset({NAME, f"{NAME}.new"})  # ours, and no documents
FORMAT = 1
BYTES_MAX = 256 * 1024 * 1024
# The document at the top has no name of its own in its directory; no slug can be this one.
ROOT_FILE = f"~{EXTENSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One file of a generation.

    `at` is when the version was made: a store that was restored from a copy uses numbers again.
    `has_sources`: a part of the file can change without a new version, when somebody is forgotten.
    `is_loaded`: somebody edited it since, so that the next generation has another file. `said`: the
    text of a rendered page whose new lines were taken over; none: what the version says.
    """

    path: str
    id: str
    version: int
    sha256: str
    at: str = ""
    size_bytes: int = 0
    has_sources: bool = False
    is_loaded: bool = False
    said: str | None = None


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
        """By the key of the path that a file stands for."""
        return {self.place(each).key: each for each in self.entries}

    @cached_property
    def by_id(self) -> dict[str, ManifestEntry]:
        return {each.id: each for each in self.entries}

    def place(self, entry: ManifestEntry) -> DocumentPath:
        return path_of(self.root, entry.path)


def path_of(root: DocumentPath, name: str) -> DocumentPath:
    """The document that a file below a root stands for; InvalidPath: none can be."""
    if name == ROOT_FILE:
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
    name = "/".join(path.slugs[len(root.slugs) :])
    if not name:
        return ROOT_FILE
    path_of(root, name + EXTENSION)
    return name + EXTENSION


def read_manifest(folder: Folder) -> Manifest | None:
    """None: there is none. InvalidValue: it is no manifest. SchemaTooNew: a newer Recollect's."""
    if folder.stat(NAME) is None:
        return None
    return read(folder.read(NAME, BYTES_MAX))


def write(manifest: Manifest) -> bytes:
    """As JSON, a line for each document."""
    head = {
        "format": FORMAT,
        "store": manifest.store,
        "space": manifest.space,
        "root": manifest.root.text,
        "generation": manifest.generation,
        "published_at": manifest.published_at,
    }
    lines = [f"{json.dumps(key)}: {_json(value)}," for key, value in head.items()]
    files = ",\n".join(_json(_stated(each)) for each in manifest.entries)
    return "\n".join(["{", *lines, '"files": [', files, "]", "}", ""]).encode()


def _stated(entry: ManifestEntry) -> dict[str, object]:
    return (
        {"path": entry.path, "id": entry.id, "version": entry.version, "at": entry.at}
        | {"sha256": entry.sha256, "bytes": entry.size_bytes}
        | ({"sources": True} if entry.has_sources else {})
        | ({"loaded": True} if entry.is_loaded else {})
        | ({"said": entry.said} if entry.said is not None else {})
    )


def read(data: bytes) -> Manifest:
    """InvalidValue: it is no manifest. SchemaTooNew: a newer Recollect wrote it."""
    try:
        stated = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{NAME} cannot be read: {type(error).__name__}") from error
    if not isinstance(stated, Mapping) or type(stated.get("format")) is not int:
        raise InvalidValue(f"{NAME} is not a list of what was published")
    if stated["format"] > FORMAT:
        raise SchemaTooNew(f"{NAME} was written by a newer Recollect (format {stated['format']})")
    try:
        manifest = Manifest(
            store=_text(stated["store"]),
            space=_text(stated["space"]),
            root=read_path(_text(stated["root"])),
            generation=_number(stated["generation"]),
            published_at=_text(stated["published_at"]),
            entries=tuple(map(_entry, stated["files"])),
        )
        sizes = {len(manifest.by_key), len(manifest.by_id), len(manifest.entries)}
    except (KeyError, TypeError, InvalidPath) as error:
        raise InvalidValue(f"{NAME} is not a list of what was published: {error}") from error
    if len(sizes) > 1:
        raise InvalidValue(f"{NAME} names a document or a file twice")
    return manifest


def _entry(stated: Any) -> ManifestEntry:
    return ManifestEntry(
        path=_text(stated["path"]),
        id=_text(stated["id"]),
        version=_number(stated["version"]),
        sha256=_text(stated["sha256"]),
        at=_text(stated["at"]),
        size_bytes=_number(stated["bytes"]),
        has_sources=stated.get("sources") is True,
        is_loaded=stated.get("loaded") is True,
        said=None if stated.get("said") is None else _text(stated["said"]),
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
