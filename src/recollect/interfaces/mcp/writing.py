"""What the changing tools do: remember a statement, correct it, delete it, keep notes as files.

What an agent adds is that agent's word, and says so. It belongs to the project the server is for,
unless it is meant for everywhere: then other projects find it, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.document import Author, AuthorKind
from recollect.documents.scope import Holder
from recollect.documents.tree import Documents
from recollect.errors import InvalidValue, NotFound
from recollect.extraction.scope import named, place_of
from recollect.interfaces.mcp.keeping import Holding
from recollect.interfaces.mcp.reading import find_document
from recollect.interfaces.mcp.results import ANSWER_CHARS_MAX, Answer, Deleted, Kept
from recollect.interfaces.mcp.wording import seen, shortened
from recollect.knowledge import UNCHANGED, Fact, Trust
from recollect.recollection import EntryKind

EVERYWHERE = "everywhere"
PROJECT = "project"  # of a fact's metadata: where it holds

_REFUSALS = ("Error", "No replacement was performed", "The path ")


def add(held: Holding, text: str, *, tags: Sequence[str], scope: str) -> Kept:
    """Remember a statement; said twice it is stored once, for whom it is meant."""
    project = None if scope == EVERYWHERE else held.terms.project
    fact = _add(held, text, tags, project)
    home = fact.metadata.get(PROJECT)
    if home is not None and project is None:  # what held in one project holds in all
        metadata = {name: each for name, each in fact.metadata.items() if name != PROJECT}
        fact = held.space.facts.update(fact.id, metadata=metadata)
    elif home is not None and home != project:
        # The same rule of two projects is two facts, as those that are learned are: by its name.
        fact = _add(held, f"In {named(place_of(project))}: {text}", tags, project)
    return Kept(id=fact.id, kind=EntryKind.FACT.value, text=shortened(fact.content))


def _add(held: Holding, text: str, tags: Sequence[str], project: str | None) -> Fact:
    metadata = {"agent": held.terms.agent} | ({} if project is None else {PROJECT: project})
    return held.space.facts.add(Fact(text, tags=tuple(tags), trust=Trust.AGENT, metadata=metadata))


def update(held: Holding, memory_id: str, text: str, *, tags: Sequence[str] | None) -> Kept:
    """Replace what a fact or a document says. NotFound: this space has no such thing."""
    fact = held.space.facts.get(memory_id)
    if fact is not None:
        edited = held.space.facts.update(
            memory_id,
            text,
            tags=UNCHANGED if tags is None else tuple(tags),
            trust=Trust.AGENT if fact.trust is Trust.USER else UNCHANGED,
        )
        return Kept(id=edited.id, kind=EntryKind.FACT.value, text=shortened(edited.content))
    path = _document_path(held, memory_id)
    document = _documents(held).write(
        path, text, tags=tags, reason=f"updated by {held.terms.agent}"
    )
    return Kept(
        id=document.path,
        kind=EntryKind.DOCUMENT.value,
        text=shortened(document.body),
        note=f"This is version {document.version}; earlier ones are kept.",
    )


def delete(held: Holding, memory_id: str) -> Deleted:
    """Delete a fact or a document. NotFound: this space has no such thing."""
    if held.space.facts.get(memory_id) is not None:
        held.space.facts.delete(memory_id)
        return Deleted(id=memory_id, kind=EntryKind.FACT.value)
    path = _document_path(held, memory_id)
    _documents(held).delete(path, reason=f"deleted by {held.terms.agent}")
    note = "It can be restored: recollect docs restore."
    return Deleted(id=path, kind=EntryKind.DOCUMENT.value, note=note)


def _document_path(held: Holding, memory_id: str) -> str:
    document = find_document(held, memory_id)
    if document is not None:
        return document.path
    if _is_history(held, memory_id):
        raise InvalidValue(
            "what was said in a session stays as it was said; only facts and documents change"
        )
    raise NotFound(f"this space has no fact or document {memory_id[:200]!r}")


def _is_history(held: Holding, memory_id: str) -> bool:
    session_id, _, seq = memory_id.rpartition(":")
    named = session_id if session_id and seq.isdigit() else memory_id
    return held.space.sessions.get(named) is not None


def _documents(held: Holding) -> Documents:
    author = Author(kind=AuthorKind.AGENT, name=held.terms.agent)
    return held.space.documents.held_by(Holder(author=author))


def use_files(held: Holding, command: Mapping[str, Any]) -> tuple[Answer, bool]:
    """Carry out a command of the memory tool; and whether it was refused."""
    text = held.space.memory_tool(held.terms.agent).handle(command)
    # Notes are shown as they are, or no command could name a piece of them.
    return Answer(text=seen(_cut(text))), text.startswith(_REFUSALS)


def _cut(text: str) -> str:
    """Whole lines up to what an answer holds, and how to see the others."""
    if len(text) <= ANSWER_CHARS_MAX:
        return text
    room = ANSWER_CHARS_MAX - 200
    end = text.rfind("\n", 0, room)
    shown = text[: end if end > 0 else room]
    return (
        f"{shown}\n(Truncated: {len(text) - len(shown):,} more characters. View the rest with"
        " view_range, a part of its lines.)"
    )
