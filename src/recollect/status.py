"""What `status` tells: what is due, what waits and for what, and who is at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.knowledge import NOTHING_SPENT, Spent

if TYPE_CHECKING:
    from recollect.agency import AgentState
    from recollect.domain import Job, JobState, SessionProgress, SessionState, StoreDescription
    from recollect.generation import ConsolidationState


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is due, what waits and for what. The lists are bounded, the counts are not."""

    store: StoreDescription
    at: datetime
    marked: tuple[SessionState, ...]
    marked_count: int
    waiting: tuple[SessionState, ...]
    waiting_count: int
    jobs: tuple[Job, ...]
    job_counts: Mapping[JobState, int]
    idle_sweep_seconds: float
    sessions: tuple[SessionProgress, ...] = ()
    spent_today: Spent = NOTHING_SPENT
    consolidations_due: int = 0
    consolidations: tuple[ConsolidationState, ...] = ()
    agents: tuple[AgentState, ...] = ()
