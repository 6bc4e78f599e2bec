"""A memory and its spaces: how sessions are found, what is listed, and what closing means."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.consolidation.generations import Generations
from recollect.descriptors import CronAgent, MemoryAgent, UserAgent
from recollect.documents.tree import Documents
from recollect.errors import AmbiguousKey, InvalidSetting, InvalidValue, StoreClosed
from recollect.session import LIST_MAX, Session, Sessions
from recollect.types.imports import Cursor
from recollect.types.records import MarkCause
from tests.tables import every_row

# finding a session


def test_an_agent_that_is_not_given_is_the_assistant(memory: recollect.Memory) -> None:
    assert memory.space().session("k").agent == UserAgent("assistant")


def test_an_agent_that_is_not_given_is_the_one_that_uses_the_key(
    memory: recollect.Memory,
) -> None:
    space = memory.space()
    space.session("k", agent={"type": "cron", "id": "nightly"}).append("user", "x")
    assert space.session("k").agent == CronAgent("nightly")
    assert space.session("k").count() == 1
    found = space.find_session("k")
    assert found is not None
    assert found.agent == CronAgent("nightly")


def test_a_key_of_two_agents_needs_the_agent(memory: recollect.Memory) -> None:
    space = memory.space()
    for agent in ("a", MemoryAgent("a")):
        space.session("k", agent=agent)
    with pytest.raises(AmbiguousKey, match="/memory-agent/a, /user/a"):
        space.session("k")
    with pytest.raises(AmbiguousKey):
        space.find_session("k")
    assert space.session("k", agent="a").agent == UserAgent("a")


def test_the_same_key_of_another_space_is_nobodys_business(memory: recollect.Memory) -> None:
    memory.space("one").session("k", agent="a").append("user", "x")
    assert memory.space("two").find_session("k", agent="a") is None
    assert memory.space("two").session("k").agent == UserAgent("assistant")


def test_a_session_is_the_same_for_a_text_and_a_tuple(memory: recollect.Memory) -> None:
    space = memory.space()
    space.session(("telegram", 42, "main")).append("user", "x")
    assert space.session("telegram:42:main").count() == 1


def test_finding_a_session_creates_nothing(memory: recollect.Memory) -> None:
    space = memory.space()
    assert space.find_session("k") is None
    assert space.find_session("k", agent="a") is None
    assert space.sessions.list() == []
    assert memory.spaces() == []


def test_a_session_starts_with_what_it_is_given(memory: recollect.Memory) -> None:
    session = memory.space("acme").session(
        "k", agent="a", source="web", project="p", ephemeral=True, parent="parent"
    )
    state = session.state
    assert (state.space, state.key, state.agent_id) == ("acme", "k", "/user/a")
    assert (state.source, state.project, state.parent) == ("web", "p", "parent")
    assert state.ephemeral
    assert not state.remembered


@pytest.mark.parametrize(
    "arguments",
    [
        {"key": ""},
        {"key": None},
        {"key": ("a", None)},
        {"key": "k", "agent": ""},
        {"key": "k", "agent": {"type": "wizard", "id": "x"}},
        {"key": "k", "source": ""},
        {"key": "k", "source": 5},
        {"key": "k", "project": "a\nb"},
        {"key": "k", "parent": "x" * 2000},
    ],
)
def test_a_session_that_cannot_be_stored_is_refused(
    memory: recollect.Memory, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValue):
        memory.space().session(**arguments)
    assert memory.spaces() == []


@pytest.mark.parametrize("name", ["", None, 5, "a\nb"])
def test_a_space_that_cannot_be_named_is_refused(memory: recollect.Memory, name: Any) -> None:
    with pytest.raises(InvalidValue):
        memory.space(name)


def test_spaces_and_sessions_show_what_they_are(memory: recollect.Memory) -> None:
    space = memory.space("acme")
    assert repr(space) == "Space('acme')"
    assert repr(space.session("k")) == "Session('k', agent='/user/assistant', space='acme')"


# listing


def test_spaces_are_listed_in_order_a_page_at_a_time(memory: recollect.Memory) -> None:
    for name in ("c", "a", "b"):
        memory.space(name).session("k")
    memory.space("empty")
    assert memory.spaces() == ["a", "b", "c"]
    assert memory.spaces(limit=2) == ["a", "b"]
    assert memory.spaces(limit=2, after="b") == ["c"]
    assert memory.spaces(limit=0) == []


def test_the_status_lists_and_counts_what_is_due_and_what_waits(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    for number in range(3):
        session = memory.space("a").session(f"due {number}")
        session.append("user", "x")
        session.sleep()
        memory.space("a").session(f"waits {number}").append("user", "x")
        clock.advance(1)
    memory.space("b").session("waits").append("user", "x")
    memory.space("b").session("clean")
    status = memory.status()
    assert [state.key for state in status.marked] == ["due 0", "due 1", "due 2"]
    assert [state.key for state in status.waiting] == ["waits 0", "waits 1", "waits 2", "waits"]
    assert (status.marked_count, status.waiting_count) == (3, 4)
    assert status.at == clock.now()
    assert status.store.kind == "sqlite"
    assert status.idle_sweep_seconds == memory.settings.idle_sweep_seconds


def test_the_lists_of_a_status_are_bounded_and_its_counts_are_not(
    memory: recollect.Memory,
) -> None:
    for number in range(3):
        memory.space("a").session(f"k{number}").append("user", "x")
        memory.space("a").session(f"m{number}").append("user", "x")
        memory.space("a").session(f"m{number}").sleep()
    status = memory.status(limit=2)
    assert (len(status.marked), status.marked_count) == (2, 3)
    assert (len(status.waiting), status.waiting_count) == (2, 3)
    assert memory.status(limit=0).marked == ()


def test_the_status_of_one_space_is_about_that_space(memory: recollect.Memory) -> None:
    for name in ("a", "b"):
        memory.space(name).session("k").append("user", "x")
    status = memory.status(space="b")
    assert [state.space for state in status.waiting] == ["b"]
    assert status.waiting_count == 1
    assert memory.status(space="nobody").waiting_count == 0


@pytest.mark.parametrize("space", ["", "a\nb", "\ud800", 5, []])
def test_what_no_space_can_be_called_is_refused(memory: recollect.Memory, space: Any) -> None:
    with pytest.raises(InvalidValue):
        memory.status(space=space)
    with pytest.raises(InvalidValue):
        memory.sweep_idle(space=space)


@pytest.mark.parametrize("after", ["\ud800", "a\0b", None, 5])
def test_what_no_space_can_come_after_is_refused(memory: recollect.Memory, after: Any) -> None:
    with pytest.raises(InvalidValue):
        memory.spaces(after=after)


LIMITED: dict[str, Callable[[recollect.Memory, Any], object]] = {
    "spaces": lambda memory, limit: memory.spaces(limit=limit),
    "status": lambda memory, limit: memory.status(limit=limit),
    "list": lambda memory, limit: memory.space().sessions.list(limit=limit),
    "find_invalidated": lambda memory, limit: memory.space().sessions.find_invalidated(limit),
    "records": lambda memory, limit: memory.space().sessions.records("x", limit=limit),
}


@pytest.mark.parametrize("call", LIMITED.values(), ids=LIMITED)
@pytest.mark.parametrize("limit", [-1, LIST_MAX + 1, 1.5, "10", None, True])
def test_a_limit_out_of_bounds_is_refused(
    memory: recollect.Memory, call: Callable[[recollect.Memory, Any], object], limit: Any
) -> None:
    with pytest.raises(InvalidValue, match=r"between 0 and 1,000"):
        call(memory, limit)


@pytest.mark.parametrize("call", LIMITED.values(), ids=LIMITED)
def test_the_largest_page_is_granted(
    memory: recollect.Memory, call: Callable[[recollect.Memory, Any], object]
) -> None:
    call(memory, LIST_MAX)


# the idle sweep


def test_the_sweep_marks_what_was_left_without_a_word(clock: ManualClock) -> None:
    settings = {"idle_sweep_seconds": 60}
    with recollect.open(":memory:", settings=settings, clock=clock) as memory:
        session = memory.space().session("k")
        session.append("user", "x")
        clock.advance(59)
        assert memory.sweep_idle() == 0
        clock.advance(1)
        assert memory.sweep_idle(space="another") == 0
        assert memory.sweep_idle() == 1
        assert (session.state.invalidated_at, session.state.marked_by) == (1, MarkCause.IDLE)
        assert memory.sweep_idle() == 0


def test_the_sweep_goes_on_until_nothing_is_left(
    memory: recollect.Memory, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.sweeps.BATCH", 2)
    for number in range(5):
        memory.space().session(f"k{number}").append("user", "x")
    clock.advance(10_000)
    assert memory.sweep_idle() == 5
    assert memory.status().waiting_count == 0


# opening


def test_without_an_address_the_settings_say_which_store(tmp_path: Path) -> None:
    file = tmp_path / "own.db"
    for settings in ({"store": str(file)}, {"sqlite_path": str(file)}):
        with recollect.open(settings=settings) as memory:
            assert memory.status().store.location == str(file)
    with recollect.open(settings={"data_dir": str(tmp_path)}) as memory:
        assert memory.status().store.location == str(tmp_path / "memory.db")


def test_an_address_wins_over_the_settings(tmp_path: Path) -> None:
    with recollect.open(":memory:", settings={"store": str(tmp_path / "x.db")}) as memory:
        assert memory.status().store.location == ":memory:"
    assert list(tmp_path.iterdir()) == []


def test_one_memory_for_all_cannot_be_opened_when_each_has_its_own(tmp_path: Path) -> None:
    settings = {"data_dir": str(tmp_path), "database": "per-agent"}
    with pytest.raises(InvalidSetting, match="open_agents"):
        recollect.open(settings=settings)
    recollect.open(tmp_path / "memory.db", settings=settings).close()


@pytest.mark.parametrize("empty", [{}, {"store": ""}, {"sqlite_path": ""}])
def test_without_a_data_directory_memory_is_off_and_works(
    empty: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "recollect.config.Settings.path", lambda *_: pytest.fail("a path was asked for")
    )
    with recollect.open(settings={"data_dir": "", **empty}) as memory:
        session = memory.space().session("k")
        session.append("user", "x")
        assert session.count() == 1
        assert memory.spaces() == ["default"]
        assert memory.status().store.location == ":memory:"


def test_the_settings_can_be_seen(memory: recollect.Memory) -> None:
    assert memory.settings.mark_threshold == 5


def test_the_clock_that_is_given_tells_the_time(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    record = memory.space().session("k").append("user", "x")
    assert record.at == record.created_at == clock.now()


# closing


def test_leaving_the_block_closes_and_closing_twice_is_fine() -> None:
    with recollect.open(":memory:") as memory:
        session = memory.space().session("k")
    memory.close()
    with pytest.raises(StoreClosed):
        session.append("user", "x")


def test_an_error_inside_the_block_comes_out_of_it() -> None:
    with pytest.raises(ZeroDivisionError), recollect.open(":memory:"):
        _ = 1 / 0


def a_directory() -> Path:
    """With a page in it, in the working directory of the test."""
    directory = Path("pages")
    directory.mkdir(exist_ok=True)
    (directory / "a.md").write_text("text", encoding="utf-8")
    return directory


HIT = recollect.Hit(
    id="x",
    kind=recollect.EntryKind.FACT,
    text="x",
    score=1.0,
    why={},
    sources=(),
    at=datetime(2026, 1, 1, tzinfo=UTC),
    trust=recollect.Trust.USER,
)
BLOCK = recollect.Context(text="x", citations=(recollect.Citation(mark="m1", hit=HIT),), id="b")


AFTER_CLOSE: dict[str, Callable[[recollect.Memory, recollect.Space, Session], object]] = {
    "Memory.spaces": lambda memory, space, session: memory.spaces(),
    "Memory.sweep_idle": lambda memory, space, session: memory.sweep_idle(),
    "Memory.audit": lambda memory, space, session: memory.audit(),
    "Memory.export": lambda memory, space, session: memory.export("x.zip"),
    "Memory.load": lambda memory, space, session: memory.load("x.zip"),
    "Memory.migrate": lambda memory, space, session: memory.migrate("x.db"),
    "Memory.status": lambda memory, space, session: memory.status(),
    "Space.session": lambda memory, space, session: space.session("k", agent="a"),
    "Space.find_session": lambda memory, space, session: space.find_session("k", agent="a"),
    "Session.adopt": lambda memory, space, session: session.adopt(
        [], Cursor(source="logs", place="/logs/a")
    ),
    "Sessions.get": lambda memory, space, session: space.sessions.get("x"),
    "Sessions.list": lambda memory, space, session: space.sessions.list(),
    "Sessions.invalidate": lambda memory, space, session: space.sessions.invalidate("x", 1),
    "Sessions.find_invalidated": lambda memory, space, session: space.sessions.find_invalidated(),
    "Sessions.mark_processed": lambda memory, space, session: space.sessions.mark_processed(
        "x", 1, 1
    ),
    "Sessions.max_seq": lambda memory, space, session: space.sessions.max_seq("x"),
    "Sessions.count_since": lambda memory, space, session: space.sessions.count_since("x", 0),
    "Sessions.records": lambda memory, space, session: space.sessions.records("x"),
    "Sessions.ranges": lambda memory, space, session: space.sessions.ranges("x"),
    "Sessions.extraction": lambda memory, space, session: space.sessions.extraction("x"),
    "Sessions.extractions": lambda memory, space, session: space.sessions.extractions(),
    "Sessions.calls": lambda memory, space, session: space.sessions.calls(),
    "Space.forget": lambda memory, space, session: space.forget(session="x"),
    "Space.recall": lambda memory, space, session: space.recall("x"),
    "Space.context": lambda memory, space, session: space.context("x"),
    "Space.why": lambda memory, space, session: space.why("x"),
    "Space.replay": lambda memory, space, session: space.replay("x"),
    "Space.check": lambda memory, space, session: space.check([{"ask": "x", "expect": "y"}]),
    "Facts.told": lambda memory, space, session: space.facts.told("x"),
    "Space.cite": lambda memory, space, session: space.cite(BLOCK),
    "Space.opened": lambda memory, space, session: space.opened(HIT),
    "Facts.add": lambda memory, space, session: space.facts.add("x"),
    "Facts.get": lambda memory, space, session: space.facts.get("x"),
    "Facts.update": lambda memory, space, session: space.facts.update("x", "y"),
    "Facts.delete": lambda memory, space, session: space.facts.delete("x"),
    "Facts.list": lambda memory, space, session: space.facts.list(),
    "Facts.search": lambda memory, space, session: space.facts.search("x"),
    "Facts.search_metadata": lambda memory, space, session: space.facts.search_metadata("x", 1),
    "Space.about": lambda memory, space, session: space.about("x"),
    "Space.remember": lambda memory, space, session: space.remember("x"),
    "Facts.waiting": lambda memory, space, session: space.facts.waiting(),
    "Facts.accept": lambda memory, space, session: space.facts.accept("x"),
    "Facts.reject": lambda memory, space, session: space.facts.reject("x"),
    "Facts.count": lambda memory, space, session: space.facts.count(),
    "Facts.history": lambda memory, space, session: space.facts.history("x"),
    "Documents.read": lambda memory, space, session: space.documents.read("a"),
    "Documents.find": lambda memory, space, session: space.documents.find("a"),
    "Documents.tree": lambda memory, space, session: space.documents.tree(),
    "Documents.deleted": lambda memory, space, session: space.documents.deleted(),
    "Documents.rewrite": lambda memory, space, session: space.documents.rewrite("a", str.upper),
    "Documents.search": lambda memory, space, session: space.documents.search("a"),
    "Documents.links": lambda memory, space, session: space.documents.links("a"),
    "Documents.broken_links": lambda memory, space, session: space.documents.broken_links(),
    "Documents.orphans": lambda memory, space, session: space.documents.orphans(),
    "Documents.history": lambda memory, space, session: space.documents.history("a"),
    "Documents.version": lambda memory, space, session: space.documents.version("a", 1),
    "Documents.diff": lambda memory, space, session: space.documents.diff("a", 1),
    "Documents.write": lambda memory, space, session: space.documents.write("a", "x"),
    "Documents.append": lambda memory, space, session: space.documents.append("a", "x"),
    "Documents.patch": lambda memory, space, session: space.documents.patch("a", "x", "y"),
    "Documents.move": lambda memory, space, session: space.documents.move("a", "b"),
    "Documents.delete": lambda memory, space, session: space.documents.delete("a"),
    "Documents.restore": lambda memory, space, session: space.documents.restore("a"),
    "Documents.purge": lambda memory, space, session: space.documents.purge("a"),
    "Documents.erase_deleted": lambda memory, space, session: space.documents.erase_deleted("a"),
    "Documents.erase_versions": lambda memory, space, session: space.documents.erase_versions(
        "a", [1]
    ),
    "Documents.changeset": lambda memory, space, session: space.documents.changeset().read("a"),
    "Documents.publish": lambda memory, space, session: space.documents.publish("published"),
    "Documents.load": lambda memory, space, session: space.documents.load(a_directory()),
    "Memory.worker": lambda memory, space, session: memory.worker(),
    "Memory.plan": lambda memory, space, session: memory.plan(),
    "Memory.request_again": lambda memory, space, session: memory.request_again(),
    "Memory.work": lambda memory, space, session: memory.work(),
    "Memory.retry": lambda memory, space, session: memory.retry(),
    "Session.state": lambda memory, space, session: session.state,
    "Session.id": lambda memory, space, session: session.id,
    "Session.append": lambda memory, space, session: session.append("user", "x"),
    "Session.append_many": lambda memory, space, session: session.append_many([{"role": "user"}]),
    "Generations.list": lambda memory, space, session: space.generations.list(),
    "Generations.get": lambda memory, space, session: space.generations.get(),
    "Generations.state": lambda memory, space, session: space.generations.state(),
    "Generations.preview": lambda memory, space, session: space.generations.preview(),
    "Generations.run": lambda memory, space, session: space.generations.run(),
    "Generations.pause": lambda memory, space, session: space.generations.pause(),
    "Generations.resume": lambda memory, space, session: space.generations.resume(),
    "Generations.diff": lambda memory, space, session: space.generations.diff(1),
    "Generations.rollback": lambda memory, space, session: space.generations.rollback(1),
    "Session.recent": lambda memory, space, session: session.recent(),
    "Session.all": lambda memory, space, session: session.all(),
    "Session.count": lambda memory, space, session: session.count(),
    "Session.max_seq": lambda memory, space, session: session.max_seq,
    "Session.count_since": lambda memory, space, session: session.count_since(0),
    "Session.get_summary": lambda memory, space, session: session.get_summary(),
    "Session.summary": lambda memory, space, session: session.summary,
    "Session.set_summary": lambda memory, space, session: session.set_summary("x"),
    "Session.purge": lambda memory, space, session: session.purge(),
    "Session.reset": lambda memory, space, session: session.reset(),
    "Session.compact": lambda memory, space, session: session.compact(),
    "Session.sleep": lambda memory, space, session: session.sleep(),
    "Session.end": lambda memory, space, session: session.end(),
    "Session.mode": lambda memory, space, session: session.mode,
    "Session.set_mode": lambda memory, space, session: session.set_mode("disabled"),
}
# What touches no store: closing itself, values, and the seams the resolver and the tools use.
WITHOUT_STORE = {"Memory.close", "Memory.space", "Memory.settings", "Memory.agents"}
WITHOUT_STORE |= {"Session.key", "Session.agent", "Documents.held_by", "Space.memory_tool"}
CLASSES: tuple[type, ...] = (recollect.Memory, recollect.Space, recollect.Facts, Generations)
CLASSES += (Sessions, Session, Documents)
SEAMS = {"Memory.clock", "Memory.store", "Session.store", "Session.ref"}
SEAMS |= {"Session.admitted", "Session.admitted_text"}


def test_the_calls_after_closing_are_all_there_are() -> None:
    public = {
        f"{cls.__name__}.{name}"
        for cls in CLASSES
        for name, member in inspect.getmembers_static(cls)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }
    assert public == set(AFTER_CLOSE) | WITHOUT_STORE | SEAMS


@every_row("name", AFTER_CLOSE)
def test_every_call_after_closing_is_refused(name: str) -> None:
    memory = recollect.open(":memory:")
    space = memory.space()
    session = space.session("k", agent="a")
    memory.close()
    with pytest.raises(StoreClosed):
        AFTER_CLOSE[name](memory, space, session)


@pytest.mark.parametrize("name", ["Memory.status", "Space.session", "Session.append"])
def test_memory_that_is_off_is_closed_like_any_other(name: str) -> None:
    memory = recollect.open(settings={"data_dir": ""})
    space = memory.space()
    session = space.session("k", agent="a")
    memory.close()
    with pytest.raises(StoreClosed):
        AFTER_CLOSE[name](memory, space, session)


def test_closed_memory_does_not_come_back_for_an_agent_that_is_off() -> None:
    memory = recollect.open(":memory:", settings={"agents": {"off": False}})
    space = memory.space()
    memory.close()
    with pytest.raises(StoreClosed):
        space.session("k", agent="off")


def test_memory_that_is_off_and_was_never_used_is_closed_too() -> None:
    memory = recollect.open(settings={"data_dir": ""})
    memory.close()
    with pytest.raises(StoreClosed):
        memory.spaces()
