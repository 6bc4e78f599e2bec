"""An answer as it comes in, whether it is one, and what a provider's error means."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Any, TypeGuard

from recollect.errors import (
    InvalidMessage,
    InvalidOutput,
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    OutputCut,
    PromptTooLong,
)
from recollect.messages import Json, ToolCall, as_plain_json

RETRY_AFTER_SECONDS_MAX = 3600.0  # asking once an hour harms nobody, whatever a header says


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long to wait, within bounds; None when the headers do not say.

    The names of the headers are in lower case. Dates count from the server's own clock where it
    tells it, so that a clock that is wrong on one side does not matter.
    """
    millis, value = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    seconds = _number(value) if millis is None else millis / 1000
    moment = _date(value)
    if seconds is None and moment is not None:
        seconds = (moment - (_date(headers.get("date", "")) or now)).total_seconds()
    return None if seconds is None else min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


MESSAGE_CHARS_MAX = 300

# What a provider calls an error where no HTTP status says it: in the middle of a stream.
_STATUS_OF_KIND = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "overloaded_error": 529,
}
_PASSING = frozenset({408, 409, 425, 429})
_HINTS = {
    **dict.fromkeys((401, 403, 407), "check the key"),
    **dict.fromkeys((301, 302, 303, 307, 308, 405), "check the model's base URL"),
}
_MISSING = (404, 410)
_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window|limit)|maximum context|prompt is too long"
    r"|input (?:token count|is too long)|too many (?:input )?tokens|exceed_context"
    r"|string[_ ](?:above_max_length|too long)|request too large",
    re.IGNORECASE,
)
_OUT_OF_CREDIT = re.compile(
    r"credit balance|insufficient[_ ](?:balance|credits|funds)", re.IGNORECASE
)
_OUT_OF_QUOTA = re.compile(r"insufficient_quota|billing_\w+", re.IGNORECASE)
_FLAGGED = re.compile(r"content[_ ](?:filter|policy|management)|moderation|flagged", re.IGNORECASE)
_TOOLS = re.compile(
    r"(?<![\w.])(?:tools|tool_choice|tool (?:use|calling|calls?|choice|support)"
    r"|functions|function call(?:ing|s)?)(?!\w|\.\w|\[)",
    re.IGNORECASE,
)
_LACKING = re.compile(
    r"support|unrecogni[sz]ed|unknown[_ ](?:field|param|arg)|unexpected (?:field|param|arg|keyword)"
    r"|extra (?:field|input)|not (?:permitted|allowed|available|enabled|implemented)"
    r"|requires? [\w ]*--",
    re.IGNORECASE,
)
_MISCALLED = "tool_use_failed"  # the model did call, in a form its own server cannot read
_MASKED_KEY = re.compile(r"\b(?:sk|pk|key)-[\w*.\-…]{6,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedies:
    """What mends the faults of a server that is the user's own."""

    is_down: str = ""
    has_no_model: str = "check the model's name and base URL"
    is_too_small: str = ""


NO_REMEDIES = Remedies()


class ProviderFault(Exception):
    """A provider answered with an error. It stays within this package: see `error_from`."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error as the provider put it."""

    status: int
    message: str
    kinds: tuple[str, ...] = ()  # its type and its code
    parameter: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def names(self, *parameters: str) -> bool:
        """Whether the provider objects to one of these parameters of the request."""
        if self.status not in (400, 404, 422):
            return False
        if self.parameter.partition(".")[0] in parameters:
            return True
        words = "|".join(map(re.escape, parameters))
        return re.search(rf"(?<!\w)(?:{words})(?!\w)", self.message, re.IGNORECASE) is not None


def fault_from_status(status: int, body: bytes, headers: Mapping[str, str]) -> Fault:
    """The fault behind an HTTP status that is not 2xx."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    found = _error_object(content)
    if found is None:
        text = body.decode("utf-8", "replace").strip()
        message = "an HTML page" if text.startswith("<") else text or "no explanation"
        return Fault(status=status, message=message, headers=headers)
    return _fault(status, found, headers)


def fault_within(content: Mapping[str, Any]) -> Fault | None:
    """The fault inside an answer whose HTTP status promised none."""
    if content.get("type") != "error" and not content.get("error"):
        return None
    found = _error_object(content) or {}
    code = found.get("code")
    status = code if isinstance(code, int) and 400 <= code <= 599 else None
    for kind in (found.get("code"), found.get("type")):
        status = status or _STATUS_OF_KIND.get(str(kind))
    return _fault(status or 500, found, {})


def _error_object(content: object) -> Mapping[str, Any] | None:
    """The object that describes the error, in any of the shapes servers use."""
    if isinstance(content, list) and content:
        content = content[0]
    if not isinstance(content, dict):
        return None
    inner = content.get("error", content)
    if isinstance(inner, str):
        inner = {"message": inner}
    return inner if isinstance(inner, dict) else content


def _fault(status: int, found: Mapping[str, Any], headers: Mapping[str, str]) -> Fault:
    message = found.get("message") or found.get("detail") or found.get("msg") or "no explanation"
    kinds = tuple(str(found[name]) for name in ("type", "code", "status") if found.get(name))
    return Fault(
        status=status,
        message=message if isinstance(message, str) else json.dumps(message),
        kinds=kinds,
        parameter=str(found.get("param") or ""),
        headers=headers,
    )


def error_from(
    fault: Fault,
    *,
    host: str,
    now: datetime,
    pause_seconds: float,
    has_tools: bool = False,
    remedies: Remedies = NO_REMEDIES,
) -> ModelError:
    """The error a fault comes to: its type says what to do next."""
    status = fault.status
    told = f"{host} answered {status}: {shown(fault.message)}"

    def denied(why: str) -> ModelDenied:
        return ModelDenied(f"{told} ({why})", delay_seconds=pause_seconds)

    if _is_too_long(fault):
        return PromptTooLong(with_remedy(told, remedies.is_too_small))
    if _is_unpaid(fault):
        return denied("no credit left with the provider")
    if _MISCALLED in fault.kinds:
        return InvalidOutput(told)
    if has_tools and _lacks_tools(fault):
        # Nothing is left out for such a server: without its tools an agent would make things up.
        return ModelRejected(f"{told} (the model or its server takes no tools)")
    if status in (400, 403) and _FLAGGED.search(_all_of(fault)):
        return ModelRejected(told)
    if status in _MISSING:
        return denied(remedies.has_no_model)
    if status in _HINTS:
        return denied(_HINTS[status])
    if status in _PASSING or status >= 500:
        return ModelUnavailable(told, retry_after_seconds=retry_after_seconds(fault.headers, now))
    return ModelRejected(told)


def with_remedy(told: str, remedy: str) -> str:
    return f"{told}; {remedy}" if remedy else told


def _lacks_tools(fault: Fault) -> bool:
    """Whether the provider takes no tools at all; one tool that is wrong is another matter."""
    said = f"{fault.parameter} {_all_of(fault)}"
    is_refusal = fault.status in (400, 404, 422, 500, 501)
    return is_refusal and bool(_TOOLS.search(said)) and bool(_LACKING.search(said))


def _is_too_long(fault: Fault) -> bool:
    if fault.status == 413:
        return True
    return fault.status in (400, 422, 429, 500) and _TOO_LONG.search(_all_of(fault)) is not None


def _is_unpaid(fault: Fault) -> bool:
    if fault.status == 402:
        return True
    if fault.status == 429:  # only a code tells it from a limit that passes; the texts are alike
        return any(_OUT_OF_QUOTA.fullmatch(kind) for kind in fault.kinds)
    return fault.status in (400, 403) and _OUT_OF_CREDIT.search(_all_of(fault)) is not None


def _all_of(fault: Fault) -> str:
    return " ".join((fault.message, *fault.kinds))


def shown(text: str) -> str:
    """A provider's words on one short line, without what looks like a key."""
    words = _MASKED_KEY.sub("[key]", " ".join(text[: 10 * MESSAGE_CHARS_MAX].split()))
    line = "".join(character for character in words if character.isprintable())
    return line if len(line) <= MESSAGE_CHARS_MAX else line[: MESSAGE_CHARS_MAX - 1] + "…"


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
                raise OutputCut("the answer was cut off at the limit of its tokens", text)
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
