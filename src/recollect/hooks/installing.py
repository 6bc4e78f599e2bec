"""Writes our hooks into an agent's settings, and takes exactly those out again.

What somebody else wrote keeps its meaning, its order and its indentation. A settings file that
cannot be understood is not touched, and one that changes while we look at it is not written over.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any

from recollect.errors import InvalidValue, NotAllowed, UsageError
from recollect.hooks.events import Agent

FILE_BYTES_MAX = 5_000_000
TIMEOUT_SECONDS = 10  # the agent's own limit, far above ours
BACKUP_SUFFIX = ".before-recollect"
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"  # some editors begin a file with it
INDENT = "  "
_INDENTED = re.compile(r"^[ \t]+(?=\S)", re.MULTILINE)


class SettingsScope(StrEnum):
    """The settings that are edited: the user's, or the project's."""

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
    before = _read(path)
    content = _content(before, path)
    hook = {"type": "command", "command": command, "timeout": _AGENTS[agent].timeout}
    if _installed(content, agent) == [[hook]] * len(_AGENTS[agent].events):
        return FileEdit(path=path, before=before, after=before or b"", has_ours=True)
    has_ours = _remove(content, agent)
    hooks = content.setdefault("hooks", {})
    for event in _AGENTS[agent].events:
        hooks.setdefault(event, []).append({"hooks": [hook]})
    return FileEdit(path=path, before=before, after=_written(content, before), has_ours=has_ours)


def plan_uninstall(path: Path, agent: Agent) -> FileEdit:
    """Without our hooks, and without what only they were in."""
    before = _read(path)
    content = _content(before, path)
    has_ours = _remove(content, agent)
    after = _written(content, before) if has_ours else before or b""
    return FileEdit(path=path, before=before, after=after, has_ours=has_ours)


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


def _installed(content: Mapping[str, Any], agent: Agent) -> list[list[Any]]:
    """Our hooks, event by event."""
    return [
        [
            hook
            for entry in content.get("hooks", {}).get(event, [])
            for hook in _inner(entry)
            if _is_hook_of(hook, agent)
        ]
        for event in _AGENTS[agent].events
    ]


def _remove(content: dict[str, Any], agent: Agent) -> bool:
    """Take our hooks out, with what only they were in; whether there were any."""
    if not any(_installed(content, agent)):
        return False
    hooks = content["hooks"]
    for event in _AGENTS[agent].events:
        entries = hooks.get(event, [])
        for entry in list(entries):
            ours = [hook for hook in _inner(entry) if _is_hook_of(hook, agent)]
            if ours:
                entry["hooks"] = [hook for hook in entry["hooks"] if hook not in ours]
                if not entry["hooks"]:
                    entries.remove(entry)
        if not entries:
            hooks.pop(event, None)
    if not hooks:
        del content["hooks"]
    return True


def _inner(entry: object) -> list[Any]:
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return hooks if isinstance(hooks, list) else []


def _is_hook_of(hook: object, agent: Agent) -> bool:
    return isinstance(hook, dict) and is_ours(hook.get("command"), agent)


def _content(data: bytes | None, path: Path) -> dict[str, Any]:
    """What settings say. InvalidValue: no JSON object, or one that says something twice."""
    try:
        text = (data or b"").decode().removeprefix(BOM)
        content = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
        json.dumps(content, allow_nan=False, ensure_ascii=False).encode()  # it can be written again
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{path} is not touched: it is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidValue(f"{path} is not touched: it is not a JSON object")
    hooks = content.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise InvalidValue(f"{path}: its hooks are not as this agent writes them; not touched")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name occurs twice")
    return content


def _written(content: Mapping[str, Any], before: bytes | None) -> bytes:
    """Settings as a file, indented and ended as the file before was."""
    old = (before or b"").decode()
    indented = _INDENTED.search(old)
    indent = indented[0] if indented else INDENT
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    text += "\n" if old.endswith("\n") or not old.strip() else ""
    text = text.replace("\n", "\r\n") if "\r\n" in old else text
    return ((BOM if old.startswith(BOM) else "") + text).encode()


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
