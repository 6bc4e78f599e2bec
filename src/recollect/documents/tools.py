"""The document tools for models: names, schemas, and the check of a call's arguments. Pure.

The JSON Schema that a model is shown is also what its arguments are checked against, so that an
error about an argument never contradicts it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

from recollect.documents.editing import Editor
from recollect.documents.paths import read_path
from recollect.documents.reading import is_id
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidValue,
    NotAllowed,
    NotFound,
    StaleVersion,
)
from recollect.stemming import search_terms
from recollect.types.pages import Document, Node, Version

TREE_LIMIT_MAX = 500
SEARCH_LIMIT_MAX = 50
SEARCH_OFFSET_MAX = 500

Schema = dict[str, Any]


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _texts(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _number(description: str, minimum: int, maximum: int | None = None) -> Schema:
    upper = {} if maximum is None else {"maximum": maximum}
    return {"type": "integer", "minimum": minimum, **upper, "description": description}


def _tool(description: str, required: Sequence[str] = (), /, **properties: Schema) -> Schema:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return {"description": description, "schema": schema}


_PATH = _text("A path such as ~/memory/people/ana, or the id of a document.")
_WHY = {
    "expected_version": _number(
        "The version you have read; refused if there is a newer one. "
        "0: there must be no document yet.",
        0,
    ),
    "reason": _text("Why, in a few words; kept with the version."),
}

TOOLS: Mapping[str, Schema] = {
    "document_read": _tool(
        "Read a document: what it says, its version, and what stands directly below it. The "
        "root of memory shows the tree instead. A long document comes in pages.",
        ["path"],
        path=_PATH,
        version=_number("An earlier version instead of the newest.", 1),
        from_line=_number("The first line wanted.", 1),
        to_line=_number("The last line wanted.", 1),
        from_column=_number("Where in the first line to begin; for a line longer than a page.", 1),
    ),
    "document_write": _tool(
        "Make a document, or replace all it says by a new version. What is not given (title, "
        "description, tags, links) stays as it is. Other pages are linked as [[~/memory/path]].",
        ["path", "body"],
        path=_text("A path such as ~/memory/people/ana; pages above it are made if missing."),
        body=_text("The whole text, in Markdown."),
        title=_text("A short title."),
        description=_text("One sentence on what it is about."),
        tags=_texts("Tags."),
        links=_texts("Paths of related documents."),
        **_WHY,
    ),
    "document_append": _tool(
        "Add a paragraph to the end of a document that exists.",
        ["path", "text"],
        path=_PATH,
        text=_text("What to add."),
        **_WHY,
    ),
    "document_patch": _tool(
        "Replace one passage of a document. The passage must occur in it exactly once, to the "
        "letter.",
        ["path", "old", "new"],
        path=_PATH,
        old=_text("The passage, exactly as in the document."),
        new=_text("What to put in its place; may be empty."),
        **_WHY,
    ),
    "document_tree": _tool(
        "List the documents below a path, each before what stands below it, a page at a time.",
        path=_text("A path or an id, where to begin; the root if left out."),
        depth=_number("How many levels below it; all if left out.", 0, 16),
        limit=_number("Lines of one page, 100 if left out.", 1, TREE_LIMIT_MAX),
        after=_text("The last path of the page before."),
    ),
    "document_search": _tool(
        "Find documents by words, the best first. Any text is a legal query.",
        ["query"],
        query=_text("Words, or a question."),
        below=_text("Only below this path, or this id."),
        limit=_number("Hits of one page, 10 if left out.", 1, SEARCH_LIMIT_MAX),
        offset=_number("How many hits to pass over.", 0, SEARCH_OFFSET_MAX),
    ),
}


def tool_definitions(style: Literal["openai", "anthropic"] = "openai") -> list[dict[str, Any]]:
    """The tools as a model's API is told of them; a copy, to be changed at will."""
    if style not in ("openai", "anthropic"):
        raise InvalidValue(f"a style is openai or anthropic: {style!r}")
    made = []
    for name, tool in TOOLS.items():
        schema = deepcopy(tool["schema"])
        if style == "anthropic":
            said = {"name": name, "description": tool["description"], "input_schema": schema}
        else:
            function = {"name": name, "description": tool["description"], "parameters": schema}
            said = {"type": "function", "function": function}
        made.append(said)
    return made


def checked_arguments(name: str, given: object) -> dict[str, Any]:
    """The arguments of a call, exactly as its schema wants them. InvalidValue says what to do."""
    tool = TOOLS.get(name)
    if tool is None:
        raise InvalidValue(f"there is no tool {name!r}: use one of {', '.join(TOOLS)}")
    arguments = _as_mapping(name, given)
    properties: Mapping[str, Mapping[str, Any]] = tool["schema"]["properties"]
    unknown = sorted(set(arguments) - set(properties))
    if unknown:
        raise InvalidValue(
            f"{name} takes no {', '.join(unknown)}: leave that out; it takes "
            f"{', '.join(properties)}"
        )
    missing = [each for each in tool["schema"]["required"] if each not in arguments]
    if missing:
        raise InvalidValue(f"{name} needs {', '.join(missing)}: call it again with that")
    for key, value in arguments.items():
        _check(f"{name}: {key}", properties[key], value)
    return arguments


def _as_mapping(name: str, given: object) -> dict[str, Any]:
    """Some APIs hand over the arguments as the JSON text that the model wrote."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            raise InvalidValue(f"the arguments of {name} are not JSON: send one object") from None
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidValue(f"the arguments of {name} are one JSON object with named values")
    return dict(given)


def _check(what: str, schema: Mapping[str, Any], value: object) -> None:
    match schema["type"]:
        case "string":
            if not isinstance(value, str):
                raise InvalidValue(f"{what} is a text, not {_said(value)}")
        case "integer":
            _check_integer(what, schema, value)
        case _:
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise InvalidValue(f"{what} is a list of texts, not {_said(value)}")


def _check_integer(what: str, schema: Mapping[str, Any], value: object) -> None:
    if type(value) is not int:  # a bool is no number
        raise InvalidValue(f"{what} is a whole number, not {_said(value)}")
    lowest, highest = schema.get("minimum", 0), schema.get("maximum", 2**53)
    if not lowest <= value <= highest:
        bounds = f"{lowest} to {highest}" if "maximum" in schema else f"{lowest} on"
        raise InvalidValue(f"{what} is a whole number from {bounds}, not {value}")


def _said(value: object) -> str:
    match value:
        case None:
            return "null: leave it out instead"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list of other things"
        case _:
            return "an object"


PAGE_CHARS = 20_000
LINE_CHARS = 160

_TICKS = re.compile("`+")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def excerpt(body: str, first: int, last: int | None, column: int) -> list[str]:
    """From one line to another, counted from 1, as much as fits on a page, between fences.

    With how to get what follows.
    """
    lines = body.removesuffix("\n").split("\n")
    if first > len(lines):
        raise InvalidValue(f"from_line is {first}, and the document has {len(lines)} lines")
    if last is not None and last < first:
        raise InvalidValue(f"to_line is {last}, before from_line, which is {first}")
    if column > max(1, len(lines[first - 1])):
        raise InvalidValue(
            f"from_column is {column}, and line {first} has {len(lines[first - 1])} characters"
        )
    end = len(lines) if last is None else min(last, len(lines))
    wanted = [lines[first - 1][column - 1 :], *lines[first:end]]
    taken, room = 0, PAGE_CHARS
    while taken < len(wanted) and len(wanted[taken]) <= room:
        room -= len(wanted[taken]) + 1
        taken += 1
    shown = wanted[:taken] or [wanted[0][:PAGE_CHARS]]  # one line may be more than a page
    if lines == shown == [""]:
        return ["text: none"]
    stop = first + len(shown) - 1
    is_all = first == 1 and stop == len(lines) and taken == len(wanted)
    span = "all" if is_all else f"lines {first} to {stop} of"
    told = [
        f"text, {span} {len(lines)} lines, between the fences:",
        fenced("\n".join(shown)),
    ]
    if taken < len(wanted):
        rest = "" if taken else f" and from_column {column + PAGE_CHARS}"
        told.append(f"There is more: read it again with from_line {first + taken}{rest}.")
    return told


def fenced(text: str) -> str:
    """A text between two lines of more backticks than it has anywhere."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def quoted(text: str) -> str:
    """A text on one line, in quotes, with nothing in it that does not show."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(
        c if unicodedata.category(c) not in _HIDDEN_CATEGORIES else ascii(c)[1:-1] for c in plain
    )


def node_line(node: Node) -> str:
    below = ", more below it" if node.has_children else ""
    about = f": {quoted(_short(node.description))}" if node.description else ""
    size = f"version {node.version}, {node.body_chars:,} characters"
    return f"- {quoted(node.path)} {quoted(node.title)} ({size}{below}){about}"


def matched_line(document: Document, terms: Sequence[str]) -> str:
    """The line of a document that shows best why it was found."""
    wanted = [term.casefold() for term in terms]
    lines = [line.strip() for line in document.body.split("\n") if line.strip()]
    for line in lines:
        folded = line.casefold()
        at = min((folded.find(term) for term in wanted if term in folded), default=-1)
        if at >= 0:
            return _short(line, max(0, at - LINE_CHARS // 3))
    return _short(document.description or (lines[0] if lines else ""))


def _short(text: str, start: int = 0) -> str:
    cut = text[start : start + LINE_CHARS]
    return f"{'…' if start else ''}{cut}{'…' if start + LINE_CHARS < len(text) else ''}"


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
        self._done = "Prepared" if documents.is_aside else "Saved"
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
        text = excerpt(
            shown.body, given.get("from_line", 1), given.get("to_line"), given.get("from_column", 1)
        )
        is_root = read_path(found.path).key == top.key
        return "\n".join(
            [
                f"path: {quoted(found.path)}",
                f"id: {found.id}",
                f"version: {which}",
                *_head(shown),
                *text,
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
