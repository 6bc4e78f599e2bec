"""What `recollect mcp` makes of its surroundings before anything is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import InvalidValue
from recollect.interfaces.cli.serving import project_here, read_address, read_spaces


def test_the_project_is_the_work_tree_that_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "shop" / "src")
    assert project_here(None) == str(tmp_path / "shop")
    assert project_here("..") == str(tmp_path / "shop")
    assert project_here(str(tmp_path)) == str(tmp_path)


def test_home_and_the_root_of_the_disk_are_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for place in (tmp_path, Path(tmp_path.anchor)):
        monkeypatch.chdir(place)
        assert project_here(None) is None
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project_here(None) is None


def test_an_address_is_a_host_and_a_port() -> None:
    for text in ("8765", ":8765", "127.0.0.1:8765"):
        assert read_address(text) == ("127.0.0.1", 8765)
    assert read_address("[::1]:0") == ("::1", 0)
    for text in ("", "host", "host:99999", "host:-1", "host:١"):
        with pytest.raises(InvalidValue):
            read_address(text)


def test_a_space_that_no_path_leads_to_is_refused() -> None:
    assert read_spaces("a b, x/y,...") == ("a b", "x/y", "...")
    for text in ("..", "bob,.", "bob/../carol"):
        with pytest.raises(InvalidValue):
            read_spaces(text)
