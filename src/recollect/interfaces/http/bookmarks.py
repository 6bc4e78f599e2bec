"""Where a page ended, as the library takes it: by the last thing that stood on it.

Of that only its time and its id count, so that a page goes on after it has been deleted.
"""

from __future__ import annotations

from datetime import datetime

from recollect.domain import Mode, SessionState
from recollect.knowledge import Fact


def fact_mark(at: datetime, fact_id: str) -> Fact:
    return Fact("", id=fact_id, created_at=at)


def session_mark(space: str, at: datetime, session_id: str) -> SessionState:
    return SessionState(
        id=session_id,
        space=space,
        key="",
        agent_id="",
        rotation=1,
        source="",
        project=None,
        parent=None,
        ephemeral=False,
        mode=Mode.ENABLED,
        remembered=True,
        last_seq=0,
        invalidated_at=None,
        processed_until=None,
        marked_at=None,
        marked_by=None,
        created_at=at,
        last_activity_at=at,
        ended_at=None,
        ended_by=None,
    )
