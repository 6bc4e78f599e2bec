"""The named queries: each is used, exists in both dialects, and takes the same parameters there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import apsw
import pytest

import recollect.store
from recollect.store.schema import migrations
from recollect.store.sql import Dialect, queries
from tests.tables import every_row

STORE = Path(recollect.store.__file__).parent
SQLITE = queries("sqlite")
POSTGRES = queries("postgres")
NOTHING_ON_SQLITE = {"post", "unpost"}  # its full text follows its tables by itself
RUNNERS = {"row", "rows", "rows_each", "run", "run_many"}
NODES = [
    node
    for path in sorted((STORE / "relational").glob("*.py"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
]


def used_names() -> set[str]:
    """The first argument of every `c.row(…)` and its siblings."""
    return {
        node.args[0].value
        for node in NODES
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in RUNNERS
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def mentioned_names() -> set[str]:
    """Those, and the ones that stand in a table: by what is searched for, or indexed."""
    return {
        node.value
        for node in NODES
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    } & set(SQLITE)


def parameters(query: str, dialect: Dialect) -> set[str]:
    pattern = r"%\((\w+)\)s" if dialect == "postgres" else r"(?<!:):(\w+)"
    return set(re.findall(pattern, query))


def test_every_query_that_is_used_exists_and_every_one_that_exists_is_used() -> None:
    assert used_names() <= set(SQLITE)
    assert mentioned_names() == set(SQLITE) == set(POSTGRES)


@every_row("name", sorted(SQLITE))
def test_a_query_takes_the_same_parameters_in_both_dialects(name: str) -> None:
    found = parameters(POSTGRES[name], "postgres")
    assert found == parameters(SQLITE[name], "sqlite") or name in NOTHING_ON_SQLITE
    of_the_store = {
        "next_signal",
        "steer",
        "models",
        "newest_record",
        "spaces_told",
        "applied_schema",
    }
    is_of_the_store = name in of_the_store | {"go_by_index", "cooling_consolidations"}
    assert found or is_of_the_store, "a query without a parameter sees every space"


@every_row("name", sorted(SQLITE))
def test_a_query_has_nothing_a_driver_could_misread(name: str) -> None:
    assert "%" not in SQLITE[name]
    assert ":" not in re.sub(r":[a-z_]+", "", SQLITE[name])
    assert not re.search(r"[:%]", re.sub(r"%\([a-z_]+\)s", "", POSTGRES[name]))
    for query in (SQLITE[name], POSTGRES[name]):
        assert "--" not in query
        assert ";" not in query
        assert query.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def without_clock(query: str) -> str:
    """A query with the one expression that reads the database's clock taken out."""
    query = re.sub(r"COALESCE\(\s*CAST\(%\(now\)s AS BIGINT\).*?AS BIGINT\)\)", "NOW", query)
    return re.sub(r"COALESCE\(%\(now\)s, CAST\(unixepoch.*?AS INTEGER\)\)", "NOW", query)


def test_only_what_must_differ_differs() -> None:
    as_postgres = {name: re.sub(r":([a-z_]+)", r"%(\1)s", text) for name, text in SQLITE.items()}
    differing = {
        name for name in SQLITE if without_clock(as_postgres[name]) != without_clock(POSTGRES[name])
    }
    assert differing == {
        *("lock_key", "lock_session", "lock_claim", "hold_memory"),
        *("lock_stuck", "lock_runs"),
        *(
            "mark_idle",
            "bound_activity",
            "list_waiting",
            "waiting_newest",
            "hold_first_due",
            "hold_expired",
            "lock_claims_of_space",
            "hold_passable",
        ),
        *("hold_record", "hold_fact", "hold_summary", "hold_document"),
        *("post", "unpost", "go_by_index", "insert_record", "tell_dropped", "drop_vectors"),
        *("contexts_telling", "records_told", "facts_told", "documents_told", "summaries_told"),
        *("refs_there", "sources_told", "sessions_gone", "earlier_facts", "earlier_documents"),
        "disputed_statements",
        *("get_fact", "list_facts", "list_topic_facts", "search_facts", "unfiled_facts"),
        "facts_of_page",
        *("search_fact_metadata", "search_documents", "waiting_facts"),
        *("facts_naming", "count_facts_naming"),
        *("record_postings", "asked_record_postings", "asked_fact_postings", "unindexed_records"),
        *("related_record_postings", "related_fact_postings", "revised_statements"),
        *("fact_postings", "summary_postings", "document_postings", "steer"),
        *(
            "timed_facts",
            "timed_records",
            "load_records",
            "load_neighbours",
            "load_facts",
            "load_summaries",
            "load_documents",
        ),
        *(
            "raise_versions",
            "seen_before",
            "documents_made_from",
            "overtaken_documents",
            "extent_inside",
        ),
        *("forgotten_sessions", "lock_life", "lock_turn", "grounds_of_facts"),
        *("lock_consolidation", "complete_consolidation", "lost_memories"),
        *("selected_before", "standing_facts", "standing_sources", "newest_record"),
        *("note_imported", "find_imported", "insert_key"),
        *("insert_usages", "end_pauses", "request_all_marked"),
        *("count_facts", "reworded_facts", "left_out", "latest_facts"),
    }


def test_what_rests_on_something_is_found_by_its_inputs() -> None:
    connection = apsw.Connection(":memory:")
    for migration in migrations("sqlite"):
        for each in migration.statements:
            connection.execute(each)
    plan = connection.execute(
        f"EXPLAIN QUERY PLAN {SQLITE['documents_made_from']}", {"space": "s", "ids": "[]"}
    ).fetchall()
    steps = " ".join(str(row[3]) for row in plan)
    assert "idx_derived_inputs_input (space=? AND input_kind=? AND input_id=?" in steps


@pytest.mark.parametrize(
    "name",
    ["session_sources", "session_facts", "is_suppressed", "session_statements"],
)
def test_what_a_session_bears_out_is_found_without_going_through_the_whole_space(name: str) -> None:
    connection = apsw.Connection(":memory:")
    for migration in migrations("sqlite"):
        for each in migration.statements:
            connection.execute(each)
    values = dict.fromkeys(parameters(SQLITE[name], "sqlite"), "x")
    plan = connection.execute(f"EXPLAIN QUERY PLAN {SQLITE[name]}", values).fetchall()
    [step] = [str(row[3]) for row in plan if str(row[3]).startswith("SEARCH o ")]
    assert "space=? AND session_id=?" in step
