"""The reference cannot rot: it is what the generator writes, and the generator forgets nothing."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

import recollect
from recollect import errors
from recollect.interfaces.http.app import OPERATIONS
from recollect.interfaces.http.operations import SPACE

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "tools" / "generate_docs.py"
REFERENCE = ROOT / "docs" / "reference"
STUB = "../../src/recollect/aio.pyi"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group, with the words that call it."""
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, f"{name} is listed but cannot be loaded"
            yield from walk(inner, (*path, name))


def undocumented(command: click.Command, text: str) -> list[str]:
    """Commands and options that a text does not mention; what is hidden is nobody's to use."""
    missing = []
    for words, inner in walk(command):
        if words and f"recollect {words}" not in text:
            missing.append(words)
        shown = [each for each in inner.params if not getattr(each, "hidden", False)]
        options = [option for parameter in shown for option in parameter.opts]
        missing += [
            f"{words} {option}".strip()
            for option in options
            if option.startswith("--") and option not in text
        ]
    return missing


def root_command() -> click.Command:
    """The click group behind the recollect script."""
    module = importlib.import_module("recollect.interfaces.cli.main")
    groups = [value for value in vars(module).values() if isinstance(value, click.Group)]
    assert groups, "recollect.interfaces.cli.main has no click group"
    return groups[-1]


WRITTEN = ["cli.md", "settings.md", "python.md", "errors.md", "http.md", "verbs.md", STUB]


@pytest.mark.parametrize("name", WRITTEN)
def test_the_reference_is_what_the_generator_writes(generator: ModuleType, name: str) -> None:
    render = generator.PAGES[name]
    assert (REFERENCE / name).read_text(encoding="utf-8") == render(), "run make docs"


def test_no_page_of_the_reference_is_written_by_hand(generator: ModuleType) -> None:
    assert {file.name for file in REFERENCE.iterdir()} == set(generator.PAGES) - {STUB}


def test_every_public_name_error_and_route_is_in_the_reference() -> None:
    pages = {file.stem: file.read_text(encoding="utf-8") for file in REFERENCE.iterdir()}
    names = [name for name in recollect.__all__ if f"### `{name}`\n" not in pages["python"]]
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    raised = [each.__name__ for each in kinds if issubclass(each, errors.RecollectError)]
    untold = [name for name in raised if f"| `{name}` |" not in pages["errors"]]
    routes = [f"{route.method} {route.path.replace(SPACE + '/', '…/')}" for route in OPERATIONS]
    unserved = [route for route in routes if f"| `{route}` |" not in pages["http"]]
    assert (names, untold, unserved) == ([], [], [])


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert undocumented(root_command(), text) == []


def test_a_forgotten_command_or_option_is_noticed() -> None:
    inner = click.Command("append", params=[click.Option(["--role"]), click.Argument(["text"])])
    group = click.Group("recollect", commands={"append": inner, "status": click.Command("status")})
    assert undocumented(group, "recollect append --role\nrecollect status") == []
    assert undocumented(group, "recollect append") == ["append --role", "status"]
