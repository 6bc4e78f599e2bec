"""The tutorial and the guides that are read from top to bottom: a reader gets what they show."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect_conformance.scripted import KEY, Scripted, ScriptedServer
from recollect_conformance.scripted_frames import Received
from tests.docs.test_documents import WALKED
from tests.docs.walking import Walk, console
from tests.scripted_answers import NOTHING


def thinking(received: Received) -> Scripted:
    """A model that reads what it is reminded of, and learns nothing."""
    if received.schema is not None:
        return NOTHING
    knows = "lives in Porto" in str(received.body["messages"])
    return "You live in Porto [m1]." if knows else "I do not know."


@pytest.fixture
def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    """A reader with an empty directory, an empty home, no settings, and a key to some model."""
    for name in [each for each in os.environ if each.startswith(("RECOLLECT_", "XDG_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RECOLLECT_STORE", "")  # so that what a document exports is undone
    monkeypatch.delenv("RECOLLECT_STORE")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    directory = tmp_path / "reader"
    directory.mkdir()
    monkeypatch.chdir(directory)
    with ScriptedServer(thinking) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield Walk(directory)


@pytest.mark.parametrize("document", WALKED, ids=lambda document: document.stem)
def test_a_reader_gets_what_the_document_shows(document: Path, walk: Walk) -> None:
    assert walk.follow(document) > 0


# the rules themselves


@pytest.fixture
def nobody(tmp_path: Path) -> Walk:
    return Walk(tmp_path)


ONE = "01a1e31d-bb85-7ecb-88d1-54f18e68ee45"
TWO = "01a1e31d-bb85-78e1-9723-29501689b1d3"
OTHER = "0fffe31d-bb85-7ecb-88d1-54f18e68ee45"


def test_what_varies_may_be_another_and_nothing_else(nobody: Walk) -> None:
    told = f"Fact {ONE} of 2026-05-01, 09:00\nscore 1.250"
    assert nobody.compare(told, f"Fact {OTHER} of 2027-06-02, 09:00\nscore 0.001\n") is None
    assert nobody.ids == {ONE: OTHER}
    assert nobody.compare(told, told) is not None, "the id is known by now, and this is not it"
    assert nobody.compare("Stored 1 fact.", "Stored 2 facts.") is not None


def test_dots_stand_for_the_rest_of_a_line_or_for_lines(nobody: Walk) -> None:
    assert nobody.compare("Store …\nEnd", "Store a b\nEnd") is None
    assert nobody.compare("Store …\nEnd", "Store a\nb\nEnd") is not None
    assert nobody.compare("Store\n…\nEnd", "Store\na\nb\nEnd") is None
    assert nobody.compare("Store\n…", "Store\na\nb") is None
    assert nobody.compare("Store\n…\nEnd", "Store\na\nb") is not None


def test_a_list_by_ids_may_come_in_any_order(nobody: Walk) -> None:
    told = f"{ONE}  tea\n    green\n{TWO}  jam\n"
    assert nobody.compare(told, f"{ONE}  jam\n{TWO}  tea\n    green\n") is None
    assert nobody.ids == {ONE: TWO, TWO: ONE}
    assert Walk(nobody.directory).compare(told, f"{ONE}  jam\n{TWO}  tea\n    black\n") is not None


def test_a_console_has_commands_comments_and_outputs() -> None:
    code = "$ recollect facts   # all of them\none\n\ntwo\n$ recollect add \\\n    x\n"
    assert [(shown.line, shown.output) for shown in console(code)] == [
        ("recollect facts", "one\n\ntwo\n"),
        ("recollect add      x", ""),
    ]
