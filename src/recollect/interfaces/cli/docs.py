"""`recollect docs`: the tree of pages that memory lives in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, BinaryIO

import click

from recollect.documents.load import Conflict, Loading
from recollect.documents.paths import DEPTH_MAX, memory_root, read_path
from recollect.documents.publish import Publication
from recollect.documents.tree import Documents, Links, OnReferences
from recollect.errors import DocumentReferenced, NotFound, UnloadedEdits
from recollect.interfaces.cli.commands import Arg, Opt, Output, Target, command, group
from recollect.interfaces.cli.facts import source_in_words
from recollect.interfaces.cli.groups import known_paths
from recollect.interfaces.cli.output import (
    NONE,
    counted,
    harmless,
    indented,
    labelled,
    moment,
    one_line,
    progress_bar,
    shortened,
    table,
)
from recollect.interfaces.cli.parameters import (
    Expect,
    MaybePath,
    Reason,
    Text,
    TreePath,
    Words,
    Yes,
    advice_on_missing,
    confirm,
    find_document,
    limit_of,
    more,
    read_file,
    read_text,
    read_tree_path,
    session_keys,
)
from recollect.interfaces.views import view
from recollect.types.pages import Author, DeletedDocument, Document, Node, Reference, Version

DESCRIPTION_CHARS = 100  # of a document in a list
CHILDREN = 20  # named with a document; the tree has all
SHOWN, VERSIONS = 200, 50
DELETED_HEADERS = ("PATH", "DELETED", "VERSION", "ID")
VERSION_HEADERS = ("VERSION", "WHEN", "EVENT", "BY", "PATH", "REASON")

File = Annotated[BinaryIO | None, Opt("Take the text from a file.", "F")]
Limit = Annotated[int, limit_of("documents")]
Number = Annotated[int, Arg(at_least=1)]
Directory = Annotated[str, Arg()]


@group(lists="tree")
def docs() -> None:
    """The tree of pages; without a verb, the tree itself.

    A PATH is people/ana, or ~/memory/people/ana in full; a final .md may be given or left out.
    Every change makes a version that can be read, compared and restored. A link is [[people/ana]]
    in a text.

    Examples:
      recollect docs write people/ana "Ana lives in [[places/lisbon|Lisbon]]."
      recollect docs append people/ana "She likes long walks."
      recollect docs read people/ana
      recollect docs history people/ana
    """


def _documents(at: Target) -> Documents:
    return at.space.documents


# Reading


@command(docs)
def tree(
    at: Target,
    path: MaybePath = None,
    *,
    depth: Annotated[
        int | None, Opt("Only N levels below PATH.", "N", at_least=1, at_most=DEPTH_MAX)
    ] = None,
    limit: Limit = SHOWN,
    after: Annotated[
        str | None, Opt("The next page: what comes after it.", "PATH", read=read_tree_path)
    ] = None,
) -> Output:
    """Show the documents below PATH, or all of ~/memory.

    Examples:
      recollect docs tree
      recollect docs tree people --depth 1
      recollect docs tree --after projects/lisbon/costs --json
    """
    root = memory_root().text if path is None else find_document(at.space, path).path
    nodes = _documents(at).tree(root, depth=depth or DEPTH_MAX, limit=limit, after=after)
    notes = ""
    if len(nodes) == limit:
        words = ["docs tree", *([shlex.quote(path)] if path else [])]
        words += [f"--depth {depth}"] if depth else []
        words += [f"--limit {limit}"] if limit != SHOWN else []
        notes = more(at, f"{' '.join(words)} --after {shlex.quote(one_line(nodes[-1].path))}")
    elif not nodes and after is None:
        example = f'recollect docs write people/ana "Ana lives in Lisbon."{at.arguments}'
        notes = f"No documents in space {at.quoted_space} yet. Write one: {example}"
    return Output(nodes, _tree_lines(nodes, root.count("/")), notes)


def _tree_lines(nodes: Sequence[Node], root_depth: int) -> Iterator[str]:
    """A line per document, indented; the first one shows its whole path."""
    for position, node in enumerate(nodes):
        name = node.path if position == 0 else node.path.rpartition("/")[2]
        bold = click.style(one_line(name), bold=node.has_children)
        indent = "  " * (node.depth - root_depth)
        yield f"{indent}{bold}{_about(node.title, node.description, node.path)}"


def _about(title: str, description: str, path: str) -> str:
    """What stands behind a path in a list; a title that is its slug says nothing new."""
    words = [] if title == path.rpartition("/")[2] else [one_line(title)]
    words += [shortened(description, DESCRIPTION_CHARS)] if description else []
    return f"  {': '.join(words)}" if words else ""


@command(docs)
def read(
    at: Target,
    path: TreePath,
    *,
    version: Annotated[
        int | None, Opt("Version N instead of the current one.", "N", at_least=1)
    ] = None,
    body: Annotated[bool, Opt("Only its text, without the head.")] = False,
) -> Output:
    """Show a document by its path, by a path it had before it was moved, or by its id.

    Examples:
      recollect docs read people/ana
      recollect docs read people/ana --version 2
      recollect docs read people/ana --body > ana.md
    """
    if body and at.as_json:
        raise click.UsageError("Give --body or --json, not both.")
    found: Document | Version
    if version is None:
        found = find_document(at.space, path)
        lines = _document_lines(found, at)
    else:
        with advice_on_missing():
            found = _documents(at).version(path, version)
        lines = _version_lines(found)
    if body:
        # A line end of two characters is no danger, and part of the text.
        return Output(None, ["\r\n".join(harmless(each) for each in found.body.split("\r\n"))])
    return Output(found, lines)


def _document_lines(document: Document, at: Target) -> Iterator[str]:
    children = _documents(at).tree(document.path, depth=1, limit=CHILDREN)[1:]
    keys = session_keys(at.space, [document])
    yield from _page(
        {
            "Document": document.path,
            "Id": document.id,
            "Version": f"{document.version}, {moment(document.updated_at)}",
            "By": _by(document.author, document.reason),
        },
        document,
        {
            "Sources": "; ".join(source_in_words(each, keys) for each in document.sources),
            "Facts": ", ".join(document.facts),
            "Below": ", ".join(node.path.rpartition("/")[2] for node in children),
        },
    )


def _version_lines(version: Version) -> Iterator[str]:
    yield from _page(
        {
            "Document": version.path,
            "Version": f"{version.number}, {version.event.value} {moment(version.at)}",
            "By": _by(version.author, version.reason),
        },
        version,
        {"Facts": ", ".join(version.facts)},
    )


def _page(
    first: Mapping[str, str], page: Document | Version, last: Mapping[str, str]
) -> Iterator[str]:
    own = {
        "Title": page.title,
        "About": page.description,
        "Tags": ", ".join(page.tags),
        "Links": ", ".join(page.links),
    }
    yield from labelled({**first, **own, **last})
    if page.body:
        yield ""
        yield harmless(page.body)


def _author(author: Author) -> str:
    return f"{author.name} ({author.kind.value})"


def _by(author: Author, reason: str) -> str:
    return _author(author) + (f": {reason}" if reason else "")


# Writing


@command(docs, makes_store=True)
def write(
    at: Target,
    path: TreePath,
    text: Text = None,
    *,
    file: File = None,
    title: Annotated[str | None, Opt("Default: as it was, or the last part of PATH.", "T")] = None,
    description: Annotated[str | None, Opt("What it is about, in a sentence.", "D")] = None,
    tags: Annotated[
        tuple[str, ...], Opt("Replaces its tags. May be given several times.", "T", "--tag")
    ] = (),
    links: Annotated[
        tuple[str, ...],
        Opt(
            "Refers to another document; replaces its links. May be given several times.",
            "PATH",
            "--link",
            read=read_tree_path,
        ),
    ] = (),
    expect: Annotated[
        int | None,
        Opt(
            "Refuse unless version N is the current one; 0: unless there is none.", "N", at_least=0
        ),
    ] = None,
    reason: Reason = "",
) -> Output:
    """Write a document, or a new version of it; missing parents are created.

    TEXT that is - or missing is read from standard input. Title, description, tags and links stay
    as they were unless they are given. Writing the current text again makes no version. Secrets are
    replaced by placeholders.

    Examples:
      recollect docs write people/ana "Ana lives in [[places/lisbon|Lisbon]]." --tag person
      recollect docs write projects/move --file move.md --title "The move" --reason planned
      recollect docs write people/ana "Ana lives in Porto." --expect 1
    """
    if file is not None and text is not None:
        raise click.UsageError("Give TEXT or a file, not both.")
    given = read_text(text, "recollect docs write PATH") if file is None else read_file(file)
    started = at.memory.clock.now()
    document = _documents(at).write(
        path,
        given,
        title=title,
        description=description,
        tags=tags or None,
        links=links or None,
        expected_version=expect,
        reason=reason,
    )
    if document.updated_at < started:
        return _did("Unchanged:", document)
    return _did("Wrote" if document.version > 1 else "Created", document)


def _did(what: str, document: Document) -> Output:
    return Output(document, f"{what} {one_line(document.path)}, version {document.version}.")


@command(docs)
def append(
    at: Target, path: TreePath, text: Text = None, *, expect: Expect = None, reason: Reason = ""
) -> Output:
    """Add TEXT to the end of a document, as a paragraph of its own.

    TEXT that is - or missing is read from standard input.

    Examples:
      recollect docs append people/ana "She likes long walks."
      date | recollect docs append projects/move/log -
    """
    added = read_text(text, "recollect docs append PATH")
    where = find_document(at.space, path).path
    document = _documents(at).append(where, added, expected_version=expect, reason=reason)
    return _did("Wrote", document)


@command(docs)
def patch(
    at: Target,
    path: TreePath,
    *,
    old: Annotated[
        str | None, Opt("The passage to replace; it has to occur exactly once.", "TEXT")
    ] = None,
    new: Annotated[str | None, Opt("What takes its place; empty removes it.", "TEXT")] = None,
    old_file: Annotated[BinaryIO | None, Opt("The passage, in a file.", "F")] = None,
    new_file: Annotated[BinaryIO | None, Opt("The replacement, in a file.", "F")] = None,
    expect: Expect = None,
    reason: Reason = "",
) -> Output:
    """Replace a passage that occurs in a document exactly once.

    Examples:
      recollect docs patch people/ana --old "in Lisbon" --new "in Porto"
      recollect docs patch projects/move --old-file before.md --new-file after.md
    """
    passage, replacement = _one_of("old", old, old_file), _one_of("new", new, new_file)
    if not passage:
        raise click.UsageError("--old is empty.")
    before = find_document(at.space, path)
    document = _documents(at).patch(
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

    Examples:
      recollect docs move people/ana friends/ana
      recollect docs move projects/move archive/2026/move --reason "It is done."
    """
    before = find_document(at.space, path)
    document = _documents(at).move(before.path, to, expected_version=expect, reason=reason)
    if document.version == before.version:
        return _did("Unchanged:", document)
    return Output(document, f"Moved {one_line(before.path)} to {one_line(document.path)}.")


@command(docs)
def delete(
    at: Target,
    path: TreePath,
    *,
    below: Annotated[bool, Opt("Include everything below it.")] = False,
    references: Annotated[
        str,
        Opt(
            "If others refer to it: refuse, leave their links broken, or unlink them.",
            choices=tuple(each.value for each in OnReferences),
        ),
    ] = OnReferences.REFUSE.value,
    expect: Expect = None,
    reason: Reason = "",
) -> Output:
    """Delete a document. It can be restored; purge removes it for good.

    Refused while other documents refer to it or stand below it, unless an option says what becomes
    of them. An unlinked text keeps the words of its links.

    Examples:
      recollect docs delete people/ana
      recollect docs delete projects/move --below --references unlink
    """
    where = find_document(at.space, path).path
    try:
        document = _documents(at).delete(
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
    version: Annotated[
        int | None, Opt("The text of version N, as a new version.", "N", at_least=1)
    ] = None,
    expect: Expect = None,
    reason: Reason = "",
) -> Output:
    """Bring back a deleted document, with what was deleted together with it, or an older version.

    Examples:
      recollect docs restore people/ana
      recollect docs restore people/ana --version 2
    """
    with advice_on_missing():
        document = _documents(at).restore(path, version, expected_version=expect, reason=reason)
    return _did("Restored", document)


# Versions, search and links


@command(docs)
def deleted(
    at: Target,
    path: MaybePath = None,
    *,
    limit: Limit = SHOWN,
    after: Annotated[str | None, Opt("The next page: what comes after it.", "ID")] = None,
) -> Output:
    """List what was deleted at PATH and below it, or in all of ~/memory; the last first.

    Examples:
      recollect docs deleted
      recollect docs deleted people
      recollect docs restore 0198c0de-…
    """
    gone = _documents(at).deleted(path or memory_root().text, limit=limit, after=after)
    notes = ""
    if len(gone) == limit:
        notes = more(at, f"docs deleted --after {gone[-1].id}")
    elif not gone and after is None:
        notes = "Nothing was deleted there, or it was purged."
    return Output(gone, _deleted_lines(gone), notes)


def _deleted_lines(gone: Sequence[DeletedDocument]) -> Iterator[str]:
    rows = [(each.path, moment(each.deleted_at), str(each.version), each.id) for each in gone]
    return table(DELETED_HEADERS, rows) if rows else iter(())


@command(docs)
def history(
    at: Target,
    path: TreePath,
    *,
    limit: Annotated[int, limit_of("versions")] = VERSIONS,
    before: Annotated[
        int | None, Opt("The next page: the versions before this one.", "N", at_least=1)
    ] = None,
) -> Output:
    """List the versions of a document, newest first; also of one that was deleted.

    Examples:
      recollect docs history people/ana
      recollect docs history people/ana --json
    """
    with advice_on_missing():
        versions = _documents(at).history(path, limit, before)
    rows = [
        (
            str(version.number),
            moment(version.at),
            version.event.value,
            _author(version.author),
            version.path,
            version.reason or NONE,
        )
        for version in versions
    ]
    notes = ""
    if versions and versions[-1].number > 1:
        page = "" if limit == VERSIONS else f" --limit {limit}"
        last = f"--before {versions[-1].number}{page}"
        notes = f"There is more: recollect docs history {shlex.quote(path)} {last}{at.arguments}"
    return Output(versions, table(VERSION_HEADERS, rows) if rows else (), notes)


@command(docs)
def diff(
    at: Target, path: TreePath, a: Number, b: Annotated[int | None, Arg(at_least=1)] = None
) -> Output:
    """Show what changed from version A to version B, or to the newest one.

    Examples:
      recollect docs diff people/ana 1
      recollect docs diff people/ana 2 3
    """
    with advice_on_missing():
        newest = _documents(at).history(path, limit=1)[0].number if b is None else b
        text = _documents(at).diff(path, a, newest)
    notes = "" if text else f"Versions {a} and {newest} say the same."
    value = {"path": path, "from": a, "to": newest, "diff": text}
    return Output(value, diff_lines(text) if text else (), notes)


def diff_lines(diff: str) -> Iterator[str]:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.split("\n"):
        yield click.style(harmless(line), fg=colours.get(line[:1]))


@command(docs)
def search(
    at: Target,
    words: Annotated[Words, Arg()],
    *,
    below: Annotated[
        str | None,
        Opt("Only there and below it.", "PATH", read=read_tree_path, complete=known_paths),
    ] = None,
    limit: Limit = 10,
) -> Output:
    """Find documents with any of the WORDS in title, description or text, the best first.

    Examples:
      recollect docs search dinner Lisbon
      recollect docs search allergy --below people --json
    """
    where = None if below is None else find_document(at.space, below).path
    found = _documents(at).search(" ".join(words), limit, below=where)
    notes = "" if found else f"Nothing found. See all: recollect docs tree{at.arguments}"
    return Output(found, (line for each in found for line in _found_lines(each)), notes)


def _found_lines(document: Document) -> Iterator[str]:
    about = _about(document.title, document.description, document.path)
    yield f"{click.style(one_line(document.path), bold=True)}{about}"
    if document.body.strip():
        yield f"    {shortened(document.body, 2 * DESCRIPTION_CHARS)}"


@command(docs)
def links(
    at: Target,
    path: MaybePath = None,
    *,
    broken: Annotated[bool, Opt("All links that lead to no document.")] = False,
    orphans: Annotated[bool, Opt("All documents that no other one mentions.")] = False,
    limit: Annotated[int, limit_of("broken links or orphans")] = 100,
) -> Output:
    """Show what a document refers to and what refers to it; or what is wrong with the links.

    A link in a text is [[path]] or [[path|words to show]]. One to a document that does not exist
    yet is kept, and leads there once it is written.

    Examples:
      recollect docs links people/ana
      recollect docs links --broken
      recollect docs links --orphans --json
    """
    if [path is not None, broken, orphans].count(True) != 1:
        raise click.UsageError("Give exactly one of PATH, --broken and --orphans.")
    if path is not None:
        document = find_document(at.space, path)
        found = _documents(at).links(document.path)
        return Output({"path": document.path, **view(found)}, _link_lines(found))
    if broken:
        bad = _documents(at).broken_links(limit)
        lines = (f"{one_line(each.source)} → {_referred(each.target, each)}" for each in bad)
        return Output(bad, lines, "" if bad else "Every link leads to a document.")
    alone = _documents(at).orphans(limit)
    notes = "" if alone else "Every document is mentioned by another one."
    return Output(alone, map(one_line, alone), notes)


def _link_lines(found: Links) -> Iterator[str]:
    """What a document refers to, then what refers to it."""
    yield from (f"→ {_referred(each.target, each)}" for each in found.outgoing)
    yield from (f"← {_referred(each.source, each)}" for each in found.incoming)


def _referred(path: str, reference: Reference) -> str:
    alias = f", “{one_line(reference.alias)}”" if reference.alias else ""
    broken = click.style("  broken", fg="yellow") if reference.is_broken else ""
    return f"{one_line(path)}  ({reference.kind.value}{alias}){broken}"


# Files


@command(docs)
def publish(
    at: Target,
    directory: Directory,
    *,
    path: Annotated[
        str | None,
        Opt(
            "Only this document and what is below it. Default: what was published there before, or"
            " all of ~/memory.",
            "PATH",
            read=read_tree_path,
        ),
    ] = None,
    discard_edits: Annotated[
        bool,
        Opt(
            "Publish although files were edited and not loaded. Everything in DIRECTORY is then"
            " kept beside it, hidden, under a name ending in -edited."
        ),
    ] = False,
) -> Output:
    """Write the tree as Markdown files into DIRECTORY, which is created if necessary.

    It changes in one step: readers see the tree before or after, never half of it. Only files that
    changed are written. Refused while edits in it are not loaded; what is not from Recollect (.git,
    attachments) counts as an edit, so keep that elsewhere. A shell inside DIRECTORY sees the new
    files after entering it again.

    Examples:
      recollect docs publish notes
      recollect docs publish team --path projects/move
    """
    documents = _documents(at)
    try:
        with progress_bar(as_json=at.as_json) as show:
            published = documents.publish(
                directory,
                path=path,
                discard_edits=discard_edits,
                progress=lambda done, of: show(f"{done:,} of {of:,} documents", done, of),
            )
    except UnloadedEdits as error:
        load_it = f"recollect docs load {_quoted(directory)}{at.arguments}"
        ways = f"{load_it}, or publish with --discard-edits"
        raise UnloadedEdits(f"{error}. {ways}", files=error.files) from error
    kept = [
        f"Edits that were not loaded are kept in {_quoted(each)} until you remove it."
        for each in published.kept_aside
    ]
    return Output(published, _published_in_words(published), kept)


def _published_in_words(published: Publication) -> str:
    counts = [f"{published.written:,} written", f"{published.kept:,} as before"]
    counts += [f"{published.removed:,} removed"] if published.removed else []
    where = f"{one_line(published.directory)}, generation {published.generation}"
    documents = counted(published.documents, "document")
    return f"Published {documents} to {where}: {', '.join(counts)}."


@command(docs, makes_store=True)
def load(
    at: Target,
    directory: Directory,
    *,
    path: Annotated[
        str | None,
        Opt(
            "Load it to there. Default: where it was published from, or ~/memory.",
            "PATH",
            read=read_tree_path,
        ),
    ] = None,
    dry_run: Annotated[bool, Opt("Only show what would be done.")] = False,
    allow_deletions: Annotated[
        bool, Opt("Even if all documents would be deleted, or more than half and more than 10.")
    ] = False,
) -> Output:
    """Load what people changed in DIRECTORY: new files, edits, moves and deletions.

    If a document has changed since its file was made, there is a conflict: the document stays, and
    the file is kept as a copy beside DIRECTORY; the output says where. A directory that was never
    published can be loaded, too. Exit code 1: not everything was loaded.

    Examples:
      recollect docs load notes --dry-run
      recollect docs load notes
      recollect docs load old-wiki --path archive/wiki
    """
    loading = _documents(at).load(
        directory, path=path, dry_run=dry_run, allow_deletions=allow_deletions
    )
    value = {"dry_run": dry_run, **view(loading)}
    lines = _loading_lines(loading, dry_run=dry_run)
    is_done = not loading.conflicts and not loading.problems
    return Output(value, lines, _advice(at, directory, loading), exit_code=0 if is_done else 1)


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
        yield from _sides(conflict)
    for problem in loading.problems:
        heading = click.style("Not loaded:", fg="yellow")
        yield f"{heading} {one_line(problem.file)}: {one_line(problem.reason)}"


def _sides(conflict: Conflict) -> Iterator[str]:
    """What each of them says, and where the file is kept."""
    for whose, text in (("the document", conflict.ours), ("the file", conflict.theirs)):
        if text:
            yield f"    {whose} says:"
            yield indented(harmless(text))
    if conflict.copy:
        yield f"    the file is kept as {one_line(conflict.copy)}"


def _advice(at: Target, directory: str, loading: Loading) -> str:
    if loading.is_nothing:
        return "Nothing to load: the files say what the documents say."
    if loading.conflicts and loading.is_published:
        publish = f"recollect docs publish {_quoted(directory)}{at.arguments}"
        return (
            "What the files said is kept beside them. To go on from what the documents say:"
            f" {publish}, change the files, and load again."
        )
    return "Resolve each conflict as it says, then load again." if loading.conflicts else ""


def _quoted(directory: str) -> str:
    return shlex.quote(one_line(directory))


@command(docs)
def purge(at: Target, path: TreePath, *, yes: Yes = False) -> Output:
    """Remove for good what stands or stood at PATH and below it, with every version.

    Nothing of it can be restored. Links to it from elsewhere are broken from then on.

    Examples:
      recollect docs purge people/ana
      recollect docs purge projects/secret --yes --json
    """
    where = read_path(path).text
    confirm("", yes=yes)
    documents = _documents(at)
    confirm(f"Purge {one_line(where)}, everything below it and every version", yes=yes)
    purged = documents.purge(path)
    if not purged.documents:
        # An old path or an id is not followed: what is removed for good is named as it stands.
        elsewhere = documents.find(path)
        stands = "" if elsewhere is None else f"; purge it where it stands: {elsewhere.path}"
        raise NotFound(f"nothing stands or stood at {path!r} in space {at.space_name!r}{stands}")
    counts = f"{counted(purged.documents, 'document')}, {counted(purged.versions, 'version')}"
    read = "The store is in use; its log keeps the bytes until the next write."
    return Output(
        {"space": at.space_name, "path": where, **view(purged)},
        f"Purged {one_line(where)}: {counts}.",
        "" if purged.is_clean else read,
    )
