"""How sessions are marked: every cause in turn, on a clock that is turned by hand."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.demo.stage import IDLE_SECONDS, THRESHOLD, Change, Stage, Step
from recollect.errors import AppendKeyReused


def play_marks(stage: Stage) -> Iterator[Step]:
    """How sessions are marked, in order; each step has happened when it is told."""
    yield _threshold(stage)
    yield _reset(stage)
    yield _compaction(stage)
    yield _sleep(stage)
    yield _end(stage)
    yield _idle_sweep(stage)
    yield from _compare_and_swap(stage)
    yield _skip_rule(stage)
    yield _idempotent_append(stage)


def _threshold(stage: Stage) -> Step:
    said = stage.say("trip", 1, THRESHOLD)
    before = stage.session("trip").state
    said += stage.say("trip", THRESHOLD + 1, THRESHOLD + 1)
    return Step(
        title="Threshold",
        story="The assistant talks with Ana on Telegram. Five unprocessed records wait quietly; "
        "the sixth is more than the threshold and marks the session, in the same transaction.",
        said=said,
        changes=(Change(before=before, after=stage.session("trip").state),),
    )


def _reset(stage: Stage) -> Step:
    said = stage.say("gift")
    session = stage.session("gift")
    before = session.state
    new = session.reset("Ana started over")
    return Step(
        title="Reset",
        story="Three records are below the threshold. Then Ana starts over: the old session is "
        "marked and closed, and an empty one stands behind the same key.",
        said=said,
        changes=(Change(before=before, after=stage.state(before.id)),),
        results=(f"{session.key} is session {new.id} now, with {len(session)} records.",),
    )


def _compaction(stage: Stage) -> Step:
    said = stage.say("bug")
    session = stage.session("bug")
    before = session.state
    session.compact("test_two_writers is flaky: two writers may collide over a lock.", retain=3)
    kept = ", ".join(str(record.seq) for record in session.all())
    return Step(
        title="Compaction",
        story="The coder's context gets too long. The old session is marked; the new one starts "
        "with a summary and the newest turn, by reference, so that nothing is learned twice.",
        said=said,
        changes=(Change(before=before, after=stage.state(before.id)),),
        results=(f"summary: {session.summary}", f"retained from the old session: records {kept}"),
    )


def _sleep(stage: Stage) -> Step:
    said = stage.say("review")
    session = stage.session("review")
    before = session.state
    after = session.sleep()
    return Step(
        title="Sleep",
        story="The coder has nothing to do and falls asleep, which marks its session. The session "
        "stays open; the next message simply goes on.",
        said=said,
        changes=(Change(before=before, after=after),),
    )


def _end(stage: Stage) -> Step:
    said = stage.say("farewell")
    session = stage.session("farewell")
    before = session.state
    session.end()
    return Step(
        title="End",
        story="Ben says goodbye. Ending marks and closes the session; his next message will open a "
        "new one under the same key.",
        said=said,
        changes=(Change(before=before, after=stage.state(before.id)),),
    )


def _idle_sweep(stage: Stage) -> Step:
    said = stage.say("silence")
    before = stage.session("silence").state
    early = stage.memory.sweep_idle(stage.space.name)
    stage.clock.advance(IDLE_SECONDS + 1)
    late = stage.memory.sweep_idle(stage.space.name)
    return Step(
        title="Idle sweep",
        story="Mira's process dies before it could mark anything. The sweep finds every session "
        "that has unprocessed records and was left without a word for ten minutes.",
        said=said,
        changes=(Change(before=before, after=stage.session("silence").state),),
        results=(
            f"at once: {early} marked; ten minutes later, on a clock turned by hand: {late} marked",
        ),
    )


def _compare_and_swap(stage: Stage) -> Iterator[Step]:
    sessions = stage.space.sessions
    found = sessions.find_invalidated(limit=10)
    trip = stage.session("trip").state
    read = trip.invalidated_at or 0
    said = stage.say("trip", THRESHOLD + 2)
    is_cleared = sessions.mark_processed(trip.id, read, expected_invalidated_at=read)
    after = stage.session("trip").state
    yield Step(
        title="A message arrives in between",
        story=f"A worker asks find_invalidated and gets {len(found)} sessions. It reads Ana's up "
        f"to record {read}. While it works, Ana writes again, and the mark rises. The worker's "
        "compare-and-swap expects the old mark, so it changes nothing: nothing is lost.",
        said=said,
        changes=(Change(before=trip, after=after),),
        results=(f"mark_processed(…, {read}, expected_invalidated_at={read}) -> {is_cleared}",),
    )
    again = after.invalidated_at or 0
    fresh = len(sessions.records(trip.id))
    is_cleared = sessions.mark_processed(trip.id, again, expected_invalidated_at=again)
    yield Step(
        title="Read again, then clear",
        story=f"The worker reads again, all {fresh} records this time. Now the mark is the one it "
        "expects: the mark is cleared and the cursor moves, in one step.",
        changes=(Change(before=after, after=stage.session("trip").state),),
        results=(f"mark_processed(…, {again}, expected_invalidated_at={again}) -> {is_cleared}",),
    )


def _skip_rule(stage: Stage) -> Step:
    agent = {"type": "memory-agent", "id": "assistant"}
    session = stage.space.session("memory:assistant", agent=agent, source="demo")
    before = session.state
    session.append_many(
        [
            {"role": "assistant", "content": f"Wrote ~/memory/people/ana, line {n}."}
            for n in range(8)
        ]
    )
    session.sleep()
    stage.clock.advance(IDLE_SECONDS + 1)
    swept = stage.memory.sweep_idle(stage.space.name)
    return Step(
        title="The skip rule",
        story="A memory-agent works on memory itself. Eight records, a sleep and an idle sweep: "
        "its session is never marked, or memory would feed on itself.",
        changes=(Change(before=before, after=session.state),),
        results=(f"marked by the sweep: {swept}",),
    )


def _idempotent_append(stage: Stage) -> Step:
    session = stage.session("review")
    first = session.append("user", "Merge it.", key="update-1017")
    before = session.state
    second = session.append("user", "Merge it.", key="update-1017")
    try:
        session.append("user", "Do not merge it.", key="update-1017")
        refusal = "stored"
    except AppendKeyReused as error:
        refusal = type(error).__name__
    return Step(
        title="A retry stores once",
        story="The network is flaky and the same message is sent twice under one idempotency key. "
        "It is stored once; the same key with other words is an error, not a second message.",
        said=(first,),
        changes=(Change(before=before, after=session.state),),
        results=(
            f"first append: record {first.seq}; second append: record {second.seq}",
            f"other words under the same key: {refusal}",
        ),
    )
