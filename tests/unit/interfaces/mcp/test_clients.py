"""What --config prints is what each agent reads: the same command in its own form."""

from __future__ import annotations

import json
import shlex
import tomllib

from recollect.interfaces.mcp.clients import AGENTS, snippet
from tests.tables import every_row

COMMAND = ["/opt/a b/recollect", "mcp", "--store", '/data/it\'s "m".db', "--space", "é"]
KEYS = {"vscode": "servers", "zed": "context_servers"}


def read(agent: str, text: str) -> list[str]:
    if agent == "claude-code":
        words = shlex.split(text)
        assert words[:3] == ["claude", "mcp", "add"]
        return words[words.index("--") + 1 :]
    if agent == "codex":
        entry = tomllib.loads(text)["mcp_servers"]["recollect"]
    else:
        entry = json.loads(text)[KEYS.get(agent, "mcpServers")]["recollect"]
    return [entry["command"], *entry["args"]]


@every_row("agent", AGENTS)
def test_the_snippet_starts_the_very_command(agent: str) -> None:
    made = snippet(agent, COMMAND)
    assert read(agent, made.text) == COMMAND
    assert made.place.endswith(":")
