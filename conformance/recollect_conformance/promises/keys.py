"""Stable keys: found or created, told apart exactly, each with a first session."""

from __future__ import annotations

from recollect.types.records import Mode, SessionBirth
from recollect_conformance.case import case
from recollect_conformance.harness import AGENT, KEY, SPACE, Harness


@case("M1 T1", "a new key has one empty session")
def a_new_key_has_one_empty_session(store: Harness) -> None:
    ref = store.key()
    session = store.current(ref)
    assert (ref.space, ref.key, ref.agent_id) == (SPACE, KEY, AGENT)
    assert (session.space, session.key, session.agent_id) == (SPACE, KEY, AGENT)
    assert session.rotation == 1
    assert session.last_seq == 0
    assert session.unprocessed == 0
    assert session.created_at == session.last_activity_at == store.now()
    assert store.sessions.rotations(ref) == [session]
    assert store.everything(ref) == []


@case("M2", "a new session has neither a mark nor a cursor")
def a_new_session_has_neither_mark_nor_cursor(store: Harness) -> None:
    session = store.current(store.key())
    assert session.invalidated_at is None
    assert session.processed_until is None
    assert session.marked_at is None
    assert session.marked_by is None
    assert session.ended_at is None
    assert session.ended_by is None
    assert store.marks.ranges(SPACE, session.id) == []


@case("T1", "a key that is opened again is the same key with the same session")
def a_key_is_found_again(store: Harness) -> None:
    ref = store.key()
    session = store.current(ref)
    store.clock.advance(5)
    assert store.key() == ref
    assert store.sessions.find_key(SPACE, KEY, AGENT) == ref
    assert store.current(ref) == session


@case("T1", "an unknown key is not found, and looking for it creates nothing")
def an_unknown_key_is_not_found(store: Harness) -> None:
    assert store.sessions.find_key(SPACE, KEY, AGENT) is None
    assert store.sessions.key_agents(SPACE, KEY) == []
    assert store.sessions.spaces("", 10) == []
    assert store.sessions.list(SPACE, 10, None) == []


@case("M1", "an unknown session is none, not an error")
def an_unknown_session_is_none(store: Harness) -> None:
    store.key()
    assert store.sessions.get(SPACE, "nobody") is None
    assert store.sessions.get("nowhere", "nobody") is None


@case("M1", "a session is found by its id as it is found by its key")
def a_session_is_found_by_its_id(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    session = store.current(ref)
    assert store.sessions.get(SPACE, session.id) == session


@case("M1 X2", "a session keeps what it was born with")
def a_session_keeps_what_it_was_born_with(store: Harness) -> None:
    birth = SessionBirth(
        source="import:codex", project="/srv/app", parent="session-0", ephemeral=True
    )
    session = store.current(store.key(birth=birth))
    assert session.source == "import:codex"
    assert session.project == "/srv/app"
    assert session.parent == "session-0"
    assert session.ephemeral
    assert session.mode is Mode.ENABLED


@case("M1", "a session without particulars has none")
def a_session_without_particulars_has_none(store: Harness) -> None:
    session = store.current(store.key())
    assert session.source == "api"
    assert session.project is None
    assert session.parent is None
    assert not session.ephemeral
    assert session.remembered


@case("G12", "a session can be born in any mode")
def a_session_can_be_born_in_any_mode(store: Harness) -> None:
    for mode in Mode:
        session = store.current(store.key(mode.value, birth=SessionBirth(mode=mode)))
        assert session.mode is mode
        assert session.remembered is (mode is Mode.ENABLED)


@case("T1", "opening a known key does not change what its session was born with")
def a_known_key_keeps_its_first_birth(store: Harness) -> None:
    ref = store.key(birth=SessionBirth(source="first"))
    assert store.key(birth=SessionBirth(source="second", ephemeral=True)) == ref
    assert store.current(ref).source == "first"
    assert not store.current(ref).ephemeral


@case("M1", "agents that use one key have a conversation each")
def agents_that_use_one_key_have_a_conversation_each(store: Harness) -> None:
    coder, writer = store.key(agent="/user/coder"), store.key(agent="/user/writer")
    store.append(coder, 2)
    assert store.current(coder).id != store.current(writer).id
    assert store.everything(writer) == []
    assert store.sessions.key_agents(SPACE, KEY) == ["/user/coder", "/user/writer"]


@case("T1", "keys that look alike stay apart")
def keys_that_look_alike_stay_apart(store: Harness) -> None:
    alike = [
        "a:b",
        "a:B",
        "a:b ",
        "a%3Ab",
        "a_b",
        "a",
        "a:",
        "a:b:c",
        "\u00e9",
        "e\u0301",
        "ﬁ",
        "fi",
    ]
    for key in alike:
        store.say(store.key(key), store.text())
    assert len({store.key(key).key_id for key in alike}) == len(alike)
    for key in alike:
        assert len(store.everything(store.key(key))) == 1
        assert store.current(store.key(key)).key == key


@case("T1", "keys and names of any script and of a kilobyte are kept as they are")
def long_and_foreign_keys_are_kept(store: Harness) -> None:
    for name in ("会話:四十二", "🧠" * 256, "x" * 1024, "'; DROP TABLE sessions; --", "%s {} :key"):
        ref = store.key(name, space=name, agent=f"/user/{name[:60]}")
        session = store.current(ref)
        assert (session.space, session.key) == (name, name)
        assert store.sessions.find_key(name, name, ref.agent_id) == ref


@case("M1", "spaces are listed in the order of their characters, each once")
def spaces_are_listed_in_order(store: Harness) -> None:
    names = ["b", "B", "a", "ä", "Z", "a-b", "a_b", "10", "9"]
    for name in names:
        store.key("one", space=name)
        store.key("two", space=name)
    assert store.sessions.spaces("", 100) == sorted(names)


@case("M1", "pages of spaces miss nothing and repeat nothing")
def pages_of_spaces_miss_nothing(store: Harness) -> None:
    names = [f"space-{number:02}" for number in range(7)]
    for name in names:
        store.key(space=name)
    found: list[str] = []
    while page := store.sessions.spaces(found[-1] if found else "", 3):
        assert len(page) <= 3
        found += page
    assert found == names
    assert store.sessions.spaces("", 0) == []
