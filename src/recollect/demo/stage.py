"""Where the demonstration takes place: its settings, its sample sessions, and a step as a value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import recollect
from recollect.clock import ManualClock
from recollect.document import Document

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
SECONDS_BETWEEN_MESSAGES = 20
THRESHOLD = 5
IDLE_SECONDS = 600
SETTINGS: Mapping[str, Any] = {
    "mark_threshold": THRESHOLD,
    "mark_unit": "records",
    "idle_sweep_seconds": IDLE_SECONDS,
    "extractor": "rules",  # offline, whatever model the user has
    "extract_on_session_start": "off",
    "memory_agent_model": "rules",
    "consolidation_model": "rules",
    "consolidation": "off",  # by hand, when it is its turn to be shown
}
# In one piece it would look like a password that somebody left in a file.
_WORDS = ("violet", "anchor", "4711")
PASSWORD = "-".join(_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A session before and after what happened."""

    before: recollect.SessionState
    after: recollect.SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is shown: what is said about it, what was appended, and what came of it."""

    title: str
    story: str
    said: tuple[recollect.Record, ...] = ()
    changes: tuple[Change, ...] = ()
    results: tuple[str, ...] = ()
    extraction: recollect.Extraction | None = None
    facts: tuple[recollect.Fact, ...] = ()
    history: tuple[recollect.FactChange, ...] = ()
    pages: tuple[Document, ...] = ()


def read_samples() -> dict[str, dict[str, Any]]:
    text = (resources.files("recollect") / "samples" / "sessions.json").read_text("utf-8")
    return {sample["name"]: sample for sample in json.loads(text)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where the play takes place."""

    memory: recollect.Memory
    space: recollect.Space
    clock: ManualClock
    samples: Mapping[str, Mapping[str, Any]] = field(default_factory=read_samples)

    def session(self, name: str) -> recollect.Session:
        sample = self.samples[name]
        return self.space.session(sample["key"], agent=sample["agent"], source="demo")

    def say(
        self, name: str, first: int = 1, last: int | None = None
    ) -> tuple[recollect.Record, ...]:
        """Append a stretch of a sample's messages, some seconds apart."""
        session = self.session(name)
        said: list[recollect.Record] = []
        for message in self.samples[name]["messages"][first - 1 : last]:
            self.clock.advance(SECONDS_BETWEEN_MESSAGES)
            said += session.append_many([_with_password(message)])
        return tuple(said)

    def state(self, session_id: str) -> recollect.SessionState:
        state = self.space.sessions.get(session_id)
        assert state is not None
        return state

    def others_wait(self) -> bool:
        """Whether the store holds sessions of others that are not processed yet."""
        whole, own = self.memory.status(limit=0), self.memory.status(self.space.name, limit=0)
        counts = (own.marked_count, own.waiting_count)
        return (whole.marked_count, whole.waiting_count) != counts


def ranges_in_words(space: recollect.Space, session_id: str) -> str:
    ranges = space.sessions.ranges(session_id)
    return ", ".join(f"{each.first_seq}–{each.last_seq} {each.outcome}" for each in ranges)


def _with_password(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        content = content.replace("{password}", PASSWORD)
    return {**message, "content": content}
