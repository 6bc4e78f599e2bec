"""What recall is compared with: plain FTS5, counting words as grep would, vectors alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import apsw

from recollect.benchmarks.tasks import Pool, Query
from recollect.recall.question import ask, without_names
from recollect.recall.rank import speakers_asked
from recollect.recollection import EntryKind, Filters
from recollect.store.protocol import Store
from recollect.terms import search_terms, words

if TYPE_CHECKING:
    from recollect.recall.meaning import Meaning

DEPTH = 300  # of a ranking: sessions count by their first turn, and ten of them are wanted


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


class VectorsAlone:
    """The nearest by cosine among the vectors that the store has made of its records.

    Names of speakers are left out of a question, because they mislead vectors. `turns` are the
    turns of records, by `session:seq`.
    """

    def __init__(
        self, meaning: Meaning, store: Store, space: str, pool: Pool, turns: Mapping[str, str]
    ) -> None:
        self._meaning = meaning
        self._store = store
        self._space = space
        self._speakers = {words(turn.speaker) for turn in pool.turns if turn.speaker}
        self._turns = turns

    def order(self, query: Query) -> list[str]:
        named = speakers_asked(ask(query.text, query.asked_at).terms, self._speakers)
        likeness = self._meaning.of(self._space, without_names(query.text, named))
        if likeness is None:
            return []
        nearest = likeness.nearest({EntryKind.RECORD}, DEPTH, least=-1.0)
        keys = nearest.get(EntryKind.RECORD, ())
        entries = self._store.search.load(
            self._space, {EntryKind.RECORD: keys}, Filters(), query.asked_at
        )
        ids = {entry.key: entry.id for entry in entries}
        return [self._turns[ids[key]] for key in keys if key in ids]


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
