"""Addresses as they may be shown: everything but the password."""

from __future__ import annotations

import pytest

from recollect.store.address import without_password


@pytest.mark.parametrize(
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
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown
