"""Takes off the pages of memory what memory-agents filed there: forgotten, corrected or left out.

Only what goes by rules can be told from the rest of a page: every line names its sources. Earlier
versions that say what was forgotten are removed for good; the others stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from typing import TypeVar

from recollect.agents.organiser import Holding, is_filed, nothing_holds, organise_all
from recollect.agents.organiser_lines import read_note
from recollect.agents.organiser_open import UNTITLED, OpenPage
from recollect.agents.organiser_page import OWN_SECTIONS, Page
from recollect.agents.organiser_shelf import PLAIN
from recollect.document import (
    MEMORY_WORKER,
    Author,
    AuthorKind,
    Document,
    DocumentEvent,
    Version,
)
from recollect.documents.editing import OnReferences
from recollect.documents.paths import DocumentPath, memory_root, read_path, stored_path
from recollect.documents.scope import Holder, is_of_consolidation
from recollect.documents.tree import Documents
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidValue,
    NotFound,
    Postponed,
    StaleVersion,
)
from recollect.knowledge import Fact
from recollect.session import LIST_MAX
from recollect.topics.claims import Claim, claims_of

T = TypeVar("T")

TRIES_MAX = 20  # while others change the same pages: each time somebody else was done
AGAIN_SECONDS = 1.0
VERSIONS_PAGE = 200
REASON = "a session was forgotten"
CORRECTED = "a fact was corrected"
LEFT_OUT = "a session is left out of memory"
STRIPPED = "a deleted page lost what was forgotten"
_KEPT = (CORRECTED, LEFT_OUT)  # after which earlier versions stay
_CONFLICTS = (StaleVersion, DocumentExists, DocumentReferenced, NotFound)


def withdraw(
    documents: Documents, gone: Collection[str], *, now: datetime, holding: Holding = nothing_holds
) -> tuple[str, ...]:
    """The paths of the pages that had something of sessions or facts and have it no more.

    `gone` are their ids. Postponed: others change the same pages all the time.
    """
    held, asked = _held(documents), _Asked(holding)
    _erase_history(held, frozenset(gone))  # first: it goes by versions that the rest removes
    for _ in range(TRIES_MAX):
        changeset = held.changeset(REASON)
        try:
            written = organise_all(changeset, (), now=now, gone=gone, holding=asked).written
            if not written:
                return ()
            paths = {*written, *(edit.path for edit in changeset.edits)}
            before = {page.id: page for path in paths if (page := held.find(path)) is not None}
            changed = changeset.commit()
        except _CONFLICTS:
            continue
        _erase(held, before, changed)
        asked.withdraw_vanished(documents, now)
        return written
    told = "the pages of memory are changed by others all the time"
    raise Postponed(told, delay_seconds=AGAIN_SECONDS)


def correct(
    documents: Documents,
    fact_id: str,
    read: Callable[[], Fact | None],
    *,
    now: datetime,
    holding: Holding = nothing_holds,
) -> bool:
    """Let pages that a fact was filed on say what it says now; none: nothing of it any more.

    It is read anew after the pages are written: of two who edit it at once, neither leaves there
    what the other has replaced. False: it was on none.
    """
    held, asked, was_filed = _held(documents), _Asked(holding), False
    for tries_left in range(TRIES_MAX, 0, -1):
        claims = _holding(read(), now)
        changeset = held.changeset(CORRECTED)
        try:
            if not is_filed(changeset, fact_id):
                return was_filed
            organise_all(changeset, claims, now=now, gone=(fact_id,), holding=asked)
            changeset.commit()
        except _CONFLICTS:
            if tries_left == 1:
                raise
        else:
            was_filed = True
            if _holding(read(), now) == claims:
                break
    asked.withdraw_vanished(documents, now)
    return was_filed


def refile(documents: Documents, topic: str, *, now: datetime, holding: Holding) -> None:
    """File what holds again, now that a fact is gone that was filed.

    Should others change the same pages all the time, the next session that says it files it.
    """
    held, asked = _held(documents), _Asked(holding)
    for _ in range(TRIES_MAX):
        changeset = held.changeset(CORRECTED)
        with suppress(*_CONFLICTS):
            if organise_all(changeset, asked((topic,)), now=now).written:
                changeset.commit()
            break
    asked.withdraw_vanished(documents, now)


def leave_out(
    documents: Documents,
    session_id: str,
    *,
    now: datetime,
    standing: Collection[str] = (),
    holding: Holding = nothing_holds,
) -> None:
    """Take off the pages what rests on a session alone that is not to be remembered any more.

    `standing` are its facts that stay. Should others change the same pages all the time, it is left
    to the memory-agent, who was told.
    """
    held, asked = _held(documents), _Asked(holding)
    for _ in range(TRIES_MAX):
        changeset = held.changeset(LEFT_OUT)
        with suppress(*_CONFLICTS):
            done = organise_all(
                changeset, (), now=now, gone=(session_id,), standing=standing, holding=asked
            )
            if done.written:
                changeset.commit()
            break
    asked.withdraw_vanished(documents, now)


class _Asked:
    """What holds, as it was asked for and filed; somebody may forget it before it is."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._topics: set[str] = set()
        self._facts: set[str] = set()

    def __call__(self, topics: Collection[str]) -> Sequence[Claim]:
        claims = self._holding(topics)
        self._topics |= {*topics}
        self._facts |= {claim.fact_id for claim in claims if claim.fact_id}
        return claims

    def withdraw_vanished(self, documents: Documents, now: datetime) -> None:
        """Take off the pages what does not hold any more now that it stands there."""
        if self._facts:
            gone = self._facts - {claim.fact_id for claim in self._holding(self._topics)}
            if gone:
                withdraw(documents, gone, now=now, holding=self._holding)


def _holding(fact: Fact | None, now: datetime) -> list[Claim]:
    return claims_of([fact]) if fact is not None and fact.holds(now) else []


def _held(documents: Documents) -> Documents:
    author = Author(kind=AuthorKind.AGENT, name=MEMORY_WORKER)
    return documents.held_by(Holder(author=author, root=memory_root()))


def finish(documents: Documents) -> None:
    """Remove the versions that somebody left who was killed between a page and its history.

    What something was taken off has lost the version before that, unless it is like this.
    """
    held, root = _held(documents), str(memory_root())
    for node in _every(held.tree, root, lambda node: node.path):
        page = held.find(node.path) if node.version > 1 else None
        if page is not None and page.reason == REASON:
            latest = _history(held, page.id)[:2]
            if [each.number for each in latest] == [page.version, page.version - 1]:
                _erase_page(held, latest[-1], page)
    for gone in _every(held.deleted, root, lambda gone: gone.id):
        if gone.reason == REASON:
            held.erase_deleted(gone.id)


def _every(page: Callable[..., list[T]], root: str, name: Callable[[T], str]) -> Iterable[T]:
    """What a listing has below a path, all of it before anything changes."""
    found: list[T] = []
    more = page(root, limit=LIST_MAX)
    while more:
        found += more
        more = page(root, limit=LIST_MAX, after=name(found[-1]))
    return found


def _erase(documents: Documents, before: Mapping[str, Document], changed: list[Document]) -> None:
    """Remove the versions that say what was taken off; `before` are the pages by their ids.

    What was deleted goes for good: nothing is left on it that anybody else has written.
    """
    for page in changed:
        known = before.get(page.id)
        if known is not None and page.deleted_at is not None:
            documents.erase_deleted(page.id)
        elif known is not None:
            _erase_page(documents, known, page)


def _erase_page(documents: Documents, before: Document | Version, page: Document) -> None:
    """The same of one page, which stays. One that is gone by now says nothing any more."""
    gone = _lines(before.body) - _lines(page.body)
    names = {before.title, before.description} - {page.title, page.description, ""}
    numbers = [
        each.number
        for each in _history(documents, page.id)
        if gone & _lines(each.body) or names & {each.title, each.description}
    ]
    with suppress(NotFound):
        documents.erase_versions(page.id, numbers)


def _erase_history(held: Documents, gone: frozenset[str]) -> None:
    """Remove the versions from before a change of pages that still say what is forgotten now."""
    root = str(memory_root())
    tree = _every(held.tree, root, lambda node: node.path)
    pages = [(each.id, each.path, False) for each in tree if each.version > 1]
    deleted = _every(held.deleted, root, lambda each: each.id)
    pages += [(each.id, each.path, True) for each in deleted]
    pages = [each for each in pages if not is_of_consolidation(stored_path(each[1]))]
    # A correction also changes pages that name nobody: lists of others, and links to them.
    named = {at for page, _, _ in pages for at in _corrections(_history(held, page), gone)}
    # Those that do name it last: who is stopped in between finds by them what is left.
    for is_naming in (False, True) if named else (True,):
        for page, _, is_deleted in pages:
            versions = _history(held, page)
            naming = {each.number for each in versions if not gone.isdisjoint(_named(each.body))}
            lost = _lost(versions, named)
            numbers = {each.number for each in versions if lost & _lines(each.body)}
            if bool(naming) is not is_naming or not (naming or numbers):
                continue
            if is_deleted:
                _strip_deleted(held, page, versions, gone, lost)
            with suppress(NotFound):
                held.erase_versions(page, sorted({*naming, *numbers}))


def _strip_deleted(
    held: Documents, page_id: str, versions: list[Version], gone: frozenset[str], lost: set[str]
) -> None:
    """Leave of a page that was deleted before only what people wrote there, if anything.

    What it was deleted as may say nothing of what is gone, and still be called after it.
    """
    if all(map(_is_agents, versions)) or not _left_on(Page(versions[0].body), gone, lost):
        held.erase_deleted(page_id)
        return
    if not _is_telling(versions, gone, lost):
        return
    changeset = held.changeset(STRIPPED)
    try:
        above = [each for each in read_path(versions[0].path).parents if _is_missing(held, each)]
        document = changeset.restore(page_id)
        page = OpenPage(path=document.path, changeset=changeset, document=document)
        page.has_lost = any(not gone.isdisjoint(_named(each.body)) for each in versions)
        _left_on(page.page, gone, lost)
        if page.is_abandoned:
            page.disown({*PLAIN, UNTITLED})
        if not page.has_changed and versions[0].reason != STRIPPED:
            return
        changeset.write(
            document.path, page.page.body(), title=page.title, description=page.description
        )
        for path in (document.path, *(each.text for each in reversed(above))):
            changeset.delete(path, below=True, references=OnReferences.LEAVE)
        changeset.commit()
        held.erase_versions(page_id, [each.number for each in _history(held, page_id)])
    except (*_CONFLICTS, InvalidValue):  # it cannot be brought back: then it goes for good
        held.erase_deleted(page_id)


def _is_telling(versions: list[Version], gone: frozenset[str], lost: set[str]) -> bool:
    """Whether the newest version says what is gone, or is called as one is that does."""
    newest = versions[0]
    naming = [each for each in versions if not gone.isdisjoint(_named(each.body))]
    names = {name for each in naming for name in (each.title, each.description)}
    is_called_so = bool((names - {*PLAIN, UNTITLED, ""}) & {newest.title, newest.description})
    is_begun = newest.reason == STRIPPED  # by somebody who was killed before the rest of it
    return newest in naming or bool(lost & _lines(newest.body)) or is_called_so or is_begun


def _left_on(page: Page, gone: frozenset[str], lost: set[str]) -> bool:
    """Take off a page what is gone; whether it says anything else."""
    page.withdraw(gone)
    page.edit_rows(lambda _row: None, lost)
    return not page.is_blank


def _is_missing(held: Documents, path: DocumentPath) -> bool:
    found = held.find(path.text)
    return found is None or read_path(found.path).key != path.key


def _corrections(versions: Iterable[Version], gone: frozenset[str]) -> Iterable[datetime]:
    """When a page was corrected that named, before that, what is gone."""
    for later, earlier in pairwise(versions):
        if later.reason in _KEPT and not gone.isdisjoint(_named(earlier.body)):
            yield later.at


def _lost(versions: Iterable[Version], at: Collection[datetime]) -> set[str]:
    """The lines that a page lost at these times."""
    lost: set[str] = set()
    for later, earlier in pairwise(versions):
        if later.reason in _KEPT and later.at in at:
            is_left = later.event is not DocumentEvent.DELETED
            lost |= _lines(earlier.body) - (_lines(later.body) if is_left else set())
    return lost


def _named(body: str) -> Iterable[str | None]:
    """The facts and sessions that the notes of a page name."""
    for line in body.splitlines():
        note = read_note(line.strip()) if line.lstrip().startswith("[^") else None
        if note is not None:
            yield note.fact_id
            yield from (source.session_id for source in note.sources)


def _history(held: Documents, page_id: str) -> list[Version]:
    """All versions, the newest first; none: somebody has erased the page meanwhile."""
    found: list[Version] = []
    with suppress(NotFound):
        while page := held.history(
            page_id, limit=VERSIONS_PAGE, before=found[-1].number if found else None
        ):
            found += page
    return found


def _is_agents(version: Version) -> bool:
    return version.author.kind is AuthorKind.AGENT


def _lines(body: str) -> set[str]:
    """What a page says, without the headings of its parts, which say nothing of anybody."""
    return {line.strip() for line in body.splitlines() if line.strip()} - {*OWN_SECTIONS}
