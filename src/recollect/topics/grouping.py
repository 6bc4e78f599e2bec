"""Says where a claim is at home: with a person, a project, preferences, decisions, … Pure.

Each claim has exactly one home, by rules that can be read off: what it says of somebody who is not
the user goes to them; decisions, preferences and what is still to come have a topic each; what
holds for a project only goes there; the rest is about the user, or about nothing of these.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.topics.claims import TopicClaim
from recollect.topics.directory import Directory, Entity, TopicKind
from recollect.topics.english import LIFE_TAGS, OPEN_TAGS, RULE_TAGS, WORK_TAGS
from recollect.topics.subjects import (
    is_of_the_user,
    is_told_of,
    leading,
    related,
    speaker_of,
    subject_of_topic,
    tag_of,
)
from recollect.types.facts import FactTag, Trust

TITLES = {
    TopicKind.PREFERENCES: "Preferences",
    TopicKind.DECISIONS: "Decisions",
    TopicKind.OPEN_THREADS: "Open threads",
    TopicKind.PROFILE: "About the user",
    TopicKind.OTHER: "Other facts",
}


def home_of(claim: TopicClaim, names: Directory) -> Entity:
    """The one topic a claim belongs to."""
    project = names.project_of(claim)
    if claim.trust is Trust.TOOL:
        # A tool's words are about the work at hand: they describe nobody and decide nothing.
        return project or _plain(TopicKind.OTHER)
    tag = tag_of(claim)
    person = _person(claim, tag, names)
    if person is not None:
        return person
    if tag is FactTag.DECISION:
        return _plain(TopicKind.DECISIONS)
    if tag in OPEN_TAGS:
        return _plain(TopicKind.OPEN_THREADS)
    if tag is FactTag.PREFERENCE:
        return _plain(TopicKind.PREFERENCES)
    if tag in RULE_TAGS:
        # A rule that was laid down in a project holds there, and nowhere else.
        return project or _plain(TopicKind.PREFERENCES)
    if project is not None and (tag in WORK_TAGS or tag in (FactTag.EVENT, None)):
        return project
    return _rest(claim, tag, names)


def _person(claim: TopicClaim, tag: FactTag | None, names: Directory) -> Entity | None:
    """Who a claim is about, if not about who said it."""
    if tag is FactTag.DECISION or tag in OPEN_TAGS:
        return None
    speaker = names.person(speaker_of(claim))
    person = related(claim)
    if person is not None and (tag is FactTag.RELATION or is_told_of(claim, person)):
        found = names.person(person.name)
        if found is not None and found != speaker:
            return found
    first = leading(claim.text)
    found = names.person(first) or names.person(first.partition(" ")[0])
    is_said_of = found is not None and found != speaker
    return found if is_said_of and (tag not in RULE_TAGS) else None


def _rest(claim: TopicClaim, tag: FactTag | None, names: Directory) -> Entity:
    is_life = tag in LIFE_TAGS or (tag is None and is_of_the_user(claim))
    if not is_life:
        return _plain(TopicKind.OTHER)
    name = speaker_of(claim) or subject_of_topic(claim)
    return names.person(name) or _plain(TopicKind.PROFILE)


def _plain(kind: TopicKind) -> Entity:
    return Entity(kind=kind, slug=kind.value, name=TITLES[kind])


def relation_of(person: Entity, claims: Iterable[TopicClaim], names: Directory) -> str:
    """Who somebody is, where one of some claims says so: "The user's sister"."""
    told = (who for who in map(related, claims) if who and names.person(who.name) == person)
    return next((who.relation for who in told), "")
