"""`recollect backup`: a store as it is at one moment, while others write."""

from __future__ import annotations

from pathlib import Path

import click

from recollect.interfaces.cli.output import counted, one_line, write, write_json
from recollect.interfaces.cli.progress_bar import progress_shown
from recollect.interfaces.cli.target import Target, with_target
from recollect.operations.backup import back_up


@click.command("backup")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@with_target
def command(target: Target, path: Path) -> None:
    """Copy the store into PATH, a new file, while others go on reading and writing.

    A store on SQLite becomes a database file: a copy of its pages, examined before it gets its
    name. A store on PostgreSQL becomes an archive of all spaces, as recollect export writes it,
    read in one snapshot: without vectors, API keys and the salt of redaction; for a copy of the
    server use its own tools. recollect restore makes a store of either, on either. It is always the
    whole store, whatever --space says; recollect export takes one space.

    \b
    Examples:
      recollect backup memory-2026-01-01.db
      recollect backup memory.zip --store postgresql://localhost/recollect
    """
    target.note_whole_store()
    with target.open_existing() as memory, progress_shown(target):
        done = back_up(memory.store, path)
    if target.as_json:
        shape = {"path": str(done.path), "kind": done.kind, "size_bytes": done.size_bytes}
        write_json({**shape, "spaces": done.spaces})
    else:
        what = f"{done.kind}, {done.size_bytes:,} bytes, {counted(done.spaces, 'space')}"
        write(f"Wrote {one_line(str(done.path))} ({what}).")
