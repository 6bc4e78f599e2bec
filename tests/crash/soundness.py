"""What must be true of every store, whatever happened to the processes that wrote to it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import recollect
from recollect.types.records import MarkCause, Record, SessionState

THRESHOLD = 5  # the default: more unprocessed records than this mark a session
PAGE = 500


def assert_store_is_sound(
    memory: recollect.Memory,
    space: str,
    *,
    stored: Iterable[str] = (),
    absent: Iterable[str] = (),
    purged: bool = False,
) -> int:
    """Check every session of a space; returns how many records it holds.

    `stored` are contents that must be there and `absent` are such that must not; contents are
    unique, so nothing may be there twice. Only with `purged` may records below a cursor be gone.
    Whoever clears marks must clear them up to the mark, as everything here does.
    """
    sessions = all_sessions(memory, space)
    contents: Counter[str] = Counter()
    for session in sessions:
        records = all_records(memory, space, session)
        _assert_numbers_have_no_holes(memory, space, session, records, purged)
        _assert_cursor_and_mark_agree(session)
        _assert_the_mark_is_due(session)
        _assert_ranges_end_at_the_cursor(memory, space, session)
        contents.update(record.content for record in records)
    _assert_rotations_follow_each_other(sessions)
    _assert_lists_agree(memory, space, sessions)
    assert not [text for text, times in contents.items() if times > 1], "stored twice"
    assert not [text for text in stored if text not in contents], "acknowledged and lost"
    assert not [text for text in absent if text in contents], "never committed and there"
    return contents.total()


def all_sessions(memory: recollect.Memory, space: str) -> list[SessionState]:
    found: list[SessionState] = []
    page = memory.space(space).sessions.list(PAGE)
    while page:
        found += page
        page = memory.space(space).sessions.list(PAGE, before=page[-1])
    assert len({session.id for session in found}) == len(found)
    return found


def all_records(memory: recollect.Memory, space: str, session: SessionState) -> list[Record]:
    found: list[Record] = []
    page = memory.space(space).sessions.records(session.id, limit=PAGE)
    while page:
        found += page
        page = memory.space(space).sessions.records(session.id, after=page[-1].seq, limit=PAGE)
    return found


def _assert_numbers_have_no_holes(
    memory: recollect.Memory,
    space: str,
    session: SessionState,
    records: list[Record],
    purged: bool,
) -> None:
    seqs = [record.seq for record in records]
    gone = {
        seq
        for span in memory.space(space).sessions.ranges(session.id)
        if span.reason in ("purged", "forgotten")
        for seq in range(1, span.last_seq + 1)
    }
    assert purged or not gone, session
    expected = [seq for seq in range(1, session.last_seq + 1) if seq not in gone]
    assert seqs == expected, session
    assert memory.space(space).sessions.max_seq(session.id) == (seqs[-1] if seqs else None)
    assert memory.space(space).sessions.count_since(session.id, 0) == len(seqs)


def _assert_cursor_and_mark_agree(session: SessionState) -> None:
    """Invariant 2: the cursor does not pass the last record, a mark lies above the cursor."""
    cursor = session.processed_until
    assert cursor is None or 1 <= cursor <= session.last_seq, session
    mark = session.invalidated_at
    assert mark is None or (cursor or 0) < mark <= session.last_seq, session
    assert (mark is None) == (session.marked_at is None) == (session.marked_by is None), session


def _assert_the_mark_is_due(session: SessionState) -> None:
    """Marked when more than five records wait or the session has ended.

    Else only if it slept, or came back from a mode that forbade to learn.
    """
    if not session.remembered:
        assert session.invalidated_at is None, session
    elif session.unprocessed > THRESHOLD or (session.ended_at and session.unprocessed):
        assert session.invalidated_at == session.last_seq, session
    elif session.invalidated_at is not None:
        assert session.marked_by in (MarkCause.SLEEP, MarkCause.REQUEST), session
    if session.marked_by is MarkCause.THRESHOLD:
        assert session.unprocessed > THRESHOLD, session


def _assert_ranges_end_at_the_cursor(
    memory: recollect.Memory, space: str, session: SessionState
) -> None:
    """Invariant 3: every record below the cursor is in exactly one range, none above it is."""
    next_seq = 1
    for span in memory.space(space).sessions.ranges(session.id):
        assert span.first_seq == next_seq, (session, span)
        assert span.last_seq >= span.first_seq, (session, span)
        next_seq = span.last_seq + 1
    assert next_seq - 1 == (session.processed_until or 0), session


def _assert_rotations_follow_each_other(sessions: list[SessionState]) -> None:
    by_key: dict[tuple[str, str], list[SessionState]] = defaultdict(list)
    for session in sessions:
        by_key[session.key, session.agent_id].append(session)
    for rotations in by_key.values():
        rotations.sort(key=lambda session: session.rotation)
        assert [s.rotation for s in rotations] == list(range(1, len(rotations) + 1))
        assert all(session.ended_at is not None for session in rotations[:-1]), rotations


def _assert_lists_agree(memory: recollect.Memory, space: str, sessions: list[SessionState]) -> None:
    """What the marks' own lists and counts say is what the sessions say."""
    marked = {session.id for session in sessions if session.invalidated_at is not None}
    waiting = {s.id for s in sessions if s.remembered and s.unprocessed and s.id not in marked}
    status = memory.status(space)
    assert status.marked_count == len(marked)
    assert status.waiting_count == len(waiting)
    if len(marked) <= PAGE:
        found = memory.space(space).sessions.find_invalidated(PAGE)
        assert {session.id for session in found} == marked
