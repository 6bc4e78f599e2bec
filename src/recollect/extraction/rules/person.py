"""Turns what somebody says of themselves into a statement about them, where that is safe.

"I live in Porto with my sister" becomes "Ana lives in Porto with their sister". Where grammar or
meaning might suffer the answer is None, and the words are quoted as they were said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_|\s+")
_SIBILANT = ("s", "x", "z", "ch", "sh", "o")
_ED_BUT_PRESENT = frozenset(
    {"need", "feed", "speed", "breed", "seed", "weed", "succeed", "proceed"}
)
_CONTRACTED = {"i'm": "is", "im": "is", "i'll": "will", "i've": "has"}
_PLURAL_CONTRACTED = {"i'm": "are", "im": "are", "i'll": "will", "i've": "have"}
_PLURAL = {"am": "are", "was": "were", "wasn't": "weren't", "ain't": "aren't"}
_IRREGULAR = {
    "am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't", "go": "goes",
    "ain't": "isn't",
}  # fmt: skip
_JOINS = frozenset({"and", "but", "or"})
_ALWAYS_FINITE = frozenset({"want", "need", "prefer"})  # "is planning a party and want" is mended
_STOPS_JOINING = frozenset(
    {
        "to",
        "can",
        "will",
        "would",
        "could",
        "should",
        "might",
        "must",
        "let",
        "help",
        "makes",
        "let's",
    }
)
# "Marrying my partner was …": who marries would be lost with the "my".
_NO_GERUNDS = frozenset(
    """during nothing something everything anything morning evening spring according regarding
    including considering depending speaking following exciting""".split()  # noqa: SIM905
)
_FINITE = frozenset({"is", "was", "are", "were", "has", "had", "made", "makes", "me", ",", ":"})
_AS_ONESELF = re.compile(r"\bbe(?:ing)? me\b", re.IGNORECASE)
# "The peace and love theme" or "the house and love music": nobody can tell, so it is quoted.
_NOUN_OR_VERB = re.compile(
    r"\b(?:the|this|that) (?:[\w-]+ ){1,2}(?:and|or) (?:love|work|need|hate|try) "
    r"(?!(?:a|an|the|my|it|them|this|that|to|in|at|as|with|for|from|on|how|when|what|every|all|some"
    r"|both|so)\b|\w+ing\b)\w",
    re.IGNORECASE,
)


class Narrator:
    """Rewrites sentences of one language."""

    def __init__(self, verbs: Mapping[str, frozenset[str]], person: Mapping[str, str]) -> None:
        self._verbs = verbs
        self._first = frozenset(person["first"].split())
        self._unsafe = frozenset(person["unsafe"].split())
        self._after_would = frozenset(person["after_would"].split())
        self._they, self._them, self._their, self._theirs, self._themselves = person[
            "third"
        ].split()

    def tell(self, sentence: str, who: str) -> str | None:
        """The sentence about `who`, or None where it had better be quoted."""
        if not self._first:
            return None
        tokens = _TOKEN.findall(sentence)
        lower = [token.lower().replace("’", "'") for token in tokens]
        if not self._unsafe.isdisjoint(lower) or '"' in lower or "“" in lower or "?" in lower:
            return None
        if _loses_its_doer(lower) or _AS_ONESELF.search(sentence):
            return None
        if _NOUN_OR_VERB.search(sentence):
            return None
        told: list[str] = []
        is_named = said_i = False
        place = 0
        while place < len(tokens):
            word = lower[place]
            if word not in self._first or _is_in_a_compound(lower, place):
                is_part = _is_in_a_compound(lower, place)
                own = None if is_part else self._possessed(word, who, is_named=is_named)
                told.append(own or tokens[place])
                is_named = is_named or own is not None
                place += 1
                continue
            if place >= 2 and lower[place - 2] in self._verbs["auxiliaries"]:
                return None  # "so do I", "nor have I"
            is_plural = is_named or _is_company(lower, place)
            verb = self._conjugated(lower, place, is_plural=is_plural)
            if verb is None:
                return None
            words, place = verb
            told.append(f"{self._they if is_named else who} {words}")
            is_named = said_i = True
        if not is_named:
            return None
        text = "".join(told)
        return self._joined(text, who) if said_i else text

    def _possessed(self, word: str, who: str, *, is_named: bool) -> str | None:
        match word:
            case "my":
                return self._their if is_named else f"{who}'s"
            case "mine":
                return self._theirs if is_named else f"{who}'s"
            case "me":
                return self._them if is_named else who
            case "myself":
                return self._themselves if is_named else who
            case _:
                return None

    def _conjugated(
        self, lower: list[str], place: int, *, is_plural: bool
    ) -> tuple[str, int] | None:
        """What stands for "I" and its verb, without the "I", and where to go on."""
        word = lower[place]
        after = [token for token in lower[place + 1 : place + 10] if not token.isspace()]
        if word == "i'd":
            is_wish = any(token in self._after_would for token in after[:2])
            return ("would" if is_wish else "had"), place + 1
        if word in _CONTRACTED:
            return (_PLURAL_CONTRACTED if is_plural else _CONTRACTED)[word], place + 1
        told: list[str] = []
        place += 1
        while place < len(lower) and (lower[place].isspace() or self._is_adverb(lower[place])):
            told.append(lower[place])
            place += 1
        if place == len(lower):
            return None
        verb = self._third(lower[place])
        if verb is not None and is_plural:
            verb = _PLURAL.get(lower[place], lower[place])
        if verb is None:
            return None
        return "".join([*told, verb]).strip(), place + 1

    def _is_adverb(self, word: str) -> bool:
        return word in self._verbs["adverbs"] or (word.endswith("ly") and len(word) > 4)

    def _third(self, verb: str) -> str | None:
        if verb in _IRREGULAR:
            return _IRREGULAR[verb]
        if verb in self._verbs["unchanged"]:
            return verb
        if verb in self._verbs["base"]:
            return third_person(verb)
        if verb.endswith("ed") and len(verb) > 4 and verb not in _ED_BUT_PRESENT:
            return verb
        return None

    def _joined(self, text: str, who: str) -> str:
        """Verbs that share the subject: "Ana lives in Porto and work at a bank" is mended."""
        tokens = _TOKEN.findall(text)
        can_join: frozenset[str] = frozenset()
        for place, token in enumerate(tokens):
            word = token.lower()
            if token == who or (place == 0 and text.startswith(f"{who} ")):
                can_join = self._verbs["joining"]
            elif word in _STOPS_JOINING or word == self._they or token in ".;:":
                can_join = frozenset()
            elif word.endswith("ing") and can_join:
                can_join = _ALWAYS_FINITE
            elif word in _JOINS and can_join:
                self._mend(tokens, place + 2, can_join)
        return "".join(tokens)

    def _mend(self, tokens: list[str], place: int, verbs: frozenset[str]) -> None:
        while place < len(tokens) and (tokens[place].isspace() or self._is_adverb(tokens[place])):
            place += 1
        if place < len(tokens) and tokens[place] in verbs:
            tokens[place] = self._third(tokens[place]) or tokens[place]


def third_person(verb: str) -> str:
    """Return the form of a verb that follows "she": tries, goes, watches, lives."""
    if verb.endswith("y") and len(verb) > 1 and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(_SIBILANT) else f"{verb}s"


def _is_in_a_compound(lower: list[str], place: int) -> bool:
    """Whether a hyphen makes a word part of another: "me-time", "I-95"."""
    joins_next = lower[place + 1 : place + 2] == ["-"] and lower[place + 2 : place + 3] != []
    joins_last = lower[max(0, place - 1) : place] == ["-"] and place > 1
    return (joins_next and not lower[place + 2].isspace()) or (
        joins_last and not lower[place - 2].isspace()
    )


def _loses_its_doer(lower: list[str]) -> bool:
    """Whether it begins with something done, and "my" is the first to say by whom."""
    first = lower[0] if lower else ""
    if not first.endswith("ing") or len(first) < 5 or first in _NO_GERUNDS:
        return False
    for word in lower:
        if word in _FINITE:
            return False
        if word in ("my", "myself"):
            return True
    return False


def _is_company(lower: list[str], place: int) -> bool:
    """Whether "I" is one of several: "my wife and I"."""
    words = [token for token in lower[:place] if not token.isspace()]
    return 1 < len(words) <= 6 and words[-1] == "and" and "," not in words
