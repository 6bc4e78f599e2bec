"""Forgetting a session: agents are not told of it any more, and what they said of it is gone."""

from __future__ import annotations

from recollect.types.agents import DocumentChanges, ItemState, Turn
from recollect.types.facts import Source
from recollect.types.pages import WRITTEN_BY_MODEL, Author, AuthorKind, Because
from recollect.types.records import (
    Claim,
    KeyRef,
    MarkCause,
    NothingDue,
    Released,
    SessionState,
    StaleClaim,
)
from recollect_conformance import pages
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.inboxes import (
    agent,
    begun,
    fail,
    finish,
    handed_over,
    handing,
    note,
    post,
    release,
    state_of,
    step,
    take,
    thinking,
    words,
    work,
)
from recollect_conformance.lessons import POLICY


def _forget(store: Harness, session_id: str) -> None:
    assert store.handle.erasure.forget_session(SPACE, session_id, store.now()) is not None


def _said(store: Harness, ref: KeyRef) -> list[str]:
    return words(store.records.all_rotations(ref))


def _told(store: Harness, key: str) -> tuple[KeyRef, str]:
    """A memory-agent that has dealt with a session, and said so; and that session."""
    ref, session_id = handed_over(store, key=key)
    claim = work(store)
    turn = take(store, claim)
    step(store, claim, thinking(f"reading {key}"))
    finish(store, claim, turn, f"filed {key}")
    assert release(store, claim) == Released()
    return ref, session_id


def _compact(store: Harness, claim: Claim, retain: int = 0) -> None:
    assert not isinstance(_compacted(store, claim, retain), StaleClaim)


def _compacted(store: Harness, claim: Claim, retain: int = 0) -> SessionState | StaleClaim:
    return store.handle.agents.rotate(
        claim, MarkCause.COMPACTION, store.now(), store.new_id, summary="so far", retain=retain
    )


@case("P11 A5", "what waits to be told of a session that is forgotten is not told any more")
def a_forgotten_session_is_not_told(store: Harness) -> None:
    ref, first = handed_over(store, key="one")
    _, second = handed_over(store, key="two")
    _forget(store, first)
    claim = work(store)
    [item] = take(store, claim).items
    assert item.about is not None
    assert item.about.session_id == second
    assert agent(store, ref).queued == 1


@case("P11", "what could not be told of a session is forgotten with it")
def a_parked_item_is_forgotten(store: Harness) -> None:
    ref, session_id = handed_over(store)
    claim = work(store)
    turn = take(store, claim)
    fail(store, claim, turn, is_final=True)
    assert agent(store, ref).parked == 1
    _forget(store, session_id)
    assert agent(store, ref).parked == 0
    assert store.handle.leases.revive(SPACE, None) <= 1
    assert _said(store, ref) == []


@case("P11", "what an agent said of a session is forgotten with it, and nothing else it said")
def what_was_said_of_a_session_is_forgotten(store: Harness) -> None:
    ref, _ = _told(store, "one")
    _, second = _told(store, "two")
    _told(store, "three")
    _forget(store, second)
    one, three = ["", "reading one", "filed one"], ["", "reading three", "filed three"]
    assert _said(store, ref) == [*one, *three]


@case("P11", "what an agent said without an answer in the end is forgotten too")
def a_turn_without_an_answer_is_forgotten(store: Harness) -> None:
    ref, first = handed_over(store, key="one")
    claim = work(store)
    turn = take(store, claim)
    step(store, claim, thinking("reading one"))
    finish(store, claim, turn, None)
    release(store, claim)
    _told(store, "two")
    _forget(store, first)
    assert "reading one" not in _said(store, ref)
    assert _said(store, ref)[-2:] == ["reading two", "filed two"]


@case("P11", "a turn that was given up takes nothing with it that was said afterwards")
def a_failed_turn_is_forgotten_alone(store: Harness) -> None:
    ref, first = handed_over(store, key="one")
    claim = work(store)
    turn = take(store, claim)
    step(store, claim, thinking("reading one"))
    fail(store, claim, turn, is_final=True)
    _told(store, "two")
    _forget(store, first)
    assert "reading one" not in _said(store, ref)
    assert _said(store, ref)[-2:] == ["reading two", "filed two"]


@case("P11", "what an agent was doing when it was killed is forgotten alone as well")
def a_killed_turn_is_forgotten_alone(store: Harness) -> None:
    ref, first = handed_over(store, key="one")
    claim = work(store)
    take(store, claim)
    step(store, claim, thinking("reading one"))
    assert store.handle.agents.kill(ref, store.now())
    _told(store, "two")
    _forget(store, first)
    assert "reading one" not in _said(store, ref)
    assert _said(store, ref)[-2:] == ["reading two", "filed two"]


@case("P11 T7", "what a compaction carried on of it is forgotten: references and summaries")
def a_compaction_keeps_nothing_of_a_forgotten_session(store: Harness) -> None:
    ref, session_id = _told(store, "one")
    post(store, ref, note("another matter"))
    claim = work(store)
    _compact(store, claim, retain=10)
    assert "filed one" in store.words(ref)
    assert store.records.summary(ref) == "so far"
    take(store, claim)
    _forget(store, session_id)
    assert store.words(ref) == ["another matter"]
    assert store.records.summary(ref) == ""


def _compacted_midway(store: Harness) -> tuple[KeyRef, str, Claim, Turn]:
    """A turn that began in one session and goes on in the next."""
    ref, session_id = handed_over(store, key="one")
    claim = work(store)
    turn = take(store, claim)
    step(store, claim, thinking("reading one"))
    _compact(store, claim)
    return ref, session_id, claim, turn


@case("P11 T7", "a turn that a compaction cut in two is forgotten as one")
def a_turn_in_two_sessions_is_forgotten(store: Harness) -> None:
    ref, session_id, claim, turn = _compacted_midway(store)
    step(store, claim, thinking("still reading one"))
    finish(store, claim, turn, "filed one")
    release(store, claim)
    _told(store, "two")
    _forget(store, session_id)
    assert [text for text in _said(store, ref) if text] == ["reading two", "filed two"]


@case("P11 T7", "so is one that was cut in two and never came to its end")
def an_unfinished_turn_in_two_sessions_is_forgotten(store: Harness) -> None:
    ref, session_id, claim, _ = _compacted_midway(store)
    step(store, claim, thinking("still reading one"))
    _forget(store, session_id)
    assert _said(store, ref) == []


@case("P11 T7", "a turn whose session ended under it is forgotten in the one that followed")
def a_turn_after_an_end_is_forgotten(store: Harness) -> None:
    ref, session_id = handed_over(store, key="one")
    claim = work(store)
    turn = take(store, claim)
    store.end(ref)
    finish(store, claim, turn, "filed one")
    assert len(store.sessions.rotations(ref)) == 2
    _forget(store, session_id)
    assert _said(store, ref) == []


@case("P11 P5", "whoever was told of a session that is forgotten meanwhile stores nothing of it")
def a_turn_about_a_forgotten_session_is_stale(store: Harness) -> None:
    ref, session_id = handed_over(store)
    claim = work(store)
    turn = take(store, claim)
    _forget(store, session_id)
    written = DocumentChanges(
        edits=(pages.writing("a", "what it said"),), because=Because(), limits=pages.LIMITS
    )
    assert finish(store, claim, turn, "filed", written) == StaleClaim()
    assert pages.find(store, "a") is None
    assert _said(store, ref) == []
    assert release(store, work(store)) == Released(), "it is free at once"


@case("P11 P5", "nor does it keep what happens on the way")
def a_step_about_a_forgotten_session_is_stale(store: Harness) -> None:
    ref, session_id = handed_over(store)
    claim = work(store)
    take(store, claim)
    _forget(store, session_id)
    assert step(store, claim, thinking("it said")) == StaleClaim()
    assert _said(store, ref) == []


@case("P11 M11", "a turn that fails because its session was forgotten is no failure of the agent")
def a_failure_over_a_forgotten_session(store: Harness) -> None:
    ref, session_id = handed_over(store)
    claim = work(store)
    turn = take(store, claim)
    _forget(store, session_id)
    assert fail(store, claim, turn, is_final=True) == StaleClaim()
    assert release(store, work(store)) == Released()
    assert agent(store, ref).last_error is None
    assert store.handle.leases.claim("w", POLICY, store.now()) == NothingDue(None)


@case("P11 P5 T7", "a summary that was made of a forgotten session is not stored after it")
def a_summary_of_a_forgotten_session_is_not_stored(store: Harness) -> None:
    ref, claim, _ = begun(store, "hello")
    _forget(store, store.current(ref).id)
    assert _compacted(store, claim) == StaleClaim()
    assert store.records.summary(ref) == ""
    assert _said(store, ref) == []


@case("P11 P5 T7", "nor by an agent that was only told of it")
def a_summary_by_who_was_told_is_not_stored(store: Harness) -> None:
    ref, session_id = _told(store, "one")
    post(store, ref, note("another matter"))
    claim = work(store)
    take(store, claim)
    _forget(store, session_id)
    assert _compacted(store, claim) == StaleClaim()
    assert store.records.summary(ref) == ""
    again = work(store)
    assert take(store, again).text == "another matter", "it is due at once"


@case("P11", "what is about other sessions, and what was done before, stays in the inbox")
def other_items_stay(store: Harness) -> None:
    ref, _ = _told(store, "one")
    _, second = handed_over(store, key="two")
    post(store, ref, note("a word of the host"))
    claim = work(store)
    item = handing(claim).item
    assert item.about is not None
    _forget(store, second)
    assert release(store, claim) == StaleClaim(), "it may have read of it"
    assert take(store, work(store)).text == "a word of the host"
    assert state_of(store, ref, "a word of the host") is ItemState.TAKEN


@case("P11", "the words of a message that could not be answered are forgotten with its session")
def a_parked_message_is_forgotten(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    fail(store, claim, turn, is_final=True)
    _forget(store, store.current(ref).id)
    assert agent(store, ref).parked == 0
    assert state_of(store, ref, "hello") is None


@case(
    "P11 D1",
    "a page that a model wrote goes with what it was written from; what stands below stays",
)
def a_page_that_a_model_wrote_is_dropped(store: Harness) -> None:
    ref, one = _told(store, "one")
    _, two = _told(store, "two")
    model = Author(AuthorKind.AGENT, ref.agent_id)
    person = Author(AuthorKind.PERSON, "Ana")

    def wrote(path: str, author: Author, *session_ids: str) -> None:
        sources = tuple(Source(session_id=each, seq=1, seq_to=1) for each in session_ids)
        because = Because(author=author, reason=WRITTEN_BY_MODEL, sources=sources)
        body = f"{author.name} of {' '.join(session_ids)}"
        pages.apply(store, pages.writing(path, body), because=because)

    wrote("top/alone", model, one)
    wrote("top/above", model, one)
    wrote("top/above", model, two)
    wrote("top/above/below", model, two)
    wrote("top/shared", model, one)
    wrote("top/shared", person)
    wrote("top/other", model, two)
    receipt = store.handle.erasure.forget_session(SPACE, one, store.now())
    assert receipt is not None
    assert (receipt.documents, receipt.left, receipt.is_complete) == (1, ("~/top/shared",), False)
    left = ["top", "top/above", "top/above/below", "top/other", "top/shared"]
    assert pages.paths(store, "top") == left
    above = pages.page(store, "top/above")
    assert (above.body, len(pages.history(store, above))) == ("", 1)
    pages.assert_sound(store, "top")
    [item] = take(store, work(store)).items
    assert item.about is not None
    assert item.about.session_id == two
    assert store.handle.erasure.forget_session(SPACE, two, store.now(), all_pages=True)
    assert "top/other" not in pages.paths(store, "top")
