"""Reads single items of a Codex rollout: the speaker, and what was spoken.

Codex hands its model instructions, the state of the machine and notices under the user's name; they
are kept as the host's. Both forms of a rollout hold the same items, with or without an envelope.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path

from recollect.extraction.injected import without_instructions
from recollect.importers.agent_logs import (
    BOOKKEEPING,
    OUTPUT_CHARS_MAX,
    REASONING,
    Allowance,
    Gathered,
    Json,
    LogMessage,
    Meaning,
    Words,
    all_of_it,
    found_in,
    label,
    none_of_it,
    not_known,
    output_text,
    plain_id,
    storable_value,
    type_name,
    without_blocks,
)
from recollect.importers.items import (
    FileShape,
    Found,
    ImportedMessage,
    ImportedSession,
    ImportSource,
    LeftOut,
    Origin,
    broken,
    digest,
    metadata_of,
    moment,
)
from recollect.importers.projects import known_directory

_ITEM_BOOKKEEPING = frozenset(
    {"ghost_snapshot", "compaction", "compaction_summary", "context_compaction"}
    | {"tool_search_output"}
)
# By type: which tool is called, if the call does not name it, and where what it is given stands.
_CALLS: Mapping[str, tuple[str | None, str]] = {
    "function_call": (None, "arguments"),
    "custom_tool_call": (None, "input"),
    "local_shell_call": ("local_shell", "action"),
    "web_search_call": ("web_search", "action"),
    "tool_search_call": ("tool_search", "arguments"),
    "image_generation_call": ("image_generation", "revised_prompt"),
}
_TEXTS = ("input_text", "output_text", "text")
# What an item says; a copy of it may say the rest otherwise.
_ESSENCE = (
    *("type", "role", "content", "message", "call_id", "name", "arguments", "input", "output"),
    "action",
)

_HOST_TAG = re.compile(
    r"\s*<(?:environment_context|user_instructions|turn_aborted|user_shell_command|skill"
    r"|subagent_notification|collaboration_mode|personality_spec|recommended_plugins|model_switch"
    r"|hook_prompt|user_action|[a-z]{1,40}[ _]instructions)\b[^<>]*>"
)
_HOST_TEXT = re.compile(
    r"\s*(?:# AGENTS\.md instructions for |Another language model started to solve this problem)"
)
# What an editor tells of its files before the request itself.
_EDITOR_REQUEST = re.compile(
    r"\s*# Context from my IDE setup:.*?\n## My request for Codex:\s*", re.DOTALL
)
_IMAGE_TAG = re.compile(r"\s*</?image\b[^<>]*>\s*")
# Taken out of what the user is shown, though not out of what the model is.
_UNSHOWN = ("proposed_plan", "oai-mem-citation")
_CWD = re.compile(r"<cwd>([^<\n]+)</cwd>|Current working directory:[ \t]*([^\n]+)")
_EXIT = re.compile(r"(?:^|\n)(?:Exit code:|Process exited with code) (-?\d{1,10})\b")
_HEAD_CHARS = 400  # where a tool says how a command ended, before its output


def read_item(entry: Mapping[str, Json], payload: Mapping[str, Json], *, is_hosts: bool) -> Meaning:
    """An item as the model saw it. `is_hosts`: its user messages come from an agent."""
    kind = payload.get("type")
    match kind:
        case "message":
            return _message(payload, is_hosts=is_hosts)
        case str() if kind in _CALLS:
            name, given = _CALLS[kind]
            return _call(payload, name or payload.get("name"), payload.get(given))
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            return _output(payload)
        case "reasoning":
            return REASONING
        case str() if kind in _ITEM_BOOKKEEPING:
            return BOOKKEEPING
        case _:
            return not_known(entry, f"response_item/{type_name(kind)}")


def read_event(payload: Mapping[str, Json], *, is_hosts: bool) -> Meaning:
    """A message as the user saw it."""
    text = payload.get("message")
    if not isinstance(text, str):
        return broken("an event without its message")
    is_agent = payload.get("type") == "agent_message"
    own = all_of_it if is_agent else none_of_it if is_hosts else own_words
    gathered = Gathered(role="assistant" if is_agent else "user", own_words=own)
    gathered.add_text(text)
    return gathered.meaning()


def read_compaction(payload: Mapping[str, Json]) -> Meaning:
    """The summary that a model wrote; what it replaces stands in the file already."""
    text = payload.get("message")
    if not isinstance(text, str) or not text.strip():
        return BOOKKEEPING
    return LogMessage(message={"role": "system", "content": Allowance().text(text)})


def own_words(text: str) -> Words | None:
    """What a person wrote of a text under the user's name; none where the host wrote it all."""
    request = _EDITOR_REQUEST.match(text)
    if request is not None:
        return Words(text=text[request.end() :])
    tag = _HOST_TAG.match(text)
    if tag is not None and text.rstrip().endswith(">"):
        return None
    if _HOST_TEXT.match(text) or not without_instructions(text).strip():
        return None
    return Words(text=text)


def directory_told(payload: Mapping[str, Json]) -> str | None:
    """The working directory, as a message about the machine says it."""
    for text in _texts(payload):
        if "<environment_context>" in text[:200]:
            found = _CWD.search(text)
            if found is not None:
                return (found[1] or found[2]).strip()
    return None


def likeness(said: LogMessage, payload: Mapping[str, Json]) -> str:
    """A mark by which the two forms of one message are known as the same."""
    is_users = payload.get("role") == "user" or payload.get("type") == "user_message"
    text = said.words or "".join(_texts(payload))
    shown = text
    for tag in _UNSHOWN:
        shown = without_blocks(shown, tag)
    return digest(is_users, "".join(shown.split()) or "".join(text.split()))[:16]


def _texts(payload: Mapping[str, Json]) -> list[str]:
    content = payload.get("content", payload.get("message"))
    blocks = [content] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return []
    texts = (block.get("text") if isinstance(block, dict) else block for block in blocks)
    return [text for text in texts if isinstance(text, str)]


def _message(payload: Mapping[str, Json], *, is_hosts: bool) -> Meaning:
    content = payload.get("content")
    if not isinstance(content, str | list):
        return broken("a message without content")
    match payload.get("role"):
        case "assistant":
            gathered = Gathered(role="assistant", own_words=all_of_it)
        case "user" if not is_hosts:
            gathered = Gathered(role="user", own_words=own_words)
        case "user" | "developer" | "system":
            gathered = Gathered(role="system", own_words=none_of_it)
        case _:
            return broken("a message without a known role")
    return gathered.gather(content, _add)


def _add(block: dict[str, Json], gathered: Gathered) -> None:
    text = block.get("text")
    if block.get("type") not in _TEXTS:
        gathered.add_other(block)
    elif not isinstance(text, str):
        gathered.faults += 1
    elif not _IMAGE_TAG.fullmatch(text):
        gathered.add_text(text)


def _call(payload: Mapping[str, Json], name: Json, arguments: Json) -> Meaning:
    if not isinstance(name, str) or not name:
        return broken("a call without a name")
    allowance = Allowance()
    return LogMessage(
        message=metadata_of(
            type="function_call",
            call_id=label(payload.get("call_id")),
            name=allowance.text(name, 200),
            arguments=storable_value(arguments, allowance),
        )
    )


def _output(payload: Mapping[str, Json]) -> Meaning:
    text, is_error = _unwrapped(payload.get("output"))
    return LogMessage(
        message=metadata_of(
            type="function_call_output",
            call_id=label(payload.get("call_id")),
            output=Allowance().text(text, OUTPUT_CHARS_MAX),
            is_error=is_error or None,
        )
    )


def _unwrapped(output: Json) -> tuple[str, bool]:
    """The text of an answer and whether it failed: versions wrap the two in different ways."""
    if isinstance(output, str) and output.startswith("{") and '"output"' in output:
        try:
            decoded = json.loads(output)
        except (ValueError, RecursionError):
            decoded = None
        if isinstance(decoded, dict) and isinstance(decoded.get("output"), str):
            about = decoded.get("metadata")
            code = about.get("exit_code") if isinstance(about, dict) else None
            return output_text(decoded["output"]), type(code) is int and code != 0
    if isinstance(output, dict) and isinstance(output.get("content"), str | list):
        return output_text(output["content"]), output.get("success") is False
    text = output_text(output)
    code = _EXIT.search(text[:_HEAD_CHARS])
    return text, code is not None and int(code[1]) != 0


NAME = "codex"

OPEN_MAX = 16  # messages whose other form has not come yet

SAME = LeftOut(reason="the user's view of the same")
_ENVELOPES = ("session_meta", "turn_context", "response_item", "event_msg")
_SESSION_IN_NAME = re.compile(r"rollout-.{0,40}?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def _places(environment: Mapping[str, str], home: Path) -> Sequence[Path]:
    configured = environment.get("CODEX_HOME", "").strip()
    at = Path(configured) if configured else home / ".codex"
    return (at / "sessions", at / "archived_sessions")


def _form(entries: Sequence[object]) -> str | None:
    """The version that the header names, or which of the two forms it is."""
    known = [entry for entry in entries if isinstance(entry, dict)]
    for entry in known:
        if entry.get("type") == "session_meta" and isinstance(entry.get("payload"), dict):
            version = label(entry["payload"].get("cli_version"))
            return f"Codex {version}" if version else "Codex"
    if any("payload" in entry and entry.get("type") in _ENVELOPES for entry in known):
        return "Codex"
    return "Codex, the form of early 2025" if any(map(_is_old_header, known)) else None


def _is_old_header(entry: Mapping[str, Json]) -> bool:
    return (
        "type" not in entry
        and isinstance(entry.get("id"), str)
        and isinstance(entry.get("timestamp"), str)
        and ("instructions" in entry or "git" in entry)
    )


@dataclass(slots=True, kw_only=True)
class _RolloutMemo:
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
    def of(cls, memo: Mapping[str, Json]) -> _RolloutMemo:
        return cls(**{each.name: memo[each.name] for each in fields(cls) if each.name in memo})


class _RolloutReader:
    """Reads one rollout; the header, the turns and what is open are its memo."""

    def __init__(self, origin: Origin, memo: Mapping[str, Json]) -> None:
        named = _SESSION_IN_NAME.search(origin.path.stem)
        self._file_session = (
            named[1] if named else plain_id(origin.path.stem.removeprefix("rollout-")) or "unnamed"
        )
        self._known = _RolloutMemo.of(memo)

    @property
    def memo(self) -> Mapping[str, Json]:
        values = {each.name: getattr(self._known, each.name) for each in fields(self._known)}
        return {name: value for name, value in values.items() if value}

    def read(self, entry: object, line: int) -> Iterator[Found]:
        if not isinstance(entry, dict):
            yield broken("not an object", line)
            return
        payload = entry.get("payload", entry)  # early rollouts have no envelopes
        if not isinstance(payload, dict):
            yield broken("a payload of a wrong shape", line)
            return
        meaning = self._meaning(entry, payload)
        yield from found_in(meaning, line, lambda said: self._item(entry, payload, said))

    def _meaning(self, entry: Mapping[str, Json], payload: Mapping[str, Json]) -> Meaning:
        kind = entry.get("type")
        if payload is entry and kind is not None:
            return self._response(entry, entry)
        match kind:
            case "session_meta":
                self._begin(payload)
                return BOOKKEEPING
            case "turn_context":
                self._known.model = label(payload.get("model")) or self._known.model
                self._stand(known_directory(payload.get("cwd")))
                return BOOKKEEPING
            case "response_item":
                return self._response(entry, payload)
            case "event_msg":
                return self._event(payload)
            case "compacted":
                return read_compaction(payload)
            case None if _is_old_header(entry):
                self._begin(entry)
                return BOOKKEEPING
            case None if "record_type" in entry:  # it only says how far it got
                return BOOKKEEPING
            case _:
                return not_known(entry, type_name(kind))

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

    def _stand(self, directory: str | None) -> None:
        known = self._known
        known.here = directory or known.here
        known.directory = known.directory or directory

    def _response(self, entry: Mapping[str, Json], payload: Mapping[str, Json]) -> Meaning:
        self._known.items += 1  # of every kind, so that no version counts otherwise
        meaning = read_item(entry, payload, is_hosts=self._known.is_sub_agent)
        if not isinstance(meaning, LogMessage) or payload.get("type") != "message":
            return meaning
        self._stand(known_directory(directory_told(payload)))
        is_said = payload.get("role") in ("user", "assistant")
        is_known = is_said and self._is_other_form("event", likeness(meaning, payload))
        return SAME if is_known else meaning

    def _event(self, payload: Mapping[str, Json]) -> Meaning:
        """What a person or the agent said; of all else the user was shown, the items say more."""
        if payload.get("type") not in ("user_message", "agent_message"):
            return BOOKKEEPING
        self._known.events += 1
        meaning = read_event(payload, is_hosts=self._known.is_sub_agent)
        if not isinstance(meaning, LogMessage):
            return meaning
        return SAME if self._is_other_form("item", likeness(meaning, payload)) else meaning

    def _is_other_form(self, other: str, mark: str) -> bool:
        """Whether the other form of this message came before; if not, it is expected."""
        known = self._known
        if f"{other}:{mark}" in known.open:
            known.open.remove(f"{other}:{mark}")
            return True
        own = "item" if other == "event" else "event"
        known.open = [*known.open, f"{own}:{mark}"][-OPEN_MAX:]
        return False

    def _item(
        self, entry: Mapping[str, Json], payload: Mapping[str, Json], said: LogMessage
    ) -> ImportedMessage:
        known = self._known
        session = known.session or self._file_session
        is_event = entry.get("type") == "event_msg"
        number = f"e{known.events}" if is_event else f"{known.items}"
        content = (
            digest(entry) if "entry" in said.message else digest([*map(payload.get, _ESSENCE)])
        )
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
        return ImportedMessage(
            id=f"{session if is_own else known.lineage or session}-{number}-{content}",
            conversation=ImportedSession(
                key=(NAME, session),
                agent=NAME,
                directory=known.directory,
                parent=None if known.parent is None else (NAME, known.parent),
            ),
            message=said.message,
            at=moment(entry.get("timestamp")) or moment(known.started),
            metadata={name: value for name, value in details.items() if value},
        )


def _spawned_by(source: Json) -> str | None:
    """The session that started a sub-agent."""
    inner = source.get("subagent") if isinstance(source, dict) else None
    spawn = inner.get("thread_spawn") if isinstance(inner, dict) else None
    return plain_id(spawn.get("parent_thread_id")) if isinstance(spawn, dict) else None


# Codex, by its rollouts.
Codex = partial(
    ImportSource,
    name=NAME,
    is_file=lambda path: path.suffix == ".jsonl" and path.name.startswith("rollout-"),
    probe=_form,
    reader=_RolloutReader,
    shape=FileShape.LINES,
    places=_places,
)
