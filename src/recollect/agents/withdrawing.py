"""Takes off the pages of memory what memory-agents filed there from what is forgotten.

Only what goes by rules can be told from the rest of a page: every line names its sources. Earlier
versions that say what was taken off are removed for good.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from recollect.agents.organiser import organise
from recollect.document import Author, AuthorKind, Document, Version
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.documents.tree import Documents
from recollect.errors import DocumentExists, DocumentReferenced, NotFound, StaleVersion

TRIES_MAX = 8  # while others change the same pages
VERSIONS_PAGE = 200
REASON = "a session was forgotten"


def withdraw(documents: Documents, gone: Collection[str], *, now: datetime) -> tuple[str, ...]:
    """The paths of the pages that had something of sessions or facts and have it no more.

    `gone` are their ids.
    """
    author = Author(kind=AuthorKind.AGENT, name="memory-worker")
    held = documents.held_by(Holder(author=author, root=memory_root()))
    for tries_left in range(TRIES_MAX, 0, -1):
        changeset = held.changeset(REASON)
        written = organise(changeset, (), now=now, gone=gone).written
        if not written:
            return ()
        paths = {*written, *(edit.path for edit in changeset.edits)}
        before = {page.id: page for path in paths if (page := held.find(path)) is not None}
        try:
            changed = changeset.commit()
        except (StaleVersion, DocumentExists, DocumentReferenced, NotFound):
            if tries_left == 1:
                raise
            continue
        _erase(held, before, changed)
        return written
    return ()


def _erase(
    documents: Documents, before: Mapping[str, Document], changed: Iterable[Document]
) -> None:
    """Remove the versions that say what was taken off, and pages that said nothing else."""
    for page in changed:
        known = before.get(page.id)
        if known is None:
            continue
        gone = _lines(known.body) - (set() if page.deleted_at is not None else _lines(page.body))
        versions = list(_versions(documents, page.path))
        if page.deleted_at is not None and all(_is_agents(each) for each in versions):
            documents.erase_deleted(page.path)
            continue
        numbers = [each.number for each in versions if gone & _lines(each.body)]
        documents.erase_versions(page.path, numbers)


def _versions(documents: Documents, path: str) -> Iterable[Version]:
    before: int | None = None
    while page := documents.history(path, limit=VERSIONS_PAGE, before=before):
        yield from page
        before = page[-1].number


def _is_agents(version: Version) -> bool:
    return version.author.kind is AuthorKind.AGENT


def _lines(body: str) -> set[str]:
    return {line.strip() for line in body.splitlines() if line.strip()}
