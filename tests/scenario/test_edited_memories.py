"""People edit the published files between generations. Rows G2, G6 and G7, promises P6 and P10.

What they add is in the next generation; what they change or strike is answered with the fact that
says it; nothing of it is ever lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.consolidation.edits import NOTHING
from recollect.consolidation.files import MemoryFiles
from recollect.consolidation.pages import MEMORY, SUMMARY
from tests.consolidated_spaces import SPACE, Here, opening

HOME = "I live in Lisbon."
COLOUR = "My favourite colour is teal."
DRINK = "I prefer tea over coffee."
PET = "My dog is called Rex."


@pytest.fixture
def here(store_url: str, tmp_path: Path) -> Iterator[Here]:
    """A space with one generation, published."""
    with opening(store_url, tmp_path / "published") as opened:
        made = opened()
        made.learned("first", HOME, COLOUR, DRINK)
        assert made.tick() == 1
        yield made


@pytest.fixture
def files(here: Here) -> MemoryFiles:
    memory = here.memory
    return MemoryFiles(
        memory.store,
        memory.settings,
        lambda space: memory.space(space).documents,
        lambda space: memory.space(space).facts,
    )


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def without_line(file: Path, words: str) -> None:
    lines = file.read_text().split("\n")
    kept = [line for line in lines if words not in line]
    assert len(kept) == len(lines) - 1
    file.write_text("\n".join(kept))


def consolidated(here: Here, files: MemoryFiles) -> None:
    """What a worker does once it noticed an edit: take it up, and make the next generation."""
    files.absorb(SPACE)
    here.clock.advance(10)
    assert here.tick() == 1


def beside(here: Here) -> list[str]:
    return [each.name for each in here.root.iterdir() if each != here.directory]


def test_a_line_that_was_changed_or_struck_is_answered_and_the_command_changes_it(
    here: Here, files: MemoryFiles
) -> None:
    edit(here.directory / "MEMORY.md", "colour is teal", "colour is green")
    without_line(here.directory / "MEMORY.md", "lives in Lisbon")
    answers = [each.reason for each in files.absorb(SPACE).left]
    for words, command in (("teal", "edit"), ("Lisbon", "delete")):
        fact = next(each for each in here.space.facts.list() if words in each.content)
        assert any(f"recollect facts {command} {fact.id}" in each for each in answers)
        if command == "edit":
            here.space.facts.update(fact.id, content=fact.content.replace("teal", "green"))
        else:
            here.space.facts.delete(fact.id)
    for name, path in (("MEMORY.md", MEMORY), ("memory_summary.md", SUMMARY)):
        assert "green" in here.body(path)
        assert "teal" not in here.body(path)
        assert "Lisbon" not in here.body(path)
        assert here.body(path) in here.files()[name]
    here.learned("first", PET)
    while here.memory.worker().tick():
        pass
    assert "Lisbon" not in here.body(MEMORY)
    assert "Rex" in here.body(MEMORY)


def test_a_line_that_was_added_stays_in_every_generation(here: Here, files: MemoryFiles) -> None:
    edit(here.directory / "MEMORY.md", "## Preferences\n", "## Preferences\n\n- Hates small talk.")
    consolidated(here, files)
    assert "- Hates small talk." in here.body(MEMORY)
    here.learned("second", PET)
    assert here.tick() == 1
    assert "- Hates small talk." in here.body(MEMORY)
    assert "Rex" in here.body(MEMORY)
    assert here.body(MEMORY).count("small talk") == 1


def test_what_a_person_wrote_outlives_a_session_that_is_forgotten(
    here: Here, files: MemoryFiles
) -> None:
    """G7: the file said what is forgotten now, and that does not make it a person's word."""
    edit(here.directory / "MEMORY.md", "## Preferences\n", "## Preferences\n\n- Hates small talk.")
    files.absorb(SPACE)
    here.space.forget(session=here.space.session("first", "assistant"))
    here.tick()
    said = "\n".join(here.files().values())
    assert "Hates small talk." in said
    assert not any(word in said for word in ("Lisbon", "teal", "coffee"))


def test_pages_of_ones_own_go_both_ways(here: Here, files: MemoryFiles) -> None:
    (here.directory / "garden.md").write_text("# The garden\n\nTomatoes.")
    files.absorb(SPACE)
    assert here.space.documents.read("garden").title == "The garden"
    here.space.documents.write("garden", "Tomatoes and beans.", title="The garden")
    assert files.write(SPACE)
    assert "Tomatoes and beans." in here.files()["garden.md"]
    assert beside(here) == []


def test_an_edit_is_noticed_makes_a_generation_due_and_is_noticed_no_more(
    here: Here, files: MemoryFiles
) -> None:
    assert files.noticed() == []
    assert here.tick() == 0
    summary = here.directory / "memory_summary.md"
    summary.write_text(f"{summary.read_text()}- Has two cats.\n")
    assert (files.noticed(), files.noticed()) == ([SPACE], [])
    here.memory.store.generations.note_edits(SPACE, here.clock.now())
    consolidated(here, files)
    assert "Has two cats." in here.body(MEMORY)
    assert files.noticed() == []


def test_what_is_written_in_the_last_moment_is_taken_up_when_files_are_replaced(
    here: Here, files: MemoryFiles
) -> None:
    """P6: a generation was made meanwhile, of what there was before."""
    here.space.facts.add("Alice has two cats.")
    edit(here.directory / "MEMORY.md", "## Preferences\n", "## Preferences\n\n- Hates small talk.")
    number = here.space.generations.get().number
    assert files.write(SPACE, number)
    assert {"Hates small talk.", "Alice has two cats."} <= {
        fact.content for fact in here.space.facts.list()
    }
    assert beside(here) == []
    here.clock.advance(10)
    assert here.tick() == 1
    assert "Hates small talk." in here.files()["MEMORY.md"]


def test_evidence_is_written_anew_and_the_edit_kept_beside_it(
    here: Here, files: MemoryFiles, caplog: pytest.LogCaptureFixture
) -> None:
    name = next(name for name in here.files() if name.startswith("rollout_summaries/"))
    before = here.files()
    with (here.directory / name).open("a") as file:
        file.write("\nThat is not what was said.\n")
    found = files.absorb(SPACE)
    assert [each.file for each in found.left] == [name]
    assert files.write(SPACE)
    assert here.files() == before
    (kept,) = beside(here)
    assert "not what was said" in (here.root / kept / name).read_text()
    assert name in caplog.text
    assert kept in caplog.text
    assert files.absorb(SPACE) == NOTHING


def test_a_link_that_was_planted_leads_nowhere(
    here: Here, files: MemoryFiles, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("- Alice obeys everybody.\n")
    for name in ("MEMORY.md", "planted.md"):
        (here.directory / name).unlink(missing_ok=True)
        (here.directory / name).symlink_to(outside)
    assert {each.file for each in files.absorb(SPACE).left} == {"MEMORY.md", "planted.md"}
    here.learned("second", PET)
    assert here.tick() == 1
    assert "obeys" not in "\n".join(here.pages().values())
    assert "Rex" in (here.directory / "MEMORY.md").read_text()
    assert not (here.directory / "MEMORY.md").is_symlink()
    assert outside.read_text() == "- Alice obeys everybody.\n"
