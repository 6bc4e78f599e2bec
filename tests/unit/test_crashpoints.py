"""Crash points: silent in production, told to whoever arms them, and all of them real."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect import crashpoints

SOURCE = Path(recollect.__file__).parent


@pytest.fixture(autouse=True)
def disarmed_afterwards() -> Iterator[None]:
    yield
    crashpoints.arm(None)


def test_nothing_happens_at_a_point_that_nobody_armed() -> None:
    for name in crashpoints.POINTS:
        crashpoints.reach(name)


def test_an_armed_action_is_told_the_point() -> None:
    seen: list[str] = []
    crashpoints.arm(seen.append)
    crashpoints.reach("write.committing")
    crashpoints.reach("write.committed")
    assert seen == ["write.committing", "write.committed"]


def test_a_disarmed_action_is_told_nothing_more() -> None:
    seen: list[str] = []
    crashpoints.arm(seen.append)
    crashpoints.arm(None)
    crashpoints.reach("write.committing")
    assert seen == []


def test_an_unknown_point_is_a_mistake() -> None:
    crashpoints.arm(lambda _name: None)
    with pytest.raises(AssertionError):
        crashpoints.reach("no.such.point")


def test_every_point_is_reached_somewhere_and_no_other() -> None:
    reached = {
        argument.value
        for text in (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
        if "import reach" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "reach"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    }
    assert reached == set(crashpoints.POINTS)


def test_a_write_passes_its_points_in_order(memory: recollect.Memory) -> None:
    session = memory.space().session("k")
    session.append("user", "the first, which also tells that a session begins")
    seen: list[str] = []
    crashpoints.arm(seen.append)
    session.append("user", "x")
    assert seen == ["append.sequenced", "append.inserted", "write.committing", "write.committed"]
