"""Runs an import: reads files as streams, stores them in batches, and keeps its progress.

A batch, the digests of its items and its cursor are one transaction, so that a killed process loses
and doubles nothing: the next run continues after the last batch. No content of a file stops it;
what was not understood is counted. A watch keeps up with logs that grow: any number of watchers may
read the same files, since what one has stored is known to all. What was stored is learned from once
its session has been idle for a while, by the idle sweep.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from recollect import collection
from recollect.collection import Message
from recollect.errors import InvalidValue, NotFound, StoreError, TooLarge
from recollect.importers.folders import (
    LogFile,
    State,
    find_files,
    modified_at,
    open_regular,
    place_of,
)
from recollect.importers.items import (
    FileReader,
    FileShape,
    Found,
    ImportedFact,
    ImportedMessage,
    ImportedSession,
    ImportProgress,
    ImportReport,
    ImportSource,
    LeftOut,
    Odd,
    Origin,
    Trouble,
    broken,
    not_understood,
    too_large,
    unreadable,
)
from recollect.importers.projects import project_of
from recollect.importers.streams import entries_of, lines
from recollect.memory import Memory
from recollect.session import Session
from recollect.types.facts import Fact
from recollect.types.imports import Arrival, Cursor, digest
from recollect.types.records import MarkCause, NewRecord, Record

CHANGED_HERE = "changed here since"


class _FactImport:
    """From a source into the facts of a space.

    In a dry run what would come in is stored elsewhere, and the facts stay as they are.
    """

    def __init__(self, way: Importing, place: str) -> None:
        self.source = way.source.name
        self.report = way.report
        self.facts = way.memory.space(way.space).facts
        self.target = way.target.space(way.space).facts
        self.is_dry = way.is_dry
        self.redactor = way.memory.runtime.redactor().keyed(way.space)
        self.known = way.known  # what has come in before: statements, and how each of them read
        self.now = way.memory.clock.now()
        self.place = place

    def take(self, statements: Sequence[ImportedFact]) -> list[str]:
        """Store them; what is known from now on."""
        by_item = {digest(each.id): each for each in statements}
        came = self.known(list(by_item))
        readings = {item: self._reading(item, each) for item, each in by_item.items()}
        known = self.known([readings[item] for item in came])
        items = list(by_item)
        self.report.known += len(statements) - len(by_item)
        for item, each in by_item.items():
            try:
                if readings[item] in known:
                    self.report.known += 1
                else:
                    self._store(item, each, readings[item], is_new=item not in came)
                    items.append(readings[item])
            except NotFound:  # deleted this very moment
                self.report.known += 1
            except InvalidValue as error:
                odd = too_large if isinstance(error, TooLarge) else broken
                self.report.add_odd(self.place, odd("a fact"))
        return items

    def _store(self, item: str, said: ImportedFact, reading: str, *, is_new: bool) -> None:
        fact = None if is_new else self.facts.get(f"{self.source}-{item}")
        left = None if fact is None else self._reading_of(item, fact)
        if is_new:
            self._put(item, said)
            self.report.facts += 1
        elif fact is None or left is None or left == reading:
            # Deleted here, or stored by a run that died before it noted that.
            self.report.known += 1
        elif not self.known([left]):
            self.report.left_out[CHANGED_HERE] += 1
        else:
            if self.is_dry:
                self._put(item, said)
            else:  # it is found for earlier times as it read then
                self.facts.update(fact.id, said.text, tags=said.tags, metadata=said.metadata)
            self.report.facts_changed += 1

    def _put(self, item: str, said: ImportedFact) -> None:
        since = said.since or said.at
        self.target.add(
            Fact(
                said.text,
                id=f"{self.source}-{item}",
                tags=said.tags,
                metadata=said.metadata,
                created_at=said.at,
                # The time of this wording; a clock that is ahead must not put it in the future.
                valid_from=None if since is None or since > self.now else since,
            )
        )

    def _reading(self, item: str, said: ImportedFact) -> str:
        """How a statement reads once it is stored, as a digest."""
        redactor = self.redactor
        try:
            metadata = json.loads(collection.encode_metadata(said.metadata) or "{}")
        except InvalidValue:
            metadata = {}  # it is not stored either
        tags = [redactor.redact(tag) for tag in said.tags]
        return _digest(item, redactor.redact(said.text), tags, redactor.redact_json(metadata), None)

    def _reading_of(self, item: str, fact: Fact) -> str:
        until = None if fact.valid_to is None else fact.valid_to.isoformat()
        return _digest(item, fact.content, list(fact.tags), dict(fact.metadata), until)


def _digest(*parts: Any) -> str:
    return digest(json.dumps(parts, sort_keys=True))


BATCH_ITEMS = 500
BATCH_BYTES = 4 * 1024 * 1024
READ_BYTES_MAX = 16 * 1024 * 1024  # without noting how far it has got
HEAD_BYTES = 1024  # by which a file is known again, and as many before the place it was read to
SESSIONS_OPEN_MAX = 1000  # of one file
PROBED_ENTRIES = 20
LINES_SUFFIXES = (".jsonl", ".ndjson")
NO_MEMORY = "memory is off for the agent"


class Importing:
    """One import of a source into a space.

    `instead` is for a dry run: what would come in is stored there, and the memory stays as it is.
    """

    def __init__(
        self,
        memory: Memory,
        space: str,
        source: ImportSource,
        *,
        instead: Memory | None = None,
        progress: Callable[[ImportProgress], None] = lambda _progress: None,
    ) -> None:
        self.memory = memory
        self.target = instead or memory
        self.space = space
        self.source = source
        self._progress = progress
        self._at = ImportProgress()
        self.report = ImportReport(source=source.name)
        self._came: dict[str, tuple[datetime, int]] = {}  # by session: its last record

    def run(self, paths: Sequence[Path], *, marks: bool = True) -> ImportReport:
        """Read everything below these paths. `marks`: what came in is over, and is learned from."""
        try:
            return self._run(paths, marks=marks)
        finally:
            self._mark()

    def _run(self, paths: Sequence[Path], *, marks: bool) -> ImportReport:
        files = find_files(self.source.is_file, paths, self._tell)
        self._at = ImportProgress(files=len(files), bytes_all=sum(each.size for each in files))
        for number, file in enumerate(files, start=1):
            self._show()
            self.read(file, marks=marks)
            done = self._at.bytes_done + file.size
            self._at = replace(self._at, files_done=number, bytes_done=done)
        self._show()
        return self.report

    def _show(self, offset: int = 0) -> None:
        """Say how far it has got, and in the file that is read."""
        done = self._at.bytes_done + offset
        self._progress(replace(self._at, bytes_done=done, records=self.report.records))

    def read(self, file: LogFile, *, marks: bool = False) -> None:
        """Read what is new of one file. Without `marks` it may still be written to."""
        self.report.files += 1
        try:
            pouring = _FileImport(self, file, marks=marks)
            pouring.pour(lambda offset: self._show(min(offset, file.size)))
        except OSError:
            self._tell(file.path, unreadable("the file cannot be read"))

    def came(self, records: Sequence[Record]) -> None:
        """These came in, and are to be learned from at the end of the import."""
        for each in records[-1:]:
            self._came[each.session_id] = (each.at, each.seq)

    def _mark(self) -> None:
        """Have what came in learned from, in the order of time: what is known grows with it."""
        marks, now = self.target.store.marks, self.target.clock.now()
        for session_id, (_, seq) in sorted(self._came.items(), key=lambda each: each[1]):
            marks.invalidate(self.space, session_id, seq, MarkCause.IMPORT, now)
        self._came.clear()

    def _tell(self, path: Path, odd: Odd) -> None:
        self.report.add_odd(place_of(path), odd)

    # What has come in is known to one memory, and stored in the other.

    @property
    def is_dry(self) -> bool:
        return self.target is not self.memory

    def cursor(self, place: str) -> Cursor | None:
        return self.memory.store.imports.cursor(self.space, self.source.name, place)

    def known(self, items: Sequence[str]) -> frozenset[str]:
        return self.memory.store.imports.known(self.space, self.source.name, items)

    def note(self, items: Sequence[str], cursor: Cursor) -> None:
        self.target.store.imports.note(self.space, items, cursor, self.target.clock.now())


_Name = tuple[str, tuple[str, ...]]  # a conversation by its agent and its key


@dataclass(slots=True)
class _ItemBatch:
    """What has been read and is not stored yet, by conversation, in order."""

    parts: dict[_Name, tuple[ImportedSession, list[Arrival]]] = field(default_factory=dict)
    statements: list[ImportedFact] = field(default_factory=list)
    items: int = 0
    size: int = 0

    @property
    def is_full(self) -> bool:
        return self.items >= BATCH_ITEMS or self.size >= BATCH_BYTES

    def add(self, conversation: ImportedSession, arrival: Arrival) -> None:
        name = (conversation.agent, conversation.key)
        self.parts.setdefault(name, (conversation, []))[1].append(arrival)
        self.items += 1
        self.size += len(arrival.record.content) + len(arrival.record.body or "")


class _FileImport:
    """One file on its way into the store."""

    def __init__(self, way: Importing, file: LogFile, *, marks: bool) -> None:
        self._way = way
        self._marks = marks
        self._source = way.source
        self._target = way.target.space(way.space)
        self._file = file
        self._report = way.report
        self._batch = _ItemBatch()
        self._is_understood = False  # anything of it
        self._sessions: dict[_Name, Session] = {}
        self._place = place_of(file.path.absolute())
        self._record_bytes_max = way.memory.settings.record_bytes_max

    def pour(self, told: Callable[[int], None]) -> None:
        is_lines = self._file.path.suffix.casefold() in LINES_SUFFIXES
        if self._source.shape is FileShape.ELEMENTS and not is_lines:
            self._pour_elements(told)
        else:
            with open_regular(self._file.path) as stream:
                self._pour_lines(stream, told)

    def _pour_lines(self, stream: BinaryIO, told: Callable[[int], None]) -> None:
        cursor = self._begin(stream)
        if cursor.offset >= self._file.size and cursor.offset:
            self._report.files_unchanged += 1
            return
        self._probe(line.entry for line in lines(stream))
        reader = self._reader(json.loads(cursor.memo))
        last, at = cursor, (cursor.offset, cursor.line)
        for line in lines(stream, offset=cursor.offset, number=cursor.line):
            if line.is_cut and not self._marks:
                break  # it is waited for
            if isinstance(line.entry, Odd):
                self._report.add_odd(self._place, line.entry)
            else:
                self._take(reader.read(line.entry, line.number), line.number)
            if line.replaced is not None:
                self._report.add_odd(self._place, line.replaced)
            if line.is_cut:
                break
            at = (line.end, line.number)
            if self._batch.is_full or at[0] - last.offset >= READ_BYTES_MAX:
                last = self._flush(last, self._now_at(stream, at, cursor, reader))
                told(last.offset)
        # What nobody understands is read again, by who knows more of it.
        is_done = self._is_understood or bool(last.offset) or not self._marks
        if is_done and (at[0] > last.offset or self._batch.items):
            self._flush(last, self._now_at(stream, at, cursor, reader))
        self._report.bytes_read += at[0] - cursor.offset
        told(at[0])

    def _pour_elements(self, told: Callable[[int], None]) -> None:
        about = blake2b(repr(self._file.state).encode(), digest_size=16).hexdigest()
        seen = Cursor(source=self._source.name, place=self._place, head=about)
        known = self._way.cursor(self._place)
        if known is not None and known.head == seen.head and known.offset == self._file.size:
            self._report.files_unchanged += 1
            return
        self._probe(self._elements())
        reader, is_whole = self._reader({}), True
        for number, entry in enumerate(self._elements(), start=1):
            if isinstance(entry, Odd):
                is_whole = is_whole and entry.trouble is not Trouble.UNREADABLE
                self._report.add_odd(self._place, replace(entry, line=number))
            else:
                self._take(reader.read(entry, number), number)
            if self._batch.is_full:
                self._flush(seen, seen)
                told(0)
        self._report.bytes_read += self._file.size
        is_done = is_whole and self._is_understood
        self._flush(seen, replace(seen, offset=self._file.size) if is_done else seen)

    def _elements(self) -> Iterator[object | Odd]:
        return entries_of(
            self._file.path,
            lambda name: self._source.is_file(Path(name)),
            names=self._source.names,
        )

    def _begin(self, stream: BinaryIO) -> Cursor:
        """Where to go on; at the start, where the file is new or another one than it was."""
        new = Cursor(source=self._source.name, place=self._place)
        known = self._way.cursor(self._place)
        if known is None or known.offset > self._file.size:
            return new
        return known if _head(stream, known.offset, known.head_bytes) == known.head else new

    def _now_at(
        self, stream: BinaryIO, at: tuple[int, int], cursor: Cursor, reader: FileReader
    ) -> Cursor:
        """The cursor with what the next reader must know. The stream stays where it is."""
        offset, line = at
        position, head_bytes = stream.tell(), min(offset, HEAD_BYTES)
        head, memo = _head(stream, offset, head_bytes), json.dumps(dict(reader.memo))
        stream.seek(position)
        return replace(
            cursor, offset=offset, line=line, head=head, head_bytes=head_bytes, memo=memo
        )

    def _probe(self, entries: Iterable[object]) -> None:
        """Which form the file has; one that nobody knows is read all the same, and said."""
        readable = (entry for entry in entries if not isinstance(entry, Odd))
        first = list(islice(readable, PROBED_ENTRIES))
        form = self._source.probe(first) if first else None
        if form is not None:
            self._report.forms[form] += 1
        elif first:
            detail = f"not a form of {self._source.name} that is known"
            self._report.add_odd(self._place, not_understood(detail))

    def _reader(self, memo: Mapping[str, Any]) -> FileReader:
        file = self._file
        origin = Origin(path=file.path, root=file.root, modified=modified_at(file))
        return self._source.reader(origin, memo)

    def _take(self, found: Iterator[Found], line: int) -> None:
        for each in found:
            self._is_understood = self._is_understood or not isinstance(each, Odd)
            match each:
                case ImportedMessage():
                    self._take_item(each, line)
                case ImportedFact():
                    self._batch.statements.append(each)
                    self._batch.items += 1
                case LeftOut():
                    self._report.left_out[each.reason] += 1
                case Odd():
                    self._report.add_odd(self._place, each)

    def _take_item(self, item: ImportedMessage, line: int) -> None:
        try:
            record, is_message = prepared(item, self._record_bytes_max)
        except TooLarge:
            self._report.add_odd(self._place, too_large("a record", line))
        except InvalidValue:
            self._report.add_odd(self._place, broken("a message that cannot be kept", line))
        else:
            if not is_message:
                self._report.add_odd(self._place, not_understood("message", line))
            self._batch.add(item.conversation, Arrival(digest(item.id), record))

    def _flush(self, before: Cursor, behind: Cursor) -> Cursor:
        """Store the batch. The cursor moves with its last part, and not before."""
        batch, self._batch = self._batch, _ItemBatch()
        self._take_over(batch.statements, before)
        parts = batch.parts.values()
        for number, (conversation, arrivals) in enumerate(parts, start=1):
            self._adopt(conversation, arrivals, behind if number == len(parts) else before)
        if not parts:
            self._way.note((), behind)
        return behind

    def _adopt(
        self, conversation: ImportedSession, arrivals: list[Arrival], cursor: Cursor
    ) -> None:
        if not self._way.target.settings.is_memory_enabled(conversation.agent):
            self._report.left_out[NO_MEMORY] += len(arrivals)
            self._way.note((), cursor)
            return
        wanted = self._unknown(arrivals)
        try:
            adopted = self._session(conversation).adopt(wanted, cursor, marks=not self._marks)
        except NotFound:  # everything was forgotten meanwhile, and this is of another time
            self._sessions.clear()
            adopted = self._session(conversation).adopt(wanted, cursor, marks=not self._marks)
        self._report.records += len(adopted.records)
        self._report.known += adopted.known + len(arrivals) - len(wanted)
        if adopted.records:
            if self._marks:
                self._way.came(adopted.records)
            self._report.sessions.add(collection.encode_key(conversation.key))

    def _unknown(self, arrivals: list[Arrival]) -> list[Arrival]:
        """In a dry run, what the space itself has not got; else the store knows, when it stores."""
        if not self._way.is_dry:
            return arrivals
        known = self._way.known([each.item for each in arrivals])
        return [each for each in arrivals if each.item not in known]

    def _session(self, conversation: ImportedSession) -> Session:
        name = (conversation.agent, conversation.key)
        session = self._sessions.get(name)
        if session is None:
            if len(self._sessions) >= SESSIONS_OPEN_MAX:
                self._sessions.clear()
            directory = conversation.directory
            session = self._sessions[name] = self._target.session(
                conversation.key,
                conversation.agent,
                source=self._source.name,
                project=None if directory is None else project_of(directory),
                parent=self._parent(conversation),
            )
        return session

    def _parent(self, conversation: ImportedSession) -> str | None:
        """The id of the session that started it, or its key as long as there is no such session."""
        if conversation.parent is None:
            return None
        found = self._target.find_session(conversation.parent, conversation.agent)
        return collection.encode_key(conversation.parent) if found is None else found.id

    def _take_over(self, statements: list[ImportedFact], cursor: Cursor) -> None:
        """Facts of another memory, which have an id of their own."""
        if statements:
            items = _FactImport(self._way, self._place).take(statements)
            self._way.note(items, cursor)


def prepared(item: ImportedMessage, record_bytes_max: int) -> tuple[NewRecord, bool]:
    """The record of a message, and whether it is one; else it is kept as it is, as a note."""
    message = Message(message=item.message, at=item.at, metadata=item.metadata)
    try:
        return collection.prepare(message, record_bytes_max=record_bytes_max), True
    except TooLarge:
        raise
    except InvalidValue:
        note = {"role": "note", "content": [{"type": "unknown", "value": item.message}]}
        kept = replace(message, message=note)
        return collection.prepare(kept, record_bytes_max=record_bytes_max), False


def _head(stream: BinaryIO, offset: int, size: int) -> str:
    """Of how a file begins, and of what stands before an offset: many begin alike."""
    found = blake2b(digest_size=16)
    for begin in (0, offset - size):
        stream.seek(begin)
        found.update(stream.read(size))
    return found.hexdigest()


_log = logging.getLogger(__name__)

INTERVAL_SECONDS = 2.0


class _ToldToStop(Exception):
    """In the middle of a look, between two batches: nothing is half stored."""


class Watching:
    """A watch over the files of a source. `look()` once, or `run()` until told to stop."""

    def __init__(
        self, memory: Memory, space: str, source: ImportSource, paths: Sequence[Path]
    ) -> None:
        self._memory = memory
        self._space = space
        self._source = source
        self._paths = [path.absolute() for path in paths]  # each file has one name
        self._seen: dict[Path, State] = {}  # of the files that were read, as they were then

    def look(self, is_over: Callable[[], bool] = lambda: False) -> ImportReport:
        """Read what is new since the last look. A folder that is not there yet is waited for.

        `is_over` is asked between batches and ends the look early; the next one goes on there.
        """

        def ask(_progress: ImportProgress) -> None:
            if is_over():
                raise _ToldToStop

        importing = Importing(self._memory, self._space, self._source, progress=ask)
        try:
            there = find_files(self._source.is_file, self._paths)
            known, self._seen = self._seen, {}
            for file in there:
                if known.get(file.path) != file.state:
                    importing.read(file)
                self._seen[file.path] = file.state
        except _ToldToStop:
            self._seen.clear()
        return importing.report

    def run(
        self,
        wait: Callable[[float], bool],
        told: Callable[[ImportReport], None],
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        """Look until `wait`, which pauses for some seconds, says that it is over.

        It is asked in the middle of a long look, too. A store that cannot be reached for a while is
        tried again: the files do not run away.
        """
        stopped = False

        def is_over() -> bool:
            nonlocal stopped
            stopped = stopped or wait(0)
            return stopped

        while not stopped:
            try:
                told(self.look(is_over))
            except StoreError as error:
                if not error.retry_helps:
                    raise
                _log.warning("the store cannot be written to, and is tried again: %s", error)
                self._seen.clear()
            stopped = stopped or wait(interval_seconds)
