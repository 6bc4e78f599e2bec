"""The pages an organiser works on: found, opened once, and written back where they have changed.

Owns where topics stand and what a page may hold. Only pages below the memory root that are not
consolidation's are ever opened, wherever a path leads; a page that somebody has moved is found
where it stands now. What is written rests on the sources of the lines that stand there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from functools import lru_cache, partial
from itertools import islice, pairwise

from recollect.agents.organiser_lines import read_id_words
from recollect.agents.organiser_page import Page
from recollect.document import Author, AuthorKind, Document, Node, ReferenceKind, Version
from recollect.documents.changeset import Changeset
from recollect.documents.checking import FACTS_MAX, SOURCES_MAX
from recollect.documents.links import find_links, unlinked
from recollect.documents.paths import DocumentPath, memory_root, read_path
from recollect.documents.scope import is_of_consolidation
from recollect.errors import DocumentReferenced, InvalidPath, TooLarge
from recollect.knowledge import Source
from recollect.session import LIST_MAX
from recollect.topics.claims import Claim
from recollect.topics.directory import Entity, TopicKind
from recollect.topics.grouping import TITLES, Topic
from recollect.topics.subjects import Known

REASON = "organised"
VERSIONS_READ_MAX = 50  # of a page that somebody else has changed
KNOWN_MAX = 2000  # people, and projects
INDEX_LINES_MAX = 500
TERMS_MAX = 40  # of one search
TELLING_CHARS_MIN = 8
ALIAS_CHARS_MAX = 100
KEYS_KEPT = 4096  # of the paths asked for last
PLACE_CHARS_MAX = 500
_ROUNDS_MAX = 3  # of deleting what an empty page leaves empty

FOLDERS = {TopicKind.PEOPLE: "People", TopicKind.PROJECTS: "Projects"}
_DESCRIPTIONS = {
    TopicKind.PREFERENCES: "What the user likes, wants and has laid down.",
    TopicKind.DECISIONS: "What was decided, and when.",
    TopicKind.OPEN_THREADS: "Commitments, goals and questions that are still open.",
    TopicKind.PROFILE: "What is known of the user.",
    TopicKind.OTHER: "What belongs to no other page.",
}
_MONTH = re.compile(r"\d{4}-\d\d(?:-\d{1,3})?")
_PLACE = re.compile(r"Project at (?P<place>.+)\.")
_NOT_ALIAS = re.compile(r"[\[\]|\s]+")
_INDEX_LINE = re.compile(r"- \[\[(?P<path>[^\[\]|]+)\|[^\[\]|]*\]\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one run takes, and one page holds; what is more goes to pages of a month."""

    claims_max: int = 500
    page_claims_max: int = 150
    page_bytes_max: int = 49_152


LIMITS = Limits()


def path_of(kind: TopicKind, slug: str) -> str:
    """Where a topic stands."""
    return f"~/memory/{kind.value}/{slug}" if kind in FOLDERS else f"~/memory/{slug}"


@lru_cache(maxsize=KEYS_KEPT)
def key_of(path: str) -> str:
    return read_path(path).key


def link_to(path: str, name: str) -> str:
    alias = _NOT_ALIAS.sub(" ", name).strip()[:ALIAS_CHARS_MAX]
    return f"[[{path}|{alias or path.rpartition('/')[2]}]]"


@dataclass(slots=True, kw_only=True, eq=False)
class OpenPage:
    """A page at work. `document` none: there is none yet."""

    path: str
    changeset: Changeset
    document: Document | None = None
    title: str = ""
    description: str = ""
    page: Page = field(init=False)
    said: set[str] = field(init=False)  # by people, when it was opened
    _claimed: dict[tuple[str, int, int], Source] = field(default_factory=dict)
    _history: list[Version] | None = None

    def __post_init__(self) -> None:
        if self.document is not None:
            self.title, self.description = self.document.title, self.document.description
        self.page = Page(self.body_before)
        self.said = self.page.hand_written()
        self.page.drop_unused_notes()

    def is_at(self, key: str) -> bool:
        return key in (key_of(self.path), key_of(self.where))

    @property
    def where(self) -> str:
        return self.path if self.document is None else self.document.path

    @property
    def body_before(self) -> str:
        return "" if self.document is None else self.document.body

    @property
    def has_changed(self) -> bool:
        if self.document is None:
            return not self.page.is_blank
        return (self.page.body(), self.title, self.description) != (
            self.document.body,
            self.document.title,
            self.document.description,
        )

    @property
    def is_emptied(self) -> bool:
        return bool(self.body_before.strip()) and self.page.is_blank

    def grounds(self, claim: Claim) -> None:
        """What it rests on from now on, with the words."""
        for source in claim.sources:
            self._claimed[_reference(source)] = source

    def was_taken_out(self, label: str) -> bool:
        """Whether somebody has removed a line that stood here; then it stays out."""
        return self._was_dropped(f" [^{label}]")  # a note has no blank before its label

    def is_link_unwanted(self, path: str) -> bool:
        return self._was_dropped(f"[[{path}|")

    def _was_dropped(self, words: str) -> bool:
        versions = self._versions()
        for newer, older in pairwise(versions):
            if words in older.body:
                return self._is_somebody(newer.author)
        return False

    def _is_somebody(self, author: Author) -> bool:
        """Whether it is a person, and another one than whom this is done for."""
        return author.kind is AuthorKind.PERSON and author != self.changeset.holder.author

    def _versions(self) -> list[Version]:
        """The newest versions, if a person has made one of them."""
        if self._history is None:
            found = self.document and self.changeset.history(self.document.id, VERSIONS_READ_MAX)
            is_shared = any(self._is_somebody(each.author) for each in found or ())
            self._history = found if found and is_shared else []
        return self._history

    def sources(self) -> list[Source]:
        """What the lines rest on, and what the page rested on before for other reasons."""
        before = () if self.document is None else self.document.sources
        quoted = {_reference(each): each for each in before} | self._claimed
        standing = {
            _reference(each): each for note in self.page.notes().values() for each in note.sources
        }
        lost = self._references_before() - standing.keys()
        kept = {ref: quoted.get(ref, each) for ref, each in standing.items()}
        others = {ref: each for ref, each in quoted.items() if ref not in lost}
        return list((kept | others).values())[:SOURCES_MAX]

    def facts(self) -> list[str]:
        before = () if self.document is None else self.document.facts
        named = {note.fact_id for note in Page(self.body_before).notes().values()}
        standing = [note.fact_id for note in self.page.notes().values() if note.fact_id]
        others = [fact_id for fact_id in before if fact_id not in named]
        return list(dict.fromkeys([*standing, *others]))[:FACTS_MAX]

    def _references_before(self) -> set[tuple[str, int, int]]:
        notes = Page(self.body_before).notes().values()
        return {_reference(each) for note in notes for each in note.sources}


class Shelf:
    """All pages of a run."""

    def __init__(self, changeset: Changeset, limits: Limits) -> None:
        self._changeset = changeset
        self._limits = limits
        self._pages: dict[str, OpenPage] = {}  # by the key of where they stand
        self._families: dict[str, list[OpenPage]] = {}
        self.skipped: list[str] = []

    def known(self) -> Known:
        """Who and what has a page."""
        people = {node.path.rpartition("/")[2]: node.title for node in self._in(TopicKind.PEOPLE)}
        projects = {}
        for node in self._in(TopicKind.PROJECTS):
            slug = node.path.rpartition("/")[2]
            told = _PLACE.fullmatch(node.description)
            projects[slug] = told["place"] if told else slug
        return Known(people=people, projects=projects)

    def _in(self, kind: TopicKind) -> list[Node]:
        return list(islice(self._below(_folder(kind)), KNOWN_MAX))

    def _below(self, path: str) -> Iterator[Node]:
        """The pages directly below one."""
        found, after = self._find(path), None
        if found is None:
            return
        top = found.path
        while page := self._changeset.tree(top, depth=1, limit=LIST_MAX, after=after):
            yield from (node for node in page if node.path != top)
            after = page[-1].path

    def _find(self, path: str) -> Document | None:
        found = self._changeset.find(path)
        return found if found is not None and _is_ours(read_path(found.path)) else None

    # opening

    def family(self, topic: Topic) -> list[OpenPage]:
        """The page of a topic, and those of months beside it."""
        base = self._described(topic.kind, topic.slug, topic.name, topic.about)
        return self._family(base)

    def family_of(self, page: OpenPage) -> list[OpenPage]:
        """A page with those beside which it stands."""
        above, _, slug = page.where.rpartition("/")
        if not _MONTH.fullmatch(slug):
            return self._family(page)
        base = self._pages.get(key_of(above))
        document = self._find(above) if base is None else None
        return self._family(base or (self._opened_as(document) if document else page))

    def _family(self, base: OpenPage) -> list[OpenPage]:
        if base.path not in self._families:
            nodes = self._below(base.path) if base.document is not None else ()
            months = [n.path for n in nodes if _MONTH.fullmatch(n.path.rpartition("/")[2])]
            self._families[base.path] = [base, *(self._month(base, path) for path in months)]
        return self._families[base.path]

    def opened(self, kind: TopicKind) -> list[OpenPage]:
        """The pages of a plain topic, if there are any."""
        path = path_of(kind, kind.value)
        if self._find(path) is None and key_of(path) not in self._pages:
            return []
        return self._family(self._described(kind, kind.value, TITLES[kind], ""))

    def expect_project(self, project: Entity) -> None:
        """Open the page of a project that is referred to."""
        self._described(project.kind, project.slug, project.name, project.place)

    def _described(self, kind: TopicKind, slug: str, name: str, about: str) -> OpenPage:
        page = self._open(path_of(kind, slug), name, _generic(kind, name))
        if about and page.description in ("", _generic(kind, name)):
            page.description = _specific(kind, about, name)
        return page

    def _month(self, base: OpenPage, path: str) -> OpenPage:
        title = f"{base.title}, {path.rpartition('/')[2]}"
        return self._open(path, title, base.description)

    def _open(self, path: str, title: str, description: str) -> OpenPage:
        """A page, once; what it is called and about stays, where somebody has said so."""
        key = key_of(path)
        page = self._pages.get(key)
        if page is None:
            document = self._find(path)
            page = None if document is None else self._pages.get(key_of(document.path))
            page = page or OpenPage(path=path, changeset=self._changeset, document=document)
            self._pages[key] = self._pages[key_of(page.where)] = page
        if page.title in ("", page.where.rpartition("/")[2]):
            page.title = title
        page.description = page.description or description
        return page

    def _opened_as(self, document: Document) -> OpenPage:
        """A page that was found by what it says: as it is, whatever it is about."""
        return self._open(document.path, document.title, document.description)

    def naming_ids(self, ids: Collection[str]) -> list[OpenPage]:
        """Pages whose notes name a fact or a session."""
        words = sorted({read_id_words(each) for each in ids} - {""})
        return self._found(words)

    def having_lines(self, labels: Sequence[str]) -> dict[str, OpenPage]:
        """Where lines stand already, wherever that is."""
        standing: dict[str, OpenPage] = {}
        wanted = set(labels)
        for page in self._found(sorted(wanted)):
            for label in page.page.lines().keys() & wanted:
                standing.setdefault(label, page)
        return standing

    def _found(self, words: Sequence[str]) -> list[OpenPage]:
        found: dict[str, Document] = {}
        # A search leaves common words out, unless it has no others.
        queries = [word for word in words if len(word) < TELLING_CHARS_MIN]
        telling = [word for word in words if len(word) >= TELLING_CHARS_MIN]
        queries += [
            " ".join(telling[start : start + TERMS_MAX])
            for start in range(0, len(telling), TERMS_MAX)
        ]
        for query in queries:
            for document in self._changeset.search(query, LIST_MAX, below="~/memory"):
                if _is_ours(read_path(document.path)):
                    found[document.path] = document
        return [self._opened_as(found[path]) for path in sorted(found)]

    # room

    def with_room(self, topic: Topic, claim: Claim) -> OpenPage:
        """The topic's page while it has room, then one per month."""
        family = self.family(topic)
        base = family[0]
        if self._has_room(base, claim):
            return base
        month = claim.at.astimezone(UTC).date().isoformat()[:7]
        for name in (month, *(f"{month}-{number}" for number in range(2, 1000))):
            page = self._month(base, f"{base.where}/{name}")
            if self._has_room(page, claim):
                if page not in family:
                    family.append(page)
                self.refer(base.path, page)
                return page
        return base

    def _has_room(self, page: OpenPage, claim: Claim) -> bool:
        if page.page.is_open_ended:
            return False
        if page.page.is_blank:
            return True
        size = len(page.page.body().encode(errors="replace"))
        more = 2 * len(claim.text.encode(errors="replace")) + 400  # the note, and links
        fits = size + more <= self._limits.page_bytes_max
        return fits and len(page.page.lines()) < self._limits.page_claims_max

    # links

    def is_there(self, path: str) -> bool:
        """Whether there is a page, or will be."""
        page = self._pages.get(key_of(path))
        if page is None:
            return self._find(path) is not None
        return page.document is not None or not page.page.is_blank

    def refer(self, path: str, page: OpenPage) -> None:
        """Have the page at a path say where it is named."""
        found = self._pages.get(key_of(path))
        if found is None:
            document = self._find(path)
            if document is None:
                return
            found = self._opened_as(document)
        is_known = any(page.is_at(link.path.key) for link in find_links(found.page.body()))
        if is_known or found.page.is_open_ended or found.is_link_unwanted(page.where):
            return
        found.page.refer(link_to(page.where, page.title))

    # writing

    def write(self) -> tuple[str, ...]:
        """Prepare every change; the paths of what has changed."""
        gone = self._emptied()
        for kind, title in FOLDERS.items():
            self._index(kind, title, gone)
        # From the top, so that what stands above a page is not made for that page's reasons.
        kept = sorted((page for page in self._each() if page not in gone), key=_depth)
        written = {self._written(page) for page in kept if page.has_changed}
        for page in gone:
            if "[[" in page.body_before:
                self._written(page)  # what goes with it is not referred to any more
        for page in sorted(gone, key=_depth, reverse=True):
            written.add(self._deleted(page))
        return tuple(sorted(written - {""}))

    def _each(self) -> list[OpenPage]:
        return list({id(page): page for page in self._pages.values()}.values())

    def _emptied(self) -> list[OpenPage]:
        """Pages that have lost all they said; nothing of ours leads to them any more."""
        gone: list[OpenPage] = []
        for _ in range(_ROUNDS_MAX):
            news = [page for page in self._each() if page.is_emptied and page not in gone]
            for page in news:
                self._unlink(page)
            gone += news
        return gone

    def _unlink(self, gone: OpenPage) -> None:
        links = self._changeset.links(gone.where).incoming
        for path in sorted({each.source for each in links if each.kind is ReferenceKind.BODY}):
            document = self._find(path)
            if document is None or document.path == gone.where:
                continue
            page = self._opened_as(document)
            rows = page.page.own_rows()
            if path in {_folder(kind) for kind in FOLDERS}:
                rows += [row for row in page.page.body().split("\n") if _INDEX_LINE.fullmatch(row)]
            mine = [row for row in rows if _links(row, gone)]
            page.page.edit_rows(partial(_without, gone=gone), mine)

    def _index(self, kind: TopicKind, title: str, gone: Collection[OpenPage]) -> None:
        """The page above people, or projects, lists those that have one."""
        folder = read_path(_folder(kind))
        new = {
            page.path: page.title
            for page in self._each()
            if page.has_changed and page not in gone and read_path(page.where).parent == folder
        }
        if not new:
            return
        there = {node.path: node.title for node in self._in(kind)}
        wanted = {**there, **new}
        for page in gone:
            wanted.pop(page.where, None)
        index = self._open(folder.text, title, f"{title} that are known, each on a page.")
        if index.page.is_open_ended:
            return
        listed = {link.path.key for link in find_links(index.page.body())}
        for path in sorted(wanted)[:INDEX_LINES_MAX]:
            if key_of(path) not in listed and not index.is_link_unwanted(path):
                index.page.listed(f"- {link_to(path, wanted[path])}")

    def _written(self, page: OpenPage) -> str:
        try:
            made = self._changeset.write(
                page.where,
                page.page.body(),
                title=page.title,
                description=page.description,
                reason=REASON,
                sources=page.sources(),
                facts=page.facts(),
            )
        except (InvalidPath, TooLarge):
            self.skipped.append(page.where)
            return ""
        return made.path

    def _deleted(self, page: OpenPage) -> str:
        try:
            return self._changeset.delete(page.where, reason=REASON).path
        except DocumentReferenced:  # somebody's own page names it, or there are others below it
            return self._written(page)


def _depth(page: OpenPage) -> tuple[int, str]:
    return page.where.count("/"), page.where


def _is_ours(path: DocumentPath) -> bool:
    is_below = path.is_within(memory_root()) and path.key != memory_root().key
    return is_below and not is_of_consolidation(path)


def _folder(kind: TopicKind) -> str:
    return f"~/memory/{kind.value}"


def _generic(kind: TopicKind, name: str) -> str:
    return _DESCRIPTIONS.get(kind) or f"What is known of {name}."


def _specific(kind: TopicKind, about: str, name: str) -> str:
    if kind is TopicKind.PROJECTS:
        place = " ".join(about.split())[:PLACE_CHARS_MAX]
        return _generic(kind, name) if place == name else f"Project at {place}."
    return f"{about}."


def _reference(source: Source) -> tuple[str, int, int]:
    return source.session_id, source.seq, source.seq_to


def _links(row: str, page: OpenPage) -> bool:
    return any(page.is_at(link.path.key) for link in find_links(row))


def _without(row: str, gone: OpenPage) -> str | None:
    """A line without its links to a page that goes; none: it was nothing else."""
    if _INDEX_LINE.fullmatch(row):
        return None
    return unlinked(row, lambda path: gone.is_at(path.key))
