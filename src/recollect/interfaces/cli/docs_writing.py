"""`recollect docs write | append | patch | move | delete | restore | purge`: changes to it."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

import click

from recollect.clock import SystemClock
from recollect.document import Document
from recollect.documents.paths import read_path
from recollect.documents.tree import OnReferences
from recollect.errors import DocumentReferenced, NotFound
from recollect.interfaces.cli.arguments import (
    advice_on_missing,
    expect_option,
    expect_or_none_option,
    find_document,
    path_argument,
    read_file,
    read_given_path,
    read_given_paths,
    read_text,
    reason_option,
    text_or_file,
)
from recollect.interfaces.cli.options import known_paths
from recollect.interfaces.cli.output import counted, note, one_line, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.space import Space


@click.command("write")
@path_argument
@click.argument("text", required=False)
@click.option("--file", type=click.File("rb"), metavar="F", help="Take the text from a file.")
@click.option("--title", metavar="T", help="Default: as it was, or the last part of PATH.")
@click.option("--description", metavar="D", help="What it is about, in a sentence.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Replaces its tags. Repeatable.")
@click.option(
    "--link",
    "links",
    callback=read_given_paths,
    multiple=True,
    metavar="PATH",
    help="Refers to another document; replaces its links. Repeatable.",
)
@expect_or_none_option
@reason_option
@with_target
def write_(
    target: Target,
    /,
    path: str,
    text: str | None,
    file: BinaryIO | None,
    expect: int | None,
    **given: Any,
) -> None:
    """Write a document, or a new version of it; what stands above it is made.

    TEXT that is - or missing is read from standard input. What is not given (title, description,
    tags, links) stays as it was. Writing what it says already makes no version. Secrets are
    replaced by placeholders.

    \b
    Examples:
      recollect docs write people/ana "Ana lives in [[places/lisbon|Lisbon]]." --tag person
      recollect docs write projects/move --file move.md --title "The move" --reason planned
      recollect docs write people/ana "Ana lives in Porto." --expect 1
    """
    body = text_or_file(text, file, "recollect docs write PATH")
    tags, links = given.pop("tags") or None, given.pop("links") or None
    started = SystemClock().now()
    with target.open() as memory:
        document = memory.space(target.space_name).documents.write(
            path, body, tags=tags, links=links, expected_version=expect, **given
        )
    if document.updated_at < started:
        _tell(target, document, "Unchanged:")
    else:
        _tell(target, document, "Wrote" if document.version > 1 else "Created")


def _tell(target: Target, document: Document, does: str) -> None:
    if target.as_json:
        write_json(view(document))
    else:
        write(f"{does} {one_line(document.path)}, version {document.version}.")


@click.command("append")
@path_argument
@click.argument("text", required=False)
@expect_option
@reason_option
@with_target
def append(target: Target, path: str, text: str | None, expect: int | None, reason: str) -> None:
    """Add TEXT to the end of a document, as a paragraph of its own.

    TEXT that is - or missing is read from standard input.

    \b
    Examples:
      recollect docs append people/ana "She likes long walks."
      date | recollect docs append projects/move/log -
    """
    added = read_text(text, "recollect docs append PATH")
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        where = find_document(space, path).path
        document = space.documents.append(where, added, expected_version=expect, reason=reason)
    _tell(target, document, "Wrote")


@click.command("patch")
@path_argument
@click.option("--old", metavar="TEXT", help="The passage to replace; it has to be there once.")
@click.option("--new", metavar="TEXT", help="What takes its place; empty removes it.")
@click.option("--old-file", type=click.File("rb"), metavar="F", help="The passage, in a file.")
@click.option("--new-file", type=click.File("rb"), metavar="F", help="What is new, in a file.")
@expect_option
@reason_option
@with_target
def patch(
    target: Target,
    /,
    path: str,
    old: str | None,
    new: str | None,
    old_file: BinaryIO | None,
    new_file: BinaryIO | None,
    expect: int | None,
    reason: str,
) -> None:
    """Replace a passage of a document that stands in it exactly once.

    \b
    Examples:
      recollect docs patch people/ana --old "in Lisbon" --new "in Porto"
      recollect docs patch projects/move --old-file before.md --new-file after.md
    """
    passage, replacement = _one_of("old", old, old_file), _one_of("new", new, new_file)
    if not passage:
        raise click.UsageError("--old is empty.")
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        before = find_document(space, path)
        document = space.documents.patch(
            before.path, passage, replacement, expected_version=expect, reason=reason
        )
    _tell(target, document, "Wrote" if document.version > before.version else "Unchanged:")


def _one_of(name: str, text: str | None, file: BinaryIO | None) -> str:
    if (text is None) == (file is None):
        raise click.UsageError(f"Give --{name} or --{name}-file, and one of them only.")
    if file is not None:
        return read_file(file, may_be_empty=True)
    assert text is not None
    return text


@click.command("move")
@path_argument
@click.argument("to", callback=read_given_path, shell_complete=known_paths)
@expect_option
@reason_option
@with_target
def move(target: Target, path: str, to: str, expect: int | None, reason: str) -> None:
    """Move a document, with all that stands below it; its id, links and history stay.

    What referred to it still does, and its old path leads to the new one.

    \b
    Examples:
      recollect docs move people/ana friends/ana
      recollect docs move projects/move archive/2026/move --reason "It is done."
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        before = find_document(space, path)
        document = space.documents.move(before.path, to, expected_version=expect, reason=reason)
    if document.version == before.version:
        _tell(target, document, "Unchanged:")
    elif target.as_json:
        write_json(view(document))
    else:
        write(f"Moved {one_line(before.path)} to {one_line(document.path)}.")


@click.command("delete")
@path_argument
@click.option("--below", is_flag=True, help="Also what stands below it.")
@click.option(
    "--references",
    type=click.Choice([each.value for each in OnReferences]),
    default=OnReferences.REFUSE.value,
    show_default=True,
    help="If others refer to it: refuse, leave their links broken, or unlink them.",
)
@expect_option
@reason_option
@with_target
def delete(
    target: Target, path: str, below: bool, references: str, expect: int | None, reason: str
) -> None:
    """Delete a document. It can be restored; purge is for good.

    Refused while other documents refer to it or stand below it, unless you say what becomes of
    them. Unlinked, a text keeps the words of its links.

    \b
    Examples:
      recollect docs delete people/ana
      recollect docs delete projects/move --below --references unlink
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        where = find_document(space, path).path
        try:
            document = space.documents.delete(
                where, below=below, references=references, expected_version=expect, reason=reason
            )
        except DocumentReferenced as error:
            ways = "--below, --references leave, --references unlink"
            raise DocumentReferenced(f"{error}. Options for it: {ways}") from error
    if target.as_json:
        write_json(view(document))
        return
    back = f"recollect docs restore {document.id}{target.arguments}"
    write(f"Deleted {one_line(document.path)}. Bring it back: {back}")


@click.command("restore")
@path_argument
@click.option(
    "--version", type=click.IntRange(min=1), metavar="N", help="What version N said, as a new one."
)
@expect_option
@reason_option
@with_target
def restore(
    target: Target, path: str, version: int | None, expect: int | None, reason: str
) -> None:
    """Bring back a deleted document, with what was deleted together with it, or an older version.

    \b
    Examples:
      recollect docs restore people/ana
      recollect docs restore people/ana --version 2
    """
    with target.open_existing() as memory, advice_on_missing():
        document = memory.space(target.space_name).documents.restore(
            path, version, expected_version=expect, reason=reason
        )
    _tell(target, document, "Restored")


@click.command("purge")
@path_argument
@click.option("--yes", is_flag=True, help="Do not ask. Needed where nobody can be asked.")
@with_target
def purge(target: Target, path: str, yes: bool) -> None:
    """Remove for good what stands or stood at PATH and below it, with every version.

    Nothing of it can be restored. Links to it from elsewhere are broken from then on.

    \b
    Examples:
      recollect docs purge people/ana
      recollect docs purge projects/secret --yes --json
    """
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise click.UsageError("This cannot be undone. Say --yes, or run it on a terminal.")
    where = read_path(path).text
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        if not yes:
            question = f"Purge {one_line(where)}, all below it and every version"
            click.confirm(f"{question}? This cannot be undone", abort=True, err=True)
        purged = space.documents.purge(path)
        if not purged.documents:
            raise _nothing_to_purge(space, path)
    if target.as_json:
        counts = {
            "documents": purged.documents,
            "versions": purged.versions,
            "is_clean": purged.is_clean,
        }
        write_json({"space": space.name, "path": where, **counts})
        return
    versions = counted(purged.versions, "version")
    write(f"Purged {one_line(where)}: {counted(purged.documents, 'document')}, {versions}.")
    if not purged.is_clean:
        note("The store is being read; its log has the bytes until the next write.")


def _nothing_to_purge(space: Space, path: str) -> NotFound:
    """An old path or an id is not followed: what is removed for good is named as it stands."""
    elsewhere = space.documents.find(path)
    stands = "" if elsewhere is None else f"; purge it where it stands: {elsewhere.path}"
    return NotFound(f"nothing stands or stood at {path!r} in space {space.name!r}{stands}")
