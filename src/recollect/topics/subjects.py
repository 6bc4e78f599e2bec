"""Finds what a claim is about: people and projects by name, from its words. Pure.

A name is a person's because a statement says so ("Anna is my sister"), because they speak, or
because they are known already. A capital letter alone does not make a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from recollect.documents.paths import memory_root
from recollect.errors import InvalidPath
from recollect.extraction.grounding import held_tag
from recollect.extraction.rules.wording import slug
from recollect.topics.claims import TopicClaim
from recollect.topics.english import (
    ALSO_WORDS,
    KIN,
    LIFE_TAGS,
    NOT_NAMES,
    NOT_PROJECTS,
    THE_USER,
    WITHOUT_TAG,
)
from recollect.types.facts import FactTag, Trust

TEXT_CHARS_MAX = 2000  # of a claim; what stands further behind is not its subject
NAME_WORDS_MAX = 3
THE_USER_NAME = "the user"

_KIN = "|".join(sorted((re.escape(word) for word in KIN.split()), key=len, reverse=True))
_OWNER = r"(?P<owner>(?:the )?[\w-]{1,40}['’]s|my|our|their|his|her)"
_OWNED = re.compile(
    rf"(?<![\w-]){_OWNER} (?:(?!(?:and|or|with|to)\b)[\w-]{{1,30}} ){{0,2}}?(?P<kin>{_KIN})"
    r"(?P<named>['’]s name is|,? (?:is |was )?(?:called|named)|,)? (?P<rest>[^\s].{0,99})",
    re.IGNORECASE,
)
_ROLE_OF = re.compile(
    r"(?P<before>[^\W\d_][\w'’-]{0,40}(?: [^\W\d_][\w'’-]{0,40}){0,2}) (?:is|was) "
    rf"{_OWNER} (?:[\w-]{{1,30}} ){{0,2}}?(?P<kin>{_KIN})(?![\w-])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_POSSESSIVE = re.compile(r"['’]s?$")
_NAMED_PROJECT = re.compile(
    r"\b(?:(?P<a>[\w.-]{2,60}) (?:project|repo|repository)"
    r"|(?:project|repo|repository) (?P<b>[\w.-]{2,60}))\b"
)
_LOOKS_LIKE_A_NAME = re.compile(r"[A-Z0-9_.-]")
_WITHOUT_TAG = {tag: re.compile(text, re.IGNORECASE) for tag, text in WITHOUT_TAG.items()}
_THE_USER = re.compile(THE_USER, re.IGNORECASE)
_NOT_NAMES = frozenset(NOT_NAMES.split())
_ALSO_WORDS = frozenset(ALSO_WORDS.split())
_NOT_PROJECTS = frozenset(NOT_PROJECTS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody a claim is about; `relation` is who they are, where it says so."""

    name: str
    relation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPages:
    """Who and what has a page already: names of people, places of projects, by slug."""

    people: Mapping[str, str] = field(default_factory=dict)
    projects: Mapping[str, str] = field(default_factory=dict)


NOBODY_KNOWN = KnownPages()


def page_slug(name: str) -> str:
    """A slug for any name: its words, or something of its own where it has none that can stand."""
    made = slug(name)
    try:
        return memory_root().child(made).slug
    except InvalidPath:
        return f"x-{sha256(name.encode(errors='surrogatepass')).hexdigest()[:10]}"


def tag_of(claim: TopicClaim) -> FactTag | None:
    """What kind of statement it is: by its tags, else by its words, if a person said it."""
    tag = next((FactTag(tag) for tag in claim.tags if tag in set(FactTag)), None)
    if tag in (None, FactTag.OBSERVATION) and claim.text.rstrip().endswith("?"):
        return FactTag.COMMITMENT  # a question that was left open
    if tag is not None:
        return held_tag(tag, claim.trust)
    if claim.trust is not Trust.USER:
        return None
    text = claim.text[:TEXT_CHARS_MAX]
    return next((tag for tag, pattern in _WITHOUT_TAG.items() if pattern.search(text)), None)


def is_of_the_user(claim: TopicClaim) -> bool:
    return _THE_USER.search(claim.text[:TEXT_CHARS_MAX]) is not None


def speaker_of(claim: TopicClaim) -> str:
    said = claim.metadata.get("speaker")
    return " ".join(said.split())[:TEXT_CHARS_MAX] if isinstance(said, str) else ""


def related(claim: TopicClaim) -> Person | None:
    """Who a claim says is somebody's sister, friend, manager …"""
    text = claim.text[:TEXT_CHARS_MAX]
    for match in _ROLE_OF.finditer(text):
        name = _last_name(match["before"])
        if name:
            return Person(name=name, relation=_relation(match, claim))
    for match in _OWNED.finditer(text):
        is_called = match["named"] is not None and match["named"] != ","
        name = _first_name(match["rest"], needs_capital=not is_called)
        if name:
            return Person(name=name, relation=_relation(match, claim))
    return None


def is_told_of(claim: TopicClaim, person: Person) -> bool:
    """Whether a claim is about somebody it names, and not only names them."""
    text = claim.text[:TEXT_CHARS_MAX]
    if (owned := _OWNED.match(text)) and person.name in owned["rest"]:
        return True
    role = _ROLE_OF.search(text)
    return role is not None and _last_name(role["before"]) == person.name


def leading(text: str) -> str:
    """The name that a text begins with."""
    return _first_name(text, needs_capital=True)


def subject_of_topic(claim: TopicClaim) -> str:
    """The name a claim begins with, if that is also what its topic says it is about."""
    if claim.topic is None or tag_of(claim) not in LIFE_TAGS:
        return ""
    name = leading(claim.text[:TEXT_CHARS_MAX])
    return name if name and slug(name) == slug(claim.topic.partition(":")[0]) else ""


def named_project(text: str) -> str:
    """A project that a text names: "the shop-api project"."""
    for match in _NAMED_PROJECT.finditer(text[:TEXT_CHARS_MAX]):
        name = (match["a"] or match["b"]).strip(".-_")
        if name.casefold() not in _NOT_PROJECTS and _LOOKS_LIKE_A_NAME.search(name):
            return name
    return ""


def place_parts(place: str) -> list[str]:
    """The parts of where a project is, the last one last; a name is its only part."""
    parts = re.split(r"[\\/]+", " ".join(place.split()))
    return [part for part in parts if part.strip(" .~")] or [place.strip() or "project"]


def people_of(claim: TopicClaim) -> Iterator[str]:
    """Every name that a claim brings up as somebody's."""
    if claim.trust is Trust.TOOL:
        return
    person = related(claim)
    for name in (person.name if person else "", speaker_of(claim), subject_of_topic(claim)):
        if name:
            yield name


def is_also_a_word(name: str) -> bool:
    return name.casefold() in _ALSO_WORDS


def _relation(match: re.Match[str], claim: TopicClaim) -> str:
    owner = _POSSESSIVE.sub("", match["owner"])
    if owner.casefold() in ("my", "our", "their", "his", "her"):
        owner = speaker_of(claim) or THE_USER_NAME
    if owner.casefold() == THE_USER_NAME or owner.casefold() == "user":
        owner = THE_USER_NAME
    text = f"{owner}'s {match['kin'].casefold()}"
    return text[:1].upper() + text[1:]


def _first_name(text: str, *, needs_capital: bool) -> str:
    words: list[str] = []
    at = 0
    for match in _WORD.finditer(text):
        gap = text[at : match.start()].strip("\"“'‘") if not words else text[at : match.start()]
        if gap not in ("", " ") or not _can_be_named(match[0], needs_capital):
            break
        words.append(_POSSESSIVE.sub("", match[0]))
        at = match.end()
        if len(words) == NAME_WORDS_MAX or words[-1] != match[0]:
            break
    return " ".join(word for word in words if word)


def _last_name(text: str) -> str:
    words: list[str] = []
    for word in reversed(_WORD.findall(text)):
        if not _can_be_named(word, True):
            break
        words.insert(0, word)
    return " ".join(words)


def _can_be_named(word: str, needs_capital: bool) -> bool:
    if _POSSESSIVE.sub("", word).casefold() in _NOT_NAMES:
        return False
    return word[0].isupper() if needs_capital else not word[0].islower()


def words_of(text: str) -> list[str]:
    """The words of a text that begin with a letter."""
    return _WORD.findall(text)
