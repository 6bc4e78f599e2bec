"""`recollect restore`: a store from a backup, in a place of its own."""

from __future__ import annotations

from pathlib import Path

import click

from recollect.clock import SystemClock
from recollect.interfaces.cli.output import counted, one_line, write, write_json
from recollect.interfaces.cli.progress_bar import progress_shown
from recollect.interfaces.cli.target import Target, with_target
from recollect.operations.backup import Restoring


@click.command("restore")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--replace", is_flag=True, help="Take the place of a store that is there; it is kept beside."
)
@with_target
def command(target: Target, path: Path, replace: bool) -> None:
    """Make the store that --store names from the backup PATH: a database file or an archive.

    A store that is there is never written over. With --replace a file that nobody has open is
    kept as <name>.before-<time>, and the restored one gets its name in one step. A backup is
    examined before anything happens. On a server, restore into a new schema (?schema=<name>). It is
    always the whole store, whatever --space says; recollect load takes one space.

    \b
    Examples:
      recollect restore memory-2026-01-01.db --store new.db
      recollect restore memory-2026-01-01.db --replace
      recollect restore memory.zip --store 'postgresql://localhost/recollect?schema=restored'
    """
    target.note_whole_store()
    restoring = Restoring(path, target.settings(), SystemClock())
    with progress_shown(target):
        restored = restoring.restore(target.address(), replace=replace)
    if target.as_json:
        write_json(
            {
                "path": str(restored.path),
                "kind": restored.kind,
                "store": restored.store,
                "spaces": restored.spaces,
                "kept": None if restored.kept is None else str(restored.kept),
            }
        )
        return
    write(f"Restored {one_line(restored.store)} with {counted(restored.spaces, 'space')}.")
    if restored.kept is not None:
        write(f"The store that was there is kept as {one_line(str(restored.kept))}.")
