"""Addresses that name no store: the type says who is at fault, the text what to write instead."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

import recollect
from recollect.errors import InvalidUrl, StoreDenied, StoreError, StoreUnavailable
from tests.postgres_server import url_with

IMPATIENT = {"postgres_timeout_seconds": 1}
FORMS = "use a path, sqlite:///path, postgresql://"
CHECK = "check that the server runs and that host, port, database, user and password"


@pytest.mark.parametrize("address", ["", "   ", "a\0b"])
def test_an_address_that_is_nothing_is_refused_with_the_forms_there_are(address: str) -> None:
    with pytest.raises(InvalidUrl, match="use a path"):
        recollect.open(address)


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("mysql://root@localhost/memory", FORMS),
        ("http://localhost/memory.db", FORMS),
        ("SQLITE:///memory.db", FORMS),
        ("://memory.db", FORMS),
        ("sqlite://memory.db", "write sqlite:///path with three slashes"),
        ("sqlite://host/memory.db", "write sqlite:///path with three slashes"),
        ("sqlite:///memory.db?synchronous=sometimes", "synchronous is one of"),
        ("sqlite:///memory.db?mode=ro", "use synchronous or vfs"),
        ("postgresql://localhost/x?schema=not-a-name", "letters, digits and underscores"),
        ("postgresql://localhost/x?schema=", "letters, digits and underscores"),
    ],
)
def test_a_wrong_address_is_refused_with_the_right_form(address: str, advice: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        recollect.open(address, settings=IMPATIENT)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://localhost/x?no_such_option=1",
        "postgresql://localhost:port/x",
        "postgresql://localhost:99999999/x",
        "postgresql://[::1/x",
        "postgresql://local host/x",
        "postgresql://localhost/x?connect_timeout=soon",
        "postgresql://localhost/%zz",
        "postgresql://localhost/x?sslmode=perhaps",
    ],
)
def test_garbage_for_postgresql_is_an_error_of_ours(address: str) -> None:
    with pytest.raises((InvalidUrl, StoreUnavailable)) as caught:
        recollect.open(address, settings=IMPATIENT)
    assert "URL" in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://nobody@localhost:1/x",
        "postgresql://nobody@no-such-host.invalid/x",
        "postgresql://nobody@/x?host=/no/such/directory",
    ],
)
def test_a_server_that_is_not_there_is_unavailable_and_a_retry_may_help(address: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        recollect.open(address, settings=IMPATIENT)
    assert caught.value.retry_helps
    assert CHECK in str(caught.value)


def test_a_database_that_does_not_exist_is_named_in_the_error(postgres_url: str) -> None:
    with pytest.raises(StoreError) as caught:
        recollect.open(postgres_url.replace("/postgres?", "/no_such_database?"))
    assert CHECK in str(caught.value)
    assert "no_such_database" in str(caught.value)


def test_a_user_that_does_not_exist_is_named_in_the_error(postgres_url: str) -> None:
    with pytest.raises(StoreError) as caught:
        recollect.open(postgres_url.replace("//postgres@", "//no_such_user@"))
    assert CHECK in str(caught.value)
    assert "no_such_user" in str(caught.value)


def test_no_error_shows_the_password() -> None:
    password = "tr0ub4dor&3"
    for address in (
        f"postgresql://me:{quote(password)}@localhost:1/x",
        f"postgresql://me@localhost:1/x?password={quote(password)}",
        f"postgresql://me:{quote(password)}@localhost:port/x",
        f"postgresql://me:{quote(password)}@localhost/x?schema=not-a-name",
        f"postgresql://me:{quote(password)}@[::1/x",
        "postgresql://me:half@tr0ub4dor@localhost:1/x",  # libpq takes the rest for a host
        "postgresql://me:tr0ub4dor 3@localhost:1/x",
    ):
        with pytest.raises(recollect.RecollectError) as caught:
            recollect.open(address, settings=IMPATIENT)
        assert "tr0ub4dor" not in "".join(traceback.format_exception(caught.value))


def test_a_user_who_may_not_create_the_schema_is_denied(
    postgres_url: str, postgres_store_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS recollect_guest")
        connection.execute("CREATE ROLE recollect_guest LOGIN")
    try:
        with pytest.raises(StoreDenied, match="check this user's rights"):
            recollect.open(postgres_store_url.replace("//postgres@", "//recollect_guest@"))
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP ROLE recollect_guest")


def test_a_server_that_is_read_only_is_denied(postgres_store_url: str) -> None:
    recollect.open(postgres_store_url).close()
    read_only = url_with(postgres_store_url, options="-c default_transaction_read_only=on")
    with (
        recollect.open(read_only) as memory,
        pytest.raises(StoreDenied, match="use the primary"),
    ):
        memory.space("s").session("k", agent="a")


WITHOUT_PSYCOPG = """
import sys
import traceback
sys.modules["psycopg"] = sys.modules["psycopg_pool"] = None
import recollect
try:
    recollect.open("postgresql://localhost/x")
except recollect.errors.MissingExtra as error:
    print(error)
recollect.open(sys.argv[1]).close()
"""


def test_a_missing_driver_names_the_extra_and_leaves_sqlite_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_PSYCOPG, str(tmp_path / "memory.db")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "pip install 'recollect[postgres]'" in result.stdout


def test_a_url_without_a_host_part_is_understood(postgres_store_url: str) -> None:
    address = postgres_store_url.replace("//postgres@/postgres?", "///postgres?user=postgres&")
    assert address.startswith("postgresql:///postgres?user=postgres&host=")
    recollect.open(address).close()
