"""A folder of Markdown notes as documents: Obsidian, basic-memory, or plain files. Pure.

Owns that a note always comes to the same document, and that nothing of it is lost: what front
matter says that no document has a place for stands in a block at the end of its body. A link to
another note leads to the document of that note, and stays where it is when more notes come.
"""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from typing import Any

from recollect.documents.checking import (
    DESCRIPTION_CHARS_MAX,
    TAG_CHARS_MAX,
    TAGS_MAX,
    TITLE_CHARS_MAX,
)
from recollect.documents.front_matter import FENCE, Front, heading, parse
from recollect.documents.links import find_links
from recollect.documents.paths import SLUG_CHARS_MAX, DocumentPath, memory_root, slug_key
from recollect.errors import InvalidPath, InvalidValue, NotFound, StaleVersion, TooLarge
from recollect.importers.folders import LogFile, find_files, open_regular, place_of
from recollect.importers.items import (
    MARKDOWN,
    NOT_UTF8,
    ImportProgress,
    ImportReport,
    Odd,
    broken,
    digest,
    not_understood,
    too_large,
    unreadable,
)
from recollect.memory import Memory
from recollect.types.imports import Cursor
from recollect.types.pages import Content, Document

NOTES = "notes"  # the part of the tree that folders of notes are put in, each by its name
NOTE_BYTES_MAX = 16 * 2**20

_SUFFIXES = (".md", ".markdown")
_TAIL_CHARS = 8  # of a digest, where a name has to be told from another
_ALIAS_CHARS_MAX = 500
_TEXTS = {"title": TITLE_CHARS_MAX, "description": DESCRIPTION_CHARS_MAX}
_TAGS = frozenset({"tags", "tag"})
_ALIASES = frozenset({"aliases", "alias", "permalink"})
_KEY = re.compile(r"(?P<key>[^\s#:\-\[\]{}\"'][^:\n]{0,99}?)[ \t]*:(?:[ \t]|$)")
_CLOSING = re.compile(rf"^{FENCE}[ \t]*(?:\n|\Z)", re.MULTILINE)
_TICKS = re.compile(r"`{3,}")
_WIKI_LINK = re.compile(r"(?P<embed>!?)\[\[(?P<inner>[^\[\]\n]{1,1400})\]\]")


def is_note(path: Path) -> bool:
    """Whether a file of a folder is a note, by its path below the folder."""
    is_hidden = any(part.startswith(".") and part not in (".", "..") for part in path.parts)
    return not is_hidden and path.name.casefold().endswith(_SUFFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note as the document it becomes; `remarks`: what of it could not be read as it is."""

    path: str
    content: Content
    remarks: tuple[Odd, ...] = ()

    @property
    def digest(self) -> str:
        """The same as long as the document would say the same."""
        said = self.content
        return digest(self.path, said.title, said.description, said.body, said.tags)


# from names to places


class Notes:
    """The notes of one folder: where each goes, and what links mean.

    `names` are the files' paths below the folder, with slashes.
    """

    def __init__(self, names: Iterable[str], *, folder: str) -> None:
        top = memory_root().child(NOTES)
        self.root = top.child(_slug(folder, top))
        self._paths = _places(sorted(set(names)), self.root)
        self._by_name: dict[str, list[str]] = {}
        self._titles: dict[str, str] = {}
        for name in self._paths:
            self._by_name.setdefault(_link_key(name.rpartition("/")[2]), []).append(name)
        self._by_path = {_link_key(name): name for name in reversed(self._paths)}

    def path(self, name: str) -> str:
        return self._paths[name].text

    def learn(self, name: str, data: bytes) -> None:
        """Look for other names that links may know the note by: its title and its aliases."""
        read = _read(data)
        for known in (read.texts.get("title", ""), *read.aliases):
            if known.strip():
                self._titles.setdefault(_link_key(known), name)

    def note(self, name: str, data: bytes) -> Note | Odd:
        """The document of a note; an Odd: it is no text."""
        if len(data) > NOTE_BYTES_MAX:
            return too_large("a note")
        read = _read(data)
        if "\0" in read.body:
            return broken("a note that is no text")
        body = self._linked(read.body, name)
        title = read.texts.get("title") or heading(read.body) or _stem(name.rpartition("/")[2])
        content = Content(
            title=title[:TITLE_CHARS_MAX],
            description=read.texts.get("description", ""),
            body=body + _block("\n".join(read.rest).strip("\n"), body),
            tags=tuple(read.tags),
        )
        return Note(path=self.path(name), content=content, remarks=tuple(read.remarks))

    def _linked(self, body: str, name: str) -> str:
        """The body with its links to notes as links to their documents; code stays as it is."""
        # Of the same length, and each a path that can be read: so the one who knows what is code
        # finds the links of others too.
        masked = _WIKI_LINK.sub(_masked, body)
        pieces, at = [], 0
        for link in find_links(masked):
            start = link.start - (link.start > 0 and body[link.start - 1] == "!")
            match = _WIKI_LINK.match(body, start)
            if match is not None and match.end() == link.end:
                pieces += [body[at:start], self._link(match, name)]
                at = link.end
        return "".join([*pieces, body[at:]])

    def _link(self, match: re.Match[str], name: str) -> str:
        wanted, _, alias = match["inner"].partition("|")
        target, _, part = wanted.strip().partition("#")
        target, alias = target.strip().removesuffix("\\"), alias.replace("|", " ").strip()
        if not target:
            return match[0]  # a place in the note itself
        found = self._resolved(target, name)
        if found is None and _is_attachment(target):
            return f"{match['embed']}[{alias or target}](<{target}>)"
        path = self._paths[found] if found is not None else self._unwritten(target)
        if path is None:
            return match[0]
        shown = alias or (f"{target} ({part.lstrip('^')})" if part else target)
        return f"{match['embed']}[[{path}|{shown[:_ALIAS_CHARS_MAX]}]]"

    def _resolved(self, target: str, name: str) -> str | None:
        """The note that is meant: by its path, seen from here too, by its name, or by a title."""
        from_here = normpath(f"{name.rpartition('/')[0] or '.'}/{target}")
        for key in (_link_key(from_here), _link_key(target)):
            if key in self._by_path:
                return self._by_path[key]
        found = self._by_name.get(_link_key(target), [])
        if found:
            return min(found, key=lambda each: (each.count("/"), each))
        return self._titles.get(_link_key(target))

    def _unwritten(self, target: str) -> DocumentPath | None:
        """Where a note would stand that is not written yet."""
        return next(iter(_places([f"{_stem(target)}.md"], self.root).values()), None)


def _masked(match: re.Match[str]) -> str:
    return f"{match['embed']}[[{'x'.ljust(len(match['inner']))}]]"


def _stem(name: str) -> str:
    """A note's name without what its file ends with."""
    lower = name.casefold()
    ending = next((suffix for suffix in _SUFFIXES if lower.endswith(suffix)), "")
    return name[: len(name) - len(ending)] or name


def _link_key(name: str) -> str:
    return slug_key("/".join(part for part in _stem(name).split("/") if part not in ("", ".")))


def _is_attachment(target: str) -> bool:
    return re.search(r"\.[A-Za-z0-9]{1,5}$", target) is not None and "<" not in target


def _places(names: Sequence[str], root: DocumentPath) -> dict[str, DocumentPath]:
    """A path of its own for each name. Names that can stay as they are come first."""
    wanted = {name: _place(name, root) for name in names}
    exact = [name for name in names if wanted[name].slugs[len(root.slugs) :] == _parts(name)]
    taken: set[str] = set()
    paths: dict[str, DocumentPath] = {}
    for name in (*exact, *names):
        if name not in paths:
            paths[name] = _free(wanted[name], name, root, taken)
            taken.add(paths[name].key)
    return {name: paths[name] for name in names}


def _free(path: DocumentPath, name: str, root: DocumentPath, taken: set[str]) -> DocumentPath:
    tries = 0
    while path.key in taken:
        path = _told_apart(path, f"{name}{tries or ''}", root)
        tries += 1
    return path


def _parts(name: str) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", _stem(name)).split("/"))


def _place(name: str, root: DocumentPath) -> DocumentPath:
    path, parts = root, [part for part in _parts(name) if part] or ["note"]
    try:
        for part in parts:
            path = path.child(_slug(part, root))
    except InvalidPath:  # too deep, or too long in all
        return _told_apart(root.child(_slug(parts[-1], root)), name, root)
    return path


def _told_apart(path: DocumentPath, name: str, root: DocumentPath) -> DocumentPath:
    tail = f" {digest(name)[:_TAIL_CHARS]}"
    try:
        return _child(path.parent or root, path.slug, tail)
    except InvalidPath:
        return root.child(f"note{tail}")


def _child(parent: DocumentPath, slug: str, tail: str) -> DocumentPath:
    """A child of this name with this ending, shortened until it goes."""
    room = SLUG_CHARS_MAX - len(tail)
    while room > 0 and not _is_slug(slug[:room].rstrip(" .-") + tail, parent):
        room //= 2
    return parent.child((slug[:room].rstrip(" .-") if room else "note") + tail)


def _slug(name: str, parent: DocumentPath) -> str:
    """A name as a path can have it: as it is where that goes, else without what does not."""
    name = unicodedata.normalize("NFC", name)
    if _is_slug(name, parent):
        return name
    allowed = "".join(c if c == " " or _is_slug(f"a{c}a", parent) else " " for c in name)
    cleaned = " ".join(allowed.split()).strip(" .-")
    if _is_slug(cleaned, parent):
        return cleaned
    return _child(parent, cleaned, f" {digest(name)[:_TAIL_CHARS]}").slug


def _is_slug(text: str, parent: DocumentPath) -> bool:
    try:
        parent.child(text)
    except InvalidPath:
        return False
    return True


# what a file says


@dataclass(slots=True, kw_only=True)
class _Read:
    """What a file says; `rest`: lines of front matter that no document has a place for."""

    body: str
    remarks: list[Odd]
    texts: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)

    def take(self, field: _Field) -> bool | None:
        """Whether all of a field has its place; none: it could not be read."""
        if field.key in _TEXTS and field.key not in self.texts:
            said, chars_max = field.text(), _TEXTS[field.key]
            if said is None:
                return None
            self.texts[field.key] = " ".join(said.split())[:chars_max].strip()
            return len(said) <= chars_max
        if field.key in _TAGS:
            named = field.texts()
            if named is None:
                return None
            cleaned = [tag.strip().lstrip("#") for tag in named]
            wanted = [tag for tag in cleaned if tag and len(tag) <= TAG_CHARS_MAX]
            self.tags = list(dict.fromkeys([*self.tags, *wanted]))[:TAGS_MAX]
            return set(cleaned) - {""} <= set(self.tags)
        if field.key in _ALIASES:
            self.aliases += [*(field.texts() or ()), field.text() or ""]
        return False


def _read(data: bytes) -> _Read:
    remarks = []
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        remarks.append(broken(NOT_UTF8))
        text = data.decode(encoding, errors="replace")
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    head, _, rest = text.partition("\n")
    closing = _CLOSING.search(rest) if head.rstrip() == FENCE else None
    fields = None if closing is None else _fields(rest[: closing.start()])
    if closing is None or fields is None:  # a line across the page, and no front matter
        return _Read(body=text.removesuffix("\n"), remarks=remarks)
    body = rest[closing.end() :].removeprefix("\n").removesuffix("\n")
    read = _Read(body=body, remarks=remarks)
    taken = [read.take(field) for field in fields]
    read.rest = [each.raw for each, is_whole in zip(fields, taken, strict=True) if not is_whole]
    if None in taken:
        remarks.append(not_understood("front matter"))
    return read


@dataclass(slots=True, kw_only=True)
class _Field:
    """One field of front matter: its lines as they stand there, and where its name ends."""

    key: str
    lines: list[str]
    key_chars: int = 0

    @property
    def raw(self) -> str:
        return "\n".join(self.lines)

    def as_front(self, key: str) -> Front | None:
        """What is said, read as another field; none: as that it cannot be read."""
        text = f"{FENCE}\n{key}{self.raw[self.key_chars :]}\n{FENCE}\n"
        try:
            return parse(text.encode(errors="replace")).front
        except InvalidValue:
            return None

    def text(self) -> str | None:
        front = self.as_front("description")
        return None if front is None or front.unknown else front.description

    def texts(self) -> tuple[str, ...] | None:
        """A list; also one that is written as a text, with commas or blanks."""
        front = self.as_front("tags")
        if front is not None and not front.unknown:
            return front.tags
        text = self.text()
        return None if text is None else tuple(re.split(r"[,\s]+", text))


def _fields(text: str) -> list[_Field] | None:
    """The fields of front matter, in order; none: it is no list of names and values."""
    fields: list[_Field] = []
    for line in text.removesuffix("\n").split("\n"):
        match = _KEY.match(line)
        if match is not None:
            key = match["key"].casefold()
            fields.append(_Field(key=key, lines=[line], key_chars=match.end("key")))
        elif not line.strip() or line.startswith("#"):
            fields.append(_Field(key="", lines=[line]))
        elif fields and line.startswith((" ", "\t", "-", "]", "}")):
            fields[-1].lines.append(line)
        else:
            return None
    return fields


def _block(rest: str, body: str) -> str:
    """What no document has a place for, as code at the end of the body."""
    if not rest:
        return ""
    ticks = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(rest))])
    gap = "\n\n" if body else ""
    return f"{gap}{ticks}yaml\n{rest}\n{ticks}"


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
        progress: Callable[[ImportProgress], None] = lambda _progress: None,
    ) -> None:
        self._memory = memory
        self._space = space
        self._documents = memory.space(space).documents
        self._is_dry = is_dry
        self._progress = progress
        self.report = ImportReport(source=MARKDOWN)

    def run(self, folder: Path) -> ImportReport:
        """Read every note below a folder. NotFound: there is no such folder."""
        if not folder.is_dir():
            raise NotFound(f"there is no folder {folder}: name the one that the notes are in")
        root = folder.resolve()
        found = find_files(is_note, [root], self._tell)
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
        read, made = self.report.bytes_read, self.report.documents
        self._progress(
            ImportProgress(
                files_done=done, files=files, bytes_done=read, bytes_all=size, records=made
            )
        )

    def _read(self, file: LogFile, *, is_told: bool = False) -> bytes | None:
        try:
            with open_regular(file.path) as stream:
                data = stream.read(NOTE_BYTES_MAX + 1)
        except OSError:
            if is_told:
                odd = unreadable("the file cannot be read")
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
        cursor = self._memory.store.imports.cursor(self._space, MARKDOWN, place)
        known: dict[str, Any] = {} if cursor is None else json.loads(cursor.memo)
        document = self._documents.find(note.path)
        is_same = document is not None and document.content == note.content
        if is_same or known.get("digest") == note.digest:
            self.report.files_unchanged += 1
            if not known and document is not None:
                self._note(place, note, document)
        elif document is None and not known:
            self._write(note, 0, place)
        elif document is not None and not known:
            self.report.left_out["another document has its path"] += 1
        elif document is None or document.id != known["document_id"]:
            self.report.left_out["the document was deleted or moved since"] += 1
        elif document.version != known["version"]:
            self.report.left_out["both the note and the document were changed since"] += 1
        else:
            self._write(note, document.version, place)

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
        except (InvalidValue, StaleVersion) as error:
            is_large = isinstance(error, TooLarge)
            odd = too_large("a note") if is_large else broken(type(error).__name__)
            self.report.add_odd(place, odd)
            return
        self.report.documents += 1
        self._note(place, note, document)

    def _note(self, place: str, note: Note, document: Document) -> None:
        """Remember what the note came to, and which version that made."""
        if self._is_dry:
            return
        made = {"digest": note.digest, "document_id": document.id, "version": document.version}
        cursor = Cursor(source=MARKDOWN, place=place, memo=json.dumps(made))
        now = self._memory.clock.now()
        self._memory.store.imports.note(self._space, (), cursor, now)
