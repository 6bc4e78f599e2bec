"""`recollect bench`: how good memory is, measured on public data through a real store."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

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
from recollect.benchmarks.blocks import BUDGETS, STANDING, TOKENS, TOLD, Blocks, figure
from recollect.benchmarks.figures import (
    SESSION_FIGURES,
    TURN_FIGURES,
    Figures,
    PairedDifference,
    Row,
)
from recollect.benchmarks.ingest import Ingest, Progress, SetClock
from recollect.benchmarks.load import (
    HttpTarget,
    LibraryTarget,
    LoadRun,
    LoadScenario,
    LoadStep,
    LoadTarget,
    panels,
)
from recollect.benchmarks.mine import ALL, Mined, Mining
from recollect.benchmarks.plot import draw
from recollect.benchmarks.recall import RecallBenchmark, Result
from recollect.benchmarks.spending import CallBudget, Respondent
from recollect.benchmarks.tasks import (
    DataSet,
    find_files,
    limited,
    with_unanswerable,
)
from recollect.benchmarks.tasks import load as read_data
from recollect.benchmarks.verdicts import (
    GENEROUS,
    NOTES,
    STRICT,
    AnswersResult,
    panels_of_answers,
    results_of,
)
from recollect.errors import InvalidValue
from recollect.hooks.process import absolute
from recollect.importers.items import MESSAGE_SOURCES, ImportProgress, source_named
from recollect.importers.running import Importing
from recollect.interfaces.cli.commands import Opt, Output, Target, command, group, program, say
from recollect.interfaces.cli.import_ import places_with_files
from recollect.interfaces.cli.output import (
    NONE,
    cost,
    counted,
    note,
    one_line,
    progress_bar,
    spent_in_words,
    table,
    write,
    write_json,
)
from recollect.interfaces.http.bearer import make_key
from recollect.store.address import without_password
from recollect.types.access import Scope
from recollect.types.facts import Spent

FIGURES = (*TURN_FIGURES, *SESSION_FIGURES)
HEADERS = (*TURN_FIGURES, "s.any@5", "s.R@5", "s.nDCG@10")
BUDGET_HEADERS = tuple(f"{budget:,}" for budget in BUDGETS)
PAIR_HEADERS = (
    *("answerable, arm against arm", "verdict", "questions"),
    *("only the first right", "only the second", "McNemar p"),
)
FAILURES_SHOWN = 5
# Rules learn, so that nothing is paid for.


@group()
def bench() -> None:
    """Measure Recollect on this machine, on data of your choice.

    Examples:
      recollect bench recall --data locomo-dev.json
      recollect bench recall --data datasets --embedder local
      recollect bench load --spaces 1000 --seconds 10
      recollect bench answers --data data/ --answerer gpt-5 --judge o3 --output a.jsonl
      recollect bench mine --source claude-code
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenData:
    """The options that say which data are measured, and how."""

    data: Annotated[
        tuple[Path, ...],
        Opt(
            "A LoCoMo or LongMemEval file, or a directory of them. May be given several times.",
            "PATH",
            exists=True,
        ),
    ]
    second_speaker: Annotated[
        Literal["user", "assistant"],
        Opt("The role of the second person of a LoCoMo conversation; both keep their names."),
    ] = "user"
    embedder: Annotated[
        str | None,
        Opt("Also by vectors: local, or openai:MODEL. Default: the setting of this name.", "NAME"),
    ] = None
    limit_questions: Annotated[
        int | None, Opt("At most N questions of each file, from all over it.", "N", at_least=1)
    ] = None

    def read(self, *, has_unanswerable: bool = False) -> list[DataSet]:
        sets = [read_data(path, self.second_speaker) for path in find_files(self.data)]
        if has_unanswerable:
            sets = [with_unanswerable(each) for each in sets]
        if self.limit_questions is not None:
            sets = [limited(each, self.limit_questions) for each in sets]
        return sets

    def settings(self, at: Target) -> recollect.Settings:
        return _without_model(at.settings(embedder=self.embedder))


def _without_model(settings: recollect.Settings) -> recollect.Settings:
    """The settings of the user without a model: rules learn, so that nothing is paid for."""
    return dataclasses.replace(
        settings,
        agents={},
        extract_on_session_start="off",
        model=None,
        memory_agent_model=None,
        consolidation_model=None,
        memories_root="none",  # nothing is published among the user's own files
    )


@contextmanager
def _opened(
    store: str | None, settings: recollect.Settings
) -> Iterator[tuple[recollect.Memory, SetClock]]:
    """The store that was named, or one that is gone afterwards; time is what it is set to."""
    clock = SetClock()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as directory:
        place = str(Path(directory) / "memory.db") if store is None else store
        with recollect.open(place, settings=settings, clock=clock) as memory:
            yield memory, clock


def _memories(
    at: Target, sets: Sequence[DataSet], settings: recollect.Settings
) -> Iterator[tuple[DataSet, recollect.Memory, SetClock]]:
    """Each set with the memory it goes into: one for all where a store is named, else its own."""
    if at.store is not None:
        with _opened(at.store, settings) as (memory, clock):
            yield from ((data, memory, clock) for data in sets)
        return
    for data in sets:
        with _opened(None, settings) as (memory, clock):
            yield data, memory, clock


@contextmanager
def _progress(at: Target) -> Iterator[Progress]:
    with progress_bar(as_json=at.as_json) as show:
        yield lambda what, done, total: show(f"{what} {done:,} of {total:,}", done, total)


def _plain(value: Any) -> Any:
    """Results as JSON has them, rounded."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    match value:
        case float():
            return round(value, 4)
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case tuple() | list():
            return [_plain(each) for each in value]
        case str():
            return str(value)
        case _:
            return value


# Recall


@command(bench)
def recall(at: Target, *, chosen: ChosenData) -> Output:
    """Append every turn of public conversations to a store, ask every question of it, and measure
    how much of the evidence is found, and how much of it is put into a block for a model.

    No model is asked. A file's results are its own: each has its tables, by method and by category.

    Rankings are of records. R@k is the share of the evidence among the first k turns. With s. it is
    about sessions, which rank where their first turn does; any@5 is the share of questions with
    one among the first 5. CPU is what one search takes of this process, in milliseconds.

    Evidence in the block is the share of the evidence in a block of 500, 1,000, 2,000 and 4,000
    tokens, after all sessions have been learned from by rules: as it was said, or by a fact that
    rests on it alone. Beside it are the turns that plain FTS5 finds, with and without the turn
    before and the one after. Differences have the interval of a paired bootstrap by conversation.
    With files of both data sets, the questions of the other show how much of a budget is used where
    there is no answer.

    Without --store every file gets a temporary SQLite file; RECOLLECT_STORE is not touched. A store
    that is given has to be empty, and keeps what was appended: every conversation in a space of its
    own, whatever --space says.

    Examples:
      recollect bench recall --data locomo10.json
      recollect bench recall --data data/ --embedder local
      recollect bench recall --data data/ --limit-questions 50 --json
    """
    at.ignores_space("every conversation has a space of its own")
    settings, sets = chosen.settings(at), chosen.read()
    with _progress(at) as show:
        results = [
            RecallBenchmark(memory, clock, show).measure(data, _elsewhere(sets, data))
            for data, memory, clock in _memories(at, sets, settings)
        ]
    value = {
        "version": recollect.__version__,
        "store": "temporary" if at.store is None else without_password(at.store),
        "embedder": settings.embedder,
        "second_speaker": chosen.second_speaker,
        "files": _plain(results),
    }
    lines = (
        line
        for number, result in enumerate(results)
        for line in (*[""][: number > 0], *_result_lines(result))
    )
    return Output(value, lines)


def _elsewhere(sets: Sequence[DataSet], data: DataSet) -> list[Any]:
    """The questions of the other data set, which have no answer here."""
    others = (each for each in sets if each.task is not data.task)
    return [query for other in others for pool in other.pools for query in pool.queries]


def _result_lines(result: Result) -> Iterator[str]:
    """A table of the rankings and one of their categories, then the same of blocks."""
    title = f"{one_line(result.file)} ({result.task})"
    size = (
        f"{counted(result.spaces, 'space')}, {counted(result.turns, 'turn')},"
        f" {counted(result.questions, 'question')}"
    )
    yield f"{click.style(title, bold=True)}: {size}"
    yield from table(
        ("", *HEADERS, "CPU p50", "p95"),
        [
            (row.name, *_cells(row.mean), f"{row.cpu_ms_p50:.1f}", f"{row.cpu_ms_p95:.1f}")
            for row in result.methods
        ],
    )
    best = result.methods[-1]
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
    ours = blocks.methods[-1]
    rows = [(row.name, *_budget_cells(row.mean, TOLD)) for row in blocks.methods]
    rows.append((f"{ours.name}, as it was said", *_budget_cells(ours.mean, STANDING)))
    rows += [
        (f"{ours.name} − {each.against}", *map(_interval, each.by_budget.values()))
        for each in blocks.differences
    ]
    tokens = (f"{ours.mean[figure(TOKENS, budget)]:,.0f}" for budget in BUDGETS)
    rows.append((f"tokens of a {ours.name}", *tokens))
    if blocks.elsewhere is not None:
        shares = (f"{share:.0%}" for share in blocks.elsewhere.by_budget.values())
        asked = counted(blocks.elsewhere.questions, "question")
        rows.append((f"budget used, {asked} from elsewhere", *shares))
    yield from table(("evidence in a block of … tokens", *BUDGET_HEADERS), rows)
    yield ""
    yield from table(
        ("by category", "questions", "", *BUDGET_HEADERS),
        [
            (*_category(row, category, is_first=number == 0), row.name, *cells)
            for category in ours.by_category
            for number, row in enumerate(blocks.methods)
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


# Answers


def read_arms(text: str) -> tuple[Arm, ...]:
    """Names of arms separated by commas."""
    try:
        return tuple(dict.fromkeys(Arm(each.strip()) for each in text.split(",")))
    except ValueError as error:
        known = ", ".join(Arm)
        raise InvalidValue(f"unknown arm {text!r}; use {known}") from error


Price = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """The options that say who answers, who judges, and how much of it is paid for."""

    answerer: Annotated[str, Opt("The model that answers.", "MODEL")]
    judge: Annotated[str, Opt("The model that judges.", "MODEL")]
    output: Annotated[
        Path,
        Opt(
            "Where every answer and verdict is kept. A second run continues from what is there.",
            "FILE.jsonl",
            is_file=True,
        ),
    ]
    arms: Annotated[
        Sequence[Arm] | str,
        Opt("What is answered from: recollect, fts5, neighbours, whole.", "LIST", read=read_arms),
    ] = "recollect,fts5,neighbours"
    budget: Annotated[
        int,
        Opt("The size of the notes for an answer; whole has none.", "TOKENS", at_least=1),
    ] = 1000
    concurrency: Annotated[
        int, Opt("Questions asked at the same time.", "N", at_least=1, at_most=256)
    ] = 4
    answerer_price: Annotated[
        Price | None,
        Opt(
            "Prices of a million tokens, sent and answered. Default: model_input_price and"
            " model_output_price.",
            "IN OUT",
        ),
    ] = None
    judge_price: Annotated[Price | None, Opt("The same of the judge.", "IN OUT")] = None
    max_tokens: Annotated[int | None, Opt("Tokens that this run may use.", "N", at_least=0)] = None
    max_cost: Annotated[
        float | None,
        Opt("What this run may cost, in the currency of the prices.", "AMOUNT", at_least=0),
    ] = None
    dry_run: Annotated[bool, Opt("Show what it would cost, and ask no model.")] = False
    plot: Annotated[
        Path | None, Opt("Also draw the shares of right answers.", "FILE.svg", is_file=True)
    ] = None


@command(bench)
def answers(at: Target, *, chosen: ChosenData, run: AnswerOptions) -> None:
    """Have one model answer the questions of public data from notes alone, and another judge.

    The notes are Recollect's block, the turns that FTS5 finds, those with their neighbours, or all
    that was said: for LongMemEval, in the sessions that the question is asked of. Recollect learns
    by rules. The judge sees the question, the reference and the answer, not where it came from.
    Strictly, only an answer with all of the reference is right; generously, also one with nearly
    all. Not to know is wrong, except for questions without an answer, which are counted apart.

    Every answer and verdict is kept in --output. A run that was interrupted or has reached a cap
    continues from there when it is started again; what had failed is asked again. Before it asks,
    it shows what is left to ask and what that may cost.

    Models are named as the setting model names them, and use its keys, addresses and limits
    (model_base_url, model_output_tokens_max).

    Without --store every file gets a temporary SQLite file; one that is given has to be empty.

    Examples:
      recollect bench answers --data data/ --answerer gpt-5 --judge o3 --output a.jsonl --dry-run
      recollect bench answers --data data/ --answerer gpt-5 --judge o3 --output a.jsonl --arms whole
    """
    at.ignores_space("every conversation has a space of its own")
    settings, arms = at.settings(), run.arms
    assert not isinstance(arms, str)
    one = _respondent(settings, run.answerer, run.answerer_price, run.concurrency)
    two = _respondent(settings, run.judge, run.judge_price, run.concurrency)
    if run.max_cost is not None and not (one.has_price and two.has_price):
        raise InvalidValue(
            "--max-cost needs the prices of both models: --answerer-price and --judge-price,"
            " or the settings model_input_price and model_output_price"
        )
    file = AnswerFile(run.output)
    benchmark = AnswerBenchmark(one, two, AnswerPrompts.load(settings), file)
    with _progress(at) as show:
        sets = chosen.read(has_unanswerable=True)
        asked: list[list[Trial]] = []
        for data, memory, clock in _memories(at, sets, chosen.settings(at)):
            asked += trials(data, arms, run.budget, Ingest(memory, clock, show), show)
    plan = benchmark.plan(asked)
    if not at.as_json:
        for line in _plan_lines(plan):
            (write if run.dry_run else note)(line)
    if run.dry_run:
        if at.as_json:
            write_json(_plain(plan))
        return
    spending = CallBudget(run.max_tokens, run.max_cost)
    with closing(one), closing(two), file, _progress(at) as show:
        outcome = benchmark.run(asked, spending, concurrency=run.concurrency, progress=show)
    results = results_of(outcome.judged, arms)
    if run.plot is not None:
        draw(run.plot, panels_of_answers(results))
    value = {
        "version": recollect.__version__,
        "plan": _plain(plan),
        "spent": _plain(spending.spent),
        "judged": len(outcome.judged),
        "failed": [
            {"question": each.trial.query.id, "arm": str(each.trial.arm), "reason": each.reason}
            for each in outcome.failed
        ],
        "is_complete": len(outcome.judged) == plan.answers,
        "files": _plain(results),
    }
    say(at, Output(value, _answers_lines(results, outcome, plan, spending.spent)))
    if outcome.stopped_by is not None:
        raise outcome.stopped_by


def _respondent(
    settings: recollect.Settings, model: str, price: Price | None, concurrency: int
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


def _plan_lines(plan: AnswersPlan) -> Iterator[str]:
    yield (
        f"{counted(plan.answers, 'answer')} to be had: {plan.answers_kept:,} kept from before,"
        f" {plan.verdicts_kept:,} of them judged"
    )
    for who, spent in (("answerer", plan.answerer_at_most), ("judge", plan.judge_at_most)):
        most = " at most" if spent.cost_micros is not None else ""
        yield (
            f"{who}: {counted(spent.calls, 'request')}, {counted(spent.input_tokens, 'token')}"
            f" sent, at most {spent.output_tokens:,} answered, cost {cost(spent.cost_micros)}{most}"
        )


def _answers_lines(
    results: Sequence[AnswersResult], outcome: AnswersOutcome, plan: AnswersPlan, spent: Spent
) -> Iterator[str]:
    for result in results:
        yield click.style(one_line(result.file), bold=True)
        rows = [
            (
                label if number == 0 else "",
                str(arm),
                f"{groups[label].questions:,}",
                f"{groups[label].mean[STRICT]:.3f}",
                f"{groups[label].mean[GENEROUS]:.3f}",
                f"{groups[label].mean[NOTES]:,.0f}",
            )
            for label in dict.fromkeys(each for of in result.arms.values() for each in of)
            for number, (arm, groups) in enumerate(result.arms.items())
            if label in groups
        ]
        yield from table(("", "arm", "questions", STRICT, GENEROUS, NOTES), rows)
        yield ""
        if result.pairs:
            pairs = [
                (
                    f"{pair.first} against {pair.second}",
                    pair.verdict,
                    f"{pair.questions:,}",
                    f"{pair.only_first:,}",
                    f"{pair.only_second:,}",
                    f"{pair.p:.3f}",
                )
                for pair in result.pairs
            ]
            yield from table(PAIR_HEADERS, pairs)
            yield ""
    yield (
        f"{len(outcome.judged):,} of {counted(plan.answers, 'answer')} judged;"
        f" this run: {spent_in_words(spent)}"
    )
    for failure in outcome.failed[:FAILURES_SHOWN]:
        trial = failure.trial
        yield one_line(f"failed: {trial.query.id}, {trial.arm}: {failure.reason}")
    if len(outcome.failed) > FAILURES_SHOWN:
        yield f"and {len(outcome.failed) - FAILURES_SHOWN:,} more; run again to ask them again"


# Mine


@command(bench)
def mine(
    at: Target,
    paths: Annotated[tuple[Path, ...], Opt(metavar="[PATH]...", exists=True)] = (),
    *,
    source: Annotated[str | None, Opt(choices=MESSAGE_SOURCES)] = None,
    examples: Annotated[int, Opt(metavar="N", at_least=0)] = 10,
) -> Output:
    """Find what you had to tell your agents twice, and whether memory would have told them.

    Replays your own sessions in order of time, without labels, a model or an embedder: those of the
    space, or with --source the logs of another program, from their usual place if no path is given.
    All of it happens in a temporary store; yours is only read.

    A statement counts if you said the same in a session that had ended before: an instruction or a
    preference is repeated; what an agent got wrong is corrected; a fact, a decision or a command is
    explained again. Rules find them, and would rather miss one than count a wrong one. What has
    changed is new, and a rule in another project is another rule.

    It was held if a line says it in the recap at the start of the session, in the block for the
    prompt before it, or in the one for what else its own prompt says, each within 400, 800 or 1,000
    tokens. Tokens saved are those of the sentences that were held; for a correction, also those of
    what the agent had said and done since the prompt before. Blocks take tokens too: what a recap
    took on average is said beside it.

    Options:
      source, --source NAME: Read logs or an export of this program instead of the space.
      examples: How many examples to show; --json has them all.

    Examples:
      recollect bench mine
      recollect bench mine --source claude-code
      recollect bench mine --source jsonl chats.jsonl --examples 30
    """
    if paths and source is None:
        raise click.UsageError("Give --source with a path: what is it a log of?")
    settings = _without_model(at.settings(embedder="none"))
    with ExitStack() as opened:
        show = opened.enter_context(_progress(at))
        replayed, clock = opened.enter_context(_opened(None, settings))
        if source is None:
            own = opened.enter_context(at.open()).space(at.space_name)
        else:
            imported, _ = opened.enter_context(_opened(None, settings))
            own = imported.space(at.space_name)
            reader = source_named(source)
            places = list(paths) or places_with_files(reader)

            def told(at: ImportProgress) -> None:
                show("files read", at.files_done, at.files)

            report = Importing(imported, own.name, reader, progress=told).run(places, marks=False)
            if report.is_not_understood:
                raise InvalidValue(f"nothing in it was understood: not a file of {source}")
        mined = Mining(own, replayed, clock, show).run()
    value = {"version": recollect.__version__, "source": source, **_plain(mined)}
    return Output(value, _mined_lines(mined, examples))


def _mined_lines(mined: Mined, examples: int) -> Iterator[str]:
    yield (
        f"{counted(mined.sessions, 'session')}, {counted(mined.prompts, 'prompt')},"
        f" {counted(mined.statements, 'statement')} that could have been said before"
    )
    if not mined.retold:
        yield "Nothing was found that you had to say twice."
        return
    yield ""
    headers = tuple(f"{budget:,}" for budget in mined.recap_tokens)
    shares = [
        (
            name,
            f"{kind.found:,}",
            f"{kind.tokens:,}",
            *(f"{held:.0%}" for held in kind.held.values()),
        )
        for name, kind in mined.kinds.items()
    ]
    yield from table(("held by a block of … tokens", "found", "tokens", *headers), shares)
    every = mined.kinds[ALL]
    yield ""
    yield from table(
        ("tokens", *headers),
        [
            ("saved", *(f"{saved:,}" for saved in every.saved.values())),
            ("of a recap, on average", *(f"{size:,}" for size in mined.recap_tokens.values())),
        ],
    )
    for each in mined.retold[:examples]:
        yield ""
        told = ", ".join(f"{budget:,}: {by or 'not held'}" for budget, by in each.held.items())
        yield f"{click.style(each.kind, bold=True)}, {counted(each.tokens, 'token')} ({told})"
        for utterance in (each.before, each.said):
            yield one_line(f"  {utterance.at:%Y-%m-%d} in “{utterance.title}”: {utterance.text}")


# Load


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How much is asked of what.

    Options:
      spaces: Over how many spaces, by Zipf: the first one is asked most.
      seconds: How long each step takes.
      rate: Operations a second in the first step; each further step has twice as many.
      steps: At most so many steps.
      connections: Threads that ask; each keeps a connection.
      workers: recollect worker processes that learn by rules meanwhile.
      servers: Go through so many recollect serve on this machine, not by the library.
      url, --url URL: Go through this server, which is somebody else's. May be given several times.
      key, --key SECRET: Its key, of scope admin and for all spaces. Default: RECOLLECT_API_KEY.
      seed: Another seed draws other operations.
      plot, --plot FILE.svg: Also draw the latencies.
    """

    spaces: Annotated[int, Opt(metavar="N", at_least=1, at_most=1_000_000)] = 100
    seconds: Annotated[float, Opt(metavar="N", at_least=0.1, at_most=3600)] = 10.0
    rate: Annotated[float, Opt(metavar="N", at_least=0.1, at_most=100_000)] = 25.0
    steps: Annotated[int, Opt(metavar="N", at_least=1, at_most=20)] = 8
    connections: Annotated[int, Opt(metavar="N", at_least=1, at_most=512)] = 16
    workers: Annotated[int, Opt(metavar="N", at_least=0, at_most=64)] = 1
    servers: Annotated[int, Opt(metavar="N", at_least=0, at_most=64)] = 0
    url: tuple[str, ...] = ()
    key: Annotated[str | None, Opt(envvar="RECOLLECT_API_KEY")] = None
    seed: Annotated[int, Opt(metavar="N", at_least=0)] = 1
    plot: Annotated[Path | None, Opt(is_file=True)] = None


@command(bench)
def load(at: Target, *, run: LoadOptions) -> Output:
    """Ask more and more of a store or a server until it cannot keep up, and measure how long that
    takes: of 100 operations 60 append, 25 recall, 10 ask for a context and 5 forget a record.

    The loop is open: operations are due at times drawn beforehand, as if by people who do not wait
    for each other, and a latency counts from when its operation was due. A step that needs a tenth
    more time than it has cannot keep up, and is the last. No model is asked.

    Without --store a temporary SQLite file is used; RECOLLECT_STORE is not touched. A store that is
    named keeps what is appended, in the spaces load-0, load-1 and so on. Servers and workers are
    started here and listen on this machine only; with --url another machine bears the load, so name
    one that is yours. CPU is that of the processes here, in milliseconds of an operation.

    Examples:
      recollect bench load --spaces 1000 --seconds 10
      recollect bench load --store postgresql://localhost/load --servers 2 --plot load.svg
    """
    at.ignores_space("the load has spaces of its own")
    if run.url and (run.servers or at.store is not None):
        raise click.UsageError("Give --url, or --store with or without --servers.")
    if run.url and not run.key:
        raise click.UsageError("--url needs --key (or RECOLLECT_API_KEY), of scope admin.")
    plan = LoadScenario(
        spaces=run.spaces,
        seconds=run.seconds,
        rate=run.rate,
        steps=run.steps,
        connections=run.connections,
        seed=run.seed,
    )
    with _load_target(at, run) as (target, children), progress_bar(as_json=at.as_json) as show:
        loading, steps = LoadRun(target, plan, children), list[LoadStep]()
        for step in loading.steps():
            steps.append(step)
            show(f"{step.rate:,.0f} operations a second", len(steps), run.steps)
    if run.plot is not None:
        draw(run.plot, panels(steps))
    value = {"version": recollect.__version__, "plan": _plain(plan), "steps": _plain(steps)}
    return Output(value, _load_lines(steps))


@contextmanager
def _load_target(
    at: Target, run: LoadOptions
) -> Iterator[tuple[LoadTarget, Mapping[str, Sequence[int]]]]:
    """What is asked, and the processes that were started for it."""
    if run.url:
        with closing(HttpTarget(run.url, run.key or "")) as target:
            yield target, {}
        return
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as directory, ExitStack() as stack:
        store = str(Path(directory) / "memory.db") if at.store is None else absolute(at.store)
        settings = _without_model(at.settings())
        memory = stack.enter_context(recollect.open(store, settings=settings))
        served = ("serve", "--no-work", "--no-pages", "--rate", "0", "--port", "0")
        servers = [
            stack.enter_context(_child(directory, *served, "--store", store, "--json"))
            for _ in range(run.servers)
        ]
        workers = [
            stack.enter_context(_child(directory, "worker", "--store", store, "--json"))
            for _ in range(run.workers)
        ]
        pids = {
            **({"servers": [pid for pid, _ in servers]} if servers else {}),
            **({"workers": [pid for pid, _ in workers]} if workers else {}),
        }
        if not servers:
            yield LibraryTarget(memory), pids
            return
        key, secret = make_key(memory, "bench load", space=None, scope=Scope.ADMIN)
        stack.callback(lambda: memory.store.api_keys.revoke(key.id, memory.clock.now()))
        yield (
            stack.enter_context(closing(HttpTarget([said["url"] for _, said in servers], secret))),
            pids,
        )


@contextmanager
def _child(directory: str, *arguments: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """A process of ours with no settings but those given, and what it says when it is ready."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")
    }
    with subprocess.Popen(
        [*program(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=directory,
        text=True,
    ) as child:
        assert child.stdout is not None
        try:
            said, told = "", None
            while told is None:
                line = child.stdout.readline()
                if not line:
                    raise InvalidValue(f"recollect {arguments[0]} did not start: {said.strip()}")
                said += line
                told = _ready(said)
            drain = threading.Thread(target=child.stdout.read, daemon=True)  # no full pipe holds it
            drain.start()
            yield child.pid, told
        finally:
            child.terminate()


def _ready(said: str) -> Mapping[str, Any] | None:
    """The object that says a process is ready, if it is among what was said."""
    for start in (place for place, each in enumerate(said) if each == "{"):
        with suppress(ValueError):
            found, _ = json.JSONDecoder().raw_decode(said[start:])
            if "url" in found or "ready" in found:
                return dict(found)
    return None


def _load_lines(steps: Sequence[LoadStep]) -> Iterator[str]:
    processes = list(steps[0].cpu)
    rows = [
        (
            f"{step.rate:,.0f}" if number == 0 else "",
            str(operation),
            f"{latency.count:,}",
            *(f"{each:,.1f}" for each in (latency.p50, latency.p95, latency.p99)),
            *(
                (NONE if (each := step.cpu[name]) is None else f"{each:.2f}") if number == 0 else ""
                for name in processes
            ),
        )
        for step in steps
        for number, (operation, latency) in enumerate(step.latency.items())
    ]
    yield from table(
        (
            "asked/s",
            "operation",
            "done",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            *(f"CPU ms, {n}" for n in processes),
        ),
        rows,
    )
    yield ""
    for step in steps:
        failed = ", ".join(f"{count:,} × {name}" for name, count in step.failures.items())
        if failed:
            yield f"at {step.rate:,.0f}/s failed: {failed}"
    last = steps[-1]
    if last.is_saturated:
        left = f", {last.undone:,} left undone" if last.undone else ""
        yield f"Saturated at {last.rate:,.0f}/s: {last.rate_done:,.0f}/s were done{left}."
    else:
        yield f"Kept up with {last.rate:,.0f}/s; give more --steps to find where it does not."
