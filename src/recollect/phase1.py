"""Phase 1 of a claimed session: sends its pieces to a processor and records the results.

Owns P3 for the worker: a piece is recorded with its cursor, or not at all. A new pass over a whole
session replaces what was learned in one step, at its end; until then its results are staged, so
that no piece is paid for twice.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from recollect.descriptors import cache_key, from_cache_key, memory_agent_of
from recollect.errors import OutcomeUnknown, PermanentFailure, StoreError
from recollect.leases import Leaseholder
from recollect.observing.log_text import loggable
from recollect.processing import Processor, Verdict, Work, WorkReport
from recollect.types.agents import HandOver, ItemKind, NewItem, Span
from recollect.types.facts import Draft, Extraction, Learned, Spent, Staged
from recollect.types.records import (
    Behind,
    Claim,
    LoadedWork,
    Mode,
    Outcome,
    Overtaken,
    Record,
    Recorded,
    SessionState,
    StaleClaim,
)

_log = logging.getLogger(__name__)

T = TypeVar("T")

PIECE_RECORDS = 200  # records handed to a processor at once; each piece is recorded by itself
PIECE_CHARS = 400_000  # and their text, of which one record may have more
MEMORY_KEY = "memory"  # under which memory-agents have their sessions
# Seconds, before a record is tried again.
STORE_PAUSES: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A claim on a session, and who works on it with what."""

    holder: Leaseholder
    processor: Processor
    claim: Claim
    lost: threading.Event
    now: datetime

    def load(self, after: int | None) -> LoadedWork:
        loaded = self.holder.load(self.claim, after, PIECE_RECORDS)
        if loaded is None:
            raise PermanentFailure(f"session {self.claim.key} does not exist")
        records = _within(loaded.records, PIECE_CHARS)
        is_rest = len(records) == len(loaded.records) < PIECE_RECORDS
        return dataclasses.replace(loaded, records=records, is_rest=is_rest)

    def judge(self, loaded: LoadedWork, previous: Extraction | None) -> Verdict:
        if not loaded.session.remembered:
            return Verdict(outcome=Outcome.SKIPPED, reason=_why_skipped(loaded.session))
        if not loaded.records:
            return Verdict(outcome=Outcome.SKIPPED, reason="no records")
        work = Work(
            claim=self.claim,
            session=loaded.session,
            records=loaded.records,
            is_lost=self.lost.is_set,
            previous=previous,
            before=loaded.before,
        )
        return self.processor.process(work)

    def reached(self, loaded: LoadedWork, verdict: Verdict) -> int:
        """How far a verdict goes: to the record it names, else to the end of its piece."""
        records = loaded.records
        if not loaded.session.remembered or not records:
            return self.claim.read_upto
        upto = records[-1].seq if verdict.upto is None else verdict.upto
        assert records[0].seq <= upto <= records[-1].seq, "a verdict about other records"
        is_end = loaded.is_rest and upto == records[-1].seq  # what came after it is gone
        return self.claim.read_upto if is_end else upto

    def learned(self, loaded: LoadedWork, verdict: Verdict, *, is_whole: bool) -> Learned | None:
        if verdict.draft is None or not loaded.session.remembered:
            return None
        return Learned(
            draft=verdict.draft,
            extractor=verdict.extractor,
            pass_number=loaded.session.pass_number,
            is_whole=is_whole,
            spent=verdict.spent,
            attempt=self.claim.attempt,
            review=self.holder.policy.review,
        )

    def handed(
        self, loaded: LoadedWork, verdict: Verdict, first: int, last: int
    ) -> HandOver | None:
        """The word to the memory-agent about the records that were read, if it is to have one."""
        hands_over = getattr(self.processor, "hands_over", None)
        if hands_over is None or not loaded.session.remembered or first > last:
            return None
        return hand_over(loaded.session, self.claim, first, last) if hands_over(verdict) else None

    def kept(self, store: Callable[[], T]) -> T:
        """Store what was paid for: a bad moment of the store is waited out while the claim lives.

        Not when the outcome is unknown: the next one to look finds out.
        """
        for pause in STORE_PAUSES:
            try:
                return store()
            except OutcomeUnknown:
                raise
            except StoreError as error:
                if not error.retry_helps:
                    raise
                _log.warning(
                    "session %s: trying again to record: %s", self.claim.key, loggable(error)
                )
            if self.lost.wait(pause):
                break
        return store()

    def stale(self) -> WorkReport:
        _log.info("session %s: another worker has it now; result discarded", self.claim.key)
        return WorkReport(stale=1)

    def done(self, first: int, outcome: Outcome) -> None:
        key, upto = self.claim.key, self.claim.read_upto
        _log.info("session %s: records %d to %d %s", key, first, upto, outcome)


def extract_new(run: Run) -> WorkReport:
    """Go through what is new, piece by piece, each recorded with its cursor under one token."""
    report = WorkReport()
    first: int | None = None
    while True:
        loaded = run.load(None)
        cursor = loaded.session.processed_until or 0
        first = cursor + 1 if first is None else first
        verdict = run.judge(loaded, loaded.extraction)
        upto = run.reached(loaded, verdict)
        if run.lost.is_set():
            return WorkReport(stale=1)
        is_whole = cursor == 0 and upto == run.claim.read_upto
        learned = run.learned(loaded, verdict, is_whole=is_whole)
        outcome, reason = verdict.outcome, verdict.reason
        handed = run.handed(loaded, verdict, cursor + 1, upto)
        recorded = run.kept(
            partial(run.holder.record, run.claim, upto, outcome, reason, learned, handed)
        )
        if isinstance(recorded, StaleClaim):
            return run.stale()
        if isinstance(recorded, Overtaken):  # a new pass came in between: on its ground, then
            continue
        report.records += upto - cursor
        if upto == run.claim.read_upto:
            report.processed = 1
            run.done(first, outcome)
            return report


def extract_whole(run: Run, *, again: bool = False) -> WorkReport:
    """Go through all of a session, and replace what was learned.

    That is for the sake of what is new, or again: a new pass, until the end of which the results of
    the old one stand.
    """
    so_far: Verdict | None = None
    while True:
        loaded, verdict = _all_pieces(run, next_pass=again, so_far=so_far)
        if run.lost.is_set():
            return WorkReport(stale=1)
        learned, claim, upto = (
            run.learned(loaded, verdict, is_whole=True),
            run.claim,
            run.claim.read_upto,
        )
        handed = run.handed(loaded, verdict, 1, upto)
        recorded: Recorded | Overtaken | Behind | StaleClaim
        if again:
            learned = learned and dataclasses.replace(learned, pass_number=learned.pass_number + 1)
            recorded = run.kept(partial(run.holder.record_pass, claim, upto, learned, handed))
        else:
            outcome, reason = verdict.outcome, verdict.reason
            recorded = run.kept(
                partial(run.holder.record, claim, upto, outcome, reason, learned, handed)
            )
        match recorded:
            case StaleClaim():
                return run.stale()
            case Overtaken():
                continue
            case Behind():  # the session has grown and was processed meanwhile: on from there
                so_far = verdict
                claim = dataclasses.replace(claim, read_upto=recorded.processed_until)
                run = dataclasses.replace(run, claim=claim)
            case _:
                cursor = 0 if again else loaded.session.processed_until or 0
                run.done(cursor + 1, verdict.outcome)
                return WorkReport(processed=1, records=upto - cursor)


def _all_pieces(
    run: Run, *, next_pass: bool, so_far: Verdict | None = None
) -> tuple[LoadedWork, Verdict]:
    """One verdict on all pieces of a session: the texts of the last, the facts of all."""
    loaded = run.load(0)
    whole = so_far or _resumed(run, loaded, next_pass)
    after = 0 if whole is None or whole.upto is None else whole.upto
    if after:
        loaded = run.load(after)
    while True:
        if whole is not None and not loaded.records:
            return loaded, whole
        verdict = run.judge(loaded, _as_previous(loaded, whole))
        after = run.reached(loaded, verdict)
        whole = verdict if whole is None else _joined(whole, verdict)
        whole = dataclasses.replace(whole, upto=after)
        if after >= run.claim.read_upto or run.lost.is_set():
            return loaded, whole
        _stage(run, loaded, whole, next_pass=next_pass)
        loaded = run.load(after)


def _resumed(run: Run, loaded: LoadedWork, next_pass: bool) -> Verdict | None:
    """What an earlier run had got to, if it was on the same ground and with the same extractor."""
    staged = loaded.staged
    if staged is None or staged.extractor != getattr(run.processor, "name", None):
        return None
    if staged.pass_number != loaded.session.pass_number + next_pass:
        return None
    return Verdict(
        outcome=Outcome.NO_OUTPUT if staged.draft.is_empty else Outcome.EXTRACTED,
        upto=staged.upto,
        draft=staged.draft,
        extractor=staged.extractor,
        spent=staged.spent,
    )


def _stage(run: Run, loaded: LoadedWork, whole: Verdict, *, next_pass: bool) -> None:
    if whole.draft is None or whole.upto is None:
        return
    staged = Staged(
        pass_number=loaded.session.pass_number + next_pass,
        upto=whole.upto,
        extractor=whole.extractor,
        draft=whole.draft,
        spent=whole.spent,
    )
    if isinstance(run.kept(partial(run.holder.stage, run.claim, staged)), StaleClaim):
        run.lost.set()


def _joined(whole: Verdict, next_one: Verdict) -> Verdict:
    spent: Spent = whole.spent.plus(next_one.spent)
    if next_one.draft is None or next_one.draft.is_empty:
        return dataclasses.replace(whole, spent=spent)
    before = whole.draft or Draft(upto=0)
    draft = dataclasses.replace(
        next_one.draft,
        facts=(*before.facts, *next_one.draft.facts),
        faults=before.faults.plus(next_one.draft.faults),
    )
    return dataclasses.replace(next_one, draft=draft, spent=spent)


def _as_previous(loaded: LoadedWork, whole: Verdict | None) -> Extraction | None:
    """What the pieces before came to, in the shape of what would have been stored."""
    draft: Draft | None = None if whole is None else whole.draft
    if whole is None or draft is None or draft.is_empty:
        # What was learned from records that are gone cannot be learned again.
        return loaded.extraction if loaded.has_lost_records else None
    said = loaded.before[-1].at if loaded.before else loaded.session.created_at
    return Extraction(
        session_id=loaded.session.id,
        space=loaded.session.space,
        raw_memory=draft.raw_memory,
        rollout_summary=draft.rollout_summary,
        rollout_slug=draft.rollout_slug,
        extractor=whole.extractor,
        pass_number=loaded.session.pass_number,
        upto=draft.upto,
        source_updated_at=said,
        generated_at=said,
        usage_count=0,
        last_usage=None,
        selected_for_phase2=False,
        selected_for_phase2_source_updated_at=None,
    )


def _within(records: tuple[Record, ...], chars_max: int) -> tuple[Record, ...]:
    """As many records as have so much text; at least one."""
    total = 0
    for position, record in enumerate(records):
        total += len(record.content) + len(record.body or "")
        if total > chars_max and position:
            return records[:position]
    return records


def hand_over(session: SessionState, claim: Claim, first: int, last: int) -> HandOver:
    """Records of a session for the inbox of its agent's memory-agent: a reference, not a copy."""
    agent = memory_agent_of(from_cache_key(session.agent_id))
    item = NewItem(
        id=f"{session.id}:{claim.kind}:{claim.token}:{first}-{last}",
        kind=ItemKind.SYSTEM_MESSAGE,
        text=f"Records {first} to {last} of session {session.id}.",
        origin=f"memory-worker:{session.id}",
        about=Span(session_id=session.id, first=first, last=last),
    )
    return HandOver(agent_id=cache_key(agent), key=MEMORY_KEY, item=item)


def _why_skipped(session: SessionState) -> str:
    if session.mode is not Mode.ENABLED:
        return f"mode {session.mode}"
    return "ephemeral" if session.ephemeral else "agent type"
