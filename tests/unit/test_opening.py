"""Addresses: which store they mean, and advice for those that mean none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.errors import InvalidUrl, NotAStore
from recollect.store.address import path_of
from tests.tables import every_row


@pytest.mark.parametrize("address", [":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_store_in_memory_has_several_addresses(address: str, tmp_path: Path) -> None:
    with recollect.open(address) as memory:
        memory.space().session("k").append("user", "x")
        assert memory.status().store.location == ":memory:"


def test_a_file_may_be_a_path_a_text_or_a_url(tmp_path: Path) -> None:
    file = tmp_path / "with space.db"
    quoted = str(file).replace(" ", "%20")
    addresses: list[str | Path] = [file, str(file), f"sqlite:///{quoted}"]
    for number, address in enumerate(addresses, start=1):
        with recollect.open(address) as memory:
            session = memory.space().session("k")
            session.append("user", "x")
            assert session.count() == number
            assert memory.status().store.location == str(file)


def test_a_relative_path_lies_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recollect.open("own.db").close()
    assert (tmp_path / "own.db").exists()


def test_a_new_file_and_its_directory_are_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "memory.db"
    old = os.umask(0)
    try:
        recollect.open(file).close()
    finally:
        os.umask(old)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.parent.parent.stat().st_mode & 0o777 == 0o700


def test_a_tilde_is_home_in_a_path_and_in_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for address in ("~/memory.db", "sqlite:///~/memory.db"):
        with recollect.open(address) as memory:
            assert memory.status().store.location == str(tmp_path / "memory.db")
        assert path_of(address) == tmp_path / "memory.db"


NO_ADDRESS = ["", "  ", "a\0b", 5, b"memory.db", [], "sqlite://[x"]
NO_FILE = ["/", Path("/"), Path("a\0b"), "sqlite:////", "~nobody-of-that-name/memory.db"]


@every_row("address", NO_ADDRESS + NO_FILE)
def test_what_is_no_address_is_refused_with_advice(address: Any) -> None:
    with pytest.raises(InvalidUrl, match="use a path"):
        recollect.open(address)


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    file.write_bytes(b"these are not the bytes of a database, but there are quite a few of them")
    before = file.read_bytes()
    with pytest.raises(NotAStore):
        recollect.open(file)
    assert file.read_bytes() == before
