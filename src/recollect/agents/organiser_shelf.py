"""The pages an organiser works on: found, opened once, and written back where they have changed.

Owns where topics stand and what a page may hold. Only pages below the memory root that are not
consolidation's are ever opened, wherever a path leads; a page that somebody has moved is found
where it stands now. What is written rests on the sources of the lines that stand there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from itertools import islice

from recollect.agents.organiser_lines import read_id_words
from recollect.agents.organiser_open import UNTITLED, OpenPage, key_of
from recollect.document import Document, Node, ReferenceKind
from recollect.documents.changeset import Changeset
from recollect.documents.links import find_links, unlinked
from recollect.documents.paths import DocumentPath, memory_root, read_path
from recollect.documents.scope import is_of_consolidation
from recollect.errors import DocumentReferenced, InvalidPath, TooLarge
from recollect.session import LIST_MAX
from recollect.topics.claims import Claim
from recollect.topics.directory import Entity, TopicKind
from recollect.topics.grouping import TITLES, Topic
from recollect.topics.subjects import Known

REASON = "organised"
KNOWN_MAX = 2000  # people, and projects
INDEX_LINES_MAX = 500
TERMS_MAX = 40  # of one search
TELLING_CHARS_MIN = 8
ALIAS_CHARS_MAX = 100
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
PLAIN = frozenset({*TITLES.values(), *FOLDERS.values(), *_DESCRIPTIONS.values()})
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


def link_to(path: str, name: str) -> str:
    alias = _NOT_ALIAS.sub(" ", name).strip()[:ALIAS_CHARS_MAX]
    return f"[[{path}|{alias or path.rpartition('/')[2]}]]"


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
        people = {
            node.path.rpartition("/")[2]: node.title
            for node in self._in(TopicKind.PEOPLE)
            if node.title != UNTITLED
        }
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
        if page.title in ("", UNTITLED, page.where.rpartition("/")[2]):
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
        abandoned = [page for page in self._each() if page.is_abandoned and page not in gone]
        for page in abandoned:
            self._unlist(page)
        for kind, title in FOLDERS.items():
            self._index(kind, title, gone)
        for page in abandoned:
            page.disown(PLAIN)
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
        """Have no line of ours lead to a page, by whatever path it does."""
        for page in self._referring(gone):
            rows = self._rows_to(gone, page.page.own_rows() + self._index_rows(page))
            page.page.edit_rows(partial(_without, leads=self._leading_to(gone)), rows)

    def _unlist(self, abandoned: OpenPage) -> None:
        """Have no list of ours name a page; what is said of it elsewhere still leads there."""
        for page in self._referring(abandoned):
            lists = [row for row in page.page.own_rows() if _INDEX_LINE.fullmatch(row)]
            rows = self._rows_to(abandoned, lists + self._index_rows(page))
            page.page.edit_rows(lambda _row: None, rows)

    def _referring(self, page: OpenPage) -> Iterator[OpenPage]:
        """The pages of ours whose text leads to one."""
        links = self._changeset.links(page.where).incoming
        for path in sorted({each.source for each in links if each.kind is ReferenceKind.BODY}):
            document = self._find(path)
            if document is not None and document.path != page.where:
                yield self._opened_as(document)

    def _index_rows(self, page: OpenPage) -> list[str]:
        """The lines of a page that lists people or projects, wherever that stands now."""
        indexes = [self._find(_folder(kind)) for kind in FOLDERS]
        if page.where not in {each.path for each in indexes if each is not None}:
            return []
        return [row for row in page.page.body().split("\n") if _INDEX_LINE.fullmatch(row)]

    def _rows_to(self, target: OpenPage, rows: Sequence[str]) -> list[str]:
        """Those of some lines that lead to a page; one that has moved, also by where it stood."""
        found = [row for row in rows if _links(row, lambda path: target.is_at(path.key))]
        return found or [row for row in rows if _links(row, self._leading_to(target))]

    def _leading_to(self, target: OpenPage) -> Callable[[DocumentPath], bool]:
        def leads(path: DocumentPath) -> bool:
            if target.is_at(path.key):
                return True
            found = self._find(path.text)
            return found is not None and key_of(found.path) == key_of(target.where)

        return leads

    def _index(self, kind: TopicKind, title: str, gone: Collection[OpenPage]) -> None:
        """The page above people, or projects, lists those that have one."""
        folder = read_path(_folder(kind))
        new = {
            page.path: page.title
            for page in self._each()
            if page.has_changed
            and page not in gone
            and not page.is_abandoned
            and read_path(page.where).parent == folder
        }
        if not new:
            return
        there = {node.path: node.title for node in self._in(kind) if node.title != UNTITLED}
        wanted = {**there, **new}
        for page in self._each():
            if page in gone or page.is_abandoned:
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
                expected_version=page.version,
            )
        except (InvalidPath, TooLarge):
            self.skipped.append(page.where)
            return ""
        page.version = made.version
        return made.path

    def _deleted(self, page: OpenPage) -> str:
        try:
            made = self._changeset.delete(page.where, reason=REASON, expected_version=page.version)
        except DocumentReferenced:  # somebody's own page names it, or there are others below it
            page.disown(PLAIN)
            return self._written(page)
        return made.path


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


def _links(row: str, leads: Callable[[DocumentPath], bool]) -> bool:
    return any(leads(link.path) for link in find_links(row))


def _without(row: str, leads: Callable[[DocumentPath], bool]) -> str | None:
    """A line without its links to a page that goes; none: it was nothing else."""
    return None if _INDEX_LINE.fullmatch(row) else unlinked(row, leads)
