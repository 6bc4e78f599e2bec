"""`recollect recall` and `recollect context`: what a space remembers about any text, and why."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated

import click

from recollect.descriptors import UserAgent, read_descriptor
from recollect.errors import InvalidValue
from recollect.interfaces.cli.commands import Opt, Output, Target, command, read_agent
from recollect.interfaces.cli.facts import source_in_words
from recollect.interfaces.cli.output import counted, harmless, one_line, shortened
from recollect.interfaces.cli.parameters import (
    Count,
    KeyOrId,
    Limit,
    Time,
    Words,
    find_session,
    session_keys,
)
from recollect.recall.filters import read_condition, read_filters
from recollect.recall.pack import FACTS_MAX, LINES_MAX
from recollect.space import Space
from recollect.types.facts import Source, Trust
from recollect.types.recall import (
    CONTEXT_TOKENS,
    REASONS,
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
    """The options that say what may be found.

    Options:
      kinds, --kind: Only this kind. May be given several times.
      since: Only what was said or changed from then on: a day, or an ISO time with a zone.
      until: Only what is older than that.
      as_of: What was known and held at that time. Default: now.
      agent NAME: Only what comes from conversations with this agent.
      project NAME: Only what comes from sessions of it.
      session: Only what comes from this session.
      tags, --tag T: With this tag; with all, if several are given.
      trust: Only what these have said. May be given several times.
      where CONDITION: Of the metadata: city=Lisbon, 'price>=3', 'city!=*' (has none), 'note~tea'
        (contains it), 'city=["Faro", "Porto"]' (one of them). All have to hold.
    """

    kinds: tuple[EntryKind, ...] = ()
    since: Time | None = None
    until: Time | None = None
    as_of: Time | None = None
    agent: str | None = None
    project: str | None = None
    session: KeyOrId | None = None
    tags: tuple[str, ...] = ()
    trust: tuple[Trust, ...] = ()
    where: Annotated[tuple[Where, ...], Opt(read=read_where)] = ()

    def filters(self, space: Space) -> Filters:
        """What may be found. NotFound: there is no such session."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        del given["where"]
        named = {name: value for name, value in given.items() if value not in (None, ())}
        if self.agent is not None:
            agent = read_descriptor(read_agent(self.agent) or "")
            if not isinstance(agent, UserAgent):
                said = f"only agents that people talk to can be asked for, not {self.agent!r}"
                raise InvalidValue(said)
            named["agent"] = agent.id
        if self.session is not None:
            named["session"] = find_session(space, self.session, self.agent).id
        return replace(read_filters(named), where=AllOf(self.where))


@command()
def recall(
    at: Target,
    query: Words = (),
    *,
    limit: Limit = 10,
    speaker: str | None = None,
    narrowing: Narrowing,
    explain: bool = False,
) -> Output:
    """Find what is remembered about QUERY: facts, documents, summaries and messages.

    Any text is a query, a question too; names of people and times ("last spring") count. A QUERY
    that is - or missing is read from standard input. No model is asked. A hit has its rank, its
    text, the name to call it by, its date, and who says so; JSON has every reason and source.

    Options:
      speaker NAME: Who asks: "where do I live" is about them.
      explain: Show what each score is made of, and the sources.

    Examples:
      recollect recall where do I live --speaker Ana
      recollect recall "what did we decide last week" --kind record --explain
      recollect recall dinner --where city=Lisbon --where 'price<=30' --json
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

    return Output(hits, lines(), "" if hits else _nothing(at, narrowing))


def _nothing(at: Target, narrowing: Narrowing) -> str:
    fewer = "" if narrowing == Narrowing() else " Fewer options may find more."
    return f"Nothing in space {at.quoted_space} matches.{fewer}"


@command()
def context(
    at: Target,
    query: Words = (),
    *,
    max_tokens: Count | None = None,
    max_facts: Annotated[int, Opt(metavar="N", at_least=0, at_most=LINES_MAX)] = FACTS_MAX,
    speaker: str | None = None,
    narrowing: Narrowing,
    explain: bool = False,
) -> Output:
    """Print what is remembered about QUERY as a block for a prompt, and nothing else.

    The block is fenced as data, fits its budget, and each line has a mark to cite it by; where
    nothing fits, nothing is printed. An empty QUERY is answered with a recap: of the project that
    --project names, else of the person. A QUERY that is - or missing is read from standard input.
    No model is asked, and nothing is counted as used.

    Options:
      max_tokens: The size of the whole block, everything counted. Default: 2000; of a recap
        `recap_tokens`.
      max_facts: At most N facts; messages fill the rest.
      speaker NAME: Who asks: "where do I live" is about them.
      explain: Explain on standard error why it is in there, and what is not.

    Examples:
      recollect context "plan dinner with Ana" --max-tokens 300 --explain
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
    elif not hits:
        notes = "" if block else _nothing(at, narrowing)
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
    said = ""  # where the name does not tell
    if hit.sources and (hit.kind is not EntryKind.RECORD or keys):
        more = f" and {len(hit.sources) - 1:,} more" if len(hit.sources) > 1 else ""
        said = click.style(f"  from {source_in_words(hit.sources[0], keys)}{more}", dim=True)
    yield f"{INDENT}{_origin(hit)}{said}"


def _explained_lines(label: str, hit: Hit, keys: Mapping[str, str]) -> Iterator[str]:
    """A hit with each part of its score, and where it comes from."""
    yield f"{click.style(label, bold=True)} {shortened(hit.text, EXPLAINED_CHARS)}"
    yield f"{INDENT}{_origin(hit)}"
    reasons = sorted(hit.why.items(), key=lambda part: -part[1])
    width = max(len(one_line(name)) for name in ("score", *hit.why))
    for name, value in (("score", hit.score), *reasons):
        words = "" if name == "score" else REASONS.get(name, "")
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
        same = (each for each in block.omitted if each.instead == citation.mark)
        yield from (f"{INDENT}also said by {_name(each.hit)}" for each in same)
    if others := [omission for omission in block.omitted if not omission.instead]:
        yield from ("", click.style("Left out", bold=True))
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
    words = [_name(hit), f"{hit.at:%Y-%m-%d}", hit.speaker or hit.trust.value, ", ".join(hit.tags)]
    return click.style("  ".join(one_line(word) for word in words if word), dim=True)


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
    from rich.cells import cell_len, set_cell_size

    columns = max(shutil.get_terminal_size().columns - used, COLUMNS_MIN)
    return line if cell_len(line) <= columns else f"{set_cell_size(line, columns - 1).rstrip()}…"
