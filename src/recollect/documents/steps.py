"""The edits of a changeset in their order, and what is known of them: what was said, made, checked.

A document that is made because something stands below it is implied: somebody else may make it
first, as long as the changeset does nothing else with it.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from recollect.document import Content, Edit, Move, Place, Restore, Write
from recollect.documents.overlay import Overlay
from recollect.documents.reading import Tree
from recollect.documents.undoing import UndoDict, UndoList, UndoSet, undo

Maker = Write | Move | Restore


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An edit to commit; a guard changes nothing and only checks a version.

    `based_on` is the version that it was made from, as it was seen; 0: there was no document.
    """

    edit: Edit
    based_on: int
    is_guard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The last write of a document: what it said before, and in which version."""

    edit: Write
    before: Content | None
    version_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """A page that is made because something stands below it. Somebody else may make it first."""

    place: Place
    maker: Maker


class StagedSteps(Overlay):
    """A tree as it would be, and the steps that would make it so."""

    def __init__(self, under: Tree) -> None:
        super().__init__(under)
        self.steps: builtins.list[Step] = UndoList(self.journal)
        self.said: dict[str, Said] = UndoDict(self.journal)
        self.implied: dict[str, Implied] = UndoDict(self.journal)
        self.made: set[str] = UndoSet(self.journal)  # ids that nobody else knows
        self.fenced: set[str] = UndoSet(self.journal)  # ids whose version an earlier step checks
        # Keys where a commit brings back more than is seen here.
        self.unseen: set[str] = UndoSet(self.journal)
        # With which document another one was deleted.
        self.taken_along: dict[str, str] = UndoDict(self.journal)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is done inside leaves no trace if it fails."""
        gone = dict(self.gone)  # its order counts
        self.journal.clear()
        try:
            yield
        except BaseException:
            undo(self.journal)
            self.gone = gone
            raise

    # the list of steps

    def log(self, edit: Edit, based_on: int, *, is_guard: bool = False) -> None:
        self.steps.append(Step(edit=edit, based_on=based_on, is_guard=is_guard))

    def guard(self, place: Place, version: int, document_id: str | None, at: int) -> None:
        """Check a version: to move something where it stands is to change nothing."""
        edit = Move(place=place, to=place, expected=version, document_id=document_id)
        self.steps.insert(at, Step(edit=edit, based_on=version, is_guard=True))

    def position(self, edit: Edit) -> int:
        return next(at for at, step in enumerate(self.steps) if step.edit is edit)

    def is_open(self, edit: Write) -> bool:
        """Whether a write can still say something else: no later step counts on its version."""
        later = self.steps[self.position(edit) :]
        return all(isinstance(step.edit, Write) for step in later)

    def relog(self, old: Write, new: Write) -> None:
        at = self.position(old)
        self.steps[at] = replace(self.steps[at], edit=new)
        self._made_by(old, new)

    def unlog(self, edit: Write) -> None:
        del self.steps[self.position(edit)]

    def make_explicit(self, document_id: str) -> None:
        """What is touched is no longer made in passing: it must be there as it was seen."""
        implied = self.implied.pop(document_id, None)
        if implied is None:
            return
        above = tuple(each for each in implied.maker.parents if each.depth < implied.place.depth)
        title = implied.place.text.rpartition("/")[2]
        write = Write(
            place=implied.place,
            content=Content(title=title),
            parents=above,
            expected=0,
            because=implied.maker.because,
        )
        self.steps.insert(self.position(implied.maker), Step(edit=write, based_on=0))
        self._made_by(implied.maker, write, above)
        self.said[document_id] = Said(edit=write, before=None, version_before=0)

    def _made_by(self, old: Maker, new: Maker, only: Sequence[Place] | None = None) -> None:
        for document_id, each in self.implied.items():
            if each.maker is old and (only is None or each.place in only):
                self.implied[document_id] = replace(each, maker=new)
