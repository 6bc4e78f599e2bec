"""Loads a directory of Markdown files into the tree: the edits of people, in one transaction.

A changed file becomes a new version of its document, if that is still at the version the file was
made from. If the document has changed since, it stays, and the file's text is kept beside the
directory, where no publish overwrites it. The files themselves are not touched, and a file that
cannot be loaded is only reported. What was loaded is noted in the manifest; a crash before that is
harmless, since files and documents then agree.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from recollect.documents import manifest as manifests
from recollect.documents.files import UNFINISHED, Folder, PublishTarget, shown, target_of
from recollect.documents.front_matter import FileText, heading, parse
from recollect.documents.manifest import Manifest, ManifestEntry, path_of, read_manifest
from recollect.documents.paths import KEY_SEPARATOR, DocumentPath, read_path
from recollect.documents.reading import is_id
from recollect.documents.survey import (
    FoundFile,
    HeldTree,
    Survey,
    is_at,
    is_bare,
    is_same_place,
    moment_text,
)
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    InvalidValue,
    MassDeletion,
    NotAllowed,
    NotFound,
    StaleVersion,
    UnusableDirectory,
)
from recollect.types.pages import Content, Delete, Document, Edit, Move, Node, Write

TRIES_MAX = 8  # of a load, when others change the tree meanwhile
DELETIONS_UNASKED_MAX = 10  # of more than half of the documents
UNSETTLED = "-"  # for a hash, where a file has what no document can have: it stays an edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A file whose document is not what it was made from any more, and stays as it is.

    `theirs` and `ours` are what file and document say; empty: gone on that side. `copy`: where the
    file is kept, if it is part of a publication, and this was no dry run.
    """

    file: str
    path: str
    reason: str
    theirs: str
    ours: str
    copy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A file that was not loaded, or not all of it."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """A document that was moved as a file."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The result of a load: paths of documents, and what was not loaded.

    `is_published`: the directory was published from here, and can be published to again.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    moved: tuple[Relocation, ...] = ()
    deleted: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_published: bool = field(default=False, compare=False)

    @property
    def is_nothing(self) -> bool:
        """Whether the files say what the documents say."""
        return self == Loading()


def load(
    tree: HeldTree,
    directory: str | os.PathLike[str],
    *,
    root: DocumentPath | None = None,
    dry_run: bool = False,
    allow_deletions: bool = False,
) -> Loading:
    """Load what was changed in a directory; into `root`, or to where it was published from.

    MassDeletion: most of what was published there is gone, and nobody said that it may be deleted.
    """
    with target_of(directory) as target:
        held = target.held(is_shared=dry_run)
        if held is None:
            raise UnusableDirectory(f"there is no directory at {target.shown}")
        with held:
            if held.stat(UNFINISHED) is not None:
                raise UnusableDirectory(f"{target.shown} is a leftover of an old generation")
            found, base = _survey(tree, held, root)
            for attempt in range(TRIES_MAX):
                plan = reconcile(tree, found, base)
                if not (dry_run or allow_deletions):
                    plan.check_deletions()
                if dry_run:
                    break
                try:
                    made = tree.apply(plan.edits) if plan.edits else ()
                    plan.note(target, held, made)
                    break
                except (StaleVersion, DocumentExists, DocumentReferenced, NotFound, InvalidPath):
                    # Somebody else has changed the tree since the plan was made.
                    if attempt + 1 == TRIES_MAX:
                        raise
    return Loading(
        created=tuple(plan.created),
        changed=tuple(plan.changed),
        moved=tuple(plan.moved),
        deleted=tuple(plan.deleted),
        conflicts=tuple(plan.conflicts),
        problems=tuple(plan.problems),
        is_published=base is not None,
    )


def _survey(
    tree: HeldTree, held: Folder, root: DocumentPath | None
) -> tuple[Survey, Manifest | None]:
    """What a directory holds, and what is known about it if it is one of ours."""
    problem, known = "", None
    try:
        known = read_manifest(held)
    except InvalidValue as error:
        problem = str(error)
    if root is None:
        root = tree.holder.top
        is_ours = known is not None and tree.is_own(known, known.root)
        if known is not None and (is_ours or known.root.is_within(root)):
            root = known.root
    tree.holder.check_read(root)
    base = known if known is not None and tree.is_own(known, root) else None
    found = tree.survey(held, root, base)
    if problem:
        found.skipped[manifests.NAME] = problem
    return found, base


def reconcile(tree: HeldTree, found: Survey, base: Manifest | None) -> LoadPlan:
    """A plan for what is in a directory, against the tree as it is at this moment.

    `base`: what was published there, or loaded last.
    """
    plan = LoadPlan(tree=tree, found=found, base=base)
    plan.make()
    return plan


@dataclass(slots=True, kw_only=True)
class LoadPlan:
    """What a directory asks for: edits in an order that works, and what cannot be had.

    A file is the document that it names by id, else the one at its place.
    """

    tree: HeldTree
    found: Survey
    base: Manifest | None
    edits: list[Edit] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the file that each edit comes from
    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    moved: list[Relocation] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    files: set[str] = field(default_factory=set)  # those that have something to say
    known: int = 0  # documents that the directory had and the tree still has
    _copies: dict[str, bytes] = field(default_factory=dict)  # of files, by the names they go by
    _settled: dict[str, ManifestEntry] = field(default_factory=dict)  # what is to be noted, by file
    _dropped: set[str] = field(default_factory=set)  # ids whose files are gone for good reason
    _texts: dict[str, FileText] = field(default_factory=dict)  # of files that are not as known
    _claimed: set[str] = field(default_factory=set)  # ids, also if there is no telling which file
    _written: set[str] = field(default_factory=set)  # ids that get a new version
    _unplaced: set[str] = field(default_factory=set)  # files with something no document can keep
    _creations: dict[str, Write] = field(default_factory=dict)  # by key, as files and texts are
    _moves: dict[str, Document] = field(default_factory=dict)  # what is to go to a place
    _deletions: dict[str, Document] = field(default_factory=dict)  # by id
    _documents: dict[str, Document | None] = field(default_factory=dict)
    _nodes: dict[str, Node] = field(default_factory=dict)  # of the tree, by id
    _places: Places = field(init=False)

    def make(self) -> None:
        """Compare the files with the documents."""
        for name, why in self.found.skipped.items():
            self._problem(name, why)
        self._nodes = {each.id: each for each in self.tree.nodes(self.found.root)}
        self._read()
        owners = self._owners()
        for key, found in self.found.files.items():
            owner, text = owners.get(key), self._texts.get(key)
            if text is None:
                self._check_known(found, owner)
            elif owner is None:
                self._new(found, text)
            else:
                self._known(found, text, owner)
        for entry in self._entries():
            place = self._place(entry)
            is_gone = place.key in owners or self.found.is_gone(place)  # somebody else has it
            if is_gone and entry.id not in self._claimed:
                self._removed(entry)
        if self._creations or self._moves or self._deletions:
            self._arrange()

    def _problem(self, name: str, reason: str, *, is_edit: bool = True) -> None:
        """`is_edit` false: it does not keep anybody from publishing."""
        self.problems.append(Problem(file=shown(name), reason=reason))
        if is_edit:
            self.files.add(shown(name))

    def _report(
        self, name: str, path: str, reason: str, *, theirs: str = "", ours: str = ""
    ) -> None:
        file = shown(name)
        conflict = Conflict(file=file, path=path, reason=reason, theirs=theirs, ours=ours)
        self.conflicts.append(conflict)
        self.files.add(file)

    def _edit(self, name: str, edit: Edit) -> None:
        """An edit that a file asks for."""
        self.edits.append(edit)
        self.names.append(name)
        self.files.add(shown(name))

    def check_deletions(self) -> None:
        deleted = len(self.deleted)
        is_most = deleted > DELETIONS_UNASKED_MAX and 2 * deleted > self.known
        if deleted and (is_most or deleted >= self.known):
            raise MassDeletion(
                f"{deleted:,} of {self.known:,} documents would be deleted, because their files "
                "are gone; nothing was loaded. If that is meant, load with --allow-deletions "
                "(allow_deletions=True)"
            )

    def note(self, target: PublishTarget, held: Folder, made: Sequence[Document]) -> None:
        """Keep the files of conflicts, and note what was loaded; `made`: what came of the edits."""
        if self.base is None:
            return
        for name, edit, document in zip(self.names, self.edits, made, strict=True):
            entry = self._settled.get(name)
            if entry is not None and not isinstance(edit, Delete):
                at = moment_text(document.updated_at)
                entry = replace(entry, id=document.id, version=document.version, at=at)
                self._settled[name] = entry
        settled = {each.id for each in self._settled.values()}
        kept = (each for each in self.base.entries if each.id not in self._dropped | settled)
        places = {self._place(each).key: each for each in (*kept, *self._settled.values())}
        entries = tuple(sorted(places.values(), key=lambda each: each.path))
        try:
            if self._copies:
                where = target.keep_copies(self.base.generation + 1, self._copies)
                for number, conflict in enumerate(self.conflicts):
                    if conflict.file in map(shown, self._copies):
                        copy = f"{shown(str(where))}/{conflict.file}"
                        self.conflicts[number] = replace(conflict, copy=copy)
            if set(entries) != set(self.base.entries):
                held.replace(manifests.NAME, manifests.write(replace(self.base, entries=entries)))
        except OSError as error:
            reason = (
                f"what was loaded could not be noted ({error.strerror}); publish before more edits"
            )
            self._problem(manifests.NAME, reason, is_edit=False)

    # whose a file is

    def _document(self, document_id: str) -> Document | None:
        """A document below the root, also a deleted one."""
        if document_id not in self._documents:
            self._documents[document_id] = self.tree.get(document_id, self.found.root)
        return self._documents[document_id]

    def _entries(self) -> tuple[ManifestEntry, ...]:
        return () if self.base is None else self.base.entries

    def _entry(self, document_id: str) -> ManifestEntry | None:
        return None if self.base is None else self.base.by_id.get(document_id)

    def _entry_at(self, key: str) -> ManifestEntry | None:
        return None if self.base is None else self.base.by_key.get(key)

    def _place(self, entry: ManifestEntry) -> DocumentPath:
        return path_of(self.found.root, entry.path)

    def _read(self) -> None:
        for key, found in self.found.files.items():
            if found.data is None:
                continue
            try:
                text = parse(found.data)
            except InvalidValue as error:
                self.found.is_doubtful = True
                self._problem(found.name, str(error))
                continue
            self._texts[key] = text
            if text.front is not None and text.front.unknown:
                unknown = shown(", ".join(text.front.unknown))
                self._problem(found.name, f"no document has a place for this: {unknown}")
                self._unplaced.add(key)

    def _owners(self) -> dict[str, str]:
        """The ids of documents that have a file, by the key of that."""
        claims: dict[str, list[str]] = {}
        for key, found in self.found.files.items():
            entry = self._entry_at(key)
            said = entry.id if found.data is None and entry is not None else self._said_id(key)
            if said is not None:
                claims.setdefault(said, []).append(key)
        owners = {}
        for document_id, keys in claims.items():
            self._claimed.add(document_id)
            own = keys[0] if len(keys) == 1 else self._own_key(document_id)
            for key in keys:
                if key == own:
                    owners[key] = document_id
                    continue
                self._texts.pop(key, None)
                reason = "another file has this id too; without the line `id` it is a new document"
                self._problem(self.found.files[key].name, reason)
        for key in self._texts:
            entry = self._entry_at(key)
            is_free = entry is not None and entry.id not in self._claimed and key not in owners
            if is_free and entry is not None and self._is_live(entry.id):
                owners[key] = entry.id
                self._claimed.add(entry.id)
        return owners

    def _said_id(self, key: str) -> str | None:
        text = self._texts.get(key)
        said = None if text is None or text.front is None else text.front.id
        if said is None or not is_id(said):
            return None
        return said if self._entry(said) is not None or self._is_live(said) else None

    def _is_live(self, document_id: str) -> bool:
        document = self._document(document_id)
        return document is not None and document.deleted_at is None

    def _own_key(self, document_id: str) -> str:
        """Of several files with one id, the place that is its own."""
        entry, document = self._entry(document_id), self._document(document_id)
        if entry is not None:
            return self._place(entry).key
        return "" if document is None else read_path(document.path).key

    # a file that is there

    def _check_known(self, found: FoundFile, owner: str | None) -> None:
        """A file nobody touched: its document may not be there, not even as a deleted one."""
        if owner is None or owner in self._nodes or self.tree.tree.get(self.tree.space, owner):
            return
        reason = (
            "the store does not have this document any more: it was purged, or the store is older "
            "than these files; without the line `id` the file is a new one"
        )
        self._problem(found.name, reason, is_edit=False)

    def _known(self, found: FoundFile, text: FileText, owner: str) -> None:
        entry, document = self._entry(owner), self._document(owner)
        is_edited = entry is None or entry.sha256 != found.sha256
        if document is None or document.deleted_at is not None:
            if is_edited:
                reason = (
                    "the document was deleted, or moved out of what is published here; without the "
                    "line `id` the file is a new one"
                )
                self._conflict(found, text.body, None, entry, reason)
            return
        here, now = found.path, read_path(document.path)
        was = now if entry is None else self._place(entry)
        if not is_same_place(here, now) and (entry is None or not is_same_place(here, was)):
            if entry is None or not is_same_place(now, was):
                reason = f"the document is at {now}: move the file there"
                self._problem(found.name, reason)
                return
            self._moves[here.key] = document
        if is_edited:
            self._content(found, text, document, entry)
        elif entry is not None:
            self._settled[found.name] = replace(entry, path=found.name)

    def _new(self, found: FoundFile, text: FileText) -> None:
        document = self.tree.at(found.path)
        if document is not None and document.id not in self._claimed:
            self._claimed.add(document.id)
            self._content(found, text, document, None)
            return
        edit = self._write(found.name, found.path, _said(found.path, text, None), None)
        if edit is not None:
            self._creations[found.path.key] = edit
            self._settle(found, None)

    def _content(
        self, found: FoundFile, text: FileText, document: Document, entry: ManifestEntry | None
    ) -> None:
        """A new version, if the document is what the file was made from."""
        said = _said(found.path, text, document)
        edit = None
        if said != document.content:
            edit = self._write(found.name, read_path(document.path), said, document)
            if edit is None:
                return
            said = edit.content  # without secrets
        if edit is None or said == document.content:
            self._settle(found, document)
        elif self._is_current(text, document, entry):
            self._edit(found.name, edit)
            self._written.add(document.id)
            self.changed.append(document.path)
            self._settle(found, document)
        else:
            reason = f"the document has changed too: it is at version {document.version}, and stays"
            if entry is None:
                reason = (
                    "there is another document at this place: give the file another name; or, if "
                    f"it is to take the place of what that says, the lines `id: {document.id}` and "
                    f"`version: {document.version}` in its head"
                )
            self._conflict(found, said.body, document, entry, reason)

    def _is_current(self, text: FileText, document: Document, entry: ManifestEntry | None) -> bool:
        """Whether a document is at the version that a file was made from, or says it was."""
        if entry is not None and is_at(entry, document):
            return True
        front = text.front
        if front is not None and front.version == document.version:
            if entry is None:
                return front.id == document.id
            # An entry with the same number: a version that a store lost which was restored.
            return front.id in (None, document.id) and entry.version < document.version
        return entry is None and is_bare(document.content, read_path(document.path).slug)

    def _write(
        self, name: str, path: DocumentPath, content: Content, known: Document | None
    ) -> Write | None:
        try:
            edit = self.tree.write(path, content)
        except (InvalidValue, NotAllowed) as error:
            self._problem(name, str(error))
            return None
        if known is None:
            return replace(edit, expected=0, document_id=None)
        return replace(edit, expected=known.version, document_id=known.id)

    def _conflict(
        self,
        found: FoundFile,
        theirs: str,
        document: Document | None,
        entry: ManifestEntry | None,
        reason: str,
    ) -> None:
        """Both stay as they are; a copy is kept of a file that is published over some day."""
        path = found.path.text if document is None else document.path
        ours = "" if document is None else document.body
        self._report(found.name, path, reason, theirs=theirs, ours=ours)
        if self.base is not None and found.data is not None:
            self._copies[found.name] = found.data
            unseen = None if document is None else replace(document, version=0)
            self._settle(found, unseen if entry is None else entry)

    def _settle(self, found: FoundFile, of: Document | ManifestEntry | None) -> None:
        """Note a file as made from a version, or from the result of the planned edit."""
        is_all = found.path.key not in self._unplaced
        at = of.at if isinstance(of, ManifestEntry) else of and moment_text(of.updated_at)
        self._settled[found.name] = ManifestEntry(
            path=found.name,
            id="" if of is None else of.id,
            version=0 if of is None else of.version,
            at=at or "",
            sha256=found.sha256 if is_all else UNSETTLED,
            size_bytes=found.size_bytes,
            is_loaded=True,
        )

    # a file that is gone

    def _removed(self, entry: ManifestEntry) -> None:
        document = self._document(entry.id)
        if document is None or document.deleted_at is not None:
            self._dropped.add(entry.id)
            return
        now = read_path(document.path)
        if not is_same_place(now, self._place(entry)) or not is_at(entry, document):
            self._stays_though_removed(entry, document, "the document has changed")
        elif self.found.is_doubtful:
            reason = "it is gone, but may be one of the files that could not be read"
            self._problem(entry.path, reason)
        else:
            try:
                self.tree.holder.check_write(now)
            except NotAllowed as error:
                self._problem(entry.path, str(error))
            else:
                self._deletions[entry.id] = document

    def _stays_though_removed(self, entry: ManifestEntry, document: Document, why: str) -> None:
        self._dropped.add(entry.id)
        reason = f"the file was removed, but {why}: the document stays"
        self._report(entry.path, document.path, reason, ours=document.body)

    # where everything goes

    def _arrange(self) -> None:
        paths = {each.id: read_path(each.path) for each in self._nodes.values()}
        had = {paths[each.id] for each in self._entries() if each.id in paths}
        had |= {above for path in had for above in path.parents}
        self.known = sum(len(path.slugs) > len(self.found.root.slugs) for path in had)
        self._places = Places(self.found.root, paths)
        self._delete_leaves()
        pending = self._creations.keys() | self._moves.keys()
        while ready := [key for key in sorted(pending, key=_order) if self._put(key, pending)]:
            pending -= set(ready)
        for key in pending:
            found = self.found.files[key]
            reason = f"there is a document at {found.path}: move the file, or that document"
            self._problem(found.name, reason)
            self._stays(key)
        self._delete_leaves()
        for document_id, document in self._deletions.items():
            entry = self._entry(document_id)
            assert entry is not None
            self._stays_though_removed(entry, document, "there are others below it")

    def _put(self, key: str, pending: set[str]) -> bool:
        """Create or move what a file asks for, if it is its turn; whether that is settled."""
        found, document = self.found.files[key], self._moves.get(key)
        target = found.path
        if any(above.key in pending for above in target.parents):
            return False
        if document is None:
            if target.key in self._places.ids:
                return False
            self._edit(found.name, self._creations[key])
            self.created.append(target.text)
            self._places.put(target.key, target)
            return True
        source = self._places.paths[document.id]
        if is_same_place(source, target):
            return True  # it was carried along
        if target.key != source.key and target.key in self._places.ids:
            return False
        try:
            self._check_move(source, target)
            self._places.move(document.id, target)
        except (NotAllowed, InvalidPath) as error:
            self._problem(found.name, str(error))
            self._stays(key)
            return True
        move = Move(
            place=source.place,
            to=target.place,
            parents=tuple(path.place for path in target.parents),
            expected=document.version + (document.id in self._written),
            document_id=document.id,
        )
        self._edit(found.name, move)
        self.moved.append(Relocation(source=document.path, target=target.text))
        self._prune(source)
        return True

    def _check_move(self, source: DocumentPath, target: DocumentPath) -> None:
        self.tree.holder.check_uproot(source)
        self.tree.holder.check_write(target)
        is_renamed = source.key != target.key
        if source.key == self.found.root.key or (is_renamed and target.is_within(source)):
            raise NotAllowed(f"{source} cannot be moved to {target}, below itself")
        if is_renamed and self._places.children[source.key] and source.key in self.found.folders:
            raise NotAllowed(f"there are documents below {source}: move that directory too")

    def _stays(self, key: str) -> None:
        """A file that is noted is so where it was."""
        name, document = self.found.files[key].name, self._moves.get(key)
        settled = self._settled.pop(name, None)
        entry = None if document is None else self._entry(document.id)
        if settled is not None and entry is not None:
            self._settled[name] = replace(settled, path=entry.path)

    def _delete_leaves(self) -> None:
        placed = [(self._places.paths[each].key, each) for each in self._deletions]
        for key, document_id in sorted(placed, key=lambda pair: _order(pair[0]), reverse=True):
            document = self._deletions[document_id]
            path = self._places.paths[document_id]
            if not self._places.children[key] and key != self.found.root.key:
                del self._deletions[document_id]
                self._delete(document, path)
                self._prune(path)

    def _delete(self, document: Document, path: DocumentPath) -> None:
        entry = self._entry(document.id)
        # A file does not know who refers to it; the links stay, and are reported broken.
        delete = Delete(
            place=path.place,
            leaves_broken=True,
            expected=document.version,
            document_id=document.id,
        )
        self._edit(path.text if entry is None else entry.path, delete)
        self.deleted.append(document.path)
        self._dropped.add(document.id)
        self._places.take(document.id)

    def _prune(self, gone: DocumentPath) -> None:
        """Delete the pages above that were only directories, if those are gone."""
        for path in reversed(gone.parents[len(self.found.root.slugs) :]):
            is_needed = path.key in self.found.folders or path.key in self.found.files
            document = self._document(self._places.ids.get(path.key, ""))
            if is_needed or self._places.children[path.key] or document is None:
                return
            if not is_bare(document.content, path.slug):
                return
            self._delete(document, path)


class Places:
    """The paths of documents below a root, while a load adds, moves and removes them."""

    def __init__(self, root: DocumentPath, paths: Mapping[str, DocumentPath]) -> None:
        self._root = root
        self.paths: dict[str, DocumentPath] = {}
        self.ids: dict[str, str] = {}  # by key
        self.children: Counter[str] = Counter()  # how many stand directly below a key
        for document_id, path in paths.items():
            self.put(document_id, path)

    def put(self, document_id: str, path: DocumentPath) -> None:
        """Let somebody stand there; parents that are missing are made."""
        self.paths[document_id], self.ids[path.key] = path, document_id
        if path.key != self._root.key and path.parent is not None:
            self.children[path.parent.key] += 1
            if path.parent.key not in self.ids:
                self.put(path.parent.key, path.parent)

    def take(self, document_id: str) -> DocumentPath:
        """Let somebody go."""
        path = self.paths.pop(document_id)
        del self.ids[path.key]
        if path.parent is not None:
            self.children[path.parent.key] -= 1
        return path

    def move(self, document_id: str, target: DocumentPath) -> None:
        """With all that stands below. InvalidPath: that would be too deep, or too long."""
        source, moving = self.paths[document_id], [document_id]
        if self.children[source.key]:
            moving += [
                each
                for each, path in self.paths.items()
                if path.is_within(source) and each != document_id
            ]
        start = len(source.slugs)
        goals = {each: (*target.slugs, *self.paths[each].slugs[start:]) for each in moving}
        checked = {each: read_path("/".join(("~", *slugs))) for each, slugs in goals.items()}
        for each in moving:
            self.take(each)
        for each, path in checked.items():
            self.put(each, path)


def _order(key: str) -> tuple[int, str]:
    return key.count(KEY_SEPARATOR), key


def _said(path: DocumentPath, text: FileText, known: Document | None) -> Content:
    """What a file says; front matter that is not there has not changed."""
    front = text.front
    if front is None and known is not None:
        return replace(known.content, body=text.body)
    title = None if front is None else front.title
    if title is None:
        title = known.title if known is not None else heading(text.body) or path.slug
    return Content(
        title=title,
        description="" if front is None else front.description,
        body=text.body,
        tags=() if front is None else front.tags,
        links=() if front is None else front.links,
    )
