"""The document tools that an agent calls: six names, plain text in answer, never an exception.

What a model did wrong comes back as a text that says what to do instead; what is wrong with the
store is the caller's, and raised. Whose tree it is, and how much of it, is the holder's of what is
handed in: nothing here looks past that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recollect.document import Document, Version
from recollect.documents.changeset import Changeset
from recollect.documents.editing import Editor
from recollect.documents.paths import read_path
from recollect.documents.reading import is_id
from recollect.documents.tool_schemas import checked_arguments, tool_definitions
from recollect.documents.tool_texts import (
    body_lines,
    excerpt_of,
    matched_line,
    node_line,
    quoted,
)
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidValue,
    NotAllowed,
    NotFound,
    StaleVersion,
)
from recollect.terms import search_terms

__all__ = ["DocumentTools", "tool_definitions"]

CHILDREN_SHOWN = 50
LINKS_SHOWN = 50
TREE_LIMIT = 100
SEARCH_LIMIT = 10


class DocumentTools:
    """The tools over one holder's documents, or over a changeset of it.

    `shown` is told of each document that an answer shows the text of, or a line of it.
    """

    def __init__(
        self, documents: Editor, shown: Callable[[Document], None] = lambda _: None
    ) -> None:
        self._documents = documents
        self._shown = shown
        self._done = "Prepared" if isinstance(documents, Changeset) else "Saved"
        self._handlers = {
            "document_read": self._read,
            "document_write": self._write,
            "document_append": self._append,
            "document_patch": self._patch,
            "document_tree": self._tree,
            "document_search": self._search,
        }

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Do what a model asks for; the arguments are a mapping, or the JSON text of one."""
        try:
            checked = checked_arguments(name, arguments)
            return self._handlers[name](checked)
        except StaleVersion as error:
            return (
                f"Error: {error}\nThe current version is {error.current}: read the document, then "
                f"repeat the change with expected_version {error.current}."
            )
        except DocumentExists as error:
            return f"Error: {error}\nRead it first, and give the version you have read."
        except NotFound as error:
            return f"Error: {error}\ndocument_tree and document_search show what there is."
        except (InvalidValue, NotAllowed, DocumentReferenced) as error:
            return f"Error: {error}"

    # read

    def _read(self, given: dict[str, Any]) -> str:
        path = given["path"]
        top = self._documents.holder.top
        if (
            not is_id(path)
            and read_path(path).key == top.key
            and self._documents.find(path) is None
        ):
            return self._tree({})
        found = self._documents.read(path)
        self._shown(found)
        shown: Document | Version = found
        which = f"{found.version} (the newest)"
        if given.get("version", found.version) != found.version:
            shown = self._documents.version(found.id, given["version"])
            which = f"{shown.number} (the newest is {found.version})"
        page = excerpt_of(
            shown.body, given.get("from_line", 1), given.get("to_line"), given.get("from_column", 1)
        )
        is_root = read_path(found.path).key == top.key
        return "\n".join(
            [
                f"path: {quoted(found.path)}",
                f"id: {found.id}",
                f"version: {which}",
                *_head(shown),
                *body_lines(page),
                *([self._tree({})] if is_root else self._children(found)),
            ]
        )

    def _children(self, document: Document) -> list[str]:
        found = self._documents.tree(document.path, depth=1, limit=CHILDREN_SHOWN + 2)[1:]
        if not found:
            return ["Nothing stands below it."]
        lines = ["directly below it:", *map(node_line, found[:CHILDREN_SHOWN])]
        if len(found) > CHILDREN_SHOWN:
            last = found[CHILDREN_SHOWN - 1].path
            lines.append(
                f"There are more: call document_tree with path {quoted(document.path)}, depth 1 "
                f"and after {quoted(last)}."
            )
        return lines

    # change

    def _write(self, given: dict[str, Any]) -> str:
        path = given.pop("path")
        if is_id(path):
            path = self._documents.read(path).path
        return self._told(self._documents.write(path, given.pop("body"), **given))

    def _append(self, given: dict[str, Any]) -> str:
        return self._told(self._documents.append(given.pop("path"), given.pop("text"), **given))

    def _patch(self, given: dict[str, Any]) -> str:
        path, old, new = given.pop("path"), given.pop("old"), given.pop("new")
        return self._told(self._documents.patch(path, old, new, **given))

    def _told(self, changed: Document) -> str:
        return f"{self._done}: {quoted(changed.path)} is at version {changed.version}."

    # look around

    def _tree(self, given: dict[str, Any]) -> str:
        limit = given.pop("limit", TREE_LIMIT)
        path = given.pop("path", None)
        found = self._documents.tree(path, limit=limit + 1, **given)
        shown = self._documents.holder.top.text if path is None else path
        if not found:
            more = "Nothing more stands" if "after" in given else "There is nothing"
            return f"{more} at {quoted(shown)} or below it."
        lines = [f"documents at {quoted(shown)} and below:", *map(node_line, found[:limit])]
        if len(found) > limit:
            again = f"call document_tree again with after {quoted(found[limit - 1].path)}"
            lines.append(f"There are more: {again}.")
        return "\n".join(lines)

    def _search(self, given: dict[str, Any]) -> str:
        limit, offset = given.get("limit", SEARCH_LIMIT), given.get("offset", 0)
        query = given["query"]
        found = self._documents.search(query, offset + limit + 1, below=given.get("below"))
        page = found[offset : offset + limit]
        if not page:
            return "Nothing more was found." if offset else "Nothing was found: try other words."
        lines = [f"hits {offset + 1} to {offset + len(page)}, the best first:"]
        for each in page:
            self._shown(each)
            lines.append(f"- {quoted(each.path)} {quoted(each.title)} (version {each.version})")
            lines.append(f"  {quoted(matched_line(each, search_terms(query)))}")
        if len(found) > offset + limit:
            lines.append(f"There are more: call it again with offset {offset + limit}.")
        return "\n".join(lines)


def _head(shown: Document | Version) -> list[str]:
    lines = [f"title: {quoted(shown.title)}"]
    if shown.description:
        lines.append(f"description: {quoted(shown.description)}")
    if shown.tags:
        lines.append(f"tags: {', '.join(map(quoted, shown.tags))}")
    if shown.links:
        lines.append(f"links: {', '.join(map(quoted, shown.links[:LINKS_SHOWN]))}")
    if len(shown.links) > LINKS_SHOWN:
        lines.append(f"and {len(shown.links) - LINKS_SHOWN:,} links more, which stay as they are.")
    return lines
