"""Periodic upkeep: marks for idle sessions, deletion of old uses, delivery of delayed signals."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from recollect.clock import Clock
from recollect.config import Settings
from recollect.ids import Ids
from recollect.types.records import MarkCause

if TYPE_CHECKING:
    from recollect.store.protocol import Store

BATCH = 500  # sessions marked in one transaction
PRUNE_BATCH = 200  # memories dropped with one sweep
AUDIT_BATCH = 1000  # entries dropped in one transaction
SIGNALS_BATCH = 500  # delivered before others have their turn


def sweep_idle(
    store: Store,
    now: datetime,
    settings: Settings,
    *,
    space: str | None = None,
    all: bool = False,  # noqa: A002
) -> int:
    """Mark every session that has unprocessed records and was left without a word.

    It catches what a process that died had no time to mark, within the limits of the scan; with
    `all`, whatever has unprocessed records, and nothing waits for a pause. Returns how many it
    marked.
    """
    store.marks.bound_activity(space, now)
    if all:
        store.marks.request_marked(space)
    which = None if all else settings.unattended(now, settings.idle_sweep_seconds)
    total, marked = 0, BATCH
    while marked == BATCH:
        marked = len(store.marks.mark_idle(space, which, now, BATCH))
        total += marked
    return total


def sweep(
    store: Store,
    now: datetime,
    settings: Settings,
    *,
    space: str | None = None,
    all: bool = False,  # noqa: A002
) -> None:
    """Make due what time alone makes due, in a space or in all, and drop what is too old.

    What is dropped by age is the whole store's: of one space alone nothing is.
    """
    sweep_idle(store, now, settings, space=space, all=all)
    store.generations.expire(now, space)
    if space is None:
        drop_old_uses(store, now, settings)
        drop_old_contexts(store, now, settings)
        drop_old_audit(store, now, settings)


def scan(store: Store, now: datetime, settings: Settings) -> int:
    """Mark a bounded number of recent sessions that are idle long enough; returns how many."""
    store.marks.bound_activity(None, now)
    which = settings.unattended(now, settings.scan_idle_seconds)
    limits = settings.scan_rows_max, settings.scan_sessions_max
    chosen = store.marks.waiting_newest(which, *limits)
    for session in chosen:
        store.marks.invalidate(session.space, session.id, session.last_seq, MarkCause.SCAN, now)
    return len(chosen)


def drop_old_uses(store: Store, now: datetime, settings: Settings) -> int:
    """Drop the uses that are older than `usage_days`; return their number."""
    return store.search.prune(now - timedelta(days=settings.usage_days))


def drop_old_contexts(store: Store, now: datetime, settings: Settings) -> int:
    """Drop what was told longer ago than `contexts_days`, or before all that are kept."""
    before = now - timedelta(days=settings.contexts_days)
    return store.contexts.prune(before, settings.contexts_kept)


def drop_old_audit(store: Store, now: datetime, settings: Settings) -> int:
    """Drop the audit entries that are older than `audit_days`; return their number."""
    before, total, dropped = now - timedelta(days=settings.audit_days), 0, AUDIT_BATCH
    while dropped == AUDIT_BATCH:
        dropped = store.audit.prune(before, AUDIT_BATCH)
        total += dropped
    return total


def drop_old_memories(store: Store, now: datetime, settings: Settings) -> None:
    """Drop what nobody has used for very long: it looks at every memory, so now and then."""
    store.generations.prune(now - timedelta(days=settings.extraction_retention_days), PRUNE_BATCH)


def deliver_all_signals(
    store: Store, clock: Clock, settings: Settings, space: str | None = None
) -> None:
    """Deliver the signals whose time has come, in a space or in all."""
    now = clock.now()
    while _deliver_some(store, clock, settings, now, space):
        pass


def _deliver_some(
    store: Store, clock: Clock, settings: Settings, now: datetime, space: str | None
) -> bool:
    """Whether there may be more."""
    due, ids = store.agents.due_signals(now, SIGNALS_BATCH, space), Ids(clock)
    for each in due:
        store.agents.deliver(each, settings.life_policy, now, ids.new)
    return len(due) == SIGNALS_BATCH


def deliver_signals(store: Store, clock: Clock, settings: Settings) -> float:
    """Deliver a bounded number of them; after how many seconds to look again."""
    now = clock.now()
    if _deliver_some(store, clock, settings, now, None):
        return 0.0
    next_at = store.agents.next_signal_at()
    every = settings.signals_every_seconds
    return every if next_at is None else min(every, max((next_at - now).total_seconds(), 0.0))
