"""Inboxes in rows: exactly how much one turn takes, and that no query goes through all agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import apsw
import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.store.relational.agents import MERGED_CHARS_MAX, MERGED_MAX
from recollect.store.schema import migrations
from recollect.store.sql import queries
from recollect.types.agents import ItemKind, NewItem
from recollect_conformance import Harness
from recollect_conformance.inboxes import host, message, note, post, take
from tests.tables import every_row

QUERIES = queries("sqlite")


@pytest.fixture
def store() -> Iterator[Harness]:
    def open_it() -> Store:
        return open_store(":memory:", Settings(), ManualClock())

    with closing(Harness(open_it, volatile=True)) as harness:
        yield harness


def taken(store: Harness, *items: NewItem) -> list[str]:
    """The names of what the first turn takes."""
    post(store, store.key(), *items)
    return [item.id for item in take(store, host(store)).items]


def test_a_turn_takes_as_many_messages_as_it_may_and_not_one_more(store: Harness) -> None:
    names = [f"message {number}" for number in range(MERGED_MAX + 1)]
    assert taken(store, *(message(name) for name in names)) == names[:-1]


def test_a_turn_takes_as_much_text_as_it_may_and_not_a_letter_more(store: Harness) -> None:
    half = "x" * (MERGED_CHARS_MAX // 2)
    items = (message(half, named="a"), message(half, named="b"), message("x", named="c"))
    assert taken(store, *items) == ["a", "b"]


def test_a_message_that_is_longer_than_a_turn_takes_is_a_turn_of_its_own(store: Harness) -> None:
    long = message("x" * (MERGED_CHARS_MAX + 1), named="long")
    assert taken(store, long, message("short")) == ["long"]


@pytest.mark.parametrize("kind", [kind for kind in ItemKind if kind is not ItemKind.USER_MESSAGE])
def test_what_is_no_user_message_is_a_turn_of_its_own_and_ends_the_one_before(
    store: Harness, kind: ItemKind
) -> None:
    other = NewItem(id="other", kind=kind, text="x")
    assert taken(store, other, message("after")) == ["other"]
    ref = store.key("another")
    post(store, ref, message("before"), other, message("after"))
    assert [item.id for item in take(store, host(store)).items] == ["before"]


def test_a_note_between_two_messages_keeps_them_apart(store: Harness) -> None:
    assert taken(store, message("one"), note("between"), message("two")) == ["one"]


@every_row(
    ("name", "index"),
    [
        ("waiting_items", "idx_inbox_state (space=? AND key_id=? AND state=?)"),
        ("has_items", "idx_inbox_state (space=? AND key_id=? AND state=?)"),
        ("lock_turn", "idx_inbox_state (space=? AND key_id=? AND state=?)"),
        ("forget_items", "idx_inbox_about (space=? AND about_session=?)"),
        ("due_signals", "idx_signals_due (due_at<?)"),
        ("next_signal", "idx_signals_due"),
        ("told_of", "(space=? AND about_session=?)"),
        ("end_told", "(space=? AND about_session=? AND session_id=?)"),
    ],
)
def test_what_is_asked_all_the_time_is_found_by_an_index(name: str, index: str) -> None:
    connection = apsw.Connection(":memory:")
    for migration in migrations("sqlite"):
        for each in migration.statements:
            connection.execute(each)
    values = dict.fromkeys(re.findall(r"(?<!:):(\w+)", QUERIES[name]), 1)
    plan = connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", values).fetchall()
    steps = [str(row[3]) for row in plan]
    assert any(index in step for step in steps), steps
    if name != "next_signal":
        assert not any(step.startswith("SCAN") for step in steps), steps
