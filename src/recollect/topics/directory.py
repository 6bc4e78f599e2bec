"""Resolves names to the people and projects of a run, and to those that have a page already. Pure.

The same names give the same directory, whatever their order. "Anna" and "Anna Kovacs" are one
person unless there are two whose first name it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from recollect.topics.claims import TopicClaim
from recollect.topics.subjects import (
    NOBODY_KNOWN,
    KnownPages,
    is_also_a_word,
    named_project,
    page_slug,
    people_of,
    place_parts,
    words_of,
)
from recollect.types.facts import Trust

PROJECT_NAME_CHARS_MIN = 4  # shorter ones are words


class TopicKind(StrEnum):
    """What a topic is."""

    PEOPLE = "people"
    PROJECTS = "projects"
    PREFERENCES = "preferences"
    DECISIONS = "decisions"
    OPEN_THREADS = "open-threads"  # commitments, goals, questions without an answer
    PROFILE = "profile"  # about the user
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Somebody or something that has a topic of its own.

    `about` is where a project is, and who a person is where that was looked up.
    """

    kind: TopicKind
    slug: str
    name: str
    about: str = ""


class Directory:
    """Looks up names."""

    def __init__(self, people: Mapping[str, Entity], projects: Mapping[str, Entity]) -> None:
        self._people = people  # by name without case
        self._projects = projects  # by place, and by name where that is one project's only
        self._by_word: dict[str, list[tuple[tuple[str, ...], Entity]]] = {}
        for name, entity in [*people.items(), *_named(projects.values())]:
            words = tuple(word.casefold() for word in words_of(name))
            if words and not (len(words) == 1 and is_also_a_word(words[0])):
                self._by_word.setdefault(words[0], []).append((words, entity))
        for spellings in self._by_word.values():
            spellings.sort(key=lambda each: (-len(each[0]), each[0]))

    def person(self, name: str) -> Entity | None:
        return self._people.get(name.casefold())

    def project_of(self, claim: TopicClaim) -> Entity | None:
        """The project a claim names, else that of its session."""
        named = named_project(claim.text) if claim.trust is not Trust.TOOL else ""
        by_name = self._projects.get(named.casefold()) if named else None
        return by_name or (self._projects.get(claim.project) if claim.project else None)

    def names(self, entity: Entity, text: str) -> bool:
        """Whether a text names somebody, by a name with a capital, and not who has a longer one."""
        words, place = words_of(text), 0
        while place < len(words):
            for spelling, known in self._by_word.get(_bare(words[place]), ()):
                said = tuple(map(_bare, words[place : place + len(spelling)]))
                is_name = known.kind is TopicKind.PROJECTS or not words[place][0].islower()
                if said == spelling and is_name:
                    if known == entity:
                        return True
                    place += len(spelling) - 1
                    break
            place += 1
        return False


def directory_of(claims: Iterable[TopicClaim], known: KnownPages = NOBODY_KNOWN) -> Directory:
    """Everybody and everything that claims bring up, and who is known already."""
    claims = list(claims)
    names = {name for claim in claims for name in people_of(claim)}
    places = {claim.project for claim in claims if claim.project}
    said = {named_project(claim.text) for claim in claims if claim.trust is not Trust.TOOL}
    return Directory(_people(names, known.people), _projects(places, said - {""}, known.projects))


def _people(names: Iterable[str], known: Mapping[str, str]) -> dict[str, Entity]:
    by_first: dict[str, dict[str, str]] = {}
    for name in sorted([*names, *known.values()]):
        first = name.casefold().split(" ")[0]
        by_first.setdefault(first, {}).setdefault(name.casefold(), name)
    slugs: dict[str, str] = {}
    for slug, name in sorted(known.items()):
        slugs.setdefault(name.casefold(), slug)
    people: dict[str, Entity] = {}
    for first, spellings in by_first.items():
        full = [key for key in spellings if " " in key]
        people |= _one_person(spellings, slugs) if len(full) <= 1 else _several(spellings, slugs)
        if len(full) == 1:
            people.setdefault(first, people[full[0]])
    return people


def _one_person(spellings: Mapping[str, str], slugs: Mapping[str, str]) -> dict[str, Entity]:
    longest = max(spellings.values(), key=lambda name: (len(name), name))
    taken = next((slugs[key] for key in sorted(spellings) if key in slugs), None)
    one = Entity(kind=TopicKind.PEOPLE, slug=taken or page_slug(longest), name=longest)
    # Two pages for what reads like one person were made for a reason.
    own = _several({key: name for key, name in spellings.items() if key in slugs}, slugs)
    return dict.fromkeys(spellings, one) | own


def _several(spellings: Mapping[str, str], slugs: Mapping[str, str]) -> dict[str, Entity]:
    return {
        key: Entity(kind=TopicKind.PEOPLE, slug=slugs.get(key) or page_slug(name), name=name)
        for key, name in spellings.items()
    }


def _projects(
    places: Iterable[str], names: Iterable[str], known: Mapping[str, str]
) -> dict[str, Entity]:
    projects: dict[str, Entity] = {}
    taken = dict(known)
    for slug, place in sorted(known.items()):
        projects[place] = _project(slug, place)
    for place in sorted(places):
        if place not in projects:
            slug = _free_slug(place, taken)
            taken[slug] = place
            projects[place] = _project(slug, place)
    by_name = _by_name(projects.values())
    for name in sorted(names):
        if name.casefold() not in by_name:
            entity = projects.setdefault(name, _project(page_slug(name), name))
            by_name[name.casefold()] = {entity.slug: entity}
    for key, same in by_name.items():
        if len(same) == 1:
            projects.setdefault(key, next(iter(same.values())))
    return projects


def _free_slug(place: str, taken: Mapping[str, str]) -> str:
    """The last part of a place, or as many as it takes to tell it from another project."""
    parts = place_parts(place)
    for count in range(1, len(parts) + 1):
        slug = page_slug("-".join(parts[-count:]))
        if taken.get(slug, place) in (place, slug):
            return slug
    return f"{page_slug(parts[-1])}-{sha256(place.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _project(slug: str, place: str) -> Entity:
    return Entity(kind=TopicKind.PROJECTS, slug=slug, name=place_parts(place)[-1], about=place)


def _named(projects: Iterable[Entity]) -> list[tuple[str, Entity]]:
    """Projects by their names, as far as those are telling."""
    return [
        (name, next(iter(same.values())))
        for name, same in sorted(_by_name(projects).items())
        if len(same) == 1 and len(name) >= PROJECT_NAME_CHARS_MIN
    ]


def _by_name(projects: Iterable[Entity]) -> dict[str, dict[str, Entity]]:
    found: dict[str, dict[str, Entity]] = {}
    for entity in projects:
        found.setdefault(entity.name.casefold(), {})[entity.slug] = entity
    return found


def _bare(word: str) -> str:
    return (word[:-2] if word.endswith(("'s", "’s")) else word).casefold()
