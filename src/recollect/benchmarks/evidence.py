"""Tells how much of a question's evidence stands in a block of text.

A turn stands in a block if its sentences whose words stand there, in a row and on one line, have at
least half of its words, or forty of them: of a long turn a block shows the sentences that fit.
Words are letters and digits without case and accents, so that quotation, marks and line breaks
are ignored. A turn is told if it stands there, or if a line has its record as the only source
and at least four fifths of the line's telling words from it. A record with the same text is no
other source: LongMemEval has some sessions twice. Names of those who speak, dates that the line
adds in round brackets, and the question that it says somebody was asked do not count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from recollect.benchmarks.tasks import Pool
from recollect.extraction.grounding import stems
from recollect.recall.statements import SENTENCE
from recollect.stemming import words
from recollect.types.recall import Citation, EntryKind

STANDING_MIN = 0.5  # of a turn's words: those of its sentences that stand there
STANDING_WORDS = 40  # that are enough of a long turn
GROUNDED_MIN = 0.8  # of a line's telling words: those that the turn has
_ADDED = re.compile(r"\([^()]*\b\d{4}-\d\d\b[^()]*\)|, asked \".*?\":")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFound:
    """Shares of the evidence: what stands there as it was said, and what is told at all."""

    standing: float
    told: float


class Evidence:
    """The turns of a pool, to be looked for in blocks."""

    def __init__(self, pool: Pool) -> None:
        self._texts = {turn.id: turn.text for turn in pool.turns}
        first = {turn.text: turn.id for turn in reversed(pool.turns)}
        self._copied = {turn.id: first[turn.text] for turn in pool.turns}
        self._names = frozenset(
            stem for turn in pool.turns for stem in stems(f"{turn.speaker} {turn.role}")
        )

    def found(
        self,
        wanted: Collection[str],
        block: str,
        citations: Collection[Citation] = (),
        turns: Mapping[str, str] | None = None,
    ) -> EvidenceFound:
        """How much of the wanted turns is there; `turns` are those of records by `session:seq`."""
        lines = "\n".join(f" {words(line)} " for line in block.splitlines())
        standing = {turn for turn in wanted if _stands(self._texts[turn], lines)}
        grounded = {
            turn
            for citation in citations
            if (turn := self._only_turn(citation, turns or {}))
            and self._is_grounded(citation.hit.text, turn)
        }
        told = standing | {turn for turn in wanted if self._copied[turn] in grounded}
        return EvidenceFound(standing=len(standing) / len(wanted), told=len(told) / len(wanted))

    def _only_turn(self, citation: Citation, turns: Mapping[str, str]) -> str:
        """The turn of a fact that comes from it alone; a record stands for itself, or does not."""
        if citation.hit.kind is EntryKind.RECORD:
            return ""
        found = {
            self._copied.get(turns.get(f"{source.session_id}:{seq}", ""), "")
            for source in citation.sources
            for seq in range(source.seq, source.seq_to + 1)
        }
        return found.pop() if len(found) == 1 else ""

    def _is_grounded(self, line: str, turn: str) -> bool:
        said = stems(_ADDED.sub(" ", line)) - self._names
        return len(said & stems(self._texts[turn])) >= GROUNDED_MIN * len(said) > 0


def _stands(turn: str, lines: str) -> bool:
    sentences = [words(sentence) for sentence in SENTENCE.findall(turn)]
    sizes = [len(sentence.split()) for sentence in sentences]
    there = sum(
        size for sentence, size in zip(sentences, sizes, strict=True) if f" {sentence} " in lines
    )
    return there >= min(STANDING_MIN * sum(sizes), STANDING_WORDS) > 0
