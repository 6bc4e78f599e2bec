"""The audit: nothing happens that is not written down, and nothing that was said is (N9, P11)."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import NotFound, StoreError
from recollect.observing.actors import acting
from recollect.store.observed import WRITE_WHOLE, Auditor
from recollect.store.whole import Access
from recollect.sweeps import drop_old_audit
from recollect.types.access import AuditEntry

CANARY = "zanzibar"
Open = Callable[[str], recollect.Memory]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def opened(path: Path) -> Iterator[Open]:
    """Opens the same store as often as it is asked to, each time with another setting."""
    memories: list[recollect.Memory] = []

    def open_(audit: str) -> recollect.Memory:
        memories.append(recollect.open(path, settings={"audit": audit}))
        return memories[-1]

    yield open_
    for memory in memories:
        memory.close()


def verbs(entries: list[AuditEntry]) -> list[str]:
    return [entry.verb for entry in reversed(entries)]


def test_nothing_is_written_down_by_default(opened: Open) -> None:
    memory = opened("off")
    memory.space().session("k").append("user", "hello")
    assert memory.audit() == []


def test_a_write_is_told_with_who_what_where_and_how_it_ended(opened: Open) -> None:
    memory = opened("writes")
    began = memory.clock.now()
    with acting("key:7"):
        session = memory.space("alice").session("k")
        session.append("user", "hello")
        session.recent()
        memory.space("bob").facts.add("Bob likes tea.")
    assert verbs(memory.audit()) == ["sessions.open_key", "records.append", "facts.add"]
    [added, *_] = memory.audit(limit=1)
    [fact] = memory.space("bob").facts.list()
    assert (added.space, added.actor) == ("bob", "key:7")
    assert began <= added.at <= memory.clock.now()
    assert (added.outcome, added.targets) == ("done", (fact.id,))
    [appended] = memory.audit("alice", verb="records.append")
    assert session.id in appended.targets
    assert memory.audit("alice", actor="library") == []


def test_reads_are_told_as_well_where_they_are_to_be(opened: Open) -> None:
    memory = opened("all")
    space = memory.space("alice")
    fact = space.facts.add("Alice likes tea.")
    space.facts.get(fact.id)
    space.recall("tea")
    memory.status(limit=0)  # as a page that is left open asks every second
    told = verbs(memory.audit())
    assert "facts.get" in told
    assert "search.load" in told
    assert not [verb for verb in told if verb.startswith(("marks.", "leases.", "agents."))]
    [read] = memory.audit(verb="facts.get")
    assert read.targets == (fact.id,)
    memory.audit()
    assert verbs(memory.audit(verb="audit.list"))


def test_what_fails_is_told_by_the_class_of_its_error(opened: Open) -> None:
    memory = opened("writes")
    memory.space().documents.write("a", "# a")
    with pytest.raises(StoreError), memory.store.whole(Access.WRITE):
        raise StoreError("half-way")
    [last] = memory.audit(limit=1)
    assert (last.verb, last.space, last.outcome) == ("store.write_whole", None, "StoreError")


def test_what_cannot_be_written_down_is_not_done(opened: Open, path: Path) -> None:
    memory = opened("writes")
    session = memory.space().session("k")
    session.append("user", "before")
    with closing(apsw.Connection(str(path))) as other:
        other.execute(
            "CREATE TRIGGER no BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    with pytest.raises(StoreError):
        session.append("user", "after")
    assert [record.content for record in session.recent()] == ["before"]


def test_an_outcome_that_cannot_be_noted_takes_nothing_back(
    opened: Open, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = opened("writes")
    session = memory.space().session("k")
    with closing(apsw.Connection(str(path))) as other:
        other.execute(
            "CREATE TRIGGER no BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    with caplog.at_level(logging.WARNING, "recollect"):
        session.append("user", CANARY)
    assert [record.content for record in session.recent()] == [CANARY]
    assert memory.audit(limit=1)[0].outcome is None
    assert "the outcome of records.append is not in the audit" in caplog.text
    assert CANARY not in caplog.text


def test_a_store_that_is_closed_before_the_outcome_is_noted_takes_nothing_back(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    memory = opened("off")
    end = Auditor(memory.store.audit, memory.clock, reads=False).begin(WRITE_WHOLE, (), {})
    memory.close()
    with caplog.at_level(logging.WARNING, "recollect"):
        end(None, None)
    assert "the outcome of store.write_whole is not in the audit: StoreClosed" in caplog.text


def test_whoever_is_killed_in_between_leaves_an_entry_without_an_outcome(
    opened: Open, path: Path
) -> None:
    killed = (
        "import os, signal, sys, recollect\n"
        "from recollect import crashpoints\n"
        "memory = recollect.open(sys.argv[1], settings={'audit': 'writes'})\n"
        "session = memory.space().session('k')\n"
        "session.append('user', 'before')\n"
        "die = lambda name: name == 'append.inserted' and os.kill(os.getpid(), signal.SIGKILL)\n"
        "crashpoints.arm(die)\n"
        "session.append('user', 'after')\n"
    )
    child = subprocess.run([sys.executable, "-c", killed, str(path)], check=False, timeout=60)
    assert child.returncode == -signal.SIGKILL
    memory = opened("off")
    told = [(entry.verb, entry.outcome) for entry in memory.audit()]
    assert told[:2] == [("records.append", None), ("records.append", "done")]
    [session] = memory.space().sessions.list()
    assert session.last_seq == 1


def test_no_entry_has_a_word_that_anybody_chose(opened: Open, path: Path) -> None:
    memory = opened("all")
    space = memory.space("alice")
    session = space.session(f"telegram:{CANARY}", agent=CANARY, source=CANARY, project=CANARY)
    session.append("user", f"I moved to {CANARY}.", name=CANARY, key=CANARY, metadata={CANARY: 1})
    session.compact(summary=f"{CANARY} it is")
    fact = space.facts.add(f"{CANARY} is warm", metadata={CANARY: CANARY})
    space.facts.search_metadata(CANARY, CANARY)
    space.documents.write(CANARY, f"# {CANARY}", title=CANARY)
    space.documents.read(CANARY)
    space.documents.search(CANARY)
    space.recall(CANARY)
    assert space.sessions.get(f"key:{CANARY}") is None
    memory.work(all=True)
    for session_id, fact_id in ((CANARY, None), (None, f"job:{CANARY}")):
        with pytest.raises(NotFound):
            space.forget(session=session_id, fact=fact_id)
    space.forget(fact=fact.id)
    space.forget(agent=CANARY)
    memory.close()
    with closing(apsw.Connection(str(path))) as other:
        rows = other.execute("SELECT * FROM audit").fetchall()
    assert len(rows) > 50
    assert CANARY not in repr(rows)


def test_a_forgotten_space_leaves_only_that_it_was(opened: Open) -> None:
    memory = opened("all")
    for name in ("alice", "bob"):
        memory.space(name).session("k").append("user", "hello")
        memory.space(name).facts.add("A fact.")
        memory.work(all=True)
    with acting("key:7"):
        memory.space("alice").forget(everything=True)
    entries = memory.audit("alice")
    [forgotten] = [entry for entry in entries if entry.verb == "erasure.forget_space"]
    assert (forgotten.actor, forgotten.outcome, forgotten.targets) == ("key:7", "done", ())
    assert [entry for entry in entries if entry.targets] == []
    assert "records.append" in verbs(memory.audit("bob"))


def test_a_worker_acts_in_its_own_name_and_drops_what_is_old(clock: ManualClock) -> None:
    memory = recollect.open(":memory:", settings={"audit": "writes"}, clock=clock)
    session = memory.space().session("k")
    session.append("user", "I live in Lisbon.")
    session.sleep()
    worker = memory.worker(owner="first")
    worker.drain()
    assert "leases.record" in verbs(memory.audit(actor="worker:first"))
    before = len(memory.audit())
    clock.advance(timedelta(days=memory.settings.audit_days).total_seconds() + 1)
    session.append("user", "And you?")
    assert drop_old_audit(memory.store, clock.now(), memory.settings) == before
    assert verbs(memory.audit()) == ["records.append"]
    memory.close()
