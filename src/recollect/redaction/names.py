"""Reads a name and says what kind of secret, if any, its value is: `db_password`, `apiKey`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from string import ascii_letters, digits

from recollect.patterns import LazyPattern

Words = Mapping[str, frozenset[str]]

NAME_CHARS_MAX = 80


class NameKind(StrEnum):
    """What a telling name is about; its value is what a placeholder says."""

    PASSWORD = "password"
    PIN = "pin"
    TOKEN = "token"
    SECRET = "secret"
    KEY = "api-key"
    SOME_KEY = "key"  # a key of something: its value has to speak for itself


_PARTS = LazyPattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|[0-9]+")
# A word in one piece that ends like this is read as two: PGPASSWORD, authtoken, clientsecret.
_ENDINGS = (
    *(("password", NameKind.PASSWORD), ("passwd", NameKind.PASSWORD), ("token", NameKind.TOKEN)),
    *(("secret", NameKind.SECRET), ("apikey", NameKind.KEY), ("passphrase", NameKind.PASSWORD)),
    *(("pwd", NameKind.PASSWORD), ("passwort", NameKind.PASSWORD)),
)
_KINDS = (
    *(("password", NameKind.PASSWORD), ("pin", NameKind.PIN), ("token", NameKind.TOKEN)),
    *(("secret", NameKind.SECRET), ("key", NameKind.KEY)),
)


def words_of(name: str) -> list[str]:
    """`DB_PASSWORD`, `dbPassword` and `db-password` are the words db and password."""
    return [part.lower() for part in _PARTS.findall(name[-NAME_CHARS_MAX:])]


def name_kind(name: str, words: Words) -> NameKind | None:
    """The kind of secret that a name announces."""
    parts = [part for part in words_of(name) if not part.isdigit()]
    for place in range(len(parts) - 1, -1, -1):
        kind = _word_kind(parts, place, words)
        if kind is None:
            continue
        after, before = set(parts[place + 1 :]), set(parts[:place])
        if after & words["not_after"] or before & words["not_before"]:
            return None
        if before & words["not_joined"]:
            return None
        return kind
    return None


def _word_kind(parts: list[str], place: int, words: Words) -> NameKind | None:
    word = parts[place]
    for listed, kind in _KINDS:
        if word in words[listed]:
            return kind
    if word in ("key", "keys"):
        if place == 0:
            return None
        return NameKind.KEY if parts[place - 1] in words["keyed"] else NameKind.SOME_KEY
    for ending, kind in _ENDINGS:
        if len(word) > len(ending) and word.endswith(ending):
            return kind
    return None


_NAME = LazyPattern(
    r"""[^\s"'`=:,;(){}\[\]<>\\|&?*%@：＝]{2,64}(?:[ \t](?i:key|token|secret|code)\b)?"""
)
_WORD_CHARS = ascii_letters + digits
_JOINED_CHARS = _WORD_CHARS + "_.-"


def name_around(text: str, keyword: int, words: Words) -> str:
    """The name that a keyword is part of, with the word in front of it if that says more."""
    before = text[max(0, keyword - 48) : keyword]
    apart = before.rstrip(_JOINED_CHARS)
    if apart.endswith(":") and (apart[-2:-1] == ":" or apart[-2:-1].isdigit()):
        return ""  # A::B::Key, arn:…:1234:secret:…: a part of an address
    rest = _NAME.match(text, keyword)
    name = before[len(apart) :] + ("" if rest is None else rest[0])
    if apart[-1:] not in (" ", "\t"):
        return name
    word = apart[len(apart[:-1].rstrip(_WORD_CHARS)) : -1]
    says_more = word.lower() in words["keyed"] or word.lower() in words["not_before"]
    return f"{word} {name}" if says_more else name
