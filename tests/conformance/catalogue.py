"""What a database says about itself, read behind the store's back."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from recollect.store.sqlite import files


class Catalogue:
    """What a database says about its tables, for either kind."""

    def __init__(self, run: Callable[[str], list[tuple[object, ...]]], module: ModuleType) -> None:
        self.run = run
        self.module = module

    @property
    def is_sqlite(self) -> bool:
        return self.module is files

    def tables(self) -> set[object]:
        where = "sqlite_schema WHERE type = 'table'"
        if not self.is_sqlite:
            where = "(SELECT tablename AS name, schemaname FROM pg_tables) t"
            where += " WHERE schemaname = current_schema()"
        return {row[0] for row in self.run(f"SELECT name FROM {where}")}

    def nullable(self, table: str) -> dict[object, bool]:
        if self.is_sqlite:
            rows = self.run(f"SELECT name, \"notnull\" = 0 FROM pragma_table_info('{table}')")
        else:
            rows = self.run(
                "SELECT column_name::text, is_nullable = 'YES' FROM information_schema.columns"
                f" WHERE table_schema = current_schema() AND table_name = '{table}'"
            )
        return {name: bool(is_nullable) for name, is_nullable in rows}

    def indexes(self, table: str) -> set[object]:
        if self.is_sqlite:
            return {row[0] for row in self.run(f"SELECT name FROM pragma_index_list('{table}')")}
        rows = self.run(
            "SELECT indexname::text FROM pg_indexes"
            f" WHERE schemaname = current_schema() AND tablename = '{table}'"
        )
        return {row[0] for row in rows}

    def versions(self) -> list[tuple[object, ...]]:
        return self.run("SELECT version, name FROM schema_version ORDER BY version")
