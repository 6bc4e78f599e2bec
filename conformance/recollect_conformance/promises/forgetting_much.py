"""Forgetting much at once: all sessions of an agent or a source, and a space with all it holds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from recollect.errors import NotFound
from recollect.messages import Role
from recollect.types.agents import Life, Signal
from recollect.types.facts import (
    CallOutcome,
    Caps,
    ForgettableSession,
    NewCall,
    Receipt,
    Reserved,
    SessionsMeant,
    Spent,
)
from recollect.types.imports import Arrival, Cursor
from recollect.types.recall import EntryKind
from recollect.types.records import (
    JobKind,
    KeyRef,
    NewRecord,
    NothingDue,
    SessionBirth,
    StaleClaim,
)
from recollect_conformance.case import case
from recollect_conformance.findings import entries, use, uses
from recollect_conformance.handbooks import (
    consolidate,
    demand,
    drafted,
    publish,
    remember,
    select,
    state,
)
from recollect_conformance.harness import AGENT, NEVER, SPACE, Harness
from recollect_conformance.inboxes import (
    agent,
    finish,
    handed_over,
    host,
    later,
    message,
    post,
    release,
    spoken_to,
    state_of,
    take,
    work,
)
from recollect_conformance.lessons import (
    POLICY,
    add,
    contents,
    draft,
    due,
    facts,
    lesson,
    only_fact,
    record,
    statement,
    teach,
)
from recollect_conformance.pages import apply, deleting, find, paths, write, writing

LOG = Cursor(source="logs", place="/logs/one.jsonl", offset=9, line=3, head="ab", head_bytes=9)
ALL = SessionsMeant()
CAPS = Caps(tokens_per_day=1000, calls_per_day=10)


def _begin(store: Harness, key: str, *, source: str = "api", agent: str = AGENT) -> str:
    """A session of so many records as its key has letters; its id."""
    ref = store.key(key, agent=agent, birth=SessionBirth(source=source))
    store.append(ref, len(key), policy=NEVER)
    store.clock.advance(1)
    return store.current(ref).id


def _listed(
    store: Harness,
    meant: SessionsMeant = ALL,
    *,
    space: str = SPACE,
    before: datetime | None = None,
    after: ForgettableSession | None = None,
    limit: int = 100,
) -> list[ForgettableSession]:
    by = before or store.now()
    return store.handle.erasure.forgettable(space, meant, by, after, limit)


def _ids(found: list[ForgettableSession]) -> list[str]:
    return [each.id for each in found]


def _forget_all(store: Harness, *, space: str = SPACE) -> Receipt:
    """A space, as whoever asks for it does it."""
    now, erasure = store.now(), store.handle.erasure
    listed = _listed(store, space=space)
    forgotten = erasure.forget_sessions(space, _ids(listed), now)
    erasure.forget_facts(space, now, now)
    return forgotten.plus(erasure.forget_space(space, now, now))


@case("P11", "the sessions of a source are found, or of an agent, or all, the oldest first")
def the_forgettable_are_found(store: Harness) -> None:
    one = _begin(store, "a", source="claude-code")
    two = _begin(store, "bb", agent="/user/bob")
    three = _begin(store, "ccc", source="claude-code", agent="/user/bob")
    assert _ids(_listed(store)) == [one, two, three]
    assert _ids(_listed(store, SessionsMeant(source="claude-code"))) == [one, three]
    assert _ids(_listed(store, SessionsMeant(agent_id="/user/bob"))) == [two, three]
    assert _listed(store, SessionsMeant(source="codex")) == []
    assert _listed(store, space="theirs") == []
    [first] = _listed(store, limit=1)
    assert _ids(_listed(store, after=first)) == [two, three]
    assert _ids(_listed(store, before=first.created_at)) == [one], "others came later"


@case("P11 P12", "sessions are forgotten one by one, and what was done is not done again")
def many_sessions_are_forgotten(store: Harness) -> None:
    _begin(store, "a", source="claude-code")
    teach(store, statement("likes tea"), key="bb")
    other = _begin(store, "ccc", source="codex")
    meant = SessionsMeant(source="claude-code")
    store.handle.erasure.forget_sessions(SPACE, _ids(_listed(store, meant)), store.now())
    assert [each.is_forgotten for each in _listed(store)] == [True, False, False]
    left = [each.id for each in _listed(store) if not each.is_forgotten and each.id != other]
    receipt = store.handle.erasure.forget_sessions(SPACE, [*left, "nobody"], store.now())
    assert (receipt.sessions, receipt.records, receipt.facts) == (1, 1, 1)
    assert (receipt.extractions, receipt.is_complete) == (1, True)
    assert store.words(store.key("ccc")) != []
    assert facts(store, every=True) == []


# an agent


def _asleep(store: Harness) -> Signal:
    return later(store, "remind", 60, "of a secret")


@case("P11 A5", "forgetting an agent takes its inbox, its signals and its life")
def an_agent_is_forgotten(store: Harness) -> None:
    ref = spoken_to(store, "hello")
    claim = host(store)
    finish(store, claim, take(store, claim))
    release(store, claim, _asleep(store))
    post(store, ref, message("a secret"))
    other = spoken_to(store, "hi", key="other", agent="/user/bob")
    assert store.handle.erasure.forget_agent(SPACE, AGENT, store.now()) == 2
    assert agent(store, ref).life is Life.DEAD
    assert (agent(store, ref).queued, agent(store, ref).signals) == (0, ())
    assert state_of(store, ref, "a secret") is None
    assert store.handle.agents.next_signal_at() is None
    assert store.handle.leases.claim("host", POLICY, store.now(), AGENT) == NothingDue(None)
    assert store.handle.agents.get(other) is not None
    post(store, ref, message("again"))
    assert take(store, host(store)).text == "again"


@case(
    "P11 P5 A5",
    "whoever works for an agent that is forgotten stores nothing; what came later is due",
)
def a_forgotten_agent_is_stopped(store: Harness) -> None:
    ref = spoken_to(store, "hello")
    claim = host(store)
    turn = take(store, claim)
    before = store.now()
    store.clock.advance(1)
    post(store, ref, message("later"))
    assert store.handle.erasure.forget_agent(SPACE, AGENT, before) == 1
    assert finish(store, claim, turn) == StaleClaim()
    assert take(store, host(store)).text == "later"


@case("P11 P9", "an agent of another space is left alone, and one that is not there is none")
def other_agents_are_left_alone(store: Harness) -> None:
    ref = spoken_to(store, "hello")
    assert store.handle.erasure.forget_agent("theirs", AGENT, store.now()) == 0
    assert store.handle.erasure.forget_agent(SPACE, "/user/nobody", store.now()) == 0
    assert store.handle.agents.get(ref) is not None


# everything


def _filled(store: Harness, space: str = SPACE) -> KeyRef:
    """A space that has something of every kind."""
    remember(store, "one", statement("likes tea"), memory="what one came to", space=space)
    ref = store.key("one", space=space)
    record_ = NewRecord(role=Role.USER, content="imported")
    store.handle.imports.adopt(
        ref, [Arrival("item", record_)], LOG, NEVER, store.now(), store.new_id
    )
    apply(store, writing("notes/a"), space=space)
    apply(store, writing("notes/b"), space=space)
    apply(store, deleting("notes/b"), space=space)
    add(store, "likes figs", named="mine", space=space)
    consolidate(store, space=space)
    return ref


@case("P11", "a space is forgotten with all it holds, and may begin anew")
def a_space_is_forgotten(store: Harness) -> None:
    ref = _filled(store)
    [entry] = entries(store, "figs", EntryKind.FACT)
    use(store, "turn", entry)
    store.clock.advance(1)
    receipt = _forget_all(store)
    assert (receipt.sessions, receipt.records, receipt.is_complete) == (1, 2, True)
    assert receipt.documents >= 5
    assert receipt.versions >= 6
    assert SPACE not in store.sessions.spaces("", 10)
    assert store.sessions.list(SPACE, 10, None) == []
    assert store.sessions.find_key(SPACE, "one", AGENT) is None
    assert facts(store, every=True) == []
    assert store.handle.facts.history(SPACE, "mine") == []
    assert store.handle.extractions.list(SPACE, 10, None) == []
    assert store.handle.generations.list(SPACE, 10, None) == []
    assert paths(store) == []
    assert uses(store, entry) == {}
    assert store.handle.imports.known(SPACE, "logs", ["item"]) == frozenset()
    assert store.handle.imports.cursor(SPACE, "logs", LOG.place) is None
    assert store.handle.leases.jobs(SPACE, 10) == []
    assert _gone(store, ref)
    remember(store, "one", statement("likes rye"), memory="what is new")
    assert contents(store) == ["likes rye"]
    assert consolidate(store).number == state(store).generation
    assert find(store, "memory/MEMORY") is not None


def _gone(store: Harness, ref: KeyRef) -> bool:
    """Whether whoever still holds a key is told that there is none."""
    try:
        store.append(ref)
    except NotFound:
        return True
    return False


@case("P11 P9", "whoever held a key of a forgotten space does not come to speak in another one")
def the_number_of_a_key_is_not_used_again(store: Harness) -> None:
    _begin(store, "a")
    ref = store.key("bb")
    _forget_all(store)
    new = [store.key(key) for key in ("ccc", "dddd", "eeeee")]
    assert all(each.key_id > ref.key_id for each in new)
    assert _gone(store, ref)
    assert [store.words(each) for each in new] == [[], [], []]


@case("P11 P9", "other spaces are left alone when one is forgotten")
def other_spaces_stay(store: Harness) -> None:
    ref = _filled(store, "theirs")
    before = [
        contents(store, space="theirs"),
        paths(store, space="theirs"),
        store.words(ref),
        store.handle.generations.list("theirs", 10, None),
        store.handle.imports.known("theirs", "logs", ["item"]),
    ]
    _filled(store)
    _forget_all(store)
    assert before == [
        contents(store, space="theirs"),
        paths(store, space="theirs"),
        store.words(ref),
        store.handle.generations.list("theirs", 10, None),
        store.handle.imports.known("theirs", "logs", ["item"]),
    ]
    assert store.sessions.spaces("", 10) == ["theirs"]


@case("P11 P12", "what comes while a space is being forgotten stays")
def what_comes_later_stays(store: Harness) -> None:
    _begin(store, "old")
    spoken_to(store, "a secret", key="old")
    add(store, "likes tea")
    now = store.now()
    store.clock.advance(1)
    new = _begin(store, "newer")
    add(store, "likes rye")
    apply(store, writing("a"))
    erasure = store.handle.erasure
    erasure.forget_sessions(SPACE, _ids(_listed(store, before=now)), now)
    erasure.forget_facts(SPACE, now, store.now())
    assert erasure.forget_space(SPACE, now, store.now()).items == 1
    assert _ids(_listed(store)) == [new]
    assert contents(store) == ["likes rye"]
    assert find(store, "a") is not None
    assert store.handle.extractions.revision(SPACE).is_due, "it was never consolidated"
    assert store.sessions.spaces("", 10) == [SPACE]
    assert store.handle.leases.claim("host", POLICY, store.now(), AGENT) == NothingDue(None)


@case("P11 P12", "all there is was there by the moment that is given, whoever's clock was ahead")
def the_moment_is_that_of_the_newest(store: Harness) -> None:
    erasure, now = store.handle.erasure, store.now()
    assert erasure.moment(SPACE, now) == now
    later: list[Callable[[], object]] = [
        lambda: _begin(store, "ahead"),
        lambda: add(store, "likes tea"),
        lambda: apply(store, writing("a")),
        lambda: spoken_to(store, "a secret", key="ahead"),
    ]
    for make in later:
        store.clock.advance(300)
        made_at = store.now()
        make()
        assert erasure.moment(SPACE, now) == made_at
        assert erasure.moment("theirs", now) == now
    assert erasure.moment(SPACE, store.now()) == store.now()


@case("P11 P12", "a key that stays for what came since can be spoken under, whatever was forgotten")
def a_key_that_stays_has_a_session(store: Harness) -> None:
    _begin(store, "old")
    ref = store.key("old")
    now = store.now()
    store.reset(ref)
    store.append(ref, policy=NEVER)
    kept = store.current(ref)
    store.reset(ref)
    store.append(ref, policy=NEVER)
    gone = [each.id for each in store.sessions.rotations(ref) if each.id != kept.id]
    store.handle.erasure.forget_sessions(SPACE, gone, store.now())
    store.handle.erasure.forget_space(SPACE, now, store.now())
    assert store.append(ref, policy=NEVER)[0].seq == 1
    assert store.key("old") == ref
    assert store.session(kept.id).last_seq == 1


@case("P11 P12 A5", "an agent that is told something while its space is forgotten has it to do")
def what_an_agent_is_told_meanwhile_stays(store: Harness) -> None:
    ref = spoken_to(store, "a secret")
    now = store.now()
    store.clock.advance(1)
    erasure = store.handle.erasure
    erasure.forget_sessions(SPACE, _ids(_listed(store, before=now)), now)
    post(store, ref, message("said since"))
    assert erasure.forget_space(SPACE, now, store.now()).items == 1
    claim = host(store)
    turn = take(store, claim)
    assert [item.text for item in turn.items] == ["said since"]
    assert finish(store, claim, turn) != StaleClaim()


@case("P11 P12", "whoever is stopped half-way goes on by asking again")
def forgetting_goes_on(store: Harness) -> None:
    _filled(store)
    memory_agent, _ = handed_over(store, key="told")
    take(store, work(store))
    told = store.current(memory_agent).id
    store.handle.erasure.forget_sessions(SPACE, [told], store.now())
    store.handle.erasure.forget_space(SPACE, store.now(), store.now())
    _forget_all(store)
    assert _forget_all(store).records == 0
    assert _listed(store) == []
    assert store.sessions.spaces("", 10) == []


@case("P11 P5", "whoever works in a space that is forgotten stores nothing")
def work_in_a_forgotten_space_is_stale(store: Harness) -> None:
    _, claimed = due(store)
    spoken = spoken_to(store, "hello", key="spoken", agent="/user/bob")
    claim = host(store, lane="/user/bob")
    turn = take(store, claim)
    _forget_all(store)
    assert record(store, claimed, lesson(draft(statement("likes tea")))) == StaleClaim()
    assert finish(store, claim, turn) == StaleClaim()
    assert store.handle.agents.get(spoken) is None
    assert facts(store, every=True) == []
    assert store.handle.leases.get(SPACE, JobKind.EXTRACT, claimed.key) is None
    assert store.handle.leases.get(SPACE, JobKind.AGENT, str(spoken.key_id)) is None


@case("P11 X11", "what a forgotten space has spent stays in the books, without a name")
def the_books_stay(store: Harness) -> None:
    session = teach(store, statement("likes tea"))
    call = NewCall(
        space=SPACE,
        session_id=session,
        purpose="distil",
        model="m",
        attempt=1,
        input_tokens=10,
        output_tokens=5,
    )
    reserved = store.handle.ledger.reserve(call, CAPS, store.now())
    assert isinstance(reserved, Reserved)
    spent = Spent(calls=1, input_tokens=7, output_tokens=3, cost_micros=4)
    store.handle.ledger.settle(SPACE, reserved.call_id, spent, CallOutcome.ANSWERED)
    nobody = store.handle.ledger.reserve(
        NewCall(
            space=SPACE,
            session_id="of no session",
            purpose="distil",
            model="m",
            attempt=1,
            input_tokens=1,
            output_tokens=1,
        ),
        CAPS,
        store.now(),
    )
    assert isinstance(nobody, Reserved)
    _forget_all(store)
    assert store.handle.ledger.spent(SPACE, store.now()).calls == 2
    calls = store.handle.ledger.calls(SPACE, None, 10, None)
    assert [each.session_id for each in calls] == [None, None]


@case("P11 G5", "nothing is left to consolidate in a forgotten space")
def a_forgotten_space_rests(store: Harness) -> None:
    _filled(store)
    store.handle.erasure.forget_fact(SPACE, "mine", store.now())
    assert only_fact(store).content == "likes tea"
    store.clock.advance(timedelta(days=1).total_seconds())
    _forget_all(store)
    assert not store.handle.extractions.revision(SPACE).is_due
    assert store.handle.leases.claim("a", POLICY, store.now()) == NothingDue(None)
    assert select(store).removed == ()
    assert store.handle.generations.without_files(10) == []


@case("P11 P9", "the name of a forgotten space is nowhere, and can be used again")
def a_forgotten_space_is_named_nowhere(store: Harness) -> None:
    remember(store, "one", statement("likes tea"))
    apply(store, writing("a"), writing("a", "again"))
    before = demand(store)
    made = drafted(store, select(store))
    receipt = _forget_all(store)
    assert receipt.name_in == ()
    assert store.handle.sessions.spaces("", 10) == []
    assert store.handle.generations.states(None, 10, "", None) == []
    assert {each.space for each in store.handle.leases.jobs(None, 10)} <= {""}
    remember(store, "one", statement("likes tea"))
    assert write(store, "a").version == 1
    assert demand(store, "b").key == before.key
    assert publish(store, before, made) == StaleClaim(), "it is another claim, whatever its number"
    _forget_all(store)
    assert publish(store, before, made) == StaleClaim()
    assert store.handle.generations.states(None, 10, "", None) == []


@case(
    "P11 G5", "what has come to a space since it was forgotten is consolidated from the beginning"
)
def what_came_since_is_consolidated(store: Harness) -> None:
    remember(store, "one", statement("likes tea"))
    consolidate(store)
    before = store.now()
    store.clock.advance(10)
    add(store, "likes coffee")
    erasure = store.handle.erasure
    erasure.forget_sessions(SPACE, _ids(_listed(store, before=before)), store.now())
    erasure.forget_facts(SPACE, before, store.now())
    erasure.forget_space(SPACE, before, store.now())
    assert contents(store) == ["likes coffee"]
    assert state(store).changed > state(store).consolidated
    assert store.handle.generations.without_files(10) == [], "the one before is gone"
