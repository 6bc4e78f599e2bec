"""What was learned: facts with their sources, a summary, a secret kept out, a change of mind."""

from __future__ import annotations

from collections.abc import Iterator

import recollect
from recollect.demo.stage import (
    PASSWORD,
    SECONDS_BETWEEN_MESSAGES,
    Change,
    Stage,
    Step,
    ranges_in_words,
)
from recollect.knowledge import Fact

MOVED = "Plans have changed. I live in Porto now."


def play_learning(stage: Stage) -> Iterator[Step]:
    """Goes on from where the workers stopped, and shows what has become of the sessions."""
    yield _goes_on(stage)
    yield _again(stage)
    yield _facts(stage)
    yield _summary(stage)
    yield _secret(stage)
    yield _change_of_mind(stage)


def _goes_on(stage: Stage) -> Step:
    stage.clock.advance(SECONDS_BETWEEN_MESSAGES)
    session = stage.session("trip")
    said = session.append("user", MOVED, name="Ana")
    before = session.sleep()
    report = stage.memory.work()
    return Step(
        title="Work goes on where it stopped",
        story="Ana writes once more, and her session is marked again. All before was processed, by "
        "the compare-and-swap above. What recollect work does is no different: it reads what comes "
        "after the cursor, and nothing twice.",
        said=(said,),
        changes=(Change(before=before, after=session.state),),
        results=(
            f"work() -> processed {report.processed}, failed {report.failed}",
            f"the ranges of {session.key}: {ranges_in_words(stage.space, session.id)}",
        ),
    )


def _again(stage: Stage) -> Step:
    session = stage.session("trip")
    before = len(_learned(stage, session.id))
    requested = stage.memory.request_again(stage.space.name, session.id)
    report = stage.memory.work()
    after = len(_learned(stage, session.id))
    return Step(
        title="A new pass",
        story="Whoever cleared Ana's mark above kept what it learned to itself. A new pass goes "
        "through the session once more and replaces what was learned from it, in one step. With a "
        "model set, recollect work --again does that for everything the rules have read.",
        results=(
            f"request_again(…) -> {requested}; work() -> processed {report.processed}",
            f"facts from this session: {before} before, {after} now",
            f"the ranges of {session.key}: {ranges_in_words(stage.space, session.id)}",
        ),
    )


def _facts(stage: Stage) -> Step:
    return Step(
        title="What was learned",
        story="Facts, by rules, without any model: each with whose word it is, the session and the "
        "record it comes from, and the words themselves.",
        facts=tuple(_sorted(stage.space.facts.list())),
    )


def _summary(stage: Stage) -> Step:
    session = stage.session("trip")
    return Step(
        title="What a session came to",
        story="Every session has a summary and a memory in more detail, with the records that bear "
        "each line out. Consolidation makes documents of them, below.",
        extraction=stage.space.sessions.extraction(session.id),
    )


def _secret(stage: Stage) -> Step:
    facts = [fact for fact in stage.space.facts.list() if "[redacted:" in fact.content]
    everything = [text for fact in stage.space.facts.list(every=True) for text in _texts(fact)]
    for extraction in stage.space.sessions.extractions():
        everything += [extraction.raw_memory, extraction.rollout_summary]
    leaks = sum(PASSWORD in text for text in everything)
    said = [record for record in stage.session("review").all() if PASSWORD in record.content]
    return Step(
        title="A secret is not remembered",
        story="The coder was told an address with a password in it. The record stays as it was "
        "said; memory has a placeholder, the same for the same secret, which tells nothing else.",
        said=tuple(said),
        facts=tuple(facts),
        results=(f"facts, quotes, memories and summaries that hold the password: {leaks}",),
    )


def _change_of_mind(stage: Stage) -> Step:
    facts = stage.space.facts
    old = next(fact for fact in facts.list(every=True) if fact.superseded_by is not None)
    assert old.superseded_by is not None
    newer = facts.get(old.superseded_by)
    assert newer is not None
    then = facts.search("Ana lives moved", as_of=old.valid_from)
    return Step(
        title="A change of mind",
        story="Ana has moved again. The newer statement on the same topic supersedes the older "
        "one, which is not destroyed: it has a history, and what was believed then can be asked.",
        facts=(old, newer),
        history=tuple(facts.history(old.id)),
        results=(f"as of {old.valid_from:%H:%M:%S}: {then[0].content if then else 'nothing'}",),
    )


def _learned(stage: Stage, session_id: str) -> list[Fact]:
    return stage.space.facts.list(session=session_id, every=True)


def _sorted(facts: list[Fact]) -> list[Fact]:
    """In the order in which they were said."""
    return sorted(facts, key=lambda fact: (fact.valid_from or fact.created_at, fact.id))


def _texts(fact: recollect.Fact) -> list[str]:
    return [fact.content, *(source.quote for source in fact.sources)]
