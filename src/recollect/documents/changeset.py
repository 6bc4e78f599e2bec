"""Changesets: edits prepared aside, committed in one transaction or dropped without a trace.

Prepared means checked like any change (holder, ownership, limits, redaction) and readable at once
in the changeset, and nowhere else. No transaction is open meanwhile; a commit is refused as a whole
if anything it touches is no longer the version it was based on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from recollect.documents.editing import Editor
from recollect.documents.reading import Tree
from recollect.documents.scope import Holder
from recollect.documents.staging import StagedTree, Step
from recollect.runtime import Runtime
from recollect.types.agents import DocumentChanges
from recollect.types.facts import Source
from recollect.types.pages import Because, Delete, Document, Edit, Move, Restore, Rewrite, Write


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
        runtime: Runtime,
        tree: Tree,
        space: str,
        holder: Holder,
        reason: str = "",
    ) -> None:
        self._under = tree
        self._staged = StagedTree(tree)
        super().__init__(runtime, self._staged, space, holder)
        self._reason = self._because(reason).reason

    @property
    def edits(self) -> tuple[PreparedEdit, ...]:
        """What a commit would do, in order."""
        return tuple(_summary(step) for step in self._staged.steps if not step.is_guard)

    def commit(self, reason: str | None = None) -> list[Document]:
        """Make all edits in one transaction; each document that changed, as it is afterwards.

        Each edit keeps its own sources and facts, and its own reason if there is none for all.

        StaleVersion, DocumentExists, DocumentReferenced, NotFound: somebody else was faster, and
        nothing was made. The changeset is as it was, to be looked at and dropped.
        """
        steps = list(self._staged.steps)
        if not steps:
            return []
        given = self._reason if reason is None else self._because(reason).reason
        edits = [_reasoned(step.edit, given) for step in steps]
        made = self._apply(edits, self._because(given), self._under)
        self.drop()
        changed = {
            document.id: document
            for step, document in zip(steps, made, strict=True)
            if not step.is_guard
        }
        return list(changed.values())

    def prepared(
        self, sources: Sequence[Source] = (), facts: Sequence[str] = ()
    ) -> DocumentChanges:
        """What a commit would make, for who commits it together with something else.

        `sources` and `facts` are what an edit rests on that names none itself.
        """
        edits = (_reasoned(step.edit, self._reason) for step in self._staged.steps)
        # Not bounded as what a caller gives is: nothing that was read may be left out.
        because = replace(self._because(self._reason), sources=tuple(sources), facts=tuple(facts))
        return DocumentChanges(
            edits=tuple(_grounded(edit, because) for edit in edits),
            because=because,
            limits=self._limits(),
        )

    def drop(self) -> None:
        """Forget every edit; the changeset is empty and can be used again."""
        self._staged = StagedTree(self._under)
        self._tree = self._staged


def _reasoned(edit: Edit, reason: str) -> Edit:
    """An edit on its own grounds, for the reason that all have, if there is one."""
    if not reason or edit.because is None:
        return edit
    return replace(edit, because=replace(edit.because, reason=reason))


def _grounded(edit: Edit, common: Because) -> Edit:
    because = edit.because
    if because is None or because.sources or because.facts:
        return edit
    return replace(edit, because=replace(because, sources=common.sources, facts=common.facts))


def _summary(step: Step) -> PreparedEdit:
    edit, to = step.edit, ""
    match edit:
        case Write() | Rewrite():
            kind = PreparedKind.WRITE if step.based_on else PreparedKind.CREATE
        case Move():
            kind, to = PreparedKind.MOVE, edit.to.text
        case Delete():
            kind = PreparedKind.DELETE
        case Restore():
            kind = PreparedKind.RESTORE
        case _:
            assert_never(edit)
    return PreparedEdit(kind=kind, path=edit.place.text, based_on=step.based_on, to=to)
