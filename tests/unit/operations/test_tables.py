"""No table is forgotten: each is copied, or left out for a reason that is written down."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.operations.tables import LEFT_OUT, OF_THE_STORE, TABLES
from recollect.store.opening import open_store
from recollect.store.whole import Access, Whole


@pytest.fixture
def whole(store_url: str) -> Iterator[Whole]:
    store = open_store(store_url, Settings(), ManualClock())
    with store.whole(Access.READ) as opened:
        yield opened
    store.close()


def test_every_table_is_copied_or_left_out_for_a_reason(whole: Whole) -> None:
    copied = [table.name for table in TABLES] + list(OF_THE_STORE)
    assert len(copied) == len(set(copied))
    found = set(whole.tables())
    assert found <= set(copied) | set(LEFT_OUT)
    assert set(copied) <= found


def test_every_column_that_a_table_is_said_to_have_is_there(whole: Whole) -> None:
    found = whole.tables()
    for table in TABLES:
        columns = {column.name for column in found[table.name]}
        allowed = {"number"} if whole.dialect == "postgres" else set()  # the index's, on SQLite
        assert {*table.order, *table.left_out, *table.named} - allowed <= columns, table.name


def test_rows_are_told_apart_by_what_they_are_ordered_by(whole: Whole) -> None:
    """Two rows that may come in either order would make two archives of one content."""
    for table in TABLES:
        keys = {
            column.name for column in whole.tables()[table.name] if column.key_position is not None
        }
        if table.name in ("session_history", "extractions"):
            continue  # ordered by a number that is unique in either database
        assert keys - {"space"} <= set(table.order), table.name
