"""Whether what was loaded refers to its own space alone. Ids of sessions are those of the whole
store: an archive that somebody made by hand could name another tenant's.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.store.whole import Whole

_OF_A_SESSION = (
    ("session_history", "session_id"),
    ("retained_records", "session_id"),
    ("retained_records", "source_session_id"),
    ("summaries", "session_id"),
    ("session_ranges", "session_id"),
    ("staged_drafts", "session_id"),
    ("extractions", "session_id"),
    ("told_records", "session_id"),
)
_OWN = "SELECT 1 FROM sessions s WHERE s.space = :space AND s.id = t.{column}"
# What a space's jobs are about: one of its sessions, one of its agents, or all of it.
_STRAY_JOBS = f"""
jobs t WHERE t.space = :space AND NOT (
    (t.kind IN ('extract', 'extract-again') AND EXISTS ({_OWN.format(column="key")}))
    OR t.kind IN ('agent', 'memory-agent')
    OR (t.kind = 'consolidate' AND t.key = :space))
"""


def strays(whole: Whole, space: str) -> Iterator[str]:
    """The tables of a space that refer to what is not in it."""
    for table, column in _OF_A_SESSION:
        own = _OWN.format(column=column)
        if _any(whole, f"{table} t WHERE t.space = :space AND NOT EXISTS ({own})", space):
            yield f"{table}.{column}"
    if _any(whole, _STRAY_JOBS, space):
        yield "jobs.key"


def _any(whole: Whole, rows: str, space: str) -> bool:
    found = whole.stream(f"SELECT 1 FROM {rows} LIMIT 1", {"space": space})
    return bool(list(found))
