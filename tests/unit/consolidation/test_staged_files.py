"""G6: what is staged can be looked at while it is written, and is gone afterwards."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import recollect
from recollect.consolidation.files import shown_in, take_away
from recollect.consolidation.pages import MEMORY, SUMMARIES, SUMMARY, skill_path
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.types.pages import Author, AuthorKind


@pytest.fixture
def held(memory: recollect.Memory) -> Documents:
    author = Author(kind=AuthorKind.CONSOLIDATION, name="consolidation")
    documents = memory.space("s").documents
    return documents.held_by(Holder(author=author, root=memory_root()))


def staged_of(held: Documents) -> StagedPages:
    held.write(f"{SUMMARIES}/old", "What is being forgotten.")
    staged = StagedPages(held, "test")
    staged.write(MEMORY, "Tea.")
    return staged


def test_what_is_staged_stands_in_files_and_is_gone_afterwards(
    held: Documents, tmp_path: Path
) -> None:
    staged = staged_of(held)
    with shown_in(tmp_path / "s", 7) as show:
        show(staged, [f"{SUMMARIES}/old", SUMMARY])
        place = tmp_path / ".s.staged-7"
        assert "Tea." in (place / "MEMORY.md").read_text()
        assert "forgotten" in (place / "rollout_summaries" / "old.md").read_text()
        assert not (place / "memory_summary.md").exists()
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert stat.S_IMODE((place / "MEMORY.md").stat().st_mode) == 0o600
        staged.write(MEMORY, "Coffee.")
        staged.write(skill_path("brewing"), "Boil water.")
        show(staged, [])
        assert "Coffee." in (place / "MEMORY.md").read_text()
        skill = place / "skills" / "brewing" / "SKILL.md"
        assert "Boil water." in skill.read_text()
        staged.delete(skill_path("brewing"))
        show(staged, [])
        assert not skill.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_that_died_left_is_removed_and_nothing_else(
    held: Documents, tmp_path: Path
) -> None:
    for name in (".s.staged-3", ".other.staged-3", "s"):
        (tmp_path / name).mkdir()
    with shown_in(tmp_path / "s", 7) as show:
        show(staged_of(held), [])
        assert not (tmp_path / ".s.staged-3").exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == [".other.staged-3", "s"]


def test_what_was_taken_away_is_not_shown_again(held: Documents, tmp_path: Path) -> None:
    """P11: neither what a run goes on to write, nor what somebody died over taking away."""
    staged = staged_of(held)
    with shown_in(tmp_path / "s", 7) as show:
        show(staged, [])
        (tmp_path / ".s.staged-7-gone" / "skills").mkdir(parents=True)
        assert take_away(tmp_path / "s") == ()
        staged.write(skill_path("brewing"), "Boil water.")
        show(staged, [])
        assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_harms_nobody(held: Documents, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with shown_in(tmp_path / "file" / "s", 7) as show:
        show(staged_of(held), [])
    assert (tmp_path / "file").read_text() == "no directory"


def test_a_link_in_its_place_is_not_followed(held: Documents, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".s.staged-7").symlink_to(tmp_path / "elsewhere")
    with shown_in(tmp_path / "s", 7) as show:
        show(staged_of(held), [])
    assert list((tmp_path / "elsewhere").iterdir()) == []
