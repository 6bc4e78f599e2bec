"""The guides cannot rot: every command in them is run, or at least understood."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import recollect
from recollect.interfaces.cli.main import cli
from tests.docs.test_documents import ROOT, WALKED, Block, blocks
from tests.docs.walking import understood

# These go on until they are told to stop, or ask: that they are understood is all there is to see.
ENDLESS = ("watch", "mcp", "worker", "serve", "chat", "hook")
COMMAND = re.compile(r"^\$ (recollect [^\n|]*)$", re.MULTILINE)
GUIDES = sorted(set((ROOT / "docs" / "how-to").glob("*.md")) - set(WALKED))


def commands(block: Block) -> list[list[str]]:
    return [shlex.split(line, comments=True)[1:] for line in COMMAND.findall(block.code)]


def furnished(directory: Path) -> None:
    """A home in which the guides' commands find what they read."""
    said: dict[str, object] = {"sessionId": "s1", "uuid": "u1", "type": "user", "cwd": "/src/shop"}
    said |= {"message": {"role": "user", "content": "We dropped Redis: it was always cold."}}
    rollout = {"type": "session_meta", "payload": {"id": "r1", "cwd": "/src/shop"}}
    message = {"session": "s1", "role": "user", "content": "I live in Lisbon."}
    files = {
        "home/.claude/projects/shop/s1.jsonl": json.dumps(said) + "\n",
        "home/.codex/sessions/2026/01/01/rollout-1.jsonl": json.dumps(rollout) + "\n",
        "mem0.json": json.dumps({"results": [{"id": "m1", "memory": "Likes tea"}]}),
        "assistant.jsonl": json.dumps(message) + "\n",
        "memory-checks.yaml": "- {ask: where do I live, expect: Lisbon, forbid: [Rome]}\n",
        "notes/Tea.md": "# Tea\n\nGreen, and never too hot.\n",
    }
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    with zipfile.ZipFile(directory / "export.zip", "w") as archive:
        archive.writestr("conversations.json", "[]")
    recollect.open(directory / "memory.db").close()  # a guide may begin with a look into it


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_commands_of_a_guide_work(
    guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RECOLLECT_STORE", str(tmp_path / "memory.db"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    for block in blocks(guide):
        for arguments in commands(block):
            if arguments and arguments[0] in ENDLESS:
                understood(arguments)
                continue
            result = CliRunner().invoke(cli, arguments)
            assert result.exit_code == 0, (arguments, result.output)
