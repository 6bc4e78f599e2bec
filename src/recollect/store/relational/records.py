"""The history: appends that number, store and mark in one transaction, and ways to read it back."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Sequence
from datetime import datetime

from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.errors import AppendKeyReused
from recollect.ids import NewId
from recollect.messages import Role
from recollect.stemming import indexed_record
from recollect.store.relational import rows
from recollect.store.relational.database import Aggregate, Asked, Connection, Params, Row
from recollect.store.relational.indexing import erase_entries
from recollect.store.relational.jobs import mark_made, skip_unprocessed
from recollect.store.relational.sessions import (
    current_session,
    gone,
    locked_session,
    open_next_session,
)
from recollect.types.imports import digest
from recollect.types.recall import EntryKind
from recollect.types.records import (
    KeyRef,
    MarkCause,
    MarkPolicy,
    MarkUnit,
    NewRecord,
    Record,
    numbered_key,
)

SOURCE = "append-key"  # what they are noted under
INBOX = "inbox:"  # what an item of an inbox is appended under
_OF_TURNS = (INBOX, "answer:")  # an agent that is told something once more answers once more
NOWHERE = 0  # the seq of what was not stored again


def bury_keys(c: Connection, records: Params, now: datetime) -> None:
    """Note the keys of the records from `first` to `last` of a session, which are about to go."""
    found = {
        _digest(agent_id, key, append_key)
        for agent_id, key, append_key, is_hosted in c.rows("append_keys", records)
        if not (is_hosted and append_key.startswith(_OF_TURNS))
    }
    if found:
        named = {"space": records["space"], "source": SOURCE, "now": to_micros(now)}
        c.rows("note_imported", {**named, "items": json.dumps(sorted(found))})


def asking_for_buried(ref: KeyRef, keys: Collection[str]) -> Asked:
    """What asks which of these keys are of something that is gone."""
    items = json.dumps(sorted(_digest(ref.agent_id, ref.key, each) for each in keys))
    return "find_imported", {"space": ref.space, "source": SOURCE, "items": items}


def is_buried(ref: KeyRef, key: str, found: Collection[str]) -> bool:
    return _digest(ref.agent_id, ref.key, key) in found


def emptied_record(session_id: str, key: str, now: datetime) -> Record:
    """What is answered instead: the note that stands for what was forgotten, and stands nowhere."""
    at = from_micros(to_micros(now))
    return Record(
        session_id=session_id,
        seq=NOWHERE,
        role=Role.NOTE,
        content="",
        name=None,
        body=None,
        at=at,
        created_at=at,
        key=key,
        metadata={"forgotten": True},
    )


def _digest(agent_id: str, key: str, append_key: str) -> str:
    """By names, not numbers: those differ in a store that it is loaded into."""
    return digest(json.dumps([agent_id, key, append_key]))


_NO_LIMIT = 2**31 - 1


class _SessionOverError(Exception):
    """The key's session has ended; opening the next one takes a lock on the key.

    On PostgreSQL an update that comes too late keeps a lock on the session. Locking the key after
    that would invert the lock order, so this error ends the transaction instead.
    """


class Records(Aggregate):
    """The history of sessions."""

    def append(
        self,
        ref: KeyRef,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
        batch: str | None = None,
    ) -> list[Record]:
        """Append to the key's current session and mark it if the policy says so.

        A record whose append key is known already is not stored again; it comes back as it was
        stored, and AppendKeyReused is raised if it says something else. Of one that was forgotten
        an empty note with the seq 0 comes back, whatever is said. Records of a `batch` have its
        numbered keys, or keys of their own; AppendKeyReused: more or fewer came under it before.
        """
        index(records)  # before anybody has to wait for it

        def at_once(c: Connection) -> list[Record]:
            return _store(c, ref, records, policy, now, None) if records else []

        def with_the_key(c: Connection) -> list[Record]:
            return append_keyed(c, ref, records, policy, now, new_id, batch=batch)

        if batch is None and all(record.append_key is None for record in records):
            with contextlib.suppress(_SessionOverError):
                return self._database.write(ref.space, at_once)
        return self._database.write(ref.space, with_the_key)

    def recent(self, ref: KeyRef, limit: int | None) -> list[Record]:
        """The newest records of the current session (all for None), oldest first."""
        found = self._database.ask(ref.space, _recent(ref, limit))
        return _in_order(ref, found, limit)

    def recent_with_summary(self, ref: KeyRef, limit: int) -> tuple[list[Record], str]:
        """The same, with the summary of what came before: what an agent's turn begins with."""
        asked = [*_recent(ref, limit), ("current_summary", _names(ref))]
        *found, summary = self._database.ask(ref.space, asked)
        return _in_order(ref, found, limit), str(summary[0][0]) if summary else ""

    def after(self, space: str, session_id: str, seq: int, limit: int) -> list[Record]:
        """Records of one session above a seq, in order."""
        page = {"space": space, "id": session_id, "after": seq, "limit": limit}
        return self._page(rows.record, space, "records_after", page)

    def all_rotations(self, ref: KeyRef) -> list[Record]:
        """Everything said under a key, in order."""
        names = {"space": ref.space, "key_id": ref.key_id}
        return self._page(rows.record, ref.space, "key_records", names)

    def count(self, ref: KeyRef) -> int:
        def job(c: Connection) -> int:
            row = c.row("count_records", _current(c, ref))
            assert row is not None
            return int(row[0])

        return self._database.read(ref.space, job)

    def trim(self, ref: KeyRef, keep: int) -> None:
        """Drop all but the newest records of the current session: for what is not kept."""

        def job(c: Connection) -> None:
            names = _current(c, ref)
            row = c.row("max_seq", names)
            if row is not None and row[0] is not None and row[0] > keep:
                upto = {**names, "upto": row[0] - keep}
                erase_entries(c, EntryKind.RECORD, "delete_records", upto)

        self._database.write(ref.space, job)

    def purge(self, ref: KeyRef, now: datetime) -> None:
        """Remove the current session's history and summary; seq goes on, no mark is left."""

        def job(c: Connection) -> None:
            session = locked_session(c, ref)
            names = {"space": ref.space, "id": session.id}
            skip_unprocessed(c, ref.space, session.id, "purged", now)
            every = {**names, "upto": _NO_LIMIT}
            erase_entries(c, EntryKind.RECORD, "delete_records", every)
            reach("purge.deleted")
            c.run("delete_retained", names)
            c.run("delete_summary", names)

        self._database.erase(ref.space, job)

    def summary(self, ref: KeyRef) -> str:
        names = _names(ref)
        asked = [("current_session", names), ("current_summary", names)]
        session, summary = self._database.ask(ref.space, asked)
        if not session:
            raise gone(ref)
        return str(summary[0][0]) if summary else ""

    def set_summary(self, ref: KeyRef, content: str, now: datetime) -> None:
        def job(c: Connection) -> None:
            session = locked_session(c, ref)
            names = {"space": ref.space, "id": session.id, "now": to_micros(now)}
            c.run("set_summary", {**names, "content": content})

        self._database.write(ref.space, job)


def append_keyed(
    c: Connection,
    ref: KeyRef,
    records: Sequence[NewRecord],
    policy: MarkPolicy,
    now: datetime,
    new_id: NewId,
    found: Sequence[Sequence[Row]] | None = None,
    batch: str | None = None,
) -> list[Record]:
    """Append inside a transaction; what is stored already under its key comes back as it is.

    Of what was forgotten under its key nothing is stored, and an empty note comes back. `found` is
    the answer to `asking_for`, of who has asked already.
    """
    index(records)
    found = found or c.rows_each(asking_for(ref, records, batch))
    known = _known(ref, _keys(records, batch), now, found)
    if batch is not None:
        _check_length(records, batch, known)
    fresh = _first_uses(records, known)
    stored = iter(_store(c, ref, fresh, policy, now, new_id) if fresh else ())
    taken: dict[str, Record] = dict(known)
    result = []
    for record in records:
        key = record.append_key
        if key is None:
            result.append(next(stored))
            continue
        if key not in taken:
            taken[key] = next(stored)
        result.append(_same(taken[key], record))
    return result


def index(records: Sequence[NewRecord]) -> None:
    """Fill in by which words records are found."""
    for record in records:
        record.words = record.words or indexed_record(record.content)


def _names(ref: KeyRef) -> dict[str, object]:
    return {"space": ref.space, "key_id": ref.key_id}


def _current(c: Connection, ref: KeyRef) -> dict[str, object]:
    row = c.row("current_session", _names(ref))
    if row is None:
        raise gone(ref)
    return {"space": ref.space, "id": row[0]}


def _recent(ref: KeyRef, limit: int | None) -> list[Asked]:
    """What tells the newest records of a key's session: its own, and those it goes on from."""
    names = _names(ref)
    page = {**names, "limit": _NO_LIMIT if limit is None else limit}
    return [("current_session", names), ("current_records", page), ("current_retained", page)]


def _in_order(ref: KeyRef, found: Sequence[Sequence[Row]], limit: int | None) -> list[Record]:
    session, newest, retained = found
    if not session:
        raise gone(ref)
    return [rows.record(row) for row in reversed([*newest, *retained][:limit])]


def asking_for(ref: KeyRef, records: Sequence[NewRecord], batch: str | None = None) -> list[Asked]:
    """What tells what is there under the append keys of these; the key is held from then on."""
    keys = _keys(records, batch)
    names = _names(ref)
    asked: list[Asked] = [("find_append_key", {**names, "append_key": key}) for key in keys]
    return [("lock_key", names), *asked, *([asking_for_buried(ref, keys)] if keys else [])]


def _keys(records: Sequence[NewRecord], batch: str | None) -> list[str]:
    """The append keys of these, and of what a longer batch would go on with."""
    keys = {record.append_key for record in records if record.append_key is not None}
    return sorted(keys if batch is None else {*keys, numbered_key(batch, len(records))})


def _known(
    ref: KeyRef, keys: Sequence[str], now: datetime, told: Sequence[Sequence[Row]]
) -> dict[str, Record]:
    """What is there under append keys: records, or notes for what is gone."""
    current, *found = told
    if not current:
        raise gone(ref)
    if not keys:
        return {}
    buried = {row[0] for row in found.pop()}
    known = {
        key: emptied_record(current[0][0], key, now) for key in keys if is_buried(ref, key, buried)
    }
    stored = {key: rows.record(of[0]) for key, of in zip(keys, found, strict=True) if of}
    return known | stored


def _check_length(records: Sequence[NewRecord], batch: str, known: dict[str, Record]) -> None:
    """A batch that came before has nothing after its end, and nothing new after its beginning."""
    is_other = numbered_key(batch, len(records)) in known
    has_begun = False
    for number, record in enumerate(records):
        is_known = record.append_key in known
        is_other |= has_begun and not is_known
        has_begun |= is_known and record.append_key == numbered_key(batch, number)
    if is_other:
        raise AppendKeyReused(
            f"the append key {batch!r} was used for more records or for fewer; "
            "use a new key for new messages"
        )


def _first_uses(records: Sequence[NewRecord], known: dict[str, Record]) -> list[NewRecord]:
    """Those that are to be stored: unknown keys, each once, and records without a key."""
    fresh, seen = [], set(known)
    for record in records:
        if record.append_key is None:
            fresh.append(record)
        elif record.append_key not in seen:
            seen.add(record.append_key)
            fresh.append(record)
    return fresh


def _same(stored: Record, given: NewRecord) -> Record:
    if stored.seq == NOWHERE:
        return stored  # nobody knows any more what it said
    metadata = {} if given.metadata is None else json.loads(given.metadata)
    if (stored.role, stored.name, stored.body, stored.metadata) != (
        given.role,
        given.name,
        given.body,
        metadata,
    ) or (given.body is None and stored.content != given.content):
        raise AppendKeyReused(
            f"the append key {given.append_key!r} was used for other content "
            f"(record {stored.seq} of session {stored.session_id}); use a new key for a new message"
        )
    return stored


def _store(
    c: Connection,
    ref: KeyRef,
    records: Sequence[NewRecord],
    policy: MarkPolicy,
    now: datetime,
    new_id: NewId | None,
) -> list[Record]:
    at = to_micros(now)
    session_id, last_seq, marked_at = _sequence(c, ref, records, policy, now, new_id)
    reach("append.sequenced")
    first = last_seq - len(records) + 1
    if len(records) == 1:
        c.run("insert_record", _row(ref, session_id, first, records[0], at))
    else:
        c.run_many(
            "insert_record",
            [_row(ref, session_id, seq, record, at) for seq, record in enumerate(records, first)],
        )
    reach("append.inserted")
    if marked_at is not None:
        mark_made(c, {"space": ref.space, "id": session_id, "marked_at": marked_at})
    now = from_micros(at)
    return [_stored(session_id, seq, record, now) for seq, record in enumerate(records, first)]


def _sequence(
    c: Connection,
    ref: KeyRef,
    records: Sequence[NewRecord],
    policy: MarkPolicy,
    now: datetime,
    new_id: NewId | None,
) -> tuple[str, int, int | None]:
    """Take the next numbers of the key's current session, opening a new one if it has ended.

    The session, its last record, and since when it is marked, if its mark was raised.
    `new_id` is for who holds the key; for others it is over with the session.
    """
    numbers = {
        "space": ref.space,
        "key_id": ref.key_id,
        "count": len(records),
        "turns": sum(record.role is Role.USER for record in records),
        "now": to_micros(now),
        "by_turns": policy.unit is MarkUnit.TURNS,
        "threshold": policy.threshold,
    }
    row = c.row("sequence_records", numbers)
    if row is None:
        if new_id is None:
            raise _SessionOverError
        session = current_session(c, ref)
        if session.ended_at is not None:
            open_next_session(c, ref, session, session.ended_by or MarkCause.END, now, new_id)
        row = c.row("sequence_records", numbers)
        assert row is not None, "the key is held and its session is open"
    return row[0], row[1], row[2]


def _row(ref: KeyRef, session_id: str, seq: int, record: NewRecord, at: int) -> Params:
    return {
        "space": ref.space,
        "session_id": session_id,
        "seq": seq,
        "key_id": ref.key_id,
        "role": record.role.value,
        "name": record.name,
        "content": record.content,
        "body": record.body,
        "append_key": record.append_key,
        "said_at": at if record.said_at is None else to_micros(record.said_at),
        "now": at,
        "metadata": record.metadata,
        "words": record.words,
    }


def _stored(session_id: str, seq: int, record: NewRecord, now: datetime) -> Record:
    """What a reader would see, without reading it back."""
    return Record(
        session_id=session_id,
        seq=seq,
        role=record.role,
        content=rows.said(record.content, record.body),
        name=record.name,
        body=record.body,
        at=record.said_at or now,
        created_at=now,
        key=record.append_key,
        metadata={} if record.metadata is None else json.loads(record.metadata),
    )
