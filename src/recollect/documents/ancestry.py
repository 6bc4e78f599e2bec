"""What a file was made from: the text that it and its document had in common when they last met.

That is the version it was published or loaded as; where it was merged, what it said then, for the
version has more. A file may name a later version itself, if it is a file of that document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from recollect.document import Content, Document, DocumentEvent, Version
from recollect.documents.front_matter import FileText, heading
from recollect.documents.manifest import Entry
from recollect.documents.merge import ClashingContent, merge_contents
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.shelf import EDITED_AS_A_FILE, Shelf, content_of, moment_text
from recollect.errors import InvalidValue, NotAllowed

VERSIONS_SEARCHED_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """What a file was made from, and since which version the document has it.

    `said`: the document has it among other things, because it was merged.
    """

    number: int
    content: Content
    at: str
    said: Content | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestry:
    """Looks up what files were made from. `origin`: a publication of another store, by id."""

    shelf: Shelf
    origin: Mapping[str, Entry] = field(default_factory=dict)

    def of(self, document: Document, entry: Entry | None, text: FileText) -> Ancestor | None:
        """What was published or loaded; or a later version, if the file says so."""
        known = 0 if entry is None else entry.version
        named = _named_version(document, entry, text)
        if known < named <= document.version:
            found = self._version(document, named)
            if found is not None and self._is_of_here(document, found):
                return _as_it_is(found)
        found = self._version(document, known) if known else None
        if entry is None or found is None or (entry.at and entry.at != moment_text(found.at)):
            return None
        if entry.said is None:
            return _as_it_is(found)
        return Ancestor(number=known, content=entry.said, at=entry.at, said=entry.said)

    def loaded(self, document: Document, base: Ancestor | None, theirs: Content) -> Ancestor | None:
        """The later version that a load has made of it: as it is, or merged with the one before."""
        since = self.since(document, 0 if base is None else base.number)
        made = [each for each in since if _is_of_a_load(each)]
        same = next((each for each in made if content_of(each) == theirs), None)
        if same is not None:
            return _as_it_is(same)
        if base is None:
            return None
        for each, before in pairwise(since):
            is_merged = _is_of_a_load(each) and self._is_merged(
                each, base.content, content_of(before), theirs
            )
            if is_merged:
                return replace(_as_it_is(each), said=theirs)
        return None

    def since(self, document: Document, number: int) -> list[Version]:
        """The versions after one, and that one, the newest first."""
        found = self.shelf.versions(document.id, document.version, VERSIONS_SEARCHED_MAX)
        return [each for each in found if each.number >= number]

    def was_deleted_since(self, document: Document, number: int) -> bool:
        since = self.since(document, number + 1)
        return any(each.event is DocumentEvent.DELETED for each in since)

    def _version(self, document: Document, number: int) -> Version | None:
        found = self.shelf.versions(document.id, number, 1)
        return found[0] if found and found[0].number == number else None

    def _is_of_here(self, document: Document, found: Version) -> bool:
        """Whether it is the version that was published, and not another one of that number."""
        entry = self.origin.get(document.id)
        is_named = entry is not None and entry.version == found.number
        return entry is None or not is_named or entry.at == moment_text(found.at)

    def _is_merged(self, made: Version, base: Content, before: Content, theirs: Content) -> bool:
        merged = merge_contents(base, before, theirs)
        if isinstance(merged, ClashingContent):
            return False
        try:
            # What is stored has been checked, and may have been redacted.
            stored = self.shelf.write(read_path(made.path), merged.content).content
        except (InvalidValue, NotAllowed):
            return False
        return stored == content_of(made)


def theirs_of(path: DocumentPath, text: FileText, base: Ancestor | None) -> Content:
    """What a file says; front matter that is not there has not changed."""
    known = None if base is None else base.content
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


def _is_of_a_load(version: Version) -> bool:
    return version.reason == EDITED_AS_A_FILE and version.event is not DocumentEvent.DELETED


def _as_it_is(version: Version) -> Ancestor:
    return Ancestor(number=version.number, content=content_of(version), at=moment_text(version.at))


def _named_version(document: Document, entry: Entry | None, text: FileText) -> int:
    """The version a file names, if it is one of this document; that of another says nothing."""
    if text.front is None or text.front.version is None:
        return 0
    is_its_own = text.front.id == document.id or (text.front.id is None and entry is not None)
    return text.front.version if is_its_own else 0
