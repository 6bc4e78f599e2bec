"""What is in deploy/ cannot rot: files it copies exist, commands it starts are understood."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
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


def test_what_the_compose_file_starts_is_understood() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    for name in ("server", "worker"):
        service = services[name]
        understood(service["command"])
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        assert set(service["depends_on"]) <= set(services)
        names = {each.removeprefix("RECOLLECT_").lower() for each in service["environment"]}
        keys = {"pgpassword", "openai_api_key", "anthropic_api_key"}
        assert names - keys <= set(Settings.__dataclass_fields__)
        assert {each.partition(":")[0] for each in service["volumes"]} <= set(compose["volumes"])
    [port] = services["server"]["ports"]
    assert port == f"127.0.0.1:{PORT}:{PORT}", "nothing is open to the network unless asked for"


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)
def test_what_a_workflow_runs_exists(workflow: Path) -> None:
    described = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    jobs = described["jobs"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    steps = [step for job in jobs.values() for step in job["steps"]]
    run = [step["run"] for step in steps if "run" in step]
    assert run
    for command in run:
        assert set(re.findall(r"\bmake ([a-z-]+)", command)) <= targets
        for script in re.findall(r"\bbash (\S+)", command):
            assert (ROOT / script).exists()
    for step in steps:
        assert ("run" in step) != ("uses" in step)
        assert (ROOT / step.get("working-directory", ".")).is_dir()
        assert re.search(r"@\S+$", step.get("uses", "@none")), "an action is pinned to a version"
    needs = {need for job in jobs.values() for need in [job.get("needs")] if need}
    assert needs <= set(jobs)


def test_the_documentation_builds_as_a_site_without_a_warning(tmp_path: Path) -> None:
    """Its builder is no part of the environment, so it is installed for this alone."""
    if not os.environ.get("CI"):
        pytest.skip("the builder of the site is installed in CI alone; make site builds it here")
    builder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", builder], check=True)
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted = tomllib.load(file)["project"]["optional-dependencies"]["docs"]
    subprocess.run([builder / "bin" / "pip", "install", "-qq", *wanted], check=True, timeout=300)
    built = subprocess.run(
        [builder / "bin" / "mkdocs", "build", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    assert (tmp_path / "site" / "reference" / "cli" / "index.html").exists()


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
