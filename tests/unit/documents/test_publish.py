"""D8, P6: the tree as files: what they look like, what is rewritten, and what is never touched."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect.clock import ManualClock
from recollect.documents.checking import LINKS_MAX
from recollect.documents.files import UNFINISHED, Folder
from recollect.documents.load import Loading
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder
from recollect.documents.tree import Documents
from recollect.errors import (
    InvalidPath,
    NotAllowed,
    NotFound,
    StoreBusy,
    StoreDenied,
    StoreFull,
    SwapUnsupported,
    UnloadedEdits,
    UnusableDirectory,
)
from recollect.types.facts import Source
from recollect.types.pages import PATH_BYTES_MAX, Document

MANIFEST = ".recollect.json"
NOTHING = Loading()


@pytest.fixture
def docs(memory: recollect.Memory) -> Documents:
    made = memory.space().documents
    made.write("people", "All of them.")
    made.write("people/Ana", "Likes tea.", tags=["person"])
    made.write("places/Ulm", "A town.")
    made.write("work", "# Work")
    return made


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def listed(directory: Path) -> list[str]:
    return sorted(str(each.relative_to(directory)) for each in directory.rglob("*"))


def beside(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.parent.iterdir())


def inodes(directory: Path) -> dict[str, int]:
    return {
        name: (directory / name).stat().st_ino for name in listed(directory) if name.endswith(".md")
    }


def manifest(directory: Path) -> dict[str, Any]:
    read = json.loads((directory / MANIFEST).read_text())
    assert isinstance(read, dict)
    return read


def assert_whole(directory: Path) -> int:
    """The manifest and the files agree; the generation."""
    said = manifest(directory)
    for each in said["files"]:
        assert sha256((directory / each["path"]).read_bytes()).hexdigest() == each["sha256"]
    names = {each["path"] for each in said["files"]}
    assert names == {name for name in listed(directory) if name.endswith(".md")}
    return int(said["generation"])


# what it looks like


def test_a_tree_is_a_directory_of_files(docs: Documents, out: Path) -> None:
    published = docs.publish(out)
    assert listed(out) == [
        *(MANIFEST, "people", "people.md", "people/Ana.md", "places", "places/Ulm.md", "work.md")
    ]
    ana = docs.read("people/Ana")
    assert (out / "people" / "Ana.md").read_text() == (
        f'---\nid: "{ana.id}"\ntitle: Ana\ntags:\n- person\nversion: 1\n---\n\nLikes tea.\n'
    )
    assert (published.generation, published.written, published.kept, published.removed) == (
        1,
        4,
        0,
        0,
    )
    assert published.documents == 6
    assert assert_whole(out) == 1
    assert beside(out) == ["out"]


def test_the_manifest_names_every_file(docs: Documents, out: Path, clock: ManualClock) -> None:
    docs.publish(out)
    said = manifest(out)
    assert said["space"] == "default"
    assert said["root"] == "~/memory"
    assert said["published_at"] == clock.now().isoformat()
    ids = {each["path"]: (each["id"], each["version"]) for each in said["files"]}
    assert ids["people/Ana.md"] == (docs.read("people/Ana").id, 1)
    assert set(ids) == {name for name in listed(out) if name.endswith(".md")}


def test_everything_is_private(docs: Documents, out: Path) -> None:
    docs.publish(out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    for name in listed(out):
        wanted = 0o700 if (out / name).is_dir() else 0o600
        assert stat.S_IMODE((out / name).stat().st_mode) == wanted


def test_the_same_tree_makes_the_same_bytes(docs: Documents, tmp_path: Path) -> None:
    docs.publish(tmp_path / "a")
    docs.publish(tmp_path / "b")
    assert listed(tmp_path / "a") == listed(tmp_path / "b")
    for name in listed(tmp_path / "a"):
        if (tmp_path / "a" / name).is_file():
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_page_that_says_nothing_is_a_file_until_there_is_something_below_it(
    memory: recollect.Memory, out: Path
) -> None:
    docs = memory.space("other").documents
    docs.write("a", "")
    docs.publish(out)
    assert listed(out) == [MANIFEST, "a.md"]
    docs.write("a/b", "b")
    docs.publish(out)
    assert listed(out) == [MANIFEST, "a", "a/b.md"]
    docs.write("a", "", tags=["x"])
    docs.publish(out)
    assert listed(out) == [MANIFEST, "a", "a.md", "a/b.md"]


def test_an_empty_tree_is_a_directory_with_a_manifest(memory: recollect.Memory, out: Path) -> None:
    docs = memory.space("empty").documents
    assert docs.publish(out).documents == 0
    assert listed(out) == [MANIFEST]


def test_a_part_of_the_tree_can_be_published(docs: Documents, out: Path) -> None:
    docs.publish(out, path="people")
    assert listed(out) == [MANIFEST, "Ana.md", "~.md"]
    assert docs.load(out) == NOTHING
    (out / "Bob.md").write_text("Bob.")
    assert docs.load(out).created == ("~/memory/people/Bob",)


def test_a_holder_publishes_its_part_and_no_more(docs: Documents, out: Path) -> None:
    holder = docs.held_by(Holder(root=read_path("people")))
    holder.publish(out)
    assert listed(out) == [MANIFEST, "Ana.md", "~.md"]
    with pytest.raises(NotAllowed):
        holder.publish(out, path="~/memory")


# round trips


slugs = st.sampled_from(
    [
        "a",
        "B c",
        "Ánà",
        "日本語",
        "ß",
        "x.y",
        "été",
        "ﬁx",
        "Ǆ",
        "İstanbul",
        "emoji 😀",
        "a_b-c",
        "ñ" * 90,
    ]
)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60) | (
    st.sampled_from(
        ["---\nx\n---\n", "a\r\nb\r\n", "\n", "\n\n", " ", "x\n", "\ufeffx", "# T\n", "- "]
    )
)
documents = st.dictionaries(
    st.lists(slugs, min_size=1, max_size=4).map("/".join),
    st.tuples(texts, texts, texts, st.lists(texts, max_size=2)),
    max_size=6,
)


@settings(max_examples=40)
@given(documents)
def test_what_is_published_and_loaded_is_what_was_there(
    wanted: dict[str, tuple[str, str, str, list[str]]],
) -> None:
    """D8: the same tree, here and in an empty space, whatever its pages are called and say."""
    with recollect.open(":memory:") as memory, TemporaryDirectory() as folder:
        docs, copy = memory.space("a").documents, memory.space("b").documents
        for path, (title, description, body, tags) in wanted.items():
            docs.write(path, body, title=title, description=description, tags=tags)
        out = Path(folder) / "out"
        docs.publish(out)
        assert docs.load(out) == NOTHING
        assert copy.load(out, path="~/memory").problems == ()
        assert said(copy) == said(docs)
        assert copy.load(out) == NOTHING
        for file in out.rglob("*.md"):
            file.write_bytes(file.read_bytes() + b"more\n")
        assert len(docs.load(out).changed) == len(list(out.rglob("*.md")))
        assert docs.publish(out).kept_aside == ()
        assert docs.load(out) == NOTHING


def said(docs: Documents) -> list[tuple[str, str, str, str, tuple[str, ...]]]:
    found = [docs.read(node.id) for node in docs.tree()]
    return [(each.path, each.title, each.description, each.body, each.tags) for each in found]


# what is rewritten


def test_only_what_changed_is_written(docs: Documents, out: Path) -> None:
    docs.publish(out)
    before = inodes(out)
    docs.patch("people/Ana", "tea", "coffee")
    docs.delete("work")
    docs.write("new", "x")
    published = docs.publish(out)
    assert (published.written, published.kept, published.removed) == (2, 2, 1)
    after = inodes(out)
    assert {name for name in after if after[name] == before.get(name)} == {
        "people.md",
        "places/Ulm.md",
    }
    assert assert_whole(out) == 2
    assert "coffee" in (out / "people" / "Ana.md").read_text()


def test_a_tree_that_did_not_change_is_not_published_again(docs: Documents, out: Path) -> None:
    docs.publish(out)
    before = out.stat().st_ino
    published = docs.publish(out)
    assert (published.generation, published.written, published.kept) == (1, 0, 4)
    assert out.stat().st_ino == before


def test_a_file_that_others_may_read_is_written_anew(docs: Documents, out: Path) -> None:
    docs.publish(out)
    (out / "work.md").chmod(0o644)
    assert docs.publish(out).written == 1
    assert stat.S_IMODE((out / "work.md").stat().st_mode) == 0o600


def test_a_forgotten_session_is_gone_from_the_files_too(
    memory: recollect.Memory, out: Path
) -> None:
    """P11: forgetting makes no version, and still reaches what was published."""
    space = memory.space("forgetful")
    session = space.session("k")
    session.append("user", "I like tea")
    state = session.state
    source = Source(session_id=state.id, seq=1, seq_to=1)
    space.documents.write("tea", "Tea.", sources=[source])
    space.documents.write("other", "Other.")
    space.documents.publish(out)
    assert state.id in (out / "tea.md").read_text()
    space.forget(session=state.id)
    published = space.documents.publish(out)
    assert published.written == 1
    assert state.id not in (out / "tea.md").read_text()


def test_a_moved_page_moves_its_files(docs: Documents, out: Path) -> None:
    docs.publish(out)
    docs.move("people", "folk")
    docs.publish(out)
    assert "folk/Ana.md" in listed(out)
    assert "people" not in listed(out)
    assert docs.load(out) == NOTHING


# what is refused


def test_edits_that_were_not_loaded_are_not_lost(docs: Documents, out: Path) -> None:
    docs.publish(out)
    (out / "work.md").write_text("mine")
    (out / "new.md").write_text("new")
    (out / "people" / "Ana.md").unlink()
    (out / "notes.txt").write_text("x")
    (out / ".swp").write_text("x")
    before = {name: (out / name).read_bytes() for name in listed(out) if (out / name).is_file()}
    docs.append("people", "changed")
    with pytest.raises(UnloadedEdits) as caught:
        docs.publish(out)
    assert caught.value.files == (".swp", "new.md", "notes.txt", "people/Ana.md", "work.md")
    assert before == {
        name: (out / name).read_bytes() for name in listed(out) if (out / name).is_file()
    }
    assert beside(out) == ["out"]


def test_edits_can_be_published_over_and_are_kept_aside(docs: Documents, out: Path) -> None:
    docs.publish(out)
    (out / "work.md").write_text("mine")
    (out / "notes.txt").write_text("x")
    (out / ".git" / "objects").mkdir(parents=True)
    published = docs.publish(out, discard_edits=True)
    (kept,) = published.kept_aside
    assert {".git", ".git/objects", "notes.txt", "work.md"} < set(listed(Path(kept)))
    assert (Path(kept) / "work.md").read_text() == "mine"
    assert assert_whole(out) == 2
    assert "# Work" in (out / "work.md").read_text()
    assert beside(out) == [Path(kept).name, "out"]


def test_where_nothing_was_edited_nothing_is_kept(docs: Documents, out: Path) -> None:
    docs.publish(out)
    (out / "work.md").write_text("mine")
    docs.load(out)
    assert docs.publish(out, discard_edits=True).kept_aside == ()
    assert beside(out) == ["out"]


def test_edits_that_were_loaded_are_published(docs: Documents, out: Path) -> None:
    docs.publish(out)
    (out / "work.md").write_text("mine")
    (out / "people" / "Ana.md").unlink()
    (out / "new.md").write_text("new")
    docs.load(out)
    docs.publish(out)
    assert docs.load(out) == NOTHING
    assert assert_whole(out) == 2


@pytest.mark.parametrize("kind", ["foreign", "file", "link", "dangling", "broken", "newer"])
def test_what_was_not_published_is_not_touched(docs: Documents, tmp_path: Path, kind: str) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "precious.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(foreign)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name, text in (("broken", "{"), ("newer", '{"format": 99}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / MANIFEST).write_text(text)
    before = listed(tmp_path)
    with pytest.raises(recollect.RecollectError):
        docs.publish(tmp_path / kind, discard_edits=True)
    assert listed(tmp_path) == before
    assert (foreign / "precious.txt").read_text() == "precious"


def test_the_directory_of_another_space_or_another_part_is_not_touched(
    memory: recollect.Memory, docs: Documents, out: Path
) -> None:
    docs.publish(out)
    for other, path in ((memory.space("other").documents, None), (docs, "people")):
        with pytest.raises(UnusableDirectory):
            other.publish(out, path=path)
    assert assert_whole(out) == 1


def test_the_directory_of_another_store_is_not_touched(docs: Documents, out: Path) -> None:
    docs.publish(out)
    with recollect.open(":memory:") as other:
        other.space().documents.write("only", "page")
        with pytest.raises(UnusableDirectory, match="another store"):
            other.space().documents.publish(out, discard_edits=True)
    assert assert_whole(out) == 1
    assert "work.md" in listed(out)


def test_a_version_number_that_is_used_again_is_another_version(tmp_path: Path) -> None:
    """A store that was restored from a copy: the file of the lost version does not stay."""
    out, store, copy = tmp_path / "out", tmp_path / "a.db", tmp_path / "copy.db"
    with recollect.open(str(store)) as memory:
        memory.space().documents.write("x", "one")
        memory.space().documents.publish(out)
    shutil.copy(store, copy)
    for text, database in (("lost", store), ("found", copy)):
        with recollect.open(str(database)) as memory:
            docs = memory.space().documents
            assert docs.write("x", text).version == 2
            docs.publish(out)
            assert (out / "x.md").read_text().endswith(f"{text}\n")
            assert docs.load(out) == NOTHING


def test_a_part_that_is_not_there_is_not_published(docs: Documents, out: Path) -> None:
    docs.publish(out, path="people")
    before = listed(out)
    with pytest.raises(NotFound, match="peeple"):
        docs.publish(out.parent / "other", path="peeple")
    docs.move("people", "folk")
    for path in ("people", None):
        with pytest.raises(NotFound, match="~/memory/folk"):
            docs.publish(out, path=path)
    assert listed(out) == before
    assert beside(out) == ["out"]


def test_a_part_is_published_again_without_saying_which(docs: Documents, out: Path) -> None:
    docs.publish(out, path="people")
    docs.append("people/Ana", "And cake.")
    assert docs.publish(out).written == 1
    assert listed(out) == [MANIFEST, "Ana.md", "~.md"]


@pytest.mark.parametrize("verb", ["publish", "load"])
def test_no_directory_is_not_this_directory(docs: Documents, verb: str) -> None:
    with pytest.raises(UnusableDirectory, match="no directory was given"):
        getattr(docs, verb)("")


def test_the_system_says_where_a_path_leads(docs: Documents, tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "sub")
    docs.publish(tmp_path / "link" / ".." / "out")
    assert not (tmp_path / "out").exists()
    assert assert_whole(tmp_path / "real" / "out") == 1


def test_this_directory_can_be_published_to(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out.mkdir()
    monkeypatch.chdir(out)
    assert docs.publish(".").directory == str(out)
    assert assert_whole(out) == 1


def test_a_mount_point_is_refused_with_what_to_do(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel says EBUSY; where it can be seen before, nothing is written."""
    docs.publish(out)
    docs.append("work", "x")

    def busy(*_names: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Folder, "exchange", busy)
    with pytest.raises(UnusableDirectory, match=r"mount point.*below it"):
        docs.publish(out)
    with pytest.raises(UnusableDirectory, match="mount point"):
        docs.publish("/proc")


def test_a_parent_that_cannot_be_written_to_is_named(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_self: Folder, _name: str) -> Folder:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Folder, "make", denied)
    with pytest.raises(StoreDenied, match=re.escape(f"{out.parent}: Permission denied")):
        docs.publish(out)


def test_a_document_with_all_that_it_may_have_is_no_edit(docs: Documents, out: Path) -> None:
    """As many links as there can be, as long as they can be."""
    slugs = "/".join("é" * 90 for _ in range((PATH_BYTES_MAX - 20) // 181))
    links = [f"{slugs}/{number:04}" for number in range(LINKS_MAX)]
    docs.write("linked", "x", links=links, description="\x85" * 2000)
    docs.publish(out)
    docs.append("work", "x")
    assert docs.publish(out).written == 1
    file = out / "linked.md"
    file.write_text(file.read_text() + "more\n")
    assert docs.load(out).changed == ("~/memory/linked",)
    assert docs.read("linked").links == tuple(read_path(link).text for link in links)


def test_whoever_waits_is_told_how_far_it_is(docs: Documents, out: Path) -> None:
    told: list[tuple[int, int]] = []
    docs.publish(out, progress=lambda done, of: told.append((done, of)))
    assert told == sorted(told)
    assert told[-1] == (6, 6)


def test_an_empty_directory_is_used(docs: Documents, out: Path) -> None:
    out.mkdir()
    docs.publish(out)
    assert assert_whole(out) == 1
    assert beside(out) == ["out"]


def test_a_directory_that_is_not_there_has_no_parents_made(docs: Documents, out: Path) -> None:
    with pytest.raises(UnusableDirectory):
        docs.publish(out / "deeper")


def test_only_one_publishes_at_a_time(docs: Documents, out: Path) -> None:
    docs.publish(out)
    docs.append("work", "x")
    with Folder.named(out) as folder:
        assert folder.lock()
        with pytest.raises(StoreBusy):
            docs.publish(out)
    assert docs.publish(out).generation == 2


# when something happens on the way


def on(monkeypatch: pytest.MonkeyPatch, method: str, before: Callable[[], object]) -> None:
    """Something happens just before a step, once."""
    real = getattr(Folder, method)
    done: list[bool] = []

    def watched(self: Folder, *arguments: Any, **more: Any) -> Any:
        if not done:
            done.append(True)
            before()
        return real(self, *arguments, **more)

    monkeypatch.setattr(Folder, method, watched)


def test_an_edit_in_the_last_moment_is_kept_aside(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs.publish(out)
    docs.append("work", "from the tree")
    on(monkeypatch, "exchange", lambda: (out / "work.md").write_text("by hand"))
    published = docs.publish(out)
    (kept,) = published.kept_aside
    assert (Path(kept) / "work.md").read_text() == "by hand"
    assert "from the tree" in (out / "work.md").read_text()
    assert assert_whole(out) == 2
    monkeypatch.undo()
    docs.append("work", "more")
    assert docs.publish(out).kept_aside == (kept,), "it is named until it is gone"
    assert (Path(kept) / "work.md").read_text() == "by hand", "nobody removes it but who wrote it"


def test_a_new_file_in_the_last_moment_is_kept_aside(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs.publish(out)
    docs.append("work", "from the tree")
    on(monkeypatch, "exchange", lambda: (out / "new.md").write_text("by hand"))
    (kept,) = docs.publish(out).kept_aside
    assert (Path(kept) / "new.md").read_text() == "by hand"


def test_an_edit_in_place_of_an_unchanged_file_is_in_both_generations(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs.publish(out)
    docs.append("work", "from the tree")
    with (out / "people.md").open("a", buffering=1) as editor:
        on(monkeypatch, "exchange", lambda: editor.write("by hand\n"))
        assert docs.publish(out).kept_aside == ()
    assert docs.load(out).changed == ("~/memory/people",)
    assert docs.read("people").body == "All of them.\nby hand"


def test_where_directories_cannot_change_places_nothing_is_published(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs.publish(out)
    docs.append("work", "x")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_names, **_more: object())
    with pytest.raises(SwapUnsupported):
        docs.publish(out)
    assert assert_whole(out) == 1
    assert beside(out) == ["out"]


def test_a_full_disk_leaves_what_was_there(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs.publish(out)
    docs.append("work", "x")

    def full() -> None:
        raise OSError(28, "No space left on device")

    on(monkeypatch, "sync", full)
    with pytest.raises(StoreFull):
        docs.publish(out)
    assert assert_whole(out) == 1
    assert beside(out) == ["out"]


def test_a_target_that_was_replaced_meanwhile_is_not_touched(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs.publish(out)
    docs.append("work", "x")

    def replace() -> None:
        out.rename(out.parent / "moved")
        out.mkdir()
        (out / "precious.txt").write_text("precious")

    on(monkeypatch, "sync", replace)
    with pytest.raises(UnusableDirectory):
        docs.publish(out)
    assert listed(out) == ["precious.txt"]
    assert assert_whole(out.parent / "moved") == 1


def test_a_target_that_appears_meanwhile_is_not_touched(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def appear() -> None:
        out.mkdir()
        (out / "precious.txt").write_text("precious")

    on(monkeypatch, "rename", appear)
    with pytest.raises(StoreBusy):
        docs.publish(out)
    with pytest.raises(UnusableDirectory):
        docs.publish(out)
    assert listed(out) == ["precious.txt"]
    assert beside(out) == ["out"]


def test_a_change_of_the_tree_on_the_way_is_in_the_next_generation(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: a generation is one state of the tree, also while that goes on."""

    def change() -> None:
        docs.move("people", "folk")
        docs.append("work", "changed on the way")
        docs.write("folk/Ana", "follows the move")
        docs.delete("places", below=True)
        docs.write("fresh/page", "x")

    before = [(node.path, docs.read(node.id).body) for node in docs.tree()]
    on(monkeypatch, "write", change)
    docs.publish(out)
    assert listed(out) == [
        *(MANIFEST, "people", "people.md", "people/Ana.md", "places", "places/Ulm.md", "work.md")
    ]
    for path, body in before:
        if body:
            assert (out / f"{path.removeprefix('~/memory/')}.md").read_text().endswith(f"{body}\n")
    assert docs.load(out) == NOTHING
    docs.publish(out)
    assert listed(out) == [
        *(MANIFEST, "folk", "folk.md", "folk/Ana.md", "fresh", "fresh/page.md", "work.md")
    ]
    assert "changed on the way" in (out / "work.md").read_text()


def test_a_tree_that_never_rests_is_published(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Folder.write

    def changing(self: Folder, name: str, data: bytes) -> None:
        docs.append("work", "again")
        real(self, name, data)

    monkeypatch.setattr(Folder, "write", changing)
    docs.publish(out)
    assert assert_whole(out) == 1


def test_what_is_purged_on_the_way_is_not_published(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11."""
    on(monkeypatch, "write", lambda: docs.purge("work"))
    docs.publish(out)
    assert assert_whole(out) == 1
    assert "work.md" not in listed(out)


def test_what_a_dead_publication_left_is_removed_and_what_is_not_ours_is_kept(
    docs: Documents, out: Path
) -> None:
    docs.publish(out)
    parent = out.parent
    unfinished = parent / ".out.recollect-7"
    (unfinished / "deep").mkdir(parents=True)
    (unfinished / UNFINISHED).write_text("")
    (unfinished / "deep" / "half.md").write_text("ha")
    (parent / ".out.recollect-8").mkdir()
    (parent / ".out.recollect-9").mkdir()
    (parent / ".out.recollect-9" / "precious.txt").write_text("precious")
    (parent / ".out.recollect-x").mkdir()
    (parent / ".out.recollect-5").symlink_to(parent)
    docs.append("work", "x")
    published = docs.publish(out)
    assert published.kept_aside == (str(parent / ".out.recollect-9-edited"),)
    assert beside(out) == [
        *(".out.recollect-5", ".out.recollect-9-edited", ".out.recollect-x", "out")
    ]
    assert (parent / ".out.recollect-9-edited" / "precious.txt").exists()


def test_all_of_a_generation_is_on_the_disk_before_it_is_seen(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6 after a power cut: all is synced before the swap, and the parent after it."""
    synced: set[int] = set()
    swapped: list[set[int]] = []
    fsync, exchange = os.fsync, Folder.exchange

    def noted_fsync(fd: int) -> None:
        synced.add(os.fstat(fd).st_ino)
        fsync(fd)

    def noted_exchange(self: Folder, a: str, b: str) -> None:
        swapped.append(set(synced))
        exchange(self, a, b)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Folder, "exchange", noted_exchange)
    out.mkdir()
    docs.publish(out)
    (before,) = swapped
    assert {out.stat().st_ino, *((out / name).stat().st_ino for name in listed(out))} <= before
    assert out.parent.stat().st_ino in synced - before


def test_a_page_that_no_file_can_be_called_like_is_refused(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory `x.md` would stand where the file of `x` does."""
    find = docs._store.documents.tree

    def with_a_bad_name(*arguments: Any) -> Any:
        nodes = find(*arguments)
        return [type(each)(**{**_fields(each), "path": each.path + ".md/y"}) for each in nodes]

    monkeypatch.setattr(docs._store.documents, "tree", with_a_bad_name)
    with pytest.raises(InvalidPath):
        docs.publish(out)
    assert beside(out) == []


def _fields(value: Document | Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


# skills


def test_a_skill_that_was_edited_is_loaded_like_any_page(docs: Documents, out: Path) -> None:
    docs.write("tools/uv/SKILL", "Run `uv sync`.")
    docs.publish(out)
    file = out / "tools" / "uv" / "SKILL.md"
    assert "name: uv\n" in file.read_text()
    assert docs.load(out) == NOTHING
    file.write_text(file.read_text().replace("sync", "lock"))
    assert docs.load(out) == replace(NOTHING, changed=("~/memory/tools/uv/SKILL",))
    docs.publish(out)
    assert docs.load(out) == NOTHING


def test_a_skill_that_was_published_without_a_name_is_no_edit(docs: Documents, out: Path) -> None:
    """As every one was before they had names."""
    docs.write("tools/uv/SKILL", "Run `uv sync`.")
    docs.publish(out)
    file = out / "tools" / "uv" / "SKILL.md"
    file.write_text(file.read_text().replace("name: uv\n", ""))
    said = manifest(out)
    for each in said["files"]:
        if each["path"] == "tools/uv/SKILL.md":
            each["sha256"] = sha256(file.read_bytes()).hexdigest()
            each["bytes"] = file.stat().st_size
    (out / MANIFEST).write_text(json.dumps(said))
    assert docs.load(out) == NOTHING
    docs.publish(out)
    docs.write("tools/uv/SKILL", "Run `uv lock`.")
    docs.publish(out)
    assert "name: uv\n" in file.read_text()
    assert beside(out) == ["out"]
