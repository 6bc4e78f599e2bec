"""What is found in a directory: files by their place, and everything else with a reason."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

import recollect
from recollect.documents.files import Folder
from recollect.documents.front_matter import FRONT_BYTES_MAX
from recollect.documents.manifest import Manifest, ManifestEntry
from recollect.documents.paths import memory_root, read_path
from recollect.documents.survey import Survey, looks
from recollect.errors import TooLarge

FILE_BYTES_MAX = 1024 + FRONT_BYTES_MAX + 64


def look(path: Path, known: Manifest | None = None, files_max: int = 100) -> Survey:
    settings = {"document_bytes_max": 1024, "documents_max": files_max}
    with recollect.open(":memory:", settings=settings) as memory, Folder.named(path) as folder:
        return memory.space().documents._held().survey(folder, memory_root(), known)


def manifest(*entries: ManifestEntry) -> Manifest:
    root = memory_root()
    return Manifest(store="a", space="s", root=root, generation=1, published_at="", entries=entries)


def names(found: Survey) -> list[str]:
    return [each.name for each in found.files.values()]


def test_files_are_found_by_the_place_they_stand_for(tmp_path: Path) -> None:
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / "Ana.md").write_text("a")
    (tmp_path / "~.md").write_text("top")
    found = look(tmp_path)
    assert found.skipped == {}
    assert found.files[read_path("people/ana").key].data == b"a"
    assert found.files[memory_root().key].data == b"top"
    assert found.folders == {read_path("people").key}


def test_the_form_of_a_name_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "A\u0301na.md").write_text("a")
    assert list(look(tmp_path).files) == [read_path("Ána").key]


def test_what_is_no_document_is_skipped_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "in.md").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "link.md").symlink_to(tmp_path / "target" / "in.md")
    (tmp_path / ".hidden.md").write_text("x")
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "a:b.md").write_text("x")
    (tmp_path / "dir.md").mkdir()
    (tmp_path / "large.md").write_bytes(b"x" * FILE_BYTES_MAX + b"x")
    os.mkfifo(tmp_path / "pipe.md")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_text("x")
    found = look(tmp_path)
    assert names(found) == ["target/in.md"]
    assert {name.encode("utf-8", "surrogateescape") for name in found.skipped} == {
        *(b"link", b"link.md", b".hidden.md", b".git", b"notes.txt", b"a:b.md", b"dir.md"),
        *(b"large.md", b"pipe.md", b"\xff.md"),
    }
    assert all(found.skipped.values())


def test_names_that_differ_only_in_case_are_one_file_and_one_complaint(tmp_path: Path) -> None:
    (tmp_path / "Ana.md").write_text("1")
    (tmp_path / "ana.md").write_text("2")
    found = look(tmp_path)
    assert names(found) == ["Ana.md"]
    assert list(found.skipped) == ["ana.md"]


def test_only_what_is_gone_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "c.md").symlink_to(tmp_path / "a.md")
    found = look(tmp_path)
    gone = {name: found.is_gone(read_path(name)) for name in ("a", "b", "b/x", "c", "d", "d/x")}
    assert gone == {"a": False, "b": False, "b/x": False, "c": False, "d": True, "d/x": True}


def test_directories_have_a_depth(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 20)
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("x")
    found = look(tmp_path)
    assert names(found) == []
    assert len(found.skipped) == 1


def test_the_number_of_files_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for number in range(7):
        (tmp_path / "d" / f"{number}.md").write_text("x")
    with pytest.raises(TooLarge):
        look(tmp_path, files_max=5)


def test_what_is_as_it_was_published_is_not_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("same")
    (tmp_path / "b.md").write_text("changed")
    entries = tuple(
        ManifestEntry(path=f"{name}.md", id=name, version=1, sha256=sha256(b"same").hexdigest())
        for name in "ab"
    )
    known = manifest(*entries)
    data = {each.name: each.data for each in look(tmp_path, known).files.values()}
    assert data == {"a.md": None, "b.md": b"changed"}


def test_what_was_published_is_never_too_large(tmp_path: Path) -> None:
    """Limits can become smaller; a file nobody touched is no edit for that."""
    data = b"x" * (FILE_BYTES_MAX + 1)
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "b.md").write_bytes(b"y" * len(data))
    digest = sha256(data).hexdigest()
    known = manifest(
        *(
            ManifestEntry(path=name, id=name, version=1, sha256=digest, size_bytes=len(data))
            for name in ("a.md", "b.md")
        )
    )
    found = look(tmp_path, known)
    assert {each.name: each.data for each in found.files.values()} == {"a.md": None}
    assert set(found.skipped) == {"b.md", "c.md"}


def test_two_looks_tell_whether_something_changed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("x")
    (tmp_path / ".hidden").write_text("x")

    def seen() -> dict[str, object]:
        with Folder.named(tmp_path) as folder:
            return dict(looks(folder))

    before = seen()
    assert set(before) == {"d/a.md", ".hidden"}
    assert seen() == before
    for name in ("d/a.md", ".hidden"):
        (tmp_path / name).write_text("longer")
        assert seen() != before
        before = seen()
