"""Phase 2: reads a claimed space, then stages, checks and publishes its next generation.

Owns G7 (nothing to remember empties memory, and nobody is asked), G9 (a run that fails, is killed
or superseded leaves the generation before as it is; what a model cannot finish is made by rules)
and G10 (a lost claim changes nothing). Reading and writing stand in short transactions of the
store; between them nothing is held but the lease.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.clock import Clock
from recollect.config import Settings
from recollect.consolidation.agent import AgentBrief, AgentReport, ModelConsolidator
from recollect.consolidation.files import Show, nowhere
from recollect.consolidation.handbook import WrittenText
from recollect.consolidation.pages import MEMORY, RAW, SUMMARY
from recollect.consolidation.parts import PartPlan, WrittenPart, fitting
from recollect.consolidation.stage import Inputs, Stage
from recollect.documents.changeset import PreparedEdit
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.errors import (
    CallCancelled,
    DocumentExists,
    DocumentReferenced,
    InvalidOutput,
    ModelError,
    NotFound,
    PermanentFailure,
    Postponed,
    StaleVersion,
)
from recollect.extraction.transcript import one_line
from recollect.ids import Ids
from recollect.leases import Leaseholder
from recollect.processing import WorkReport
from recollect.recall.question import voucher
from recollect.redaction import Redactor
from recollect.store.protocol import Store
from recollect.types.facts import NOTHING_SPENT, Spent
from recollect.types.generations import (
    BY_RULES,
    Generation,
    GenerationDocument,
    GenerationDraft,
    Outdated,
    Published,
    RemovedBecause,
    Selection,
)
from recollect.types.pages import Author, AuthorKind
from recollect.types.records import Claim, StaleClaim

REASON = "consolidated"
WITHDRAWALS_MAX = 8  # while others change the same pages
FORGETTING = "forgetting:"  # the role of who has a job to withdraw what was forgotten
POLL_SECONDS = 0.02
POLLS_MAX = 500  # while others forget something else
AGAIN_SECONDS = 1.0  # after somebody changed the pages that were to be replaced
INSTEAD = f"{BY_RULES} instead of "  # before the name of who failed to make a generation
INSTEAD_LOOKED_AT = 20  # generations
DAY_SECONDS = 86_400.0
REASON_CHARS_MAX = 500
CASES_NAMED = 5  # that an error names
_AT_ONCE = {RemovedBecause.FORGOTTEN, RemovedBecause.DISABLED, RemovedBecause.POLLUTED}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """What became of what was forgotten on the pages of a generation, if there is one.

    Pages are `left` that may still say it: others took the job over every time.
    """

    has_generation: bool
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What the next generation would be made of; by rules, also what it would change."""

    selection: Selection
    made_by: str
    is_unchanged: bool
    edits: tuple[PreparedEdit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidator:
    """Makes generations of spaces. Safe to share between threads."""

    store: Store
    settings: Settings
    clock: Clock
    ids: Ids
    redactor: Callable[[], Redactor]
    documents: Callable[[str], Documents]
    agent: ModelConsolidator | None = None
    asks: bool = (
        True  # the model, where there is one; else what it wrote stands, and rules do the rest
    )
    write_files: Callable[[str, Generation], None] = lambda _space, _generation: None
    absorb_edits: Callable[[str], bool] = lambda _space: False
    refresh_files: Callable[[str], object] = lambda _space: None
    staged_files: Callable[[str, int], AbstractContextManager[Show]] = nowhere
    breaks: Callable[[str, StagedPages], Sequence[int]] = lambda _space, _pages: ()

    @property
    def made_by(self) -> str:
        return BY_RULES if self.agent is None or not self.asks else self.agent.name

    def run(self, claim: Claim, _holder: Leaseholder, lost: threading.Event) -> WorkReport:
        """Make the next generation of the space that was claimed."""
        space = claim.key
        was_edited = self.absorb_edits(space)
        # Before anything is read: what is forgotten from then on takes away where it is shown.
        # A model is looked at while it writes; rules are done before anybody looks.
        is_shown = self.agent is not None and self.asks
        with (self.staged_files if is_shown else nowhere)(space, claim.token) as show:
            inputs = Inputs.read(self.store.generations, space, self.settings, self.clock.now())
            draft = self._draft(inputs, claim, lost, show)
        if lost.is_set():
            return WorkReport(stale=1)
        try:
            made = self.store.generations.publish(claim, draft, self.clock.now(), self.ids.new)
        except (StaleVersion, DocumentExists, DocumentReferenced, NotFound) as error:
            raise Postponed(
                f"the pages of memory were changed meanwhile: {error}", delay_seconds=AGAIN_SECONDS
            ) from error
        is_there = was_edited or inputs.selection.generation > 0
        if is_there and isinstance(made, Published) and made.generation is None:
            self.refresh_files(space)  # what could not be taken up, and what somebody took away
        return self._report(space, made)

    def _report(self, space: str, made: Published | Outdated | StaleClaim) -> WorkReport:
        match made:
            case StaleClaim():
                return WorkReport(stale=1)
            case Outdated():
                _log.info("%s: something was forgotten meanwhile; consolidating again", space)
                return WorkReport(released=1)
            case Published(generation=None):
                return WorkReport(upkeep=1)
            case Published(generation=generation):
                assert generation is not None
                self.write_files(space, generation)
                return WorkReport(generations=1)

    def withdraw(self, space: str) -> Withdrawal:
        """Publish at once, by rules, a generation without what was just forgotten.

        A run that makes one at this moment becomes stale, and what a model wrote it writes again in
        its next run: after a cooldown, since more may be about to be forgotten. Nothing is made
        where no generation had any of it.
        """
        if not any(each.generation for each in self.store.generations.states(space, 1, "", None)):
            return Withdrawal(has_generation=False)
        if not self._selected(space).is_forgetting:
            return Withdrawal(has_generation=True)
        return self._withdraw(space)

    def _withdraw(self, space: str) -> Withdrawal:
        policy = self.settings.lease_policy
        holder = Leaseholder(self.store, policy, self.clock, role=FORGETTING)
        tries = (self._taken_over(space, holder) for _ in range(WITHDRAWALS_MAX))
        is_done = any(self._is_withdrawn(claim, holder) for claim in tries)
        if not is_done:
            self.store.generations.request(space, holder.lease_time())
        elif self.agent is not None:
            self.store.generations.note_edits(space, self.clock.now())
        return Withdrawal(has_generation=True, left=() if is_done else (MEMORY, SUMMARY, RAW))

    def amend(self, space: str, fact_id: str) -> bool:
        """Render the current generation without what does not hold any more, under its number.

        Nothing is added to it; what a model wrote it writes anew when its turn comes. `fact_id` is
        the fact that was changed or deleted. Whether anything was amended.
        """
        states, now = self.store.generations.states(space, 1, "", None), self.clock.now()
        number = states[0].generation if states else 0
        pages = self.store.generations.documents(space, number) if number else []
        facts = self._facts_on(space, pages)
        if fact_id not in facts:
            return False
        made = self.store.generations.get(space, number)
        inputs = Inputs.read(self.store.generations, space, self.settings, now)
        if made is None or inputs.rest_of(facts, made.made_at) == facts:
            return False
        stage = self._stage(inputs.of(pages))
        kept = stage.render(() if self.agent is None else inputs.parts)
        is_rendered = self.agent is None
        draft = self._drafted(
            stage,
            made_by=BY_RULES if is_rendered else f"{BY_RULES} after a correction",
            digest=stage.inputs.digest(BY_RULES) if is_rendered else "",
            parts=kept,
        )
        try:
            is_amended = self.store.generations.amend(space, draft, now, self.ids.new)
        except (StaleVersion, DocumentExists, DocumentReferenced, NotFound) as error:
            _log.info("%s: the next generation leaves out what was corrected: %s", space, error)
            return False
        if is_amended:
            self.refresh_files(space)
        return is_amended

    def _facts_on(self, space: str, pages: Iterable[GenerationDocument]) -> set[str]:
        """The facts that pages rest on; those of sessions have their own."""
        held = self.held(space)
        own = (each for each in pages if each.session_id is None)
        return {fact for each in own for fact in held.version(each.document_id, each.version).facts}

    def leave_out(self, space: str) -> None:
        """Take a session that was switched off out of its pages, as if it were forgotten."""
        if any(each.because in _AT_ONCE for each in self._selected(space).removed):
            self._withdraw(space)

    def _selected(self, space: str) -> Selection:
        policy = self.settings.selection_policy
        return self.store.generations.select(space, policy, self.clock.now())

    def _taken_over(self, space: str, holder: Leaseholder) -> Claim:
        """Claim the job of a space from its holder; one that forgets is waited for.

        Not for ever: it may have died.
        """
        for _ in range(POLLS_MAX):
            claim = holder.claim_consolidation(space, takes_over=True, spared=FORGETTING)
            if claim is not None:
                return claim
            threading.Event().wait(POLL_SECONDS)
        claim = holder.claim_consolidation(space, takes_over=True)
        assert claim is not None, "nobody keeps the job from who takes it over"
        return claim

    def _is_withdrawn(self, claim: Claim, holder: Leaseholder) -> bool:
        """Make a generation by rules; whether it is there. If not, the job is free again."""
        try:
            report = replace(self, asks=False).run(claim, holder, threading.Event())
        except (Postponed, InvalidOutput) as error:
            _log.warning("%s: nothing was withdrawn from its pages: %s", claim.key, error)
            holder.release(claim)
            return False
        return not report.stale and not report.released

    def preview(self, space: str) -> Preview:
        """What a run would do, without doing it and without asking a model."""
        inputs = Inputs.read(self.store.generations, space, self.settings, self.clock.now())
        stage = self._stage(inputs)
        is_unchanged = self._is_unchanged(stage)
        if not is_unchanged and (self.agent is None or inputs.is_empty):
            stage.render()
        return Preview(
            selection=inputs.selection,
            made_by=self.made_by,
            is_unchanged=is_unchanged,
            edits=tuple(map(PreparedEdit.of, stage.pages.edits)),
        )

    # how a generation is made

    def _draft(
        self, inputs: Inputs, claim: Claim, lost: threading.Event, show: Show
    ) -> GenerationDraft:
        stage = self._stage(inputs)
        if self.asks and self._is_unchanged(stage):
            digest = inputs.digest(self.made_by)
            return self._drafted(stage, made_by=self.made_by, digest=digest, parts=inputs.parts)
        if self.agent is None or inputs.is_empty:
            return self._drafted_by_rules(inputs, digest=inputs.digest(self.made_by))
        if not self.asks:
            return self._drafted_by_rules(inputs, kept=inputs.parts)
        asked_at = self._asked_again_at(inputs.selection.space, self.agent.name)
        if asked_at is not None and asked_at > self.clock.now() and not claim.is_by_hand:
            note = f"{self.agent.name} is asked again after {asked_at:%Y-%m-%d %H:%M} UTC"
            return self._drafted_by_rules(inputs, note=note, again_at=asked_at)
        try:
            report = self._by_model(self.agent, stage, claim, lost, show)
        except (ModelError, Postponed) as error:
            if lost.is_set() or isinstance(error, CallCancelled):
                raise
            has_failed = asked_at is not None
            if not has_failed and self._is_tried_again(inputs.selection, claim, error):
                raise
            return self._drafted_instead(inputs, self.agent.name, error, has_failed=has_failed)
        return self._drafted_by_model(stage, report)

    def _drafted_by_model(self, stage: Stage, report: AgentReport) -> GenerationDraft:
        """What a model wrote; what it could not is written in a later run."""
        inputs = stage.inputs
        seconds = self.settings.backoff_seconds_max
        if isinstance(report.error, Postponed):
            seconds = max(seconds, report.error.delay_seconds)
        elif isinstance(report.error, InvalidOutput | PermanentFailure):
            seconds = DAY_SECONDS
        is_whole = report.error is None
        return self._drafted(
            stage,
            made_by=self.made_by,
            digest=inputs.digest(self.made_by if is_whole else BY_RULES),
            note=self._noted(inputs.selection.space, report.note),
            spent=report.spent,
            parts=report.parts,
            again_at=None if is_whole else self.clock.now() + timedelta(seconds=seconds),
        )

    def _noted(self, space: str, note: str) -> str:
        return one_line(self.redactor().keyed(space).redact(note), REASON_CHARS_MAX)

    def _drafted(
        self,
        stage: Stage,
        *,
        made_by: str,
        digest: str,
        note: str = "",
        spent: Spent = NOTHING_SPENT,
        parts: Iterable[WrittenPart] = (),
        again_at: datetime | None = None,
    ) -> GenerationDraft:
        """What is staged as a draft; the next is made at `again_at`, whatever happens until then.

        What rules say of the open threads holds for a day.
        """
        inputs = stage.inputs
        selection = inputs.dated if made_by.startswith(BY_RULES) else inputs.selection
        if again_at is not None:
            expires_at = min(filter(None, (selection.expires_at, again_at)))
            selection = replace(selection, expires_at=expires_at)
        return GenerationDraft(
            made_by=made_by,
            selection=selection,
            changes=stage.pages.changes(*inputs.grounds),
            digest=digest,
            note=note,
            summaries=stage.written,
            spent=spent,
            cooldown_seconds=self.settings.consolidation_cooldown_seconds,
            kept=self.settings.generations_kept,
            parts=WrittenPart.store(parts),
        )

    def _drafted_by_rules(
        self,
        inputs: Inputs,
        *,
        made_by: str = BY_RULES,
        digest: str | None = None,
        note: str = "",
        again_at: datetime | None = None,
        kept: Iterable[WrittenPart] = (),
    ) -> GenerationDraft:
        """A generation by rules; a model is asked for the next one at `again_at`.

        What a model wrote in `kept` parts stays where all that it rests on stands.
        """
        stage = self._stage(inputs)
        parts = stage.render(kept)
        return self._drafted(
            stage,
            made_by=made_by,
            digest=digest or inputs.digest(BY_RULES),
            note=note,
            parts=parts,
            again_at=again_at,
        )

    # what a model cannot finish

    def _is_tried_again(self, selection: Selection, claim: Claim, error: Exception) -> bool:
        """Whether a model that failed is asked again before rules write in its place.

        Not where there is nothing to read meanwhile, nor where what there is shows what must not
        be shown.
        """
        if not selection.generation or isinstance(error, PermanentFailure):
            return False
        if any(each.because in _AT_ONCE for each in selection.removed):
            return False
        return claim.attempt + claim.pauses < self.settings.job_failures_max

    def _drafted_instead(
        self, inputs: Inputs, name: str, error: Exception, *, has_failed: bool
    ) -> GenerationDraft:
        """A generation by rules that says which model did not make it, and why."""
        space, now = inputs.selection.space, self.clock.now()
        note = f"{name} did not make this: {type(error).__name__}: {error}"
        _log.warning("%s: %s failed, so its memory is consolidated by rules", space, name)
        is_first = not inputs.selection.generation
        seconds = DAY_SECONDS if has_failed else self.settings.backoff_seconds_max
        if is_first:  # all its tries are still to come
            seconds = self.settings.backoff_seconds
        if isinstance(error, Postponed):
            seconds = max(seconds, error.delay_seconds)
        return self._drafted_by_rules(
            inputs,
            made_by=BY_RULES if is_first else f"{INSTEAD}{name}",
            note=self._noted(space, note),
            again_at=now + timedelta(seconds=seconds),
        )

    def _asked_again_at(self, space: str, name: str) -> datetime | None:
        """Until when a model that has failed is left alone; none: it has not, since it last wrote.

        Longer the second time: each try of a model that gives invalid answers costs as much as one
        that succeeds.
        """
        failed: list[Generation] = []
        for each in self.store.generations.list(space, INSTEAD_LOOKED_AT, None):
            if each.made_by == f"{INSTEAD}{name}":
                failed.append(each)
            elif each.made_by == name:
                break
        if not failed:
            return None
        seconds = DAY_SECONDS if len(failed) > 1 else self.settings.backoff_seconds_max
        return failed[0].made_at + timedelta(seconds=seconds)

    def _stage(self, inputs: Inputs) -> Stage:
        space = inputs.selection.space
        return Stage(pages=StagedPages(self.held(space), REASON), inputs=inputs)

    def held(self, space: str) -> Documents:
        """A space's documents, as consolidation holds them."""
        author = Author(kind=AuthorKind.CONSOLIDATION, name="consolidation")
        return self.documents(space).held_by(Holder(author=author, root=memory_root()))

    def _is_unchanged(self, stage: Stage) -> bool:
        """Whether something happened, and nothing changed."""
        selection = stage.inputs.selection
        return (
            stage.inputs.digest(self.made_by) == selection.digest
            and not selection.removed
            and stage.is_whole
        )

    def _by_model(
        self,
        agent: ModelConsolidator,
        stage: Stage,
        claim: Claim,
        lost: threading.Event,
        show: Show,
    ) -> AgentReport:
        """Let a model write what has changed; what it wrote before stands where its inputs do.

        Until it is done, what is being removed stands among the staged pages, for people to read.
        """
        inputs, selection = stage.inputs, stage.inputs.selection
        parts = inputs.parts
        stands = stage.standing(parts)
        stage.put_summaries()
        memos = stage.put_raw(also=stage.removed_memos())
        show(stage.pages, (each.path for each in selection.removed if each.path))
        sessions = stage.sessions(memos)
        book = stage.book(sessions, by_subject=True)
        links = {each.session_id: each for each in sessions}
        known = frozenset().union(*(each.inputs for each in parts))
        plan = PartPlan.of(book, stands, links, known, agent.shown_limits)

        def put(texts: Mapping[str, WrittenText]) -> None:
            kept = {name: text for name, (text, _) in plan.kept.items()}
            stage.put_book(book, fitting(book, {**kept, **texts}, agent.page_limits))
            show(stage.pages, ())

        brief = AgentBrief(
            space=selection.space,
            since=self._since(inputs),
            plan=plan,
            opened=inputs.opened,
            attempt=claim.attempt,
            written=put,
            is_lost=lost.is_set,
            is_persons=voucher(self.store, selection.space, self.clock.now()),
        )
        report = agent.run(brief)
        put(report.texts)
        stage.put_raw()
        stage.prune()
        self._check(stage)
        return report

    def _since(self, inputs: Inputs) -> str:
        """Who wrote what stands, and what has happened since, in words for a model."""
        selection = inputs.selection
        last = self.store.generations.get(selection.space, selection.generation)
        counts = (
            f"of the sessions {len(selection.added):,} added, {len(selection.retained):,} "
            f"retained, {len(selection.removed):,} removed"
        )
        if last is None:
            return f"Nothing is written yet: {counts}."
        made_by = "rules" if last.made_by.startswith(BY_RULES) else "a model"
        if last.restored_from is not None:
            made_by = f"a person, who went back to generation {last.restored_from:,}"
        gone = sorted({str(each.because) for each in selection.removed})
        why = f" ({', '.join(gone)})" if gone else ""
        return f"Generation {last.number:,} was made by {made_by}. Since then: {counts}{why}."

    def _check(self, stage: Stage) -> None:
        """InvalidOutput: what a model wrote would break a case that people keep."""
        if broken := self.breaks(stage.inputs.selection.space, stage.pages):
            cases = ", ".join(map(str, broken[:CASES_NAMED]))
            raise InvalidOutput(
                f"the generation breaks {len(broken):,} of consolidation_checks (case {cases})"
            )
