"""`recollect docs`: the tree of pages that memory lives in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, BinaryIO

import click

from recollect.documents.load import Loading
from recollect.documents.paths import DEPTH_MAX, memory_root, read_path
from recollect.documents.tree import OnReferences
from recollect.errors import DocumentReferenced, NotFound, UnloadedEdits
from recollect.interfaces.cli.commands import Opt, Output, Target, command, group, listed
from recollect.interfaces.cli.facts import source_in_words
from recollect.interfaces.cli.output import (
    Fields,
    counted,
    fields,
    harmless,
    indented,
    labelled,
    one_line,
    progress_bar,
    shortened,
    shown,
    tabled,
)
from recollect.interfaces.cli.parameters import (
    Before,
    Count,
    Expect,
    Limit,
    Number,
    Reason,
    Text,
    TreePath,
    Words,
    Yes,
    confirm,
    find_document,
    read_file,
    read_text,
    session_keys,
)
from recollect.interfaces.views import view
from recollect.types.pages import Document, Node, Reference, Version

DESCRIPTION_CHARS = 100  # of a document in a list
CHILDREN = 20  # named with a document; the tree has all


@group(lists="tree")
def docs() -> None:
    """The tree of pages; without a verb, the tree itself.

    A PATH is people/ana, or ~/memory/people/ana in full; a final .md may be given or left out.
    Every change makes a version that can be read, compared and restored. A link is [[people/ana]]
    in a text.

    Examples:
      recollect docs write people/ana "Ana lives in [[places/lisbon|Lisbon]]."
      recollect docs read people/ana
    """


@contextmanager
def _advice_on_missing() -> Iterator[None]:
    """Say with a page or version that is not there how to find those that are."""
    try:
        yield
    except NotFound as error:
        ways = "recollect docs tree lists documents, recollect docs history PATH their versions"
        raise NotFound(f"{error}; {ways}") from error


# Reading


@command(docs)
def tree(
    at: Target,
    path: TreePath | None = None,
    *,
    depth: Annotated[int | None, Opt(metavar="N", at_least=1, at_most=DEPTH_MAX)] = None,
    limit: Limit = 200,
    after: TreePath | None = None,
) -> Output:
    """Show the documents below PATH, or all of ~/memory.

    Options:
      depth: Only N levels below PATH.
      after: The next page: what comes after it.

    Example:
      recollect docs tree people --depth 1
    """
    root = memory_root().text if path is None else find_document(at.space, path).path
    nodes = at.space.documents.tree(root, depth=depth or DEPTH_MAX, limit=limit, after=after)
    example = f'recollect docs write people/ana "Ana lives in Lisbon."{at.arguments}'
    nothing = f"No documents in space {at.quoted_space} yet. Write one: {example}"
    lines = _tree_lines(nodes, root.count("/"))
    return listed(at, nodes, lines, nothing, limit=limit, after=after, by="path")


def _tree_lines(nodes: Sequence[Node], root_depth: int) -> Iterator[str]:
    """A line per document, indented; the first one shows its whole path."""
    for position, node in enumerate(nodes):
        name = node.path if position == 0 else node.path.rpartition("/")[2]
        bold = click.style(one_line(name), bold=node.has_children)
        indent = "  " * (node.depth - root_depth)
        yield f"{indent}{bold}{_about(node)}"


def _about(page: Node | Document) -> str:
    """What stands behind a path in a list; a title that is its slug says nothing new."""
    words = [] if page.title == page.path.rpartition("/")[2] else [one_line(page.title)]
    words += [shortened(page.description, DESCRIPTION_CHARS)] if page.description else []
    return f"  {': '.join(words)}" if words else ""


@command(docs)
def read(
    at: Target, path: TreePath, *, version: Number | None = None, body: bool = False
) -> Output:
    """Show a document by its path, by a path it had before it was moved, or by its id.

    Options:
      version: Version N instead of the current one.
      body: Only its text, without the head.

    Examples:
      recollect docs read people/ana --version 2
      recollect docs read people/ana --body > ana.md
    """
    if body and at.as_json:
        raise click.UsageError("Give --body or --json, not both.")
    if version is None:
        current = find_document(at.space, path)
        found: Document | Version = current
        lines = labelled(_document_fields(at, current), current)
    else:
        with _advice_on_missing():
            found = at.space.documents.version(path, version)
        lines = labelled(_VERSION, found)
    if body:
        # A line end of two characters is no danger, and part of the text.
        return Output(None, ["\r\n".join(harmless(each) for each in found.body.split("\r\n"))])
    return Output(found, [*lines, *(["", harmless(found.body)] if found.body else [])])


def _document_fields(at: Target, document: Document) -> Fields:
    keys = session_keys(at.space, [document])
    children = at.space.documents.tree(document.path, depth=1, limit=CHILDREN)[1:]
    return fields(
        f"document=path id version {_PAGE} sources facts below",
        version=lambda page: f"{page.version}, {shown(page.updated_at)}",
        by=_by,
        sources=lambda _: "; ".join(source_in_words(each, keys) for each in document.sources),
        below=lambda _: [node.path.rpartition("/")[2] for node in children],
    )


def _author(page: Document | Version) -> str:
    return f"{page.author.name} ({page.author.kind.value})"


def _by(page: Document | Version) -> str:
    return _author(page) + (f": {page.reason}" if page.reason else "")


_PAGE = "by title about=description tags links"
_VERSION = fields(
    f"document=path version {_PAGE} facts",
    version=lambda page: f"{page.number}, {page.event.value} {shown(page.at)}",
    by=_by,
)


# Writing


@command(docs, makes_store=True)
def write(
    at: Target,
    path: TreePath,
    text: Text = None,
    *,
    file: BinaryIO | None = None,
    title: str | None = None,
    description: str | None = None,
    tags: tuple[str, ...] = (),
    links: tuple[TreePath, ...] = (),
    expect: Count | None = None,
    reason: Reason = "",
) -> Output:
    """Write a document, or a new version of it; missing parents are created.

    TEXT that is - or missing is read from standard input. What is not given stays as it was.
    Writing the current text again makes no version. Secrets are replaced by placeholders.

    Options:
      file F: Take the text from a file.
      title T: Default: as it was, or the last part of PATH.
      description D: What it is about, in a sentence.
      tags, --tag T: Replaces its tags. May be given several times.
      links, --link: Refers to another document; replaces its links. May be given several times.
      expect: Refuse unless version N is the current one; 0: unless there is none.

    Examples:
      recollect docs write people/ana "Ana lives in [[places/lisbon|Lisbon]]." --tag person
      recollect docs write projects/move --file move.md --title "The move" --expect 1
    """
    if file is not None and text is not None:
        raise click.UsageError("Give TEXT or a file, not both.")
    given = read_text(text, "recollect docs write PATH") if file is None else read_file(file)
    started = at.memory.clock.now()
    document = at.space.documents.write(
        path,
        given,
        title=title,
        description=description,
        tags=tags or None,
        links=links or None,
        expected_version=expect,
        reason=reason,
    )
    wrote = "Wrote" if document.version > 1 else "Created"
    return _did("Unchanged:" if document.updated_at < started else wrote, document)


def _did(what: str, document: Document) -> Output:
    return Output(document, f"{what} {one_line(document.path)}, version {document.version}.")


@command(docs)
def append(
    at: Target, path: TreePath, text: Text = None, *, expect: Expect = None, reason: Reason = ""
) -> Output:
    """Add TEXT to the end of a document, as a paragraph of its own.

    TEXT that is - or missing is read from standard input.

    Example:
      recollect docs append people/ana "She likes long walks."
    """
    added = read_text(text, "recollect docs append PATH")
    where = find_document(at.space, path).path
    document = at.space.documents.append(where, added, expected_version=expect, reason=reason)
    return _did("Wrote", document)


@command(docs)
def patch(
    at: Target,
    path: TreePath,
    *,
    old: str | None = None,
    new: str | None = None,
    old_file: BinaryIO | None = None,
    new_file: BinaryIO | None = None,
    expect: Expect = None,
    reason: Reason = "",
) -> Output:
    """Replace a passage that occurs in a document exactly once.

    Options:
      old TEXT: The passage to replace; it has to occur exactly once.
      new TEXT: What takes its place; empty removes it.
      old_file F: The passage, in a file.
      new_file F: The replacement, in a file.

    Example:
      recollect docs patch people/ana --old "in Lisbon" --new "in Porto"
    """
    passage, replacement = _one_of("old", old, old_file), _one_of("new", new, new_file)
    if not passage:
        raise click.UsageError("--old is empty.")
    before = find_document(at.space, path)
    document = at.space.documents.patch(
        before.path, passage, replacement, expected_version=expect, reason=reason
    )
    return _did("Wrote" if document.version > before.version else "Unchanged:", document)


def _one_of(name: str, text: str | None, file: BinaryIO | None) -> str:
    if (text is None) == (file is None):
        raise click.UsageError(f"Give either --{name} or --{name}-file.")
    return text if text is not None else read_file(file, may_be_empty=True) if file else ""


@command(docs)
def move(
    at: Target, path: TreePath, to: TreePath, *, expect: Expect = None, reason: Reason = ""
) -> Output:
    """Move a document with everything below it; its id, links and history stay.

    Links to it keep working, and its old path leads to the new one.

    Example:
      recollect docs move projects/move archive/2026/move --reason "It is done."
    """
    before = find_document(at.space, path)
    document = at.space.documents.move(before.path, to, expected_version=expect, reason=reason)
    if document.version == before.version:
        return _did("Unchanged:", document)
    return Output(document, f"Moved {one_line(before.path)} to {one_line(document.path)}.")


@command(docs)
def delete(
    at: Target,
    path: TreePath,
    *,
    below: bool = False,
    references: OnReferences = OnReferences.REFUSE,
    expect: Expect = None,
    reason: Reason = "",
) -> Output:
    """Delete a document. It can be restored; purge removes it for good.

    Refused while other documents refer to it or stand below it, unless an option says what becomes
    of them. An unlinked text keeps the words of its links.

    Options:
      below: Include everything below it.
      references: If others refer to it: refuse, leave their links broken, or unlink them.

    Example:
      recollect docs delete projects/move --below --references unlink
    """
    where = find_document(at.space, path).path
    try:
        document = at.space.documents.delete(
            where, below=below, references=references, expected_version=expect, reason=reason
        )
    except DocumentReferenced as error:
        ways = "--below, --references leave, --references unlink"
        raise DocumentReferenced(f"{error}. Options for it: {ways}") from error
    back = f"recollect docs restore {document.id}{at.arguments}"
    return Output(document, f"Deleted {one_line(document.path)}. Bring it back: {back}")


@command(docs)
def restore(
    at: Target,
    path: TreePath,
    *,
    version: Number | None = None,
    expect: Expect = None,
    reason: Reason = "",
) -> Output:
    """Bring back a deleted document, with what was deleted together with it, or an older version.

    Options:
      version: The text of version N, as a new version.

    Example:
      recollect docs restore people/ana --version 2
    """
    with _advice_on_missing():
        document = at.space.documents.restore(path, version, expected_version=expect, reason=reason)
    return _did("Restored", document)


# Versions, search and links


@command(docs)
def deleted(
    at: Target, path: TreePath | None = None, *, limit: Limit = 200, after: str | None = None
) -> Output:
    """List what was deleted at PATH and below it, or in all of ~/memory; the last first.

    Options:
      after ID: The next page: what comes after it.

    Example:
      recollect docs deleted people
    """
    gone = at.space.documents.deleted(path or memory_root().text, limit=limit, after=after)
    columns = fields("path deleted_at version id")
    nothing = "Nothing was deleted there, or it was purged."
    return listed(at, gone, tabled(columns, gone), nothing, limit=limit, after=after)


_VERSIONS = fields("version=number when=at event by path reason", by=_author)


@command(docs)
def history(at: Target, path: TreePath, *, limit: Limit = 50, before: Before = None) -> Output:
    """List the versions of a document, newest first; also of one that was deleted.

    Example:
      recollect docs history people/ana
    """
    with _advice_on_missing():
        versions = at.space.documents.history(path, limit, before)
    if versions and versions[-1].number == 1:
        return Output(versions, tabled(_VERSIONS, versions))
    lines = tabled(_VERSIONS, versions)
    return listed(at, versions, lines, limit=limit, cursor="--before", by="number")


@command(docs)
def diff(at: Target, path: TreePath, a: Number, b: Number | None = None) -> Output:
    """Show what changed from version A to version B, or to the newest one.

    Example:
      recollect docs diff people/ana 2 3
    """
    with _advice_on_missing():
        newest = at.space.documents.history(path, limit=1)[0].number if b is None else b
        text = at.space.documents.diff(path, a, newest)
    notes = "" if text else f"Versions {a} and {newest} say the same."
    value = {"path": path, "from": a, "to": newest, "diff": text}
    return Output(value, diff_lines(text) if text else (), notes)


def diff_lines(diff: str) -> Iterator[str]:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.split("\n"):
        yield click.style(harmless(line), fg=colours.get(line[:1]))


@command(docs)
def search(at: Target, words: Words, *, below: TreePath | None = None, limit: Limit = 10) -> Output:
    """Find documents with any of the WORDS in title, description or text, the best first.

    Options:
      below: Only there and below it.

    Example:
      recollect docs search allergy --below people
    """
    where = None if below is None else find_document(at.space, below).path
    found = at.space.documents.search(" ".join(words), limit, below=where)
    notes = "" if found else f"Nothing found. See all: recollect docs tree{at.arguments}"
    return Output(found, (line for each in found for line in _found_lines(each)), notes)


def _found_lines(document: Document) -> Iterator[str]:
    yield f"{click.style(one_line(document.path), bold=True)}{_about(document)}"
    if document.body.strip():
        yield f"    {shortened(document.body, 2 * DESCRIPTION_CHARS)}"


@command(docs)
def links(
    at: Target,
    path: TreePath | None = None,
    *,
    broken: bool = False,
    orphans: bool = False,
    limit: Limit = 100,
) -> Output:
    """Show what a document refers to and what refers to it; or what is wrong with the links.

    A link in a text is [[path]] or [[path|words to show]]. One to a document that does not exist
    yet is kept, and leads there once it is written.

    Options:
      broken: All links that lead to no document.
      orphans: All documents that no other one mentions.

    Examples:
      recollect docs links people/ana
      recollect docs links --broken
    """
    if [path is not None, broken, orphans].count(True) != 1:
        raise click.UsageError("Give exactly one of PATH, --broken and --orphans.")
    documents = at.space.documents
    if path is not None:
        where = find_document(at.space, path).path
        found = documents.links(where)
        lines = [f"→ {_referred(each.target, each)}" for each in found.outgoing]
        lines += [f"← {_referred(each.source, each)}" for each in found.incoming]
        return Output({"path": where, **view(found)}, lines)
    if broken:
        bad = documents.broken_links(limit)
        lines = [f"{one_line(each.source)} → {_referred(each.target, each)}" for each in bad]
        return Output(bad, lines, "" if bad else "Every link leads to a document.")
    alone = documents.orphans(limit)
    notes = "" if alone else "Every document is mentioned by another one."
    return Output(alone, map(one_line, alone), notes)


def _referred(path: str, reference: Reference) -> str:
    alias = f", “{one_line(reference.alias)}”" if reference.alias else ""
    broken = click.style("  broken", fg="yellow") if reference.is_broken else ""
    return f"{one_line(path)}  ({reference.kind.value}{alias}){broken}"


# Files


@command(docs)
def publish(
    at: Target, directory: str, *, path: TreePath | None = None, discard_edits: bool = False
) -> Output:
    """Write the tree as Markdown files into DIRECTORY, which is created if necessary.

    It changes in one step: readers see the tree before or after, never half of it. Refused while
    edits in it are not loaded; what is not from Recollect (.git, attachments) counts as an edit. A
    shell inside DIRECTORY sees the new files after entering it again.

    Options:
      path: Only this document and what is below it. Default: what was published there before, or
        all of ~/memory.
      discard_edits: Publish although files were edited and not loaded. Everything in DIRECTORY is
        then kept beside it, hidden, under a name ending in -edited.

    Example:
      recollect docs publish team --path projects/move
    """
    try:
        with progress_bar(as_json=at.as_json) as show:
            done = at.space.documents.publish(
                directory,
                path=path,
                discard_edits=discard_edits,
                progress=lambda done, of: show(f"{done:,} of {of:,} documents", done, of),
            )
    except UnloadedEdits as error:
        load_it = f"recollect docs load {_quoted(directory)}{at.arguments}"
        ways = f"{load_it}, or publish with --discard-edits"
        raise UnloadedEdits(f"{error}. {ways}", files=error.files) from error
    removed = f", {done.removed:,} removed" if done.removed else ""
    words = f"Published {counted(done.documents, 'document')} to {one_line(done.directory)},"
    words += f" generation {done.generation}: {done.written:,} written, {done.kept:,} as before"
    kept = [
        f"Edits that were not loaded are kept in {_quoted(each)} until you remove it."
        for each in done.kept_aside
    ]
    return Output(done, f"{words}{removed}.", kept)


@command(docs, makes_store=True)
def load(
    at: Target,
    directory: str,
    *,
    path: TreePath | None = None,
    dry_run: bool = False,
    allow_deletions: bool = False,
) -> Output:
    """Load what people changed in DIRECTORY: new files, edits, moves and deletions.

    If a document has changed since its file was made, there is a conflict: the document stays, and
    the file is kept as a copy beside DIRECTORY; the output says where. A directory that was never
    published can be loaded, too. Exit code 1: not everything was loaded.

    Options:
      path: Load it to there. Default: where it was published from, or ~/memory.
      dry_run: Only show what would be done.
      allow_deletions: Even if all documents would be deleted, or more than half and more than 10.

    Examples:
      recollect docs load notes --dry-run
      recollect docs load old-wiki --path archive/wiki
    """
    loading = at.space.documents.load(
        directory, path=path, dry_run=dry_run, allow_deletions=allow_deletions
    )
    notes = ""
    if loading.is_nothing:
        notes = "Nothing to load: the files say what the documents say."
    elif loading.conflicts and loading.is_published:
        publish = f"recollect docs publish {_quoted(directory)}{at.arguments}"
        notes = (
            "What the files said is kept beside them. To go on from what the documents say:"
            f" {publish}, change the files, and load again."
        )
    elif loading.conflicts:
        notes = "Resolve each conflict as it says, then load again."
    value = {"dry_run": dry_run, **view(loading)}
    is_done = not loading.conflicts and not loading.problems
    lines = _loading_lines(loading, dry_run=dry_run)
    return Output(value, lines, notes, exit_code=0 if is_done else 1)


def _loading_lines(loading: Loading, *, dry_run: bool) -> Iterator[str]:
    did = {
        "create": loading.created,
        "change": loading.changed,
        "move": [f"{each.source} to {each.target}" for each in loading.moved],
        "delete": loading.deleted,
    }
    for verb, paths in did.items():
        word = f"Would {verb}" if dry_run else f"{verb.capitalize().removesuffix('e')}ed"
        yield from (f"{word} {one_line(path)}" for path in paths)
    for conflict in loading.conflicts:
        heading = click.style("Conflict:", fg="yellow")
        yield f"{heading} {one_line(conflict.file)}: {one_line(conflict.reason)}"
        for whose, text in (("the document", conflict.ours), ("the file", conflict.theirs)):
            if text:
                yield from (f"    {whose} says:", indented(harmless(text)))
        if conflict.copy:
            yield f"    the file is kept as {one_line(conflict.copy)}"
    for problem in loading.problems:
        heading = click.style("Not loaded:", fg="yellow")
        yield f"{heading} {one_line(problem.file)}: {one_line(problem.reason)}"


def _quoted(directory: str) -> str:
    return shlex.quote(one_line(directory))


@command(docs)
def purge(at: Target, path: TreePath, *, yes: Yes = False) -> Output:
    """Remove for good what is or was at PATH and below it, with every version.

    Nothing of it can be restored. Links to it from elsewhere are broken from then on.

    Example:
      recollect docs purge projects/secret --yes
    """
    where = read_path(path).text
    confirm("", yes=yes)
    documents = at.space.documents
    confirm(f"Purge {one_line(where)}, everything below it and every version", yes=yes)
    purged = documents.purge(path)
    if not purged.documents:
        # An old path or an id is not followed: what is removed for good is named by its own path.
        elsewhere = documents.find(path)
        stands = "" if elsewhere is None else f"; purge it at its path: {elsewhere.path}"
        raise NotFound(f"space {at.space_name!r} never had a document at {path!r}{stands}")
    counts = f"{counted(purged.documents, 'document')}, {counted(purged.versions, 'version')}"
    in_use = "The store is in use; its log keeps the bytes until the next write."
    return Output(
        {"space": at.space_name, "path": where, **view(purged)},
        f"Purged {one_line(where)}: {counts}.",
        "" if purged.is_clean else in_use,
    )
