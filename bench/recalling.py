"""How long recall takes in one large space, against the plain full-text query on the same texts."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw

import recollect
from bench.indexing import measure_index_cost, measure_vector_memory
from bench.odd import measure_odd_strings
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import SPACE, open_memory, sqlite_address, with_schema
from recollect.benchmarks.zipf import Language
from recollect.stemming import asked_stems
from recollect.types.facts import Fact, Source

RECORDS, FACTS, QUESTIONS = 1_000_000, 100_000, 200
POSTGRES_RECORDS, POSTGRES_FACTS = 100_000, 10_000
QUICK_SHARE = 100
SESSION_RECORDS = 100
RECORD_TEXTS, FACT_TEXTS, ASKED = 1, 2, 3  # seeds, added to the one of all texts
P50_MS_MAX, P95_MS_MAX = 15.0, 50.0
SHARE_OF_PLAIN_MAX = 1 / 3
CONTEXT_MS_MAX = 2.0

Ask = Callable[[str], object]


def measure_recall(run: Run) -> Iterator[Line]:
    """Recall, the plain query and a context in turns; what it costs; what nobody would ask."""
    language = Language()
    yield from _in_a_large_space(run, language)
    yield from measure_index_cost(run, language)
    yield from measure_vector_memory(run)
    yield from measure_odd_strings(run, fill)
    yield from _on_postgres(run, language)


def _in_a_large_space(run: Run, language: Language) -> Iterator[Line]:
    records, facts = (_scaled(run, count) for count in (RECORDS, FACTS))
    group = f"recall in a space of {facts:,} facts and {records:,} records, SQLite (CPU)"
    with ExitStack() as stack:
        address = sqlite_address(run.directory / "recall.db", synchronous="off")
        space = stack.enter_context(open_memory(address)).space(SPACE)
        fill(space, language, records, facts)
        plain = PlainIndex(run.directory / "plain.db", language, records, facts)
        stack.callback(plain.close)
        taken = _in_turns(
            {"recall": space.recall, "plain": plain.ask}, _questions(language), time.process_time
        )
        # Once more, so that neither of the two reads from the disk for the other.
        again = _in_turns(
            {"recall": space.recall, "context": space.context},
            _questions(language),
            time.process_time,
        )
    ours, plainly = _sorted(taken["recall"]), _sorted(taken["plain"])
    for share, target in ((0.5, P50_MS_MAX), (0.95, P95_MS_MAX), (1.0, None)):
        yield Line(
            group=group,
            name=f"recall, {_titled(share)}",
            unit="ms",
            measured=_at(ours, share),
            target=target,
            is_ratio=False,
            note=f"over {QUESTIONS} questions of 3 to 9 words",
        )
    for share, most in ((0.5, SHARE_OF_PLAIN_MAX), (0.95, None)):
        yield Line(
            group=group,
            name=f"recall against a plain FTS5 OR query, {_titled(share)}",
            unit="ms",
            measured=_at(ours, share),
            limit=_at(plainly, share),
            target=most,
            note="bm25, the best 10, in the same run",
        )
    added = [much - little for much, little in zip(again["context"], again["recall"], strict=True)]
    yield Line(
        group=group,
        name="what a context adds, the middle one",
        unit="ms",
        measured=statistics.median(added),
        target=CONTEXT_MS_MAX,
        is_ratio=False,
        note="40 hits, and a block of 800 tokens",
    )


def _on_postgres(run: Run, language: Language) -> Iterator[Line]:
    records, facts = (_scaled(run, count) for count in (POSTGRES_RECORDS, POSTGRES_FACTS))
    group = f"recall in a space of {facts:,} facts and {records:,} records, PostgreSQL (wall)"
    if run.postgres_url is None:
        yield skipped(group, "recall", run.postgres_missing)
        return
    address = with_schema(run.postgres_url, "recollect_bench_recall")
    with open_memory(address) as memory:
        space = memory.space(SPACE)
        fill(space, language, records, facts)
        _vacuum(run.postgres_url)
        client = time.process_time()
        taken = _in_turns({"recall": space.recall}, _questions(language), time.perf_counter)
        cpu = (time.process_time() - client) * 1000 / QUESTIONS
    for share in (0.5, 0.95, 1.0):
        yield Line(
            group=group,
            name=f"recall, {_titled(share)}",
            unit="ms",
            measured=_at(_sorted(taken["recall"]), share),
            note=f"no target; {cpu:.1f} ms of each are the client's CPU",
        )


def fill(space: recollect.Space, language: Language, records: int, facts: int) -> None:
    """Sessions of a hundred records, and facts that name where they come from.

    All of it through the interface: a fact is added in a transaction of its own, a minute for a
    hundred thousand.
    """
    texts = language.texts(RECORD_TEXTS)
    ids = []
    for first in range(0, records, SESSION_RECORDS):
        session = space.session(("recall", first))
        count = min(SESSION_RECORDS, records - first)
        session.append_many(
            [
                {"role": "assistant" if at % 2 else "user", "content": next(texts)}
                for at in range(count)
            ]
        )
        ids.append(session.id)
    for number, text in enumerate(itertools.islice(language.texts(FACT_TEXTS), facts)):
        source = Source(session_id=ids[number % len(ids)], seq=1, seq_to=2)
        space.facts.add(Fact(text, sources=(source,)))


class PlainIndex:
    """What anybody would write first: one full-text table of the same texts, and any word of it."""

    def __init__(self, path: Path, language: Language, records: int, facts: int) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "OFF")
        self._connection.execute("CREATE VIRTUAL TABLE plain USING fts5 (text, tokenize = porter)")
        texts = itertools.chain(
            itertools.islice(language.texts(RECORD_TEXTS), records),
            itertools.islice(language.texts(FACT_TEXTS), facts),
        )
        with self._connection:
            self._connection.executemany(
                "INSERT INTO plain (text) VALUES (?)", ((text,) for text in texts)
            )

    def ask(self, question: str) -> list[Any]:
        """The words that recall looks for as well; FTS5 stems them itself."""
        words = " OR ".join(f'"{word}"' for word in asked_stems(question).values())
        return self._connection.execute(
            "SELECT rowid, text FROM plain WHERE plain MATCH ? ORDER BY bm25(plain) LIMIT 10",
            (words,),
        ).fetchall()

    def close(self) -> None:
        self._connection.close()


def _questions(language: Language) -> list[str]:
    return list(itertools.islice(language.questions(ASKED), QUESTIONS))


def _in_turns(
    asked: dict[str, Ask], questions: Sequence[str], clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Milliseconds for each question. One that has not been asked: a few others come before."""
    for question in questions[:5]:
        for ask in asked.values():
            ask(question[::-1])
    taken: dict[str, list[float]] = {name: [] for name in asked}
    for question in questions:
        for name, ask in asked.items():
            before = clock()
            ask(question)
            taken[name].append((clock() - before) * 1000)
    return taken


def _scaled(run: Run, count: int) -> int:
    return run.scaled(count, count // QUICK_SHARE)


def _sorted(taken: Sequence[float]) -> list[float]:
    return sorted(taken)


def _at(taken: Sequence[float], share: float) -> float:
    """What so many of the sorted times stay below."""
    return taken[min(int(len(taken) * share), len(taken) - 1)]


def _titled(share: float) -> str:
    return "the slowest" if share == 1.0 else f"p{share * 100:.0f}"


def _vacuum(url: str) -> None:
    import psycopg  # an extra; without it there is no URL

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', 'recollect_bench_recall', false)")
        connection.execute("VACUUM ANALYZE")  # what autovacuum does within a minute
