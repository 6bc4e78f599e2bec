"""`recollect export`: a space, or all, as one archive that needs no Recollect to be read."""

from __future__ import annotations

from pathlib import Path

import click

from recollect.interfaces.cli.output import contents_in_words, one_line, write, write_json
from recollect.interfaces.cli.progress_bar import progress_shown
from recollect.interfaces.cli.target import Target, with_target


@click.command("export")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@with_target
def command(target: Target, path: Path) -> None:
    """Write everything that is remembered into a new archive, PATH: all spaces, or one (--space).

    It is a zip: JSON Lines for every kind of row (sessions, records, facts and their history,
    documents and their versions, generations, imports, spending), the documents as Markdown, and a
    manifest with a digest of every member. The same content gives the same bytes, from SQLite and
    from PostgreSQL. It is one moment; others go on writing. What is made anew is left out: vectors,
    indexes, who holds which job; and so are API keys. Deleted documents and facts are in it until
    they are purged or forgotten. Nothing is ever written over: PATH must not be there yet.

    \b
    Examples:
      recollect export memory.zip
      recollect export alice.zip --space alice
      recollect export all.zip --store postgresql://localhost/recollect --json
    """
    with target.open_existing() as memory, progress_shown(target):
        exported = memory.export(path, target.space)
    if target.as_json:
        write_json(
            {
                "path": str(exported.path),
                "size_bytes": exported.size_bytes,
                "spaces": exported.spaces,
            }
        )
    else:
        size = f"{exported.size_bytes:,} bytes"
        write(
            f"Wrote {one_line(str(exported.path))} ({size}), {contents_in_words(exported.spaces)}."
        )
