"""The one command of the benchmark: measure, show, keep."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.adapters import measure_adapters
from bench.agents import measure_agents
from bench.appending import measure_append, measure_postgres_append, measure_session_length
from bench.claiming import measure_claims
from bench.consolidating import measure_consolidation
from bench.documents import measure_documents
from bench.draining import measure_drain
from bench.extracting import measure_pipeline
from bench.hooks import measure_hooks
from bench.http_serving import measure_http
from bench.importing import measure_importing
from bench.marking import measure_due
from bench.mcp_serving import measure_mcp
from bench.observing import measure_observing
from bench.offline import measure_offline
from bench.peers.compare import measure_peers
from bench.peers.recall_compare import measure_recall_peers
from bench.postgres import postgres, schemas_of_our_own
from bench.quality import measure_quality
from bench.recalling import measure_recall
from bench.redaction import measure_redaction
from bench.report import Line, Verdict, as_json, as_table, as_text, describe_machine
from bench.settings import Run
from bench.starting import measure_start
from bench.threads import measure_threads
from bench.workers import measure_workers
from bench.working import measure_worker

RESULTS = Path(__file__).with_name("results")

MEASUREMENTS: dict[str, Callable[[Run], Iterator[Line]]] = {
    "append": measure_append,
    "length": measure_session_length,
    "due": measure_due,
    "threads": measure_threads,
    "start": measure_start,
    "postgres": measure_postgres_append,
    "claims": measure_claims,
    "worker": measure_worker,
    "drain": measure_drain,
    "pipeline": measure_pipeline,
    "offline": measure_offline,
    "documents": measure_documents,
    "redaction": measure_redaction,
    "quality": measure_quality,
    "recall": measure_recall,
    "agents": measure_agents,
    "consolidation": measure_consolidation,
    "importing": measure_importing,
    "hooks": measure_hooks,
    "mcp": measure_mcp,
    "adapters": measure_adapters,
    "http": measure_http,
    "observing": measure_observing,
    "workers": measure_workers,
    "peers": measure_peers,
    "recall-peers": measure_recall_peers,
}
PEERS = frozenset({"peers", "recall-peers"})  # what installs other libraries
NEED_POSTGRES = frozenset(
    {"due", "postgres", "claims", "worker", "drain", "pipeline", "documents", "recall"}
    | {"agents", "consolidation", "importing", "workers"}
)


def main() -> None:
    options = _options()
    wanted = options.only or [name for name in MEASUREMENTS if options.peers or name not in PEERS]
    context = describe_machine() | {"quick": options.quick}
    with (
        tempfile.TemporaryDirectory(dir=options.dir, prefix="recollect-bench-") as directory,
        postgres(options.postgres, needed=bool(NEED_POSTGRES & set(wanted))) as (url, missing),
    ):
        run = Run(
            directory=Path(directory).resolve(),
            quick=options.quick,
            peers=options.peers,
            postgres_url=url,
            postgres_missing=missing,
            data=options.data,
        )
        with schemas_of_our_own(options.postgres):
            lines = _measured(run, wanted, context, options)
    if not PEERS & set(wanted) and not options.only:
        _say("Other libraries were not run; add --peers.", quiet=options.json)
    _keep(as_json(lines, context), options.name, print_it=options.json)
    if not options.json:
        print("\n".join(as_table(lines)))
    missed = [line.name for line in lines if line.verdict is Verdict.MISSED]
    _say(f"\nMissed: {'; '.join(missed)}" if missed else "\nNo target missed.", quiet=options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="smaller counts: minutes become seconds"
    )
    parser.add_argument(
        "--only", action="append", choices=MEASUREMENTS, help="this measurement; may be repeated"
    )
    parser.add_argument(
        "--peers", action="store_true", help="also other libraries, installed into .venv-bench"
    )
    parser.add_argument(
        "--postgres", metavar="URL", help="measure on this server instead of one of our own"
    )
    parser.add_argument(
        "--data", type=Path, help="a directory with data sets, for what is measured on real text"
    )
    parser.add_argument("--dir", help="put the databases here; the disk decides what a sync takes")
    parser.add_argument(
        "--name", default="latest", help="keep the result as bench/results/NAME.json"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args()


def _measured(
    run: Run, wanted: list[str], context: dict[str, Any], options: argparse.Namespace
) -> list[Line]:
    """Every figure is shown and kept as it comes: a run that is interrupted keeps what it has."""
    lines: list[Line] = []
    for name in wanted:
        _say(f"measuring {name} ...", quiet=options.json)
        for line in MEASUREMENTS[name](run):
            lines.append(line)
            _say(f"  {as_text(line)}", quiet=options.json)
            _keep(as_json(lines, context), options.name, print_it=False)
    return lines


def _keep(result: dict[str, object], name: str, *, print_it: bool) -> None:
    RESULTS.mkdir(exist_ok=True)
    rows = ",\n".join(
        "  " + json.dumps(line, ensure_ascii=False) for line in _list(result["lines"])
    )
    context = json.dumps(result["context"], ensure_ascii=False)
    text = f'{{\n "context": {context},\n "lines": [\n{rows}\n ]\n}}\n'
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    if print_it:
        print(text, end="")


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _say(text: str, *, quiet: bool) -> None:
    print(text, file=sys.stderr if quiet else sys.stdout, flush=True)


if __name__ == "__main__":
    main()
