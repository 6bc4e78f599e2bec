"""The consolidation agent: a model that writes memory part by part, within hard budgets.

Owns G8: it is shown what has changed and what is known, may open the sessions it is about, and
answers with text; the pages are put together from that, so it can write nothing else. Nothing of
its run is remembered. A part that it cannot write is left to the rules, and so is what its budget
does not reach; what it wrote stands, so that the next run goes on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.agents.loop import Loop, LoopLimits, Stop, shown_record
from recollect.agents.toolbox import Tool, Toolbox
from recollect.clock import Clock
from recollect.config import Settings
from recollect.consolidation.evidence import SummarizedSession
from recollect.consolidation.handbook import WrittenText
from recollect.consolidation.pages import WRITTEN, WrittenLimits
from recollect.consolidation.parts import (
    MemoryPart,
    PartPlan,
    WrittenPart,
    session_input,
)
from recollect.context.assembly import WindowLimits as Room
from recollect.context.assembly import assemble
from recollect.errors import (
    CallCancelled,
    InvalidOutput,
    ModelError,
    ModelRejected,
    PermanentFailure,
    Postponed,
)
from recollect.extraction.spend import Budget, Till
from recollect.ids import Ids
from recollect.messages import Role
from recollect.models.prompts import Prompt, load_prompt
from recollect.models.protocol import Model, ToolDefinition
from recollect.models.tokens import estimate_tokens, estimate_tools
from recollect.quarantine import safe_for_models
from recollect.redaction import Redactor
from recollect.types.facts import Spent
from recollect.types.records import NewRecord, Record

if TYPE_CHECKING:
    from recollect.store.relational.extractions import Ledger

PROMPTS = Path(__file__).parent / "prompts"
PURPOSE = "consolidate"
READING = "session_read"
OPENED_MAX = 6  # sessions that are opened for one part
OPENED_CHARS = 12_000  # of one session
ANSWERS_MAX = OPENED_MAX + 6  # of one part, with those that were cut off
FAILURES_MAX = 3  # parts that a model gets wrong before it has written any
COSTS_MAX = 6  # of one part: as many times what it takes to ask once and have one answer
WINDOW_SHARE = 4  # a section takes at most this part of the window,
TOKENS_SHARE = 40  # and this part of what a run may use
AGAIN_SECONDS = 60.0  # after which a run goes on with what is left
CHARS_PER_TOKEN = 3  # that are safe to promise
CUT = (
    "Your answer was cut off at the limit of its tokens. What you have written so far is kept: go "
    "on exactly where it stopped, without saying any of it again. A call that was cut off was not "
    "carried out."
)
NO_MORE = "Error: nothing more can be opened for this part; write it from what you have."

_OPEN = ToolDefinition(
    name=READING,
    description="Show what one of the named sessions came to, in full. For what the list does not "
    "tell and the text needs.",
    parameters={
        "type": "object",
        "properties": {"session": {"type": "string", "description": "Its name, such as s3."}},
        "required": ["session"],
        "additionalProperties": False,
    },
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBrief:
    """What one run is about.

    `since` says how the memory that stands came about and what has changed; `opened` gives what a
    session came to, in full; `written` is called with what was written so far; `is_lost` says that
    the claim is held by nobody here any more; `is_persons` whether a person gave an order.
    """

    space: str
    since: str
    plan: PartPlan
    opened: Callable[[SummarizedSession], str]
    attempt: int = 1
    written: Callable[[Mapping[str, WrittenText]], None] = lambda _texts: None
    is_lost: Callable[[], bool] = lambda: False
    is_persons: Callable[[str], bool] = lambda _order: False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """What a run came to. `error` is why parts were left to the rules; none: none was."""

    texts: Mapping[str, WrittenText]
    parts: tuple[WrittenPart, ...]
    note: str
    spent: Spent
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConsolidator:
    """Writes parts of memory with a model. Safe to share between threads."""

    settings: Settings
    clock: Clock
    ids: Ids
    redactor: Callable[[], Redactor]
    model: Model
    ledger: Ledger
    budget: Budget
    limits: LoopLimits
    page_limits: WrittenLimits = WRITTEN

    @property
    def name(self) -> str:
        """The maker of generations: the model and the version of its prompt."""
        return f"{self.model.name}/consolidation-{self.prompt('consolidation').version}"

    @property
    def shown_limits(self) -> WrittenLimits:
        """Limits of a run: of what is shown, as much as window and budget allow."""
        room = self.room.budget(system=self.prompt("consolidation").text, tools=(_OPEN,))
        tokens = min(room.history_tokens // WINDOW_SHARE, self.limits.tokens // TOKENS_SHARE)
        usual, most = self.page_limits, max(1, tokens)
        section, group = min(usual.section_tokens, most), min(usual.group_tokens, most)
        return replace(usual, section_tokens=section, group_tokens=group)

    @property
    def room(self) -> Room:
        return Room(
            window_tokens=self.model.window_tokens,
            reply_tokens=self.limits.reply_tokens,
            max_history_len=self.settings.max_history_len,
        )

    def run(self, brief: AgentBrief) -> AgentReport:
        """Write the parts of a plan; what failed, if no part could be written.

        CallCancelled: the claim was lost.
        """
        till = Till(self.model, self.ledger, self.budget, brief.space, attempt=brief.attempt)
        redact = self.redactor().keyed(brief.space).redact
        run = _Run(agent=self, brief=brief, till=till, redact=redact, id=self.ids.new())
        run.write()
        return run.report()

    def prompt(self, name: str) -> Prompt:
        return load_prompt(PROMPTS, name, self.settings.prompts_dir)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run: what was written, what was not and why. For one thread."""

    agent: ModelConsolidator
    brief: AgentBrief
    till: Till
    redact: Callable[[str], str]
    id: str
    texts: dict[str, WrittenText] = field(default_factory=dict)
    parts: list[WrittenPart] = field(default_factory=list)
    failed: list[Exception] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # the names of what is left to the rules
    opens: bool = True  # whether the model can call tools
    began_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.began_at = self.agent.clock.now()

    def write(self) -> None:
        """One part after the other; all that are to come have their share of the budget kept."""
        plan = self.brief.plan.parts
        costs = [self._cost(each) for each in plan]
        for number, part in enumerate(plan):
            if self._is_given_up():
                self.left += part.names
                continue
            room = self.agent.limits.tokens - self.till.spent.tokens - sum(costs[number + 1 :])
            try:
                if self._seconds_left() <= 0 or (self.texts and room < costs[number]):
                    raise Postponed("one run's budget is used up", delay_seconds=AGAIN_SECONDS)
                self._write(part, room)
            except CallCancelled:
                raise
            except (ModelError, Postponed) as error:
                _log.info("%s: a part is left to the rules: %s", self.brief.space, error)
                self.failed.append(error)
                self.left += part.names

    def _seconds_left(self) -> float:
        passed = self.agent.clock.now() - self.began_at
        return self.agent.limits.seconds - passed.total_seconds()

    def _is_given_up(self) -> bool:
        """Whether the next part would fail as well: the model is away, or never right."""
        last = self.failed[-1] if self.failed else None
        is_away = last is not None and not isinstance(last, InvalidOutput | PermanentFailure)
        return is_away or (not self.texts and len(self.failed) >= FAILURES_MAX)

    def _cost(self, part: MemoryPart) -> int:
        system = estimate_tokens(self.agent.prompt("consolidation").text)
        request = estimate_tokens(self._request(part)) + estimate_tools((_OPEN,))
        return system + request + self._reply(part)

    def _reply(self, part: MemoryPart) -> int:
        """About what an answer takes."""
        usual = self.agent.page_limits.summary_chars
        most = sum(part.bytes_max.get(name, usual) for name in part.names)
        return min(self.agent.limits.reply_tokens, most // CHARS_PER_TOKEN)

    def _write(self, part: MemoryPart, tokens: int) -> None:
        opened: dict[str, SummarizedSession] = {}
        asked = self._record(NewRecord(role=Role.USER, content=self._request(part)))
        try:
            result = self._loop(part, opened, tokens).run([asked])
        except ModelRejected:
            if not self.opens:
                raise
            self.opens = False  # many a model cannot call tools, and its server says so
            result = self._loop(part, opened, tokens).run([asked])
        if result.stop is not Stop.ANSWERED:
            raise InvalidOutput(f"the consolidation agent did not finish: {result.reason}")
        answer = safe_for_models(self.redact(result.text), self.brief.is_persons)
        texts = part.read(answer, self.agent.page_limits)
        self.left += [name for name in part.names if name not in texts]
        if not texts:
            raise InvalidOutput("the consolidation agent wrote nothing that names a source")
        inputs = part.inputs.union(map(session_input, opened.values()))
        self.texts |= texts
        self.parts.append(WrittenPart(names=tuple(texts), inputs=inputs))
        self.brief.written(self.texts)

    def _request(self, part: MemoryPart) -> str:
        filled = self.agent.prompt("consolidation-request").fill(
            since=self.brief.since,
            material=part.material(),
            task=part.task(self.agent.page_limits),
        )
        return self.redact(filled)

    def _loop(self, part: MemoryPart, opened: dict[str, SummarizedSession], tokens: int) -> Loop:
        agent = self.agent
        cost = self._cost(part)
        reply = agent.limits.reply_tokens  # which the loop keeps free, however short an answer is
        most = min(tokens, COSTS_MAX * (cost + reply))
        before = self.till.spent.tokens

        def has_room() -> bool:
            spent = self.till.spent.tokens - before
            return len(opened) < OPENED_MAX and spent + 2 * (cost + reply) < most

        tool = Tool(definition=_OPEN, run=partial(self._opened, part, opened, has_room))
        toolbox = Toolbox([tool] if self.opens else [], redact=self.redact)
        return Loop(
            ask=partial(self.till.ask, what=PURPOSE),
            assemble=partial(
                assemble,
                system=agent.prompt("consolidation").text,
                tools=toolbox.definitions,
                limits=agent.room,
                redact=self.redact,
            ),
            toolbox=toolbox,
            limits=LoopLimits(
                turns=min(agent.limits.turns, ANSWERS_MAX),
                tokens=most,
                seconds=max(0.0, self._seconds_left()),
                tool_bytes=agent.limits.tool_bytes,
                reply_tokens=agent.limits.reply_tokens,
            ),
            clock=agent.clock,
            keep=lambda records: [self._record(each) for each in records],
            turn_id=self.id,
            is_cancelled=self.brief.is_lost,
            told_when_cut=CUT,
        )

    def _opened(
        self,
        part: MemoryPart,
        opened: dict[str, SummarizedSession],
        has_room: Callable[[], bool],
        arguments: Mapping[str, Any],
    ) -> str:
        """A session in full; what was opened is an input of the part."""
        name = str(arguments.get("session", "")).strip().strip("[]")
        session = part.sessions.get(name)
        if session is None:
            return f"Error: there is no session {name[:20]!r} here; give a name such as s1"
        if not has_room():
            return NO_MORE
        opened[name] = session
        text = self.brief.opened(session)
        return text if len(text) <= OPENED_CHARS else f"{text[:OPENED_CHARS]}\n[cut off here]"

    def _record(self, new: NewRecord) -> Record:
        """Memory is off: what is said here is known to this run, and to nobody after it."""
        return shown_record(new, self.agent.clock.now(), session_id=self.id)

    def report(self) -> AgentReport:
        """What came of it; the first error where nothing was written."""
        if self.failed and not self.texts:
            raise self.failed[0]
        plan = self.brief.plan
        kept: dict[frozenset[str], list[str]] = {}
        for name, (_, inputs) in plan.kept.items():
            kept.setdefault(inputs, []).append(name)
        parts = [WrittenPart(names=tuple(names), inputs=each) for each, names in kept.items()]
        texts = {name: text for name, (text, _) in plan.kept.items()}
        return AgentReport(
            texts={**texts, **self.texts},
            parts=(*parts, *self.parts),
            note=_note(len(self.texts), len(texts), self.left, self.failed),
            spent=self.till.spent,
            error=self.failed[-1] if self.failed else None,
        )


def _note(written: int, kept: int, left: Sequence[str], failed: Sequence[Exception]) -> str:
    if not written and not left:
        return "Nothing has to change."
    said = [f"{written:,} sections written", f"{kept:,} left as they were"]
    if left:
        why = f" ({type(failed[-1]).__name__}: {failed[-1]})" if failed else ""
        said.append(f"{len(left):,} left to the rules{why}")
    return f"{'; '.join(said)}."
