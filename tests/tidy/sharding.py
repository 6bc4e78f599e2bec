"""Rules for a schema and statements that an engine can shard by space.

They are those of engines that distribute PostgreSQL by a column (every key, reference and statement
names it), and hold for hash partitions as well. Each rule yields a sentence for what breaks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from recollect.store.schema import Migration
from recollect.store.sql import Dialect

_DRIVERS = re.compile(r"%\((\w+)\)s")
_CLOCKS = re.compile(
    r"\b(?:clock_timestamp\(|statement_timestamp\(|now\(|CURRENT_TIMESTAMP\b)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules, for a schema whose tables of many spaces are known."""

    spaced: frozenset[str]  # tables whose rows belong to a space

    @classmethod
    def of(cls, schema: Iterable[Migration]) -> Rules:
        return cls(spaced=frozenset(table for each in schema for table in each.tenant_tables))

    def broken_by_schema(self, statement: str) -> Iterator[str]:
        """What is wrong with one statement of PostgreSQL's schema."""
        if re.search(r"\bTRIGGER\b", statement, re.IGNORECASE):
            yield "a trigger cannot stand on a distributed table"
        if not re.match(r"CREATE (?:TABLE|UNIQUE INDEX|INDEX)", statement):
            return
        parsed = sqlglot.parse_one(statement, read="postgres")
        if isinstance(parsed.this, exp.Schema):
            if parsed.this.this.name in self.spaced:
                yield from self._broken_by_table(parsed.this)
        elif parsed.args.get("unique") and parsed.this.args["table"].name in self.spaced:
            columns = parsed.this.args["params"].args["columns"]
            if _name_of(columns[0]) != "space":
                yield f"the unique index {parsed.this.name} does not begin with space"

    def broken_by_statement(
        self, text: str, dialect: Dialect, *, for_operators: bool = False
    ) -> Iterator[str]:
        """What is wrong with one statement; an operator's may see several spaces."""
        statement = sqlglot.parse_one(_DRIVERS.sub(r":\1", text), read=dialect)
        for table in self._references(statement):
            yield from self._broken_by_reference(table, for_operators=for_operators)
        yield from self._broken_by_locks(statement, for_operators=for_operators)
        match statement:
            case exp.Update():
                yield from _broken_by_forms(statement)
                if any(_name_of(each.this) == "space" for each in statement.expressions):
                    yield "a row never changes its space"
            case exp.Insert():
                yield from self._broken_by_insertion(statement)
            case _:
                pass
        if "force_generic_plan" in text:
            yield "a plan for every space cannot say on which shard it runs"

    # the schema

    def _broken_by_table(self, table: exp.Schema) -> Iterator[str]:
        keys = 0
        for part in table.expressions:
            match part.this if isinstance(part, exp.Constraint) else part:
                case exp.ColumnDef() as column:
                    kinds = [each.kind for each in column.constraints]
                    keys += any(isinstance(kind, exp.PrimaryKeyColumnConstraint) for kind in kinds)
                    yield from self._broken_by_column(column.name, kinds)
                case exp.PrimaryKey() as key:
                    keys += 1
                    if _name_of(key.expressions[0]) != "space":
                        yield "its primary key does not begin with space"
                case exp.UniqueColumnConstraint() as unique:
                    if _name_of(unique.this.expressions[0]) != "space":
                        yield "a unique constraint does not begin with space"
                case exp.ForeignKey() as key:
                    yield from self._broken_by_foreign_key(key)
                case _:
                    pass
        if keys != 1:
            yield "it has no primary key"

    def _broken_by_column(self, name: str, kinds: Sequence[object]) -> Iterator[str]:
        is_key = any(isinstance(kind, exp.PrimaryKeyColumnConstraint) for kind in kinds)
        if name == "space":
            if not is_key and not any(isinstance(k, exp.NotNullColumnConstraint) for k in kinds):
                yield "space may be null"
            if not any(isinstance(kind, exp.CollateColumnConstraint) for kind in kinds):
                yield "space is not compared byte by byte"
            return
        if is_key:
            yield f"the primary key {name} does not begin with space"
        for kind in kinds:
            match kind:
                case exp.UniqueColumnConstraint():
                    yield f"{name} is unique over all spaces"
                case exp.Reference() if _target(kind) in self.spaced:
                    yield f"{name} refers to {_target(kind)} without its space"
                case _:
                    pass

    def _broken_by_foreign_key(self, key: exp.ForeignKey) -> Iterator[str]:
        reference = key.args["reference"]
        if _target(reference) not in self.spaced:
            return
        far = reference.this.expressions if isinstance(reference.this, exp.Schema) else ()
        if not far or {_name_of(key.expressions[0]), _name_of(far[0])} != {"space"}:
            yield f"a reference to {_target(reference)} does not begin with space"
        if "SET NULL" in key.sql().upper():
            yield "ON DELETE SET NULL would clear the space as well"

    # statements

    def _references(self, statement: exp.Expr) -> Iterator[exp.Table]:
        """Every mention of a table of many spaces, at any depth."""
        known = self.spaced - {each.alias_or_name for each in statement.find_all(exp.CTE)}
        return (table for table in statement.find_all(exp.Table) if table.name in known)

    def _broken_by_reference(self, table: exp.Table, *, for_operators: bool) -> Iterator[str]:
        around = table.find_ancestor(exp.Select, exp.Update, exp.Delete, exp.Insert)
        assert around is not None
        if isinstance(around, exp.Insert):
            return  # what is written to; see there
        equal = list(_spaces_of(around, table.alias_or_name))
        if any(isinstance(each, exp.Placeholder) for each in equal):
            return
        if not for_operators:
            yield f"{table.alias_or_name} ({table.name}) has no space = :space of its own"
        elif not equal and not self._leads(table, around):
            yield f"{table.alias_or_name} ({table.name}) may be of another space than the rest"

    def _leads(self, table: exp.Table, around: exp.Expr) -> bool:
        """Whether the others go by its space: what is changed, or the first of an outer select."""
        if isinstance(around, exp.Update | exp.Delete):
            return around.this is table
        is_inner = around.find_ancestor(exp.Where, exp.Exists, exp.In) is not None
        return next(self._references(around)) is table and not is_inner

    def _broken_by_locks(self, statement: exp.Expr, *, for_operators: bool) -> Iterator[str]:
        for select in statement.find_all(exp.Select):
            if select.args.get("locks") and any(self._references(select)):
                if for_operators:
                    yield "rows of several spaces are locked"
                if isinstance(statement, exp.Insert):
                    yield "rows are locked inside INSERT … SELECT"

    def _broken_by_insertion(self, statement: exp.Insert) -> Iterator[str]:
        schema, conflict = statement.this, statement.args.get("conflict")
        if conflict is not None:
            yield from _broken_by_forms(conflict)
        target = statement.find(exp.Table)
        if target is None or target.name not in self.spaced:
            return
        columns = [each.name for each in schema.expressions] if schema is not target else []
        if not columns:
            yield "it does not say which columns it fills"
        elif "space" not in columns:
            yield f"it says no space of {target.name}"
        else:
            keys = conflict.args.get("conflict_keys") or () if conflict is not None else None
            if keys is not None and (not keys or keys[0].name != "space"):
                yield "ON CONFLICT does not begin with space"
            yield from _broken_by_source(statement, columns.index("space"))


def _broken_by_forms(statement: exp.Expr) -> Iterator[str]:
    """What cannot be sent on to shards as it stands."""
    if any(case.this is not None for case in statement.find_all(exp.Case)):
        yield "CASE x WHEN … cannot be sent on with parameters; write CASE WHEN x = …"
    if _CLOCKS.search(statement.sql(dialect="postgres")):
        yield "each shard has a clock of its own; pass the time"


def _broken_by_source(statement: exp.Insert, place: int) -> Iterator[str]:
    match statement.expression:
        case exp.Values() as values if values.find(exp.Select) is not None:
            yield "a subquery stands in VALUES; write INSERT … SELECT"
        case exp.Select() as source:
            if any(join.side == "LEFT" for join in source.args.get("joins") or ()):
                yield "a LEFT JOIN stands in INSERT … SELECT"
            is_of_source = isinstance(source.expressions[place].unalias(), exp.Column)
            is_answered = statement.args.get("conflict") or statement.args.get("returning")
            if not is_of_source and not is_answered:
                yield "INSERT … SELECT takes its space from no table; it would become a COPY"
        case _:
            pass


def _spaces_of(around: exp.Expr, alias: str) -> Iterator[exp.Expr]:
    """What the space of a table is equal to in every row."""
    is_alone = isinstance(around, exp.Update | exp.Delete) or not around.args.get("joins")
    for equation in _equations(around):
        sides = (equation.this, equation.expression)
        for one, other in (sides, sides[::-1]):
            is_space = isinstance(one, exp.Column) and one.name == "space"
            if is_space and (one.table == alias or (is_alone and not one.table)):
                yield other


def _equations(around: exp.Expr) -> Iterator[exp.EQ]:
    where = around.args.get("where")
    conditions = [join.args.get("on") for join in around.args.get("joins") or ()]
    conditions.append(None if where is None else where.this)
    while conditions:
        match conditions.pop():
            case exp.And() as both:
                conditions += [both.this, both.expression]
            case exp.Paren() as inner:
                conditions.append(inner.this)
            case exp.EQ() as equation:
                yield equation
            case _:
                pass


def _target(reference: exp.Reference) -> str:
    found = reference.find(exp.Table)
    return "" if found is None else str(found.name)


def _name_of(column: exp.Expr) -> str:
    is_name = isinstance(column, exp.Column | exp.Identifier)
    found = column if is_name else column.find(exp.Column)
    return "" if found is None else str(found.name)
