"""Named points at which a test may end the process, to show that a crash at any line is safe.

In production nothing is armed and `reach` is one comparison with None.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "key.created",  # key, agent and first session are written, not yet committed
    "append.sequenced",  # `last_seq` has moved, the records are not written yet
    "append.inserted",  # records and mark are written, not yet committed
    "rotate.closed",  # the old session is marked and closed, the new one does not exist yet
    "rotate.opened",  # the new session exists, not yet committed
    "processed.cleared",  # the mark is cleared, its range is not written yet
    "forget.deleted",  # the records are gone, what hangs on them not yet
    "purge.deleted",  # the records are gone, the cursor has not moved yet
    "claim.claimed",  # a job has a new owner and token, not yet committed
    "record.advanced",  # cursor and mark have moved, the range is not written yet
    "record.learned",  # extraction and facts are written, not yet committed
    "record.handed",  # the memory-agent has its item, not yet committed
    "agent.taken",  # a turn's messages are in the history, not yet committed
    "agent.answered",  # the answer is in the history, the items are still in the inbox
    "agent.finished",  # answer, items and documents are written, not yet committed
    "generation.documents",  # its documents are written, nothing of it is marked as consumed
    "generation.published",  # all of a generation is written, not yet committed
    "signal.taken",  # a signal is gone and has had no effect yet
    "record.ranged",  # result, range and cursor are written, not yet committed
    "documents.applied",  # edits are made, the tree is not counted yet
    "import.noted",  # what came in is noted, nothing of it is stored yet
    "migration.applied",  # a migration ran, its number is not recorded yet
    "write.committing",  # everything is written; the commit is next
    "write.committed",  # the commit is durable; the caller has not been told
)

_armed: Callable[[str], None] | None = None


def arm(action: Callable[[str], None] | None) -> None:
    """Call `action(name)` at every point from now on; None disarms."""
    global _armed
    _armed = action


def reach(name: str) -> None:
    if _armed is not None:
        assert name in POINTS, name
        _armed(name)
