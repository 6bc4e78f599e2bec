"""Examination: everything that can be asked of a store, what is wrong with it, and safe repairs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from recollect.clock import to_micros
from recollect.errors import StoreCorrupt
from recollect.operations.checks import (
    CANNOT_HAPPEN,
    CHECKS,
    EXAMPLES,
    STALE_SECONDS,
    WAITING_SECONDS,
    Check,
    Defect,
    Gravity,
    Mending,
    ask,
    word_check,
)
from recollect.operations.migrating import whole_of
from recollect.store.protocol import Store
from recollect.store.sqlite.reserve import Reserve
from recollect.store.whole import Access, Whole, first
from recollect.types.records import StoreDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found, and what was put right on the way."""

    store: StoreDescription
    findings: tuple[Defect, ...]
    repaired: tuple[Defect, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not any(finding.gravity is Gravity.WRONG for finding in self.findings)


def examine(store: Store, now: datetime) -> Diagnosis:
    """Look at everything at one moment, and change nothing."""
    findings: list[Defect] = []
    try:
        with whole_of(store).whole(Access.READ) as whole:
            findings.extend(_findings(whole, now))
    except StoreCorrupt as error:  # so damaged that it cannot even be asked
        findings.append(_DAMAGED.found(1, (error,)))
    return Diagnosis(store=store.describe(), findings=tuple(findings))


def repair(store: Store, now: datetime) -> Diagnosis:
    """Put right what can be without losing anything, and look again."""
    before = examine(store, now)
    mended = [finding for finding in before.findings if finding.mending is not Mending.NONE]
    statements = [text for finding in mended for text in finding.repairs]
    if statements:
        with whole_of(store).whole(Access.WRITE) as whole:
            for text in statements:
                whole.run(text)
    if any(finding.mending is Mending.REVIVE for finding in mended):
        store.leases.revive(None, None)
    after = examine(store, now)
    left = {(finding.check, finding.says) for finding in after.findings}
    repaired = tuple(each for each in mended if (each.check, each.says) not in left)
    return Diagnosis(store=after.store, findings=after.findings, repaired=repaired)


def _findings(whole: Whole, now: datetime) -> Iterator[Defect]:
    values = {
        "stale": to_micros(now - timedelta(seconds=STALE_SECONDS)),
        "waiting": to_micros(now - timedelta(seconds=WAITING_SECONDS)),
    }
    match whole.dialect:
        case "sqlite":
            yield from _of_sqlite(whole)
        case "postgres":
            for check in _POSTGRES:
                yield from ask(whole, check)
    for check in CHECKS:
        yield from ask(whole, check, values)


_DAMAGED = Check(
    name="damaged-file",
    says="the store is damaged",
    advice="restore a backup: recollect restore",
    rows="",
    example="",
)

# A file of SQLite: its pages, its references, and its indexes of words.

PROBLEMS_MAX = 100
# What is wrong with an index alone: made anew from its table it is right.
_OF_AN_INDEX = re.compile(r"(row .* missing from index|wrong # of entries in index|non-unique)")
_DAMAGED_INDEX = Check(
    name="damaged-index",
    says="an index does not fit its table",
    advice="--repair makes the indexes anew",
    rows="",
    example="",
    repairs=("REINDEX",),
)
_NO_RESERVE = Check(
    name="no-reserve",
    says="no room is kept to forget with when the disk is full",
    advice="see that there is room on the disk: it is kept with the next write",
    rows="",
    example="",
    gravity=Gravity.NOTE,
)
# That of records keeps no sizes, so it is asked which of them its words are from.
_WORDS_OF_RECORDS = "temp.recollect_record_words"


def _word_index(
    table: str, key: str, index: str, *columns: str, own: str = "", where: str = "1"
) -> Check:
    """An index of words, and how it is made anew; the column `own` is indexed as it is as well."""
    marked = (f"replace(' ' || t.{name}, ' ', ' ' || s.number || 'z')" for name in columns)
    names = [own, f"own_{own}"] if own else columns
    taken = [f"t.{own}", *marked] if own else marked
    anew = (
        f"INSERT INTO {index} (rowid, {', '.join(names)}) SELECT t.{key}, {', '.join(taken)}"
        f" FROM {table} t JOIN spaces s ON s.space = t.space WHERE {where}"
    )
    indexed = f"SELECT d.id FROM {index}_docsize d"
    if index == "records_fts":
        indexed = f"SELECT DISTINCT v.doc FROM {_WORDS_OF_RECORDS} v"
    wanted = f"SELECT t.{key} AS key FROM {table} t WHERE {where}"
    clearing = f"INSERT INTO {index} ({index}) VALUES ('delete-all')"
    return word_check(table, wanted, indexed.replace(" FROM", " AS key FROM", 1), (clearing, anew))


_SQLITE: tuple[Check, ...] = (
    Check(
        name="orphan",
        says="rows refer to rows that are not there",
        advice=CANNOT_HAPPEN,
        rows="pragma_foreign_key_check f",
        example="f.\"table\" || ' ' || f.rowid || ' -> ' || f.parent",
    ),
    _word_index("facts", "key", "facts_fts", "words", own="words"),
    _word_index("documents", "key", "documents_fts", "called", "about", "words"),
    _word_index("extractions", "key", "extractions_fts", "words", where="t.words IS NOT NULL"),
    _word_index(
        *("session_history", "id", "records_fts", "words"),
        where="t.words <> '' AND t.id <= (SELECT i.upto FROM indexed_records i)",
    ),
)


def _of_sqlite(whole: Whole) -> Iterator[Defect]:
    rows = whole.stream(f"PRAGMA integrity_check({PROBLEMS_MAX})")
    found = [str(row[0]) for row in rows if row[0] != "ok"]
    if found:
        is_index = all(_OF_AN_INDEX.search(line) for line in found)
        yield (_DAMAGED_INDEX if is_index else _DAMAGED).found(len(found), found[:EXAMPLES])
    is_file = whole.location != ":memory:"
    is_precious = is_file and first(whole.stream("PRAGMA synchronous")) != (0,)
    if is_precious and not Reserve(Path(whole.location)).size_bytes:
        yield _NO_RESERVE.found(1, ())
    words = f"{_WORDS_OF_RECORDS} USING fts5vocab (main, records_fts, instance)"
    whole.run(f"DROP TABLE IF EXISTS {_WORDS_OF_RECORDS}")
    whole.run(f"CREATE VIRTUAL TABLE {words}")
    for check in _SQLITE:
        yield from ask(whole, check)
    whole.run(f"DROP TABLE {_WORDS_OF_RECORDS}")


# A schema of PostgreSQL; its pages and references are the server's to watch.

_HERE = "to_regnamespace(current_schema()::text)"


def _postings(table: str, kind: str, key: str) -> Check:
    wanted = (
        f"SELECT e.space, w, e.{key} AS key FROM {table} e CROSS JOIN recollect_words_of(e.words) w"
    )
    indexed = f"SELECT p.space, p.word, p.key FROM postings p WHERE p.kind = '{kind}'"
    anew = (
        "INSERT INTO postings (space, kind, word, key)"
        f" SELECT x.space, '{kind}', x.w, x.key FROM ({wanted}) x ON CONFLICT DO NOTHING"
    )
    clearing = f"DELETE FROM postings WHERE kind = '{kind}'"
    return word_check(table, wanted, indexed, (clearing, anew))


_POSTGRES: tuple[Check, ...] = (
    Check(
        name="damaged-index",
        says="indexes are not valid, and are not used",
        advice="REINDEX them, as the owner of the tables",
        rows=f"pg_index i JOIN pg_class c ON c.oid = i.indexrelid AND c.relnamespace = {_HERE}"
        " WHERE NOT i.indisvalid",
        example="c.relname",
    ),
    Check(
        name="open-table",
        says="tables are not behind the wall between spaces",
        advice="ALTER TABLE … ENABLE and FORCE ROW LEVEL SECURITY, as their owner",
        rows=f"pg_class c WHERE c.relnamespace = {_HERE} AND c.relkind IN ('r', 'p') AND EXISTS ("
        "SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'space'"
        " AND NOT a.attisdropped) AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
        example="c.relname",
    ),
    _postings("session_history", "r", "id"),
    _postings("facts", "f", "key"),
    _postings("extractions", "s", "key"),
    _postings("documents", "d", "key"),
)
