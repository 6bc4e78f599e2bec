"""Takes off the pages of memory what memory-agents filed there: forgotten, corrected or left out.

Only what goes by rules can be told from the rest of a page: every line names its sources. Earlier
versions that say what was forgotten are removed for good; the others stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from typing import TypeVar

from recollect.agents.organiser import is_filed, organise
from recollect.agents.organiser_lines import read_note
from recollect.document import Author, AuthorKind, Document, DocumentEvent, Version
from recollect.documents.paths import memory_root, stored_path
from recollect.documents.scope import Holder, is_of_consolidation
from recollect.documents.tree import Documents
from recollect.errors import DocumentExists, DocumentReferenced, NotFound, StaleVersion
from recollect.knowledge import Fact
from recollect.session import LIST_MAX
from recollect.topics.claims import Claim, claims_of

T = TypeVar("T")

TRIES_MAX = 8  # while others change the same pages
VERSIONS_PAGE = 200
REASON = "a session was forgotten"
CORRECTED = "a fact was corrected"
LEFT_OUT = "a session is left out of memory"
_KEPT = (CORRECTED, LEFT_OUT)  # after which earlier versions stay


def withdraw(documents: Documents, gone: Collection[str], *, now: datetime) -> tuple[str, ...]:
    """The paths of the pages that had something of sessions or facts and have it no more.

    `gone` are their ids.
    """
    held = _held(documents)
    _erase_history(held, frozenset(gone))  # first: it goes by versions that the rest removes
    for tries_left in range(TRIES_MAX, 0, -1):
        changeset = held.changeset(REASON)
        written = organise(changeset, (), now=now, gone=gone).written
        if not written:
            return ()
        paths = {*written, *(edit.path for edit in changeset.edits)}
        before = {page.id: page.body for path in paths if (page := held.find(path)) is not None}
        try:
            changed = changeset.commit()
        except (StaleVersion, DocumentExists, DocumentReferenced, NotFound):
            if tries_left == 1:
                raise
        else:
            _erase(held, before, changed)
            return written
    return ()


def correct(
    documents: Documents, fact_id: str, read: Callable[[], Fact | None], *, now: datetime
) -> None:
    """Let pages that a fact was filed on say what it says now; none: nothing of it any more.

    It is read anew after the pages are written: of two who edit it at once, neither leaves there
    what the other has replaced.
    """
    held = _held(documents)
    for tries_left in range(TRIES_MAX, 0, -1):
        claims = _holding(read(), now)
        changeset = held.changeset(CORRECTED)
        if not is_filed(changeset, fact_id):
            return
        organise(changeset, claims, now=now, gone=(fact_id,))
        try:
            changeset.commit()
        except (StaleVersion, DocumentExists, DocumentReferenced, NotFound):
            if tries_left == 1:
                raise
        else:
            if _holding(read(), now) == claims:
                return


def leave_out(documents: Documents, session_id: str, *, now: datetime) -> None:
    """Take off the pages what rests on a session alone that is not to be remembered any more.

    Should others change the same pages all the time, it is left to the memory-agent, who was told.
    """
    held = _held(documents)
    for _ in range(TRIES_MAX):
        changeset = held.changeset(LEFT_OUT)
        if not organise(changeset, (), now=now, gone=(session_id,)).written:
            return
        with suppress(StaleVersion, DocumentExists, DocumentReferenced, NotFound):
            changeset.commit()
            return


def _holding(fact: Fact | None, now: datetime) -> list[Claim]:
    return claims_of([fact]) if fact is not None and fact.holds(now) else []


def _held(documents: Documents) -> Documents:
    author = Author(kind=AuthorKind.AGENT, name="memory-worker")
    return documents.held_by(Holder(author=author, root=memory_root()))


def finish(documents: Documents) -> None:
    """Remove the versions that somebody left who was killed between a page and its history.

    What something was taken off has lost the version before that, unless it is like this.
    """
    held, root = _held(documents), str(memory_root())
    for node in _every(held.tree, root, lambda node: node.path):
        page = held.find(node.path) if node.version > 1 else None
        if page is not None and page.reason == REASON:
            _finish(held, page.path, page.version, page.body)
    for gone in _every(held.deleted, root, lambda gone: gone.id):
        if gone.reason == REASON:
            _finish(held, gone.path, gone.version, None)


def _every(page: Callable[..., list[T]], root: str, name: Callable[[T], str]) -> Iterable[T]:
    """What a listing has below a path, all of it before anything changes."""
    found: list[T] = []
    more = page(root, limit=LIST_MAX)
    while more:
        found += more
        more = page(root, limit=LIST_MAX, after=name(found[-1]))
    return found


def _finish(held: Documents, path: str, version: int, body: str | None) -> None:
    latest = held.history(path, limit=2)
    if [each.number for each in latest] == [version, version - 1]:
        _erase_page(held, path, latest[-1].body, body)


def _erase(documents: Documents, before: Mapping[str, str], changed: Iterable[Document]) -> None:
    """Remove the versions that say what was taken off; `before` are bodies by the pages' ids."""
    for page in changed:
        known = before.get(page.id)
        if known is not None:
            body = None if page.deleted_at is not None else page.body
            _erase_page(documents, page.path, known, body)


def _erase_page(documents: Documents, path: str, before: str, body: str | None) -> None:
    """The same of one page, which goes for good if it is deleted and was agents' alone."""
    gone = _lines(before) - _lines(body or "")
    versions = list(_versions(documents, path))
    if body is None and all(_is_agents(each) for each in versions):
        documents.erase_deleted(path)
        return
    numbers = [each.number for each in versions if gone & _lines(each.body)]
    documents.erase_versions(path, numbers)


def _erase_history(held: Documents, gone: frozenset[str]) -> None:
    """Remove the versions from before a change of pages that still say what is forgotten now."""
    root = str(memory_root())
    tree = _every(held.tree, root, lambda node: node.path)
    deleted = _every(held.deleted, root, lambda each: each.id)
    pages = [(each.path, False) for each in tree if each.version > 1]
    pages += [(each.path, True) for each in deleted]
    pages = [each for each in pages if not is_of_consolidation(stored_path(each[0]))]
    # A correction also changes pages that name nobody: lists of others, and links to them.
    named = {at for path, _ in pages for at in _corrections(_history(held, path), gone)}
    # Those that do name it last: who is stopped in between finds by them what is left.
    for is_naming in (False, True) if named else (True,):
        for path, is_deleted in pages:
            versions = _history(held, path)
            naming = {each.number for each in versions if not gone.isdisjoint(_named(each.body))}
            lost = _lost(versions, named)
            numbers = [each.number for each in versions if lost & _lines(each.body)]
            if bool(naming) is not is_naming or not (naming or numbers):
                continue
            if is_deleted and all(map(_is_agents, versions)):
                held.erase_deleted(path)
            else:
                held.erase_versions(path, sorted({*naming, *numbers}))


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


def _history(held: Documents, path: str) -> list[Version]:
    try:
        return list(_versions(held, path))
    except NotFound:  # somebody has erased it meanwhile
        return []


def _versions(documents: Documents, path: str) -> Iterable[Version]:
    before: int | None = None
    while page := documents.history(path, limit=VERSIONS_PAGE, before=before):
        yield from page
        before = page[-1].number


def _is_agents(version: Version) -> bool:
    return version.author.kind is AuthorKind.AGENT


def _lines(body: str) -> set[str]:
    return {line.strip() for line in body.splitlines() if line.strip()}
