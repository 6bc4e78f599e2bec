"""`recollect audit`: who did what, as far as the setting has it written down."""

from __future__ import annotations

from datetime import datetime

import click

import recollect
from recollect.interfaces.cli.arguments import read_given_time
from recollect.interfaces.cli.output import NONE, moment, note, one_line, table, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.session import LIST_MAX
from recollect.store.audit_protocol import AuditEntry

HEADERS = ("AT", "ACTOR", "SPACE", "VERB", "OUTCOME", "TARGETS")
ENTRIES, ENTRIES_MAX = 50, 1_000_000
TARGETS_SHOWN = 3
CUT_SHORT = "under way, or cut short"


@click.command("audit")
@click.option("--actor", metavar="WHO", help="Only what this one did, as it is shown.")
@click.option("--verb", metavar="VERB", help="Only this, as in records.append.")
@click.option(
    "--since", metavar="TIME", callback=read_given_time, help="Only from then on, ISO with a zone."
)
@click.option(
    "--limit",
    type=click.IntRange(1, ENTRIES_MAX),
    default=ENTRIES,
    show_default=True,
    metavar="N",
    help="At most N entries, the newest.",
)
@with_target
def command(
    target: Target, actor: str | None, verb: str | None, since: datetime | None, limit: int
) -> None:
    """Show who did what, the newest first: in one space with --space, else in all of them.

    The setting audit has it written down: off (as it is by default), writes, or all, which is
    reads as well. An entry is written before something is done, and its outcome afterwards; one
    without an outcome was cut short, or is under way. None has a word of what anybody said. What
    is older than audit_days is dropped by a worker.

    \b
    Examples:
      recollect audit
      recollect audit --space alice --verb erasure.forget_session --json
      recollect audit --actor key:019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --since 2026-05-01T00:00Z
    """
    with target.open_existing() as memory:
        found = _read(memory, target.space, actor, verb, since, limit)
        is_kept = memory.settings.audit != "off"
    if target.as_json:
        write_json(view(found))
        return
    for line in table(HEADERS, [_row(entry) for entry in found]) if found else ():
        write(line)
    if not found:
        note("Nothing is written down here.")
    if not is_kept:
        note("Nothing is being written down: set audit to writes or all (RECOLLECT_AUDIT=writes).")


def _read(
    memory: recollect.Memory,
    space: str | None,
    actor: str | None,
    verb: str | None,
    since: datetime | None,
    limit: int,
) -> list[AuditEntry]:
    found: list[AuditEntry] = []
    while len(found) < limit:
        size = min(LIST_MAX, limit - len(found))
        last = found[-1] if found else None
        read = memory.audit(space, size, last, actor=actor, verb=verb, since=since)
        found += read
        if len(read) < size:
            break
    return found


def _row(entry: AuditEntry) -> tuple[str, ...]:
    shown = ", ".join(entry.targets[:TARGETS_SHOWN])
    more = len(entry.targets) - TARGETS_SHOWN
    return (
        moment(entry.at),
        one_line(entry.actor),
        NONE if entry.space is None else one_line(entry.space),
        entry.verb,
        entry.outcome or CUT_SHORT,
        f"{shown} and {more} more" if more > 0 else shown or NONE,
    )
