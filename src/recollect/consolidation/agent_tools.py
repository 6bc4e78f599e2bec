"""The tools of a consolidation agent: it reads memory and writes its own few pages, and no more.

Owns the half of G8 that a model cannot talk its way around. Everything happens in a changeset; what
a call asks for beyond that is refused with a text that says what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from recollect.agents.guarding import without_orders
from recollect.agents.toolbox import Tool
from recollect.consolidation.pages import MEMORY, SKILLS, SUMMARY, skill_path
from recollect.documents.changeset import Changeset
from recollect.documents.editing import OnReferences
from recollect.documents.paths import DocumentPath, read_path, stored_path
from recollect.documents.reading import is_id
from recollect.documents.tools import DocumentTools, tool_definitions
from recollect.errors import InvalidPath, InvalidValue, NotAllowed
from recollect.models.protocol import ToolDefinition
from recollect.session import LIST_MAX

READING = frozenset({"document_read", "document_tree", "document_search"})
WRITING = frozenset({"document_write", "document_append", "document_patch"})
DELETING = "skill_delete"
ALLOWED = READING | WRITING | {DELETING}

_SKILLS = read_path(SKILLS)
_WRITABLE = frozenset({read_path(MEMORY).key, read_path(SUMMARY).key})
_DELETE = ToolDefinition(
    name=DELETING,
    description="Delete a skill that nothing supports any more, with all that stands below it. "
    "Take links to it off your pages.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": f"Its path, such as {skill_path('a-name')}."}
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


def definitions() -> tuple[ToolDefinition, ...]:
    """The tools as a model is told of them."""
    documents = (
        ToolDefinition(
            name=each["name"], description=each["description"], parameters=each["input_schema"]
        )
        for each in tool_definitions("anthropic")
        if each["name"] in ALLOWED
    )
    return (*documents, _DELETE)


def tools_over(
    changeset: Changeset,
    changed: Callable[[], None],
    is_persons: Callable[[str], bool],
    after: Callable[[str], str],
) -> Iterator[Tool]:
    """The tools over one staged copy; told of what may have changed it.

    Orders that `is_persons` does not know to be a person's are not written. `after` is what is said
    of a page behind the result of a call that wrote it.
    """
    documents = DocumentTools(changeset)
    for definition in definitions():

        def run(arguments: Mapping[str, Any], name: str = definition.name) -> str:
            if name in READING:
                return documents.call(name, arguments)
            refused = _objection(changeset, name, arguments)
            if refused is not None:
                return f"Error: {refused}"
            given, left_out = without_orders(arguments, is_persons)
            done = _deleted(changeset, given) if name == DELETING else documents.call(name, given)
            changed()
            if name == DELETING or done.startswith("Error: "):
                return done + left_out
            page = _target(changeset, name, arguments["path"])
            return f"{done}{left_out} {after(page.text)}"

        yield Tool(definition=definition, run=run)


def _objection(changeset: Changeset, name: str, arguments: Mapping[str, Any]) -> str | None:
    """Why a call is not carried out; none: it may be, or is checked further in."""
    path = arguments.get("path")
    if name not in WRITING or not isinstance(path, str):
        return None
    try:
        target = _target(changeset, name, path)
    except (InvalidPath, NotAllowed):
        return None  # which says so itself
    if target.key in _WRITABLE or _is_skill(target):
        return None
    return (
        f"{target} is not yours to write. You write {MEMORY}, {SUMMARY} and "
        f"{skill_path('<name>')}; the other pages are evidence, or belong to agents and people"
    )


def _target(changeset: Changeset, name: str, path: str) -> DocumentPath:
    """Where a call would write: an id and, unless it writes anew, an old path are followed."""
    if name == "document_write" and not is_id(path):
        return read_path(path)
    found = changeset.find(path)
    return read_path(path) if found is None else stored_path(found.path)


def _is_skill(path: DocumentPath) -> bool:
    below = path.slugs[len(_SKILLS.slugs) :]
    return path.is_within(_SKILLS) and len(below) == 2 and below[1] == "SKILL"


def _deleted(changeset: Changeset, arguments: Mapping[str, Any]) -> str:
    path = arguments.get("path")
    if not isinstance(path, str) or len(arguments) != 1:
        raise InvalidValue(f"{DELETING} takes a path and nothing else")
    found = changeset.read(path)
    where = stored_path(found.path)
    if not where.is_within(_SKILLS) or where.key == _SKILLS.key:
        raise NotAllowed(f"{where} is no skill, and only skills can be deleted")
    folder = DocumentPath(where.slugs[: len(_SKILLS.slugs) + 1])
    # One by one, what is below first: a generation notes of each page that it is gone. What people
    # link to it must not keep a skill alive.
    for node in reversed(changeset.tree(folder.text, limit=LIST_MAX)):
        changeset.delete(node.path, references=OnReferences.LEAVE)
    return f"Prepared: {folder} is deleted, with what stood below it."
