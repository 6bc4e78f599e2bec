"""Jobs on pages: what is due, at work or parked, why, and what can be done about it."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from recollect.domain import Job, JobKind, JobState
from recollect.interfaces.web.view import HOME, SPACE, Asked, Moved, Page, View, done, shown
from recollect.session import LIST_MAX
from recollect.store.key_protocol import Scope
from recollect.sweeps import sweep_idle

JOBS = f"{SPACE}/jobs"
SHOWN = 200
_ORDER = {JobState.PARKED: 0, JobState.CLAIMED: 1, JobState.DUE: 2, JobState.IDLE: 3}
_OF_SESSIONS = frozenset({JobKind.EXTRACT, JobKind.EXTRACT_AGAIN})


def jobs(asked: Asked) -> Page:
    leases, now = asked.memory.store.leases, asked.now
    # Parked ones first, whatever became due before them: they wait for whoever looks here.
    found = sorted(leases.jobs(asked.space.name, LIST_MAX), key=lambda job: _ORDER[job.state])
    counts = leases.counts(asked.space.name)
    return Page(
        template="jobs.html",
        fragment="_jobs.html",
        content={
            "jobs": [_row(job, now) for job in found[:SHOWN]],
            "counts": {state.value: counts.get(state, 0) for state in JobState},
            "left_out": sum(counts.values()) - min(len(found), SHOWN),
            "has_stuck": any(_is_stuck(job) for job in found),
        },
    )


def _row(job: Job, now: datetime) -> dict[str, object]:
    return {
        "job": job,
        "why": job.why(now),
        "next": job.next_attempt_at(now),
        "is_of_session": job.kind in _OF_SESSIONS,
        "is_of_space": job.kind is JobKind.CONSOLIDATE,
        "is_stuck": _is_stuck(job),
    }


def _is_stuck(job: Job) -> bool:
    """Whether a retry changes anything for it."""
    return job.state is JobState.PARKED or job.is_paused


def retry_jobs(asked: Asked) -> Moved:
    """Those of one session, or all of the space."""
    one = asked.form.get("job") or None
    revived = asked.memory.retry(one, asked.space.name)
    if not revived:
        return _back(asked, "Nothing was parked or paused any more.")
    said = "1 job has" if revived == 1 else f"{revived:,} jobs have"
    return _back(asked, f"{said} another chance, from the first attempt on.")


def make_due(asked: Asked) -> Moved:
    memory, space = asked.memory, asked.space.name
    marked = sweep_idle(memory.store, memory.clock.now(), memory.settings, space=space, all=True)
    hurried = memory.store.generations.hurry(space)
    sessions = "1 session" if marked == 1 else f"{marked:,} sessions"
    waits = ", and the next generation waits for nothing more" if hurried else ""
    return _back(asked, f"{sessions} marked{waits}. Whoever works on this store begins at once.")


def _back(asked: Asked, said: str) -> Moved:
    return Moved(to=f"{HOME}/s/{quote(asked.space.name, safe='')}/jobs", said=said)


VIEWS: tuple[View, ...] = (
    shown(JOBS, "jobs", jobs),
    done(f"{JOBS}/retry", "retry_jobs", retry_jobs, Scope.WRITE),
    done(f"{JOBS}/due", "make_due", make_due, Scope.ADMIN),
)
