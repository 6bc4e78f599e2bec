"""How much each space of a store holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from recollect.clock import from_micros
from recollect.operations.migrating import whole_of
from recollect.store.protocol import Store
from recollect.store.whole import Access

_COUNTS = """
SELECT s.space, s.created_at,
    (SELECT count(*) FROM sessions x WHERE x.space = s.space),
    (SELECT count(*) FROM session_history x WHERE x.space = s.space),
    (SELECT count(*) FROM facts x
        WHERE x.space = s.space AND x.deleted_at IS NULL AND x.superseded_by IS NULL),
    (SELECT count(*) FROM documents x WHERE x.space = s.space AND x.deleted_at IS NULL)
FROM spaces s ORDER BY s.space
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceCounts:
    """What a space holds now: facts that stand, documents that were not deleted."""

    space: str
    created_at: datetime
    sessions: int
    records: int
    facts: int
    documents: int


def count_spaces(store: Store) -> list[SpaceCounts]:
    with whole_of(store).whole(Access.READ) as whole:
        return [
            SpaceCounts(
                space=row[0],
                created_at=from_micros(row[1]),
                sessions=row[2],
                records=row[3],
                facts=row[4],
                documents=row[5],
            )
            for row in whole.stream(_COUNTS)
        ]
