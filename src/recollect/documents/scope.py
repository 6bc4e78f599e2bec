"""Access rights on documents: the subtree of a holder, and the owners of the pages of memory.

A check looks at the path of a document, never at how it was addressed: by path, by an old path, by
id, by a link, as the source or the destination of a move. The five names directly below the memory
root that consolidation uses are its own; everything else belongs to agents and people.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

from recollect.documents.paths import DocumentPath, memory_root, slug_key
from recollect.errors import NotAllowed
from recollect.types.pages import Author, AuthorKind

OF_CONSOLIDATION = frozenset({"memory", "memory_summary", "raw_memories"}) | frozenset(
    {"rollout_summaries", "skills"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A holder of documents: its author, and the part of the tree it may use."""

    author: Author = field(default_factory=Author)
    root: DocumentPath | None = None  # none: all of it

    def check_read(self, path: DocumentPath) -> None:
        if self.root is not None and not path.is_within(self.root):
            raise NotAllowed(f"{path} is outside {self.root}, and nothing else can be reached here")

    def check_write(self, path: DocumentPath) -> None:
        self.check_read(path)
        is_own = is_of_consolidation(path)
        if is_own and self.author.kind is not AuthorKind.CONSOLIDATION:
            raise NotAllowed(f"{path} belongs to consolidation, which overwrites it")
        if not is_own and self.author.kind is AuthorKind.CONSOLIDATION:
            raise NotAllowed(f"{path} belongs to agents and people")

    def check_uproot(self, path: DocumentPath) -> None:
        """Whether it may leave its place: moved, deleted or purged."""
        self.check_write(path)
        if path.key == memory_root().key or (self.root is not None and path.key == self.root.key):
            raise NotAllowed(f"{path} is a root and stays where it is")

    @property
    def top(self) -> DocumentPath:
        return memory_root() if self.root is None else self.root


def is_of_consolidation(path: DocumentPath) -> bool:
    """Whether it is, or stands below, one of the five names of consolidation, in any width."""
    return (
        path.is_within(memory_root())
        and len(path.slugs) > 1
        and slug_key(unicodedata.normalize("NFKC", path.slugs[1])) in OF_CONSOLIDATION
    )
