"""What was recalled as people read it: hits in their order, where they come from, and why."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import click

from recollect.interfaces.cli.fact_lines import source_in_words
from recollect.interfaces.cli.output import counted, one_line, shortened
from recollect.knowledge import Source
from recollect.recollection import Context, EntryKind, Hit, Omission

PIPED_CHARS = 500  # of a text, where there is no terminal to cut it to
EXPLAINED_CHARS = 1000
QUOTE_CHARS = 200
SHOWN_SOURCES = 3
COLUMNS_MIN = 20
INDENT = "    "

REASONS: Mapping[str, str] = {
    "words": "has the words of the query, the rare ones above all",
    "phrase": "has them next to each other, as the query does",
    "similarity": "means something like it",
    "neighbours": "what was said just before or after it fits too",
    "speaker": "the query names who said it",
    "asker": "is about who asks, or their own word",
    "change": "was replaced, or took the place of something",
    "time": "was said in a time that the query names, or soon after",
    "alone": "says by itself what a turn says with those around it",
    "session": "what belongs together with it is about this",
    "recency": "is recent",
    "usage": "was of use before",
    "source": "says what a record says that fits better",
    "replaces": "stands above what it took the place of",
    "outdated": "does not hold any more",
    "repeated": "says the same as one further up",
}


def hit_lines(rank: int, hit: Hit, keys: Mapping[str, str]) -> Iterator[str]:
    """A hit in a list, on two lines. `keys` are the stable keys of sessions, by id."""
    number = f"{rank}. "
    yield f"{click.style(number, bold=True)}{_cut(hit.text, used=len(number))}"
    yield f"{INDENT}{_origin(hit)}{_first_said(hit, keys)}"


def explained_lines(label: str, hit: Hit, keys: Mapping[str, str]) -> Iterator[str]:
    """A hit with each part of its score, and where it comes from."""
    yield f"{click.style(label, bold=True)} {shortened(hit.text, EXPLAINED_CHARS)}"
    yield f"{INDENT}{_origin(hit)}"
    parts = [("score", hit.score, "")]
    parts += [
        (name, value, REASONS.get(name, ""))
        for name, value in sorted(hit.why.items(), key=lambda part: -part[1])
    ]
    width = max(len(one_line(name)) for name, _, _ in parts)
    for name, value, words in parts:
        yield f"{INDENT}{one_line(name).ljust(width)}  {value:7.3f}  {words}".rstrip()
    for line in _sources(hit.sources, keys):
        yield f"{INDENT}{line}"


def block_lines(block: Context, max_tokens: int, keys: Mapping[str, str]) -> Iterator[str]:
    """What a block is made of, and what was found and left out of it."""
    found = len(block.citations) + len(block.omitted)
    yield (
        f"{len(block.citations):,} of {found:,} found are in the block, which has"
        f" {block.token_count:,} of at most {counted(max_tokens, 'token')}."
    )
    for citation in block.citations:
        yield ""
        yield from explained_lines(f"[{citation.mark}]", citation.hit, keys)
        same = [each for each in block.omitted if each.instead == citation.mark]
        for omission in same:
            yield f"{INDENT}also said by {_name(omission.hit)}"
    others = [omission for omission in block.omitted if not omission.instead]
    if others:
        yield ""
        yield click.style("Left out", bold=True)
        for omission in others:
            yield from _left_out(omission)


def _left_out(omission: Omission) -> Iterator[str]:
    reason = click.style(one_line(omission.reason), fg="yellow")
    yield f"{INDENT}{_name(omission.hit)}: {reason}"
    yield f"{INDENT * 2}{_cut(omission.hit.text, used=2 * len(INDENT))}"


def _name(hit: Hit) -> str:
    """What it is, and what to call it by in another command."""
    return one_line(f"{hit.kind.value} {hit.id}")


def _origin(hit: Hit) -> str:
    tags = ", ".join(hit.tags)
    words = [_name(hit), f"{hit.at:%Y-%m-%d}", hit.speaker or hit.trust.value, tags]
    return click.style("  ".join(one_line(word) for word in words if word), dim=True)


def _first_said(hit: Hit, keys: Mapping[str, str]) -> str:
    """Where it was said, where its name does not tell."""
    if not hit.sources or (hit.kind is EntryKind.RECORD and not keys):
        return ""
    more = f" and {len(hit.sources) - 1:,} more" if len(hit.sources) > 1 else ""
    return click.style(f"  from {source_in_words(hit.sources[0], keys)}{more}", dim=True)


def _sources(sources: Sequence[Source], keys: Mapping[str, str]) -> Iterator[str]:
    for source in sources[:SHOWN_SOURCES]:
        quote = f": “{shortened(source.quote, QUOTE_CHARS)}”" if source.quote else ""
        yield f"from {source_in_words(source, keys)}{quote}"
    if len(sources) > SHOWN_SOURCES:
        yield f"and {len(sources) - SHOWN_SOURCES:,} more; --json has them"


def _cut(text: str, *, used: int) -> str:
    """As much of a text as the rest of a terminal's line holds; more of it in a pipe."""
    line = one_line(text)
    if not sys.stdout.isatty():
        return line if len(line) <= PIPED_CHARS else f"{line[: PIPED_CHARS - 1]}…"
    columns = max(shutil.get_terminal_size().columns - used, COLUMNS_MIN)
    taken = 0
    for at, character in enumerate(line):
        taken += _columns(character)
        if taken > columns or (taken == columns and at + 1 < len(line)):
            return f"{line[:at]}…"
    return line


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
