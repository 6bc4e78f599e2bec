"""Visits of people who signed in, each behind a random cookie; bounded in number and time.

A visit is a row of the store, so that it holds in every process that serves it, after a restart as
well, and is over in all of them at once. It has the digest of its cookie and that of a key, which
is looked up with every request, so that a revoked key is refused at once. The browser has neither
the key nor anything it could be derived from; what forms have to send is derived from the cookie.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta

from recollect.ids import SYSTEM_RANDOMNESS
from recollect.interfaces.http.bearer import SECRET_CHARS_MAX, Authenticator, digest_of
from recollect.memory import Memory
from recollect.types.access import ApiKey, ServingState, StateKind

VISITS_OF_KEY_MAX = 100
VISIT_LASTS = timedelta(hours=12)
TOKEN_BITS = 256
SAID_BYTES_MAX = 2000  # a browser keeps 4096 of a cookie


def _derived(token: str, use: str) -> str:
    return hmac.new(token.encode(), use.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One browser that has signed in."""

    token: str

    @property
    def csrf(self) -> str:
        """What its forms send, and no other site can know."""
        return _derived(self.token, "form")

    def sent(self, token: str) -> bool:
        """Whether a form comes from a page of this visit."""
        return hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self.csrf.encode())

    def signed(self, said: str) -> str:
        """What is to be said on the next page, as a cookie: the store keeps no such words."""
        shown = said.encode(errors="replace")[:SAID_BYTES_MAX].decode(errors="ignore")
        encoded = base64.urlsafe_b64encode(shown.encode()).decode()
        return f"{encoded}.{self._mark(shown)}"

    def told(self, signed: str) -> str:
        """What such a cookie says, if this visit has made it."""
        encoded, _, mark = signed.partition(".")
        try:
            said = base64.urlsafe_b64decode(encoded.encode("ascii")).decode()
        except (UnicodeError, binascii.Error):
            return ""
        is_ours = hmac.compare_digest(mark.encode(errors="replace"), self._mark(said).encode())
        return said if is_ours else ""

    def _mark(self, said: str) -> str:
        return _derived(self.token, f"said {said}")


class Visits:
    """The visits there are."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._door = Authenticator(memory)

    def begin(self, secret: str) -> str | None:
        """The cookie of a new visit; none: nobody has such a key."""
        secret, now = secret.strip(), self._memory.clock.now()
        if not 0 < len(secret) <= SECRET_CHARS_MAX or self._door.known(digest_of(secret)) is None:
            return None
        token = f"{SYSTEM_RANDOMNESS.getrandbits(TOKEN_BITS):064x}"
        serving = self._memory.store.serving
        serving.put(
            ServingState(
                kind=StateKind.VISIT,
                id=digest_of(token),
                owner=digest_of(secret),
                changed_at=now,
                expires_at=now + VISIT_LASTS,
            )
        )
        # No key can crowd out the visits of others.
        serving.prune(StateKind.VISIT, VISITS_OF_KEY_MAX, now)
        return token

    def of(self, token: str) -> tuple[Visit, ApiKey] | None:
        """Return the visit of a cookie and its key; None whatever is wrong with it."""
        if not token:
            return None
        now = self._memory.clock.now()
        found = self._memory.store.serving.get(StateKind.VISIT, digest_of(token), now)
        key = None if found is None else self._door.known(found.owner)
        return None if key is None else (Visit(token=token), key)

    def end(self, token: str) -> None:
        """End a visit, in every process at once."""
        if token:
            self._memory.store.serving.drop(StateKind.VISIT, digest_of(token))
