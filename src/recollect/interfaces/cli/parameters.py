"""Types of arguments and options, and lookups of what they name: sessions, facts, pages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import click

from recollect import collection
from recollect.documents.paths import HOME, read_path
from recollect.errors import InvalidPath, InvalidValue, NotFound
from recollect.interfaces.cli.commands import Opt, Target, read_agent
from recollect.interfaces.cli.output import progress_bar
from recollect.progress import listening
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.types.facts import Fact
from recollect.types.pages import Document
from recollect.types.recall import Hit
from recollect.types.records import SessionState

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_day_or_time(text: str) -> datetime | None:
    """A time with its zone; a day alone is its beginning in UTC."""
    return collection.read_time(f"{text}T00:00:00+00:00" if _DAY.fullmatch(text) else text)


def read_tree_path(text: str) -> str:
    """A path of the tree, or an id. What the shell made of `~` is made `~` again."""
    if not text:
        raise InvalidValue("it is empty; the root is ~/memory")
    home = str(Path(HOME).expanduser())
    is_expanded = len(home) > 1 and text.startswith(home + "/")
    given = HOME + text.removeprefix(home) if is_expanded else text
    try:
        read_path(given)
    except InvalidPath as error:
        raise InvalidValue(str(error)) from error
    return given


def read_pair(text: str) -> tuple[str, Any]:
    """KEY=VALUE; a value that reads as JSON is that, any other is text."""
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise InvalidValue(f"KEY=VALUE, as in mood=glad: {text!r}")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


# What they are; what each is for stands with the command.
Key = Annotated[str, Opt(metavar="KEY")]
KeyOrId = Annotated[str, Opt(metavar="KEY-OR-ID")]
FactId = Annotated[str, Opt(metavar="ID")]
FactIds = Annotated[tuple[str, ...], Opt(metavar="ID")]
TreePath = Annotated[str, Opt(metavar="PATH", read=read_tree_path)]
Pair = Annotated[tuple[str, Any], Opt(metavar="KEY=VALUE", read=read_pair)]
Time = Annotated[datetime, Opt(metavar="TIME", read=read_day_or_time)]
Number = Annotated[int, Opt(metavar="N", at_least=1)]
Count = Annotated[int, Opt(metavar="N", at_least=0)]
Text = str | None
Words = tuple[str, ...]

# Options that say the same wherever they are.
Limit = Annotated[
    int, Opt(f"At most N of them, up to {LIST_MAX:,}.", "N", at_least=1, at_most=LIST_MAX)
]
After = Annotated[str | None, Opt("The next page: what is listed after this one.", "ID")]
Before = Annotated[int | None, Opt("The next page: those before this one.", "N", at_least=1)]
Agent = Annotated[str | None, Opt("Whose session; needed if several agents use KEY.", "NAME")]
AllAgents = Annotated[bool, Opt("Include agents that work on memory itself.")]
Tags = Annotated[tuple[str, ...], Opt("May be given several times.", "T", "--tag")]
Expect = Annotated[int | None, Opt("Refuse unless version N is the current one.", "N", at_least=1)]
Reason = Annotated[str, Opt("Kept with the version, for its history.", "WHY")]
Yes = Annotated[bool, Opt("Do not ask. Required where there is no terminal.")]
DryRun = Annotated[bool, Opt("Only show what would change.")]
AsOf = Annotated[
    datetime | None,
    Opt("As of this time: a day, or an ISO time with a zone.", "TIME", read=read_day_or_time),
]


def read_text(text: str | None, usage: str) -> str:
    """The argument; if it is - or missing, standard input. Empty is wrong usage."""
    if text is None or text == "-":
        if sys.stdin is None or (text is None and sys.stdin.isatty()):
            raise click.UsageError(f"Give TEXT, or pipe it in: echo … | {usage}")
        return read_file(sys.stdin.buffer, "standard input")
    if not text:
        raise click.UsageError("There is nothing to store: the text is empty.")
    return text


def read_file(file: BinaryIO, name: str = "", *, may_be_empty: bool = False) -> str:
    """The text of a file, without the mark that some editors put before it.

    One line feed at the end is the file's own.
    """
    name = name or file.name
    try:
        text = file.read().decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{name} is not UTF-8 text: {error}") from error
    if not text and not may_be_empty:
        raise click.UsageError(f"There is nothing to store: {name} is empty.")
    return text


def confirm(question: str, *, yes: bool) -> None:
    """Ask before what cannot be undone; without a terminal only --yes will do."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("This cannot be undone. Give --yes, or run it on a terminal.")
    if question:
        click.confirm(f"{question}? This cannot be undone", abort=True, err=True)


@contextmanager
def progress_shown(at: Target) -> Iterator[None]:
    """Have what runs inside show how far it has got."""
    with (
        progress_bar(as_json=at.as_json) as show,
        listening(lambda each: show(each.what, each.done, each.whole)),
    ):
        yield


def find_document(space: Space, path: str) -> Document:
    found = space.documents.find(path)
    if found is None:
        raise NotFound(
            f"no document at {path!r} in space {space.name!r}; recollect docs tree lists them"
        )
    return found


def find_session(space: Space, key_or_id: str, agent: str | None = None) -> SessionState:
    """The session with this id, else the current one behind this key. NotFound: neither is."""
    state = space.sessions.get(key_or_id)
    if state is not None:
        return state
    session = space.find_session(key_or_id, read_agent(agent)) if key_or_id else None
    if session is None:
        raise NotFound(
            f"no session {key_or_id!r} in space {space.name!r}; recollect sessions lists them"
        )
    return session.state


def find_fact(space: Space, fact_id: str) -> Fact:
    fact = space.facts.get(fact_id)
    if fact is None:
        raise NotFound(f"no fact {fact_id!r} in space {space.name!r}; recollect facts lists them")
    return fact


def session_keys(space: Space, derived: Iterable[Fact | Hit | Document]) -> dict[str, str]:
    """The stable keys of the sessions that these come from, by session id."""
    wanted = {source.session_id for each in derived for source in each.sources}
    found = (space.sessions.get(session_id) for session_id in sorted(wanted))
    return {state.id: state.key for state in found if state is not None}
