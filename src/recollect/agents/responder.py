"""The offline responder: answers from memory alone, and says so. No model is asked.

What it says begins with a mark by which it is known again, so that memory never feeds on itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from recollect.quoting import OFFLINE
from recollect.types.recall import Citation, Context, EntryKind

ANSWERS_MAX = 5
WORDS = "words"  # the part of a score that is for words in common
ANSWER_CHARS_MAX = 300
NOTHING = (
    f"{OFFLINE} I find nothing about this in memory. No model is set, so I can only tell what I "
    "remember; what you say is kept and becomes memory."
)
FROM_MEMORY = f"{OFFLINE} From memory, since no model is set:"


def respond(block: Context, asked: Collection[tuple[str, int]] = ()) -> str:
    """What memory says about a message, with where each line comes from; see `answers`."""
    best = answers(block, asked)
    if not best:
        return NOTHING
    return "\n".join([FROM_MEMORY, *(_line(citation) for citation in best)])


def answers(block: Context, asked: Collection[tuple[str, int]] = ()) -> tuple[Citation, ...]:
    """What of a block answers a message.

    `asked` are the records of the message itself, by session and seq: they answer nothing.
    """
    found = [each for each in block.citations if _answers(each) and not _is_among(each, asked)]
    return tuple(_best(found))


def _answers(citation: Citation) -> bool:
    """Whether it has words in common with the message, and is not a question itself."""
    hit = citation.hit
    is_question = hit.kind is EntryKind.RECORD and hit.text.rstrip().endswith("?")
    return not is_question and hit.why.get(WORDS, 0.0) > 0


def _is_among(citation: Citation, asked: Collection[tuple[str, int]]) -> bool:
    is_record = citation.hit.kind is EntryKind.RECORD
    return is_record and any((each.session_id, each.seq) in asked for each in citation.hit.sources)


def _best(citations: Sequence[Citation]) -> Sequence[Citation]:
    """Facts, where there are any: the rest says the same at greater length."""
    facts = [each for each in citations if each.hit.kind is EntryKind.FACT]
    return (facts or citations)[:ANSWERS_MAX]


def _line(citation: Citation) -> str:
    text = " ".join(citation.hit.text.split())
    if len(text) > ANSWER_CHARS_MAX:
        text = f"{text[:ANSWER_CHARS_MAX].rstrip()}…"
    sources = citation.sources or citation.hit.sources
    where = f"session {sources[0].session_id}, record {sources[0].seq}, " if sources else ""
    return f"- {text} ({where}{citation.hit.at:%Y-%m-%d})"
