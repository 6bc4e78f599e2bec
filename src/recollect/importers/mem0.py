"""Reads mem0's memories, as `get_all()` and its export give them; they become facts.

The people, agents and runs that they belong to stay in their metadata, under mem0's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from recollect import collection
from recollect.errors import InvalidValue
from recollect.importers.items import (
    JSON_FILES,
    Found,
    ImportedFact,
    ImportSource,
    LeftOut,
    OneByOne,
    digest,
    first,
    known_by,
    label,
    listed,
    mapping,
    moment,
    text,
    unknown,
    words,
)

SCOPES = ("user_id", "agent_id", "run_id", "app_id", "actor_id", "role")
TAGS_MAX = 32  # as many as a fact may have
TAG_CHARS_MAX = 100

_RESULTS = ("results", "memories")
_TEXTS = ("memory", "data", "text")
_CATEGORIES = ("categories", "custom_categories")


def _is_memory(said: Mapping[str, Any]) -> bool:
    return text(said.get("memory")) is not None and label(said.get("id")) is not None


def _statements(entry: object, line: int) -> Iterator[Found]:
    said = mapping(entry)
    results = next((said[name] for name in _RESULTS if isinstance(said.get(name), list)), None)
    if results is not None:  # a line that is a whole answer
        for each in results:
            yield from _statement(each, line)
    else:
        yield from _statement(entry, line)


def _statement(entry: object, line: int) -> Iterator[Found]:
    # A vector store's own export has everything but the id under `payload`.
    said = {**mapping(mapping(entry).get("payload")), **mapping(entry)}
    content = text(first(said, *_TEXTS))
    if content is None:
        blank = isinstance(first(said, *_TEXTS), str)
        yield LeftOut(reason="empty memory") if blank else unknown(entry, line)
        return
    metadata = _metadata(said)
    if metadata is None:
        yield unknown("metadata", line)
    scopes = {name: said[name] for name in SCOPES if label(said.get(name)) is not None}
    yield ImportedFact(
        id=label(said.get("id")) or digest(content, scopes),
        text=collection.storable(content.strip()),
        at=moment(first(said, "created_at", "updated_at")),
        since=moment(said.get("updated_at")),
        metadata={name: words(str(value)) for name, value in scopes.items()} | (metadata or {}),
        tags=_tags(said),
    )


def _metadata(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was kept with it, and when it was changed. None: more than can be kept."""
    kept = dict(mapping(said.get("metadata")))
    kept = {name: value for name, value in kept.items() if name not in SCOPES}
    changed = moment(said.get("updated_at"))
    if changed is not None and changed != moment(said.get("created_at")):
        kept["updated_at"] = changed.isoformat()
    try:
        collection.encode_metadata(kept)
    except InvalidValue:
        return None
    return kept


def _tags(said: Mapping[str, Any]) -> tuple[str, ...]:
    found = (each for name in _CATEGORIES for each in listed(said.get(name)))
    tags = (words(each, TAG_CHARS_MAX) for each in found if isinstance(each, str))
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:TAGS_MAX]


# Memories of mem0.
Mem0 = partial(
    ImportSource,
    name="mem0",
    is_file=JSON_FILES,
    names=_RESULTS,
    probe=known_by(_is_memory, "memories with ids"),
    reader=partial(OneByOne, _statements),
)
