"""`recollect recall`: what a space remembers about any text, best first, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from recollect.interfaces.cli.output import note, one_line, write, write_json
from recollect.interfaces.cli.recall_arguments import (
    given_filters,
    is_narrowed,
    narrowing_options,
    read_query,
    speaker_option,
)
from recollect.interfaces.cli.recall_lines import explained_lines, hit_lines
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.recollection import Hit
from recollect.session import LIST_MAX
from recollect.space import Space

FOUND = 10


@click.command("recall")
@click.argument("query", nargs=-1)
@click.option(
    "--limit",
    type=click.IntRange(1, LIST_MAX),
    default=FOUND,
    show_default=True,
    metavar="N",
    help=f"At most N hits, up to {LIST_MAX:,}.",
)
@speaker_option
@narrowing_options
@click.option("--explain", is_flag=True, help="Show what each score is made of, and the sources.")
@with_target
def command(
    target: Target,
    /,
    query: tuple[str, ...],
    limit: int,
    speaker: str | None,
    explain: bool,
    **given: Any,
) -> None:
    """Find what is remembered about QUERY: facts, documents, summaries and what was said.

    Any text is a query, a question too; names of people and times ("last spring") count. A QUERY
    that is - or missing is read from standard input. No model is asked.

    A hit has its rank, its text, its kind with the name to call it by (a fact's id, a document's
    path, session:number of a record), its date, and who says so. JSON has every reason and source.

    \b
    Examples:
      recollect recall where does Ana live
      recollect recall where do I live --speaker Ana
      recollect recall "what did we decide last week" --kind record --explain
      recollect recall tea --tag preference --since 2026-05-01 --trust user
      recollect recall dinner --where city=Lisbon --where 'price<=30' --json
      recollect recall "where does Ana live" --as-of 2025-12-24
      git log -1 --format=%B | recollect recall -
    """
    text = read_query(query, "recollect recall -")
    with target.open(given["agent"]) as memory:
        space = memory.space(target.space_name)
        filters = given_filters(space, **given)
        hits = space.recall(text, limit, filters=filters, speaker=speaker)
        keys = session_keys(space, hits)
    if target.as_json:
        write_json(view(hits))
        return
    for rank, hit in enumerate(hits, start=1):
        if explain and rank > 1:
            write()
        lines = explained_lines(f"{rank}.", hit, keys) if explain else hit_lines(rank, hit, keys)
        for line in lines:
            write(line)
    if not hits:
        note(nothing_found(target, given))


def session_keys(space: Space, hits: Iterable[Hit]) -> dict[str, str]:
    """The stable keys of the sessions that hits come from, by session id."""
    wanted = {source.session_id for hit in hits for source in hit.sources}
    found = (space.sessions.get(session_id) for session_id in sorted(wanted))
    return {state.id: state.key for state in found if state is not None}


def nothing_found(target: Target, given: dict[str, Any]) -> str:
    """What to say where there is nothing to show."""
    space = one_line(target.space_name)
    advice = " Fewer options may find more." if is_narrowed(given) else ""
    return f"Nothing in space {space!r} fits.{advice}"
