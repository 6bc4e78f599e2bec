"""Imports a folder of notes: each becomes a document, and only what changed is written again.

What somebody changed, moved or deleted in Recollect since is theirs: the note is reported and left.
A note and what it came to are known by the place of the note.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from recollect.document import Document
from recollect.errors import InvalidValue, NotFound, StaleVersion, TooLarge
from recollect.importers.folders import LogFile, find_files, open_regular, place_of
from recollect.importers.items import Odd, Trouble
from recollect.importers.markdown import (
    NOTE_BYTES_MAX,
    Due,
    Imported,
    Kept,
    Markdown,
    Note,
    Notes,
    Unchanged,
    decide,
)
from recollect.importers.report import ImportReport, Progress
from recollect.importing import Cursor
from recollect.memory import Memory

REASON = "imported from a folder of notes"
NAMELESS = "notes"  # the root of everything has no name


class ImportingNotes:
    """One import of a folder into a space. `is_dry`: it only says what it would do."""

    def __init__(
        self,
        memory: Memory,
        space: str,
        *,
        is_dry: bool = False,
        progress: Callable[[Progress], None] = lambda _progress: None,
    ) -> None:
        self._memory = memory
        self._space = space
        self._documents = memory.space(space).documents
        self._is_dry = is_dry
        self._progress = progress
        self.report = ImportReport(source=Markdown.name)

    def run(self, folder: Path) -> ImportReport:
        """Read every note below a folder. NotFound: there is no such folder."""
        if not folder.is_dir():
            raise NotFound(f"there is no folder {folder}: name the one that the notes are in")
        root = folder.resolve()
        found = find_files(Markdown(), [root], self._tell)
        files = {place_of(each.path.relative_to(root)): each for each in found}
        size = sum(each.size for each in found)
        notes = Notes(files, folder=place_of(Path(root.name)) if root.name else NAMELESS)
        for name, file in files.items():
            data = self._read(file)
            if data is not None:
                notes.learn(name, data)
        for number, (name, file) in enumerate(files.items()):
            self._show(number, len(files), size)
            self.report.files += 1
            data = self._read(file, is_told=True)
            if data is not None:
                self._take(notes.note(name, data), file)
        self._show(len(files), len(files), size)
        return self.report

    def _show(self, done: int, files: int, size: int) -> None:
        self._progress(
            Progress(
                files_done=done,
                files=files,
                bytes_done=self.report.bytes_read,
                bytes_all=size,
                records=self.report.documents,
            )
        )

    def _read(self, file: LogFile, *, is_told: bool = False) -> bytes | None:
        try:
            with open_regular(file.path) as stream:
                data = stream.read(NOTE_BYTES_MAX + 1)
        except OSError:
            if is_told:
                odd = Odd(trouble=Trouble.UNREADABLE, detail="the file cannot be read")
                self._tell(file.path, odd)
            return None
        if is_told:
            self.report.bytes_read += len(data)
        return data

    def _tell(self, path: Path, odd: Odd) -> None:
        self.report.add_odd(place_of(path), odd)

    def _take(self, note: Note | Odd, file: LogFile) -> None:
        place = place_of(file.path)
        if isinstance(note, Odd):
            self.report.add_odd(place, note)
            return
        for remark in note.remarks:
            self.report.add_odd(place, remark)
        known, document = self._known(place), self._documents.find(note.path)
        match decide(note, known, document):
            case Unchanged():
                self.report.files_unchanged += 1
                if known is None and document is not None:
                    self._note(place, note, document)
            case Kept(reason):
                self.report.left_out[reason] += 1
            case Due(expected):
                self._write(note, expected, place)

    def _write(self, note: Note, expected: int, place: str) -> None:
        said = note.content
        if self._is_dry:
            self.report.documents += 1
            return
        try:
            document = self._documents.write(
                note.path,
                said.body,
                title=said.title,
                description=said.description,
                tags=said.tags,
                expected_version=expected,
                reason=REASON,
            )
        except TooLarge:
            self.report.add_odd(place, Odd(trouble=Trouble.TOO_LARGE, detail="a note"))
            return
        except (InvalidValue, StaleVersion) as error:
            odd = Odd(trouble=Trouble.BROKEN, detail=type(error).__name__)
            self.report.add_odd(place, odd)
            return
        self.report.documents += 1
        self._note(place, note, document)

    def _known(self, place: str) -> Imported | None:
        cursor = self._memory.store.imports.cursor(self._space, Markdown.name, place)
        return None if cursor is None else Imported(**json.loads(cursor.memo))

    def _note(self, place: str, note: Note, document: Document) -> None:
        if self._is_dry:
            return
        imported = Imported(digest=note.digest, document_id=document.id, version=document.version)
        cursor = Cursor(source=Markdown.name, place=place, memo=json.dumps(asdict(imported)))
        now = self._memory.clock.now()
        self._memory.store.imports.note(self._space, (), cursor, now)
