"""Stores that keep the audit wrongly, to show that the suite has teeth."""

from __future__ import annotations

import builtins
from dataclasses import replace
from datetime import datetime

from recollect.store.relational.access import Audit
from recollect.types.access import AuditEntry, AuditQuery


class OpenAudit(Audit):
    """Shows a space what was done in others."""

    def list(
        self, query: AuditQuery, limit: int, before: AuditEntry | None
    ) -> builtins.list[AuditEntry]:
        return super().list(replace(query, space=None), limit, before)


class HastyAudit(Audit):
    """Has an outcome before there is one."""

    def begin(self, entry: AuditEntry) -> None:
        super().begin(entry)
        super().end(replace(entry, outcome="done"))


class SweptAudit(Audit):
    """Drops everything that is old, however much it is."""

    def prune(self, before: datetime, limit: int) -> int:
        return super().prune(before, 100 * limit)


BROKEN_AUDIT: dict[str, tuple[type[Audit], str]] = {
    "shows a space what was done in others": (OpenAudit, "entries_are_told_apart"),
    "knows an outcome before there is one": (HastyAudit, "an_entry_is_begun_and_ended"),
    "drops more of the audit than it may": (SweptAudit, "old_entries_are_dropped"),
}

MUTED_AUDIT: dict[str, str] = {
    "begin_audit": "an_entry_is_begun_and_ended",
    "end_audit": "an_entry_is_begun_and_ended",
    "prune_audit": "old_entries_are_dropped",
    "drop_audit": "entries_go_with_their_space",
}
