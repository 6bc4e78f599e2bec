"""The types of the document tree: documents, their versions, references, and edits to them.

Frozen values without behaviour beyond reading themselves. A path is a document's place in the tree;
a document keeps its id when it moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from recollect.types.facts import Fact, Source

# As UTF-8, as text and as key. With the longest name of a space it is what an index of PostgreSQL
# takes, whatever the letters.
PATH_BYTES_MAX = 1500

MEMORY_WORKER = "memory-worker"  # who keeps pages in step with what is remembered
MEMORY_AGENT = "/memory-agent/"  # what the names of memory-agents begin with
WRITTEN_BY_MODEL = "written by the memory-agent's model"
RENDERED = "rendered from facts"  # the reason of a page that follows its facts by itself


class AuthorKind(StrEnum):
    """Kinds of authors. Each may write different parts of the memory root."""

    PERSON = "person"
    AGENT = "agent"
    CONSOLIDATION = "consolidation"


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a version."""

    kind: AuthorKind = AuthorKind.PERSON
    name: str = "user"

    @property
    def is_machine(self) -> bool:
        """Whether it is part of Recollect; a host's own agents are not."""
        is_own = self.name == MEMORY_WORKER or self.name.startswith(MEMORY_AGENT)
        return self.kind is AuthorKind.CONSOLIDATION or (self.kind is AuthorKind.AGENT and is_own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A checked path, as the store keeps it: the text to show, and the key to find it by.

    The key is without case, and sorts a document before its children and those before its next
    sibling.
    """

    text: str
    key: str
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a version says. `links` are paths; those in the body are found there."""

    title: str
    description: str = ""
    body: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Because:
    """The author, the reason and the sources of a change."""

    author: Author = Author()
    reason: str = ""
    sources: tuple[Source, ...] = ()
    facts: tuple[str, ...] = ()


BY_RENDERING = Because(author=Author(AuthorKind.AGENT, MEMORY_WORKER), reason=RENDERED)


def is_rendered(author: Author, reason: str) -> bool:
    """Whether a version of a page was rendered from facts: nobody edits it, it follows them."""
    return (author, reason) == (BY_RENDERING.author, RENDERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One node of the tree in its current version."""

    id: str
    space: str
    path: str
    title: str
    description: str
    body: str
    tags: tuple[str, ...]
    links: tuple[str, ...]
    version: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    author: Author
    reason: str
    sources: tuple[Source, ...]
    facts: tuple[str, ...]
    key: int = field(default=0, repr=False, compare=False)  # the store's own

    @property
    def slug(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_rendered(self) -> bool:
        return is_rendered(self.author, self.reason)

    @property
    def content(self) -> Content:
        return content_of(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One line of the tree: a document without its body."""

    id: str
    path: str
    title: str
    description: str
    version: int
    body_chars: int
    updated_at: datetime
    has_children: bool

    @property
    def depth(self) -> int:
        return self.path.count("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedDocument:
    """A document that can be restored, without its body. Its path is where it stood."""

    id: str
    path: str
    title: str
    version: int
    body_chars: int
    deleted_at: datetime
    author: Author
    reason: str


class DocumentEvent(StrEnum):
    """What made a version."""

    CREATED = "created"
    WRITTEN = "written"
    MOVED = "moved"
    DELETED = "deleted"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One entry of a document's history."""

    number: int
    event: DocumentEvent
    path: str
    title: str
    description: str
    body: str
    tags: tuple[str, ...]
    links: tuple[str, ...]
    at: datetime
    author: Author
    reason: str
    sources: tuple[Source, ...]
    facts: tuple[str, ...]


def content_of(page: Document | Version) -> Content:
    """What a page says, or said."""
    return Content(
        title=page.title,
        description=page.description,
        body=page.body,
        tags=page.tags,
        links=page.links,
    )


class ReferenceKind(StrEnum):
    """How one document refers to another."""

    PARENT = "parent"
    LINK = "link"  # given with the document
    BODY = "body"  # [[path|alias]] in its text


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """From one document to another, or to a path where there is none yet."""

    kind: ReferenceKind
    source: str  # the path of the document that refers
    target: str  # the path that is meant, as it is now; as it was written where there is nothing
    alias: str
    is_broken: bool
    named: str = field(default="", compare=False)  # the path as it was written


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReference:
    """A reference on its way into the store."""

    kind: ReferenceKind
    place: Place
    alias: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Make a document, or a new version of it. `expected` 0: there must be none yet.

    `parents` are the places above it, from the top, which are made where they are missing;
    `is_restore`: what it says is that of an earlier version. Here and below, `document_id` is the
    document that is meant, if another one that stands there by now is not; `because` is why this
    edit is made, if for other reasons than those that are made with it.
    """

    place: Place
    content: Content
    references: tuple[NewReference, ...] = ()
    parents: tuple[Place, ...] = ()
    expected: int | None = None
    document_id: str | None = None
    is_restore: bool = False
    because: Because | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Apply `change` to a document's state at the time of the edit; no version goes stale.

    `document_id`: that document, wherever it is by now; otherwise the one at `place`, or none.
    `change` may be called several times, while other writers wait: it must not have side effects.
    """

    place: Place
    change: Callable[[Document | None], Write]
    expected: int | None = None
    document_id: str | None = None
    because: Because | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Move a document with everything below it; what pointed at it still does."""

    place: Place
    to: Place
    parents: tuple[Place, ...] = ()
    expected: int | None = None
    document_id: str | None = None
    because: Because | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete a document, and with `below` what stands below it; it can be restored.

    `leaves_broken`: although other documents refer to it. `count_expected`: how many were seen
    there, itself included; if others have come or gone, it is stale.
    """

    place: Place
    below: bool = False
    leaves_broken: bool = False
    count_expected: int | None = None
    expected: int | None = None
    document_id: str | None = None
    because: Because | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Bring back a deleted document, with what was deleted together with it.

    A parent that is missing comes back as it was, if it was deleted with it or after it.
    """

    place: Place
    parents: tuple[Place, ...] = ()
    expected: int | None = None
    document_id: str | None = None
    because: Because | None = None


Edit = Write | Rewrite | Move | Delete | Restore


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What a purge removed for good.

    `is_clean` false: while somebody reads, the file's log still has it; it is emptied as soon as a
    later write finds nobody reading.
    """

    documents: int
    versions: int
    is_clean: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLimits:
    """How large a tree may grow; none of `versions_kept`: with every version of its pages."""

    documents_max: int
    depth_max: int
    versions_kept: int | None = None
    path_bytes_max: int = PATH_BYTES_MAX


# Pages that are rendered from facts


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledFact:
    """A fact that belongs on a page: its session's project, and the key of where it stood."""

    fact: Fact
    project: str | None = None
    path_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """What is at a path: nothing, a page somebody wrote, or one that has so many facts."""

    is_there: bool = False
    is_authored: bool = False
    facts: int = 0
    size: int = 0  # of its text, in characters


class PagesOfFacts(Protocol):
    """The pages of a space as a renderer sees them, and the facts that are to come on them."""

    @property
    def facts(self) -> Sequence[FiledFact]: ...

    def page(self, place: Place) -> PageState: ...

    def facts_on(self, place: Place) -> Sequence[FiledFact]: ...

    def below(self, place: Place) -> Sequence[tuple[str, str, str]]:
        """The pages directly below a path: their paths, titles and descriptions."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """How facts are rendered to pages: a pure function that is run in the store's transaction.

    With stretches of sessions the facts that rest on them are filed as well.
    """

    render: Callable[[PagesOfFacts], Sequence[Write]]
    limits: TreeLimits
    stretches: Sequence[Source] = ()
