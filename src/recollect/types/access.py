"""The types of access: keys of the HTTP API and entries of the audit log.

Of a secret only its digest is kept. An entry has ids that Recollect made, names of verbs and
classes of errors: no text of a conversation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

DONE = "done"


SPACE_FORGOTTEN = "erasure.forget_space"  # its entries outlive what it erases


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """That somebody did something. Without an outcome it is under way, or was cut short."""

    id: str
    space: str | None  # none: the store
    at: datetime
    actor: str
    verb: str
    targets: tuple[str, ...] = ()
    outcome: str | None = None  # `done`, or the class of the error


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Which entries are meant; None: whichever."""

    space: str | None = None  # none: those of all spaces, and of the store
    actor: str | None = None
    verb: str | None = None
    since: datetime | None = None


class Scope(StrEnum):
    """What a key opens; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"  # forgets, and makes keys

    def includes(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)


class StateKind(StrEnum):
    """What the processes that serve a store have in common."""

    VISIT = "visit"  # somebody who signed in
    REQUEST = "request"  # one that is done at most once
    PROCESS = "process"  # one that serves


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingState:
    """Something that every serving process knows until it expires."""

    kind: StateKind
    id: str
    owner: str = ""  # whose it is; empty: nobody's
    value: str = ""
    changed_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key of the HTTP API: for one space, or for all of them if `space` is None."""

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
