"""Inboxes of agents: taken in once, in order, merged where a person goes on, gone when done."""

from __future__ import annotations

from datetime import timedelta

from recollect.errors import AppendKeyReused
from recollect.messages import Role
from recollect.types.agents import ItemKind, ItemState, Life, NewItem, NoTurn, Span
from recollect.types.records import JobKind, JobState, MarkPolicy, NothingDue, Released
from recollect_conformance.case import case, refused
from recollect_conformance.harness import AGENT, KEY, NEVER, SPACE, Harness
from recollect_conformance.inboxes import (
    LIFE,
    RESET,
    agent,
    answered,
    begun,
    finish,
    host,
    later,
    message,
    note,
    pass_time,
    post,
    release,
    saying,
    spoken_to,
    state_of,
    step,
    take,
    thinking,
    words,
)
from recollect_conformance.lessons import POLICY

MANY = 60  # messages, more than one turn takes
LONG = 150_000  # characters, of which one turn takes two at most


@case("A7 M14", "what is posted waits in the inbox, and the agent is awake and due")
def what_is_posted_waits(store: Harness) -> None:
    ref = store.key()
    assert store.handle.agents.get(ref) is None
    span = Span(session_id="s", first=3, last=9)
    given = NewItem(id="i", kind=ItemKind.SYSTEM_MESSAGE, text="text", origin="origin", about=span)
    [item] = post(store, ref, given)
    assert (item.id, item.kind, item.text, item.origin) == ("i", given.kind, "text", "origin")
    assert (item.about, item.state, item.attempts) == (span, ItemState.QUEUED, 0)
    assert (item.turn_id, item.last_error, item.created_at) == (None, None, store.now())
    assert store.handle.agents.item(ref, "i") == item
    found = agent(store, ref)
    assert (found.ref, found.life, found.since, found.incarnation) == (
        *(ref, Life.ACTIVE),
        *(store.now(), 1),
    )
    assert (found.job, found.job_state, found.queued) == (JobKind.AGENT, JobState.DUE, 1)
    assert host(store).key == str(ref.key_id)


@case("P5", "the same item is taken in once, and comes back as it stands")
def an_item_is_taken_in_once(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    [again] = post(store, ref, message("hello"))
    assert (again.state, again.text, again.turn_id) == (ItemState.TAKEN, "hello", turn.id)
    finish(store, claim, turn)
    assert post(store, ref, message("hello"))[0].state is ItemState.DONE
    assert release(store, claim) == Released()
    assert store.words(ref) == ["hello", "an answer"]


@case("P5 T1", "the id of a message never stands for other words, whatever became of it")
def an_id_never_stands_for_other_words(store: Harness) -> None:
    other = message("something else", named="hello")

    def refuse() -> None:
        with refused(AppendKeyReused):
            post(store, ref, other)

    ref = spoken_to(store, "hello")
    refuse()
    claim = host(store)
    turn = take(store, claim)
    refuse()
    finish(store, claim, turn)
    refuse()
    assert release(store, claim) == Released()
    answered(store, "bye")  # and what was done too long ago is dropped
    store.clock.advance(2 * 3600)
    answered(store, "again")
    assert store.handle.agents.item(ref, "hello") is None
    refuse()
    assert agent(store, ref).queued == 0
    assert "something else" not in store.words(ref)
    post(store, store.key("other"), other)  # another conversation has ids of its own


@case("P5 M14", "an item that is known wakes nobody and cancels nothing")
def a_known_item_wakes_nobody(store: Harness) -> None:
    ref = answered(store, "hello", agent="/cron/nightly")
    pass_time(store, LIFE.idle_seconds)
    before = agent(store, ref)
    assert before.life is Life.SLEEPING
    post(store, ref, message("hello"))
    assert agent(store, ref) == before
    pass_time(store, LIFE.poison_pill_seconds)
    dead = agent(store, ref)
    post(store, ref, message("hello"))
    assert agent(store, ref) == dead


@case("M14", "a post cancels what puts an agent to sleep or ends it, and nothing else")
def a_post_cancels_its_own_signals(store: Harness) -> None:
    ref = answered(store, "hello")
    alarm = later(store, "alarm", 1)
    store.handle.agents.set_signal(ref, alarm, JobKind.AGENT, store.now())
    assert [each.name for each in agent(store, ref).signals] == ["alarm", "idle"]
    post(store, ref, message("again"))
    assert [each.name for each in agent(store, ref).signals] == ["alarm"]


@case("A7", "what was said is in the history when the turn is taken, under the name of who said it")
def a_turn_is_in_the_history(store: Harness) -> None:
    ref = store.key()
    post(store, ref, message("hello"))
    store.clock.advance(5)
    turn = take(store, host(store))
    [record] = store.everything(ref)
    assert turn.records == (record,)
    assert turn.session == store.current(ref)
    assert (record.role, record.content, record.name) == (Role.USER, "hello", None)
    assert record.at == store.now() - timedelta(seconds=5)
    assert (turn.kind, turn.text) == (ItemKind.USER_MESSAGE, "hello")


@case("A7", "what a host says is a note in the history, with its origin")
def a_note_is_not_the_users_word(store: Harness) -> None:
    ref = store.key()
    post(store, ref, note("look"))
    turn = take(store, host(store))
    assert [(each.role, each.name) for each in turn.records] == [(Role.NOTE, "the host")]


@case("M14", "user messages in a row are one turn, in the order in which they came")
def user_messages_are_merged(store: Harness) -> None:
    ref, claim, turn = begun(store, "one", "two", "three")
    assert [item.id for item in turn.items] == ["one", "two", "three"]
    assert turn.text == "one\n\ntwo\n\nthree"
    assert store.words(ref) == ["one", "two", "three"]
    finish(store, claim, turn)
    assert {state_of(store, ref, each) for each in ("one", "two", "three")} == {ItemState.DONE}


@case("M14", "nothing but user messages is merged, and order is kept")
def others_are_not_merged(store: Harness) -> None:
    ref = store.key()
    post(store, ref, message("1"), message("2"), note("3"), note("4"), message("5"), RESET)
    post(store, ref, message("6"))
    claim = host(store)
    found = []
    for _ in range(4):
        turn = take(store, claim)
        found.append([item.id for item in turn.items])
        finish(store, claim, turn)
    assert found == [["1", "2"], ["3"], ["4"], ["5"]]
    reset = take(store, claim)
    assert (reset.kind, reset.records) == (ItemKind.RESET, ())
    finish(store, claim, reset, None)
    assert take(store, claim).text == "6"


@case("M14", "one turn takes so many messages, and so much text, and no more")
def a_turn_is_bounded(store: Harness) -> None:
    ref = spoken_to(store, *(f"message {number}" for number in range(MANY)))
    claim, left = host(store), MANY
    while left:
        turn = take(store, claim)
        assert 1 <= len(turn.items) < MANY
        left -= len(turn.items)
        finish(store, claim, turn)
    long = [message(letter * LONG, named=letter) for letter in "xyz"]
    post(store, ref, *long)
    first = take(store, claim)
    assert [item.id for item in first.items] == ["x"]
    assert len(first.text) == LONG


@case("A7 P11", "the words of an item that is done are gone from the inbox")
def a_done_item_has_no_words(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    finish(store, claim, turn)
    item = store.handle.agents.item(ref, "hello")
    assert item is not None
    assert (item.state, item.text) == (ItemState.DONE, "")


@case("P8", "what is done is known for a while, so that a retry finds it, and then dropped")
def done_items_are_dropped(store: Harness) -> None:
    ref = answered(store, "first")
    post(store, ref, message("second"))
    claim = host(store)
    finish(store, claim, take(store, claim))
    release(store, claim)
    assert state_of(store, ref, "first") is ItemState.DONE
    store.clock.advance(2 * 3600)
    post(store, ref, message("third"))
    claim = host(store)
    finish(store, claim, take(store, claim))
    release(store, claim)
    assert [state_of(store, ref, each) for each in ("first", "second", "third")] == [
        *(None, None),
        ItemState.DONE,
    ]


@case("A7", "a turn takes in its steps and its answer, and ends when its items are done")
def a_turn_from_message_to_answer(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    kept = step(store, claim, thinking("let me see", "step:1"))
    assert isinstance(kept, list)
    answer = finish(store, claim, turn, "good day")
    assert isinstance(answer, list)
    assert words([*kept, *answer]) == ["let me see", "good day"]
    assert store.everything(ref)[1:] == [*kept, *answer]
    assert store.handle.agents.find_record(ref, f"answer:{turn.id}") == answer[0]
    assert store.handle.agents.find_record(ref, "answer:another") is None
    taken = store.handle.agents.take(claim, NEVER, store.now(), store.new_id)
    assert taken == NoTurn()
    assert release(store, claim) == Released()
    assert store.handle.leases.claim("b", POLICY, store.now(), AGENT) == NothingDue(None)


@case("P5", "a step or an answer that is stored already is not stored again")
def a_step_is_stored_once(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    first = step(store, claim, thinking("let me see", "step:1"))
    assert step(store, claim, thinking("let me see", "step:1")) == first
    step(store, claim, saying("an answer", turn))
    finish(store, claim, turn)
    assert store.words(ref) == ["hello", "let me see", "an answer"]


@case("M6 M14", "what agents say counts towards the threshold as everything else does")
def turns_count_towards_the_threshold(store: Harness) -> None:
    ref = spoken_to(store, "hello")
    claim = host(store)
    once = MarkPolicy(threshold=1)
    turn = store.handle.agents.take(claim, once, store.now(), store.new_id)
    assert not isinstance(turn, NoTurn)
    assert store.current(ref).invalidated_at is None
    store.handle.agents.step(claim, [thinking("hm")], once, store.now(), store.new_id)
    assert store.current(ref).invalidated_at == 2


@case("M14", "an agent is known under every key it is spoken to, each with an inbox of its own")
def an_inbox_belongs_to_one_key(store: Harness) -> None:
    first = spoken_to(store, "one", key=KEY)
    second = spoken_to(store, "one", key="another")
    claim, other = host(store), host(store)
    assert {claim.key, other.key} == {str(first.key_id), str(second.key_id)}
    finish(store, claim, take(store, claim))
    assert sorted(str(state_of(store, ref, "one")) for ref in (first, second)) == ["done", "queued"]
    assert store.handle.agents.ref(claim) == first
    assert {each.ref.key for each in store.handle.agents.list(SPACE, 10)} == {KEY, "another"}
