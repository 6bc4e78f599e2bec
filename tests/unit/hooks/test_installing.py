"""Our hooks in an agent's settings: put in once, taken out whole, everything else as it was."""

from __future__ import annotations

import json
import shutil
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import InvalidValue, NotAllowed, UsageError
from recollect.hooks.events import Agent
from recollect.hooks.installing import (
    BACKUP_SUFFIX,
    INSTALLABLE,
    FileEdit,
    SettingsScope,
    apply,
    is_ours,
    link_skills,
    places_of,
    plan_install,
    plan_server,
    plan_uninstall,
    unlink_skills,
)
from tests.tables import every_row

COMMAND = "/opt/bin/recollect hook claude-code"
WRITTEN_BY_HAND = """{
\t"model": "opus",
\t"permissions": {
\t\t"limit": 1.5,
\t\t"name": "café"
\t},
\t"hooks": {
\t\t"Stop": [
\t\t\t{
\t\t\t\t"matcher": "",
\t\t\t\t"hooks": []
\t\t\t}
\t\t],
\t\t"PreToolUse": []
\t}
}
"""
TEXTS = [
    "",
    "\n",
    "{}",
    "{\n}\n",
    '{"model": "opus"}',
    '{"hooks": {}}',
    '{"hooks": {"Stop": []}, "model": "opus"}\n',
    '{\n  "a": {\n    "hooks": 3\n  }\n}\n',
    WRITTEN_BY_HAND,
    WRITTEN_BY_HAND.replace("\n", "\r\n"),
    f"\N{ZERO WIDTH NO-BREAK SPACE}{WRITTEN_BY_HAND}",
]


def settings(folder: Path, text: str) -> Path:
    path = folder / "settings.json"
    path.write_bytes(text.encode())
    return path


def told(path: Path) -> Any:
    return json.loads(path.read_bytes().decode("utf-8-sig"))


@pytest.mark.parametrize("text", TEXTS)
def test_hooks_are_put_in_once_and_everything_else_stays(tmp_path: Path, text: str) -> None:
    path = settings(tmp_path, text)
    before = (
        json.loads(text.lstrip("\N{ZERO WIDTH NO-BREAK SPACE}") or "{}") if text.strip() else {}
    )
    apply(plan_install(path, Agent.CLAUDE_CODE, COMMAND))
    after = told(path)
    hook = {"type": "command", "command": COMMAND, "timeout": 10}
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"):
        theirs = before.get("hooks", {}).get(event, [])
        assert after["hooks"][event] == [*theirs, {"hooks": [hook]}]
    assert {name: value for name, value in after.items() if name != "hooks"} == {
        name: value for name, value in before.items() if name != "hooks"
    }
    written = path.read_bytes()
    if "\n" in text.strip():  # what was added is lines; all that were there are there
        kept = iter(written.splitlines())
        lines = [line.strip(b" ,{[]}") for line in text.encode().splitlines()]
        assert all(any(line in each for each in kept) for line in lines if line != b"\t\t")
    assert not plan_install(path, Agent.CLAUDE_CODE, COMMAND).changes


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_put_in_is_taken_out_again(tmp_path: Path, text: str) -> None:
    path = settings(tmp_path, text)
    apply(plan_install(path, Agent.CLAUDE_CODE, COMMAND))
    apply(plan_uninstall(path, Agent.CLAUDE_CODE))
    assert b"recollect" not in path.read_bytes()
    if WRITTEN_BY_HAND in text or "\r\n" in text:
        assert path.read_bytes() == text.encode()
    assert not plan_uninstall(path, Agent.CLAUDE_CODE).changes


def test_hooks_of_others_beside_ours_stay_and_another_agents_are_not_ours(tmp_path: Path) -> None:
    ours, theirs = {"command": COMMAND}, {"command": "recollect hook codex"}
    path = settings(
        tmp_path,
        json.dumps({"hooks": {"Stop": [{"hooks": [ours, theirs]}], "SessionEnd": [{"hooks": []}]}}),
    )
    apply(plan_uninstall(path, Agent.CLAUDE_CODE))
    assert told(path) == {"hooks": {"Stop": [{"hooks": [theirs]}], "SessionEnd": [{"hooks": []}]}}


def test_another_command_takes_the_place_of_ours(tmp_path: Path) -> None:
    path = settings(tmp_path, WRITTEN_BY_HAND)
    apply(plan_install(path, Agent.CLAUDE_CODE, COMMAND))
    apply(plan_install(path, Agent.CLAUDE_CODE, f"{COMMAND} --space work"))
    text = path.read_text()
    assert text.count("recollect hook") == text.count("--space work") == 5


@pytest.mark.parametrize(
    "content",
    [
        b'{"model": "opus", // a comment\n}',
        b'{"hooks": {"Stop": [}',
        b"[]",
        b"\xff\xfe",
        b'{"a": 1, "a": 2}',
        b'{"hooks": []}',
        b'{"hooks": {"Stop": {"command": "x"}}}',
        b'{"hooks": null}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
    ],
)
def test_settings_that_are_not_understood_are_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    with pytest.raises(InvalidValue, match=r"settings\.json"):
        plan_install(path, Agent.CLAUDE_CODE, COMMAND)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_rights_stay_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = settings(tmp_path / "dotfiles", WRITTEN_BY_HAND)
    real.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(real)
    backup = apply(plan_install(link, Agent.CLAUDE_CODE, COMMAND))
    assert link.is_symlink()
    assert "recollect" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert backup == real.with_name(f"settings.json{BACKUP_SUFFIX}")
    assert backup.read_text() == WRITTEN_BY_HAND
    assert sorted(each.name for each in real.parent.iterdir()) == [real.name, backup.name]


def test_the_file_from_before_the_first_time_is_kept_and_no_later_one(tmp_path: Path) -> None:
    path = settings(tmp_path, WRITTEN_BY_HAND)
    kept = path.with_name(f"settings.json{BACKUP_SUFFIX}")
    for command in (COMMAND, f"{COMMAND} --learn"):
        apply(plan_install(path, Agent.CLAUDE_CODE, command))
        assert kept.read_text() == WRITTEN_BY_HAND
    assert apply(plan_uninstall(path, Agent.CLAUDE_CODE)) is None
    assert kept.read_text() == WRITTEN_BY_HAND
    path.write_text('{"model": "sonnet"}')
    assert apply(plan_install(path, Agent.CLAUDE_CODE, COMMAND)) == kept
    assert kept.read_text() == '{"model": "sonnet"}', "as it was before we came back"
    kept.unlink()
    installed = path.read_text()
    apply(plan_uninstall(path, Agent.CLAUDE_CODE))
    assert kept.read_text() == installed, "better than none"


def test_what_somebody_changes_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    path = settings(tmp_path, WRITTEN_BY_HAND)
    plan = plan_install(path, Agent.CLAUDE_CODE, COMMAND)
    path.write_text('{"model": "sonnet"}')
    with pytest.raises(UsageError, match="changed by somebody else"):
        apply(plan)
    new = FileEdit(path=tmp_path / "new.json", before=None, after=b"{}")
    new.path.write_text("mine")
    with pytest.raises(UsageError, match="changed by somebody else"):
        apply(new)
    assert (path.read_text(), new.path.read_text()) == ('{"model": "sonnet"}', "mine")


def test_settings_that_are_not_there_yet_are_made(tmp_path: Path) -> None:
    for agent in INSTALLABLE:
        path = places_of(agent, SettingsScope.USER, {}, tmp_path, Path("/src")).hooks
        assert path is not None
        apply(plan_install(path, agent, f"recollect hook {agent}"))
        assert f"recollect hook {agent}" in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        shared = places_of(agent, SettingsScope.PROJECT, {}, tmp_path, Path("/src"))
        assert shared.hooks == Path("/src", path.parent.name, path.name)
        assert shared.skills is None
    moved = places_of(Agent.CODEX, SettingsScope.USER, {"CODEX_HOME": "/else"}, tmp_path, tmp_path)
    assert moved.hooks == Path("/else/hooks.json")
    assert moved.servers == Path("/else/config.toml")
    here = places_of(Agent.CLAUDE_CODE, SettingsScope.USER, {}, tmp_path, tmp_path)
    assert here.servers == tmp_path / ".claude.json"
    named = {"CLAUDE_CONFIG_DIR": "/else"}
    elsewhere = places_of(Agent.CLAUDE_CODE, SettingsScope.USER, named, tmp_path, tmp_path)
    assert elsewhere.servers == Path("/else/.claude.json")


SERVER = ["/opt/recollect", "mcp", "--space", "work", "--agent", "codex"]
OTHER_TOML = """\
# what I like
model = "big"

[mcp_servers.docs]
command = "docs-server"

[projects."/src"]
trust_level = "trusted"
"""


def test_a_server_is_put_into_toml_and_taken_out_and_the_rest_keeps_its_bytes(
    tmp_path: Path,
) -> None:
    path = settings(tmp_path, OTHER_TOML).rename(tmp_path / "config.toml")
    apply(plan_server(path, SERVER, None))
    known = tomllib.loads(path.read_text())
    assert known["mcp_servers"]["recollect"] == {"command": SERVER[0], "args": SERVER[1:]}
    assert path.read_text().startswith(OTHER_TOML)
    assert not plan_server(path, SERVER, None).changes
    apply(plan_server(path, [*SERVER, "--no-work"], None))
    assert path.read_text().count("[mcp_servers.recollect]") == 1
    apply(plan_server(path, None, None))
    assert path.read_text().rstrip() == OTHER_TOML.rstrip()


def test_hooks_and_a_server_share_a_file(tmp_path: Path) -> None:
    path = settings(tmp_path, '{"theme": "dark", "mcpServers": {"docs": {"command": "d"}}}')
    hooks = plan_install(path, Agent.GEMINI_CLI, "recollect hook gemini-cli")
    apply(plan_server(path, SERVER, hooks))
    content = told(path)
    assert set(content) == {"theme", "mcpServers", "hooks"}
    assert set(content["mcpServers"]) == {"docs", "recollect"}
    apply(plan_server(path, None, plan_uninstall(path, Agent.GEMINI_CLI)))
    assert told(path) == {"theme": "dark", "mcpServers": {"docs": {"command": "d"}}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mcp.json", '{"mcpServers": {"recollect": {"command": "other", "args": ["mcp"]}}}'),
        ("mcp.json", '{"mcpServers": ["recollect"]}'),
        ("config.toml", '[mcp_servers.recollect]\ncommand = "another"\n'),
        ("config.toml", 'mcp_servers = { recollect = { command = "recollect", args = ["mcp"] } }'),
        ("config.toml", "mcp_servers = ["),
    ],
)
def test_a_server_that_is_not_as_we_write_it_is_not_touched(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    for command in (SERVER, None):
        with pytest.raises(InvalidValue):
            apply(plan_server(path, command, None))
    assert path.read_text() == text


def test_skills_are_linked_and_links_go_with_them_and_what_is_somebodys_own_stays(
    tmp_path: Path,
) -> None:
    published, folder = tmp_path / "memories" / "skills", tmp_path / "agent" / "skills"
    for name in ("release", "deploy"):
        (published / name).mkdir(parents=True)
        (published / name / "SKILL.md").write_text(f"how to {name}")
    (folder / "deploy").mkdir(parents=True)  # the person's own
    assert [link.name for link in link_skills(published, folder)] == ["release"]
    assert (folder / "release" / "SKILL.md").read_text() == "how to release"
    assert not (folder / "deploy").is_symlink()
    shutil.rmtree(published / "release")  # forgotten
    assert link_skills(published, folder) == []
    assert not (folder / "release").is_symlink()
    (published / "review").mkdir()
    (published / "review" / "SKILL.md").write_text("how to review")
    link_skills(published, folder)
    assert unlink_skills(published, folder) == 1
    assert [each.name for each in folder.iterdir()] == ["deploy"]


@every_row(
    ("command", "is_it"),
    [
        ("recollect hook claude-code", True),
        ("'/opt/my tools/recollect' --store x hook claude-code --learn", True),
        ("/usr/bin/python3.12 -P -m recollect hook claude-code", True),
        ("recollect hook codex", False),
        ("recollect hook", False),
        ("echo recollect hook claude-code", False),
        ("python -m recollection hook claude-code", False),
        ("recollect 'hook", False),
        ("", False),
        (None, False),
    ],
)
def test_a_command_is_ours_only_if_it_runs_recollect(command: object, is_it: bool) -> None:
    assert is_ours(command, Agent.CLAUDE_CODE) is is_it


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / ".claude").write_text("a file")
    plan = FileEdit(path=tmp_path / ".claude" / "settings.json", before=None, after=b"{}")
    with pytest.raises(NotAllowed, match="cannot be made"):
        apply(plan)
