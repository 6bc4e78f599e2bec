"""P4, P6, G4 and G9 under kill -9: a worker dies at every point of a consolidation.

The generation before is whole or the next one is, what was consumed is what it has, the next worker
publishes once, and the files are those of one generation.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.session import Session
from recollect.types.records import JobKind
from tests.crash.generation_child import GenerationChildren
from tests.crash.test_publish import generation as published_in
from tests.crash.worker_child import EPOCH, SETTINGS, Child, dump, wait_for
from tests.hosted_agents import SPACE

KILLED = -signal.SIGKILL
REACHED_MAX = 400  # far above how many points one life passes
IN_A_RUN = {
    *("claim.claimed", "documents.applied", "generation.documents", "generation.published"),
    *("write.committing", "write.committed"),
}
IN_FORGETTING = IN_A_RUN - {"claim.claimed"} | {"forget.deleted"}
# The steps on files are many, and much the same: some of them in every run, all in the long one.
IS_LONG_RUN = bool(os.environ.get("RECOLLECT_TORTURE"))
STEP = 1 if IS_LONG_RUN else 25
pytestmark = [pytest.mark.torture] if IS_LONG_RUN else []  # the long run takes what is marked
QUIET: dict[str, Any] = SETTINGS | {
    "lease_seconds": 30,
    "extractor": "rules",
    "pipeline": "extraction",
    "worker_batch": 1,
    "consolidation_cooldown_seconds": 0,
    "consolidation_patience_seconds": 31_536_000,
    "idle_sweep_every_seconds": 86_400,  # only when it is asked for
}


def favourite(number: int) -> str:
    """What is said in a session: so long that no id or digest contains it by chance."""
    return f"{number}0000000{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A space, who is left to look after it, and those who die there."""

    memory: recollect.Memory
    clock: ManualClock
    children: GenerationChildren
    root: Path

    @property
    def space(self) -> recollect.Space:
        return self.memory.space(SPACE)

    @property
    def directory(self) -> Path:
        return self.root / SPACE

    def learned(self, number: int) -> Session:
        """A session that phase 1 has been over, after a minute."""
        self.clock.advance(60)
        session = self.space.session(f"k{number}", "assistant")
        session.append("user", f"My favourite number is {favourite(number)}.", name="Alice")
        session.sleep()
        assert self.memory.worker().tick().processed == 1
        return session

    def consumed(self) -> set[str]:
        found = self.space.sessions.extractions(500)
        return {each.session_id for each in found if each.selected_for_phase2}

    def summarised(self) -> set[str]:
        """The sessions that have a page in the current generation, and a page in the tree."""
        store = self.memory.store.generations
        number = self.number()
        pages = {each.document_id: each for each in store.documents(SPACE, number)}
        live = {node.id for node in self.space.documents.tree("~/memory")} if number else set()
        assert pages.keys() <= live, "a generation has a page that the tree has not"
        return {each.session_id for each in pages.values() if each.session_id is not None}

    def number(self) -> int:
        return self.space.generations.state().generation

    def bodies(self) -> dict[str, str]:
        documents = self.space.documents
        if documents.find("~/memory") is None:
            return {}
        return {node.path: documents.read(node.path).body for node in documents.tree("~/memory")}

    def files(self) -> str:
        return "\n".join(each.read_text() for each in sorted(self.directory.rglob("*.md")))

    def live(self, life: str, **order: Any) -> Child:
        child = self.children.start(life, now=self.clock.now().isoformat(), **order)
        code = self.children.wait(child.pid)
        assert code in (0, KILLED), child.said("trace")
        return child

    def is_at_rest(self) -> bool:
        """Whether the survivor has come to the end of it. A server lets go of the dead in time."""
        self.clock.advance(40)  # the lease of the dead has run out
        leases = self.memory.store.leases
        leases.ensure_recurring(JobKind.IDLE_SWEEP, self.clock.now())
        leases.make_due(JobKind.IDLE_SWEEP)
        self.memory.worker().drain()
        state = self.space.generations.state()
        return state.job == "idle" and state.consolidated == state.changed

    def assert_files_are_whole(self) -> None:
        """One generation, of which every file is there; nothing of another beside it."""
        published_in(self.directory)
        assert [each.name for each in self.root.iterdir()] == [SPACE]
        said = self.files()
        for path, body in self.bodies().items():
            assert body in said, path

    def assert_all_is_published_once(self, sessions: list[Session], number: int) -> None:
        ids = {session.id for session in sessions}
        assert self.number() == number
        numbers = [each.number for each in self.space.generations.list(500)]
        assert numbers == sorted(set(numbers), reverse=True)
        assert self.consumed() == self.summarised() == ids
        self.assert_files_are_whole()


def scene(url: str, directory: Path) -> Iterator[Scene]:
    root = directory / "published"
    settings = QUIET | {"memories_root": str(root)}
    clock = ManualClock(EPOCH)
    with (
        GenerationChildren(directory, url, settings) as children,
        recollect.open(url, settings=settings, clock=clock) as memory,
    ):
        yield Scene(memory=memory, clock=clock, children=children, root=root)


def orders(died_at: list[str], names: set[str]) -> Iterator[dict[str, Any]]:
    """What ends each life: its n-th point, until one gets through; every name must have been one.

    Whoever asks notes where each life ended.
    """
    for nth in range(1, REACHED_MAX):
        deaths = len(died_at)
        yield {"nth": nth, "point": ""}
        if len(died_at) == deaths:
            break
    else:
        raise AssertionError("no life ever passed")
    print(f"died {len(died_at)} times: {sorted(set(died_at))}")
    assert names <= set(died_at)


def test_no_moment_of_a_consolidation_is_a_bad_one_to_die_at(
    durable_store_url: str, tmp_path: Path
) -> None:
    died_at: list[str] = []
    sessions: list[Session] = []
    for here in scene(durable_store_url, tmp_path):
        for order in orders(died_at, IN_A_RUN):
            sessions.append(here.learned(len(sessions)))
            number, bodies, consumed = here.number(), here.bodies(), here.consumed()
            died_at += here.live("consolidate", **order).said("died")
            if here.number() == number:
                assert (here.bodies(), here.consumed()) == (bodies, consumed), died_at[-1:]
            else:
                assert here.consumed() == {session.id for session in sessions}, died_at[-1:]
            assert here.consumed() == here.summarised()
            if here.directory.exists():
                published_in(here.directory)
            wait_for(here.is_at_rest)
            here.assert_all_is_published_once(sessions, number + 1)


def test_no_step_on_its_files_is_a_bad_one_to_die_at(
    durable_store_url: str, tmp_path: Path
) -> None:
    """P6, G6: the generation is current in any case, and the next sweep writes what is missing."""
    sessions: list[Session] = []
    deaths = 0
    for here in scene(durable_store_url, tmp_path):
        for step in range(1, REACHED_MAX, STEP):
            sessions.append(here.learned(len(sessions)))
            number = here.number()
            child = here.live("consolidate", step=step)
            if here.directory.exists():
                published_in(here.directory)
            wait_for(here.is_at_rest)
            here.assert_all_is_published_once(sessions, number + 1)
            if child.said("finished"):
                break
            deaths += 1
        else:
            raise AssertionError("no life ever passed")
    print(f"died {deaths} times")
    assert deaths > 2, "it never died"


def test_no_moment_of_forgetting_is_a_bad_one_to_die_at(
    durable_store_url: str, tmp_path: Path
) -> None:
    """G11: either nothing was forgotten, or after the next worker it is in no row and no file."""
    died_at: list[str] = []
    kept: list[Session] = []
    for here in scene(durable_store_url, tmp_path):
        for order in orders(died_at, IN_FORGETTING):
            number = 2 * len(kept)
            kept.append(here.learned(number))
            gone = here.learned(number + 1)
            wait_for(here.is_at_rest)
            secret = favourite(number + 1)
            assert secret in here.files()
            died_at += here.live("forget", session=gone.id, **order).said("died")
            is_forgotten = not gone.all()
            wait_for(here.is_at_rest)
            if not is_forgotten:
                assert secret in here.files()
                here.space.forget(session=gone)
            assert secret not in here.files()
            rows = ((table, row) for table, found in dump(here.memory).items() for row in found)
            assert [each for each in rows if secret in each[1]] == [], (is_forgotten, died_at[-1:])
            assert here.consumed() == here.summarised() == {session.id for session in kept}
            here.assert_files_are_whole()
