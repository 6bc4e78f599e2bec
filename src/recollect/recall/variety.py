"""A list that does not say the same thing over and over: repetitions step down, and say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from recollect.recall.candidates import Ranked
from recollect.recall.likeness import Likeness, Wording
from recollect.recall.weights import WEIGHTS, Weights
from recollect.recollection import Entry, EntryKind

LOOKED_AT_SHARE = 5  # so many times as many are looked at as are wanted, if there are repetitions
COMPARED_CHARS = 1000  # longer texts are never quite the same; those that begin alike are compared

Group = tuple[EntryKind, str]


def varied(
    ranked: Sequence[Ranked],
    entries: Sequence[Entry],
    limit: int,
    weights: Weights = WEIGHTS,
) -> list[Ranked]:
    """The best of a ranked list, after each that repeats a better one of its kind and speaker.

    What somebody else says, or what was made of it, is no repetition. `entries` are all that were
    ranked.
    """
    first: dict[Group, list[Wording]] = defaultdict(list)
    chosen: list[Ranked] = []
    kept = 0
    for each in ranked:
        if kept >= limit:
            break
        entry = entries[each.at]
        wording = Wording.of(entry.text[:COMPARED_CHARS])
        known = first[entry.kind, entry.speaker or entry.role]
        if any(wording.compared(better) is Likeness.SAME for better in known):
            chosen.append(_stepped_down(each, weights))
            continue
        known.append(wording)
        chosen.append(each)
        kept += 1
    chosen.sort(key=lambda each: (-each.score, each.turn))
    return chosen[:limit]


def _stepped_down(ranked: Ranked, weights: Weights) -> Ranked:
    parts = {**ranked.parts, "repeated": -weights.repeated * ranked.score}
    return replace(ranked, score=sum(parts.values()), parts=parts)
