"""Edits of published files are noticed: each once, by what can be seen without reading."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import recollect
from recollect.consolidation.edits import Watch, changed_files
from recollect.documents.files import Folder
from recollect.documents.tree import Documents
from recollect.errors import InvalidValue, UnusableDirectory

SPACE = "alice"


@pytest.fixture
def docs(memory: recollect.Memory) -> Documents:
    made = memory.space(SPACE).documents
    made.write("people/Ana", "Likes tea.")
    made.write("work", "Busy.")
    return made


@pytest.fixture
def out(docs: Documents, tmp_path: Path) -> Path:
    docs.publish(tmp_path / SPACE, path="~/memory")
    return tmp_path / SPACE


def test_what_was_just_published_is_as_it_was(out: Path, tmp_path: Path) -> None:
    assert changed_files(out) == []
    assert Watch(tmp_path).noticed() == []


def test_an_edit_is_noticed_once_and_the_next_one_again(out: Path, tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    with (out / "work.md").open("a") as file:
        file.write("More.\n")
    assert changed_files(out) == ["work.md"]
    assert [watch.noticed() for _ in range(3)] == [[SPACE], [], []]
    (out / "people" / "Bob.md").write_text("A friend.")
    assert [watch.noticed() for _ in range(2)] == [[SPACE], []]


def test_an_edit_is_not_noticed_again_for_what_happens_to_other_files(
    out: Path, tmp_path: Path
) -> None:
    watch = Watch(tmp_path)
    (out / "new.md").write_text("New.")
    assert watch.noticed() == [SPACE]
    os.utime(out / "work.md", ns=(1, 1))
    assert watch.noticed() == []


def test_a_file_that_is_gone_or_a_link_was_changed(out: Path, tmp_path: Path) -> None:
    (out / "work.md").unlink()
    (out / "people" / "Ana.md").unlink()
    (out / "people" / "Ana.md").symlink_to(tmp_path / "secret.md")
    assert changed_files(out) == ["people/Ana.md", "work.md"]


def test_a_file_of_the_same_size_is_read_if_it_is_newer(out: Path) -> None:
    file = out / "work.md"
    published = (out / ".recollect.json").stat().st_mtime_ns
    file.write_text(file.read_text().replace("Busy", "Lazy"))
    os.utime(file, ns=(published + 1, published + 1))
    assert changed_files(out) == ["work.md"]


def test_a_file_that_was_only_touched_is_as_it_was(out: Path, tmp_path: Path) -> None:
    later = (out / ".recollect.json").stat().st_mtime_ns + 10**9
    os.utime(out / "work.md", ns=(later, later))
    assert changed_files(out) == []
    assert Watch(tmp_path).noticed() == []


def test_what_was_loaded_is_no_edit_any_more(docs: Documents, out: Path, tmp_path: Path) -> None:
    with (out / "work.md").open("a") as file:
        file.write("More.\n")
    docs.load(out)
    assert changed_files(out) == []
    assert Watch(tmp_path).noticed() == []


def test_what_can_be_no_document_is_not_looked_at(out: Path, tmp_path: Path) -> None:
    (out / ".obsidian").mkdir()
    (out / ".obsidian" / "a.md").write_text("hidden")
    (out / "picture.png").write_bytes(b"\x89PNG")
    (out / "elsewhere").symlink_to(tmp_path)
    assert changed_files(out) == []


def test_a_directory_that_is_a_link_is_not_looked_into(out: Path, tmp_path: Path) -> None:
    with (out / "work.md").open("a") as file:
        file.write("More.\n")
    real = tmp_path / "elsewhere" / SPACE
    real.parent.mkdir()
    out.rename(real)
    out.symlink_to(real)
    assert Watch(tmp_path).noticed() == []
    with pytest.raises(UnusableDirectory):
        changed_files(out)


def test_a_directory_of_another_space_is_not_taken_for_one(out: Path, tmp_path: Path) -> None:
    with (out / "work.md").open("a") as file:
        file.write("More.\n")
    out.rename(tmp_path / "bob")
    assert Watch(tmp_path).noticed() == []


@pytest.mark.parametrize("said", ["", "[]", '{"format": 1}', '{"format": 99}', "\0"])
def test_a_list_that_cannot_be_read_ends_nothing(out: Path, tmp_path: Path, said: str) -> None:
    (out / ".recollect.json").write_text(said)
    assert Watch(tmp_path).noticed() == []
    if said != '{"format": 99}':
        with pytest.raises(InvalidValue):
            changed_files(out)


def test_where_nothing_was_published_nothing_is_noticed(tmp_path: Path) -> None:
    assert changed_files(tmp_path / "nowhere" / SPACE) == []
    assert changed_files(tmp_path / SPACE) == []
    assert Watch(tmp_path / "nowhere").noticed() == []
    assert Watch(None).noticed() == []


def test_all_directories_have_their_turn(
    memory: recollect.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.consolidation.edits.FILES_PER_ROUND", 1)
    for space in ("a", "b", "c"):
        made = memory.space(space).documents
        made.write("work", "Busy.")
        made.publish(tmp_path / space, path="~/memory")
        (tmp_path / space / "new.md").write_text("New.")
    watch = Watch(tmp_path)
    assert [watch.noticed(in_turn=True) for _ in range(4)] == [["a"], ["b"], ["c"], []]
    watch = Watch(tmp_path)
    assert watch.noticed("b") == ["b"]
    assert [watch.noticed() for _ in range(2)] == [["a", "c"], []], "all of them at once"
    assert watch.noticed("nowhere") == []


def test_a_directory_that_changes_places_meanwhile_is_looked_at_later(
    docs: Documents, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is emptied once another has its place, which nobody has edited."""
    watch, real = Watch(tmp_path), Folder.identity_at
    with (out / "work.md").open("a") as file:
        file.write("More.\n")

    def swapped(self: Folder, name: str) -> object:
        monkeypatch.setattr(Folder, "identity_at", real)
        docs.load(out)
        docs.write("work", "Another.")
        docs.publish(out)
        return real(self, name)

    monkeypatch.setattr(Folder, "identity_at", swapped)
    assert watch.noticed() == []
    assert watch.noticed() == []
