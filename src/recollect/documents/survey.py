"""Surveys a directory: reads its files once, follows no link, and reports what it skipped.

A file that is skipped still exists: only a missing one counts as removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from recollect.documents import manifest as manifests
from recollect.documents.files import FILE_MODE, Folder, Identity, identity_of, shown
from recollect.documents.front_matter import FRONT_BYTES_MAX
from recollect.documents.manifest import Manifest, ManifestEntry, path_of
from recollect.documents.paths import DEPTH_MAX, EXTENSION, DocumentPath, read_path
from recollect.documents.scope import Holder
from recollect.errors import InvalidPath, InvalidValue, TooLarge
from recollect.types.pages import Content, Document, Edit, Node, Write

if TYPE_CHECKING:
    from recollect.store.relational.documents import DocumentStore

EDITED_AS_A_FILE = "edited as a file"  # the reason of versions that a load made
FILES_MAX = 1_000_000  # that are looked at in one directory, whatever they are
_ALL = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A Markdown file. `data` none: it is exactly what is known."""

    name: str
    path: DocumentPath
    sha256: str
    size_bytes: int
    identity: Identity
    is_private: bool
    data: bytes | None


@dataclass(slots=True, kw_only=True)
class Survey:
    """All that was found below a directory, by the key of the path it stands for."""

    root: DocumentPath
    files: dict[str, FoundFile] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)  # name: why
    is_doubtful: bool = False  # something was skipped that might be a document
    hidden_keys: set[str] = field(default_factory=set)  # where that may have been one

    def is_gone(self, path: DocumentPath) -> bool:
        """Whether there is no file for a path, and nothing in the way that might be or hold it."""
        if path.key in self.files:
            return False
        return not any(each.key in self.hidden_keys for each in (*path.parents, path))

    def is_as_known(self, base: Manifest) -> bool:
        """Whether there are just the files of a manifest, and nothing else."""
        has_edits = self.skipped or any(each.data is not None for each in self.files.values())
        return not has_edits and self.files.keys() == base.by_key.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTree:
    """What publishing and loading need of a tree: how one holder sees and changes it."""

    tree: DocumentStore
    store: str  # the id of the store
    space: str
    holder: Holder
    body_bytes_max: int
    files_max: int
    now: Callable[[], datetime]
    write: Callable[[DocumentPath, Content], Write]
    apply: Callable[[Sequence[Edit]], Sequence[Document]]

    def get(self, document_id: str, root: DocumentPath) -> Document | None:
        """A document below a root by its id, also a deleted one."""
        found = self.tree.get(self.space, document_id)
        return found if found is not None and read_path(found.path).is_within(root) else None

    def at(self, path: DocumentPath) -> Document | None:
        """What stands at a path now, and not what once did."""
        found = self.tree.find(self.space, path.place)
        return found if found is not None and read_path(found.path).key == path.key else None

    def nodes(self, root: DocumentPath) -> list[Node]:
        """A document and all that stands below it, each before its children, at one moment."""
        # In one call, for that is one snapshot of the store; they are without their bodies.
        return self.tree.tree(self.space, root.place, "", DEPTH_MAX, _ALL)

    def is_own(self, published: Manifest, root: DocumentPath) -> bool:
        """Whether a directory was published from this very part of this tree."""
        whose = (published.store, published.space, published.root.key)
        return whose == (self.store, self.space, root.key)

    def survey(self, folder: Folder, root: DocumentPath, base: Manifest | None) -> Survey:
        """Look at everything below a directory; `base`: what need not be kept in memory."""
        looking = _Looking(survey=Survey(root=root), tree=self, base=base)
        looking.look(folder, "")
        return looking.survey


@dataclass(slots=True, kw_only=True)
class _Looking:
    survey: Survey
    tree: HeldTree
    base: Manifest | None

    def look(self, folder: Folder, prefix: str) -> None:
        for name in folder.names():
            if name in manifests.HIDDEN and not prefix:
                continue
            if len(self.survey.files) + len(self.survey.skipped) > self.tree.files_max:
                raise TooLarge(f"there are more than {self.tree.files_max:,} files")
            try:
                inner = self._one(folder, name, f"{prefix}{name}")
            except (InvalidValue, OSError) as error:
                self._skip(f"{prefix}{name}", error)
                continue
            if inner is not None:
                with inner:
                    self.look(inner, f"{prefix}{name}/")

    def _skip(self, whole: str, error: InvalidValue | OSError) -> None:
        self.survey.skipped[whole] = _why(error)
        self.survey.is_doubtful |= isinstance(error, OSError | InvalidPath | TooLarge)
        for stands_for in (whole, f"{whole}{EXTENSION}"):
            with contextlib.suppress(InvalidPath):
                self.survey.hidden_keys.add(path_of(self.survey.root, stands_for).key)

    def _one(self, folder: Folder, name: str, whole: str) -> Folder | None:
        """Note a file; a directory is looked into."""
        found = folder.stat(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "it was removed while it was looked at")
        if name.startswith("."):
            raise InvalidValue("it is hidden")
        if stat.S_ISDIR(found.st_mode):
            where = path_of(self.survey.root, f"{whole}{EXTENSION}")
            if len(where.slugs) >= DEPTH_MAX:
                raise InvalidPath(f"what is in it would be more than {DEPTH_MAX} deep")
            inner = folder.folder(name)
            self.survey.folders.add(where.key)
            return inner
        if stat.S_ISREG(found.st_mode) and not name.endswith(EXTENSION):
            raise InvalidValue(f"it is not a Markdown file ({EXTENSION})")
        path = path_of(self.survey.root, whole)
        twin = self.survey.files.get(path.key)
        if twin is not None:
            raise InvalidPath(f"its name differs only in case from {shown(twin.name)}")
        self.survey.files[path.key] = self._file(folder, name, whole, path, found)
        return None

    def _file(
        self, folder: Folder, name: str, whole: str, path: DocumentPath, found: os.stat_result
    ) -> FoundFile:
        entry = None if self.base is None else self.base.by_key.get(path.key)
        known = None
        if self.base is not None and entry is not None:
            was_called_so = is_same_place(self.base.place(entry), path)
            known = entry.sha256 if was_called_so else None  # it was renamed, if only in case
        # What was published is never too large, whatever the limits are by now.
        data, sha256 = None, folder.digest(name, found.st_size) if known else ""
        if sha256 != known:
            # With fences and line ends.
            data = folder.read(name, self.tree.body_bytes_max + FRONT_BYTES_MAX + 64)
            sha256 = hashlib.sha256(data).hexdigest()
        return FoundFile(
            name=whole,
            path=path,
            sha256=sha256,
            size_bytes=found.st_size if data is None else len(data),
            identity=identity_of(found),
            is_private=stat.S_IMODE(found.st_mode) == FILE_MODE,
            data=data,
        )


def _why(error: InvalidValue | OSError) -> str:
    return (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)


class Look(NamedTuple):
    """What can be seen of a file without reading it."""

    inode: int
    size_bytes: int
    modified_ns: int
    is_plain: bool


def looks(folder: Folder, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Look]]:
    """All files below a directory by their names, without a look into hidden directories."""
    for count, name in enumerate(folder.names()):
        if count > FILES_MAX:
            raise TooLarge(f"there are more than {FILES_MAX:,} files")
        found = None if name in manifests.HIDDEN and not prefix else folder.stat(name)
        if found is None:
            continue
        if stat.S_ISDIR(found.st_mode) and not name.startswith(".") and depth < DEPTH_MAX:
            with folder.folder(name) as inner:
                yield from looks(inner, f"{prefix}{name}/", depth + 1)
        else:
            is_plain = stat.S_ISREG(found.st_mode)
            look = Look(found.st_ino, found.st_size, found.st_mtime_ns, is_plain)
            yield f"{prefix}{name}", look


def is_bare(content: Content, slug: str) -> bool:
    """Whether a document says nothing but its name: with children it needs no file."""
    return content == Content(title=slug)


def is_same_place(a: DocumentPath, b: DocumentPath) -> bool:
    """The case of what stands above is that of the documents there, not a question of this one."""
    return a.key == b.key and a.slug == b.slug


def is_at(entry: ManifestEntry, document: Document | Node) -> bool:
    """Whether a document is at the version that a file was made from."""
    at = moment_text(document.updated_at)
    return entry.version == document.version and entry.at in ("", at)


def moment_text(moment: datetime) -> str:
    """When a version was made, as it is compared."""
    return moment.isoformat(timespec="microseconds")
