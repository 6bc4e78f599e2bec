"""`recollect bench recall`: how much of what questions need is found, and told to a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

import recollect
from recollect.benchmarks.blocks import BUDGETS, STANDING, TOKENS, TOLD, Blocks, figure
from recollect.benchmarks.metrics import SESSION_FIGURES, TURN_FIGURES, Figures
from recollect.benchmarks.plot import panels_of_recall
from recollect.benchmarks.recall import RecallBenchmark, Result
from recollect.benchmarks.rows import Row
from recollect.benchmarks.significance import PairedDifference
from recollect.benchmarks.tasks import DataSet
from recollect.interfaces.cli.bench_data import (
    ChosenData,
    data_options,
    default_install,
    opened,
    rounded,
    shown_progress,
)
from recollect.interfaces.cli.output import NONE, counted, one_line, table, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.store.address import without_password

FIGURES = (*TURN_FIGURES, *SESSION_FIGURES)
HEADERS = (*TURN_FIGURES, "s.any@5", "s.R@5", "s.nDCG@10")
BUDGET_HEADERS = tuple(f"{budget:,}" for budget in BUDGETS)


@click.command("recall", short_help="How much of what questions need is found, and told.")
@data_options
@with_target
def recall(target: Target, /, **given: Any) -> None:
    """Append every turn of public conversations to a store, ask every question of it, and say how
    much of the evidence is found, and how much of it a model would be told.

    No model is asked. A file's results are its own: each has its tables, by method and by category.

    Rankings are of records. R@k is the share of the evidence among the first k turns. With s. it is
    about sessions, which stand where their first turn does; any@5 is the share of questions with
    one among the first 5. CPU is what one search takes of this process, in milliseconds.

    Evidence in the block is the share of the evidence that is told in a block of 500, 1,000, 2,000
    and 4,000 tokens, after all sessions have been learned from by rules: as it was said, or by a
    fact that rests on it alone. Beside it stand the turns that plain FTS5 finds, with and without
    the turn before and the one after. Differences have the interval of a paired bootstrap by
    conversation. With files of both data sets, the questions of the other say how much of a budget
    is used where there is nothing to say.

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
    chosen = ChosenData.taken(given)
    settings = default_install(target, chosen.embedder)
    results = _measured(chosen.read(), target, settings)
    chosen.draw(panels_of_recall(results))
    if target.as_json:
        write_json(_shape(results, settings, target.store, chosen.second_speaker))
        return
    for number, result in enumerate(results):
        if number:
            write()
        for line in _lines(result):
            write(line)


def _measured(
    sets: Sequence[DataSet], target: Target, settings: recollect.Settings
) -> list[Result]:
    def elsewhere(data: DataSet) -> list[Any]:
        others = (each for each in sets if each.task is not data.task)
        return [query for other in others for pool in other.pools for query in pool.queries]

    with shown_progress(target) as tell:
        if target.store is not None:
            with opened(target.store, settings) as (memory, clock):
                benchmark = RecallBenchmark(memory, clock, tell)
                return [benchmark.measure(data, elsewhere(data)) for data in sets]
        results = []
        for data in sets:
            with opened(None, settings) as (memory, clock):
                results.append(RecallBenchmark(memory, clock, tell).measure(data, elsewhere(data)))
        return results


def _lines(result: Result) -> Iterator[str]:
    """A table of the rankings and one of their categories, then the same of blocks."""
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
    yield ""
    yield from _block_lines(result.blocks)


def _block_lines(blocks: Blocks) -> Iterator[str]:
    ours = blocks.rows[-1]
    rows = [(row.name, *_budget_cells(row.mean, TOLD)) for row in blocks.rows]
    rows.append((f"{ours.name}, as it was said", *_budget_cells(ours.mean, STANDING)))
    rows += [
        (f"{ours.name} − {each.against}", *map(_interval, each.by_budget.values()))
        for each in blocks.compared
    ]
    tokens = (f"{ours.mean[figure(TOKENS, budget)]:,.0f}" for budget in BUDGETS)
    rows.append((f"tokens of a {ours.name}", *tokens))
    if blocks.unanswered is not None:
        shares = (f"{share:.0%}" for share in blocks.unanswered.by_budget.values())
        asked = counted(blocks.unanswered.questions, "question")
        rows.append((f"budget used, {asked} from elsewhere", *shares))
    yield from table(("evidence in a block of … tokens", *BUDGET_HEADERS), rows)
    yield ""
    yield from table(
        ("by category", "questions", "", *BUDGET_HEADERS),
        [
            (*_category(row, category, is_first=number == 0), row.name, *cells)
            for category in ours.by_category
            for number, row in enumerate(blocks.rows)
            for cells in [_budget_cells(row.by_category[category].mean, TOLD)]
        ],
    )


def _category(row: Row, category: str, *, is_first: bool) -> tuple[str, str]:
    return (category, str(row.by_category[category].questions)) if is_first else ("", "")


def _budget_cells(figures: Figures, name: str) -> tuple[str, ...]:
    return tuple(f"{figures[figure(name, budget)]:.3f}" for budget in BUDGETS)


def _interval(difference: PairedDifference) -> str:
    return f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def _cells(figures: Figures) -> Iterator[str]:
    for name in FIGURES:
        value = figures.get(name)
        yield NONE if value is None else f"{value:.3f}"


def _shape(
    results: Sequence[Result],
    settings: recollect.Settings,
    store: str | None,
    second_speaker: str,
) -> dict[str, Any]:
    return {
        "version": recollect.__version__,
        "store": "temporary" if store is None else without_password(store),
        "embedder": settings.embedder,
        "second_speaker": second_speaker,
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
        "blocks": _blocks_shape(result.blocks),
    }


def _blocks_shape(blocks: Blocks) -> dict[str, Any]:
    unanswered = blocks.unanswered
    return {
        "methods": [_row_shape(row) for row in blocks.rows],
        "differences": [
            {"against": each.against, "by_budget": _differences(each.by_budget)}
            for each in blocks.compared
        ],
        "budget_used_elsewhere": unanswered
        and {
            "questions": unanswered.questions,
            "median_share": rounded(unanswered.by_budget),
        },
    }


def _differences(by_budget: Mapping[int, PairedDifference]) -> dict[str, Any]:
    return {
        str(budget): rounded({"mean": each.mean, "low": each.low, "high": each.high})
        for budget, each in by_budget.items()
    }


def _row_shape(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "mean": rounded(row.mean),
        "cpu_ms": {"p50": round(row.cpu_ms_p50, 2), "p95": round(row.cpu_ms_p95, 2)},
        "by_category": {
            category: {"questions": group.questions, "mean": rounded(group.mean)}
            for category, group in row.by_category.items()
        },
    }
