"""An answer as it comes in, and the judgement on whether it is one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeGuard

from recollect.errors import (
    InvalidMessage,
    InvalidOutput,
    ModelRejected,
    ModelUnavailable,
    OutputCut,
    PromptTooLong,
)
from recollect.messages import Json, ToolCall, as_plain_json
from recollect.models.faults import shown

CALLS_MAX = 128  # of tools, in one answer
TOKENS_MAX = 10**12  # what no answer takes, whatever a server counts


class StopReason(Enum):
    """Why an answer ended."""

    DONE = auto()
    LENGTH = auto()
    WINDOW = auto()
    REFUSED = auto()
    BROKEN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer. Where the provider did not count tokens, they are None."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()  # as the provider sent them: an id may be missing
    model: str | None
    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPiece:
    """What one object of an answer says of a call; everything may be missing, or of any type."""

    place: object = None  # where the provider says it belongs
    id: object = None
    name: object = None
    arguments: Json = None


@dataclass(slots=True, kw_only=True)
class _PartialCall:
    """A call as far as it has come in."""

    place: object
    id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=list)  # of arguments that are text
    given: dict[str, Json] = field(default_factory=dict)  # arguments that came as an object

    def is_at(self, piece: CallPiece) -> bool:
        if piece.place is not None:
            return self.place == piece.place
        return self.id == piece.id if piece.id else not piece.name

    def is_over_before(self, piece: CallPiece) -> bool:
        """Whether a piece begins another call though its place is this one's.

        Some servers put every call in the first place. A name makes the difference: pieces of one
        call have the name before the arguments, and may each have another id.
        """
        if not piece.name:
            return False
        is_other_id = bool(piece.id and self.id) and piece.id != self.id
        has_arguments = bool(self.given or any(self.parts))
        return is_other_id or (has_arguments and piece.name != self.name)

    def whole(self) -> ToolCall:
        text = _mended("".join(self.parts))
        return ToolCall(
            id=self.id or None,
            name=_mended(self.name),
            arguments=text if text.strip() else self.given,
        )


class Gathering:
    """Collects an answer from its parts; `finish` gives it, or says why it is none.

    Calls count only where tools were offered: to call what was not given is to say nothing.
    """

    def __init__(self, bytes_max: int, *, has_tools: bool = False) -> None:
        self.has_tools = has_tools
        self.stop: StopReason | None = None
        self.is_over = False  # the stream said so: nothing that matters follows
        self.refusal = ""
        self.model: str | None = None
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.is_tool_input = False  # a tool's input takes the place of words around it
        self._parts: list[str] = []
        self._calls: list[_PartialCall] = []
        self._size = 0
        self._bytes_max = bytes_max

    def end_stream(self) -> None:
        """The stream said that it is over, whether or not it said why."""
        self.is_over = True
        self.stop = self.stop or StopReason.DONE

    def add(self, text: object) -> None:
        if isinstance(text, str):
            self._take_room(text)
            self._parts.append(text)

    def _take_room(self, text: str) -> None:
        self._size += len(text.encode("utf-8", "surrogatepass"))
        if self._size > self._bytes_max:
            raise InvalidOutput(f"the answer is longer than {self._bytes_max} bytes")

    def begin_call(self, piece: CallPiece) -> None:
        """Take the beginning of a call, or all of it."""
        if not self.has_tools:
            return
        if len(self._calls) == CALLS_MAX:
            raise InvalidOutput(f"the answer calls tools more than {CALLS_MAX} times")
        self._calls.append(_PartialCall(place=piece.place))
        self._extend(self._calls[-1], piece)

    def go_on_with_call(self, piece: CallPiece) -> None:
        """Take a piece of the call at its place; where there is none, it begins one."""
        call = next((each for each in reversed(self._calls) if each.is_at(piece)), None)
        if call is None or call.is_over_before(piece):
            self.begin_call(piece)
        else:
            self._extend(call, piece)

    def _extend(self, call: _PartialCall, piece: CallPiece) -> None:
        if isinstance(piece.id, str) and not call.id:  # some servers give every piece another
            self._take_room(piece.id)
            call.id = piece.id
        if isinstance(piece.name, str) and piece.name != call.name:  # some repeat it
            self._take_room(piece.name)
            call.name += piece.name
        match piece.arguments:
            case None:
                pass
            case str(text):
                self._take_room(text)
                call.parts.append(text)
            case dict(given):
                call.given, text = _plain(given)
                self._take_room(text)
            case odd:
                _, text = _plain({"arguments": odd})
                self._take_room(text)
                call.parts.append(json.dumps(odd))

    def begin_tool_input(self) -> None:
        self.is_tool_input = True
        self._parts.clear()

    def count(self, *, sent: object = None, answered: object = None) -> None:
        """Take what the provider counted; what is no count, as is 0, is passed over."""
        if _is_count(sent):
            self.input_tokens = sent
        if _is_count(answered):
            self.output_tokens = answered

    def finish(self) -> Answer:
        text = _mended("".join(self._parts))
        calls = tuple(call.whole() for call in self._calls)
        stop = StopReason.REFUSED if self.refusal else self.stop
        match stop:
            case None | StopReason.BROKEN:
                raise ModelUnavailable("the answer broke off")
            case StopReason.REFUSED:
                why = shown(self.refusal) or "it did not say why"
                raise ModelRejected(f"the model refused: {why}")
            case StopReason.LENGTH:
                raise OutputCut("the answer was cut off at the limit of its tokens")
            case StopReason.WINDOW:
                raise PromptTooLong("the model's window was full before the answer was whole")
            case StopReason.DONE if not text.strip() and not calls:
                raise InvalidOutput("the answer is empty")
            case StopReason.DONE:
                return Answer(
                    text=text,
                    tool_calls=calls,
                    model=self.model,
                    input_tokens=self.input_tokens,
                    output_tokens=self.output_tokens,
                )


def _plain(arguments: dict[str, Json]) -> tuple[dict[str, Json], str]:
    try:
        return as_plain_json(arguments)
    except InvalidMessage as error:
        raise InvalidOutput(f"the arguments of a call cannot be used: {error}") from error


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value <= TOKENS_MAX


def _mended(text: str) -> str:
    """The text with halves of characters, which a stream may cut apart, joined or replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
