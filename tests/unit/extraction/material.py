"""What the tests of extraction are made of: records, blocks, pieces and answers, with defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from recollect.collection import prepare
from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.messages import Role
from recollect.types.facts import Extraction, Fact, Trust
from recollect.types.records import Mode, Record, SessionState

START = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)


def at(seq: int) -> datetime:
    """When the record of that number was said: one a minute."""
    return START + timedelta(minutes=seq)


def records(
    *messages: Mapping[str, Any], metadata: Mapping[int, Mapping[str, Any]] | None = None
) -> list[Record]:
    """Messages as the store gives them back, numbered from 1; metadata by number."""
    found = []
    for seq, message in enumerate(messages, start=1):
        new = prepare(dict(message), record_bytes_max=10_000_000)
        found.append(
            Record(
                session_id="s1",
                seq=seq,
                role=new.role,
                content=new.content,
                name=new.name,
                body=new.body,
                at=at(seq),
                created_at=at(seq),
                key=None,
                metadata=(metadata or {}).get(seq, {}),
            )
        )
    return found


def unchanged(text: str) -> str:
    """A redaction that finds nothing."""
    return text


def said(seq: int, text: str, *, name: str | None = None) -> Block:
    return Block(seq=seq, at=at(seq), role=Role.USER, kind=BlockKind.SAID, text=text, speaker=name)


def answered(seq: int, text: str) -> Block:
    return Block(seq=seq, at=at(seq), role=Role.ASSISTANT, kind=BlockKind.SAID, text=text)


def called(seq: int, text: str, *, tool: str = "shell", call_id: str | None = None) -> Block:
    return Block(
        seq=seq,
        at=at(seq),
        role=Role.ASSISTANT,
        kind=BlockKind.CALL,
        text=text,
        tool=tool,
        call_id=call_id,
    )


def resulted(seq: int, text: str, *, tool: str = "shell", call_id: str | None = None) -> Block:
    return Block(
        seq=seq,
        at=at(seq),
        role=Role.TOOL,
        kind=BlockKind.RESULT,
        text=text,
        tool=tool,
        call_id=call_id,
    )


def session(*, space: str = "default", project: str | None = None) -> SessionState:
    return SessionState(
        id="session-id-1",
        space=space,
        key="conversation-key",
        agent_id="/user/assistant",
        rotation=0,
        source="api",
        project=project,
        parent=None,
        ephemeral=False,
        mode=Mode.ENABLED,
        remembered=True,
        last_seq=100,
        invalidated_at=100,
        processed_until=None,
        marked_at=None,
        marked_by=None,
        created_at=START,
        last_activity_at=START,
        ended_at=None,
        ended_by=None,
    )


def piece(*blocks: Block, **given: Any) -> Piece:
    seqs = [block.seq for block in blocks]
    made: dict[str, Any] = {
        "session": session(),
        "blocks": blocks,
        "first": min(seqs, default=1),
        "upto": max(seqs, default=1),
        "previous": None,
    }
    return Piece(**(made | given))


def extraction(**given: Any) -> Extraction:
    made: dict[str, Any] = {
        "session_id": "session-id-1",
        "space": "default",
        "raw_memory": "## Tea\noutcome: success",
        "rollout_summary": "Tea was made.",
        "rollout_slug": "tea",
        "extractor": "rules/1",
        "pass_number": 1,
        "upto": 1,
        "source_updated_at": START,
        "generated_at": START,
        "usage_count": 0,
        "last_usage": None,
        "selected_for_phase2": False,
        "selected_for_phase2_source_updated_at": None,
    }
    return Extraction(**(made | given))


def known(content: str, fact_id: str, *, trust: Trust = Trust.USER, space: str = "default") -> Fact:
    return Fact(content, id=fact_id, trust=trust, space=space, valid_from=START)


def fact(content: str, records: Sequence[Any] = (1,), **given: Any) -> dict[str, Any]:
    """A fact as a model answers it."""
    made = {
        "content": content,
        "kind": "preference",
        "records": list(records),
        "quote": "",
        "topic": None,
        "supersedes": [],
        "until": None,
    }
    return made | given


def answer(*facts: Any, **given: Any) -> str:
    """A model's whole answer."""
    made = {
        "raw_memory": "## Tea",
        "rollout_summary": "Tea.",
        "rollout_slug": "tea",
        "facts": list(facts),
    }
    return json.dumps(made | given)
