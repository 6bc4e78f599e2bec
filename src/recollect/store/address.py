"""A store's address as it may be shown: to a person, in a log, in an error."""

from __future__ import annotations

import re
from urllib.parse import unquote

_HIDDEN = "***"
_PASSWORD_OPTION = re.compile(r"[?&][^?&=]*password=", re.IGNORECASE)
_BETWEEN = re.compile(r"[:/?#@&=]")  # what an address is taken apart at, rightly or not


def without_password(address: str) -> str:
    """The address with its password masked, wherever it stands."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    option = _PASSWORD_OPTION.search(rest)
    if scheme == "sqlite" or "@" not in rest:
        shown = rest
    elif option is not None and "@" in rest[option.end() :]:
        shown = _HIDDEN  # which of them is the password's end, nobody can tell
    else:
        shown = _user_shown(rest)
    place, _, query = shown.partition("?")
    pairs = [pair for pair in query.split("&") if pair and "password=" not in pair.lower()]
    return f"{scheme}://" + "?".join([place, "&".join(pairs)] if pairs else [place])


def without_secrets(text: str, address: str) -> str:
    """What somebody says about an address, without any part of the password in it.

    A password that nobody escaped is taken for a host or a port, and quoted as such.
    """
    rest = address.partition("://")[2]
    ahead, is_there, _ = rest.rpartition("@")
    pieces = _BETWEEN.split(ahead)[1:] if is_there else []
    options = _PASSWORD_OPTION.split(rest)[1:]
    pieces += [piece for option in options for piece in _BETWEEN.split(option)]
    for piece in sorted({*pieces, *map(unquote, pieces)} - {""}, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(piece)}(?!\w)", _HIDDEN, text)
    return text


def _user_shown(rest: str) -> str:
    """Up to the last @, because a password that nobody escaped may hold anything."""
    ahead, _, behind = rest.rpartition("@")
    user, colon, _ = ahead.partition(":")
    if _BETWEEN.search(user):
        return f"{_HIDDEN}@{behind}"
    return f"{user}:{_HIDDEN}@{behind}" if colon else f"{user}@{behind}"
