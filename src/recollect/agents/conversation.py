"""A hosted agent's turn: recalls memory, restores the history, asks the model, stores the answer.

Owns the message pipeline of document 004 from the restored history to the persisted answer, and the
compaction of a conversation between two turns. Memory, summaries and hooks are help: none of them
fails a turn.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from recollect.agents.loop import Loop, LoopLimits, LoopResult, Stop, shown_record, steps_of
from recollect.agents.outbox import Outbox
from recollect.agents.profile import AgentProfile, Hooks, TurnEnd, TurnStart
from recollect.agents.reply import Reply, answers, respond, stored_reply
from recollect.agents.runner import ANSWER_KEY, Done, Errand, LostClaimError
from recollect.agents.toolbox import Toolbox
from recollect.config import Settings
from recollect.context.assembly import Assembled, WindowLimits, assemble
from recollect.context.compaction import (
    SUMMARY_FAILURES,
    Compaction,
    ModelSummarizer,
    plan_compaction,
)
from recollect.descriptors import agent_label, from_cache_key
from recollect.errors import PromptTooLong, RecollectError, StoreError, TurnFailed
from recollect.extraction.spend import Budget, Till
from recollect.extraction.transcript import fenced
from recollect.messages import Role
from recollect.models.prompts import Prompt, load_prompt
from recollect.models.protocol import Completion, Model, Request, window_tokens
from recollect.observing import log_text
from recollect.observing.traces import MODEL, PURPOSE, spanned
from recollect.recall.recaller import Recaller
from recollect.recall.recap import joined
from recollect.recall.usage import without_citations
from recollect.runtime import Runtime
from recollect.store.protocol import Store
from recollect.types.agents import ItemKind, Turn
from recollect.types.recall import Context, Filters
from recollect.types.records import (
    Claim,
    KeyRef,
    MarkCause,
    NewRecord,
    Record,
    SessionState,
    StaleClaim,
)

PROMPTS = Path(__file__).parent / "prompts"
NOTHING = Context(text="")
QUERY_CHARS_MAX = 4000
EMERGENCY_SHARES = (2, 8)  # one part in so many of the window is used, where it is refused
RECENT_MAX = 32  # conversations kept for when the store is out of reach
COMPACTED_MAX = 500  # records that a compaction looks at; what is older was dropped long ago

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """Implements `Doer` for agents that a host runs."""

    runtime: Runtime
    store: Store
    recaller: Callable[[str], Recaller] | None  # none: nothing is remembered
    budget: Budget
    profiles: Mapping[str, AgentProfile]
    default: AgentProfile
    hooks: Hooks
    outbox: Outbox
    settle: Callable[[KeyRef, Turn, Reply | RecollectError], None]
    trouble: Callable[[KeyRef, Turn, str], None]
    _recent: OrderedDict[int, tuple[Record, ...]] = field(default_factory=OrderedDict)

    # between turns

    def prepare(self, ref: KeyRef, claim: Claim, is_lost: Callable[[], bool]) -> None:
        """Compact the conversation where it has grown too long."""
        if isinstance(self._compacted(ref, claim, is_lost), StaleClaim):
            raise LostClaimError

    def _compacted(
        self, ref: KeyRef, claim: Claim, is_lost: Callable[[], bool]
    ) -> SessionState | StaleClaim | None:
        """The new session, if there is one now: the old one is marked, what is kept is shown."""
        seen, store = self._recent.get(ref.key_id, ()), self.store
        # Mostly nothing is near: then the summary, which takes no half of the room, is not read,
        # and what was just shown as a whole is not read again.
        is_whole = 0 < len(seen) < self._settings.max_history_len
        if is_whole and self._planned(ref, seen, share=2) is None:
            return None
        newest, summary = store.records.recent_with_summary(
            ref, self._settings.compaction_threshold + 1
        )
        if self._planned(ref, newest, summary) is None:
            return None
        planned = self._planned(ref, store.records.recent(ref, COMPACTED_MAX), summary)
        if planned is None:
            return None
        return store.agents.rotate(
            claim,
            MarkCause.COMPACTION,
            self.runtime.now(),
            self.runtime.ids.new,
            summary=self._summarised(ref, summary, planned, is_lost),
            retain=len(planned.retained),
        )

    def _planned(
        self, ref: KeyRef, records: Sequence[Record], summary: str = "", *, share: int = 1
    ) -> Compaction | None:
        """What to compact, where there is room for one part in so many."""
        settings = self._settings
        taken = settings.agent_memory_tokens + settings.reply_tokens
        return plan_compaction(
            records,
            tokens_max=max(self._window_tokens(ref) - taken, 0) // 2 // share,
            threshold=settings.compaction_threshold,
            retain_recent=settings.retain_recent,
            summary=summary,
        )

    def _summarised(
        self, ref: KeyRef, summary: str, planned: Compaction, is_lost: Callable[[], bool]
    ) -> str | None:
        """The new summary; none without a model, or where it fails: older messages are dropped."""
        model = self._model(ref)
        if model is None:
            return None
        about = planned.summarised[-1].session_id
        till = Till(model, self.store.ledger, self.budget, ref.space, about)

        def ask(request: Request, what: str) -> Completion:
            return till.ask(replace(request, is_cancelled=is_lost), what)

        summarizer = ModelSummarizer(
            ask,
            self._settings,
            redact=self.runtime.redacting(ref.space),
            window_tokens=model.window_tokens,
            summary_tokens_max=self._settings.summary_tokens_max,
        )
        try:
            return summarizer.summarize(summary, planned.summarised)
        except SUMMARY_FAILURES as error:
            shown = log_text.loggable(error)
            _log.warning("agent %s: older messages are dropped: %s", ref.agent_id, shown)
            return None

    # a turn

    def do(self, errand: Errand) -> Done:
        """Answer what was said."""
        ref, turn = errand.ref, errand.turn
        store, settings = self.store, self._settings
        told = self.outbox.waiting(ref, ANSWER_KEY + turn.id)
        if told is not None:  # the caller has the answer already, only the store lacks it
            return Done(records=(told,))
        note = self._before(errand)
        model = self._model(ref)
        # One more than is shown, so that a turn that is not there as a whole is not shown in part.
        history, summary = store.records.recent_with_summary(ref, settings.max_history_len + 1)
        self._remember(ref, history)
        # Without a model nobody sees the conversation: what was said in it is remembered as well.
        shown = None if model is None else turn.session.id
        block = self._recalled(ref, turn.text, shown, _speaker((*history, *turn.records)))
        if model is not None and (not block or _is_first(turn, history, summary)):
            block = self._with_recap(ref, turn, block)
        given = {"max_tokens": settings.agent_memory_tokens, "beside": turn.session.id}
        self.runtime.told.keep(ref.space, block, turn.text, given, agent_label(ref.agent_id))
        if model is None:
            asked = {(record.session_id, record.seq) for record in turn.records}
            reply = Reply(
                text=respond(block, asked),
                turn_id=turn.id,
                citations=answers(block, asked),
                is_offline=True,
            )
        else:
            reply = self._thought(errand, model, _Given(block, note, summary), history)
        return Done(records=(_answer(reply),), told=_Told(reply=reply, block=block))

    def _thought(
        self, errand: Errand, model: Model, given: _Given, history: Sequence[Record]
    ) -> Reply:
        ref, turn = errand.ref, errand.turn
        settings = self._settings
        attempt = turn.items[0].attempts + 1
        till = Till(model, self.store.ledger, self.budget, ref.space, turn.session.id, attempt)
        loop = Loop(
            ask=lambda request: till.ask(request, "chat"),
            assemble=self._assembling(ref, given),
            toolbox=Toolbox(self._profile(ref).tools, redact=self.runtime.redacting(ref.space)),
            limits=LoopLimits.of(settings, reply_tokens=settings.reply_tokens),
            clock=self.runtime.clock,
            keep=partial(self._kept, errand),
            turn_id=turn.id,
            is_cancelled=errand.is_lost,
        )
        try:
            result = loop.run(history, turns_before=_steps_before(turn, history))
        except PromptTooLong as error:
            result = self._in_emergency(errand, loop, given.summary, error)
        return _reply(turn, result, given.block)

    def _in_emergency(
        self, errand: Errand, loop: Loop, summary: str, error: PromptTooLong
    ) -> LoopResult:
        """Go on with the last messages alone, where a window is smaller than it was said to be."""
        ref, settings = errand.ref, self._settings
        for share in EMERGENCY_SHARES:
            _log.warning(
                "agent %s is shown its last messages alone: %s",
                ref.agent_id,
                log_text.loggable(error),
            )
            limits = WindowLimits(
                window_tokens=self._window_tokens(ref) // share,
                reply_tokens=settings.reply_tokens // share,
                max_history_len=settings.emergency_retain,
            )
            given = _Given(summary=summary)
            smaller = replace(loop, assemble=self._assembling(ref, given, limits))
            history = self.store.records.recent(ref, settings.max_history_len + 1)
            try:
                return smaller.run(history, turns_before=_steps_before(errand.turn, history))
            except PromptTooLong as again:
                error = again
        raise error

    def _assembling(
        self, ref: KeyRef, given: _Given, limits: WindowLimits | None = None
    ) -> Callable[[Sequence[Record]], Assembled]:
        settings, profile = self._settings, self._profile(ref)
        memory = "\n\n".join(part for part in (given.block.text, given.note) if part)
        return partial(
            assemble,
            system=self._system(ref, profile),
            summary=given.summary,
            memory_block=memory,
            tools=tuple(tool.definition for tool in profile.tools),
            limits=limits
            or WindowLimits(
                window_tokens=self._window_tokens(ref),
                reply_tokens=settings.reply_tokens,
                max_history_len=settings.max_history_len,
            ),
            redact=self.runtime.redacting(ref.space),
        )

    def _system(self, ref: KeyRef, profile: AgentProfile) -> str:
        own = self._settings.prompts_dir
        prompt = _shipped_prompt() if own is None else load_prompt(PROMPTS, "chat", own)
        now = self.runtime.clock.now().astimezone(UTC)
        return prompt.fill(
            agent=json.dumps(from_cache_key(ref.agent_id).id, ensure_ascii=False),
            now=f"{now:%Y-%m-%d %H:%M}",
            instructions=profile.instructions,
        ).strip()

    def _recalled(
        self, ref: KeyRef, text: str, session_id: str | None, speaker: str | None
    ) -> Context:
        """What memory has to say; where it cannot be asked, nothing."""
        tokens, recaller = self._settings.agent_memory_tokens, self.recaller
        if recaller is None or not tokens or not text.strip():
            return NOTHING

        def recalled() -> Context:
            query = text[:QUERY_CHARS_MAX]
            return recaller(ref.space).context(query, tokens, beside=session_id, speaker=speaker)

        return _helped(ref, "memory", recalled, NOTHING)

    def _with_recap(self, ref: KeyRef, turn: Turn, found: Context) -> Context:
        """A block with what a conversation begins with, in what room it leaves."""
        settings, recaller = self._settings, self.recaller
        tokens = settings.agent_memory_tokens
        if recaller is None:
            return found

        def with_recap() -> Context:
            recap = recaller(ref.space).recapper.context(
                min(tokens - found.token_count - 1, settings.recap_tokens),
                filters=Filters(project=turn.session.project, or_no_project=True),
                beside=turn.session.id,
                after=found,
            )
            both = joined(found, recap)
            return both if both.token_count <= tokens else found

        return _helped(ref, "a recap", with_recap, found)

    # what became of it

    def stored(self, errand: Errand, done: Done) -> None:
        told = done.told
        if errand.turn.kind is ItemKind.RESET:
            self._recent.pop(errand.ref.key_id, None)
        if self.recaller is None:  # nothing of it outlives the process, nor fills it up
            self.store.records.trim(errand.ref, self._settings.max_history_len)
        if not isinstance(told, _Told):
            self.settle(errand.ref, errand.turn, _stored_reply(errand.turn))
            return
        self._remember_too(errand.ref, shown_record(_answer(told.reply), self.runtime.now()))
        self.settle(errand.ref, errand.turn, told.reply)
        self._cite(errand, told)
        if self.hooks.after is not None:
            end = TurnEnd(ref=errand.ref, turn=errand.turn, reply=told.reply)
            _quietly("after", partial(self.hooks.after, end))

    def failed(self, errand: Errand, error: Exception, *, is_parked: bool) -> None:
        told = self.runtime.redacting(errand.ref.space)(f"{type(error).__name__}: {error}")
        if is_parked:
            self.settle(errand.ref, errand.turn, TurnFailed(told))
        else:
            self.trouble(errand.ref, errand.turn, told)

    def unstored(self, errand: Errand, done: Done, error: StoreError) -> None:
        if isinstance(done.told, _Told):  # else it waits there already
            self.outbox.add(errand.ref, done.records, error)
            self.settle(errand.ref, errand.turn, done.told.reply)

    def _cite(self, errand: Errand, told: _Told) -> None:
        if (recaller := self.recaller) is not None and told.block:
            block, cited, turn = told.block, told.reply.cited, errand.turn.id
            cite = partial(recaller(errand.ref.space).cite, block, cited, turn=turn)
            _helped(errand.ref, "counting what was recalled", cite, 0)

    # without a store

    def detached(self, ref: KeyRef, turn_id: str, said: Record) -> Reply:
        """Answer while the store is out of reach, from what was seen last."""
        model = self._model(ref)
        if model is None:
            return Reply(text=respond(NOTHING), turn_id=turn_id, is_offline=True)
        history = [*self._recent.get(ref.key_id, ()), said]
        summary = _helped(ref, "its summary", partial(self.store.records.summary, ref), "")
        shown = self._assembling(ref, _Given(summary=summary))(history)
        request = Request(
            system=shown.system,
            messages=shown.messages,
            output_tokens_max=self._settings.reply_tokens,
        )
        asked = {MODEL: model.name, PURPOSE: "chat"}
        with spanned("model", asked, traced=self._settings.traces):
            completion = model.complete(request)
        reply = Reply(text=completion.text.strip(), turn_id=turn_id)
        self._remember_too(ref, said, shown_record(_answer(reply), self.runtime.now()))
        return reply

    # the parts

    def _remember(self, ref: KeyRef, history: Sequence[Record]) -> None:
        """For turns without a store: the conversations that were last spoken in."""
        self._recent.pop(ref.key_id, None)
        self._recent[ref.key_id] = tuple(history[-self._settings.max_history_len :])
        while len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)

    def _kept(self, errand: Errand, records: Sequence[NewRecord]) -> Sequence[Record]:
        kept = errand.keep(records)
        self._remember_too(errand.ref, *kept)
        return kept

    def _remember_too(self, ref: KeyRef, *records: Record) -> None:
        self._remember(ref, [*self._recent.get(ref.key_id, ()), *records])

    def _before(self, errand: Errand) -> str:
        if self.hooks.before is None:
            return ""
        start = TurnStart(ref=errand.ref, turn=errand.turn)
        given = _quietly("before", partial(self.hooks.before, start))
        return f"[From the host, for this turn]\n{fenced(given)}" if isinstance(given, str) else ""

    @property
    def _settings(self) -> Settings:
        return self.runtime.settings

    def _profile(self, ref: KeyRef) -> AgentProfile:
        return self.profiles.get(ref.agent_id, self.default)

    def _window_tokens(self, ref: KeyRef) -> int:
        return window_tokens(self._model(ref), self._settings)

    def _model(self, ref: KeyRef) -> Model | None:
        return self._profile(ref).model or self.runtime.models.main()


@dataclass(frozen=True, slots=True)
class _Given:
    """What a model is shown beside the messages: from memory, from the host, from before."""

    block: Context = NOTHING
    note: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A reply, and the block of memory it was given."""

    reply: Reply
    block: Context


def _helped(ref: KeyRef, without: str, help_: Callable[[], T], otherwise: T) -> T:
    """What helps a turn; where it cannot be had that is logged, and the turn goes on."""
    try:
        return help_()
    except RecollectError as error:
        shown = log_text.loggable(error)
        _log.warning("agent %s goes on without %s: %s", ref.agent_id, without, shown)
        return otherwise


@cache
def _shipped_prompt() -> Prompt:
    """Read once: a user's own may change at any time, this one does not."""
    return load_prompt(PROMPTS, "chat")


def _speaker(said: Sequence[Record]) -> str | None:
    """Who is talking, as they were named last."""
    return next(
        (each.name for each in reversed(said) if each.role == Role.USER and each.name), None
    )


def _is_first(turn: Turn, history: Sequence[Record], summary: str) -> bool:
    """Whether nothing was said before this turn."""
    return not summary and len(history) <= len(turn.records)


def _steps_before(turn: Turn, history: Sequence[Record]) -> int:
    """How often the model was asked in this turn already, in all sessions it has gone through."""
    return max(steps_of(turn.records, turn.id), steps_of(history, turn.id))


def _reply(turn: Turn, result: LoopResult, block: Context) -> Reply:
    known = [citation.mark for citation in block.citations]
    cited = without_citations(result.text, known=known)
    text = cited.text.strip()
    if result.stop is not Stop.ANSWERED:
        text = f"{text}\n\n[Stopped: {result.reason}.]".strip()
    return Reply(
        text=text,
        turn_id=turn.id,
        stop=result.stop,
        citations=block.citations,
        cited=cited.marks,
        tokens=result.tokens,
    )


def _stored_reply(turn: Turn) -> Reply:
    """The answer that was stored before the turn came to its end; none for a reset."""
    stored = [each for each in turn.records if each.key == ANSWER_KEY + turn.id]
    return stored_reply(stored[-1] if stored else None, turn.id)


def _answer(reply: Reply) -> NewRecord:
    about = {"turn": reply.turn_id}
    if reply.stop is not Stop.ANSWERED:
        about["stop"] = reply.stop.value
    if reply.is_offline:
        about["responder"] = "offline"
    return NewRecord(
        role=Role.ASSISTANT,
        content=reply.text,
        append_key=ANSWER_KEY + reply.turn_id,
        metadata=json.dumps(about),
    )


def _quietly(name: str, call: Callable[[], object]) -> object:
    """Run a host's hook; what it raises is the host's business, not the turn's."""
    try:
        return call()
    except Exception as error:
        _log.error("the hook %s failed: %s", name, log_text.trail(error))
        return None
