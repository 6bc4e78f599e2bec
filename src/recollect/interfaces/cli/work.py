"""`recollect work`: everything that is due, processed now, and a report of what came of it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

import recollect
from recollect.domain import JobKind
from recollect.errors import StoreError
from recollect.ids import Ids
from recollect.interfaces.cli.arguments import find_session
from recollect.interfaces.cli.logs import logged
from recollect.interfaces.cli.options import known_keys
from recollect.interfaces.cli.output import counted, note, write, write_json
from recollect.interfaces.cli.plan import plan_lines, plan_shape, read_plan
from recollect.interfaces.cli.signals import terminated_like_interrupted
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.knowledge import Fact
from recollect.session import LIST_MAX
from recollect.worker import WorkReport

if TYPE_CHECKING:
    from recollect.extraction.plan import WorkPlan

Place = tuple[str, str]  # a space, and a session in it
PROGRESS_SECONDS = 1.0
ERASE_LINE = "\x1b[2K\r"


@click.command("work")
@click.option("--all", "is_all", is_flag=True, help="First mark every session that has something.")
@click.option(
    "--again",
    is_flag=True,
    help="Go once more through what was processed, and replace what was learned from it.",
)
@click.option(
    "--session",
    metavar="KEY-OR-ID",
    shell_complete=known_keys,
    help="With --again: only through this session.",
)
@click.option(
    "--dry-run", is_flag=True, help="Only say what would be read and sent, and what it may cost."
)
@click.option("--show-prompts", is_flag=True, help="With --dry-run: the first prompt of each.")
@with_target
def command(
    target: Target,
    is_all: bool,
    again: bool,
    session: str | None,
    dry_run: bool,
    show_prompts: bool,
) -> None:
    """Process what is due now, then stop: the worker for a schedule, or for in between.

    First it looks for what became due unsaid, as a worker does now and then: sessions that were
    left (idle_sweep_seconds), memory past its time, files that people edited. It goes on until
    nothing is due: sessions, then the memory of every space in which something changed, without a
    cooldown (see recollect consolidate). What backs off after a failure, is
    parked, paused or being processed elsewhere is left alone; recollect status says which and why.
    It works for all spaces of the store or, with --space, for that one alone, beside any number of
    workers. The exit code is 1 if a session, or a consolidation, failed.

    Without a model everything goes by rules, offline. With one (the setting model) it distils
    sessions, files pages and writes the handbook, and each of the three is paid for; extractor,
    memory_agent_model and consolidation_model, set to rules, switch each off. After setting one,
    --again has it go through everything once more, or with --session through that one. --dry-run
    sends nothing and changes nothing; what it cannot reckon it names.

    \b
    Examples:
      recollect work
      recollect work --all --json
      recollect work --space alice
      recollect work --dry-run --again --show-prompts
      recollect work --again --session telegram:42:main
    """
    if session is not None and not again:
        raise click.UsageError("--session goes with --again.")
    if show_prompts and not dry_run:
        raise click.UsageError("--show-prompts goes with --dry-run.")
    with (
        logged(logging.WARNING, as_json=target.as_json),
        target.open() as memory,
        terminated_like_interrupted(),
    ):
        wanted = _wanted(target, memory, session)
        if dry_run:
            plan = read_plan(memory, *wanted, is_all=is_all, again=again)
            _write_plan(target, plan, memory.settings, with_prompts=show_prompts)
            return
        if again and not memory.request_again(*wanted) and session is not None:
            note("There is nothing to go through again: none of it was processed, or it is due.")
        _work(target, memory, is_all=is_all)


def _wanted(
    target: Target, memory: recollect.Memory, session: str | None
) -> tuple[str | None, str | None]:
    """The space and the session that a new pass or a plan is about; none: all."""
    if session is not None:
        return target.space_name, find_session(memory.space(target.space_name), session).id
    if target.space is not None:
        memory.space(target.space)  # checks the name
    return target.space, None


def _write_plan(
    target: Target, plan: WorkPlan, settings: recollect.Settings, *, with_prompts: bool
) -> None:
    if target.as_json:
        write_json(plan_shape(plan, with_prompts=with_prompts))
        return
    for line in plan_lines(plan, settings, with_prompts=with_prompts):
        write(line)


def _work(target: Target, memory: recollect.Memory, *, is_all: bool) -> None:
    space = target.space
    before, first_id = _facts_of_sessions(memory, space), Ids(memory.clock).new()
    with _progress(memory, space, is_shown=not target.as_json and sys.stderr.isatty()):
        report = memory.work(all=is_all, space=space)
    after = _facts_of_sessions(memory, space)
    grown = {each for each, count in after.items() if count > before.get(each, 0)}
    facts = _count_new(memory, grown, first_id)
    left = memory.status(space, limit=0).marked_count
    if target.as_json:
        write_json(view(report) | {"new_facts": facts, "still_marked": left})
    else:
        write(_in_words(report, facts))
        _explain(report, left)
    if report.failed:
        click.get_current_context().exit(1)


def _facts_of_sessions(memory: recollect.Memory, space: str | None) -> dict[Place, int]:
    """How many facts rest on each session, of those that began last."""
    progress = memory.store.extractions.progress(space, LIST_MAX)
    return {(each.space, each.session_id): each.facts for each in progress}


def _count_new(memory: recollect.Memory, grown: AbstractSet[Place], first_id: str) -> int:
    """The facts that sessions brought from an id on: one that several say is one."""
    new: set[str] = set()
    for space in {space for space, _ in grown}:
        facts, page = memory.space(space).facts, list[Fact]()
        while page := facts.list(LIST_MAX, page[-1] if page else None, every=True):
            young = [fact for fact in page if fact.id > first_id]
            if not young:
                break
            new |= {fact.id for fact in young if not grown.isdisjoint(_places(space, fact))}
    return len(new)


def _places(space: str, fact: Fact) -> Iterator[Place]:
    return ((space, source.session_id) for source in fact.sources)


def _in_words(report: WorkReport, facts: int) -> str:
    least = "at least " if report.processed >= LIST_MAX else ""  # only so many were looked at
    words = f"Processed {counted(report.processed, 'session')},"
    words += f" {counted(report.records, 'record')}: {least}{counted(facts, 'new fact')};"
    words += f" {report.failed:,} failed"
    if report.postponed:
        words += f"; {report.postponed:,} postponed"
    if report.stale:
        words += f"; {report.stale:,} went to another worker"
    if report.released:
        words += f"; {report.released:,} given back"
    if report.generations:
        words += f"; {counted(report.generations, 'new generation')} of memory"
    return f"{words}."


def _explain(report: WorkReport, left: int) -> None:
    if report.postponed:
        note("What is postponed has not failed: it waits for what is said above, and goes on then.")
    if left:
        does = "is" if left == 1 else "are"
        note(f"{counted(left, 'session')} {does} still marked; why: recollect status")
    elif report.failed or report.postponed:
        note("What failed or waits, and why: recollect status")


@contextmanager
def _progress(memory: recollect.Memory, space: str | None, *, is_shown: bool) -> Iterator[None]:
    """While it takes long, say on the terminal how many sessions are left."""
    over = threading.Event()

    def show() -> None:
        while not over.wait(PROGRESS_SECONDS):
            try:
                left = _sessions_to_go(memory, space)
            except StoreError:
                continue  # whoever works meets it too, and says so
            click.echo(f"{ERASE_LINE}{counted(left, 'session')} to go …\r", err=True, nl=False)

    thread = threading.Thread(target=show, name="recollect-progress", daemon=True)
    if is_shown:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if is_shown:
            thread.join()
            click.echo(ERASE_LINE, err=True, nl=False)


def _sessions_to_go(memory: recollect.Memory, space: str | None) -> int:
    jobs = memory.store.leases.jobs(space, LIST_MAX)
    passes = sum(job.kind is JobKind.EXTRACT_AGAIN for job in jobs)
    return memory.store.marks.counts(space)[0] + passes
