"""The languages understood without a model: their names, and detection of a text's language."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

ENGLISH = "en"
# What each language that rules are written for is called.
LANGUAGES: Mapping[str, str] = {
    ENGLISH: "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "pt": "Portuguese",
    "it": "Italian",
    "nl": "Dutch",
}

_TOLD_BY_CHARS = 240  # of a text, by which its language is told
_WORD = re.compile(r"[^\W\d_]+'?")


def named_languages() -> str:
    """All of them, as they stand in a sentence."""
    *languages, last = LANGUAGES.values()
    return f"{', '.join(languages)} and {last}"


@functools.lru_cache(maxsize=1)
def _function_words() -> Mapping[str, tuple[str, ...]]:
    """The languages that a function word is one of."""
    found: dict[str, tuple[str, ...]] = {}
    for language, listed in _read().items():
        for word in listed.split():
            found[word] = (*found.get(word, ()), language)
    return found


def language_of(text: str, before: str = ENGLISH) -> str:
    """The language of a text, by the small words that are in every sentence of one.

    `before` is that of the text before it, for one that says too little.
    """
    known = _function_words()
    counted: dict[str, int] = {}
    for word in _WORD.findall(text[:_TOLD_BY_CHARS].lower().replace("’", "'")):
        for language in known.get(word, ()):
            counted[language] = counted.get(language, 0) + 1
    best = max(counted.values(), default=0)
    likely = [language for language, count in counted.items() if count == best]
    if before in likely or not likely:
        return before
    return ENGLISH if ENGLISH in likely else likely[0]


def _read() -> Mapping[str, str]:
    import tomllib  # only where a text is read: it would cost every start

    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
