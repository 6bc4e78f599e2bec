"""N9 under kill -9: a migration and a restore die at every point, and are run again until done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import recollect
from recollect.clock import ManualClock
from recollect.operations.backup import back_up
from tests.unit.operations.material import SETTINGS, SPACES, fill


def opened(url: str | Path) -> recollect.Memory:
    return recollect.open(url, settings=SETTINGS, clock=ManualClock())


def killed_until_done(life: str, source: Path, target: str) -> list[str]:
    """What the lives died at, one after the other."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.migrate_child", life, str(source), target],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    died_at = done.stdout.split()
    print(f"died {len(died_at)} times: {died_at}")
    return died_at


def test_no_moment_of_a_migration_is_a_bad_one_to_die_at(
    new_store_url: str, tmp_path: Path
) -> None:
    source = tmp_path / "source.db"
    with opened(source) as memory:
        fill(memory)
        memory.export(tmp_path / "before.zip")
    died_at = killed_until_done("migrate", source, new_store_url)
    assert len(died_at) > len(SPACES)
    assert set(died_at) == {"write.committing", "write.committed"}
    with opened(new_store_url) as memory:
        memory.export(tmp_path / "after.zip")
    with opened(source) as memory:
        memory.export(tmp_path / "source.zip")
    before = (tmp_path / "before.zip").read_bytes()
    assert before == (tmp_path / "after.zip").read_bytes() == (tmp_path / "source.zip").read_bytes()


def test_no_moment_of_a_restore_is_a_bad_one_to_die_at(
    lent_store_path: Path, tmp_path: Path
) -> None:
    """The store is the old one or the new one; the old one is never lost."""
    with opened(tmp_path / "source.db") as memory:
        fill(memory)
        back_up(memory.store, tmp_path / "backup.db")
        memory.export(tmp_path / "before.zip")
    with opened(lent_store_path) as memory:
        memory.space("carol").facts.add("Carol was here before")
    died_at = killed_until_done("restore", tmp_path / "backup.db", str(lent_store_path))
    assert set(died_at) == {"write.committing", "write.committed"}
    with opened(lent_store_path) as memory:
        memory.export(tmp_path / "after.zip")
    assert (tmp_path / "after.zip").read_bytes() == (tmp_path / "before.zip").read_bytes()
    kept = [path for path in tmp_path.iterdir() if path.name.startswith("memory.db.before-")]
    carols = 0
    for path in kept:
        with opened(path) as memory:
            carols += memory.spaces() == ["carol"]
    assert carols
