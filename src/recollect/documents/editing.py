"""Changes a document tree within a holder's rights: write, append, patch, move, delete, restore.

Owns D5 for callers: every change names the version it was made from. Subclasses decide what to do
with a change: apply it to the store, or collect it in a changeset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from recollect.collection import check_flag
from recollect.documents.checking import (
    check_because,
    check_clean,
    check_content,
    check_expected,
    check_text,
    check_texts,
)
from recollect.documents.links import references, unlinked
from recollect.documents.paths import DEPTH_MAX, DocumentPath, read_path, stored_path
from recollect.documents.reading import TreeReader, read_place
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidValue,
    NotAllowed,
    NotFound,
    StaleVersion,
)
from recollect.types.facts import Source
from recollect.types.pages import (
    AuthorKind,
    Because,
    Content,
    Delete,
    Document,
    Edit,
    Move,
    Place,
    ReferenceKind,
    Restore,
    Rewrite,
    TreeLimits,
    Write,
    content_of,
)

if TYPE_CHECKING:
    from recollect.redaction import Redactor

Make = Callable[[Sequence[Edit], Because], list[Document]]
TRIES_MAX = 8  # of a change, when others delete the document and write another in its place


class OnReferences(StrEnum):
    """What a deletion does about documents that refer to what is deleted."""

    REFUSE = "refuse"
    LEAVE = "leave"  # the links stay, and are broken until something stands there again
    UNLINK = "unlink"  # in bodies, the links become the words they show


class Editor(TreeReader):
    """A tree of documents, as one holder may see and change it."""

    is_aside = True  # whether a change is only prepared

    def write(  # noqa: PLR0913 - what a document can have
        self,
        path: str,
        body: str,
        *,
        title: str | None = None,
        description: str | None = None,
        tags: Sequence[str] | None = None,
        links: Sequence[str] | None = None,
        expected_version: int | None = None,
        reason: str = "",
        sources: Sequence[Source] = (),
        facts: Sequence[str] = (),
    ) -> Document:
        """Make a document, or a new version of it; parents that are missing are made.

        What is not given stays as it is. `expected_version` 0: there must be none yet.
        """
        target = read_place(path)
        own_tags, own_links = check_texts(tags, "tags"), check_texts(links, "links")

        def edit(known: Document | None) -> Write:
            before = Content(title=target.slug) if known is None else known.content
            content = Content(
                title=before.title if title is None else title,
                description=before.description if description is None else description,
                body=body,
                tags=before.tags if own_tags is None else own_tags,
                links=before.links if own_links is None else own_links,
            )
            return self._write_edit(target, content, known)

        because = self._because(reason, sources, facts)
        return self._changed(target, edit, because, check_expected(expected_version))

    def append(
        self,
        path: str,
        text: str,
        *,
        expected_version: int | None = None,
        reason: str = "",
        sources: Sequence[Source] = (),
        facts: Sequence[str] = (),
    ) -> Document:
        """Add to the end of a document, as a paragraph of its own."""
        check_text(text, "a text", self._runtime.settings.document_bytes_max)
        return self.rewrite(
            path,
            lambda body: _appended(body, text),
            expected_version=expected_version,
            reason=reason,
            sources=sources,
            facts=facts,
        )

    def patch(
        self,
        path: str,
        old: str,
        new: str,
        *,
        expected_version: int | None = None,
        reason: str = "",
        sources: Sequence[Source] = (),
        facts: Sequence[str] = (),
    ) -> Document:
        """Replace a passage that stands in a document exactly once."""

        for passage in (old, new):
            check_text(passage, "a passage", self._runtime.settings.document_bytes_max)

        def replaced(body: str) -> str:
            count = body.count(old) if old else 0
            if count != 1:
                raise InvalidValue(
                    f"the passage occurs {count} times in {path}; it must occur exactly once"
                )
            return body.replace(old, new)

        return self.rewrite(
            path,
            replaced,
            expected_version=expected_version,
            reason=reason,
            sources=sources,
            facts=facts,
        )

    def rewrite(
        self,
        path: str,
        change: Callable[[str], str],
        *,
        expected_version: int | None = None,
        reason: str = "",
        sources: Sequence[Source] = (),
        facts: Sequence[str] = (),
    ) -> Document:
        """Replace what a document says by what a function makes of it, in one step.

        The function may be called several times, while others wait: it only reckons.
        """
        because = self._because(reason, sources, facts)
        expected = check_expected(expected_version)

        @lru_cache(maxsize=2)
        def edit(known: Document | None) -> Write:
            if known is None or not self._is_shown(known.path):
                raise NotFound(f"there is no document at {path}")
            content = replace(known.content, body=change(known.body))
            if known.is_rendered and known.facts:
                raise self._not_by_line(known, content.body)
            return self._write_edit(read_path(known.path), content, known)

        for _ in range(TRIES_MAX):
            known = self.read(path)
            if expected not in (None, known.version):
                raise refusal(known.path, known, expected or 0)
            edit(known)  # so that nobody has to wait for it later
            place = read_path(known.path).place
            mend = Rewrite(place=place, change=edit, expected=expected, document_id=known.id)
            try:
                return self._apply([self._based(mend, known)], because)[0]
            except NotFound:  # somebody has deleted it; the next look shows what stands there now
                continue
        raise NotFound(f"the document at {path} was deleted each time it was about to be changed")

    def _not_by_line(self, page: Document, body: str) -> NotAllowed:
        """Why a rendered page is not edited in places: which fact to change instead."""
        gone = set(page.body.splitlines()) - set(body.splitlines())
        facts = (self._runtime.store.facts.get(self._space, each) for each in page.facts)
        meant = [each for each in facts if each and any(each.content in line for line in gone)]
        how = "add a fact, or write the whole page to make it yours"
        if meant:
            one = meant[0].id
            how = (
                f"that is fact {one}: use `recollect facts edit {one}` or `recollect facts delete "
                f"{one}`, or write the whole page to make it yours"
            )
        return NotAllowed(
            f"{page.path} is rendered from facts and cannot be edited in places: {how}"
        )

    def move(
        self, path: str, to: str, *, expected_version: int | None = None, reason: str = ""
    ) -> Document:
        """Move a document with all that stands below it; what referred to it still does."""
        expected = check_expected(expected_version)
        document = self.read(path)
        _check_authored(document)
        source, target = read_path(document.path), read_place(to)
        self.holder.check_uproot(source)
        self.holder.check_uproot(target)  # nor is anything put in the place of a root
        edit = Move(
            place=source.place,
            to=target.place,
            parents=_places(target.parents),
            expected=expected,
            document_id=document.id,
        )
        return self._apply([self._based(edit, document)], self._because(reason))[0]

    def delete(
        self,
        path: str,
        *,
        below: bool = False,
        references: OnReferences | str = OnReferences.REFUSE,
        expected_version: int | None = None,
        reason: str = "",
    ) -> Document:
        """Delete a document; it can be restored. Refused while others refer to it, or stand below.

        `below` deletes those too; `references` says what to do about the others: refuse, leave
        them broken, or unlink them.
        """
        if references not in set(OnReferences):
            raise InvalidValue(f"references is one of {', '.join(OnReferences)}: {references!r}")
        document = self.read(path)
        _check_authored(document)
        source = read_path(document.path)
        self.holder.check_uproot(source)
        edits: list[Edit] = []
        if references == OnReferences.UNLINK:
            edits += self._unlinking(document, source)
        gone = Delete(
            place=source.place,
            below=check_flag(below, "below"),
            leaves_broken=references == OnReferences.LEAVE,
            expected=check_expected(expected_version),
            document_id=document.id,
        )
        edits.append(self._based(gone, document))
        return self._apply(edits, self._because(reason))[-1]

    def _unlinking(self, gone: Document, where: DocumentPath) -> list[Edit]:
        """New versions of what refers to a document, without the links to it."""
        referrers = {
            each.source
            for node in self._walk(gone.path)
            for each in self._tree.references_to(self._space, node.id)
        }
        if not all(self._is_shown(path) for path in referrers):
            raise NotAllowed(f"a document that refers to {where} cannot be changed by this holder")

        edits: list[Edit] = []
        for path in sorted(referrers):
            target = read_path(path)
            if target.is_within(where):
                continue
            self.holder.check_write(target)
            known = self.read(path)
            content = self._unlinked(known, where)
            edits.append(self._write_edit(target, content, known))
        return edits

    def _unlinked(self, document: Document, where: DocumentPath) -> Content:
        """What a document says, without its links to what stands at a path and below it."""
        gone = {
            (each.kind, stored_path(each.named).key)
            for each in self._tree.references_from(self._space, document.id)
            if not each.is_broken and stored_path(each.target).is_within(where)
        }
        return replace(
            document.content,
            body=unlinked(document.body, lambda to: (ReferenceKind.BODY, to.key) in gone),
            links=tuple(
                each
                for each in document.links
                if (ReferenceKind.LINK, read_path(each).key) not in gone
            ),
        )

    def restore(
        self,
        path: str,
        version: int | None = None,
        *,
        expected_version: int | None = None,
        reason: str = "",
    ) -> Document:
        """Bring back a deleted document, or what an earlier version said, as a new version."""
        expected = check_expected(expected_version)
        document = self._also_deleted(path)
        target = read_path(document.path)
        self.holder.check_write(target)
        edits: list[Edit] = []
        if document.deleted_at is not None:
            back = Restore(
                place=target.place,
                parents=_places(target.parents),
                expected=expected,
                document_id=document.id,
            )
            edits.append(self._based(back, document))
        elif version is None:
            raise DocumentExists(
                f"{target} is not deleted: say which version to restore, or move it away first and "
                "restore what was deleted there by its id"
            )
        if version is not None:
            content = content_of(self.version(document.id, version))
            write = self._write_edit(target, content, document)
            if edits:  # it is at another version once it is back
                edits.append(replace(write, expected=None, is_restore=True))
            else:
                write = replace(write, expected=expected, is_restore=True)
                edits.append(self._based(write, document))
            reason = reason or f"version {version} restored"
        return self._apply(edits, self._because(reason))[-1]

    # how a change is made

    def _changed(
        self,
        target: DocumentPath,
        edit: Callable[[Document | None], Write],
        because: Because,
        expected: int | None,
    ) -> Document:
        """Make a change to what stands at a path when it is our turn."""
        self.holder.check_write(target)
        known = self._tree.find(self._space, target.place)
        if known is not None and read_path(known.path).key != target.key:
            known = None  # it has moved: something new is written where it stood
        if expected not in (None, _version_of(known)):
            raise refusal(target.text, known, expected or 0)
        change = lru_cache(maxsize=2)(edit)
        change(known)  # so that nobody has to wait for it later
        rewrite = Rewrite(place=target.place, change=change, expected=expected)
        return self._apply([self._based(rewrite, known)], because)[0]

    def _write_edit(self, target: DocumentPath, content: Content, known: Document | None) -> Write:
        self.holder.check_write(target)
        redactor = self._redactor()
        if known is None:
            check_clean(target, redactor)
        body_bytes_max = self._runtime.settings.document_bytes_max
        checked, paths = check_content(content, redactor, body_bytes_max)
        return Write(
            place=target.place,
            content=checked,
            references=references(checked.body, paths),
            parents=_places(target.parents),
            expected=_version_of(known),
            document_id=None if known is None else known.id,
        )

    def _based(self, edit: Edit, known: Document | None) -> Edit:
        """An edit that is made only if nothing has changed since this was read."""
        if isinstance(edit, Rewrite):
            return edit.change(known)
        return replace(edit, expected=_version_of(known)) if edit.expected is None else edit

    def _make(self, edits: Sequence[Edit], because: Because) -> list[Document]:
        """Make all edits or none, in order; each document as it is afterwards."""
        raise NotImplementedError

    def _apply(
        self, edits: Sequence[Edit], because: Because, make: Make | None = None
    ) -> list[Document]:
        for edit in edits:
            if isinstance(edit, Move):
                check_clean(stored_path(edit.to.text), self._redactor())
        try:
            return (make or self._make)(edits, because)
        except DocumentReferenced as error:
            if self.holder.root is None:
                raise
            # Who refers to it may stand where this holder does not see.
            raise DocumentReferenced(
                "other documents refer to what is to be deleted, or are below it; change them "
                "first, or say how to treat them"
            ) from error

    def _limits(self) -> TreeLimits:
        settings = self._runtime.settings
        # What consolidation wrote is kept as long as the generations that have it.
        is_in_generations = self.holder.author.kind is AuthorKind.CONSOLIDATION
        return TreeLimits(
            documents_max=settings.documents_max,
            depth_max=DEPTH_MAX,
            versions_kept=None if is_in_generations else settings.document_versions_kept,
        )

    def _because(
        self, reason: str, sources: Sequence[Source] = (), facts: Sequence[str] = ()
    ) -> Because:
        return check_because(self.holder.author, reason, sources, facts, self._redactor())

    def _redactor(self) -> Redactor:
        return self._runtime.redactor().keyed(self._space)


def _check_authored(document: Document) -> None:
    """Whether a page may leave its place: one that is rendered is there while its facts are."""
    if document.is_rendered and document.facts:
        raise NotAllowed(
            f"{document.path} is rendered from {len(document.facts):,} facts and stays while they "
            "do: delete those, or write the whole page to make it yours"
        )


def refusal(
    path: str, known: Document | None, expected: int
) -> StaleVersion | DocumentExists | NotFound:
    """Why what is there is not the version that was expected."""
    if known is None:
        return NotFound(f"there is no document at {path}, so no version {expected} of it")
    if expected == 0:
        return DocumentExists(f"there is a document at {path} (version {known.version})")
    return StaleVersion(
        f"{path} is at version {known.version} by now: read it again, then change that",
        current=known.version,
    )


def _appended(body: str, text: str) -> str:
    """A text with another below it, and a blank line between them."""
    if not text.strip():
        return body
    if not body.strip():
        return text
    ends = 2 if body.endswith("\n\n") else 1 if body.endswith("\n") else 0
    return body + "\n" * (2 - ends) + text


def _version_of(known: Document | None) -> int:
    return 0 if known is None else known.version


def _places(paths: Sequence[DocumentPath]) -> tuple[Place, ...]:
    return tuple(path.place for path in paths)
