"""Phase 1 of a claimed session: its pieces go to a processor, what comes back is recorded.

Owns P3 for the worker: a piece is recorded with its cursor, or not at all. A run that goes through
a whole session again records once, at the end, so that it replaces what was learned in one step.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from dataclasses import dataclass
from datetime import datetime

from recollect.domain import Behind, Claim, Loaded, Mode, Outcome, SessionState, StaleClaim
from recollect.errors import PermanentFailure
from recollect.knowledge import Draft, Extraction, Learned
from recollect.leases import Leaseholder
from recollect.processing import Processor, Verdict, Work, WorkReport

_log = logging.getLogger(__name__)

PIECE_RECORDS = 500  # records handed to a processor at once; each piece is recorded by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A claim on a session, and who works on it with what."""

    holder: Leaseholder
    processor: Processor
    claim: Claim
    lost: threading.Event
    now: datetime

    def load(self, after: int | None) -> Loaded:
        loaded = self.holder.load(self.claim, after, PIECE_RECORDS)
        if loaded is None:
            raise PermanentFailure(f"session {self.claim.key} does not exist")
        return loaded

    def judge(self, loaded: Loaded, previous: Extraction | None) -> Verdict:
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
        )
        return self.processor.process(work)

    def reached(self, loaded: Loaded, verdict: Verdict) -> int:
        """How far a verdict goes: to the record it names, else to the end of its piece."""
        records = loaded.records
        if not loaded.session.remembered or not records:
            return self.claim.read_upto
        upto = records[-1].seq if verdict.upto is None else verdict.upto
        assert records[0].seq <= upto <= records[-1].seq, "a verdict about other records"
        is_rest = upto == records[-1].seq and len(records) < PIECE_RECORDS
        return self.claim.read_upto if is_rest else upto

    def learned(self, loaded: Loaded, verdict: Verdict, *, is_whole: bool) -> Learned | None:
        if verdict.draft is None or not loaded.session.remembered:
            return None
        return Learned(
            draft=verdict.draft,
            extractor=verdict.extractor,
            pass_number=loaded.session.pass_number,
            is_whole=is_whole,
            spent=verdict.spent,
            attempt=self.claim.attempt,
        )

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
        recorded = run.holder.record(run.claim, upto, verdict.outcome, verdict.reason, learned)
        if isinstance(recorded, StaleClaim):
            return run.stale()
        report.records += upto - cursor
        if upto == run.claim.read_upto:
            report.processed = 1
            run.done(first, verdict.outcome)
            return report


def extract_whole(run: Run) -> WorkReport:
    """Go through all of a session for the sake of what is new, and replace what was learned."""
    loaded, verdict = _all_pieces(run)
    if run.lost.is_set():
        return WorkReport(stale=1)
    learned = run.learned(loaded, verdict, is_whole=True)
    upto = run.claim.read_upto
    recorded = run.holder.record(run.claim, upto, verdict.outcome, verdict.reason, learned)
    if isinstance(recorded, StaleClaim):
        return run.stale()
    cursor = loaded.session.processed_until or 0
    run.done(cursor + 1, verdict.outcome)
    return WorkReport(processed=1, records=upto - cursor)


def extract_again(run: Run) -> WorkReport:
    """A new pass over a session; the old one's results stand until it is through."""
    while True:
        loaded, verdict = _all_pieces(run)
        if run.lost.is_set():
            return WorkReport(stale=1)
        learned = run.learned(loaded, verdict, is_whole=True)
        if learned is not None:
            learned = dataclasses.replace(learned, pass_number=learned.pass_number + 1)
        recorded = run.holder.record_pass(run.claim, run.claim.read_upto, learned)
        match recorded:
            case StaleClaim():
                return run.stale()
            case Behind():  # the session has grown and was processed meanwhile
                claim = dataclasses.replace(run.claim, read_upto=recorded.processed_until)
                run = dataclasses.replace(run, claim=claim)
            case _:
                run.done(1, verdict.outcome)
                return WorkReport(processed=1, records=run.claim.read_upto)


def _all_pieces(run: Run) -> tuple[Loaded, Verdict]:
    """One verdict on all pieces of a session: the texts of the last, the facts of all."""
    after = 0
    whole: Verdict | None = None
    while True:
        loaded = run.load(after)
        if whole is not None and not loaded.records:
            return loaded, whole
        verdict = run.judge(loaded, _as_previous(loaded, whole, run.now))
        after = run.reached(loaded, verdict)
        whole = verdict if whole is None else _joined(whole, verdict)
        if after >= run.claim.read_upto or run.lost.is_set():
            return loaded, whole


def _joined(whole: Verdict, next_one: Verdict) -> Verdict:
    spent = whole.spent.plus(next_one.spent)
    if next_one.draft is None or next_one.draft.is_empty:
        return dataclasses.replace(whole, spent=spent)
    facts = () if whole.draft is None else whole.draft.facts
    draft = dataclasses.replace(next_one.draft, facts=(*facts, *next_one.draft.facts))
    return dataclasses.replace(next_one, draft=draft, spent=spent)


def _as_previous(loaded: Loaded, whole: Verdict | None, now: datetime) -> Extraction | None:
    """What the pieces before came to, in the shape of what would have been stored."""
    draft: Draft | None = None if whole is None else whole.draft
    if whole is None or draft is None or draft.is_empty:
        return None
    return Extraction(
        session_id=loaded.session.id,
        space=loaded.session.space,
        raw_memory=draft.raw_memory,
        rollout_summary=draft.rollout_summary,
        rollout_slug=draft.rollout_slug,
        extractor=whole.extractor,
        pass_number=loaded.session.pass_number,
        upto=draft.upto,
        source_updated_at=now,
        generated_at=now,
        usage_count=0,
        last_usage=None,
        selected_for_phase2=False,
        selected_for_phase2_source_updated_at=None,
    )


def _why_skipped(session: SessionState) -> str:
    if session.mode is not Mode.ENABLED:
        return f"mode {session.mode}"
    return "ephemeral" if session.ephemeral else "agent type"
