"""Until all are converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recollect.interfaces.cli.output import progress_bar
from recollect.interfaces.cli.target import Target
from recollect.progress import Progress, listening


@contextmanager
def bar_shown(target: Target) -> Iterator[Callable[[Progress], None]]:
    with progress_bar(as_json=target.as_json) as show:
        yield lambda progress: show(progress.what, progress.done, progress.whole)


@contextmanager
def progress_shown(target: Target) -> Iterator[None]:
    with bar_shown(target) as show, listening(show):
        yield
