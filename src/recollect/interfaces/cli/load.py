"""`recollect load`: the spaces of an archive, into a store that has none of them."""

from __future__ import annotations

from pathlib import Path

import click

from recollect.interfaces.cli.output import contents_in_words, one_line, write, write_json
from recollect.interfaces.cli.progress_bar import progress_shown
from recollect.interfaces.cli.target import Target, with_target


@click.command("load")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@with_target
def command(target: Target, path: Path) -> None:
    """Take in an archive that recollect export wrote: all its spaces or, with --space, one.

    The archive is read through before anything is written; one that was cut short or changed is
    refused. None of its spaces may be in the store, unless it is exactly the same: so a load that
    was interrupted is simply run again. Each space comes in whole or not at all, and is compared
    with the archive before it counts. Vectors are made anew by the worker.

    \b
    Examples:
      recollect load memory.zip --store new.db
      recollect load memory.zip --space alice
      recollect load memory.zip --store postgresql://localhost/recollect
    """
    with target.open() as memory, progress_shown(target):
        loaded = memory.load(path, target.space)
    if target.as_json:
        write_json(
            {
                "path": str(loaded.path),
                "spaces": loaded.spaces,
                "already_there": loaded.already_there,
            }
        )
        return
    write(f"Loaded {contents_in_words(loaded.spaces)}.")
    for name in loaded.already_there:
        write(f"Space {one_line(name)!r} was there already, the same.")
