"""The background work of a memory: what its workers run, and what goes with what is taken back.

Phases, agents and files are loaded on first use: many a process never needs them.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from recollect.errors import (
    DocumentExists,
    ModelError,
    Postponed,
    SpendCapReached,
)
from recollect.facts import Facts
from recollect.observing.telling import told
from recollect.runtime import Runtime
from recollect.sweeps import deliver_all_signals, drop_old_memories, sweep, work_off

if TYPE_CHECKING:
    from recollect.agents.organiser_facts import HoldingFacts
    from recollect.consolidation.agent import ConsolidationAgent
    from recollect.consolidation.files import MemoryFiles
    from recollect.consolidation.generations import Generations
    from recollect.consolidation.run import Consolidator
    from recollect.documents.tree import Documents
    from recollect.domain import Claim
    from recollect.extraction.plan import WorkPlan
    from recollect.extraction.run import ExtractionProcessor
    from recollect.extraction.spend import Budget
    from recollect.knowledge import Fact
    from recollect.leases import Leaseholder
    from recollect.processing import Processor, WorkReport
    from recollect.status import Status
    from recollect.store.protocol import Store
    from recollect.worker import Duties, Worker

_log = logging.getLogger(__name__)

EMBED_BATCHES_MAX = 100_000
REDO_BY_RULES = 8  # times that a memory-agent files again what others have changed meanwhile


class Pipeline:
    """Made once, shared by everything of one memory. Safe to use from any number of threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._settings = runtime.settings
        self._clock = runtime.clock
        self._files: MemoryFiles | None = None
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._lock = threading.Lock()

    def documents(self, space: str) -> Documents:
        from recollect.documents.tree import Documents

        return Documents(self._runtime, self._runtime.store, space)

    def facts(self, space: str) -> Facts:
        """A space's facts; the pages that were written from one follow what becomes of it."""
        return Facts(self._runtime, self._runtime.store, space, self._corrected)

    def generations(self, space: str) -> Generations:
        from recollect.consolidation.generations import Generations

        consolidator = self.consolidator()
        worker = self.worker_on(self._runtime.store, self._consolidation_duties())
        return Generations(
            self._runtime,
            self._runtime.store,
            space,
            consolidator.held(space),
            consolidator,
            worker,
        )

    # workers

    def worker(
        self,
        processor: Processor | None = None,
        *,
        owner: str | None = None,
        space: str | None = None,
    ) -> Worker:
        """A worker for everything there is to do, in a space or in all."""
        budget = self.budget()
        processor = processor or self.processor(budget)
        return self.worker_on(
            self._runtime.store, self.duties(budget, space), processor, owner=owner
        )

    def worker_on(
        self,
        store: Store,
        duties: Duties | None = None,
        processor: Processor | None = None,
        *,
        owner: str | None = None,
    ) -> Worker:
        """A worker on a store, for what it is told to, else for what is due there.

        What lives only as long as the process is not learned from.
        """
        from recollect.worker import Duties, Worker

        if duties is None and store is self._runtime.store:
            return self.worker(processor, owner=owner)
        duties, settings = duties or Duties(), self._settings
        if duties.lane != "":  # it hosts agents
            settings = replace(settings, worker_concurrency=settings.agent_concurrency)
        worker = Worker(
            store,
            settings,
            self._clock,
            processor,
            owner=owner,
            redact=self._runtime.redacted,
            duties=duties,
        )
        self._workers.add(worker)
        return worker

    def stop(self) -> None:
        """Stop every worker that was made here."""
        for worker in list(self._workers):
            worker.stop()

    # vectors

    def embed_some(self, space: str | None = None) -> int:
        """Embed a batch of what has no vector yet; how many entries were looked at."""
        embedder = self._runtime.embedder()
        if embedder is None:
            return 0
        from recollect.embedding.background import EmbeddingTill, embed_pending

        till = EmbeddingTill(self._runtime.store.ledger, self._settings, self._clock)
        now = self._clock.now()
        return embed_pending(self._runtime.store, embedder, till, now, embedder.batch_texts, space)

    def embed_all(self, space: str | None = None) -> None:
        """Embed until nothing is left. What somebody changes all the time is left to a worker.

        So is what cannot be embedded now: whatever else was done stays, and recall goes by words.
        """
        for _ in range(EMBED_BATCHES_MAX):
            try:
                if not self.embed_some(space):
                    return
            except ModelError as error:
                _log.warning("vectors are left for later: %s", told(error))
                return
            except SpendCapReached as error:
                _log.warning("vectors are left for another day: %s", error)
                return

    def budget(self) -> Budget:
        """What one worker may use, for all of its jobs together."""
        from recollect.extraction.spend import Budget

        return Budget(self._settings, self._clock)

    def processor(self, budget: Budget | None = None) -> Processor:
        """What distils sessions, for one worker: by extraction, the memory-agent, or both."""
        from recollect.processing import LoggingProcessor

        path = self._settings.pipeline
        extraction = self.extraction(budget) if path in ("extraction", "both") else None
        if path in ("extraction", "none"):
            return extraction or LoggingProcessor()
        from recollect.agents.handover import HandingProcessor

        return HandingProcessor(
            extraction=extraction,
            reads_all=self._runtime.models.has_memory_agent,
            ensure_root=self._ensure_root,
        )

    def extraction(self, budget: Budget | None = None) -> ExtractionProcessor:
        """Phase 1, for one worker."""
        from recollect.extraction.opening import open_processor

        is_wanted = self._settings.extractor in ("auto", "model")
        return open_processor(
            self._runtime.store,
            self._settings,
            self._clock,
            self._runtime.redactor(),
            self._runtime.models.main() if is_wanted else None,
            budget or self.budget(),
        )

    def duties(self, budget: Budget, space: str | None = None) -> Duties:
        """What a worker does besides, for one worker: of a space alone, or of all."""
        from recollect.worker import Duties

        consolidate = partial(self._consolidate, budget)
        return Duties(
            embed_some=self.embed_some if self._runtime.has_embedder else None,
            run_agent=partial(self._run_memory_agent, budget),
            consolidate=consolidate if self._settings.consolidation == "on" else None,
            upkeep=self._tend_files,
            space=space,
        )

    def _consolidation_duties(self) -> Duties:
        """What a worker does that consolidates by hand, whatever the settings say of others."""
        from recollect.worker import Duties

        return Duties(consolidate=partial(self._consolidate, self.budget()))

    def _run_memory_agent(
        self, budget: Budget, claim: Claim, holder: Leaseholder, lost: threading.Event
    ) -> WorkReport:
        from recollect.agents.memory_agent import MemoryAgents
        from recollect.agents.runner import Runner

        ids, model = self._runtime.ids, self._runtime.models.memory_agent()
        doer = MemoryAgents(
            store=self._runtime.store,
            settings=self._settings,
            clock=self._clock,
            ids=ids,
            redactor=self._runtime.redactor,
            documents=self.documents,
            model=model,
            budget=budget,
            is_named=self._runtime.models.is_memory_agent_named,
        )
        runner = Runner(
            store=self._runtime.store,
            settings=self._settings,
            clock=self._clock,
            ids=ids,
            doer=doer,
            redact=self._runtime.redacted,
            redo_max=1 if model is not None else REDO_BY_RULES,
        )
        return runner.run(claim, holder, lost)

    def _consolidate(
        self, budget: Budget, claim: Claim, holder: Leaseholder, lost: threading.Event
    ) -> WorkReport:
        return self.consolidator(budget).run(claim, holder, lost)

    def consolidator(self, budget: Budget | None = None) -> Consolidator:
        """Phase 2, by the model that does it or by rules."""
        from recollect.consolidation.run import Consolidator

        return Consolidator(
            store=self._runtime.store,
            settings=self._settings,
            clock=self._clock,
            ids=self._runtime.ids,
            redactor=self._runtime.redactor,
            documents=self.documents,
            agent=self._consolidation_agent(budget or self.budget()),
            write_files=lambda space, made: self._write_files(space, made.number),
            absorb_edits=lambda space: not self._memory_files().absorb(space).is_nothing,
            refresh_files=lambda space: self._memory_files().refresh(space),
            staged_files=lambda space, token: self._memory_files().staged(space, token),
        )

    def _consolidation_agent(self, budget: Budget) -> ConsolidationAgent | None:
        model = self._runtime.models.consolidation()
        if model is None:
            return None
        from recollect.agents.loop import LoopLimits
        from recollect.consolidation.agent import ConsolidationAgent

        settings = self._settings
        return ConsolidationAgent(
            settings=settings,
            clock=self._clock,
            ids=self._runtime.ids,
            redactor=self._runtime.redactor,
            model=model,
            ledger=self._runtime.store.ledger,
            budget=budget,
            limits=LoopLimits(
                turns=settings.agent_turns_max,
                tokens=settings.agent_tokens_max,
                seconds=settings.agent_seconds_max,
                tool_bytes=settings.agent_tool_bytes_max,
                reply_tokens=settings.model_output_tokens_max,
            ),
        )

    def _memory_files(self) -> MemoryFiles:
        with self._lock:
            if self._files is None:
                from recollect.consolidation.files import MemoryFiles

                self._files = MemoryFiles(
                    self._runtime.store, self._settings, self.documents, self.facts
                )
            return self._files

    def _write_files(self, space: str, generation: int) -> None:
        self._memory_files().write(space, generation)

    def work_off(
        self,
        drain: Callable[[], WorkReport],
        space: str | None,
        *,
        all: bool = False,  # noqa: A002
    ) -> WorkReport:
        """Do what is due in a space, or in all, also what nobody said is, until nothing is."""
        self.sweep(space, all=all)
        report = work_off(self._runtime.store, drain, self.embed_all, space)
        if report and space is None:  # it looks at every memory: not as long as nothing happens
            drop_old_memories(self._runtime.store, self._clock.now(), self._settings)
        return report

    def sweep(self, space: str | None = None, *, all: bool = False) -> None:  # noqa: A002
        """What workers see to by and by, at once, in a space or in all: it is due afterwards.

        Whoever works by hand may be the only one who ever does.
        """
        store, settings = self._runtime.store, self._settings
        deliver_all_signals(store, self._clock, settings, space)
        sweep(store, self._clock.now(), settings, space=space, all=all)
        self._memory_files().write_missing(space)
        self.notice_edits(space)

    def _tend_files(self) -> None:
        self._memory_files().write_missing()
        self._note_edits(self._memory_files().noticed())

    def notice_edits(self, space: str | None = None) -> None:
        """Make due what people edited as files, in a space or in all."""
        self._note_edits(self._memory_files().noticed_in(space))

    def _note_edits(self, spaces: Collection[str]) -> None:
        for space in spaces:
            self._runtime.store.generations.note_edits(space, self._clock.now())

    def withdraw(
        self, space: str, gone: Collection[str], *, publish: bool = True
    ) -> tuple[str, ...]:
        """Take what forgotten sessions and facts said off the pages of memory, whoever wrote them.

        `gone` are their ids; `publish` makes the pages and files of consolidation anew as well.
        The pages and files that could not be are named.
        """
        from recollect.agents.withdrawing import finish, withdraw

        left: list[str] = []
        facts, documents = self._holding_facts(space), self.documents(space)
        try:
            if gone:
                withdraw(documents, gone, now=facts.now, holding=facts.on)
        except Postponed as error:  # the rest is withdrawn all the same
            _log.warning("pages of space %r may still say what was forgotten: %s", space, error)
            left.append("~/memory")
        if not publish:
            return tuple(left)
        finish(documents)
        made = self.consolidator().withdraw(space)
        files = self._memory_files()
        left += made.left
        if made.left and (directory := files.directory(space)) is not None:
            left.append(str(directory))
        # Also where a generation has it all: a page may be gone that none has.
        left += files.withdraw(space, is_published=made.has_generation)
        return tuple(dict.fromkeys(left))

    def correct(self, space: str, fact_id: str, fact: Fact | None) -> Callable[[], None]:
        """Let the pages that memory-agents wrote follow a fact that somebody edits or deletes.

        None: it is about to be deleted. What comes back is to be called when it is.
        """
        from recollect.agents.withdrawing import correct, refile

        def read() -> Fact | None:
            return None if fact is None else self._runtime.store.facts.get(space, fact_id)

        documents, facts = self.documents(space), self._holding_facts(space)
        others = replace(facts, besides=fact_id)
        was_filed = correct(documents, fact_id, read, now=facts.now, holding=others.on)
        known = (
            self._runtime.store.facts.get(space, fact_id) if was_filed and fact is None else None
        )
        if known is None or known.topic is None:
            return lambda: None
        return partial(refile, documents, known.topic, now=facts.now, holding=facts.on)

    def _corrected(self, space: str, fact_id: str, fact: Fact | None) -> Callable[[], None]:
        """As `correct`; MEMORY with its summary and skills follow as well."""
        then = self.correct(space, fact_id, fact)
        if fact is not None:
            self.amend(space, fact_id)

        def after() -> None:
            then()
            self.amend(space, fact_id)

        return after

    def amend(self, space: str, fact_id: str | None = None) -> None:
        """Render the current generation of a space, if any, without what does not hold any more."""
        states = self._runtime.store.generations.states(space, 1, "", None)
        if any(each.generation for each in states):
            self.consolidator().amend(space, fact_id)

    def leave_out(self, space: str, session_id: str) -> None:
        """Take what a session said off the pages of memory: its mode forbids it.

        Rules publish a generation without it with the next work; what a model wrote does not wait
        for the model.
        """
        from recollect.agents.withdrawing import leave_out

        facts = self._holding_facts(space)
        leave_out(
            self.documents(space),
            session_id,
            now=facts.now,
            standing=facts.of_session(session_id),
            holding=facts.on,
        )
        files = self._memory_files()
        directory = files.directory(space)
        if directory is not None and directory.exists():
            files.refresh(space)
        self.consolidator().leave_out(space)

    def _holding_facts(self, space: str) -> HoldingFacts:
        from recollect.agents.organiser_facts import HoldingFacts

        return HoldingFacts(store=self._runtime.store, space=space, now=self._clock.now())

    def remove_files(self, space: str) -> tuple[str, ...]:
        """Take the published files of a space away; those that could not be are named."""
        return self._memory_files().remove(space)

    def _ensure_root(self, space: str) -> None:
        """Give a space the root of its memory documents, if it has none."""
        from recollect.document import MEMORY_WORKER, Author, AuthorKind
        from recollect.documents.paths import memory_root
        from recollect.documents.scope import Holder

        path = str(memory_root())
        if self._runtime.store.documents.find(space, memory_root().place) is not None:
            return
        author = Author(kind=AuthorKind.AGENT, name=MEMORY_WORKER)
        held = self.documents(space).held_by(Holder(author=author, root=memory_root()))
        with suppress(DocumentExists):
            held.write(path, "", title="Memory", expected_version=0, reason="the memory root")

    def status(self, space: str | None, limit: int) -> Status:
        from recollect.status import Status, model_uses

        store, now = self._runtime.store, self._clock.now()
        marked, waiting = store.marks.counts(space)
        left = store.marks.waiting(space, limit)
        taken = store.marks.waiting(space, limit, self._settings.unattended(now, None))
        return Status(
            store=store.describe(),
            at=now,
            marked=tuple(store.marks.marked(space, limit)),
            marked_count=marked,
            waiting=tuple(left),
            waiting_count=waiting,
            passed_over=frozenset(each.id for each in left) - {each.id for each in taken},
            jobs=tuple(store.leases.jobs(space, limit)),
            job_counts=store.leases.counts(space),
            idle_sweep_seconds=self._settings.idle_sweep_seconds,
            sessions=tuple(store.extractions.progress(space, limit)),
            agents=tuple(store.agents.list(space, limit)),
            spent_today=store.ledger.spent(space, now),
            models=model_uses(self._runtime.doers(), store.ledger.spent_by_purpose(space, now)),
            consolidations_due=store.extractions.count_due(space),
            consolidations=tuple(store.generations.states(space, limit, "", now)),
        )

    def plan(self, space: str | None, *, all: bool, again: bool) -> WorkPlan:  # noqa: A002
        from recollect.extraction.plan import Wanted, plan_work

        wanted = Wanted(now=self._clock.now(), space=space, all=all, again=again)
        planned = plan_work(self._runtime.store, self.extraction(), self._settings, wanted)
        doers = self._runtime.doers()
        besides = {job: doers[job] for job in ("memory-agent", "consolidation")}
        unplanned = {job: by for job, by in besides.items() if by not in ("rules", "off")}
        return replace(planned, not_included=unplanned)
