"""Tells the facts of which redaction has left nothing: their value is what was taken out."""

from __future__ import annotations

from recollect.knowledge import FactTag, NewFact
from recollect.patterns import LazyPattern

CLAUSE_WORDS_MIN = 4  # what has fewer says nothing beside the secret: "keep it safe"
_CLAUSE = LazyPattern(r"[,;]\s|\.\s|\s(?:and|but|so)\s")
# By itself: the address of a database is worth knowing without the password in it.
_SECRET = LazyPattern(r"(?<![^\s\"“'‘`(])\[redacted:[a-z0-9-]{1,64}:[0-9a-f]{8}\](?![\w/@:])")
# A command that worked is worth knowing without the token in it.
_DONE = frozenset({FactTag.PROCEDURE.value, FactTag.LESSON.value})


def is_withheld(fact: NewFact) -> bool:
    """Whether every clause that says something says a secret, which nobody can read any more."""
    if "[redacted:" not in fact.content or not _DONE.isdisjoint(fact.tags):
        return False
    clauses = _CLAUSE.split(fact.content)
    hidden = [clause for clause in clauses if _SECRET.search(clause)]
    plain = [clause for clause in clauses if not _SECRET.search(clause)]
    return bool(hidden) and all(len(clause.split()) < CLAUSE_WORDS_MIN for clause in plain)
