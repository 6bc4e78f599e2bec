"""What can be wrong with a schema of PostgreSQL: its indexes, its policies, and its postings.

Pages and references are the server's to watch.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.operations.checks import Check, Defect, Gravity, Mending, ask
from recollect.operations.tables import ENTRIES, posting
from recollect.store.whole import Whole

_HERE = "to_regnamespace(current_schema()::text)"
_CHECKS = (
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
)


def examine(whole: Whole) -> Iterator[Defect]:
    for check in _CHECKS:
        found = ask(whole, check, {})
        if found is not None:
            yield found
    for table, (kind, key) in ENTRIES.items():
        yield from _postings(whole, table, kind, key)


def _postings(whole: Whole, table: str, kind: str, key: str) -> Iterator[Defect]:
    expected = (
        f"SELECT DISTINCT e.space, left(w, 128) AS word, e.{key} AS key FROM {table} e"
        " CROSS JOIN unnest(string_to_array(e.words, ' ')) w WHERE w <> ''"
    )
    actual = f"SELECT p.space, p.word, p.key FROM postings p WHERE p.kind = '{kind}'"
    check = Check(
        name="unfit-word-index",
        says=f"{table} are not found by their words, or are though they are gone",
        advice="--repair makes the index anew",
        rows=f"(({expected} EXCEPT {actual}) UNION ALL ({actual} EXCEPT {expected})) x",
        example="x.key",
        gravity=Gravity.WRONG,
        mending=Mending.STATEMENTS,
        repairs=(
            f"DELETE FROM postings WHERE kind = '{kind}'",
            posting(table),
        ),
    )
    found = ask(whole, check, {})
    if found is not None:
        yield found
