"""Writes our hooks into an agent's settings, and takes exactly those out again.

What somebody else wrote stays as it is, byte for byte. A settings file that cannot be understood is
not touched, and one that changes while we look at it is not written over.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any

from recollect.errors import InvalidValue, NotAllowed, UsageError
from recollect.hooks.events import Agent

Place = tuple[str | int, ...]

INDENT = "  "
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class _JsonPart:
    """A member or an element: where it stands with its name, and where its value stands."""

    name: str | int
    start: int
    value: int
    end: int


def read_object(text: str) -> dict[str, Any]:
    """What a text says. InvalidValue: no JSON object, or one that says something twice."""
    try:
        content = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"it is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidValue("it is not a JSON object")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name stands there twice")
    return content


def with_added(text: str, place: Place, value: Any, name: str | None = None) -> str:
    """The text with one more at the end of an object (which needs a name) or of a list."""
    start = _find(text, place)
    parts = list(_parts(text, start))
    outer, step = _margin(text, start), _step(text)
    is_inline = bool(parts) and "\n" not in text[start : parts[0].start]
    written = json.dumps(value, indent=None if is_inline else step, ensure_ascii=False)
    if name is not None:
        written = f"{json.dumps(name, ensure_ascii=False)}: {written}"
    if is_inline:
        return f"{text[: parts[-1].end]}, {written}{text[parts[-1].end :]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    margin = _margin(text, parts[0].start) if parts else outer + step
    written = written.replace("\n", newline + margin)
    if parts:
        return f"{text[: parts[-1].end]},{newline}{margin}{written}{text[parts[-1].end :]}"
    close = _skipped(text, start + 1)
    return f"{text[: start + 1]}{newline}{margin}{written}{newline}{outer}{text[close:]}"


def without(text: str, place: Place) -> str:
    """The text without a member or an element, its comma and the space around it."""
    *outer, name = place
    start = _find(text, tuple(outer))
    parts = list(_parts(text, start))
    at = next(index for index, part in enumerate(parts) if part.name == name)
    if at > 0:
        return text[: parts[at - 1].end] + text[parts[at].end :]
    if len(parts) > 1:
        return text[: parts[0].start] + text[parts[1].start :]
    close = _skipped(text, parts[0].end)
    return text[: start + 1] + text[close:]


def _find(text: str, place: Place) -> int:
    """Where the value at a place begins."""
    start = _skipped(text, 0)
    for name in place:
        start = next(part.value for part in _parts(text, start) if part.name == name)
    return start


def _parts(text: str, start: int) -> Iterator[_JsonPart]:
    """The members of the object, or the elements of the list, that begins here."""
    is_object = text[start] == "{"
    at, position = _skipped(text, start + 1), 0
    while text[at] not in "]}":
        begin, name = at, position
        found: str | int = name
        if is_object:
            found, at = _DECODER.raw_decode(text, at)
            at = _skipped(text, _skipped(text, at) + 1)  # behind the colon
        _, end = _DECODER.raw_decode(text, at)
        yield _JsonPart(name=found, start=begin, value=at, end=end)
        position += 1
        at = _skipped(text, end)
        if text[at] == ",":
            at = _skipped(text, at + 1)


def _skipped(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None  # it matches nothing, too
    return space.end()


def _margin(text: str, at: int) -> str:
    """What stands before a line's first character."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : _indented(text, line)]


def _indented(text: str, line: int) -> int:
    while line < len(text) and text[line] in " \t":
        line += 1
    return line


def _step(text: str) -> str:
    """By how much this text indents; as most do where it has but one line."""
    first = next(iter(_parts(text, _skipped(text, 0))), None)
    return (_margin(text, first.start) if first else "") or INDENT


FILE_BYTES_MAX = 5_000_000
TIMEOUT_SECONDS = 10  # the agent's own limit, far above ours
BACKUP_SUFFIX = ".before-recollect"
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


class SettingsScope(StrEnum):
    """Whose settings are edited."""

    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """A file as it is and as it shall be."""

    path: Path
    before: bytes | None  # there is no such file yet
    after: bytes
    has_ours: bool = False  # before

    @property
    def changes(self) -> bool:
        return self.after != (self.before or b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """Where an agent keeps its hooks, which of them we want, and in what it measures time."""

    folder: str
    file: str
    variable: str | None
    events: tuple[str, ...]
    timeout: int = TIMEOUT_SECONDS


_AGENTS: Mapping[Agent, _Settings] = {
    Agent.CLAUDE_CODE: _Settings(
        folder=".claude",
        file="settings.json",
        variable="CLAUDE_CONFIG_DIR",
        events=("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"),
    ),
    Agent.CODEX: _Settings(
        folder=".codex",
        file="hooks.json",
        variable="CODEX_HOME",
        events=("SessionStart", "UserPromptSubmit", "Stop", "PreCompact"),
    ),
    Agent.GEMINI_CLI: _Settings(
        folder=".gemini",
        file="settings.json",
        variable=None,
        events=("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"),
        timeout=TIMEOUT_SECONDS * 1000,
    ),
}
INSTALLABLE = tuple(_AGENTS)


def settings_file(
    agent: Agent, scope: SettingsScope, environment: Mapping[str, str], home: Path, directory: Path
) -> Path:
    """The file with an agent's hooks."""
    known = _AGENTS[agent]
    if scope is SettingsScope.PROJECT:
        return directory / known.folder / known.file
    named = environment.get(known.variable) if known.variable else None
    return (Path(named).expanduser() if named else home / known.folder) / known.file


def plan_install(path: Path, agent: Agent, command: str) -> FileEdit:
    """Our hooks, once each and as they shall be now, behind those that are there."""
    plan = plan_uninstall(path, agent)
    known = _AGENTS[agent]
    hook = {"type": "command", "command": command, "timeout": known.timeout}
    if plan.before is not None and _is_installed(plan.before, path, agent, hook):
        return replace(plan, after=plan.before)
    lead, text = _parted(plan.after.decode())
    text = text if text.strip() else "{}\n"
    for event in known.events:
        text = _with_hook(text, event, {"hooks": [hook]}, path)
    return replace(plan, after=(lead + text).encode())


def plan_uninstall(path: Path, agent: Agent) -> FileEdit:
    """Without our hooks, and without what only they were in."""
    before = _read(path)
    if before is None or not before.strip():
        return FileEdit(path=path, before=before, after=before or b"", has_ours=False)
    lead, text = _parted(_decoded(before, path))
    for event in _AGENTS[agent].events:
        text = _without_hooks(text, event, agent, path)
    after = (lead + text).encode()
    return FileEdit(path=path, before=before, after=after, has_ours=after != before)


def apply(plan: FileEdit) -> Path | None:
    """Write what was planned, whole or not at all; the file as it was is kept beside it.

    One that has our hooks already does not take the place of one from before them, and none comes
    back. UsageError: somebody changed it since it was read.
    """
    path = Path(os.path.realpath(plan.path))  # a link stays one
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotAllowed(f"{path.parent} cannot be made: {error.strerror}") from error
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    mode = 0o600 if plan.before is None else stat.S_IMODE(path.stat().st_mode)
    backup = None
    try:
        _write(aside, plan.after, mode)
        if _read(plan.path) != plan.before:
            raise UsageError(f"{plan.path} was changed by somebody else just now; try again")
        kept = path.with_name(f"{path.name}{BACKUP_SUFFIX}")
        if plan.before is not None and not (plan.has_ours and kept.exists()):
            backup = kept
            _write(backup, plan.before, mode)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return backup


def is_ours(command: object, agent: Agent) -> bool:
    """Whether a hook's command is `recollect hook AGENT`, however it is started."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if not words:
        return False
    program, rest = PurePath(words[0]).name, words[1:]
    if program != "recollect":
        if rest[:3] != ["-P", "-m", "recollect"] or not program.startswith("python"):
            return False
        rest = rest[3:]
    at = rest.index("hook") if "hook" in rest else len(rest)
    return rest[at + 1 : at + 2] == [agent.value]


def _with_hook(text: str, event: str, entry: Mapping[str, Any], path: Path) -> str:
    hooks = _hooks(text, path)
    if hooks is None:
        return with_added(text, (), {event: [entry]}, "hooks")
    if event not in hooks:
        return with_added(text, ("hooks",), [entry], event)
    return with_added(text, ("hooks", event), entry)


def _without_hooks(text: str, event: str, agent: Agent, path: Path) -> str:
    while True:
        found = _ours(_hooks(text, path) or {}, event, agent)
        if found is None:
            return text
        text = without(text, found)


def _ours(hooks: Mapping[str, Any], event: str, agent: Agent) -> Place | None:
    """The outermost place that has one of our hooks and nothing else."""
    for at, entry in enumerate(_listed(hooks.get(event))):
        inner = _listed(entry.get("hooks")) if isinstance(entry, dict) else []
        for position, hook in enumerate(inner):
            if not isinstance(hook, dict) or not is_ours(hook.get("command"), agent):
                continue
            if len(inner) > 1:
                return ("hooks", event, at, "hooks", position)
            if len(hooks[event]) > 1:
                return ("hooks", event, at)
            return ("hooks", event) if len(hooks) > 1 else ("hooks",)
    return None


def _hooks(text: str, path: Path) -> dict[str, Any] | None:
    content = read_object(text)
    hooks = content.get("hooks")
    if hooks is None and "hooks" not in content:
        return None
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise InvalidValue(f"{path}: its hooks are not as this agent writes them; not touched")
    return hooks


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _is_installed(content: bytes, path: Path, agent: Agent, hook: Mapping[str, Any]) -> bool:
    """Whether every event has our hook, once and just so, wherever in its list."""
    text = _parted(content.decode())[1]
    hooks = (_hooks(text, path) if text.strip() else None) or {}
    return all(
        [each for each in _commands(hooks, event) if is_ours(each.get("command"), agent)] == [hook]
        for event in _AGENTS[agent].events
    )


def _commands(hooks: Mapping[str, Any], event: str) -> Iterator[Mapping[str, Any]]:
    for entry in _listed(hooks.get(event)):
        inner = _listed(entry.get("hooks")) if isinstance(entry, dict) else []
        yield from (hook for hook in inner if isinstance(hook, dict))


def _decoded(content: bytes, path: Path) -> str:
    try:
        text = content.decode()
        read_object(_parted(text)[1])
    except (UnicodeDecodeError, InvalidValue) as error:
        raise InvalidValue(f"{path} is not touched: {error}") from error
    return text


def _parted(text: str) -> tuple[str, str]:
    """A mark of the byte order that some editors write, and the rest."""
    return (BOM, text[1:]) if text.startswith(BOM) else ("", text)


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotAllowed(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise InvalidValue(f"{path} is too large for settings; not touched")
    return content


def _write(path: Path, content: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise NotAllowed(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(number, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(number, mode)
        os.fsync(number)
