"""What the commands about documents are told: paths, as a shell hands them over, and options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from recollect.documents.paths import HOME, read_path
from recollect.errors import InvalidPath, NotFound
from recollect.interfaces.cli.completing import known_paths
from recollect.interfaces.cli.given_text import read_text
from recollect.session import LIST_MAX
from recollect.space import Space

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


def not_there(space: Space, path: str) -> NotFound:
    """What to say about a path where there is nothing."""
    return NotFound(
        f"no document at {path!r} in space {space.name!r}; recollect docs tree lists them"
    )


@contextmanager
def advice_on_missing() -> Iterator[None]:
    """Say with a document or version that is not there how to find those that are."""
    try:
        yield
    except NotFound as error:
        ways = "recollect docs tree lists documents, recollect docs history PATH their versions"
        raise NotFound(f"{error}; {ways}") from error
