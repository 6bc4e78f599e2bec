"""What a directory has in common with the tree: what was published there, and was loaded since.

After a load the files are ahead of the manifest, which is not theirs to change. What was loaded is
noted beside it, so that the next edit is compared with that; the next generation begins without.
A crash before it is noted does no harm: the files then say what the documents say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from recollect.documents import manifest as manifests
from recollect.documents.files import Folder
from recollect.documents.manifest import Manifest, ManifestEntry, write_loaded
from recollect.documents.paths import read_path
from recollect.documents.survey import Plan, Shelf, Survey, is_bare, moment_text
from recollect.errors import InvalidValue
from recollect.types.pages import Document, Node, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a directory is known to hold. `problem`: what was loaded since cannot be read."""

    published: Manifest
    base: Manifest
    problem: str = ""


def read_known(folder: Folder) -> Known | None:
    """None: there is no manifest. InvalidValue: it cannot be read."""
    if folder.stat(manifests.NAME) is None:
        return None
    published = manifests.read(folder.read(manifests.NAME, manifests.BYTES_MAX).data)
    if folder.stat(manifests.LOADED) is None:
        return Known(published=published, base=published)
    try:
        data = folder.read(manifests.LOADED, manifests.BYTES_MAX).data
        return Known(published=published, base=manifests.read_loaded(published, data))
    except InvalidValue as error:
        return Known(published=published, base=published, problem=str(error))


def note(folder: Folder, published: Manifest, base: Manifest) -> None:
    """Keep beside the manifest what is loaded by now."""
    folder.replace(manifests.LOADED, write_loaded(published, base))


def renewed(
    shelf: Shelf, base: Manifest, survey: Survey, plan: Plan, made: Sequence[Document]
) -> Manifest:
    """What files and documents have in common once a plan was carried out; `made` came of it."""
    nodes = shelf.nodes(survey.root) if made else []
    renewing = _Renewing(
        base=base,
        plan=plan,
        created={
            read_path(document.path).key: document.id
            for edit, document in zip(plan.edits, made, strict=True)
            if isinstance(edit, Write) and edit.expected == 0
        },
        # Versions that the plan has made, be it of what was carried along with something else.
        after={each.id: each for each in nodes if each.updated_at == made[0].updated_at},
    )
    renewing.settle()
    renewing.keep()
    for node in nodes:
        key = read_path(node.path).key
        if key in survey.folders and key not in survey.files:
            renewing.note_folder(shelf, node, survey.folders[key])
    entries = sorted(renewing.entries.values(), key=lambda each: each.path)
    return replace(base, entries=tuple(entries))


@dataclass(slots=True, kw_only=True)
class _Renewing:
    base: Manifest
    plan: Plan
    created: dict[str, str]
    after: dict[str, Node]
    entries: dict[str, ManifestEntry] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # keys of places

    def settle(self) -> None:
        """Files that have nothing more to say."""
        for key, settled in self.plan.settled.items():
            document_id = settled.id or self.created.get(key, "")
            version, at = settled.version, settled.at
            made = self.after.get(document_id)
            if not version and made is not None:
                version, at = made.version, moment_text(made.updated_at)
            if version:
                entry = ManifestEntry(
                    path=settled.path,
                    id=document_id,
                    version=version,
                    sha256=settled.sha256,
                    at=at,
                    size_bytes=settled.size_bytes,
                    said=settled.said,
                )
                self._put(entry)

    def keep(self) -> None:
        """What was known before and still is."""
        for entry in self.base.entries:
            is_over = entry.id in self.entries or entry.id in self.plan.dropped
            if not is_over and self.base.place(entry).key not in self.taken:
                made = self.after.get(entry.id)
                if made is not None and self.plan.versions.get(entry.id) == entry.version:
                    at = moment_text(made.updated_at)
                    entry = replace(entry, version=made.version, at=at)
                self._put(entry)

    def note_folder(self, shelf: Shelf, node: Node, name: str) -> None:
        """A directory that has come to be a page, or was carried to another place."""
        if read_path(node.path).key in self.taken:
            return
        known = self.entries.get(node.id)
        if known is not None and not known.sha256:
            self._put(replace(known, path=name))
        elif known is None and _is_bare(shelf, node):
            at = moment_text(node.updated_at)
            self._put(ManifestEntry(path=name, id=node.id, version=node.version, sha256="", at=at))

    def _put(self, entry: ManifestEntry) -> None:
        self.entries[entry.id] = entry
        self.taken.add(self.base.place(entry).key)


def _is_bare(shelf: Shelf, node: Node) -> bool:
    found = shelf.tree.get(shelf.space, node.id)
    return found is not None and is_bare(found.content, found.slug)
