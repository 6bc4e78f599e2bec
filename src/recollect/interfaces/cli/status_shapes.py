"""The JSON shape of a status: what is due, what waits, who is at work."""

from __future__ import annotations

from typing import Any

from recollect.domain import JobState
from recollect.interfaces.cli.agent_lines import agent_shape
from recollect.interfaces.cli.shapes import job_shape, progress_shape, session_shape, spent_shape
from recollect.status import Status


def status_shape(status: Status) -> dict[str, Any]:
    return {
        "store": {
            "kind": status.store.kind,
            "location": status.store.location,
            "schema_version": status.store.schema_version,
        },
        "at": status.at,
        "marked_count": status.marked_count,
        "marked": [session_shape(state) for state in status.marked],
        "waiting_count": status.waiting_count,
        "waiting": [session_shape(state) for state in status.waiting],
        "job_counts": {
            state.value: status.job_counts.get(state, 0)
            for state in JobState
            if state is not JobState.IDLE
        },
        "jobs": [job_shape(job, status.at) for job in status.jobs],
        "idle_sweep_seconds": status.idle_sweep_seconds,
        "sessions": [progress_shape(progress) for progress in status.sessions],
        "agents": [agent_shape(state) for state in status.agents],
        "spent_today": spent_shape(status.spent_today),
        "models": [
            {
                "job": use.job,
                "by": use.by,
                "today": spent_shape(use.today),
                "in_all": spent_shape(use.in_all),
            }
            for use in status.models
        ],
        "consolidations_due": status.consolidations_due,
    }
