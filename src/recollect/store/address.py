"""Addresses of stores: the file that one names, and its form for logs and errors."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from recollect.errors import InvalidUrl

FORMS = "use a path, sqlite:///path, postgresql://user@host/database or :memory:"

_HIDDEN = "***"
_PASSWORD_OPTION = re.compile(r"[?&][^?&=]*password=", re.IGNORECASE)
_BETWEEN = re.compile(r"[:/?#@&=]")  # what an address is taken apart at, rightly or not


def path_of(address: str | Path) -> Path | None:
    """The file that an address means; none: it is a server's."""
    if isinstance(address, Path):
        return address.absolute()
    scheme, separator, _ = address.partition("://")
    if address == ":memory:":
        raise InvalidUrl("a store in memory would be lost when this ends; name a file or a server")
    if not separator:
        return at_home(address).absolute()
    if scheme != "sqlite":
        return None
    path = file_of(address)
    return path_of(":memory:") if path is None else path.absolute()


def file_of(url: str) -> Path | None:
    """The file that a sqlite:///… means; none: a store in memory."""
    name = unquote(url_parts(url).path).removeprefix("/")
    return None if name in ("", ":memory:") else at_home(name)


def at_home(name: str) -> Path:
    """A path as people write it, where ~ is their home."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise InvalidUrl(f"{name}: that user's home directory is not known; {FORMS}") from error


def url_parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidUrl(f"{url}: {error}; {FORMS}") from error
    if parts.netloc:
        raise InvalidUrl(f"{url}: a file has no host; write sqlite:///path with three slashes")
    return parts


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
