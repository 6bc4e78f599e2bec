"""`recollect import`: other programs' logs, exports and notes, as sessions, facts and documents."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

import recollect
from recollect.errors import InvalidUrl, InvalidValue, NotFound
from recollect.importers.folders import existing
from recollect.importers.items import MARKDOWN, NAMES, ImportReport, Progress, Source, source_named
from recollect.importers.markdown import ImportingNotes
from recollect.importers.running import Importing
from recollect.interfaces.cli.import_lines import report_lines, report_shape
from recollect.interfaces.cli.output import counted, note, write, write_json
from recollect.interfaces.cli.plan import plan_shape, total_lines
from recollect.interfaces.cli.progress_bar import bar_shown
from recollect.interfaces.cli.signals import terminated_like_interrupted
from recollect.interfaces.cli.target import Target, with_target
from recollect.progress import Progress as Step
from recollect.store.address import path_of

if TYPE_CHECKING:
    from recollect.extraction.plan import WorkPlan


@click.command("import")
@click.argument("source", type=click.Choice(NAMES), metavar="SOURCE")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option(
    "--dry-run", is_flag=True, help="Only say what would come in, and what learning it may cost."
)
@click.option("--work", "is_work", is_flag=True, help="Learn from it at once, as recollect work.")
@with_target
def command(
    target: Target, source: str, paths: tuple[Path, ...], dry_run: bool, is_work: bool
) -> None:
    """Read other programs' logs, exports and notes; each message comes in once.

    \b
    claude-code, codex   the logs of coding agents, from where they lie if no path is given
    chatgpt, claude      the archive that an export gives, or its conversations.json
    openai, anthropic    lists of messages, as JSON or JSON Lines
    mem0                 what get_all() gives: becomes facts
    markdown             a folder of notes (Obsidian, basic-memory): becomes documents
    jsonl                lines with session, role, content and time

    Again, or after an interruption, only what is new is read: files are known by their place and
    their beginning, messages by their own ids. What was forgotten does not come back. What a
    version does not know yet is kept, counted and named. Sessions know their project, the
    directory that the agent worked in; recall and context can be narrowed to it.

    Nothing is sent anywhere while reading. What came in is learned from by a worker, by recollect
    work, or with --work at once; --dry-run says before what that may cost with a model.

    \b
    Examples:
      recollect import claude-code
      recollect import claude-code --dry-run
      recollect import codex ~/.codex/sessions/2026 --work
      recollect import chatgpt ~/Downloads/export.zip --space alice
      recollect import markdown ~/notes
    """
    if dry_run and is_work:
        raise click.UsageError("Give --dry-run or --work, not both.")
    with _opened(target, dry_run=dry_run) as memory, terminated_like_interrupted():
        if source == MARKDOWN:
            _import_notes(target, memory, paths, dry_run=dry_run)
            return
        reader = source_named(source)
        places = list(paths) or default_places(reader)
        with _shown(target) as show:
            if dry_run:
                report, plan = _tried(target, memory, reader, places, show)
            else:
                importing = Importing(memory, target.space_name, reader, progress=show)
                report, plan = importing.run(places), None
        _say(target, report, plan, memory.settings)
        _expect_sense(report)
        if is_work:
            worked = memory.work()
            if not target.as_json:
                write(f"Learned from {counted(worked.processed, 'session')}.")
        elif report.records and not dry_run and not target.as_json:
            note(f"To learn from it: recollect work{target.arguments}")


def _opened(target: Target, *, dry_run: bool) -> recollect.Memory:
    """The memory to import into; where there is none, a dry run makes none."""
    settings = target.settings()
    if not dry_run or (target.store is None and settings.database == "per-agent"):
        return target.open()
    try:
        path = path_of(target.address())
    except InvalidUrl:  # in memory, or nothing at all: opening it says so
        path = None
    is_missing = path is not None and not path.exists()
    return recollect.open(":memory:", settings=settings) if is_missing else target.open()


def default_places(source: Source) -> list[Path]:
    """Where a program keeps its files, as far as they are there. NotFound: nowhere."""
    places = source.places(os.environ, Path.home())
    there = existing(places)
    if there:
        return there
    if not places:
        raise NotFound(f"{source.name} has no place of its own: name the file or folder to read")
    looked = " or ".join(map(str, places))
    raise NotFound(f"{source.name} has nothing in {looked}: name the folder to read")


def _tried(
    target: Target,
    memory: recollect.Memory,
    source: Source,
    places: Sequence[Path],
    show: Callable[[Progress], None],
) -> tuple[ImportReport, WorkPlan]:
    """What would come in, into a store that is thrown away, and what learning it would take."""
    with (
        tempfile.TemporaryDirectory(prefix="recollect-") as directory,
        recollect.open(Path(directory) / "dry-run.db", settings=memory.settings) as elsewhere,
    ):
        space = target.space_name
        importing = Importing(memory, space, source, instead=elsewhere, progress=show)
        return importing.run(places), elsewhere.plan(space, all=True)


def _say(
    target: Target, report: ImportReport, plan: WorkPlan | None, settings: recollect.Settings
) -> None:
    if target.as_json:
        shape = report_shape(report)
        write_json(
            shape if plan is None else shape | {"work": plan_shape(plan, with_prompts=False)}
        )
        return
    for line in report_lines(report, is_dry=plan is not None):
        write(line)
    if plan is not None:
        for line in total_lines(plan, settings):
            write(line)


def _expect_sense(report: ImportReport) -> None:
    if report.is_not_understood:
        raise InvalidValue(f"nothing of it was understood: it is not what {report.source} writes")


def _import_notes(
    target: Target, memory: recollect.Memory, paths: Sequence[Path], *, dry_run: bool
) -> None:
    if not paths:
        raise NotFound("notes have no place of their own: name the folder to read")
    with _shown(target) as show:
        importing = ImportingNotes(memory, target.space_name, is_dry=dry_run, progress=show)
        for folder in paths:
            importing.run(folder)
    if target.as_json:
        write_json(report_shape(importing.report))
        return
    for line in report_lines(importing.report, is_dry=dry_run):
        write(line)


@contextmanager
def _shown(target: Target) -> Iterator[Callable[[Progress], None]]:
    """What shows on a terminal how far an import has got."""
    with bar_shown(target) as show:

        def show_files(progress: Progress) -> None:
            files = f"file {progress.files_done:,} of {progress.files:,}"
            what = f"{files}, {progress.records:,} records"
            show(Step(what=what, done=progress.bytes_done, whole=progress.bytes_all))

        yield show_files
