"""The edits of a changeset in their order, and what is known of them: what was said, made, checked.

A document that is made because something stands below it is implied: somebody else may make it
first, as long as the changeset does nothing else with it.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, assert_never

from recollect.documents.checking import REASON_CHARS_MAX
from recollect.documents.editing import refusal
from recollect.documents.links import references_in
from recollect.documents.overlay import (
    Overlay,
    OverlayEntry,
    UndoDict,
    UndoList,
    UndoSet,
    entry_of,
    is_at_or_below,
    undo,
)
from recollect.documents.paths import stored_path
from recollect.documents.reading import Tree
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    NotFound,
    StaleVersion,
    TooLarge,
)
from recollect.store.protocol import NewId
from recollect.types.pages import (
    Because,
    Content,
    Delete,
    Document,
    Edit,
    Move,
    Place,
    Restore,
    Rewrite,
    TreeLimits,
    Write,
)

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
class LastWrite:
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
        self.said: dict[str, LastWrite] = UndoDict(self.journal)
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
        self.said[document_id] = LastWrite(edit=write, before=None, version_before=0)

    def _made_by(self, old: Maker, new: Maker, only: Sequence[Place] | None = None) -> None:
        for document_id, each in self.implied.items():
            if each.maker is old and (only is None or each.place in only):
                self.implied[document_id] = replace(each, maker=new)


STEPS_MAX = 250_000  # of one changeset: all that a generation may be made of, twice
REFERRERS_SHOWN = 5


class StagedTree(StagedSteps):
    """A tree to edit without a store noticing."""

    def apply(
        self,
        space: str,
        edits: Sequence[Edit],
        because: Because,
        limits: TreeLimits,
        now: datetime,
        new_id: NewId,
    ) -> builtins.list[Document]:
        """Prepare all edits or none of them."""
        with self.all_or_nothing():
            staging = _Staging(
                tree=self, space=space, because=because, limits=limits, now=now, new_id=new_id
            )
            made = [staging.apply(edit) for edit in edits]
            if len(self.steps) > STEPS_MAX:
                raise TooLarge(f"a changeset holds at most {STEPS_MAX:,} edits: commit it in parts")
        return made


@dataclass(slots=True, kw_only=True)
class _Staging:
    """The edits of one call, one after the other."""

    tree: StagedTree
    space: str
    because: Because
    limits: TreeLimits
    now: datetime
    new_id: NewId

    def apply(self, edit: Edit) -> Document:
        edit = replace(edit, because=edit.because or self.because)
        match edit:
            case Write():
                return self._write(edit)
            case Rewrite():
                return self._rewrite(edit)
            case Move():
                return self._move(edit)
            case Delete():
                return self._delete(edit)
            case Restore():
                return self._restore(edit)
            case _:
                assert_never(edit)

    # write

    def _write(self, edit: Write) -> Document:
        known = self.tree.standing(self.space, edit.place)
        _check(edit, known)
        return self._write_over(known, edit)

    def _write_over(self, known: Document | None, edit: Write) -> Document:
        """Write what was made from a document as it was read, which is not read again."""
        if known is None:
            return self._create(replace(edit, expected=0))
        if known.content == edit.content:
            return known
        self.tree.make_explicit(known.id)
        self.tree.refer(self.space, known.content, edit.content, known.id)
        said = self.tree.said.get(known.id)
        if said is not None and self.tree.is_open(said.edit) and self._is_same_to(said, edit):
            version = self._say_instead(known, said, edit)
        else:
            version = known.version + 1
            logged = replace(edit, **self._fence(known))
            self.tree.log(logged, known.version)
            self.tree.said[known.id] = LastWrite(
                edit=logged, before=known.content, version_before=known.version
            )
        self.tree.written.add(known.id)
        is_in_place = known.id not in self.tree.keys
        return self._put(_saying(known, edit.content), version, is_in_place=is_in_place)

    def _is_same_to(self, said: LastWrite, edit: Write) -> bool:
        """Whether what it refers to anew means the same if it is said where it was said before."""
        before = () if said.before is None else references_in(said.before)
        had = {each.name for each in before}
        added = {each.name for each in edit.references} - {e.name for e in said.edit.references}
        return not any(name in had or name[1] in self.tree.taken for name in added)

    def _rewrite(self, edit: Rewrite) -> Document:
        if edit.document_id is None:
            known = self.tree.standing(self.space, edit.place)
        else:
            known = self.tree.get(self.space, edit.document_id)
            known = None if known is None or known.deleted_at is not None else known
        _check(edit, known)
        return self._write_over(known, replace(edit.change(known), because=edit.because))

    def _say_instead(self, known: Document, said: LastWrite, edit: Write) -> int:
        if said.before == edit.content:
            self.tree.unlog(said.edit)
            del self.tree.said[known.id]
            if said.edit.expected is not None:
                self.tree.fenced.discard(known.id)  # the step that checked it is gone
            return said.version_before
        # Placed and expected as it was at first: only what it says is new.
        logged = replace(
            said.edit,
            content=edit.content,
            references=edit.references,
            is_restore=edit.is_restore,
            because=_both(said.edit.because, edit.because),
        )
        self.tree.relog(said.edit, logged)
        self.tree.said[known.id] = replace(said, edit=logged)
        return known.version

    def _create(self, edit: Write) -> Document:
        self.tree.log(edit, 0)
        self._make_parents(edit)
        made = self._new(self._named_by_parent(edit.place), edit.content)
        self.tree.said[made.id] = LastWrite(edit=edit, before=None, version_before=0)
        return made

    def _make_parents(self, maker: Maker) -> None:
        for place in maker.parents:
            if self.tree.standing(self.space, place) is None:
                title = place.text.rpartition("/")[2]
                made = self._new(self._named_by_parent(place), Content(title=title))
                self.tree.implied[made.id] = Implied(place=place, maker=maker)

    def _named_by_parent(self, place: Place) -> Place:
        above = stored_path(place.text).parent
        if above is None:
            return place
        parent = self.tree.standing(self.space, above.place)
        if parent is None:
            raise NotFound(f"there is nothing at {above} to put it below")
        return replace(place, text=f"{parent.path}/{place.text.rpartition('/')[2]}")

    def _new(self, place: Place, content: Content) -> Document:
        made = Document(
            id=self.new_id(),
            space=self.space,
            path=place.text,
            title=content.title,
            description=content.description,
            body=content.body,
            tags=content.tags,
            links=content.links,
            version=1,
            created_at=self.now,
            updated_at=self.now,
            deleted_at=None,
            author=self.because.author,
            reason=self.because.reason,
            sources=self.because.sources,
            facts=self.because.facts,
        )
        self.tree.made.add(made.id)
        self.tree.written.add(made.id)
        self.tree.arriving(self.space, place)
        put = self._put(made, 1)
        self.tree.refer(self.space, None, content, made.id)
        return put

    def _put(self, document: Document, version: int, *, is_in_place: bool = False) -> Document:
        put = self._noted(document, version)
        entry = entry_of(put)
        before = self.tree.entries.get(entry.place.key)
        is_in_place = is_in_place if before is None else before.is_in_place
        self.tree.put(replace(entry, is_in_place=is_in_place))
        return put

    def _noted(self, document: Document, version: int) -> Document:
        return replace(
            document,
            version=version,
            updated_at=self.now,
            author=self.because.author,
            reason=self.because.reason,
            sources=self.because.sources,
            facts=self.because.facts,
        )

    # move

    def _move(self, edit: Move) -> Document:
        known = self._present(edit)
        is_renamed = edit.to.key == edit.place.key
        if not is_renamed and is_at_or_below(edit.to.key, edit.place.key):
            raise InvalidPath(f"{edit.place.text} cannot be moved below itself")
        if not is_renamed and self.tree.standing(self.space, edit.to) is not None:
            raise DocumentExists(f"there is a document at {edit.to.text}")
        if is_renamed and edit.to.text.rpartition("/")[2] == known.slug:
            return known
        self.tree.make_explicit(known.id)
        moving = list(self.tree.inside(self.space, edit.place))
        deepest = max(each.place.depth for each in moving) + edit.to.depth - edit.place.depth
        if deepest > self.limits.depth_max:
            deep = self.limits.depth_max
            raise InvalidPath(f"what is below {edit.place.text} would stand more than {deep} deep")
        logged = replace(edit, **self._fence(known))
        self.tree.log(logged, known.version)
        self._make_parents(logged)
        to = self._named_by_parent(edit.to)
        moved = [_moved(each, edit.place, known.path, to) for each in moving]
        for each in moved:
            self.tree.arriving(self.space, each.place)
        self.tree.lift(edit.place.key)
        for each in moved:
            self.tree.put(each)
        if not is_renamed:
            self.tree.led.update({each.place.key: each.id for each in moving})
        return self._put(replace(known, path=to.text), known.version + 1)

    # delete and restore

    def _delete(self, edit: Delete) -> Document:
        known = self._present(edit)
        inside = list(self.tree.inside(self.space, edit.place))
        if len(inside) > 1 and not edit.below:
            raise DocumentReferenced(
                f"{edit.place.text} has {len(inside) - 1} documents below it: "
                "delete them too (below=True), or move them away"
            )
        if not edit.leaves_broken:
            self._check_referrers(edit, inside)
        self.tree.make_explicit(known.id)
        for each in inside[1:]:
            if each.id not in self.tree.implied:
                self._guard(each)
        unseen = any(
            is_at_or_below(key, edit.place.key) or is_at_or_below(edit.place.key, key)
            for key in self.tree.unseen
        )
        count = None if unseen else len(inside)
        logged = replace(edit, count_expected=count, **self._fence(known))
        self.tree.log(logged, known.version)
        referring = self.tree.referring(self.space, inside)
        self.tree.lift(edit.place.key)
        for each in inside:
            self.tree.gone[each.id] = self._aged(each, gone=True)
            self.tree.taken_along[each.id] = known.id
        self.tree.release(self.space, referring)
        return replace(self._noted(known, known.version + 1), deleted_at=self.now)

    def _check_referrers(self, edit: Delete, inside: Sequence[OverlayEntry]) -> None:
        found = [
            f"{each.source} → {each.target}"
            for entry in inside
            for each in self.tree.references_to(self.space, entry.id)
            if not is_at_or_below(stored_path(each.source).key, edit.place.key)
        ]
        if found:
            shown = ", ".join(found[:REFERRERS_SHOWN])
            more = " and others" if len(found) > REFERRERS_SHOWN else ""
            raise DocumentReferenced(
                f"other documents refer to {edit.place.text}: {shown}{more}; change them first, or "
                "say how to treat the references"
            )

    def _restore(self, edit: Restore) -> Document:
        if self.tree.standing(self.space, edit.place) is not None:
            raise DocumentExists(f"there is a document at {edit.place.text}, which is not deleted")
        known = self._deleted(edit)
        if edit.expected not in (None, known.version):
            raise refusal(edit.place.text, known, edit.expected)
        self._bring_back_parents(edit, known)
        if known.id not in self.tree.gone and not edit.alone:
            self.tree.unseen.add(edit.place.key)
        logged = replace(edit, **self._fence(known))
        self.tree.log(logged, known.version)
        self._make_parents(logged)
        to = self._named_by_parent(edit.place)
        self.tree.arriving(self.space, to)
        self.tree.gone.pop(known.id, None)
        self.tree.written.add(known.id)  # to the store it is gone, and refers to nothing
        for each in () if edit.alone else self._taken_along(known, edit.place):
            del self.tree.gone[each.id]
            back = _moved(self._aged(each, gone=False), edit.place, known.path, to)
            self.tree.arriving(self.space, back.place)
            self.tree.put(back)
        return self._put(replace(known, path=to.text, deleted_at=None), known.version + 1)

    def _bring_back_parents(self, edit: Restore, known: Document) -> None:
        """Parents that were deleted with it or after it come back as they were."""
        for place in edit.parents:
            if self.tree.standing(self.space, place) is None:
                gone = self.tree.find_deleted(self.space, place)
                if gone is not None and _not_before(gone, known):
                    back = Restore(
                        place=place, alone=True, document_id=gone.id, because=edit.because
                    )
                    self._restore(back)

    def _deleted(self, edit: Restore) -> Document:
        if edit.document_id is None:
            known = self.tree.find_deleted(self.space, edit.place)
        else:
            known = self.tree.get(self.space, edit.document_id)
        if (
            known is None
            or known.deleted_at is None
            or stored_path(known.path).key != edit.place.key
        ):
            raise NotFound(f"no such document was deleted at {edit.place.text}")
        return known

    def _taken_along(self, known: Document, place: Place) -> builtins.list[OverlayEntry]:
        """What this changeset deleted together with a document, and stood below it."""
        root = self.tree.taken_along.get(known.id)
        return [
            each
            for each in self.tree.gone.values()
            if root is not None
            and self.tree.taken_along[each.id] == root
            and is_at_or_below(each.place.key, place.key)
        ]

    # what several edits need

    def _present(self, edit: Move | Delete) -> Document:
        known = self.tree.standing(self.space, edit.place)
        _check(edit, known)
        if known is None:
            raise NotFound(f"there is no document at {edit.place.text}")
        return known

    def _fence(self, known: Document) -> dict[str, Any]:
        """What an edit names: the document, and its version if no earlier step has checked that.

        What is made by the same commit has no id yet. What was moved along with something is
        checked where it stood before: the move may have raised its version.
        """
        if known.id in self.tree.made:
            return {"expected": None, "document_id": None}
        named = {"expected": None, "document_id": known.id}
        if known.id in self.tree.fenced:
            return named
        self.tree.fenced.add(known.id)
        entry = self.tree.entries.get(stored_path(known.path).key)
        found = None if entry is None or entry.is_in_place else self._in_store(known.id)
        if found is None:
            return {**named, "expected": known.version}
        version = known.version - (0 if entry is None else entry.more)
        self.tree.guard(stored_path(found.path).place, version, known.id, at=0)
        return named

    def _guard(self, each: OverlayEntry) -> None:
        """See to it that what is deleted along with something is what was seen."""
        if each.id in self.tree.made or each.id in self.tree.fenced:
            return
        self.tree.fenced.add(each.id)
        is_carried = each.place.key in self.tree.entries and not each.is_in_place
        found = self._in_store(each.id) if is_carried else None
        if found is None:
            self.tree.guard(each.place, each.version, each.id, at=len(self.tree.steps))
        else:
            place = stored_path(found.path).place
            self.tree.guard(place, each.version - each.more, each.id, at=0)

    def _in_store(self, document_id: str) -> Document | None:
        found = self.tree.under.get(self.space, document_id)
        return None if found is None or found.deleted_at is not None else found

    def _aged(self, entry: OverlayEntry, *, gone: bool) -> OverlayEntry:
        """One more version of it: gone, or back."""
        document = entry.document
        if document is not None:
            aged = self._noted(document, document.version + 1)
            return entry_of(replace(aged, deleted_at=self.now if gone else None))
        node = replace(entry.node, version=entry.version + 1, updated_at=self.now)
        return replace(entry, node=node, more=entry.more + 1)


def _not_before(one: Document, other: Document) -> bool:
    """Whether one document was deleted with another, or after it."""
    at, since = one.deleted_at, other.deleted_at
    return at is not None and since is not None and at >= since


def _both(one: Because | None, other: Because | None) -> Because | None:
    """The grounds of two edits that became one."""
    if one is None or other is None:
        return one or other
    reasons = dict.fromkeys(each.reason for each in (one, other) if each.reason)
    return Because(
        author=other.author,
        reason="; ".join(reasons)[:REASON_CHARS_MAX],
        sources=tuple(dict.fromkeys(one.sources + other.sources)),
        facts=tuple(dict.fromkeys(one.facts + other.facts)),
    )


def _check(edit: Write | Rewrite | Move | Delete, known: Document | None) -> None:
    path = edit.place.text
    if edit.expected is not None and edit.expected != (0 if known is None else known.version):
        raise refusal(path, known, edit.expected)
    if edit.document_id is not None and known is None:
        raise NotFound(f"there is no document at {path}")
    if edit.document_id is not None and known is not None and edit.document_id != known.id:
        raise StaleVersion(f"another document stands at {path} by now", current=known.version)


def _saying(document: Document, content: Content) -> Document:
    return replace(
        document,
        title=content.title,
        description=content.description,
        body=content.body,
        tags=content.tags,
        links=content.links,
    )


def _moved(entry: OverlayEntry, source: Place, source_path: str, to: Place) -> OverlayEntry:
    place = Place(
        text=to.text + entry.place.text[len(source_path) :],
        key=to.key + entry.place.key[len(source.key) :],
        depth=entry.place.depth + to.depth - source.depth,
    )
    document = None if entry.document is None else replace(entry.document, path=place.text)
    node = replace(entry.node, path=place.text)
    return replace(entry, place=place, node=node, document=document, is_in_place=False)
