"""From any text to its stems in their order: what entries are indexed by and questions made of.

On top of a plain word: the parts of identifiers and the whole of versions, pairs of signs where a
script has no blanks, and English forms that no rule finds (bought, children). A stem is letters and
digits, so that no database sees anything else in it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from recollect.fences import without_recalled
from recollect.irregular import FORMS
from recollect.patterns import LazyPattern
from recollect.terms import search_terms, words
from recollect.topic_words import asking_words

RECORD_CHARS_MAX = 16_384
INDEXED_BYTES_MAX = 262_144  # more make an entry that PostgreSQL refuses
ASKED_STEMS_MAX = 96  # of a question: what is written without blanks has many

_WORD = LazyPattern(r"[^\W_]+")
_HUMPED = LazyPattern(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_HUMP = LazyPattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DOTTED = LazyPattern(r"[0-9]\.[0-9]")
# Not within something longer; every part is bounded, so that no text takes long.
_VERSION = LazyPattern(
    r"(?<![^\W_])(?<![^\W_]\.)[vV]?(\d{1,9}(?:\.\d{1,9}){1,5})(?!\.?[^\W_])", re.ASCII
)
# Scripts that write no blanks: kana, Han, Thai, Lao, Khmer; Hangul has them but glues its endings.
_UNSPACED = LazyPattern(
    "[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
UNSPACED_CHARS = 32  # of such a run in one piece; a long word would be cut
_stemming = threading.Lock()  # a stemmer works on one word at a time


def stems(text: str) -> list[str]:
    """All of them, stop words too; an identifier as its parts and, whole, as one more."""
    found = words(_spelt_out(text)).split()
    if text.isascii():
        return list(map(stem, found))
    return [each for word in found for each in _of_word(word)]


def indexed(text: str) -> str:
    """What a text is found by: its stems with blanks between them, as many as an index takes."""
    found = " ".join(stems(text[:INDEXED_BYTES_MAX]))
    if len(found) * 4 <= INDEXED_BYTES_MAX:
        return found
    return found.encode()[:INDEXED_BYTES_MAX].decode(errors="ignore")


def indexed_fact(content: str, topic: str | None, metadata: Mapping[str, Any]) -> str:
    """What a fact is found by: its own words, and behind them those that ask for its topic.

    A word that it has anyway is not counted twice.
    """
    own = indexed(content)
    has = frozenset(own.split())
    hints = dict.fromkeys(stem(word) for word in asking_words(topic, metadata.get("rule")))
    return " ".join(filter(None, (own, *(each for each in hints if each not in has))))


def indexed_record(content: str) -> str:
    """What a record is found by: its beginning, if it is very long, without what was recalled."""
    return indexed(without_recalled(content[:RECORD_CHARS_MAX]))


def indexed_summary(raw_memory: str, rollout_summary: str, rollout_slug: str | None) -> str:
    """What a session's result is found by."""
    return indexed(f"{rollout_slug or ''} {rollout_summary} {raw_memory}")


def asked_stems(text: str) -> dict[str, str]:
    """The stems worth searching for, in their order, and the word each stands for."""
    found: dict[str, str] = {}
    for word in search_terms(_spelt_out(text)):
        for each in _of_word(word):
            found.setdefault(each, word)
    return dict(islice(found.items(), ASKED_STEMS_MAX))


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The one form under which all forms of a folded word are found. Only English is known."""
    if not word.isascii() or not word.isalpha():
        return word
    with _stemming:
        return str(_stemmer().stemWord(FORMS.get(word, word)))


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")


def _spelt_out(text: str) -> str:
    """A text in which identifiers stand as their parts and whole, and a version is one word."""
    if _HUMPED.search(text):
        text = _WORD.sub(_with_parts, text)
    if _DOTTED.search(text):
        text = _VERSION.sub(lambda found: found[1].replace(".", "d"), text)
    return text if text.isascii() else _UNSPACED.sub(_in_pieces, text)


def _in_pieces(run: re.Match[str]) -> str:
    """A long run as several words; each begins with the sign that the one before ends with."""
    signs, step = run[0], UNSPACED_CHARS - 1
    if len(signs) <= UNSPACED_CHARS:
        return signs
    return " ".join(signs[at : at + UNSPACED_CHARS] for at in range(0, len(signs) - 1, step))


def _with_parts(found: re.Match[str]) -> str:
    parts = _HUMP.split(found[0])
    return " ".join([*parts, found[0]]) if len(parts) > 1 else found[0]


def _of_word(word: str) -> Iterable[str]:
    if word.isascii() or not _UNSPACED.search(word):
        return (stem(word),)
    return _unspaced(word)


def _unspaced(word: str) -> Iterator[str]:
    """Every two signs that stand together; what stands between such runs is a word."""
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            yield stem(word[end : run.start()])
        signs = run.group()
        yield from (signs[at : at + 2] for at in range(max(len(signs) - 1, 1)))
        end = run.end()
    if end < len(word):
        yield stem(word[end:])
