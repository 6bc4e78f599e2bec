"""A bar on the terminal for what takes long; nothing in a pipe, and nothing beside JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from recollect.interfaces.cli.output import one_line, shortened
from recollect.interfaces.cli.target import Target
from recollect.progress import Progress, listening

BAR_WIDTH = 30
WHAT_CHARS = 60

Show = Callable[[Progress], None]


@contextmanager
def bar_shown(target: Target) -> Iterator[Show]:
    """What shows how far somebody has got."""
    if target.as_json or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _progress: None
        return
    bar = click.progressbar(
        length=1, file=sys.stderr, width=BAR_WIDTH, item_show_func=lambda shown: shown or ""
    )
    with bar:

        def show(progress: Progress) -> None:
            if progress.done is not None:
                bar.length = None if progress.whole is None else max(progress.whole, 1)
            ahead = 0 if progress.done is None else max(progress.done - bar.pos, 0)
            bar.update(ahead, _line(progress.what))
            if not ahead:  # the bar stands still, what it says does not
                bar.render_progress()

        yield show


@contextmanager
def progress_shown(target: Target) -> Iterator[None]:
    """Have what runs inside show how far it has got."""
    with bar_shown(target) as show, listening(show):
        yield


def _line(what: str) -> str:
    line = one_line(what)
    return line if len(line) <= WHAT_CHARS else shortened(line, WHAT_CHARS)
