"""The public names: where they come from, and that none costs anything until it is asked for."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recollect

# What a start need not wait for: drivers, the web, and what takes long in the standard library.
HEAVY = {"apsw", "asyncio", "dataclasses", "httpx2", "inspect", "numpy", "psycopg", "yaml"}
OF_CLICK = {"dataclasses", "inspect"}
STARTING = """
import sys

bare = set(sys.modules)

import recollect

assert set(recollect.__all__) <= set(dir(recollect))
imported = sys.modules.keys() - bare

from recollect.interfaces.cli.main import cli

cli(["--help"], standalone_mode=False)
helped = sys.modules.keys() - bare

import recollect.interfaces.cli.hook

hooked = sys.modules.keys() - bare

assert recollect.resolver.AgentMemories  # the modules of the names need no import of their own

import json

print(json.dumps([list(imported), list(helped), list(hooked)]))
"""


def declared() -> dict[str, str]:
    """Each name that a type checker sees in the package, and the module it sees it come from."""
    tree = ast.parse(Path(recollect.__file__).read_text(encoding="utf-8"))
    seen = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module)
        for branch in seen
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    """An agent waits for every hook, and most of them only hand on what they were told."""
    found = subprocess.run(
        [sys.executable, "-c", STARTING], capture_output=True, text=True, check=True
    )
    imported, helped, hooked = map(set, json.loads(found.stdout.splitlines()[-1]))
    assert own(imported) == {"recollect"}
    assert not HEAVY & imported
    outside = {name for name in own(helped) if not name.startswith("recollect.interfaces")}
    assert outside == {"recollect"}
    assert not (HEAVY - OF_CLICK) & helped
    assert not {f"recollect.{name}" for name in ("memory", "agency", "document")} & hooked
    assert not {name for name in hooked if name.startswith("recollect.store.relational")}
    assert not (HEAVY - OF_CLICK) & hooked


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "recollect"}


def test_a_name_is_what_the_type_checker_takes_it_for() -> None:
    names = declared()
    assert set(names) == set(recollect.__all__)
    for name, module in names.items():
        assert getattr(recollect, name) is getattr(importlib.import_module(module), name)


def test_all_of_the_names_can_be_had_at_once() -> None:
    namespace: dict[str, Any] = {}
    exec("from recollect import *", namespace)
    assert set(recollect.__all__) <= set(namespace)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'recollect' has no attribute 'opens'"):
        recollect.opens  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(recollect, "citations")
