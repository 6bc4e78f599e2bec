"""Who is never remembered: ephemeral sessions, and agents that work on memory itself."""

from __future__ import annotations

from recollect.types.records import KeyRef, Mode, SessionBirth
from recollect_conformance.case import case
from recollect_conformance.harness import Harness


def _is_never_marked(store: Harness, ref: KeyRef) -> None:
    """Every marking point in turn, over three sessions of the key."""
    store.append(ref, 9)
    assert store.invalidate(ref, 9).invalidated_at is None
    assert store.sleep(ref).invalidated_at is None
    store.compact(ref, retain=4)
    store.append(ref, 9)
    store.reset(ref)
    store.append(ref, 9)
    store.clock.advance(3600)
    assert store.marks.mark_idle(None, None, store.now(), 10) == []
    store.end(ref)
    sessions = store.sessions.rotations(ref)
    assert len(sessions) == 3
    assert [session.invalidated_at for session in sessions] == [None, None, None]
    assert not any(session.remembered for session in sessions)
    assert store.marks.counts(None) == (0, 0)
    assert len(store.records.all_rotations(ref)) == 27


@case("A4", "a memory agent's sessions are never marked")
def a_memory_agent_is_never_marked(store: Harness) -> None:
    _is_never_marked(store, store.key(agent="/memory-agent/assistant"))


@case("A4", "a consolidation agent's sessions are never marked")
def a_consolidation_agent_is_never_marked(store: Harness) -> None:
    _is_never_marked(store, store.key(agent="/consolidation-agent/main"))


@case("A4", "a search agent's sessions are never marked")
def a_search_agent_is_never_marked(store: Harness) -> None:
    _is_never_marked(store, store.key(agent="/search-agent/main"))


@case("X1", "an ephemeral session is never marked")
def an_ephemeral_session_is_never_marked(store: Harness) -> None:
    _is_never_marked(store, store.key(birth=SessionBirth(ephemeral=True)))


@case("A1 M6", "every other agent's sessions are marked")
def every_other_agent_is_marked(store: Harness) -> None:
    for agent in ("/user/a", "/cron/a", "/system/a", "/subagent/a", "/user/memory-agent"):
        ref = store.key(agent=agent)
        store.append(ref, 6)
        session = store.current(ref)
        assert session.remembered, agent
        assert session.invalidated_at == 6, agent


@case("A4 G12", "enabling its mode does not make an agent of memory's own remembered")
def enabling_does_not_lift_the_exclusion(store: Harness) -> None:
    for ref in (
        store.key(agent="/memory-agent/assistant"),
        store.key(birth=SessionBirth(ephemeral=True)),
    ):
        store.set_mode(ref, Mode.DISABLED)
        assert not store.set_mode(ref, Mode.ENABLED).remembered
        store.append(ref, 9)
        assert store.current(ref).invalidated_at is None
