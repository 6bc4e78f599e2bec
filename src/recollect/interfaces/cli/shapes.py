"""The JSON shapes the commands print, field by field: what was said, learned, spent and is due."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.domain import (
    Job,
    JobState,
    Range,
    Record,
    SessionProgress,
    SessionState,
)
from recollect.interfaces.cli.agent_names import agent_label
from recollect.knowledge import Call, Extraction, Fact, FactChange, Receipt, Source, Spent


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
        "pass": dealt_with.pass_number,
        "extractor": dealt_with.extractor,
        "attempt": dealt_with.attempt,
        "spent": spent_shape(dealt_with.spent),
    }


def spent_shape(spent: Spent) -> dict[str, Any]:
    return {
        "calls": spent.calls,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "tokens": spent.tokens,
        "cost_micros": spent.cost_micros,
    }


def extraction_shape(extraction: Extraction) -> dict[str, Any]:
    return {
        "session_id": extraction.session_id,
        "rollout_slug": extraction.rollout_slug,
        "rollout_summary": extraction.rollout_summary,
        "raw_memory": extraction.raw_memory,
        "extractor": extraction.extractor,
        "pass": extraction.pass_number,
        "upto": extraction.upto,
        "source_updated_at": extraction.source_updated_at,
        "generated_at": extraction.generated_at,
        "usage_count": extraction.usage_count,
        "last_usage": extraction.last_usage,
    }


def source_shape(source: Source) -> dict[str, Any]:
    return {
        "session_id": source.session_id,
        "seq": source.seq,
        "seq_to": source.seq_to,
        "quote": source.quote,
    }


def fact_shape(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "space": fact.space,
        "content": fact.content,
        "source": fact.source,
        "sources": [source_shape(source) for source in fact.sources],
        "source_count": fact.source_count,
        "tags": list(fact.tags),
        "metadata": dict(fact.metadata),
        "trust": fact.trust.value,
        "topic": fact.topic,
        "created_at": fact.created_at,
        "updated_at": fact.updated_at,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "superseded_by": fact.superseded_by,
        "usage_count": fact.usage_count,
        "last_usage": fact.last_usage,
        "shown_count": fact.shown_count,
        "extractor": fact.extractor,
    }


def change_shape(change: FactChange) -> dict[str, Any]:
    return {
        "fact_id": change.fact_id,
        "event": change.event.value,
        "content": change.content,
        "at": change.at,
        "by": change.by,
        "other_id": change.other_id,
    }


def call_shape(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "session_id": call.session_id,
        "purpose": call.purpose,
        "model": call.model,
        "attempt": call.attempt,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cost_micros": call.cost_micros,
        "outcome": call.outcome.value,
        "at": call.at,
    }


def receipt_shape(receipt: Receipt) -> dict[str, Any]:
    return {
        "space": receipt.space,
        "session_id": receipt.session_id,
        "record": receipt.record,
        "fact_id": receipt.fact_id,
        "path": receipt.path,
        "agent_id": receipt.agent_id,
        "source": receipt.source,
        "sessions": receipt.sessions,
        "records": receipt.records,
        "facts": receipt.facts,
        "sources": receipt.sources,
        "extractions": receipt.extractions,
        "summaries": receipt.summaries,
        "documents": receipt.documents,
        "versions": receipt.versions,
        "items": receipt.items,
        "left": list(receipt.left),
        "may_remain": list(receipt.may_remain),
        "name_in": list(receipt.name_in),
        "is_complete": receipt.is_complete,
        "at": receipt.at,
    }


def places_left(receipt: Receipt) -> list[str]:
    """What is left, without saying where a server keeps its files: pages by path, files by name."""
    return [each if each.startswith("~/") else Path(each).name for each in receipt.left]


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


def progress_shape(progress: SessionProgress) -> dict[str, Any]:
    return {
        "session_id": progress.session_id,
        "space": progress.space,
        "key": progress.key,
        "mode": progress.mode.value,
        "remembered": progress.remembered,
        "last_activity_at": progress.last_activity_at,
        "last_seq": progress.last_seq,
        "processed_until": progress.processed_until,
        "outcome": None if progress.outcome is None else progress.outcome.value,
        "attempt": progress.attempt,
        "finished_at": progress.finished_at,
        "extractor": progress.extractor,
        "facts": progress.facts,
        "spent": spent_shape(progress.spent),
        "state": progress.state.value,
        "next_try_at": progress.next_try_at,
        "last_error": progress.last_error,
        "handed_over": progress.handed_over,
    }
