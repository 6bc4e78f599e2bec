"""`recollect doctor`: what is wrong with a store, what to do about it, and repairs on request."""

from __future__ import annotations

from typing import Any

import click

from recollect.interfaces.cli.output import counted, one_line, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.operations.checks import Finding, Gravity
from recollect.operations.doctor import Diagnosis, examine, repair


@click.command("doctor")
@click.option("--repair", "is_repair", is_flag=True, help="Put right what is safe to.")
@with_target
def command(target: Target, is_repair: bool) -> None:
    """Examine a whole store: its files, its references, its indexes, its links and its jobs.

    Exits with 1 if something is wrong; a note is only worth knowing. --repair makes indexes anew,
    binds links, counts documents, puts marks and jobs in step and gives parked jobs another chance.
    It deletes nothing that was remembered. What it cannot put right it says how to. Whatever
    --space says, it looks at all spaces.

    \b
    Examples:
      recollect doctor
      recollect doctor --repair
      recollect doctor --store postgresql://localhost/recollect --json
    """
    target.note_whole_store()
    with target.open_existing() as memory:
        look = repair if is_repair else examine
        diagnosis = look(memory.store, memory.clock.now())
    if target.as_json:
        write_json(_shape(diagnosis))
    else:
        _say(diagnosis)
    if not diagnosis.is_sound:
        click.get_current_context().exit(1)


def _shape(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "store": diagnosis.store.location,
        "schema_version": diagnosis.store.schema_version,
        "sound": diagnosis.is_sound,
        "findings": [_finding_shape(each) for each in diagnosis.findings],
        "repaired": [_finding_shape(each) for each in diagnosis.repaired],
    }


def _finding_shape(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "gravity": finding.gravity.value,
        "count": finding.count,
        "says": finding.says,
        "examples": list(finding.examples),
        "advice": finding.advice,
        "repair": finding.mending.value,
    }


def _say(diagnosis: Diagnosis) -> None:
    store = diagnosis.store
    write(f"{one_line(store.location)} ({store.kind}, schema version {store.schema_version})")
    for finding in diagnosis.repaired:
        write(f"{click.style('repaired', fg='green')}  {_headline(finding)}")
    for finding in diagnosis.findings:
        colour = "red" if finding.gravity is Gravity.WRONG else "yellow"
        write(f"{click.style(finding.gravity.value, fg=colour)}  {_headline(finding)}")
        for example in finding.examples:
            write(f"    {one_line(example)}")
        write(f"    {finding.advice}")
    if diagnosis.is_sound:
        write("Nothing is wrong.")


def _headline(finding: Finding) -> str:
    return f"{finding.check}: {finding.says} ({counted(finding.count, 'time')})"
