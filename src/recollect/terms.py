"""From any text to the words it is known by: facts are indexed by them, questions are made of them.

The one place that says what a word is, so that every database finds the same.
"""

from __future__ import annotations

import re
import unicodedata

TERMS_MAX = 48
WORD_CHARS_MAX = 64

# Of Hebrew and Arabic also the vowels, which hardly anybody writes.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
_WORD = re.compile(r"[^\W_]+")

# What stands in every sentence and finds every fact.
STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being but by can could
    did do does doing done down for from further get got had has have having he her here hers him
    his how i if in into is it its itself just let like ll m may me might more most must my myself
    no nor not of off on once only or other our ours out over own re s same shall she should so
    some such t than that the their theirs them then there these they this those through to too
    under until up us ve very was we were what when where which while who whom whose why will with
    would you your yours
    """.split()  # noqa: SIM905
)
# The one of them that is a month, or a name, as well: beside a number, behind what leads to a time,
# or with a capital that no sentence begins with.
_MAY_IS_MEANT = re.compile(
    r"\b(?:in|of|since|until|last|next|early|late|mid|during)[ -](?i:may)\b|"
    r"(?i:\b\d{1,2}(?:st|nd|rd|th)? may\b|\bmay \d)|"
    r"(?:(?<=[^\W_] )|(?<=[^\W_], ))May\b(?! (?:I|we|you|he|she|it|they)\b)"
)


def words(text: str) -> str:
    """The words of a text with blanks between them: letters and digits, without case and accents.

    A path, an address or a version is the words it is made of. Letters that are written in several
    ways are one; the end of a very long word counts for nothing.
    """
    if text.isascii():
        folded = text.lower()
    else:
        plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        # Letters that are made of others in their own script go back together.
        folded = unicodedata.normalize("NFC", plain.casefold())
    return " ".join(word[:WORD_CHARS_MAX] for word in _WORD.findall(folded))


def search_terms(text: str, terms_max: int = TERMS_MAX) -> list[str]:
    """The words worth searching for, in their order, each once.

    A text of nothing but common words is searched by those.
    """
    found = dict.fromkeys(words(text).split())
    kept = {"may"} if "may" in found and _MAY_IS_MEANT.search(text) else ()
    rare = [word for word in found if word not in STOP_WORDS or word in kept]
    return (rare or list(found))[:terms_max]
