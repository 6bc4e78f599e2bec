"""Addresses as they may be shown: everything but the password."""

from __future__ import annotations

from recollect.store.address import without_password, without_secrets
from tests.tables import every_row


@every_row(
    ("address", "shown"),
    [
        ("memory.db", "memory.db"),
        (":memory:", ":memory:"),
        ("sqlite:////data/memory.db", "sqlite:////data/memory.db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://ada@host:5432/db", "postgresql://ada@host:5432/db"),
        ("postgresql://ada:s3cret@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://ada:s3c@ret@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://ada:s3c:ret@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://ada:s3c/r?t@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://ada:s3cret@[::1/db", "postgresql://ada:***@[::1/db"),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=/run/pg"),
        ("postgresql://host/db?password=s3cret", "postgresql://host/db"),
        ("postgresql://host/db?PASSWORD=s3cret&schema=x", "postgresql://host/db?schema=x"),
        ("postgresql://host/db?schema=x&sslpassword=s3cret", "postgresql://host/db?schema=x"),
        ("postgresql://host/db?schema=x&password=s3c@ret", "postgresql://***"),
        ("postgresql://ada:s3cret@host/db?password=s3c@ret", "postgresql://***"),
        ("postgresql://ada:s3c?password=ret@host/db", "postgresql://***"),
        ("postgresql://s3c@ret@host/db", "postgresql://***@host/db"),
        ("postgresql://ada@s3c:ret@host/db", "postgresql://***@host/db"),
        ("sqlite:////data/me:a@b.db", "sqlite:////data/me:a@b.db"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown


@every_row(
    ("address", "told", "shown"),
    [
        ("postgresql://ada:s3c@ret@host/db", "no host 'ret@host'", "no host '***@host'"),
        ("postgresql://ada:12/ret@host/db", "port 12 of ada", "port *** of ada"),
        ("postgresql://ada:s3%63@host/db", 'spaces in "s3c"', 'spaces in "***"'),
        ("postgresql://ada:s3 c@host/db", 'spaces in "s3 c"', 'spaces in "***"'),
        ("postgresql://host/db?password=s3c@ret", "not s3c@ret", "not ***@***"),
        ("postgresql://ada@host/db", "no host 'host'", "no host 'host'"),
        ("postgresql://ada:o@host/db", "no host 'host'", "no host 'host'"),
        ("memory.db", "no memory.db", "no memory.db"),
    ],
)
def test_what_is_said_about_an_address_holds_no_part_of_its_password(
    address: str, told: str, shown: str
) -> None:
    assert without_secrets(told, address) == shown
