"""PostgreSQL: a record whose transaction ends late is embedded all the same (N1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.types.recall import NewVector
from recollect_conformance import Harness
from recollect_conformance.findings import tell

MODEL = "table/1"
OTHERS = 2100  # more than any margin of numbers that are looked at again


@pytest.fixture
def store(postgres_store_url: str) -> Iterator[Harness]:
    opening = Harness(lambda: open_store(postgres_store_url, Settings(), ManualClock()))
    with closing(opening) as harness:
        yield harness


def embed(store: Harness) -> list[str]:
    """A vector for each that has none, until nothing is pending; their texts."""
    texts: list[str] = []
    while pending := store.handle.vectors.pending(MODEL, 700):
        texts += [entry.text for entry in pending]
        made = [NewVector(entry=entry, vector=b"1") for entry in pending]
        store.handle.vectors.put(MODEL, made)
    return texts


def test_records_that_are_committed_after_many_others_are_embedded(
    store: Harness, postgres_url: str, postgres_schema: str
) -> None:
    tell(store, "first", key="late")
    tell(store, "first", key="others")
    embed(store)
    session = store.current(store.key("late")).id
    table = f'"{postgres_schema}".session_history'
    with psycopg.connect(postgres_url) as late:
        # As somebody does who appends: their numbers are taken before they are seen.
        late.execute(
            f"INSERT INTO {table} (space, session_id, seq, key_id, role, content, said_at,"
            " created_at) SELECT h.space, h.session_id, h.seq + n, h.key_id, h.role, 'late ' || n,"
            f" h.said_at, h.created_at FROM {table} h, generate_series(1, 3) n"
            f" WHERE h.session_id = '{session}'".encode()
        )
        tell(store, *(f"other {number}" for number in range(OTHERS)), key="others")
        assert len(embed(store)) == OTHERS
        tell(store, "one more", key="others")
        assert embed(store) == ["one more"]
        late.commit()
    assert embed(store) == ["late 1", "late 2", "late 3"]
    assert embed(store) == []
