"""The options that every command takes, and what Tab offers for names in a store.

On their own, so that `--help` loads no more than them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def known_spaces(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The spaces of the store that the line is about."""
    from recollect.interfaces.cli.candidates import offered, spaces

    return offered(context, incomplete, spaces)


def known_keys(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The stable keys of its sessions, in the space that the line is about."""
    from recollect.interfaces.cli.candidates import keys, offered

    return offered(context, incomplete, keys)


def known_paths(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The paths of its documents, as the user began to write them."""
    from recollect.interfaces.cli.candidates import offered, paths

    return offered(context, incomplete, paths)


def store_files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The shell itself knows files best."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


TARGET_NAMES = ("store", "space", "as_json")

F = TypeVar("F", bound=Callable[..., object])


def target_options(function: F) -> F:
    """The options that every command takes, in the order of the help."""
    options = (
        click.option(
            "--store",
            metavar="URL",
            shell_complete=store_files,
            help="A path, sqlite:///…, postgresql://… or :memory:. Default: RECOLLECT_STORE, else"
            " a file in the user's data directory.",
        ),
        click.option(
            "--space",
            metavar="NAME",
            shell_complete=known_spaces,
            help="The tenant's space. Default: default.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs."),
    )
    for option in reversed(options):
        function = option(function)
    return function
