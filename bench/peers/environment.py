"""The peers' own virtual environments: made and filled here, never the one Recollect runs in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = ROOT / ".venv-bench"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


class PeersUnavailable(Exception):
    """The peers cannot be installed here; the message says why."""


def ensure_environment(peer: str = "") -> Path:
    """The interpreter of the peers' environment, or of that of one, with everything installed."""
    suffix = f"-{peer}" if peer else ""
    directory = DIRECTORY.with_name(DIRECTORY.name + suffix)
    requirements = REQUIREMENTS.with_name(f"requirements{suffix}.txt")
    python = directory / "bin" / "python"
    stamp = directory / "installed.txt"
    wanted = requirements.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    _run([sys.executable, "-m", "venv", "--clear", str(directory)], f"making {directory.name}")
    (directory / ".gitignore").write_text("*\n", encoding="utf-8")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--requirement", str(requirements)], "installing the peers")
    stamp.write_text(wanted, encoding="utf-8")
    return python


def _run(command: list[str], what: str) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeersUnavailable(f"{what} failed: {error}") from error
    if result.returncode != 0:
        said = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = said[-1] if said else f"exit status {result.returncode}"
        raise PeersUnavailable(f"{what} failed: {reason}")
