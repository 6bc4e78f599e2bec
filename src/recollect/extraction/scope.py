"""Says what of a project's session holds in that project only, and keeps it there.

Rules, decisions and what was seen of the work are the project's; who people are, what they like and
what they plan is theirs, wherever they said it. What is a project's names it in its words, so that
the same rule of two projects is two facts, and in its topic, so that neither replaces the other's.
"""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256

from recollect.types.facts import Draft, Fact, FactTag, NewFact

PLACE_CHARS_MAX = 500  # more than importers take of a directory
TOPIC_CHARS_MAX = 80
PROJECT_TAGS = frozenset(
    {
        FactTag.INSTRUCTION,
        FactTag.CORRECTION,
        FactTag.DECISION,
        FactTag.PROCEDURE,
        FactTag.LESSON,
        FactTag.OBSERVATION,
    }
)

_PROJECT = "project"
_NAME_CHARS_MAX = 40
_NOT_IN_KEY = re.compile(r"[^\w]+|_")
# A directory, or a name of a few words: a longer text in a project's place may be an order.
_PLAIN = re.compile(r"[\w@.+~:#-]+(?: [\w@.+~:#-]+){0,3}")
_OF_A_PROJECT = re.compile(r"(?:project|repo|repository|codebase)(?=:)", re.IGNORECASE)


def place_of(project: str | None) -> str:
    """A project on one line and bounded; empty: none."""
    return " ".join(project.split())[:PLACE_CHARS_MAX] if project else ""


def named(place: str) -> str:
    """Return a project as facts name it: by its own name, unless that is a text, not a name."""
    return place if _is_plain(place) else f"project {project_key(place)}"


def _is_plain(place: str) -> bool:
    parts = place.replace("\\", "/").strip("/").split("/")
    return all(_PLAIN.fullmatch(part) for part in parts)


def project_key(place: str) -> str:
    """A short name that no other project has: its last words, and a mark where they are not all."""
    mark = sha256(place.encode(errors="surrogatepass")).hexdigest()[:8]
    if not _is_plain(place):
        return mark
    parts = place.replace("\\", "/").strip("/").split("/")[-2:]
    name = _NOT_IN_KEY.sub("-", "-".join(parts).lower()).strip("-")[:_NAME_CHARS_MAX].strip("-")
    if name and place.rstrip("/") == "/" + name.replace("-", "/"):
        return name
    return f"{name}-{mark}" if name else mark


def topic_in(place: str, topic: str) -> str:
    """A topic of a project, such as `srv-shop:test-command`."""
    key = project_key(place)
    bare = _OF_A_PROJECT.sub("", topic).lstrip(":")
    return (bare if bare.startswith(f"{key}:") else f"{key}:{bare}")[:TOPIC_CHARS_MAX]


def in_project(place: str) -> dict[str, str]:
    """What the metadata of a fact of a project says; nothing where there is none."""
    return {_PROJECT: place} if place else {}


def scoped(draft: Draft, project: str | None) -> Draft:
    """A draft whose facts say where they hold, however they were worded."""
    place = place_of(project)
    if not place:
        return draft
    return replace(draft, facts=tuple(_scoped(fact, place) for fact in draft.facts))


def is_elsewhere(fact: Fact, project: str | None) -> bool:
    """Whether a fact holds in another project only: nothing that is said here changes it."""
    held = fact.metadata.get(_PROJECT)
    return isinstance(held, str) and bool(held) and held != place_of(project)


def _scoped(fact: NewFact, place: str) -> NewFact:
    names_project = fact.topic is not None and _OF_A_PROJECT.match(fact.topic) is not None
    if not names_project and not PROJECT_TAGS.intersection(fact.tags[:1]):
        return fact
    name = named(place)
    content = fact.content if name in fact.content else f"In {name}: {fact.content}"
    return replace(
        fact,
        content=content,
        topic=None if fact.topic is None else topic_in(place, fact.topic),
        metadata={**fact.metadata, **in_project(place)},
    )
