"""What can be wrong with a file of SQLite: its pages, its references, and its indexes of words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recollect.operations.checks import EXAMPLES, Defect, Gravity, Mending
from recollect.store.sqlite.scrubbing import Reserve
from recollect.store.whole import Whole, first

PROBLEMS_MAX = 100
# What is wrong with an index alone: made anew from its table it is right.
_OF_AN_INDEX = re.compile(r"(row .* missing from index|wrong # of entries in index|non-unique)")
_WORDS = "replace(' ' || t.{column}, ' ', ' ' || s.number || 'z')"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordIndex:
    """An index of words, whose it is, and how it is made anew."""

    index: str
    table: str
    key: str
    columns: tuple[str, ...]
    plain: tuple[str, ...] = ()  # columns that are indexed as they are
    where: str = "1"

    @property
    def indexed(self) -> str:
        return f"SELECT d.id FROM {self.index}_docsize d"

    @property
    def rebuilding(self) -> tuple[str, str]:
        names = [f"own_{name}" if name in self.plain else name for name in self.columns]
        taken = [f"t.{name}" for name in self.plain]
        taken += [_WORDS.format(column=name) for name in self.columns]
        anew = (
            f"INSERT INTO {self.index} (rowid, {', '.join([*self.plain, *names])})"
            f" SELECT t.{self.key}, {', '.join(taken)} FROM {self.table} t"
            f" JOIN spaces s ON s.space = t.space WHERE {self.where}"
        )
        return (f"INSERT INTO {self.index} ({self.index}) VALUES ('delete-all')", anew)


FACTS = WordIndex(index="facts_fts", table="facts", key="key", columns=("words",), plain=("words",))
DOCUMENTS = WordIndex(
    index="documents_fts", table="documents", key="key", columns=("called", "about", "words")
)
SUMMARIES = WordIndex(
    index="extractions_fts",
    table="extractions",
    key="key",
    columns=("words",),
    where="t.words IS NOT NULL",
)
# It keeps no sizes, so it is asked which records its words are from.
_WORDS_OF_RECORDS = "temp.recollect_record_words"


class _RecordIndex(WordIndex):
    @property
    def indexed(self) -> str:
        return f"SELECT DISTINCT v.doc FROM {_WORDS_OF_RECORDS} v"


RECORDS = _RecordIndex(
    index="records_fts",
    table="session_history",
    key="id",
    columns=("words",),
    where="t.words <> '' AND t.id <= (SELECT i.upto FROM indexed_records i)",
)


def examine(whole: Whole) -> Iterator[Defect]:
    yield from _pages(whole)
    yield from _reserve(whole)
    yield from _references(whole)
    whole.run(f"DROP TABLE IF EXISTS {_WORDS_OF_RECORDS}")
    whole.run(
        f"CREATE VIRTUAL TABLE {_WORDS_OF_RECORDS} USING fts5vocab (main, records_fts, instance)"
    )
    for index in (FACTS, DOCUMENTS, SUMMARIES, RECORDS):
        yield from _words(whole, index)
    whole.run(f"DROP TABLE {_WORDS_OF_RECORDS}")


def _pages(whole: Whole) -> Iterator[Defect]:
    rows = list(whole.stream(f"PRAGMA integrity_check({PROBLEMS_MAX})"))
    found = [str(row[0]) for row in rows if row[0] != "ok"]
    if not found:
        return
    is_index = all(_OF_AN_INDEX.search(line) for line in found)
    yield Defect(
        check="damaged-index" if is_index else "damaged-file",
        gravity=Gravity.WRONG,
        count=len(found),
        says="an index does not fit its table" if is_index else "the file is damaged",
        examples=tuple(found[:EXAMPLES]),
        advice="--repair makes the indexes anew" if is_index else "restore a backup",
        mending=Mending.STATEMENTS if is_index else Mending.NONE,
        repairs=("REINDEX",) if is_index else (),
    )


def _reserve(whole: Whole) -> Iterator[Defect]:
    is_precious = first(whole.stream("PRAGMA synchronous")) != (0,)
    if (
        whole.location != ":memory:"
        and is_precious
        and not Reserve(Path(whole.location)).size_bytes
    ):
        yield Defect(
            check="no-reserve",
            gravity=Gravity.NOTE,
            count=1,
            says="no room is kept to forget with when the disk is full",
            examples=(),
            advice="see that there is room on the disk: it is kept with the next write",
            mending=Mending.NONE,
        )


def _references(whole: Whole) -> Iterator[Defect]:
    found = list(whole.stream('SELECT "table", rowid, parent FROM pragma_foreign_key_check'))
    if found:
        yield Defect(
            check="orphan",
            gravity=Gravity.WRONG,
            count=len(found),
            says="rows refer to rows that are not there",
            examples=tuple(f"{table} {row} -> {parent}" for table, row, parent in found[:EXAMPLES]),
            advice="restore a backup, or report it: this cannot come about by use",
            mending=Mending.NONE,
        )


def _words(whole: Whole, index: WordIndex) -> Iterator[Defect]:
    """An index has every row that it should have, and no other."""
    there = f"SELECT t.{index.key} FROM {index.table} t WHERE {index.where}"
    unfit = (
        f"SELECT * FROM ({there} EXCEPT {index.indexed})"
        f" UNION ALL SELECT * FROM ({index.indexed} EXCEPT {there})"
    )
    found = [str(row[0]) for row in whole.stream(unfit)]
    if found:
        yield Defect(
            check="unfit-word-index",
            gravity=Gravity.WRONG,
            count=len(found),
            says=f"{index.table} are not found by their words, or are though they are gone",
            examples=tuple(found[:EXAMPLES]),
            advice="--repair makes the index anew",
            mending=Mending.STATEMENTS,
            repairs=index.rebuilding,
        )
