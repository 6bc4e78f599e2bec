"""The dry run: what extraction would read, send and spend, without a claim, a call or a write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from recollect.config import Settings
from recollect.extraction.model import ModelExtractor
from recollect.extraction.run import ExtractionProcessor
from recollect.models.protocol import Usage, cost_micros
from recollect.phase1 import PIECE_RECORDS
from recollect.store.protocol import Store
from recollect.types.facts import NOTHING_SPENT, Spent
from recollect.types.records import JobKind, JobState, SessionState

SESSIONS_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSession:
    """What one session would take if every first answer can be used, and is as long as it may be.

    `prompt` is the first one that would be sent.
    """

    session: SessionState
    first: int
    upto: int
    spent: Spent
    prompt: str | None

    @property
    def records(self) -> int:
        return max(self.upto - self.first + 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlan:
    """What a run would do. `is_cut`: there are more sessions than are listed.

    `not_included` has the jobs that a model would do besides, by who does them: how often it is
    asked depends on what it reads and answers, and nobody can say before.
    """

    extractor: str
    sessions: tuple[PlannedSession, ...]
    is_cut: bool
    not_included: Mapping[str, str] = field(default_factory=dict)

    @property
    def spent(self) -> Spent:
        total = NOTHING_SPENT
        for planned in self.sessions:
            total = total.plus(planned.spent)
        return total

    @property
    def records(self) -> int:
        return sum(planned.records for planned in self.sessions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which sessions a run would go through."""

    now: datetime
    space: str | None = None
    all: bool = False  # also those that are not marked
    again: bool = False  # also those that are done, from their first record


def plan_work(
    store: Store, processor: ExtractionProcessor, settings: Settings, wanted: Wanted
) -> WorkPlan:
    planner = _Planner(store, processor, settings)
    planned: dict[tuple[str, bool], PlannedSession] = {}
    for session, from_start in _sessions(store, wanted, settings):
        if len(planned) == SESSIONS_MAX:
            break
        each = planner.plan(session, from_start=from_start)
        if each.records:
            planned.setdefault((session.id, from_start), each)
    extractor = processor.extractor
    return WorkPlan(
        extractor="none" if extractor is None else extractor.name,
        sessions=tuple(planned.values()),
        is_cut=len(planned) == SESSIONS_MAX,
    )


def _sessions(
    store: Store, wanted: Wanted, settings: Settings
) -> Iterator[tuple[SessionState, bool]]:
    """Sessions, and whether they would be read from their first record."""
    for job in store.leases.jobs(wanted.space, SESSIONS_MAX):
        is_extraction = job.kind in (JobKind.EXTRACT, JobKind.EXTRACT_AGAIN)
        is_due = job.state is JobState.DUE and (job.due_at is None or job.due_at <= wanted.now)
        if not is_extraction or not is_due:
            continue
        session = store.sessions.get(job.space, job.key)
        if session is not None:
            yield session, job.kind is JobKind.EXTRACT_AGAIN
    swept = None if wanted.all else settings.unattended(wanted.now, settings.idle_sweep_seconds)
    for session in store.marks.waiting(wanted.space, SESSIONS_MAX, swept):
        yield session, False
    if wanted.again:
        for progress in store.extractions.progress(wanted.space, SESSIONS_MAX):
            session = store.sessions.get(progress.space, progress.session_id)
            if session is not None and session.processed_until:
                yield session, True


class _Planner:
    """Goes through sessions as a worker would, and counts instead of asking."""

    def __init__(self, store: Store, processor: ExtractionProcessor, settings: Settings) -> None:
        self._store = store
        self._processor = processor
        self._settings = settings

    def plan(self, session: SessionState, *, from_start: bool) -> PlannedSession:
        done = session.processed_until or 0
        whole = from_start or self._settings.extract_whole_session
        after = 0 if whole else done
        end = done if from_start else session.last_seq
        spent, prompt, at = NOTHING_SPENT, None, after
        extractor = self._processor.extractor
        if isinstance(extractor, ModelExtractor) and session.remembered:
            while at < end:
                upto, took, sent = self._next(extractor, session, range(at, end), whole)
                spent, prompt, at = spent.plus(took), prompt or sent, upto
        upto = end if session.remembered else after
        return PlannedSession(
            session=session, first=after + 1, upto=upto, spent=spent, prompt=prompt
        )

    def _next(
        self, extractor: ModelExtractor, session: SessionState, left: range, whole: bool
    ) -> tuple[int, Spent, str | None]:
        """One call further: how far it would get, what it would take, what would be sent."""
        names = (session.space, session.id)
        found = self._store.records.after(*names, left.start, PIECE_RECORDS)
        records = [record for record in found if record.seq <= left.stop]
        if not records:
            return left.stop, NOTHING_SPENT, None
        previous = None if whole else self._store.extractions.get(*names)
        piece = self._processor.reader.piece(session, records, previous)
        if not piece.blocks:
            return records[-1].seq, NOTHING_SPENT, None
        estimate, request = extractor.estimate(piece), extractor.preview(piece)
        sent, answered = estimate.input_tokens, estimate.output_tokens
        usage = Usage(input_tokens=sent, output_tokens=answered, is_estimate=True)
        cost = cost_micros(usage, self._settings)
        took = Spent(calls=1, input_tokens=sent, output_tokens=answered, cost_micros=cost)
        return estimate.upto, took, f"{request.system}\n\n{request.prompt}"
