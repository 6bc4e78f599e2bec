"""Text as every database can hold it: PostgreSQL takes no NUL, UTF-8 no lone surrogate."""

from __future__ import annotations

import json
import re

REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NUL_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # an escape, not an escaped backslash


def storable(text: str) -> str:
    """The text with a replacement for each character that no database can hold."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def storable_json(value: object) -> str:
    """JSON that PostgreSQL can search; one such value would fail every search of its space."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NUL_ESCAPE.sub(rf"\1{REPLACEMENT}", storable(text))
