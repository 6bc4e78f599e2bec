"""Changesets: edits prepared aside, committed in one transaction or dropped without a trace.

Prepared means checked like any change (holder, ownership, limits, redaction) and readable at once
in the changeset, and nowhere else. No transaction is open meanwhile; a commit is refused as a whole
if anything it touches is no longer the version it was based on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, assert_never

from recollect.document import Because, Delete, Document, Edit, Move, Restore, Write
from recollect.documents.editing import REASON_CHARS_MAX, Editor
from recollect.documents.reading import Tree
from recollect.documents.scope import Holder
from recollect.documents.staging import StagedTree
from recollect.session import Surroundings

T = TypeVar("T")


class PreparedKind(StrEnum):
    """What an edit would do."""

    CREATE = "create"
    WRITE = "write"
    MOVE = "move"
    DELETE = "delete"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedEdit:
    """One edit of a changeset, for people. `based_on` 0: there was no document."""

    kind: PreparedKind
    path: str
    based_on: int
    to: str = ""

    def __str__(self) -> str:
        target = f" to {self.to}" if self.to else ""
        version = f" (version {self.based_on})" if self.based_on else ""
        return f"{self.kind} {self.path}{target}{version}"


class Changeset(Editor):
    """A set of edits that are all made, or none of them. For one thread.

    A new document's id holds only in here; it gets its own with the commit. Restoring brings back
    what was deleted together with a document, and shows it once it is committed.
    """

    def __init__(
        self,
        around: Surroundings,
        tree: Tree,
        space: str,
        holder: Holder,
        reason: str = "",
    ) -> None:
        self._under = tree
        self._staged = StagedTree(tree)
        super().__init__(around, self._staged, space, holder)
        self._reason = self._because(reason).reason

    @property
    def edits(self) -> tuple[PreparedEdit, ...]:
        """What a commit would do, in order."""
        return tuple(_summary(step.edit) for step in self._staged.steps if not step.is_guard)

    def commit(self, reason: str | None = None) -> list[Document]:
        """Make all edits in one transaction; each document that changed, as it is afterwards.

        StaleVersion, DocumentExists, DocumentReferenced, NotFound: somebody else was faster, and
        nothing was made. The changeset is as it was, to be looked at and dropped.
        """
        steps = list(self._staged.steps)
        if not steps:
            return []
        made = self._apply([step.edit for step in steps], self._grounds(reason), self._under)
        self.drop()
        changed = {
            document.id: document
            for step, document in zip(steps, made, strict=True)
            if not step.is_guard
        }
        return list(changed.values())

    def drop(self) -> None:
        """Forget every edit; the changeset is empty and can be used again."""
        self._staged = StagedTree(self._under)
        self._tree = self._staged

    def _grounds(self, reason: str | None) -> Because:
        """One reason for all; the sources and facts of every edit, each once."""
        grounds = self._staged.grounds
        given = self._reason if reason is None else self._because(reason).reason
        if not given:
            reasons = dict.fromkeys(each.reason for each in grounds if each.reason)
            given = "; ".join(reasons)[:REASON_CHARS_MAX]
        return Because(
            author=self.holder.author,
            reason=given,
            sources=_each_once(grounds, lambda each: each.sources),
            facts=_each_once(grounds, lambda each: each.facts),
        )


def _each_once(grounds: list[Because], part: Callable[[Because], tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(value for each in grounds for value in part(each)))


def _summary(edit: Edit) -> PreparedEdit:
    to = ""
    match edit:
        case Write():
            kind = PreparedKind.WRITE if edit.expected else PreparedKind.CREATE
        case Move():
            kind, to = PreparedKind.MOVE, edit.to.text
        case Delete():
            kind = PreparedKind.DELETE
        case Restore():
            kind = PreparedKind.RESTORE
        case _:
            assert_never(edit)
    return PreparedEdit(kind=kind, path=edit.place.text, based_on=edit.expected or 0, to=to)
