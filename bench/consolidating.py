"""What consolidation costs: the selection among many memories, and a run that changes little."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw

import recollect
from bench.bare import NOW
from bench.measure import take_turns
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import SPACE, sqlite_address, with_schema
from recollect.clock import ManualClock, from_micros
from recollect.types.generations import SelectionClock, SelectionPolicy

MEMORIES = 100_000
SELECTION_MS_MAX = 50.0
TOP_N = 256
WHOLE = 10_000
CHANGED = 10
SHARE_MAX = 0.05
FACTS_EACH = 3
PUBLISHED = 1000
MICROS_A_DAY = 86_400_000_000
SELECTION = "selection among 100,000 memories"
INCREMENTAL = "a generation by rules, 10 of 10,000 memories changed"

Execute = Callable[[str], Any]


def measure_consolidation(run: Run) -> Iterator[Line]:
    """Selection, incremental runs and the files, on both databases."""
    yield from _files(run)
    for database, make in _databases(run):
        if make is None:
            yield skipped(SELECTION, database, run.postgres_missing)
            continue
        yield from _selection(run, database, make("selection"))
        yield from _incremental(run, database, make("incremental"))


def _databases(run: Run) -> Iterator[tuple[str, Callable[[str], _Store] | None]]:
    yield "SQLite", lambda name: _Sqlite(run.directory / f"{name}.db")
    url = run.postgres_url
    yield "PostgreSQL", None if url is None else lambda name: _Postgres(url, f"bench_{name}")


def _selection(run: Run, database: str, store: _Store) -> Iterator[Line]:
    many = run.scaled(MEMORIES, 10_000)
    with _opened(store.address) as memory:
        store.fill(many, facts_each=0)
        now = from_micros(NOW + MICROS_A_DAY)
        generations = memory.store.generations
        for clock in SelectionClock:
            policy = SelectionPolicy(top_n=TOP_N, max_unused_days=30, clock=clock)
            assert len(generations.select(SPACE, policy, now).added) == TOP_N
            cost = take_turns(
                {"": partial(generations.select, SPACE, policy, now)},
                repetitions=run.scaled(100, 20),
                calls=1,
            )[""]
            yield Line(
                group=SELECTION,
                name=f"{database}: the best {TOP_N} by {clock}, wall",
                unit="ms",
                measured=cost.wall_us / 1000,
                target=SELECTION_MS_MAX,
                is_ratio=False,
                note=f"quick: {many:,}" if run.quick else "",
            )


def _incremental(run: Run, database: str, store: _Store) -> Iterator[Line]:
    whole = run.scaled(WHOLE, 1000)
    with _opened(store.address, consolidation_top_n=whole) as memory:
        store.fill(whole, facts_each=FACTS_EACH)
        first = _consolidated(memory)
        again = min(_after_a_change(memory, store, number) for number in range(3))
        made = memory.space(SPACE).generations.list(limit=1)[0]
        assert made.added == CHANGED
    yield Line(
        group=INCREMENTAL,
        name=f"{database}: wall, against the first run",
        unit="ms",
        measured=again * 1000,
        limit=first * 1000,
        target=SHARE_MAX,
        note=f"{made.changed} of {made.documents:,} documents written; no files",
    )


def _after_a_change(memory: recollect.Memory, store: _Store, number: int) -> float:
    store.change(CHANGED, number)
    return _consolidated(memory)


def _consolidated(memory: recollect.Memory) -> float:
    generations = memory.space(SPACE).generations
    began = time.perf_counter()
    report = generations.run()
    spent = time.perf_counter() - began
    assert report.generations == 1, report
    return spent


def _files(run: Run) -> Iterator[Line]:
    """How many files are written when ten documents of a thousand have changed."""
    directory = run.directory / "consolidated"
    store = _Sqlite(run.directory / "files.db")
    with _opened(store.address) as memory:
        documents = memory.space(SPACE).documents
        for number in range(PUBLISHED):
            documents.write(f"~/memory/page-{number}", f"Page {number}.")
        documents.publish(directory, path="~/memory")
        for number in range(CHANGED):
            documents.write(f"~/memory/page-{number}", "Something else.")
        before = {file: file.stat().st_ino for file in directory.rglob("*.md")}
        documents.publish(directory, path="~/memory")
    new = sum(before.get(file) != file.stat().st_ino for file in directory.rglob("*.md"))
    yield Line(
        group="files of a generation",
        name=f"files written after {CHANGED} of {PUBLISHED:,} documents changed",
        measured=new,
        target=CHANGED,
        is_ratio=False,
    )


@contextlib.contextmanager
def _opened(address: str, **settings: Any) -> Iterator[recollect.Memory]:
    clock = ManualClock(from_micros(NOW + MICROS_A_DAY))
    given = {"memories_root": "none", **settings}
    with recollect.open(address, settings=given, clock=clock) as memory:
        memory.space(SPACE).session("bench").append("user", "Good morning.")
        yield memory


class _Store:
    """A store that is filled by SQL of both databases."""

    address: str
    series: str

    def execute(self, statements: list[str]) -> None:
        raise NotImplementedError

    def fill(self, memories: int, *, facts_each: int) -> None:
        """Sessions with what they came to; each as old as its number says, in seconds."""
        series = self.series.replace("{count}", str(memories))
        facts = self.series.replace("{count}", str(memories * facts_each))
        filled = [_SESSIONS, _MEMORIES, *((_FACTS, _SOURCES) if facts_each else ()), _CHANGED]
        self.execute(
            [
                each.replace("{series}", series)
                .replace("{facts}", facts)
                .replace("{each}", str(max(facts_each, 1)))
                .replace("{now}", str(NOW))
                .replace("{space}", SPACE)
                for each in filled
            ]
        )

    def change(self, memories: int, number: int) -> None:
        """Let the first sessions have come to something else."""
        chosen = self.series.replace("{count}", str(memories))
        changed = _ANOTHER.replace("{number}", str(number)).replace("{series}", chosen)
        self.execute([_CHANGE.replace("{space}", SPACE), changed])


class _Sqlite(_Store):
    series = (
        "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        " SELECT i FROM n) AS s"
    )

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = sqlite_address(path, synchronous="off")

    def execute(self, statements: list[str]) -> None:
        connection = apsw.Connection(str(self._path))
        with connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()


class _Postgres(_Store):
    series = "generate_series(CAST(1 AS BIGINT), {count}) AS i"

    def __init__(self, url: str, schema: str) -> None:
        self._url, self._schema = url, schema
        self.address = with_schema(url, schema)

    def execute(self, statements: list[str]) -> None:
        import psycopg  # an extra; without it there is no URL

        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", (self._schema,))
            connection.execute("SELECT set_config('recollect.operator', 'on', false)")
            for statement in statements:
                connection.execute(statement.encode())
            connection.execute("VACUUM ANALYZE")  # what autovacuum does within a minute


_SESSIONS = """
INSERT INTO sessions (
    id, space, key_id, rotation, source, ephemeral, mode, remembered, last_seq, processed_until,
    unprocessed_turns, created_at, last_activity_at, ended_at, ended_by)
SELECT 's' || i, k.space, k.id, i + 1, 'api', false, 'enabled', true, 4, 4, 0,
    {now} - i * 1000000, {now} - i * 1000000, {now} - i * 1000000, 'end'
FROM {series} CROSS JOIN session_keys k WHERE k.key = 'bench'
"""
_MEMORIES = """
INSERT INTO extractions (
    session_id, space, raw_memory, rollout_summary, rollout_slug, extractor, pass, upto,
    source_updated_at, generated_at, usage_count, words, revision)
SELECT 's' || i, '{space}', 'Task ' || i || ': the user asked for the report of week ' || i || '.',
    '# Report of week ' || i, 'report-' || i, 'rules/1', 1, 4, {now} - i * 1000000,
    {now} - i * 1000000, i % 7, 'report week', 1
FROM {series}
"""
_FACTS = """
INSERT INTO facts (
    id, space, content, words, content_key, tags, metadata, trust, extractor, created_at,
    updated_at, valid_from, usage_count)
SELECT 'f' || i, '{space}', 'The user wants number ' || i || ' in the report.',
    'want number report', 'f' || i, '["preference"]', '{}', 'user', 'rules/1', {now} - i,
    {now} - i, {now} - i * 1000, i % 5
FROM {facts}
"""
_SOURCES = """
INSERT INTO fact_sources (fact_key, session_id, seq, seq_to, space, quote, trust, created_at)
SELECT f.key, 's' || (1 + CAST(substr(f.id, 2) AS INTEGER) / {each}), 1, 1, f.space, '', 'user',
    f.created_at
FROM facts f WHERE f.id LIKE 'f%'
    AND 1 + CAST(substr(f.id, 2) AS INTEGER) / {each} <= (SELECT count(*) FROM extractions)
"""
_CHANGED = """
INSERT INTO consolidations (space, changed, changed_at) VALUES ('{space}', 1, {now})
"""
_CHANGE = "UPDATE consolidations SET changed = changed + 1 WHERE space = '{space}'"
_ANOTHER = """
UPDATE extractions SET
    rollout_summary = '# Another one {number}', revision = (SELECT changed FROM consolidations)
WHERE session_id IN (SELECT 's' || i FROM {series})
"""
