"""Prints a conformance report for each store; without a URL, for SQLite in memory and in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import click

from recollect.clock import SystemClock
from recollect.config import Settings
from recollect.errors import InvalidUrl, RecollectError
from recollect.ids import Ids
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect_conformance.harness import OpenStore
from recollect_conformance.suite import FreshStore, Report, run

with suppress(ImportError):  # an extra: who gives no PostgreSQL URL does not need it
    import psycopg

    from recollect.store.postgres import split_options

MEMORY = ":memory:"
FILE = "sqlite:///"


@contextmanager
def _in_memory() -> Iterator[OpenStore]:
    yield lambda: open_store(MEMORY, Settings(), SystemClock())


@contextmanager
def _in_file() -> Iterator[OpenStore]:
    with TemporaryDirectory(prefix="recollect-") as directory:
        path = Path(directory) / "memory.db"
        yield lambda: open_store(path, Settings(), SystemClock())


def _in_postgres(url: str) -> FreshStore:
    """Stores in a schema of their own, which is dropped again; nothing else there is touched."""
    clock = SystemClock()
    new_id = Ids(clock).new

    @contextmanager
    def fresh_store() -> Iterator[OpenStore]:
        schema = f"conformance_{new_id().replace('-', '')}"
        opened: list[Store] = []

        def open_again() -> Store:
            separator = "&" if "?" in url else "?"
            opened.append(open_store(f"{url}{separator}schema={schema}", Settings(), clock))
            return opened[-1]

        try:
            yield open_again
        finally:
            if opened:
                with psycopg.connect(split_options(url, schema)[0], autocommit=True) as connection:
                    connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())

    return fresh_store


def _fresh_store(address: str) -> FreshStore:
    if address == MEMORY:
        return _in_memory
    if address == FILE:
        return _in_file
    if urlsplit(address).scheme in ("postgresql", "postgres"):
        return _in_postgres(address)
    raise InvalidUrl(f"{address}: give {MEMORY}, {FILE} (a temporary file) or a postgresql:// URL")


def _check_reachable(fresh_store: FreshStore) -> None:
    """One clear error for a store that cannot be opened, instead of one per case."""
    with fresh_store() as open_once:
        open_once().close()


def _print(address: str, report: Report, verbose: bool) -> None:
    for result in report.results:
        if verbose or not result.passed:
            rows = " ".join(result.case.rows)
            click.echo(f"  {'ok' if result.passed else 'FAILED':6} {rows:9} {result.case.summary}")
        if not result.passed:
            click.echo(f"         {result.case.name}: {result.explanation}")
    kept = len(report.results) - len(report.failures)
    click.echo(f"{address}: {kept} of {len(report.results)} promises kept")


@click.command()
@click.argument("addresses", nargs=-1, metavar="[URL]...")
@click.option("--verbose", "-v", is_flag=True, help="List the promises that are kept, too.")
def main(addresses: Sequence[str], verbose: bool) -> None:
    """Check stores against every promise of recollect.store.protocol.

    A URL is :memory:, sqlite:/// (a temporary file) or postgresql://… (a throw-away schema).
    """
    failed = False
    try:
        for address in addresses or (MEMORY, FILE):
            fresh_store = _fresh_store(address)
            _check_reachable(fresh_store)
            report = run(fresh_store, volatile=address == MEMORY)
            _print(address, report, verbose)
            failed |= not report.passed
    except RecollectError as error:
        raise click.ClickException(str(error)) from error
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(prog_name="python -m recollect_conformance")
