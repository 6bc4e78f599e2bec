"""What stands in an answer instead of the words it is asked with: "moved", for "where do you live?"

A closed table for what people ask of each other, used where a question's own words find nothing.
What is learned is indexed by the words that ask for it (`recollect.topic_words`); this finds what
was said and has not been learned from yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from recollect.recall.candidates import Question, Term
from recollect.stems import stem

# Each line: words of questions, and words that an answer in somebody's own words has instead.
_ANSWERED = """
live living home address residence = moved live relocated home
work job employer profession occupation career = job hired employed work company
old age born birthday = turned birthday born age
married spouse partner relationship = wife husband married wedding engaged girlfriend boyfriend
pet pets animal = dog cat puppy kitten pet
child kid children = son daughter baby kid child
sibling siblings = brother sister
parent parents = mother father mom dad
food diet eat = vegan vegetarian allergic eat
study university college school degree education = graduated studied degree university college
"""


def in_other_words(question: Question) -> Question | None:
    """The question by the words that its answers have; none where they are not known."""
    others = _others()
    found = dict.fromkeys(other for term in question.terms for other in others.get(term.stem, ()))
    known = {term.stem for term in question.terms}
    terms = tuple(Term(stem=other, word=other) for other in found if other not in known)
    return replace(question, terms=terms, phrases=()) if terms else None


@cache
def _others() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in _ANSWERED.strip().splitlines():
        asked, _, answered = line.partition(" = ")
        others = tuple(dict.fromkeys(map(stem, answered.split())))
        found |= dict.fromkeys(map(stem, asked.split()), others)
    return found
