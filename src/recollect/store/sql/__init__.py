"""Named SQL: the queries of every backend, read from the `.sql` files beside this one.

A query is `-- name: x`, or `-- name: x (postgres)` where the dialects differ; one marked
`(pgvector)` is only for PostgreSQL with that extension. Parameters are written `:name`, and are
converted to psycopg's form here. A query that begins with `-- operator` may see rows of several
spaces; all others name their one space for every table.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

Dialect = Literal["sqlite", "postgres"]
Extension = Literal["pgvector"]

_HEADER = re.compile(r"^-- (name|fragment): (\w+)(?: \((\w+)\))?$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_OPERATOR = re.compile(r"^-- operator\b", re.MULTILINE)
_FRAGMENT = re.compile(r"\{(\w+)\}")
_NESTED_MAX = 6  # fragments within fragments
_COMMENT = re.compile(r"\s*--[^\n]*")


@cache
def queries(dialect: Dialect | Extension) -> dict[str, str]:
    """Every query by name, ready for one dialect's driver; of an extension, its own."""
    meant = (dialect,) if dialect == "pgvector" else (None, dialect)
    fragments: dict[str, str] = {}
    found: dict[str, str] = {}
    for file in sorted(Path(__file__).parent.glob("*.sql")):
        for kind, name, only_for, text in _blocks(file.read_text(encoding="utf-8")):
            if only_for not in meant:
                continue
            target = fragments if kind == "fragment" else found
            assert name not in target, f"{name} is defined twice for {dialect}"
            target[name] = text
    return {name: _finished(text, fragments, dialect) for name, text in found.items()}


@cache
def operator_queries() -> frozenset[str]:
    """The queries that may see several spaces at once."""
    texts = (file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("*.sql"))
    return frozenset(
        header[2]
        for text in texts
        for header, end in _headers(text)
        if _OPERATOR.search(text, header.end(), end)
    )


def _headers(text: str) -> list[tuple[re.Match[str], int]]:
    """Where each block begins and ends."""
    found = list(_HEADER.finditer(text))
    ends = [header.start() for header in found[1:]] + [len(text)]
    return list(zip(found, ends, strict=True))


def _blocks(text: str) -> list[tuple[str, str, str | None, str]]:
    return [
        (header[1], header[2], header[3], _COMMENT.sub("", text[header.end() : end]).strip(" \n;"))
        for header, end in _headers(text)
    ]


def _finished(text: str, fragments: dict[str, str], dialect: Dialect | Extension) -> str:
    for _ in range(_NESTED_MAX):
        if "{" not in text:
            break
        text = _FRAGMENT.sub(lambda named: fragments.get(named[1], named[0]), text)
    assert "{" not in text, f"unknown fragment in: {text}"
    return text if dialect == "sqlite" else _PARAMETER.sub(r"%(\1)s", text)
