"""P12: whoever swaps directories for links while they are published or loaded reaches nothing.

Once exhaustively: a swap before every single call to the system, one run each; and once by a
process that does nothing else. Outside are files that must not be written, nor their words read.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

import recollect
from recollect.documents.files import Folder
from recollect.documents.tree import Documents

SEED = 20261115
ROUNDS = 120
CALLS_MAX = 1000
CALLS = ("open", "stat", "mkdir", "listdir", "link", "unlink", "rmdir", "rename")
PARKED = ".parked-"
CANARY = "words from outside"

Swap = Callable[[Path, Path], None]


# who swaps


@contextlib.contextmanager
def opened(place: Path) -> Iterator[int]:
    """A directory two levels below the root of the test at most; OSError if a link leads there."""
    parent = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        folder = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        yield folder
    finally:
        os.close(folder)


def swap(place: Path, outside: Path) -> None:
    """What stood somewhere stands beside it, and a link to the outside in its place."""
    # By descriptor, or it would walk into its own trap and change the outside itself.
    with contextlib.suppress(OSError), opened(place.parent) as folder:
        name = place.name
        os.rename(name, f"{PARKED}{name}", src_dir_fd=folder, dst_dir_fd=folder)
        os.symlink(outside, name, dir_fd=folder)


def swap_target(out: Path, outside: Path) -> None:
    swap(out, outside)


def swap_folder(out: Path, outside: Path) -> None:
    swap(out / "people", outside)


def swap_file(out: Path, outside: Path) -> None:
    swap(out / "work.md", outside / "Ana.md")


def swap_manifest(out: Path, outside: Path) -> None:
    swap(out / ".recollect.json", outside / "Ana.md")


def swap_aside(out: Path, outside: Path) -> None:
    for aside in out.parent.glob(f".{out.name}.recollect-*"):
        swap(aside, outside)


def swap_aside_folder(out: Path, outside: Path) -> None:
    for aside in out.parent.glob(f".{out.name}.recollect-*"):
        swap(aside / "people", outside)


SWAPS: tuple[Swap, ...] = (
    swap_target,
    swap_folder,
    swap_file,
    swap_manifest,
    swap_aside,
    swap_aside_folder,
)


def put_back(out: Path) -> None:
    """Undo some of it, so that there is something to swap again."""
    for place in [out.parent, *out.parent.iterdir()]:
        with contextlib.suppress(OSError), opened(place) as folder:
            for parked in os.listdir(folder):  # noqa: PTH208 - a descriptor, not a path
                name = parked.removeprefix(PARKED)
                if name != parked:
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=folder)
                    os.rename(parked, name, src_dir_fd=folder, dst_dir_fd=folder)


def race(out: Path, outside: Path, seed: int) -> None:
    choice = random.Random(seed)
    print("ready", flush=True)
    while True:
        with contextlib.suppress(OSError):  # what it is about to swap may be gone
            choice.choice(SWAPS)(out, outside)
            if choice.random() < 0.7:
                put_back(out)


# who is raced


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Documents]:
    monkeypatch.setattr(os, "fsync", lambda _fd: None)  # nobody pulls the plug here
    with recollect.open(":memory:") as memory:
        made = memory.space().documents
        made.write("people", "All of them.")
        made.write("people/Ana", "Likes tea.")
        made.write("work", "Work.")
        yield made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    (made / "people").mkdir(parents=True)
    for name in ("Ana.md", "work.md", "people/Ana.md", "precious.txt"):
        (made / name).write_text(f"{CANARY}\n")
    return made


def everything(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for each in sorted(directory.rglob("*")):
        about = each.lstat()
        data = each.read_bytes() if each.is_file() else b""
        found[str(each.relative_to(directory))] = (about.st_ino, about.st_mode, data)
    return found


def assert_nothing_was_reached(
    documents: Documents, out: Path, outside: Path, before: dict[str, tuple[int, int, bytes]]
) -> None:
    assert everything(outside) == before
    for node in documents.tree():
        assert CANARY not in documents.read(node.id).body
    for folder, folders, names in os.walk(out.parent):
        folders[:] = [name for name in folders if not (Path(folder) / name).is_symlink()]
        for name in names:
            path = Path(folder) / name
            if not path.is_symlink():
                assert CANARY not in path.read_text(), path


class Swapper:
    """Swaps once, just before the nth call to the system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nth: int, action: Callable[[], None]):
        self._patch, self._left, self._action = monkeypatch, nth, action

    def __enter__(self) -> Self:
        for name in CALLS:
            self._patch.setattr(os, name, self._watched(getattr(os, name)))
        self._patch.setattr(Folder, "exchange", self._watched(Folder.exchange))
        return self

    def _watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self._action()
            return real(*arguments, **more)

        return call

    def __exit__(self, *_error: object) -> None:
        self._patch.undo()

    @property
    def has_swapped(self) -> bool:
        return self._left <= 0


@pytest.mark.parametrize("verb", ["publish", "load"])
@pytest.mark.parametrize("action", SWAPS, ids=lambda action: action.__name__)
def test_a_swap_before_any_call_reaches_nothing(
    documents: Documents, outside: Path, tmp_path: Path, action: Swap, verb: str
) -> None:
    before = everything(outside)
    noticed = 0
    for nth in range(1, CALLS_MAX):
        (tmp_path / str(nth)).mkdir()
        out = tmp_path / str(nth) / "out"
        documents.publish(out)
        documents.write("work", f"Work {nth}.")
        (out / "people" / "Ana.md").write_text(f"edited {nth}")
        (out / "people.md").write_text(f"edited {nth}")
        documents.append("people", f"changed {nth}")  # so that the file is kept as a copy
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _fd: None)
            with Swapper(patch, nth, lambda: action(out, outside)) as swapper:  # noqa: B023
                try:
                    if verb == "publish":
                        noticed += bool(documents.publish(out, discard_edits=True).kept_aside)
                    else:
                        loading = documents.load(out)
                        assert CANARY not in repr(loading)
                        noticed += bool(loading.problems)
                except recollect.RecollectError:
                    noticed += 1
        assert_nothing_was_reached(documents, out, outside, before)
        assert action is swap_target or not out.is_symlink()
        if not swapper.has_swapped:
            break
    print(f"{nth - 1} calls, noticed {noticed} times")
    assert not swapper.has_swapped, "more calls than were tried"
    assert noticed or (verb == "load" and action is swap_aside_folder)


def test_somebody_who_swaps_all_the_time_reaches_nothing(
    documents: Documents, outside: Path, tmp_path: Path
) -> None:
    print(f"seed {SEED}")
    (tmp_path / "in").mkdir()
    out = tmp_path / "in" / "out"
    before = everything(outside)
    documents.publish(out)
    racer = subprocess.Popen(
        [sys.executable, __file__, str(out), str(outside), str(SEED)], stdout=subprocess.PIPE
    )
    assert racer.stdout is not None
    racer.stdout.readline()
    published = refused = 0
    try:
        for number in range(ROUNDS):
            documents.write("work", f"Work {number}.")
            documents.write("people", f"People {number}.")
            for verb in (
                documents.load,
                lambda place: documents.publish(place, discard_edits=True),
            ):
                try:
                    verb(out)
                    published += 1
                except recollect.RecollectError:
                    refused += 1
        assert racer.poll() is None
    finally:
        racer.kill()
        racer.communicate()
    print(f"{published} times done, {refused} times refused")
    assert_nothing_was_reached(documents, out, outside, before)
    assert refused, "nobody was in the way"
    assert published


if __name__ == "__main__":
    race(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
