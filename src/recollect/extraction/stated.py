"""Reads one statement that a person makes on purpose, by the rules: its topic, its kind, its dates.

"Ben moved to Faro in May" is read as Ben would say it, so that it is about Ben's home.
"""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime
from functools import cache

from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.extraction.rules.extractor import RuleExtractor
from recollect.messages import Role
from recollect.types.facts import NewFact
from recollect.types.records import Mode, SessionState

_EDGES = " \t\n.!;"
_OF_TALK = ("speaker", "confidence")  # what the rules note of who spoke, and how sure they are
_THIRD = re.compile(
    r"(?!(?:I|We|My|Our|The|It|This|That)\b)(?P<name>[A-Z][\w'’-]*(?: [A-Z][\w'’-]*){0,2})"
    r" (?P<verb>[a-z]+)\b(?P<rest>.*)",
    re.DOTALL,
)
_FIRST_PERSON = {"is": "am", "has": "have", "does": "do", "was": "was", "goes": "go"}


def understood(text: str, now: datetime) -> NewFact | None:
    """What a statement says, in the words it is kept in; none: the rules do not know it."""
    found = _heard(text, None, now)
    if found is not None and found.topic:
        return found
    said = _THIRD.fullmatch(text.strip())
    if said is None:
        return found
    theirs = _heard(f"I {_first_person(said['verb'])}{said['rest']}", said["name"], now)
    return theirs if theirs is not None and theirs.content else found


def _heard(text: str, speaker: str | None, now: datetime) -> NewFact | None:
    block = Block(seq=1, at=now, role=Role.USER, kind=BlockKind.SAID, text=text, speaker=speaker)
    piece = Piece(session=_no_session(now), blocks=(block,), first=1, upto=1, previous=None)
    facts = _rules().extract(piece).facts
    if len(facts) != 1 or facts[0].quote.strip(_EDGES) != text.strip(_EDGES):
        return None
    fact = facts[0]
    metadata = {name: each for name, each in fact.metadata.items() if name not in _OF_TALK}
    # What the rules only quote is kept as it was said.
    content = "" if '"' in fact.content else fact.content
    return dataclasses.replace(fact, content=content, metadata=metadata)


def _first_person(verb: str) -> str:
    """The form of a verb that follows "I", of one that follows "she"."""
    if verb in _FIRST_PERSON:
        return _FIRST_PERSON[verb]
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    if verb.endswith(("ches", "shes", "sses", "xes")):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb


@cache
def _rules() -> RuleExtractor:
    return RuleExtractor()


def _no_session(now: datetime) -> SessionState:
    return SessionState(
        id="",
        space="",
        key="",
        agent_id="/user/person",
        rotation=1,
        source="remember",
        project=None,
        parent=None,
        ephemeral=False,
        mode=Mode.ENABLED,
        remembered=True,
        last_seq=1,
        invalidated_at=None,
        processed_until=None,
        marked_at=None,
        marked_by=None,
        created_at=now,
        last_activity_at=now,
        ended_at=None,
        ended_by=None,
    )
