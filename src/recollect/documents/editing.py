"""Changing the document tree as one holder may: write, append, patch, move, delete, restore.

Owns D5 for callers: every change names the version it was made from. Who gives none gets the
newest, and the change is made again on that if somebody else was faster. What is changed is the
tree of a store, or one that a changeset prepares aside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

from recollect import collection
from recollect.document import (
    Because,
    Content,
    Delete,
    Document,
    Edit,
    Move,
    Place,
    Restore,
    TreeLimits,
    Write,
)
from recollect.documents.links import references, unlinked
from recollect.documents.paths import DEPTH_MAX, DocumentPath, read_path
from recollect.documents.reading import Reader, Tree
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidValue,
    NotAllowed,
    NotFound,
    StaleVersion,
    TooLarge,
)
from recollect.knowledge import Source

TITLE_CHARS_MAX = 300
DESCRIPTION_CHARS_MAX = 2000
REASON_CHARS_MAX = 2000
TAGS_MAX = 64
TAG_CHARS_MAX = 100
LINKS_MAX = 1000
TRIES_MAX = 8  # of a change that names no version, when others are faster


class OnReferences(StrEnum):
    """What a deletion does about documents that refer to what is deleted."""

    REFUSE = "refuse"
    LEAVE = "leave"  # the links stay, and are broken until something stands there again
    UNLINK = "unlink"  # in bodies, the links become the words they show


class Editor(Reader):
    """A tree of documents, as one holder may see and change it."""

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
        target = read_path(path)

        def edit(known: Document | None) -> Write:
            content = Content(
                title=_given(title, None if known is None else known.title, target.slug),
                description=_given(description, None if known is None else known.description, ""),
                body=body,
                tags=tuple(tags if tags is not None else () if known is None else known.tags),
                links=tuple(links if links is not None else () if known is None else known.links),
            )
            return self._write_edit(target, content, known)

        because = self._because(reason, sources, facts)
        return self._changed(target, edit, because, expected_version)

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
        _text(text, "a text", self._around.settings.document_bytes_max)
        return self._rewritten(
            path,
            lambda body: f"{body.rstrip()}\n\n{text}" if body.strip() else text,
            self._because(reason, sources, facts),
            expected_version,
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
            _text(passage, "a passage", self._around.settings.document_bytes_max)

        def replaced(body: str) -> str:
            count = body.count(old) if old else 0
            if count != 1:
                raise InvalidValue(
                    f"the passage stands {count} times in {path}; it has to be there exactly once"
                )
            return body.replace(old, new)

        because = self._because(reason, sources, facts)
        return self._rewritten(path, replaced, because, expected_version)

    def move(
        self, path: str, to: str, *, expected_version: int | None = None, reason: str = ""
    ) -> Document:
        """Move a document with all that stands below it; what referred to it still does."""
        document = self.read(path)
        source, target = read_path(document.path), read_path(to)
        self.holder.check_uproot(source)
        self.holder.check_uproot(target)  # nor is anything put in the place of a root
        edit = Move(
            place=source.place,
            to=target.place,
            parents=_places(target.parents),
            expected=expected_version,
            document_id=document.id,
        )
        return self._apply([edit], self._because(reason))[0]

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
        source = read_path(document.path)
        self.holder.check_uproot(source)
        edits: list[Edit] = []
        if references == OnReferences.UNLINK:
            edits += self._unlinking(document, source)
        edits.append(
            Delete(
                place=source.place,
                below=bool(below),
                leaves_broken=references == OnReferences.LEAVE,
                expected=expected_version,
                document_id=document.id,
            )
        )
        return self._apply(edits, self._because(reason))[-1]

    def _unlinking(self, gone: Document, where: DocumentPath) -> list[Edit]:
        """New versions of what refers to a document, without the links to it."""
        referrers = {
            each.source
            for node in self._walk(gone.path)
            for each in self._tree.references_to(self._space, node.id)
        }
        if not all(self._is_shown(path) for path in referrers):
            raise NotAllowed(f"not all that refers to {where} can be changed by this holder")

        def is_gone(linked: DocumentPath) -> bool:
            found = self._tree.find(self._space, linked.place)
            return found is not None and read_path(found.path).is_within(where)

        edits: list[Edit] = []
        for path in sorted(referrers):
            target = read_path(path)
            if target.is_within(where):
                continue
            self.holder.check_write(target)
            known = self.read(path)
            content = Content(
                title=known.title,
                description=known.description,
                body=unlinked(known.body, is_gone),
                tags=known.tags,
                links=tuple(each for each in known.links if not is_gone(read_path(each))),
            )
            edits.append(self._write_edit(target, content, known))
        return edits

    def restore(
        self,
        path: str,
        version: int | None = None,
        *,
        expected_version: int | None = None,
        reason: str = "",
    ) -> Document:
        """Bring back a deleted document, or what an earlier version said, as a new version."""
        document = self._also_deleted(path)
        target = read_path(document.path)
        self.holder.check_write(target)
        edits: list[Edit] = []
        if document.deleted_at is not None:
            back = Restore(
                place=target.place,
                parents=_places(target.parents),
                expected=expected_version,
                document_id=document.id,
            )
            edits.append(back)
            expected_version = None
        elif version is None:
            raise DocumentExists(f"{target} is not deleted; say which version to restore")
        if version is not None:
            earlier = self.version(document.id, version)
            content = Content(
                title=earlier.title,
                description=earlier.description,
                body=earlier.body,
                tags=earlier.tags,
                links=earlier.links,
            )
            write = self._write_edit(target, content, document)
            edits.append(replace(write, expected=expected_version, is_restore=True))
            reason = reason or f"version {version} restored"
        return self._apply(edits, self._because(reason))[-1]

    # how a change is made

    def _rewritten(
        self,
        path: str,
        change: Callable[[str], str],
        because: Because,
        expected_version: int | None,
    ) -> Document:
        def edit(known: Document | None) -> Write:
            if known is None:
                raise NotFound(f"there is no document at {path}")
            content = Content(
                title=known.title,
                description=known.description,
                body=change(known.body),
                tags=known.tags,
                links=known.links,
            )
            return self._write_edit(read_path(known.path), content, known)

        for _ in range(TRIES_MAX):
            at = self.read(path).path
            try:
                return self._changed(read_path(at), edit, because, expected_version)
            except NotFound:
                if self.read(path).path == at:
                    raise
        raise StaleVersion(
            f"{path} was moved by others {TRIES_MAX} times in a row; try again",
            current=self.read(path).version,
        )

    def _changed(
        self,
        target: DocumentPath,
        edit: Callable[[Document | None], Write],
        because: Because,
        expected_version: int | None,
    ) -> Document:
        """Make a change on the newest version; on a newer one if somebody else was faster."""
        self.holder.check_write(target)
        for _ in range(TRIES_MAX):
            known = self._tree.find(self._space, target.place)
            if known is not None and read_path(known.path).key != target.key:
                known = None  # it has moved: something new is written where it stood
            if expected_version is not None and expected_version != (_version_of(known)):
                raise refusal(target.text, known, expected_version)
            try:
                return self._apply([edit(known)], because)[0]
            except (StaleVersion, DocumentExists):
                if expected_version is not None:
                    raise
        raise StaleVersion(
            f"{target} was changed by others {TRIES_MAX} times in a row; try again",
            current=_version_of(known),
        )

    def _write_edit(self, target: DocumentPath, content: Content, known: Document | None) -> Write:
        self.holder.check_write(target)
        checked, paths = self._checked(content)
        return Write(
            place=target.place,
            content=checked,
            references=references(checked.body, paths),
            parents=_places(target.parents),
            expected=_version_of(known),
            document_id=None if known is None else known.id,
        )

    def _apply(
        self, edits: Sequence[Edit], because: Because, tree: Tree | None = None
    ) -> list[Document]:
        limits = TreeLimits(documents_max=self._around.settings.documents_max, depth_max=DEPTH_MAX)
        try:
            return (tree or self._tree).apply(
                self._space, edits, because, limits, self._around.now(), self._around.ids.new
            )
        except DocumentReferenced as error:
            if self.holder.root is None:
                raise
            # Who refers to it may stand where this holder does not see.
            raise DocumentReferenced(
                "other documents refer to what is to be deleted, or stand below it; change them "
                "first, or say how to treat them"
            ) from error

    def _because(
        self, reason: str, sources: Sequence[Source] = (), facts: Sequence[str] = ()
    ) -> Because:
        redact = self._around.redactor().keyed(self._space).redact
        return Because(
            author=self.holder.author,
            reason=redact(_text(reason, "a reason", REASON_CHARS_MAX)),
            sources=tuple(replace(each, quote=redact(_quote(each))) for each in sources),
            facts=tuple(collection.check_id(fact) for fact in facts),
        )

    def _checked(self, content: Content) -> tuple[Content, list[DocumentPath]]:
        """Content as it may be stored: within its limits, redacted, its links real paths."""
        redact = self._around.redactor().keyed(self._space).redact
        body_max = self._around.settings.document_bytes_max
        body = _text(content.body, "a body", body_max)
        if len(body) * 4 > body_max and len(body.encode()) > body_max:
            raise TooLarge(
                f"a body has at most {body_max:,} bytes: split it, or raise document_bytes_max"
            )
        if len(content.tags) > TAGS_MAX or len(content.links) > LINKS_MAX:
            raise TooLarge(f"a document has at most {TAGS_MAX} tags and {LINKS_MAX:,} links")
        paths = [read_path(link) for link in content.links]
        checked = Content(
            title=redact(_text(content.title, "a title", TITLE_CHARS_MAX)) or "untitled",
            description=redact(_text(content.description, "a description", DESCRIPTION_CHARS_MAX)),
            body=redact(body),
            tags=tuple(
                dict.fromkeys(redact(_text(tag, "a tag", TAG_CHARS_MAX)) for tag in content.tags)
            ),
            links=tuple(dict.fromkeys(path.text for path in paths)),
        )
        return checked, paths


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


def _given(value: str | None, known: str | None, default: str) -> str:
    if value is not None:
        return value
    return default if known is None else known


def _version_of(known: Document | None) -> int:
    return 0 if known is None else known.version


def _places(paths: Sequence[DocumentPath]) -> tuple[Place, ...]:
    return tuple(path.place for path in paths)


def _quote(source: Source) -> str:
    if not isinstance(source, Source):
        raise InvalidValue(f"a source is a Source(session_id=…), not {type(source).__name__}")
    return collection.storable(source.quote)


def _text(text: object, what: str, chars_max: int) -> str:
    if not isinstance(text, str):
        raise InvalidValue(f"{what} is text, not {type(text).__name__}")
    if len(text) > chars_max:
        raise TooLarge(f"{what} has at most {chars_max:,} characters, and this has {len(text):,}")
    return collection.storable(text)
