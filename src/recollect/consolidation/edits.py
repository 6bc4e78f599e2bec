"""Finds and reads what people changed in published files, before the next generation is made.

Documents that people write are loaded. MEMORY and memory_summary are rendered from facts: a line
that was added to them becomes a fact, and one that was changed or deleted is answered with the fact
it came from and the command that changes that fact. Whatever is not loaded stays an edit, is named,
and is kept beside the directory when that is published next. Nothing is followed.
"""

from __future__ import annotations

import contextlib
import json
import re
import stat
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path

from recollect.config.settings import folder_of
from recollect.consolidation.pages import MEMORY, SUMMARY
from recollect.consolidation.statements import Section
from recollect.documents import manifest as manifests
from recollect.documents.files import UNFINISHED, Folder, target_of
from recollect.documents.front_matter import FileText, parse
from recollect.documents.load import Loading, Problem
from recollect.documents.manifest import Manifest, ManifestEntry, read_manifest
from recollect.documents.paths import EXTENSION, memory_root, read_path
from recollect.documents.survey import Look, looks, moment_text
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
from recollect.pages.markdown import shown
from recollect.stemming import words
from recollect.types.facts import Fact, FactTag
from recollect.types.pages import Content, content_of

PAGE_BYTES_MAX = 1 << 20  # that are read of an edited page
LINES_CHANGED_MAX = 200  # of one page; who changes more has written another page
LINES_ANSWERED_MAX = 20
STATEMENT_CHARS_MAX = 4_000
FACTS_COMPARED = 50
LIKENESS_MIN = 0.5  # of two lines of which one was made of the other
FILES_PER_ROUND = 20_000  # before others have their turn; a directory is always looked at whole
SEEN_MAX = 10_000  # directories that are remembered

WRITTEN_ANEW = "only added lines are adopted from it; the rest is written again"
_TAGS = {
    Section.ABOUT: FactTag.DETAIL,
    Section.PREFERENCES: FactTag.PREFERENCE,
    Section.DONE: FactTag.INSTRUCTION,
    Section.DECISIONS: FactTag.DECISION,
    Section.FAILED: FactTag.LESSON,
    Section.OPEN: FactTag.COMMITMENT,
}
_PROJECT = "Project "
_PLACE = re.compile(r"It is in (.{1,400}?)\.(?: |$)")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?P<words>\S.*)")
_FRAME = re.compile(
    r"[|<>#]|[-=_*~][-=_*~ \t]*$|.*:$|~~.*~~[ .]*$|_.*_$|\[\[|(?:and )?\d[\d,]* more"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """What was taken over: ids of facts, paths of documents; and what was not, and why."""

    added: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    left: tuple[Problem, ...] = ()

    @property
    def is_nothing(self) -> bool:
        return not (self.added or self.documents or self.left)


NOTHING = Absorbed()


def absorb(documents: Documents, facts: Facts, directory: Path) -> Absorbed:
    """Take over what people changed in a directory that a space was published to.

    Doing it twice does nothing twice. `documents` are as a person holds them.
    """
    root, reading = str(memory_root()), _Reading(documents=documents, facts=facts)
    try:
        if not changed_files(directory):
            return NOTHING
        if not documents.load(directory, path=root, dry_run=True).is_published:
            reading.leave(str(directory), "it was not published from this space of this store")
            return reading.absorbed()
        reading.read(directory)
        return reading.absorbed(documents.load(directory, path=root))
    except (UnusableDirectory, MassDeletion, InvalidValue, SchemaTooNew, StoreBusy) as error:
        reading.leave(str(directory), str(error))
        return reading.absorbed()


# pages that are rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageLine:
    """A line of a page and the headings it stands below."""

    text: str
    number: int
    section: str = ""
    under: str = ""
    place: str = ""  # of the project

    @property
    def statement(self) -> str:
        """What it says where it stands alone; empty: it is part of the frame of the page."""
        item = _ITEM.fullmatch(self.text)
        said = (item["words"] if item else self.text).strip()
        if _FRAME.match(said) or not any(map(str.isalnum, said)):
            return ""
        name = self.under.partition(" – ")[0].strip() if self.section == Section.PEOPLE else ""
        return said if name.casefold() in said.casefold() else f"{name}: {said}"

    @property
    def tags(self) -> tuple[str, ...]:
        known = {each.casefold(): tag.value for each, tag in _TAGS.items()}
        found = known.get(self.under.casefold()) or known.get(self.section.casefold())
        return () if found is None else (found,)

    @property
    def metadata(self) -> dict[str, str]:
        if not self.section.startswith(_PROJECT):
            return {}
        return {"project": self.place or self.section.removeprefix(_PROJECT).strip()}


@dataclass(slots=True, kw_only=True)
class _Reading:
    """The edits of people on the pages that are rendered from facts."""

    documents: Documents
    facts: Facts
    files: set[str] = field(default_factory=set)
    added: dict[str, None] = field(default_factory=dict)
    left: list[Problem] = field(default_factory=list)

    def leave(self, file: str, reason: str) -> None:
        self.left.append(Problem(file=file, reason=reason))

    def absorbed(self, loaded: Loading | None = None) -> Absorbed:
        """All that came of a directory; why these pages were not loaded is known better here."""
        if loaded is None:
            return Absorbed(added=tuple(self.added), left=tuple(self.left))
        others = [each for each in loaded.problems if each.file not in self.files]
        clashes = [Problem(file=each.file, reason=each.reason) for each in loaded.conflicts]
        moved = (each.target for each in loaded.moved)
        changed = (*loaded.created, *loaded.changed, *moved, *loaded.deleted)
        left = (*self.left, *others, *clashes)
        return Absorbed(added=tuple(self.added), documents=changed, left=left)

    def read(self, directory: Path) -> None:
        with target_of(directory) as target:
            held = target.held(is_shared=False)
            if held is None:
                return
            with held:
                base = now = read_manifest(held)
                if base is None or now is None:
                    return
                for path in (MEMORY, SUMMARY):
                    now = self._read_page(held, now, path)
                if now != base:
                    held.replace(manifests.NAME, manifests.write(now))

    def _read_page(self, held: Folder, base: Manifest, path: str) -> Manifest:
        entry = base.by_key.get(read_path(path).key)
        if entry is None:
            return base
        self.files.add(entry.path)
        try:
            if held.stat(entry.path) is None:
                raise InvalidValue("the file is missing; it is written again")
            data = held.read(entry.path, PAGE_BYTES_MAX)
            if sha256(data).hexdigest() == entry.sha256:
                return base
            text, before = parse(data), self._before(entry, path)
            if not text.body.strip():
                raise InvalidValue("the file is empty; it is written again")
            changes = _Changes.between(before.body, text.body)
        except (InvalidValue, OSError) as error:
            self.leave(entry.path, str(error))
            return base
        kept = self._take(entry, before, text, changes)
        if kept is None:
            read = sha256(data).hexdigest()
            entry = replace(entry, sha256=read, size_bytes=len(data), said=text.body)
        elif kept:  # compared with that the next time, they are not new any more
            entry = replace(entry, said="\n".join([before.body, "", *kept]))
        changed = replace(entry, is_loaded=True)
        entries = (each if each.id != entry.id else changed for each in base.entries)
        return replace(base, entries=tuple(entries))

    def _before(self, entry: ManifestEntry, path: str) -> Content:
        """What a page said when it was published, or when it was last read."""
        try:
            version = self.documents.version(entry.id, entry.version)
        except NotFound:
            version = None
        is_it = version is not None and read_path(version.path).key == read_path(path).key
        if version is None or not is_it or (entry.at and entry.at != moment_text(version.at)):
            raise InvalidValue(
                "its earlier text was forgotten, so the changes cannot be told apart"
            )
        content = content_of(version)
        return content if entry.said is None else replace(content, body=entry.said)

    def _take(
        self, entry: ManifestEntry, before: Content, text: FileText, changes: _Changes
    ) -> list[str] | None:
        """Make facts of what is new; the lines they were made from. None: nothing else changed."""
        problems = len(self.left)
        kept = [line.text for line in changes.added if self._add(entry.path, line)]
        for line in changes.gone[:LINES_ANSWERED_MAX]:
            self._answer(entry.path, line)
        if (more := len(changes.gone) - LINES_ANSWERED_MAX) > 0:
            self.leave(entry.path, f"{more} more lines that were changed are written again")
        if changes.is_frame_changed or not _has_same_head(before, text):
            self.leave(entry.path, WRITTEN_ANEW)
        return kept if len(self.left) > problems else None

    def _add(self, file: str, line: _PageLine) -> bool:
        try:
            if len(line.statement) > STATEMENT_CHARS_MAX:
                raise InvalidValue(f"a fact has at most {STATEMENT_CHARS_MAX:,} characters")
            stored = self.facts.add(line.statement, tags=line.tags, metadata=line.metadata)
        except InvalidValue as error:
            self.leave(file, f"line {line.number}: {error}")
            return False
        self.added[stored.id] = None
        return True

    def _answer(self, file: str, line: _PageLine) -> None:
        """Say which fact a line came from that was changed or deleted, and how to change that."""
        known = self._facts_of(line)
        if not known:
            reason = "it comes from no single fact: find what it says with recollect facts search"
        else:
            ids = ", ".join(fact.id for fact in known)
            noun = "fact" if len(known) == 1 else "facts"
            reason = (
                f"it comes from {noun} {ids}: change that with recollect facts edit "
                f"{known[0].id} TEXT, or recollect facts delete {known[0].id}"
            )
        self.leave(file, f"line {line.number} is written again; {reason}")

    def _facts_of(self, line: _PageLine) -> list[Fact]:
        """The facts that a line says: those that share the longest beginning with it."""
        said, found = words(line.text).strip(), dict[str, list[Fact]]()
        for fact in self.facts.search(line.statement[:STATEMENT_CHARS_MAX], FACTS_COMPARED):
            for text in _wordings(fact.content):
                if text and f"{said} ".startswith(f"{text} "):
                    found.setdefault(text, []).append(fact)
        same = found[max(found, key=len)] if found else []
        near = [each for each in same if line.place and line.place in each.content]
        return near or same


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """The difference of two texts of a page: new statements, and missing ones."""

    added: tuple[_PageLine, ...]
    gone: tuple[_PageLine, ...]
    is_frame_changed: bool

    @classmethod
    def between(cls, before: str, after: str) -> _Changes:
        old, new = list(_lines(before)), list(_lines(after))
        kept = {line.text for line in old} & {line.text for line in new}
        old, new = ([line for line in each if line.text not in kept] for each in (old, new))
        if len(old) + len(new) > LINES_CHANGED_MAX:
            raise InvalidValue(
                f"more than {LINES_CHANGED_MAX} lines were changed; none of the changes is adopted"
            )
        changed = {number for line in old if (number := _made_of(line, new)) is not None}
        added = [line for line in new if line.statement and line.number not in changed]
        gone = [line for line in old if line.statement]
        frame = [line for line in (*old, *new) if not line.statement]
        return cls(added=tuple(added), gone=tuple(gone), is_frame_changed=bool(frame))


def _made_of(line: _PageLine, new: list[_PageLine]) -> int | None:
    """The number of the new line that one was made into."""
    near = [each for each in new if (each.section, each.under) == (line.section, line.under)]
    scored = [(_likeness(line.text, each.text), each.number) for each in near if each.statement]
    best, number = max(scored, default=(0.0, 0))
    return number if best >= LIKENESS_MIN else None


def _likeness(a: str, b: str) -> float:
    before, after = (words(without_remarks(each)).split() for each in (a, b))
    return SequenceMatcher(None, before, after, autojunk=False).ratio()


def without_remarks(text: str) -> str:
    """A line without what stands in brackets behind it: its day, its scope, how far to trust it."""
    left = text.rstrip()
    while left.endswith(")"):
        start = left.rfind("(")
        if start < 0 or ")" in left[start:-1]:
            break
        left = left[:start].rstrip()
    return left


def _lines(body: str) -> Iterator[_PageLine]:
    """The lines of a page; one that is indented goes on with that before it."""
    section = under = place = fence = ""
    begun: _PageLine | None = None
    for number, raw in enumerate(body.split("\n"), start=1):
        text = raw.strip()
        is_fence = text.startswith(("```", "~~~"))
        is_frame = is_fence or bool(fence) or not text or text.startswith("#")
        goes_on = raw[:1] in (" ", "\t") and not is_frame and _ITEM.fullmatch(raw) is None
        if begun is not None and goes_on:
            begun = replace(begun, text=f"{begun.text} {text}")
            continue
        if begun is not None:
            yield begun
        if is_fence and (not fence or text.startswith(fence)):
            fence = "" if fence else text[:3]
        elif text.startswith("### ") and not fence:
            under = text.removeprefix("### ").strip()
        elif text.startswith("## ") and not fence:
            section, under, place = text.removeprefix("## ").strip(), "", ""
        elif (where := _PLACE.match(text)) is not None:
            place = where[1]
        begun = None
        if text:
            shown_text = f"# {text}" if is_frame or _PLACE.match(text) else text
            begun = _PageLine(
                text=shown_text, number=number, section=section, under=under, place=place
            )
    if begun is not None:
        yield begun


def _wordings(content: str) -> Iterator[str]:
    """A fact as a line may say it: below its project it does not say where that is."""
    yield words(shown(content)).strip()
    if content.startswith("In "):
        yield words(shown(content.partition(", ")[2])).strip()


def _has_same_head(before: Content, text: FileText) -> bool:
    front = text.front
    if front is None:
        return True
    said = Content(
        title=front.title or before.title,
        description=front.description,
        body=before.body,
        tags=front.tags,
        links=front.links,
    )
    return said == before and not front.unknown


# which files were changed


def changed_files(directory: Path) -> list[str]:
    """The files of a published directory that are not as they were written, and those gone.

    None of them, too, if there is no directory, or nothing is known of it.
    """
    if not directory.parent.is_dir():
        return []
    with target_of(directory) as target:
        found = target.parent.stat(target.name)
        if found is None:
            return []
        if not stat.S_ISDIR(found.st_mode):
            raise UnusableDirectory(f"{target.shown} is a link, or no directory")
        with target.parent.folder(target.name) as folder:
            return _changed(folder, read_manifest(folder), _pages(folder))


@dataclass(slots=True)
class Watch:
    """Remembers what directories looked like, so that each edit is reported once.

    Files are compared by size and time, and read only where those changed. Safe to share between
    threads.
    """

    root: Path | None
    _seen: dict[str, tuple[str, str]] = field(default_factory=dict)  # the look, and the edit in it
    _after: str = ""  # where the last round ended
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def noticed(self, name: str | None = None, *, in_turn: bool = False) -> list[str]:
        """The spaces whose directories were edited since they were looked at last.

        Of one directory or of all; in turn, with very many files, only some are looked at.
        """
        if self.root is None:
            return []
        spaces, looked = [], 0
        with self._lock, contextlib.suppress(OSError), Folder.named(self.root) as root:
            names = [each for each in root.names() if not each.startswith(".")]
            if name is not None:
                names = [name]
            elif in_turn:
                names.sort(key=lambda each: (each <= self._after, each))
            for each in names:
                if in_turn and looked >= FILES_PER_ROUND:
                    break
                self._after = each
                with contextlib.suppress(OSError, InvalidValue, SchemaTooNew):
                    space, files = self._look(root, each)
                    spaces += [space] if space else []
                    looked += files
        return spaces

    def _look(self, root: Folder, name: str) -> tuple[str, int]:
        """The space of a directory if there is a new edit in it; how many files it has."""
        with root.folder(name) as folder:
            pages = _pages(folder)
            look = _digest(pages)
            seen = self._seen.get(name, ("", ""))
            if seen[0] == look:
                return "", len(pages)
            known = read_manifest(folder)
            space = "" if known is None else known.space
            changed = _changed(folder, known, pages) if folder_of(space) == name else []
            if root.identity_at(name) != folder.identity or folder.stat(UNFINISHED) is not None:
                return "", len(pages)  # it is being replaced at this moment
        edit = _digest({each: pages.get(each) for each in changed}) if changed else ""
        self._seen.pop(name, None)
        self._seen[name] = (look, edit)
        if len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]
        return space if edit and edit != seen[1] else "", len(pages)


def _pages(folder: Folder) -> dict[str, Look]:
    """What can be seen of everything that may be a document, without reading it."""
    return {
        name: look
        for name, look in looks(folder)
        if name.endswith(EXTENSION) and not name.rpartition("/")[2].startswith(".")
    }


def _changed(folder: Folder, known: Manifest | None, pages: Mapping[str, Look]) -> list[str]:
    published = folder.stat(manifests.NAME)
    if published is None or known is None:
        return []
    entries = {each.path: each for each in known.entries}
    return sorted(
        name
        for name in entries.keys() | pages.keys()
        if not _is_as_known(folder, name, entries.get(name), pages.get(name), published.st_mtime_ns)
    )


def _is_as_known(
    folder: Folder, name: str, entry: ManifestEntry | None, look: Look | None, published_ns: int
) -> bool:
    if entry is None or look is None:
        return False
    _, size, changed_ns, is_plain = look
    if not is_plain or size != entry.size_bytes:
        return False
    # The list of what was published is written last: whatever is older is as it was.
    return changed_ns <= published_ns or _sha256(folder, name, size) == entry.sha256


def _sha256(folder: Folder, name: str, size: int) -> str:
    above, _, last = name.rpartition("/")
    try:
        with folder.below(above) as inner:
            return inner.digest(last, size)
    except (OSError, InvalidValue):
        return ""  # it is being changed at this very moment


def _digest(pages: Mapping[str, Look | None]) -> str:
    return sha256(json.dumps(sorted(pages.items())).encode()).hexdigest()
