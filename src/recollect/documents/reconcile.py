"""Which file of a directory is which document: by its id, else by its place.

A file without an id is what was published at its place; a file whose id another has too is the
document only if it stands where that was published.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from recollect.documents.files import shown
from recollect.documents.front_matter import FENCE, FileText, parse
from recollect.documents.manifest import Manifest, ManifestEntry, folder_of
from recollect.documents.merge import Ancestor, Ancestry, ClashingContent, merge_contents, theirs_of
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.reading import is_id
from recollect.documents.structure import (
    Creating,
    Deleting,
    Moving,
    Ordering,
    Sketch,
    Step,
    is_same_place,
)
from recollect.documents.survey import (
    Conflict,
    FoundFile,
    Plan,
    Relocation,
    Settled,
    Shelf,
    Survey,
    is_bare,
    moment_text,
)
from recollect.errors import InvalidValue, NotAllowed
from recollect.types.pages import Content, Delete, Document, Edit, Move, Node, Write

HEAD_CHARS_MAX = 8192  # where a head is looked for that has lost its beginning
_ID_LINE = re.compile(r"""^id:[ \t]*["']?(?P<id>[0-9a-f-]{36})["']?[ \t]*$""", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class Claims:
    """The files that could be read, and whose they are; a file goes by the key of its path."""

    shelf: Shelf
    survey: Survey
    manifest: Manifest | None
    plan: Plan
    texts: dict[str, FileText] = field(default_factory=dict)  # of files that are not as published
    owners: dict[str, str] = field(default_factory=dict)  # file: id of its document
    claimed: set[str] = field(default_factory=set)  # ids, also where there is no telling which file
    unplaced: set[str] = field(default_factory=set)  # files with something no document can keep
    _known: dict[str, Document | None] = field(default_factory=dict)

    def settle(self) -> None:
        """Read the files, and find out whose they are; what is amiss goes to the plan."""
        self._read()
        self._by_id()
        self._by_place()

    def document(self, document_id: str) -> Document | None:
        """A document below the root, also a deleted one."""
        if document_id not in self._known:
            self._known[document_id] = self.shelf.get(document_id, self.survey.root)
        return self._known[document_id]

    def entry(self, document_id: str) -> ManifestEntry | None:
        return None if self.manifest is None else self.manifest.by_id.get(document_id)

    def place(self, entry: ManifestEntry) -> DocumentPath:
        assert self.manifest is not None
        return self.manifest.place(entry)

    def _entry_at(self, key: str) -> ManifestEntry | None:
        if self.manifest is None:
            return None
        return self.manifest.by_key.get(key) or self.manifest.folders.get(key)

    def _read(self) -> None:
        for key, found in self.survey.files.items():
            if found.data is None:
                continue
            try:
                text = parse(found.data)
                self._check_head(text)
            except InvalidValue as error:
                self.survey.doubtful.add(found.name)
                self.plan.problem(found.name, str(error))
                continue
            self.texts[key] = text
            if text.front is not None and text.front.unknown:
                unknown = shown(", ".join(text.front.unknown))
                self.plan.problem(found.name, f"no document has a place for this: {unknown}")
                self.unplaced.add(key)

    def _check_head(self, text: FileText) -> None:
        """A head that is not the first thing in a file is no head, and would become its text."""
        if text.front is not None:
            return
        for match in _ID_LINE.finditer(text.body[:HEAD_CHARS_MAX]):
            if self.entry(match["id"]) is not None or self.document(match["id"]) is not None:
                raise InvalidValue(
                    f"it has a line `id`, but its head does not begin with {FENCE} in the first "
                    "line: put that back"
                )

    def _by_id(self) -> None:
        claims: dict[str, list[str]] = {}
        for key, found in self.survey.files.items():
            entry = self._entry_at(key)
            document_id = self._said_id(key)
            if found.data is None and entry is not None:
                document_id = entry.id
            if document_id is not None:
                claims.setdefault(document_id, []).append(key)
        for document_id, keys in claims.items():
            self.claimed.add(document_id)
            first = keys[0] if len(keys) == 1 else self._first(document_id)
            for key in keys:
                if key == first:
                    self.owners[key] = document_id
                else:
                    self.texts.pop(key, None)
                    self.plan.problem(
                        self.survey.files[key].name,
                        "another file has this id too; without the line `id` it is a new document",
                    )

    def _said_id(self, key: str) -> str | None:
        text = self.texts.get(key)
        said = None if text is None or text.front is None else text.front.id
        if said is None or not is_id(said):
            return None
        if self.entry(said) is not None:
            return said
        found = self.document(said)
        return None if found is None or found.deleted_at is not None else said

    def _first(self, document_id: str) -> str:
        """Of several files with one id, the place that is its own."""
        entry = self.entry(document_id)
        if entry is not None:
            return self.place(entry).key
        document = self.document(document_id)
        return "" if document is None else read_path(document.path).key

    def _by_place(self) -> None:
        for key in self.texts:
            entry = self._entry_at(key)
            if key in self.owners or entry is None or entry.id in self.claimed:
                continue
            document = self.document(entry.id)
            if document is not None and document.deleted_at is None:
                self.owners[key] = entry.id
                self.claimed.add(entry.id)


NEVER_ALL = "-"  # for a hash, where a file has what its document cannot have: it stays an edit


def reconcile(
    shelf: Shelf, survey: Survey, base: Manifest | None, origin: Manifest | None = None
) -> Plan:
    """A plan for what is in a directory, against the tree as it is at this moment.

    `base`: what was published there, with what was loaded since; `origin`: what another store
    published there.
    """
    plan = Plan()
    for name, why in survey.skipped.items():
        plan.problem(name, why)
    claims = Claims(shelf=shelf, survey=survey, manifest=base, plan=plan)
    claims.settle()
    ancestry = Ancestry(shelf=shelf, origin={} if origin is None else origin.by_id)
    _Reconciling(shelf=shelf, survey=survey, claims=claims, plan=plan, ancestry=ancestry).run()
    return plan


@dataclass(slots=True, kw_only=True)
class _Reconciling:
    shelf: Shelf
    survey: Survey
    claims: Claims
    plan: Plan
    ancestry: Ancestry
    names: dict[str, str] = field(default_factory=dict)  # id, or key of a new one: its file
    bumps: dict[str, int] = field(default_factory=dict)  # id: versions that the plan has made
    stepped: set[str] = field(default_factory=set)  # ids that the plan has moved or deleted
    creations: dict[str, Write] = field(default_factory=dict)
    moves: dict[str, DocumentPath] = field(default_factory=dict)
    deletions: dict[str, ManifestEntry] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)  # by id, if there was a publication

    def run(self) -> None:
        for key, text in self.claims.texts.items():
            found = self.survey.files[key]
            owner = self.claims.owners.get(key)
            if owner is None:
                self._new(found, text)
            else:
                self._known(found, text, owner)
        if self.claims.manifest is not None:
            self.nodes = {each.id: each for each in self.shelf.nodes(self.survey.root)}
            self.plan.versions = {each.id: each.version for each in self.nodes.values()}
            self._unknown_to_the_store(self.claims.manifest)
            self._removed(self.claims.manifest)
        self._arrange()

    # a file

    def _new(self, found: FoundFile, text: FileText) -> None:
        document = self.shelf.at(found.path)
        if document is not None and document.id not in self.claims.claimed:
            self._content(found, text, document, None)
            return
        edit = self._write(found.name, found.path, theirs_of(found.path, text, None), None)
        if edit is not None:
            self.creations[found.path.key] = edit
            self.names[found.path.key] = found.name
            self._settle(found, "", said=None)

    def _known(self, found: FoundFile, text: FileText, owner: str) -> None:
        entry, document = self.claims.entry(owner), self.claims.document(owner)
        is_edited = entry is None or entry.sha256 != found.sha256
        if document is None or document.deleted_at is not None:
            if is_edited:
                self._edited_though_gone(found, text, entry, document)
        elif self._is_placed(found, text, entry, document):
            if is_edited:
                self._content(found, text, document, entry)
            elif entry is not None:
                self._settle_as(found, entry, document)

    def _edited_though_gone(
        self,
        found: FoundFile,
        text: FileText,
        entry: ManifestEntry | None,
        document: Document | None,
    ) -> None:
        if document is not None:
            base = self.ancestry.of(document, entry, text)
            theirs = theirs_of(found.path, text, base)
            is_unchanged = base is not None and theirs == base.content
            if is_unchanged or self.ancestry.loaded(document, base, theirs) is not None:
                return
        reason = (
            "the document was deleted, or moved out of what is published here; without the line "
            "`id` the file is a new one, and if it is removed nothing is left to do"
        )
        self._conflict(found.name, found.path, reason, theirs=text.body)

    def _is_placed(
        self, found: FoundFile, text: FileText, entry: ManifestEntry | None, document: Document
    ) -> bool:
        """Note where the document is wanted; false: there is no telling."""
        here, now = found.path, read_path(document.path)
        there = None if entry is None else self.claims.place(entry)
        if is_same_place(here, now) or (there is not None and is_same_place(here, there)):
            return True
        if there is not None and is_same_place(now, there):
            self.moves[document.id] = here
            self.names[document.id] = found.name
            return True
        reason = f"the document stands at {now}: move the file to there, or the document to {here}"
        self._conflict(found.name, here, reason, theirs=text.body, ours=document.body)
        return False

    # what it says

    def _content(
        self, found: FoundFile, text: FileText, document: Document, entry: ManifestEntry | None
    ) -> None:
        base = self.ancestry.of(document, entry, text)
        said = None if base is None else base.content
        now = read_path(document.path)
        theirs = theirs_of(found.path, text, base)
        if not self._is_settled(found, theirs, document, base):
            edit = self._write(found.name, now, theirs, document)
            if edit is None or self._is_settled(found, edit.content, document, base):
                return
            is_bare_still = said is None and is_bare(document.content, now.slug)
            if document.content == said or is_bare_still:
                self._change(found.name, document, edit, self.plan.changed)
                self._settle(found, document.id, said=None)
            elif (made := self.ancestry.loaded(document, base, edit.content)) is not None:
                self._settle_at(found, document.id, made)
            elif said is None:
                self._taken(found, document, edit.content.body)
            else:
                self._merge(found, document, said, edit)

    def _is_settled(
        self, found: FoundFile, theirs: Content, document: Document, base: Ancestor | None
    ) -> bool:
        """Whether a file says what the document says, or what it was made from."""
        if theirs == document.content:
            at = moment_text(document.updated_at)
            now = Ancestor(number=document.version, content=theirs, at=at)
            self._settle_at(found, document.id, now)
            return True
        if base is not None and theirs == base.content:
            self._settle_at(found, document.id, base)
            return True
        return False

    def _taken(self, found: FoundFile, document: Document, theirs: str) -> None:
        reason = (
            "there is another document at this place: give the file another name; or, if it is to "
            f"take the place of what that says, the lines `id: {document.id}` and "
            f"`version: {document.version}` in its head"
        )
        now = read_path(document.path)
        self._conflict(found.name, now, reason, theirs=theirs, ours=document.body)

    def _merge(self, found: FoundFile, document: Document, base: Content, edit: Write) -> None:
        now = read_path(document.path)
        merged = merge_contents(base, document.content, edit.content)
        if isinstance(merged, ClashingContent):
            reason = (
                f"both sides changed: {', '.join(merged.fields)} (the document is at version "
                f"{document.version}); write into the file what it should say, with the line "
                f"`version: {document.version}` in its head"
            )
            self._conflict(
                found.name,
                now,
                reason,
                theirs=edit.content.body,
                ours=document.body,
                merged=merged.body,
            )
            return
        whole = self._write(found.name, now, merged.content, document)
        if whole is None:
            return
        if whole.content != document.content:
            self._change(found.name, document, whole, self.plan.merged)
        self._settle(found, document.id, said=edit.content)

    def _change(self, name: str, document: Document, edit: Write, report: list[str]) -> None:
        self.plan.edits.append(edit)
        self.plan.files.add(shown(name))
        self.bumps[document.id] = 1
        report.append(document.path)

    def _write(
        self, name: str, path: DocumentPath, content: Content, known: Document | None
    ) -> Write | None:
        try:
            edit = self.shelf.write(path, content)
        except (InvalidValue, NotAllowed) as error:
            self.plan.problem(name, str(error))
            return None
        if known is None:
            return replace(edit, expected=0, document_id=None)
        return replace(edit, expected=known.version, document_id=known.id)

    def _conflict(
        self,
        name: str,
        path: DocumentPath,
        reason: str,
        *,
        theirs: str = "",
        ours: str = "",
        merged: str = "",
    ) -> None:
        file = shown(name)
        self.plan.conflict(
            Conflict(
                file=file, path=path.text, reason=reason, theirs=theirs, ours=ours, merged=merged
            )
        )

    # what file and document have in common from now on

    def _settle(self, found: FoundFile, document_id: str, *, said: Content | None) -> None:
        """Once the plan is carried out."""
        is_all = found.path.key not in self.claims.unplaced
        self.plan.settled[found.path.key] = Settled(
            path=found.name,
            sha256=found.sha256 if is_all else NEVER_ALL,
            size_bytes=found.size_bytes,
            id=document_id,
            said=said,
        )

    def _settle_at(self, found: FoundFile, document_id: str, made: Ancestor) -> None:
        self._settle(found, document_id, said=made.said)
        settled = self.plan.settled[found.path.key]
        self.plan.settled[found.path.key] = replace(settled, version=made.number, at=made.at)

    def _settle_as(self, found: FoundFile, entry: ManifestEntry, document: Document) -> None:
        """A file that only has moved; its document may have changed meanwhile."""
        self._settle(found, document.id, said=entry.said)
        if document.version != entry.version:
            settled = self.plan.settled[found.path.key]
            settled = replace(settled, version=entry.version, at=entry.at)
            self.plan.settled[found.path.key] = settled

    # what is gone

    def _unknown_to_the_store(self, base: Manifest) -> None:
        """Files nobody touched whose documents are not there, not even as deleted ones."""
        for key, entry in base.by_key.items():
            found = self.survey.files.get(key)
            is_untouched = found is not None and found.data is None
            if is_untouched and entry.id not in self.nodes and self.shelf.is_unknown(entry.id):
                reason = (
                    "the store does not have this document any more: it was purged, or the store "
                    "is older than these files; without the line `id` the file is a new one"
                )
                self.plan.remark(entry.path, reason)

    def _removed(self, base: Manifest) -> None:
        for entry in base.entries:
            place = base.place(entry)
            is_top = place.key == self.survey.root.key
            self.plan.known += entry.id in self.nodes and not is_top
            if entry.id in self.claims.claimed or not self.survey.is_gone(place):
                continue
            if not entry.sha256 and (is_top or place.key in self.survey.folders):
                continue
            document = self.claims.document(entry.id)
            if document is not None and document.deleted_at is None:
                self._one_removed(entry, document, place)
            else:
                self.plan.dropped.add(entry.id)

    def _one_removed(self, entry: ManifestEntry, document: Document, place: DocumentPath) -> None:
        now = read_path(document.path)
        is_unchanged = document.version == entry.version and now.key == place.key
        self.names[document.id] = entry.path
        if not entry.sha256:
            if is_unchanged and not self.survey.doubtful:
                self.deletions[document.id] = entry
        elif is_bare(document.content, now.slug) and self.shelf.has_children(now):
            return  # it is a directory only, as it would be published now
        elif not is_unchanged or entry.said is not None:
            if self.ancestry.was_deleted_since(document, entry.version):
                self.plan.dropped.add(entry.id)
                return
            reason = (
                "the file was removed, and the document was changed or moved since: delete the "
                "document too, or put a file with its text back"
            )
            self._conflict(entry.path, now, reason, ours=document.body)
        elif self.survey.doubtful:
            reason = "it is gone, but may be one of the files that could not be read"
            self.plan.problem(entry.path, reason)
        else:
            self.deletions[document.id] = entry

    # where everything goes

    def _arrange(self) -> None:
        self._check_what_is_allowed()
        if not (self.moves or self.creations or self.deletions):
            return
        ordering = self._ordered(makes_room=True)
        if ordering.is_stuck:
            ordering = self._ordered(makes_room=False)
        self._left_over(ordering)
        # First what documents say, where they stand; then where they go.
        self.plan.edits += [self._step(step) for step in ordering.steps]

    def _ordered(self, *, makes_room: bool) -> Ordering:
        nodes = self.shelf.nodes(self.survey.root)
        bare = frozenset(each.id for each in nodes if self._gives_way(each))
        ordering = Ordering(
            sketch=Sketch(self.survey.root, [(each.id, read_path(each.path)) for each in nodes]),
            moves=dict(self.moves),
            creations={key: read_path(edit.place.text) for key, edit in self.creations.items()},
            deletions=list(self.deletions),
            bare=bare if makes_room else None,
        )
        ordering.run(self._staying(ordering.sketch) if self.moves else {})
        return ordering

    def _gives_way(self, node: Node) -> bool:
        """Whether it says nothing, and so makes room for a file that is moved to its place."""
        path = read_path(node.path)
        if node.body_chars or path.key not in self.survey.files:
            return False
        document = self.claims.document(node.id)
        return document is not None and is_bare(document.content, path.slug)

    def _check_what_is_allowed(self) -> None:
        for document_id, target in list(self.moves.items()):
            source = self._path(document_id)
            try:
                self._check_uproot(source)
                self.shelf.holder.check_write(target)
            except NotAllowed as error:
                del self.moves[document_id]
                self.plan.problem(self.names[document_id], str(error))
        for document_id in list(self.deletions):
            try:
                self._check_uproot(self._path(document_id))
            except NotAllowed as error:
                entry = self.deletions.pop(document_id)
                if self._path(document_id).key == self.survey.root.key:
                    self._empty(document_id)
                elif entry.sha256:
                    self.plan.problem(entry.path, str(error))

    def _check_uproot(self, path: DocumentPath) -> None:
        self.shelf.holder.check_uproot(path)
        if path.key == self.survey.root.key:
            raise NotAllowed(f"{path} is what the directory stands for, and stays where it is")

    def _path(self, document_id: str) -> DocumentPath:
        document = self.claims.document(document_id)
        assert document is not None
        return read_path(document.path)

    def _staying(self, sketch: Sketch) -> dict[str, DocumentPath]:
        """Documents that are where they were published, and whose files are there too."""
        assert self.claims.manifest is not None
        staying = {}
        for entry in self.claims.manifest.entries:
            place, now = self.claims.place(entry), sketch.where(entry.id)
            is_here = place.key in (self.survey.files if entry.sha256 else self.survey.folders)
            if is_here and entry.id not in self.moves and now is not None and now.key == place.key:
                staying[entry.id] = now
        return staying

    def _left_over(self, ordering: Ordering) -> None:
        """What cannot be had: a conflict; a page with others below it is emptied, not deleted."""
        for document_id, target in ordering.moves.items():
            problem = ordering.sketch.problem(document_id, target)
            reason = f"{problem}: give the file another place, or make room there"
            name = self.names.get(document_id, target.text)
            self._conflict(name, self._path(document_id), reason)
            self._stays_where_it_was(document_id, target)
        for key, target in ordering.creations.items():
            reason = f"something else stands at {target}: give the file another name"
            theirs = self.creations[key].content.body
            self._conflict(self.names[key], target, reason, theirs=theirs)
            self.plan.settled.pop(key, None)
        for document_id in ordering.deletions:
            if document_id in self.deletions and self.deletions[document_id].sha256:
                self._empty(document_id)

    def _stays_where_it_was(self, document_id: str, target: DocumentPath) -> None:
        settled, entry = self.plan.settled.get(target.key), self.claims.entry(document_id)
        if settled is not None and settled.id == document_id and entry is not None:
            self.plan.settled[target.key] = replace(settled, path=entry.path)

    def _empty(self, document_id: str) -> None:
        document = self.claims.document(document_id)
        assert document is not None
        path, name = read_path(document.path), self.names[document_id]
        if is_bare(document.content, path.slug):
            return
        edit = self._write(name, path, Content(title=path.slug), document)
        if edit is not None:
            self._change(name, document, edit, self.plan.changed)
            folder = folder_of(self.survey.root, path)
            settled = Settled(path=folder, sha256="", size_bytes=0, id=document_id)
            self.plan.settled[path.key] = settled

    def _step(self, step: Step) -> Edit:
        match step:
            case Creating():
                self.plan.created.append(step.target.text)
                self.plan.files.add(shown(self.names[step.target.key]))
                return self.creations[step.target.key]
            case Moving():
                wanted = self.moves.get(step.id)
                if wanted is not None and is_same_place(step.target, wanted):
                    source = self._path(step.id).text
                    self.plan.moved.append(Relocation(source=source, target=step.target.text))
                    self.plan.files.add(shown(self.names[step.id]))
                return Move(
                    place=step.source.place,
                    to=step.target.place,
                    parents=tuple(path.place for path in step.target.parents),
                    expected=self._expected(step),
                    document_id=step.id,
                )
            case Deleting():
                if step.id in self.deletions:
                    self.plan.deleted.append(step.source.text)
                    self.plan.files.add(shown(self.names[step.id]))
                self.plan.dropped.add(step.id)
                # A file does not know who refers to it; the links stay, and are reported broken.
                return Delete(
                    place=step.source.place,
                    leaves_broken=True,
                    expected=self._expected(step),
                    document_id=step.id,
                )

    def _expected(self, step: Moving | Deleting) -> int | None:
        """The version that a document has by then; once it was moved, there is no telling."""
        document = self.claims.document(step.id)
        was_moved = step.id in self.stepped or step.source.key != self._path(step.id).key
        self.stepped.add(step.id)
        if document is None or was_moved:
            return None
        return document.version + self.bumps.get(step.id, 0)
