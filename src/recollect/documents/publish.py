"""Which document becomes which file of a generation, and what is in it. Only reads the tree.

The tree is listed once, at one moment; who is changed after that is read as it was then, so that
nobody who writes all the time can keep others from publishing.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from recollect.documents import manifest as manifests
from recollect.documents.files import UNFINISHED, Folder, PublishTarget, shown, target_of, wipe
from recollect.documents.front_matter import render
from recollect.documents.load import is_own
from recollect.documents.loaded import Known, read_known
from recollect.documents.manifest import Manifest, ManifestEntry
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.reconcile import reconcile
from recollect.documents.survey import FoundFile, Shelf, Survey, is_bare, moment_text, survey
from recollect.errors import (
    InvalidValue,
    NotFound,
    StoreBusy,
    StoreDenied,
    UnloadedEdits,
    UnusableDirectory,
    UsageError,
)
from recollect.types.pages import Document, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A document on its way into a generation."""

    id: str
    version: int
    at: str
    path: str
    is_folder: bool


@dataclass(slots=True, kw_only=True)
class Branch:
    """A directory of a generation: the whole names of its files, and its directories."""

    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, Branch] = field(default_factory=dict)


Layout = dict[str, Slot]


def lay_out(shelf: Shelf, root: DocumentPath) -> Layout:
    """What is to be published, by the name of its file or directory."""
    layout: Layout = {}
    for node in shelf.nodes(root):
        path = read_path(node.path)
        slot = Slot(
            id=node.id,
            version=node.version,
            at=moment_text(node.updated_at),
            path=node.path,
            is_folder=False,
        )
        is_folder = _is_folder(shelf, root, node, slot)
        name_of = manifests.folder_of if is_folder else manifests.file_of
        layout[name_of(root, path)] = replace(slot, is_folder=is_folder)
    return layout


def _is_folder(shelf: Shelf, root: DocumentPath, node: Node, slot: Slot) -> bool:
    """A page that says nothing but its name, with others below it, is a directory alone."""
    path = read_path(node.path)
    is_needed = node.has_children or path.key == root.key
    if not is_needed or node.body_chars or node.description or node.title != path.slug:
        return False
    found = document_of(shelf, slot)
    return found is not None and is_bare(found.content, path.slug)


def document_of(shelf: Shelf, slot: Slot) -> Document | None:
    """A document as it was when the tree was listed; none: it has been purged."""
    found = shelf.tree.get(shelf.space, slot.id)
    if found is None:
        return None
    if found.version == slot.version:
        return replace(found, path=slot.path)
    for version in shelf.tree.history(shelf.space, slot.id, slot.version + 1, 1):
        if version.number == slot.version:
            return replace(
                found,
                path=slot.path,
                version=version.number,
                title=version.title,
                description=version.description,
                body=version.body,
                tags=version.tags,
                links=version.links,
                sources=version.sources,
            )
    return None


def branches(layout: Layout) -> Branch:
    """The files of a generation as a tree of directories."""
    top = Branch()
    for name, slot in layout.items():
        if not slot.is_folder:
            *folders, last = name.split("/")
            branch = top
            for folder in folders:
                branch = branch.folders.setdefault(folder, Branch())
            branch.files[last] = name
    return top


def folder_entries(layout: Layout) -> dict[str, ManifestEntry]:
    return {
        name: ManifestEntry(path=name, id=slot.id, version=slot.version, sha256="", at=slot.at)
        for name, slot in layout.items()
        if slot.is_folder
    }


def folders_of(layout: Mapping[str, Slot]) -> set[str]:
    """The directories that these files and directories need."""
    needed = set()
    for name, slot in layout.items():
        above = name if slot.is_folder else name.rpartition("/")[0]
        while above and above != manifests.ROOT_FOLDER:
            needed.add(above)
            above = above.rpartition("/")[0]
    return needed


_NAMES_MAX = 1000
_TRIES_MAX = 16
_KEPT = "-edited"


@dataclass(slots=True, kw_only=True)
class SiblingDirectories:
    """What stands beside a target, and belongs to it."""

    target: PublishTarget
    old: Folder | None

    @contextlib.contextmanager
    def aside(self, number: int) -> Iterator[tuple[str, Folder]]:
        """A new directory beside the target; it is gone if it does not come to be published."""
        name, aside = self._made(number)
        with aside:
            try:
                yield name, aside
            except BaseException:
                if self.target.parent.identity_at(self.target.name) != aside.identity:
                    with contextlib.suppress(OSError, UsageError):
                        wipe(aside, UNFINISHED)
                        self.target.parent.remove_folder(name)
                raise

    def _made(self, number: int) -> tuple[str, Folder]:
        for _ in range(_TRIES_MAX):
            name = self._free_name(number)
            try:
                folder = self.target.parent.make(name)
            except FileExistsError:
                continue  # somebody else was faster
            except PermissionError as error:
                raise StoreDenied(
                    f"{Path(self.target.shown).parent}: {error.strerror}; a generation is written "
                    "beside the one before, so its directory has to be writable"
                ) from error
            with contextlib.ExitStack() as stack:
                stack.enter_context(folder)
                if self._is_begun(name, folder):
                    stack.pop_all()
                    return name, folder
        raise StoreBusy(f"somebody else publishes to {self.target.shown}; try again")

    def _is_begun(self, name: str, folder: Folder) -> bool:
        """Before it is marked, others may take it for what somebody dead has left behind."""
        try:
            if not folder.lock():
                return False
            folder.write(UNFINISHED, b"")
        except FileNotFoundError:
            return False
        return self.target.parent.identity_at(name) == folder.identity

    def _free_name(self, number: int) -> str:
        for each in range(number, number + _NAMES_MAX):
            name = f".{self.target.name}.recollect-{each}"
            if self.target.parent.stat(name) is None:
                return name
        raise UnusableDirectory(f"there is no free name beside {self.target.shown}")

    def swap(self, name: str, aside: Folder) -> None:
        """A generation takes the place of the one before, or of nothing."""
        parent, target = self.target.parent, self.target.name
        if parent.identity_at(name) != aside.identity:
            raise UnusableDirectory(f"somebody has replaced {shown(name)} beside the target")
        if self.old is None:
            self._put(name)
        else:
            if parent.identity_at(target) != self.old.identity:
                raise UnusableDirectory(f"somebody has replaced {self.target.shown} meanwhile")
            parent.exchange(name, target)
        if parent.identity_at(target) != aside.identity:
            if self.old is not None:
                parent.exchange(name, target)
            raise UnusableDirectory(f"somebody has replaced {shown(name)} in the last moment")
        parent.sync()

    def _put(self, name: str) -> None:
        try:
            self.target.parent.rename(name, self.target.name)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise StoreBusy(
                    f"somebody else has made {self.target.shown} meanwhile; try again"
                ) from error
            raise

    # what is left of generations before

    def retire(self, name: str, is_as_it_was: Callable[[Folder], bool]) -> None:
        """Remove the generation before, if it still is what it was when it was looked at."""
        if self.old is None:
            return
        try:
            is_ours = self.target.parent.identity_at(name) == self.old.identity
            if is_ours and is_as_it_was(self.old):
                self.old.write(UNFINISHED, b"")
                self._remove(name, self.old)
                return
        except (OSError, UsageError):
            pass  # whatever it is, it is not removed
        self.keep(name)

    def _remove(self, name: str, folder: Folder) -> None:
        """From here on it is not whole: what cannot be removed now is removed some other time."""
        with contextlib.suppress(OSError, UsageError):
            wipe(folder, UNFINISHED)
            self.target.parent.remove_folder(name)

    def keep(self, name: str) -> None:
        """Give a directory with edits a name that says so."""
        parent = self.target.parent
        for number in range(1, _NAMES_MAX):
            kept = f"{name}{_KEPT}" if number == 1 else f"{name}{_KEPT}-{number}"
            if parent.stat(kept) is None and parent.stat(name) is not None:
                with contextlib.suppress(OSError):
                    parent.rename(name, kept)
                break

    def kept_aside(self) -> tuple[str, ...]:
        """All directories with edits that stand beside the target, until somebody removes them."""
        pattern = re.compile(self._prefix + rf"[0-9]+{_KEPT}(-[0-9]+)?")
        where = Path(self.target.shown)
        names = [name for name in self.target.parent.names() if pattern.fullmatch(name)]
        return tuple(str(where.with_name(name)) for name in names)

    @property
    def _prefix(self) -> str:
        return re.escape(f".{self.target.name}.recollect-")

    def clear(self, is_disposable: Callable[[Folder], bool]) -> None:
        """Remove what a publication that died has left behind."""
        parent = self.target.parent
        pattern = re.compile(self._prefix + "[0-9]+")
        for name in parent.names():
            if not pattern.fullmatch(name):
                continue
            with contextlib.suppress(OSError, UsageError), parent.folder(name) as folder:
                if not folder.lock():
                    continue
                if not folder.names() or folder.stat(UNFINISHED) is not None:
                    self._remove(name, folder)
                elif is_disposable(folder):
                    folder.write(UNFINISHED, b"")
                    self._remove(name, folder)
                else:
                    self.keep(name)


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
            beside=SiblingDirectories(target=target, old=old),
            progress=progress or (lambda _done, _all: None),
        )
        return publishing.run(root, discard_edits=discard_edits)


def _known(
    shelf: Shelf, target: PublishTarget, old: Folder, root: DocumentPath | None
) -> Known | None:
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
    target: PublishTarget
    old: Folder | None
    known: Known | None
    beside: SiblingDirectories
    progress: Progress
    root: DocumentPath = field(init=False)
    before: Survey | None = None
    has_edits: bool = False
    placed: dict[str, ManifestEntry] = field(default_factory=dict)
    linked: dict[str, FoundFile] = field(default_factory=dict)

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

    def _found(self, entry: ManifestEntry) -> FoundFile:
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

    def _reusable(self, name: str, slot: Slot) -> FoundFile | None:
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
        self.placed[whole] = ManifestEntry(
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
