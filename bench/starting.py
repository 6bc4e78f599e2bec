"""What it costs to start: the package, a name of it, `recollect --help`; CPU of a process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator

from bench.report import Line, skipped
from bench.settings import Run

GROUP = "start (CPU)"
CLI = "recollect.interfaces.cli.main"


def measure_start(run: Run) -> Iterator[Line]:
    """The best of several starts with bytecode present."""
    programs = {
        "bare": ["-c", "pass"],
        "import": ["-c", "import recollect"],
        "open": ["-c", "import recollect; recollect.open"],  # names are loaded when asked for
    }
    if importlib.util.find_spec("recollect.interfaces") and importlib.util.find_spec(CLI):
        programs["help"] = ["-c", f"import sys; from {CLI} import main; sys.exit(main())", "--help"]
    environment = _environment(run)
    best = dict.fromkeys(programs, float("inf"))
    for repetition in range(run.scaled(25, 5) + 1):
        for name, arguments in programs.items():
            cpu = _cpu_milliseconds(arguments, environment)
            if repetition:  # the first one writes the bytecode
                best[name] = min(best[name], cpu)
    yield Line(
        group=GROUP,
        name="import recollect, above bare Python",
        unit="ms",
        measured=best["import"] - best["bare"],
        limit=best["bare"],
        target=100,
        is_ratio=False,
    )
    yield Line(
        group=GROUP,
        name="import recollect and recollect.open, above bare Python",
        unit="ms",
        measured=best["open"] - best["bare"],
        limit=best["bare"],
        target=100,
        is_ratio=False,
    )
    if "help" not in best:
        yield skipped(GROUP, "recollect --help", "there is no command line yet")
        return
    yield Line(
        group=GROUP,
        name="recollect --help, all of it",
        unit="ms",
        measured=best["help"],
        limit=best["bare"],
        target=200,
        is_ratio=False,
    )


def _environment(run: Run) -> dict[str, str]:
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment | {"PYTHONPYCACHEPREFIX": str(run.directory / "bytecode")}


def _cpu_milliseconds(arguments: list[str], environment: dict[str, str]) -> float:
    child = subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {child.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000
