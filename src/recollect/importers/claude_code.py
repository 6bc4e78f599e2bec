"""Reads Claude Code's logs: one file of JSON lines for each session, and one for each sub-agent.

An entry becomes at most one item, known by its own uuid: after a resume the same entry stands in
two files. What is sent again under the same parent is a branch and counted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from recollect.importers.agent_logs import (
    BOOKKEEPING,
    REPEATED,
    Json,
    Meaning,
    Said,
    Unknown,
    broken,
    digest,
    kept_entry,
    label,
    oddities,
    plain_id,
    time_of,
    type_name,
)
from recollect.importers.claude_code_entries import (
    BOOKKEEPING_TYPES,
    model_of,
    read_assistant,
    read_queued,
    read_system,
    read_user,
)
from recollect.importers.items import (
    Conversation,
    Found,
    Item,
    LeftOut,
    Odd,
    Origin,
    Reader,
    Shape,
    Trouble,
)
from recollect.importers.projects import known_directory

NAME = "claude-code"

SENT_MAX = 48  # messages whose branches are known again
SESSIONS_MAX = 2  # sessions of one file whose directory is remembered

_AGENT_FILE = re.compile(r"agent-(.{1,128})")


class ClaudeCode:
    """Claude Code, by its logs."""

    name = NAME
    shape = Shape.LINES
    names = ()

    def places(self, environment: Mapping[str, str], home: Path) -> Sequence[Path]:
        configured = environment.get("CLAUDE_CONFIG_DIR", "").strip()
        return ((Path(configured) if configured else home / ".claude") / "projects",)

    def is_file(self, path: Path) -> bool:
        return path.suffix == ".jsonl" and not path.name.startswith(".")

    def probe(self, entries: Sequence[object]) -> str | None:
        """The version that wrote the first entry that says one."""
        known = [entry for entry in entries if isinstance(entry, dict) and _is_ours(entry)]
        versions = (label(entry.get("version")) for entry in known)
        version = next((each for each in versions if each), None)
        if version is not None:
            return f"Claude Code {version}"
        return "Claude Code" if known else None

    def reader(self, origin: Origin, memo: Mapping[str, Json]) -> Reader:
        return _Reader(origin, memo)


def _is_ours(entry: Mapping[str, Json]) -> bool:
    kind = entry.get("type")
    if not isinstance(kind, str):
        return False
    if "sessionId" in entry and ("uuid" in entry or "parentUuid" in entry):
        return True
    return ("leafUuid" in entry and kind == "summary") or (
        kind in BOOKKEEPING_TYPES and ("sessionId" in entry or "messageId" in entry)
    )


class _Reader:
    """Reads one file; remembers where its sessions began, and what was sent of late."""

    def __init__(self, origin: Origin, memo: Mapping[str, Json]) -> None:
        stem = origin.path.stem
        agent = _AGENT_FILE.fullmatch(stem)
        self._file_agent = plain_id(agent[1]) if agent else None
        self._file_session = plain_id(stem) or "unnamed"
        directories = memo.get("directories")
        self._directories: dict[str, str] = (
            dict(directories) if isinstance(directories, dict) else {}
        )
        sent = memo.get("sent")
        self._sent: list[str] = list(sent) if isinstance(sent, list) else []
        boundary = memo.get("boundary")
        self._boundary: str | None = boundary if isinstance(boundary, str) else None

    @property
    def memo(self) -> Mapping[str, Json]:
        return {
            "directories": dict(self._directories),
            "sent": list(self._sent),
            "boundary": self._boundary,
        }

    def read(self, entry: object, line: int) -> Iterator[Found]:
        if not isinstance(entry, dict):
            yield broken("not an object", line)
            return
        meaning = self._meaning(entry)
        match meaning:
            case LeftOut():
                yield meaning
            case Odd():
                yield Odd(trouble=meaning.trouble, detail=meaning.detail, line=line)
            case Unknown():
                yield Odd(trouble=Trouble.UNKNOWN, detail=meaning.type, line=line)
                yield self._item(entry, Said(message=kept_entry(entry)))
            case Said():
                yield from oddities(meaning, line)
                yield self._once(entry, meaning)
            case _:
                assert_never(meaning)

    def _meaning(self, entry: Mapping[str, Json]) -> Meaning:
        kind = entry.get("type")
        match kind:
            case "user":
                return read_user(entry, is_hosts=self._is_hosts(entry))
            case "assistant":
                return read_assistant(entry)
            case "attachment":
                return read_queued(entry, is_hosts=self._is_sidechain(entry))
            case "system":
                if entry.get("subtype") == "compact_boundary":
                    self._boundary = plain_id(entry.get("uuid"))
                return read_system(entry)
            case str() if kind in BOOKKEEPING_TYPES:
                return BOOKKEEPING
            case _:
                return Unknown(type=type_name(kind))

    def _is_hosts(self, entry: Mapping[str, Json]) -> bool:
        """A sub-agent is asked by an agent; and a compaction is followed by a model's summary."""
        parent = plain_id(entry.get("parentUuid"))
        follows = parent is not None and parent == self._boundary
        if follows:
            self._boundary = None  # one summary; whoever speaks next is heard again
        return follows or self._is_sidechain(entry)

    def _is_sidechain(self, entry: Mapping[str, Json]) -> bool:
        return entry.get("isSidechain") is True or self._file_agent is not None

    def _once(self, entry: Mapping[str, Json], said: Said) -> Item | LeftOut:
        item = self._item(entry, said)
        if said.words is None:
            return item
        mark = digest(item.conversation.key, entry.get("parentUuid"), said.words)[:16]
        if mark in self._sent:
            return REPEATED
        self._sent = [*self._sent, mark][-SENT_MAX:]
        return item

    def _item(self, entry: Mapping[str, Json], said: Said) -> Item:
        session = plain_id(entry.get("sessionId")) or self._file_session
        directory = known_directory(entry.get("cwd"))
        first = self._first_directory(session, directory)
        details = {
            "branch": label(entry.get("gitBranch")),
            "cwd": directory if directory != first else None,
            "version": label(entry.get("version")),
            "model": model_of(entry),
            "sidechain": self._is_sidechain(entry),
            "command": said.command,
        }
        return Item(
            id=plain_id(entry.get("uuid")) or f"x-{digest(session, dict(entry))}",
            conversation=self._conversation(entry, session, first),
            message=said.message,
            at=time_of(entry.get("timestamp")),
            metadata={name: value for name, value in details.items() if value},
        )

    def _conversation(
        self, entry: Mapping[str, Json], session: str, directory: str | None
    ) -> Conversation:
        main = (NAME, session)
        if not self._is_sidechain(entry):
            return Conversation(key=main, agent=NAME, directory=directory)
        agent = self._file_agent or plain_id(entry.get("agentId"))
        own = f"agent-{agent}" if agent else "sidechain"
        return Conversation(key=(*main, own), agent=NAME, directory=directory, parent=main)

    def _first_directory(self, session: str, directory: str | None) -> str | None:
        if session not in self._directories:
            if directory is None:
                return None
            recent = [*self._directories.items(), (session, directory)]
            self._directories = dict(recent[-SESSIONS_MAX:])
        return self._directories[session]
