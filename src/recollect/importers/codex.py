"""Reads Codex's rollouts: one file of JSON lines for each session, in the new form and the old one.

A message often stands there twice, as the model saw it and as the user did: whichever comes first
is taken, the other is known again. An item's id is made of its session, its number among the
session's items and what it says; a fork begins with its parent's items, and so with their ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, assert_never

from recollect.importers.agent_logs import (
    BOOKKEEPING,
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
from recollect.importers.codex_entries import (
    EVENT_TYPES,
    ITEM_TYPES,
    directory_told,
    essence,
    likeness,
    read_compaction,
    read_event,
    read_item,
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

NAME = "codex"

OPEN_MAX = 16  # messages whose other form has not come yet

SAME = LeftOut(reason="the user's view of the same")
_ENVELOPES = ("session_meta", "turn_context", "response_item", "event_msg")
_SESSION_IN_NAME = re.compile(r"rollout-.{0,40}?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


class Codex:
    """Codex, by its rollouts."""

    name = NAME
    shape = Shape.LINES
    names = ()

    def places(self, environment: Mapping[str, str], home: Path) -> Sequence[Path]:
        configured = environment.get("CODEX_HOME", "").strip()
        at = Path(configured) if configured else home / ".codex"
        return (at / "sessions", at / "archived_sessions")

    def is_file(self, path: Path) -> bool:
        return path.suffix == ".jsonl" and path.name.startswith("rollout-")

    def probe(self, entries: Sequence[object]) -> str | None:
        """The version that the header names, or which of the two forms it is."""
        known = [entry for entry in entries if isinstance(entry, dict)]
        for entry in known:
            if entry.get("type") == "session_meta" and isinstance(entry.get("payload"), dict):
                version = label(entry["payload"].get("cli_version"))
                return f"Codex {version}" if version else "Codex"
        if any("payload" in entry and entry.get("type") in _ENVELOPES for entry in known):
            return "Codex"
        return "Codex, the form of early 2025" if any(map(_is_old_header, known)) else None

    def reader(self, origin: Origin, memo: Mapping[str, Json]) -> Reader:
        return _Reader(origin, memo)


def _is_old_header(entry: Mapping[str, Json]) -> bool:
    return (
        "type" not in entry
        and isinstance(entry.get("id"), str)
        and isinstance(entry.get("timestamp"), str)
        and ("instructions" in entry or "git" in entry)
    )


@dataclass(slots=True, kw_only=True)
class _Known:
    """What a reader remembers of a rollout: its memo."""

    session: str | None = None
    lineage: str | None = None  # the session whose items this file begins with
    parent: str | None = None
    is_sub_agent: bool = False
    directory: str | None = None  # the first one
    here: str | None = None
    branch: str | None = None
    version: str | None = None
    model: str | None = None
    started: str | None = None
    items: int = 0
    events: int = 0
    open: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, memo: Mapping[str, Json]) -> _Known:
        return cls(**{each.name: memo[each.name] for each in fields(cls) if each.name in memo})

    def as_memo(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["open"] = list(self.open)
        return {name: value for name, value in values.items() if value}


class _Reader:
    """Reads one rollout; the header, the turns and what is open are its memo."""

    def __init__(self, origin: Origin, memo: Mapping[str, Json]) -> None:
        named = _SESSION_IN_NAME.search(origin.path.stem)
        self._file_session = (
            named[1] if named else plain_id(origin.path.stem.removeprefix("rollout-")) or "unnamed"
        )
        self._known = _Known.of(memo)

    @property
    def memo(self) -> Mapping[str, Json]:
        return self._known.as_memo()

    def read(self, entry: object, line: int) -> Iterator[Found]:
        if not isinstance(entry, dict):
            yield broken("not an object", line)
            return
        kind, payload = entry.get("type"), entry.get("payload")
        if "payload" in entry and not isinstance(payload, dict):
            yield broken("a payload of a wrong shape", line)
        elif isinstance(payload, dict):
            yield from self._enveloped(entry, payload, line)
        elif kind is None:
            yield from self._untyped(entry, line)
        elif isinstance(kind, str) and kind in ITEM_TYPES:
            yield from self._response(entry, entry, line)
        else:
            yield from self._found(Unknown(type=type_name(kind)), entry, entry, line)

    def _enveloped(
        self, entry: Mapping[str, Json], payload: Mapping[str, Json], line: int
    ) -> Iterator[Found]:
        kind = entry.get("type")
        match kind:
            case "session_meta":
                self._begin(payload)
                yield BOOKKEEPING
            case "turn_context":
                self._turn(payload)
                yield BOOKKEEPING
            case "response_item":
                yield from self._response(entry, payload, line)
            case "event_msg":
                yield from self._event(entry, payload, line)
            case "compacted":
                yield from self._found(read_compaction(payload), entry, payload, line)
            case _:
                yield from self._found(Unknown(type=type_name(kind)), entry, entry, line)

    def _untyped(self, entry: Mapping[str, Json], line: int) -> Iterator[Found]:
        """The old form's header, and lines that only say how far it got."""
        if _is_old_header(entry):
            self._begin(entry)
            yield BOOKKEEPING
        elif "record_type" in entry:
            yield BOOKKEEPING
        else:
            yield from self._found(Unknown(type=type_name(None)), entry, entry, line)

    def _begin(self, header: Mapping[str, Json]) -> None:
        """The first header is the file's own; those of a fork's forebears may follow it."""
        known, session = self._known, plain_id(header.get("id"))
        forked = plain_id(header.get("forked_from_id"))
        if known.session is not None:
            if session == known.lineage and forked is not None and not known.items:
                known.lineage = forked
            return
        source, git = header.get("source"), header.get("git")
        known.session = session
        known.lineage = forked or session
        known.is_sub_agent = (isinstance(source, dict) and "subagent" in source) or header.get(
            "agent_nickname"
        ) is not None
        known.parent = _spawned_by(source) or forked
        known.directory = known.here = known_directory(header.get("cwd"))
        known.branch = label(git.get("branch")) if isinstance(git, dict) else None
        known.version = label(header.get("cli_version"))
        known.started = label(header.get("timestamp"))

    def _turn(self, context: Mapping[str, Json]) -> None:
        known = self._known
        known.model = label(context.get("model")) or known.model
        self._stand(known_directory(context.get("cwd")))

    def _stand(self, directory: str | None) -> None:
        known = self._known
        known.here = directory or known.here
        known.directory = known.directory or directory

    def _response(
        self, entry: Mapping[str, Json], payload: Mapping[str, Json], line: int
    ) -> Iterator[Found]:
        self._known.items += 1  # of every kind, so that no version counts otherwise
        meaning = read_item(payload, is_hosts=self._known.is_sub_agent)
        if isinstance(meaning, Said) and payload.get("type") == "message":
            self._stand(known_directory(directory_told(payload)))
            if payload.get("role") in ("user", "assistant") and self._is_other_form(
                "event", likeness(meaning, payload)
            ):
                yield SAME
                return
        yield from self._found(meaning, entry, payload, line)

    def _event(
        self, entry: Mapping[str, Json], payload: Mapping[str, Json], line: int
    ) -> Iterator[Found]:
        match payload.get("type"):
            case "user_message" | "agent_message":
                self._known.events += 1
                meaning = read_event(payload, is_hosts=self._known.is_sub_agent)
                is_known = isinstance(meaning, Said) and self._is_other_form(
                    "item", likeness(meaning, payload)
                )
                yield from [SAME] if is_known else self._found(meaning, entry, payload, line)
            case str() as kind if kind in EVENT_TYPES:
                yield BOOKKEEPING
            case kind:
                unknown = Unknown(type=f"event_msg/{type_name(kind)}")
                yield from self._found(unknown, entry, payload, line)

    def _is_other_form(self, other: str, mark: str) -> bool:
        """Whether the other form of this message came before; if not, it is expected."""
        known = self._known
        if f"{other}:{mark}" in known.open:
            known.open.remove(f"{other}:{mark}")
            return True
        own = "item" if other == "event" else "event"
        known.open = [*known.open, f"{own}:{mark}"][-OPEN_MAX:]
        return False

    def _found(
        self,
        meaning: Meaning,
        entry: Mapping[str, Json],
        payload: Mapping[str, Json],
        line: int,
    ) -> Iterator[Found]:
        match meaning:
            case LeftOut():
                yield meaning
            case Odd():
                yield Odd(trouble=meaning.trouble, detail=meaning.detail, line=line)
            case Unknown():
                yield Odd(trouble=Trouble.UNKNOWN, detail=meaning.type, line=line)
                yield self._item(entry, payload, Said(message=kept_entry(entry)))
            case Said():
                yield from oddities(meaning, line)
                yield self._item(entry, payload, meaning)
            case _:
                assert_never(meaning)

    def _item(self, entry: Mapping[str, Json], payload: Mapping[str, Json], said: Said) -> Item:
        known = self._known
        session = known.session or self._file_session
        is_event = entry.get("type") == "event_msg"
        number = f"e{known.events}" if is_event else f"{known.items}"
        content = digest(entry) if "entry" in said.message else essence(payload)
        # A sub-agent may begin with its parent's items, too: what its parent's user said is the
        # host's here, and must not stand for the words themselves.
        is_own = known.is_sub_agent and said.message.get("role") == "system"
        details = {
            "branch": known.branch,
            "cwd": known.here if known.here != known.directory else None,
            "version": known.version,
            "model": known.model if said.message.get("role") == "assistant" else None,
            "sidechain": known.is_sub_agent,
        }
        return Item(
            id=f"{session if is_own else known.lineage or session}-{number}-{content}",
            conversation=Conversation(
                key=(NAME, session),
                agent=NAME,
                directory=known.directory,
                parent=None if known.parent is None else (NAME, known.parent),
            ),
            message=said.message,
            at=time_of(entry.get("timestamp")) or time_of(known.started),
            metadata={name: value for name, value in details.items() if value},
        )


def _spawned_by(source: Json) -> str | None:
    """The session that started a sub-agent."""
    inner = source.get("subagent") if isinstance(source, dict) else None
    spawn = inner.get("thread_spawn") if isinstance(inner, dict) else None
    return plain_id(spawn.get("parent_thread_id")) if isinstance(spawn, dict) else None
