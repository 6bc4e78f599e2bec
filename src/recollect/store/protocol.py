"""What a store offers: its aggregates, each a class whose methods say what they promise.

Each method is one transaction: all of it or nothing. Only forgetting a large amount takes several;
an interrupted one is resumed where it stopped. The space comes first in every call; no method reads
or writes another one. Methods that work for the operator of the store take `space=None` for all of
them. Times and ids are handed in, never made here. A store is right when it passes
`recollect_conformance`.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from recollect.store.relational.access import ApiKeys, Audit, Serving
    from recollect.store.relational.agents import Agents
    from recollect.store.relational.contexts import Contexts
    from recollect.store.relational.documents import DocumentStore
    from recollect.store.relational.extractions import Extractions, Ledger
    from recollect.store.relational.facts import FactStore
    from recollect.store.relational.forgetting import Erasure
    from recollect.store.relational.generations import GenerationStore
    from recollect.store.relational.imports import Imports
    from recollect.store.relational.leases import Leases
    from recollect.store.relational.marks import Marks
    from recollect.store.relational.records import Records
    from recollect.store.relational.search import Search
    from recollect.store.relational.session_keys import SessionStore
    from recollect.store.relational.vectors import Vectors
    from recollect.store.whole import Access, Whole
    from recollect.types.pages import DeletedDocument, Document, Node, Place, Reference, Version
    from recollect.types.records import StoreDescription


class Tree(Protocol):
    """Reads a tree of documents, as it is or as edits would leave it."""

    def find(self, space: str, place: Place) -> Document | None:
        """The document at a path, or the one that was moved away from it."""
        ...

    def get(self, space: str, document_id: str) -> Document | None:
        """A document by its id, also a deleted one."""
        ...

    def find_deleted(self, space: str, place: Place) -> Document | None:
        """The document that was deleted last at a path."""
        ...

    def tree(
        self, space: str, root: Place, after: str, depth_max: int, limit: int
    ) -> builtins.list[Node]:
        """A page of the tree from a root on, each before its children; `after` is a path's key."""
        ...

    def history(
        self, space: str, document_id: str, before: int | None, limit: int
    ) -> builtins.list[Version]:
        """A page of versions, the newest first."""
        ...

    def search(
        self, space: str, terms: Sequence[str], root: Place, limit: int
    ) -> builtins.list[Document]:
        """Documents below a root that have any of the words, the best first."""
        ...

    def deleted(
        self, space: str, root: Place, after: str | None, limit: int
    ) -> builtins.list[DeletedDocument]:
        """A page of what was deleted at a root and below it, the last first; `after` is an id."""
        ...

    def references_from(self, space: str, document_id: str) -> builtins.list[Reference]: ...

    def references_to(
        self,
        space: str,
        document_id: str,
        *,
        root: Place | None = None,
        after: str = "",
        limit: int | None = None,
    ) -> builtins.list[Reference]:
        """References to a document, from below a root, by source; `after` is a path's key."""
        ...


class Store(ABC):
    """A place to keep everything. Safe to use from any number of threads."""

    sessions: SessionStore
    records: Records
    marks: Marks
    leases: Leases
    extractions: Extractions
    facts: FactStore
    ledger: Ledger
    documents: DocumentStore
    search: Search
    vectors: Vectors
    agents: Agents
    generations: GenerationStore
    imports: Imports
    api_keys: ApiKeys
    erasure: Erasure
    audit: Audit
    contexts: Contexts
    serving: Serving

    @abstractmethod
    def keep(self, name: str, value: str) -> str:
        """The value that the store keeps under a name; the first caller with a value sets it."""

    @abstractmethod
    def whole(self, access: Access) -> AbstractContextManager[Whole]:
        """All tables, for what moves or examines everything: see `recollect.operations`."""

    @abstractmethod
    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` from any thread when work may have become due; returns how to stop it."""

    @abstractmethod
    def describe(self) -> StoreDescription: ...

    @abstractmethod
    def close(self) -> None:
        """Close every connection; calling it again does nothing."""
