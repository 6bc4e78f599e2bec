"""D8: files from another store or space, from one that was restored, or forgot the document."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import recollect
from recollect.documents.tree import Documents


@pytest.fixture
def docs(memory: recollect.Memory) -> Documents:
    return memory.space().documents


def published(documents: Documents, directory: Path) -> Path:
    documents.write("ana", "from elsewhere")
    documents.publish(directory)
    return directory / "ana.md"


def test_a_file_of_another_store_overwrites_nothing(docs: Documents, tmp_path: Path) -> None:
    with recollect.open(":memory:") as other:
        file = published(other.space().documents, tmp_path / "theirs")
    docs.write("ana", "IMPORTANT")
    (tmp_path / "wiki").mkdir()
    shutil.copy(file, tmp_path / "wiki")
    for directory in ("wiki", "theirs"):
        (conflict,) = docs.load(tmp_path / directory).conflicts
        assert (conflict.ours, conflict.theirs) == ("IMPORTANT", "from elsewhere")
    assert docs.read("ana").version == 1


def test_a_file_of_another_space_overwrites_nothing(
    memory: recollect.Memory, docs: Documents, tmp_path: Path
) -> None:
    """P9."""
    published(memory.space("other").documents, tmp_path / "theirs")
    docs.write("ana", "IMPORTANT")
    assert len(docs.load(tmp_path / "theirs").conflicts) == 1
    assert docs.read("ana").body == "IMPORTANT"


def test_a_file_without_an_id_names_versions_only_where_it_was_published(
    docs: Documents, tmp_path: Path
) -> None:
    file = published(docs, tmp_path / "out")
    docs.write("ana", "changed")
    text = "---\nversion: 2\n---\nby hand\n"
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / "ana.md").write_text(text)
    assert len(docs.load(tmp_path / "wiki").conflicts) == 1
    file.write_text(text)
    assert docs.load(tmp_path / "out").changed == ("~/memory/ana",)


def test_the_same_number_in_a_restored_store_is_another_version(tmp_path: Path) -> None:
    store, copy, out = tmp_path / "a.db", tmp_path / "copy.db", tmp_path / "out"
    with recollect.open(str(store)) as memory:
        memory.space().documents.write("x", "one")
        memory.space().documents.publish(out)
    shutil.copy(store, copy)
    with recollect.open(str(store)) as memory:
        memory.space().documents.write("x", "lost")
        memory.space().documents.publish(out)
    with recollect.open(str(copy)) as memory:
        docs = memory.space().documents
        docs.write("x", "found")
        (out / "x.md").write_text((out / "x.md").read_text() + "by hand\n")
        (conflict,) = docs.load(out).conflicts
        assert (conflict.ours, conflict.theirs) == ("found", "lost\nby hand")
        assert docs.read("x").body == "found"


def test_what_the_store_does_not_know_is_reported_and_not_made_again(
    docs: Documents, tmp_path: Path
) -> None:
    """P11: what was purged does not come back by itself, and is gone with the next generation."""
    file = published(docs, tmp_path / "out")
    docs.write("other", "x")
    docs.purge("ana")
    loading = docs.load(tmp_path / "out")
    assert loading.created == ()
    assert ["does not have this document" in each.reason for each in loading.problems] == [True]
    docs.publish(tmp_path / "out")
    assert not file.exists()
