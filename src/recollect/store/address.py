"""A store's address as it may be shown: to a person, in a log, in an error."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def without_password(address: str) -> str:
    """The address with its password masked, wherever it stands."""
    if "://" not in address:
        return address
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    pairs = [pair for pair in parts.query.split("&") if "password=" not in pair.lower()]
    netloc = f"{name}{':***' if password else ''}{at}{host}"
    return urlunsplit(parts._replace(netloc=netloc, query="&".join(pairs)))
