"""What the files of a directory ask of the tree: three-way, and never more than can be had at once.

The base is what was published, theirs is the file, ours is the document as it is now. Owns that
nothing is overwritten: where both sides changed the same, it is a conflict and both stay. Nothing
is written here; a plan is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from recollect.document import Content, Delete, Document, DocumentEvent, Edit, Move, Version, Write
from recollect.documents.claims import Claims
from recollect.documents.files import shown
from recollect.documents.front_matter import FileText, heading
from recollect.documents.manifest import Entry, Manifest
from recollect.documents.merge import ClashingContent, merge_contents
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.shelf import (
    EDITED_AS_A_FILE,
    Conflict,
    Plan,
    Relocation,
    Shelf,
    content_of,
    is_bare,
)
from recollect.documents.structure import (
    Creating,
    Deleting,
    Moving,
    Ordering,
    Sketch,
    Step,
    is_same_place,
)
from recollect.documents.survey import Found, Survey
from recollect.errors import InvalidValue, NotAllowed

VERSIONS_SEARCHED_MAX = 200


def reconcile(shelf: Shelf, survey: Survey, manifest: Manifest | None) -> Plan:
    """A plan for what is in a directory, against the tree as it is at this moment."""
    plan = Plan()
    for name, why in survey.skipped.items():
        plan.problem(name, why)
    claims = Claims(shelf=shelf, survey=survey, manifest=manifest, plan=plan)
    claims.settle()
    _Reconciling(shelf=shelf, survey=survey, claims=claims, plan=plan).run()
    return plan


@dataclass(slots=True, kw_only=True)
class _Reconciling:
    shelf: Shelf
    survey: Survey
    claims: Claims
    plan: Plan
    names: dict[str, str] = field(default_factory=dict)  # id, or key of a new one: its file
    bumps: dict[str, int] = field(default_factory=dict)  # id: versions that the plan has made
    creations: dict[str, Write] = field(default_factory=dict)
    moves: dict[str, DocumentPath] = field(default_factory=dict)
    deletions: dict[str, Entry] = field(default_factory=dict)

    def run(self) -> None:
        for key, text in self.claims.texts.items():
            found = self.survey.files[key]
            owner = self.claims.owners.get(key)
            if owner is None:
                self._new(found, text)
            else:
                self._known(found, text, owner)
        if self.claims.manifest is not None:
            self._removed(self.claims.manifest)
        self._arrange()

    # a file

    def _new(self, found: Found, text: FileText) -> None:
        document = self.shelf.at(found.path)
        if document is not None and document.id not in self.claims.claimed:
            self._content(found, text, document, None)
            return
        edit = self._write(found.name, found.path, _theirs(found.path, text, None), None)
        if edit is not None:
            self.creations[found.path.key] = edit
            self.names[found.path.key] = found.name

    def _known(self, found: Found, text: FileText, owner: str) -> None:
        entry, document = self.claims.entry(owner), self.claims.document(owner)
        is_edited = entry is None or entry.sha256 != found.sha256
        if document is None or document.deleted_at is not None:
            if is_edited:
                self._edited_though_gone(found, text, entry, document)
        elif self._is_placed(found, text, entry, document) and is_edited:
            self._content(found, text, document, entry)

    def _edited_though_gone(
        self, found: Found, text: FileText, entry: Entry | None, document: Document | None
    ) -> None:
        if document is not None:
            base = self._base(document, entry, text)
            theirs = _theirs(found.path, text, base)
            is_unchanged = base is not None and theirs == content_of(base)
            if is_unchanged or self._was_loaded(document, base, theirs):
                return
        self._conflict(found.name, found.path, "the document was deleted", theirs=text.body)

    def _is_placed(
        self, found: Found, text: FileText, entry: Entry | None, document: Document
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
        reason = f"the document stands at {now}"
        self._conflict(found.name, here, reason, theirs=text.body, ours=document.body)
        return False

    # what it says

    def _content(
        self, found: Found, text: FileText, document: Document, entry: Entry | None
    ) -> None:
        base = self._base(document, entry, text)
        said = None if base is None else content_of(base)
        now = read_path(document.path)
        theirs = _theirs(found.path, text, base)
        if theirs in (said, document.content):
            return
        edit = self._write(found.name, now, theirs, document)
        if edit is None or edit.content in (said, document.content):
            return
        if document.content == said or (said is None and is_bare(document.content, now.slug)):
            self._change(found.name, document, edit, self.plan.changed)
        elif self._was_loaded(document, base, edit.content):
            return
        elif said is None:
            reason = "there is another document at this place"
            theirs_now = edit.content.body
            self._conflict(found.name, now, reason, theirs=theirs_now, ours=document.body)
        else:
            self._merge(found, document, said, edit)

    def _merge(self, found: Found, document: Document, base: Content, edit: Write) -> None:
        now = read_path(document.path)
        merged = merge_contents(base, document.content, edit.content)
        if isinstance(merged, ClashingContent):
            conflict = Conflict(
                file=shown(found.name),
                path=now.text,
                reason=f"both sides changed: {', '.join(merged.fields)} (the document is at "
                f"version {document.version})",
                theirs=edit.content.body,
                ours=document.body,
                merged=merged.body,
            )
            self.plan.conflict(conflict)
            return
        whole = self._write(found.name, now, merged.content, document)
        if whole is not None and whole.content != document.content:
            self._change(found.name, document, whole, self.plan.merged)

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
        self, name: str, path: DocumentPath, reason: str, *, theirs: str = "", ours: str = ""
    ) -> None:
        file = shown(name)
        self.plan.conflict(
            Conflict(file=file, path=path.text, reason=reason, theirs=theirs, ours=ours)
        )

    def _base(self, document: Document, entry: Entry | None, text: FileText) -> Version | None:
        """What was published; or a later version, if the file says that it is made from that."""
        published = 0 if entry is None else entry.version
        said = 0 if text.front is None else text.front.version or 0
        for number in (said, published) if published < said <= document.version else (published,):
            found = self.shelf.versions(document.id, number, 1) if number else []
            if found and found[0].number == number:
                return found[0]
        return None

    def _since(self, document: Document, number: int) -> list[Version]:
        found = self.shelf.versions(document.id, document.version, VERSIONS_SEARCHED_MAX)
        return [each for each in found if each.number > number]

    def _was_loaded(self, document: Document, base: Version | None, theirs: Content) -> bool:
        """Whether a later version has it: as it is, or merged with the one before."""
        since = self._since(document, 0 if base is None else base.number)
        if any(content_of(each) == theirs for each in since):
            return True
        if base is None:
            return False
        pairs = zip(since, [*since[1:], base], strict=True)
        return any(
            each.reason == EDITED_AS_A_FILE and self._is_merged(each, base, before, theirs)
            for each, before in pairs
        )

    def _is_merged(self, made: Version, base: Version, before: Version, theirs: Content) -> bool:
        merged = merge_contents(content_of(base), content_of(before), theirs)
        if isinstance(merged, ClashingContent):
            return False
        try:
            # What is stored has been checked, and may have been redacted.
            stored = self.shelf.write(read_path(made.path), merged.content).content
        except (InvalidValue, NotAllowed):
            return False
        return stored == content_of(made)

    # what is gone

    def _removed(self, manifest: Manifest) -> None:
        for entry in manifest.entries:
            place = manifest.place(entry)
            if entry.id in self.claims.claimed or not self.survey.is_gone(place):
                continue
            is_top = place.key == self.survey.root.key
            if not entry.sha256 and (is_top or place.key in self.survey.folders):
                continue
            document = self.claims.document(entry.id)
            if document is not None and document.deleted_at is None:
                self._one_removed(entry, document, place)

    def _one_removed(self, entry: Entry, document: Document, place: DocumentPath) -> None:
        now = read_path(document.path)
        is_unchanged = document.version == entry.version and now.key == place.key
        self.names[document.id] = entry.path
        if not entry.sha256:
            if is_unchanged and not self.survey.doubtful:
                self.deletions[document.id] = entry
        elif is_bare(document.content, now.slug) and self.shelf.has_children(now):
            return  # it is a directory only, as it would be published now
        elif not is_unchanged:
            since = self._since(document, entry.version)
            if not any(each.event is DocumentEvent.DELETED for each in since):
                reason = "the file was removed, and the document was changed or moved since"
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
        nodes = [(node.id, read_path(node.path)) for node in self.shelf.nodes(self.survey.root)]
        ordering = Ordering(
            sketch=Sketch(self.survey.root, nodes),
            moves=dict(self.moves),
            creations={key: read_path(edit.place.text) for key, edit in self.creations.items()},
            deletions=list(self.deletions),
        )
        ordering.run(self._staying(ordering.sketch) if self.moves else {})
        self._left_over(ordering)
        # First what documents say, where they stand; then where they go.
        self.plan.edits += [self._step(step) for step in ordering.steps]

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
            reason = ordering.sketch.problem(document_id, target)
            name = self.names.get(document_id, target.text)
            self._conflict(name, self._path(document_id), reason)
        for key, target in ordering.creations.items():
            reason = f"something else stands at {target}"
            theirs = self.creations[key].content.body
            self._conflict(self.names[key], target, reason, theirs=theirs)
        for document_id in ordering.deletions:
            if self.deletions[document_id].sha256:
                self._empty(document_id)

    def _empty(self, document_id: str) -> None:
        document = self.claims.document(document_id)
        assert document is not None
        path, name = read_path(document.path), self.names[document_id]
        if is_bare(document.content, path.slug):
            return
        edit = self._write(name, path, Content(title=path.slug), document)
        if edit is not None:
            self._change(name, document, edit, self.plan.changed)

    def _step(self, step: Step) -> Edit:
        match step:
            case Creating():
                self.plan.created.append(step.target.text)
                self.plan.files.add(shown(self.names[step.target.key]))
                return self.creations[step.target.key]
            case Moving():
                if step.id in self.moves:
                    relocation = Relocation(source=step.source.text, target=step.target.text)
                    self.plan.moved.append(relocation)
                    self.plan.files.add(shown(self.names[step.id]))
                return Move(
                    place=step.source.place,
                    to=step.target.place,
                    parents=tuple(path.place for path in step.target.parents),
                    expected=self._expected(step.id),
                    document_id=step.id,
                )
            case Deleting():
                self.plan.deleted.append(step.source.text)
                self.plan.files.add(shown(self.names[step.id]))
                # A file does not know who refers to it; the links stay, and are reported broken.
                return Delete(
                    place=step.source.place,
                    leaves_broken=True,
                    expected=self._expected(step.id),
                    document_id=step.id,
                )

    def _expected(self, document_id: str) -> int | None:
        """The version that a document has by then."""
        document = self.claims.document(document_id)
        if document is None:
            return None
        made = self.bumps.get(document_id, 0)
        self.bumps[document_id] = made + 1
        return document.version + made


def _theirs(path: DocumentPath, text: FileText, base: Version | None) -> Content:
    """What a file says; front matter that is not there has not changed."""
    known = None if base is None else content_of(base)
    if text.front is None and known is not None:
        return replace(known, body=text.body)
    front = text.front
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
