"""Keeps a user's pattern from taking for ever: repetitions end, and none holds another choice.

A pattern is read as far as that needs: escapes, classes, groups, repetitions. What is left is
bounded by REPEAT_MAX for each character of the text and each repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from recollect.patterns import LazyPattern

REPEAT_MAX = 512  # where a repetition without an end ends
EXPLICIT_MAX = 4096  # the most that a pattern may ask for itself

_PIECE = LazyPattern(
    r"""(?P<escape>\\.)
    | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<open>\((?:\?(?:P<\w+>|P=\w+(?=\))|[=!>]|<[=!]|[aiLmsux-]*:|[aiLmsux-]+(?=\))|\#[^)]*))?)
    | (?P<close>\))
    | (?P<repeat>(?:[*+]|\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\})(?P<manner>[+?]?))
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeat:
    """How often something comes; `most` is None without an end."""

    least: int
    most: int | None
    manner: str

    def bounded(self) -> str:
        most = max(self.least, REPEAT_MAX) if self.most is None else self.most
        return f"{{{self.least},{most}}}{self.manner}"


def bounded(source: str) -> str:
    """The same pattern, its open repetitions ending after REPEAT_MAX times."""
    return "".join(
        repeat.bounded() if (repeat := _repeat(piece)) is not None else piece[0]
        for piece in _pieces(source)
    )


def why_dangerous(source: str) -> str | None:
    """Why matching could take time that grows with a power of the text, or None."""
    varies_inside = [False]
    closed = False  # whether the group that just ended can match in several ways
    for piece in _pieces(source):
        repeat = _repeat(piece)
        if repeat is not None and repeat.most is not None and repeat.most > EXPLICIT_MAX:
            return f"repeats something more than {EXPLICIT_MAX:,} times"
        if repeat is not None and repeat.most != repeat.least:
            if closed:
                return "repeats a group that repeats something or has alternatives"
            varies_inside[-1] = True
        elif piece[0] in ("|", "?"):
            varies_inside[-1] = True
        elif piece["open"] is not None:
            varies_inside.append(False)
        elif piece["close"] is not None and len(varies_inside) > 1:
            closed = varies_inside.pop()
            varies_inside[-1] = varies_inside[-1] or closed
            continue
        if piece[0].startswith("(?P=") or re.match(r"\\[1-9]", piece[0]):
            return "refers back to a group"
        closed = False
    return None


def _pieces(source: str) -> Iterator[re.Match[str]]:
    return _PIECE.finditer(source)


def _repeat(piece: re.Match[str]) -> _Repeat | None:
    text = piece["repeat"]
    if text is None or text[:2] == "{}":  # the latter are two braces
        return None
    if text[0] != "{":
        return _Repeat(least=int(text[0] == "+"), most=None, manner=piece["manner"])
    least = int(piece["low"] or 0)
    most = int(piece["high"]) if piece["high"] else None
    return _Repeat(least=least, most=most if piece["comma"] else least, manner=piece["manner"])
