"""What changed between two texts, as a unified diff, in bounded time. Pure.

Comparing costs as much as there are pairs of equal lines. Texts that are little but the same lines
over and over are not compared: what lies between their common beginning and end is replaced.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

PAIRS_MAX = 400_000  # about a second
_CONTEXT = 3
_FEW = 200  # from here on difflib passes over lines that are more than one in a hundred


def unified(old: Sequence[str], new: Sequence[str], old_name: str, new_name: str) -> str:
    """The diff of two texts, given as lines; empty if they are the same."""
    start, old_end, new_end = _differing(old, new)
    if _pairs(old[start:old_end], new[start:new_end]) <= PAIRS_MAX:
        lines = difflib.unified_diff(old, new, old_name, new_name, lineterm="")
        return "\n".join(lines)
    first, after = max(0, start - _CONTEXT), min(len(old) - old_end, _CONTEXT)
    sizes = old_end + after - first, new_end + after - first
    return "\n".join(
        [
            f"--- {old_name}",
            f"+++ {new_name}",
            f"@@ -{first + 1},{sizes[0]} +{first + 1},{sizes[1]} @@",
            *(f" {line}" for line in old[first:start]),
            *(f"-{line}" for line in old[start:old_end]),
            *(f"+{line}" for line in new[start:new_end]),
            *(f" {line}" for line in old[old_end : old_end + after]),
        ]
    )


def _differing(old: Sequence[str], new: Sequence[str]) -> tuple[int, int, int]:
    """Where the common beginning stops, and where the common end begins in each."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    same = next(
        (at for at in range(shorter - start) if old[-1 - at] != new[-1 - at]), shorter - start
    )
    return start, len(old) - same, len(new) - same


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    theirs, ours = Counter(old), Counter(new)
    popular = len(new) // 100 + 1 if len(new) >= _FEW else len(new)
    return sum(count * theirs[line] for line, count in ours.items() if count <= popular)
