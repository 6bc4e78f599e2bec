"""Summarises what leaves a conversation, on top of the summary there is.

Whatever a summarizer raises is one of SUMMARY_FAILURES; callers then drop the older messages, keep
the summary they have, and go on with the turn (T7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.config import Settings
from recollect.domain import Record
from recollect.errors import InvalidOutput, ModelError, Postponed, PromptTooLong, RecollectError
from recollect.extraction.digest import Redact, cleaned, shortened
from recollect.extraction.model import CHUNK_TOKENS_MIN, OUTPUT_SHARE_MAX, WINDOW_MARGIN, Ask
from recollect.extraction.model import tokens_of as request_tokens
from recollect.extraction.piece import Block
from recollect.extraction.select import select
from recollect.extraction.transcript import chunk, cost, fenced, render
from recollect.models.prompts import Prompt, load_prompt
from recollect.models.protocol import Request
from recollect.models.tokens import estimate_tokens

PROMPTS = Path(__file__).parent / "prompts"
PURPOSE = "summarize"  # what its calls are booked under
SUMMARY_TOKENS_MAX = 1000
SUMMARY_CHARS_MAX = 16_000
SAID_CHARS_MAX = 6000  # of one message, as it is shown to the model
CALLS_MAX = 8  # for one compaction, those that were too long included
_NOTHING = "(none)"

# A call may fail, come to nothing, or not be made because it would cost more than may be spent.
SUMMARY_FAILURES: tuple[type[RecollectError], ...] = (ModelError, Postponed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPrompts:
    """The texts a model is given. A file of the user's own has to have the same variables."""

    system: Prompt
    request: Prompt

    @classmethod
    def load(cls, settings: Settings) -> SummaryPrompts:
        system = load_prompt(PROMPTS, "summarize", settings.prompts_dir)
        request = load_prompt(PROMPTS, "summarize-request", settings.prompts_dir)
        system.fill()  # raises here rather than in every turn
        request.fill(earlier="", transcript="", words="")
        return cls(system=system, request=request)

    @property
    def version(self) -> str:
        return "-".join(dict.fromkeys((self.system.version, self.request.version)))


class ModelSummarizer:
    """Summarises with a model. Safe to share between threads.

    Every call goes through `ask`, so that its owner can count it and cap it.
    """

    def __init__(
        self,
        ask: Ask,
        settings: Settings,
        *,
        redact: Redact,
        summary_tokens_max: int = SUMMARY_TOKENS_MAX,
    ) -> None:
        self._ask = ask
        self._redact = redact
        self._prompts = SummaryPrompts.load(settings)
        self._window_tokens = int(settings.model_window_tokens * (1 - WINDOW_MARGIN))
        answer_tokens = min(
            settings.model_output_tokens_max, int(settings.model_window_tokens * OUTPUT_SHARE_MAX)
        )
        self._summary_tokens_max = min(summary_tokens_max, answer_tokens)
        self._output_tokens_max = min(2 * self._summary_tokens_max, answer_tokens)

    @property
    def version(self) -> str:
        """Of the prompts."""
        return self._prompts.version

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
            raise PromptTooLong(f"not to be summarised in {CALLS_MAX} calls")
        return summary

    def _request(self, earlier: str, blocks: Sequence[Block]) -> Request:
        shown = shortened(earlier, SUMMARY_CHARS_MAX)
        prompt = self._prompts.request.fill(
            earlier=fenced(shown) if shown else _NOTHING,
            transcript=render(blocks, is_background=False),
            words=f"{self._summary_tokens_max // 2:,}",
        )
        return Request(
            system=self._prompts.system.fill(),
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
