"""What a store knows about those who come in over HTTP: keys, whose they are, what they open.

Of a secret only its digest is ever handed in here.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Scope(StrEnum):
    """What a key opens; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"  # forgets, and makes keys

    def includes(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Who may come in: to one space, or to all of them for None."""

    id: str
    name: str
    digest: str  # SHA-256 of the secret, in hexadecimal digits
    space: str | None
    scope: Scope
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        is_over = self.expires_at is not None and self.expires_at <= now
        return self.revoked_at is None and not is_over

    def opens(self, space: str) -> bool:
        return self.space is None or self.space == space


class ApiKeys(Protocol):
    """The keys of a store: for its operator, over all spaces."""

    def add(self, key: ApiKey) -> None:
        """Keep a new key."""
        ...

    def find(self, digest: str) -> ApiKey | None:
        """The key with this digest, whatever has become of it."""
        ...

    def list(self, after: str, limit: int) -> builtins.list[ApiKey]:
        """Those with an id above `after`, in order, also what is over or revoked."""
        ...

    def revoke(self, key_id: str, now: datetime) -> bool:
        """Close a key for good. False: there is none, or it was closed before."""
        ...

    def used(self, key_id: str, now: datetime) -> None:
        """Note that somebody came in with it; the time only rises."""
        ...
