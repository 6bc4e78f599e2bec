"""An I/O error at every call in turn: typed errors, and nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import recollect
from recollect.errors import OutcomeUnknown
from tests.crash.soundness import assert_store_is_sound
from tests.crash.vfs import FaultyVFS, Operation
from tests.sqlite_stores import put_empty_store

SPACE = "s"
CALLS_MAX = 2000
_vfs_numbers = count(1)


@pytest.fixture
def vfs() -> Iterator[FaultyVFS]:
    made = FaultyVFS(f"io-errors-{next(_vfs_numbers)}")
    yield made
    made.unregister()


def live(address: str, settings: dict[str, bool]) -> list[str]:
    """A short life of a store; returns what was acknowledged.

    Every step may fail, none may fail with anything but our errors.
    """
    stored = []
    try:
        with recollect.open(address, settings=settings) as memory:
            session = memory.space(SPACE).session("k", agent="a")
            for step in range(4):
                content = f"{step} ".ljust(1500, ".")
                try:
                    session.append("user", content)
                    stored.append(content)
                except recollect.RecollectError:
                    continue
            for change in (session.reset, session.sleep, session.end):
                try:
                    change()
                except recollect.RecollectError:
                    continue
            for marked in memory.space(SPACE).sessions.find_invalidated():
                mark = marked.invalidated_at or 0
                memory.space(SPACE).sessions.mark_processed(marked.id, mark, mark)
    except recollect.RecollectError:
        pass
    return stored


# SQLite truncates no file but the write-ahead log, when it is closed.
CALLS = pytest.mark.parametrize(
    ("wal", "operation"),
    [(True, "write"), (True, "sync"), (True, "truncate"), (False, "write"), (False, "sync")],
)


@CALLS
def test_an_io_error_at_any_call_loses_nothing_that_was_acknowledged(
    vfs: FaultyVFS, tmp_path: Path, wal: bool, operation: Operation
) -> None:
    lives, acknowledged = fail_each_life(vfs, tmp_path, put_empty_store, wal, operation, 1)
    assert acknowledged >= lives, "hardly anything was ever stored"


# To make the schema takes far more calls than anything later. Some of them fail in every run, all
# of them in the long one.
@CALLS
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.torture)])
def test_an_io_error_while_a_store_is_made_leaves_one_that_can_be_made(
    vfs: FaultyVFS, tmp_path: Path, wal: bool, operation: Operation, step: int
) -> None:
    _, acknowledged = fail_each_life(vfs, tmp_path, None, wal, operation, step)
    assert acknowledged > 0, "nothing was ever stored"


def fail_each_life(
    vfs: FaultyVFS,
    directory: Path,
    prepare: Callable[[Path], None] | None,
    wal: bool,
    operation: Operation,
    step: int,
) -> tuple[int, int]:
    """Fail one call of each life, every `step`th in turn; how many lives, how much they stored."""
    settings = {"sqlite_wal": wal}
    # A process that lives on sees what it wrote without a sync; leaving them out saves time.
    synchronous = "full" if operation == "sync" else "off"
    lives, acknowledged = 0, 0
    for n in range(1, CALLS_MAX, step):
        failures = vfs.failures
        path = directory / f"{n}.db"
        if prepare is not None:
            prepare(path)
        vfs.fail_at(operation, n)
        stored = live(f"sqlite:///{path}?vfs={vfs.name}&synchronous={synchronous}", settings)
        vfs.heal()
        lives, acknowledged = lives + 1, acknowledged + len(stored)
        with recollect.open(path, settings=settings) as memory:
            assert_store_is_sound(memory, SPACE, stored=stored)
        if vfs.failures == failures:
            break
    else:
        pytest.fail("a life makes more calls than this test is ready for")
    print(f"{operation}: {lives - 1} lives with a fault, {acknowledged} acknowledged")
    assert lives > 1, "no call ever failed"
    return lives, acknowledged


def test_a_commit_whose_sync_failed_has_an_unknown_outcome(vfs: FaultyVFS, tmp_path: Path) -> None:
    """The record is in the log, unsynced: a crash may bring it back, the next commit buries it."""
    path = tmp_path / "memory.db"
    with recollect.open(f"sqlite:///{path}?vfs={vfs.name}") as memory:
        session = memory.space(SPACE).session("k", agent="a")
        session.append("user", "before")
        vfs.fail_at("sync", 1)
        with pytest.raises(OutcomeUnknown, match="retry with the same append key") as caught:
            session.append("user", "perhaps", key="one")
        assert caught.value.retry_helps
        session.append("user", "perhaps", key="one")
        assert assert_store_is_sound(memory, SPACE, stored=["before", "perhaps"]) == 2
