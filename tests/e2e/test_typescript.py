"""N15: the TypeScript client, built by its compiler and run by node against a real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from recollect.interfaces.http.app import ServerLimits
from tests.e2e.test_http import served
from tools import generate_typescript

CLIENT = generate_typescript.CLIENT.parents[1]
INSTALL_SECONDS = 180
LIMITS = ServerLimits(rate_per_second=0, poll_seconds=0.05)


@pytest.fixture(scope="module")
def npm() -> str:
    found = shutil.which("npm")
    if found is None or shutil.which("node") is None:
        assert not os.environ.get("CI"), "CI is set, and there is no node with npm"
        pytest.skip("there is no node with npm here: install Node.js to try the TypeScript client")
    return found


def test_the_client_is_what_the_api_describes() -> None:
    description = json.loads(generate_typescript.DESCRIPTION.read_text(encoding="utf-8"))
    written = generate_typescript.CLIENT.read_text(encoding="utf-8")
    assert written == generate_typescript.generated(description), "run: make contract"


def test_the_client_type_checks_and_works_against_a_server(npm: str, tmp_path: Path) -> None:
    client = tmp_path / "typescript"
    shutil.copytree(CLIENT, client, ignore=shutil.ignore_patterns("node_modules", "dist"))
    quiet = [npm, "install", "--silent", "--no-audit", "--no-fund"]
    installed = subprocess.run(
        quiet, cwd=client, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if installed.returncode and not os.environ.get("CI"):
        pytest.skip(f"npm cannot install the compiler: {installed.stderr.strip()[-300:]}")
    assert installed.returncode == 0, installed.stderr
    with served(tmp_path / "m.db", LIMITS) as here:
        told = subprocess.run(
            [npm, "test"],
            cwd=client,
            env={**os.environ, "RECOLLECT_URL": here.url, "RECOLLECT_KEY": here.secret},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    assert told.returncode == 0, told.stdout + told.stderr
