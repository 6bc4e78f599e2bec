"""Streams JSON objects from a file, one in a line: constant memory, and a place to go on from.

A file may be written to while it is read. A last line that is not whole yet is not consumed: it is
read again when more of it is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from recollect.importers.items import NOT_UTF8, Odd, Trouble
from recollect.importers.weighing import is_too_heavy

LINE_BYTES_MAX = 64 * 1024 * 1024  # of one line; longer ones are passed over, unread
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what stands in it, its number, and where the next one begins.

    `is_cut`: the file ends in the middle of it, so that it is not over. `replaced` says that some
    of its bytes were no text.
    """

    entry: object | Odd
    number: int
    end: int
    is_cut: bool = False
    replaced: Odd | None = None


def lines(
    stream: BinaryIO, *, offset: int = 0, number: int = 0, bytes_max: int = LINE_BYTES_MAX
) -> Iterator[Line]:
    """The lines of a stream from an offset on, empty ones left out; `number` is of the one before.

    A line that is no JSON, or too long, is an Odd, and so is one that is cut off at the end.
    """
    number -= not _begins_line(stream, offset)
    stream.seek(offset)
    while True:
        text = stream.readline(bytes_max + 1)
        if not text:
            return
        number += 1
        begin, offset = offset, offset + len(text)
        is_over = text.endswith(b"\n")
        if len(text) > bytes_max and not is_over:
            skipped, is_over = _skip(stream)
            offset += skipped
            yield Line(_too_large(number), number, offset if is_over else begin, is_cut=not is_over)
        elif text.strip(b" \t\r\n\0"):
            entry, replaced = _read(text, number)
            is_cut = not is_over and not isinstance(entry, dict)
            if is_cut:  # a number may be the beginning of a longer one
                entry, replaced = _broken(number), None
            yield Line(entry, number, begin if is_cut else offset, is_cut, replaced)


def _begins_line(stream: BinaryIO, offset: int) -> bool:
    """Whether a line begins here; not, where the one before was whole without its end."""
    if not offset:
        return True
    stream.seek(offset - 1)
    return stream.read(1) == b"\n"


def _skip(stream: BinaryIO) -> tuple[int, bool]:
    """Pass over the rest of a line: how long it was, and whether it was over."""
    skipped = 0
    while chunk := stream.readline(_CHUNK_BYTES):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            return skipped, True
    return skipped, False


def _read(text: bytes, number: int) -> tuple[object | Odd, Odd | None]:
    if is_too_heavy(text):
        return _too_large(number), None
    replaced = None
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        decoded = text.decode("utf-8-sig", errors="replace")
        replaced = Odd(trouble=Trouble.BROKEN, detail=NOT_UTF8, line=number)
    try:
        entry: object = json.loads(decoded)
    except (ValueError, RecursionError):
        return _broken(number), None
    return entry, replaced


def _too_large(number: int) -> Odd:
    return Odd(trouble=Trouble.TOO_LARGE, detail="a line", line=number)


def _broken(number: int) -> Odd:
    return Odd(trouble=Trouble.BROKEN, detail="not a line of JSON", line=number)
