"""Directories by descriptor: links are never followed, nothing but plain files is read."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from pathlib import Path

import pytest

from recollect.documents.files import (
    Folder,
    shown,
    target_of,
    wipe,
)
from recollect.errors import (
    InvalidValue,
    NotAllowed,
    RecollectError,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreFull,
    SwapUnsupported,
    TooLarge,
    UnusableDirectory,
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory with a file that nobody may touch."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / "canary.md").write_text("untouched")
    return made


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    made = tmp_path / "inside"
    made.mkdir()
    return made


def test_what_is_written_is_private_and_can_be_read_back(inside: Path) -> None:
    with Folder.named(inside) as folder:
        folder.write("a.md", b"x" * 3_000_000)
        with folder.make("b") as inner:
            inner.write("c.md", b"")
        assert folder.read("a.md", 4_000_000) == b"x" * 3_000_000
        assert folder.names() == ["a.md", "b"]
    assert stat.S_IMODE((inside / "a.md").stat().st_mode) == 0o600
    assert stat.S_IMODE((inside / "b").stat().st_mode) == 0o700


def test_nothing_is_written_over_what_is_there(inside: Path, outside: Path) -> None:
    (inside / "a.md").write_text("old")
    (inside / "link.md").symlink_to(outside / "canary.md")
    (inside / "dangling.md").symlink_to(outside / "new.md")
    with Folder.named(inside) as folder:
        for name in ("a.md", "link.md", "dangling.md"):
            with pytest.raises(FileExistsError):
                folder.write(name, b"new")
    assert (inside / "a.md").read_text() == "old"
    assert [each.name for each in outside.iterdir()] == ["canary.md"]
    assert (outside / "canary.md").read_text() == "untouched"


def test_links_devices_and_pipes_are_not_read(inside: Path, outside: Path) -> None:
    (inside / "link.md").symlink_to(outside / "canary.md")
    os.mkfifo(inside / "pipe.md")
    (inside / "folder.md").mkdir()
    with Folder.named(inside) as folder:
        for name in ("link.md", "pipe.md", "folder.md"):
            with pytest.raises(InvalidValue):
                folder.read(name, 100)


def test_a_file_that_is_too_large_is_not_read(inside: Path) -> None:
    (inside / "a.md").write_bytes(b"x" * 101)
    with Folder.named(inside) as folder, pytest.raises(TooLarge):
        folder.read("a.md", 100)


def test_a_directory_behind_a_link_is_not_entered(inside: Path, outside: Path) -> None:
    (inside / "link").symlink_to(outside)
    with Folder.named(inside) as folder, pytest.raises(OSError, match=r"Not a directory|levels"):
        folder.folder("link")


def test_a_link_to_a_file_is_made_only_of_the_one_that_is_meant(
    inside: Path, outside: Path, tmp_path: Path
) -> None:
    (inside / "a.md").write_text("a")
    (inside / "b.md").symlink_to(outside / "canary.md")
    other = tmp_path / "other"
    other.mkdir()
    with Folder.named(inside) as source, Folder.named(other) as folder:
        meant = source.identity_at("a.md")
        assert meant is not None
        assert folder.link("a.md", source, meant)
        assert not folder.link("b.md", source, meant)
        assert not folder.link("missing.md", source, meant)
        assert folder.names() == ["a.md"]
    assert (other / "a.md").samefile(inside / "a.md")


def test_two_names_change_places_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "x").write_text("from a")
    with Folder.named(tmp_path) as folder:
        folder.exchange("a", "b")
        assert (tmp_path / "b" / "x").read_text() == "from a"
        with pytest.raises(FileNotFoundError):
            folder.exchange("a", "missing")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_it_cannot_be_done_in_one_step_it_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    class Libc:
        @staticmethod
        def renameat2(*_arguments: object) -> int:
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_names, **_more: Libc)
    monkeypatch.setattr(ctypes, "get_errno", lambda: number)
    with Folder.named(tmp_path) as folder, pytest.raises(SwapUnsupported):
        folder.exchange("a", "b")


def test_a_system_without_the_call_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_names, **_more: object())
    with Folder.named(tmp_path) as folder, pytest.raises(SwapUnsupported):
        folder.exchange("a", "b")


def test_who_publishes_is_alone_and_who_loads_is_not(inside: Path) -> None:
    with target_of(inside) as target:
        first = target.held(is_shared=True)
        second = target.held(is_shared=True)
        assert first is not None
        assert second is not None
        with first, second, pytest.raises(StoreBusy):
            target.held(is_shared=False)
        alone = target.held(is_shared=False)
        assert alone is not None
        with alone, pytest.raises(StoreBusy):
            target.held(is_shared=True)


def test_a_target_is_a_directory_or_nothing(inside: Path, outside: Path) -> None:
    (inside / "link").symlink_to(outside)
    (inside / "file").write_text("x")
    for name in ("link", "file"):
        with pytest.raises(UnusableDirectory), target_of(inside / name) as target:
            target.held(is_shared=False)
    with target_of(inside / "nothing") as target:
        assert target.held(is_shared=False) is None
    with pytest.raises(UnusableDirectory), target_of(inside / "missing" / "x"):
        pass
    with pytest.raises(UnusableDirectory), target_of("/"):
        pass


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EACCES, StoreDenied),
        (errno.EROFS, StoreDenied),
        (errno.ELOOP, UnusableDirectory),
        (errno.EIO, StoreError),
    ],
)
def test_what_the_system_says_becomes_one_of_our_errors(
    inside: Path, number: int, kind: type[RecollectError]
) -> None:
    with pytest.raises(kind) as caught, target_of(inside):
        raise OSError(number, os.strerror(number), "x")
    assert type(caught.value) is kind


def test_our_own_errors_pass_as_they_are(inside: Path) -> None:
    with pytest.raises(NotAllowed), target_of(inside):
        raise NotAllowed("which is also an error of the system")


def test_wiping_removes_links_and_not_what_is_behind_them(inside: Path, outside: Path) -> None:
    (inside / "deep" / "er").mkdir(parents=True)
    (inside / "deep" / "er" / "link").symlink_to(outside)
    (inside / "link.md").symlink_to(outside / "canary.md")
    os.mkfifo(inside / "pipe")
    with Folder.named(inside) as folder:
        wipe(folder)
        assert folder.names() == []
    assert (outside / "canary.md").read_text() == "untouched"


def test_wiping_does_not_go_down_forever(inside: Path) -> None:
    inside.joinpath(*["d"] * 100).mkdir(parents=True)
    with Folder.named(inside) as folder, pytest.raises(UnusableDirectory):
        wipe(folder)


def test_a_name_from_a_disk_can_be_printed() -> None:
    assert shown("a\x1b[2J\udcff\n é") == "a\\x1b[2J\\udcff\\n é"
