"""The background work of a memory: what its workers run, and the effects of a withdrawal.

Phases, agents and files are loaded on first use: many processes never need them.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import (
    DocumentExists,
    ModelError,
    SpendCapReached,
)
from recollect.facts import Facts
from recollect.observing.log_text import loggable
from recollect.runtime import Runtime
from recollect.sweeps import deliver_all_signals, drop_old_memories, sweep

if TYPE_CHECKING:
    from recollect.consolidation.agent import ModelConsolidator
    from recollect.consolidation.files import MemoryFiles
    from recollect.consolidation.generations import Generations
    from recollect.consolidation.run import Consolidator
    from recollect.documents.staged import StagedPages
    from recollect.documents.tree import Documents
    from recollect.extraction.plan import WorkPlan
    from recollect.extraction.run import ExtractionProcessor
    from recollect.extraction.spend import Budget
    from recollect.leases import Leaseholder
    from recollect.processing import Processor, WorkReport
    from recollect.store.protocol import Store
    from recollect.types.generations import Generation
    from recollect.types.records import Claim
    from recollect.types.status import Status
    from recollect.worker import Duties, Worker

_log = logging.getLogger(__name__)

EMBED_BATCHES_MAX = 100_000
SPACES_AT_ONCE = 100  # whose pages are rendered with one sweep


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
        return Facts(self._runtime, self._runtime.store, space, self._fact_changed)

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
                _log.warning("vectors are left for later: %s", loggable(error))
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
        from recollect.processing import HandingProcessor, LoggingProcessor

        path = self._settings.pipeline
        has_reader = self._runtime.models.has_memory_agent
        extraction = self.extraction(budget) if path in ("extraction", "both") else None
        if path == "memory-agent" and not has_reader:
            # Nobody reads what was said, and pages are rendered from facts.
            extraction = self.extraction(budget, by_rules=True)
        if path in ("extraction", "none"):
            return extraction or LoggingProcessor()
        return HandingProcessor(
            extraction=extraction,
            reads_all=has_reader or path == "memory-agent",
            has_model=has_reader,
            ensure_root=self._ensure_root,
        )

    def extraction(
        self, budget: Budget | None = None, *, by_rules: bool = False
    ) -> ExtractionProcessor:
        """Phase 1, for one worker; by the extractor of the settings, or by rules."""
        from recollect.extraction.run import ExtractionProcessor, open_extractor

        settings = replace(self._settings, extractor="rules") if by_rules else self._settings
        is_wanted, redactor = settings.extractor in ("auto", "model"), self._runtime.redactor()
        model = self._runtime.models.main() if is_wanted else None
        extractor = open_extractor(settings, redactor, model)
        return ExtractionProcessor(
            self._runtime.store, budget or self.budget(), redactor, extractor
        )

    def duties(self, budget: Budget, space: str | None = None) -> Duties:
        """What a worker does besides, for one worker: of a space alone, or of all."""
        from recollect.worker import Duties

        consolidate = partial(self._consolidate, budget)
        return Duties(
            embed_some=self.embed_some if self._runtime.has_embedder else None,
            run_agent=partial(self._run_memory_agent, budget),
            consolidate=consolidate if self._settings.consolidation == "on" else None,
            upkeep=self._tend_pages,
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

        doer = MemoryAgents(
            runtime=self._runtime,
            documents=self.documents,
            model=self._runtime.models.memory_agent(),
            budget=budget,
            is_named=self._runtime.models.is_memory_agent_named,
        )
        runner = Runner(runtime=self._runtime, store=self._runtime.store, doer=doer, redo_max=1)
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
            write_files=self._write_files,
            absorb_edits=lambda space: not self._memory_files().absorb(space).is_nothing,
            refresh_files=lambda space: self._memory_files().write(space),
            staged_files=lambda space, token: self._memory_files().staged(space, token),
            breaks=self._broken_checks,
        )

    def _broken_checks(self, space: str, pages: StagedPages) -> Sequence[int]:
        """The cases of `consolidation_checks` that staged pages would break, by number."""
        if self._settings.consolidation_checks is None:
            return ()
        from recollect.recall.checking import broken_by, read_cases

        cases = read_cases(Path(self._settings.consolidation_checks))
        return broken_by(self._runtime, space, cases, pages)

    def _consolidation_agent(self, budget: Budget) -> ModelConsolidator | None:
        model = self._runtime.models.consolidation()
        if model is None:
            return None
        from recollect.agents.loop import LoopLimits
        from recollect.consolidation.agent import ModelConsolidator

        settings = self._settings
        return ModelConsolidator(
            settings=settings,
            clock=self._clock,
            ids=self._runtime.ids,
            redactor=self._runtime.redactor,
            model=model,
            ledger=self._runtime.store.ledger,
            budget=budget,
            limits=LoopLimits.of(settings, reply_tokens=settings.model_output_tokens_max),
        )

    def published(self, space: str) -> Path | None:
        """The directory where a space is published as files; none: nowhere."""
        return self._memory_files().directory(space)

    def _memory_files(self) -> MemoryFiles:
        with self._lock:
            if self._files is None:
                from recollect.consolidation.files import MemoryFiles

                self._files = MemoryFiles(
                    self._runtime.store, self._settings, self.documents, self.facts
                )
            return self._files

    def _write_files(self, space: str, made: Generation) -> None:
        self._memory_files().write(space, made.number)

    def work_off(
        self,
        drain: Callable[[], WorkReport],
        space: str | None,
        *,
        all: bool = False,  # noqa: A002
    ) -> WorkReport:
        """Do what is due in a space, or in all, also what nobody said is, until nothing is.

        Nobody waits for a cooldown.
        """
        self.sweep(space, all=all)
        report = drain()
        while self._runtime.store.generations.hurry(space):
            report.add(drain())
        self.embed_all(space)
        if report and space is None:  # it looks at every memory: not as long as nothing happens
            drop_old_memories(self._runtime.store, self._clock.now(), self._settings)
        return report

    def sweep(self, space: str | None = None, *, all: bool = False) -> None:  # noqa: A002
        """Do now what workers do periodically, in a space or in all; the rest is due afterwards.

        Where work is run by hand, no worker may ever run.
        """
        store, settings = self._runtime.store, self._settings
        deliver_all_signals(store, self._clock, settings, space)
        sweep(store, self._clock.now(), settings, space=space, all=all)
        self.render_all_pages(space)
        self._memory_files().write_missing(space)
        self.notice_edits(space)

    def _tend_pages(self) -> None:
        self.render_all_pages()
        self._memory_files().write_missing()
        self._note_edits(self._memory_files().noticed())

    def notice_edits(self, space: str | None = None) -> None:
        """Make due what people edited as files, in a space or in all."""
        self._note_edits(self._memory_files().noticed_in(space))

    def _note_edits(self, spaces: Collection[str]) -> None:
        for space in spaces:
            self._runtime.store.generations.note_edits(space, self._clock.now())

    def withdraw(self, space: str, *, publish: bool = True) -> tuple[str, ...]:
        """Render the pages that lost something that was forgotten.

        `publish` makes the pages and files of consolidation anew as well. Those that could not be
        are named.
        """
        self.render_pages(space)
        if not publish:
            return ()
        files, written = self._memory_files(), list[bool]()
        consolidator = replace(
            self.consolidator(),
            write_files=lambda space, made: written.append(files.write(space, made.number)),
        )
        made = consolidator.withdraw(space)
        left = list(made.left)
        if made.left and (directory := files.directory(space)) is not None:
            left.append(str(directory))
        # Also where a generation has it all: a page may be gone that none has.
        left += files.withdraw(space, is_published=made.has_generation and not any(written))
        return tuple(dict.fromkeys(left))

    def render_pages(self, space: str) -> None:
        """Render the topic pages of a space that are not what their facts are."""
        from recollect.pages.filing import render_pages

        render_pages(self._runtime, self._runtime.store, space)

    def render_all_pages(self, space: str | None = None) -> None:
        """The same in a space or in all, also of what has ended since."""
        from recollect.pages.filing import render_pages

        render_pages(self._runtime, self._runtime.store, space, SPACES_AT_ONCE, ended=True)

    def _fact_changed(self, space: str, fact_id: str) -> None:
        """Render the pages that a fact was on, MEMORY with its summary and skills included."""
        self.render_pages(space)
        states = self._runtime.store.generations.states(space, 1, "", None)
        if any(each.generation for each in states):
            self.consolidator().amend(space, fact_id)

    def leave_out(self, space: str) -> None:
        """Render the pages, and a generation, without what a session said whose mode forbids it."""
        self.render_pages(space)
        files = self._memory_files()
        directory = files.directory(space)
        if directory is not None and directory.exists():
            files.write(space)
        self.consolidator().leave_out(space)

    def remove_files(self, space: str) -> tuple[str, ...]:
        """Take the published files of a space away; those that could not be are named."""
        return self._memory_files().remove(space)

    def _ensure_root(self, space: str) -> None:
        """Give a space the root of its memory documents, if it has none."""
        from recollect.documents.paths import memory_root
        from recollect.documents.scope import Holder
        from recollect.types.pages import MEMORY_WORKER, Author, AuthorKind

        path = str(memory_root())
        if self._runtime.store.documents.find(space, memory_root().place) is not None:
            return
        author = Author(kind=AuthorKind.AGENT, name=MEMORY_WORKER)
        held = self.documents(space).held_by(Holder(author=author, root=memory_root()))
        with suppress(DocumentExists):
            held.write(path, "", title="Memory", expected_version=0, reason="the memory root")

    def status(self, space: str | None, limit: int) -> Status:
        from recollect.types.status import Status, model_uses

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
            unreviewed=store.facts.count_waiting(space),
            review=self._settings.review,
        )

    def plan(self, space: str | None, *, all: bool, again: bool) -> WorkPlan:  # noqa: A002
        from recollect.extraction.plan import Wanted, plan_work

        wanted = Wanted(now=self._clock.now(), space=space, all=all, again=again)
        planned = plan_work(self._runtime.store, self.extraction(), self._settings, wanted)
        doers = self._runtime.doers()
        besides = {job: doers[job] for job in ("memory-agent", "consolidation")}
        unplanned = {job: by for job, by in besides.items() if by not in ("rules", "off")}
        return replace(planned, not_included=unplanned)
