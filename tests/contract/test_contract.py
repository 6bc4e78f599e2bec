"""The contract: every surface is what stands here as a file, or the change is one that is meant."""

from __future__ import annotations

import difflib
import re

import pytest

from tools import contract

MEANT = "if the change is meant: make contract, and say why in the CHANGELOG"


@pytest.mark.parametrize("name", contract.FILES)
def test_a_surface_is_what_was_agreed(name: str) -> None:
    agreed = (contract.CONTRACT / name).read_text(encoding="utf-8")
    changed = difflib.unified_diff(
        agreed.splitlines(),
        contract.FILES[name]().splitlines(),
        f"tests/contract/{name}",
        "what it is now",
        lineterm="",
    )
    difference = "\n".join(changed)
    if difference:
        pytest.fail(f"{difference}\n\n{MEANT}", pytrace=False)


def test_every_file_here_is_of_a_surface_and_says_nothing_of_one_machine() -> None:
    files = [file for file in contract.CONTRACT.iterdir() if file.suffix in (".json", ".txt")]
    assert {file.name for file in files} == set(contract.FILES)
    addresses = re.compile(r" at 0x|/tmp/|PosixPath|127\.0\.0\.1:\d{5}")
    assert [file.name for file in files if addresses.search(file.read_text("utf-8"))] == []
