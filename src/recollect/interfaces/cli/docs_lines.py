"""Documents as people read them: a tree, a page with its head, versions, differences and links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from recollect.document import Author, DeletedDocument, Document, Node, Reference, Version
from recollect.documents.tree import Links
from recollect.interfaces.cli.fact_lines import source_in_words
from recollect.interfaces.cli.output import (
    NONE,
    harmless,
    labelled,
    moment,
    one_line,
    shortened,
    table,
)

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
