"""Every end-to-end test starts in an empty directory, without settings from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from recollect import config

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, *(setting.environment_name for setting in config.described())):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("RECOLLECT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def empty_store() -> None:
    """The store that commands use without --store, with nothing in it yet."""
    recollect.open().close()
