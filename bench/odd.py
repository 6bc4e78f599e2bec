"""What nobody would ask: any string is a legal question, and none is slow."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import recollect
from bench.report import Line
from bench.settings import Run
from bench.stores import SPACE, open_memory, sqlite_address
from bench.texts import SEED
from recollect.benchmarks.zipf import Language

STRINGS, ENTRIES, MS_MAX = 100_000, 10_000, 200.0
BLOCK = 2000  # strings from one seed, whoever asks them
WORDS_SEED = 3

Fill = Callable[[recollect.Space, Language, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of a block of strings."""

    failed: tuple[str, ...]
    taken_ms: tuple[float, ...]


def measure_odd_strings(run: Run, fill: Fill) -> Iterator[Line]:
    """Asked in as many processes as there are cores, each with its own seeds; CPU of each."""
    count = run.scaled(STRINGS, BLOCK)
    group = f"random strings as questions, {ENTRIES:,} entries, SQLite (CPU)"
    address = sqlite_address(run.directory / "odd.db", synchronous="off")
    with open_memory(address) as memory:
        fill(memory.space(SPACE), Language(), ENTRIES * 9 // 10, ENTRIES // 10)
    seeds = range(count // BLOCK)
    began = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as processes:
        blocks = list(processes.map(_asked, itertools.repeat(address), seeds))
    minutes = (time.monotonic() - began) / 60
    failed = [each for block in blocks for each in block.failed]
    taken = [each for block in blocks for each in block.taken_ms]
    yield Line(
        group=group,
        name=f"errors among {len(taken):,}",
        measured=len(failed),
        target=0,
        is_ratio=False,
        note=failed[0][:200] if failed else f"{minutes:.1f} minutes",
    )
    yield Line(
        group=group,
        name="the slowest answer",
        unit="ms",
        measured=max(taken),
        target=MS_MAX,
        is_ratio=False,
        note=f"the middle one {statistics.median(taken):.2f} ms",
    )


def _asked(address: str, number: int) -> Asked:
    """One block, in a process that has nothing else to do."""
    failed: list[str] = []
    taken: list[float] = []
    with open_memory(address) as memory:
        space = memory.space(SPACE)
        space.recall("what is made on first use")
        for text in itertools.islice(odd_strings(Language(), SEED + number), BLOCK):
            before = time.process_time()
            try:
                space.recall(text)
            except Exception as error:  # any is what is counted here
                failed.append(f"{type(error).__name__}: {text!r}")
            taken.append((time.process_time() - before) * 1000)
    return Asked(failed=tuple(failed), taken_ms=tuple(taken))


def odd_strings(language: Language, seed: int = SEED) -> Iterator[str]:
    """Without end: any characters, what means something to a database, and words among them."""
    rng = random.Random(seed)
    texts = language.texts(WORDS_SEED)
    while True:
        parts = rng.sample(range(6), rng.randint(1, 3))
        length = rng.randint(0, rng.choice((1, 2, 5, 10, 20, 40, 100, 400)))
        yield "".join(_odd_part(rng, rng.choice(parts), texts) for _ in range(length))


def _odd_part(rng: random.Random, kind: int, texts: Iterator[str]) -> str:
    match kind:
        case 0:
            return chr(rng.randint(1, 0x7F))
        case 1:
            return chr(rng.choice((rng.randint(0x80, 0xD7FF), rng.randint(0xE000, 0x10FFFF))))
        case 2:
            return rng.choice((" AND ", " NEAR(", '"', "*", "'", "--", ";", "%", "\\", "\0", "^"))
        case 3:
            return rng.choice((" last ", " 2024", " two weeks ago ", " May ", "-", ":", "{", "\n"))
        case 4:
            return chr(rng.randint(0xD800, 0xDFFF))  # half of a character
        case _:
            return f" {next(texts).split()[0]} "
