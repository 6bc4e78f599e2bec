"""The JSON shapes the commands print: records, sessions, ranges, jobs, status, field by field."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recollect.domain import Job, JobState, Range, Record, SessionState, Status
from recollect.interfaces.cli.target import agent_label


def record_shape(record: Record) -> dict[str, Any]:
    return {
        "session_id": record.session_id,
        "seq": record.seq,
        "role": record.role.value,
        "name": record.name,
        "content": record.content,
        "at": record.at,
        "created_at": record.created_at,
        "key": record.key,
        "metadata": dict(record.metadata),
        "message": record.message,
    }


def session_shape(state: SessionState) -> dict[str, Any]:
    return {
        "id": state.id,
        "space": state.space,
        "key": state.key,
        "agent": agent_label(state.agent_id),
        "agent_id": state.agent_id,
        "rotation": state.rotation,
        "source": state.source,
        "project": state.project,
        "parent": state.parent,
        "ephemeral": state.ephemeral,
        "mode": state.mode.value,
        "remembered": state.remembered,
        "last_seq": state.last_seq,
        "invalidated_at": state.invalidated_at,
        "processed_until": state.processed_until,
        "unprocessed": state.unprocessed,
        "marked_at": state.marked_at,
        "marked_by": state.marked_by,
        "created_at": state.created_at,
        "last_activity_at": state.last_activity_at,
        "ended_at": state.ended_at,
        "ended_by": state.ended_by,
    }


def range_shape(dealt_with: Range) -> dict[str, Any]:
    return {
        "first_seq": dealt_with.first_seq,
        "last_seq": dealt_with.last_seq,
        "outcome": dealt_with.outcome.value,
        "reason": dealt_with.reason,
        "at": dealt_with.at,
    }


def next_attempt(job: Job, now: datetime) -> datetime | None:
    """When it is worked on next: as soon as there is a worker, or once its time has come."""
    match job.state:
        case JobState.IDLE | JobState.PARKED:
            return None
        case JobState.DUE:
            return max(job.due_at or now, now)
        case JobState.CLAIMED:
            return max(job.lease_expires_at or now, now)


def job_shape(job: Job, now: datetime) -> dict[str, Any]:
    return {
        "id": job.id,
        "space": job.space,
        "kind": job.kind.value,
        "key": job.key,
        "state": job.state.value,
        "why": job.why(now),
        "next_attempt_at": next_attempt(job, now),
        "first_due_at": job.first_due_at,
        "due_at": job.due_at,
        "owner": job.owner,
        "lease_expires_at": job.lease_expires_at,
        "token": job.token,
        "failures": job.failures,
        "takeovers": job.takeovers,
        "last_error": job.last_error,
        "last_error_at": job.last_error_at,
        "finished_at": job.finished_at,
    }


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
    }
