"""Which file of a directory is which document: by its id, else by its place.

A file without an id is what was published at its place; a file whose id another has too is the
document only if it stands where that was published.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from recollect.document import Document
from recollect.documents.files import shown
from recollect.documents.front_matter import FENCE, FileText, parse
from recollect.documents.manifest import Entry, Manifest
from recollect.documents.paths import DocumentPath, read_path
from recollect.documents.reading import is_id
from recollect.documents.shelf import Plan, Shelf
from recollect.documents.survey import Survey
from recollect.errors import InvalidValue

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

    def entry(self, document_id: str) -> Entry | None:
        return None if self.manifest is None else self.manifest.by_id.get(document_id)

    def place(self, entry: Entry) -> DocumentPath:
        assert self.manifest is not None
        return self.manifest.place(entry)

    def _entry_at(self, key: str) -> Entry | None:
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
