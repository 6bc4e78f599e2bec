"""Marks what nobody marked: the idle sweep, and the scan when a worker starts."""

from __future__ import annotations

from datetime import datetime, timedelta

from recollect.config import Settings
from recollect.domain import MarkCause, SessionState
from recollect.store.protocol import Store

BATCH = 500  # sessions marked in one transaction


def sweep_idle(
    store: Store,
    now: datetime,
    settings: Settings,
    *,
    space: str | None = None,
    idle_seconds: float | None = None,
) -> int:
    """Mark every session that has unprocessed records and was left without a word.

    It catches what a process that died had no time to mark. Returns how many it marked.
    """
    seconds = settings.idle_sweep_seconds if idle_seconds is None else idle_seconds
    idle_since = now - timedelta(seconds=seconds)
    total, marked = 0, BATCH
    while marked == BATCH:
        marked = len(store.marks.mark_idle(space, idle_since, now, BATCH))
        total += marked
    return total


def scan(store: Store, now: datetime, settings: Settings) -> int:
    """Mark a bounded number of recent sessions that are idle long enough; returns how many."""
    oldest = now - timedelta(days=settings.scan_age_days_max)
    newest = now - timedelta(seconds=settings.scan_idle_seconds)
    sources = {source.strip() for source in settings.scan_sources.split(",") if source.strip()}
    chosen: list[SessionState] = []
    for session in store.marks.waiting_newest(settings.scan_rows_max):
        is_recent = oldest <= session.last_activity_at <= newest
        if is_recent and (not sources or session.source in sources):
            chosen.append(session)
        if len(chosen) == settings.scan_sessions_max:
            break
    for session in chosen:
        store.marks.invalidate(session.space, session.id, session.last_seq, MarkCause.SCAN, now)
    return len(chosen)
