"""`recollect sweep`: the idle sweep by hand."""

from __future__ import annotations

import click

from recollect.interfaces.cli.output import counted, one_line, write, write_json
from recollect.interfaces.cli.target import Target, with_target


@click.command("sweep")
@with_target
def command(target: Target) -> None:
    """Mark every session that has unprocessed records and was left without a word.

    It catches what a process that died had no time to mark, after idle_sweep_seconds (10 minutes
    by default); like the start-up scan, only from scan_sources and within scan_age_days_max (30
    days by default). A running worker does this by itself; this is for when there is none, or when
    you do not want to wait for it. Over all spaces or, with --space, in one.

    \b
    Examples:
      recollect sweep
      RECOLLECT_IDLE_SWEEP_SECONDS=60 recollect sweep --space alice
    """
    with target.open() as memory:
        if target.space is not None:
            memory.space(target.space)  # checks the name
        marked = memory.sweep_idle(target.space)
        idle = memory.settings.idle_sweep_seconds
    if target.as_json:
        write_json({"space": target.space, "marked": marked, "idle_sweep_seconds": idle})
    else:
        where = "all spaces" if target.space is None else f"space {one_line(target.space)!r}"
        write(f"Marked {counted(marked, 'session')} in {where} (idle for {idle:g} s or more).")
