"""Decides when a conversation is compacted and what of it is kept; owns the hysteresis of T7.

A compaction begins above a limit and cuts well below it, so that after one nothing is due until the
limit is passed again. It cuts where a turn begins: what is summarised and what is retained are
together the history, and no record is ever summarised twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from recollect.config import Settings
from recollect.context.turns import cuts, tool_calls
from recollect.errors import InvalidOutput, ModelError, Postponed, PromptTooLong, RecollectError
from recollect.extraction.model import CHUNK_TOKENS_MIN, OUTPUT_SHARE_MAX, WINDOW_MARGIN, Ask
from recollect.extraction.model import tokens_of as request_tokens
from recollect.extraction.piece import Block
from recollect.extraction.select import select
from recollect.extraction.transcript import Redact, chunk, cleaned, cost, fenced, render, shortened
from recollect.models.prompts import load_prompt
from recollect.models.protocol import WINDOW_TOKENS, Request
from recollect.models.tokens import MESSAGE_TOKENS, estimate_calls, estimate_tokens
from recollect.types.records import Record

THRESHOLD = 40
RETAIN_RECENT = 20
RETAINED_SHARE = 0.6  # of either limit, at most, is kept by a compaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What is to be done: these records become a summary, or are dropped, and those stay.

    `retained` are the newest ones and begin where a turn does, so that a session that is compacted
    with `retain=len(retained)` shows exactly these.
    """

    summarised: tuple[Record, ...]
    retained: tuple[Record, ...]


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
    if len(records) <= threshold and from_end[-1] <= tokens_left:
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
    return Compaction(summarised=tuple(records[:cut]), retained=tuple(records[cut:]))


def record_tokens(record: Record) -> int:
    """What a record takes in a history, roughly: it is not redacted for this."""
    calls = 0 if record.body is None else estimate_calls(tool_calls(record))
    return MESSAGE_TOKENS + estimate_tokens(record.content) + calls


PROMPTS = Path(__file__).parent / "prompts"
PURPOSE = "summarize"  # what its calls are booked under
SUMMARY_TOKENS_MAX = 1000
SUMMARY_CHARS_MAX = 16_000
SAID_CHARS_MAX = 6000  # of one message, as it is shown to the model
CALLS_MAX = 8  # for one compaction, those that were too long included
_NOTHING = "(none)"

# A call may fail, come to nothing, or not be made because it would cost more than may be spent.
SUMMARY_FAILURES: tuple[type[RecollectError], ...] = (ModelError, Postponed)


class ModelSummarizer:
    """Summarises with a model. Safe to share between threads. A user may have prompts of their own.

    Every call goes through `ask`, so that its owner can count it and cap it.
    """

    def __init__(
        self,
        ask: Ask,
        settings: Settings,
        *,
        redact: Redact,
        window_tokens: int = WINDOW_TOKENS,
        summary_tokens_max: int = SUMMARY_TOKENS_MAX,
    ) -> None:
        self._ask = ask
        self._redact = redact
        self._system = load_prompt(PROMPTS, "summarize", settings.prompts_dir)
        self._asked = load_prompt(PROMPTS, "summarize-request", settings.prompts_dir)
        window_tokens = min(window_tokens, settings.model_window_tokens or window_tokens)
        self._window_tokens = int(window_tokens * (1 - WINDOW_MARGIN))
        answer_tokens = min(settings.model_output_tokens_max, int(window_tokens * OUTPUT_SHARE_MAX))
        self._summary_tokens_max = min(summary_tokens_max, answer_tokens)
        self._output_tokens_max = min(2 * self._summary_tokens_max, answer_tokens)

    def summarize(self, earlier: str, records: Sequence[Record]) -> str:
        """As many calls as the records take, each going on from the summary of the one before."""
        summary = self._redact(cleaned(earlier)).strip()
        rest: Sequence[Block] = select(records, self._redact, said_chars_max=SAID_CHARS_MAX)
        limit = self._window_tokens
        for _ in range(CALLS_MAX):
            if not rest:
                return summary
            room = self._window_tokens - self._output_tokens_max
            room -= request_tokens(self._request(summary, ()))
            part = chunk(rest, max(min(room, limit), CHUNK_TOKENS_MIN), estimate_tokens)
            try:
                summary = self._summary(self._request(summary, part.blocks))
            except PromptTooLong:  # the model's window is smaller than it was said to be
                if limit < CHUNK_TOKENS_MIN:
                    raise
                limit = cost(part.blocks, estimate_tokens) // 2
                continue
            rest = rest[part.taken :]
        if rest:
            raise PromptTooLong(f"could not be summarised in {CALLS_MAX} calls")
        return summary

    def _request(self, earlier: str, blocks: Sequence[Block]) -> Request:
        shown = shortened(earlier, SUMMARY_CHARS_MAX)
        prompt = self._asked.fill(
            earlier=fenced(shown) if shown else _NOTHING,
            transcript=render(blocks, is_background=False),
            words=f"{self._summary_tokens_max // 2:,}",
        )
        return Request(
            system=self._system.fill(),
            prompt=prompt,
            output_tokens_max=self._output_tokens_max,
        )

    def _summary(self, request: Request) -> str:
        text = self._redact(cleaned(self._ask(request, PURPOSE).text)).strip()
        tokens = estimate_tokens(text)
        if not text:
            raise InvalidOutput("the summary is empty")
        if tokens > self._summary_tokens_max or len(text) > SUMMARY_CHARS_MAX:
            raise InvalidOutput(
                f"the summary has {tokens:,} tokens and {len(text):,} characters; at most "
                f"{self._summary_tokens_max:,} and {SUMMARY_CHARS_MAX:,} may be stored"
            )
        return text
