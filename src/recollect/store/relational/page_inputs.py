"""Drops pages together with their inputs: forgotten memory, and sessions left out of memory.

A page that only machines wrote is dropped with all its versions as soon as one of its inputs is
withdrawn; the facts that are left are put on a page again. A page that a person wrote on stays, and
is reported. All in the transaction that withdraws the input: no reader sees one without the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from recollect.clock import to_micros
from recollect.store.relational.agents import key_ref, post
from recollect.store.relational.database import Connection, Row
from recollect.store.relational.document_edits import (
    SEPARATOR,
    Input,
    inputs_of,
    inside,
    put_inputs,
    unfile_page,
)
from recollect.store.relational.document_rows import (
    provenance,
    purge_documents,
    raise_versions,
    read_provenance,
)
from recollect.store.relational.documents import empty_page, unfile_session
from recollect.store.relational.jobs import make_due
from recollect.types.agents import ItemKind, NewItem, Span
from recollect.types.facts import Source
from recollect.types.pages import (
    MEMORY_WORKER,
    WRITTEN_BY_MODEL,
    Author,
    AuthorKind,
    Because,
    Place,
    is_rendered,
)
from recollect.types.records import JobKind, Outcome

_DROPPED = Because(
    author=Author(kind=AuthorKind.AGENT, name=MEMORY_WORKER),
    reason="what it was written from is not remembered any more",
)
# A model reads also what came to nothing.
_FILED = (Outcome.EXTRACTED.value, Outcome.NO_OUTPUT.value, Outcome.HANDED_OVER.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What is taken back: ids of sessions and facts, and which sources that makes void."""

    names: frozenset[str]
    is_gone: Callable[[Source], bool]

    def touches(self, sources: Iterable[Source], facts: Iterable[str]) -> bool:
        return any(map(self.is_gone, sources)) or not self.names.isdisjoint(facts)


@dataclass(slots=True, kw_only=True)
class DroppedPages:
    """How many pages and versions went, where others stay that may say it, and what else was read.

    `sessions` are those that dropped pages were written from as well.
    """

    documents: int = 0
    versions: int = 0
    left: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)


def all_of(session_id: str, fact_ids: Collection[str] = ()) -> Taken:
    """A whole session, and the facts that rested on it alone."""
    names = frozenset({session_id, *fact_ids})
    return Taken(names=names, is_gone=lambda source: source.session_id == session_id)


def drop_pages(
    c: Connection,
    space: str,
    taken: Taken,
    now: datetime,
    *,
    is_erased: bool = False,
    all_pages: bool = False,
    spares_rendered: bool = False,
) -> DroppedPages:
    """Drop the pages that rest on something; with `all_pages` also those that people wrote on.

    With `is_erased` those that stay do not name it any more, nor what was quoted of it. With
    `spares_rendered` pages that follow their facts are left to do so.
    """
    # A version written at this moment comes either before this or after it.
    c.row("lock_tree", {"space": space})
    done, pages = DroppedPages(), list[Row]()
    made_from = {"space": space, "ids": json.dumps(sorted(taken.names))}
    for (key,) in c.rows("documents_made_from", made_from):
        pages += c.rows("get_document_by_key", {"space": space, "key": key})
    # What stands below a page goes before it.
    for page in sorted(pages, key=lambda row: str(row[4]), reverse=True):
        key = page[0]
        versions = c.rows("grounds_of_document", {"space": space, "key": key})
        touched = [row for row in versions if taken.touches(*read_provenance(row[2]))]
        match _fate(versions, touched, all_pages=all_pages):
            case _Fate.RENDERED if spares_rendered:
                continue
            case _Fate.RENDERED:
                unfile_page(c, space, key)
                _drop(c, space, page, now, done, len(versions))
            case _Fate.DROPPED:
                done.sessions |= {each.session_id for row in versions for each in _sources(row)}
                _drop(c, space, page, now, done, len(versions))
            case fate:
                if fate is _Fate.LEFT and (not _is_blank(page) or len(versions) > 1):
                    done.left.append(page[3])
                if is_erased:  # earlier generations go with the next
                    is_kept = fate is not _Fate.REPLACED
                    stays = [row for row in touched if is_kept or row[1] == page[10]]
                    _strip(c, space, taken, key, stays)
    done.sessions -= taken.names
    unfile_session(c, space, done.sessions)  # until a model has read them again
    done.left.sort()
    return done


def drop_pages_on_fact(
    c: Connection, space: str, fact_id: str, sources: Sequence[Row], now: datetime
) -> DroppedPages:
    """Drop what models wrote of a fact that was taken back: from it, or from records that say it.

    Facts stand there instead. Its own sessions are not filed again: they still say it.
    """
    stretches = [(row[0], row[1], row[2]) for row in sources]
    sessions = {row[0] for row in sources}
    taken = Taken(
        names=frozenset({fact_id, *sessions}),
        is_gone=lambda source: any(_meet(source, *each) for each in stretches),
    )
    dropped = drop_pages(c, space, taken, now, spares_rendered=True)
    if dropped.documents:
        unfile_session(c, space, sessions)
        file_again(c, space, dropped.sessions, now)
    return dropped


def _meet(source: Source, session_id: str, first: int, last: int) -> bool:
    """Whether a source is of some records of a session; 0 stands for any of them."""
    if source.session_id != session_id:
        return False
    return not source.seq_to or not last or (source.seq <= last and first <= source.seq_to)


class _Fate(Enum):
    """What to do with a page that was made from something that is withdrawn."""

    RENDERED = "rendered"  # it goes, and is rendered from the facts that are left
    DROPPED = "dropped"  # it goes
    LEFT = "left"  # it stays, for somebody wrote on it
    REPLACED = "replaced"  # the next generation has it anew


def _fate(versions: Sequence[Row], touched: Sequence[Row], *, all_pages: bool) -> _Fate:
    if all(is_rendered(_author(row), row[5]) for row in versions):
        return _Fate.RENDERED
    authors = {_author(row) for row in versions}
    is_made_anew = any(each.kind is AuthorKind.CONSOLIDATION for each in authors)
    if is_made_anew or not any(map(_goes_whole, touched)):
        return _Fate.REPLACED
    is_machines = all(author.is_machine for author in authors)
    return _Fate.DROPPED if all_pages or is_machines else _Fate.LEFT


def _strip(c: Connection, space: str, taken: Taken, key: int, versions: Iterable[Row]) -> None:
    """Remove what is gone from what versions rest on, where they are still there."""
    own, gone = {"space": space, "key": key}, set[Input]()
    for _, version, text, *_ in versions:
        sources, facts = read_provenance(text)
        kept = [source for source in sources if not taken.is_gone(source)]
        left = [each for each in facts if each not in taken.names]
        gone |= inputs_of(sources, facts) - inputs_of(kept, left)
        changed = {**own, "version": version, "provenance": provenance(kept, left)}
        c.run("set_provenance", changed)
        c.run("set_document_provenance", changed)
    put_inputs(c, own, gone, "drop_input")


def _author(row: Row) -> Author:
    return Author(AuthorKind(row[3]), row[4])


def _sources(row: Row) -> tuple[Source, ...]:
    return read_provenance(row[2])[0]


def _goes_whole(row: Row) -> bool:
    """Whether nothing says which lines of a version rest on what; rules note that."""
    return not _author(row).is_machine or row[5] == WRITTEN_BY_MODEL


def _drop(
    c: Connection, space: str, page: Row, now: datetime, done: DroppedPages, versions: int
) -> None:
    is_live = page[13] is None
    counted = c.row("count_inside", inside(space, page[4])) if is_live else None
    if counted is not None and (counted[0] > 1 or SEPARATOR not in page[4]):
        if not _is_blank(page) or versions > 1:
            _empty(c, space, page, now)
            done.versions += versions
        return  # others stand below it
    purge_documents(c, space, [page[0]])
    raise_versions(c, space, page[10])
    if is_live:
        c.run("count_documents", {"space": space, "more": -1})
    done.documents += 1
    done.versions += versions


def _is_blank(page: Row) -> bool:
    """Whether it only has others below it."""
    slug = page[3].rpartition("/")[2]
    return page[5] == slug and not page[6] and not page[7].strip()


def _empty(c: Connection, space: str, page: Row, now: datetime) -> None:
    """Leave of a page only its place, in a version of its own, and nothing of those before it."""
    left = empty_page(c, space, Place(text=page[3], key=page[4], depth=0), now, _DROPPED)
    names = {"space": space, "key": page[0]}
    c.run("drop_inputs", names)
    c.run("purge_usages", names)
    c.run("erase_versions_before", {**names, "version": left.version})
    raise_versions(c, space, page[10])


# filing again


def revoke_memory_agents(c: Connection, space: str, others: Collection[int] = ()) -> None:
    """Take their claims from all memory-agents of a space, and from agents by their keys.

    Each of them may have read a page that is dropped. In the order of their keys.
    """
    found = {row[0] for row in c.rows("memory_agents", {"space": space})}
    for key_id in sorted(found.union(others)):
        revoke_agent(c, space, key_id)


def revoke_agent(c: Connection, space: str, key_id: int) -> None:
    """Revoke the claim on an agent's job; its life is locked before the job."""
    c.row("lock_life", {"space": space, "key_id": key_id})
    make_due(c, "revoke_agent", {"space": space, "job_key": str(key_id)})


def file_again(c: Connection, space: str, session_ids: Iterable[str], now: datetime) -> None:
    """Have the memory-agents that were told of sessions file them once more.

    The caller has revoked them before, which is what locks them.
    """
    for session_id in sorted(session_ids):
        tell_memory_agents(c, space, session_id, "is to be filed again", now)


def tell_memory_agents(
    c: Connection, space: str, session_id: str, why: str, now: datetime, *, once: bool = False
) -> None:
    """Post to the memory-agents that were told of a session each stretch that was filed of it.

    With `once` the first alone: it is about the session as a whole.
    """
    names = {"space": space, "id": session_id}
    agents = [key_ref(row) for row in c.rows("memory_agents_told", names)]
    if not agents:
        return
    filed = _stretches(c.rows("list_ranges", names))
    for first, last in filed[:1] if once else filed:
        item = NewItem(
            id=f"{session_id}:{why}:{to_micros(now)}:{first}-{last}",
            kind=ItemKind.SYSTEM_MESSAGE,
            text=f"Session {session_id} {why}.",
            origin=f"memory-worker:{session_id}",
            about=Span(session_id=session_id, first=first, last=last),
        )
        for ref in agents:
            post(c, ref, item, JobKind.MEMORY_AGENT, now)


def _stretches(ranges: Iterable[Row]) -> list[tuple[int, int]]:
    """From where to where something was learned, without what was passed over."""
    found: list[tuple[int, int]] = []
    for _, first, last, outcome, *_ in ranges:
        if outcome not in _FILED:
            continue
        if found and found[-1][1] + 1 == first:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found
