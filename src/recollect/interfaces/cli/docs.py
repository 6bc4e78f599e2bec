"""`recollect docs`: the tree of documents that memory lives in."""

from __future__ import annotations

import click

from recollect.interfaces.cli import docs_files, docs_reading, docs_writing
from recollect.interfaces.cli.target import Target, with_target


@click.group("docs", invoke_without_command=True)
@click.pass_context
@with_target
def command(target: Target, context: click.Context) -> None:
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
    if context.invoked_subcommand is None:
        docs_reading.show_tree(target)


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
    (docs_files.publish, "Write the tree as Markdown files."),
    (docs_files.load, "Load what was edited in those files."),
    (docs_writing.purge, "Remove a document for good, with every version."),
):
    _verb.short_help = _summary
    command.add_command(_verb)
