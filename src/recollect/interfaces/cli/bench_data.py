"""What the benchmarks on public data have in common: their options, their store, their progress."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import click

import recollect
from recollect.benchmarks.ingest import Progress, SetClock
from recollect.benchmarks.plot import Panel, bar_chart
from recollect.benchmarks.tasks import (
    DataSet,
    Split,
    find_files,
    limited,
    load,
    with_unanswerable,
)
from recollect.errors import InvalidValue
from recollect.interfaces.cli.output import one_line
from recollect.interfaces.cli.target import Target

ERASE_LINE = "\r\x1b[2K"

_OPTIONS = (
    click.option(
        "--data",
        "paths",
        multiple=True,
        required=True,
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="A LoCoMo or LongMemEval file, or a directory of them. May be given several times.",
    ),
    click.option(
        "--split",
        type=click.Choice([split.value for split in Split]),
        help="Only files of this part of the data, by their names: …-dev is development,"
        " …-held-out or …-test is held-out.",
    ),
    click.option(
        "--second-speaker",
        type=click.Choice(["user", "assistant"]),
        default="user",
        show_default=True,
        help="The role of the second person of a LoCoMo conversation; both keep their names.",
    ),
    click.option(
        "--embedder",
        metavar="NAME",
        help="Also by vectors: local, or openai:MODEL. Default: the setting of this name.",
    ),
    click.option(
        "--limit-questions",
        type=click.IntRange(min=1),
        metavar="N",
        help="At most N questions of each file, from all over it.",
    ),
    click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE.svg",
        help="Also draw the figures that count most.",
    ),
)


def data_options(function: Callable[..., None]) -> Callable[..., None]:
    """Which data are measured, and how."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenData:
    """What these options say."""

    paths: tuple[Path, ...]
    split: str | None
    second_speaker: str
    embedder: str | None
    limit_questions: int | None
    plot: Path | None

    @classmethod
    def taken(cls, given: dict[str, Any]) -> Self:
        """Take them out of all that a command was given."""
        return cls(**{each.name: given.pop(each.name) for each in dataclasses.fields(cls)})

    def read(self, *, has_unanswerable: bool = False) -> list[DataSet]:
        files = find_files(self.paths, None if self.split is None else Split(self.split))
        sets = [load(path, self.second_speaker) for path in files]
        if has_unanswerable:
            sets = [with_unanswerable(data) for data in sets]
        if self.limit_questions is not None:
            sets = [limited(data, self.limit_questions) for data in sets]
        return sets

    def draw(self, panels: Iterable[Panel]) -> None:
        """The chart, where one is wanted."""
        if self.plot is None:
            return
        try:
            self.plot.write_text(bar_chart(panels), encoding="utf-8")
        except OSError as error:
            raise InvalidValue(f"{self.plot} cannot be written: {error.strerror}") from error


def default_install(target: Target, embedder: str | None) -> recollect.Settings:
    """The settings of the user without a model: rules learn, so that nothing is paid for."""
    return dataclasses.replace(
        target.settings(embedder=embedder),
        agents={},
        extract_on_session_start="off",
        model=None,
        memory_agent_model=None,
        consolidation_model=None,
    )


@contextmanager
def opened(
    store: str | None, settings: recollect.Settings
) -> Iterator[tuple[recollect.Memory, SetClock]]:
    """The store that was named, or one that is gone afterwards; time is what it is set to."""
    clock = SetClock()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as directory:
        place = str(Path(directory) / "memory.db") if store is None else store
        with recollect.open(place, settings=settings, clock=clock) as memory:
            yield memory, clock


@contextmanager
def shown_progress(target: Target) -> Iterator[Progress]:
    """Says on one line of the terminal how far it is, and takes it away at the end."""
    is_shown = not target.as_json and sys.stderr.isatty()

    def show(what: str, done: int, total: int) -> None:
        line = f"{one_line(what)} {done:,} of {total:,}"
        click.echo(f"{ERASE_LINE}{line}", nl=False, err=True)

    def keep_quiet(what: str, done: int, total: int) -> None:
        """Nobody looks."""

    try:
        yield show if is_shown else keep_quiet
    finally:
        if is_shown:
            click.echo(ERASE_LINE, nl=False, err=True)


def rounded(figures: Any) -> dict[str, float]:
    """Figures as JSON has them."""
    return {str(name): round(value, 4) for name, value in figures.items()}
