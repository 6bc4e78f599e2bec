"""Recall and the search of other libraries side by side: same texts, same vectors, one run."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.peers.environment import PeersUnavailable, ensure_environment
from bench.report import Line, skipped
from bench.settings import Run
from bench.texts import SEED
from recollect.benchmarks.zipf import QUESTION_WORDS, Language
from recollect.embedding.protocol import floats
from recollect_conformance.scripted_embedder import HashEmbedder

TEXTS, QUESTIONS, DIMENSIONS = 10_000, 200, 64
WORKER = Path(__file__).with_name("recall_worker.py")
OURS = ("recollect", "recollect-vectors")
TITLES = {
    "recollect": "Recollect, by words",
    "recollect-vectors": "Recollect, by words and vectors",
    "mem0": "mem0, infer=False",
    "langgraph": "LangGraph SqliteStore",
    "mcp-memory-service": "mcp-memory-service",
}
ADDRESSLESS = {"OPENAI_API_KEY": "none", "MEM0_TELEMETRY": "False", "HF_HUB_OFFLINE": "1"}

Figures = dict[str, Any]  # what the worker printed


def measure_recall_peers(run: Run) -> Iterator[Line]:
    """How long a search takes, and whether what a question was made from is among the best 10."""
    count, questions = run.scaled(TEXTS, 1_000), run.scaled(QUESTIONS, 50)
    group = f"recall beside other libraries, {count:,} texts (limit: Recollect)"
    file = run.directory / "recall-peers.json"
    file.write_text(json.dumps(_given(count, questions)), encoding="utf-8")
    ours: Figures = {}
    for name, title in TITLES.items():
        try:
            python = Path(sys.executable) if name in OURS else ensure_environment(name)
            found = _work(run, python, name, file)
        except PeersUnavailable as error:
            yield skipped(group, title, str(error))
            continue
        ours = ours or found
        yield from _lines(group, f"{title} {found['version']}", found, ours)


def _lines(group: str, title: str, found: Figures, ours: Figures) -> Iterator[Line]:
    is_first = found is ours
    for share in ("p50", "p95"):
        yield Line(
            group=group,
            name=f"{title}: search, CPU, {share}",
            unit="ms",
            measured=found[f"cpu_{share}_ms"],
            limit=None if is_first else ours[f"cpu_{share}_ms"],
            note=f"wall {found['wall_p50_ms']:.1f} ms" if share == "p50" else "",
        )
    yield Line(
        group=group,
        name=f"{title}: what was asked for is in the best 10",
        unit="%",
        measured=found["found"] * 100,
        limit=None if is_first else ours["found"] * 100,
        note=f"{found['add_cpu_us']:,.0f} µs of CPU to add one, a hundred at a time",
    )


def _given(count: int, questions: int) -> dict[str, Any]:
    texts = list(itertools.islice(Language().texts(1), count))
    rng = random.Random(SEED)
    about = rng.sample(texts, questions)
    asked = [_some_words(rng, text) for text in about]
    embedder = HashEmbedder(DIMENSIONS)
    every = [*texts, *asked]
    vectors = (list(floats(vector)) for vector in embedder.embed(every).vectors)
    return {
        "texts": texts,
        "questions": asked,
        "about": about,
        "vectors": dict(zip(every, vectors, strict=True)),
    }


def _some_words(rng: random.Random, text: str) -> str:
    words = text.split()
    wanted = min(rng.randint(*QUESTION_WORDS), len(words))
    places = sorted(rng.sample(range(len(words)), wanted))
    return " ".join(words[place] for place in places)


def _work(run: Run, interpreter: Path, name: str, file: Path) -> Figures:
    with tempfile.TemporaryDirectory(dir=run.directory) as directory:
        at_home = {"HOME": directory, "MEM0_DIR": directory}  # none reads what lies around here
        result = subprocess.run(
            [str(interpreter), str(WORKER), name, directory, str(file)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | ADDRESSLESS | at_home,
        )
    if result.returncode != 0:
        said = result.stderr.strip().splitlines()
        raise PeersUnavailable(said[-1] if said else f"exit status {result.returncode}")
    figures: Figures = json.loads(result.stdout.splitlines()[-1])
    return figures
