"""An answer as it comes in, and the judgement on whether it is one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeGuard

from recollect.errors import InvalidOutput, ModelRejected, ModelUnavailable, PromptTooLong
from recollect.models.faults import shown

TOKENS_MAX = 10**12  # what no answer takes, whatever a server counts


class Stop(Enum):
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
    model: str | None
    input_tokens: int | None
    output_tokens: int | None


class Gathering:
    """Collects an answer from its parts; `finish` gives it, or says why it is none."""

    def __init__(self, bytes_max: int) -> None:
        self.stop: Stop | None = None
        self.is_over = False  # the stream said so: nothing that matters follows
        self.refusal = ""
        self.model: str | None = None
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.is_tool_input = False  # a tool's input takes the place of words around it
        self._parts: list[str] = []
        self._size = 0
        self._bytes_max = bytes_max

    def end_stream(self) -> None:
        """The stream said that it is over, whether or not it said why."""
        self.is_over = True
        self.stop = self.stop or Stop.DONE

    def add(self, text: object) -> None:
        if not isinstance(text, str):
            return
        self._size += len(text.encode("utf-8", "surrogatepass"))
        if self._size > self._bytes_max:
            raise InvalidOutput(f"the answer is longer than {self._bytes_max} bytes")
        self._parts.append(text)

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
        stop = Stop.REFUSED if self.refusal else self.stop
        match stop:
            case None | Stop.BROKEN:
                raise ModelUnavailable("the answer broke off")
            case Stop.REFUSED:
                why = shown(self.refusal) or "it did not say why"
                raise ModelRejected(f"the model refused: {why}")
            case Stop.LENGTH:
                raise InvalidOutput("the answer was cut off at the limit of its tokens")
            case Stop.WINDOW:
                raise PromptTooLong("the model's window was full before the answer was whole")
            case Stop.DONE if not text.strip():
                raise InvalidOutput("the answer is empty")
            case Stop.DONE:
                return Answer(
                    text=text,
                    model=self.model,
                    input_tokens=self.input_tokens,
                    output_tokens=self.output_tokens,
                )


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value <= TOKENS_MAX


def _mended(text: str) -> str:
    """The text with halves of characters, which a stream may cut apart, joined or replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
