"""API keys: created and shown once, and known afterwards only by a digest.

A secret is 256 random bits, so that its plain SHA-256 cannot be reversed by guessing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from recollect import collection
from recollect.errors import InvalidValue, StoreError
from recollect.ids import SYSTEM_RANDOMNESS, Ids, Randomness
from recollect.memory import Memory
from recollect.types.access import ApiKey, Scope

if TYPE_CHECKING:
    from recollect.store.relational.access import ApiKeys

PREFIX = "rck_"  # says to people and scanners what it is
SECRET_BYTES = 32
SECRET_CHARS_MAX = 256
USE_NOTED_EVERY = timedelta(minutes=1)

_log = logging.getLogger(__name__)


def new_secret(randomness: Randomness = SYSTEM_RANDOMNESS) -> str:
    raw = randomness.getrandbits(8 * SECRET_BYTES).to_bytes(SECRET_BYTES)
    return PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def make_key(
    memory: Memory,
    name: str,
    *,
    space: str | None,
    scope: Scope,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key, and its secret, which is nowhere else from then on."""
    now = memory.clock.now()
    if expires_at is not None and expires_at <= now:
        raise InvalidValue(f"a key cannot have expired before it is made: {expires_at}")
    secret = new_secret()
    label = collection.check_label(name, "a key's name")
    assert label is not None
    key = ApiKey(
        id=Ids(memory.clock).new(),
        name=label,
        digest=digest_of(secret),
        space=None if space is None else collection.check_space(space),
        scope=scope,
        created_at=now,
        expires_at=expires_at,
    )
    memory.store.api_keys.add(key)
    return key, secret


class Authenticator:
    """Finds the key that a request shows.

    Asks the store every time, so that a revoked key is revoked at once.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._noted: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def authenticate(self, authorization: str) -> ApiKey | None:
        """Return the key of an Authorization header; None whatever is wrong with it."""
        kind, _, given = authorization.partition(" ")
        secret = given.strip()
        if kind.casefold() != "bearer" or not 0 < len(secret) <= SECRET_CHARS_MAX:
            return None
        return self.known(digest_of(secret))

    def known(self, digest: str) -> ApiKey | None:
        """The key with this digest, if it is valid now."""
        keys = self._memory.store.api_keys
        found = keys.find(digest)
        now = self._memory.clock.now()
        if found is None or not hmac.compare_digest(found.digest, digest):
            return None
        if not found.is_valid(now):
            return None
        self._note(keys, found, now)
        return found

    def _note(self, keys: ApiKeys, key: ApiKey, now: datetime) -> None:
        """Note that a key was used, not every time: it is a write, and reads must not wait."""
        with self._lock:
            last = self._noted.get(key.id)
            if last is not None and now - last < USE_NOTED_EVERY:
                return
            self._noted[key.id] = now
        try:
            keys.used(key.id, now)
        except StoreError as error:  # a store that is read only, or busy, can still be read
            _log.warning("the use of a key was not noted: %s", type(error).__name__)
