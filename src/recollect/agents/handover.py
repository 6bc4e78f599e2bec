"""What a claimed session goes through: extraction, its memory-agent, or both.

Owns document 003's flow: with the memory-agent alone, a worker asks no model itself. It posts what
is to be read, and the cursor moves with the post.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recollect.processing import Processor, Verdict, Work
from recollect.types.records import Outcome

NAME = "memory-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandingProcessor:
    """Has sessions extracted by another processor, or by none, and handed over.

    `reads_all`: the memory-agent reads what was said; else it files the facts that were found, and
    what had none is not handed over. `ensure_root` sees to it that a space has a memory root.
    """

    extraction: Processor | None
    reads_all: bool
    ensure_root: Callable[[str], None]

    @property
    def name(self) -> str:
        return str(getattr(self.extraction, "name", NAME))

    def process(self, work: Work) -> Verdict:
        self.ensure_root(work.session.space)
        if self.extraction is None:
            return Verdict(outcome=Outcome.HANDED_OVER, extractor=NAME)
        return self.extraction.process(work)

    def hands_over(self, verdict: Verdict) -> bool:
        """Whether the memory-agent is to have what a verdict is about."""
        match verdict.outcome:
            case Outcome.HANDED_OVER:
                return True
            case Outcome.EXTRACTED | Outcome.NO_OUTPUT:
                has_facts = verdict.draft is not None and bool(verdict.draft.facts)
                return self.reads_all or has_facts
            case Outcome.SKIPPED | Outcome.EXTERNAL:
                return False
