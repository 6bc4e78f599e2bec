"""Publishing the tree as a directory of Markdown files, one whole generation at a time.

Owns P6: a generation is one state of the tree, written aside, synced, and changes places with the
one before in one step. What did not change is the same file in both. What people changed by hand
is never lost: unless it was loaded, nothing is published; whoever publishes over it, and what they
change in the last moment, has the generation before kept aside.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from recollect.documents import manifest as manifests
from recollect.documents.files import UNFINISHED, Folder, Target, shown, target_of, wipe
from recollect.documents.front_matter import render
from recollect.documents.generations import Generations
from recollect.documents.layout import (
    Branch,
    Layout,
    Slot,
    branches,
    document_of,
    folder_entries,
    folders_of,
    lay_out,
)
from recollect.documents.load import is_own
from recollect.documents.loaded import Known, read_known
from recollect.documents.manifest import Entry, Manifest
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.reconcile import reconcile
from recollect.documents.shelf import Shelf
from recollect.documents.survey import Found, Survey, survey
from recollect.errors import InvalidValue, NotFound, StoreBusy, UnloadedEdits, UnusableDirectory

TRIES_MAX = 8  # to read the tree without anything being purged meanwhile
FILES_SHOWN = 10

Progress = Callable[[int, int], None]  # how many files are there, of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What was published. `kept_aside`: directories beside it with edits that were not loaded."""

    directory: str
    generation: int
    documents: int
    written: int
    kept: int
    removed: int
    kept_aside: tuple[str, ...]


def publish(
    shelf: Shelf,
    directory: str | os.PathLike[str],
    *,
    root: DocumentPath | None = None,
    discard_edits: bool = False,
    progress: Progress | None = None,
) -> Publication:
    """Publish what stands below a root, or again what was published there.

    UnloadedEdits: people changed files, load them first.
    """
    if root is not None:
        shelf.holder.check_read(root)
    with target_of(directory) as target, contextlib.ExitStack() as stack:
        target.check_can_be_replaced()
        old = target.held(is_shared=False)
        if old is not None:
            stack.enter_context(old)
        publishing = _Publishing(
            shelf=shelf,
            target=target,
            old=old,
            known=None if old is None else _known(shelf, target, old, root),
            beside=Generations(target=target, old=old),
            progress=progress or (lambda _done, _all: None),
        )
        return publishing.run(root, discard_edits=discard_edits)


def _known(shelf: Shelf, target: Target, old: Folder, root: DocumentPath | None) -> Known | None:
    """What is known about a directory; UnusableDirectory: it is not ours, or not whole."""
    where = target.shown
    try:
        known = read_known(old)
    except InvalidValue as error:
        raise UnusableDirectory(f"{where} cannot be published to: {error}") from error
    if known is None:
        if old.names():
            raise UnusableDirectory(f"{where} is not empty, and was not published by Recollect")
        return None
    published = known.published
    if published.store != shelf.store:
        raise UnusableDirectory(
            f"{where} was published from another store: load it, and publish to another directory"
        )
    if not is_own(shelf, published, published.root if root is None else root):
        raise UnusableDirectory(f"{where} holds {published.root} of space {shown(published.space)}")
    if old.stat(UNFINISHED) is not None:
        raise UnusableDirectory(f"{where} is what is left of an old generation")
    return known


@dataclass(slots=True, kw_only=True)
class _Publishing:
    shelf: Shelf
    target: Target
    old: Folder | None
    known: Known | None
    beside: Generations
    progress: Progress
    root: DocumentPath = field(init=False)
    before: Survey | None = None
    has_edits: bool = False
    placed: dict[str, Entry] = field(default_factory=dict)
    linked: dict[str, Found] = field(default_factory=dict)

    def run(self, root: DocumentPath | None, *, discard_edits: bool) -> Publication:
        self.root = self._root(root)
        if self.old is not None and self.known is not None:
            self._look(self.old, self.known, discard_edits=discard_edits)
        self.beside.clear(self._is_disposable)
        layout = lay_out(self.shelf, self.root)
        if self.known is not None and self._is_published(layout):
            published = self.known.published
            entries = [each for each in published.entries if each.sha256]
            self.linked = {each.path: self._found(each) for each in entries}
            return self._publication(published)
        generation = 1 if self.known is None else self.known.published.generation + 1
        with self.beside.aside(generation) as (name, aside):
            manifest = self._written(aside, layout, generation)
            self.beside.swap(name, aside)
            self.beside.retire(name, self._is_as_it_was)
        return self._publication(manifest)

    def _root(self, given: DocumentPath | None) -> DocumentPath:
        """What is published: something that is there, or all there is."""
        root = self.shelf.holder.top if given is None else given
        if given is None and self.known is not None:
            root = self.known.published.root
        self.shelf.holder.check_read(root)
        if root.key != self.shelf.holder.top.key and self.shelf.at(root) is None:
            moved = self.shelf.tree.find(self.shelf.space, root.place)
            is_seen = moved is not None and self.shelf.get(moved.id, self.shelf.holder.top)
            where = f"; what stood there is at {moved.path}" if moved and is_seen else ""
            raise NotFound(f"there is nothing at {root} to publish{where}")
        return root

    def _publication(self, manifest: Manifest) -> Publication:
        files = {each.path for each in manifest.entries if each.sha256}
        before = () if self.known is None else self.known.published.entries
        return Publication(
            directory=self.target.shown,
            generation=manifest.generation,
            documents=len(manifest.entries),
            written=len(files) - len(self.linked),
            kept=len(self.linked),
            removed=sum(1 for each in before if each.sha256 and each.path not in files),
            kept_aside=self.beside.kept_aside(),
        )

    # what is there

    def _look(self, old: Folder, known: Known, *, discard_edits: bool) -> None:
        self.before = survey(old, self.root, self.shelf.limits, known.base)
        if _is_untouched(self.before, known.base):
            return
        files = sorted(reconcile(self.shelf, self.before, known.base).files)
        self.has_edits = bool(files)
        if files and not discard_edits:
            more = "" if len(files) <= FILES_SHOWN else f" and {len(files) - FILES_SHOWN} more"
            raise UnloadedEdits(
                f"{self.target.shown} was edited: load it first, or discard the edits: "
                f"{', '.join(files[:FILES_SHOWN])}{more}",
                files=files,
            )

    def _found(self, entry: Entry) -> Found:
        assert self.before is not None
        return self.before.files[manifests.path_of(self.root, entry.path).key]

    def _is_published(self, layout: Layout) -> bool:
        """Whether the directory already is what would be published."""
        assert self.before is not None
        assert self.known is not None
        published = self.known.published
        wanted = {(name, each.id, each.version, each.at) for name, each in layout.items()}
        there = {(each.path, each.id, each.version, each.at) for each in published.entries}
        return (
            wanted == there
            and not self.before.skipped
            and self.before.files.keys() == published.by_key.keys()
            and set(self.before.folders.values()) == folders_of(layout)
            and all(each.is_folder or self._reusable(name, each) for name, each in layout.items())
        )

    def _reusable(self, name: str, slot: Slot) -> Found | None:
        """The file of the generation before that is just what is to be written."""
        if self.before is None or self.known is None:
            return None
        key = read_path(slot.path).key
        entry, found = self.known.published.by_key.get(key), self.before.files.get(key)
        if entry is None or found is None:
            return None
        is_same = (entry.path, entry.id, entry.version, entry.at) == (
            *(name, slot.id, slot.version, slot.at),
        )
        is_whole = found.name == name and found.sha256 == entry.sha256 and found.is_private
        if not (is_same and is_whole):
            return None
        if entry.has_sources:
            # Somebody may have been forgotten since; that makes no version.
            document = document_of(self.shelf, slot)
            if document is None or _sha256(render(document)) != entry.sha256:
                return None
        return found

    # what is to be there

    def _written(self, aside: Folder, layout: Layout, generation: int) -> Manifest:
        """One state of the tree, whole and on the disk."""
        for _ in range(TRIES_MAX):
            self.placed = folder_entries(layout)
            self._grow(branches(layout), layout, aside, self.old)
            if self.placed.keys() == layout.keys():
                break
            self._start_over(aside)
            layout = lay_out(self.shelf, self.root)
        else:
            raise StoreBusy("the tree is purged faster than it can be published; try again")
        manifest = Manifest(
            store=self.shelf.store,
            space=self.shelf.space,
            root=self.root,
            generation=generation,
            published_at=manifests.published_text(self.shelf.now()),
            entries=tuple(self.placed[name] for name in sorted(layout)),
        )
        aside.write(manifests.NAME, manifests.write(manifest))
        aside.remove(UNFINISHED)
        aside.sync()
        return manifest

    def _start_over(self, aside: Folder) -> None:
        wipe(aside, UNFINISHED)
        aside.write(UNFINISHED, b"")
        self.linked.clear()

    def _grow(self, branch: Branch, layout: Layout, into: Folder, old: Folder | None) -> None:
        for name, whole in sorted(branch.files.items()):
            self._place(name, whole, layout[whole], into, old)
            self.progress(len(self.placed), len(layout))
        for name, inner in sorted(branch.folders.items()):
            with contextlib.ExitStack() as stack:
                folder = stack.enter_context(into.make(name))
                was = None
                with contextlib.suppress(OSError):
                    was = None if old is None else stack.enter_context(old.folder(name))
                self._grow(inner, layout, folder, was)
        into.sync()

    def _place(self, name: str, whole: str, slot: Slot, into: Folder, old: Folder | None) -> None:
        found = self._reusable(whole, slot)
        if found is not None and old is not None and into.link(name, old, found.identity):
            assert self.known is not None
            self.placed[whole] = self.known.published.by_id[slot.id]
            self.linked[whole] = found
            return
        document = document_of(self.shelf, slot)
        if document is None:
            return  # it was purged since the tree was listed, which is listed again
        data = render(document)
        into.write(name, data)
        self.placed[whole] = Entry(
            path=whole,
            id=slot.id,
            version=slot.version,
            at=slot.at,
            sha256=_sha256(data),
            size_bytes=len(data),
            has_sources=bool(document.sources),
        )

    # what is left of generations before

    def _is_as_it_was(self, old: Folder) -> bool:
        """Whether nobody has edited it, be it since the last look."""
        if self.known is None or self.before is None:
            return not old.names()
        if self.has_edits:
            return False
        trusted = {each.identity: each.sha256 for each in self.linked.values()}
        now = survey(old, self.root, self.shelf.limits, self.known.base, trusted)
        return now.seen() == self.before.seen()

    def _is_disposable(self, folder: Folder) -> bool:
        """Whether all that a generation before says is in the tree."""
        known = read_known(folder)
        if known is None or not is_own(self.shelf, known.published, known.published.root):
            return False
        found = survey(folder, known.published.root, self.shelf.limits, known.base)
        if _is_untouched(found, known.base):
            return True
        return not reconcile(self.shelf, found, known.base).files


def _is_untouched(found: Survey, base: Manifest) -> bool:
    """Whether a directory holds just what is known."""
    is_known = all(each.data is None for each in found.files.values())
    return is_known and not found.skipped and found.files.keys() == base.by_key.keys()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
