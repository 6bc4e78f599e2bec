"""Makes text short and clean enough to be shown: pure functions from text to text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

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
    value = _decoded(arguments)
    if not isinstance(value, str):
        try:
            return _values_digest(value, redact, chars_max)
        except RecursionError:
            value = str(arguments)
    return shown(cleaned(value), redact, chars_max)


def _values_digest(value: Any, redact: Redact, chars_max: int) -> str:
    text = redact(_compact(_each_text(value, lambda leaf: _redacted_leaf(leaf, redact))))
    if len(text) > chars_max and not isinstance(again := _decoded(text), str):
        text = _compact(_each_text(again, lambda leaf: shortened(leaf, STRING_CHARS_MAX)))
    return shortened(text, chars_max)


def _decoded(arguments: Any) -> Any:
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


def _compact(value: Any) -> str:
    return cleaned(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {change(key): _each_text(inner, change) for key, inner in value.items()}
        case list():
            return [_each_text(inner, change) for inner in value]
        case _:
            return value


def _redacted_leaf(text: str, redact: Redact) -> str:
    """A value by itself, where JSON's escapes would hide its shape from the redaction of all."""
    text = without_data_urls(cleaned(text))
    if "\n" in text or '"' in text or "\\" in text:
        text = redact(text)
    return without_base64(text)
