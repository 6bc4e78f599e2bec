"""Placeholders: what they look like, and how a secret becomes one that only its store can make."""

from __future__ import annotations

from hashlib import blake2b

from recollect.errors import InvalidValue
from recollect.patterns import LazyPattern

PLACEHOLDER = LazyPattern(r"\[redacted:[a-z0-9-]{1,64}:[0-9a-f]{8}\]")


class Placeholders:
    """Makes placeholders with the salt of a store: equal secrets, equal placeholders."""

    def __init__(self, salt: bytes) -> None:
        if not salt:
            raise InvalidValue("redaction needs a salt: without one, placeholders can be guessed")
        self._key = blake2b(salt, digest_size=32).digest()

    def of(self, kind: str, secret: str) -> str:
        data = secret.encode("utf-8", "surrogatepass")
        return f"[redacted:{kind}:{blake2b(data, key=self._key, digest_size=4).hexdigest()}]"
