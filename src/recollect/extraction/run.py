"""Phase 1 on one piece of a session: select, redact, extract, check; the worker records it.

Owns invariants 6 and 7 for extraction: what an extractor returns is redacted and bounded before
anybody stores it, and no transaction is open while it works.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from recollect.config import Settings
from recollect.descriptors import is_background
from recollect.errors import InvalidOutput, InvalidSetting
from recollect.extraction.model import ModelExtractor
from recollect.extraction.parse import slug
from recollect.extraction.piece import Block, BlockKind, Extractor, Piece
from recollect.extraction.rules import RuleExtractor
from recollect.extraction.scope import is_elsewhere
from recollect.extraction.select import select
from recollect.extraction.spend import Budget, Till
from recollect.extraction.transcript import shortened
from recollect.messages import Role
from recollect.models.protocol import Model
from recollect.processing import Verdict, Work
from recollect.redaction import Redactor
from recollect.stemming import search_terms
from recollect.store.protocol import Store
from recollect.types.facts import (
    NOTHING_SPENT,
    Draft,
    Extraction,
    Fact,
    FactQuery,
    NewFact,
    Spent,
)
from recollect.types.records import Outcome, Record, SessionState

_log = logging.getLogger(__name__)

KNOWN_TEXT_CHARS = 8000  # of what people said, from which the facts to show are searched
SLUG_CHARS_MAX = 80
SUMMARY_CHARS_MAX = 40_000  # a page of memory holds it whole
FACTS_LOOKED_AT = 100  # for the facts and topics to show
TOPICS_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceReader:
    """Makes pieces of records: what of them matters, redacted, with what is known already."""

    store: Store
    redactor: Redactor
    known_max: int
    has_topics: bool = False  # also the names of topics in use

    def piece(
        self,
        session: SessionState,
        records: Sequence[Record],
        previous: Extraction | None,
        before: Sequence[Record] = (),
    ) -> Piece:
        redact = self.redactor.keyed(session.space).redact
        blocks = select(records, redact, before=before)
        # A directory may be named after a key, and what holds in it names it.
        project = None if session.project is None else redact(session.project)
        session = dataclasses.replace(session, project=project)
        known, topics = self._known(session, blocks)
        return Piece(
            session=session,
            blocks=blocks,
            first=records[0].seq,
            upto=records[-1].seq,
            previous=previous,
            known=known,
            topics=topics,
            # What another session started is talked to by its agent, not by a person.
            is_background=is_background(session.agent_id) or session.parent is not None,
        )

    def _known(
        self, session: SessionState, blocks: Sequence[Block]
    ) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
        """Live facts that the session may be about, the likeliest first, and topics in use."""
        if not self.known_max or not blocks:
            return (), ()
        looked_at = max(self.known_max, FACTS_LOOKED_AT) if self.has_topics else self.known_max
        facts, at = self.store.facts, blocks[-1].at
        found = facts.search(session.space, _terms(session, blocks), at, looked_at, sources_max=0)
        known = [fact for fact in found if fact.extractor is not None]
        if not self.has_topics:
            return tuple(known), ()
        newest = facts.list(session.space, FactQuery(at=at), FACTS_LOOKED_AT)
        here = [fact for fact in (*found, *newest) if not is_elsewhere(fact, session.project)]
        topics = dict.fromkeys(fact.topic for fact in here if fact.topic)
        known = [fact for fact in known if not is_elsewhere(fact, session.project)]
        return tuple(known[: self.known_max]), tuple(islice(topics, TOPICS_MAX))


def _terms(session: SessionState, blocks: Sequence[Block]) -> list[str]:
    """What a session is about: who speaks, the project, and what people say."""
    said = [block for block in blocks if block.kind is BlockKind.SAID]
    named = dict.fromkeys(block.speaker for block in said if block.speaker)
    place = (session.project or "").rstrip("/").rpartition("/")[2]
    told = " ".join(block.text for block in said if block.role is Role.USER or block.speaker)
    return search_terms(f"{' '.join(named)} {place} {told[:KNOWN_TEXT_CHARS]}")


class ExtractionProcessor:
    """A `Processor` that distils sessions. Safe to share between a worker's threads.

    Without an extractor the records are read and nothing is learned.
    """

    def __init__(
        self, store: Store, budget: Budget, redactor: Redactor, extractor: Extractor | None
    ) -> None:
        self._store = store
        self._settings = settings = budget.settings
        self._redactor = redactor
        self.extractor = extractor
        self._budget = budget
        self.reader = PieceReader(
            store=store,
            redactor=redactor,
            known_max=0 if extractor is None else settings.extract_known_facts,
            has_topics=isinstance(extractor, ModelExtractor),
        )

    @property
    def name(self) -> str:
        return "none" if self.extractor is None else self.extractor.name

    @property
    def is_paid(self) -> bool:
        return isinstance(self.extractor, ModelExtractor)

    def process(self, work: Work) -> Verdict:
        if self.extractor is None:
            return Verdict(outcome=Outcome.NO_OUTPUT, extractor=self.name)
        piece = self.reader.piece(work.session, work.records, work.previous, work.before)
        piece = dataclasses.replace(piece, is_lost=work.is_lost)
        if not piece.blocks:
            return self._verdict(Draft(upto=work.upto), NOTHING_SPENT)
        draft, spent = self._extract(self.extractor, piece, work)
        if draft.faults.words:
            _log.warning("session %s: %s", work.session.id, draft.faults.words)
        assert piece.first <= draft.upto <= piece.upto, "a draft of other records"
        checked = self._checked(draft, self._redactor.keyed(work.session.space))
        bounded, reason = self._bounded(checked, work)
        return self._verdict(bounded, spent, reason)

    def _extract(self, extractor: Extractor, piece: Piece, work: Work) -> tuple[Draft, Spent]:
        if not isinstance(extractor, ModelExtractor):
            return extractor.extract(piece), NOTHING_SPENT
        session, ledger = work.session, self._store.ledger
        till = Till(
            extractor.model, ledger, self._budget, session.space, session.id, work.claim.attempt
        )
        try:
            redact = self._redactor.keyed(work.session.space).redact
            draft = dataclasses.replace(extractor, ask=till.ask, redact=redact).extract(piece)
        except InvalidOutput as error:  # it quotes the answer, and is logged and shown
            raise InvalidOutput(self._redactor.redact(str(error))) from None
        return draft, till.spent

    def _verdict(self, draft: Draft, spent: Spent, reason: str | None = None) -> Verdict:
        return Verdict(
            outcome=Outcome.NO_OUTPUT if draft.is_empty else Outcome.EXTRACTED,
            reason=reason,
            upto=draft.upto,
            draft=draft,
            extractor=self.name,
            spent=spent,
        )

    # what is stored

    def _checked(self, draft: Draft, redactor: Redactor) -> Draft:
        """A draft as it may be stored: redacted again, in every field."""
        redact, name = redactor.redact, draft.rollout_slug
        clean = None if name is None else redactor.redact_name(name)
        return dataclasses.replace(
            draft,
            raw_memory=redact(draft.raw_memory),
            rollout_summary=redact(draft.rollout_summary),
            rollout_slug=clean[:SLUG_CHARS_MAX] if clean and clean == name else slug(clean),
            facts=tuple(self._checked_fact(fact, redactor) for fact in draft.facts),
        )

    def _bounded(self, draft: Draft, work: Work) -> tuple[Draft, str | None]:
        """A draft within its limits, and what was not added because of them.

        A text that is full stays as it is: nothing that was learned makes room for something new.
        """
        before, chars_max = work.previous, self._settings.memory_chars_max
        memory, is_full = _within(
            draft.raw_memory, "" if before is None else before.raw_memory, chars_max
        )
        summary, is_told = _within(
            draft.rollout_summary,
            "" if before is None else before.rollout_summary,
            min(chars_max, SUMMARY_CHARS_MAX),
        )
        full = [name for name, each in (("raw_memory", is_full), ("summary", is_told)) if each]
        if not full:
            return draft, None
        reason = f"{' and '.join(full)} full (memory_chars_max): nothing was added there"
        _log.warning("session %s: %s", work.session.id, reason)
        return dataclasses.replace(draft, raw_memory=memory, rollout_summary=summary), reason

    def _checked_fact(self, fact: NewFact, redactor: Redactor) -> NewFact:
        redact = redactor.redact
        return dataclasses.replace(
            fact,
            content=shortened(redact(fact.content), self._settings.fact_chars_max),
            quote=redact(fact.quote),
            tags=tuple(redactor.redact_name(tag) for tag in fact.tags),
            about=tuple(redactor.redact_name(name) for name in fact.about),
            metadata=redactor.redact_json(dict(fact.metadata)),
            topic=None if fact.topic is None else redactor.redact_name(fact.topic),
        )


def _within(text: str, before: str, chars_max: int) -> tuple[str, bool]:
    """A text if it is not too long, else the one before; and whether it was too long."""
    if len(text) <= chars_max:
        return text, False
    return before or shortened(text, chars_max), True


def open_extractor(settings: Settings, redactor: Redactor, model: Model | None) -> Extractor | None:
    """The extractor of the settings; none where nothing is to be learned."""
    match settings.extractor:
        case "none":
            return None
        case "model" if model is None:
            raise InvalidSetting(
                "extractor is model and no model is set: set model (RECOLLECT_MODEL), or extractor "
                "to rules"
            )
        case "model" | "auto" if model is not None:
            return ModelExtractor(model=model, settings=settings, redact=redactor.redact)
        case "rules" | "auto":
            return RuleExtractor()
        case other:
            raise AssertionError(f"an extractor the settings do not have: {other}")
