"""Facts in the shapes that mem0 answers in: memories, and the events of their history. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import md5
from typing import Any

from recollect.compat.mem0_scopes import ACTOR, EXPIRES, IDENTITY
from recollect.knowledge import Fact, FactChange, FactEvent

PROMOTED = (*IDENTITY, ACTOR, "role", EXPIRES)  # beside the memory; everything else is metadata

_EVENTS: Mapping[FactEvent, str] = {
    FactEvent.ADDED: "ADD",
    FactEvent.RESTORED: "ADD",
    FactEvent.EDITED: "UPDATE",
    FactEvent.APPROVED: "UPDATE",
    FactEvent.SUPERSEDED: "DELETE",
    FactEvent.WITHDRAWN: "DELETE",
    FactEvent.DELETED: "DELETE",
}


def shape(fact: Fact, payload: Mapping[str, Any], named: str) -> dict[str, Any]:
    """A memory; `payload` is who it belongs to and what else was said about it."""
    item: dict[str, Any] = {
        "id": named,
        "memory": fact.content,
        "hash": md5(fact.content.encode(), usedforsecurity=False).hexdigest(),
        "metadata": {k: v for k, v in payload.items() if k not in PROMOTED} or None,
        "created_at": None if fact.created_at is None else fact.created_at.isoformat(),
        "updated_at": None if fact.updated_at is None else fact.updated_at.isoformat(),
    }
    return item | {name: payload[name] for name in PROMOTED if name in payload}


def events(
    changes: Sequence[FactChange], payload: Mapping[str, Any], named: str
) -> list[dict[str, Any]]:
    """The history of a memory, oldest first."""
    told: list[dict[str, Any]] = []
    before: str | None = None
    for number, change in enumerate(changes, start=1):
        event = _EVENTS[change.event]
        now = None if event == "DELETE" else change.content
        told.append(
            {
                "id": f"{named}#{number}",
                "memory_id": named,
                "old_memory": before,
                "new_memory": now,
                "event": event,
                "created_at": changes[0].at.isoformat(),
                "updated_at": change.at.isoformat(),
                "is_deleted": event == "DELETE",
                ACTOR: payload.get(ACTOR),
                "role": payload.get("role"),
            }
        )
        before = now
    return told


def normal(score: float) -> float:
    """A score as mem0 has them, from 0 to 1; the order stays."""
    return max(score, 0.0) / (1.0 + max(score, 0.0))
