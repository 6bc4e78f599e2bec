"""Stems of any text, by which entries are indexed and questions are searched.

The one place that defines a word, so that every database finds the same. On top of a plain
word: the parts of identifiers and the whole of versions, pairs of signs where a script has no
blanks, English forms that no rule finds (bought, children), and the words people ask with for each
topic of a life.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from recollect.patterns import LazyPattern
from recollect.quoting import without_recalled

TERMS_MAX = 48
WORD_CHARS_MAX = 64

# Of Hebrew and Arabic also the vowels, which hardly anybody writes.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
# The end of a very long word counts for nothing.
_WORD = re.compile(rf"([^\W_]{{1,{WORD_CHARS_MAX}}})[^\W_]*")
# Of ASCII, letters in lower case, digits, and blanks for all the rest.
_ASCII_FOLDED = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}

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
    ways are one; the end of a very long word is ignored.
    """
    if text.isascii():
        found = text.translate(_ASCII_FOLDED).split()  # much faster than the pattern
        if len(text) <= WORD_CHARS_MAX or max(map(len, found), default=0) <= WORD_CHARS_MAX:
            return " ".join(found)
        folded = text.lower()
    else:
        plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        # Letters that are made of others in their own script go back together.
        folded = unicodedata.normalize("NFC", plain.casefold())
    return " ".join(_WORD.findall(folded))


def search_terms(text: str, terms_max: int = TERMS_MAX) -> list[str]:
    """The words worth searching for, in their order, each once.

    A text of nothing but common words is searched by those.
    """
    found = dict.fromkeys(words(text).split())
    kept = {"may"} if "may" in found and _MAY_IS_MEANT.search(text) else ()
    rare = [word for word in found if word not in STOP_WORDS or word in kept]
    return (rare or list(found))[:terms_max]


_NAME = "name"


def asking_words(topic: str | None, rule: object = None) -> tuple[str, ...]:
    """What a fact of this topic is asked for by, each word once; nothing where neither is known.

    A topic is `whose:what` or `whose:what:more`; `rule` is the name of the one that found it.
    """
    found = (word for name in _names(topic, rule) for word in _asked().get(name, ()))
    return tuple(dict.fromkeys(found))


def _names(topic: str | None, rule: object) -> Iterator[str]:
    if topic is not None:
        whose, *what = topic.split(":")
        parts = (what[0] if what else whose).split("-")
        # The first says most: a favourite city is a favourite, a home city is a home.
        yield from [part for part in parts if part in _asked()][:1]
        # More may be anything that somebody likes, except where somebody is named.
        yield from (more for more in what[1:] if more == _NAME)
    if isinstance(rule, str):
        yield rule


@cache
def english_table(name: str) -> Sequence[tuple[tuple[str, ...], tuple[str, ...]]]:
    """A table of `english.txt`: of each line the words before " = ", and those behind it."""
    text = Path(__file__).with_name("english.txt").read_text(encoding="utf-8")
    table = text.partition(f"\n[{name}]\n")[2].partition("\n\n")[0]
    lines = (line.partition(" = ") for line in table.splitlines())
    return [(tuple(before.split()), tuple(behind.split())) for before, _, behind in lines]


@cache
def _forms() -> Mapping[str, str]:
    return {other: first for (first, *others), _ in english_table("forms") for other in others}


@cache
def _asked() -> Mapping[str, tuple[str, ...]]:
    return {name: asked for names, asked in english_table("asked") for name in names}


RECORD_CHARS_MAX = 16_384
INDEXED_BYTES_MAX = 262_144  # more make an entry that PostgreSQL refuses
ASKED_STEMS_MAX = 96  # of a question: what is written without blanks has many

_TOKEN = LazyPattern(r"[^\W_]+")
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
        return str(_stemmer().stemWord(_forms().get(word, word)))


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")


def _spelt_out(text: str) -> str:
    """A text in which identifiers stand as their parts and whole, and a version is one word."""
    if _HUMPED.search(text):
        text = _TOKEN.sub(_with_parts, text)
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
