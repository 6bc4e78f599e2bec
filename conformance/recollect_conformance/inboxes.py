"""Short words for cases about agents: something to do, somebody who does it, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from recollect.messages import Role
from recollect.store.protocol import Store
from recollect.types.agents import (
    IDLE,
    AgentState,
    Delivery,
    DocumentChanges,
    HandOver,
    Item,
    ItemKind,
    ItemState,
    LifePolicy,
    MoreWork,
    NewItem,
    Signal,
    Span,
    Turn,
)
from recollect.types.records import (
    BackedOff,
    Claim,
    JobKind,
    KeyRef,
    NewRecord,
    Outcome,
    Overtaken,
    Parked,
    Record,
    Recorded,
    Released,
    StaleClaim,
)
from recollect_conformance.harness import AGENT, KEY, NEVER, SPACE, Harness
from recollect_conformance.lessons import POLICY

CRON = "/cron/nightly"
MEMORY_AGENT = "/memory-agent/assistant"
MEMORY_KEY = "memory"
LIFE = LifePolicy(idle_seconds=60, poison_pill_seconds=3600, immortal_types=frozenset({"user"}))


# saying things


def message(text: str = "hello", *, named: str = "") -> NewItem:
    """What a person says; under the name of its words, if no other is given."""
    return NewItem(id=named or text, kind=ItemKind.USER_MESSAGE, text=text)


def note(text: str = "a note", *, named: str = "", about: Span | None = None) -> NewItem:
    """What a host says."""
    kind = ItemKind.SYSTEM_MESSAGE
    return NewItem(id=named or text, kind=kind, text=text, origin="the host", about=about)


RESET = NewItem(id="reset", kind=ItemKind.RESET)


def post(store: Harness, ref: KeyRef, *items: NewItem) -> list[Item]:
    return [store.handle.agents.post(ref, item, _job_of(ref), store.now()) for item in items]


def _job_of(ref: KeyRef) -> JobKind:
    return JobKind.MEMORY_AGENT if ref.agent_id.startswith("/memory-agent/") else JobKind.AGENT


def spoken_to(store: Harness, *texts: str, key: str = KEY, agent: str = AGENT) -> KeyRef:
    """An agent to whom somebody has said something."""
    ref = store.key(key, agent=agent)
    post(store, ref, *(message(text) for text in texts or ("hello",)))
    return ref


def state_of(store: Harness, ref: KeyRef, item_id: str) -> ItemState | None:
    """Where an item stands; none: it is not there."""
    item = store.handle.agents.item(ref, item_id)
    return None if item is None else item.state


# doing things


def host(store: Harness, owner: str = "host", *, lane: str | None = AGENT) -> Claim:
    """The claim on an agent that has something to do."""
    claimed = store.handle.leases.claim(owner, POLICY, store.now(), lane)
    assert isinstance(claimed, Claim), f"nothing could be claimed: {claimed}"
    return claimed


def work(store: Harness, owner: str = "worker") -> Claim:
    """The claim of a worker on what any of them can do."""
    return host(store, owner, lane="")


def take(store: Harness, claim: Claim) -> Turn:
    """The next turn; there has to be one."""
    turn = store.handle.agents.take(claim, NEVER, store.now(), store.new_id)
    assert isinstance(turn, Turn), f"no turn: {turn}"
    return turn


def begun(store: Harness, *texts: str, agent: str = AGENT) -> tuple[KeyRef, Claim, Turn]:
    """An agent at work on what somebody has said to it."""
    ref = spoken_to(store, *texts, agent=agent)
    claim = host(store, lane=agent)
    return ref, claim, take(store, claim)


def saying(text: str, turn: Turn) -> NewRecord:
    """The answer of a turn."""
    return NewRecord(role=Role.ASSISTANT, content=text, append_key=f"answer:{turn.id}")


def thinking(text: str, key: str | None = None) -> NewRecord:
    """What happens during a turn."""
    return NewRecord(role=Role.ASSISTANT, content=text, append_key=key)


def step(store: Harness, claim: Claim, *records: NewRecord) -> list[Record] | StaleClaim:
    return store.handle.agents.step(claim, records, NEVER, store.now(), store.new_id)


def finish(
    store: Harness,
    claim: Claim,
    turn: Turn,
    text: str | None = "an answer",
    documents: DocumentChanges | None = None,
) -> list[Record] | StaleClaim:
    records = [] if text is None else [saying(text, turn)]
    return store.handle.agents.finish(
        claim, turn, records, NEVER, store.now(), store.new_id, documents
    )


def fail(
    store: Harness, claim: Claim, turn: Turn | None, *, delay: float = 10, is_final: bool = False
) -> BackedOff | Parked | Released | StaleClaim:
    return store.handle.agents.fail(
        claim,
        None if turn is None else turn.id,
        "it broke",
        delay,
        POLICY,
        store.now(),
        is_final=is_final,
    )


def idle(store: Harness) -> Signal:
    return Signal(name=IDLE, due_at=store.now() + timedelta(seconds=LIFE.idle_seconds))


def release(store: Harness, claim: Claim, *signals: Signal) -> Released | MoreWork | StaleClaim:
    return store.handle.agents.release(claim, signals, store.now())


def answered(store: Harness, *texts: str, agent: str = AGENT, key: str = KEY) -> KeyRef:
    """An agent that has answered what was said to it, and rests."""
    ref = spoken_to(store, *texts, agent=agent, key=key)
    claim = host(store, lane=agent)
    finish(store, claim, take(store, claim))
    assert release(store, claim, idle(store)) == Released()
    return ref


# what comes later


def later(store: Harness, name: str, seconds: float, body: str = "") -> Signal:
    return Signal(name=name, due_at=store.now() + timedelta(seconds=seconds), body=body)


def deliver(store: Harness, handle: Store | None = None) -> list[Delivery]:
    """Deliver all that is due now."""
    agents = (handle or store.handle).agents
    due = agents.due_signals(store.now(), 100)
    return [agents.deliver(each, LIFE, store.now(), store.new_id) for each in due]


def pass_time(store: Harness, seconds: float) -> list[Delivery]:
    """Let so much time pass, and deliver what is due then."""
    store.clock.advance(seconds)
    return deliver(store)


def agent(store: Harness, ref: KeyRef) -> AgentState:
    """An agent that has to be there."""
    found = store.handle.agents.get(ref)
    assert found is not None, "there is no such agent"
    return found


# the memory-agent


def handing(claim: Claim, *, named: str = "", text: str = "", last: int | None = None) -> HandOver:
    """A word about the claimed session to the one memory-agent."""
    span = Span(session_id=claim.key, first=1, last=claim.read_upto if last is None else last)
    item = NewItem(
        id=named or f"{claim.key}:{span.last}",
        kind=ItemKind.SYSTEM_MESSAGE,
        text=text,
        origin=f"memory-worker:{claim.key}",
        about=span,
    )
    return HandOver(agent_id=MEMORY_AGENT, key=MEMORY_KEY, item=item)


def record_handing(
    store: Harness, claim: Claim, handed: HandOver, upto: int | None = None
) -> Recorded | Overtaken | StaleClaim:
    return store.handle.leases.record(
        claim,
        claim.read_upto if upto is None else upto,
        Outcome.HANDED_OVER,
        None,
        store.now(),
        None,
        store.new_id,
        handed,
    )


def claim_of(store: Harness, session_id: str) -> Claim:
    """The claim on a session's job, whatever else is due before it."""
    others = []
    while (claim := work(store)).key != session_id:
        others.append(claim)
    for other in others:
        store.handle.leases.release(other)
    return claim


def memory_agent(store: Harness, space: str = SPACE) -> KeyRef | None:
    return store.sessions.find_key(space, MEMORY_KEY, MEMORY_AGENT)


def handed_over(store: Harness, *, key: str = KEY, space: str = SPACE) -> tuple[KeyRef, str]:
    """The memory-agent that was handed a session, and that session."""
    ref = store.key(key, space=space)
    store.say(ref, store.text(), policy=NEVER)
    session = store.sleep(ref)
    claim = claim_of(store, session.id)
    assert record_handing(store, claim, handing(claim)) == Recorded(is_done=True)
    found = memory_agent(store, space)
    assert found is not None
    return found, session.id


def words(records: Sequence[Record]) -> list[str]:
    return [record.content for record in records]
