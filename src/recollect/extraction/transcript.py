"""Makes text short and clean enough to be shown: pure functions from text to text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import takewhile
from typing import Any

from recollect.extraction.piece import Block, BlockKind
from recollect.messages import Attachment, Role

Redact = Callable[[str], str]

STRING_CHARS_MAX = 160  # of one value among the arguments of a call
_MARKER_CHARS = 48

_LINE_BREAK = re.compile("\r\n|[\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
# Control characters, spaces of no width, changes of direction and the tag characters: nobody reads
# them, some models obey them, and they take a secret or a quote apart. Joiners are left, because
# scripts and emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u180e\u200b\u202a-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)
# What terminals are told about colours, cursors and titles.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]{0,500}+(?:\x07|\x1b\\)|[@-Z\\^_])"
)
_SURROGATE = re.compile("[\ud800-\udfff]")

_DATA_URL = re.compile(
    r"data:[\w.+/-]{0,100}(?:;[\w.=+-]{1,60}){0,5};base64,[A-Za-z0-9+/=_%.-]*", re.IGNORECASE
)
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_-])"
    r"(?:(?:[A-Za-z0-9+/_-]{56,}+={0,2}[ \t]*+\n[ \t]*+){3,}+[A-Za-z0-9+/_-]*+={0,2}"
    r"|[A-Za-z0-9+/_-]{200,}+={0,2})"
)
_LOOKS_BINARY = tuple(re.compile(each) for each in ("[A-Z]", "[a-z]", "[0-9]"))


def cleaned(text: str) -> str:
    """The text with one kind of line break and without what cannot be seen or sent."""
    if not text.isprintable():
        text = _ESCAPES.sub("", text) if "\x1b" in text else text
        text = _UNSEEN.sub("", _LINE_BREAK.sub("\n", text))
        text = _SURROGATE.sub("\ufffd", text)
    return text


def one_line(text: str, chars_max: int) -> str:
    """The text on one line, cut off where it is too long."""
    line = " ".join(cleaned(text).split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


def shortened(text: str, chars_max: int) -> str:
    """Beginning and end of a text that is too long, and how much went between them."""
    if len(text) <= chars_max:
        return text
    kept = chars_max - _MARKER_CHARS
    if kept < _MARKER_CHARS:
        return text[: chars_max - 1] + "…"
    head = kept * 3 // 5
    tail = kept - head
    return f"{text[:head]} [… {len(text) - kept:,} characters left out …] {text[-tail:]}"


def without_data_urls(text: str) -> str:
    if "base64," not in text:
        return text
    return _DATA_URL.sub(lambda found: _binary(len(found[0])), text)


def without_base64(text: str) -> str:
    """The text without long runs of base64; those of few kinds of characters are something else."""
    if len(text) < 170:
        return text
    return _BASE64.sub(
        lambda run: (
            _binary(len(run[0])) if all(kind.search(run[0]) for kind in _LOOKS_BINARY) else run[0]
        ),
        text,
    )


def _binary(chars: int) -> str:
    return f"[binary data, {chars:,} characters left out]"


def shown(text: str, redact: Redact, chars_max: int) -> str:
    """A clean text as it may be shown. Redacted before it is cut: half a secret looks like none."""
    return shortened(without_base64(redact(without_data_urls(text))).strip(), chars_max)


def call_digest(arguments: Any, redact: Redact, chars_max: int) -> str:
    """The arguments of a call as compact JSON, long values shortened, the whole of it bounded."""
    value = decoded(arguments)
    if not isinstance(value, str):
        try:
            return _values_digest(value, redact, chars_max)
        except RecursionError:
            value = str(arguments)
    return shown(cleaned(value), redact, chars_max)


def _values_digest(value: Any, redact: Redact, chars_max: int) -> str:
    text = redact(_compact(each_text(value, lambda leaf: _redacted_leaf(leaf, redact))))
    if len(text) > chars_max and not isinstance(again := decoded(text), str):
        text = _compact(each_text(again, lambda leaf: shortened(leaf, STRING_CHARS_MAX)))
    return shortened(text, chars_max)


def decoded(arguments: Any) -> Any:
    """Arguments as values; text that is no JSON stays the text it is."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict | list) else arguments


def attachment_line(attachment: Attachment, redact: Redact, chars_max: int) -> str:
    """What an attachment is and where it lies, on one line."""
    where = (attachment.uri or "").partition("?")[0].partition("#")[0]
    told = (attachment.kind, attachment.name, attachment.media_type, where)
    return one_line(redact(" ".join(cleaned(each) for each in told if each)), chars_max)


def _compact(value: Any) -> str:
    return cleaned(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {change(key): each_text(inner, change) for key, inner in value.items()}
        case list():
            return [each_text(inner, change) for inner in value]
        case _:
            return value


def _redacted_leaf(text: str, redact: Redact) -> str:
    """A value by itself, where JSON's escapes would hide its shape from the redaction of all."""
    text = without_data_urls(cleaned(text))
    if "\n" in text or '"' in text or "\\" in text:
        text = redact(text)
    return without_base64(text)


Estimate = Callable[[str], int]

CONTENT_MARK = "| "
NAME_CHARS_MAX = 80
PAIR_DISTANCE_MAX = 256  # blocks between a call and a result that are kept together
SHORTENED_CHARS_MIN = 200  # rather than shorten further, a call is parted from its result
SINGLE_CHARS_MIN = 60

_FOREGROUND = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.NOTE: "Note", Role.TOOL: "Tool"}
_BACKGROUND = {**_FOREGROUND, Role.USER: "System Message", Role.ASSISTANT: "Agent"}


def render(blocks: Sequence[Block], *, is_background: bool) -> str:
    """The transcript of some blocks."""
    return "\n\n".join(_rendered(block, is_background=is_background) for block in blocks)


def fenced(text: str) -> str:
    """Any text as lines that can be nothing but content."""
    return CONTENT_MARK + cleaned(text).replace("\n", "\n" + CONTENT_MARK)


def quoted(name: str, chars_max: int = NAME_CHARS_MAX) -> str:
    """A name that cannot leave its line or end its quotes."""
    return json.dumps(one_line(name, chars_max), ensure_ascii=False)


def _rendered(block: Block, *, is_background: bool) -> str:
    time = block.at.astimezone(UTC).isoformat(timespec="minutes")[:16]
    header = f"[#{block.seq} {time}Z {_who(block, is_background)}]"
    return f"{header}\n{fenced(block.text)}"


def _who(block: Block, is_background: bool) -> str:
    name = "" if block.speaker is None else " " + quoted(block.speaker)
    tool = "" if block.tool is None else " " + quoted(block.tool)
    labels = _BACKGROUND if is_background else _FOREGROUND
    label = labels.get(block.role, "System")
    match block.kind:
        case BlockKind.SAID | BlockKind.NOTE:
            return label + name
        case BlockKind.ATTACHMENT:
            return f"{label}{name} attachment"
        case BlockKind.CALL:
            return f"Tool{tool} call" + (f" by{name}" if name else "")
        case BlockKind.RESULT:
            return f"Tool{tool} result" + (" failed" if block.is_error else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptChunk:
    """As much as fits: `blocks` as they are to be sent, made of the first `taken` there are."""

    blocks: tuple[Block, ...]
    taken: int


def chunk(blocks: Sequence[Block], budget_tokens: int, estimate: Estimate) -> TranscriptChunk:
    """The first blocks, up to the last end of a turn that fits into the budget.

    A turn that is longer by itself ends between two records, not between a call and its result;
    where even one record is too long, its blocks are shortened.
    """
    fitting = _fitting(blocks, budget_tokens, estimate)
    if fitting == len(blocks):
        return TranscriptChunk(blocks=tuple(blocks), taken=fitting)
    parted = _parted_pairs(blocks, fitting)
    ends = list(takewhile(lambda at: at <= fitting, _record_ends(blocks)))
    whole = [at for at in ends if at not in parted]
    end = max((at for at in whole if _begins_turn(blocks[at])), default=0) or max(whole, default=0)
    if end:
        return TranscriptChunk(blocks=tuple(blocks[:end]), taken=end)
    unit = next((at for at in _record_ends(blocks) if at not in parted), len(blocks))
    short = _shortened_to(blocks[:unit], budget_tokens, estimate, SHORTENED_CHARS_MIN)
    if short is not None:
        return TranscriptChunk(blocks=short, taken=unit)
    if ends:
        return TranscriptChunk(blocks=tuple(blocks[: ends[-1]]), taken=ends[-1])
    return _one_record(blocks, budget_tokens, estimate)


def _cost(block: Block, estimate: Estimate) -> int:
    """With the longer of the two labels, the blank line, and what rounding hides."""
    return estimate(_rendered(block, is_background=True)) + 2


def cost(blocks: Sequence[Block], estimate: Estimate) -> int:
    """The tokens of a transcript of some blocks."""
    return sum(_cost(block, estimate) for block in blocks)


def _fitting(blocks: Sequence[Block], budget_tokens: int, estimate: Estimate) -> int:
    left = budget_tokens
    for count, block in enumerate(blocks):
        left -= _cost(block, estimate)
        if left < 0:
            return count
    return len(blocks)


def _record_ends(blocks: Sequence[Block]) -> Iterator[int]:
    """Where one record ends and another begins, lowest first."""
    return (at for at in range(1, len(blocks)) if blocks[at].seq != blocks[at - 1].seq)


def _begins_turn(block: Block) -> bool:
    return block.role is Role.USER and block.kind is BlockKind.SAID


def _parted_pairs(blocks: Sequence[Block], fitting: int) -> set[int]:
    """The places at which a cut would part a call from its result."""
    called: dict[str | None, list[int]] = {}
    parted: set[int] = set()
    for at, block in enumerate(blocks[: fitting + PAIR_DISTANCE_MAX]):
        if block.kind is BlockKind.CALL:
            called.setdefault(block.call_id, []).append(at)
        elif block.kind is BlockKind.RESULT and called.get(block.call_id):
            call = called[block.call_id].pop(0)
            if at - call <= PAIR_DISTANCE_MAX:
                parted.update(range(call + 1, at + 1))
    return parted


def _shortened_to(
    blocks: Sequence[Block], budget_tokens: int, estimate: Estimate, chars_min: int
) -> tuple[Block, ...] | None:
    """The blocks with the longest texts shortened just enough, or none if that is not enough."""

    def cut(chars_max: int) -> tuple[Block, ...]:
        return tuple(
            block
            if len(block.text) <= chars_max
            else replace(block, text=shortened(block.text, chars_max))
            for block in blocks
        )

    def fits(chars_max: int) -> bool:
        return _fitting(cut(chars_max), budget_tokens, estimate) == len(blocks)

    if not fits(chars_min):
        return None
    low = chars_min
    high = min(max(len(block.text) for block in blocks), budget_tokens * 8)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return cut(low)


def _one_record(blocks: Sequence[Block], budget_tokens: int, estimate: Estimate) -> TranscriptChunk:
    """The first record, whatever it takes: it cannot be split, so that what is over goes."""
    end = next(_record_ends(blocks), len(blocks))
    count = end
    while count > 1:
        short = _shortened_to(blocks[:count], budget_tokens, estimate, SINGLE_CHARS_MIN)
        if short is not None:
            return TranscriptChunk(blocks=short, taken=end)
        count //= 2
    short = _shortened_to(blocks[:1], budget_tokens, estimate, SINGLE_CHARS_MIN)
    least = replace(blocks[0], text=shortened(blocks[0].text, SINGLE_CHARS_MIN))
    return TranscriptChunk(blocks=short or (least,), taken=end)
