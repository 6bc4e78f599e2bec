"""Short words for cases about what was learned: statements, drafts, and a run that records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from recollect.types.facts import (
    Draft,
    Extraction,
    Fact,
    FactEdit,
    FactEvent,
    FactQuery,
    Learned,
    NewFact,
    Revision,
    Source,
    Spent,
    Trust,
)
from recollect.types.records import (
    Claim,
    KeyRef,
    LeasePolicy,
    Outcome,
    Overtaken,
    Recorded,
    StaleClaim,
)
from recollect_conformance.harness import KEY, NEVER, SPACE, Harness

POLICY = LeasePolicy(lease_seconds=60, failures_max=3, takeovers_max=2, running_max=64)
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
RULES = "rules"
MEMORY, SUMMARY, SLUG = "- likes tea", "They talked about tea.", "tea"


def day(number: int) -> datetime:
    """Midnight, that many days after the harness's clock starts."""
    return FIRST_DAY + timedelta(days=number)


def statement(
    content: str,
    seq: int = 1,
    *,
    said: datetime = FIRST_DAY,
    trust: Trust = Trust.USER,
    topic: str | None = None,
    supersedes: Sequence[str] = (),
    valid_to: datetime | None = None,
    quote: str = "",
) -> NewFact:
    """A statement that an extractor has found in one record."""
    return NewFact(
        content=content,
        seq=seq,
        seq_to=seq,
        valid_from=said,
        trust=trust,
        topic=topic,
        supersedes=tuple(supersedes),
        valid_to=valid_to,
        quote=quote or f"« {content} »",
    )


def draft(*facts: NewFact, memory: str = MEMORY, summary: str = SUMMARY) -> Draft:
    slug = SLUG if memory or summary else None
    return Draft(upto=1, raw_memory=memory, rollout_summary=summary, rollout_slug=slug, facts=facts)


NOTHING = draft(memory="", summary="")


def lesson(
    made: Draft,
    *,
    is_whole: bool = False,
    pass_number: int = 1,
    extractor: str = RULES,
    review: str = "off",
) -> Learned:
    return Learned(
        draft=made,
        extractor=extractor,
        pass_number=pass_number,
        is_whole=is_whole,
        spent=Spent(calls=1, input_tokens=100, output_tokens=20, cost_micros=7),
        attempt=1,
        review=review,
    )


def claim(store: Harness, owner: str = "a") -> Claim:
    """The next job; there has to be one."""
    claimed = store.handle.leases.claim(owner, POLICY, store.now())
    assert isinstance(claimed, Claim), f"nothing could be claimed: {claimed}"
    return claimed


def record(
    store: Harness, claimed: Claim, learned: Learned | None, upto: int | None = None
) -> Recorded | Overtaken | StaleClaim:
    """Record what was learned up to a record, the last one of the claim if none is named."""
    empty = learned is None or learned.draft.is_empty
    return store.handle.leases.record(
        claimed,
        claimed.read_upto if upto is None else upto,
        Outcome.NO_OUTPUT if empty else Outcome.EXTRACTED,
        None,
        store.now(),
        learned,
        store.new_id,
    )


def due(store: Harness, key: str = KEY, *, space: str = SPACE) -> tuple[KeyRef, Claim]:
    """A key whose session has one more record, and the claim on its job."""
    ref = store.key(key, space=space)
    store.say(ref, store.text(), policy=NEVER)
    session = store.sleep(ref)
    claimed = claim(store)
    assert claimed.key == session.id, "another job was due before"
    return ref, claimed


def learn(store: Harness, learned: Learned, key: str = KEY, *, space: str = SPACE) -> str:
    """One more record in the key's session, and a run over it; the id of the session."""
    latest = max((fact.valid_from for fact in learned.draft.facts), default=store.now())
    if latest > store.now():  # it is learned when it has been said
        store.clock.advance((latest - store.now()).total_seconds())
    _, claimed = due(store, key, space=space)
    assert isinstance(record(store, claimed, learned), Recorded)
    return claimed.key


def teach(
    store: Harness,
    *facts: NewFact,
    key: str = KEY,
    space: str = SPACE,
    is_whole: bool = False,
    review: str = "off",
) -> str:
    """A run that finds these statements in a key's session; the id of the session."""
    return learn(store, lesson(draft(*facts), is_whole=is_whole, review=review), key, space=space)


def add(
    store: Harness,
    content: str,
    *,
    named: str = "",
    space: str = SPACE,
    metadata: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    sources: Sequence[Source] = (),
) -> Fact:
    """A fact that somebody adds."""
    fact = Fact(
        content, id=named, metadata=metadata or {}, tags=tuple(tags), sources=tuple(sources)
    )
    return store.handle.facts.add(space, fact, store.now(), store.new_id)


def edit(store: Harness, fact_id: str, *, space: str = SPACE, **changes: Any) -> Fact | None:
    """A fact that somebody changes."""
    return store.handle.facts.update(space, fact_id, FactEdit(**changes), store.now())


# looking at things


def facts(
    store: Harness, at: datetime | None = None, *, every: bool = False, space: str = SPACE
) -> list[Fact]:
    """The facts that hold, now if no time is named, in the order in which they were said."""
    query = FactQuery(at=at or day(365), every=every)
    found = store.handle.facts.list(space, query, 1000)
    assert found == sorted(found, key=_age, reverse=True), "newest first"
    return sorted(found, key=lambda fact: (fact.valid_from or FIRST_DAY, fact.content))


def _age(fact: Fact) -> tuple[datetime, str]:
    assert fact.created_at is not None, "a stored fact has its time"
    return fact.created_at, fact.id


def contents(store: Harness, at: datetime | None = None, *, space: str = SPACE) -> list[str]:
    return [fact.content for fact in facts(store, at, space=space)]


def only_fact(store: Harness) -> Fact:
    [fact] = facts(store)
    return fact


def fact_named(store: Harness, content: str, *, every: bool = True) -> Fact:
    [found] = [fact for fact in facts(store, every=every) if fact.content == content]
    return found


def sources_of(fact: Fact) -> list[tuple[str, int]]:
    return [(source.session_id, source.seq) for source in fact.sources]


def events(store: Harness, fact_id: str, *, space: str = SPACE) -> list[FactEvent]:
    return [change.event for change in store.handle.facts.history(space, fact_id)]


def extraction(store: Harness, session_id: str, *, space: str = SPACE) -> Extraction:
    found = store.handle.extractions.get(space, session_id)
    assert found is not None, "the session has no extraction"
    return found


def revision(store: Harness, *, space: str = SPACE) -> Revision:
    return store.handle.extractions.revision(space)
