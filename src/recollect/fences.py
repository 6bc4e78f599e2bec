"""The marks of injected memory, and how it is taken out again: recall writes them, all others know
them again.

So what was recalled is never learned a second time, and never found as something that was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = "recollect-memory"  # the tag around everything that was recalled
HEADING = "## Relevant Memory"
OFFLINE = "[Recollect, offline]"  # begins what is answered from memory alone

_RECALLED = re.compile(r"recollect-memory|relevant[ \t]+memory", re.IGNORECASE)
_FENCE_TAG = re.compile(
    rf"(?P<margin>^[ \t]*+)?<\s*+(?P<close>/?)\s*+{FENCE}\b[^<>]*>?", re.IGNORECASE | re.MULTILINE
)
# The heading, a blank line or more, and the list that follows; a second list is somebody's own.
_SECTION = re.compile(
    r"^[ \t]*+##[ \t]++relevant[ \t]++memory[ \t]*+(?=\n|\Z)"
    r"(?:\n[ \t]*+(?=\n|\Z))*+(?:\n[ \t]*+-[ \t][^\n]*+)*+",
    re.IGNORECASE | re.MULTILINE,
)


def without_recalled(text: str) -> str:
    """The text without what Recollect injected, wherever it stands and even if it was cut off.

    Of an answer from memory alone nothing is left: it was all said before.
    """
    if text.startswith(OFFLINE):
        return ""
    if _RECALLED.search(text) is None:
        return text
    return _SECTION.sub("", "".join(_outside_fences(text)))


def _outside_fences(text: str) -> Iterator[str]:
    """What stands outside; fences nest, so that memory that quotes a fence does not end it.

    One that is never closed was cut off if it begins a line; within a line it is only mentioned.
    """
    tags = list(_FENCE_TAG.finditer(text))
    last_close = max((tag.start() for tag in tags if tag["close"]), default=-1)
    depth = start = 0
    for tag in tags:
        is_open = not tag["close"]
        if is_open and tag.start() > last_close and tag["margin"] is None:
            continue
        if depth == 0:
            yield text[start : tag.start()]
        depth = depth + 1 if is_open else max(0, depth - 1)
        start = tag.end()
    if depth == 0:
        yield text[start:]
