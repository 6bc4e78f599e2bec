"""The generations of a space for callers: show, compare, restore, run, pause."""

from __future__ import annotations

import builtins
from dataclasses import replace
from datetime import datetime

from recollect import collection
from recollect.consolidation.run import REASON, Consolidator, Preview
from recollect.consolidation.stage import Inputs, Stage
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.errors import NotFound, UsageError
from recollect.processing import WorkReport
from recollect.runtime import Runtime
from recollect.session import page_size
from recollect.store.protocol import Store
from recollect.types.facts import Fact
from recollect.types.generations import (
    ConsolidationState,
    DocumentChange,
    Generation,
    GenerationChange,
    GenerationDocument,
    GenerationDraft,
)
from recollect.worker import Worker


class Generations:
    """What consolidation made of a space's memory, one generation after the other."""

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        space: str,
        documents: Documents,
        consolidator: Consolidator,
        worker: Worker,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._space = space
        self._documents = documents  # as consolidation holds them
        self._consolidator = consolidator
        self._worker = worker

    def list(self, limit: int = 20, before: int | None = None) -> builtins.list[Generation]:
        """The newest first, a page at a time; `before` is the number of the last one shown."""
        before = None if before is None else collection.check_seq(before, "a generation")
        return self._store.generations.list(self._space, page_size(limit), before)

    def get(self, number: int | None = None) -> Generation:
        """A generation, or the current one. NotFound: there is none."""
        if number is None:
            number = self.state().generation
        number = collection.check_seq(number, "a generation")
        found = self._store.generations.get(self._space, number)
        if found is None:
            raise NotFound(f"space {self._space!r} has no generation {number}")
        return found

    def state(self) -> ConsolidationState:
        """Where consolidation stands: which generation is current, and what the next waits for."""
        now = self._runtime.now()
        found = self._store.generations.states(self._space, 1, "", now)
        return found[0] if found else ConsolidationState.untouched(self._space)

    def preview(self) -> Preview:
        """What the next generation would be made of, without making it or asking a model."""
        return self._consolidator.preview(self._space)

    def run(self) -> WorkReport:
        """Make the next generation now, whatever it waits for.

        UsageError: the space is paused. Nothing is reported if somebody else is at it.
        """
        if self.state().paused_at is not None:
            raise UsageError(f"consolidation of space {self._space!r} is paused: resume it first")
        return self._worker.consolidate(self._space)

    def pause(self) -> None:
        """Make no more generations until `resume`; one under way is given up."""
        self._store.generations.pause(self._space, self._runtime.now())

    def resume(self) -> None:
        self._store.generations.resume(self._space, self._runtime.now())

    def diff(self, older: int, newer: int | None = None) -> builtins.list[GenerationChange]:
        """What changed from one generation to another, or to the current one, by path."""
        a, b = self.get(older), self.get(newer)
        before = {each.document_id: each for each in self._of(a)}
        after = {each.document_id: each for each in self._of(b)}
        changes = [
            self._change(before.get(each), after.get(each))
            for each in {*before, *after}
            if before.get(each) != after.get(each)
        ]
        # What was restored is another version, and says the same.
        real = [each for each in changes if each.text or each.change is not DocumentChange.CHANGED]
        return sorted(real, key=lambda change: change.path)

    def _of(self, generation: Generation) -> builtins.list[GenerationDocument]:
        return self._store.generations.documents(self._space, generation.number)

    def _change(
        self, before: GenerationDocument | None, after: GenerationDocument | None
    ) -> GenerationChange:
        if before is None or after is None:
            one = before or after
            assert one is not None
            version = self._documents.version(one.document_id, one.version)
            change, mark = (
                (DocumentChange.REMOVED, "-") if after is None else (DocumentChange.ADDED, "+")
            )
            lines = [f"{mark}{line}" for line in version.body.splitlines()]
            return GenerationChange(path=version.path, change=change, text="\n".join(lines))
        text = self._documents.diff(after.document_id, before.version, after.version)
        path = self._documents.version(after.document_id, after.version).path
        return GenerationChange(path=path, change=DocumentChange.CHANGED, text=text)

    def rollback(self, number: int) -> Generation:
        """Restore what a generation said, as the newest one.

        Where something it rests on does not hold any more, or is not to be remembered, it is
        rendered again from the rest. It stays until something is learned or forgotten; `pause`
        keeps it for longer.
        """
        wanted = self.get(number)
        if not wanted.is_whole:
            raise UsageError(
                f"generation {number} cannot be restored: something it said was forgotten since"
            )
        now, settings = self._runtime.now(), self._runtime.settings
        inputs = Inputs.read(self._store.generations, self._space, settings, now)
        target, current = self._of(wanted), self._of(self.get(None))
        note, parts = f"generation {number} restored", ""
        stage = Stage(pages=StagedPages(self._documents, note), inputs=inputs.of(target))
        if any(self._is_void(each, wanted.made_at) for each in target):
            note = f"{note}, without what does not hold any more"
            stage.render()
        else:
            self._restore(stage, target, current)
            parts = self._store.generations.parts(self._space, number)
        changes = stage.pages.changes()
        if not changes.edits:
            raise UsageError(f"generation {number} is what the pages say already")
        draft = GenerationDraft(
            made_by="user",
            selection=replace(inputs.selection, added=(), retained=(), removed=(), revision=0),
            changes=changes,
            digest=inputs.selection.digest or REASON,
            note=note,
            summaries=stage.written,
            unconsumed=_not_in(target, current),
            cooldown_seconds=settings.consolidation_cooldown_seconds,
            kept=settings.generations_kept,
            restored_from=number,
            parts=parts,
        )
        made = self._store.generations.restore(self._space, draft, now, self._runtime.ids.new)
        self._consolidator.write_files(self._space, made)
        return made

    def _is_void(self, page: GenerationDocument, made_at: datetime) -> bool:
        """Whether something that a page rests on was taken back or changed since."""
        version = self._documents.version(page.document_id, page.version)
        for session_id in {source.session_id for source in version.sources}:
            state = self._store.sessions.get(self._space, session_id)
            if state is None or not state.remembered:
                return True
        facts = (self._store.facts.get(self._space, each) for each in version.facts)
        return any(fact is None or not _has_stood(fact, made_at) for fact in facts)

    def _restore(
        self,
        stage: Stage,
        target: builtins.list[GenerationDocument],
        current: builtins.list[GenerationDocument],
    ) -> None:
        """Prepare what makes the current generation the wanted one."""
        versions = {each.document_id: each.version for each in current}
        for each in target:
            if versions.pop(each.document_id, None) == each.version:
                continue
            document = stage.pages.restore(each.document_id, each.version)
            if each.session_id is not None:
                stage.written += ((each.session_id, document.path),)
        found = map(stage.pages.find, versions)
        stage.drop([page.path for page in found if page is not None])
        pages = (stage.pages.find(each.document_id) for each in target)
        stage.keep_skills(page.path for page in pages if page is not None)


def _has_stood(fact: Fact, since: datetime) -> bool:
    """Whether a fact holds and says what it said at some time."""
    is_over = fact.superseded_by is not None or fact.valid_to is not None
    return not is_over and (fact.updated_at is None or fact.updated_at <= since)


def _not_in(
    target: builtins.list[GenerationDocument], current: builtins.list[GenerationDocument]
) -> tuple[str, ...]:
    """The sessions that one generation does not have as another one does."""
    versions = {each.session_id: each.version for each in target}
    sessions = {each.session_id: each.version for each in current if each.session_id is not None}
    return tuple(sorted(id_ for id_, version in sessions.items() if versions.get(id_) != version))
