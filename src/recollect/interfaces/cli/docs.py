"""`recollect docs`: the tree of documents that memory lives in."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from recollect.documents.load import Loading
from recollect.documents.publish import Publication
from recollect.documents.shelf import Conflict
from recollect.errors import UnloadedEdits
from recollect.interfaces.cli import docs_reading, docs_writing
from recollect.interfaces.cli.arguments import read_given_path
from recollect.interfaces.cli.groups import ListingGroup
from recollect.interfaces.cli.history import indented
from recollect.interfaces.cli.options import target_options
from recollect.interfaces.cli.output import counted, harmless, note, one_line, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.cli.work import ERASE_LINE, PROGRESS_SECONDS
from recollect.interfaces.views import view

_directory = click.argument("directory", type=click.Path())


@click.command("publish")
@_directory
@click.option(
    "--path",
    callback=read_given_path,
    metavar="PATH",
    help="Only what stands there and below. Default: what was published there before, or all of"
    " ~/memory.",
)
@click.option(
    "--discard-edits",
    is_flag=True,
    help="Publish although files were edited and not loaded. All that is in DIRECTORY is then kept"
    " beside it, hidden, under a name ending in -edited.",
)
@with_target
def publish(target: Target, directory: str, path: str | None, discard_edits: bool) -> None:
    """Write the tree as Markdown files into DIRECTORY, which is made if it is not there.

    It changes in one step: who reads it sees the tree before or after, never half of it. Only files
    that changed are written. Refused while edits in it are not loaded; what is not from Recollect
    (.git, attachments) counts as an edit, so keep that elsewhere. Who works in DIRECTORY finds the
    new files after entering it again.

    \b
    Examples:
      recollect docs publish notes
      recollect docs publish team --path projects/move
    """
    with target.open_existing() as memory:
        documents = memory.space(target.space_name).documents
        try:
            with _progress(is_shown=not target.as_json and sys.stderr.isatty()) as tell:
                published = documents.publish(
                    directory, path=path, discard_edits=discard_edits, progress=tell
                )
        except UnloadedEdits as error:
            load_it = f"recollect docs load {_quoted(directory)}{target.arguments}"
            ways = f"{load_it}, or publish with --discard-edits"
            raise UnloadedEdits(f"{error}. {ways}", files=error.files) from error
    if target.as_json:
        write_json(view(published))
        return
    write(_published_in_words(published))
    for kept in published.kept_aside:
        note(f"Edits that were not loaded are kept in {_quoted(kept)} until you remove it.")


@contextmanager
def _progress(*, is_shown: bool) -> Iterator[Callable[[int, int], None]]:
    """While it takes long, say on the terminal how much of it is done."""
    over = threading.Event()
    counts = [0, 0]

    def tell(done: int, of: int) -> None:
        counts[:] = done, of

    def show() -> None:
        while not over.wait(PROGRESS_SECONDS):
            done, of = counts
            if of:
                click.echo(f"{ERASE_LINE}{done:,} of {of:,} documents …\r", err=True, nl=False)

    thread = threading.Thread(target=show, name="recollect-progress", daemon=True)
    if is_shown:
        thread.start()
    try:
        yield tell
    finally:
        over.set()
        if is_shown:
            thread.join()
            click.echo(ERASE_LINE, err=True, nl=False)


def _published_in_words(published: Publication) -> str:
    where = one_line(published.directory)
    counts = [f"{published.written:,} written", f"{published.kept:,} as before"]
    counts += [f"{published.removed:,} removed"] if published.removed else []
    documents = counted(published.documents, "document")
    return (
        f"Published {documents} to {where}, generation {published.generation}: {', '.join(counts)}."
    )


@click.command("load")
@_directory
@click.option(
    "--path",
    callback=read_given_path,
    metavar="PATH",
    help="Load it to there. Default: where it was published from, or ~/memory.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--allow-deletions",
    is_flag=True,
    help="Also if all documents would be deleted, or more than half and more than 10.",
)
@click.pass_context
@with_target
def load(
    target: Target,
    context: click.Context,
    directory: str,
    path: str | None,
    dry_run: bool,
    allow_deletions: bool,
) -> None:
    """Load what people changed in DIRECTORY: new files, edits, moves and deletions.

    What was published is the base: edits on both sides are merged. Where both changed the same
    words, it is a conflict, and both stay as they are; it says how to settle it. A directory that
    was never published is loaded, too. Exit code 1: not everything was loaded.

    \b
    Examples:
      recollect docs load notes --dry-run
      recollect docs load notes
      recollect docs load old-wiki --path archive/wiki
    """
    with target.open() as memory:
        documents = memory.space(target.space_name).documents
        loading = documents.load(
            directory, path=path, dry_run=dry_run, allow_deletions=allow_deletions
        )
    if target.as_json:
        write_json({"dry_run": dry_run, **view(loading)})
    else:
        for line in _loading_lines(loading, dry_run=dry_run):
            write(line)
        _advise(target, directory, loading)
    if loading.conflicts or loading.problems:
        context.exit(1)


def _loading_lines(loading: Loading, *, dry_run: bool) -> Iterator[str]:
    did = {
        "create": loading.created,
        "change": loading.changed,
        "merge": loading.merged,
        "move": [f"{each.source} to {each.target}" for each in loading.moved],
        "delete": loading.deleted,
    }
    for verb, paths in did.items():
        word = f"Would {verb}" if dry_run else f"{verb.capitalize().removesuffix('e')}ed"
        for path in paths:
            yield f"{word} {one_line(path)}"
    for conflict in loading.conflicts:
        heading = click.style("Conflict:", fg="yellow")
        yield f"{heading} {one_line(conflict.file)}: {one_line(conflict.reason)}"
        yield from _sides(conflict)
    for problem in loading.problems:
        heading = click.style("Not loaded:", fg="yellow")
        yield f"{heading} {one_line(problem.file)}: {one_line(problem.reason)}"


def _sides(conflict: Conflict) -> Iterator[str]:
    """Both sides between marks, or what each of them says."""
    if conflict.merged:
        yield indented(harmless(conflict.merged))
        return
    for whose, text in (("the document", conflict.ours), ("the file", conflict.theirs)):
        if text:
            yield f"    {whose} says:"
            yield indented(harmless(text))


def _advise(target: Target, directory: str, loading: Loading) -> None:
    if loading.is_nothing:
        note("Nothing to load: the files say what the documents say.")
    if loading.conflicts and loading.is_published:
        over = f"recollect docs publish {_quoted(directory)} --discard-edits{target.arguments}"
        note(
            "Settle what each conflict says, then load again. Or publish over all edits that are"
            f" not loaded, which are then kept aside: {over}"
        )
    elif loading.conflicts:
        note("Settle what each conflict says, then load again.")


def _quoted(directory: str) -> str:
    return shlex.quote(one_line(directory))


@click.group("docs", cls=ListingGroup)
@target_options
def command(**_given: object) -> None:
    """The tree of documents; without a verb, the tree itself.

    A PATH is people/ana, or ~/memory/people/ana in full; an ending .md is left out. Every change
    makes a version that can be read, compared and restored. A link is [[people/ana]] in a text.

    \b
    Examples:
      recollect docs write people/ana "Ana lives in [[places/lisbon|Lisbon]]."
      recollect docs append people/ana "She likes long walks."
      recollect docs read people/ana
      recollect docs history people/ana
    """


for _verb, _summary in (
    (docs_reading.tree, "Show what documents there are."),
    (docs_reading.read, "Show a document, or an earlier version of it."),
    (docs_writing.write_, "Write a document, or a new version of it."),
    (docs_writing.append, "Add to the end of a document."),
    (docs_writing.patch, "Replace a passage of a document."),
    (docs_writing.move, "Move a document with all below it; links follow."),
    (docs_writing.delete, "Delete a document; it can be restored."),
    (docs_writing.restore, "Bring back a deleted document or an earlier version."),
    (docs_reading.deleted, "Show what was deleted and can be restored."),
    (docs_reading.history, "Show a document's versions."),
    (docs_reading.diff, "Show what changed between two versions."),
    (docs_reading.search, "Find documents by their words."),
    (docs_reading.links, "Show links in both directions, broken ones and orphans."),
    (publish, "Write the tree as Markdown files."),
    (load, "Load what was edited in those files."),
    (docs_writing.purge, "Remove a document for good, with every version."),
):
    _verb.short_help = _summary
    command.add_command(_verb)
command.lists_by(docs_reading.tree)
