"""When an agent's conversation is compacted between two turns, what is summarised, what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import recollect
from recollect.agents.compacting import Compactor
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import CallCancelled, ModelUnavailable, SpendCapReached
from recollect.extraction.spend import Till
from recollect.ids import Ids
from recollect.models.protocol import Completion, Request, Usage
from recollect.types.agents import ItemKind, NewItem
from recollect.types.records import (
    Claim,
    JobKind,
    LeasePolicy,
    MarkCause,
    Record,
    SessionState,
    StaleClaim,
)

SETTINGS = Settings(data_dir="", compaction_threshold=10, retain_recent=4)
SUMMARY = "They counted to twelve."


class Paying:
    """Stands for the till that pays: answers with a summary, or raises."""

    def __init__(self, answer: str | Exception = SUMMARY) -> None:
        self.answer = answer
        self.sessions: list[str] = []
        self.requests: list[Request] = []

    def __call__(self, session_id: str) -> Till:
        self.sessions.append(session_id)
        return self  # type: ignore[return-value]

    def ask(self, request: Request, what: str) -> Completion:
        assert what == "summarize"
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        usage = Usage(input_tokens=1, output_tokens=1)
        return Completion(text=self.answer, usage=usage, model="m")


class Table:
    """A conversation whose agent is claimed."""

    def __init__(self, memory: recollect.Memory, clock: ManualClock) -> None:
        self.memory, self.clock = memory, clock
        self.session = memory.space("alice").session("k", source="agent")
        item = NewItem(id="i", kind=ItemKind.SYSTEM_MESSAGE, text="x")
        memory.store.agents.post(self.session.ref, item, JobKind.AGENT, clock.now())
        claim = memory.store.leases.claim("test", LeasePolicy(), clock.now(), None)
        assert isinstance(claim, Claim)
        self.claim = claim

    def say(self, turns: int, text: str = "message") -> None:
        for number in range(turns):
            self.session.append("user", f"{text} {number}")
            self.session.append("assistant", f"answer {number}")

    def compact(self, paying: Any = None, **changes: Any) -> SessionState | StaleClaim | None:
        seen: Sequence[Record] | None = changes.pop("seen", None)
        compactor = Compactor(
            store=self.memory.store,
            settings=SETTINGS if not changes else Settings(**{"data_dir": "", **changes}),
            clock=self.clock,
            ids=Ids(self.clock),
            redact=lambda _space: lambda text: text.replace("hunter2", "[secret]"),
        )
        return compactor.compact_if_due(
            self.session.ref, self.claim, paying, lambda: False, seen=seen
        )


@pytest.fixture
def table(memory: recollect.Memory, clock: ManualClock) -> Table:
    return Table(memory, clock)


def test_at_the_threshold_nothing_is_done_and_nobody_is_asked(table: Table) -> None:
    table.say(5)
    paying = Paying()
    assert table.compact(paying) is None
    assert (paying.requests, table.session.state.rotation) == ([], 1)


def test_above_it_the_session_rotates_with_a_summary_and_the_newest_turns(table: Table) -> None:
    table.say(6)
    paying = Paying()
    old = table.session.id
    new = table.compact(paying)
    assert isinstance(new, SessionState)
    assert (new.id, new.rotation) == (table.session.id, 2)
    assert table.session.summary == SUMMARY
    shown = [record.content for record in table.session.all()]
    assert shown == ["message 4", "answer 4", "message 5", "answer 5"]
    before = table.memory.space("alice").sessions.get(old)
    assert before is not None
    assert (before.ended_by, before.invalidated_at) == (MarkCause.COMPACTION, before.last_seq)
    assert paying.sessions == [old], "it is paid for on the account of what it sums up"


def test_what_was_seen_decides_whether_the_store_is_asked_and_the_store_what_is_done(
    table: Table,
) -> None:
    table.say(6)
    long = table.session.all()
    assert table.compact(Paying(), seen=long[-4:]) is None
    assert isinstance(table.compact(Paying(), seen=long), SessionState)
    assert table.compact(Paying(), seen=long) is None, "it was compacted meanwhile"


def test_what_leaves_is_what_is_summarised(table: Table) -> None:
    table.say(6)
    paying = Paying()
    table.compact(paying)
    (request,) = paying.requests
    assert "message 3" in request.prompt
    assert "message 4" not in request.prompt


def test_the_next_one_goes_on_from_the_summary_there_is(table: Table) -> None:
    table.say(6)
    table.compact(Paying())
    table.say(5, "later")
    paying = Paying("They went on.")
    assert isinstance(table.compact(paying), SessionState)
    assert SUMMARY in paying.requests[0].prompt
    assert "message 1" not in paying.requests[0].prompt
    assert table.session.summary == "They went on."


def test_just_after_one_nothing_is_due(table: Table) -> None:
    table.say(6)
    table.compact(Paying())
    paying = Paying()
    table.say(1)
    assert table.compact(paying) is None


def test_without_anybody_to_summarise_the_older_ones_are_dropped(table: Table) -> None:
    table.say(6)
    assert isinstance(table.compact(), SessionState)
    assert table.session.summary == ""
    assert len(table.session.all()) == 4
    assert len(table.session.all(rotations=True)) == 12


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("away"),
        CallCancelled("nobody waits"),
        SpendCapReached("spent", delay_seconds=1),
    ],
)
def test_a_summary_that_fails_drops_them_and_keeps_the_one_there_is(
    table: Table, error: Exception
) -> None:
    table.say(6)
    table.compact(Paying())
    table.say(6)
    assert isinstance(table.compact(Paying(error)), SessionState)
    assert table.session.summary == SUMMARY
    assert len(table.session.all()) == 4


def test_long_messages_are_compacted_by_their_tokens(table: Table) -> None:
    table.say(3, "word " * 3000)
    assert table.compact(Paying(), compaction_threshold=1000) is None
    small = {"compaction_threshold": 1000, "model_window_tokens": 8000}
    assert isinstance(table.compact(Paying(), **small), SessionState)
    assert len(table.session.all()) == 2


def test_a_claim_that_is_lost_rotates_nothing(table: Table) -> None:
    table.say(6)
    table.clock.advance(10_000)
    assert isinstance(
        table.memory.store.leases.claim("other", LeasePolicy(), table.clock.now(), None), Claim
    )
    assert table.compact(Paying()) == StaleClaim()
    assert table.session.state.rotation == 1


def test_secrets_do_not_go_into_a_summary(table: Table) -> None:
    table.say(6, "the key is hunter2")
    paying = Paying("They said the key is hunter2.")
    table.compact(paying)
    assert "hunter2" not in paying.requests[0].prompt
    assert table.session.summary == "They said the key is [secret]."
