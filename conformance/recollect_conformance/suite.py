"""Runs every case against a backend, each on a fresh store, and says which promises it keeps."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass

from recollect.errors import UsageError
from recollect_conformance.case import Case, registered
from recollect_conformance.harness import Harness, OpenStore
from recollect_conformance.promises import (
    agents_forgetting,
    agents_handover,
    agents_inbox,
    agents_isolation,
    agents_lives,
    agents_races,
    agents_turns,
    api_keys,
    append_keys,
    atomicity,
    audit,
    concurrency,
    cursor,
    derived_texts,
    document_deletion,
    document_isolation,
    document_links,
    document_moves,
    document_races,
    document_search,
    document_trees,
    document_versions,
    documents,
    exclusion,
    fact_search,
    facts,
    forgetting,
    forgetting_much,
    forgetting_records,
    generations_forgetting,
    generations_isolation,
    generations_job,
    generations_kept,
    generations_publishing,
    generations_races,
    generations_selection,
    generations_waiting,
    idle,
    imports,
    isolation,
    keys,
    learned_isolation,
    learning,
    leases,
    ledger,
    lifetime,
    listing,
    marking_points,
    marks,
    modes,
    passes,
    purge,
    races,
    records,
    retained,
    review,
    rotation,
    search,
    search_changes,
    search_filters,
    search_projects,
    serving,
    staging,
    status,
    summaries,
    supersession,
    threshold,
    vectors,
    waiting,
    wakes,
)

FreshStore = Callable[[], AbstractContextManager[OpenStore]]

# The modules, in the order of the report; importing them registers their cases.
CHAPTERS = (
    keys,
    records,
    append_keys,
    threshold,
    marks,
    cursor,
    marking_points,
    leases,
    wakes,
    rotation,
    retained,
    summaries,
    purge,
    modes,
    exclusion,
    idle,
    listing,
    status,
    learning,
    facts,
    supersession,
    review,
    derived_texts,
    fact_search,
    passes,
    staging,
    waiting,
    ledger,
    forgetting,
    forgetting_records,
    forgetting_much,
    documents,
    document_versions,
    document_trees,
    document_moves,
    document_links,
    document_deletion,
    document_search,
    search,
    search_filters,
    search_projects,
    search_changes,
    vectors,
    agents_inbox,
    agents_turns,
    agents_lives,
    agents_handover,
    agents_forgetting,
    generations_selection,
    generations_publishing,
    generations_kept,
    generations_job,
    generations_waiting,
    generations_forgetting,
    imports,
    api_keys,
    serving,
    audit,
    isolation,
    learned_isolation,
    document_isolation,
    agents_isolation,
    generations_isolation,
    atomicity,
    concurrency,
    races,
    document_races,
    agents_races,
    generations_races,
    lifetime,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a case came to; `error` is None when the promise is kept."""

    case: Case
    error: Exception | None

    @property
    def passed(self) -> bool:
        return self.error is None

    @property
    def explanation(self) -> str:
        """Where it failed and over what, in one line; empty when it passed."""
        if self.error is None:
            return ""
        frame = traceback.extract_tb(self.error.__traceback__)[-1]
        said = str(self.error) or frame.line or ""
        return f"{type(self.error).__name__}: {said} ({frame.name}, line {frame.lineno})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of a run, in the order of the cases."""

    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)

    @property
    def failures(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if not result.passed)


def cases() -> tuple[Case, ...]:
    """Every case there is."""
    place = {chapter.__name__: number for number, chapter in enumerate(CHAPTERS)}
    return tuple(sorted(registered(), key=lambda case: place[case.run.__module__]))


def run(
    fresh_store: FreshStore, *, volatile: bool = False, only: Iterable[Case] | None = None
) -> Report:
    """Run the cases; `fresh_store` makes an empty place and gives what opens it.

        @contextmanager
        def fresh_store():
            with TemporaryDirectory() as directory:
                yield lambda: MyStore(directory)

    `volatile` says that a place opened again is a new one, as with a database in memory.
    """
    if not _assertions_are_on():
        raise UsageError("the cases are made of assertions; run them without -O")
    chosen = cases() if only is None else tuple(only)
    return Report(results=tuple(_result(case, fresh_store, volatile) for case in chosen))


def _assertions_are_on() -> bool:
    return __debug__


def _result(case: Case, fresh_store: FreshStore, volatile: bool) -> Result:
    try:
        with fresh_store() as open_store, closing(Harness(open_store, volatile=volatile)) as store:
            case.run(store)
    except Exception as error:  # a backend may fail in any way; the report says how
        return Result(case=case, error=error)
    return Result(case=case, error=None)
