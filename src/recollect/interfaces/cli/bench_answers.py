"""`recollect bench answers`: how well a model answers from what it is told, as another judges."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import recollect
from recollect.benchmarks.answer_file import AnswerFile
from recollect.benchmarks.answers import (
    AnswerBenchmark,
    AnswerPrompts,
    AnswersOutcome,
    AnswersPlan,
)
from recollect.benchmarks.arms import Arm, Trial, trials
from recollect.benchmarks.ingest import Ingest, Progress
from recollect.benchmarks.rows import Group
from recollect.benchmarks.spending import CallBudget, Respondent
from recollect.benchmarks.tasks import DataSet
from recollect.benchmarks.verdicts import (
    GENEROUS,
    NOTES,
    STRICT,
    AnswersResult,
    ArmPair,
    panels_of_answers,
    results_of,
)
from recollect.errors import InvalidValue
from recollect.interfaces.cli.bench_data import (
    ChosenData,
    data_options,
    default_install,
    opened,
    rounded,
    shown_progress,
)
from recollect.interfaces.cli.output import (
    cost,
    counted,
    note,
    one_line,
    spent_in_words,
    table,
    write,
    write_json,
)
from recollect.interfaces.cli.target import Target, with_target
from recollect.knowledge import Spent

FAILURES_SHOWN = 5


class ArmNames(click.ParamType[tuple[Arm, ...]]):
    """Names of arms with commas between them."""

    name = "arms"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Arm, ...]:
        try:
            return tuple(dict.fromkeys(Arm(each.strip()) for each in str(value).split(",")))
        except ValueError:
            known = ", ".join(Arm)
            self.fail(f"{value!r} names an arm that there is not; there are {known}", param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What the options say."""

    answerer: str
    judge: str
    output: Path
    arms: tuple[Arm, ...]
    budget: int
    concurrency: int
    answerer_price: tuple[float, float] | None
    judge_price: tuple[float, float] | None
    max_tokens: int | None
    max_cost: float | None
    dry_run: bool


@click.command("answers", short_help="How well a model answers from what it is told.")
@data_options
@click.option("--answerer", required=True, metavar="MODEL", help="The model that answers.")
@click.option("--judge", required=True, metavar="MODEL", help="The model that judges.")
@click.option(
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.jsonl",
    help="Where every answer and verdict is kept. A second run goes on from what is there.",
)
@click.option(
    "--arms",
    type=ArmNames(),
    default="recollect,fts5,neighbours",
    show_default=True,
    metavar="LIST",
    help="What is answered from: recollect, fts5, neighbours, whole.",
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="TOKENS",
    help="Of the notes an answer is made from; whole has none.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    metavar="N",
    help="Questions asked at the same time.",
)
@click.option(
    "--answerer-price",
    type=(float, float),
    metavar="IN OUT",
    help="Prices of a million tokens, sent and answered. Default: model_input_price and"
    " model_output_price.",
)
@click.option("--judge-price", type=(float, float), metavar="IN OUT", help="The same of the judge.")
@click.option(
    "--max-tokens", type=click.IntRange(min=0), metavar="N", help="Tokens that this run may use."
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    metavar="AMOUNT",
    help="What this run may cost, in the currency of the prices.",
)
@click.option("--dry-run", is_flag=True, help="Say what it would take, and ask nobody.")
@with_target
def answers(target: Target, /, **given: Any) -> None:
    """Have one model answer the questions of public data from notes alone, and another judge.

    The notes are Recollect's block, the turns that FTS5 finds, those with their neighbours, or all
    that was said: for LongMemEval, in the sessions that the question is asked of. Recollect learns
    by rules. The judge sees the question, the reference and the answer, not where it came from.
    Strictly, only what says all of the reference is right; generously, also what nearly does. Not
    to know is wrong, but for questions that cannot be answered, which are counted apart.

    Every answer and verdict is kept in --output, by what was asked of whom. A run that was
    interrupted or has reached a cap goes on from there when it is started again; what had failed
    is asked again. Before it asks, it says what is left to ask and what that may take.

    Models are named as the setting model names them, and use its keys, addresses and limits
    (model_base_url, model_output_tokens_max).

    Without --store every file gets a temporary SQLite file; one that is given has to be empty.

    \b
    Examples:
      recollect bench answers --data data/ --answerer gpt-5 --judge o3 --output a.jsonl --dry-run
      recollect bench answers --data data/ --answerer gpt-5 --judge o3 --output a.jsonl --arms whole
    """
    target.note_all_spaces("every conversation has a space of its own")
    chosen = ChosenData.taken(given)
    run = _Run(**given)
    settings = target.settings()
    one = _respondent(settings, run.answerer, run.answerer_price, run.concurrency)
    two = _respondent(settings, run.judge, run.judge_price, run.concurrency)
    if run.max_cost is not None and not (one.has_price and two.has_price):
        raise InvalidValue(
            "--max-cost needs the prices of both models: --answerer-price and --judge-price,"
            " or the settings model_input_price and model_output_price"
        )
    file = AnswerFile(run.output)
    benchmark = AnswerBenchmark(one, two, AnswerPrompts.load(settings), file)
    with shown_progress(target) as tell:
        asked = _trials(chosen, target, run, tell)
    plan = benchmark.plan(asked)
    _say_plan(plan, target, is_all=run.dry_run)
    if run.dry_run:
        return
    spending = CallBudget(run.max_tokens, run.max_cost)
    with closing(one), closing(two), file, shown_progress(target) as tell:
        outcome = benchmark.run(asked, spending, concurrency=run.concurrency, progress=tell)
    results = results_of(outcome.judged, run.arms)
    chosen.draw(panels_of_answers(results))
    if target.as_json:
        write_json(_shape(results, outcome, plan, spending.spent))
    else:
        for line in _lines(results, outcome, plan, spending.spent):
            write(line)
    if outcome.stopped_by is not None:
        raise outcome.stopped_by


def _respondent(
    settings: recollect.Settings,
    model: str,
    price: tuple[float, float] | None,
    concurrency: int,
) -> Respondent:
    sent, answered = price or (settings.model_input_price, settings.model_output_price)
    return Respondent(
        settings=dataclasses.replace(
            settings,
            model=model,
            model_input_price=sent,
            model_output_price=answered,
            model_concurrency=concurrency,
        )
    )


def _trials(chosen: ChosenData, target: Target, run: _Run, tell: Progress) -> list[list[Trial]]:
    sets = chosen.read(has_unanswerable=True)
    settings = default_install(target, chosen.embedder)

    def noted(data: DataSet, ingest: Ingest) -> list[list[Trial]]:
        return trials(data, run.arms, run.budget, ingest, tell)

    if target.store is not None:
        with opened(target.store, settings) as (memory, clock):
            ingest = Ingest(memory, clock, tell)
            return [each for data in sets for each in noted(data, ingest)]
    found = []
    for data in sets:
        with opened(None, settings) as (memory, clock):
            found += noted(data, Ingest(memory, clock, tell))
    return found


def _say_plan(plan: AnswersPlan, target: Target, *, is_all: bool) -> None:
    """What a run would take; the result where that is all that was asked for."""
    if not target.as_json:
        for line in _plan_lines(plan):
            (write if is_all else note)(line)
    elif is_all:
        write_json(_plan_shape(plan))


def _plan_lines(plan: AnswersPlan) -> Iterator[str]:
    yield (
        f"{counted(plan.trials, 'answer')} to be had: {plan.answers_kept:,} kept from before,"
        f" {plan.verdicts_kept:,} of them judged"
    )
    for who, spent in (("answerer", plan.answerer), ("judge", plan.judge)):
        yield f"{who}: {_at_most(spent)}"


def _at_most(spent: Spent) -> str:
    return (
        f"{counted(spent.calls, 'request')}, {counted(spent.input_tokens, 'token')} sent,"
        f" at most {spent.output_tokens:,} answered, cost {cost(spent.cost_micros)}"
        f"{' at most' if spent.cost_micros is not None else ''}"
    )


def _lines(
    results: Sequence[AnswersResult], outcome: AnswersOutcome, plan: AnswersPlan, spent: Spent
) -> Iterator[str]:
    for result in results:
        yield click.style(one_line(result.file), bold=True)
        yield from table(
            ("", "arm", "questions", STRICT, GENEROUS, NOTES),
            [
                (label if number == 0 else "", str(arm), *_cells(groups[label]))
                for label in dict.fromkeys(each for of in result.arms.values() for each in of)
                for number, (arm, groups) in enumerate(result.arms.items())
                if label in groups
            ],
        )
        yield ""
        if result.pairs:
            yield from table(
                (
                    "answerable, arm against arm",
                    "verdict",
                    "questions",
                    "only the first right",
                    "only the second",
                    "McNemar p",
                ),
                [_pair_cells(pair) for pair in result.pairs],
            )
            yield ""
    yield (
        f"{len(outcome.judged):,} of {counted(plan.trials, 'answer')} judged;"
        f" this run: {spent_in_words(spent)}"
    )
    for failure in outcome.failed[:FAILURES_SHOWN]:
        trial = failure.trial
        yield one_line(f"failed: {trial.query.id}, {trial.arm}: {failure.reason}")
    if len(outcome.failed) > FAILURES_SHOWN:
        yield f"and {len(outcome.failed) - FAILURES_SHOWN:,} more; run again to ask them again"


def _cells(group: Group) -> tuple[str, ...]:
    mean = group.mean
    return (
        f"{group.questions:,}",
        f"{mean[STRICT]:.3f}",
        f"{mean[GENEROUS]:.3f}",
        f"{mean[NOTES]:,.0f}",
    )


def _pair_cells(pair: ArmPair) -> tuple[str, ...]:
    return (
        f"{pair.first} against {pair.second}",
        pair.verdict,
        f"{pair.questions:,}",
        f"{pair.only_first:,}",
        f"{pair.only_second:,}",
        f"{pair.chance:.3f}",
    )


def _plan_shape(plan: AnswersPlan) -> dict[str, Any]:
    return {
        "answers": plan.trials,
        "answers_kept": plan.answers_kept,
        "verdicts_kept": plan.verdicts_kept,
        "answerer_at_most": dataclasses.asdict(plan.answerer),
        "judge_at_most": dataclasses.asdict(plan.judge),
    }


def _shape(
    results: Sequence[AnswersResult], outcome: AnswersOutcome, plan: AnswersPlan, spent: Spent
) -> dict[str, Any]:
    return {
        "version": recollect.__version__,
        "plan": _plan_shape(plan),
        "spent": dataclasses.asdict(spent),
        "judged": len(outcome.judged),
        "failed": [
            {"question": each.trial.query.id, "arm": str(each.trial.arm), "reason": each.reason}
            for each in outcome.failed
        ],
        "is_complete": len(outcome.judged) == plan.trials,
        "files": [
            {
                "file": result.file,
                "arms": {str(arm): _groups_shape(groups) for arm, groups in result.arms.items()},
                "pairs": [_pair_shape(pair) for pair in result.pairs],
            }
            for result in results
        ],
    }


def _groups_shape(groups: Any) -> dict[str, Any]:
    return {
        label: {"questions": group.questions, **rounded(group.mean)}
        for label, group in groups.items()
    }


def _pair_shape(pair: ArmPair) -> dict[str, Any]:
    return {
        "first": str(pair.first),
        "second": str(pair.second),
        "verdict": pair.verdict,
        "questions": pair.questions,
        "only_first": pair.only_first,
        "only_second": pair.only_second,
        "p": round(pair.chance, 6),
    }
