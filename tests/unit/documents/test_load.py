"""D8: what people write as files comes back into the tree, and nothing is overwritten."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

import recollect
from recollect.documents.files import Folder, target_of
from recollect.documents.load import TRIES_MAX, Loading
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder
from recollect.documents.tree import Documents
from recollect.errors import (
    MassDeletion,
    NotAllowed,
    StaleVersion,
    StoreBusy,
    TooLarge,
    UnloadedEdits,
    UnusableDirectory,
)
from recollect.types.pages import Author, AuthorKind, Because, Document, Edit, TreeLimits

NOTHING = Loading()


@pytest.fixture
def docs(memory: recollect.Memory) -> Documents:
    return memory.space().documents


@pytest.fixture
def out(tmp_path: Path, docs: Documents) -> Path:
    """A published tree: a page with two below it, a directory only, and a page alone."""
    docs.write("people", "All of them.")
    docs.write("people/Ana", "Likes tea.\n\nLives in Ulm.\n\nHas a cat.", tags=["person"])
    docs.write("people/Bob", "Bob.", description="A friend")
    docs.write("places/Ulm", "A town.")
    docs.write("work", "# Work")
    docs.publish(tmp_path / "out")
    return tmp_path / "out"


def paths(docs: Documents) -> list[str]:
    return [node.path.removeprefix("~/memory").removeprefix("/") for node in docs.tree()]


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def problems(loading: Loading) -> dict[str, str]:
    return {each.file: each.reason for each in loading.problems}


# what is edited


def test_what_nobody_touched_changes_nothing(docs: Documents, out: Path) -> None:
    before = {node.path: node.version for node in docs.tree()}
    assert docs.load(out) == NOTHING
    assert {node.path: node.version for node in docs.tree()} == before


def test_an_edited_file_is_a_new_version_of_its_document(docs: Documents, out: Path) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    assert docs.load(out).changed == ("~/memory/people/Ana",)
    ana = docs.read("people/Ana")
    assert ana.body == "Likes coffee.\n\nLives in Ulm.\n\nHas a cat."
    assert (ana.version, ana.reason, ana.author) == (2, "edited as a file", docs.holder.author)


def test_a_load_that_is_repeated_makes_no_version(docs: Documents, out: Path) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    docs.load(out)
    assert docs.load(out) == NOTHING
    assert docs.read("people/Ana").version == 2


def test_front_matter_is_edited_like_the_body(docs: Documents, out: Path) -> None:
    edit(out / "people" / "Ana.md", "title: Ana\n", "title: Ana Pop\ndescription: She\n")
    edit(out / "people" / "Ana.md", "- person\n", "- person\n- friend\n")
    docs.load(out)
    ana = docs.read("people/Ana")
    assert (ana.title, ana.description, ana.tags) == ("Ana Pop", "She", ("person", "friend"))


def test_front_matter_that_is_gone_has_not_changed(docs: Documents, out: Path) -> None:
    (out / "people" / "Bob.md").write_text("Bob is back.\n")
    assert docs.load(out).changed == ("~/memory/people/Bob",)
    bob = docs.read("people/Bob")
    assert (bob.body, bob.title, bob.description) == ("Bob is back.", "Bob", "A friend")


def test_front_matter_written_in_another_way_is_no_edit(docs: Documents, out: Path) -> None:
    edit(out / "people" / "Bob.md", "title: Bob", "title:   'Bob'  # as ever")
    assert docs.load(out) == NOTHING


def test_a_dry_run_tells_and_does_nothing(docs: Documents, out: Path) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    (out / "work.md").unlink()
    loading = docs.load(out, dry_run=True)
    assert (loading.changed, loading.deleted) == (("~/memory/people/Ana",), ("~/memory/work",))
    assert docs.read("people/Ana").version == 1
    assert docs.find("work") is not None


def test_secrets_in_files_are_redacted_and_loading_again_finds_nothing(
    docs: Documents, out: Path
) -> None:
    secret = "gh" + "p_" + "a1B2" * 9
    edit(out / "work.md", "# Work", f"token: {secret}")
    docs.load(out)
    assert secret not in docs.read("work").body
    assert docs.load(out) == NOTHING


# both changed


def test_a_file_whose_document_has_changed_is_kept_as_a_copy(docs: Documents, out: Path) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    edit(out / "work.md", "# Work", "# Play")
    docs.patch("people/Ana", "a cat", "two cats")
    file = (out / "people" / "Ana.md").read_bytes()
    assert docs.load(out, dry_run=True).conflicts[0].copy == ""
    loading = docs.load(out)
    assert loading.changed == ("~/memory/work",), "it does not hold up the rest"
    (conflict,) = loading.conflicts
    assert (conflict.file, conflict.path) == ("people/Ana.md", "~/memory/people/Ana")
    assert "coffee" in conflict.theirs
    assert "two cats" in conflict.ours
    assert "version 2" in conflict.reason
    assert Path(conflict.copy).read_bytes() == file == (out / "people" / "Ana.md").read_bytes()
    assert stat.S_IMODE(Path(conflict.copy).stat().st_mode) == 0o600
    ana = docs.read("people/Ana")
    assert (ana.version, "two cats" in ana.body, "coffee" in ana.body) == (2, True, False)

    assert docs.load(out) == NOTHING, "it was said once"
    (kept,) = docs.publish(out).kept_aside
    assert Path(conflict.copy).is_relative_to(kept)
    assert "two cats" in (out / "people" / "Ana.md").read_text()
    assert Path(conflict.copy).read_bytes() == file


def test_a_file_in_conflict_that_cannot_be_copied_stays_an_edit(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(out / "work.md", "# Work", "# Play")
    docs.append("work", "more")

    def fails(_self: Folder, _path: str, _data: bytes, _time: object = None) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "write", fails)
        loading = docs.load(out)
    assert [each.copy for each in loading.conflicts] == [""]
    assert "No space" in problems(loading)[".recollect.json"]
    with pytest.raises(UnloadedEdits):
        docs.publish(out)
    assert Path(docs.load(out).conflicts[0].copy).exists()


def test_a_file_in_conflict_that_is_edited_again_overwrites_nothing(
    docs: Documents, out: Path
) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    docs.patch("people/Ana", "tea", "water")
    copies = {docs.load(out).conflicts[0].copy}
    edit(out / "people" / "Ana.md", "coffee", "cocoa")
    copies.add(docs.load(out).conflicts[0].copy)
    assert sorted(
        re.findall("coffee|cocoa", "".join(Path(each).read_text() for each in copies))
    ) == [
        *("cocoa", "coffee"),
    ]
    assert "water" in docs.read("people/Ana").body


def test_a_document_that_moved_meanwhile_has_changed(docs: Documents, out: Path) -> None:
    docs.move("people/Bob", "friends/Bob")
    edit(out / "people" / "Bob.md", "Bob.\n", "Robert.\n")
    (conflict,) = docs.load(out).conflicts
    assert conflict.path == "~/memory/friends/Bob"
    assert docs.read("friends/Bob").body == "Bob."


def test_a_document_that_was_moved_along_with_another_is_edited_where_it_stands(
    docs: Documents, out: Path
) -> None:
    docs.move("people", "folk")
    edit(out / "people" / "Bob.md", "Bob.\n", "Robert.\n")
    assert docs.load(out).changed == ("~/memory/folk/Bob",)


def test_a_conflict_is_settled_by_saying_which_version_the_file_is_made_from(
    docs: Documents, out: Path
) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    docs.patch("people/Ana", "tea", "water")
    edit(out / "people" / "Ana.md", "Likes coffee.", "Likes coffee and water.")
    edit(out / "people" / "Ana.md", "version: 1", "version: 2")
    assert docs.load(out).changed == ("~/memory/people/Ana",)
    assert docs.read("people/Ana").body.startswith("Likes coffee and water.")


def test_a_conflict_does_not_hold_up_the_rest(docs: Documents, out: Path) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    docs.patch("people/Ana", "tea", "water")
    edit(out / "work.md", "# Work", "# Play")
    loading = docs.load(out)
    assert loading.changed == ("~/memory/work",)
    assert len(loading.conflicts) == 1


def test_an_edit_that_was_loaded_stays_loaded_when_the_document_goes_on(
    docs: Documents, out: Path
) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    docs.load(out)
    docs.patch("people/Ana", "coffee", "water")
    assert docs.load(out) == NOTHING
    assert "water" in docs.read("people/Ana").body


def test_an_edit_of_a_deleted_document_is_a_conflict(docs: Documents, out: Path) -> None:
    edit(out / "work.md", "# Work", "# Play")
    docs.delete("work")
    (conflict,) = docs.load(out).conflicts
    assert (conflict.theirs, conflict.ours) == ("# Play", "")
    assert docs.find("work") is None


def test_a_file_of_a_deleted_document_that_nobody_touched_is_left_alone(
    docs: Documents, out: Path
) -> None:
    docs.delete("work")
    assert docs.load(out) == NOTHING
    assert docs.find("work") is None


# new files


def test_a_new_file_is_a_new_document(docs: Documents, out: Path) -> None:
    (out / "people" / "Cleo.md").write_text("---\ntitle: Cleo P\ntags: [a]\n---\nHi.\n")
    (out / "new").mkdir()
    (out / "new" / "page.md").write_text("Some words.\n\n# A Heading\n")
    (out / "new" / "plain.md").write_text("no heading\n")
    assert docs.load(out).created == (
        *("~/memory/new/page", "~/memory/new/plain", "~/memory/people/Cleo"),
    )
    cleo = docs.read("people/Cleo")
    assert (cleo.title, cleo.tags, cleo.body) == ("Cleo P", ("a",), "Hi.")
    assert docs.read("new/page").title == "A Heading"
    assert docs.read("new/plain").title == "plain"
    assert docs.load(out) == NOTHING


def test_a_file_for_a_page_that_was_only_a_directory_fills_it(docs: Documents, out: Path) -> None:
    (out / "places.md").write_text("All places.\n")
    assert docs.load(out).changed == ("~/memory/places",)
    assert docs.read("places").version == 2


def test_the_page_at_the_top_has_a_file_of_its_own(docs: Documents, out: Path) -> None:
    (out / "~.md").write_text("Welcome.\n")
    assert docs.load(out).changed == ("~/memory",)
    docs.publish(out)
    assert (out / "~.md").read_text().endswith("\nWelcome.\n")
    (out / "~.md").unlink()
    assert len(docs.load(out).conflicts) == 1
    docs.publish(out)
    assert (out / "~.md").exists(), "it is what the directory stands for"


def test_an_edit_of_a_deleted_document_is_settled_without_its_id(
    docs: Documents, out: Path
) -> None:
    edit(out / "work.md", "# Work", "# Play")
    docs.delete("work")
    version = docs.history("work")[0].number
    edit(out / "work.md", "version: 1", f"version: {version}")
    (conflict,) = docs.load(out).conflicts
    assert "without the line `id`" in conflict.reason
    lines = (out / "work.md").read_text().splitlines(keepends=True)
    (out / "work.md").write_text("".join(line for line in lines if not line.startswith("id:")))
    assert docs.load(out).created == ("~/memory/work",)
    assert docs.load(out) == NOTHING


def test_a_new_file_takes_the_place_of_a_document_that_it_names(docs: Documents, out: Path) -> None:
    docs.write("new", "said there")
    (out / "new.md").write_text("said here\n")
    (conflict,) = docs.load(out).conflicts
    id_line, version_line = re.findall(r"`((?:id|version): [^`]*)`", conflict.reason)
    (out / "new.md").write_text(f"---\n{id_line}\n{version_line}\n---\nsaid here\n")
    assert docs.load(out).changed == ("~/memory/new",)
    assert docs.read("new").body == "said here"


def test_a_new_file_where_another_document_stands_is_a_conflict(docs: Documents, out: Path) -> None:
    docs.write("new", "said there")
    (out / "new.md").write_text("said here\n")
    (conflict,) = docs.load(out).conflicts
    assert (conflict.theirs, conflict.ours) == ("said here", "said there")
    assert docs.read("new").body == "said there"


def test_bad_names_are_reported_and_the_rest_is_loaded(docs: Documents, out: Path) -> None:
    (out / "con.md").write_text("x")
    (out / "a:b.md").write_text("x")
    (out / "good.md").write_text("x")
    loading = docs.load(out)
    assert loading.created == ("~/memory/good",)
    assert set(problems(loading)) == {"con.md", "a:b.md"}


# moves


@pytest.mark.parametrize(
    ("moves", "reason"),
    [
        ([("work.md", "people/index.md"), ("people.md", "work.md")], "are documents below"),
        ([("people.md", "people/index.md")], "below itself"),
        ([("people.md", "everybody.md")], "move that directory too"),
        ([("work.md", "places.md")], "there is a document at"),
        (
            [("work.md", "x.md"), ("people/Bob.md", "work.md"), ("x.md", "people/Bob.md")],
            "document at",
        ),
    ],
)
def test_a_move_that_is_not_simple_is_reported_and_loses_nothing(
    docs: Documents, out: Path, moves: list[tuple[str, str]], reason: str
) -> None:
    before = {node.id: docs.read(node.id).body for node in docs.tree()}
    for source, target in moves:
        (out / source).rename(out / target)
    loading = docs.load(out)
    assert reason in " ".join(problems(loading).values())
    assert (loading.deleted, loading.created) == ((), ())
    assert {node.id: docs.read(node.id).body for node in docs.tree()} == before
    assert problems(docs.load(out)) == problems(loading), "until it is mended"
    with pytest.raises(UnloadedEdits):
        docs.publish(out)


def test_an_edit_of_a_file_that_cannot_be_moved_is_loaded(docs: Documents, out: Path) -> None:
    edit(out / "work.md", "# Work", "# Play")
    (out / "work.md").rename(out / "places.md")
    loading = docs.load(out)
    assert (loading.changed, list(problems(loading))) == (("~/memory/work",), ["places.md"])
    again = docs.load(out)
    assert (again.changed, list(problems(again))) == ((), ["places.md"])
    (out / "places.md").rename(out / "job.md")
    assert [each.target for each in docs.load(out).moved] == ["~/memory/job"]
    assert docs.load(out) == NOTHING


def test_a_document_that_was_moved_elsewhere_stays_there(docs: Documents, out: Path) -> None:
    docs.move("work", "job")
    (out / "work.md").rename(out / "trade.md")
    loading = docs.load(out)
    assert (loading.moved, "is at ~/memory/job" in problems(loading)["trade.md"]) == ((), True)
    (out / "trade.md").rename(out / "job.md")
    assert docs.load(out) == NOTHING
    docs.publish(out)


def test_a_file_takes_the_place_of_one_that_is_gone(docs: Documents, out: Path) -> None:
    bob = docs.read("people/Bob").id
    (out / "people" / "Bob.md").rename(out / "work.md")
    loading = docs.load(out)
    assert loading.deleted == ("~/memory/work",)
    assert [each.target for each in loading.moved] == ["~/memory/work"]
    assert docs.read("work").id == bob
    assert docs.load(out) == NOTHING


def test_a_file_that_was_moved_moves_its_document(docs: Documents, out: Path) -> None:
    bob = docs.read("people/Bob").id
    (out / "people" / "Bob.md").rename(out / "Bobby.md")
    (move,) = docs.load(out).moved
    assert (move.source, move.target) == ("~/memory/people/Bob", "~/memory/Bobby")
    assert docs.read("Bobby").id == bob
    assert docs.read("people/Bob").id == bob, "the old path still leads there"
    assert docs.load(out) == NOTHING


def test_a_moved_and_edited_file_is_both(docs: Documents, out: Path) -> None:
    edit(out / "people" / "Bob.md", "Bob.\n", "Robert.\n")
    (out / "people" / "Bob.md").rename(out / "Robert.md")
    loading = docs.load(out)
    assert (len(loading.moved), loading.changed) == (1, ("~/memory/people/Bob",))
    assert docs.read("Robert").body == "Robert."
    assert docs.load(out) == NOTHING


def test_a_page_moved_with_its_directory_is_one_move(docs: Documents, out: Path) -> None:
    (out / "people").rename(out / "folk")
    (out / "people.md").rename(out / "folk.md")
    loading = docs.load(out)
    assert [each.target for each in loading.moved] == ["~/memory/folk"]
    assert (loading.conflicts, loading.problems, loading.deleted) == ((), (), ())
    assert paths(docs) == ["", "folk", "folk/Ana", "folk/Bob", "places", "places/Ulm", "work"]
    assert docs.load(out) == NOTHING


def test_a_directory_moved_without_its_page_leaves_the_page(docs: Documents, out: Path) -> None:
    (out / "people").rename(out / "folk")
    docs.load(out)
    assert paths(docs) == [
        "",
        "folk",
        "folk/Ana",
        "folk/Bob",
        "people",
        "places",
        "places/Ulm",
        "work",
    ]


def test_a_directory_alone_that_was_renamed_takes_its_old_name_with_it(
    docs: Documents, out: Path
) -> None:
    (out / "places").rename(out / "towns")
    loading = docs.load(out)
    assert loading.deleted == ("~/memory/places",)
    assert "towns/Ulm" in paths(docs)
    assert "places" not in paths(docs)


def test_a_change_of_case_is_a_move(docs: Documents, out: Path) -> None:
    (out / "work.md").rename(out / "Work.md")
    docs.load(out)
    assert docs.read("work").path == "~/memory/Work"


def test_a_new_page_below_one_that_was_renamed_is_made_once_and_there(
    docs: Documents, out: Path
) -> None:
    (out / "work.md").rename(out / "job.md")
    (out / "work").mkdir()
    (out / "work" / "new.md").write_text("new\n")
    loading = docs.load(out)
    assert loading.created == ("~/memory/work/new",)
    assert {"job", "work", "work/new"} < set(paths(docs))
    assert "job/new" not in paths(docs)
    assert docs.load(out) == NOTHING


def test_a_copy_with_the_same_id_is_reported_and_the_original_stays(
    docs: Documents, out: Path
) -> None:
    (out / "copy.md").write_bytes((out / "work.md").read_bytes())
    loading = docs.load(out)
    assert "id" in problems(loading)["copy.md"]
    assert (loading.moved, loading.created, loading.deleted) == ((), (), ())


def test_of_two_copies_none_is_taken_for_the_original_that_is_gone(
    docs: Documents, out: Path
) -> None:
    for name in ("one.md", "two.md"):
        (out / name).write_bytes((out / "work.md").read_bytes())
    (out / "work.md").unlink()
    loading = docs.load(out)
    assert set(problems(loading)) == {"one.md", "two.md"}
    assert docs.read("work").version == 1


# what is gone


def test_a_removed_file_deletes_its_document(docs: Documents, out: Path) -> None:
    (out / "people" / "Bob.md").unlink()
    assert docs.load(out).deleted == ("~/memory/people/Bob",)
    assert docs.find("people/Bob") is None
    assert docs.load(out) == NOTHING
    docs.restore("people/Bob")
    assert docs.load(out) == NOTHING, "it was deleted once, and somebody wanted it back"


@pytest.mark.parametrize("who", ["changed", "has others below it"])
def test_a_document_that_stays_though_its_file_was_removed_is_published_again(
    docs: Documents, out: Path, who: str
) -> None:
    name = "work" if who == "changed" else "people"
    if who == "changed":
        docs.append("work", "more")
    (out / f"{name}.md").unlink()
    body = docs.read(name).body
    (conflict,) = docs.load(out).conflicts
    assert (conflict.file, conflict.theirs, conflict.ours) == (f"{name}.md", "", body)
    assert docs.load(out) == NOTHING
    assert docs.read(name).body == body
    docs.publish(out)
    assert body in (out / f"{name}.md").read_text()


def test_a_removed_directory_goes_with_all_that_was_in_it(docs: Documents, out: Path) -> None:
    for file in (out / "people").iterdir():
        file.unlink()
    (out / "people").rmdir()
    (out / "people.md").unlink()
    (out / "places" / "Ulm.md").unlink()
    (out / "places").rmdir()
    assert len(docs.load(out).deleted) == 5
    assert paths(docs) == ["", "work"]


def test_a_directory_that_lost_all_its_files_deletes_nothing_unasked(
    docs: Documents, out: Path
) -> None:
    for file in out.rglob("*.md"):
        file.unlink()
    for folder in ("people", "places"):
        (out / folder).rmdir()
    with pytest.raises(MassDeletion, match=r"6 of 6 documents.*--allow-deletions"):
        docs.load(out)
    assert len(docs.tree()) == 7
    assert len(docs.load(out, dry_run=True).deleted) == 6
    assert len(docs.load(out, allow_deletions=True).deleted) == 6
    assert paths(docs) == [""]


def test_what_came_to_stand_below_a_removed_page_stays(docs: Documents, out: Path) -> None:
    docs.write("work/new", "from somebody else")
    (out / "work.md").unlink()
    docs.load(out)
    assert docs.read("work/new").body == "from somebody else"


def test_a_removed_document_that_others_link_to_leaves_broken_links(
    docs: Documents, tmp_path: Path
) -> None:
    docs.write("a", "see [[b]]")
    docs.write("b", "b")
    docs.publish(tmp_path / "out")
    (tmp_path / "out" / "b.md").unlink()
    docs.load(tmp_path / "out")
    assert [each.source for each in docs.broken_links()] == ["~/memory/a"]


def test_nothing_is_deleted_while_files_cannot_be_read(docs: Documents, out: Path) -> None:
    """A moved file with broken front matter looks like one removed and one that is bad."""
    (out / "work.md").rename(out / "job.md")
    edit(out / "job.md", "title: work", "title: {")
    loading = docs.load(out)
    assert set(problems(loading)) == {"job.md", "work.md"}
    assert docs.find("work") is not None


def test_a_file_replaced_by_a_link_is_not_removed(docs: Documents, out: Path) -> None:
    (out / "work.md").unlink()
    (out / "work.md").symlink_to(out / "people.md")
    loading = docs.load(out)
    assert (loading.deleted, set(problems(loading))) == ((), {"work.md"})
    assert docs.find("work") is not None


def test_an_old_generation_that_is_not_whole_is_not_loaded(docs: Documents, out: Path) -> None:
    (out / ".recollect-unfinished").write_text("")
    (out / "work.md").unlink()
    for verb in (docs.load, docs.publish):
        with pytest.raises(UnusableDirectory, match="old generation"):
            verb(out)
    assert docs.find("work") is not None


# hostile files


BOMB = "---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n"


def test_bad_files_are_reported_one_by_one_and_the_rest_is_loaded(
    docs: Documents, out: Path
) -> None:
    hostile = {
        "bomb.md": BOMB.encode(),
        "tag.md": b"---\ntitle: !!python/object/apply:os.system ['id']\n---\n",
        "deep.md": b"---\na: " + b"[" * 10_000 + b"\n---\n",
        "huge.md": b"x" * 600_000,
        "binary.md": bytes(range(256)),
        "nul.md": b"a\0b",
        "types.md": b"---\ntitle: [a]\n---\n",
        "open.md": b"---\ntitle: a\n",
        "twice.md": b"---\ntitle: a\ntitle: b\n---\n",
        "long.md": b"---\ntitle: " + b"x" * 1000 + b"\n---\n",
        "tags.md": b"---\ntags: [" + b", ".join(b"t%d" % n for n in range(100)) + b"]\n---\n",
        "link.md": b"---\nlinks: ['../../etc/passwd']\n---\n",
    }
    for name, data in hostile.items():
        (out / name).write_bytes(data)
    (out / "good.md").write_bytes(b"\xef\xbb\xbf---\r\ntitle: Good\r\n---\r\none\r\ntwo\r\n")
    (out / ".hidden.md").write_text("x")
    os.mkfifo(out / "pipe.md")
    loading = docs.load(out)
    assert set(problems(loading)) == {*hostile, ".hidden.md", "pipe.md"}
    assert loading.created == ("~/memory/good",)
    assert (docs.read("good").title, docs.read("good").body) == ("Good", "one\ntwo")


def test_a_key_that_has_no_place_is_reported_and_the_file_is_loaded(
    docs: Documents, out: Path
) -> None:
    (out / "post.md").write_text("---\ntitle: Post\nlayout: x\n---\n")
    loading = docs.load(out)
    assert loading.created == ("~/memory/post",)
    assert "layout" in problems(loading)["post.md"]


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"format": 1}', "null"])
def test_a_manifest_that_cannot_be_read_is_reported(
    docs: Documents, out: Path, manifest: str
) -> None:
    (out / ".recollect.json").write_text(manifest)
    (out / "work.md").unlink()
    edit(out / "people" / "Ana.md", "tea", "coffee")
    loading = docs.load(out)
    assert list(problems(loading)) == [".recollect.json"]
    assert loading.deleted == ()
    assert loading.changed == ("~/memory/people/Ana",), "its front matter says what it is made from"


def test_a_manifest_gives_nobody_more_than_they_have(
    memory: recollect.Memory, docs: Documents, tmp_path: Path
) -> None:
    """A made-up entry for a document elsewhere does not delete it when its file is missing."""
    docs.write("mine/a", "a")
    docs.write("theirs/secret", "secret")
    holder = docs.held_by(Holder(root=read_path("mine")))
    holder.publish(tmp_path / "out")
    manifest = tmp_path / "out" / ".recollect.json"
    edit(manifest, docs.read("mine/a").id, docs.read("theirs/secret").id)
    (tmp_path / "out" / "a.md").unlink()
    assert holder.load(tmp_path / "out") == NOTHING
    assert docs.read("theirs/secret").version == 1


def test_an_id_from_elsewhere_reaches_nothing_there(docs: Documents, tmp_path: Path) -> None:
    docs.write("mine/a", "a")
    secret = docs.write("theirs/secret", "secret")
    holder = docs.held_by(Holder(root=read_path("mine")))
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.md").write_text(f"---\nid: {secret.id}\nversion: 1\n---\nmine now\n")
    assert holder.load(folder).created == ("~/memory/mine/b",)
    assert docs.read("theirs/secret").body == "secret"


# who may


def test_pages_of_consolidation_are_not_edited_as_files(docs: Documents, tmp_path: Path) -> None:
    consolidation = docs.held_by(Holder(author=Author(AuthorKind.CONSOLIDATION, "c")))
    consolidation.write("MEMORY", "theirs")
    consolidation.write("skills/x", "theirs")
    docs.publish(tmp_path / "out")
    edit(tmp_path / "out" / "MEMORY.md", "theirs", "mine")
    (tmp_path / "out" / "skills" / "x.md").unlink()
    loading = docs.load(tmp_path / "out")
    assert set(problems(loading)) == {"MEMORY.md", "skills/x.md"}
    assert docs.read("MEMORY").body == "theirs"
    assert docs.read("skills/x").body == "theirs"


def test_a_holder_loads_only_into_its_part(docs: Documents, tmp_path: Path) -> None:
    docs.write("mine", "x")
    holder = docs.held_by(Holder(root=read_path("mine")))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").write_text("a")
    assert holder.load(tmp_path / "in").created == ("~/memory/mine/a",)
    with pytest.raises(NotAllowed):
        holder.load(tmp_path / "in", path="~/memory")


# plain directories


def test_a_directory_that_was_never_published_is_all_new_and_can_be_repeated(
    docs: Documents, tmp_path: Path
) -> None:
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "one.md").write_text("# One\n\nText.\n")
    (tmp_path / "notes" / "deep" / "two.md").write_text("Two.\r\nLines.\r\n")
    assert docs.load(tmp_path / "notes", path="notes").created == (
        *("~/memory/notes/one", "~/memory/notes/deep/two"),
    )
    assert docs.load(tmp_path / "notes", path="notes") == NOTHING
    assert docs.read("notes/deep/two").body == "Two.\nLines."
    (tmp_path / "notes" / "deep.md").write_text("Now a page.")
    assert docs.load(tmp_path / "notes", path="notes").changed == ("~/memory/notes/deep",)
    (tmp_path / "notes" / "one.md").unlink()
    assert docs.load(tmp_path / "notes", path="notes") == NOTHING, "nobody knows that it was there"


@pytest.mark.parametrize("is_current", [True, False])
def test_files_copied_without_their_manifest_still_know_what_they_are_made_from(
    docs: Documents, out: Path, tmp_path: Path, is_current: bool
) -> None:
    (out / ".recollect.json").unlink()
    out.rename(tmp_path / "copy")
    edit(tmp_path / "copy" / "people" / "Ana.md", "tea", "coffee")
    if not is_current:
        docs.patch("people/Ana", "a cat", "two cats")
    loading = docs.load(tmp_path / "copy")
    assert (loading.changed == ("~/memory/people/Ana",)) is is_current
    assert bool(loading.conflicts) is not is_current
    assert (loading.created, loading.problems) == ((), ())
    assert "Ana.md" not in listed_beside(tmp_path / "copy"), "it is not ours to publish over"


def listed_beside(directory: Path) -> list[str]:
    return [each.name for each in directory.parent.rglob("*") if directory not in each.parents]


def test_a_copy_brings_back_what_was_deleted_since(
    docs: Documents, out: Path, tmp_path: Path
) -> None:
    (out / ".recollect.json").unlink()
    out.rename(tmp_path / "copy")
    docs.delete("people", below=True)
    assert len(docs.load(tmp_path / "copy").created) == 3
    assert docs.read("people/Bob").description == "A friend"
    assert docs.load(tmp_path / "copy") == NOTHING


def test_a_directory_published_by_another_space_is_loaded_as_a_copy(
    memory: recollect.Memory, docs: Documents, out: Path
) -> None:
    other = memory.space("other").documents
    assert len(other.load(out).created) == 5
    assert paths(other) == paths(docs)
    assert other.read("people/Ana").body == docs.read("people/Ana").body
    assert other.load(out) == NOTHING


def test_a_lost_store_is_made_again_from_what_it_published(docs: Documents, out: Path) -> None:
    """D8."""
    with recollect.open(":memory:") as other:
        made = other.space().documents
        assert len(made.load(out).created) == 5
        assert paths(made) == paths(docs)
        assert made.read("people/Ana").tags == ("person",)
        assert made.load(out) == NOTHING


@pytest.mark.parametrize("kind", ["missing", "link", "file"])
def test_what_is_no_directory_is_not_loaded(docs: Documents, tmp_path: Path, kind: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnusableDirectory):
        docs.load(tmp_path / kind)


# others


@pytest.fixture
def rival(docs: Documents, monkeypatch: pytest.MonkeyPatch) -> list[Document]:
    """Somebody else changes a document just before each of our changes is made."""
    documents = docs._store.documents
    apply = documents.apply
    made: list[Document] = []

    def beaten(
        space: str, edits: list[Edit], because: Because, limits: TreeLimits, *more: object
    ) -> list[Document]:
        if because.reason == "edited as a file" and len(made) < TRIES_MAX - 1:
            monkeypatch.setattr(documents, "apply", apply)
            made.append(docs.append("people/Ana", f"note {len(made)}"))
            monkeypatch.setattr(documents, "apply", beaten)
        return apply(space, edits, because, limits, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(documents, "apply", beaten)
    return made


def test_a_load_is_made_again_when_others_are_faster(
    docs: Documents, out: Path, rival: list[Document]
) -> None:
    edit(out / "people" / "Ana.md", "tea", "coffee")
    (out / "new.md").write_text("new")
    loading = docs.load(out)
    assert (loading.created, len(loading.conflicts)) == (("~/memory/new",), 1)
    body = docs.read("people/Ana").body
    assert rival
    assert all(f"note {number}" in body for number in range(len(rival)))


def test_all_is_loaded_or_nothing(
    docs: Documents, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = docs._store.documents
    apply = documents.apply

    def fails_at_last(space: str, edits: list[Edit], *more: object) -> list[Document]:
        bad = [*edits, edits[-1]]  # the same creation twice: the second is refused
        return apply(space, bad, *more)  # type: ignore[arg-type]

    edit(out / "people" / "Ana.md", "tea", "coffee")
    (out / "new.md").write_text("x")
    monkeypatch.setattr(documents, "apply", fails_at_last)
    with pytest.raises((StaleVersion, recollect.RecollectError)):
        docs.load(out)
    monkeypatch.undo()
    assert docs.read("people/Ana").version == 1
    assert docs.find("new") is None


def test_a_tree_that_is_full_takes_nothing(tmp_path: Path) -> None:
    with recollect.open(":memory:", settings={"documents_max": 3}) as memory:
        docs = memory.space().documents
        (tmp_path / "in").mkdir()
        for name in "abc":
            (tmp_path / "in" / f"{name}.md").write_text(name)
        with pytest.raises(TooLarge):
            docs.load(tmp_path / "in")
        assert docs.tree() == []


def test_nobody_loads_while_somebody_publishes(docs: Documents, out: Path) -> None:
    with target_of(out) as target:
        held = target.held(is_shared=False)
        assert held is not None
        with held, pytest.raises(StoreBusy):
            docs.load(out)
    assert docs.load(out) == NOTHING
