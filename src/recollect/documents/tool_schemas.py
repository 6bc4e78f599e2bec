"""What the document tools are called, what they take, and whether a call gives them that. Pure.

One description serves both: the JSON Schema that a model is shown is what its arguments are
checked against, so that a text about a wrong argument never contradicts it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from recollect.errors import InvalidValue

TREE_LIMIT_MAX = 500
SEARCH_LIMIT_MAX = 50
SEARCH_OFFSET_MAX = 500

_PATH = {
    "type": "string",
    "description": "A path such as ~/memory/people/ana, or the id of a document.",
}
_NEW_PATH = {
    "type": "string",
    "description": "A path such as ~/memory/people/ana; pages above it are made if missing.",
}
_EXPECTED = {
    "type": "integer",
    "minimum": 0,
    "description": "The version you have read; refused if there is a newer one. "
    "0: there must be no document yet.",
}
_REASON = {"type": "string", "description": "Why, in a few words; kept with the version."}


def _tool(
    description: str, properties: Mapping[str, Mapping[str, Any]], required: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "description": description,
        "schema": {
            "type": "object",
            "properties": {name: dict(each) for name, each in properties.items()},
            "required": list(required),
            "additionalProperties": False,
        },
    }


TOOLS: Mapping[str, Mapping[str, Any]] = {
    "document_read": _tool(
        "Read a document: what it says, its version, and what stands directly below it. The "
        "root of memory shows the tree instead. A long document comes in pages.",
        {
            "path": _PATH,
            "version": {
                "type": "integer",
                "minimum": 1,
                "description": "An earlier version instead of the newest.",
            },
            "from_line": {"type": "integer", "minimum": 1, "description": "The first line wanted."},
            "to_line": {"type": "integer", "minimum": 1, "description": "The last line wanted."},
            "from_column": {
                "type": "integer",
                "minimum": 1,
                "description": "Where in the first line to begin; for a line longer than a page.",
            },
        },
        ["path"],
    ),
    "document_write": _tool(
        "Make a document, or replace all it says by a new version. What is not given (title, "
        "description, tags, links) stays as it is. Other pages are linked as [[~/memory/path]].",
        {
            "path": _NEW_PATH,
            "body": {"type": "string", "description": "The whole text, in Markdown."},
            "title": {"type": "string", "description": "A short title."},
            "description": {"type": "string", "description": "One sentence on what it is about."},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags."},
            "links": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Paths of related documents.",
            },
            "expected_version": _EXPECTED,
            "reason": _REASON,
        },
        ["path", "body"],
    ),
    "document_append": _tool(
        "Add a paragraph to the end of a document that exists.",
        {
            "path": _PATH,
            "text": {"type": "string", "description": "What to add."},
            "expected_version": _EXPECTED,
            "reason": _REASON,
        },
        ["path", "text"],
    ),
    "document_patch": _tool(
        "Replace one passage of a document. The passage must stand in it exactly once, to the "
        "letter.",
        {
            "path": _PATH,
            "old": {"type": "string", "description": "The passage as it stands there."},
            "new": {"type": "string", "description": "What to put in its place; may be empty."},
            "expected_version": _EXPECTED,
            "reason": _REASON,
        },
        ["path", "old", "new"],
    ),
    "document_tree": _tool(
        "List the documents below a path, each before what stands below it, a page at a time.",
        {
            "path": {
                "type": "string",
                "description": "A path or an id, where to begin; the root if left out.",
            },
            "depth": {
                "type": "integer",
                "minimum": 0,
                "maximum": 16,
                "description": "How many levels below it; all if left out.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": TREE_LIMIT_MAX,
                "description": "Lines of one page, 100 if left out.",
            },
            "after": {"type": "string", "description": "The last path of the page before."},
        },
    ),
    "document_search": _tool(
        "Find documents by words, the best first. Any text is a legal query.",
        {
            "query": {"type": "string", "description": "Words, or a question."},
            "below": {"type": "string", "description": "Only below this path, or this id."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": SEARCH_LIMIT_MAX,
                "description": "Hits of one page, 10 if left out.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "maximum": SEARCH_OFFSET_MAX,
                "description": "How many hits to pass over.",
            },
        },
        ["query"],
    ),
}


def tool_definitions(style: Literal["openai", "anthropic"] = "openai") -> list[dict[str, Any]]:
    """The tools as a model's API is told of them; a copy, to be changed at will."""
    if style not in ("openai", "anthropic"):
        raise InvalidValue(f"a style is openai or anthropic: {style!r}")
    made = []
    for name, tool in TOOLS.items():
        schema = json.loads(json.dumps(tool["schema"]))
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
