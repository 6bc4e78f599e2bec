"""What being found costs: the index for each append, and the memory that vectors take."""

from __future__ import annotations

import importlib.util
import itertools
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import apsw

from bench.bare import numbers, row
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import KEY, SPACE, make_key, open_memory, sqlite_address
from bench.texts import SEED
from recollect.benchmarks.zipf import Language
from recollect.stemming import indexed_record
from recollect.store.sql import queries
from recollect.types.records import KeyRef

APPENDS, TURN = 51_200, 256  # the index takes up so many at a time: each turn pays for one
INDEX_US_MAX = 100.0
VECTORS, DIMENSIONS, BATCH = 100_000, 256, 1000
MEMORY_MAX = 1.2
_INSERT = queries("sqlite")


def measure_index_cost(run: Run, language: Language) -> Iterator[Line]:
    """An append with the index against the same row without it, the mean of all: some pay more."""
    group = "what the index costs an append, SQLite (CPU, mean, no syncs)"
    with ExitStack() as stack:
        address = sqlite_address(run.directory / "ours-indexed.db", synchronous="off")
        session = stack.enter_context(open_memory(address)).space(SPACE).session(KEY)
        with_index = _Bare(run, "with-index", is_indexed=True)
        without = _Bare(run, "without-index", is_indexed=False)
        for each in (with_index, without):
            stack.callback(each.close)
        append: dict[str, Callable[[str], object]] = {
            "ours": lambda text: session.append("user", text),
            "indexed": with_index.append,
            "bare": without.append,
        }
        costs = _mean_us(append, language, run.scaled(APPENDS, TURN * 20))
    yield Line(
        group=group,
        name="one record, with its words found and indexed, above the bare row",
        unit="µs",
        measured=costs["indexed"] - costs["bare"],
        target=INDEX_US_MAX,
        is_ratio=False,
        note=f"{costs['indexed']:.0f} µs and {costs['bare']:.0f} µs",
    )
    yield Line(
        group=group,
        name="Recollect's append against the bare row without an index",
        unit="µs",
        measured=costs["ours"],
        limit=costs["bare"],
    )


def measure_vector_memory(run: Run) -> Iterator[Line]:
    group, count = "memory of vectors", run.scaled(VECTORS, 10_000)
    name = f"{count:,} vectors of {DIMENSIONS} numbers, bytes taken against bytes of numbers"
    if importlib.util.find_spec("numpy") is None:
        yield skipped(group, name, "numpy is not installed")
        return
    taken, told = _vector_bytes(count)
    yield Line(
        group=group,
        name=name,
        unit="MB",
        measured=taken / 1e6,
        limit=count * DIMENSIONS * 4 / 1e6,
        target=MEMORY_MAX,
        note=f"it says {told / 1e6:.1f} MB of itself",
    )


class _Bare:
    """The statements of an append on the bare driver, with the index or without any of it."""

    def __init__(self, run: Run, name: str, *, is_indexed: bool) -> None:
        path = run.directory / f"{name}.db"
        self._ref: KeyRef = make_key(sqlite_address(path, synchronous="off"))
        self._is_indexed = is_indexed
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("synchronous", "OFF")
        self._connection.pragma("foreign_keys", "ON")
        for kind, own in () if is_indexed else _parts_of_the_index(self._connection):
            self._connection.execute(f"DROP {kind} {own}")

    def append(self, text: str) -> None:
        execute = self._connection.execute
        words = indexed_record(text) if self._is_indexed else None
        execute("BEGIN IMMEDIATE")
        found: Any = execute(_INSERT["sequence_records"], numbers(self._ref, 1)).fetchall()
        session_id, seq = found[0]
        execute(_INSERT["insert_record"], row(self._ref, session_id, seq, text) | {"words": words})
        execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def _parts_of_the_index(connection: apsw.Connection) -> list[Any]:
    """What the search of records added to the schema, and an insert runs into."""
    return connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE tbl_name = 'session_history' AND name IN ("
        "'session_history_fold',"
        " 'idx_session_history_space', 'idx_session_history_said')"
    ).fetchall()


def _mean_us(
    append: dict[str, Callable[[str], object]], language: Language, count: int
) -> dict[str, float]:
    texts = {name: language.texts(1) for name in append}
    taken = dict.fromkeys(append, 0.0)
    for turn in range(count // TURN):
        names = list(append)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            some = list(itertools.islice(texts[name], TURN))
            before = time.process_time()
            for text in some:
                append[name](text)
            taken[name] += time.process_time() - before
    return {name: seconds / (count // TURN * TURN) * 1e6 for name, seconds in taken.items()}


def _vector_bytes(count: int) -> tuple[int, int]:
    """What they take as the allocator sees it, and as they say themselves."""
    import numpy as np  # an extra

    from recollect.recall.vectors import VectorCache  # loads numpy

    rng = random.Random(SEED)
    some = [np.array([rng.gauss(0, 1) for _ in range(DIMENSIONS)], "<f4") for _ in range(64)]
    vectors = [(each / np.linalg.norm(each)).astype("<f4").tobytes() for each in some]
    tracemalloc.start()
    try:
        cache = VectorCache(bytes_max=2**40)
        held = cache.get("bench", DIMENSIONS)
        for first in range(0, count, BATCH):
            held.extend(
                [(at + 1, "record", at, vectors[at % 64]) for at in range(first, first + BATCH)]
            )
        taken, _ = tracemalloc.get_traced_memory()
        return taken, cache.nbytes
    finally:
        tracemalloc.stop()
