"""The conformance suite on every store of ours, and the proof that it catches wrong ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import UsageError
from recollect.store import sql
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.store.relational import RelationalStore
from recollect.store.sql import queries
from recollect_conformance import Case, Harness, OpenStore, __main__, cases, run, suite
from tests.conformance.broken_agents import MUTED_AGENTS, NOT_MUTED_AGENTS
from tests.conformance.broken_audit import MUTED_AUDIT
from tests.conformance.broken_documents import MUTED_DOCUMENTS, NOT_MUTED_DOCUMENTS
from tests.conformance.broken_forgetting import MUTED_FORGETTING, NOT_MUTED_FORGETTING
from tests.conformance.broken_generations import MUTED_GENERATIONS
from tests.conformance.broken_imports import MUTED_IMPORTS
from tests.conformance.broken_keys import MUTED_KEYS
from tests.conformance.broken_learning import MUTED, NOT_MUTED, MutedDatabase
from tests.conformance.broken_search import (
    MUTED_SEARCH,
    MUTED_VECTORS,
    NOT_MUTED_SEARCH,
    NOT_MUTED_VECTORS,
)
from tests.conformance.broken_stores import BROKEN, Break, broken_store

SQL = Path(sql.__file__).parent
QUERY_NAME = re.compile(r"^-- name: (\w+)", re.MULTILINE)
CASES = {case.name: case for case in cases()}
EVERY_ROW = {
    *("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M10", "T1", "T7", "T9", "A4"),
    *("N7", "X5", "X7", "X8", "X9", "X11", "T2", "T4", "T5", "N1", "N3", "N4", "N5"),
    *("D1", "D2", "D3", "D4", "D5", "D6", "D7"),
    *("M11", "M12", "M13", "M14", "A2", "A5", "A7"),
    *("G1", "G2", "G3", "G4", "G5", "G6", "G7", "G9", "G10", "G11", "G12"),
    *("P1", "P3", "P4", "P5", "P6", "P8", "P9", "P11", "P12"),
}
EVERY_MUTED = MUTED | MUTED_DOCUMENTS | MUTED_SEARCH | MUTED_VECTORS | MUTED_AGENTS
EVERY_MUTED |= MUTED_GENERATIONS | MUTED_IMPORTS | MUTED_KEYS | MUTED_FORGETTING
EVERY_MUTED |= MUTED_AUDIT
CHANGING: tuple[str, ...] = ("facts", "extractions", "documents", "search", "vectors", "agents")
CHANGING += ("generations", "imports", "keys", "forgetting", "audit")


def open_in_memory() -> Store:
    return open_store(":memory:", Settings(), ManualClock())


@contextmanager
def fresh_in_memory() -> Iterator[OpenStore]:
    yield open_in_memory


every_case = pytest.mark.parametrize(
    "case", cases(), ids=lambda case: f"{case.rows[0]}-{case.name}"
)


def keep(case: Case, store_url: str) -> None:
    def open_again() -> Store:
        return open_store(store_url, Settings(), ManualClock())

    with closing(Harness(open_again, volatile=store_url == ":memory:")) as store:
        case.run(store)


@every_case
def test_the_store_keeps_its_promise(store_url: str, case: Case) -> None:
    keep(case, store_url)


@every_case
def test_a_store_in_partitions_keeps_its_promise(partitioned_store_url: str, case: Case) -> None:
    keep(case, partitioned_store_url)


def test_the_suite_is_large_and_covers_the_rows_of_the_mission() -> None:
    assert len(CASES) >= 500
    assert {row for case in CASES.values() for row in case.rows} >= EVERY_ROW


def test_every_case_stands_in_a_chapter_and_reads_as_a_sentence() -> None:
    chapters = {chapter.__name__ for chapter in suite.CHAPTERS}
    for case in CASES.values():
        assert case.run.__module__ in chapters
        assert case.summary[0].islower()
        assert not case.summary.endswith(".")


@pytest.mark.parametrize("name", BROKEN)
def test_a_store_that_breaks_a_promise_fails_the_case_that_says_so(name: str) -> None:
    broken = BROKEN[name]
    [result] = run(
        lambda: _fresh_broken(broken), volatile=True, only=[CASES[broken.caught_by]]
    ).results
    assert not result.passed
    assert result.explanation


@contextmanager
def _fresh_broken(broken: Break) -> Iterator[OpenStore]:
    yield lambda: broken_store(open_in_memory(), broken)


@pytest.mark.parametrize("query", EVERY_MUTED)
def test_a_store_that_leaves_out_one_of_its_queries_fails_the_case_that_says_so(query: str) -> None:
    @contextmanager
    def fresh_muted() -> Iterator[OpenStore]:
        def open_muted() -> Store:
            store = open_in_memory()
            assert isinstance(store, RelationalStore)
            return RelationalStore(MutedDatabase(store._database, query))

        yield open_muted

    [result] = run(fresh_muted, volatile=True, only=[CASES[EVERY_MUTED[query]]]).results
    assert not result.passed


def test_every_query_that_changes_what_is_known_is_left_out_once() -> None:
    changing = {
        name
        for file in CHANGING
        for name in QUERY_NAME.findall((SQL / f"{file}.sql").read_text(encoding="utf-8"))
        if not queries("sqlite")[name].startswith("SELECT")
    }
    left = NOT_MUTED | NOT_MUTED_DOCUMENTS | NOT_MUTED_SEARCH | NOT_MUTED_VECTORS
    left |= NOT_MUTED_AGENTS | NOT_MUTED_FORGETTING
    assert changing - left <= set(EVERY_MUTED)


def test_a_volatile_store_that_claims_to_last_is_found_out() -> None:
    case = CASES["everything_is_there_after_reopening"]
    assert not run(fresh_in_memory, volatile=False, only=[case]).passed


def test_a_report_says_where_a_case_failed_and_goes_on() -> None:
    chosen = [CASES["a_mark_only_rises"], CASES["recent_gives_the_newest"]]
    report = run(
        lambda: _fresh_broken(BROKEN["a mark that can be lowered"]), volatile=True, only=chosen
    )
    assert [result.passed for result in report.results] == [False, True]
    assert not report.passed
    [failure] = report.failures
    assert "a_mark_only_rises, line" in failure.explanation


def test_a_store_that_cannot_be_opened_fails_the_case_and_not_the_run() -> None:
    def open_nothing() -> Store:
        raise OSError("no such place")

    [result] = run(lambda: nullcontext(open_nothing), only=[CASES["a_mark_only_rises"]]).results
    assert "no such place" in result.explanation


def test_the_command_reports_each_store_and_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "cases", lambda: tuple(CASES.values())[:12])
    result = CliRunner().invoke(__main__.main, [])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        ":memory:: 12 of 12 promises kept",
        "sqlite:///: 12 of 12 promises kept",
    ]


def test_the_command_fails_when_a_promise_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Store:
        return broken_store(open_in_memory(), BROKEN["a mark that can be lowered"])

    chosen = (CASES["a_mark_only_rises"], CASES["recent_gives_the_newest"])
    monkeypatch.setattr(suite, "cases", lambda: chosen)
    monkeypatch.setattr(__main__, "open_store", broken)
    result = CliRunner().invoke(__main__.main, [":memory:"])
    assert result.exit_code == 1
    assert "FAILED M3" in result.output
    assert "a_mark_only_rises" in result.output
    assert "recent_gives_the_newest" not in result.output


def test_the_command_says_which_addresses_it_takes() -> None:
    result = CliRunner().invoke(__main__.main, ["mysql://localhost/x"])
    assert result.exit_code == 1
    assert "postgresql://" in result.output


def test_the_command_says_when_a_store_cannot_be_reached(postgres_url: str) -> None:
    nowhere = postgres_url.replace("/postgres?", "/nowhere?")
    result = CliRunner().invoke(__main__.main, [nowhere])
    assert result.exit_code == 1
    assert "check that the server runs" in result.output


def test_the_command_uses_a_schema_of_its_own_on_postgresql(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "cases", lambda: tuple(CASES.values())[:2])
    result = CliRunner().invoke(__main__.main, ["--verbose", postgres_url])
    assert result.exit_code == 0, result.output
    assert "2 of 2 promises kept" in result.output
    with psycopg.connect(postgres_url) as connection:
        left = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'conformance%'"
        )
        assert left.fetchall() == []


def test_the_suite_refuses_to_run_where_assertions_are_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suite, "_assertions_are_on", lambda: False)
    with pytest.raises(UsageError, match="without -O"):
        run(fresh_in_memory)
