"""Tries the HTTP API on both databases and writes what came of it into docs/reports.

python tools/http_probe.py            a canary run, and 10,000 made-up requests on each database
python tools/http_probe.py 500        the same with so many
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a file, the project itself is not on the path

import recollect  # noqa: E402
from tests.e2e.http_canaries import (  # noqa: E402
    CANARIES,
    Seen,
    as_another_user,
    fill,
    of_the_store,
    with_another_key,
    with_foreign_ids,
    with_no_key,
    with_own_key,
)
from tests.e2e.http_fuzzer import SPACE, fuzz  # noqa: E402
from tests.e2e.http_world import STREAMS, World  # noqa: E402
from tests.postgres_server import PostgresServer, url_with  # noqa: E402

REPORTS = ROOT / "docs" / "reports"
REQUESTS = 10_000
SEEDS = (101, 102, 103, 104)
Probe = Callable[[World, Seen], None]


def _of_another(owner: str) -> Probe:
    return lambda world, seen: with_another_key(world, owner, seen)


PROBES: dict[str, Probe] = {
    "every route without a key, and with nine headers that hold none that is valid": with_no_key,
    **{
        f"every route of {owner}'s space with every key of the others, beside the same for a "
        "space that does not exist": _of_another(owner)
        for owner in CANARIES
    },
    "ids of another space in one's own, beside ids that nobody has": with_foreign_ids,
    "what belongs to the whole store with the key of a space": of_the_store,
    "every route in one's own space, with words that others' texts have": with_own_key,
    "mem0's paths for another user": as_another_user,
}


@contextmanager
def stores() -> Iterator[dict[str, str]]:
    """An empty store on each database."""
    with tempfile.TemporaryDirectory() as directory:
        server = PostgresServer()
        try:
            yield {
                "SQLite": f"sqlite:///{directory}/memory.db",
                "PostgreSQL": url_with(server.url, schema="probe"),
            }
        finally:
            server.close()


def canary_run(url: str) -> tuple[list[str], Seen]:
    """A line for each probe, and all of it together."""
    lines, total = [], Seen()
    with recollect.open(url) as memory:
        world = World(memory)
        fill(world)
        for name, probe in PROBES.items():
            seen = Seen()
            probe(world, seen)
            lines.append(f"| {name} | {seen.requests:,} | {statuses(seen)} | {told(seen)} |")
            joined(total, seen)
    return lines, total


def fuzz_run(url: str, requests: int) -> tuple[list[str], Seen]:
    lines, total = [], Seen()
    for seed in SEEDS:
        with recollect.open(url) as memory:
            world, seen = World(memory), Seen()
            world.fill(SPACE, f"heron {seed}")
            began = time.monotonic()
            fuzz(world, seed, requests // len(SEEDS), seen)
            seconds = time.monotonic() - began
            routes = len({route.name for route in world.api.operations} - STREAMS)
        lines.append(
            f"| {seed} | {seen.requests:,} | {len(seen.routes)} of {routes} | {statuses(seen)} "
            f"| {seconds:.0f} s | {told(seen)} |"
        )
        joined(total, seen)
    return lines, total


def joined(total: Seen, seen: Seen) -> None:
    total.statuses.update(seen.statuses)
    total.routes |= seen.routes
    total.findings += seen.findings


def statuses(seen: Seen) -> str:
    return ", ".join(f"{status}: {count:,}" for status, count in sorted(seen.statuses.items()))


def told(seen: Seen) -> str:
    return str(len(seen.findings)) if seen.findings else "none"


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or not all(each.isdigit() for each in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    requests = int(arguments[0]) if arguments else REQUESTS
    canaries, fuzzed, findings = [CANARY_HEAD], [FUZZ_HEAD], []
    with stores() as urls:
        for name, url in urls.items():
            lines, total = canary_run(url)
            canaries += ["", f"## {name}", "", *CANARY_TABLE, *lines, "", summed(total)]
            findings += total.findings
        for name, url in urls.items():
            lines, total = fuzz_run(f"{url}_fuzz", requests)
            fuzzed += ["", f"## {name}", "", *FUZZ_TABLE, *lines, "", summed(total)]
            findings += total.findings
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "http-canary.md").write_text("\n".join(canaries) + "\n", encoding="utf-8")
    (REPORTS / "http-fuzz.md").write_text("\n".join(fuzzed) + "\n", encoding="utf-8")
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


def summed(total: Seen) -> str:
    failed = sum(count for status, count in total.statuses.items() if status >= 500)
    said = f"{total.requests:,} requests, {len(total.findings)} findings, {failed} failures."
    return "\n".join([said, *(f"* {finding[:300]}" for finding in total.findings[:20])])


CANARY_HEAD = """# Canary run over HTTP

Three spaces, each full of a word of its own in sessions, records, facts, documents, tags, metadata
and generations. Then every route is asked with every key that should not open it. A finding is an
answer that holds another space's word, that differs in one byte from the answer about something
that does not exist, or that is 500 or above; and a space that holds something else afterwards.

Written by `python tools/http_probe.py`. A [test](../../tests/e2e/test_http_isolation.py) makes the
same run on both databases."""
CANARY_TABLE = ("| what was tried | requests | answers by status | findings |", "|---|---|---|---|")
FUZZ_HEAD = """# Fuzzing over HTTP

Requests made up from the schemas that the server itself checks with: mostly what they ask for,
sometimes anything, with texts and numbers that are known to hurt (NUL, half a surrogate, `..`, SQL,
ten to the thirtieth). The key opens everything. A finding is an answer of 500 or above, one with a
status that the OpenAPI description does not name for the route, or one that is not the JSON it says
it is.

Written by `python tools/http_probe.py`; the same seed makes the same requests. A
[test](../../tests/e2e/test_http_fuzz.py) makes a short run on both databases, `make torture` a long
one."""
FUZZ_TABLE = (
    "| seed | requests | routes | answers by status | took | findings |",
    "|---|---|---|---|---|---|",
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
