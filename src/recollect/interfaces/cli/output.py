"""How commands print: data made harmless for a terminal, tables, times, and JSON for programs.

What is stored is data: no character of it may move the cursor, colour the screen or change the
direction of the text around it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import click

if TYPE_CHECKING:
    from recollect.knowledge import Spent


NONE = "–"

# Control characters of ASCII and Latin-1, line and paragraph separators, changes of direction, and
# halves of characters. A line feed is left to the callers; a tab moves nothing that matters.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """Text as a terminal may see it: control characters become visible escapes."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Harmless text on one line, runs of white space made one space."""
    return harmless(" ".join(text.split()))


def shortened(text: str, limit: int) -> str:
    """One line of at most `limit` characters, and how much was left out."""
    line = one_line(text)
    return line if len(line) <= limit else f"{line[:limit]}… ({len(line):,} characters)"


def moment(time: datetime | None) -> str:
    return NONE if time is None else f"{time:%Y-%m-%d %H:%M:%S}Z"


def number(value: int | None) -> str:
    return NONE if value is None else str(value)


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def cost(micros: int | None) -> str:
    """Money as a plain number, in the currency that the prices are in."""
    return "cost unknown" if micros is None else f"cost {micros / 1_000_000:,.4f}"


def spent_in_words(spent: Spent) -> str:
    """What model calls took."""
    if not spent.calls and not spent.tokens:
        return "no model calls"
    calls = [counted(spent.calls, "call")] if spent.calls else []
    return ", ".join([*calls, counted(spent.tokens, "token"), cost(spent.cost_micros)])


def contents_in_words(counts: Mapping[str, Mapping[str, int]]) -> str:
    """`2 spaces: 3 sessions, 120 records, 40 facts, 12 documents`, as they stand in the tables."""
    named = {"sessions": "session", "session_history": "record", "facts": "fact"}
    named |= {"documents": "document"}
    totals = [
        counted(sum(each.get(table, 0) for each in counts.values()), noun)
        for table, noun in named.items()
    ]
    return f"{counted(len(counts), 'space')}: {', '.join(totals)}"


def labelled(values: Mapping[str, str]) -> Iterator[str]:
    """Lines of a name and its value each, the values aligned."""
    width = max(map(len, values))
    for name, value in values.items():
        yield f"{click.style(name.ljust(width), bold=True)}  {one_line(value)}"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table with aligned columns; the last one is not padded."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()

    yield click.style(line(headers), bold=True)
    yield from map(line, cells)


def write(text: str = "") -> None:
    """A line of the result."""
    click.echo(text)


def note(text: str) -> None:
    """A line for the person at the terminal that is no part of the result."""
    click.echo(text, err=True)


def write_json(value: Any, *, to_stderr: bool = False) -> None:
    """One JSON document; it holds no character that a terminal would obey."""
    stream = sys.stderr if to_stderr else sys.stdout
    is_unicode = (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not is_unicode, indent=2, default=_plain)
    click.echo(_UNSAFE.sub(_json_escaped, text), err=to_stderr)


def json_line(value: Any) -> str:
    """A JSON document on one line, for streams of them; as harmless as the others."""
    return _UNSAFE.sub(_json_escaped, json.dumps(value, default=_plain))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _json_escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


T = TypeVar("T")
STDOUT = 1


class CannotPrintError(OSError):
    """The answer of a command could not be written."""


class Printing:
    """A text stream as it was, whose failures can be told from those of other files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if text == "":  # asked to see what kind of stream it is; that is no answer that is lost
            return 0
        return self._told(lambda: self._stream.write(text))

    def flush(self) -> None:
        self._told(self._stream.flush)

    def _told(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except BrokenPipeError:
            raise
        except OSError as error:
            # Python would try once more at the end, and fail the process in its own words.
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise CannotPrintError(error.errno, error.strerror) from error


def watch_output() -> None:
    """From now on a failure to print is a CannotPrintError."""
    stream = sys.stdout
    if stream is None:
        # Closed. Its number must be nobody else's: whatever is printed would go into their file.
        os.dup2(os.open(os.devnull, os.O_RDONLY), STDOUT)
        stream = open(STDOUT, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stdout = cast(TextIO, Printing(stream))


def report_unprinted(error: CannotPrintError, *, as_json: bool) -> None:
    """Say on standard error that the answer is lost, and that nothing else is."""
    why = "it is closed" if error.errno == errno.EBADF else error.strerror
    said = (
        f"standard output cannot be written to ({why}); what the command stored before that stays"
        " stored"
    )
    if as_json:
        content = {"type": "CannotPrint", "message": said, "retry_helps": False}
        said = json.dumps({"error": {**content, "mended_by": "operator"}})
    else:
        said = f"Error: {said}"
    with contextlib.suppress(OSError, AttributeError):  # nor can this be
        print(said, file=sys.stderr)
