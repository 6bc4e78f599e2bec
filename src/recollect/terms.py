"""From any text to the words it is searched by: any question is a legal query."""

from __future__ import annotations

import re

TERMS_MAX = 48
TERM_CHARS_MAX = 64

_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*")  # with the accents of its letters

# What stands in every sentence and finds every fact.
_STOP_WORDS = frozenset(
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


def search_terms(text: str, terms_max: int = TERMS_MAX) -> list[str]:
    """The words worth searching for, in their order, each once.

    They are left as they are written: each database folds case in its own way, a question like what
    it is to find. A text of nothing but common words is searched by those.
    """
    words: dict[str, str] = {}
    common: dict[str, str] = {}
    for match in _WORD.finditer(text):
        word = match.group()[:TERM_CHARS_MAX]
        folded = word.lower()
        if folded in _STOP_WORDS:
            common.setdefault(folded, word)
        else:
            words.setdefault(folded, word)
            if len(words) == terms_max:
                break
    return list((words or common).values())[:terms_max]
