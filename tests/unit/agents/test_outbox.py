"""What could not be stored: kept in order, tried again, stored once, counted, and never silent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

import recollect
from recollect.agents.outbox import ENTRIES_MAX, Outbox
from recollect.errors import (
    AppendKeyReused,
    NotFound,
    OutcomeUnknown,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from recollect.messages import Role
from recollect.types.records import KeyRef, NewRecord

REF = KeyRef(space="alice", key="k", agent_id="/user/assistant", key_id=1)
AWAY = StoreUnavailable("away")


def said(text: str, key: str = "") -> NewRecord:
    return NewRecord(role=Role.USER, content=text, append_key=key or text)


class Sink:
    """A store that takes records, or raises what it is told to."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.error: Exception | None = None
        self.tries = 0

    def append(self, _: KeyRef, records: Sequence[NewRecord]) -> object:
        self.tries += 1
        if self.error is not None:
            raise self.error
        self.stored += [record.content for record in records]
        return None


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def outbox(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> Outbox:
    """One that tries only when it is told to."""
    monkeypatch.setattr("recollect.agents.outbox.PAUSE_SECONDS", 3600.0)
    return Outbox(sink.append)


def test_an_empty_one_is_flushed_at_once(outbox: Outbox) -> None:
    assert outbox.flush()
    assert (outbox.pending, outbox.failures, outbox.dropped) == (0, 0, 0)
    outbox.close()


def test_what_waits_is_counted_and_stored_in_order(outbox: Outbox, sink: Sink) -> None:
    outbox.add(REF, [said("a"), said("b")], AWAY)
    outbox.add(REF, [said("c")], AWAY)
    assert (outbox.pending, outbox.failures) == (3, 2)
    assert outbox.flush()
    assert sink.stored == ["a", "b", "c"]
    assert outbox.pending == 0
    outbox.close()


@pytest.mark.parametrize("error", [AWAY, OutcomeUnknown("?"), StoreClosed("closed")])
def test_what_cannot_be_stored_yet_stays(outbox: Outbox, sink: Sink, error: Exception) -> None:
    outbox.add(REF, [said("a")], AWAY)
    sink.error = error
    assert not outbox.flush()
    assert (outbox.pending, outbox.dropped) == (1, 0)
    sink.error = None
    assert outbox.flush()
    assert sink.stored == ["a"]
    outbox.close()


@pytest.mark.parametrize(
    "error", [AppendKeyReused("another"), NotFound("forgotten"), StoreCorrupt("broken")]
)
def test_what_never_can_be_is_given_up_and_counted(
    outbox: Outbox, sink: Sink, error: Exception
) -> None:
    outbox.add(REF, [said("a"), said("b")], AWAY)
    sink.error = error
    assert outbox.flush()
    assert (outbox.pending, outbox.dropped) == (0, 2)
    outbox.close()


def test_one_that_never_can_be_does_not_hold_up_the_next(outbox: Outbox, sink: Sink) -> None:
    errors: list[StoreError | AppendKeyReused | None] = [AppendKeyReused("another"), None]

    def append(ref: KeyRef, records: Sequence[NewRecord]) -> object:
        sink.error = errors.pop(0)
        return sink.append(ref, records)

    outbox._append = append
    outbox.add(REF, [said("a")], AWAY)
    outbox.add(REF, [said("b")], AWAY)
    assert outbox.flush()
    assert sink.stored == ["b"]
    outbox.close()


def test_it_is_bounded_and_the_oldest_go_first(outbox: Outbox, sink: Sink) -> None:
    for number in range(ENTRIES_MAX + 5):
        outbox.add(REF, [said(str(number))], AWAY)
    assert (outbox.pending, outbox.dropped) == (ENTRIES_MAX, 5)
    assert outbox.flush()
    assert sink.stored[0] == "5"
    outbox.close()


def test_it_tries_by_itself_until_nothing_is_left(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.agents.outbox.PAUSE_SECONDS", 0.001)
    stored = threading.Event()
    tries: list[int] = []

    def append(ref: KeyRef, records: Sequence[NewRecord]) -> object:
        tries.append(1)
        if len(tries) < 4:
            raise AWAY
        sink.append(ref, records)
        stored.set()
        return None

    outbox = Outbox(append)
    outbox.add(REF, [said("a")], AWAY)
    assert stored.wait(20)
    outbox.close()
    assert (sink.stored, outbox.pending, outbox.failures) == (["a"], 0, 4)


def test_closing_tries_once_more_and_says_what_is_lost(
    outbox: Outbox, sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    outbox.add(REF, [said("a"), said("b")], AWAY)
    sink.error = AWAY
    outbox.close()
    assert "2 records could not be stored" in caplog.text
    assert sink.tries == 1


def test_closing_stores_what_can_be(outbox: Outbox, sink: Sink) -> None:
    outbox.add(REF, [said("a")], AWAY)
    outbox.close()
    assert sink.stored == ["a"]


def test_many_may_add_and_flush_at_once(outbox: Outbox, sink: Sink) -> None:
    def add(start: int) -> Callable[[], None]:
        def run() -> None:
            for number in range(50):
                outbox.add(REF, [said(f"{start}-{number}")], AWAY)
                outbox.flush()

        return run

    threads = [threading.Thread(target=add(start)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outbox.flush()
    assert len(sink.stored) == len(set(sink.stored)) == 200
    outbox.close()


def test_what_was_stored_after_all_is_stored_once(memory: recollect.Memory) -> None:
    """An outcome that was unknown: the append key finds out."""
    session = memory.space("alice").session("k")
    session.append("user", "a", key="a")
    around = memory.space("alice")._runtime

    def append(_: KeyRef, records: Sequence[NewRecord]) -> object:
        policy, now = memory.settings.mark_policy, around.now()
        return memory.store.records.append(session.ref, records, policy, now, around.ids.new)

    outbox = Outbox(append)
    outbox.add(session.ref, [said("a"), said("b")], OutcomeUnknown("?"))
    assert outbox.flush()
    assert [record.content for record in session.all()] == ["a", "b"]
    outbox.close()
