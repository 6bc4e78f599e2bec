"""Generations: published in one fenced transaction, listed, restored, pruned.

Owns G4 (exactly the consumed states are marked), G5 (the watermark never goes back, and what comes
during a run leaves the space due) and the part of G9 that is rows. Whoever publishes holds the
space's memory first and then the job, as a change of memory does.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from datetime import datetime

from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.store.protocol import NewId
from recollect.store.relational import rows, selecting
from recollect.store.relational.database import (
    Asked,
    Connection,
    Database,
    Row,
    in_each_space,
    moment,
    scope,
)
from recollect.store.relational.document_edits import apply_edits
from recollect.store.relational.document_rows import note_purge, purge_deleted
from recollect.store.relational.indexing import erase_entries
from recollect.store.relational.jobs import make_due, note_change
from recollect.store.relational.text import storable
from recollect.types.generations import (
    ConsolidationState,
    Generation,
    GenerationDocument,
    GenerationDraft,
    Memo,
    Outdated,
    Published,
    RemovedBecause,
    Selection,
    SelectionPolicy,
    Standing,
)
from recollect.types.recall import EntryKind
from recollect.types.records import Claim, JobState, StaleClaim

NOTE_CHARS_MAX = 4000
_EVERY = 2**62


class RelationalGenerations:
    """Implements `recollect.store.protocol.GenerationStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def select(self, space: str, policy: SelectionPolicy, now: datetime) -> Selection:
        return self._database.read(space, lambda c: selecting.select(c, space, policy, now))

    def memos(self, space: str, session_ids: Sequence[str]) -> builtins.list[Memo]:
        return self._database.read(space, lambda c: selecting.memos(c, space, session_ids))

    def standings(
        self, space: str, session_ids: Sequence[str], now: datetime, limit: int
    ) -> builtins.list[Standing]:
        return self._database.read(
            space, lambda c: selecting.standings(c, space, session_ids, now, limit)
        )

    def publish(
        self, claim: Claim, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Published | Outdated | StaleClaim:
        assert draft.selection.space == claim.key, "a claim is on the space it names"

        def job(c: Connection) -> Published | Outdated | StaleClaim:
            c.run("lock_memory", {"space": claim.key})
            held = {"id": claim.job_id, "token": claim.token, "space": claim.key}
            if c.row("lock_consolidation", held) is None:
                c.run("drop_consolidation", {"space": claim.key})  # if the space was forgotten
                return StaleClaim()
            if _has_lost(c, draft.selection):
                make_due(c, "give_back", {**held, "due_at": None, "first_due_at": None})
                return Outdated()
            generation, completed = _put(c, draft, now, new_id)
            return Published(generation, is_due_again=_finish(c, claim.key, completed, now))

        published = self._database.write(claim.key, job)
        if isinstance(published, Published) and draft.selection.is_forgetting:
            self._database.scrub()
        return published

    def restore(
        self, space: str, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Generation:
        def job(c: Connection) -> Generation:
            c.run("lock_memory", {"space": space})
            generation, completed = _put(c, draft, now, new_id)
            assert generation is not None, "there is something to restore"
            _finish(c, space, completed, now)
            return generation

        return self._database.write(space, job)

    def amend(self, space: str, draft: GenerationDraft, now: datetime, new_id: NewId) -> bool:
        names = {"space": space, "number": draft.selection.generation}

        def job(c: Connection) -> bool:
            c.run("lock_memory", {"space": space})
            current = c.row("get_consolidation", {"space": space})
            if current is None or current[3] != draft.selection.generation:
                return False
            _put_documents(c, draft, draft.selection.generation, now, new_id)
            counted = c.row("count_generation", {"space": space})
            assert counted is not None
            how = {"made_by": storable(draft.made_by), "documents": counted[0]}
            c.run("amend_generation", {**names, **how})
            c.run("amend_digest", {"space": space, "digest": draft.digest})
            return True

        return self._database.write(space, job)

    def list(self, space: str, limit: int, before: int | None) -> builtins.list[Generation]:
        page = {"space": space, "before": _EVERY if before is None else before, "limit": limit}
        found = self._database.read(space, lambda c: c.rows("list_generations", page))
        return [_generation(row) for row in found]

    def get(self, space: str, number: int) -> Generation | None:
        names = {"space": space, "number": number}
        row = self._database.read(space, lambda c: c.row("get_generation", names))
        return None if row is None else _generation(row)

    def documents(self, space: str, number: int) -> builtins.list[GenerationDocument]:
        names = {"space": space, "number": number}
        found = self._database.read(space, lambda c: c.rows("documents_of_generation", names))
        return [
            GenerationDocument(document_id=row[0], version=row[1], session_id=row[2])
            for row in found
        ]

    def states(
        self, space: str | None, limit: int, after: str, now: datetime | None
    ) -> builtins.list[ConsolidationState]:
        page = {**scope(space), "after": after, "limit": limit, "now": _micros(now)}
        found = self._database.read(space, lambda c: c.rows("consolidation_states", page))
        return [_state(row) for row in found]

    def request(self, space: str, now: datetime | None) -> bool:
        names = {"space": space, "now": _micros(now)}

        def job(c: Connection) -> bool:
            c.run("lock_memory", {"space": space})
            if c.row("is_paused", {"space": space}) is not None:
                return False
            make_due(c, "request_consolidation", names)
            return True

        return self._database.write(space, job)

    def hurry(self, space: str | None) -> int:
        def hurried(c: Connection, each: str) -> bool:
            return bool(make_due(c, "hurry_consolidation", {"space": each}))

        listed: Asked = ("cooling_consolidations", {})
        return sum(in_each_space(self._database, space, listed, hurried).values())

    def pause(self, space: str, now: datetime | None) -> None:
        def job(c: Connection) -> None:
            c.run("lock_memory", {"space": space})
            c.run("pause_consolidation", {"space": space, "now": moment(c, now)})
            c.run("rest_consolidation", {"space": space})

        self._database.write(space, job)

    def resume(self, space: str, now: datetime | None) -> None:
        def job(c: Connection) -> None:
            c.run("lock_memory", {"space": space})
            row = c.row("resume_consolidation", {"space": space})
            if row is not None and row[0] > row[1]:
                make_due(c, "request_consolidation", {"space": space, "now": _micros(now)})

        self._database.write(space, job)

    def expire(self, now: datetime | None, space: str | None = None) -> builtins.list[str]:
        def expired(c: Connection, each: str) -> bool:
            at = {"now": moment(c, now), "space": each}
            if c.row("expire_selection", at) is None:
                return False
            make_due(c, "make_consolidation_due", {"space": each})
            return True

        listed = ("expired_selections", {"now": _micros(now)})
        done = in_each_space(self._database, space, listed, expired)
        return [each for each, is_expired in done.items() if is_expired]

    def note_edits(self, space: str, now: datetime) -> None:
        def job(c: Connection) -> None:
            c.run("lock_memory", {"space": space})
            note_change(c, space, now)

        self._database.write(space, job)

    def prune(self, older_than: datetime, limit: int) -> int:
        cutoff = to_micros(older_than)
        which = {"cutoff": cutoff, "limit": limit}
        found = self._database.read(None, lambda c: c.rows("prunable_memories", which))
        return sum(self._prune(row[0], row[1], older_than) for row in found)

    def _prune(self, space: str, session_id: str, older_than: datetime) -> int:
        names = {"space": space, "session_id": session_id}
        reason = {"reason": RemovedBecause.PRUNED.value, "now": to_micros(older_than)}

        def job(c: Connection) -> int:
            c.run("lock_memory", {"space": space})
            c.run("bury_memory", {**names, **reason})
            old = {**names, "cutoff": to_micros(older_than)}
            return len(erase_entries(c, EntryKind.SUMMARY, "prune_memory", old))

        return self._database.write(space, job)

    def files_published(self, space: str, generation: int) -> None:
        names = {"space": space, "generation": generation}
        self._database.write(space, lambda c: c.run("files_published", names))

    def without_files(self, limit: int, space: str | None = None) -> builtins.list[tuple[str, int]]:
        page = {**scope(space), "limit": limit}
        found = self._database.read(space, lambda c: c.rows("without_files", page))
        return [(row[0], row[1]) for row in found]


def _has_lost(c: Connection, selection: Selection) -> bool:
    """Whether something that was selected may not be remembered any more."""
    sessions = json.dumps([pick.session_id for pick in selection.picks])
    return c.row("lost_memories", {"space": selection.space, "sessions": sessions}) is not None


def _put(
    c: Connection, draft: GenerationDraft, now: datetime, new_id: NewId
) -> tuple[Generation | None, Row]:
    """Store a generation, none if it would be what the current one is; and the watermark."""
    selection = draft.selection
    space = selection.space
    row = c.row("get_consolidation", {"space": space})
    assert row is not None
    current = row[3]
    is_same = draft.digest == row[4] and not draft.changes.edits and not selection.removed
    number = current if is_same else current + 1
    if not is_same:
        changed = _put_documents(c, draft, number, now, new_id)
        reach("generation.documents")
        _mark(c, draft)
        _erase(c, draft, number)
        _insert(c, draft, number, changed, now)
        _prune(c, space, number - draft.kept)
        reach("generation.published")
    completed = c.row(
        "complete_consolidation",
        {
            "space": space,
            "revision": selection.revision,
            "generation": number,
            "digest": draft.digest,
            "is_new": not is_same,
            "not_before": to_micros(now) + round(draft.cooldown_seconds * 1_000_000),
            "expires_at": None if selection.expires_at is None else to_micros(selection.expires_at),
            "now": to_micros(now),
        },
    )
    assert completed is not None
    return None if is_same else _got(c, space, number), completed


def _put_documents(
    c: Connection, draft: GenerationDraft, number: int, now: datetime, new_id: NewId
) -> int:
    """Make the edits, and note which version of what the generation has; how many changed."""
    space = draft.selection.space
    sessions = {key: session_id for session_id, key in draft.summaries}
    made = apply_edits(c, space, draft.changes, now, new_id) if draft.changes.edits else []
    after = {document.id: document for document in made}
    changed = 0
    for document in after.values():
        names = {"space": space, "document_id": document.id, "generation": number}
        known = c.row("current_version", names)
        is_gone = document.deleted_at is not None
        if known is not None and not is_gone and known[0] == document.version:
            continue
        changed += 1
        closed = c.row("opened_document", names)
        if closed is None:
            closed = c.row("close_document", names)
        else:  # the generation is amended: nothing has what it said before
            gone = _erase_version(c, space, (document.id, closed[1], number))
            if gone:
                note_purge(c, space, gone)
        if is_gone:
            continue
        session_id = sessions.get(document.path, None if closed is None else closed[0])
        c.run(
            "open_document",
            {**names, "version": document.version, "session_id": session_id},
        )
    return changed


def _mark(c: Connection, draft: GenerationDraft) -> None:
    """Mark what was consumed, in the state in which it was; what is removed is not any more.

    In the order of ids, as those who count uses go through the same rows.
    """
    selection = draft.selection
    added = {pick.session_id: pick for pick in selection.added}
    selected = {pick.session_id for pick in selection.picks}
    removed = {each.session_id for each in selection.removed} - selected
    removed.update(draft.unconsumed)
    for session_id in sorted(removed | added.keys()):
        names = {"space": selection.space, "session_id": session_id}
        pick = added.get(session_id)
        if pick is None:
            c.run("deselect_memory", names)
            continue
        seen = to_micros(pick.source_updated_at)
        c.run("consume_memory", {**names, "revision": pick.revision, "source_updated_at": seen})


def _erase(c: Connection, draft: GenerationDraft, number: int) -> None:
    """Drop the tombstones that were seen; of what was forgotten, earlier versions go for good."""
    selection = draft.selection
    space = selection.space
    if selection.is_forgetting:
        gone = c.rows("forgettable_documents", {"space": space})
        versions = [_erase_version(c, space, row) for row in gone]
        c.run("spoil_generations", {"space": space, "number": number})
        # Also where every page stays: what it said before is in the index of words until then.
        note_purge(c, space, max(versions, default=0))
    for removed in selection.removed:
        names = {"space": space, "session_id": removed.session_id}
        c.run("drop_tombstone", {**names, "reason": removed.because.value})


def _erase_version(c: Connection, space: str, row: Row) -> int:
    """Remove a version that generations had, and a deleted document with its last one.

    The version up to which a document is gone; 0 where it stays.
    """
    document_id, version, first_generation = row
    names = {"space": space, "document_id": document_id}
    c.run("drop_generation_document", {**names, "first_generation": first_generation})
    c.row("erase_version", {"space": space, "id": document_id, "version": version})
    if c.row("has_generation_document", names) is None:
        return purge_deleted(c, space, document_id) or 0
    return 0


def _insert(
    c: Connection, draft: GenerationDraft, number: int, changed: int, now: datetime
) -> None:
    selection, spent = draft.selection, draft.spent
    counted = c.row("count_generation", {"space": selection.space})
    assert counted is not None
    c.run(
        "insert_generation",
        {
            "space": selection.space,
            "number": number,
            "now": to_micros(now),
            "made_by": storable(draft.made_by),
            "note": storable(draft.note[:NOTE_CHARS_MAX]),
            "added": len(selection.added),
            "retained": len(selection.retained),
            "removed": len(selection.removed),
            "documents": counted[0],
            "changed": changed,
            "calls": spent.calls,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "cost_micros": spent.cost_micros,
            "restored_from": draft.restored_from,
        },
    )


def _prune(c: Connection, space: str, upto: int) -> None:
    """Drop generations up to a number, and the versions that only they had."""
    if upto < 1:
        return
    c.run("prune_generations", {"space": space, "upto": upto})
    gone = c.rows("prunable_documents", {"space": space, "upto": upto})
    if version := max([_erase_version(c, space, row) for row in gone], default=0):
        note_purge(c, space, version)


def _finish(c: Connection, space: str, completed: Row, now: datetime) -> bool:
    """Let the job rest, or be due again where something changed meanwhile; whether it is."""
    changed, consolidated, urgent, paused_at, not_before = completed
    is_due = changed > consolidated and paused_at is None
    due_at = None if not is_due or urgent > consolidated else not_before
    names = {"space": space, "now": to_micros(now), "is_due": is_due, "due_at": due_at}
    make_due(c, "finish_consolidation", names)
    return is_due


def _got(c: Connection, space: str, number: int) -> Generation:
    row = c.row("get_generation", {"space": space, "number": number})
    assert row is not None
    return _generation(row)


def _generation(row: Row) -> Generation:
    return Generation(
        space=row[0],
        number=row[1],
        made_at=from_micros(row[2]),
        made_by=row[3],
        note=row[4],
        added=row[5],
        retained=row[6],
        removed=row[7],
        documents=row[8],
        changed=row[9],
        spent=rows.spent(row[10:14]),
        is_whole=bool(row[14]),
        restored_from=row[15],
    )


def _state(row: Row) -> ConsolidationState:
    return ConsolidationState(
        space=row[0],
        generation=row[1],
        changed=row[2],
        consolidated=row[3],
        changed_at=rows.moment(row[4]),
        finished_at=rows.moment(row[5]),
        paused_at=rows.moment(row[6]),
        expires_at=rows.moment(row[7]),
        job=JobState.IDLE if row[8] is None else JobState(row[8]),
        due_at=rows.moment(row[9]),
        failures=row[10] or 0,
        last_error=row[11],
        phase1_due=int(row[12]),
    )


def _micros(now: datetime | None) -> int | None:
    return None if now is None else to_micros(now)
