"""The public names: where they come from, and that none costs anything until it is asked for."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recollect

# What a start need not wait for: drivers, the web, and what takes long in the standard library.
HEAVY = {"apsw", "asyncio", "dataclasses", "httpx2", "inspect", "numpy", "psycopg", "yaml"}
OF_CLICK = {"dataclasses", "inspect"}
# Words that only those need who work, consolidate, host agents, import or forget.
OF_OTHERS = {
    f"recollect.{name}"
    for name in ("agency", "generation", "importing", "forgetting", "status", "phase1", "worker")
} | {f"recollect.{name}" for name in ("leases", "processing", "models.protocol")}
# What all parts of a relational store are made of.
SHARED = {"store", "database", "rows", "text", "fact_changes"}
PARTS = ("aio", "compat")  # modules that are used by name
STARTING = """
import json, sys

bare = set(sys.modules)

import recollect

assert set(recollect.__all__) <= set(dir(recollect))
imported = sys.modules.keys() - bare

from recollect.interfaces.cli.main import cli

cli(["--help"], standalone_mode=False)
helped = sys.modules.keys() - bare

import recollect.interfaces.cli.hook

hooked = sys.modules.keys() - bare


def called(name):
    told = {"hook_event_name": name, "session_id": "1", "cwd": "/", "prompt": "who likes oranges?"}
    call = ["hook", "claude-code", "--timeout", "60", "--verbose", json.dumps(told)]
    cli(call, standalone_mode=False)
    return sys.modules.keys() - bare


handed_on, begun, asked = called("Stop"), called("SessionStart"), called("UserPromptSubmit")

# The modules of the names need no import of their own, nor do those that are used by name.
assert recollect.memory.AgentMemories
assert recollect.aio.open
assert recollect.compat.mem0.Memory
assert "mem0" in dir(recollect.compat)
assert {"aio", "compat"} <= set(dir(recollect))

print(json.dumps([list(each) for each in (imported, helped, hooked, handed_on, begun, asked)]))
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


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path: Path) -> None:
    """An agent waits for every hook, and most of them only hand on what they were told."""
    store = tmp_path / "memory.db"
    with recollect.open(store) as memory:
        memory.space().facts.add("Anna likes oranges.", tags=["preference"])
    settings = {"RECOLLECT_STORE": str(store), "RECOLLECT_DATA_DIR": str(tmp_path / "data")}
    found = subprocess.run(
        [sys.executable, "-c", STARTING],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | settings,
    )
    *printed, loaded = found.stdout.splitlines()
    assert found.stderr == ""
    assert [line.count("Anna likes oranges.") for line in printed if "SessionStart" in line] == [1]
    imported, helped, hooked, handed_on, begun, asked = map(set, json.loads(loaded))
    assert own(imported) == {"recollect"}
    assert not HEAVY & imported
    assert "msgspec" not in imported | helped | hooked
    outside = {name for name in own(helped) if not name.startswith("recollect.interfaces")}
    assert outside == {"recollect"}
    assert not (HEAVY - OF_CLICK) & helped
    assert not {f"recollect.{name}" for name in ("memory", "agency", "document")} & hooked
    assert not {name for name in hooked if name.startswith("recollect.store.relational")}
    assert not (HEAVY - OF_CLICK) & hooked
    assert not {f"recollect.{name}" for name in ("memory", "domain", "knowledge")} & handed_on
    assert not {"apsw", "recollect.types.pages", "recollect.recall.recaller"} & handed_on
    assert OF_OTHERS & begun == set()
    assert not {"agents", "documents", "generations", "leases", "learning"} & aggregates(begun)
    assert "recollect.recall.recaller" in asked - begun
    assert OF_OTHERS & asked == set()
    assert not {"agents", "documents", "generations", "leases", "learning"} & aggregates(asked)


def aggregates(modules: set[str]) -> set[str]:
    """The parts of a relational store that are loaded, by their modules."""
    home = "recollect.store.relational."
    return {name.removeprefix(home) for name in modules if name.startswith(home)} - SHARED


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "recollect"}


def test_a_name_is_what_the_type_checker_takes_it_for() -> None:
    names = declared()
    assert set(names) == {*recollect.__all__, *PARTS}
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
