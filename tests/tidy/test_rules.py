"""Each rule of the house can fail: every one is shown a small tree that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tidy import rules
from tests.tidy.source_tree import SourceTree

LAYERS = (frozenset({"errors", "clock"}), frozenset({"store"}), frozenset({"__init__"}))

TreeMaker = Callable[[dict[str, str]], SourceTree]


@pytest.fixture
def make_tree(tmp_path: Path) -> TreeMaker:
    """A tree of the package ``pkg`` from file names and contents."""

    def make(files: dict[str, str]) -> SourceTree:
        for name, text in files.items():
            path = tmp_path / "pkg" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return SourceTree(root=tmp_path, package="pkg")

    return make


def test_a_module_without_a_place_is_noticed(make_tree: TreeMaker) -> None:
    tree = make_tree({"__init__.py": "", "errors.py": "", "extra/__init__.py": ""})
    assert rules.misplaced_modules(tree, LAYERS) == ["extra has no place in the layers"]


def test_a_module_may_import_its_own_layer_and_those_below(make_tree: TreeMaker) -> None:
    store = "import os\nfrom pkg.errors import X\nfrom pkg import clock\n"
    tree = make_tree(
        {"clock.py": "import pkg.errors", "errors.py": "", "store/sqlite.py": store}
        | {"__init__.py": "from pkg.store import sqlite\n"}
    )
    assert rules.layer_violations(tree, LAYERS) == []


@pytest.mark.parametrize(
    "statement",
    [
        "import pkg.store.sqlite",
        "from pkg.store.sqlite import X",
        "from pkg.store import sqlite",
        "from .store import sqlite",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.store import sqlite",
        "def f():\n    import pkg.store.sqlite",
        "import importlib\nsqlite = importlib.import_module('pkg.store.sqlite')",
    ],
)
def test_an_import_of_a_higher_layer_is_noticed(make_tree: TreeMaker, statement: str) -> None:
    tree = make_tree({"errors.py": statement, "store/__init__.py": "", "store/sqlite.py": ""})
    (offence,) = rules.layer_violations(tree, LAYERS)
    assert offence.startswith("pkg.errors:")
    assert "pkg.store" in offence


def test_inner_modules_may_not_start_from_the_public_names(make_tree: TreeMaker) -> None:
    tree = make_tree({"__init__.py": "X = 1", "errors.py": "from pkg import X"})
    assert rules.layer_violations(tree, LAYERS) == [
        "pkg.errors:1 imports pkg, which stands above it"
    ]


def test_a_circle_of_imports_is_noticed(make_tree: TreeMaker) -> None:
    tree = make_tree(
        {"a.py": "from pkg import b", "b.py": "import pkg.c", "d.py": "from pkg import a"}
        | {"c.py": "if TYPE_CHECKING:\n    from .a import X"}
    )
    assert rules.import_cycles(tree) == ["pkg.a -> pkg.b -> pkg.c -> pkg.a"]


def test_a_diamond_of_imports_is_no_circle(make_tree: TreeMaker) -> None:
    tree = make_tree(
        {"a.py": "from pkg import b, c", "b.py": "import pkg.d", "c.py": "import pkg.d", "d.py": ""}
        | {"__init__.py": "from pkg.a import X"}
    )
    assert rules.import_cycles(tree) == []


@pytest.mark.parametrize(
    ("statement", "target"),
    [
        ("import yaml", "yaml"),
        ("from yaml.nodes import Node", "yaml.nodes"),
        ("importlib.import_module('yaml')", "yaml"),
        ("importlib.import_module(name)", "<dynamic>"),
        ("return lambda: __import__('yaml')", "yaml"),
    ],
)
def test_an_import_inside_a_function_needs_permission(
    make_tree: TreeMaker, statement: str, target: str
) -> None:
    tree = make_tree({"a.py": f"class A:\n    def f(self):\n        {statement}\n"})
    assert rules.hidden_imports(tree, set()) == [f"pkg.a:3 hides the import of {target}"]
    assert rules.hidden_imports(tree, {("pkg.a", target)}) == []


def test_a_permission_that_nobody_uses_is_noticed(make_tree: TreeMaker) -> None:
    tree = make_tree({"a.py": "import yaml\n"})
    assert rules.hidden_imports(tree, {("pkg.a", "yaml")}) == ["pkg.a no longer hides yaml"]


def test_banned_names_are_noticed_as_whole_words(make_tree: TreeMaker) -> None:
    classes = "class StoreManager: ...\nclass BaseStore: ...\nclass Database: ...\n"
    tree = make_tree({"sql_helpers.py": "", "utils/__init__.py": "", "database.py": classes})
    assert rules.banned_names(tree) == [
        "pkg.database:1 StoreManager is a banned name",
        "pkg.database:2 BaseStore is a banned name",
        "pkg.sql_helpers is a banned name",
        "pkg.utils is a banned name",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import time\nx = time.time()",
        "import time as t\nx = t.monotonic_ns",
        "from time import perf_counter",
        "import datetime as dt\nx = dt.datetime.now(dt.UTC)",
        "from datetime import datetime\nx = datetime.now()",
        "from datetime import date\nx = date.today()",
    ],
)
def test_reading_the_time_is_the_privilege_of_the_clock(make_tree: TreeMaker, text: str) -> None:
    tree = make_tree({"a.py": text, "clock.py": text})
    (offence,) = rules.time_readers(tree, allowed={"pkg.clock"})
    assert offence.startswith("pkg.a:")


def test_using_times_is_not_reading_the_time(make_tree: TreeMaker) -> None:
    text = "import time\nfrom datetime import UTC, datetime\nx = datetime(2026, 1, 1, tzinfo=UTC)\n"
    tree = make_tree({"a.py": f"{text}time.sleep(0)\ndef now(clock): return clock.now()\n"})
    assert rules.time_readers(tree, allowed=()) == []


@pytest.mark.parametrize(
    "text",
    [
        "import uuid\nx = uuid.uuid4()",
        "from uuid import uuid4",
        "import random\nx = random.random()",
        "import secrets\nx = secrets.token_hex",
        "import os\nx = os.urandom(8)",
        "from os import urandom",
    ],
)
def test_making_ids_is_the_privilege_of_ids(make_tree: TreeMaker, text: str) -> None:
    tree = make_tree({"a.py": text, "ids.py": text})
    (offence,) = rules.random_makers(tree, allowed={"pkg.ids"})
    assert offence.startswith("pkg.a:")


def test_reading_an_id_is_not_making_one(make_tree: TreeMaker) -> None:
    tree = make_tree({"a.py": "import uuid\nx = uuid.UUID('0' * 32)\n"})
    assert rules.random_makers(tree, allowed=()) == []


@pytest.mark.parametrize(
    "text",
    [
        "try: f()\nexcept: pass",
        "try: f()\nexcept Exception: pass",
        "try: f()\nexcept (ValueError, BaseException) as e: log(e)",
        "try: f()\nexcept Exception as e: raise Other from e",
        "import contextlib\nwith contextlib.suppress(Exception): f()",
    ],
)
def test_catching_everything_is_for_supervisors(make_tree: TreeMaker, text: str) -> None:
    tree = make_tree({"a.py": text, "worker.py": text})
    (offence,) = rules.broad_excepts(tree, allowed={"pkg.worker"})
    assert offence.startswith("pkg.a:")


def test_undoing_and_raising_again_swallows_nothing(make_tree: TreeMaker) -> None:
    text = "try: f()\nexcept ValueError: pass\nexcept BaseException:\n    undo()\n    raise\n"
    assert rules.broad_excepts(make_tree({"a.py": text}), allowed=()) == []


def test_a_module_without_a_docstring_is_noticed(make_tree: TreeMaker) -> None:
    tree = make_tree({"a.py": "x = 1", "b.py": '"""Does b."""'})
    assert rules.undocumented_modules(tree) == ["pkg.a has no docstring"]


def test_growth_is_noticed_and_signatures_and_docstrings_are_free(make_tree: TreeMaker) -> None:
    docstring = '    """Say\n' + "\n" * 20 + '    """\n'
    fits = f"def f(\n    a,\n    b,\n):\n{docstring}" + "    x = 1\n" * 59
    tree = make_tree({"a.py": fits, "b.py": f"{fits}    x = 2\n"})
    assert rules.overgrown(tree) == ["pkg.b:1 f has 60 lines (at most 59)"]


def test_a_class_name_that_exists_twice_is_noticed(make_tree: TreeMaker) -> None:
    tree = make_tree({"a.py": "class A: ...", "b.py": "class A: ...", "c.py": "class A: ..."})
    assert rules.shared_class_names(tree, {"pkg.c"}) == ["A is a class in pkg.a, pkg.b"]
    assert rules.shared_class_names(tree, {"pkg.b", "pkg.c"}) == []


def test_a_tree_is_measured(make_tree: TreeMaker) -> None:
    tree = make_tree({"a.py": "x = 1\n", "b.py": "import pkg.a\n", "c.py": "import pkg.a, pkg.b\n"})
    assert rules.size(tree) == {"lines": 3, "modules": len(tree.modules), "with one importer": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("__all__ = ['a', 'b']", {"a", "b"}), ("__all__: list[str] = ['a']", {"a"}), ("a = 1", None)],
)
def test_exports_are_read_from_the_source(
    make_tree: TreeMaker, text: str, expected: set[str] | None
) -> None:
    tree = make_tree({"__init__.py": text})
    assert rules.exports(tree.modules["pkg"]) == expected


@pytest.mark.parametrize("note", ["TO" + "DO: later", "FIX" + "ME"])
def test_a_note_to_self_is_noticed(tmp_path: Path, note: str) -> None:
    (tmp_path / "a.py").write_text(f"x = 1\n# {note}\n")
    (tmp_path / "b.db").write_bytes(b"\xff\xfe\x00" + note.encode())
    assert rules.unfinished([tmp_path / "a.py", tmp_path / "b.db"], tmp_path) == [
        f"a.py:2 leaves a note to self: # {note}"
    ]


@pytest.mark.parametrize("path", ["root/.venv", "home/me/x", "work/main", "Users/me"])
def test_a_path_of_one_machine_is_noticed(tmp_path: Path, path: str) -> None:
    (tmp_path / "a.md").write_text(f"see docs/{path} and https://example.org/{path}\nsee `/{path}`")
    assert rules.machine_paths([tmp_path / "a.md"], tmp_path) == [
        f"a.md:2 names a path of one machine: see `/{path}`"
    ]


@pytest.mark.parametrize(
    "line",
    ["--index-url x", "--find-links y", "-i x", "a @ https://example.org/a.whl", "a @ file:a"],
)
def test_an_address_among_the_requirements_is_noticed(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"apsw==1 \\\n    --hash=sha256:0\n{line}\n")
    assert rules.registry_addresses([tmp_path / "requirements.txt"], tmp_path) == [
        f"requirements.txt:3 holds an address: {line}"
    ]


def test_a_requirement_without_version_or_hash_is_noticed() -> None:
    text = "# why\napsw==1 \\\n    --hash=sha256:0\nclick==8\nruff>=1 \\\n    --hash=sha256:0\n"
    assert rules.unpinned_requirements(text) == [
        "click==8 is not pinned by version and hash",
        "ruff>=1 is not pinned by version and hash",
    ]


def test_a_make_target_without_a_description_is_noticed() -> None:
    makefile = ".PHONY: demo test\ndemo: x ## Show it\ntest: x\n"
    assert rules.undescribed_targets(makefile) == ["make test is not described"]
