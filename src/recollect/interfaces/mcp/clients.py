"""Settings for agents that are to start `recollect mcp`: pure text, needs no SDK."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

NAME = "recollect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A piece of configuration, and where it belongs."""

    agent: str
    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agent:
    place: str
    write: Callable[[Sequence[str]], str]
    has_project: bool = True  # it starts the server in the directory that it works in


def snippet(agent: str, command: Sequence[str]) -> Snippet:
    """Return the setting with which an agent starts a command."""
    known = _AGENTS[agent]
    return Snippet(agent=agent, place=known.place, text=known.write(command))


def has_project(agent: str) -> bool:
    """Whether the directory that an agent starts the server in means anything."""
    return _AGENTS[agent].has_project


def _json(key: str, **more: object) -> Callable[[Sequence[str]], str]:
    def write(command: Sequence[str]) -> str:
        entry = {**more, "command": command[0], "args": list(command[1:])}
        return json.dumps({key: {NAME: entry}}, indent=2, ensure_ascii=False)

    return write


def _toml(command: Sequence[str]) -> str:
    # A JSON text is a TOML text as well, and so is a list of them.
    program, arguments = json.dumps(command[0]), json.dumps(list(command[1:]))
    return f"[mcp_servers.{NAME}]\ncommand = {program}\nargs = {arguments}"


def _shell(command: Sequence[str]) -> str:
    return f"claude mcp add --scope user {NAME} -- {shlex.join(command)}"


_AGENTS: Mapping[str, _Agent] = {
    "claude-code": _Agent(place="Run this command once:", write=_shell),
    "claude-desktop": _Agent(
        place="Put it into claude_desktop_config.json (Settings, Developer, Edit Config), then"
        " restart the application:",
        write=_json("mcpServers"),
        has_project=False,
    ),
    "codex": _Agent(place="Add it to ~/.codex/config.toml:", write=_toml),
    "cursor": _Agent(
        place="Put it into ~/.cursor/mcp.json, or .cursor/mcp.json of a project:",
        write=_json("mcpServers"),
        has_project=False,
    ),
    "vscode": _Agent(
        place="Put it into .vscode/mcp.json of a project, or the user's mcp.json:",
        write=_json("servers", type="stdio"),
    ),
    "gemini": _Agent(place="Put it into ~/.gemini/settings.json:", write=_json("mcpServers")),
    "zed": _Agent(
        place="Put it into Zed's settings.json:",
        write=_json("context_servers", source="custom"),
    ),
    "windsurf": _Agent(
        place="Put it into ~/.codeium/windsurf/mcp_config.json:",
        write=_json("mcpServers"),
        has_project=False,
    ),
}
AGENTS = tuple(_AGENTS)
