"""Vectors in the background: entries that have none are embedded and kept, a batch at a time.

Who is asked is a provider or this machine; what was asked for and is lost on the way is asked again
by whoever comes next. A model that changed makes every entry pending, and the vectors of the one
before go when all have been made.
"""

from __future__ import annotations

from recollect.embedding.protocol import Embedder
from recollect.recollection import NewVector
from recollect.store.protocol import Store

OTHERS_AT_A_TIME = 2000


def embed_pending(store: Store, embedder: Embedder, limit: int) -> int:
    """Embed up to so many entries that have no vector; how many were looked at."""
    pending = store.vectors.pending(embedder.name, limit)
    if not pending:
        store.vectors.delete_others(embedder.name, OTHERS_AT_A_TIME)
        return 0
    wanted = [entry for entry in pending if entry.text.strip()]
    made = embedder.embed([entry.text for entry in wanted]).vectors
    vectors = dict(zip((id(entry) for entry in wanted), made, strict=True))
    store.vectors.put(
        embedder.name,
        [NewVector(entry=entry, vector=vectors.get(id(entry), b"")) for entry in pending],
    )
    return len(pending)
