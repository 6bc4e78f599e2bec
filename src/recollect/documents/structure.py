"""Moves, creations and deletions in an order in which each is possible, tried on a sketch. Pure.

The tree moves what stands below a document along with it; files do not. Whoever moved a page by
hand and left its directory where it was meant just that, so what was carried along goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        above = target.parent
        while above is not None and len(above.slugs) > len(self._root.slugs):
            if self._find(above) is knot:
                return f"it cannot be moved below itself, to {target}"
            above = above.parent
        if len(target.slugs) + knot.height > DEPTH_MAX:
            return f"what is below it would stand more than {DEPTH_MAX} deep"
        return ""

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
    steps: list[Step] = field(default_factory=list)

    def run(self, staying: Mapping[str, DocumentPath]) -> None:
        """`staying`: documents whose files are where they were. What is left over cannot be had."""
        wanted = {**staying, **self.moves}
        self._settle()
        if any(isinstance(step, Moving) for step in self.steps):
            carried = {
                each: path
                for each, path in wanted.items()
                if (now := self.sketch.where(each)) is not None and not is_same_place(now, path)
            }
            self.moves |= carried
            self._settle()

    def _settle(self) -> None:
        while self._create() or self._move() or self._delete():
            pass

    def _create(self) -> bool:
        before = len(self.creations)
        for target in sorted(self.creations.values(), key=_order):
            self._create_at(target)
        return len(self.creations) < before

    def _create_at(self, place: DocumentPath) -> None:
        """At once when a place is left: a move to below it would put an empty page there."""
        target = self.creations.get(place.key)
        if target is not None and self.sketch.is_free(target):
            self.steps.append(Creating(target=target))
            self.sketch.create(target)
            del self.creations[target.key]

    def _move(self) -> bool:
        before = len(self.moves)
        for each, target in sorted(self.moves.items(), key=lambda move: _order(move[1])):
            source = self.sketch.where(each)
            if source is None or is_same_place(source, target):
                del self.moves[each]
            elif not self.sketch.problem(each, target):
                self.steps.append(Moving(id=each, source=source, target=target))
                self.sketch.move(each, target)
                del self.moves[each]
                self._create_at(source)
        return len(self.moves) < before

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
                self._create_at(source)
            else:
                waiting.append(each)
        self.deletions = waiting
        return len(waiting) < len(deepest_first)


def is_same_place(a: DocumentPath, b: DocumentPath) -> bool:
    """The case of what stands above is that of the documents there, not a question of this one."""
    return a.key == b.key and a.slug == b.slug


def _order(path: DocumentPath) -> tuple[int, str]:
    return len(path.slugs), path.key
