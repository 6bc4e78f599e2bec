"""Which memory an agent has: one for all, one each, or none; opened once, when first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import memory as memory_module
from recollect.errors import InvalidValue, StoreClosed, StoreDenied
from recollect.memory import AgentMemories, open_agents
from recollect.store.opening import open_store

Opener = Callable[..., AgentMemories]


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Opener]:
    """Opens the memories of agents in a data directory of the test's own, and closes them."""
    opened: list[AgentMemories] = []

    def open_them(**settings: Any) -> AgentMemories:
        opened.append(open_agents({"data_dir": str(tmp_path / "data"), **settings}))
        return opened[-1]

    yield open_them
    for memories in opened:
        memories.close()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every address that the resolver opens, in order."""
    addresses: list[Any] = []

    def counting(address: Any, *rest: Any) -> Any:
        addresses.append(address)
        return open_store(address, *rest)

    monkeypatch.setattr(memory_module, "open_store", counting)
    return addresses


def say(memory: recollect.Memory, agent: str, text: str) -> recollect.Session:
    session = memory.space().session("k", agent=agent)
    session.append("user", text)
    return session


def said(memory: recollect.Memory, agent: str) -> list[str]:
    return [record.content for record in memory.space().session("k", agent=agent).all()]


LAYOUT = """
data_dir: {here}/data
database: per-agent
agents:
  assistant:
    data_dir: {here}/elsewhere
  support: {{}}
  scratch:
    data_dir: ""
  on: {{memory: {{enabled: false}}}}
  No: {{memory: {{enabled: false}}}}
  null: {{memory: {{enabled: false}}}}
  yes:
    data_dir: "{{data_dir}}/said yes"
"""


def test_a_yaml_file_says_where_each_agents_memory_is_whatever_the_agent_is_called(
    tmp_path: Path,
) -> None:
    file = tmp_path / "recollect.yaml"
    file.write_text(LAYOUT.format(here=tmp_path))
    names = ("assistant", "support", "scratch", "on", "No", "null", "yes", "off")
    with open_agents(file) as memories:
        for name in names:
            say(memories.memory(name), name, f"said to {name}")
            assert said(memories.memory(name), name) == [f"said to {name}"]
    kept = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("memory.db")}
    assert kept == {
        "elsewhere/memory.db",
        "data/agents/support/memory.db",
        "data/said yes/memory.db",
        "data/agents/off/memory.db",
    }
    with open_agents(file) as memories:
        assert said(memories.memory("assistant"), "assistant") == ["said to assistant"]


def files(folder: Path) -> list[Path]:
    """What was made there; the room that is kept beside a database is nobody's memory."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if not path.name.endswith("-reserve"))


# where


def test_one_global_database_serves_every_agent(agents: Opener, tmp_path: Path) -> None:
    memories = agents()
    assert memories.memory("a") is memories.memory("b")
    say(memories.memory("a"), "a", "x")
    assert memories.memory("b").space().sessions.list()[0].agent_id == "/user/a"
    memories.close()
    assert files(tmp_path) == [tmp_path / "data" / "memory.db"]


def test_each_agent_may_have_a_database_of_its_own(agents: Opener, tmp_path: Path) -> None:
    memories = agents(database="per-agent")
    for name in ("a", "b"):
        say(memories.memory(name), name, f"I am {name}")
    assert memories.memory("a") is not memories.memory("b")
    assert said(memories.memory("a"), "a") == ["I am a"]
    assert memories.memory("b").space().find_session("k", agent="a") is None
    memories.close()
    folder = tmp_path / "data" / "agents"
    assert files(tmp_path) == [folder / "a" / "memory.db", folder / "b" / "memory.db"]


@pytest.mark.parametrize("name", ["..", "a/b", ".hidden"])
def test_an_agents_own_database_never_leaves_the_data_directory(
    agents: Opener, tmp_path: Path, name: str
) -> None:
    memories = agents(database="per-agent")
    say(memories.memory(name), name, "x")
    memories.close()
    (file,) = files(tmp_path)
    assert file.parent.parent == tmp_path / "data" / "agents"


def test_a_store_that_is_named_serves_every_agent(agents: Opener, tmp_path: Path) -> None:
    own = tmp_path / "own.db"
    memories = agents(store=f"sqlite:///{own}")
    say(memories.memory("a"), "a", "x")
    memories.close()
    assert files(tmp_path) == [own]


def test_a_path_that_is_named_serves_every_agent_without_a_data_directory(
    agents: Opener, tmp_path: Path
) -> None:
    own = tmp_path / "own.db"
    memories = agents(data_dir="", sqlite_path=str(own))
    say(memories.memory("a"), "a", "x")
    memories.close()
    assert files(tmp_path) == [own]


# once, and together


def test_nothing_is_opened_before_it_is_needed(
    agents: Opener, opened: list[Any], tmp_path: Path
) -> None:
    agents(database="per-agent")
    assert opened == []
    assert not (tmp_path / "data").exists()


def test_a_store_is_opened_once(agents: Opener, opened: list[Any], tmp_path: Path) -> None:
    memories = agents(database="per-agent")
    first = memories.memory("a")
    assert memories.memory("a") is first
    memories.memory("b")
    folder = tmp_path / "data" / "agents"
    assert opened == [folder / "a" / "memory.db", folder / "b" / "memory.db"]


def test_threads_that_resolve_at_once_get_one_store(agents: Opener, opened: list[Any]) -> None:
    memories = agents(database="per-agent")
    together = threading.Barrier(8)

    def resolve(_number: int) -> recollect.Memory:
        together.wait()
        return memories.memory("a")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(resolve, range(8)))
    assert len(opened) == 1
    assert all(memory is found[0] for memory in found)


def test_all_are_closed_together_and_a_second_time_does_nothing(agents: Opener) -> None:
    memories = agents(database="per-agent", agents={"off": False})
    sessions = [say(memories.memory(name), name, "x") for name in ("a", "b", "off")]
    memories.close()
    memories.close()
    for session in sessions:
        with pytest.raises(StoreClosed):
            session.append("user", "y")
    with pytest.raises(StoreClosed):
        memories.memory("a")


def test_leaving_the_block_closes(agents: Opener) -> None:
    with agents() as memories:
        session = say(memories.memory("a"), "a", "x")
    with pytest.raises(StoreClosed):
        session.count()


def test_what_was_said_is_there_when_it_is_opened_again(agents: Opener) -> None:
    with agents(database="per-agent") as memories:
        say(memories.memory("a"), "a", "hello")
    with agents(database="per-agent") as memories:
        assert said(memories.memory("a"), "a") == ["hello"]


# off

OFF: list[dict[str, Any]] = [
    {"agents": {"a": False}},
    {"agents": {"a": False}, "database": "per-agent"},
    {"data_dir": ""},
    {"data_dir": "", "database": "per-agent"},
    {"agents": {"a": False}, "store": ":memory:"},
]


@pytest.mark.parametrize("settings", OFF)
def test_switched_off_nothing_is_opened_and_no_file_is_made(
    agents: Opener,
    opened: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    memories = agents(**settings)
    say(memories.memory("a"), "a", "x")
    assert opened == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("settings", OFF)
def test_switched_off_a_running_conversation_keeps_its_history(
    agents: Opener, settings: dict[str, Any]
) -> None:
    memories = agents(**settings)
    session = say(memories.memory("a"), "a", "one")
    session.append_many([{"role": "assistant", "content": "two"}])
    assert said(memories.memory("a"), "a") == ["one", "two"]
    memories.close()
    assert said(agents(**settings).memory("a"), "a") == []


@pytest.mark.parametrize("settings", OFF)
def test_switched_off_every_call_works(agents: Opener, settings: dict[str, Any]) -> None:
    memory = agents(**settings).memory("a")
    space = memory.space()
    session = space.session("k", agent="a")
    for number in range(10):
        session.append("user", str(number))
    assert session.mode == "disabled"
    session.mode = "enabled"
    assert session.mode == "disabled"
    session.set_summary("so far")
    assert session.summary == "so far"
    assert session.sleep().invalidated_at is None
    assert session.compact("shorter", retain=2).rotation == 2
    assert [record.content for record in session.all()] == ["8", "9"]
    assert session.reset("because").rotation == 3
    session.append("user", "again")
    assert session.end().ended_by == "end"
    session.append("user", "once more")
    session.purge()
    assert (session.count(), len(session.all(rotations=True))) == (0, 11)
    assert space.find_session("k", agent="a") is not None
    assert space.sessions.find_invalidated() == []
    assert memory.sweep_idle() == 0
    assert (memory.status().marked_count, memory.status().waiting_count) == (0, 0)


@pytest.mark.parametrize("settings", OFF)
def test_switched_off_the_history_is_trimmed(agents: Opener, settings: dict[str, Any]) -> None:
    session = agents(**settings, max_history_len=3).memory("a").space().session("k", agent="a")
    for number in range(5):
        session.append("user", str(number))
    assert [record.content for record in session.all()] == ["2", "3", "4"]
    session.append_many([{"role": "user", "content": str(number)} for number in range(5, 10)])
    assert [record.content for record in session.all()] == ["7", "8", "9"]
    assert [record.seq for record in session.all()] == [8, 9, 10]


def test_an_agent_nobody_mentions_has_memory(agents: Opener, tmp_path: Path) -> None:
    memories = agents(database="per-agent", agents={"off": False})
    assert memories.memory("unknown").space().session("k", agent="unknown").mode == "enabled"
    assert (tmp_path / "data" / "agents" / "unknown" / "memory.db").exists()


def test_an_agent_switched_off_leaves_nothing_in_the_database_of_the_others(
    tmp_path: Path,
) -> None:
    file = tmp_path / "memory.db"
    with recollect.open(file, settings={"agents": {"private": False}}) as memory:
        say(memory, "private", "rosebud")
        say(memory, "open", "tulip")
        assert said(memory, "private") == ["rosebud"]
        assert [state.agent_id for state in memory.space().sessions.list()] == ["/user/open"]
    written = b"".join(path.read_bytes() for path in files(tmp_path))
    assert b"tulip" in written
    assert b"rosebud" not in written
    assert b"private" not in written


# what goes wrong


def test_a_store_that_fails_to_open_is_tried_again(agents: Opener, tmp_path: Path) -> None:
    obstacle = tmp_path / "data"
    obstacle.write_text("a file where a directory is needed")
    memories = agents(database="per-agent")
    for _ in range(2):
        with pytest.raises(StoreDenied):
            memories.memory("a")
    obstacle.unlink()
    say(memories.memory("a"), "a", "at last")
    assert said(memories.memory("a"), "a") == ["at last"]


def test_a_failure_of_one_agent_leaves_the_others_alone(agents: Opener, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "agents"
    folder.mkdir(parents=True)
    (folder / "a").write_text("in the way")
    memories = agents(database="per-agent")
    with pytest.raises(StoreDenied):
        memories.memory("a")
    say(memories.memory("b"), "b", "x")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", None, 5])
def test_what_is_no_agent_has_no_memory(agents: Opener, opened: list[Any], name: Any) -> None:
    memories = agents(database="per-agent")
    with pytest.raises(InvalidValue):
        memories.memory(name)
    assert opened == []
