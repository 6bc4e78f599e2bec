"""Publishing the tree as a directory of Markdown files, one whole generation at a time.

Owns P6: a generation is written aside, synced, and changes places with the one before in one step.
What did not change is the same file in both. What people changed by hand is never lost: unless it
was loaded, nothing is published; what they change in the last moment is kept aside.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from recollect.document import Document, Node
from recollect.documents import manifest as manifests
from recollect.documents.files import (
    Folder,
    Target,
    shown,
    target_of,
    wipe,
)
from recollect.documents.front_matter import render
from recollect.documents.load import read_manifest
from recollect.documents.manifest import Entry, Manifest
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.reconcile import reconcile
from recollect.documents.shelf import Shelf, is_bare
from recollect.documents.survey import Found, Survey, survey
from recollect.errors import InvalidValue, StoreBusy, UnloadedEdits, UnusableDirectory, UsageError

TRIES_MAX = 8  # to read the tree without anybody changing it meanwhile
FILES_SHOWN = 10
UNFINISHED = ".recollect-unfinished"
_ASIDE_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What was published. `kept_aside`: directories with edits that came too late to be seen."""

    directory: str
    generation: int
    documents: int
    written: int
    kept: int
    removed: int
    kept_aside: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """A document on its way into a generation."""

    id: str
    version: int
    path: str
    is_folder: bool


@dataclass(slots=True, kw_only=True)
class _Branch:
    """A directory of a generation: the whole names of its files, and its directories."""

    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, _Branch] = field(default_factory=dict)


Layout = dict[str, _Slot]


def publish(
    shelf: Shelf,
    directory: str | os.PathLike[str],
    *,
    root: DocumentPath | None = None,
    discard_edits: bool = False,
) -> Publication:
    """Publish what stands below a root. UnloadedEdits: people changed files, load them first."""
    top = shelf.holder.top if root is None else root
    shelf.holder.check_read(top)
    with target_of(directory) as target, contextlib.ExitStack() as stack:
        old = target.held(is_shared=False)
        if old is not None:
            stack.enter_context(old)
        publishing = _Publishing(shelf=shelf, root=top, target=target, old=old)
        return publishing.run(discard_edits=discard_edits)


@dataclass(slots=True, kw_only=True)
class _Publishing:
    shelf: Shelf
    root: DocumentPath
    target: Target
    old: Folder | None
    known: Manifest | None = None
    before: Survey | None = None
    placed: dict[str, Entry] = field(default_factory=dict)
    linked: dict[str, Found] = field(default_factory=dict)
    kept_aside: list[str] = field(default_factory=list)
    bare: dict[tuple[str, int], bool] = field(default_factory=dict)

    def run(self, *, discard_edits: bool) -> Publication:
        if self.old is not None:
            self._look(self.old, discard_edits=discard_edits)
        self._clear_leftovers()
        layout = self._layout()
        if self.known is not None and self._is_published(layout):
            entries = self.known.entries
            self.linked = {each.path: self._found(each) for each in entries if each.sha256}
            return self._publication(self.known)
        with self._aside() as (name, aside):
            manifest = self._written(aside, layout)
            self._swap(name, aside)
            self._retire(name)
        return self._publication(manifest)

    def _publication(self, manifest: Manifest) -> Publication:
        files = {each.path for each in manifest.entries if each.sha256}
        before = () if self.known is None else self.known.entries
        return Publication(
            directory=self.target.shown,
            generation=manifest.generation,
            documents=len(manifest.entries),
            written=len(files) - len(self.linked),
            kept=len(self.linked),
            removed=sum(1 for each in before if each.sha256 and each.path not in files),
            kept_aside=tuple(self.kept_aside),
        )

    # what is there

    def _look(self, old: Folder, *, discard_edits: bool) -> None:
        where = self.target.shown
        try:
            self.known = read_manifest(old)
        except InvalidValue as error:
            raise UnusableDirectory(f"{where} cannot be published to: {error}") from error
        if self.known is None:
            if old.names():
                raise UnusableDirectory(f"{where} is not empty, and was not published by Recollect")
            return
        if self.known.space != self.shelf.space or self.known.root.key != self.root.key:
            raise UnusableDirectory(
                f"{where} holds {self.known.root} of space {shown(self.known.space)}"
            )
        self.before = survey(old, self.root, self.shelf.limits, self.known)
        if not discard_edits and not self._is_untouched(self.before, self.known):
            files = sorted(reconcile(self.shelf, self.before, self.known).files)
            if files:
                more = "" if len(files) <= FILES_SHOWN else f" and {len(files) - FILES_SHOWN} more"
                raise UnloadedEdits(
                    f"{where} was edited: load it first, or discard the edits: "
                    f"{', '.join(files[:FILES_SHOWN])}{more}",
                    files=files,
                )

    def _is_untouched(self, found: Survey, known: Manifest) -> bool:
        is_as_published = all(each.data is None for each in found.files.values())
        return is_as_published and not found.skipped and found.files.keys() == known.by_key.keys()

    def _found(self, entry: Entry) -> Found:
        assert self.before is not None
        return self.before.files[manifests.path_of(self.root, entry.path).key]

    def _is_published(self, layout: Layout) -> bool:
        """Whether the directory already is what would be published."""
        assert self.before is not None
        assert self.known is not None
        wanted = {(name, each.id, each.version) for name, each in layout.items()}
        there = {(each.path, each.id, each.version) for each in self.known.entries}
        return (
            wanted == there
            and self._is_untouched(self.before, self.known)
            and set(self.before.folders.values()) == _folders(layout)
            and all(each.is_folder or self._reusable(name, each) for name, each in layout.items())
        )

    def _reusable(self, name: str, slot: _Slot) -> Found | None:
        """The file of the generation before that is just what is to be written."""
        if self.before is None or self.known is None:
            return None
        key = read_path(slot.path).key
        entry, found = self.known.by_key.get(key), self.before.files.get(key)
        if entry is None or found is None:
            return None
        is_same = (entry.path, entry.id, entry.version) == (name, slot.id, slot.version)
        is_whole = found.name == name and found.sha256 == entry.sha256 and found.is_private
        if not (is_same and is_whole):
            return None
        if entry.has_sources:
            # Somebody may have been forgotten since; that makes no version.
            document = self._document(slot)
            if document is None or _sha256(render(document)) != entry.sha256:
                return None
        return found

    # what is to be there

    def _layout(self) -> Layout:
        layout: Layout = {}
        for node in self.shelf.nodes(self.root):
            path = read_path(node.path)
            is_folder = self._is_folder(node, path)
            name_of = manifests.folder_of if is_folder else manifests.file_of
            name = name_of(self.root, path)
            layout[name] = _Slot(
                id=node.id, version=node.version, path=node.path, is_folder=is_folder
            )
        return layout

    def _is_folder(self, node: Node, path: DocumentPath) -> bool:
        """A page that says nothing but its name, with others below it, is a directory alone."""
        is_needed = node.has_children or path.key == self.root.key
        if not is_needed or node.body_chars or node.description or node.title != path.slug:
            return False
        key = (node.id, node.version)
        if key not in self.bare:
            found = self.shelf.tree.get(self.shelf.space, node.id)
            self.bare[key] = found is not None and is_bare(found.content, path.slug)
        return self.bare[key]

    def _document(self, slot: _Slot) -> Document | None:
        found = self.shelf.tree.get(self.shelf.space, slot.id)
        if found is None or found.deleted_at is not None:
            return None
        return found if (found.version, found.path) == (slot.version, slot.path) else None

    def _written(self, aside: Folder, layout: Layout) -> Manifest:
        """One state of the tree, whole and on the disk."""
        for _ in range(TRIES_MAX):
            self._fill(aside, layout)
            again = self._layout()
            if again == layout and self.placed.keys() == layout.keys():
                break
            layout = again
        else:
            raise StoreBusy("the tree is changed faster than it can be published; try again")
        manifest = Manifest(
            space=self.shelf.space,
            root=self.root,
            generation=1 if self.known is None else self.known.generation + 1,
            published_at=manifests.published_text(self.shelf.now()),
            entries=tuple(self.placed[name] for name in sorted(layout)),
        )
        aside.write(manifests.NAME, manifests.write(manifest))
        aside.remove(UNFINISHED)
        aside.sync()
        return manifest

    def _fill(self, aside: Folder, layout: Layout) -> None:
        if _folders(self.placed) - _folders(layout):
            self._start_over(aside)
        slots = {name: (each.id, each.version) for name, each in layout.items()}
        for name, entry in list(self.placed.items()):
            if slots.get(name) != (entry.id, entry.version):
                self._take_back(aside, entry)
        branch = _Branch()
        for name, slot in layout.items():
            if slot.is_folder:
                self.placed[name] = Entry(path=name, id=slot.id, version=slot.version, sha256="")
            else:
                _branch_of(branch, name).files[name.rpartition("/")[2]] = name
        self._grow(branch, layout, aside, self.old)

    def _start_over(self, aside: Folder) -> None:
        wipe(aside, UNFINISHED)
        aside.write(UNFINISHED, b"")
        self.placed.clear()
        self.linked.clear()

    def _take_back(self, aside: Folder, entry: Entry) -> None:
        """A document has changed since it was placed."""
        del self.placed[entry.path]
        self.linked.pop(entry.path, None)
        *folders, name = entry.path.split("/")
        with contextlib.ExitStack() as stack:
            for each in folders:
                aside = stack.enter_context(aside.folder(each))
            if entry.sha256:
                aside.remove(name)

    def _grow(self, branch: _Branch, layout: Layout, into: Folder, old: Folder | None) -> None:
        for name, whole in sorted(branch.files.items()):
            if whole not in self.placed:
                self._place(name, whole, layout[whole], into, old)
        for name, inner in sorted(branch.folders.items()):
            with contextlib.ExitStack() as stack:
                folder = into.folder(name) if into.stat(name) else into.make(name)
                stack.enter_context(folder)
                was = None
                with contextlib.suppress(OSError):
                    was = None if old is None else stack.enter_context(old.folder(name))
                self._grow(inner, layout, folder, was)
        into.sync()

    def _place(self, name: str, whole: str, slot: _Slot, into: Folder, old: Folder | None) -> None:
        found = self._reusable(whole, slot)
        if found is not None and old is not None and into.link(name, old, found.identity):
            assert self.known is not None
            self.placed[whole] = self.known.by_id[slot.id]
            self.linked[whole] = found
            return
        document = self._document(slot)
        if document is None:
            return  # it has changed since the tree was listed, which is listed again
        data = render(document)
        into.write(name, data)
        self.placed[whole] = Entry(
            path=whole,
            id=slot.id,
            version=slot.version,
            sha256=_sha256(data),
            has_sources=bool(document.sources),
        )

    # changing places

    @contextlib.contextmanager
    def _aside(self) -> Iterator[tuple[str, Folder]]:
        """A new directory beside the target; it is gone if it does not come to be published."""
        name = self._aside_name()
        with self.target.parent.make(name) as aside:
            try:
                if not aside.lock():
                    raise StoreBusy(f"somebody else publishes to {self.target.shown}; try again")
                aside.write(UNFINISHED, b"")
                yield name, aside
            except BaseException:
                if self.target.parent.identity_at(self.target.name) != aside.identity:
                    with contextlib.suppress(OSError, UsageError):
                        wipe(aside, UNFINISHED)
                        self.target.parent.remove_folder(name)
                raise

    def _aside_name(self) -> str:
        generation = 1 if self.known is None else self.known.generation + 1
        for number in range(generation, generation + _ASIDE_MAX):
            name = f".{self.target.name}.recollect-{number}"
            if self.target.parent.stat(name) is None:
                return name
        raise UnusableDirectory(f"there is no free name beside {self.target.shown}")

    def _swap(self, name: str, aside: Folder) -> None:
        parent, target = self.target.parent, self.target.name
        if parent.identity_at(name) != aside.identity:
            raise UnusableDirectory(f"somebody has replaced {shown(name)} beside the target")
        if self.old is None:
            parent.rename(name, target)
        else:
            if parent.identity_at(target) != self.old.identity:
                raise UnusableDirectory(f"somebody has replaced {self.target.shown} meanwhile")
            parent.exchange(name, target)
        if parent.identity_at(target) != aside.identity:
            if self.old is not None:
                parent.exchange(name, target)
            raise UnusableDirectory(f"somebody has replaced {shown(name)} in the last moment")
        parent.sync()

    # what is left of generations before

    def _retire(self, name: str) -> None:
        """Remove the generation before, if it still is what it was when it was looked at."""
        if self.old is None:
            return
        parent = self.target.parent
        try:
            is_ours = parent.identity_at(name) == self.old.identity
            if is_ours and self._is_as_it_was(self.old):
                wipe(self.old, manifests.NAME)
                parent.remove_folder(name)
                return
        except (OSError, UsageError):
            pass  # whatever it is, it is not removed
        self._keep(name)

    def _is_as_it_was(self, old: Folder) -> bool:
        if self.before is None:
            return not old.names()
        trusted = {each.identity: each.sha256 for each in self.linked.values()}
        now = survey(old, self.root, self.shelf.limits, self.known, trusted)
        return now.seen() == self.before.seen()

    def _keep(self, name: str) -> None:
        kept = f"{name}-edited"
        parent = self.target.parent
        if parent.stat(kept) is None and parent.stat(name) is not None:
            with contextlib.suppress(OSError):
                parent.rename(name, kept)
                name = kept
        self.kept_aside.append(str(Path(self.target.shown).with_name(name)))

    def _clear_leftovers(self) -> None:
        """Remove what a publication that died has left behind."""
        parent = self.target.parent
        pattern = re.compile(re.escape(f".{self.target.name}.recollect-") + "[0-9]+")
        for name in parent.names():
            if not pattern.fullmatch(name):
                continue
            with contextlib.suppress(OSError, UsageError), parent.folder(name) as folder:
                if not folder.lock():
                    continue
                if self._is_disposable(folder):
                    wipe(folder, UNFINISHED if folder.stat(UNFINISHED) else manifests.NAME)
                    parent.remove_folder(name)
                else:
                    self._keep(name)

    def _is_disposable(self, folder: Folder) -> bool:
        if not folder.names() or folder.stat(UNFINISHED) is not None:
            return True
        known = read_manifest(folder)
        if known is None:
            return False
        found = survey(folder, known.root, self.shelf.limits, known)
        return not found.skipped and all(each.data is None for each in found.files.values())


def _folders(names: Layout | dict[str, Entry]) -> set[str]:
    """The directories that files and directories with these names need."""
    needed = set()
    for name, each in names.items():
        is_folder = each.is_folder if isinstance(each, _Slot) else not each.sha256
        above = name if is_folder else name.rpartition("/")[0]
        while above and above != manifests.ROOT_FOLDER:
            needed.add(above)
            above = above.rpartition("/")[0]
    return needed


def _branch_of(branch: _Branch, name: str) -> _Branch:
    for folder in name.split("/")[:-1]:
        branch = branch.folders.setdefault(folder, _Branch())
    return branch


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
