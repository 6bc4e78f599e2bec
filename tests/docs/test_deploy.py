"""What is in deploy/ cannot rot: files it copies exist, commands it starts are understood."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from recollect.config import Settings
from recollect.interfaces.cli.main import cli
from tests.docs.test_documents import ROOT, blocks
from tests.docs.test_how_to import ENDLESS, commands
from tests.docs.walking import understood
from tests.e2e.command_line import started

DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
UNITS = sorted(DEPLOY.glob("*.service"))
GUIDE = ROOT / "docs" / "how-to" / "postgresql.md"
PORT = "8400"


def instructions(name: str) -> list[str]:
    return re.findall(rf"^\s*{name}\s+(.*)$", CONTAINERFILE, re.MULTILINE)


def test_what_the_container_file_copies_is_there() -> None:
    copied = [
        source
        for line in instructions("COPY")
        if "--from" not in line
        for source in line.split()[:-1]
    ]
    assert copied
    for source in copied:
        assert (ROOT / source).exists(), source
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert project["readme"] in copied
    assert set(project["license-files"]) <= set(copied), "the wheel cannot be built without it"


def test_what_the_container_file_installs_and_starts_exists() -> None:
    [extras] = re.findall(r"\.whl\)\[([^\]]+)\]", CONTAINERFILE)
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert set(extras.split(",")) <= set(tomllib.load(file)["project"]["optional-dependencies"])
    [entry], command = (
        json.loads(instructions("ENTRYPOINT")[0]),
        json.loads(instructions("CMD")[-1]),
    )
    assert entry == "recollect"
    understood(command)
    assert PORT in command
    assert instructions("EXPOSE") == [PORT]
    assert instructions("USER") == ["recollect"]
    names = re.findall(r"RECOLLECT_(\w+)=", instructions("ENV")[0])
    assert {name.lower() for name in names} <= set(Settings.__dataclass_fields__)


def test_the_health_check_tells_a_server_from_none(tmp_path: Path) -> None:
    [said] = re.findall(r"CMD (\[.*healthz.*\])", CONTAINERFILE)
    check = json.loads(said)
    arguments = ("serve", "--port", "0", "--no-work", "--json", "--store", str(tmp_path / "m.db"))
    with started(*arguments) as server:
        assert server.stdout is not None
        ready = b""
        while not ready.rstrip().endswith(b"}"):
            ready += server.stdout.readline()
        code = check[-1].replace(f"http://127.0.0.1:{PORT}", json.loads(ready)["url"])
        assert code != check[-1]
        look = [sys.executable, *check[1:-1], code]
        assert subprocess.run(look, check=False).returncode == 0
        server.terminate()
        server.wait(timeout=30)
    assert subprocess.run(look, check=False, stderr=subprocess.DEVNULL).returncode != 0


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_what_a_unit_starts_is_understood(unit: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    [start] = re.findall(r"^ExecStart=(\S+) (.*)$", text, re.MULTILINE)
    assert Path(start[0]).name == "recollect"
    understood(shlex.split(start[1]))
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="):
        assert f"\n{line}\n" in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    copies = []
    for unit in UNITS:
        copies.append(tmp_path / unit.name.replace("@", "@1"))
        text = unit.read_text(encoding="utf-8").replace("/opt/recollect/bin/recollect", "/bin/true")
        copies[-1].write_text(text, encoding="utf-8")
    looked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, copies)],
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in looked.stderr.splitlines() if str(tmp_path) in line]
    assert not complaints


def test_the_guide_to_postgresql_works_on_postgresql(
    lent_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_STORE", lent_store_url)
    shown = [each for block in blocks(GUIDE) for each in commands(block) if each[0] not in ENDLESS]
    assert len(shown) >= 4
    outputs = []
    for arguments in shown:
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0, (arguments, result.output)
        outputs.append(result.output)
    assert "Lisbon" in outputs[-1]
