"""Output of commands: text made safe for a terminal, tables, progress, and JSON for programs.

Stored text is data: no character of it may move the cursor, colour the screen or change the
direction of the text around it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from datetime import datetime
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import click

if TYPE_CHECKING:
    from rich.console import Console

    from recollect.types.facts import Spent

T = TypeVar("T")
NONE = "–"
NUMBER_PLAIN_BELOW = 10_000  # a version or a sequence number can be typed as it is shown

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


def indented(text: str) -> str:
    # Every line, so that no text can pass for the heading of another record.
    return textwrap.indent(text, "      ", lambda _line: True)


def moment(time: datetime | None) -> str:
    return NONE if time is None else f"{time:%Y-%m-%d %H:%M:%S}Z"


def counted(count: int, noun: str, nouns: str = "") -> str:
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def cost(micros: int | None) -> str:
    """Money as a plain number, in the currency that the prices are in."""
    return "unknown" if micros is None else f"{micros / 1_000_000:,.4f}"


def spent_in_words(spent: Spent) -> str:
    """What model calls took."""
    if not spent.calls and not spent.tokens:
        return "no model calls"
    calls = [counted(spent.calls, "call")] if spent.calls else []
    return ", ".join([*calls, counted(spent.tokens, "token"), f"cost {cost(spent.cost_micros)}"])


# What a table or a list of labels shows: the field of a value, or a function of it, by its heading.
Fields = Mapping[str, str | Callable[[Any], object]]


def fields(names: str, **computed: Callable[[Any], object]) -> Fields:
    """The fields with these names, each headed by its own or as in `cursor=processed_until`.

    What is computed stands where its name does.
    """
    found: dict[str, str | Callable[[Any], object]] = {}
    for each in names.split():
        heading, _, name = each.rpartition("=")
        heading = (heading or name.removesuffix("_at")).replace("_", " ")
        found[heading] = computed.get(name, name)
    return found


def shown(value: object) -> str:
    """A part of a value as people read it; empty where there is nothing."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case Enum():
            return str(value.value)
        case int():
            return f"{value:,}" if abs(value) >= NUMBER_PLAIN_BELOW else str(value)
        case tuple() | list():
            return ", ".join(map(shown, value))
        case _:
            return str(value)


def _read(value: Any, fields: Fields) -> Iterator[str]:
    for field in fields.values():
        yield shown(field(value) if callable(field) else attrgetter(field)(value))


def labelled(fields: Fields, value: Any) -> Iterator[str]:
    """Lines of a heading and its value each, the values aligned; what is empty is left out."""
    found = dict(zip(fields, _read(value, fields), strict=True))
    width = max(len(name) for name, text in found.items() if text)
    for name, text in found.items():
        if text:
            heading = f"{name[0].upper()}{name[1:]}".ljust(width)
            yield f"{click.style(heading, bold=True)}  {one_line(text)}"


def tabled(fields: Fields, found: Iterable[Any], indent: str = "") -> Iterator[str]:
    """Lines of a table with a row for each value; none where there is none."""
    rows = [[text or NONE for text in _read(each, fields)] for each in found]
    return table([heading.upper() for heading in fields], rows, indent) if rows else iter(())


def cards(found: Iterable[T], *parts: Callable[[T], str], indent: str = "") -> Iterator[str]:
    """A heading for each value and lines below it; a part that says nothing is left out."""
    for each in found:
        heading, *others = (part(each) for part in parts)
        yield indent + heading
        yield from (f"{indent}  {line}" for text in others if text for line in text.split("\n"))


def joined(*words: str, by: str = "; ") -> str:
    """What there is to say of several things."""
    return by.join(filter(None, words))


def more(shown: int, count: int, how: str = "--limit") -> Iterator[str]:
    """That some are not shown, and how to see them."""
    if shown < count:
        yield f"  … and {count - shown:,} more ({how})"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    """Lines of a table with aligned columns: folded to fit a terminal, and whole in a pipe."""
    cells = [tuple(map(one_line, row)) for row in rows]
    if sys.stdout.isatty():
        lines = _folded(headers, cells)
    else:
        widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
        padded = (map(str.ljust, row, widths) for row in (headers, *cells))
        lines = ("  ".join(row).rstrip() for row in padded)
    for position, line in enumerate(lines):
        yield indent + (click.style(line, bold=True) if position == 0 else line)


def _folded(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for position, header in enumerate(headers):
        made.add_column(Text(header), overflow="fold", no_wrap=position == 0)  # ids stay whole
    for row in cells:
        made.add_row(*map(Text, row))
    console = Console(color_system=None, emoji=False, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(made)
    yield from (line.rstrip() for line in captured.get().splitlines())


def write(text: str = "") -> None:
    """A line of the result."""
    click.echo(text)


def note(text: str) -> None:
    """Print a line for the person at the terminal; it is not part of the result."""
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


def _plain(value: Any) -> Any:
    """A time, a path, or one of our values as JSON has it."""
    from recollect.interfaces.views import view

    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return view(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


# Progress

PROGRESS_SECONDS = 1.0
WHAT_CHARS = 60
_DIGITS = re.compile(r"\d+")
Show = Callable[[str, int | None, int | None], None]


def _is_watched(*, as_json: bool) -> bool:
    """Whether somebody at a terminal would see how far a command has got."""
    return not as_json and sys.stderr is not None and sys.stderr.isatty()


def _terminal() -> Console:
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False)


@contextmanager
def progress_bar(*, as_json: bool) -> Iterator[Show]:
    """A function of what is done, how much of it, and of how much; a bar on a terminal shows it."""
    if not _is_watched(as_json=as_json):
        yield lambda _what, _done, _whole: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn())
    what = TextColumn("{task.description}", markup=False)
    with Progress(*columns, what, console=_terminal(), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(said: str, done: int | None, whole: int | None) -> None:
            line = one_line(said)
            line = line if len(line) <= WHAT_CHARS else f"{line[:WHAT_CHARS]}…"
            is_new = _DIGITS.sub("", line) != _DIGITS.sub("", bar.tasks[0].description)
            far: dict[str, Any] = {} if done is None else {"completed": done, "total": whole}
            bar.update(task, description=line, refresh=is_new, **far)

        yield show


@contextmanager
def progress_line(said: Callable[[], str | None], *, as_json: bool) -> Iterator[None]:
    """On a terminal, a line that says now and then how far it is."""
    if not _is_watched(as_json=as_json):
        yield
        return
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task
    from rich.text import Text

    class Saying(ProgressColumn):
        """What is said, asked for once a second."""

        max_refresh = PROGRESS_SECONDS

        def render(self, task: Task) -> Text:
            del task
            return Text(one_line(said() or ""))

    with Progress(SpinnerColumn(), Saying(), console=_terminal(), transient=True) as bar:
        bar.add_task("")
        yield


# Standard output that cannot be written

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
        return self._checked(lambda: self._stream.write(text))

    def flush(self) -> None:
        self._checked(self._stream.flush)

    def _checked(self, act: Callable[[], T]) -> T:
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
    said = f"standard output cannot be written ({why}); what the command stored stays stored"
    if as_json:
        content = {"type": "CannotPrint", "message": said, "retry_helps": False}
        said = json.dumps({"error": {**content, "mended_by": "operator"}})
    else:
        said = f"Error: {said}"
    with contextlib.suppress(OSError, AttributeError):  # nor can this be
        print(said, file=sys.stderr)
