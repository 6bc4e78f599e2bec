"""What people write into published files is taken up, once, and what cannot be is never lost."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.consolidation.edits import (
    LINES_ANSWERED_MAX,
    LINES_CHANGED_MAX,
    NOTHING,
    WRITTEN_ANEW,
    Absorbed,
    absorb,
)
from recollect.consolidation.files import MemoryFiles
from recollect.consolidation.pages import MEMORY, RAW, SUMMARY
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.documents.tree import Documents
from recollect.types.facts import Fact, Trust
from recollect.types.pages import Author, AuthorKind

SPACE = "alice"
HANDBOOK = """What is known here.

## Preferences

- Prefers tea. (2026-01-02)
- Likes quiet. (2026-01-02)

## Project shop

It is in /srv/shop.

### How things are done

- Tests run with `make`. (2026-01-01)"""
OVERVIEW = "## Preferences and instructions\n\n- Prefers tea.\n\n## What is in memory\n\n- [[a]]"


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space(SPACE)


@pytest.fixture
def facts(space: recollect.Space) -> recollect.Facts:
    for content in ("Prefers tea.", "Likes quiet.", "In /srv/shop, tests run with `make`."):
        space.facts.add(content)
    return space.facts


@pytest.fixture
def own(space: recollect.Space) -> Documents:
    """The tree as consolidation holds it."""
    author = Author(kind=AuthorKind.CONSOLIDATION, name="consolidation")
    return space.documents.held_by(Holder(author=author, root=memory_root()))


@pytest.fixture
def files(memory: recollect.Memory, tmp_path: Path) -> MemoryFiles:
    settings = recollect.Settings(memories_root=str(tmp_path / "published"))
    return MemoryFiles(
        memory.store,
        settings,
        lambda space: memory.space(space).documents,
        lambda space: memory.space(space).facts,
    )


@pytest.fixture
def out(space: recollect.Space, facts: recollect.Facts, own: Documents, files: MemoryFiles) -> Path:
    own.write(MEMORY, HANDBOOK, title="Memory", description="The handbook.")
    own.write(SUMMARY, OVERVIEW, title="Memory summary")
    own.write(RAW, "Evidence.", title="Raw memories")
    space.documents.write("people/Ana", "Likes milk.")
    assert files.write(SPACE)
    directory = files.directory(SPACE)
    assert directory is not None
    return directory


@pytest.fixture
def take(space: recollect.Space, out: Path) -> Callable[[], Absorbed]:
    return lambda: absorb(space.documents, space.facts, out)


Take = Callable[[], Absorbed]


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def contents(facts: recollect.Facts) -> set[str]:
    return {fact.content for fact in facts.list()}


def reasons(found: Absorbed) -> dict[str, str]:
    """What is said of each file."""
    return {
        each.file: "; ".join(one.reason for one in found.left if one.file == each.file)
        for each in found.left
    }


def id_of(facts: recollect.Facts, content: str) -> str:
    return next(fact.id for fact in facts.list() if fact.content == content)


def beside(directory: Path) -> list[Path]:
    return [each for each in directory.parent.iterdir() if each != directory]


def test_what_nobody_edited_is_nothing(take: Take, facts: recollect.Facts) -> None:
    before = facts.list()
    assert take() == NOTHING
    assert facts.list() == before


def test_a_line_that_was_added_is_a_fact_of_the_user(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    edit(out / "MEMORY.md", "- Likes quiet.", "- Has two cats.\n- Likes quiet.")
    found = take()
    fact = facts.get(found.added[0])
    assert fact is not None
    assert (fact.content, fact.trust, fact.sources) == ("Has two cats.", Trust.USER, ())
    assert fact.tags == ("preference",), "it stands among the preferences"
    assert found == Absorbed(added=(fact.id,))


@pytest.mark.parametrize("new", ["", "- Likes noise.\n"], ids=["deleted", "changed"])
def test_a_line_that_is_not_there_any_more_is_answered_with_its_fact_and_the_command(
    take: Take, facts: recollect.Facts, out: Path, new: str
) -> None:
    before = facts.list()
    edit(out / "MEMORY.md", "- Likes quiet. (2026-01-02)\n", new)
    found, quiet = take(), id_of(facts, "Likes quiet.")
    assert found.added == ()
    assert facts.list() == before
    assert reasons(found)["MEMORY.md"] == (
        f"line 6 is written again; it comes from fact {quiet}: change that with recollect facts "
        f"edit {quiet} TEXT, or recollect facts delete {quiet}"
    )


def test_what_is_said_below_a_project_is_looked_for_and_kept_there(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    facts.add("In /srv/other, tests run with `make`.")
    edit(out / "MEMORY.md", "Tests run with `make`.", "Tests run with `tox`.")
    edit(out / "MEMORY.md", "are done\n", "are done\n\n- `make db` comes first.\n")
    found = take()
    assert id_of(facts, "In /srv/shop, tests run with `make`.") in reasons(found)["MEMORY.md"]
    assert id_of(facts, "In /srv/other, tests run with `make`.") not in reasons(found)["MEMORY.md"]
    fact = facts.get(found.added[0])
    assert fact is not None
    assert (fact.content, fact.metadata) == ("`make db` comes first.", {"project": "/srv/shop"})


def test_a_line_that_was_only_moved_is_no_change(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    before = contents(facts)
    edit(out / "MEMORY.md", "- Likes quiet. (2026-01-02)\n", "")
    edit(out / "MEMORY.md", "- Prefers tea.", "- Likes quiet. (2026-01-02)\n- Prefers tea.")
    found = take()
    assert (found.added, found.left) == ((), ())
    assert contents(facts) == before


def test_taking_it_up_twice_does_nothing_twice(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    edit(out / "MEMORY.md", "- Likes quiet.", "- Likes noise.\n- Has two cats.\n- Likes quiet.")
    edit(out / "people" / "Ana.md", "milk", "juice")
    assert not take().is_nothing
    before = [(fact, facts.history(fact.id)) for fact in facts.list()]
    assert take() == NOTHING
    assert [(fact, facts.history(fact.id)) for fact in facts.list()] == before


def test_the_next_edit_is_compared_with_what_was_taken_over(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    edit(out / "MEMORY.md", "- Likes quiet.", "- Has two cats.\n- Likes quiet.")
    (cats,) = take().added
    edit(out / "MEMORY.md", "- Has two cats.", "- Has two cats.\n- Has a dog.")
    facts.delete(cats)
    assert len(take().added) == 1
    assert "Has a dog." in contents(facts)
    assert "Has two cats." not in contents(facts), "it was deleted, and is not new any more"


def test_what_was_taken_over_is_not_new_again_while_another_line_is_answered(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    edit(out / "MEMORY.md", "- Likes quiet. (2026-01-02)", "- Has two cats.")
    first = take()
    facts.delete(first.added[0])
    second = take()
    assert second.added == ()
    assert second.left == first.left
    assert "Has two cats." not in contents(facts)


def test_after_a_crash_before_it_was_noted_nothing_is_said_twice(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    published = (out / ".recollect.json").read_bytes()
    edit(out / "MEMORY.md", "- Likes quiet.", "- Has two cats.\n- Likes quiet.")
    take()
    (out / ".recollect.json").write_bytes(published)
    after = contents(facts)
    take()
    assert contents(facts) == after
    assert len(facts) == len(after)


def test_a_line_that_two_facts_say_is_answered_with_both(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    facts.add(Fact("Likes quiet.", id="another"))
    edit(out / "MEMORY.md", "- Likes quiet. (2026-01-02)\n", "")
    told = reasons(take())["MEMORY.md"]
    assert "from facts" in told
    assert "another" in told
    assert len(facts) == 4


def test_a_line_that_no_fact_says_is_answered_all_the_same(
    take: Take, facts: recollect.Facts, own: Documents, files: MemoryFiles, out: Path
) -> None:
    """A model says it in its own words."""
    own.write(MEMORY, HANDBOOK + "\n- Enjoys the silence of mornings.", title="Memory")
    files.write(SPACE)
    edit(out / "MEMORY.md", "- Enjoys the silence of mornings.\n", "")
    assert "it comes from no single fact" in reasons(take())["MEMORY.md"]
    assert len(facts) == 3


def test_pages_of_people_are_loaded_as_they_always_were(
    take: Take, space: recollect.Space, out: Path
) -> None:
    edit(out / "people" / "Ana.md", "milk", "juice")
    (out / "people" / "Bob.md").write_text("A friend.")
    found = take()
    assert sorted(found.documents) == ["~/memory/people/Ana", "~/memory/people/Bob"]
    ana = space.documents.read("people/Ana")
    assert (ana.body, ana.author.kind) == ("Likes juice.", AuthorKind.PERSON)
    assert space.documents.read("people/Bob").body == "A friend."


@pytest.mark.parametrize("name", ["raw_memories.md", "rollout_summaries/a.md", "skills/a/SKILL.md"])
def test_evidence_and_skills_cannot_be_edited_but_edits_are_kept(
    files: MemoryFiles, own: Documents, out: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    own.write(f"~/memory/{name.removesuffix('.md')}", "Evidence.")
    files.write(SPACE)
    edit(out / name, "Evidence.", "Not so.")
    found = files.absorb(SPACE)
    assert list(reasons(found)) == [name]
    assert "belongs to consolidation" in reasons(found)[name]
    assert files.write(SPACE)
    assert "Evidence." in (out / name).read_text()
    (kept,) = beside(out)
    assert "Not so." in (kept / name).read_text()
    assert name in caplog.text
    assert str(kept) in caplog.text


def test_what_was_all_taken_over_leaves_nothing_beside(
    files: MemoryFiles, facts: recollect.Facts, out: Path
) -> None:
    edit(out / "MEMORY.md", "- Likes quiet.", "- Has two cats.\n- Likes quiet.")
    edit(out / "people" / "Ana.md", "milk", "juice")
    assert files.write(SPACE)
    assert beside(out) == []
    assert "Has two cats." in contents(facts)
    assert "two cats" not in (out / "MEMORY.md").read_text(), "until a generation is made of it"


def test_a_line_that_was_changed_is_kept_beside(files: MemoryFiles, out: Path) -> None:
    edit(out / "MEMORY.md", "Likes quiet.", "Likes noise.")
    assert files.write(SPACE)
    (kept,) = beside(out)
    assert "Likes noise." in (kept / "MEMORY.md").read_text()
    assert "Likes quiet." in (out / "MEMORY.md").read_text()


def test_a_heading_is_not_taken_over_but_what_was_added_below_it_is(
    take: Take, facts: recollect.Facts, files: MemoryFiles, out: Path
) -> None:
    edit(out / "MEMORY.md", "## Preferences", "## What I like")
    edit(out / "MEMORY.md", "- Likes quiet.", "- Has two cats.\n- Likes quiet.")
    first, second = take(), take()
    assert (len(first.added), second.added) == (1, ())
    assert reasons(first) == reasons(second) == {"MEMORY.md": WRITTEN_ANEW}
    files.write(SPACE)
    (kept,) = beside(out)
    assert "## What I like" in (kept / "MEMORY.md").read_text()


@pytest.mark.parametrize(
    "head", ["title: Mine", 'tags:\n- "a"', "mood: good", "description: Another one."]
)
def test_a_head_that_was_changed_is_told(take: Take, out: Path, head: str) -> None:
    file = out / "memory_summary.md"
    key = head.partition(":")[0]
    lines = [line for line in file.read_text().split("\n") if not line.startswith(f"{key}:")]
    file.write_text("\n".join([lines[0], head, *lines[1:]]))
    assert reasons(take()) == {"memory_summary.md": WRITTEN_ANEW}


# what is not taken for an edit


def test_a_page_that_was_emptied_or_removed_is_answered(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    (out / "MEMORY.md").write_text("")
    (out / "memory_summary.md").unlink()
    found = take()
    assert "the file is empty" in reasons(found)["MEMORY.md"]
    assert "the file is missing" in reasons(found)["memory_summary.md"]
    assert len(facts) == 3


def test_of_a_page_most_of_which_is_gone_some_lines_are_answered(
    take: Take, facts: recollect.Facts, own: Documents, files: MemoryFiles, out: Path
) -> None:
    told = [f"Knows the number {number}." for number in range(30)]
    for each in told:
        facts.add(each)
    own.write(MEMORY, "\n".join(f"- {each}" for each in told))
    files.write(SPACE)
    text = (out / "MEMORY.md").read_text()
    (out / "MEMORY.md").write_text(text[: text.index("- Knows the number 5.")])
    found = take()
    assert len(found.left) == LINES_ANSWERED_MAX + 1
    assert "5 more lines" in found.left[-1].reason
    assert len(facts) == 33


def test_a_page_with_more_lines_than_anybody_writes_is_another_page(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    lines = "\n".join(f"- Line {number}." for number in range(LINES_CHANGED_MAX + 1))
    with (out / "MEMORY.md").open("a") as file:
        file.write(lines)
    assert "more than 200 lines" in reasons(take())["MEMORY.md"]
    assert len(facts) == 3


def test_a_line_that_is_too_long_for_a_fact_is_told_and_the_others_taken(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    long = "- " + "word " * 500
    edit(out / "MEMORY.md", "- Likes quiet.", f"{long}\n- Has two cats.\n- Likes quiet.")
    found = take()
    assert len(found.added) == 1
    assert "at most 2,000 characters" in reasons(found)["MEMORY.md"]
    assert "Has two cats." in contents(facts)


def test_what_a_page_said_and_is_forgotten_does_not_come_back(
    take: Take, facts: recollect.Facts, own: Documents, out: Path
) -> None:
    own.write(MEMORY, "- Prefers tea. (2026-01-02)", title="Memory")
    assert own.erase_versions(MEMORY, [1]) == 1
    facts.delete(next(each.id for each in facts.list() if each.content == "Likes quiet."))
    edit(out / "MEMORY.md", "What is known here.", "What is known.")
    assert "forgotten" in reasons(take())["MEMORY.md"]
    assert "Likes quiet." not in contents(facts)


# what is hostile


def test_secrets_are_redacted(take: Take, facts: recollect.Facts, out: Path) -> None:
    secret = "".join(("sk", "-", "proj", "-", "Ab3dEf6hIj9kLm2nOp5qRs8t" * 2))
    edit(out / "MEMORY.md", "- Likes quiet.", f"- The key is {secret} today.\n- Likes quiet.")
    fact = facts.get(take().added[0])
    assert fact is not None
    assert secret not in fact.content
    assert take() == NOTHING


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x00binary",
        b"text with a \x00",
        b"---\ntitle: never ends\n",
        b"---\nid: &a x\nb: *a\n---\n- Planted.\n",
        b"x" * (2 << 20),
        b"- Planted.\n" * (1 << 18),
    ],
    ids=["binary", "nul", "no end", "alias", "large", "many lines"],
)
def test_a_page_that_cannot_be_read_is_told(
    take: Take, facts: recollect.Facts, files: MemoryFiles, out: Path, data: bytes
) -> None:
    (out / "MEMORY.md").write_bytes(data)
    assert "MEMORY.md" in reasons(take())
    assert len(facts) == 3
    assert files.write(SPACE)
    assert "Likes quiet." in (out / "MEMORY.md").read_text()
    (kept,) = beside(out)
    assert (kept / "MEMORY.md").read_bytes() == data


def test_a_link_in_the_directory_is_not_followed(
    take: Take, facts: recollect.Facts, files: MemoryFiles, out: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("- Planted.\n")
    for name in ("MEMORY.md", "people/Ana.md", "new.md"):
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(outside)
    (out / "skills").symlink_to(tmp_path)
    found = take()
    assert {"MEMORY.md", "people/Ana.md", "new.md"} <= reasons(found).keys()
    assert len(facts) == 3
    assert files.write(SPACE)
    assert outside.read_text() == "- Planted.\n"
    assert not (out / "MEMORY.md").is_symlink()


@pytest.mark.parametrize("planted", ["link", "file", "dangling"])
def test_what_was_planted_in_the_place_of_a_directory_is_refused(
    take: Take, files: MemoryFiles, out: Path, tmp_path: Path, planted: str
) -> None:
    real = tmp_path / "elsewhere"
    out.rename(real)
    edit(real / "MEMORY.md", "Likes quiet.", "Planted.")
    match planted:
        case "link":
            out.symlink_to(real)
        case "dangling":
            out.symlink_to(tmp_path / "nothing")
        case _:
            out.write_text("- Planted.")
    before = sorted((each, each.stat().st_mtime_ns) for each in real.rglob("*"))
    found = take()
    assert (found.added, found.documents) == ((), ())
    assert not files.write(SPACE)
    assert sorted((each, each.stat().st_mtime_ns) for each in real.rglob("*")) == before
    assert not (tmp_path / "nothing").exists()


def test_a_pipe_is_not_waited_for(take: Take, out: Path) -> None:
    (out / "MEMORY.md").unlink()
    os.mkfifo(out / "MEMORY.md")
    assert "neither a file nor a directory" in reasons(take())["MEMORY.md"]


@pytest.mark.parametrize("said", ["", "[]", '{"format": 1}', '{"format": 99}'])
def test_without_its_list_nothing_is_taken_up(
    take: Take, facts: recollect.Facts, out: Path, said: str
) -> None:
    edit(out / "MEMORY.md", "Likes quiet.", "Likes noise.")
    (out / ".recollect.json").write_text(said)
    assert list(reasons(take())) == [str(out)]
    assert len(facts) == 3


def test_a_directory_of_another_store_is_not_taken_up(
    files: MemoryFiles, facts: recollect.Facts, out: Path, clock: ManualClock
) -> None:
    edit(out / "MEMORY.md", "Likes quiet.", "Likes noise.")
    edit(out / "people" / "Ana.md", "milk", "juice")
    with recollect.open(":memory:", clock=clock) as other:
        space = other.space(SPACE)
        found = absorb(space.documents, space.facts, out)
        assert reasons(found) == {str(out): "it was not published from this space of this store"}
        assert (len(space.facts), space.documents.tree()) == (0, [])


def test_while_somebody_else_is_at_it_nothing_is_taken_up(
    take: Take, facts: recollect.Facts, out: Path
) -> None:
    edit(out / "MEMORY.md", "- Likes quiet.", "- Has two cats.\n- Likes quiet.")
    fd = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        assert "another process" in reasons(take())[str(out)]
    finally:
        os.close(fd)
    assert len(facts) == 3
    assert len(take().added) == 1


def test_where_most_pages_are_gone_none_is_deleted(
    take: Take, space: recollect.Space, out: Path
) -> None:
    for number in range(20):
        space.documents.write(f"notes/{number}", "A note.")
    space.documents.publish(out)
    for file in (out / "notes").iterdir():
        file.unlink()
    assert "would be deleted" in reasons(take())[str(out)]
    assert space.documents.read("notes/7").body == "A note."


def test_nothing_is_taken_up_where_nothing_is_published(memory: recollect.Memory) -> None:
    settings = recollect.Settings(memories_root="none")
    nowhere = MemoryFiles(memory.store, settings, lambda space: memory.space(space).documents)
    assert (nowhere.absorb(SPACE), nowhere.noticed(), nowhere.write(SPACE)) == (
        NOTHING,
        [],
        False,
    )
