"""What was said in a session as people read it: parts of records, and lines drawn between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from recollect.domain import Range, Record, SessionState
from recollect.messages import (
    Attachment,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

CHARS_SHOWN = 2000
LINES_SHOWN = 25
PARTS_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a record: its text, under a label where it is more than words."""

    label: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What is drawn between two records: everything up to there was dealt with, or is to be."""

    upto: int
    kind: str  # done, processed or marked
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record as it is shown, and the lines below it."""

    record: Record
    pieces: tuple[Piece, ...]
    is_short: bool  # there is more of it than is shown
    is_error: bool
    is_forgotten: bool
    lines: tuple[Line, ...]


def entries(records: Sequence[Record], lines: Sequence[Line], whole: int) -> list[Entry]:
    """Records with the lines that belong below each; `whole` is the one that is not shortened."""
    nexts = [*(record.seq for record in records[1:]), None][: len(records)]
    return [
        _entry(
            record,
            tuple(line for line in lines if _is_below(line, record, following)),
            is_whole=record.seq == whole,
        )
        for record, following in zip(records, nexts, strict=True)
    ]


def lines_of(state: SessionState, ranges: Sequence[Range]) -> list[Line]:
    """Where stretches end, up to where it is processed, and up to where it is marked."""
    found = [Line(upto=each.last_seq, kind="done", words=_told(each)) for each in ranges]
    if state.processed_until is not None:
        words = f"Processed until record {state.processed_until}"
        found.append(Line(upto=state.processed_until, kind="processed", words=words))
    if state.invalidated_at is not None:
        cause = "" if state.marked_by is None else f" ({state.marked_by.value})"
        words = f"Marked until record {state.invalidated_at}{cause}: to be distilled"
        found.append(Line(upto=state.invalidated_at, kind="marked", words=words))
    return found


def _told(each: Range) -> str:
    """A stretch in words: which records, what became of them, in which pass, and by what."""
    many = each.first_seq != each.last_seq
    which = f"Records {each.first_seq} to {each.last_seq}" if many else f"Record {each.first_seq}"
    said = [
        f"{which}: {each.outcome.value.replace('_', ' ')}",
        each.reason,
        f"pass {each.pass_number}",
        None if each.extractor is None else f"by {each.extractor}",
        None if each.attempt is None or each.attempt < 2 else f"attempt {each.attempt}",
        f"{each.spent.tokens:,} tokens" if each.spent.tokens else None,
    ]
    return ", ".join(part for part in said if part)


def _is_below(line: Line, record: Record, following: int | None) -> bool:
    """Also where the record that a line is about is gone: below the one before it."""
    if following is None:
        return line.upto == record.seq
    return record.seq <= line.upto < following


def _entry(record: Record, lines: tuple[Line, ...], *, is_whole: bool) -> Entry:
    parts = [_piece(part) for part in record.parts]
    shown = parts if is_whole else [_short(piece) for piece in parts[:PARTS_SHOWN]]
    return Entry(
        record=record,
        pieces=tuple(shown),
        is_short=shown != parts,
        is_error=record.is_error,
        is_forgotten=record.role is Role.NOTE and record.metadata.get("forgotten") is True,
        lines=lines,
    )


def _short(piece: Piece) -> Piece:
    lines = piece.text[:CHARS_SHOWN].split("\n")[:LINES_SHOWN]
    return replace(piece, text="\n".join(lines))


def _piece(part: Part) -> Piece:
    match part:
        case Text(text=text):
            return Piece(label="", text=text)
        case Reasoning(text=text):
            return Piece(label="Thought aloud", text=text)
        case ToolCall(name=name, arguments=arguments):
            return Piece(label=f"Calls {name}", text=_written(arguments))
        case ToolResult(text=text, is_error=is_error):
            return Piece(
                label="A tool failed" if is_error else "A tool answers",
                text=text,
                is_error=is_error,
            )
        case Attachment():
            return Piece(label=f"Attached: {part.kind}", text=" · ".join(_about(part)))
        case Opaque(type=kind):
            return Piece(label=f"Something else: {kind}", text="")
        case _:
            assert_never(part)


def _about(part: Attachment) -> Iterator[str]:
    yield from (each for each in (part.name, part.media_type, part.uri) if each)


def _written(arguments: Any) -> str:
    """What a tool is called with, as it came or as JSON."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False, indent=2)
