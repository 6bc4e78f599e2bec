"""`recollect docs tree | read | history | diff | search | links`: what is in the tree."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import click

from recollect.document import Author, DeletedDocument, Document, Node, Reference, Version
from recollect.documents.paths import DEPTH_MAX, memory_root
from recollect.documents.tree import Links
from recollect.interfaces.cli.arguments import (
    advice_on_missing,
    find_document,
    limit_option,
    path_argument,
    read_given_path,
    session_keys,
)
from recollect.interfaces.cli.fact_lines import source_in_words
from recollect.interfaces.cli.options import known_paths
from recollect.interfaces.cli.output import (
    NONE,
    harmless,
    labelled,
    moment,
    note,
    one_line,
    shortened,
    table,
    write,
    write_json,
)
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view

DESCRIPTION_CHARS = 100  # of a document in a list
DELETED_HEADERS = ("PATH", "DELETED", "VERSION", "ID")
VERSION_HEADERS = ("VERSION", "WHEN", "EVENT", "BY", "PATH", "REASON")


def tree_lines(nodes: Sequence[Node], root_depth: int) -> Iterator[str]:
    """A line per document, indented; the first one says where on the tree it stands."""
    for position, node in enumerate(nodes):
        name = node.path if position == 0 else node.path.rpartition("/")[2]
        indent = "  " * (node.depth - root_depth)
        bold = click.style(one_line(name), bold=node.has_children)
        yield f"{indent}{bold}{_about(node.title, node.description, node.path)}"


def deleted_lines(documents: Sequence[DeletedDocument]) -> Iterator[str]:
    """A line for each, with the id by which it is brought back."""
    if documents:
        rows = [
            (one_line(each.path), moment(each.deleted_at), str(each.version), each.id)
            for each in documents
        ]
        yield from table(DELETED_HEADERS, rows)


def found_lines(document: Document) -> Iterator[str]:
    """A document in a list of what was found."""
    about = _about(document.title, document.description, document.path)
    yield f"{click.style(one_line(document.path), bold=True)}{about}"
    if document.body.strip():
        yield f"    {shortened(document.body, 2 * DESCRIPTION_CHARS)}"


def _about(title: str, description: str, path: str) -> str:
    """What stands behind a path in a list; a title that is its slug says nothing new."""
    words = [] if title == path.rpartition("/")[2] else [one_line(title)]
    words += [shortened(description, DESCRIPTION_CHARS)] if description else []
    return f"  {': '.join(words)}" if words else ""


def document_lines(
    document: Document, children: Sequence[Node], keys: Mapping[str, str]
) -> Iterator[str]:
    """A document in full; `keys` are the stable keys of sessions, by id."""
    names = [node.path.rpartition("/")[2] for node in children]
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
            "Below": ", ".join(names),
        },
    )


def version_lines(version: Version) -> Iterator[str]:
    """A version in full."""
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
    said = {
        "Title": page.title,
        "About": page.description,
        "Tags": ", ".join(page.tags),
        "Links": ", ".join(page.links),
    }
    values = {**first, **said, **last}
    yield from labelled({name: value for name, value in values.items() if value})
    if page.body:
        yield ""
        yield harmless(page.body)


def history_table(versions: Sequence[Version]) -> Iterator[str]:
    rows = [
        (
            str(version.number),
            moment(version.at),
            version.event.value,
            author_in_words(version.author),
            version.path,
            version.reason or NONE,
        )
        for version in versions
    ]
    return table(VERSION_HEADERS, rows)


def diff_lines(diff: str) -> Iterator[str]:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.split("\n"):
        yield click.style(harmless(line), fg=colours.get(line[:1]))


def link_lines(links: Links) -> Iterator[str]:
    """What a document refers to, then what refers to it."""
    for reference in links.outgoing:
        yield f"→ {one_line(reference.target)}{_kind(reference)}"
    for reference in links.incoming:
        yield f"← {one_line(reference.source)}{_kind(reference)}"


def broken_line(reference: Reference) -> str:
    return f"{one_line(reference.source)} → {one_line(reference.target)}{_kind(reference)}"


def _kind(reference: Reference) -> str:
    alias = f", “{one_line(reference.alias)}”" if reference.alias else ""
    broken = click.style("  broken", fg="yellow") if reference.is_broken else ""
    return f"  ({reference.kind.value}{alias}){broken}"


def author_in_words(author: Author) -> str:
    return f"{author.name} ({author.kind.value})"


def _by(author: Author, reason: str) -> str:
    return author_in_words(author) + (f": {reason}" if reason else "")


SHOWN = 200
FOUND = 10
VERSIONS = 50
CHILDREN = 20  # named with a document; the tree has all


@click.command("tree")
@click.argument("path", callback=read_given_path, required=False, shell_complete=known_paths)
@click.option(
    "--depth", type=click.IntRange(1, DEPTH_MAX), metavar="N", help="Only N levels below PATH."
)
@limit_option(SHOWN, "documents")
@click.option(
    "--after", callback=read_given_path, metavar="PATH", help="The next page: what comes after it."
)
@with_target
def tree(
    target: Target, path: str | None, depth: int | None, limit: int, after: str | None
) -> None:
    """Show the documents below PATH, or all of ~/memory.

    \b
    Examples:
      recollect docs tree
      recollect docs tree people --depth 1
      recollect docs tree --after projects/lisbon/costs --json
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        root = memory_root().text if path is None else find_document(space, path).path
        nodes = space.documents.tree(root, depth=depth or DEPTH_MAX, limit=limit, after=after)
    if target.as_json:
        write_json(view(nodes))
        return
    for line in tree_lines(nodes, root.count("/")):
        write(line)
    if len(nodes) == limit:
        words = [shlex.quote(path)] if path else []
        words += [f"--depth {depth}"] if depth else []
        words += [f"--limit {limit}"] if limit != SHOWN else []
        last = f"--after {shlex.quote(one_line(nodes[-1].path))}"
        more = " ".join(["recollect docs tree", *words, last])
        note(f"There may be more: {more}{target.arguments}")
    elif not nodes and after is None:
        space_name = one_line(target.space_name)
        example = f'recollect docs write people/ana "Ana lives in Lisbon."{target.arguments}'
        note(f"No documents in space {space_name!r} yet. Write one: {example}")


@click.command("deleted")
@click.argument("path", callback=read_given_path, required=False, shell_complete=known_paths)
@limit_option(SHOWN, "documents")
@click.option("--after", metavar="ID", help="The next page: what comes after it.")
@with_target
def deleted(target: Target, path: str | None, limit: int, after: str | None) -> None:
    """Show what was deleted at PATH and below it, or in all of ~/memory; the last first.

    \b
    Examples:
      recollect docs deleted
      recollect docs deleted people
      recollect docs restore 0198c0de-…
    """
    with target.open_existing() as memory:
        documents = memory.space(target.space_name).documents
        gone = documents.deleted(path or memory_root().text, limit=limit, after=after)
    if target.as_json:
        write_json(view(gone))
        return
    for line in deleted_lines(gone):
        write(line)
    if len(gone) == limit:
        note(f"There may be more: recollect docs deleted --after {gone[-1].id}{target.arguments}")
    elif not gone and after is None:
        note("Nothing was deleted there, or it was purged.")


@click.command("read")
@path_argument
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="As it was in version N.")
@click.option("--body", "is_body", is_flag=True, help="Only its text, without the head.")
@with_target
def read(target: Target, path: str, version: int | None, is_body: bool) -> None:
    """Show a document, by its path, by one it had before it was moved, or by its id.

    \b
    Examples:
      recollect docs read people/ana
      recollect docs read people/ana --version 2
      recollect docs read people/ana --body > ana.md
    """
    if is_body and target.as_json:
        raise click.UsageError("Give --body or --json, not both.")
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        if version is not None:
            with advice_on_missing():
                found = space.documents.version(path, version)
            shape, body, lines = view(found), found.body, version_lines(found)
        else:
            document = find_document(space, path)
            children = space.documents.tree(document.path, depth=1, limit=CHILDREN)[1:]
            keys = session_keys(space, [document])
            shape, body = view(document), document.body
            lines = document_lines(document, children, keys)
    if target.as_json:
        write_json(shape)
    elif is_body:
        # A line end of two characters is no danger, and part of the text.
        write("\r\n".join(harmless(each) for each in body.split("\r\n")))
    else:
        for line in lines:
            write(line)


@click.command("history")
@path_argument
@limit_option(VERSIONS, "versions")
@click.option(
    "--before",
    type=click.IntRange(min=1),
    metavar="N",
    help="The next page: the versions before this one.",
)
@with_target
def history(target: Target, path: str, limit: int, before: int | None) -> None:
    """Show a document's versions, the newest first; also of one that was deleted.

    \b
    Examples:
      recollect docs history people/ana
      recollect docs history people/ana --json
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        with advice_on_missing():
            versions = space.documents.history(path, limit, before)
    if target.as_json:
        write_json(view(versions))
        return
    if versions:
        for line in history_table(versions):
            write(line)
    if versions and versions[-1].number > 1:
        page = "" if limit == VERSIONS else f" --limit {limit}"
        last = f"--before {versions[-1].number}{page}"
        more = f"recollect docs history {shlex.quote(path)} {last}"
        note(f"There is more: {more}{target.arguments}")


@click.command("diff")
@path_argument
@click.argument("a", type=click.IntRange(min=1))
@click.argument("b", type=click.IntRange(min=1), required=False)
@with_target
def diff(target: Target, path: str, a: int, b: int | None) -> None:
    """Show what changed from version A to version B, or to the newest one.

    \b
    Examples:
      recollect docs diff people/ana 1
      recollect docs diff people/ana 2 3
    """
    with target.open_existing() as memory, advice_on_missing():
        documents = memory.space(target.space_name).documents
        newest = documents.history(path, limit=1)[0].number if b is None else b
        text = documents.diff(path, a, newest)
    if target.as_json:
        write_json({"path": path, "from": a, "to": newest, "diff": text})
    elif text:
        for line in diff_lines(text):
            write(line)
    else:
        note(f"Versions {a} and {newest} say the same.")


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--below",
    callback=read_given_path,
    shell_complete=known_paths,
    metavar="PATH",
    help="Only there and below it.",
)
@limit_option(FOUND, "documents")
@with_target
def search(target: Target, words: tuple[str, ...], below: str | None, limit: int) -> None:
    """Find documents with any of the WORDS in title, description or text, the best first.

    \b
    Examples:
      recollect docs search dinner Lisbon
      recollect docs search allergy --below people --json
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        where = None if below is None else find_document(space, below).path
        found = space.documents.search(" ".join(words), limit, below=where)
    if target.as_json:
        write_json(view(found))
        return
    for document in found:
        for line in found_lines(document):
            write(line)
    if not found:
        note(f"Nothing found. See all: recollect docs tree{target.arguments}")


@click.command("links")
@click.argument("path", callback=read_given_path, required=False, shell_complete=known_paths)
@click.option("--broken", is_flag=True, help="All links that lead to no document.")
@click.option("--orphans", is_flag=True, help="All documents that no other one mentions.")
@limit_option(100, "broken links or orphans")
@with_target
def links(target: Target, path: str | None, broken: bool, orphans: bool, limit: int) -> None:
    """Show what a document refers to and what refers to it; or what is wrong with the links.

    A link in a text is [[path]] or [[path|words to show]]. One to a document that is not there yet
    is kept, and leads there once it is written.

    \b
    Examples:
      recollect docs links people/ana
      recollect docs links --broken
      recollect docs links --orphans --json
    """
    if [path is not None, broken, orphans].count(True) != 1:
        raise click.UsageError("Give a PATH, --broken or --orphans, and one of them only.")
    if path is not None:
        _links_of(target, path)
    elif broken:
        _broken(target, limit)
    else:
        _orphans(target, limit)


def _links_of(target: Target, path: str) -> None:
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        document = find_document(space, path)
        found = space.documents.links(document.path)
    if target.as_json:
        write_json({"path": document.path, **view(found)})
        return
    for line in link_lines(found):
        write(line)


def _broken(target: Target, limit: int) -> None:
    with target.open_existing() as memory:
        found = memory.space(target.space_name).documents.broken_links(limit)
    if target.as_json:
        write_json(view(found))
        return
    for each in found:
        write(broken_line(each))
    if not found:
        note("Every link leads to a document.")


def _orphans(target: Target, limit: int) -> None:
    with target.open_existing() as memory:
        found = memory.space(target.space_name).documents.orphans(limit)
    if target.as_json:
        write_json(found)
        return
    for path in found:
        write(one_line(path))
    if not found:
        note("Every document is mentioned by another one.")
