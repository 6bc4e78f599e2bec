"""Decides when a conversation is compacted and what of it is kept; owns the hysteresis of T7.

A compaction begins above a limit and cuts well below it, so that after one nothing is due until the
limit is passed again. It cuts where a turn begins: what is summarised and what is retained are
together the history, and no record is ever summarised twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from recollect.context.turns import cuts, tool_calls
from recollect.domain import Record
from recollect.models.tokens import MESSAGE_TOKENS, estimate_calls, estimate_tokens

THRESHOLD = 40
RETAIN_RECENT = 20
RETAINED_SHARE = 0.6  # of either limit, at most, is kept by a compaction


class CompactionCause(StrEnum):
    """Which limit was passed; where both were, the messages."""

    MESSAGES = "messages"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What is to be done: these records become a summary, or are dropped, and those stay.

    `retained` are the newest ones and begin where a turn does, so that a session that is compacted
    with `retain=len(retained)` shows exactly these.
    """

    summarised: tuple[Record, ...]
    retained: tuple[Record, ...]
    cause: CompactionCause


def plan_compaction(
    records: Sequence[Record],
    *,
    tokens_max: int,
    threshold: int = THRESHOLD,
    retain_recent: int = RETAIN_RECENT,
    summary: str = "",
) -> Compaction | None:
    """What to compact of a history, if more than `threshold` messages or `tokens_max` are in it.

    `summary` is the one there is: it takes tokens too. The newest turn is always retained; where it
    is all there is, nothing can be compacted. However high `retain_recent` is, no more than
    RETAINED_SHARE of the threshold is kept: else every new message would make a compaction due.
    """
    tokens_left = tokens_max - (estimate_tokens(summary) + MESSAGE_TOKENS if summary else 0)
    from_end = list(accumulate((record_tokens(record) for record in reversed(records)), initial=0))
    cause = _cause(len(records) > threshold, from_end[-1] > tokens_left)
    if cause is None:
        return None
    records_kept_max = min(retain_recent, math.ceil(threshold * RETAINED_SHARE))
    tokens_kept_max = tokens_left - math.ceil(tokens_max * (1 - RETAINED_SHARE))
    places = [at for at in cuts(records) if at > 0]
    if not places:
        return None
    fitting = (
        at
        for at in places
        if len(records) - at <= records_kept_max and from_end[len(records) - at] <= tokens_kept_max
    )
    cut = next(fitting, places[-1])
    return Compaction(summarised=tuple(records[:cut]), retained=tuple(records[cut:]), cause=cause)


def _cause(has_many_messages: bool, has_many_tokens: bool) -> CompactionCause | None:
    if has_many_messages:
        return CompactionCause.MESSAGES
    return CompactionCause.TOKENS if has_many_tokens else None


def record_tokens(record: Record) -> int:
    """What a record takes in a history, roughly: it is not redacted for this."""
    calls = 0 if record.body is None else estimate_calls(tool_calls(record))
    return MESSAGE_TOKENS + estimate_tokens(record.content) + calls
