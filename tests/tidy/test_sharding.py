"""The schema and every statement can be sharded by space, and each rule finds what breaks it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

import recollect
from recollect.store.schema import migrations
from recollect.store.sql import Dialect, operator_queries, queries
from tests.tables import every_row
from tests.tidy.sharding import Rules

PACKAGE = Path(recollect.__file__).parent
RULES = Rules.of(migrations("postgres"))
STATEMENTS = [
    (dialect, name) for dialect in ("sqlite", "postgres") for name in sorted(queries(dialect))
]


@cache
def broken(dialect: Dialect, name: str) -> tuple[str, ...]:
    text = queries(dialect)[name]
    return tuple(RULES.broken_by_statement(text, dialect, for_operators=name in operator_queries()))


def test_there_is_something_to_look_at() -> None:
    assert {"sessions", "facts", "jobs", "postings"} <= RULES.spaced
    assert not {"properties", "api_keys", "embedded_records"} & RULES.spaced
    assert len(STATEMENTS) > 600


def test_the_schema_can_be_sharded() -> None:
    found = [
        f"{statement.split('(')[0]}: {each}"
        for migration in migrations("postgres")
        for statement in migration.statements
        for each in RULES.broken_by_schema(statement)
    ]
    assert found == []


@every_row(("dialect", "name"), STATEMENTS)
def test_a_statement_can_be_sent_to_one_shard(dialect: Dialect, name: str) -> None:
    assert broken(dialect, name) == ()


def test_operators_statements_are_few_and_need_to_be() -> None:
    assert operator_queries() <= set(queries("sqlite"))
    assert len(operator_queries()) <= OPERATORS_MAX
    needless = {
        name
        for name in operator_queries()
        if not any(
            list(RULES.broken_by_statement(queries(dialect)[name], dialect))
            for dialect in ("sqlite", "postgres")
        )
    }
    assert needless == set()


OPERATORS_MAX = 47  # and what servers share for a while, of no space

TABLE = 'CREATE TABLE facts (space TEXT COLLATE "C" NOT NULL, id TEXT NOT NULL, {})'
BROKEN_SCHEMAS = {
    "a key without the space": (TABLE.format("PRIMARY KEY (id)"), "primary key"),
    "a key that ends with the space": (TABLE.format("PRIMARY KEY (id, space)"), "primary key"),
    "a key of one column": (
        'CREATE TABLE facts (space TEXT COLLATE "C" NOT NULL, id TEXT PRIMARY KEY)',
        "primary key id",
    ),
    "no key": (TABLE.format("x TEXT"), "no primary key"),
    "a constraint": (TABLE.format("PRIMARY KEY (space, id), UNIQUE (id)"), "unique constraint"),
    "a unique column": (
        TABLE.format("name TEXT UNIQUE, PRIMARY KEY (space, id)"),
        "unique over all",
    ),
    "a unique index": ("CREATE UNIQUE INDEX i ON facts (id, space)", "unique index"),
    "a unique index in part": ("CREATE UNIQUE INDEX i ON facts (id) WHERE id > ''", "unique index"),
    "a reference of one column": (
        TABLE.format("PRIMARY KEY (space, id), s TEXT REFERENCES sessions (id)"),
        "refers to sessions without",
    ),
    "a reference without the space": (
        TABLE.format("PRIMARY KEY (space, id), FOREIGN KEY (id) REFERENCES sessions (id)"),
        "reference to sessions",
    ),
    "a reference to something else than a space": (
        TABLE.format(
            "PRIMARY KEY (space, id), FOREIGN KEY (space, id) REFERENCES sessions (id, x)"
        ),
        "reference to sessions",
    ),
    "a reference that is emptied": (
        TABLE.format(
            "PRIMARY KEY (space, id), FOREIGN KEY (space, id) REFERENCES sessions (space, id)"
            " ON DELETE SET NULL"
        ),
        "SET NULL",
    ),
    "a space that may be null": (
        'CREATE TABLE facts (space TEXT COLLATE "C", id TEXT, PRIMARY KEY (space, id))',
        "may be null",
    ),
    "a space in the order of some language": (
        "CREATE TABLE facts (space TEXT NOT NULL, id TEXT, PRIMARY KEY (space, id))",
        "byte by byte",
    ),
    "a trigger": (
        "CREATE TRIGGER t AFTER INSERT ON facts FOR EACH ROW EXECUTE FUNCTION f()",
        "trigger",
    ),
    "a trigger that a block makes": ("DO $$ BEGIN EXECUTE 'CREATE TRIGGER t'; END $$", "trigger"),
    "what a trigger would run": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN END $$",
        "trigger",
    ),
}


@every_row("name", sorted(BROKEN_SCHEMAS))
def test_a_schema_that_breaks_a_rule_is_found(name: str) -> None:
    statement, said = BROKEN_SCHEMAS[name]
    assert [each for each in RULES.broken_by_schema(statement) if said in each]


def test_a_schema_that_keeps_the_rules_is_left_alone() -> None:
    kept = TABLE.format(
        "s TEXT NOT NULL, PRIMARY KEY (space, id), UNIQUE (space, s),"
        " FOREIGN KEY (space, s) REFERENCES sessions (space, id) ON DELETE CASCADE"
    )
    index = "CREATE UNIQUE INDEX i ON facts (space, s) WHERE s <> ''"
    assert [*RULES.broken_by_schema(kept), *RULES.broken_by_schema(index)] == []


BROKEN_STATEMENTS = {
    "no space": ("SELECT f.id FROM facts f WHERE f.id = :id", "no space"),
    "the space of one table alone": (
        "SELECT 1 FROM facts f JOIN sessions s ON s.id = f.id WHERE f.space = :space",
        "s (sessions)",
    ),
    "a space by another table's": (
        "SELECT 1 FROM facts f JOIN sessions s ON s.space = f.space WHERE f.space = :space",
        "s (sessions)",
    ),
    "a space in a condition that need not hold": (
        "SELECT 1 FROM facts f WHERE f.space = :space OR f.id = :id",
        "f (facts)",
    ),
    "a subquery": (
        "SELECT (SELECT max(s.id) FROM sessions s) FROM facts f WHERE f.space = :space",
        "s (sessions)",
    ),
    "a correlated subquery": (
        (
            "SELECT 1 FROM facts f WHERE f.space = :space AND EXISTS ("
            "SELECT 1 FROM sessions s WHERE s.space = f.space)"
        ),
        "s (sessions)",
    ),
    "a fenced subquery": (
        (
            "SELECT 1 FROM facts f, LATERAL (SELECT * FROM sessions o WHERE o.id = f.id OFFSET 0) s"
            " WHERE f.space = :space AND s.space = :space"
        ),
        "o (sessions)",
    ),
    "a part of a union": (
        "SELECT f.id FROM facts f WHERE f.space = :space UNION ALL SELECT s.id FROM sessions s",
        "s (sessions)",
    ),
    "an update": ("UPDATE facts SET content = :x WHERE id = :id", "facts (facts)"),
    "an update of the space": (
        "UPDATE facts SET space = :other WHERE space = :space",
        "never changes",
    ),
    "a deletion": ("DELETE FROM facts WHERE id = :id", "facts (facts)"),
    "a deletion by what a subquery finds": (
        "DELETE FROM facts WHERE space = :space AND id IN (SELECT s.id FROM sessions s)",
        "s (sessions)",
    ),
    "an insertion": ("INSERT INTO facts (id) VALUES (:id)", "no space of facts"),
    "an insertion that names no columns": ("INSERT INTO facts VALUES (:space)", "which columns"),
    "a conflict over something else": (
        "INSERT INTO facts (space, id) VALUES (:space, :id) ON CONFLICT (id) DO NOTHING",
        "ON CONFLICT",
    ),
    "a conflict over whatever there is": (
        "INSERT INTO facts (space, id) VALUES (:space, :id) ON CONFLICT DO NOTHING",
        "ON CONFLICT",
    ),
    "a subquery among values": (
        (
            "INSERT INTO facts (space, id) VALUES (:space, ("
            "SELECT max(s.id) FROM sessions s WHERE s.space = :space))"
        ),
        "in VALUES",
    ),
    "a selection that becomes a copy": (
        "INSERT INTO facts (space, id) SELECT :space, s.id FROM sessions s WHERE s.space = :space",
        "COPY",
    ),
    "a selection with an outer join": (
        (
            "INSERT INTO facts (space, id) SELECT f.space, s.id FROM facts f"
            " LEFT JOIN sessions s ON s.space = :space WHERE f.space = :space"
        ),
        "LEFT JOIN",
    ),
    "a selection that locks": (
        (
            "INSERT INTO facts (space, id) SELECT s.space, s.id FROM sessions s"
            " WHERE s.space = :space FOR UPDATE"
        ),
        "locked inside INSERT",
    ),
    "a clock": (
        "UPDATE facts SET updated_at = EXTRACT(epoch FROM clock_timestamp()) WHERE space = :space",
        "clock",
    ),
    "a clock in a conflict": (
        (
            "INSERT INTO facts (space, id) VALUES (:space, :id)"
            " ON CONFLICT (space, id) DO UPDATE SET updated_at = now()"
        ),
        "clock",
    ),
    "a simple case": (
        "UPDATE facts SET content = CASE id WHEN :id THEN :x END WHERE space = :space",
        "CASE",
    ),
    "a simple case in a conflict": (
        (
            "INSERT INTO facts (space, id) VALUES (:space, :id)"
            " ON CONFLICT (space, id) DO UPDATE SET content = CASE facts.id WHEN :x THEN '' END"
        ),
        "CASE",
    ),
    "one plan for all": (
        "SELECT set_config('plan_cache_mode', 'force_generic_plan', true)",
        "plan",
    ),
}
BROKEN_OPERATORS = {
    "a table of whatever space": (
        "SELECT 1 FROM facts f JOIN sessions s ON s.id = f.id",
        "s (sessions)",
    ),
    "a subquery of whatever space": (
        "SELECT 1 FROM facts f WHERE EXISTS (SELECT 1 FROM sessions s WHERE s.id = f.id)",
        "s (sessions)",
    ),
    "rows of all spaces locked": ("SELECT f.id FROM facts f FOR UPDATE SKIP LOCKED", "locked"),
}


@every_row("name", sorted(BROKEN_STATEMENTS))
def test_a_statement_that_breaks_a_rule_is_found(name: str) -> None:
    statement, said = BROKEN_STATEMENTS[name]
    assert [each for each in RULES.broken_by_statement(statement, "postgres") if said in each]


@pytest.mark.parametrize("name", sorted(BROKEN_OPERATORS))
def test_an_operators_statement_that_breaks_a_rule_is_found(name: str) -> None:
    statement, said = BROKEN_OPERATORS[name]
    found = RULES.broken_by_statement(statement, "postgres", for_operators=True)
    assert [each for each in found if said in each]


KEPT = (
    "SELECT 1 FROM facts f JOIN sessions s ON s.space = :space WHERE f.space = :space",
    "WITH c AS (SELECT id FROM facts WHERE space = :space) SELECT c.id FROM c",
    "UPDATE facts SET content = CASE WHEN id = :id THEN :x END WHERE space = :space AND id = :id",
    (
        "INSERT INTO facts (space, id) SELECT :space, s.id FROM sessions s WHERE s.space = :space"
        " ON CONFLICT (space, id) DO NOTHING"
    ),
    "SELECT 1 FROM facts f WHERE f.space = :space FOR UPDATE",
    "SELECT p.value FROM properties p WHERE p.name = :name",
)


@every_row("statement", KEPT)
def test_a_statement_that_keeps_the_rules_is_left_alone(statement: str) -> None:
    assert list(RULES.broken_by_statement(statement, "postgres")) == []


# What finds an entry follows it: no statement that stores one, changes what it says or removes it
# is run but by `put_entry` and `erase_entries`. A record is stored together with its postings.
ENTRIES = {"facts", "extractions", "documents", "session_history"}
SAID = {"words", "content", "rollout_summary", "body"}
THROUGH = re.compile(r"(?:put_entry|erase_entries)\(\s*[\w.]+,\s*EntryKind\.\w+,\s*\"(\w+)\"")
RUN = re.compile(r"\.(?:run|run_many|rows|row)\(\s*\"(\w+)\"")


def changes_entries(text: str) -> bool:
    statement = sqlglot.parse_one(re.sub(r"%\((\w+)\)s", r":\1", text), read="postgres")
    table = statement.find(exp.Table)
    if table is None or table.name not in ENTRIES:
        return False
    match statement:
        case exp.Delete():
            return True
        case exp.Insert():
            return table.name != "session_history"
        case exp.Update():
            return any(each.this.name in SAID for each in statement.expressions)
        case _:
            return False


def test_what_finds_entries_follows_every_statement_that_changes_them() -> None:
    changing = {name for name, text in queries("postgres").items() if changes_entries(text)}
    sources = [file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")]
    through = {name for text in sources for name in THROUGH.findall(text)}
    assert len(changing) > 10
    assert changing == through
    assert changing.isdisjoint(name for text in sources for name in RUN.findall(text))
