"""`recollect work`: everything that is due, processed now, and a report of what came of it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import recollect
from recollect.errors import StoreError
from recollect.interfaces.cli.logs import logged
from recollect.interfaces.cli.output import counted, note, write, write_json
from recollect.interfaces.cli.signals import terminated_like_interrupted
from recollect.interfaces.cli.target import Target, with_target
from recollect.worker import WorkReport

PROGRESS_SECONDS = 1.0
ERASE_LINE = "\x1b[2K\r"


@click.command("work")
@click.option("--all", "is_all", is_flag=True, help="First mark every session that has something.")
@with_target
def command(target: Target, is_all: bool) -> None:
    """Process what is due now, then stop: the worker for a schedule, or for in between.

    It goes on until nothing is due. Sessions that back off after a failure, are parked or are being
    processed elsewhere are left alone; recollect status says which and why. It works for all spaces
    of the store, beside any number of workers. The exit code is 1 if a session failed.

    \b
    Examples:
      recollect work
      recollect work --all --json
    """
    target.refuse_space()
    with (
        logged(logging.WARNING, as_json=target.as_json),
        target.open() as memory,
        terminated_like_interrupted(),
    ):
        with _progress(memory, is_shown=not target.as_json and sys.stderr.isatty()):
            report = memory.work(all=is_all)
        left = memory.status(limit=0).marked_count
    if target.as_json:
        write_json(_report_shape(report) | {"still_marked": left})
    else:
        write(_in_words(report))
        if left:
            does = "is" if left == 1 else "are"
            note(f"{counted(left, 'session')} {does} still marked; why: recollect status")
    if report.failed:
        click.get_current_context().exit(1)


def _report_shape(report: WorkReport) -> dict[str, Any]:
    return {
        "processed": report.processed,
        "records": report.records,
        "failed": report.failed,
        "stale": report.stale,
        "released": report.released,
    }


def _in_words(report: WorkReport) -> str:
    words = f"Processed {counted(report.processed, 'session')},"
    words += f" {counted(report.records, 'record')}; {report.failed:,} failed"
    if report.stale:
        words += f"; {report.stale:,} went to another worker"
    if report.released:
        words += f"; {report.released:,} given back"
    return f"{words}."


@contextmanager
def _progress(memory: recollect.Memory, *, is_shown: bool) -> Iterator[None]:
    """While it takes long, say on the terminal how many sessions are left."""
    over = threading.Event()

    def show() -> None:
        while not over.wait(PROGRESS_SECONDS):
            try:
                left = memory.status(limit=0).marked_count
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
