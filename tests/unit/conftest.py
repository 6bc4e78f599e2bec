"""Unit tests know nothing of the machine they run on: no settings of its user, no foreign files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.clock import ManualClock


@pytest.fixture(scope="module", autouse=True)
def nobody_is_at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty working directory, an empty user configuration and no RECOLLECT_ variables."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
            patch.delenv(name)
        patch.setattr("platformdirs.user_config_dir", lambda _name: str(home / "config"))
        patch.chdir(home)
        yield home


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(clock: ManualClock) -> Iterator[recollect.Memory]:
    with recollect.open(":memory:", clock=clock) as opened:
        yield opened
