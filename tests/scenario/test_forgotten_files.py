"""P11: what is forgotten is in no file either, whoever wrote it there and whatever became of them.

Beside the published files there are those that a run by a model shows while it lasts, and copies of
what people edited and nobody could take up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.consolidation.files import MemoryFiles
from recollect.consolidation.pages import MEMORY, RAW
from recollect.consolidation.run import FORGETTING
from recollect.documents.staged import StagedPages
from recollect.leases import Leaseholder
from recollect.store.relational.generations import GenerationStore
from recollect.types.records import Released
from recollect_conformance.scripted import Gate, Scripted, held
from recollect_conformance.scripted_frames import Received
from tests.consolidated_spaces import (
    SPACE,
    WAIT_SECONDS,
    Background,
    Here,
    Open,
    asked,
    keeper,
    opening,
)
from tests.hosted_agents import ON_BOTH

pytestmark = ON_BOTH

HOME = "I live in Lisbon."
COLOUR = "My favourite colour is teal."

Wanted = Callable[[Here], dict[str, Any]]
EVERY_WAY: dict[str, Wanted] = {
    "a record": lambda here: {"record": f"{first_session(here)}:1"},
    "a session": lambda here: {"session": first_session(here)},
    "a fact": lambda here: {"fact": next(f.id for f in here.space.facts.list() if says(f.content))},
    "an agent": lambda _: {"agent": "assistant"},
    "a source": lambda _: {"source": "api"},
    "everything": lambda _: {"everything": True},
}


@pytest.fixture
def opened(store_url: str, tmp_path: Path) -> Iterator[Open]:
    with opening(store_url, tmp_path / "published") as found:
        yield found


def first_session(here: Here) -> str:
    return here.space.sessions.list()[-1].id


def says(text: str) -> bool:
    return "Lisbon" in text


def saying_it(here: Here) -> list[str]:
    files = (each for each in here.root.rglob("*") if each.is_file())
    return sorted(str(each.relative_to(here.root)) for each in files if says(each.read_text()))


def beside(here: Here) -> list[str]:
    return sorted(each.name for each in here.root.iterdir() if each != here.directory)


def left_by_the_dead(here: Here) -> object:
    """What a run that is killed has shown: it never comes to clear it away. To be held."""
    files = MemoryFiles(
        here.memory.store, here.memory.settings, lambda space: here.memory.space(space).documents
    )
    shown = files.staged(SPACE, 4_000)
    show = shown.__enter__()
    staged = StagedPages(here.memory.pipeline.consolidator().held(SPACE), "killed")
    staged.write(RAW, HOME)
    show(staged, ())
    return shown


@pytest.mark.parametrize("way", EVERY_WAY)
def test_what_a_run_that_died_had_shown_goes_with_what_is_forgotten(opened: Open, way: str) -> None:
    here = opened()
    here.learned("first", HOME)
    dead = left_by_the_dead(here)
    assert saying_it(here) == [".alice.staged-4000/raw_memories.md"]
    receipt = here.space.forget(**EVERY_WAY[way](here))
    assert (receipt.is_complete, receipt.left) == (True, ())
    assert saying_it(here) == [], "also where nothing was ever published"
    assert beside(here) == []
    del dead


@pytest.mark.parametrize("way", ["a record", "a session", "a fact", "everything"])
def test_a_run_shows_no_more_of_what_is_forgotten_while_it_lasts(opened: Open, way: str) -> None:
    """G10: it has lost its claim, or makes nothing of what it has read; nor can it be looked at."""
    gate = Gate()
    seen: list[list[str]] = []

    def repeats(received: Received) -> Scripted:
        if asked(received):
            return held(gate, keeper(received))
        seen.append(saying_it(here))
        return keeper(received)

    here = opened(repeats)
    here.learned("first", HOME)
    with Background(here.memory.worker().tick) as running:
        assert gate.arrived.wait(WAIT_SECONDS)
        assert saying_it(here), "it can be looked at while it lasts"
        assert here.space.forget(**EVERY_WAY[way](here)).is_complete
        assert saying_it(here) == []
        gate.open()
    assert seen[:1] in ([], [[]]), "what the model wrote since is shown again"
    assert running.result.generations == 0
    assert (saying_it(here), beside(here)) == ([], [])


def kept_aside(here: Here) -> Path:
    """A generation, a page of which somebody edited where nobody can take it up, and the next."""
    here.learned("first", HOME)
    assert here.tick() == 1
    page = here.directory / "raw_memories.md"
    page.write_text(f"{page.read_text()}\nBy hand.\n")
    here.learned("second", COLOUR)
    assert here.tick() == 1
    [name] = beside(here)
    assert "By hand." in (here.root / name / "raw_memories.md").read_text()
    return here.root / name


@pytest.mark.parametrize("way", ["a record", "a fact", "everything"])
def test_edits_that_were_kept_aside_go_with_what_is_forgotten_and_that_is_said(
    opened: Open, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """P10 gives way to P11: they are copies of all that was published."""
    here = opened()
    kept = kept_aside(here)
    assert len([each for each in saying_it(here) if each.startswith(kept.name)]) > 1
    with caplog.at_level(logging.WARNING):
        receipt = here.space.forget(**EVERY_WAY[way](here))
    assert (receipt.is_complete, receipt.left) == (True, ())
    assert (saying_it(here), beside(here)) == ([], [])
    if way != "everything":
        assert any(f"removed: {kept}" in each for each in caplog.messages)


@pytest.mark.parametrize("way", ["a session", "everything"])
def test_files_that_cannot_be_removed_are_named_and_the_receipt_is_not_complete(
    opened: Open, tmp_path: Path, way: str
) -> None:
    here = opened()
    kept = kept_aside(here)
    kept.rename(tmp_path / "moved")
    kept.symlink_to(tmp_path / "moved")  # links are not followed
    receipt = here.space.forget(**EVERY_WAY[way](here))
    assert (receipt.is_complete, receipt.left) == (False, (str(kept),))
    kept.unlink()
    assert saying_it(here) == []


def other_process(here: Here, role: str = "") -> Leaseholder:
    memory = here.memory
    return Leaseholder(memory.store, memory.settings.lease_policy, memory.clock, role=role)


def test_pages_that_others_keep_from_being_written_are_named(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11. Whoever takes the job over each time and dies leaves a receipt that is not complete."""
    here = opened()
    here.learned("first", HOME)
    here.tick()
    publish, other = GenerationStore.publish, other_process(here)

    def too_late(*given: Any) -> object:
        other.claim_consolidation(SPACE, takes_over=True)
        return publish(*given)

    with monkeypatch.context() as patch:
        patch.setattr(GenerationStore, "publish", too_late)
        receipt = here.space.forget(**EVERY_WAY["a session"](here))
    assert not receipt.is_complete
    assert {MEMORY, str(here.directory)} <= {*receipt.left}


def test_who_forgets_does_not_take_over_from_others_who_do(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11. They come one after the other, and each comes to an end."""
    here = opened()
    here.learned("first", HOME)
    here.tick()
    other = other_process(here, FORGETTING)
    claim = other.claim_consolidation(SPACE, takes_over=True)
    assert claim is not None
    tried, claiming = threading.Event(), Leaseholder.claim_consolidation

    def noted(*given: Any, **more: Any) -> object:
        found = claiming(*given, **more)
        tried.set()
        return found

    monkeypatch.setattr(Leaseholder, "claim_consolidation", noted)
    with Background(lambda: here.space.forget(**EVERY_WAY["a session"](here))) as running:
        assert tried.wait(WAIT_SECONDS)
        assert isinstance(other.release(claim), Released)
    assert running.result.is_complete
    assert saying_it(here) == []
