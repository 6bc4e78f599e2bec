"""The schemas of what is answered, field by field as the shapes of the command line have them."""

from __future__ import annotations

from recollect.document import AuthorKind, DocumentEvent, ReferenceKind
from recollect.domain import JobKind, JobState, MarkCause, Mode, Outcome
from recollect.generation import Waiting
from recollect.interfaces.http.schemas import (
    ANY,
    BOOL,
    FREE,
    MOMENT,
    NUMBER,
    Schema,
    listed,
    maybe,
    obj,
    one_of,
    text,
    whole,
)
from recollect.knowledge import CallOutcome, FactEvent, Trust
from recollect.messages import Role
from recollect.recollection import EntryKind

TEXT = text()
COUNT = whole()
TEXTS = listed(TEXT)

PROBLEM = obj(
    {
        "type": TEXT,
        "title": TEXT,
        "status": whole(400, 599),
        "detail": TEXT,
        "retry_helps": BOOL,
        "mended_by": TEXT,
        "current_version": COUNT,
    },
    needs=("type", "title", "status", "detail", "retry_helps", "mended_by"),
)
SPENT = obj(
    {
        "calls": COUNT,
        "input_tokens": COUNT,
        "output_tokens": COUNT,
        "tokens": COUNT,
        "cost_micros": maybe(COUNT),
    }
)
RECORD = obj(
    {
        "session_id": TEXT,
        "seq": COUNT,
        "role": one_of(Role),
        "name": maybe(TEXT),
        "content": TEXT,
        "at": MOMENT,
        "created_at": MOMENT,
        "key": maybe(TEXT),
        "metadata": FREE,
        "message": ANY,
    }
)
SESSION = obj(
    {
        "id": TEXT,
        "space": TEXT,
        "key": TEXT,
        "agent": TEXT,
        "agent_id": TEXT,
        "rotation": COUNT,
        "source": TEXT,
        "project": maybe(TEXT),
        "parent": maybe(TEXT),
        "ephemeral": BOOL,
        "mode": one_of(Mode),
        "remembered": BOOL,
        "last_seq": COUNT,
        "invalidated_at": maybe(COUNT),
        "processed_until": maybe(COUNT),
        "unprocessed": COUNT,
        "marked_at": maybe(MOMENT),
        "marked_by": maybe(one_of(MarkCause)),
        "created_at": MOMENT,
        "last_activity_at": MOMENT,
        "ended_at": maybe(MOMENT),
        "ended_by": maybe(one_of(MarkCause)),
    }
)
RANGE = obj(
    {
        "first_seq": COUNT,
        "last_seq": COUNT,
        "outcome": one_of(Outcome),
        "reason": maybe(TEXT),
        "at": MOMENT,
        "pass": COUNT,
        "extractor": maybe(TEXT),
        "attempt": maybe(COUNT),
        "spent": SPENT,
    }
)
EXTRACTION = obj(
    {
        "session_id": TEXT,
        "rollout_slug": maybe(TEXT),
        "rollout_summary": TEXT,
        "raw_memory": TEXT,
        "extractor": TEXT,
        "pass": COUNT,
        "upto": COUNT,
        "source_updated_at": MOMENT,
        "generated_at": MOMENT,
        "usage_count": COUNT,
        "last_usage": maybe(MOMENT),
    }
)
CALL = obj(
    {
        "id": ANY,
        "session_id": maybe(TEXT),
        "purpose": TEXT,
        "model": TEXT,
        "attempt": COUNT,
        "input_tokens": COUNT,
        "output_tokens": COUNT,
        "cost_micros": maybe(COUNT),
        "outcome": one_of(CallOutcome),
        "at": MOMENT,
    }
)
SOURCE = obj({"session_id": TEXT, "seq": COUNT, "seq_to": COUNT, "quote": TEXT})
FACT = obj(
    {
        "id": TEXT,
        "space": TEXT,
        "content": TEXT,
        "source": maybe(TEXT),
        "sources": listed(SOURCE),
        "source_count": COUNT,
        "tags": TEXTS,
        "metadata": FREE,
        "trust": one_of(Trust),
        "topic": maybe(TEXT),
        "created_at": maybe(MOMENT),
        "updated_at": maybe(MOMENT),
        "valid_from": maybe(MOMENT),
        "valid_to": maybe(MOMENT),
        "superseded_by": maybe(TEXT),
        "usage_count": COUNT,
        "last_usage": maybe(MOMENT),
        "shown_count": COUNT,
        "extractor": maybe(TEXT),
    }
)
FACT_CHANGE = obj(
    {
        "fact_id": TEXT,
        "event": one_of(FactEvent),
        "content": maybe(TEXT),
        "at": MOMENT,
        "by": maybe(TEXT),
        "other_id": maybe(TEXT),
    }
)
HIT = obj(
    {
        "id": TEXT,
        "kind": one_of(EntryKind),
        "text": TEXT,
        "score": NUMBER,
        "why": FREE,
        "sources": listed(SOURCE),
        "at": MOMENT,
        "trust": one_of(Trust),
        "title": TEXT,
        "speaker": TEXT,
        "tags": TEXTS,
        "usage_count": COUNT,
    }
)
CONTEXT = obj(
    {
        "id": TEXT,
        "text": TEXT,
        "token_count": COUNT,
        "citations": listed(obj({"mark": TEXT, "hit": HIT, "sources": listed(SOURCE)})),
        "omitted": listed(obj({"hit": HIT, "reason": TEXT, "instead": maybe(TEXT)})),
    }
)
AUTHOR = obj({"kind": one_of(AuthorKind), "name": TEXT})
DOCUMENT = obj(
    {
        "id": TEXT,
        "space": TEXT,
        "path": TEXT,
        "title": TEXT,
        "description": TEXT,
        "body": TEXT,
        "tags": TEXTS,
        "links": TEXTS,
        "version": COUNT,
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "deleted_at": maybe(MOMENT),
        "author": AUTHOR,
        "reason": TEXT,
        "sources": listed(SOURCE),
        "facts": TEXTS,
    }
)
DELETED = obj(
    {
        "id": TEXT,
        "path": TEXT,
        "title": TEXT,
        "version": COUNT,
        "body_chars": COUNT,
        "deleted_at": MOMENT,
        "author": AUTHOR,
        "reason": TEXT,
    }
)
NODE = obj(
    {
        "id": TEXT,
        "path": TEXT,
        "title": TEXT,
        "description": TEXT,
        "version": COUNT,
        "body_chars": COUNT,
        "updated_at": MOMENT,
        "has_children": BOOL,
    }
)
VERSION = obj(
    {
        "version": COUNT,
        "event": one_of(DocumentEvent),
        "path": TEXT,
        "title": TEXT,
        "description": TEXT,
        "body": TEXT,
        "tags": TEXTS,
        "links": TEXTS,
        "at": MOMENT,
        "author": AUTHOR,
        "reason": TEXT,
        "sources": listed(SOURCE),
        "facts": TEXTS,
    }
)
REFERENCE = obj(
    {
        "kind": one_of(ReferenceKind),
        "source": TEXT,
        "target": TEXT,
        "alias": maybe(TEXT),
        "is_broken": BOOL,
    }
)
GENERATION = obj(
    {
        "space": TEXT,
        "number": COUNT,
        "made_at": MOMENT,
        "made_by": TEXT,
        "note": TEXT,
        "added": COUNT,
        "retained": COUNT,
        "removed": COUNT,
        "documents": COUNT,
        "changed": COUNT,
        "spent": SPENT,
        "is_whole": BOOL,
        "restored_from": maybe(COUNT),
    }
)
CONSOLIDATION = obj(
    {
        "space": TEXT,
        "generation": COUNT,
        "waits_for": one_of(Waiting),
        "next_attempt_at": maybe(MOMENT),
        "changed": COUNT,
        "consolidated": COUNT,
        "changed_at": maybe(MOMENT),
        "finished_at": maybe(MOMENT),
        "paused_at": maybe(MOMENT),
        "expires_at": maybe(MOMENT),
        "state": one_of(JobState),
        "due_at": maybe(MOMENT),
        "failures": COUNT,
        "last_error": maybe(TEXT),
        "sessions_due": COUNT,
    }
)
GENERATION_CHANGE = obj({"path": TEXT, "change": TEXT, "diff": TEXT})
JOB = obj(
    {
        "id": COUNT,
        "space": maybe(TEXT),
        "kind": one_of(JobKind),
        "key": TEXT,
        "state": one_of(JobState),
        "why": TEXT,
        "next_attempt_at": maybe(MOMENT),
        "first_due_at": maybe(MOMENT),
        "due_at": maybe(MOMENT),
        "owner": maybe(TEXT),
        "lease_expires_at": maybe(MOMENT),
        "token": COUNT,
        "failures": COUNT,
        "takeovers": COUNT,
        "last_error": maybe(TEXT),
        "last_error_at": maybe(MOMENT),
        "finished_at": maybe(MOMENT),
    }
)
STATUS = obj(
    {
        "store": obj({"kind": TEXT, "schema_version": COUNT}),
        "at": MOMENT,
        "marked_count": COUNT,
        "marked": listed(SESSION),
        "waiting_count": COUNT,
        "waiting": listed(SESSION),
        "job_counts": FREE,
        "jobs": listed(JOB),
        "idle_sweep_seconds": NUMBER,
        "sessions": listed(FREE),
        "agents": listed(FREE),
        "spent_today": SPENT,
        "models": listed(obj({"job": TEXT, "by": maybe(TEXT), "today": SPENT, "in_all": SPENT})),
        "consolidations_due": COUNT,
    }
)
RECEIPT = obj(
    {
        "space": TEXT,
        "session_id": maybe(TEXT),
        "record": maybe(TEXT),
        "fact_id": maybe(TEXT),
        "path": maybe(TEXT),
        "agent_id": maybe(TEXT),
        "source": maybe(TEXT),
        "sessions": COUNT,
        "records": COUNT,
        "facts": COUNT,
        "sources": COUNT,
        "extractions": COUNT,
        "summaries": COUNT,
        "documents": COUNT,
        "versions": COUNT,
        "items": COUNT,
        "left": TEXTS,
        "may_remain": TEXTS,
        "name_in": TEXTS,
        "is_complete": BOOL,
        "at": MOMENT,
    }
)
NAMED: dict[str, Schema] = {
    "Problem": PROBLEM,
    "Spent": SPENT,
    "Record": RECORD,
    "Session": SESSION,
    "Range": RANGE,
    "Extraction": EXTRACTION,
    "Call": CALL,
    "Source": SOURCE,
    "Fact": FACT,
    "FactChange": FACT_CHANGE,
    "Hit": HIT,
    "Context": CONTEXT,
    "Author": AUTHOR,
    "Document": DOCUMENT,
    "DeletedDocument": DELETED,
    "Node": NODE,
    "Version": VERSION,
    "Reference": REFERENCE,
    "Generation": GENERATION,
    "Consolidation": CONSOLIDATION,
    "GenerationChange": GENERATION_CHANGE,
    "Job": JOB,
    "Status": STATUS,
    "Receipt": RECEIPT,
}


def paged(name: str, items: Schema) -> Schema:
    return obj({name: listed(items), "next": maybe(TEXT)})
