"""`recollect bench`: how good recall is, measured on public data through a real store."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import recollect
from recollect.benchmarks.metrics import SESSION_FIGURES, TURN_FIGURES, Figures
from recollect.benchmarks.plot import bar_chart
from recollect.benchmarks.recall import (
    CONTEXT_FIGURES,
    TOKENS,
    Progress,
    RecallBenchmark,
    Result,
    Row,
    SetClock,
)
from recollect.benchmarks.tasks import DataSet, Split, find_files, limited, load
from recollect.errors import InvalidValue
from recollect.interfaces.cli.output import NONE, counted, one_line, table, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.store.address import without_password

FIGURES = (*TURN_FIGURES, *SESSION_FIGURES, *CONTEXT_FIGURES)
HEADERS = (*TURN_FIGURES, "s.any@5", "s.R@5", "s.nDCG@10", "ctx.R", "ctx.tokens")
DIGITS = 4
ERASE_LINE = "\r\x1b[2K"


@click.group("bench")
@with_target
def command(target: Target) -> None:
    """Measure Recollect on this machine, on data of your own choice.

    \b
    Examples:
      recollect bench recall --data locomo-dev.json
      recollect bench recall --data datasets --embedder local --plot recall.svg
    """


@command.command("recall", short_help="How much of what questions need is found, and how early.")
@click.option(
    "--data",
    "paths",
    multiple=True,
    required=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="A LoCoMo or LongMemEval file, or a directory of them. May be given several times.",
)
@click.option(
    "--split",
    type=click.Choice([split.value for split in Split]),
    help="Only files of this part of the data, by their names: …-dev is development, …-held-out"
    " or …-test is held-out.",
)
@click.option(
    "--embedder",
    metavar="NAME",
    help="Also by vectors: local, or openai:MODEL. Default: the setting of this name.",
)
@click.option(
    "--limit-questions",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N questions of each file, from all over it.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg",
    help="Also draw the figures that count most.",
)
@with_target
def recall(
    target: Target,
    /,
    paths: tuple[Path, ...],
    split: str | None,
    embedder: str | None,
    limit_questions: int | None,
    plot: Path | None,
) -> None:
    """Append every turn of public conversations to a store, ask every question of it, and say how
    much of the evidence is found: by recall, and beside it by plain FTS5, grep and vectors alone.

    No model is asked. A file's results are its own: each has its table, by method and by category.
    R@k is the share of the evidence among the first k turns. With s. it is about sessions, which
    stand where their first turn does; any@5 is the share of questions with one among the first 5.
    With ctx. it is about a block of at most 800 tokens for a prompt. CPU is what one search takes
    of this process, in milliseconds.

    Without --store every file gets a temporary SQLite file; RECOLLECT_STORE is not touched. A store
    that is given has to be empty, and keeps what was appended: every conversation in a space of its
    own, whatever --space says.

    \b
    Examples:
      recollect bench recall --data locomo10.json
      recollect bench recall --data data/ --split development --embedder local --plot recall.svg
      recollect bench recall --data data/ --limit-questions 50 --json
    """
    target.note_all_spaces("every conversation has a space of its own")
    settings = dataclasses.replace(
        target.settings(embedder=embedder), agents={}, extract_on_session_start="off"
    )
    files = find_files(paths, None if split is None else Split(split))
    with _progress(is_shown=not target.as_json and sys.stderr.isatty()) as tell:
        results = _measured(_loaded(files, limit_questions), target.store, settings, tell)
    if plot is not None:
        _draw(results, plot)
    if target.as_json:
        write_json(_shape(results, settings, target.store))
        return
    for number, result in enumerate(results):
        if number:
            write()
        for line in _lines(result):
            write(line)


def _loaded(files: Iterable[Path], questions_max: int | None) -> Iterator[DataSet]:
    for path in files:
        data = load(path)
        yield data if questions_max is None else limited(data, questions_max)


def _measured(
    sets: Iterable[DataSet], store: str | None, settings: recollect.Settings, tell: Progress
) -> list[Result]:
    if store is not None:
        with _benchmark(store, settings, tell) as benchmark:
            return [benchmark.measure(data) for data in sets]
    results = []
    for data in sets:
        with (
            tempfile.TemporaryDirectory(prefix="recollect-bench-") as directory,
            _benchmark(str(Path(directory) / "memory.db"), settings, tell) as benchmark,
        ):
            results.append(benchmark.measure(data))
    return results


@contextmanager
def _benchmark(
    store: str, settings: recollect.Settings, tell: Progress
) -> Iterator[RecallBenchmark]:
    clock = SetClock()
    with recollect.open(store, settings=settings, clock=clock) as memory:
        yield RecallBenchmark(memory, clock, tell)


@contextmanager
def _progress(*, is_shown: bool) -> Iterator[Progress]:
    """Says on one line of the terminal how far it is, and takes it away at the end."""

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


def _draw(results: Sequence[Result], path: Path) -> None:
    try:
        path.write_text(bar_chart(results), encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"{path} cannot be written: {error.strerror}") from error


def _lines(result: Result) -> Iterator[str]:
    """A table of the methods, then one of the categories, as recall finds them."""
    title = f"{one_line(result.file)} ({result.task}, {result.split})"
    size = (
        f"{counted(result.spaces, 'space')}, {counted(result.turns, 'turn')},"
        f" {counted(result.questions, 'question')}"
    )
    yield f"{click.style(title, bold=True)}: {size}"
    yield from table(
        ("", *HEADERS, "CPU p50", "p95"),
        [
            (row.name, *_cells(row.mean), f"{row.cpu_ms_p50:.1f}", f"{row.cpu_ms_p95:.1f}")
            for row in result.rows
        ],
    )
    best = result.rows[-1]
    yield ""
    yield from table(
        (best.name, "questions", *HEADERS),
        [
            (category, str(group.questions), *_cells(group.mean))
            for category, group in best.by_category.items()
        ],
    )


def _cells(figures: Figures) -> Iterator[str]:
    for name in FIGURES:
        value = figures.get(name)
        if value is None:
            yield NONE
        else:
            yield f"{value:.0f}" if name == TOKENS else f"{value:.3f}"


def _shape(
    results: Sequence[Result], settings: recollect.Settings, store: str | None
) -> dict[str, Any]:
    return {
        "version": recollect.__version__,
        "store": "temporary" if store is None else without_password(store),
        "embedder": settings.embedder,
        "files": [_result_shape(result) for result in results],
    }


def _result_shape(result: Result) -> dict[str, Any]:
    return {
        "file": result.file,
        "task": str(result.task),
        "split": str(result.split),
        "spaces": result.spaces,
        "turns": result.turns,
        "questions": result.questions,
        "methods": [_row_shape(row) for row in result.rows],
    }


def _row_shape(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "mean": _rounded(row.mean),
        "cpu_ms": {"p50": round(row.cpu_ms_p50, 2), "p95": round(row.cpu_ms_p95, 2)},
        "by_category": {
            category: {"questions": group.questions, "mean": _rounded(group.mean)}
            for category, group in row.by_category.items()
        },
    }


def _rounded(figures: Figures) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in figures.items()}
