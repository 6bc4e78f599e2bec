"""A page that an organiser has opened: what it says, whose words those are, and what it rests on.

A page is written back as the version it was opened in; whoever was faster is not written over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from recollect.agents.organiser_page import Page
from recollect.document import Author, AuthorKind, Document, DocumentEvent, Version
from recollect.documents.changeset import Changeset
from recollect.documents.checking import FACTS_MAX, SOURCES_MAX
from recollect.documents.paths import read_path
from recollect.knowledge import Source
from recollect.topics.claims import Claim
from recollect.topics.subjects import page_slug

VERSIONS_READ_MAX = 50  # of a page that somebody else has changed
KEYS_KEPT = 4096  # of the paths asked for last
UNTITLED = "untitled"  # what a page without a title is called
_ABOUT = re.compile(r"(?:What is known of .+|Project at .+|[^.]+'s [^.]+)\.")  # as agents say it


@lru_cache(maxsize=KEYS_KEPT)
def key_of(path: str) -> str:
    return read_path(path).key


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
    has_lost: bool = False  # claims that were withdrawn
    version: int = field(init=False)  # what it is replaced as; 0: there must be none
    _claimed: dict[tuple[str, int, int], Source] = field(default_factory=dict)
    _history: list[Version] | None = None

    def __post_init__(self) -> None:
        if self.document is not None:
            self.title, self.description = self.document.title, self.document.description
        self.version = 0 if self.document is None else self.document.version
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

    @property
    def is_abandoned(self) -> bool:
        """Whether nothing is left here of what agents filed, and something was."""
        return self.has_lost and not self.page.has_own

    def disown(self, plain: Collection[str]) -> None:
        """Take off what agents called it, and said that it is about, unless it is plain."""
        named = self.title.partition(",")[0]  # before the month, where it is that of one
        is_agents = page_slug(named) in self.where.split("/")
        if named not in plain and not self._is_persons(lambda version: version.title, is_agents):
            self.title = ""
        about = self.description
        is_agents = _ABOUT.fullmatch(about) is not None
        if about not in plain and not self._is_persons(lambda each: each.description, is_agents):
            self.description = ""

    def _is_persons(self, read: Callable[[Version], str], is_agents: bool) -> bool:
        """Whether a person has said what the newest version says of it.

        Where the versions are gone that would show it, what looks like an agent's is one's.
        """
        versions = self._newest()
        for newer, older in pairwise(versions):
            if read(newer) != read(older):
                return self._is_somebody(newer.author)
        first = versions[-1] if versions else None
        if first is None or not self._is_somebody(first.author):
            return False
        return first.event is DocumentEvent.CREATED or not is_agents

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
            found = self._newest()
            is_shared = any(self._is_somebody(each.author) for each in found)
            self._history = found if is_shared else []
        return self._history

    def _newest(self) -> list[Version]:
        found = self.document and self.changeset.history(self.document.id, VERSIONS_READ_MAX)
        return found or []

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


def _reference(source: Source) -> tuple[str, int, int]:
    return source.session_id, source.seq, source.seq_to
