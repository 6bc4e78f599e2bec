"""Edits made aside: each is checked against the tree as it would be, and kept for one commit.

Owns what a commit may rest on: the first edit of a document names the version it was based on (0:
there is none), every later one the version that the earlier ones would leave. Several writes of one
document become one, as long as nothing was moved or deleted in between.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from recollect.document import (
    Because,
    Content,
    Delete,
    Document,
    Edit,
    Move,
    Place,
    Restore,
    TreeLimits,
    Write,
)
from recollect.documents.editing import refusal
from recollect.documents.overlay import Entry, Overlay, entry_of, is_at_or_below, stored_path
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

STEPS_MAX = 10_000  # of one changeset
REFERRERS_SHOWN = 5

Maker = Write | Move | Restore


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An edit to commit; a guard changes nothing and only checks a version."""

    edit: Edit
    is_guard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """The last write of a document: what it said before, and in which version."""

    edit: Write
    before: Content | None
    version_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Implied:
    """A page that is made because something stands below it. Somebody else may make it first."""

    place: Place
    maker: Maker


class StagedTree(Overlay):
    """A tree to edit without a store noticing."""

    def __init__(self, under: Tree) -> None:
        super().__init__(under)
        self.steps: builtins.list[Step] = []
        self.grounds: builtins.list[Because] = []
        self.said: dict[str, _Said] = {}
        self.implied: dict[str, _Implied] = {}
        self.made: set[str] = set()  # ids that nobody else knows
        self.taken_along: dict[str, str] = {}  # with which document another one was deleted

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
        before = self._state()
        is_done = False
        try:
            staging = _Staging(
                tree=self, space=space, because=because, limits=limits, now=now, new_id=new_id
            )
            made = [staging.apply(edit) for edit in edits]
            if len(self.steps) > STEPS_MAX:
                raise TooLarge(f"a changeset holds at most {STEPS_MAX:,} edits: commit it in parts")
            if self.steps != before["steps"]:
                self.grounds.append(because)
            is_done = True
        finally:
            if not is_done:
                vars(self).update(before)
        return made

    def _state(self) -> dict[str, object]:
        return {
            name: value.copy()
            for name, value in vars(self).items()
            if isinstance(value, dict | set | list)
        }

    # the list of steps

    def log(self, edit: Edit, *, is_guard: bool = False) -> None:
        self.steps.append(Step(edit=edit, is_guard=is_guard))

    def position(self, edit: Edit) -> int:
        return next(at for at, step in enumerate(self.steps) if step.edit is edit)

    def is_open(self, edit: Write) -> bool:
        """Whether a write can still say something else: no later step counts on its version."""
        later = self.steps[self.position(edit) :]
        return all(isinstance(step.edit, Write) for step in later)

    def relog(self, old: Write, new: Write) -> None:
        self.steps[self.position(old)] = Step(edit=new)
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
        write = Write(place=implied.place, content=Content(title=title), parents=above, expected=0)
        self.steps.insert(self.position(implied.maker), Step(edit=write))
        self._made_by(implied.maker, write, above)
        self.said[document_id] = _Said(edit=write, before=None, version_before=0)

    def _made_by(self, old: Maker, new: Maker, only: Sequence[Place] | None = None) -> None:
        for document_id, each in self.implied.items():
            if each.maker is old and (only is None or each.place in only):
                self.implied[document_id] = replace(each, maker=new)


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
        match edit:
            case Write():
                return self._write(edit)
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
        if known is None:
            return self._create(replace(edit, expected=0))
        if known.content == edit.content:
            return known
        self.tree.make_explicit(known.id)
        said = self.tree.said.get(known.id)
        if said is not None and self.tree.is_open(said.edit):
            version = self._say_instead(known, said, edit)
        else:
            version = known.version + 1
            logged = replace(edit, expected=known.version, document_id=self._name_of(known))
            self.tree.log(logged)
            self.tree.said[known.id] = _Said(
                edit=logged, before=known.content, version_before=known.version
            )
        self.tree.written.add(known.id)
        is_in_place = known.id not in self.tree.keys
        return self._put(_saying(known, edit.content), version, is_in_place=is_in_place)

    def _say_instead(self, known: Document, said: _Said, edit: Write) -> int:
        if said.before == edit.content:
            self.tree.unlog(said.edit)
            del self.tree.said[known.id]
            return said.version_before
        # Placed and expected as it was at first: only what it says is new.
        logged = replace(
            said.edit,
            content=edit.content,
            references=edit.references,
            is_restore=edit.is_restore,
        )
        self.tree.relog(said.edit, logged)
        self.tree.said[known.id] = replace(said, edit=logged)
        return known.version

    def _create(self, edit: Write) -> Document:
        self.tree.log(edit)
        self._make_parents(edit)
        made = self._new(self._named_by_parent(edit.place), edit.content)
        self.tree.said[made.id] = _Said(edit=edit, before=None, version_before=0)
        return made

    def _make_parents(self, maker: Maker) -> None:
        for place in maker.parents:
            if self.tree.standing(self.space, place) is None:
                title = place.text.rpartition("/")[2]
                made = self._new(self._named_by_parent(place), Content(title=title))
                self.tree.implied[made.id] = _Implied(place=place, maker=maker)

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
        return self._put(made, 1)

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
        logged = replace(edit, expected=known.version, document_id=self._name_of(known))
        self.tree.log(logged)
        self._make_parents(logged)
        to = self._named_by_parent(edit.to)
        self.tree.lift(edit.place.key)
        for each in moving:
            self.tree.put(_moved(each, edit.place, known.path, to))
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
            # To move something where it stands is to change nothing, if it is that version.
            if each.id not in self.tree.implied:
                guard = Move(
                    place=each.place,
                    to=each.place,
                    expected=each.version,
                    document_id=self._name_of(each),
                )
                self.tree.log(guard, is_guard=True)
        self.tree.log(replace(edit, expected=known.version, document_id=self._name_of(known)))
        self.tree.lift(edit.place.key)
        for each in inside:
            self.tree.gone[each.id] = self._aged(each, gone=True)
            self.tree.taken_along[each.id] = known.id
        return replace(self._noted(known, known.version + 1), deleted_at=self.now)

    def _check_referrers(self, edit: Delete, inside: Sequence[Entry]) -> None:
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
        logged = replace(edit, expected=known.version, document_id=self._name_of(known))
        self.tree.log(logged)
        self._make_parents(logged)
        to = self._named_by_parent(edit.place)
        self.tree.gone.pop(known.id, None)
        for each in self._taken_along(known, edit.place):
            del self.tree.gone[each.id]
            self.tree.put(_moved(self._aged(each, gone=False), edit.place, known.path, to))
        return self._put(replace(known, path=to.text, deleted_at=None), known.version + 1)

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

    def _taken_along(self, known: Document, place: Place) -> builtins.list[Entry]:
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

    def _name_of(self, known: Document | Entry) -> str | None:
        """The document that an edit means, unless it is made by the same commit."""
        return None if known.id in self.tree.made else known.id

    def _aged(self, entry: Entry, *, gone: bool) -> Entry:
        """One more version of it: gone, or back."""
        document = entry.document
        if document is not None:
            aged = self._noted(document, document.version + 1)
            return entry_of(replace(aged, deleted_at=self.now if gone else None))
        node = replace(entry.node, version=entry.version + 1, updated_at=self.now)
        return replace(entry, node=node, more=entry.more + 1)


def _check(edit: Write | Move | Delete, known: Document | None) -> None:
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


def _moved(entry: Entry, source: Place, source_path: str, to: Place) -> Entry:
    place = Place(
        text=to.text + entry.place.text[len(source_path) :],
        key=to.key + entry.place.key[len(source.key) :],
        depth=entry.place.depth + to.depth - source.depth,
    )
    document = None if entry.document is None else replace(entry.document, path=place.text)
    node = replace(entry.node, path=place.text)
    return replace(entry, place=place, node=node, document=document, is_in_place=False)
