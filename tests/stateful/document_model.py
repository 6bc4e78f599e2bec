"""A document tree in plain dictionaries: what any sequence of edits has to come to."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import datetime

from recollect.documents.paths import DocumentPath, read_path
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    NotFound,
    StaleVersion,
    TooLarge,
    UsageError,
)
from recollect.types.pages import (
    Content,
    Delete,
    DocumentEvent,
    Edit,
    Move,
    NewReference,
    Reference,
    ReferenceKind,
    Restore,
    Rewrite,
    TreeLimits,
    Write,
)

Refused = type[UsageError]


@dataclass(slots=True)
class Page:
    """A document, as plainly as it can be put."""

    number: int
    path: DocumentPath
    content: Content
    references: tuple[NewReference, ...]
    created_at: datetime
    updated_at: datetime
    version: int = 0
    versions: list[tuple[DocumentEvent, str, Content]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    deleted_at: datetime | None = None
    deleted_with: int = 0
    id: str = ""  # the store's, once it is known
    meant: dict[tuple[ReferenceKind, str], Page] = field(default_factory=dict)

    def note(self, event: DocumentEvent, now: datetime, above: int = 0) -> None:
        """One more version, above the last and above what others had where it stands."""
        self.updated_at = now
        self.version = max(self.version, above) + 1
        self.versions.append((event, self.path.text, self.content))
        self.numbers.append(self.version)


@dataclass(slots=True)
class Tree:
    """Pages by number, and where each path leads."""

    limits: TreeLimits
    pages: dict[int, Page] = field(default_factory=dict)
    live: dict[str, Page] = field(default_factory=dict)
    led: dict[str, Page] = field(default_factory=dict)
    last: int = 0
    purged: int = 0  # the highest version that was

    # looking

    def seen_at(self, page: Page) -> int:
        """The highest version of what else stood where a page stands now."""
        key = page.path.key
        gone = [
            other.version
            for other in self.pages.values()
            if other.deleted_at is not None and other.path.key == key and other is not page
        ]
        led = self.led.get(key)
        moved = 0 if led is None or led is page else led.version
        return max(self.purged, moved, *gone, 0)

    def leads_to(self, key: str) -> Page | None:
        moved = self.led.get(key)
        return self.live.get(key) or (moved if moved and moved.deleted_at is None else None)

    def deleted_at(self, key: str) -> Page | None:
        found = [
            page
            for page in self.pages.values()
            if page.path.key == key and page.deleted_at is not None
        ]
        return max(found, key=lambda page: (page.deleted_at, page.number), default=None)

    def inside(self, root: DocumentPath) -> list[Page]:
        found = [page for page in self.live.values() if page.path.is_within(root)]
        return sorted(found, key=lambda page: page.path.key)

    def references_from(self, page: Page) -> list[Reference]:
        found = []
        for each in sorted(page.references, key=lambda each: (each.kind, each.place.key)):
            target = self.meant(page, each)
            shown = each.place.text if target is None else target.path.text
            found.append(
                Reference(
                    kind=each.kind,
                    source=page.path.text,
                    target=shown,
                    alias=each.alias,
                    is_broken=target is None,
                    named=each.place.text,
                )
            )
        return found

    def referrers(self, page: Page) -> list[Page]:
        return [
            other
            for other in self.live.values()
            if any(self.meant(other, each) is page for each in other.references)
        ]

    def meant(self, page: Page, reference: NewReference) -> Page | None:
        """What a reference means, if that is there."""
        found = page.meant.get((reference.kind, reference.place.key))
        return found if found is not None and found.deleted_at is None else None

    def _bind(self) -> None:
        """See to it that what means nothing means what its path leads to, or waits for that."""
        for page in self.pages.values():
            for each in page.references:
                if self.meant(page, each) is None:
                    key = each.place.key
                    found = self.live.get(key) or self.led.get(key)
                    page.meant.pop((each.kind, key), None)
                    if found is not None:
                        page.meant[each.kind, key] = found

    def _refer(self, page: Page, references: tuple[NewReference, ...]) -> None:
        """What stays keeps its meaning."""
        named = {(each.kind, each.place.key) for each in references}
        page.references = references
        page.meant = {
            name: found
            for name, found in page.meant.items()
            if name in named and found.deleted_at is None
        }

    # changing

    def applied(self, edits: list[Edit], now: datetime) -> Tree | UsageError:
        """The tree after a set of edits, or the error with which they are refused."""
        after = copy.deepcopy(self)
        try:
            for edit in edits:
                after.apply(edit, now)
                after._bind()
            if len(self.live) < len(after.live) > self.limits.documents_max:
                raise TooLarge
        except UsageError as error:
            return error
        return after

    def apply(self, edit: Edit, now: datetime) -> None:
        match edit:
            case Write():
                self._write(edit, now)
            case Move():
                self._move(edit, now)
            case Delete():
                self._delete(edit, now)
            case Restore():
                self._restore(edit, now)
            case Rewrite():
                raise NotImplementedError  # a write, once it is known of what

    def purge(self, path: DocumentPath) -> tuple[int, int]:
        found = [page for page in self.pages.values() if page.path.is_within(path)]
        for page in found:
            self.purged = max(self.purged, page.version)
            del self.pages[page.number]
            if page.deleted_at is None:
                del self.live[page.path.key]
        self.led = {key: page for key, page in self.led.items() if page.number in self.pages}
        for page in self.pages.values():
            kept = {name: each for name, each in page.meant.items() if each.number in self.pages}
            page.meant = kept
        self._bind()
        return len(found), sum(len(page.versions) for page in found)

    def _write(self, edit: Write, now: datetime) -> None:
        page = self._meant(edit)
        if page is None:
            page = self._create(read_path(edit.place.text), edit.content, now)
            self._refer(page, edit.references)
        elif page.content != edit.content:
            page.content = edit.content
            self._refer(page, edit.references)
            page.note(DocumentEvent.WRITTEN, now)

    def _create(self, path: DocumentPath, content: Content, now: datetime) -> Page:
        self._make_parents(path, now)
        if len(path.slugs) > self.limits.depth_max:
            raise InvalidPath
        self.last += 1
        page = Page(self.last, self._named(path), content, (), now, now)
        self.pages[page.number] = page
        seen = self.seen_at(page)
        self._stand(page)
        page.note(DocumentEvent.CREATED, now, seen)
        return page

    def _make_parents(
        self, path: DocumentPath, now: datetime, since: datetime | None = None
    ) -> None:
        """Those that are missing; `since`: as they were, if they were deleted from then on."""
        if path.parent is None or path.parent.key in self.live:
            return
        self._make_parents(path.parent, now, since)
        gone = self.deleted_at(path.parent.key)
        if since is not None and gone is not None and gone.deleted_at and gone.deleted_at >= since:
            self._bring_back([gone], gone.path, self._named(path.parent), now)
        else:
            self._create(path.parent, Content(title=path.parent.slug), now)

    def _named(self, path: DocumentPath) -> DocumentPath:
        if path.parent is None:
            return path
        return DocumentPath((*self.live[path.parent.key].path.slugs, path.slug))

    def _stand(self, page: Page) -> None:
        self.live[page.path.key] = page
        self.led.pop(page.path.key, None)

    def _move(self, edit: Move, now: datetime) -> None:
        page = self._present(edit)
        source, to = page.path, read_path(edit.to.text)
        if to.is_within(source) and to.key != source.key:
            raise InvalidPath
        if to.key != source.key and to.key in self.live:
            raise DocumentExists
        self._make_parents(to, now)
        to = self._named(to)
        if to == source:
            return
        moved = self.inside(source)
        deeper = len(to.slugs) - len(source.slugs)
        if max(len(each.path.slugs) for each in moved) + deeper > self.limits.depth_max:
            raise InvalidPath
        for each in moved:
            del self.live[each.path.key]
            if to.key != source.key:
                self.led[each.path.key] = each
        for each in moved:
            each.path = DocumentPath((*to.slugs, *each.path.slugs[len(source.slugs) :]))
        seen = [self.seen_at(each) for each in moved]
        for each, above in zip(moved, seen, strict=True):
            self._stand(each)
            if each is page or each.version <= above:
                each.note(DocumentEvent.MOVED, now, above)

    def _delete(self, edit: Delete, now: datetime) -> None:
        page = self._present(edit)
        gone = self.inside(page.path)
        if len(gone) > 1 and not edit.below:
            raise DocumentReferenced
        held = any(other not in gone for each in gone for other in self.referrers(each))
        if held and not edit.leaves_broken:
            raise DocumentReferenced
        for each in gone:
            del self.live[each.path.key]
            each.deleted_at, each.deleted_with = now, page.number
            each.note(DocumentEvent.DELETED, now)

    def _restore(self, edit: Restore, now: datetime) -> None:
        if edit.place.key in self.live:
            raise DocumentExists
        page = self.deleted_at(edit.place.key)
        if page is None:
            raise NotFound
        if edit.expected not in (None, page.version):
            raise StaleVersion("", current=page.version)
        source = page.path
        self._make_parents(read_path(edit.place.text), now, page.deleted_at)
        to = self._named(read_path(edit.place.text))
        together = [
            each
            for each in self.pages.values()
            if each.deleted_with == page.deleted_with
            and each.deleted_at is not None
            and each.path.is_within(source)
        ]
        self._bring_back(together, source, to, now)

    def _bring_back(
        self, pages: list[Page], source: DocumentPath, to: DocumentPath, now: datetime
    ) -> None:
        for each in pages:
            each.path = DocumentPath((*to.slugs, *each.path.slugs[len(source.slugs) :]))
            each.deleted_at, each.deleted_with = None, 0
        seen = [self.seen_at(each) for each in pages]
        for each, above in zip(pages, seen, strict=True):
            self._stand(each)
            each.note(DocumentEvent.RESTORED, now, above)

    def _meant(self, edit: Write | Move | Delete) -> Page | None:
        page = self.live.get(edit.place.key)
        if page is None:
            if edit.expected:
                raise NotFound
        elif edit.expected == 0:
            raise DocumentExists
        elif edit.expected not in (None, page.version):
            raise StaleVersion("", current=page.version)
        return page

    def _present(self, edit: Move | Delete) -> Page:
        page = self._meant(edit)
        if page is None:
            raise NotFound
        return page
