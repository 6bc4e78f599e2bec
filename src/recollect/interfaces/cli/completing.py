"""What Tab offers for the names in a store. On its own, so that no command loads more for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def known_spaces(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The spaces of the store that the line is about."""
    from recollect.interfaces.cli.offers import offered, spaces

    return offered(context, incomplete, spaces)


def known_keys(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The stable keys of its sessions, in the space that the line is about."""
    from recollect.interfaces.cli.offers import keys, offered

    return offered(context, incomplete, keys)


def known_paths(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The paths of its documents, as the user began to write them."""
    from recollect.interfaces.cli.offers import offered, paths

    return offered(context, incomplete, paths)


def store_files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The shell itself knows files best."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]
