"""What a directory holds, read once and without following anything, and what was passed over.

A name that is passed over is still there: only what is gone counts as removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recollect.documents import manifest as manifests
from recollect.documents.files import FILE_MODE, Folder, Identity, identity_of, shown
from recollect.documents.front_matter import FRONT_BYTES_MAX
from recollect.documents.manifest import Manifest, path_of
from recollect.documents.paths import DEPTH_MAX, EXTENSION, DocumentPath, read_path
from recollect.documents.scope import Holder
from recollect.errors import InvalidPath, InvalidValue, TooLarge
from recollect.store import protocol
from recollect.types.pages import Content, Document, Edit, Node, Version, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A Markdown file. `data` none: it is exactly what is known, or was not read."""

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
    folders: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  # name: why
    marks: dict[str, str] = field(default_factory=dict)  # what it was that was skipped
    doubtful: set[str] = field(default_factory=set)  # skipped, and might be a document
    hidden_keys: set[str] = field(default_factory=set)  # where that may have been one

    def is_gone(self, path: DocumentPath) -> bool:
        """Whether there is no file for a path, and nothing in the way that might be or hold it."""
        if path.key in self.files:
            return False
        return not any(each.key in self.hidden_keys for each in (*path.parents, path))

    def seen(self) -> dict[str, str]:
        """Every name with what it holds, for a comparison."""
        found = {each.name: each.sha256 for each in self.files.values()}
        return found | self.marks | dict.fromkeys(self.folders.values(), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyLimits:
    """How much is read."""

    body_bytes_max: int
    files_max: int

    @property
    def file_bytes_max(self) -> int:
        return self.body_bytes_max + FRONT_BYTES_MAX + 64  # fences and line ends


def survey(
    folder: Folder,
    root: DocumentPath,
    limits: SurveyLimits,
    known: Manifest | None = None,
    trusted: Mapping[Identity, str] | None = None,
) -> Survey:
    """Look at everything below a directory.

    `known`: what need not be kept in memory, being unchanged; `trusted`: files by their hashes that
    need not be read again.
    """
    looking = _Looking(
        survey=Survey(root=root), limits=limits, known=known, trusted=dict(trusted or {})
    )
    looking.look(folder, "")
    return looking.survey


@dataclass(slots=True, kw_only=True)
class _Looking:
    survey: Survey
    limits: SurveyLimits
    known: Manifest | None
    trusted: dict[Identity, str]

    def look(self, folder: Folder, prefix: str) -> None:
        for name in folder.names():
            if name in manifests.HIDDEN and not prefix:
                continue
            if len(self.survey.files) + len(self.survey.skipped) > self.limits.files_max:
                raise TooLarge(f"there are more than {self.limits.files_max:,} files")
            self._one(folder, prefix, name)

    def _one(self, folder: Folder, prefix: str, name: str) -> None:
        whole = f"{prefix}{name}"
        inner = None
        try:
            found = folder.stat(name)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "it was removed while it was looked at")
            self.survey.marks[whole] = f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
            if name.startswith("."):
                raise InvalidValue("it is hidden")
            if stat.S_ISDIR(found.st_mode):
                inner = self._opened(folder, name, whole)
            else:
                self._file(folder, name, whole, found)
        except (InvalidValue, OSError) as error:
            self._skip(whole, error)
            return
        del self.survey.marks[whole]
        if inner is not None:
            with inner:
                self.look(inner, f"{whole}/")

    def _skip(self, whole: str, error: InvalidValue | OSError) -> None:
        self.survey.skipped[whole] = _why(error)
        if isinstance(error, OSError | InvalidPath | TooLarge):
            self.survey.doubtful.add(whole)
        for stands_for in (whole, f"{whole}{EXTENSION}"):
            with contextlib.suppress(InvalidPath):
                self.survey.hidden_keys.add(path_of(self.survey.root, stands_for).key)

    def _opened(self, folder: Folder, name: str, whole: str) -> Folder:
        where = path_of(self.survey.root, f"{whole}{EXTENSION}")
        if len(where.slugs) >= DEPTH_MAX:
            raise InvalidPath(f"what is in it would stand more than {DEPTH_MAX} deep")
        inner = folder.folder(name)
        self.survey.folders.setdefault(where.key, whole)
        return inner

    def _file(self, folder: Folder, name: str, whole: str, found: os.stat_result) -> None:
        if stat.S_ISREG(found.st_mode) and not name.endswith(EXTENSION):
            raise InvalidValue(f"it is no Markdown file ({EXTENSION})")
        path = path_of(self.survey.root, whole)
        twin = self.survey.files.get(path.key)
        if twin is not None:
            raise InvalidPath(f"its name differs only in case from {shown(twin.name)}")
        sha256, data, identity, mode = self._read(folder, name, path, found)
        self.survey.files[path.key] = FoundFile(
            name=whole,
            path=path,
            sha256=sha256,
            size_bytes=found.st_size if data is None else len(data),
            identity=identity,
            is_private=mode == FILE_MODE,
            data=None if self._is_known(path, sha256) else data,
        )

    def _read(
        self, folder: Folder, name: str, path: DocumentPath, found: os.stat_result
    ) -> tuple[str, bytes | None, Identity, int]:
        trusted = self.trusted.get(identity_of(found), "")
        unread = (None, identity_of(found), stat.S_IMODE(found.st_mode))
        if trusted and stat.S_ISREG(found.st_mode):
            return trusted, *unread
        if found.st_size > self.limits.file_bytes_max:
            # Limits may have become smaller since; what was published is never too large.
            entry = None if self.known is None else self.known.by_key.get(path.key)
            if entry is not None and entry.size_bytes == found.st_size:
                sha256 = folder.digest(name, found.st_size)
                if self._is_known(path, sha256):
                    return sha256, *unread
        read = folder.read(name, self.limits.file_bytes_max)
        return hashlib.sha256(read.data).hexdigest(), read.data, read.identity, read.mode

    def _is_known(self, path: DocumentPath, sha256: str) -> bool:
        entry = None if self.known is None else self.known.by_key.get(path.key)
        if self.known is None or entry is None or entry.sha256 != sha256:
            return False
        return self.known.place(entry).slug == path.slug  # else it was renamed, if only in case


def _why(error: InvalidValue | OSError) -> str:
    return (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)


EDITED_AS_A_FILE = "edited as a file"  # the reason of versions that a load made
_ALL = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What publishing and loading need of a tree: how one holder sees and changes it."""

    tree: protocol.DocumentStore
    store: str  # the id of the store
    space: str
    holder: Holder
    body_bytes_max: int
    files_max: int
    now: Callable[[], datetime]
    write: Callable[[DocumentPath, Content], Write]
    apply: Callable[[Sequence[Edit]], Sequence[Document]]

    @property
    def limits(self) -> SurveyLimits:
        return SurveyLimits(body_bytes_max=self.body_bytes_max, files_max=self.files_max)

    def get(self, document_id: str, root: DocumentPath) -> Document | None:
        """A document below a root by its id, also a deleted one."""
        found = self.tree.get(self.space, document_id)
        return found if found is not None and read_path(found.path).is_within(root) else None

    def is_unknown(self, document_id: str) -> bool:
        """Whether there is no such document anywhere, not even a deleted one."""
        return self.tree.get(self.space, document_id) is None

    def at(self, path: DocumentPath) -> Document | None:
        """What stands at a path now, and not what once did."""
        found = self.tree.find(self.space, path.place)
        return found if found is not None and read_path(found.path).key == path.key else None

    def nodes(self, root: DocumentPath) -> list[Node]:
        """A document and all that stands below it, each before its children, at one moment."""
        # In one call, for that is one snapshot of the store; they are without their bodies.
        return self.tree.tree(self.space, root.place, "", DEPTH_MAX, _ALL)

    def has_children(self, path: DocumentPath) -> bool:
        return bool(self.tree.tree(self.space, path.place, path.key, 1, 1))

    def versions(self, document_id: str, last: int, limit: int) -> list[Version]:
        """Versions up to one, the newest first, from when it stood where the holder can see."""
        found = self.tree.history(self.space, document_id, last + 1, limit)
        top = self.holder.root
        return [each for each in found if top is None or read_path(each.path).is_within(top)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """What a file and its document say differently. Empty: gone on that side.

    `merged` shows both between marks, as far as they do go together.
    """

    file: str
    path: str
    reason: str
    theirs: str
    ours: str
    merged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A file that was not loaded, or not all of it."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """A document that was moved as a file."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A file that has nothing more to say, and what it has in common with its document.

    `id` empty: the document is made by the plan. `version` 0: as it is when the plan is carried
    out. `sha256` empty: there is no file, only a directory.
    """

    path: str
    sha256: str
    size_bytes: int
    id: str = ""
    version: int = 0
    at: str = ""
    said: Content | None = None


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a directory asks for: edits in an order that works, and what cannot be had."""

    edits: list[Edit] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    moved: list[Relocation] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    files: set[str] = field(default_factory=set)  # those that have something to say
    settled: dict[str, Settled] = field(default_factory=dict)  # by the key of their path
    dropped: set[str] = field(default_factory=set)  # ids whose files are gone for good reason
    known: int = 0  # documents that the directory had and the tree still has
    versions: dict[str, int] = field(default_factory=dict)  # by id, before it is carried out

    def problem(self, name: str, reason: str) -> None:
        self.problems.append(Problem(file=shown(name), reason=reason))
        self.files.add(shown(name))

    def remark(self, name: str, reason: str) -> None:
        """A problem that is no edit: it does not keep anybody from publishing."""
        self.problems.append(Problem(file=shown(name), reason=reason))

    def conflict(self, conflict: Conflict) -> None:
        self.conflicts.append(conflict)
        self.files.add(conflict.file)


def is_bare(content: Content, slug: str) -> bool:
    """Whether a document says nothing but its name: with children it needs no file."""
    return content == Content(title=slug)


def moment_text(moment: datetime) -> str:
    """When a version was made, as it is compared."""
    return moment.isoformat(timespec="microseconds")


def content_of(version: Version) -> Content:
    return Content(
        title=version.title,
        description=version.description,
        body=version.body,
        tags=version.tags,
        links=version.links,
    )
