"""Document 004 (memory system): history store, schema and configuration, line by line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import recollect

YAML = """
modules:
  memory.sqlite:
    path: "{path}"
    wal: true
    busy_timeout: 5000
agents:
  assistant:
    memory:
      enabled: true
  support:
    memory:
      enabled: false
"""


@pytest.fixture
def memory(store_url: str) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={}) as memory:
        yield memory


@pytest.fixture
def session(memory: recollect.Memory) -> recollect.Session:
    return memory.space().session(("telegram", "42", "main"), agent="assistant")


def texts(records: list[recollect.Record]) -> list[str]:
    return [record.content for record in records]


# The history store


def test_append_and_get_all_keep_order_and_roles(session: recollect.Session) -> None:
    session.append("user", "hello")
    session.append("assistant", "hi")
    session.append("system", "be kind")
    assert [(r.role, r.content) for r in session.all()] == [
        ("user", "hello"),
        ("assistant", "hi"),
        ("system", "be kind"),
    ]


@pytest.mark.parametrize(
    ("n", "expected"), [(0, []), (2, ["d", "e"]), (5, list("abcde")), (9, list("abcde"))]
)
def test_recent_gives_the_newest_in_order(
    session: recollect.Session, n: int, expected: list[str]
) -> None:
    for text in "abcde":
        session.append("user", text)
    assert texts(session.recent(n)) == expected


def test_an_unknown_key_is_empty_and_not_an_error(memory: recollect.Memory) -> None:
    space = memory.space()
    assert space.find_session("nobody:0:nowhere") is None
    session = space.session("new:0:main")
    assert (session.recent(5), session.all(), len(session), session.summary) == ([], [], 0, "")


def test_a_summary_is_set_and_replaced(session: recollect.Session) -> None:
    session.set_summary("first")
    session.set_summary("second")
    assert session.summary == "second" == session.get_summary()


def test_purge_removes_history_and_summary_and_numbering_goes_on(
    session: recollect.Session,
) -> None:
    session.append("user", "a secret")
    session.set_summary("a secret was told")
    session.purge()
    assert (session.all(), len(session), session.summary) == ([], 0, "")
    assert session.append("user", "next").seq == 2


def test_purge_leaves_other_sessions_alone(memory: recollect.Memory) -> None:
    space = memory.space()
    purged, kept = space.session("a"), space.session("b")
    purged.append("user", "a")
    kept.append("user", "b")
    purged.purge()
    assert texts(kept.all()) == ["b"]


def test_len_counts_the_messages(session: recollect.Session) -> None:
    assert len(session) == 0
    for count in (1, 2, 3):
        session.append("user", "x")
        assert len(session) == count


def test_the_key_survives_the_rotation_of_the_session(session: recollect.Session) -> None:
    session.append("user", "before")
    first = session.id
    session.reset()
    session.append("user", "after")
    assert session.id != first
    assert texts(session.all()) == ["after"]
    assert texts(session.all(rotations=True)) == ["before", "after"]


def test_tool_calls_results_and_errors_survive_a_restart(durable_store_url: str) -> None:
    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "timeout", "is_error": True},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see this"},
                {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
            ],
        },
    ]
    with recollect.open(durable_store_url, settings={}) as memory:
        memory.space().session("k").append_many(messages)
    with recollect.open(durable_store_url, settings={}) as memory:
        call, result, picture = memory.space().session("k").all()
    assert [call.message, result.message, picture.message] == messages
    assert [(c.id, c.name) for c in call.tool_calls] == [("call_1", "weather")]
    assert (result.role, result.content, result.is_error) == ("tool", "timeout", True)
    assert [a.uri for a in picture.attachments] == ["https://example.org/cat.png"]


def test_ten_threads_append_while_others_read(session: recollect.Session) -> None:
    def write(name: str) -> None:
        for number in range(20):
            session.append("user", f"{name} {number}")
            session.recent(3)

    threads = [threading.Thread(target=write, args=(f"thread {n}",)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [record.seq for record in session.all()] == list(range(1, 201))


# Compaction: rotation, summary and retained turns


def test_compaction_keeps_the_summary_and_the_most_recent_messages(
    session: recollect.Session,
) -> None:
    for number in range(8):
        session.append("user", f"question {number}")
    session.compact(summary="eight questions", retain=3)
    assert session.summary == "eight questions"
    assert texts(session.all()) == ["question 5", "question 6", "question 7"]
    session.append("user", "question 8")
    assert texts(session.recent(2)) == ["question 7", "question 8"]
    assert len(session) == len(session.all()) == 4


def test_compaction_never_parts_a_tool_call_from_its_result(session: recollect.Session) -> None:
    session.append("user", "how is the weather?")
    session.append("assistant", tool_calls=[{"id": "1", "name": "weather", "arguments": "{}"}])
    session.append("tool", "sunny", tool_call_id="1")
    session.append("assistant", "It is sunny.")
    session.append("user", "thanks")
    session.compact(retain=3)
    assert texts(session.all()) == ["thanks"]


# Schema


@pytest.mark.parametrize("table", ["sessions", "session_history", "summaries", "schema_version"])
def test_the_database_has_the_table(tmp_path: Path, table: str) -> None:
    path = tmp_path / "memory.db"
    recollect.open(path, settings={}).close()
    raw = apsw.Connection(str(path))
    assert raw.execute("SELECT count(*) FROM sqlite_schema WHERE name = ?", (table,)).get == 1


def test_the_schema_version_is_tracked(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with recollect.open(path, settings={}) as memory:
        version = memory.status().store.schema_version
    raw = apsw.Connection(str(path))
    assert raw.execute("SELECT max(version) FROM schema_version").get == version


# Module and agent configuration


def test_the_documents_yaml_loads_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    path = tmp_path / "data" / "memory.db"
    file.write_text(YAML.format(path=path))
    with recollect.open(settings=file) as memory:
        memory.space().session("k", agent="assistant").append("user", "kept")
        assert memory.settings.sqlite_busy_timeout_ms == 5000
    assert path.exists()
    raw = apsw.Connection(str(path))
    assert raw.pragma("journal_mode") == "wal"


def test_without_wal_the_database_works_with_a_rollback_journal(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with recollect.open(path, settings={"sqlite_wal": False}) as memory:
        session = memory.space().session("k")
        session.append("user", "kept")
        assert not Path(f"{path}-wal").exists()
        assert texts(session.all()) == ["kept"]
    assert apsw.Connection(str(path)).pragma("journal_mode") == "delete"


def test_an_agent_without_a_memory_section_has_memory(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"data_dir: {tmp_path}\nagents:\n  assistant: {{}}\n")
    with recollect.open(settings=file) as memory:
        memory.space().session("k", agent="assistant").append("user", "kept")
    assert (tmp_path / "memory.db").exists()


def test_an_agent_with_memory_disabled_stores_nothing_and_still_converses(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    path = tmp_path / "memory.db"
    file.write_text(YAML.format(path=path))
    with recollect.open(settings=file) as memory:
        session = memory.space().session("k", agent="support")
        for number in range(8):
            session.append("user", f"canary {number}")
        session.set_summary("canary")
        assert len(session) == 8
        assert session.max_seq == 8
        assert memory.status().marked_count == 0
        assert memory.space().sessions.list() == []
    assert b"canary" not in b"".join(f.read_bytes() for f in tmp_path.glob("memory.db*"))


def test_an_empty_data_dir_creates_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with recollect.open(settings={"data_dir": ""}) as memory:
        session = memory.space().session("k")
        session.append("user", "only while we talk")
        assert texts(session.recent(1)) == ["only while we talk"]
    assert list(tmp_path.iterdir()) == []


def test_each_agent_may_have_a_database_of_its_own(tmp_path: Path) -> None:
    settings = {"data_dir": str(tmp_path), "database": "per-agent"}
    with recollect.open_agents(settings) as memories:
        for agent in ("assistant", "support"):
            memory = memories.memory(agent)
            memory.space().session("k", agent=agent).append("user", agent)
            assert memories.memory(agent) is memory
    for agent in ("assistant", "support"):
        assert (tmp_path / "agents" / agent / "memory.db").exists()
