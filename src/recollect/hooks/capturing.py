"""What was said, kept: an agent's own transcript as far as it is new, or what the payload has.

Doing it twice is the same as doing it once, and what was cut off half-way goes on the next time:
a transcript is known by its items, a message by its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recollect.collection import Message
from recollect.errors import AppendKeyReused, InvalidValue
from recollect.hooks.events import MARKING, Agent, Event, PayloadMessage, conversation, own_key
from recollect.hooks.process import project
from recollect.importers.claude_code import ClaudeCode
from recollect.importers.codex import Codex
from recollect.importers.generic import GenericJsonl
from recollect.importers.items import ImportSource
from recollect.importers.running import Importing
from recollect.memory import Memory
from recollect.session import Session
from recollect.space import Space

BATCH = 100
_THREAD = re.compile(r"[0-9A-Za-z-]{8,64}")
_SOURCES: Mapping[Agent, ImportSource] = {
    Agent.CLAUDE_CODE: ClaudeCode(),
    Agent.CODEX: Codex(),
    Agent.GENERIC: GenericJsonl(),
}


def capture(
    memory: Memory, space_name: str, event: Event, environment: Mapping[str, str], home: Path
) -> int:
    """Keep what is new of a conversation, and mark it where it pauses; how many were refused."""
    space = memory.space(space_name)
    paths = list(_transcripts(event, environment, home))
    refused = 0
    if paths:
        importing = Importing(memory, space_name, _SOURCES[event.agent])
        importing.run(paths, marks=event.moment in MARKING)
    elif event.said:
        refused = _append(space, event)
    if event.moment in MARKING:
        # An earlier call may have brought in all of it, and marked nothing.
        session = conversation(space, event)
        if session is not None:
            session.sleep()
    return refused


def _transcripts(event: Event, environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """The files that an agent keeps of the conversation, as far as there are any to read."""
    path = _transcript(event, environment, home)
    if path is None:
        return
    yield path
    own_folder = path.with_suffix("")
    if event.agent is Agent.CLAUDE_CODE and own_folder.is_dir():
        yield own_folder  # what its sub-agents said


def _transcript(event: Event, environment: Mapping[str, str], home: Path) -> Path | None:
    if event.transcript is not None:
        path = Path(event.transcript).expanduser()
        return path if path.is_file() else None
    if event.agent is Agent.CODEX and event.said and _THREAD.fullmatch(event.session):
        # A notification names no file; its name ends in the thread's id.
        root = Path(environment.get("CODEX_HOME") or home / ".codex") / "sessions"
        return max(root.glob(f"*/*/*/rollout-*-{event.session}.jsonl"), default=None)
    return None


def _append(space: Space, event: Event) -> int:
    session = space.session(
        own_key(event),
        event.agent.value,
        source=event.agent.value,
        project=project(event),
    )
    refused = 0
    for start in range(0, len(event.said), BATCH):
        batch = event.said[start : start + BATCH]
        try:
            session.append_many(_messages(batch))
        except (AppendKeyReused, InvalidValue):
            refused += sum(not _is_appended(session, each) for each in batch)
    return refused


def _is_appended(session: Session, said: PayloadMessage) -> bool:
    """One by one: a message that cannot be kept does not take the others along."""
    try:
        session.append_many(_messages([said]))
    except (AppendKeyReused, InvalidValue):
        return False
    return True


def _messages(batch: Sequence[PayloadMessage]) -> list[Message]:
    return [Message(message=each.message, key=each.key) for each in batch]
