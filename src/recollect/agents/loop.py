"""The loop of model and tools: asks, runs what is called, asks again, within hard budgets.

Owns A9: turns, tokens, seconds and bytes are bounded, and a run that reaches a bound ends with the
reason. Every step is kept before the next is made: what a model called is in the history before it
is run, so that a crash leaves a call without a result and never a result without a call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from recollect.agents.toolbox import ToolAnswer, Toolbox
from recollect.clock import Clock
from recollect.collection import Message, prepare
from recollect.config import Settings
from recollect.context.assembly import Assembled
from recollect.errors import CallCancelled, OutputCut
from recollect.messages import Role, ToolCall
from recollect.models.protocol import Completion, Request
from recollect.models.tokens import estimate_tokens
from recollect.types.records import NewRecord, Record

CONTINUED_CHARS = 60  # by which an answer is known that begins anew
ENOUGH_BYTES = 16_777_216  # of one record; a model's answer is bounded long before


class Stop(StrEnum):
    """Why a run ended."""

    ANSWERED = "answered"
    TURNS = "turns"
    TOKENS = "tokens"
    SECONDS = "seconds"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimits:
    """What one run may use."""

    turns: int
    tokens: int
    seconds: float
    tool_bytes: int
    reply_tokens: int

    @classmethod
    def of(cls, settings: Settings, *, reply_tokens: int) -> LoopLimits:
        return cls(
            turns=settings.agent_turns_max,
            tokens=settings.agent_tokens_max,
            seconds=settings.agent_seconds_max,
            tool_bytes=settings.agent_tool_bytes_max,
            reply_tokens=reply_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """What a run came to."""

    text: str
    stop: Stop
    turns: int
    tokens: int

    @property
    def reason(self) -> str:
        """Why there is no answer, in words; empty where there is one."""
        return _REASONS[self.stop]


_REASONS = {
    Stop.ANSWERED: "",
    Stop.TURNS: "the model was asked as often as one run allows",
    Stop.TOKENS: "one run's tokens are used up",
    Stop.SECONDS: "one run's time is used up",
    Stop.BYTES: "tools have answered as much as one run allows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """One run of an agent. `keep` stores records and gives them back as they are stored.

    `told_when_cut` is said to a model whose answer reached the limit of its tokens, and what it
    says then goes on where it stopped; without it such an answer is an error. Calls that were cut
    off are not carried out. `is_over` says of the calls of an answer whether the model has done
    what it had to, so that it is not asked again.
    """

    ask: Callable[[Request], Completion]
    assemble: Callable[[Sequence[Record]], Assembled]
    toolbox: Toolbox
    limits: LoopLimits
    clock: Clock
    keep: Callable[[Sequence[NewRecord]], Sequence[Record]]
    turn_id: str
    is_cancelled: Callable[[], bool] = lambda: False
    told_when_cut: str = ""
    is_over: Callable[[Sequence[tuple[ToolCall, ToolAnswer]]], bool] = lambda _done: False

    def run(self, history: Sequence[Record], *, turns_before: int = 0) -> LoopResult:
        """Go on from a history until the model answers or a bound is reached."""
        records = list(history)
        deadline = self.clock.now() + timedelta(seconds=self.limits.seconds)
        tokens = tool_bytes = 0
        text = begun = ""
        for turn in range(turns_before + 1, self.limits.turns + 1):
            request = self._request(records, deadline)
            if tokens + _size(request) + self.limits.reply_tokens > self.limits.tokens:
                return self._stopped(Stop.TOKENS, text, turn - 1, tokens)
            try:
                completion = self.ask(request)
            except CallCancelled:
                if self.is_cancelled() or self.clock.now() < deadline:
                    raise
                return self._stopped(Stop.SECONDS, text, turn, tokens)
            except OutputCut as error:
                if not self.told_when_cut:
                    raise
                tokens += _size(request) + self.limits.reply_tokens
                begun = continued(begun, error.text)
                records += self.keep(self._cut_off(error.text))
                continue
            usage = completion.usage
            tokens += usage.input_tokens + usage.output_tokens
            text = completion.text or text
            if not completion.tool_calls:
                whole = continued(begun, completion.text)
                return self._stopped(Stop.ANSWERED, whole, turn, tokens)
            begun = ""
            records += self.keep([self._called(completion, turn)])
            done: list[tuple[ToolCall, ToolAnswer]] = []
            for number, call in enumerate(completion.tool_calls):
                done.append((call, self._answer(call)))
                said = self._result(*done[-1], turn, number)
                tool_bytes += len(said.content.encode(errors="surrogatepass"))
                records += self.keep([said])
            if self.is_over(done):
                return self._stopped(Stop.ANSWERED, text, turn, tokens)
            if tool_bytes > self.limits.tool_bytes:
                return self._stopped(Stop.BYTES, text, turn, tokens)
            if self.clock.now() >= deadline:
                return self._stopped(Stop.SECONDS, text, turn, tokens)
        return self._stopped(Stop.TURNS, text, self.limits.turns, tokens)

    def _request(self, records: Sequence[Record], deadline: datetime) -> Request:
        shown = self.assemble(records)
        return Request(
            system=shown.system,
            messages=shown.messages,
            tools=self.toolbox.definitions,
            output_tokens_max=self.limits.reply_tokens,
            is_cancelled=lambda: self.is_cancelled() or self.clock.now() >= deadline,
        )

    def _cut_off(self, text: str) -> list[NewRecord]:
        """What a model said before it was cut off, and what it is told of that."""
        said = [NewRecord(role=Role.ASSISTANT, content=text)] if text.strip() else []
        return [*said, NewRecord(role=Role.USER, content=self.told_when_cut)]

    def _called(self, completion: Completion, turn: int) -> NewRecord:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _text(call)},
            }
            for call in completion.tool_calls
        ]
        message = {"role": "assistant", "content": completion.text, "tool_calls": calls}
        return self._record(message, f"step:{self.turn_id}:{turn}")

    def _answer(self, call: ToolCall) -> ToolAnswer:
        if self.is_cancelled():
            raise CallCancelled("the turn was cancelled before the tool was called")
        return self.toolbox.call(call)

    def _result(self, call: ToolCall, answer: ToolAnswer, turn: int, number: int) -> NewRecord:
        message: dict[str, object] = {
            "role": "tool",
            "tool_call_id": call.id,
            "content": answer.text,
        }
        if answer.is_error:
            message["is_error"] = True
        return self._record(message, f"step:{self.turn_id}:{turn}:{number}")

    def _record(self, message: Mapping[str, object], key: str) -> NewRecord:
        return prepare(Message(message=message, key=key), record_bytes_max=ENOUGH_BYTES)

    def _stopped(self, stop: Stop, text: str, turns: int, tokens: int) -> LoopResult:
        return LoopResult(text=text, stop=stop, turns=turns, tokens=tokens)


def continued(begun: str, rest: str) -> str:
    """An answer that was cut off, with what was said to go on with it.

    A model may begin anew, or with the line in which it was stopped.
    """
    opening = begun.lstrip()[:CONTINUED_CHARS]
    if not opening or rest.lstrip().startswith(opening):
        return rest
    above, _, line = begun.rpartition("\n")
    if line and rest.lstrip().startswith(line.strip()):
        return f"{above}\n{rest.lstrip()}"
    return begun + rest


def shown_record(new: NewRecord, at: datetime, *, session_id: str = "", seq: int = 0) -> Record:
    """A record as a model is shown it, before a store has it or where none ever will."""
    return Record(
        session_id=session_id,
        seq=seq,
        role=new.role,
        content=new.content,
        name=new.name,
        body=new.body,
        at=at,
        created_at=at,
        key=new.append_key,
        metadata={},
    )


def steps_of(records: Sequence[Record], turn_id: str) -> int:
    """How often the model was asked in a turn that was interrupted."""
    own = f"step:{turn_id}:"
    return sum(
        record.role is Role.ASSISTANT and (record.key or "").startswith(own) for record in records
    )


def _text(call: ToolCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False)


def _size(request: Request) -> int:
    said = sum(estimate_tokens(message.text) for message in request.messages)
    return estimate_tokens(request.system) + said
