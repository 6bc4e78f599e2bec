"""What an import costs: how fast a coding agent's log comes in, and how little memory it takes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import recollect
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import SPACE, sqlite_address, with_schema
from recollect.importers.claude_code import ClaudeCode
from recollect.importers.running import Importing

GROUP = "an import of a coding agent's log"
SMALL_MB, LARGE_MB = 8, 256
GROWTH_MB_MAX = 48.0  # of the process from a small file to one 32 times as large
AGAIN_SHARE_MAX = 0.01
WORDS = ("the", "cache", "was", "cold", "because", "nobody", "warmed", "it", "after", "a", "deploy")


def measure_importing(run: Run) -> Iterator[Line]:
    """Throughput on both databases, memory on one."""
    size = run.scaled(64, 4)
    log = written(run.directory / "import" / "session.jsonl", size)
    yield from _throughput("SQLite", sqlite_address(run.directory / "import.db"), log)
    if run.postgres_url is None:
        yield skipped(GROUP, "PostgreSQL", run.postgres_missing)
    else:
        url = with_schema(run.postgres_url, "bench_import")
        yield from _throughput("PostgreSQL", url, log)
    yield _growth(run)


def _throughput(database: str, address: str, log: Path) -> Iterator[Line]:
    with recollect.open(address, settings={"consolidation": "off"}) as memory:
        began, cpu = time.perf_counter(), time.process_time()
        report = Importing(memory, SPACE, ClaudeCode()).run([log])
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        began = time.perf_counter()
        again = Importing(memory, SPACE, ClaudeCode()).run([log])
        share = (time.perf_counter() - began) / wall
    assert report.records > 0
    assert again.records == 0
    mb = report.bytes_read / 2**20
    note = f"{mb:.0f} MB, {report.records:,} records, CPU {cpu / report.records * 1e6:.0f} µs each"
    yield _line(f"{database}: read and stored", "MB/s", mb / wall, note=note)
    yield _line(f"{database}: records", "1/s", report.records / wall)
    yield Line(
        group=GROUP,
        name=f"{database}: again, with nothing new, against the first time",
        unit="share",
        measured=share,
        target=AGAIN_SHARE_MAX,
        is_ratio=False,
    )


def _growth(run: Run) -> Line:
    """How much more a process needs for a large file than for a small one, each in its own."""
    large = run.scaled(LARGE_MB, 32)
    peaks = []
    for size in (SMALL_MB, large):
        log = written(run.directory / f"import-{size}" / "session.jsonl", size)
        store = run.directory / f"import-{size}.db"
        command = [sys.executable, "-m", "bench.importing", str(log), str(store)]
        peaks.append(float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    return Line(
        group=GROUP,
        name=f"peak memory, {large:,} MB against {SMALL_MB} MB",
        unit="MB more",
        measured=peaks[1] - peaks[0],
        target=GROWTH_MB_MAX,
        is_ratio=False,
        note=f"{peaks[0]:.0f} and {peaks[1]:.0f} MB",
    )


def _line(name: str, unit: str, measured: float, note: str = "") -> Line:
    return Line(
        group=GROUP,
        name=name,
        unit=unit,
        measured=measured,
        target=None,
        is_ratio=False,
        note=note,
    )


def written(path: Path, mb: int) -> Path:
    """A log of that size as an agent writes it: questions, answers, calls and their results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    same = {"sessionId": "bench", "cwd": "/src/shop", "gitBranch": "main", "version": "2.1.0"}
    number, left = 0, mb * 2**20
    with path.open("w") as file:
        while left > 0:
            line = json.dumps(same | _entry(number)) + "\n"
            left -= file.write(line)
            number += 1
    return path


def _entry(number: int) -> dict[str, object]:
    words = " ".join(WORDS[(number + step) % len(WORDS)] for step in range(40))
    text = f"{number}: {words}"
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": text * 6}
    kind, content = (
        ("user", text),
        ("assistant", [{"type": "text", "text": text}]),
        ("assistant", [call]),
        ("user", [result]),
    )[number % 4]
    at = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    about = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}", "timestamp": at}
    return about | {"type": kind, "message": {"role": kind, "content": content}}


def _import_alone(log: Path, store: Path) -> float:
    with recollect.open(store, settings={"consolidation": "off"}) as memory:
        Importing(memory, SPACE, ClaudeCode()).run([log])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(_import_alone(Path(sys.argv[1]), Path(sys.argv[2])))
