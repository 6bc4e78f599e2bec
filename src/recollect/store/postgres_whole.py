"""PostgreSQL's side of whole tables: a connection of its own, and a cursor on the server."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Literal

import psycopg

from recollect.errors import InvalidValue
from recollect.store.whole import NO_VALUES, Column, Values

FETCHED = 500  # rows that are held at a time
_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z_0-9]*)")
_COLUMNS = b"""
SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL),
    array_position(i.indkey::smallint[], a.attnum)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = to_regnamespace(current_schema()::text) AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition
    AND a.attgenerated = ''
ORDER BY c.relname, a.attnum
"""


class PostgresWhole:
    """Implements `Whole` on a connection that is inside a transaction."""

    dialect: Literal["postgres"] = "postgres"

    def __init__(self, connection: psycopg.Connection[Any], location: str) -> None:
        self.connection = connection
        self.location = location
        self._cursors = itertools.count()

    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        found: defaultdict[str, list[Column]] = defaultdict(list)
        for table, name, kind, position in self.connection.execute(_COLUMNS):
            found[table].append(
                Column(
                    name=name,
                    is_text=kind == "text",
                    is_boolean=kind == "boolean",
                    key_position=position,
                )
            )
        return {table: tuple(columns) for table, columns in found.items()}

    def stream(self, text: str, values: Values = NO_VALUES) -> Iterator[tuple[Any, ...]]:
        name = f"recollect_{next(self._cursors)}"
        with closing(self.connection.cursor(name=name)) as cursor:
            cursor.itersize = FETCHED
            cursor.execute(_ours(text), values)
            for row in cursor:
                yield tuple(int(each) if isinstance(each, bool) else each for each in row)

    def run(self, text: str, values: Values = NO_VALUES) -> None:
        self.connection.execute(_ours(text), values)

    def run_many(self, text: str, values: Iterable[Values]) -> None:
        try:
            with closing(self.connection.cursor()) as cursor:
                for batch in _batches(values):
                    cursor.executemany(_ours(text), batch)
        except (psycopg.IntegrityError, psycopg.DataError) as error:
            detail = " ".join(str(error).split())
            raise InvalidValue(f"{self.location}: {detail}") from error


def _batches(values: Iterable[Values]) -> Iterator[list[Values]]:
    rest = iter(values)
    while batch := list(itertools.islice(rest, FETCHED)):
        yield batch


def _ours(text: str) -> bytes:
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")).encode()
