"""The options that every command takes; on their own, so that `--help` loads no more than them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from recollect.interfaces.cli.completing import known_spaces, store_files

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
