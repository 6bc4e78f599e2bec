"""`recollect recall` and `recollect context`: what a space remembers about any text, and why."""

from __future__ import annotations

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated

import click

from recollect.descriptors import UserAgent, read_descriptor
from recollect.errors import InvalidValue
from recollect.interfaces.cli.commands import Arg, Opt, Output, Target, command, read_agent
from recollect.interfaces.cli.facts import source_in_words
from recollect.interfaces.cli.groups import known_keys
from recollect.interfaces.cli.output import counted, harmless, one_line, shortened
from recollect.interfaces.cli.parameters import (
    Words,
    find_session,
    limit_of,
    read_day_or_time,
    session_keys,
)
from recollect.recall.filters import read_condition, read_filters
from recollect.recall.pack import FACTS_MAX, LINES_MAX
from recollect.recall.reasons import REASONS
from recollect.space import Space
from recollect.types.facts import Source, Trust
from recollect.types.recall import (
    CONTEXT_TOKENS,
    AllOf,
    Condition,
    Context,
    EntryKind,
    Filters,
    Hit,
    NoneOf,
    Omission,
    Operator,
    Where,
)

_CONDITION = re.compile(
    r"\s*(?P<field>[^=!<>~]+?)\s*(?P<sign>>=|<=|!=|=|>|<|~)(?P<value>.*)", re.DOTALL
)
_OPERATORS = {
    "=": Operator.EQ,
    "!=": Operator.NE,
    ">": Operator.GT,
    ">=": Operator.GTE,
    "<": Operator.LT,
    "<=": Operator.LTE,
    "~": Operator.ICONTAINS,
}
_ONE_OF = {Operator.EQ: Operator.IN, Operator.NE: Operator.NIN}


def read_query(words: tuple[str, ...], usage: str) -> str:
    """The words as one text; if they are - or missing, standard input. Any text is a query."""
    if words not in ((), ("-",)):
        return " ".join(words)
    if sys.stdin is None or (not words and sys.stdin.isatty()):
        raise click.UsageError(f"Give a QUERY, or pipe it in: echo … | {usage}")
    return sys.stdin.buffer.read().decode("utf-8", errors="replace")


def read_where(text: str) -> Where:
    """A condition on metadata, such as price>=3.

    A value that reads as JSON is that, any other is text; * is any, and a list one of them.
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise InvalidValue(f"FIELD=VALUE, as in city=Lisbon; also != > >= < <= and ~: {text!r}")
    field, operator, given = found["field"], _OPERATORS[found["sign"]], found["value"].strip()
    if given == "*" and operator in _ONE_OF:
        exists = Condition(field=field, operator=Operator.EXISTS, value=True)
        return exists if operator is Operator.EQ else NoneOf((exists,))
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = given
    if isinstance(value, list):
        operator = _ONE_OF.get(operator, operator)
    return read_condition(field, operator, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """The options that say what may be found."""

    kinds: Annotated[
        tuple[str, ...],
        Opt("Only this kind. May be given several times.", name="--kind", choices=tuple(EntryKind)),
    ] = ()
    since: Annotated[
        datetime | None,
        Opt(
            "Only what was said or changed from then on: a day, or an ISO time with a zone.",
            "TIME",
            read=read_day_or_time,
        ),
    ] = None
    until: Annotated[
        datetime | None, Opt("Only what is older than that.", "TIME", read=read_day_or_time)
    ] = None
    as_of: Annotated[
        datetime | None,
        Opt("What was known and held at that time. Default: now.", "TIME", read=read_day_or_time),
    ] = None
    agent: Annotated[
        str | None, Opt("Only what comes from conversations with this agent.", "NAME")
    ] = None
    project: Annotated[str | None, Opt("Only what comes from sessions of it.", "NAME")] = None
    session: Annotated[
        str | None, Opt("Only what comes from this session.", "KEY-OR-ID", complete=known_keys)
    ] = None
    tags: Annotated[
        tuple[str, ...], Opt("With this tag; with all, if several are given.", "T", "--tag")
    ] = ()
    trust: Annotated[
        tuple[str, ...],
        Opt("Only the word of these. May be given several times.", choices=tuple(Trust)),
    ] = ()
    where: Annotated[
        tuple[Where, ...],
        Opt(
            "Of the metadata: city=Lisbon, 'price>=3', 'city!=*' (has none), 'note~tea' (contains"
            ' it), \'city=["Faro", "Porto"]\' (one of them). All have to hold.',
            "CONDITION",
            read=read_where,
        ),
    ] = ()

    def filters(self, space: Space) -> Filters:
        """What may be found. NotFound: there is no such session."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        del given["where"]
        named = {name: value for name, value in given.items() if value not in (None, ())}
        if self.agent is not None:
            named["agent"] = _talking_agent(self.agent)
        if self.session is not None:
            named["session"] = find_session(space, self.session, self.agent).id
        return replace(read_filters(named), where=AllOf(self.where))

    @property
    def nothing_found(self) -> str:
        """Advice where there is nothing to show."""
        return "" if self == Narrowing() else " Fewer options may find more."


def _talking_agent(agent: str) -> str:
    """The name of an agent that people talk to, also if it is written /user/NAME."""
    found = read_descriptor(read_agent(agent) or "")
    if not isinstance(found, UserAgent):
        raise InvalidValue(f"only agents that people talk to can be asked for, not {agent!r}")
    return found.id


Query = Annotated[Words, Arg()]
Speaker = Annotated[str | None, Opt('Who asks: "where do I live" is about them.', "NAME")]


@command()
def recall(
    at: Target,
    query: Query = (),
    *,
    limit: Annotated[int, limit_of("hits")] = 10,
    speaker: Speaker = None,
    narrowing: Narrowing,
    explain: Annotated[bool, Opt("Show what each score is made of, and the sources.")] = False,
) -> Output:
    """Find what is remembered about QUERY: facts, documents, summaries and messages.

    Any text is a query, a question too; names of people and times ("last spring") count. A QUERY
    that is - or missing is read from standard input. No model is asked.

    A hit has its rank, its text, its kind with the name to call it by (a fact's id, a document's
    path, session:number of a record), its date, and who says so. JSON has every reason and source.

    Examples:
      recollect recall where does Ana live
      recollect recall where do I live --speaker Ana
      recollect recall "what did we decide last week" --kind record --explain
      recollect recall tea --tag preference --since 2026-05-01 --trust user
      recollect recall dinner --where city=Lisbon --where 'price<=30' --json
      recollect recall "where does Ana live" --as-of 2025-12-24
      git log -1 --format=%B | recollect recall -
    """
    text = read_query(query, "recollect recall -")
    space = at.space
    hits = space.recall(text, limit, filters=narrowing.filters(space), speaker=speaker)

    def lines() -> Iterator[str]:
        keys = session_keys(space, hits)
        for rank, hit in enumerate(hits, start=1):
            if explain:
                yield from [""] if rank > 1 else []
                yield from _explained_lines(f"{rank}.", hit, keys)
            else:
                yield from hit_lines(rank, hit, keys)

    nothing = f"Nothing in space {at.quoted_space} matches.{narrowing.nothing_found}"
    return Output(hits, lines(), "" if hits else nothing)


@command()
def context(
    at: Target,
    query: Query = (),
    *,
    max_tokens: Annotated[
        int | None,
        Opt(
            f"The size of the whole block, everything counted. Default: {CONTEXT_TOKENS}; of a"
            " recap `recap_tokens`.",
            "N",
            at_least=0,
        ),
    ] = None,
    max_facts: Annotated[
        int,
        Opt("At most N facts; messages fill the rest.", "N", at_least=0, at_most=LINES_MAX),
    ] = FACTS_MAX,
    speaker: Speaker = None,
    narrowing: Narrowing,
    explain: Annotated[
        bool, Opt("Explain on standard error why it is in there, and what is not.")
    ] = False,
) -> Output:
    """Print what is remembered about QUERY as a block for a prompt, and nothing else.

    An empty QUERY is answered with a recap: of the project that --project names, else of the
    person.

    The block is fenced as data, fits its budget, and each line has a mark to cite it by. Where
    nothing fits, nothing is printed; that is no error. A QUERY that is - or missing is read from
    standard input. No model is asked, and nothing is counted as used.

    Examples:
      recollect context "where does Ana live" >> prompt.txt
      recollect context "plan dinner with Ana" --max-tokens 300 --explain
      recollect context "plan dinner with Ana" --kind fact --trust user --json
      recollect context "" --project /src/atlas
      printf '%s' "$PROMPT" | recollect context -
    """
    text = read_query(query, "recollect context -")
    space = at.space
    if max_tokens is None:
        max_tokens = CONTEXT_TOKENS if text.strip() else at.memory.settings.recap_tokens
    block = space.context(
        text, max_tokens, max_facts=max_facts, filters=narrowing.filters(space), speaker=speaker
    )
    hits = [each.hit for each in block.citations] + [each.hit for each in block.omitted]
    notes: Iterator[str] | str = ""
    if explain and hits and not at.as_json:
        notes = _block_lines(block, max_tokens, session_keys(space, hits))
    elif not block and not hits:
        notes = f"Nothing in space {at.quoted_space} matches.{narrowing.nothing_found}"
    elif not block:
        notes = "What was found is not suitable here. See why: --explain"
    return Output(block, harmless(block.text), notes)


# Hits as people read them

PIPED_CHARS = 500  # of a text, where there is no terminal to cut it to
EXPLAINED_CHARS, QUOTE_CHARS = 1000, 200
SHOWN_SOURCES = 3
COLUMNS_MIN = 20
INDENT = "    "


def hit_lines(rank: int, hit: Hit, keys: Mapping[str, str]) -> Iterator[str]:
    """A hit in a list, on two lines. `keys` are the stable keys of sessions, by id."""
    number = f"{rank}. "
    yield f"{click.style(number, bold=True)}{_cut(hit.text, used=len(number))}"
    yield f"{INDENT}{_origin(hit)}{_first_said(hit, keys)}"


def _explained_lines(label: str, hit: Hit, keys: Mapping[str, str]) -> Iterator[str]:
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


def _block_lines(block: Context, max_tokens: int, keys: Mapping[str, str]) -> Iterator[str]:
    """What a block is made of, and what was found and left out of it."""
    found = len(block.citations) + len(block.omitted)
    yield (
        f"{len(block.citations):,} of {found:,} found are in the block, which has"
        f" {block.token_count:,} of at most {counted(max_tokens, 'token')}."
    )
    for citation in block.citations:
        yield ""
        yield from _explained_lines(f"[{citation.mark}]", citation.hit, keys)
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
