"""Visits of people who signed in, each behind a random cookie; bounded in number and time.

A visit holds the digest of a key, which is looked up with every request, so that a revoked key is
refused at once. The browser has neither the key nor anything it could be derived from. Visits end
with the process.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.ids import SYSTEM_RANDOMNESS
from recollect.interfaces.http.bearer import SECRET_CHARS_MAX, Authenticator, digest_of
from recollect.memory import Memory
from recollect.types.access import ApiKey

VISITS_MAX = 10_000
VISITS_OF_KEY_MAX = 100  # so that no key can crowd out the visits of others
VISIT_LASTS = timedelta(hours=12)
TOKEN_BITS = 256


def _token() -> str:
    return f"{SYSTEM_RANDOMNESS.getrandbits(TOKEN_BITS):064x}"


def _kept(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


@dataclass(slots=True, kw_only=True)
class Visit:
    """One browser that has signed in. `said` is shown on its next page, once."""

    key_digest: str
    csrf: str
    until: datetime
    said: str = ""

    def sent(self, token: str) -> bool:
        """Whether a form comes from a page of this visit."""
        return hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self.csrf.encode())


class Visits:
    """The visits there are."""

    def __init__(self, memory: Memory) -> None:
        self._clock = memory.clock
        self._door = Authenticator(memory)
        self._visits: OrderedDict[bytes, Visit] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, secret: str) -> str | None:
        """The cookie of a new visit; none: nobody has such a key."""
        secret = secret.strip()
        if not 0 < len(secret) <= SECRET_CHARS_MAX or self._door.known(digest_of(secret)) is None:
            return None
        token = _token()
        visit = Visit(
            key_digest=digest_of(secret), csrf=_token(), until=self._clock.now() + VISIT_LASTS
        )
        with self._lock:
            alike = [at for at, each in self._visits.items() if each.key_digest == visit.key_digest]
            if len(alike) >= VISITS_OF_KEY_MAX:
                del self._visits[alike[0]]
            self._visits[_kept(token)] = visit
            if len(self._visits) > VISITS_MAX:
                self._visits.popitem(last=False)
        return token

    def of(self, token: str) -> tuple[Visit, ApiKey] | None:
        """Return the visit of a cookie and its key; None whatever is wrong with it."""
        place = _kept(token)
        with self._lock:
            visit = self._visits.get(place)
            if visit is not None and visit.until <= self._clock.now():
                del self._visits[place]
                visit = None
        key = None if visit is None else self._door.known(visit.key_digest)
        return None if visit is None or key is None else (visit, key)

    def end(self, token: str) -> None:
        with self._lock:
            self._visits.pop(_kept(token), None)

    def told(self, visit: Visit) -> str:
        """What is to be said once, and is not from now on."""
        with self._lock:
            said, visit.said = visit.said, ""
        return said
