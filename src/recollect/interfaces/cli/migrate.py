"""`recollect migrate`: everything from one store into another, SQLite or PostgreSQL."""

from __future__ import annotations

import click

from recollect.interfaces.cli.output import contents_in_words, one_line, write, write_json
from recollect.interfaces.cli.progress_bar import progress_shown
from recollect.interfaces.cli.target import Target, with_target


@click.command("migrate")
@click.option("--to", metavar="URL", required=True, help="The store to copy everything into.")
@with_target
def command(target: Target, to: str) -> None:
    """Copy a whole store into another one, from SQLite to PostgreSQL or the other way round.

    The other one must be empty, or hold what an interrupted migration from here left there: run it
    again, and it goes on. At the end both are read and compared, table by table. The store itself
    is only read. Stop whoever writes to it first; what is written meanwhile is noticed, and the
    migration says that it has to be run once more. API keys come along; vectors are made anew. All
    spaces are copied, whatever --space says.

    \b
    Examples:
      recollect migrate --to postgresql://localhost/recollect
      recollect migrate --store postgresql://localhost/recollect --to memory.db
    """
    target.note_whole_store()
    with target.open_existing() as memory, progress_shown(target):
        migrated = memory.migrate(to)
    if target.as_json:
        write_json(
            {
                "source": migrated.source,
                "target": migrated.target,
                "spaces": migrated.spaces,
                "already_there": migrated.already_there,
            }
        )
        return
    write(f"{one_line(migrated.target)} holds the same as {one_line(migrated.source)} now:")
    write(f"{contents_in_words(migrated.spaces)}. Every table was compared.")
