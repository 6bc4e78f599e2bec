"""`recollect watch`: keeps up with the logs of a coding agent, until it is told to stop."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import click

from recollect.errors import NotFound
from recollect.importers.folders import is_there, place_of
from recollect.importers.items import ImportReport, Source, source_named
from recollect.importers.watching import INTERVAL_SECONDS, Watching
from recollect.interfaces.cli.import_lines import report_shape
from recollect.interfaces.cli.logs import logged
from recollect.interfaces.cli.output import counted, json_line, note, one_line
from recollect.interfaces.cli.signals import told_within
from recollect.interfaces.cli.target import Target, with_target

WATCHED = ("claude-code", "codex", "jsonl")  # those that write lines as they go


@click.command("watch")
@click.argument("source", type=click.Choice(WATCHED), metavar="SOURCE")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05, max=3600),
    default=INTERVAL_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.option(
    "--work/--no-work",
    "is_working",
    default=True,
    show_default=True,
    help="Also run a worker here, which learns from sessions that have become quiet.",
)
@with_target
def command(
    target: Target, source: str, paths: tuple[Path, ...], interval: float, is_working: bool
) -> None:
    """Keep up with a coding agent's logs: what is written to them is in memory seconds later.

    Sources are claude-code, codex and jsonl. It first reads what it has not read yet, as recollect
    import does, and then looks every few seconds for what is new; a line that is half written is
    waited for. Several watchers, and recollect import beside them, bring nothing in twice. A
    session is learned from when it has been quiet for idle_seconds.

    SIGTERM and Ctrl-C stop it. It says what came in on standard error; with --json each time is an
    object.

    \b
    Examples:
      recollect watch claude-code
      recollect watch codex --no-work --interval 10
      recollect watch jsonl ~/logs/assistant.jsonl --space work
    """
    reader = source_named(source)
    places = list(paths) or _own_places(reader)
    missing = [place_of(path) for path in paths if not is_there(path)]
    if missing:
        raise NotFound(f"there is no {missing[0]}: name the folder or the file to watch")
    with (
        logged(logging.WARNING, as_json=target.as_json),
        target.open() as memory,
        told_within() as wait,
    ):
        watching = Watching(memory, target.space_name, reader, places)
        worker = memory.worker() if is_working else None
        if worker is not None:
            worker.start()
        _say_ready(target, source, places)
        watching.run(
            lambda seconds: wait(seconds) is not None,
            lambda report: _say(target, report),
            interval,
        )
        if worker is not None:
            worker.stop()
    if not target.as_json:
        note("Stopped.")


def _own_places(source: Source) -> list[Path]:
    """Where a program keeps its files, or will: it may not have been used yet."""
    places = source.places(os.environ, Path.home())
    if not places:
        raise NotFound(f"{source.name} has no place of its own: name the file or folder to watch")
    return list(places)


def _say_ready(target: Target, source: str, places: Sequence[Path]) -> None:
    names = [place_of(each) for each in places]
    if target.as_json:
        note(json_line({"ready": {"source": source, "places": names}}))
        return
    shown = ", ".join(
        one_line(name) if is_there(each) else f"{one_line(name)} (as soon as it is there)"
        for name, each in zip(names, places, strict=True)
    )
    note(f"Watching {source}: {shown}; Ctrl-C stops.")


def _say(target: Target, report: ImportReport) -> None:
    """What a look came to, if it came to anything."""
    if not report.records and not report.odd:
        return
    if target.as_json:
        note(json_line(report_shape(report)))
        return
    sessions = counted(len(report.sessions), "session")
    odd = f"; {sum(report.odd.values()):,} not understood" if report.odd else ""
    note(f"{counted(report.records, 'new record')} in {sessions}{odd}.")
