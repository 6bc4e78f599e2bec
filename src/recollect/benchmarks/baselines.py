"""What recall is compared with: plain FTS5, and counting words as grep would.

And what a block is compared with: the turns that FTS5 finds, with and without their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw

from recollect.benchmarks.tasks import Pool, Query, TaskTurn
from recollect.stemming import search_terms, words

DEPTH = 300  # of a ranking: sessions count by their first turn, and ten of them are wanted
CHARS_PER_TOKEN = 4


class PlainFts:
    """FTS5 with its own BM25 and porter stemming: any of the question's content words."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._connection = apsw.Connection(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE texts USING fts5("
            "name UNINDEXED, text, tokenize='porter unicode61')"
        )
        with self._connection:
            self._connection.executemany("INSERT INTO texts VALUES (?, ?)", list(texts.items()))

    def order(self, query: Query) -> list[str]:
        sought = " OR ".join(f'"{word}"' for word in search_terms(query.text))
        if not sought:
            return []
        rows = self._connection.execute(
            "SELECT name FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (sought, DEPTH)
        )
        return [str(name) for (name,) in rows]


class WordCount:
    """How many of the question's content words a text has; between equals the earlier."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._words = {name: frozenset(words(text).split()) for name, text in texts.items()}

    def order(self, query: Query) -> list[str]:
        sought = frozenset(search_terms(query.text))
        counts = {name: len(sought & have) for name, have in self._words.items()}
        found = [name for name, count in counts.items() if count]
        return sorted(found, key=lambda name: -counts[name])[:DEPTH]


class FtsBlock:
    """The best turns by plain FTS5, each with its day and speaker, up to the budget.

    `beside` turns of the session come along on either side of each. What is told is told once; the
    line that passes the end of the budget is cut there.
    """

    def __init__(self, pool: Pool, beside: int = 0) -> None:
        self._fts = PlainFts(spoken(pool))
        self._turns = pool.turns
        self._at = {turn.id: at for at, turn in enumerate(pool.turns)}
        self._beside = beside

    def text(self, query: Query, max_tokens: int) -> str:
        chosen = dict.fromkeys(
            near for found in self._fts.order(query) for near in self._around(self._at[found])
        )
        return transcript(self._turns[at] for at in chosen)[: max_tokens * CHARS_PER_TOKEN]

    def _around(self, at: int) -> Iterable[int]:
        ends = max(at - self._beside, 0), min(at + self._beside + 1, len(self._turns))
        session = self._turns[at].session
        return (near for near in range(*ends) if self._turns[near].session == session)


def transcript(turns: Iterable[TaskTurn]) -> str:
    """Turns as lines with their day and speaker."""
    return "\n".join(
        f"{turn.said_at:%Y-%m-%d} {turn.speaker or turn.role}: {' '.join(turn.text.split())}"
        for turn in turns
    )


def spoken(pool: Pool) -> dict[str, str]:
    """Each turn as a line with its speaker."""
    return {turn.id: f"{turn.speaker or turn.role}: {turn.text}" for turn in pool.turns}


def told_by_users(pool: Pool) -> dict[str, str]:
    """Each session as one text of what its users said."""
    found: dict[str, list[str]] = {turn.session: [] for turn in pool.turns}
    for turn in pool.turns:
        if turn.role == "user":
            found[turn.session].append(turn.text)
    return {session: "\n".join(texts) for session, texts in found.items()}
