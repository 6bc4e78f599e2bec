"""Writes our hooks and our server into an agent's settings, links skills, and undoes exactly that.

What somebody else wrote keeps its meaning, its order and its indentation. A settings file that
cannot be understood is not touched, and one that changes while we look at it is not written over.
A skill is a link to the published one, so that it goes when the skill does.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
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
SERVER = "recollect"
SKILL_FILE = "SKILL.md"
_SERVER_TABLE = re.compile(rf"^\[mcp_servers\.{SERVER}[.\]](?:.*\n?)(?:(?!\[).*\n?)*", re.MULTILINE)
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
    """Where an agent keeps its settings, which hooks we want, and in what it measures time.

    A file is named from the user's own folder of the agent; one that begins with a slash from the
    home directory. `servers` and `project_servers` list MCP servers.
    """

    folder: str
    file: str
    variable: str | None
    events: tuple[str, ...]
    servers: str
    project_servers: str
    skills: str
    timeout: int = TIMEOUT_SECONDS


_AGENTS: Mapping[str, _Settings] = {
    Agent.CLAUDE_CODE: _Settings(
        folder=".claude",
        file="settings.json",
        variable="CLAUDE_CONFIG_DIR",
        events=("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"),
        servers="/.claude.json",
        project_servers=".mcp.json",
        skills="skills",
    ),
    Agent.CODEX: _Settings(
        folder=".codex",
        file="hooks.json",
        variable="CODEX_HOME",
        events=("SessionStart", "UserPromptSubmit", "Stop", "PreCompact"),
        servers="config.toml",
        project_servers=".codex/config.toml",
        skills="/.agents/skills",
    ),
    Agent.GEMINI_CLI: _Settings(
        folder=".gemini",
        file="settings.json",
        variable=None,
        events=("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"),
        servers="settings.json",
        project_servers=".gemini/settings.json",
        skills="skills",
        timeout=TIMEOUT_SECONDS * 1000,
    ),
    "cursor": _Settings(
        folder=".cursor",
        file="",
        variable=None,
        events=(),
        servers="mcp.json",
        project_servers=".cursor/mcp.json",
        skills="skills",
    ),
}
INSTALLABLE = tuple(Agent(name) for name, known in _AGENTS.items() if known.events)

Change = Callable[[dict[str, Any]], bool]  # returns whether the settings had something of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlaces:
    """Where an agent looks for what we give it; none: it does not look for that."""

    hooks: Path | None
    servers: Path
    skills: Path | None


def places_of(
    agent: str, scope: SettingsScope, environment: Mapping[str, str], home: Path, directory: Path
) -> AgentPlaces:
    """The files of an agent, of the user or of the project in a directory."""
    known = _AGENTS[agent]
    if scope is SettingsScope.PROJECT:  # a link to one person's skills is nothing for others
        hooks = directory / known.folder / known.file if known.events else None
        return AgentPlaces(hooks=hooks, servers=directory / known.project_servers, skills=None)
    named = environment.get(known.variable) if known.variable else None
    own = Path(named).expanduser() if named else home / known.folder

    def place(name: str) -> Path:
        if not name.startswith("/"):
            return own / name
        # Claude Code keeps this file inside the folder that the variable names.
        is_beside = bool(named) and agent == Agent.CLAUDE_CODE
        return (own if is_beside else home) / name.removeprefix("/")

    hooks = own / known.file if known.events else None
    return AgentPlaces(hooks=hooks, servers=place(known.servers), skills=place(known.skills))


def plan_install(path: Path, agent: Agent, command: str) -> FileEdit:
    """Our hooks, once each and as they shall be now, behind those that are there."""
    hook = {"type": "command", "command": command, "timeout": _AGENTS[agent].timeout}

    def install(content: dict[str, Any]) -> bool:
        if _installed(content, agent) == [[hook]] * len(_AGENTS[agent].events):
            return True
        has_ours = _remove(content, agent)
        hooks = content.setdefault("hooks", {})
        for event in _AGENTS[agent].events:
            hooks.setdefault(event, []).append({"hooks": [hook]})
        return has_ours

    return _edited(path, install)


def plan_uninstall(path: Path, agent: Agent) -> FileEdit:
    """Without our hooks, and without what only they were in."""
    return _edited(path, lambda content: _remove(content, agent))


def plan_server(path: Path, command: Sequence[str] | None, base: FileEdit | None) -> FileEdit:
    """Our MCP server as it shall be started, or none; `base` is what is planned for the file."""
    if path.suffix == ".toml":
        return _toml_server(path, command)

    def change(content: dict[str, Any]) -> bool:
        servers = content.get("mcpServers", {})
        if not isinstance(servers, dict):
            raise InvalidValue(f"{path}: mcpServers is not a JSON object; not touched")
        has_ours = SERVER in servers
        _expect_ours(servers.get(SERVER), path)
        if command is not None:
            kept = servers.get(SERVER, {})
            servers[SERVER] = {**kept, "command": command[0], "args": list(command[1:])}
            content["mcpServers"] = servers
        elif has_ours:
            del servers[SERVER]
            if not servers:
                del content["mcpServers"]
        return has_ours

    return _edited(path, change, base)


def _toml_server(path: Path, command: Sequence[str] | None) -> FileEdit:
    """The same in TOML, of which the text around our table is left as it is."""
    before = _read(path)
    try:
        old = (before or b"").decode()
        known = tomllib.loads(old)
    except ValueError as error:
        raise InvalidValue(f"{path} is not touched: it is not valid TOML: {error}") from error
    servers = known.get("mcp_servers", {})
    has_ours = isinstance(servers, dict) and SERVER in servers
    entry = {} if command is None else {"command": command[0], "args": list(command[1:])}
    if has_ours:
        _expect_ours(servers[SERVER], path)
        if servers.pop(SERVER) == entry:
            return FileEdit(path=path, before=before, after=before or b"", has_ours=True)
    new = _SERVER_TABLE.sub("", old) if has_ours else old
    if command is not None:
        # A JSON text is a TOML text as well, and so is a list of them.
        lines = [f"{name} = {json.dumps(value)}" for name, value in entry.items()]
        gap = "\n" if new.strip() else ""
        new = "\n".join([f"{new.rstrip()}\n{gap}[mcp_servers.{SERVER}]".lstrip(), *lines, ""])
        known.setdefault("mcp_servers", {})[SERVER] = entry
    if not _means(new, known):
        raise InvalidValue(f"{path}: mcp_servers.{SERVER} is not a table of its own; not touched")
    return FileEdit(path=path, before=before, after=new.encode(), has_ours=has_ours)


def _means(text: str, content: Mapping[str, Any]) -> bool:
    """Whether a TOML text says this, but for tables with nothing in them."""
    try:
        said = tomllib.loads(text)
    except ValueError:
        return False
    filled = [{name: each for name, each in one.items() if each != {}} for one in (said, content)]
    return filled[0] == filled[1]


def _expect_ours(entry: object, path: Path) -> None:
    """InvalidValue: somebody else's server has our name."""
    if entry is None:
        return
    words = [entry.get("command"), *entry.get("args", [])] if isinstance(entry, dict) else []
    if not _is_ours([str(word) for word in words], "mcp"):
        raise InvalidValue(f"{path}: another program's server is called {SERVER}; not touched")


def link_skills(published: Path, folder: Path) -> list[Path]:
    """Link what is published as a skill into an agent's folder, and drop links to what is gone.

    Return the links that there are now. What has a skill's name there and is not ours is left.
    """
    found = {each.parent.name: each.parent for each in published.glob(f"*/{SKILL_FILE}")}
    unlink_skills(published, folder, kept=found)
    if found:
        folder.mkdir(parents=True, exist_ok=True)
    links = []
    for name, skill in sorted(found.items()):
        link = folder / name
        if not link.is_symlink() and not link.exists():
            link.symlink_to(skill, target_is_directory=True)
        if link.is_symlink() and link.readlink() == skill:
            links.append(link)
    return links


def unlink_skills(published: Path, folder: Path, kept: Mapping[str, Path] | None = None) -> int:
    """Remove the links that lead to what was published, but for those to be kept; how many."""
    ours = [
        each
        for each in (folder.iterdir() if folder.is_dir() else ())
        if each.is_symlink() and each.readlink().parent == published
    ]
    gone = [each for each in ours if each.name not in (kept or {})]
    for each in gone:
        each.unlink()
    return len(gone)


def _edited(path: Path, change: Change, base: FileEdit | None = None) -> FileEdit:
    """A file of JSON after a change; the same bytes where that changes nothing."""
    before = _read(path) if base is None else base.before
    start = before if base is None else base.after
    content, old = _content(start, path), _content(start, path)
    has_ours = change(content) or (base is not None and base.has_ours)
    after = (start or b"") if content == old else _written(content, start)
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
    return _is_ours(words, "hook", agent.value)


def _is_ours(words: Sequence[str], *command: str) -> bool:
    """Whether these words start `recollect` with this command."""
    if not words:
        return False
    program, rest = PurePath(words[0]).name, list(words[1:])
    if program != "recollect":
        if rest[:3] != ["-P", "-m", "recollect"] or not program.startswith("python"):
            return False
        rest = rest[3:]
    at = rest.index(command[0]) if command[0] in rest else len(rest)
    return tuple(rest[at : at + len(command)]) == command


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
