"""`recollect spaces`: which spaces a store has, and how much each of them holds."""

from __future__ import annotations

import click

from recollect.errors import NotFound
from recollect.interfaces.cli.output import moment, note, table, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.operations.census import count_spaces


@click.command("spaces")
@with_target
def command(target: Target) -> None:
    """List the spaces of a store with their sessions, records, facts and documents.

    Facts that were superseded and what was deleted do not count. With --space only that one.

    \b
    Examples:
      recollect spaces
      recollect spaces --store postgresql://localhost/recollect --json
    """
    with target.open_existing() as memory:
        found = count_spaces(memory.store)
    if target.space is not None:
        found = [each for each in found if each.space == target.space]
        if not found:
            raise NotFound(f"there is no space {target.space!r}")
    if target.as_json:
        write_json({"spaces": view(found)})
    elif not found:
        note("No space holds anything yet; recollect append makes one.")
    else:
        headers = ("SPACE", "SESSIONS", "RECORDS", "FACTS", "DOCUMENTS", "SINCE")
        rows = [
            (
                each.space,
                *(f"{n:,}" for n in (each.sessions, each.records, each.facts, each.documents)),
                moment(each.created_at),
            )
            for each in found
        ]
        for line in table(headers, rows):
            write(line)
