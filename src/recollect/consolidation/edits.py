"""Takes up what people wrote into the published files, before the next generation is made of it.

Pages of people and agents are loaded. MEMORY and memory_summary are written anew by consolidation:
what was added to them or removed becomes facts, which they are made of. Owns that nothing is lost:
what cannot be taken up is named and stays an edit, and with those a directory is kept aside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from recollect.consolidation.edited_lines import (
    SPEAKER,
    Difference,
    Line,
    difference,
    is_of_project,
    is_said,
)
from recollect.consolidation.noticing import changed_files
from recollect.consolidation.pages import MEMORY, SUMMARY
from recollect.document import Content
from recollect.documents.files import Folder, target_of
from recollect.documents.front_matter import FileText, parse
from recollect.documents.load import DELETIONS_UNASKED_MAX, Loading
from recollect.documents.loaded import Known, note, read_known
from recollect.documents.manifest import Entry, Manifest
from recollect.documents.paths import memory_root, read_path
from recollect.documents.shelf import Problem, content_of, moment_text
from recollect.documents.tree import Documents
from recollect.errors import (
    InvalidValue,
    MassDeletion,
    NotFound,
    SchemaTooNew,
    StoreBusy,
    UnusableDirectory,
)
from recollect.facts import Facts
from recollect.knowledge import Fact

PAGE_BYTES_MAX = 1 << 20  # that are read of an edited page
LINES_CHANGED_MAX = 200  # of one page; who changes more has written another page
FACTS_COMPARED = 50

THE_REST = "what was changed besides its statements cannot be taken up; it is written anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """What was taken up: ids of facts, paths of documents; and what was left, and why."""

    added: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    left: tuple[Problem, ...] = ()

    @property
    def is_nothing(self) -> bool:
        return not (self.added or self.deleted or self.documents or self.left)


NOTHING = Absorbed()


def absorb(documents: Documents, facts: Facts, directory: Path) -> Absorbed:
    """Take up what people changed in a directory that a space was published to.

    Doing it twice does nothing twice. `documents` are as a person holds them.
    """
    root = str(memory_root())
    try:
        if not changed_files(directory):
            return NOTHING
        if not documents.load(directory, path=root, dry_run=True).is_published:
            reason = "it was not published from this space of this store"
            return Absorbed(left=(Problem(file=str(directory), reason=reason),))
        told = _told(documents, facts, directory)
    except (UnusableDirectory, InvalidValue, SchemaTooNew, StoreBusy) as error:
        return Absorbed(left=(Problem(file=str(directory), reason=str(error)),))
    try:
        loaded = documents.load(directory, path=root)
    except (UnusableDirectory, MassDeletion, InvalidValue, SchemaTooNew, StoreBusy) as error:
        left = Problem(file=str(directory), reason=str(error))
        return replace(told.absorbed, left=(*told.absorbed.left, left))
    return told.with_loaded(loaded)


@dataclass(slots=True, kw_only=True)
class _Told:
    """What came of the pages that facts make."""

    files: set[str] = field(default_factory=set)
    added: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    left: list[Problem] = field(default_factory=list)

    def leave(self, file: str, reason: str) -> None:
        self.left.append(Problem(file=file, reason=reason))

    @property
    def absorbed(self) -> Absorbed:
        return Absorbed(added=tuple(self.added), deleted=tuple(self.deleted), left=tuple(self.left))

    def with_loaded(self, loaded: Loading) -> Absorbed:
        """All that came of a directory; of these pages we know better than who loaded the rest."""
        moved = (each.target for each in loaded.moved)
        others = [each for each in loaded.problems if each.file not in self.files]
        clashes = [Problem(file=each.file, reason=each.reason) for each in loaded.conflicts]
        return replace(
            self.absorbed,
            documents=(
                *(*loaded.created, *loaded.changed, *loaded.merged),
                *(*moved, *loaded.deleted),
            ),
            left=(*self.left, *others, *clashes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """An edited page: what it was made from, and what it says."""

    entry: Entry
    base: Content
    text: FileText
    data: bytes
    difference: Difference

    @property
    def file(self) -> str:
        return self.entry.path

    @property
    def now(self) -> Content:
        """What the file says; a head that is not there has not changed."""
        front = self.text.front
        if front is None:
            return replace(self.base, body=self.text.body)
        return Content(
            title=front.title or self.base.title,
            description=front.description,
            body=self.text.body,
            tags=front.tags,
            links=front.links,
        )

    @property
    def has_same_head(self) -> bool:
        front = self.text.front
        is_whole = front is not None and not front.unknown
        return is_whole and replace(self.now, body="") == replace(self.base, body="")


def _told(documents: Documents, facts: Facts, directory: Path) -> _Told:
    """Make facts of what two pages were made to say."""
    told = _Told()
    with target_of(directory) as target:
        held = target.held(is_shared=False)
        if held is None:
            return told
        with held:
            known = read_known(held)
            if known is None:
                return told
            found = (_page(documents, held, known, path, told) for path in (MEMORY, SUMMARY))
            pages = [page for page in found if page is not None]
            taking = _Taking(facts=facts, told=told)
            taking.take(pages)
            now = _renewed(known.base, map(taking.settled, pages))
            if now.entries != known.base.entries:
                note(held, known.published, now)
    return told


def _page(documents: Documents, held: Folder, known: Known, path: str, told: _Told) -> _Page | None:
    """A page that was edited; none: it was not, or cannot be read."""
    entry = known.base.by_key.get(read_path(path).key)
    if entry is None:
        return None
    told.files.add(entry.path)
    try:
        if held.stat(entry.path) is None:
            raise InvalidValue("it is gone; it is written anew")
        data = held.read(entry.path, PAGE_BYTES_MAX).data
        if _sha256(data) == entry.sha256:
            return None
        text = parse(data)
        if not text.body.strip():
            raise InvalidValue("it is empty, which is not taken for a wish; it is written anew")
        base = _base(documents, entry, path)
    except (InvalidValue, OSError) as error:
        told.leave(entry.path, str(error))
        return None
    return _Page(
        entry=entry,
        base=base,
        text=text,
        data=data,
        difference=difference(base.body, text.body),
    )


def _base(documents: Documents, entry: Entry, path: str) -> Content:
    """What a page said when it was published, or when it was last taken up."""
    if entry.said is not None:
        return entry.said
    try:
        version = documents.version(entry.id, entry.version)
    except NotFound:
        version = None
    is_it = version is not None and read_path(version.path).key == read_path(path).key
    if version is None or not is_it or (entry.at and entry.at != moment_text(version.at)):
        raise InvalidValue("what it said before is forgotten, so that nobody can tell what is new")
    return content_of(version)


@dataclass(slots=True, kw_only=True)
class _Taking:
    """Facts on their way in and out, and the lines of which file they were made from."""

    facts: Facts
    told: _Told
    taken: dict[str, list[Line]] = field(default_factory=dict)

    def take(self, pages: Sequence[_Page]) -> None:
        """What was added first: where a line was only moved or changed, nothing is ever missing."""
        fit = [page for page in pages if self._is_an_edit(page)]
        for page in fit:
            for line in page.difference.added:
                self._add(page, line)
        moved = {line.key for page in fit for line in page.difference.added}
        for page in fit:
            for line in page.difference.removed:
                self._remove(page, line, moved)

    def _is_an_edit(self, page: _Page) -> bool:
        """Whether a page was edited, and is neither another one nor what a mishap left of it."""
        found = page.difference
        removed = len(found.removed)
        if removed > DELETIONS_UNASKED_MAX and 2 * removed > found.stated:
            reason = f"{removed} of {found.stated} statements are gone; nothing of it is taken up"
        elif len(found.added) + removed > LINES_CHANGED_MAX:
            reason = f"more than {LINES_CHANGED_MAX} lines were changed; nothing of it is taken up"
        else:
            return True
        self.told.leave(page.file, reason)
        return False

    def _add(self, page: _Page, line: Line) -> None:
        if line.is_cut:
            self._leave(page, line, "there was no room for all of it, so it is not taken up")
            return
        try:
            metadata = line.metadata | self._speaker(page, line)
            stored = self.facts.add(line.statement, tags=line.tags, metadata=metadata)
        except InvalidValue as error:
            self._leave(page, line, str(error))
            return
        self._take(page, line)
        if stored.id not in self.told.added:
            self.told.added.append(stored.id)

    def _speaker(self, page: _Page, line: Line) -> dict[str, str]:
        """Whose word a line was before it was changed, which it says nothing of itself."""
        was = page.difference.was(line)
        found = [] if was is None else self._facts_of(was)
        speaker = found[0].metadata.get(SPEAKER) if len(found) == 1 else None
        return {SPEAKER: speaker} if isinstance(speaker, str) else {}

    def _remove(self, page: _Page, line: Line, moved: Collection[str]) -> None:
        """Delete what a line told, unless it was moved, or cut and then changed."""
        if line.key in moved:
            if any(line.key == each.key for taken in self.taken.values() for each in taken):
                self._take(page, line)
            return
        if line.is_cut and any(each.is_cut for each in page.difference.added):
            return
        found = self._facts_of(line)
        if len(found) == 1:
            self.facts.delete(found[0].id)
            self.told.deleted.append(found[0].id)
            self._take(page, line)
            return
        said = f"{len(found)} facts say" if found else "no fact says"
        self._leave(page, line, f"it was removed, but {said} just this, so none is deleted")

    def _facts_of(self, line: Line) -> list[Fact]:
        found = self.facts.search(line.words, FACTS_COMPARED)
        same = [fact for fact in found if is_said(line, fact.content)]
        near = [fact for fact in same if is_of_project(line, fact)]
        return near if len(same) > 1 and near else same

    def _take(self, page: _Page, line: Line) -> None:
        self.taken.setdefault(page.file, []).append(line)

    def _leave(self, page: _Page, line: Line, reason: str) -> None:
        self.told.leave(page.file, f"line {line.number}: {reason}")

    def settled(self, page: _Page) -> Entry:
        """What is known of a page from now on; with all of it taken up it is no edit any more."""
        found, taken = page.difference, self.taken.get(page.file, [])
        if page.has_same_head and found.rest_is_same(taken):
            return replace(
                page.entry, sha256=_sha256(page.data), size_bytes=len(page.data), said=page.now
            )
        if not (page.has_same_head and found.rest_is_same([*found.added, *found.removed])):
            self.told.leave(page.file, THE_REST)
        if not taken:
            return page.entry
        return replace(page.entry, said=replace(page.base, body=found.taken_up(taken)))


def _renewed(base: Manifest, entries: Iterable[Entry]) -> Manifest:
    now = {each.id: each for each in entries}
    return replace(base, entries=tuple(now.get(each.id, each) for each in base.entries))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
