"""A store's address as it may be shown: to a person, in a log, in an error."""

from __future__ import annotations

import re

# Up to the last @, because a password that nobody escaped may hold anything.
_USER_AND_PASSWORD = re.compile(r"(?<=://)([^:/?#@]*):.+@", re.DOTALL)


def without_password(address: str) -> str:
    """The address with its password masked, wherever it stands."""
    if "://" not in address:
        return address
    place, _, query = _USER_AND_PASSWORD.sub(r"\1:***@", address).partition("?")
    pairs = [pair for pair in query.split("&") if pair and "password=" not in pair.lower()]
    return "?".join([place, "&".join(pairs)] if pairs else [place])
