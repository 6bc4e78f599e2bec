"""`recollect generations`: what consolidation published, to be read, compared and restored."""

from __future__ import annotations

import click

import recollect
from recollect.clock import SystemClock
from recollect.document import Version
from recollect.errors import NotFound
from recollect.generation import DocumentChange, Generation
from recollect.interfaces.cli.arguments import limit_option
from recollect.interfaces.cli.docs import diff_lines
from recollect.interfaces.cli.generation_lines import generation_head, generation_table
from recollect.interfaces.cli.groups import ListingGroup
from recollect.interfaces.cli.options import target_options
from recollect.interfaces.cli.output import (
    counted,
    labelled,
    moment,
    note,
    one_line,
    table,
    write,
    write_json,
)
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.session import LIST_MAX
from recollect.space import Space

LISTED = 20
DOCUMENTS = 50
PATH_HEADERS = ("VERSION", "WRITTEN", "PATH")

_number = click.IntRange(min=1)


@click.group("generations", cls=ListingGroup)
@target_options
def command(**_given: object) -> None:
    """What consolidation made of a space's memory, one generation after the other; without a verb,
    the list of them.

    A generation is the handbook (MEMORY), its summary, skills and evidence, published whole. The
    last generations_kept can be read, compared and restored. Forgetting a session publishes one
    without it at once, and takes it out of the earlier ones: those cannot be restored any more.

    \b
    Examples:
      recollect generations
      recollect generations diff 3 4
      recollect generations rollback 3 && recollect generations pause
    """


@command.command("list")
@limit_option(LISTED, "generations")
@click.option("--before", type=_number, metavar="N", help="The next page: those before this one.")
@with_target
def list_(target: Target, limit: int, before: int | None) -> None:
    """List generations, the newest first: when and by whom they were made, and of what.

    ADDED, RETAINED and REMOVED count memories, one for each session.

    \b
    Examples:
      recollect generations list
      recollect generations list --before 40 --json
    """
    with target.open_existing() as memory:
        generations = memory.space(target.space_name).generations
        found = generations.list(limit, before)
        current = generations.state().generation
    if target.as_json:
        write_json(view(found))
        return
    if not found:
        if before is None:
            note(_none_yet(target))
        return
    for line in generation_table(found, current):
        write(line)
    if len(found) == limit and found[-1].number > 1:
        last = f"--before {found[-1].number}"
        note(f"There may be more: recollect generations list {last}{target.arguments}")


command.lists_by(list_)


def _none_yet(target: Target) -> str:
    make = f"recollect consolidate{target.arguments}"
    return f"No generation in space {one_line(target.space_name)!r} yet. Make one: {make}"


@command.command("show")
@click.argument("number", type=_number, metavar="[N]", required=False)
@click.option(
    "--limit",
    type=click.IntRange(0, LIST_MAX),
    default=DOCUMENTS,
    show_default=True,
    metavar="N",
    help="At most N of its documents.",
)
@with_target
def show(target: Target, number: int | None, limit: int) -> None:
    """Show generation N, or the current one: how it was made, and which documents it has.

    Each stands there in the version it has in that generation: recollect docs read PATH --version V
    reads it.

    \b
    Examples:
      recollect generations show
      recollect generations show 3 --json
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        generation = _find(target, space, number)
        current = space.generations.state().generation
        versions = _documents_of(memory, space, generation)
    if target.as_json:
        shapes = [
            {"document_id": document_id, "path": version.path, "version": version.number}
            for version, document_id in versions[:limit]
        ]
        write_json(view(generation) | {"has": shapes})
        return
    for line in labelled(generation_head(generation, current)):
        write(line)
    if versions[:limit]:
        write()
        rows = [(str(each.number), moment(each.at), each.path) for each, _ in versions[:limit]]
        for line in table(PATH_HEADERS, rows):
            write(line)
    if len(versions) > limit:
        note(f"… and {counted(len(versions) - limit, 'document')} more (--limit)")


def _find(target: Target, space: Space, number: int | None) -> Generation:
    if number is None and not space.generations.state().generation:
        raise NotFound(_none_yet(target))
    try:
        return space.generations.get(number)
    except NotFound as error:
        raise NotFound(f"{error}; recollect generations{target.arguments} lists them") from error


def _documents_of(
    memory: recollect.Memory, space: Space, generation: Generation
) -> list[tuple[Version, str]]:
    """The versions that a generation has, as far as they are there, and their documents' ids."""
    stored = memory.store.generations.documents(space.name, generation.number)
    found = [
        (space.documents.version(each.document_id, each.version), each.document_id)
        for each in stored
    ]
    return sorted(found, key=lambda pair: pair[0].path)


@command.command("diff")
@click.argument("older", type=_number, metavar="A")
@click.argument("newer", type=_number, metavar="[B]", required=False)
@click.option("--paths", is_flag=True, help="Only say which documents differ.")
@with_target
def diff(target: Target, older: int, newer: int | None, paths: bool) -> None:
    """Show what changed from generation A to generation B, or to the current one.

    \b
    Examples:
      recollect generations diff 3
      recollect generations diff 3 4 --paths
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        ends = [_find(target, space, number) for number in (older, newer)]
        found = space.generations.diff(ends[0].number, ends[1].number)
    # A document that was restored has a new version, which says what an earlier one said.
    changes = [each for each in found if each.text or each.change is not DocumentChange.CHANGED]
    if target.as_json:
        write_json({"from": ends[0].number, "to": ends[1].number, "changes": view(changes)})
        return
    for change in changes:
        write(click.style(f"{change.change.value:<7}  {one_line(change.path)}", bold=True))
        if not paths:
            for line in diff_lines(change.text):
                write(line)
    if not changes:
        note(f"Generations {ends[0].number} and {ends[1].number} say the same.")
    for each in ends:
        if not each.is_whole:
            note(f"Parts of generation {each.number} are gone for good and not shown.")


@command.command("rollback")
@click.argument("number", type=_number, metavar="N")
@with_target
def rollback(target: Target, number: int) -> None:
    """Restore what generation N said, as the newest generation.

    It stays until something is learned or forgotten, when the next one is made of all there is;
    recollect generations pause keeps it for longer. Facts and sessions are not touched.

    \b
    Examples:
      recollect generations rollback 3
      recollect generations rollback 3 && recollect generations pause
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        _find(target, space, number)
        made = space.generations.rollback(number)
        is_paused = space.generations.state().paused_at is not None
    if target.as_json:
        write_json(view(made))
        return
    changed = counted(made.changed, "document")
    write(f"Restored generation {number} as generation {made.number}: {changed} changed.")
    if not is_paused:
        keep = f"recollect generations pause{target.arguments}"
        note(f"It stays until something is learned or forgotten. Keep it: {keep}")


@command.command("pause")
@with_target
def pause(target: Target) -> None:
    """Make no more generations of a space until it is resumed; one under way is given up.

    Sessions are distilled as before. What is forgotten leaves the handbook all the same, at once.

    \b
    Example:
      recollect generations pause --space alice
    """
    with target.open_existing() as memory:
        generations = memory.space(target.space_name).generations
        generations.pause()
        state = generations.state()
    if target.as_json:
        write_json(view(state, SystemClock().now()))
        return
    space = one_line(target.space_name)
    write(f"Consolidation of space {space!r} is paused since {moment(state.paused_at)}.")
    note(f"Go on: recollect generations resume{target.arguments}")


@command.command("resume")
@with_target
def resume(target: Target) -> None:
    """Make generations of a space again; if something changed meanwhile, the next one is due.

    \b
    Example:
      recollect generations resume --space alice
    """
    with target.open_existing() as memory:
        generations = memory.space(target.space_name).generations
        was_paused = generations.state().paused_at is not None
        generations.resume()
        state = generations.state()
    if target.as_json:
        write_json(view(state, SystemClock().now()))
        return
    space = one_line(target.space_name)
    if not was_paused:
        write(f"Consolidation of space {space!r} was not paused.")
        return
    write(f"Consolidation of space {space!r} goes on.")
    if state.changed > state.consolidated:
        note(f"Something changed meanwhile. Now: recollect consolidate{target.arguments}")


for _verb, _summary in (
    (list_, "List the generations there are."),
    (show, "Show a generation and its documents."),
    (diff, "Show what changed between two generations."),
    (rollback, "Restore what a generation said, as the newest one."),
    (pause, "Make no more generations until it is resumed."),
    (resume, "Make generations again."),
):
    _verb.short_help = _summary
