"""N6, N9: what takes long tells how far it has got, to whoever listens and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import recollect
from recollect import progress
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.operations.backup import Restoring, back_up
from recollect.progress import Progress, listening, tell
from tests.unit.operations.material import SETTINGS, SPACES, fill


def test_nobody_is_told_once_the_listener_is_gone() -> None:
    seen: list[Progress] = []
    with listening(seen.append):
        tell("half", 1, 2)
    tell("all", 2, 2)
    assert seen == [Progress(what="half", done=1, whole=2)]
    assert list(progress.counted_rows(range(5), "rows")) == [0, 1, 2, 3, 4]


def test_rows_are_told_by_the_thousand_and_pass_as_they_are() -> None:
    seen: list[Progress] = []
    with listening(seen.append):
        rows = list(progress.counted_rows(range(2_500), "facts"))
    assert rows == list(range(2_500))
    assert [each.what for each in seen] == ["facts, 1,000 rows", "facts, 2,000 rows"]


def test_every_copy_and_a_forgetting_of_much_tell_how_far_they_have_got(tmp_path: Path) -> None:
    """Each comes to its end, and never goes back."""
    clock = ManualClock()
    with recollect.open(tmp_path / "memory.db", settings=SETTINGS, clock=clock) as memory:
        fill(memory)
        archive, backup = tmp_path / "all.zip", tmp_path / "backup.db"
        told: Mapping[str, Callable[[], object]] = {
            "export": lambda: memory.export(archive),
            "backup": lambda: back_up(memory.store, backup),
            "migrate": lambda: memory.migrate(tmp_path / "other.db"),
            "restore": lambda: Restoring(backup, Settings(), clock).restore(tmp_path / "again.db"),
            "forget": lambda: memory.space("alice").forget(source="api"),
        }
        for name, run in told.items():
            seen: list[Progress] = []
            with listening(seen.append):
                run()
            done = [each.done for each in seen if each.done is not None]
            assert done == sorted(done), name
            assert done, name
        with recollect.open(tmp_path / "new.db") as new, listening(seen.append):
            seen.clear()
            new.load(archive)
        assert [each.what for each in seen] == [f"loading {name}" for name in sorted(SPACES)]
