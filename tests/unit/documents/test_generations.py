"""P6: generations beside their target: what is removed, what is kept, and who comes first."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.documents.files import UNFINISHED, Folder, PublishTarget
from recollect.documents.tree import Documents
from recollect.errors import StoreBusy

PUBLISHERS = 4


@pytest.fixture
def docs(memory: recollect.Memory) -> Documents:
    made = memory.space().documents
    made.write("a", "aa")
    made.write("people/ana", "Likes tea")
    return made


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def beside(out: Path) -> list[str]:
    return sorted(each.name for each in out.parent.iterdir())


def test_what_could_only_be_removed_in_part_is_no_generation_any_more(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not kept as if it had edits: loading that would delete what is missing."""
    docs.publish(out)
    docs.write("a", "changed")
    remove = Folder.remove

    def fails(self: Folder, name: str) -> None:
        if name == "ana.md":
            raise PermissionError(13, "Permission denied")
        remove(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "remove", fails)
        assert docs.publish(out).kept_aside == ()
    (left,) = (name for name in beside(out) if name != "out")
    assert (out.parent / left / UNFINISHED).exists()
    with pytest.raises(recollect.RecollectError):
        docs.load(out.parent / left)
    docs.write("a", "again")
    docs.publish(out)
    assert beside(out) == ["out"], "the next one removes the rest"


@pytest.mark.parametrize("was_loaded", [True, False])
def test_a_dead_publication_leaves_edits_only_if_they_were_not_loaded(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch, was_loaded: bool
) -> None:
    docs.publish(out)
    file = out / "a.md"
    if was_loaded:
        file.write_text(file.read_text() + "more\n")
        docs.load(out)
    else:
        docs.write("a", "changed")

    swap = PublishTarget.swap

    def dies(self: PublishTarget, name: str, *more: Any) -> None:
        swap(self, name, *more)
        if not was_loaded:
            (out.parent / name / "a.md").write_text("late")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PublishTarget, "swap", dies)
        with pytest.raises(KeyboardInterrupt):
            docs.publish(out)
    assert len(beside(out)) == 2
    docs.write("b", "bb")
    kept = docs.publish(out).kept_aside
    assert [Path(each).name for each in kept] == beside(out)[:-1]
    assert bool(kept) is not was_loaded
    assert docs.publish(out).kept_aside == kept


def test_names_of_what_is_kept_do_not_collide(docs: Documents, out: Path) -> None:
    docs.publish(out)
    for number in range(3):
        (out.parent / f".out.recollect-2-edited{f'-{number}' if number > 1 else ''}").mkdir(
            exist_ok=True
        )
    (out / "a.md").write_text("mine")
    kept = docs.publish(out, discard_edits=True).kept_aside
    assert [Path(each).name for each in kept] == [
        *(".out.recollect-2-edited", ".out.recollect-2-edited-2", ".out.recollect-2-edited-3")
    ]
    assert (Path(kept[-1]) / "a.md").read_text() == "mine"


def test_a_new_generation_that_others_take_for_a_dead_one_may_be_tried_again(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Folder.lock

    def beaten(self: Folder, *, is_shared: bool = False) -> bool:
        for made in out.parent.glob(".out.recollect-*"):
            made.rmdir()
        return lock(self, is_shared=is_shared)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "lock", beaten)
        with pytest.raises(StoreBusy):
            docs.publish(out)
    assert docs.publish(out).generation == 1
    assert beside(out) == ["out"]


def publish_at_once(url: str, directory: str, barrier: Any, said: Any) -> None:
    os.chdir(Path(directory).parent)
    with recollect.open(url) as memory:
        documents = memory.space().documents
        barrier.wait()
        try:
            documents.publish(directory)
            said.put("published")
        except recollect.RecollectError as error:
            said.put(type(error).__name__)


def test_of_many_first_publications_at_once_one_is_made_and_the_others_may_try_again(
    tmp_path: Path,
) -> None:
    url, out = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "in" / "out"
    out.parent.mkdir()
    with recollect.open(url) as memory:
        for number in range(20):
            memory.space().documents.write(f"p/{number}", "x")
    context = multiprocessing.get_context("spawn")
    barrier, said = context.Barrier(PUBLISHERS), context.Queue()
    processes = [
        context.Process(target=publish_at_once, args=(url, str(out), barrier, said))
        for _ in range(PUBLISHERS)
    ]
    for process in processes:
        process.start()
    told = [said.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert "published" in told
    assert set(told) <= {"published", StoreBusy.__name__}
    assert len(list(out.rglob("*.md"))) == 20
    assert beside(out) == ["out"]
