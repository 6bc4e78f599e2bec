"""Which document becomes which file of a generation, and what is in it. Only reads the tree.

The tree is listed once, at one moment; who is changed after that is read as it was then, so that
nobody who writes all the time can keep others from publishing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from recollect.document import Document, Node
from recollect.documents import manifest as manifests
from recollect.documents.manifest import Entry
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.shelf import Shelf, is_bare, moment_text


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


def folder_entries(layout: Layout) -> dict[str, Entry]:
    return {
        name: Entry(path=name, id=slot.id, version=slot.version, sha256="", at=slot.at)
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
