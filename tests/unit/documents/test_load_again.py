"""D8: after a load the next edit is compared with what was loaded, not with what was published."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.documents.files import Folder
from recollect.documents.front_matter import parse
from recollect.documents.load import Loading
from recollect.documents.tree import Documents
from recollect.errors import StoreBusy, UnloadedEdits

MANIFEST = ".recollect.json"
NOTHING = Loading()
SEEDS = range(20261115, 20261115 + 60)


@pytest.fixture
def docs(memory: recollect.Memory) -> Documents:
    return memory.space().documents


@pytest.fixture
def out(tmp_path: Path, docs: Documents) -> Path:
    docs.write("a", "one\n\ntwo\n\nthree\n\nfour")
    docs.write("b", "bee")
    docs.write("c", "sea")
    docs.publish(tmp_path / "out")
    return tmp_path / "out"


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def body(docs: Documents, path: str) -> str:
    return docs.read(path).body


# the same file again


def test_a_line_can_be_edited_twice(docs: Documents, out: Path) -> None:
    edit(out / "a.md", "two", "TWO")
    docs.load(out)
    edit(out / "a.md", "TWO", "zwei")
    assert docs.load(out).changed == ("~/memory/a",)
    assert "zwei" in body(docs, "a")
    assert docs.load(out) == NOTHING


def test_a_part_of_what_was_loaded_can_be_taken_back(docs: Documents, out: Path) -> None:
    edit(out / "a.md", "one", "one\nX")
    edit(out / "a.md", "three", "three\nY")
    docs.load(out)
    edit(out / "a.md", "one\nX", "one")
    assert docs.load(out).changed == ("~/memory/a",)
    docs.publish(out)
    assert parse((out / "a.md").read_bytes()).body == "one\n\ntwo\n\nthree\nY\n\nfour"


def test_all_of_it_can_be_taken_back(docs: Documents, out: Path) -> None:
    published = (out / "a.md").read_bytes()
    edit(out / "a.md", "two", "TWO")
    docs.load(out)
    (out / "a.md").write_bytes(published)
    with pytest.raises(UnloadedEdits):
        docs.publish(out)
    assert docs.load(out).changed == ("~/memory/a",)
    assert "two" in body(docs, "a")
    docs.publish(out)
    assert docs.load(out) == NOTHING


def test_an_edit_of_others_between_two_of_ours_is_a_conflict(docs: Documents, out: Path) -> None:
    edit(out / "a.md", "one", "eins")
    docs.load(out)
    docs.patch("a", "four", "vier")
    edit(out / "a.md", "two", "zwei")
    (conflict,) = docs.load(out).conflicts
    assert "vier" in conflict.ours
    assert body(docs, "a") == "eins\n\ntwo\n\nthree\n\nvier"


# new, removed and renamed


def test_a_new_file_can_be_edited_renamed_and_removed(docs: Documents, out: Path) -> None:
    (out / "new.md").write_text("hello\n")
    docs.load(out)
    (out / "new.md").write_text("hello again\n")
    assert docs.load(out).changed == ("~/memory/new",)
    made = docs.read("new").id
    (out / "new.md").unlink()
    assert docs.load(out).deleted == ("~/memory/new",)
    assert docs.find(made) is None


def test_a_removed_file_can_be_put_back(docs: Documents, out: Path) -> None:
    published = (out / "b.md").read_bytes()
    (out / "b.md").unlink()
    docs.load(out)
    (out / "b.md").write_bytes(published)
    assert docs.load(out).created == ("~/memory/b",)
    docs.publish(out)
    assert body(docs, "b") == "bee"
    assert (out / "b.md").exists()


def test_a_renamed_file_can_be_renamed_again_and_back(docs: Documents, out: Path) -> None:
    renamed = docs.read("c").id
    for old, new in (("c", "d"), ("d", "e"), ("e", "c")):
        (out / f"{old}.md").rename(out / f"{new}.md")
        (move,) = docs.load(out).moved
        assert (move.source, move.target) == (f"~/memory/{old}", f"~/memory/{new}")
    docs.publish(out)
    assert docs.read("c").id == renamed
    assert docs.load(out) == NOTHING


def test_an_edited_file_can_be_removed(docs: Documents, out: Path) -> None:
    edit(out / "b.md", "bee", "wasp")
    docs.load(out)
    (out / "b.md").unlink()
    assert docs.load(out).deleted == ("~/memory/b",)


def test_a_directory_that_was_made_and_removed_leaves_no_page(docs: Documents, out: Path) -> None:
    (out / "deep" / "er").mkdir(parents=True)
    (out / "deep" / "er" / "page.md").write_text("x\n")
    docs.load(out)
    shutil.rmtree(out / "deep")
    assert len(docs.load(out).deleted) == 3
    assert docs.find("deep") is None


def test_a_key_without_a_place_stays_a_complaint(docs: Documents, out: Path) -> None:
    """The next generation would be without it, so nobody publishes over it unasked."""
    edit(out / "b.md", "title: b", "title: b\naliases: [x]")
    edit(out / "b.md", "bee", "wasp")
    assert docs.load(out).changed == ("~/memory/b",)
    again = docs.load(out)
    assert (again.changed, len(again.problems)) == ((), 1)
    with pytest.raises(UnloadedEdits):
        docs.publish(out)
    edit(out / "b.md", "wasp", "hornet")
    assert docs.load(out).changed == ("~/memory/b",)


# at random


def changed_at_random(choice: random.Random, out: Path, number: int) -> None:
    files = sorted(out.rglob("*.md"))
    file = choice.choice(files)
    target = out / choice.choice(["", "a", "d"]) / f"{choice.choice('abcdef')}.md"
    match choice.choice(["edit", "edit", "rename", "new", "remove"]):
        case "edit":
            file.write_text(file.read_text() + f"edit {number}\n")
        case "rename" if not target.exists():
            target.parent.mkdir(exist_ok=True)
            file.rename(target)
        case "new" if not target.exists():
            target.parent.mkdir(exist_ok=True)
            target.write_text(f"new {number}\n")
        case "remove" if len(files) > 2:
            file.unlink()
        case _:
            pass


def said(out: Path) -> dict[str, str]:
    return {str(each.relative_to(out)): parse(each.read_bytes()).body for each in out.rglob("*.md")}


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_done_between_loads_the_second_finds_nothing_and_nothing_is_lost(
    docs: Documents, out: Path, seed: int
) -> None:
    print(f"seed {seed}")
    choice = random.Random(seed)
    for number in range(8):
        changed_at_random(choice, out, number)
        loading = docs.load(out, allow_deletions=True)
        again = docs.load(out, allow_deletions=True)
        assert again == Loading(problems=again.problems)
        assert {each.file for each in again.problems} <= {each.file for each in loading.problems}
    reported = {each.file for each in again.problems}
    for name, text in said(out).items():
        if name not in reported:
            assert body(docs, name) == text
    files = {each.read_bytes() for each in out.rglob("*.md")}
    kept = [Path(each) for each in docs.publish(out, discard_edits=True).kept_aside]
    assert bool(kept) is bool(reported)
    copies = {each.read_bytes() for folder in kept for each in folder.rglob("*.md")}
    assert not kept or files <= copies


# how it is kept


def test_what_was_loaded_is_noted_in_the_manifest_until_it_is_published(
    docs: Documents, out: Path
) -> None:
    edit(out / "b.md", "bee", "wasp")
    published = (out / MANIFEST).read_bytes()
    time = (out / MANIFEST).stat().st_mtime_ns
    docs.load(out, dry_run=True)
    assert (out / MANIFEST).read_bytes() == published
    docs.load(out)
    noted = json.loads((out / MANIFEST).read_text())["files"]
    loaded = [(each["path"], each["version"]) for each in noted if each.get("loaded")]
    assert loaded == [("b.md", 2)]
    assert (out / MANIFEST).stat().st_mode & 0o777 == 0o600
    assert (out / MANIFEST).stat().st_mtime_ns == time, "what is younger was not published"
    docs.publish(out)
    assert "version: 2" in (out / "b.md").read_text()
    assert "loaded" not in (out / MANIFEST).read_text()


def test_a_directory_that_is_not_ours_is_left_as_it_is(docs: Documents, tmp_path: Path) -> None:
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / "page.md").write_text("x\n")
    docs.load(tmp_path / "wiki")
    assert [each.name for each in (tmp_path / "wiki").iterdir()] == ["page.md"]


def failing(number: int, words: str) -> Callable[..., None]:
    def fail(*_arguments: Any) -> None:
        raise OSError(number, words)

    return fail


def test_a_load_that_could_not_be_noted_says_so_and_is_repeated_without_harm(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash between the commit and the note."""
    edit(out / "b.md", "bee", "wasp")
    (out / "c.md").rename(out / "d.md")
    (out / "new.md").write_text("new\n")
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "replace", failing(28, "No space left on device"))
        loading = docs.load(out)
    assert loading.changed == ("~/memory/b",)
    assert [(each.file, "No space" in each.reason) for each in loading.problems] == [
        (MANIFEST, True)
    ]
    assert docs.load(out) == NOTHING
    versions = {node.path: node.version for node in docs.tree()}
    assert docs.load(out) == NOTHING
    assert {node.path: node.version for node in docs.tree()} == versions
    edit(out / "b.md", "wasp", "hornet")
    (out / "new.md").write_text("newer\n")
    assert docs.load(out).changed == ("~/memory/b", "~/memory/new")


def test_only_one_loads_at_a_time(docs: Documents, out: Path) -> None:
    with Folder.named(out) as folder:
        assert folder.lock(is_shared=True)
        docs.load(out, dry_run=True)
        with pytest.raises(StoreBusy):
            docs.load(out)
