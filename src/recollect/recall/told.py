"""Tells when facts say what a record or a line of a page says: a block need not show both.

Careful on one side only, as likeness is: a fact rarely says everything, and what it leaves out
would be lost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from recollect.recall.likeness import denies
from recollect.recall.passages import SENTENCE
from recollect.stems import stem
from recollect.terms import STOP_WORDS, search_terms, words

COVERED_MIN = 0.8  # of the words of a line or a sentence: those that a fact has
PLEASANTRY_CHARS = 80
CLAUSE_MIN = 0.6  # of a clause's words: those of a statement that it makes
LEFT_WORDS_MIN = 2  # that say something, of what is left when a part does not hold
REST_WORDS_MIN = 5  # that say something, beside what facts say of a record
WORDS_MAX = 2000

# What a page writes around a statement: its records, its days, where a link leads.
_AROUND = re.compile(r"\[#[^\]\n]*\]|\(\d{4}-\d\d-\d\d[^)\n]*\)|\[\[[^\]|\n]*\|?|\]\]")
_CLAUSE = re.compile(
    r"[,;:]\s+(?:(?:and|but|so)\s+)?|\s+(?:and|but)\s+(?=(?:I|we|my|he|she|they|it)\b)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(#{1,6}) ")
_NOTHING = re.compile(r"^outcome: uncertain$", re.MULTILINE)  # of a session, and nobody asks for it
_LABEL_LEVEL = 7  # of a line that ends in a colon, below all headings
_PERSON = frozenset({"user"})  # "I" in a record, "the user" in what was made of it

# What people say to each other without saying anything, besides stop words.
_PLEASANTRIES = frozenset(
    map(
        stem,
        """
        absolutely agree agreed ah aha alright amazing anytime appreciate aw awesome bye care catch
        cheers congrats congratulations cool definitely enjoy exactly excellent fantastic fine gonna
        good goodbye goodnight gotcha great ha haha hear hello hey hi hmm hope hugs interesting know
        later lol lot luck makes morning much nice night nope now oh ok okay perfect please pleasure
        problem really right see sense soon sorry sounds sure take talk thank thanks think thx time
        totally tomorrow true understood welcome well wow yay yeah yep yes yup
        """.split(),  # noqa: SIM905
    )
)


def says_nothing(text: str, names: Collection[str] = ()) -> bool:
    """Whether it is only a greeting, thanks or a nod, whomever it names."""
    if len(text) > PLEASANTRY_CHARS:
        return False
    return all(
        word in STOP_WORDS or word in names or stem(word) in _PLEASANTRIES
        for word in words(text).split()
    )


def without_told(text: str, facts: Sequence[str]) -> str:
    """What somebody said without the sentences that one of these facts says.

    Nothing is left of it where the rest is not worth a line.
    """
    told = [(_said(fact), denies(fact)) for fact in facts]
    sentences = SENTENCE.findall(text)
    kept = [sentence for sentence in sentences if not _is_told(sentence, told)]
    if len(kept) == len(sentences):
        return text
    rest = "".join(kept).strip()
    return rest if len(_stems(rest) - _PLEASANTRIES) >= REST_WORDS_MIN else ""


def without_stated(text: str, statement: str) -> str:
    """What somebody said without a statement: without the clauses that make it, or the sentence.

    Nothing is left of it where the rest is not worth a line.
    """
    said = _said(statement)
    rest = "".join(_rest_of(sentence, said) for sentence in SENTENCE.findall(text)).strip()
    if not said or rest == text.strip():
        return text
    return rest if len(_stems(rest) - _PLEASANTRIES) >= LEFT_WORDS_MIN else ""


def states(text: str, statement: str) -> bool:
    """Whether a statement is made in a text."""
    said = _said(statement)
    return bool(said) and any(_makes(_said(each), said) for each in SENTENCE.findall(text))


def _makes(sentence: frozenset[str], statement: frozenset[str]) -> bool:
    shared = len(sentence & statement)
    return shared >= COVERED_MIN * len(statement) or 0 < COVERED_MIN * len(sentence) <= shared


def _rest_of(sentence: str, statement: frozenset[str]) -> str:
    """A sentence without the clauses that make a statement; without any clause if none does."""
    if not _makes(_said(sentence), statement):
        return sentence
    clauses = [(clause.strip(), _said(clause)) for clause in _CLAUSE.split(sentence)]
    kept = [clause for clause, said in clauses if len(said & statement) < CLAUSE_MIN * len(said)]
    return f"{', '.join(kept)} " if 0 < len(kept) < len(clauses) else ""


def _stems(text: str) -> set[str]:
    """Those of the words that say something."""
    return {stem(word) for word in search_terms(text, WORDS_MAX)}


def untold(text: str, facts: Sequence[str]) -> str:
    """A text of many lines without those that one of these facts says, or that say nothing."""
    told = [(_said(fact), denies(fact)) for fact in facts]
    if not told and _NOTHING.search(text) is None:
        return text
    kept: list[str] = []
    above: list[tuple[int, str]] = []  # headings that nothing has followed yet
    for line in text.splitlines():
        level = _level(line)
        if level is not None:
            above = [each for each in above if each[0] < level]
        if _is_told(line, told) or _NOTHING.match(line):
            continue
        if level is not None:
            above.append((level, line))
            continue
        if line.strip():
            kept += (heading for _, heading in above)
            above = []
        kept.append(line)
    return "\n".join(kept).strip()


def _level(line: str) -> int | None:
    heading = _HEADING.match(line)
    if heading is not None:
        return len(heading[1])
    return _LABEL_LEVEL if line.rstrip().endswith(":") else None


def _is_told(line: str, told: Sequence[tuple[frozenset[str], bool]]) -> bool:
    said = _said(line)
    if not said:
        return False
    is_denied = denies(line)
    for fact, fact_denies in told:
        missing = said - fact
        if fact_denies is is_denied and len(missing) <= (1 - COVERED_MIN) * len(said):
            return all(word.isalpha() for word in missing)
    return False


@lru_cache(maxsize=8192)  # the same few pages are looked at in every turn
def _said(line: str) -> frozenset[str]:
    return frozenset(_stems(_AROUND.sub(" ", line)) - _PERSON)
