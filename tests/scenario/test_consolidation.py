"""What a person has after consolidation: pages, files, generations. Rows G2 to G7 and G9 to G12."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.consolidation.pages import MEMORY, RAW, SKILLS, SUMMARIES, SUMMARY
from recollect.documents.editing import OnReferences
from recollect.documents.links import find_links
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.errors import NotFound, UsageError
from recollect.session import Session
from recollect.types.generations import DocumentChange, Waiting
from recollect.types.pages import AuthorKind
from recollect.types.recall import EntryKind
from recollect.types.records import Mode
from tests.consolidated_spaces import DAY, SPACE, Here, Open, opening
from tests.crash.worker_child import dump

HOME = "I live in Lisbon."
COLOUR = "My favourite colour is teal."
DRINK = "I prefer tea over coffee."
# A word that stands nowhere else, to be looked for in everything that is kept.
SECRET_PLACE = "Quetzaltenango"
SECRET = f"My favourite city is {SECRET_PLACE}."
OWN_PAGES = (MEMORY, SUMMARY, RAW)


@pytest.fixture
def opened(store_url: str, tmp_path: Path) -> Iterator[Open]:
    with opening(store_url, tmp_path / "published") as found:
        yield found


@pytest.fixture
def here(opened: Open) -> Here:
    return opened()


def says(here: Here, words: str) -> list[str]:
    """The pages and files that say something."""
    pages = {**here.pages(), **here.files()}
    return sorted(path for path, text in pages.items() if words in text)


def deployed(here: Here, key: str) -> Session:
    """A session of work in which the same commands worked."""
    here.clock.advance(10)
    session = here.space.session(key, "assistant", project="billing")
    session.append("user", "Please run the tests and deploy.", name="Alice")
    for number, (command, answer) in enumerate(
        {"pytest -q": "12 passed", "make deploy": "deployed\nexit code: 0"}.items()
    ):
        call = {"id": f"c{number}", "name": "shell", "input": {"command": command}}
        result = {"tool_use_id": f"c{number}", "content": answer}
        session.append_many(
            [
                {"role": "assistant", "content": [{"type": "tool_use", **call}]},
                {"role": "user", "content": [{"type": "tool_result", **result}]},
            ]
        )
    session.sleep()
    return session


# what there is to read


def test_a_handbook_rests_on_facts_and_leads_to_the_sessions_they_were_said_in(
    here: Here,
) -> None:
    """G8, G11: links that resolve, and sources that name records."""
    sessions = {key: here.learned(key, text) for key, text in {"a": HOME, "b": DRINK}.items()}
    here.tick()
    handbook = here.space.documents.read(MEMORY)
    pages = [here.space.documents.read(link.path.text) for link in find_links(handbook.body)]
    assert len(pages) == 2
    for session in sessions.values():
        (page,) = (each for each in pages if session.id in each.body)
        assert {source.session_id for source in page.sources} == {session.id}
    named = {source.session_id for source in handbook.sources}
    assert named == {session.id for session in sessions.values()}
    facts = [here.space.facts.get(each) for each in handbook.facts]
    assert {fact.source for fact in facts if fact} == named


def test_the_summary_is_short_and_has_no_links(here: Here) -> None:
    here.learned("a", DRINK)
    here.tick()
    summary = here.space.documents.read(SUMMARY)
    assert "prefers tea over coffee" in summary.body
    assert len(summary.body) < 2_500
    assert "[[" not in summary.body


def test_what_worked_more_than_once_becomes_a_skill(here: Here) -> None:
    for number in range(3):
        deployed(here, f"k{number}")
    here.memory.work()
    (skill,) = [path for path in here.pages() if path.endswith("/SKILL")]
    assert "make deploy" in here.body(skill)
    assert "make deploy" in here.files()[f"{skill.removeprefix('~/memory/')}.md"]


def test_the_pages_are_consolidations_own_and_nobody_elses_are_touched(here: Here) -> None:
    """G8."""
    here.space.documents.write("~/memory/people/alice", "Written by a person.")
    here.learned("a", HOME)
    here.tick()
    documents = here.space.documents
    for path in (*OWN_PAGES, *here.summaries()):
        assert documents.read(path).author.kind is AuthorKind.CONSOLIDATION
    theirs = documents.read("~/memory/people/alice")
    assert (theirs.body, theirs.version) == ("Written by a person.", 1)


def test_the_same_input_gives_the_same_bytes(opened: Open, tmp_path: Path) -> None:
    """Rules have no mood: a store beside it, told the same, says the same."""
    here = opened()
    with opening(f"sqlite:///{tmp_path / 'twin.db'}", tmp_path / "twin") as twin_opened:
        twin = twin_opened()
        for each in (here, twin):
            for key, text in {"a": HOME, "b": COLOUR, "c": DRINK}.items():
                each.learned(key, text)
            each.tick()
        # Ids are drawn, and the names of pages end with a few digits of them.
        drawn = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|-[0-9a-f]{8}(?=[|\]])")
        for path in OWN_PAGES:
            ours, theirs = (drawn.sub("", each.body(path)) for each in (here, twin))
            assert ours == theirs


# one generation after the other


def test_a_second_run_shows_what_changed(here: Here) -> None:
    """G3, G9."""
    here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    here.tick()
    second, first = here.space.generations.list()
    assert (first.number, first.added, first.retained, first.removed) == (1, 1, 0, 0)
    assert (second.number, second.added, second.retained, second.removed) == (2, 1, 1, 0)
    changes = {each.path: each for each in here.space.generations.diff(1, 2)}
    assert changes[MEMORY].change is DocumentChange.CHANGED
    assert "+- Alice's favourite colour is teal." in changes[MEMORY].text
    added = [each for each in changes.values() if each.change is DocumentChange.ADDED]
    assert [each.path.startswith(SUMMARIES) for each in added] == [True]
    assert here.space.generations.diff(2) == []


def test_what_has_not_changed_is_not_written_again(here: Here) -> None:
    """No churn: the page of the first session keeps its version."""
    here.learned("a", HOME)
    here.tick()
    (page,) = here.summaries()
    before = here.space.documents.read(page)
    here.learned("b", COLOUR)
    here.tick()
    assert here.space.documents.read(page) == before


def test_the_same_selection_makes_no_new_generation(here: Here) -> None:
    """G5: something happened, and nothing changed."""
    here.learned("a", HOME)
    here.tick()
    for _ in range(2):
        report = here.space.generations.run()
        assert (report.generations, report.failed) == (0, 0)
    fact = here.space.facts.add("Something short-lived.")
    here.space.facts.delete(fact.id)
    here.memory.work()
    assert here.space.generations.state().generation == 1
    assert here.space.documents.read(MEMORY).version == 1


def test_pages_that_were_deleted_by_hand_come_back(here: Here) -> None:
    here.learned("a", HOME)
    here.tick()
    documents = here.space.documents
    held = documents.held_by(Holder(author=documents.read(MEMORY).author, root=memory_root()))
    held.delete(MEMORY, references=OnReferences.LEAVE)
    here.space.generations.run()
    assert "Lisbon" in here.body(MEMORY)


# forgetting


def test_a_forgotten_session_leaves_the_pages_the_versions_and_the_files(here: Here) -> None:
    """G11, G12: nothing that only it said is in any row; what others said stays."""
    gone = here.learned("gone", SECRET)
    here.learned("stays", COLOUR)
    here.tick()
    assert says(here, SECRET_PLACE)
    here.space.forget(session=gone)
    generation = here.space.generations.get()
    assert (generation.number, generation.retained, generation.removed) == (2, 1, 1)
    assert says(here, SECRET_PLACE) == []
    assert says(here, "teal")
    rows = {table: "".join(found).lower() for table, found in dump(here.memory).items()}
    assert [table for table, found in rows.items() if SECRET_PLACE.lower() in found] == []


def test_a_forgotten_session_is_in_no_byte_of_the_directory(tmp_path: Path) -> None:
    """G11: the file of the store, what is beside it, and the published files beside that.

    With memory-agents as well, as it comes.
    """
    clock = ManualClock()
    with recollect.open(f"sqlite:///{tmp_path / 'memory.db'}", clock=clock) as memory:
        space = memory.space(SPACE)
        for key, text in {"gone": SECRET, "stays": COLOUR}.items():
            session = space.session(key, "assistant")
            session.append("user", text, name="Alice")
            session.sleep()
            clock.advance(60)
        memory.work()
        assert SECRET_PLACE in (tmp_path / "memories" / SPACE / "MEMORY.md").read_text()
        assert holding(tmp_path, SECRET_PLACE)
        space.forget(session=space.session("gone"))
        assert holding(tmp_path, SECRET_PLACE) == []
        assert holding(tmp_path, "teal")
        assert SECRET_PLACE not in str(space.generations.list())
    assert holding(tmp_path, SECRET_PLACE) == []


def holding(directory: Path, word: str) -> list[str]:
    """The files in which a word stands, as it is read by people and in any case."""
    found = (path for path in directory.rglob("*") if path.is_file())
    wanted = word.lower().encode()
    return sorted(str(path) for path in found if wanted in path.read_bytes().lower())


def test_what_another_session_says_too_stays_when_one_is_forgotten(here: Here) -> None:
    """G11."""
    one = here.learned("one", HOME, COLOUR)
    here.learned("two", HOME)
    here.tick()
    here.space.forget(session=one)
    assert "Lisbon" in here.body(MEMORY)
    assert "teal" not in here.body(MEMORY)


@pytest.mark.parametrize("is_paused", [False, True])
def test_forgetting_waits_for_nothing(opened: Open, is_paused: bool) -> None:
    """G11: neither for the cooldown nor for a worker, nor for a space to be resumed."""
    here = opened(consolidation_cooldown_seconds=3600)
    gone = here.learned("gone", HOME)
    here.learned("stays", COLOUR)
    here.tick()
    if is_paused:
        here.space.generations.pause()
    here.space.forget(session=gone)
    assert says(here, "Lisbon") == []
    assert "teal" in here.body(MEMORY)
    assert here.space.generations.get().removed == 1


@pytest.mark.parametrize("mode", [Mode.DISABLED, Mode.POLLUTED])
def test_a_session_that_is_switched_off_leaves_and_comes_back(opened: Open, mode: Mode) -> None:
    """G3, G12: it leaves without a worker, and comes back with one, whatever the cooldown."""
    here = opened(consolidation_cooldown_seconds=3600)
    session = here.learned("a", HOME)
    here.learned("b", COLOUR)
    here.tick()
    session.set_mode(mode)
    assert says(here, "Lisbon") == []
    assert here.space.generations.get().removed == 1
    session.set_mode(Mode.ENABLED)
    assert here.tick() == 1
    assert "Lisbon" in here.body(MEMORY)
    assert len(here.summaries()) == 2
    assert here.space.generations.get().added == 1


def test_a_fact_that_a_person_deletes_leaves_at_once(opened: Open) -> None:
    """G11: without a cooldown, and without a worker."""
    here = opened(consolidation_cooldown_seconds=3600)
    here.learned("a", HOME)
    here.learned("b", COLOUR)
    here.tick()
    (fact,) = [each for each in here.space.facts.list() if "Lisbon" in each.content]
    here.space.facts.delete(fact.id)
    assert "Lisbon" not in here.body(MEMORY)
    assert "Lisbon" not in here.body(SUMMARY)
    assert "teal" in here.body(MEMORY)


def test_facts_that_were_added_by_hand_are_kept(opened: Open) -> None:
    """G11: no session stands behind them; they stay when the last session goes."""
    here = opened(max_unused_days=10)
    here.learned("a", HOME)
    here.space.facts.add("The office closes at six.")
    here.tick()
    assert "The office closes at six." in here.body(MEMORY)
    here.clock.advance(11 * DAY)
    here.sweep()
    assert "Lisbon" not in here.body(MEMORY)
    assert "The office closes at six." in here.body(MEMORY)


# time


def test_time_alone_takes_out_what_nobody_uses(opened: Open) -> None:
    """G2, G5: nobody says or asks anything; a worker's sweep comes round."""
    here = opened(max_unused_days=10)
    here.learned("a", HOME)
    here.clock.advance(5 * DAY)
    here.learned("b", COLOUR)
    here.tick()
    here.clock.advance(5 * DAY)
    here.sweep()
    assert says(here, "Lisbon") == []
    assert "teal" in here.body(MEMORY)
    here.clock.advance(6 * DAY)
    here.sweep()
    assert says(here, "teal") == []


def test_time_alone_closes_what_was_to_be_done(opened: Open) -> None:
    """G5: the summary is put before every conversation, and says nothing of a day that is over."""
    here = opened()
    here.learned("a", "I have a dentist appointment on January 4.")
    here.tick()
    assert "## Open threads" in here.body(SUMMARY)
    here.clock.advance(3 * DAY)
    here.sweep()
    assert "## Open threads" in here.body(SUMMARY), "it is today"
    here.clock.advance(DAY)
    here.sweep()
    assert "## Open threads" not in here.body(SUMMARY)
    assert "dentist" in here.body(MEMORY)
    here.sweep()
    assert len(here.space.generations.list()) == 2


def test_what_is_used_stays(opened: Open) -> None:
    """G2."""
    here = opened(max_unused_days=10)
    session = here.learned("a", HOME)
    here.learned("b", COLOUR)
    here.tick()
    here.clock.advance(8 * DAY)
    here.use(session, "Where does Alice live?")
    here.clock.advance(8 * DAY)
    here.sweep()
    assert "Lisbon" in here.body(MEMORY)
    assert "teal" not in here.body(MEMORY)


def test_what_is_only_shown_moves_nothing(opened: Open) -> None:
    """G2, N3: five blocks that nobody used; then a citation, and a hit that somebody opened."""
    here = opened(consolidation_top_n=2, max_unused_days=10)
    first = here.learned("first", "I prefer tea over coffee.")
    second = here.learned("second", "I prefer trains over planes.")

    def first_said() -> str:
        here.memory.work()
        said = [line for line in here.body(MEMORY).splitlines() if line.startswith("- ")]
        return "tea" if "tea" in said[0] else "trains"

    def picks() -> list[str]:
        selection = here.space.generations.preview().selection
        return [each.session_id for each in selection.picks]

    assert (first_said(), picks()) == ("trains", [second.id, first.id])
    for number in range(5):
        here.clock.advance(DAY)
        block = here.space.context("tea or coffee?", kinds=["fact"])
        assert here.space.cite(block, "OK, nothing used.", turn=f"turn {number}") == 0
    [fact] = [each for each in here.space.facts.list() if "tea" in each.content]
    assert (fact.shown_count, fact.usage_count, fact.last_usage) == (5, 0, None)
    here.space.facts.add("The office closes at six.")  # so that there is something to do
    assert (first_said(), picks()) == ("trains", [second.id, first.id])

    assert here.space.cite(block, "Tea, please [m1].") == 1
    here.space.facts.add("The office opens at nine.")
    assert (first_said(), picks()) == ("tea", [first.id, second.id])
    for _ in range(2):
        here.use(second, "trains or planes?")
    here.space.facts.add("The office has a garden.")
    assert (first_said(), picks()) == ("trains", [second.id, first.id])


def test_what_is_only_shown_goes_when_its_time_is_over(opened: Open) -> None:
    """G2: a session that is put before a model every day, and that nobody uses."""
    here = opened(max_unused_days=10)
    here.learned("a", HOME)
    here.tick()
    for number in range(11):
        here.clock.advance(DAY)
        block = here.space.context("Where does Alice live?")
        assert here.space.cite(block, turn=f"turn {number}") == 0
    here.sweep()
    assert says(here, "Lisbon") == []


def test_an_empty_selection_empties_everything(opened: Open) -> None:
    """G7: pages, skills, summaries and files; the job has succeeded."""
    here = opened(max_unused_days=10)
    for number in range(3):
        deployed(here, f"k{number}")
    here.learned("a", HOME)
    here.memory.work()
    assert here.space.documents.find(SKILLS) is not None
    here.clock.advance(20 * DAY)
    here.sweep()
    assert says(here, "Lisbon") == []
    assert says(here, "make deploy") == []
    assert here.summaries() == []
    assert not [path for path in here.pages() if path.startswith(f"{SKILLS}/")]
    assert not [name for name in here.files() if "/" in name]
    state = here.space.generations.state()
    assert (state.failures, state.consolidated) == (0, state.changed)
    assert state.waits_for(here.clock.now()) is Waiting.NOTHING_CHANGED


def test_a_worker_waits_for_the_cooldown_and_work_does_not(opened: Open) -> None:
    """G10: the state says what it waits for, and until when."""
    here = opened(consolidation_cooldown_seconds=3600)
    here.learned("a", HOME)
    here.tick()
    made_at = here.clock.now()
    here.learned("b", COLOUR)
    assert here.tick() == 0
    state = here.space.generations.state()
    assert state.waits_for(here.clock.now()) is Waiting.COOLDOWN
    assert state.due_at is not None
    assert (state.due_at - made_at).total_seconds() == 3600
    assert here.memory.work().generations == 1
    here.learned("c", DRINK)
    assert here.tick() == 0
    here.clock.advance(3601)
    assert here.tick() == 1


def test_it_does_not_wait_for_ever_for_a_space_that_never_rests(opened: Open) -> None:
    """G10: after `consolidation_patience_seconds` it has its turn."""
    here = opened(consolidation_patience_seconds=3600)
    here.learned("a", HOME)
    here.clock.advance(1800)
    here.told("b", COLOUR)
    assert here.space.generations.state().waits_for(here.clock.now()) is Waiting.PHASE_1
    here.clock.advance(1801)
    assert here.tick() == 1
    assert here.space.generations.get().added == 1


# by hand


def test_a_space_can_be_paused_and_resumed(here: Here) -> None:
    """G10."""
    here.learned("a", HOME)
    here.tick()
    here.space.generations.pause()
    here.learned("b", COLOUR)
    assert here.memory.work().generations == 0
    state = here.space.generations.state()
    assert state.waits_for(here.clock.now()) is Waiting.PAUSED
    with pytest.raises(UsageError):
        here.space.generations.run()
    here.space.generations.resume()
    assert here.tick() == 1
    assert "teal" in here.body(MEMORY)


def test_pausing_twice_and_resuming_what_runs_changes_nothing(here: Here) -> None:
    here.learned("a", HOME)
    here.space.generations.resume()
    here.space.generations.pause()
    here.space.generations.pause()
    here.space.generations.resume()
    assert here.tick() == 1
    assert here.tick() == 0


def test_a_preview_says_what_a_run_would_change_and_changes_nothing(here: Here) -> None:
    here.learned("a", HOME)
    preview = here.space.generations.preview()
    assert len(preview.selection.added) == 1
    assert MEMORY in {edit.path for edit in preview.edits}
    assert here.pages() == {}
    assert here.space.generations.list() == []
    here.tick()
    assert here.space.generations.preview().is_unchanged


def test_an_earlier_generation_can_be_restored(here: Here) -> None:
    """G9: as the newest one; it stays until something is learned."""
    here.learned("a", HOME)
    here.tick()
    before = {path: text for path, text in here.pages().items() if path != "~/memory"}
    here.learned("b", COLOUR)
    here.tick()
    restored = here.space.generations.rollback(1)
    assert (restored.number, restored.restored_from) == (3, 1)
    assert {path: text for path, text in here.pages().items() if path in before} == before
    assert says(here, "teal") == []
    assert here.memory.work().generations == 0
    assert says(here, "teal") == []
    here.learned("c", DRINK)
    assert here.tick() == 1
    assert "teal" in here.body(MEMORY)
    assert "tea over coffee" in here.body(MEMORY)


def test_what_is_made_after_a_rollback_says_what_sessions_come_to_now(here: Here) -> None:
    """G6, G9: also of a session that has not changed since; what is the same stays the same."""
    session = here.learned("a", HOME)
    here.learned("b", DRINK)
    here.tick()
    (page,) = [path for path in here.summaries() if "Lisbon" in here.body(path)]
    (other,) = set(here.summaries()) - {page}
    session.append("user", COLOUR, name="Alice")
    session.sleep()
    here.memory.work()
    here.space.generations.rollback(1)
    assert "teal" not in here.body(page)
    here.learned("c", "I work at Acme.")
    here.tick()
    assert "teal" in here.body(page)
    assert here.space.documents.read(other).version == 1


@pytest.mark.parametrize("mode", [Mode.DISABLED, Mode.POLLUTED])
def test_what_was_switched_off_does_not_come_back_by_a_rollback(here: Here, mode: Mode) -> None:
    """G9, G12: what is restored is rendered with what is left out today."""
    session = here.learned("a", HOME)
    here.learned("b", COLOUR)
    here.tick()
    here.learned("c", DRINK)
    here.tick()
    session.set_mode(mode)
    here.tick()
    restored = here.space.generations.rollback(1)
    assert "without what does not hold" in restored.note
    assert says(here, "Lisbon") == []
    assert says(here, "tea over") == [], "it was not part of the first one"
    assert "teal" in here.body(MEMORY)
    session.set_mode(Mode.ENABLED)
    here.tick()
    assert "Lisbon" in here.body(MEMORY)
    assert "tea over" in here.body(MEMORY), "what the rollback left out is news again"


def test_what_is_corrected_or_deleted_leaves_memory_at_once_and_under_its_number(
    here: Here,
) -> None:
    """G11: nothing that does not hold any more waits for the next generation."""
    here.learned("a", HOME, COLOUR, DRINK)
    here.tick()
    here.learned("b", "I work at Acme.")
    for words, change in (("Lisbon", "Alice lives in Porto."), ("teal", None)):
        fact = next(each for each in here.space.facts.list() if words in each.content)
        if change is None:
            here.space.facts.delete(fact.id)
        else:
            here.space.facts.update(fact.id, content=change)
        for path in (MEMORY, SUMMARY):
            assert words not in here.body(path)
        assert words not in here.files()["MEMORY.md"]
    assert "Alice lives in Porto." in here.body(MEMORY)
    assert "tea over coffee" in here.body(MEMORY)
    assert "Acme" not in here.body(MEMORY), "new things come with the next generation"
    (current,) = here.space.generations.list()
    assert (current.number, current.is_whole) == (1, True)
    here.clock.advance(10)
    here.tick()
    assert "Acme" in here.body(MEMORY)
    here.space.generations.rollback(1)
    assert "Porto" in here.body(MEMORY)
    assert "Lisbon" not in here.body(MEMORY)


def test_what_was_corrected_since_does_not_come_back_by_a_rollback(here: Here) -> None:
    here.learned("a", HOME, COLOUR)
    here.tick()
    home, colour = (
        next(each for each in here.space.facts.list() if word in each.content)
        for word in ("Lisbon", "teal")
    )
    here.space.facts.update(home.id, content="Alice lives in Porto.")
    here.space.facts.delete(colour.id)
    here.tick()
    here.learned("b", DRINK)
    here.tick()
    here.space.generations.rollback(1)
    assert says(here, "Lisbon") == says(here, "teal") == says(here, "tea over") == []
    assert "Alice lives in Porto." in here.body(MEMORY)


def test_a_generation_with_a_skill_can_be_restored(opened: Open) -> None:
    """G9: folders and all."""
    here = opened(max_unused_days=10)
    for number in range(3):
        deployed(here, f"k{number}")
    here.memory.work()
    before = here.files()
    here.clock.advance(11 * DAY)
    here.sweep()
    assert not [path for path in here.pages() if path.endswith("/SKILL")]
    here.space.generations.rollback(1)
    assert here.files().keys() == before.keys()
    (skill,) = [path for path in here.pages() if path.endswith("/SKILL")]
    assert "make deploy" in here.body(skill)


def test_restoring_what_was_before_a_skill_takes_the_skill_away(here: Here) -> None:
    """G9: and the next generation can be made."""
    deployed(here, "k0")
    here.memory.work()
    for number in (1, 2):
        deployed(here, f"k{number}")
    here.memory.work()
    assert [name for name in here.files() if name.startswith("skills/")]
    here.space.generations.rollback(1)
    assert not [name for name in here.files() if name.startswith("skills/")]
    here.learned("a", HOME)
    assert here.tick() == 1
    assert [name for name in here.files() if name.startswith("skills/")]


def test_what_was_forgotten_cannot_be_restored(here: Here) -> None:
    """G9, G11."""
    gone = here.learned("gone", HOME)
    here.learned("stays", COLOUR)
    here.tick()
    here.space.forget(session=gone)
    with pytest.raises(UsageError, match="forgotten"):
        here.space.generations.rollback(1)
    assert says(here, "Lisbon") == []


def test_what_is_forgotten_after_a_rollback_to_it_leaves_all_the_same(here: Here) -> None:
    """G9, G11: a generation that was restored is forgotten from like any other."""
    gone = here.learned("gone", HOME)
    here.tick()
    here.learned("stays", COLOUR)
    here.tick()
    here.space.generations.rollback(1)
    here.space.forget(session=gone)
    assert says(here, "Lisbon") == []
    assert "teal" in here.body(MEMORY)


def test_generations_that_are_too_old_are_erased(opened: Open) -> None:
    """G9: as many are kept as the settings say, and those can be restored."""
    here = opened(generations_kept=2)
    for number, text in enumerate((HOME, COLOUR, DRINK, "I work at Acme.")):
        here.learned(f"s{number}", text)
        here.tick()
    assert [each.number for each in here.space.generations.list()] == [4, 3]
    with pytest.raises(NotFound):
        here.space.generations.rollback(1)
    assert here.space.generations.rollback(3).number == 5


def test_the_files_that_a_process_could_not_write_are_written_by_the_next_sweep(
    here: Here,
) -> None:
    """G6, P6: what is published is a projection."""
    here.root.parent.mkdir(parents=True, exist_ok=True)
    here.root.write_text("in the way")
    here.learned("a", HOME)
    assert here.tick() == 1, "no generation fails for a file"
    here.root.unlink()
    here.sweep()
    assert "Lisbon" in here.files()["MEMORY.md"]


def test_a_link_in_the_place_of_the_directory_is_not_followed(here: Here, tmp_path: Path) -> None:
    """G6, G9: nothing is written where somebody points to; the generation is there all the same."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "MEMORY.md").write_text("Somebody else's.")
    here.root.mkdir()
    here.directory.symlink_to(elsewhere)
    here.learned("a", HOME)
    assert here.tick() == 1
    here.sweep()
    assert [each.name for each in elsewhere.iterdir()] == ["MEMORY.md"]
    assert (elsewhere / "MEMORY.md").read_text() == "Somebody else's."
    assert "Lisbon" in here.body(MEMORY)


# what is recalled


def test_to_no_question_the_answer_says_what_is_known_once(here: Here) -> None:
    here.learned("a", DRINK)
    here.tick()
    block = here.space.context("")
    assert block.text.count("prefers tea over coffee") == 1
    assert "[[" not in block.text
    assert "## Relevant Memory" not in block.text


def test_recall_does_not_say_twice_what_the_handbook_says_again(here: Here) -> None:
    here.learned("a", HOME)
    before = [hit.id for hit in here.space.recall("Where does Alice live?")]
    here.tick()
    after = here.space.recall("Where does Alice live?")
    assert [hit.id for hit in after] == before
    assert not [hit for hit in after if hit.kind is EntryKind.DOCUMENT]


def test_recall_finds_skills(here: Here) -> None:
    for number in range(3):
        deployed(here, f"k{number}")
    here.memory.work()
    hits = here.space.recall("how is billing deployed?", 20)
    assert len([hit for hit in hits if hit.id.startswith(SKILLS)]) == 1


def test_the_status_tells_every_space_where_it_stands(here: Here) -> None:
    """G10."""
    here.learned("a", HOME)
    states: Any = {each.space: each for each in here.memory.status().consolidations}
    assert states[SPACE].waits_for(here.clock.now()) is Waiting.READY
    here.tick()
    states = {each.space: each for each in here.memory.status().consolidations}
    assert states[SPACE].waits_for(here.clock.now()) is Waiting.NOTHING_CHANGED
    assert states[SPACE].generation == 1
    assert states[SPACE].expires_at is not None
