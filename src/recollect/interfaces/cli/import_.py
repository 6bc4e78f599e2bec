"""`recollect import` and `recollect watch`: other programs' logs, exports and notes."""

from __future__ import annotations

import logging
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import recollect
from recollect.errors import InvalidUrl, InvalidValue, NotFound
from recollect.importers.folders import existing, is_there, place_of
from recollect.importers.items import (
    MARKDOWN,
    NAMES,
    ImportProgress,
    ImportReport,
    ImportSource,
    source_named,
)
from recollect.importers.markdown import ImportingNotes
from recollect.importers.running import INTERVAL_SECONDS, Importing, Watching
from recollect.interfaces.cli.commands import Opt, Output, Target, command, say
from recollect.interfaces.cli.output import counted, json_line, note, one_line, progress_bar, write
from recollect.interfaces.cli.running import logged, stop_signals, terminated_like_interrupted
from recollect.interfaces.cli.work import plan_totals, plan_view
from recollect.store.address import path_of

if TYPE_CHECKING:
    from recollect.extraction.plan import WorkPlan

WATCHED = ("claude-code", "codex", "jsonl")  # those that write lines as they go
PLACES_SHOWN = 5
_UNITS = ((2**30, "GB"), (2**20, "MB"), (2**10, "KB"))

Paths = Annotated[tuple[Path, ...], Opt(metavar="[PATH]...")]


@command(makes_store=True)
def import_(
    at: Target,
    source: Annotated[str, Opt(metavar="SOURCE", choices=NAMES)],
    paths: Paths = (),
    *,
    dry_run: bool = False,
    work: bool = False,
) -> None:
    """Import other programs' logs, exports and notes; each message is imported once.

      claude-code, codex   the logs of coding agents, from their usual place if no path is given
      chatgpt, claude      the archive of an export, or its conversations.json
      openai, anthropic    lists of messages, as JSON or JSON Lines
      mem0                 the result of get_all(): becomes facts
      markdown             a folder of notes (Obsidian, basic-memory): becomes documents
      jsonl                lines with session, role, content and time

    Run again, or after an interruption, it reads only what is new. What was forgotten does not come
    back. Formats that this version does not know are kept, counted and named. Sessions know their
    project, the directory that the agent worked in; recall and context can be narrowed to it.

    Options:
      dry_run: Only show what would be imported, and what learning may cost. Nothing is sent.
      work: Learn from it at once, as recollect work does. Otherwise a worker does.

    Examples:
      recollect import claude-code --dry-run
      recollect import codex ~/.codex/sessions/2026 --work
      recollect import chatgpt ~/Downloads/export.zip --space alice
    """
    if dry_run and work:
        raise click.UsageError("Give --dry-run or --work, not both.")
    with _opened(at, dry_run=dry_run) as memory, terminated_like_interrupted():
        if source == MARKDOWN:
            say(at, _imported_notes(at, memory, paths, dry_run=dry_run))
            return
        reader = source_named(source)
        places = list(paths) or places_with_files(reader)
        plan: WorkPlan | None = None
        with _shown(at) as show:
            if dry_run:
                report, plan = _tried(at, memory, reader, places, show)
            else:
                report = Importing(memory, at.space_name, reader, progress=show).run(places)
        value, lines = report_view(report), [*_import_lines(report, is_dry=dry_run)]
        if plan is not None:
            value["work"] = plan_view(plan, with_prompts=False)
            lines += plan_totals(plan, memory.settings)
        say(at, Output(value, lines))
        if report.is_not_understood:
            raise InvalidValue(f"nothing in it was understood: not a file of {report.source}")
        if work:
            worked = memory.work()
            if not at.as_json:
                write(f"Learned from {counted(worked.processed, 'session')}.")
        elif report.records and not dry_run and not at.as_json:
            note(f"To learn from it: recollect work{at.arguments}")


def _opened(at: Target, *, dry_run: bool) -> recollect.Memory:
    """The memory to import into; where there is none, a dry run makes none."""
    settings = at.settings()
    if not dry_run or (at.store is None and settings.database == "per-agent"):
        return at.open()
    try:
        path = path_of(at.address())
    except InvalidUrl:  # in memory, or nothing at all: opening it says so
        path = None
    is_missing = path is not None and not path.exists()
    return recollect.open(":memory:", settings=settings) if is_missing else at.open()


def _places(source: ImportSource) -> list[Path]:
    places = source.places(os.environ, Path.home())
    if not places:
        raise NotFound(f"{source.name} has no usual place: name the file or folder")
    return list(places)


def places_with_files(source: ImportSource) -> list[Path]:
    """Where a program keeps its files, as far as they exist. NotFound: nowhere."""
    places = _places(source)
    found = existing(places)
    if not found:
        looked = " or ".join(map(str, places))
        raise NotFound(f"{source.name} has nothing in {looked}: name the folder to read")
    return found


def _tried(
    at: Target,
    memory: recollect.Memory,
    source: ImportSource,
    places: Sequence[Path],
    show: Callable[[ImportProgress], None],
) -> tuple[ImportReport, WorkPlan]:
    """What would be imported, into a store that is thrown away, and what learning would cost."""
    with (
        tempfile.TemporaryDirectory(prefix="recollect-") as directory,
        recollect.open(Path(directory) / "dry-run.db", settings=memory.settings) as elsewhere,
    ):
        space = at.space_name
        importing = Importing(memory, space, source, instead=elsewhere, progress=show)
        return importing.run(places), elsewhere.plan(space, all=True)


def _imported_notes(
    at: Target, memory: recollect.Memory, paths: Sequence[Path], *, dry_run: bool
) -> Output:
    if not paths:
        raise NotFound("notes have no usual place: name the folder to read")
    with _shown(at) as show:
        importing = ImportingNotes(memory, at.space_name, is_dry=dry_run, progress=show)
        for folder in paths:
            importing.run(folder)
    lines = _import_lines(importing.report, is_dry=dry_run)
    return Output(report_view(importing.report), lines)


@contextmanager
def _shown(at: Target) -> Iterator[Callable[[ImportProgress], None]]:
    """What shows on a terminal how far an import has got."""
    with progress_bar(as_json=at.as_json) as show:

        def show_files(progress: ImportProgress) -> None:
            files = f"file {progress.files_done:,} of {progress.files:,}"
            what = f"{files}, {progress.records:,} records"
            show(what, progress.bytes_done, progress.bytes_all)

        yield show_files


@command()
def watch(
    at: Target,
    source: Annotated[str, Opt(metavar="SOURCE", choices=WATCHED)],
    paths: Paths = (),
    *,
    interval: Annotated[
        float, Opt(metavar="SECONDS", at_least=0.05, at_most=3600)
    ] = INTERVAL_SECONDS,
    work: bool = True,
) -> None:
    """Follow a coding agent's logs: what is written to them is in memory seconds later.

    It first reads what it has not read yet, as recollect import does, and then looks every few
    seconds for what is new. Several watchers, and recollect import beside them, import nothing
    twice. SIGTERM and Ctrl-C stop it. What was imported is reported on standard error; with --json
    as objects.

    Options:
      interval: How often to look.
      work, --work/--no-work: Also run a worker here, which learns from sessions that have become
        quiet.

    Examples:
      recollect watch claude-code
      recollect watch jsonl ~/logs/assistant.jsonl --space work
    """
    reader = source_named(source)
    places = list(paths) or _places(reader)
    missing = [place_of(path) for path in paths if not is_there(path)]
    if missing:
        raise NotFound(f"there is no {missing[0]}: name the folder or the file to watch")

    def reported(report: ImportReport) -> None:
        if not report.records and not report.odd:
            return
        odd = f"; {sum(report.odd.values()):,} not understood" if report.odd else ""
        new = f"{_records(report)}{odd}."
        note(json_line(report_view(report)) if at.as_json else new)

    with logged(logging.WARNING, as_json=at.as_json), at.open() as memory, stop_signals() as wait:
        watching = Watching(memory, at.space_name, reader, places)
        worker = memory.worker() if work else None
        if worker is not None:
            worker.start()
        names = [place_of(each) for each in places]
        shown = ", ".join(
            one_line(name) if is_there(each) else f"{one_line(name)} (once it exists)"
            for name, each in zip(names, places, strict=True)
        )
        ready = json_line({"ready": {"source": source, "places": names}})
        note(ready if at.as_json else f"Watching {source}: {shown}; Ctrl-C stops.")
        watching.run(lambda seconds: wait(seconds) is not None, reported, interval)
        if worker is not None:
            worker.stop()
    if not at.as_json:
        note("Stopped.")


# The report of an import


def _import_lines(report: ImportReport, *, is_dry: bool) -> Iterator[str]:
    if not report.files and not report.odd:
        yield f"Found no file with a name that {report.source} gives its files."
    else:
        unchanged = f", {report.files_unchanged:,} unchanged" if report.files_unchanged else ""
        forms = ", ".join(map(one_line, sorted(report.forms)))
        read = f"Read {counted(report.files, 'file')} ({_size(report.bytes_read)}{unchanged})"
        yield f"{read}: {forms}." if forms else f"{read}."
    yield f"{'Would import' if is_dry else 'Imported'} {_new(report)}."
    if report.known:
        yield f"Known already: {report.known:,}."
    if report.left_out:
        yield f"Left out on purpose: {_listed(report.left_out)}."
    if report.odd:
        odd = Counter({": ".join(filter(None, each)): count for each, count in report.odd.items()})
        yield f"Not understood: {_listed(odd)}."
    for each in report.odd_places[:PLACES_SHOWN]:
        line = "" if each.odd.line is None else f", line {each.odd.line:,}"
        yield f"  {one_line(each.place)}{line}: {one_line(each.odd.detail or each.odd.trouble)}"
    if len(report.odd_places) > PLACES_SHOWN:
        yield "  … more with --json"


def report_view(report: ImportReport) -> dict[str, Any]:
    """The report for programs."""
    own = "source files files_unchanged bytes_read records known facts facts_changed documents"
    return {name: getattr(report, name) for name in own.split()} | {
        "sessions": sorted(report.sessions),
        "forms": dict(report.forms),
        "left_out": dict(report.left_out),
        "not_understood": [
            {"trouble": trouble, "detail": detail, "count": count}
            for (trouble, detail), count in sorted(report.odd.items())
        ],
        "places": [
            {
                "place": each.place,
                "line": each.odd.line,
                "trouble": each.odd.trouble.value,
                "detail": each.odd.detail,
            }
            for each in report.odd_places
        ],
    }


def _records(report: ImportReport) -> str:
    sessions = counted(len(report.sessions), "session")
    return f"{counted(report.records, 'new record')} in {sessions}"


def _new(report: ImportReport) -> str:
    counts = {
        "new fact": report.facts,
        "changed fact": report.facts_changed,
        "new or changed document": report.documents,
    }
    parts = [counted(count, noun) for noun, count in counts.items() if count]
    if report.records or not parts:
        parts.insert(0, _records(report))
    return ", ".join(parts)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{one_line(name)} {count:,}" for name, count in counts.most_common())


def _size(count: int) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return counted(count, "byte")
