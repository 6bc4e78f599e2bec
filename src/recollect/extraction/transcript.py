"""Writes blocks as a transcript in which no text can pose as another speaker, and cuts it to size.

Every line of the transcript is one of three, told apart by how it begins:

    [#12 2026-05-01T10:03Z User "Alice"]     a header; names are quoted and stay on their line
    | what she wrote, line by line           content; every line has the mark in front
                                             nothing, between blocks
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import takewhile

from recollect.extraction.digest import cleaned, one_line, shortened
from recollect.extraction.piece import Block, BlockKind
from recollect.messages import Role

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
class Chunk:
    """As much as fits: `blocks` as they are to be sent, made of the first `taken` there are."""

    blocks: tuple[Block, ...]
    taken: int


def chunk(blocks: Sequence[Block], budget_tokens: int, estimate: Estimate) -> Chunk:
    """The first blocks, up to the last end of a turn that fits into the budget.

    A turn that is longer by itself ends between two records, not between a call and its result;
    where even one record is too long, its blocks are shortened.
    """
    fitting = _fitting(blocks, budget_tokens, estimate)
    if fitting == len(blocks):
        return Chunk(blocks=tuple(blocks), taken=fitting)
    parted = _parted_pairs(blocks, fitting)
    ends = list(takewhile(lambda at: at <= fitting, _record_ends(blocks)))
    whole = [at for at in ends if at not in parted]
    end = max((at for at in whole if _begins_turn(blocks[at])), default=0) or max(whole, default=0)
    if end:
        return Chunk(blocks=tuple(blocks[:end]), taken=end)
    unit = next((at for at in _record_ends(blocks) if at not in parted), len(blocks))
    short = _shortened_to(blocks[:unit], budget_tokens, estimate, SHORTENED_CHARS_MIN)
    if short is not None:
        return Chunk(blocks=short, taken=unit)
    if ends:
        return Chunk(blocks=tuple(blocks[: ends[-1]]), taken=ends[-1])
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


def _one_record(blocks: Sequence[Block], budget_tokens: int, estimate: Estimate) -> Chunk:
    """The first record, whatever it takes: it cannot be split, so that what is over goes."""
    end = next(_record_ends(blocks), len(blocks))
    count = end
    while count > 1:
        short = _shortened_to(blocks[:count], budget_tokens, estimate, SINGLE_CHARS_MIN)
        if short is not None:
            return Chunk(blocks=short, taken=end)
        count //= 2
    short = _shortened_to(blocks[:1], budget_tokens, estimate, SINGLE_CHARS_MIN)
    least = replace(blocks[0], text=shortened(blocks[0].text, SINGLE_CHARS_MIN))
    return Chunk(blocks=short or (least,), taken=end)
