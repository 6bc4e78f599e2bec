"""Says before it is parsed whether a piece of JSON would come to far more in memory than on disk.

Three bytes can be an object of a hundred. Only what stands outside of texts counts: a long text is
no more than it is, whatever it is about.
"""

from __future__ import annotations

import re

VALUES_MAX = 1_000_000  # of one line or element
_MARKS = (b",", b"{", b"[")  # there are no more values than these
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def is_too_heavy(json_text: bytes | bytearray) -> bool:
    if len(json_text) <= VALUES_MAX or _marks(json_text) <= VALUES_MAX:
        return False
    return _marks(_TEXT.sub(b"", json_text)) > VALUES_MAX


def _marks(text: bytes | bytearray) -> int:
    return sum(text.count(mark) for mark in _MARKS)
