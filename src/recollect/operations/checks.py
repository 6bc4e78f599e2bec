"""Examination of a store: checks for what can be wrong, advice, and safe repairs.

Each check is a query, most of them for both databases; those about an index of words or about the
files are written for each database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from recollect.clock import to_micros
from recollect.errors import StoreCorrupt
from recollect.operations.tables import ENTRIES, posting
from recollect.store.protocol import Store
from recollect.store.sqlite.scrubbing import Reserve
from recollect.store.whole import Access, Whole, first
from recollect.types.records import StoreDescription

EXAMPLES = 3
STALE_SECONDS = 600  # after the end of a lease nobody has renewed or taken over
WAITING_SECONDS = 86_400


class Gravity(StrEnum):
    """Whether something has to be done about a finding."""

    WRONG = "wrong"
    NOTE = "note"  # worth knowing; a store may well be like this


class Mending(StrEnum):
    """What `--repair` does about a finding."""

    NONE = "none"  # a person decides
    STATEMENTS = "statements"  # rows or an index are put right
    REVIVE = "revive"  # jobs get another chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A question. `rows` is what follows FROM; `example` names one of those it finds."""

    name: str
    says: str
    advice: str
    rows: str
    example: str
    gravity: Gravity = Gravity.WRONG
    mending: Mending = Mending.NONE  # of one that has repairs, by those
    repairs: tuple[str, ...] = ()

    def found(self, count: int, examples: Iterable[object]) -> Defect:
        return Defect(
            check=self.name,
            gravity=self.gravity,
            count=count,
            says=self.says,
            examples=tuple(map(str, examples)),
            advice=self.advice,
            mending=Mending.STATEMENTS if self.repairs else self.mending,
            repairs=self.repairs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """An answer that is not what it should be."""

    check: str
    gravity: Gravity
    count: int
    says: str
    examples: tuple[str, ...]
    advice: str
    mending: Mending
    repairs: tuple[str, ...] = ()


CANNOT_HAPPEN = "restore a backup, or report it: this cannot come about by use"
_HAS_JOB = """
EXISTS (
    SELECT 1 FROM jobs j WHERE j.space = s.space AND j.kind = 'extract' AND j.key = s.id
        AND j.state <> 'idle')
"""
_HAS_MARK = """
EXISTS (
    SELECT 1 FROM sessions s
    WHERE s.space = j.space AND s.id = j.key AND s.invalidated_at IS NOT NULL)
"""
_STANDS_THERE = """
FROM documents t
WHERE t.space = r.space AND t.path_key = r.target_path_key AND t.deleted_at IS NULL
"""
_LIVE = "(SELECT count(*) FROM documents d WHERE d.space = t.space AND d.deleted_at IS NULL)"
_RANGED = """
(SELECT COALESCE(sum(r.last_seq - r.first_seq + 1), 0) FROM session_ranges r
WHERE r.space = s.space AND r.session_id = s.id AND r.pass = s.pass
    AND r.first_seq <= s.processed_until)
"""

CHECKS: tuple[Check, ...] = (
    Check(
        name="unfinished-migration",
        says="a migration into this store is unfinished",
        advice="run recollect migrate again, from the same store to this one",
        rows="properties p WHERE p.name = 'migrating-from'",
        example="p.value",
    ),
    Check(
        name="unfinished-load",
        says="an archive was loaded, or restored, and some of its spaces are missing",
        advice="run the same command again, with the same archive",
        rows="properties p WHERE p.name = 'loading-from'",
        example="p.value",
    ),
    Check(
        name="mark-without-job",
        says="sessions are marked and no job will process them",
        advice="--repair makes their jobs due",
        rows=f"sessions s WHERE s.invalidated_at IS NOT NULL AND NOT {_HAS_JOB}",
        example="s.id",
        repairs=(
            f"""
            INSERT INTO jobs (space, kind, key, state, first_due_at)
            SELECT s.space, 'extract', s.id, 'due', s.marked_at FROM sessions s
            WHERE s.invalidated_at IS NOT NULL AND NOT {_HAS_JOB}
            ON CONFLICT (space, kind, key) DO UPDATE SET state = 'due', due_at = NULL
            """,
        ),
    ),
    Check(
        name="job-without-mark",
        says="jobs are open for sessions that are not marked",
        advice="--repair closes them; nothing is lost by it",
        rows=f"jobs j WHERE j.kind = 'extract' AND j.state <> 'idle' AND NOT {_HAS_MARK}",
        example="j.key",
        repairs=(
            f"""
            UPDATE jobs AS j SET state = 'idle', token = token + 1, owner = NULL,
                lease_expires_at = NULL, due_at = NULL
            WHERE j.kind = 'extract' AND j.state <> 'idle' AND NOT {_HAS_MARK}
            """,
        ),
    ),
    Check(
        name="parked-job",
        says="jobs are parked: they failed too often, or for good",
        advice="recollect status shows the errors; fix the cause, then recollect retry --all"
        " or --repair",
        rows="jobs j WHERE j.state = 'parked'",
        example="j.kind || ' ' || j.key",
        mending=Mending.REVIVE,
    ),
    Check(
        name="abandoned-job",
        says="jobs are claimed with a lease that expired long ago, and no worker takes over",
        advice="start a worker: recollect worker, or recollect work once",
        rows="jobs j WHERE j.state = 'claimed' AND j.lease_expires_at < :stale AND j.space <> ''",
        example="j.kind || ' ' || j.key",
    ),
    Check(
        name="waiting-job",
        says="jobs have been due for more than a day",
        advice="start a worker: recollect worker, or recollect work once",
        rows="jobs j WHERE j.state = 'due' AND j.space <> '' AND j.lane = ''"
        " AND COALESCE(j.due_at, j.first_due_at) < :waiting",
        example="j.kind || ' ' || j.key",
        gravity=Gravity.NOTE,
    ),
    Check(
        name="cursor-beyond-end",
        says="sessions are marked as processed beyond their last record",
        advice=CANNOT_HAPPEN,
        rows="sessions s WHERE s.processed_until > s.last_seq",
        example="s.id",
    ),
    Check(
        name="unnumbered-records",
        says="sessions have records beyond their last number",
        advice=CANNOT_HAPPEN,
        rows="sessions s WHERE s.last_seq < ("
        "SELECT max(h.seq) FROM session_history h WHERE h.space = s.space AND h.session_id = s.id)",
        example="s.id",
    ),
    Check(
        name="uncovered-records",
        says="sessions have processed records without a note of the result",
        advice="recollect work --again processes them once more; report it",
        rows=f"sessions s WHERE s.processed_until IS NOT NULL AND {_RANGED} <> s.processed_until",
        example="s.id",
    ),
    Check(
        name="key-without-session",
        says="keys refer to missing sessions, or to sessions of other keys",
        advice=CANNOT_HAPPEN,
        rows="session_keys k WHERE NOT EXISTS ("
        "SELECT 1 FROM sessions s"
        " WHERE s.space = k.space AND s.id = k.session_id AND s.key_id = k.id)",
        example="k.key",
    ),
    Check(
        name="miscounted-tree",
        says="spaces count a wrong number of documents",
        advice="--repair counts them again",
        rows=f"trees t WHERE t.documents <> {_LIVE}",
        example="t.space",
        repairs=(f"UPDATE trees AS t SET documents = {_LIVE} WHERE t.documents <> {_LIVE}",),
    ),
    Check(
        name="unbound-link",
        says="links are marked as broken although their documents exist",
        advice="--repair binds them",
        rows="document_references r"
        f" WHERE r.target_key IS NULL AND EXISTS (SELECT 1 {_STANDS_THERE})",
        example="r.target_path",
        repairs=(
            f"""
            UPDATE document_references AS r SET target_key = (SELECT t.key {_STANDS_THERE})
            WHERE r.target_key IS NULL AND EXISTS (SELECT 1 {_STANDS_THERE})
            """,
        ),
    ),
    Check(
        name="broken-link",
        says="links lead to documents that do not exist",
        advice="write the documents, or take the links out: recollect docs links shows where",
        rows="document_references r"
        " JOIN documents d ON d.space = r.space AND d.key = r.document_key AND d.deleted_at IS NULL"
        " LEFT JOIN documents t ON t.space = r.space"
        " AND t.deleted_at IS NULL"
        " AND (t.key = r.target_key OR t.path_key = r.target_path_key)"
        " WHERE t.key IS NULL",
        example="d.path || ' -> ' || r.target_path",
        gravity=Gravity.NOTE,
    ),
)


def word_check(table: str, wanted: str, indexed: str, repairs: tuple[str, ...]) -> Check:
    """Whether an index of words has what it should have, and nothing else; both name a `key`."""
    unfit = f"SELECT * FROM ({wanted} EXCEPT {indexed}) a"
    stray = f"SELECT * FROM ({indexed} EXCEPT {wanted}) b"
    return Check(
        name="unfit-word-index",
        says=f"{table} are missing from the index of words, or are in it although they are gone",
        advice="--repair rebuilds the index",
        rows=f"({unfit} UNION ALL {stray}) x",
        example="x.key",
        repairs=repairs,
    )


def ask(whole: Whole, check: Check, values: Mapping[str, int] | None = None) -> Iterator[Defect]:
    """Ask one question; nothing: all is well."""
    asked = {name: value for name, value in (values or {}).items() if f":{name}" in check.rows}
    count = next(iter(whole.stream(f"SELECT count(*) FROM {check.rows}", asked)))[0]
    if count:
        text = f"SELECT {check.example} FROM {check.rows} ORDER BY 1 LIMIT {EXAMPLES}"
        yield check.found(int(count), (row[0] for row in whole.stream(text, asked)))


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
        with store.whole(Access.READ) as whole:
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
        with store.whole(Access.WRITE) as whole:
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
    says="an index does not match its table",
    advice="--repair rebuilds the indexes",
    rows="",
    example="",
    repairs=("REINDEX",),
)
_NO_RESERVE = Check(
    name="no-reserve",
    says="no disk space is reserved for forgetting when the disk is full",
    advice="free some disk space: it is reserved with the next write",
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
        says="rows refer to missing rows",
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
        f"SELECT DISTINCT e.space, left(w, 128) AS word, e.{key} AS key FROM {table} e"
        " CROSS JOIN unnest(string_to_array(e.words, ' ')) w WHERE w <> ''"
    )
    indexed = f"SELECT p.space, p.word, p.key FROM postings p WHERE p.kind = '{kind}'"
    clearing = f"DELETE FROM postings WHERE kind = '{kind}'"
    return word_check(table, wanted, indexed, (clearing, posting(table)))


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
        says="tables are not protected by row-level security",
        advice="ALTER TABLE … ENABLE and FORCE ROW LEVEL SECURITY, as their owner",
        rows=f"pg_class c WHERE c.relnamespace = {_HERE} AND c.relkind IN ('r', 'p') AND EXISTS ("
        "SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'space'"
        " AND NOT a.attisdropped) AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
        example="c.relname",
    ),
    *(_postings(table, kind, key) for table, (kind, key) in ENTRIES.items()),
)
