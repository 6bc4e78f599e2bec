"""`recollect recall`: what a space remembers about any text, best first, and why."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from recollect.descriptors import UserAgent, read_descriptor
from recollect.errors import InvalidValue
from recollect.interfaces.cli.arguments import (
    find_session,
    limit_option,
    read_given_time,
    session_keys,
)
from recollect.interfaces.cli.options import known_keys
from recollect.interfaces.cli.output import note, one_line, write, write_json
from recollect.interfaces.cli.recall_lines import explained_lines, hit_lines
from recollect.interfaces.cli.target import Target, read_agent, with_target
from recollect.interfaces.views import view
from recollect.knowledge import Trust
from recollect.recall.filters import read_condition, read_filters
from recollect.recollection import (
    AllOf,
    Condition,
    EntryKind,
    Filters,
    NoneOf,
    Operator,
    Where,
)
from recollect.space import Space

F = TypeVar("F", bound=Callable[..., object])

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


speaker_option = click.option(
    "--speaker", metavar="NAME", help='Who asks: "where do I live" is about them.'
)


def read_query(words: tuple[str, ...], usage: str) -> str:
    """The words as one text; if they are - or missing, standard input. Any text is a query."""
    if words not in ((), ("-",)):
        return " ".join(words)
    if sys.stdin is None or (not words and sys.stdin.isatty()):
        raise click.UsageError(f"Give a QUERY, or pipe it in: echo … | {usage}")
    return sys.stdin.buffer.read().decode("utf-8", errors="replace")


def read_conditions(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> AllOf:
    """What metadata has to be, from texts such as price>=3."""
    parts = []
    for each in given:
        found = _CONDITION.fullmatch(each)
        if found is None:
            raise click.BadParameter(
                f"FIELD=VALUE, as in city=Lisbon; also != > >= < <= and ~: {each!r}",
                context,
                parameter,
            )
        sign = _OPERATORS[found["sign"]]
        try:
            parts.append(_condition(found["field"], sign, found["value"].strip()))
        except InvalidValue as error:
            raise click.BadParameter(str(error), context, parameter) from error
    return AllOf(tuple(parts))


def _condition(field: str, operator: Operator, text: str) -> Where:
    """A value that reads as JSON is that, any other is text; * is any, and a list one of them."""
    if text == "*" and operator in _ONE_OF:
        is_there = Condition(field=field, operator=Operator.EXISTS, value=True)
        return is_there if operator is Operator.EQ else NoneOf((is_there,))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, list):
        operator = _ONE_OF.get(operator, operator)
    return read_condition(field, operator, value)


_OPTIONS = (
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice([kind.value for kind in EntryKind]),
        help="Only this kind. May be given several times.",
    ),
    click.option(
        "--since",
        callback=read_given_time,
        metavar="TIME",
        help="Only what was said or changed from then on: a day, or an ISO time with a zone.",
    ),
    click.option(
        "--until", callback=read_given_time, metavar="TIME", help="Only what is older than that."
    ),
    click.option(
        "--as-of",
        callback=read_given_time,
        metavar="TIME",
        help="What was known and held at that time. Default: now.",
    ),
    click.option("--agent", metavar="NAME", help="Only what comes from talks with this agent."),
    click.option("--project", metavar="NAME", help="Only what comes from sessions of it."),
    click.option(
        "--session",
        metavar="KEY-OR-ID",
        shell_complete=known_keys,
        help="Only what comes from this session.",
    ),
    click.option(
        "--tag", "tags", multiple=True, metavar="T", help="With this tag; with all, if several."
    ),
    click.option(
        "--trust",
        multiple=True,
        type=click.Choice([trust.value for trust in Trust]),
        help="Only the word of these. May be given several times.",
    ),
    click.option(
        "--where",
        multiple=True,
        callback=read_conditions,
        metavar="CONDITION",
        help="Of the metadata: city=Lisbon, 'price>=3', 'city!=*' (has none), 'note~tea' (has it"
        ' in it), \'city=["Faro", "Porto"]\' (one of them). All have to hold.',
    ),
)


def narrowing_options(function: F) -> F:
    """The options that say what may be found, in the order of the help."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def given_filters(
    space: Space,
    *,
    kinds: tuple[str, ...],
    session: str | None,
    agent: str | None,
    where: AllOf,
    **more: Any,
) -> Filters:
    """What may be found, from the options. NotFound: there is no such session."""
    named = {name: value for name, value in more.items() if value not in (None, ())}
    if kinds:
        named["kinds"] = kinds
    if agent is not None:
        named["agent"] = _agent_name(agent)
    if session is not None:
        named["session"] = find_session(space, session, agent).id
    return replace(read_filters(named), where=where)


def _agent_name(agent: str) -> str:
    """The name of an agent that people talk to, also if it is written /user/NAME."""
    found = read_descriptor(read_agent(agent) or "")
    if not isinstance(found, UserAgent):
        raise InvalidValue(f"only agents that people talk to can be asked for, not {agent!r}")
    return found.id


def is_narrowed(given: dict[str, Any]) -> bool:
    """Whether something was left out because an option says so."""
    return any(value not in (None, (), AllOf()) for value in given.values())


FOUND = 10


@click.command("recall")
@click.argument("query", nargs=-1)
@limit_option(FOUND, "hits")
@speaker_option
@narrowing_options
@click.option("--explain", is_flag=True, help="Show what each score is made of, and the sources.")
@with_target
def command(
    target: Target,
    /,
    query: tuple[str, ...],
    limit: int,
    speaker: str | None,
    explain: bool,
    **given: Any,
) -> None:
    """Find what is remembered about QUERY: facts, documents, summaries and what was said.

    Any text is a query, a question too; names of people and times ("last spring") count. A QUERY
    that is - or missing is read from standard input. No model is asked.

    A hit has its rank, its text, its kind with the name to call it by (a fact's id, a document's
    path, session:number of a record), its date, and who says so. JSON has every reason and source.

    \b
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
    with target.open_existing(given["agent"]) as memory:
        space = memory.space(target.space_name)
        filters = given_filters(space, **given)
        hits = space.recall(text, limit, filters=filters, speaker=speaker)
        keys = session_keys(space, hits)
    if target.as_json:
        write_json(view(hits))
        return
    for rank, hit in enumerate(hits, start=1):
        if explain and rank > 1:
            write()
        lines = explained_lines(f"{rank}.", hit, keys) if explain else hit_lines(rank, hit, keys)
        for line in lines:
            write(line)
    if not hits:
        note(nothing_found(target, given))


def nothing_found(target: Target, given: dict[str, Any]) -> str:
    """What to say where there is nothing to show."""
    space = one_line(target.space_name)
    advice = " Fewer options may find more." if is_narrowed(given) else ""
    return f"Nothing in space {space!r} fits.{advice}"
