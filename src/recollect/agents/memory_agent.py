"""The memory-agent: reads what its source agent's sessions say and files it below `~/memory`.

Owns A5 to A8: a transcript is rendered when it is read, so that no copy escapes erasure; documents
are changed in a changeset that commits with the end of the turn; nothing outside the memory root is
seen or changed. Its driver is the rule-based organiser, or a model where one is set for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from recollect.agency import Item, Span
from recollect.agents.compacting import Compactor
from recollect.agents.guarding import objection
from recollect.agents.loop import Loop, LoopLimits, Stop
from recollect.agents.organiser import organise_all
from recollect.agents.organiser_facts import HoldingFacts
from recollect.agents.organiser_shelf import Limits
from recollect.agents.runner import ANSWER_KEY, Done, Errand, LostClaimError
from recollect.agents.toolbox import Tool, Toolbox
from recollect.clock import Clock
from recollect.config import Settings
from recollect.context.assembly import Limits as Room
from recollect.context.assembly import assemble
from recollect.descriptors import from_cache_key, is_background
from recollect.document import Author, AuthorKind
from recollect.documents.changeset import Changeset
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.documents.tools import DocumentTools, tool_definitions
from recollect.documents.tree import Documents
from recollect.domain import Claim, KeyRef, NewRecord, Record, SessionState, StaleClaim
from recollect.errors import InvalidOutput, StoreError
from recollect.extraction.rules import RuleExtractor
from recollect.extraction.run import Reader
from recollect.extraction.spend import Budget, Purpose, Till
from recollect.extraction.transcript import chunk, render
from recollect.ids import Ids
from recollect.knowledge import Fact, FactQuery, Source, When
from recollect.messages import Role
from recollect.models.prompts import load_prompt
from recollect.models.protocol import Model, ToolDefinition
from recollect.models.tokens import estimate_tokens
from recollect.redaction import Redactor
from recollect.store.protocol import Store
from recollect.topics.claims import Claim as Statement
from recollect.topics.claims import claims_of

PROMPTS = Path(__file__).parent / "prompts"
RECORDS_AT_ONCE = 200
FACTS_PAGE = 500
PAGE_BYTES = 49_152  # after which a page goes on in another
HISTORY = 20  # of its own records that a model is shown
WINDOW_SHARE = 0.5  # of the room beside prompt, tools and reply, for one stretch of a transcript
NOTHING_TO_DO = "There was nothing to file."
ALLOWED = frozenset(
    {
        *("document_read", "document_write", "document_append", "document_patch"),
        *("document_tree", "document_search"),
    }
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAgents:
    """Implements `Doer` for memory-agents."""

    store: Store
    settings: Settings
    clock: Clock
    ids: Ids
    redactor: Callable[[], Redactor]
    documents: Callable[[str], Documents]
    model: Model | None
    budget: Budget

    def prepare(self, ref: KeyRef, claim: Claim, is_lost: Callable[[], bool]) -> None:
        model = self.model
        till = None if model is None else partial(self._till, ref, model)
        compactor = Compactor(
            store=self.store,
            settings=self.settings,
            clock=self.clock,
            ids=self.ids,
            redact=self._redact,
        )
        if isinstance(compactor.compact_if_due(ref, claim, till, is_lost), StaleClaim):
            raise LostClaimError

    def do(self, errand: Errand) -> Done:
        """File what the items of a turn are about."""
        changeset = self._changeset(errand.ref)
        reports, sources = [], []
        for item in errand.turn.items:
            reports.append(self._filed(errand, item, changeset))
            if item.about is not None:
                about = item.about
                sources.append(
                    Source(session_id=about.session_id, seq=about.first, seq_to=about.last)
                )
        report = NewRecord(
            role=Role.ASSISTANT,
            content=" ".join(reports) or NOTHING_TO_DO,
            append_key=ANSWER_KEY + errand.turn.id,
        )
        return Done(records=(report,), documents=changeset.prepared(sources))

    def stored(self, errand: Errand, done: Done) -> None:
        count = 0 if done.documents is None else len(done.documents.edits)
        _log.info("%s: filed %s, %d edits", errand.ref.agent_id, errand.turn.text, count)

    def failed(self, errand: Errand, error: Exception, *, is_parked: bool) -> None:
        """It stays in the inbox, where `status` shows it."""

    def unstored(self, errand: Errand, done: Done, error: StoreError) -> None:
        """The turn is done again: nothing of it is anywhere else."""

    # one stretch of a session

    def _filed(self, errand: Errand, item: Item, changeset: Changeset) -> str:
        session = None
        if item.about is not None:
            session = self.store.sessions.get(errand.ref.space, item.about.session_id)
        if item.about is not None and session is None:
            return NOTHING_TO_DO  # forgotten with all of its space
        if session is not None and not session.remembered:
            return self._left_out(changeset, session)
        if self.model is not None:
            return self._by_model(errand, item, session, changeset, self.model)
        if item.about is None or session is None:
            return NOTHING_TO_DO
        now = self.clock.now()
        known = list(self._facts(session, item.about))
        gone = {fact.id for fact in known if fact.valid_to is not None and fact.valid_to <= now}
        claims = claims_of((fact for fact in known if fact.id not in gone), project=session.project)
        if self.settings.pipeline == "memory-agent":  # nobody has looked for facts
            claims = list(self._found(session, item.about))
        limits = Limits(page_bytes_max=min(PAGE_BYTES, self.settings.document_bytes_max // 2))
        return organise_all(changeset, claims, now=now, gone=gone, limits=limits).report

    def _left_out(self, changeset: Changeset, session: SessionState) -> str:
        """Take off the pages what a session said that is not to be remembered any more."""
        facts = HoldingFacts(store=self.store, space=session.space, now=self.clock.now())
        done = organise_all(
            changeset,
            (),
            now=facts.now,
            gone=(session.id,),
            standing=facts.of_session(session.id),
        )
        return done.report if done.written else NOTHING_TO_DO

    def _facts(self, session: SessionState, about: Span) -> Iterator[Fact]:
        """The facts that a stretch of a session bears out."""
        before: Fact | None = None
        while True:
            query = FactQuery(
                at=self.clock.now(),
                when=When.NOW,
                every=True,
                session_id=session.id,
                before=before,
            )
            page = self.store.facts.list(session.space, query, FACTS_PAGE)
            for fact in page:
                if any(_is_within(source, about) for source in fact.sources):
                    yield fact
            if len(page) < FACTS_PAGE:
                return
            before = page[-1]

    def _found(self, session: SessionState, about: Span) -> Iterator[Statement]:
        """What rules find in a stretch of a session, where no extraction came before."""
        extractor = RuleExtractor()
        for records in self._stretches(session, about):
            piece = self._reader.piece(session, records, None)
            draft = extractor.extract(piece)
            yield from claims_of(draft.facts, session_id=session.id, project=session.project)

    def _stretches(self, session: SessionState, about: Span) -> Iterator[Sequence[Record]]:
        after = about.first - 1
        while after < about.last:
            page = self.store.records.after(session.space, session.id, after, RECORDS_AT_ONCE)
            records = [record for record in page if record.seq <= about.last]
            if not records:
                return
            yield records
            after = records[-1].seq

    # by a model

    def _by_model(
        self,
        errand: Errand,
        item: Item,
        session: SessionState | None,
        changeset: Changeset,
        model: Model,
    ) -> str:
        """Let a model file one stretch after the other; all of it, or nothing."""
        history = self._history(errand)
        report = NOTHING_TO_DO
        for number, prompt in enumerate(self._prompts(item, session)):
            loop = self._loop(errand, changeset, model)
            asked = _asking(errand, prompt, number, self.clock)
            result = loop.run([*history, asked])
            if result.stop is not Stop.ANSWERED:
                raise InvalidOutput(f"the memory-agent did not come to an end: {result.reason}")
            report = self._redact(errand.ref.space)(result.text).strip() or report
        return report

    def _prompts(self, item: Item, session: SessionState | None) -> Iterator[str]:
        if item.about is None or session is None:
            yield item.text
            return
        request = load_prompt(PROMPTS, "memory-agent-request", self.settings.prompts_dir)
        tokens_max = int(self._room() * WINDOW_SHARE)
        is_quiet = is_background(session.agent_id) or session.parent is not None
        kind = "No person takes part in it." if is_quiet else ""
        for records in self._stretches(session, item.about):
            blocks = self._reader.piece(session, records, None).blocks
            while blocks:
                part = chunk(blocks, tokens_max, estimate_tokens)
                yield request.fill(
                    first=str(part.blocks[0].seq),
                    last=str(part.blocks[-1].seq),
                    session=session.id,
                    kind=kind,
                    transcript=render(part.blocks, is_background=is_quiet),
                )
                blocks = blocks[part.taken :]

    def _room(self) -> int:
        """Tokens that what is read and what is done with it may take together."""
        budget = self._limits.budget(system=self._system(), tools=_definitions())
        return budget.history_tokens

    def _system(self) -> str:
        prompt = load_prompt(PROMPTS, "memory-agent", self.settings.prompts_dir)
        return prompt.fill(root=str(memory_root()))

    @property
    def _limits(self) -> Room:
        return Room(
            window_tokens=self.settings.model_window_tokens,
            reply_tokens=self.settings.model_output_tokens_max,
            max_history_len=self.settings.max_history_len,
        )

    def _loop(self, errand: Errand, changeset: Changeset, model: Model) -> Loop:
        settings, turn = self.settings, errand.turn
        ref = errand.ref
        till = self._till(ref, model, turn.session.id, attempt=turn.items[0].attempts + 1)
        redact = self._redact(ref.space)
        toolbox = Toolbox(_tools(changeset), allowed=ALLOWED, redact=redact)
        return Loop(
            ask=lambda request: till.ask(request, "memory-agent"),
            assemble=partial(
                assemble,
                system=self._system(),
                tools=toolbox.definitions,
                limits=self._limits,
                redact=redact,
            ),
            toolbox=toolbox,
            limits=LoopLimits(
                turns=settings.agent_turns_max,
                tokens=settings.agent_tokens_max,
                seconds=settings.agent_seconds_max,
                tool_bytes=settings.agent_tool_bytes_max,
                reply_tokens=settings.model_output_tokens_max,
            ),
            clock=self.clock,
            keep=errand.keep,
            # A turn that is tried again is done from the beginning: its changeset was lost.
            turn_id=f"{turn.id}:{self.ids.new()}",
            is_cancelled=errand.is_lost,
        )

    def _history(self, errand: Errand) -> list[Record]:
        """What it did before, without what was begun of this turn."""
        begun = {(record.session_id, record.seq) for record in errand.turn.records}
        steps = f"step:{errand.turn.id}:"
        recent = self.store.records.recent(errand.ref, HISTORY + len(begun))
        return [
            record
            for record in recent
            if (record.session_id, record.seq) not in begun
            and not (record.key or "").startswith(steps)
        ]

    # the parts

    @property
    def _reader(self) -> Reader:
        return Reader(store=self.store, redactor=self.redactor(), known_max=0)

    def _changeset(self, ref: KeyRef) -> Changeset:
        author = Author(kind=AuthorKind.AGENT, name=from_cache_key(ref.agent_id).id)
        holder = Holder(author=author, root=memory_root())
        return self.documents(ref.space).held_by(holder).changeset("filed by the memory-agent")

    def _till(self, ref: KeyRef, model: Model, session_id: str, attempt: int = 1) -> Till:
        purpose = Purpose(space=ref.space, session_id=session_id, attempt=attempt)
        return Till(model, self.store.ledger, self.settings, self.clock, self.budget, purpose)

    def _redact(self, space: str) -> Callable[[str], str]:
        return self.redactor().keyed(space).redact


def _is_within(source: Source, about: Span) -> bool:
    is_same = source.session_id == about.session_id
    return is_same and source.seq <= about.last and source.seq_to >= about.first


def _definitions() -> tuple[ToolDefinition, ...]:
    return tuple(
        ToolDefinition(
            name=each["name"], description=each["description"], parameters=each["input_schema"]
        )
        for each in tool_definitions("anthropic")
        if each["name"] in ALLOWED
    )


def _tools(changeset: Changeset) -> Iterator[Tool]:
    tools = DocumentTools(changeset)
    for definition in _definitions():

        def run(arguments: Mapping[str, Any], name: str = definition.name) -> str:
            refused = objection(changeset, name, arguments)
            return tools.call(name, arguments) if refused is None else f"Error: {refused}"

        yield Tool(definition=definition, run=run)


def _asking(errand: Errand, prompt: str, number: int, clock: Clock) -> Record:
    """The request as a record that is shown and never stored: it holds what others said."""
    now = clock.now()
    return Record(
        session_id=errand.turn.session.id,
        seq=errand.turn.session.last_seq + 1 + number,
        role=Role.USER,
        content=prompt,
        name=None,
        body=None,
        at=now,
        created_at=now,
        key=None,
        metadata={},
    )
