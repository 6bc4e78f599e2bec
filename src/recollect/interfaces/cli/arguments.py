"""Arguments of commands: text, times, paths and limits, and the session, fact or document named."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import click

from recollect import collection
from recollect.document import Document
from recollect.documents.paths import HOME, read_path
from recollect.domain import SessionState
from recollect.errors import InvalidPath, InvalidValue, NotFound
from recollect.interfaces.cli.options import known_paths
from recollect.interfaces.cli.target import read_agent
from recollect.knowledge import Fact
from recollect.recollection import Hit
from recollect.session import LIST_MAX
from recollect.space import Space


def read_text(text: str | None, usage: str) -> str:
    """The argument; if it is - or missing, standard input. Empty is wrong usage."""
    if text is None or text == "-":
        if sys.stdin is None or (text is None and sys.stdin.isatty()):
            raise click.UsageError(f"Give TEXT, or pipe it in: echo … | {usage}")
        try:
            text = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"Standard input is not UTF-8 text: {error}") from error
    if not text:
        raise click.UsageError("There is nothing to store: the text is empty.")
    return text


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_given_time(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> datetime | None:
    """A time with its zone; a day alone is its beginning in UTC."""
    if text is not None and _DAY.fullmatch(text):
        text = f"{text}T00:00:00+00:00"
    try:
        return collection.read_time(text)
    except InvalidValue as error:
        raise click.BadParameter(str(error), context, parameter) from error


F = Callable[[Any], Any]


def read_given_path(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> str | None:
    """A path of the tree, or an id. What the shell made of `~` is made `~` again."""
    if text is None:
        return None
    if not text:
        raise click.BadParameter("it is empty; the root is ~/memory", context, parameter)
    given = _with_tilde(text)
    try:
        read_path(given)
    except InvalidPath as error:
        raise click.BadParameter(str(error), context, parameter) from error
    return given


def read_given_paths(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[str | None, ...]:
    return tuple(read_given_path(context, parameter, text) for text in texts)


def _with_tilde(text: str) -> str:
    home = str(Path(HOME).expanduser())
    is_expanded = len(home) > 1 and text.startswith(home + "/")
    return HOME + text.removeprefix(home) if is_expanded else text


path_argument = click.argument("path", callback=read_given_path, shell_complete=known_paths)
expect_option = click.option(
    "--expect",
    type=click.IntRange(min=1),
    metavar="N",
    help="Refuse unless version N is the current one.",
)
expect_or_none_option = click.option(
    "--expect",
    type=click.IntRange(min=0),
    metavar="N",
    help="Refuse unless version N is the current one; 0: unless there is none.",
)
reason_option = click.option(
    "--reason", default="", metavar="WHY", help="Kept with the version, for its history."
)


def limit_option(default: int, nouns: str) -> F:
    return click.option(
        "--limit",
        type=click.IntRange(1, LIST_MAX),
        default=default,
        show_default=True,
        metavar="N",
        help=f"At most N {nouns}, up to {LIST_MAX:,}.",
    )


def text_or_file(text: str | None, file: BinaryIO | None, usage: str) -> str:
    """The text a document is given; one line feed at the end of a file is the file's own."""
    if file is None:
        return read_text(text, usage)
    if text is not None:
        raise click.UsageError("Give TEXT or a file, not both.")
    return read_file(file)


def read_file(file: BinaryIO, *, may_be_empty: bool = False) -> str:
    """The text of a file, without the mark that some editors put before it."""
    try:
        text = file.read().decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file.name} is not UTF-8 text: {error}") from error
    if not text and not may_be_empty:
        raise click.UsageError(f"There is nothing to store: {file.name} is empty.")
    return text


def find_document(space: Space, path: str) -> Document:
    found = space.documents.find(path)
    if found is None:
        raise NotFound(
            f"no document at {path!r} in space {space.name!r}; recollect docs tree lists them"
        )
    return found


@contextmanager
def advice_on_missing() -> Iterator[None]:
    """Say with a document or version that is not there how to find those that are."""
    try:
        yield
    except NotFound as error:
        ways = "recollect docs tree lists documents, recollect docs history PATH their versions"
        raise NotFound(f"{error}; {ways}") from error


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
