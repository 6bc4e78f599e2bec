"""Moves, creations and deletions in an order in which each is possible, tried on a sketch. Pure.

The tree moves what stands below a document along with it; files do not. Whoever moved a page by
hand and left its directory where it was meant just that, so what was carried along goes back. A
place is taken from the top down: only when what is to stand above it does, and nothing that stands
above it is yet to leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from recollect.documents.paths import DEPTH_MAX, DocumentPath, slug_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """A document goes from one place to another, with what is below it."""

    id: str
    source: DocumentPath
    target: DocumentPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Creating:
    """A document is made."""

    target: DocumentPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleting:
    """A document goes; nothing is below it any more."""

    id: str
    source: DocumentPath


Step = Moving | Creating | Deleting


@dataclass(slots=True, kw_only=True, eq=False)
class _Knot:
    slug: str
    id: str | None
    parent: _Knot | None
    children: dict[str, _Knot] = field(default_factory=dict)

    @property
    def height(self) -> int:
        return 1 + max((child.height for child in self.children.values()), default=-1)


class Sketch:
    """Who stands where below a root."""

    def __init__(self, root: DocumentPath, documents: Iterable[tuple[str, DocumentPath]]) -> None:
        self._root = root
        self._top = _Knot(slug=root.slug, id=None, parent=None)
        self._by_id: dict[str, _Knot] = {}
        for document_id, path in documents:
            knot = self._made(path)
            knot.id = document_id
            self._by_id[document_id] = knot

    def where(self, document_id: str) -> DocumentPath | None:
        knot = self._by_id.get(document_id)
        if knot is None:
            return None
        slugs: list[str] = []
        while knot.parent is not None:
            slugs.append(knot.slug)
            knot = knot.parent
        return DocumentPath((*self._root.slugs, *reversed(slugs)))

    def at(self, path: DocumentPath) -> str | None:
        """Who stands there; empty: somebody who is new."""
        knot = self._find(path)
        return None if knot is None else knot.id

    def children(self, document_id: str) -> list[str]:
        return [each.id for each in self._by_id[document_id].children.values() if each.id]

    def below(self, document_id: str) -> Iterator[str]:
        """All who stand below a document."""
        knots = list(self._by_id[document_id].children.values())
        while knots:
            knot = knots.pop()
            knots += knot.children.values()
            if knot.id:
                yield knot.id

    def is_free(self, path: DocumentPath) -> bool:
        knot = self._find(path)
        return knot is None or (knot is self._top and knot.id is None)

    def is_leaf(self, document_id: str) -> bool:
        return not self._by_id[document_id].children

    def problem(self, document_id: str, target: DocumentPath) -> str:
        """Why a document cannot be moved there; nothing: it can."""
        knot = self._by_id[document_id]
        other = self._find(target)
        if other is not None and other is not knot:
            return f"something else stands at {target}"
        if self.is_below(document_id, target):
            return f"it cannot be moved below itself, to {target}"
        if len(target.slugs) + knot.height > DEPTH_MAX:
            return f"what is below it would stand more than {DEPTH_MAX} deep"
        return ""

    def is_below(self, document_id: str, target: DocumentPath) -> bool:
        """Whether a place is below a document."""
        knot = self._by_id[document_id]
        return any(self._find(above) is knot for above in self.above(target))

    def is_root(self, path: DocumentPath) -> bool:
        return path.key == self._root.key

    def above(self, path: DocumentPath) -> tuple[DocumentPath, ...]:
        """The places above one, from the top, without the root."""
        return path.parents[len(self._root.slugs) :]

    def move(self, document_id: str, target: DocumentPath) -> None:
        knot = self._by_id[document_id]
        self._detach(knot)
        parent = self._made(DocumentPath(target.slugs[:-1]))
        knot.slug, knot.parent = target.slug, parent
        parent.children[slug_key(target.slug)] = knot

    def create(self, path: DocumentPath) -> None:
        self._made(path).id = ""

    def delete(self, document_id: str) -> None:
        self._detach(self._by_id.pop(document_id))

    def _detach(self, knot: _Knot) -> None:
        assert knot.parent is not None
        del knot.parent.children[slug_key(knot.slug)]

    def _find(self, path: DocumentPath) -> _Knot | None:
        knot = self._top
        for slug in path.slugs[len(self._root.slugs) :]:
            inner = knot.children.get(slug_key(slug))
            if inner is None:
                return None
            knot = inner
        return knot

    def _made(self, path: DocumentPath) -> _Knot:
        knot = self._top
        for slug in path.slugs[len(self._root.slugs) :]:
            made = _Knot(slug=slug, id=None, parent=knot)
            knot = knot.children.setdefault(slug_key(slug), made)
        return knot


@dataclass(slots=True, kw_only=True)
class Ordering:
    """What is wished for, as far as it can be had, step by step."""

    sketch: Sketch
    moves: dict[str, DocumentPath]
    creations: dict[str, DocumentPath]  # by key
    deletions: list[str]
    bare: frozenset[str] | None = None  # pages that say nothing and give way; none: nobody does
    steps: list[Step] = field(default_factory=list)
    wanted: dict[str, DocumentPath] = field(default_factory=dict)
    aside: list[str] = field(default_factory=list)  # who had to step aside on the way
    _goals: dict[str, str] = field(default_factory=dict)  # key: who is to stand there

    def run(self, staying: Mapping[str, DocumentPath]) -> None:
        """`staying`: documents whose files are where they were. What is left over cannot be had."""
        self.wanted = {**staying, **self.moves}
        self._goals = {path.key: each for each, path in self.wanted.items()}
        while self._step(is_strict=True) or self._make_room() or self._step(is_strict=False):
            pass

    def _step(self, *, is_strict: bool) -> bool:
        return self._create(is_strict) or self._move(is_strict) or self._delete()

    def _is_ready(self, place: DocumentPath) -> bool:
        """Whether what stands above a place is what is to stand there."""
        for above in self.sketch.above(place):
            if above.key in self.creations or self.sketch.at(above) in self.moves:
                return False
            if self._goals.get(above.key, "") in self.moves:
                return False
        return True

    def _create(self, is_strict: bool) -> bool:
        before = len(self.creations)
        for target in sorted(self.creations.values(), key=_order):
            is_ready = self.sketch.is_free(target) and (not is_strict or self._is_ready(target))
            if is_ready:
                self.steps.append(Creating(target=target))
                self.sketch.create(target)
                del self.creations[target.key]
                if not is_strict:
                    break
        return len(self.creations) < before

    def _move(self, is_strict: bool) -> bool:
        count = len(self.steps)
        for each, target in sorted(self.moves.items(), key=lambda move: _order(move[1])):
            source = self.sketch.where(each)
            if source is None or is_same_place(source, target):
                del self.moves[each]
            elif not self.sketch.problem(each, target) and (
                not is_strict or self._is_ready(target)
            ):
                del self.moves[each]
                self._move_to(each, target)
                if not is_strict:
                    break
        return len(self.steps) > count

    def _move_to(self, document_id: str, target: DocumentPath) -> None:
        source = self.sketch.where(document_id)
        assert source is not None
        self.steps.append(Moving(id=document_id, source=source, target=target))
        self.sketch.move(document_id, target)
        for each in self.sketch.below(document_id):
            path, now = self.wanted.get(each), self.sketch.where(each)
            if path is not None and now is not None and not is_same_place(now, path):
                self.moves[each] = path

    def _make_room(self) -> bool:
        """A page that says nothing gives way; one that goes below itself first steps aside."""
        if self.bare is None:
            return False
        for each, target in sorted(self.moves.items(), key=lambda move: _order(move[1])):
            other = self.sketch.at(target)
            if self.sketch.is_below(each, target) and each not in self.aside:
                self._step_aside(each)
                return True
            is_in_the_way = other in self.bare and other not in self.moves
            if other is not None and is_in_the_way and not self.sketch.is_root(target):
                self.wanted.pop(other, None)
                self._goals[target.key] = each
                self._step_aside(other)
                self.deletions.append(other)
                return True
        return False

    def _step_aside(self, document_id: str) -> None:
        """To a place that is nobody's, without what stands below it."""
        self.aside.append(document_id)
        for child in self.sketch.children(document_id):
            path = self.sketch.where(child)
            assert path is not None
            self.wanted.setdefault(child, path)
        above = self.sketch.where(document_id)
        assert above is not None
        number = 1
        while not self._is_nobody_s(spare := _spare(above, number)):
            number += 1
        self._move_to(document_id, spare)

    @property
    def is_stuck(self) -> bool:
        """Whether somebody stepped aside, and that was of no use."""
        return bool(self.aside) and bool(self.moves or {*self.aside} & {*self.deletions})

    def _is_nobody_s(self, path: DocumentPath) -> bool:
        return (
            self.sketch.is_free(path)
            and path.key not in self._goals
            and path.key not in self.creations
        )

    def _delete(self) -> bool:
        placed = [(each, self.sketch.where(each)) for each in self.deletions]
        deepest_first = sorted(
            ((each, source) for each, source in placed if source is not None),
            key=lambda pair: _order(pair[1]),
            reverse=True,
        )
        waiting = []
        for each, source in deepest_first:
            if self.sketch.is_leaf(each):
                self.steps.append(Deleting(id=each, source=source))
                self.sketch.delete(each)
            else:
                waiting.append(each)
        self.deletions = waiting
        return len(waiting) < len(deepest_first)


def is_same_place(a: DocumentPath, b: DocumentPath) -> bool:
    """The case of what stands above is that of the documents there, not a question of this one."""
    return a.key == b.key and a.slug == b.slug


def _spare(path: DocumentPath, number: int) -> DocumentPath:
    return DocumentPath((*path.slugs[:-1], f"moving-{number}"))


def _order(path: DocumentPath) -> tuple[int, str]:
    return len(path.slugs), path.key
