"""Changesets: edits that are prepared first, then committed in one transaction or dropped.

A changeset is a list of edits, each with the version it was made from. A preview applies them in a
transaction that is rolled back, so that the same code checks it as any other change. No transaction
is open in between; a commit is refused as a whole if anything it touches is no longer at the
version it was based on. Each preview costs what the edits cost: use it for a handful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, assert_never, cast

from recollect.documents.editing import Editor
from recollect.documents.paths import DEPTH_MAX, stored_path
from recollect.errors import TooLarge
from recollect.ids import NewId
from recollect.store.protocol import Tree
from recollect.types.agents import DocumentChanges
from recollect.types.pages import Because, Delete, Document, Edit, Move, Restore, Rewrite, Write

if TYPE_CHECKING:
    from recollect.store.relational.documents import DocumentStore

EDITS_MAX = 1000  # of one changeset, with what it checks below a page that it deletes

T = TypeVar("T")
Commit = Callable[[Sequence[Edit], Because, NewId], list[Document]]


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

    @classmethod
    def of(cls, edit: Edit) -> PreparedEdit:
        to = ""
        match edit:
            case Write() | Rewrite():
                kind = PreparedKind.WRITE if edit.expected else PreparedKind.CREATE
            case Move():
                kind, to = PreparedKind.MOVE, edit.to.text
            case Delete():
                kind = PreparedKind.DELETE
            case Restore():
                kind = PreparedKind.RESTORE
            case _:
                assert_never(edit)
        return cls(kind=kind, path=edit.place.text, based_on=edit.expected or 0, to=to)

    def __str__(self) -> str:
        target = f" to {self.to}" if self.to else ""
        version = f" (version {self.based_on})" if self.based_on else ""
        return f"{self.kind} {self.path}{target}{version}"


class Changeset(Editor):
    """A set of edits that are all made, or none of them. For one thread."""

    def __init__(
        self, documents: Editor, store: DocumentStore, commit: Commit, reason: str = ""
    ) -> None:
        self._store, self._commit = store, commit
        tree, holder = cast(Tree, _TreeAsEdited(self._look)), documents.holder
        super().__init__(documents._runtime, tree, documents._space, holder)
        self._reason = self._because(reason).reason
        self._edits: list[Edit] = []
        self._ids: list[str] = []  # of what is made here, in that order

    @property
    def edits(self) -> tuple[PreparedEdit, ...]:
        """What a commit would do, in order."""
        return tuple(PreparedEdit.of(each) for each in self._edits if not _is_guard(each))

    def commit(self, reason: str | None = None) -> list[Document]:
        """Make all edits in one transaction; each document that changed, as it is afterwards.

        Each edit keeps its own sources and facts, and its own reason if there is none for all.

        StaleVersion, DocumentExists, DocumentReferenced, NotFound: somebody else was faster, and
        nothing was made; reading in the changeset says the same from then on. Drop it.
        """
        if not self._edits:
            return []
        given = self._reason if reason is None else self._because(reason).reason
        edits = [_reasoned(each, given) for each in self._edits]
        made = self._apply(
            edits,
            self._because(given),
            lambda edits, because: self._commit(edits, because, self._same_ids()),
        )
        changed = {
            document.id: document
            for edit, document in zip(self._edits, made, strict=True)
            if not _is_guard(edit)
        }
        self.drop()
        return list(changed.values())

    def drop(self) -> None:
        """Forget every edit; the changeset is empty and can be used again."""
        self._edits, self._ids = [], []

    def _make(self, edits: Sequence[Edit], because: Because) -> list[Document]:
        """Prepare all edits, as far as they change anything."""
        own: list[Edit] = []
        places = []
        for edit in edits:
            own += self._guarded(replace(edit, because=edit.because or because))
            places.append(len(own) - 1)
        if len(self._edits) + len(own) > EDITS_MAX:
            raise TooLarge(f"a changeset holds at most {EDITS_MAX:,} edits: commit it in parts")
        made = self._preview([*self._edits, *own], lambda _, made: made[-len(own) :])
        self._edits += [
            edit
            for edit, page in zip(own, made, strict=True)
            if not (isinstance(edit, Write) and edit.expected == page.version)  # as it was
        ]
        return [made[at] for at in places]

    def _guarded(self, edit: Edit) -> Iterator[Edit]:
        """An edit; before a deletion, that what goes along with it is what was seen."""
        if isinstance(edit, Delete) and edit.below:
            found = self._tree.tree(self._space, edit.place, "", DEPTH_MAX, EDITS_MAX + 1)
            for node in found[1:]:
                place = stored_path(node.path).place
                yield Move(place=place, to=place, expected=node.version, document_id=node.id)
            edit = replace(edit, count_expected=len(found))
        yield edit

    def _look(self, asked: Callable[[Tree], T]) -> T:
        if not self._edits:
            return asked(self._store)
        return self._preview(self._edits, lambda tree, _: asked(tree))

    def _preview(self, edits: Sequence[Edit], look: Callable[[Tree, Sequence[Document]], T]) -> T:
        changes = DocumentChanges(
            edits=tuple(edits), because=self._because(self._reason), limits=self._limits()
        )
        now, new_id = self._runtime.now(), self._same_ids()
        return self._store.preview(self._space, changes, now, new_id, look)

    def _same_ids(self) -> NewId:
        """Ids of what the edits make, the same each time they are made."""
        ids = iter(self._ids)

        def new_id() -> str:
            made = next(ids, None)
            if made is None:
                made = self._runtime.ids.new()
                self._ids.append(made)
            return made

        return new_id


class _TreeAsEdited:
    """Implements `Tree`: whatever is asked of it is asked of the tree with the edits made."""

    def __init__(self, look: Callable[[Callable[[Tree], Any]], Any]) -> None:
        self._look = look

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **named: self._look(lambda tree: getattr(tree, name)(*args, **named))


def _is_guard(edit: Edit) -> bool:
    """Whether an edit only checks a version: to move something where it stands changes nothing."""
    return isinstance(edit, Move) and edit.to == edit.place


def _reasoned(edit: Edit, reason: str) -> Edit:
    """An edit on its own grounds, for the reason that all have, if there is one."""
    if not reason or edit.because is None:
        return edit
    return replace(edit, because=replace(edit.because, reason=reason))
