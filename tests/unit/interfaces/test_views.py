"""One view of every value: it has what its schema says, in that order, and nothing is misspelt."""

from __future__ import annotations

import dataclasses
import importlib
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import recollect
from recollect.interfaces.views import LAYOUTS, shape_of, view
from recollect.types.records import Job, JobKind, JobState
from recollect.types.status import Status
from tests.tables import every_row

NOW = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    """One value of several types each, as a memory gives them, by the name of their schema."""
    with recollect.open(":memory:") as memory:
        space = memory.space("alice")
        session = space.session("main", agent="helper")
        record = session.append("user", "I moved to Lisbon in May. My daughter is called Ana.")
        memory.work(all=True)
        [fact, *_] = space.facts.list()
        block = space.context("where does she live?")
        status = memory.status()
        return {
            "Record": record,
            "Session": session.state,
            "Range": space.sessions.ranges(session.id)[0],
            "Extraction": space.sessions.extraction(session.id),
            "Fact": fact,
            "FactChange": space.facts.history(fact.id)[0],
            "Hit": space.recall("Lisbon")[0],
            "Context": block,
            "Citation": block.citations[0],
            "Node": space.documents.tree()[0],
            "Document": space.documents.read(space.documents.tree()[0].path),
            "Consolidation": space.generations.state(),
            "Receipt": space.forget(fact=fact.id),
            "Status": status,
        }


def test_a_view_has_what_its_schema_says_in_that_order(values: dict[str, Any]) -> None:
    shapes = [shape_of(type(value)) for value in values.values()]
    schemas = msgspec.json.schema_components(shapes)[1]
    for name, value in values.items():
        assert list(view(value, NOW)) == list(schemas[name]["properties"]), name
    assert "location" not in schemas["StoreDescription"]["properties"]


def test_a_view_is_json_but_for_its_times(values: dict[str, Any]) -> None:
    for value in values.values():
        assert json.dumps(view(value, NOW), default=datetime.isoformat).startswith("{")


@every_row("name", LAYOUTS)
def test_a_layout_names_a_type_and_fields_that_are_there(name: str) -> None:
    module, _, kind = name.rpartition(".")
    named = getattr(importlib.import_module(f"recollect.{module}"), kind)
    layout, fields = LAYOUTS[name], {each.name for each in dataclasses.fields(named)}
    assert set(layout.hides) <= fields
    assert set(layout.names) <= fields
    assert set(layout.adds) <= fields | {""}
    assert set(layout.local) <= fields


def test_what_depends_on_the_time_needs_it() -> None:
    job = Job(
        id=1,
        space="alice",
        kind=JobKind.EXTRACT,
        key="s",
        state=JobState.DUE,
        first_due_at=NOW,
        due_at=None,
        owner=None,
        lease_expires_at=None,
        token=0,
        failures=0,
        takeovers=0,
        last_error=None,
        last_error_at=None,
        finished_at=None,
    )
    assert view(job, NOW)["next_attempt_at"] == NOW
    with pytest.raises(AssertionError, match="needs the time"):
        view(job)


def test_hidden_fields_do_not_come_out(values: dict[str, Any]) -> None:
    status = values["Status"]
    assert isinstance(status, Status)
    assert "passed_over" not in view(status, status.at)
    assert "body" not in view(values["Record"])
