"""The types of `status`: what is due, what waits and for what, and which workers run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.types.agents import AgentState
from recollect.types.facts import NOTHING_SPENT, Spent
from recollect.types.generations import ConsolidationState
from recollect.types.records import Job, JobState, SessionProgress, SessionState, StoreDescription

# The job that a call was made for, by its purpose in the ledger; any other is a job of its own.
JOBS = {
    "extract": "extraction",
    "repair": "extraction",
    "consolidate": "consolidation",
    "summarize": "compaction",
    "embed": "embedding",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """A job that a model may do: who does it now, and what it took today (UTC) and in all.

    `by` is a model's name, `rules`, or `off`; none: the model of each agent.
    """

    job: str
    by: str | None
    today: Spent
    in_all: Spent


def model_uses(
    doers: Mapping[str, str], spent: Sequence[tuple[str, Spent, Spent]]
) -> tuple[ModelUse, ...]:
    """Every job with its doer, and those besides that something was spent on.

    `spent` has a purpose, what it took today, and in all.
    """
    sums = dict.fromkeys(doers, (NOTHING_SPENT, NOTHING_SPENT))
    for purpose, today, in_all in spent:
        job = JOBS.get(purpose, purpose)
        before = sums.get(job, (NOTHING_SPENT, NOTHING_SPENT))
        sums[job] = before[0].plus(today), before[1].plus(in_all)
    return tuple(
        ModelUse(job=job, by=doers.get(job), today=today, in_all=in_all)
        for job, (today, in_all) in sums.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is due, what waits and for what. The lists are bounded, the counts are not.

    `models` says who does each job that a model may do, and what it took. `unreviewed` counts the
    facts that wait for a person.
    Sessions `passed_over` are learned from only when they are marked, or `work` is told to do all.
    """

    store: StoreDescription
    at: datetime
    marked_count: int
    marked: tuple[SessionState, ...]
    waiting_count: int
    waiting: tuple[SessionState, ...]
    jobs: tuple[Job, ...]
    job_counts: Mapping[JobState, int]
    idle_sweep_seconds: float
    passed_over: frozenset[str] = frozenset()  # of those that wait, by source or age
    sessions: tuple[SessionProgress, ...] = ()
    agents: tuple[AgentState, ...] = ()
    spent_today: Spent = NOTHING_SPENT
    models: tuple[ModelUse, ...] = ()
    consolidations_due: int = 0
    consolidations: tuple[ConsolidationState, ...] = ()
    unreviewed: int = 0
    review: str = "off"  # what waits of all that is learned
