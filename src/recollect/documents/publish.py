"""Publishes a tree as a directory of files: a whole generation is built aside, then swapped in.

Only reads the tree, which is listed once, at one moment; a document that changes after that is read
as it was then, so that constant writes cannot keep a publish from finishing. Edits in the directory
that were not loaded are never overwritten.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from recollect.documents import manifest as manifests
from recollect.documents.files import UNFINISHED, Folder, PublishTarget, shown, target_of
from recollect.documents.front_matter import render
from recollect.documents.load import reconcile
from recollect.documents.manifest import Manifest, ManifestEntry, file_of, path_of, read_manifest
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.survey import (
    FoundFile,
    HeldTree,
    Look,
    is_at,
    is_bare,
    looks,
    moment_text,
)
from recollect.errors import (
    InvalidValue,
    NotFound,
    RecollectError,
    UnloadedEdits,
    UnusableDirectory,
)
from recollect.types.pages import Document, Node

FILES_SHOWN = 10

Progress = Callable[[int, int], None]  # how many documents are there, of how many


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
    tree: HeldTree,
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
        tree.holder.check_read(root)
    with target_of(directory) as target, contextlib.ExitStack() as stack:
        target.check_can_be_replaced()
        old = target.held(is_shared=False)
        if old is not None:
            stack.enter_context(old)
        base = None if old is None else _base(tree, target.shown, old, root)
        publishing = _Publishing(
            tree=tree,
            target=target,
            old=old,
            base=base,
            root=_root(tree, root or (tree.holder.top if base is None else base.root)),
            progress=progress or (lambda _done, _all: None),
        )
        return publishing.run(discard_edits=discard_edits)


def _base(tree: HeldTree, where: str, old: Folder, root: DocumentPath | None) -> Manifest | None:
    """What a directory is known to hold; UnusableDirectory: it is not ours, or not whole."""
    try:
        base = read_manifest(old)
    except InvalidValue as error:
        raise UnusableDirectory(f"{where} cannot be published to: {error}") from error
    if base is None:
        if old.names():
            raise UnusableDirectory(f"{where} is not empty, and was not published by Recollect")
        return None
    if base.store != tree.store:
        raise UnusableDirectory(
            f"{where} was published from another store: load it, and publish to another directory"
        )
    if not tree.is_own(base, root or base.root):
        raise UnusableDirectory(f"{where} holds {base.root} of space {shown(base.space)}")
    if old.stat(UNFINISHED) is not None:
        raise UnusableDirectory(f"{where} is a leftover of an old generation")
    return base


def _root(tree: HeldTree, root: DocumentPath) -> DocumentPath:
    """What is published: something that is there, or all there is."""
    tree.holder.check_read(root)
    if root.key != tree.holder.top.key and tree.at(root) is None:
        moved = tree.tree.find(tree.space, root.place)
        is_seen = moved is not None and tree.get(moved.id, tree.holder.top)
        where = f"; what stood there is at {moved.path}" if moved and is_seen else ""
        raise NotFound(f"there is nothing at {root} to publish{where}")
    return root


@dataclass(slots=True, kw_only=True)
class _Publishing:
    tree: HeldTree
    target: PublishTarget
    old: Folder | None
    base: Manifest | None
    root: DocumentPath
    progress: Progress
    looks: dict[str, Look] = field(default_factory=dict)  # of the generation before
    has_edits: bool = False
    reusable: dict[str, FoundFile] = field(default_factory=dict)  # files that stay as they are
    entries: dict[str, ManifestEntry] = field(default_factory=dict)
    kept: int = 0

    def run(self, *, discard_edits: bool) -> Publication:
        is_whole = self._look(discard_edits=discard_edits)
        for name, leftover in self.target.leftovers():
            if self._is_disposable(leftover):
                self.target.remove(name, leftover)
            else:
                self.target.keep(name)
        nodes = self.tree.nodes(self.root)
        layout = {file_of(self.root, read_path(each.path)): each for each in nodes}
        layout = {name: node for name, node in layout.items() if not self._is_folder(node)}
        self.reusable = {name: each for name, each in self.reusable.items() if name in layout}
        for name in list(self.reusable):
            if not self._is_still(name, layout[name]):
                del self.reusable[name]
        if is_whole and self.base is not None:
            self.kept = len(self.reusable)
            if self.kept == len(layout) == len(self.base.entries):
                return self._publication(self.base, len(nodes))
            self.kept = 0
        generation = 1 if self.base is None else self.base.generation + 1
        with self.target.aside(generation) as (name, aside):
            self._write(aside, layout, len(nodes))
            manifest = self._finished(aside, generation)
            self.target.swap(name, aside, self.old)
            if self.old is not None and self._is_as_it_was(self.old):
                self.target.remove(name, self.old)
            elif self.old is not None:
                self.target.keep(name)
        return self._publication(manifest, len(nodes))

    def _publication(self, manifest: Manifest, documents: int) -> Publication:
        files = {each.path for each in manifest.entries}
        before = () if self.base is None else self.base.entries
        return Publication(
            directory=self.target.shown,
            generation=manifest.generation,
            documents=documents,
            written=len(files) - self.kept,
            kept=self.kept,
            removed=sum(each.path not in files for each in before),
            kept_aside=self.target.kept_aside(),
        )

    # what is there

    def _look(self, *, discard_edits: bool) -> bool:
        """Look at the generation before; whether it is just what was published."""
        if self.old is None or self.base is None:
            return False
        self.looks = dict(looks(self.old))
        found = self.tree.survey(self.old, self.root, self.base)
        for each in found.files.values():
            if each.data is None and each.is_private:
                self.reusable[each.name] = each
        if found.is_as_known(self.base):
            return len(self.reusable) == len(self.base.entries)
        files = sorted(reconcile(self.tree, found, self.base).files)
        self.has_edits = bool(files)
        if files and not discard_edits:
            more = "" if len(files) <= FILES_SHOWN else f" and {len(files) - FILES_SHOWN} more"
            raise UnloadedEdits(
                f"{self.target.shown} was edited: load it first, or discard the edits: "
                f"{', '.join(files[:FILES_SHOWN])}{more}",
                files=files,
            )
        return False

    def _is_folder(self, node: Node) -> bool:
        """A page that says nothing but its name, with others below it, is a directory alone."""
        path = read_path(node.path)
        is_needed = node.has_children or path.key == self.root.key
        if not is_needed or node.body_chars or node.description or node.title != path.slug:
            return False
        found = _listed(self.tree, node)
        return found is not None and is_bare(found.content, path.slug)

    def _is_still(self, name: str, node: Node) -> bool:
        """Whether the file of the generation before is just what is to be written."""
        assert self.base is not None
        entry = self.base.by_key[path_of(self.root, name).key]
        if entry.is_loaded or entry.id != node.id or not is_at(entry, node):
            return False
        if not entry.has_sources:
            return True
        # Somebody may have been forgotten since; that makes no version.
        document = _listed(self.tree, node)
        return document is not None and _sha256(render(document)) == entry.sha256

    # what is to be there

    def _write(self, aside: Folder, layout: dict[str, Node], count: int) -> None:
        for done, (name, node) in enumerate(sorted(layout.items()), start=1):
            self._place(name, node, aside)
            self.progress(count - len(layout) + done, count)
        folders = {each.path.rpartition("/")[0] for each in self.entries.values()}
        folders |= {path[:end] for path in folders for end in range(len(path)) if path[end] == "/"}
        for path in folders - {""}:
            with aside.below(path) as folder:
                folder.sync()

    def _place(self, name: str, node: Node, aside: Folder) -> None:
        above, _, last = name.rpartition("/")
        found = self.reusable.pop(name, None)
        if found is not None and self._is_linked(above, last, found, aside):
            assert self.base is not None
            self.entries[name] = self.base.by_id[node.id]
            self.reusable[name] = found
            self.kept += 1
            return
        document = _listed(self.tree, node)
        if document is None:
            return  # it was purged since the tree was listed, with all its versions
        data = render(document)
        with aside.below(above, makes=True) as into:
            into.write(last, data)
        self.entries[name] = ManifestEntry(
            path=name,
            id=node.id,
            version=node.version,
            at=moment_text(node.updated_at),
            sha256=_sha256(data),
            size_bytes=len(data),
            has_sources=bool(document.sources),
        )

    def _is_linked(self, above: str, name: str, found: FoundFile, aside: Folder) -> bool:
        assert self.old is not None
        try:
            with self.old.below(above) as old, aside.below(above, makes=True) as into:
                return into.link(name, old, found.identity)
        except OSError:
            return False

    def _finished(self, aside: Folder, generation: int) -> Manifest:
        """The list of it, which is written last."""
        manifest = Manifest(
            store=self.tree.store,
            space=self.tree.space,
            root=self.root,
            generation=generation,
            published_at=self.tree.now().isoformat(timespec="seconds"),
            entries=tuple(self.entries[name] for name in sorted(self.entries)),
        )
        aside.write(manifests.NAME, manifests.write(manifest))
        aside.remove(UNFINISHED)
        aside.sync()
        return manifest

    # what is left of generations before

    def _is_as_it_was(self, old: Folder) -> bool:
        """Whether nobody has edited it since it was looked at."""
        if self.base is None:
            return not old.names()
        if self.has_edits:
            return False
        try:
            now = dict(looks(old))
        except (OSError, RecollectError):
            return False
        # Files that stay cannot get lost.
        changes = dict(now.items() ^ self.looks.items())
        return all(
            name in now
            and name in self.reusable
            and self.reusable[name].identity.inode == now[name].inode
            for name in changes
        )

    def _is_disposable(self, folder: Folder) -> bool:
        """Whether what a publication that died has left is no generation, or one without edits."""
        if not folder.names() or folder.stat(UNFINISHED) is not None:
            return True
        try:
            base = read_manifest(folder)
            if base is None or not self.tree.is_own(base, base.root):
                return False
            return self.tree.survey(folder, base.root, base).is_as_known(base)
        except (OSError, RecollectError):
            return False


def _listed(tree: HeldTree, node: Node) -> Document | None:
    """A document as it was when the tree was listed; none: it has been purged."""
    found = tree.tree.get(tree.space, node.id)
    if found is None or found.version == node.version:
        return found and replace(found, path=node.path)
    for each in tree.tree.history(tree.space, node.id, node.version + 1, 1):
        if each.number == node.version:
            return replace(
                found,
                path=node.path,
                version=each.number,
                title=each.title,
                description=each.description,
                body=each.body,
                tags=each.tags,
                links=each.links,
                sources=each.sources,
            )
    return None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
