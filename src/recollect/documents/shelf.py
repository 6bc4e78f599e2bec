"""What publishing and loading share: a tree as they need it, and what is said about its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recollect.document import Content, Document, Edit, Node, Version, Write
from recollect.documents.files import shown
from recollect.documents.paths import DEPTH_MAX, DocumentPath, read_path
from recollect.documents.scope import Holder
from recollect.documents.survey import Limits
from recollect.store import protocol

EDITED_AS_A_FILE = "edited as a file"  # the reason of versions that a load made
_ALL = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What publishing and loading need of a tree: how one holder sees and changes it."""

    tree: protocol.Documents
    store: str  # the id of the store
    space: str
    holder: Holder
    body_bytes_max: int
    files_max: int
    now: Callable[[], datetime]
    write: Callable[[DocumentPath, Content], Write]
    apply: Callable[[Sequence[Edit]], Sequence[Document]]

    @property
    def limits(self) -> Limits:
        return Limits(body_bytes_max=self.body_bytes_max, files_max=self.files_max)

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
