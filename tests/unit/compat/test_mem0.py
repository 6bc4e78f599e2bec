"""N8: mem0's verbs, as mem0 2.2.1 has them: its arguments, its answers, and where it raises."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.compat.mem0 import AsyncMemory, Memory
from recollect.errors import InvalidMessage, InvalidValue, TooLarge
from tests.tables import every_row

ALICE: dict[str, Any] = {"user_id": "alice"}
# The parameters of `mem0.Memory` 2.2.1 (mem0/memory/main.py) and of `AsyncMemory`, which are the
# same: after a bar those that go by name alone, and with = those that can be left out.
SIGNATURES = {
    "from_config": "config_dict",
    "add": "messages | user_id= agent_id= run_id= metadata= timestamp= expiration_date= infer= "
    "memory_type= prompt=",
    "get": "memory_id",
    "get_all": "| filters= top_k= show_expired= **",
    "search": "query | top_k= filters= threshold= rerank= explain= reference_date= "
    "show_expired= **",
    "update": "memory_id text= metadata= expiration_date= data=",
    "delete": "memory_id",
    "delete_all": "user_id= agent_id= run_id=",
    "history": "memory_id",
    "reset": "",
    "close": "",
}
DEFAULTS = {"top_k": 20, "threshold": 0.1, "infer": True}  # those that are neither none nor false


@pytest.fixture
def client(memory: recollect.Memory, clock: ManualClock) -> Memory:
    return Memory(memory, clock=clock)


def described(method: Any) -> str:
    parts, has_bar = [], False
    for each in inspect.signature(method).parameters.values():
        if each.name == "self":
            continue
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            parts.append("**")
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not has_bar:
            parts.append("|")
            has_bar = True
        parts.append(each.name + ("" if each.default is inspect.Parameter.empty else "="))
    return " ".join(parts)


def told(answer: Any) -> list[str]:
    return [each["memory"] for each in answer["results"]]


@every_row("verb", SIGNATURES)
def test_every_verb_takes_what_it_takes_in_mem0(verb: str) -> None:
    method = getattr(Memory, verb)
    assert described(method) == SIGNATURES[verb]
    for name, default in DEFAULTS.items():
        if f"{name}=" in SIGNATURES[verb].split():
            assert inspect.signature(method).parameters[name].default == default
    assert callable(getattr(AsyncMemory, verb))


def test_what_was_said_is_learned_and_found_in_mem0s_shapes(client: Memory) -> None:
    added = client.add(
        [
            {"role": "user", "content": "I moved to Lisbon in May."},
            {"role": "assistant", "content": "Noted."},
        ],
        user_id="alice",
        metadata={"topic": "life"},
    )
    [entry] = added["results"]
    assert set(entry) == {"id", "memory", "event"}
    assert entry["event"] == "ADD"
    assert "Lisbon" in entry["memory"]
    [found] = client.search("who moved to Lisbon?", filters=ALICE)["results"]
    assert {key: found[key] for key in ("id", "memory", "user_id")} == {
        "id": entry["id"],
        "memory": entry["memory"],
        "user_id": "alice",
    }
    assert found["metadata"]["topic"] == "life"
    assert 0 < found["score"] <= 1
    assert len(found["hash"]) == 32
    assert found["created_at"] == found["updated_at"]
    got = client.get(entry["id"])
    assert got is not None
    assert got == {key: value for key, value in found.items() if key != "score"} | {"score": None}
    [listed] = client.get_all(filters=ALICE)["results"]
    assert listed == {key: value for key, value in found.items() if key != "score"}
    # A second time nothing new is said, and nothing is added.
    assert client.add("I moved to Lisbon in May.", **ALICE) == {"results": []}


def test_without_inference_every_message_is_kept_word_for_word(client: Memory) -> None:
    added = client.add(
        [
            {"role": "system", "content": "You are helpful."},
            {"role": "user", "content": "Teal is nice.", "name": "Al"},
            {"role": "assistant", "content": [{"type": "text", "text": "So it is."}]},
            {"role": "user", "content": "Teal is nice."},
        ],
        user_id="alice",
        infer=False,
        metadata={"source": "chat", "user_id": "mallory", "actor_id": "mallory"},
    )
    assert [(e["memory"], e["role"], e["actor_id"], e["event"]) for e in added["results"]] == [
        ("Teal is nice.", "user", "Al", "ADD"),
        ("So it is.", "assistant", None, "ADD"),
        ("Teal is nice.", "user", None, "ADD"),
    ]
    assert len({entry["id"] for entry in added["results"]}) == 3
    got = client.get(added["results"][0]["id"])
    assert got is not None
    assert (got["user_id"], got["actor_id"], got["role"]) == ("alice", "Al", "user")
    assert got["metadata"] == {"source": "chat"}


def test_what_is_asked_for_one_user_never_comes_from_another(client: Memory) -> None:
    """P9."""
    for user in ("alice", "bob"):
        client.add(f"The secret of {user} is teal.", user_id=user, infer=False)
    client.add("The secret of nobody is teal.", agent_id="helper", infer=False)
    assert told(client.search("secret teal", filters=ALICE)) == ["The secret of alice is teal."]
    assert told(client.get_all(user_id="bob")) == ["The secret of bob is teal."]
    assert told(client.get_all(filters={"agent_id": "helper"})) == ["The secret of nobody is teal."]
    for all_of_them in ("*", {"in": ["alice", "bob"]}, ["alice"]):
        with pytest.raises(InvalidValue, match="exactly one"):
            client.get_all(filters={"user_id": all_of_them})


def test_agents_and_runs_are_told_apart_inside_a_user_at_the_top_and_in_filters(
    client: Memory,
) -> None:
    client.add("My name is Alice.", user_id="alice", agent_id="a1")
    client.add("I love oat milk.", user_id="alice", agent_id="a2", run_id="r1")
    client.add("My name is Alice.", user_id="alice", agent_id="a3")  # and says nothing new
    everything = "Alice name oat milk"
    ways: list[Callable[[dict[str, Any]], Any]] = [
        lambda ids: client.get_all(filters={**ALICE, **ids}),
        lambda ids: client.get_all(user_id="alice", **ids),
        lambda ids: client.search(everything, filters={**ALICE, **ids}),
        lambda ids: client.search(everything, user_id="alice", filters=ids),
    ]
    for ask in ways:
        assert "name" in " ".join(told(ask({"agent_id": "a1"})))
        assert "milk" not in " ".join(told(ask({"agent_id": "a1"})))
        assert "milk" in " ".join(told(ask({"run_id": "r1"})))
        assert "name" in " ".join(told(ask({"agent_id": "a3"})))
        assert told(ask({"agent_id": "a1", "run_id": "r1"})) == []
        assert len(told(ask({}))) == 2
    with pytest.raises(InvalidValue, match="in its filters"):
        client.get_all(user_id="alice", filters={"user_id": "bob"})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"n": 2}, {"two"}),
        ({"n": {"gt": 1, "lte": 3}}, {"two", "three"}),
        ({"n": {"in": [1, 3]}}, {"one", "three"}),
        ({"n": {"ne": 1}}, {"two", "three", "none"}),
        ({"word": "*"}, {"two"}),
        ({"word": {"icontains": "SEC"}}, {"two"}),
        ({"AND": [{"n": {"gte": 2}}, {"n": {"lt": 3}}]}, {"two"}),
        ({"OR": [{"n": 1}, {"word": "second"}]}, {"one", "two"}),
        ({"NOT": [{"n": 1}, {"n": 2}]}, {"three", "none"}),
        ({"role": "user", "n": 3}, {"three"}),
        ({"tags": "x"}, {"three"}),
    ],
)
def test_filters_compare_what_was_said_about_a_memory(
    client: Memory, asked: dict[str, Any], expected: set[str]
) -> None:
    given: dict[str, dict[str, Any]] = {
        "one": {"n": 1},
        "two": {"n": 2, "word": "second"},
        "three": {"n": 3, "tags": "x"},
        "none": {},
    }
    for name, metadata in given.items():
        client.add(f"memory {name}", user_id="alice", infer=False, metadata=metadata)
    wanted = {f"memory {name}" for name in expected}
    assert set(told(client.get_all(filters={**ALICE, **asked}))) == wanted
    assert set(told(client.search("memory", filters={**ALICE, **asked}))) == wanted


def test_a_memory_is_changed_and_deleted_and_its_history_tells_it(
    client: Memory, clock: ManualClock
) -> None:
    [added] = client.add("I love oat milk.", user_id="alice", metadata={"kind": "food"})["results"]
    clock.advance(60)
    changed = client.update(added["id"], "I love soy milk.", {"stars": 5, "user_id": "bob"})
    assert changed == {"message": "Memory updated successfully!"}
    got = client.get(added["id"])
    assert got is not None
    assert (got["memory"], got["user_id"]) == ("I love soy milk.", "alice")
    assert (got["metadata"]["kind"], got["metadata"]["stars"]) == ("food", 5)
    assert got["updated_at"] > got["created_at"]
    client.update(added["id"], data="I love rice milk.")
    assert client.delete(added["id"]) == {"message": "Memory deleted successfully!"}
    assert client.get(added["id"]) is None
    history = client.history(added["id"])
    assert [(e["event"], e["old_memory"], e["new_memory"], e["is_deleted"]) for e in history] == [
        ("ADD", None, added["memory"], False),
        ("UPDATE", added["memory"], "I love soy milk.", False),
        ("UPDATE", "I love soy milk.", "I love rice milk.", False),
        ("DELETE", "I love rice milk.", None, True),
    ]
    assert {e["memory_id"] for e in history} == {added["id"]}
    for call in (client.delete, lambda named: client.update(named, "x")):
        for named in (added["id"], "nonsense", "nonsense@bob", "@", ""):
            with pytest.raises(ValueError, match="no memory"):
                call(named)
    assert client.get("nonsense") is None
    assert client.history("nonsense") == []


@pytest.mark.parametrize("infer", [True, False])
def test_what_has_expired_is_hidden_unless_it_is_asked_for(
    client: Memory, memory: recollect.Memory, clock: ManualClock, infer: bool
) -> None:
    today = clock.now().date()
    client.add("I love oat milk.", user_id="alice", expiration_date=today, infer=infer)
    assert len(told(client.get_all(filters=ALICE))) == 1
    clock.advance(2 * 86_400)
    assert told(client.get_all(filters=ALICE)) == []
    assert told(client.search("oat milk", filters=ALICE)) == []
    assert memory.space("alice").recall("oat milk", kinds=["fact"]) == []
    [shown] = client.get_all(filters=ALICE, show_expired=True)["results"]
    assert shown["expiration_date"] == today.isoformat()
    assert len(told(client.search("oat milk", filters=ALICE, show_expired=True))) == 1
    client.update(shown["id"], expiration_date=None)
    assert len(told(client.search("oat milk", filters=ALICE))) == 1


def test_when_something_ends_may_stand_in_its_metadata_and_be_the_last_day_of_all(
    client: Memory, clock: ManualClock
) -> None:
    day = clock.now().date().isoformat()
    client.add("Tea.", **ALICE, expiration_date="9999-12-31", infer=False)
    client.add("Milk.", **ALICE, metadata={"expiration_date": day}, infer=False)
    [sugar] = client.add("Sugar.", **ALICE, infer=False)["results"]
    client.update(sugar["id"], metadata={"expiration_date": day})
    clock.advance(2 * 86_400)
    assert told(client.get_all(filters=ALICE)) == ["Tea."]


def test_all_memories_of_a_scope_are_deleted_and_no_others(client: Memory) -> None:
    for number in range(3):
        client.add(f"memory {number}", user_id="alice", run_id=f"r{number}", infer=False)
    client.add("memory of bob", user_id="bob", infer=False)
    assert client.delete_all(user_id="alice", run_id="r1") == {
        "message": "Memories deleted successfully!"
    }
    assert set(told(client.get_all(filters=ALICE))) == {"memory 0", "memory 2"}
    client.delete_all(user_id="alice")
    assert told(client.get_all(filters=ALICE)) == []
    assert told(client.get_all(user_id="bob")) == ["memory of bob"]


def test_reset_forgets_what_came_in_by_these_verbs_and_nothing_else(
    client: Memory, memory: recollect.Memory
) -> None:
    alice = memory.space("alice")
    alice.session("telegram:42").append("user", "Remember that I play chess.")
    alice.facts.add("The user likes teal.")
    client.add("I love oat milk.", user_id="alice")
    client.add("I love rice milk.", user_id="alice", infer=False)
    client.reset()
    assert told(client.get_all(filters=ALICE)) == ["The user likes teal."]
    assert alice.recall("milk") == []
    kept = {state.key for state in alice.sessions.list() if alice.sessions.records(state.id)}
    assert kept == {"telegram:42"}


def test_best_first_no_more_than_wanted_nothing_below_the_threshold_and_why(client: Memory) -> None:
    client.add("Oat milk is what Alice drinks with coffee.", user_id="alice", infer=False)
    client.add("Coffee is harvested in Brazil.", user_id="alice", infer=False)
    found = client.search("oat milk coffee", filters=ALICE, explain=True)["results"]
    assert [each["memory"][:3] for each in found] == ["Oat", "Cof"]
    assert found[0]["score"] > found[1]["score"]
    assert found[0]["score_details"]["words"] > 0
    assert len(told(client.search("oat milk coffee", filters=ALICE, top_k=1))) == 1
    assert len(told(client.search("oat milk coffee", filters=ALICE, limit=1))) == 1
    between = (found[0]["score"] + found[1]["score"]) / 2
    assert len(told(client.search("oat milk coffee", filters=ALICE, threshold=between))) == 1


BAD: list[Any] = [
    lambda m: m.add("x"),
    lambda m: m.add("x", user_id=" "),
    lambda m: m.add("x", user_id="a b"),
    lambda m: m.add(7, **ALICE),
    lambda m: m.add([{"role": "user", "content": "fine"}, {"content": "no role"}], **ALICE),
    lambda m: m.add([{"role": "user", "content": "fine"}, "text"], **ALICE),
    lambda m: m.add("x", **ALICE, memory_type="semantic"),
    lambda m: m.add("x", **ALICE, timestamp=1),
    lambda m: m.add("x", **ALICE, prompt="Extract!"),
    lambda m: m.add("x", **ALICE, expiration_date="soon"),
    lambda m: m.add("x", **ALICE, metadata={"expiration_date": 5}),
    lambda m: m.add("x", **ALICE, metadata={"expiration_date": "soon"}, infer=False),
    lambda m: m.add("x", **ALICE, metadata="topic"),
    lambda m: m.add("x", **ALICE, metadata={"v": {1}}),
    lambda m: m.add("x", **ALICE, metadata={"v": {1}}, infer=False),
    lambda m: m.add([{"role": "user", "content": "fine"}, {"role": "user"}], **ALICE, infer=False),
    lambda m: m.add(["fine", "x" * 3000], **ALICE, infer=False),
    lambda m: m.search("x"),
    lambda m: m.search("x", filters={"agent": "a"}),
    lambda m: m.search(" ", filters=ALICE),
    lambda m: m.search(None, filters=ALICE),
    lambda m: m.search("x", filters=ALICE, top_k=-1),
    lambda m: m.search("x", filters=ALICE, top_k=True),
    lambda m: m.search("x", filters=ALICE, threshold=2),
    lambda m: m.search("x", filters=ALICE, threshold="high"),
    lambda m: m.search("x", filters=ALICE, reference_date="2026-01-01"),
    lambda m: m.search("x", filters={**ALICE, "n": {"near": 3}}),
    lambda m: m.search("x", filters={**ALICE, "OR": []}),
    lambda m: m.search("x", filters={**ALICE, "OR": [{"n": number} for number in range(1000)]}),
    lambda m: m.search("x", filters={**ALICE, "n": list(range(1001))}),
    lambda m: m.search("x", filters=ALICE, frobnicate=True),
    lambda m: m.get_all(),
    lambda m: m.get_all(filters="alice"),
    lambda m: m.get_all(filters=ALICE, top_k="20"),
    lambda m: m.delete_all(),
    lambda m: m.update("x@alice"),
    lambda m: m.get(7),
]


@pytest.mark.parametrize("call", BAD)
def test_bad_input_is_a_value_error_of_ours_and_nothing_of_it_is_stored(
    client: Memory, memory: recollect.Memory, call: Any
) -> None:
    with pytest.raises(InvalidValue):
        call(client)
    alice = memory.space("alice")
    assert alice.facts.list() == []
    assert not any(len(alice.sessions.records(state.id)) for state in alice.sessions.list())


def test_a_memory_that_is_too_long_is_refused_before_any_is_stored(client: Memory) -> None:
    said = [{"role": "user", "content": "fine"}, {"role": "user", "content": "x" * 3000}]
    with pytest.raises(TooLarge):
        client.add(said, user_id="alice", infer=False)
    with pytest.raises(InvalidMessage):
        client.add([said[0], {"role": "user", "content": ""}], user_id="alice", infer=False)
    assert client.add([], user_id="alice") == {"results": []}
    assert told(client.get_all(filters=ALICE)) == []


def test_a_configuration_names_a_store_or_nothing_and_the_rest_is_refused(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    with Memory.from_config({"store": store}) as client:
        client.add("I love oat milk.", user_id="alice", expiration_date=date(9000, 1, 1))
    with Memory({"store": store}) as client:
        assert len(told(client.get_all(filters=ALICE))) == 1
    with Memory.from_config({"settings": {"data_dir": str(tmp_path / "data")}}) as client:
        assert told(client.get_all(filters=ALICE)) == []
    bad: Any
    for bad in ({"vector_store": {"provider": "qdrant"}}, {"embedder": {"provider": "x"}}, ["x"]):
        with pytest.raises(InvalidValue):
            Memory.from_config(bad)


def test_the_asynchronous_client_does_the_same(memory: recollect.Memory) -> None:
    async def play() -> None:
        async with AsyncMemory(memory) as client:
            texts = ("I love oat milk.", "My name is Alice.")
            await asyncio.gather(*(client.add(text, user_id="alice") for text in texts))
            found = await client.search("oat milk", filters=ALICE)
            [memory_id] = [each["id"] for each in found["results"]]
            await client.update(memory_id, "I love soy milk.")
            got = await client.get(memory_id)
            assert got is not None
            assert got["memory"] == "I love soy milk."
            assert len((await client.get_all(filters=ALICE))["results"]) == 2
            await client.delete(memory_id)
            assert len(await client.history(memory_id)) == 3
            await client.delete_all(user_id="alice")
            await client.reset()

    asyncio.run(play())
