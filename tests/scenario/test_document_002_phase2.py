"""Document 002 (memories pipeline): phase 2, line by line. Rows G1 to G10.

One job per space instead of one for all, and a revision counter as the watermark: see the rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.consolidation.agent import READING
from recollect.consolidation.pages import RAW, SUMMARY
from recollect.models.protocol import ChatRole
from recollect.types.generations import RemovedBecause, Waiting
from recollect.types.records import Claim, JobKind, JobState, LeasePolicy
from recollect_conformance.scripted import Gate, Script, Scripted, calls, held, status
from recollect_conformance.scripted_frames import Received
from tests.consolidated_spaces import (
    DAY,
    SPACE,
    WAIT_SECONDS,
    Background,
    Here,
    Open,
    asked,
    keeper,
    opening,
)

HOME = "I live in Lisbon."
COLOUR = "My favourite colour is teal."
DRINK = "I prefer tea over coffee."
EDITOR = "I use Vim as my editor."


@pytest.fixture
def opened(store_url: str, tmp_path: Path) -> Iterator[Open]:
    with opening(store_url, tmp_path / "published") as found:
        yield found


@pytest.fixture
def here(opened: Open) -> Here:
    return opened()


def claimed(here: Here, owner: str = "somebody else") -> Claim:
    """What is due next, held by another worker."""
    policy = LeasePolicy(lease_seconds=60, consolidates=True)
    claim = here.memory.store.leases.claim(owner, policy, here.clock.now())
    assert isinstance(claim, Claim)
    assert claim.kind is JobKind.CONSOLIDATE
    return claim


# "claims a single global phase-2 job", one per space here


def test_one_consolidation_of_a_space_runs_at_a_time(here: Here) -> None:
    """G1."""
    here.learned("a", HOME)
    claimed(here)
    assert here.tick() == 0
    assert here.space.generations.run().generations == 0
    assert here.space.generations.state().waits_for(here.clock.now()) is Waiting.RUNNING
    assert here.space.generations.list() == []


def test_the_job_of_a_space_is_one_row_however_often_it_is_due(here: Here) -> None:
    """G1."""
    for number, text in enumerate((HOME, COLOUR, DRINK)):
        here.learned(f"s{number}", text)
    jobs = here.memory.store.leases.jobs(None, 100)
    assert [job.key for job in jobs if job.kind is JobKind.CONSOLIDATE] == [SPACE]


def test_a_job_whose_worker_died_is_taken_over_with_a_new_token_and_the_same_watermark(
    here: Here,
) -> None:
    """G1, G5, P4."""
    here.learned("a", HOME)
    dead = claimed(here, "the dead")
    here.clock.advance(61)
    successor = claimed(here, "the successor")
    assert successor.token > dead.token
    assert successor.read_upto == dead.read_upto
    assert successor.attempt == 2


def test_spaces_are_consolidated_one_beside_the_other(here: Here) -> None:
    """G1: what somebody holds in one space keeps no other from its turn."""
    here.learned("a", HOME)
    claimed(here)
    bob = here.memory.space("bob")
    session = bob.session("b", "assistant")
    session.append("user", COLOUR, name="Bob")
    session.sleep()
    here.memory.work()
    assert [each.number for each in bob.generations.list()] == [1]
    assert here.space.generations.list() == []


def test_it_is_not_claimed_while_sessions_of_the_space_are_due(here: Here) -> None:
    """ "executes two phases in order: Phase 1, then Phase 2"."""
    here.learned("a", HOME)
    here.told("b", COLOUR)
    assert here.space.generations.state().waits_for(here.clock.now()) is Waiting.PHASE_1
    assert here.tick() == 0
    assert here.tick() == 1
    assert here.space.generations.get().added == 2


# "loads a bounded set of stage-1 outputs from the state DB using phase-2 selection rules"


def test_it_loads_a_bounded_set(opened: Open) -> None:
    """G2."""
    here = opened(consolidation_top_n=2)
    for key, text in {"a": HOME, "b": COLOUR, "c": DRINK}.items():
        here.learned(key, text)
    assert here.picked()["added"] == ["b", "c"]
    assert here.tick() == 1
    assert here.space.generations.get().added == 2


def test_it_ignores_memories_whose_last_usage_falls_outside_the_window(opened: Open) -> None:
    """G2: used once, and not for longer than `max_unused_days`."""
    here = opened(max_unused_days=10)
    session = here.learned("a", HOME)
    here.clock.advance(5 * DAY)
    here.use(session, "Where does Alice live?")
    here.clock.advance(10 * DAY - 1)
    assert here.picked()["added"] == ["a"]
    here.clock.advance(2)
    assert here.picked()["added"] == []


def test_without_a_last_usage_it_falls_back_to_generated_at(opened: Open) -> None:
    """G2: fresh memories that were never used can be selected, old ones cannot."""
    here = opened(max_unused_days=10)
    here.learned("old", HOME)
    here.clock.advance(6 * DAY)
    here.learned("fresh", COLOUR)
    here.clock.advance(5 * DAY)
    assert here.picked()["added"] == ["fresh"]


def test_the_age_of_a_backlog_can_be_that_of_what_was_said(opened: Open) -> None:
    """G2: `consolidation_clock`; by default late work makes an old session fresh."""
    here = opened(max_unused_days=10, consolidation_clock="source_updated_at")
    session = here.told("late", HOME)
    here.clock.advance(11 * DAY)
    assert here.memory.worker().tick().processed == 1
    assert here.extraction(session).generated_at == here.clock.now()
    assert here.picked()["added"] == []


def test_it_ranks_by_usage_count_first(opened: Open) -> None:
    """G2: an old one that was used twice goes before newer ones that were used less."""
    here = opened(consolidation_top_n=1)
    twice = here.learned("twice", HOME)
    once = here.learned("once", COLOUR)
    here.learned("never", DRINK)
    for _ in range(2):
        here.use(twice, "Where does Alice live?")
        here.clock.advance(60)
    here.use(once, "What is the favourite colour?")
    assert here.picked()["added"] == ["twice"]


def test_then_by_the_most_recent_last_usage(opened: Open) -> None:
    """G2: equally often used, the one used last is first, though it is the older one."""
    here = opened(consolidation_top_n=1)
    last = here.learned("used last", HOME)
    first = here.learned("used first", COLOUR)
    here.use(first, "What is the favourite colour?")
    here.clock.advance(60)
    here.use(last, "Where does Alice live?")
    assert here.picked()["added"] == ["used last"]


def test_then_by_the_most_recent_generated_at(opened: Open) -> None:
    """G2."""
    here = opened(consolidation_top_n=1)
    here.learned("older", HOME)
    here.learned("newer", COLOUR)
    assert here.picked()["added"] == ["newer"]


# "syncs local memory artifacts under the memories root"


def test_raw_memories_are_merged_latest_first(here: Here) -> None:
    """G6: by when something was last said, not by when it was distilled."""
    early = here.told("early", HOME)
    here.clock.advance(DAY)
    late = here.told("late", COLOUR)
    here.memory.work()
    raw = here.body(RAW)
    assert here.files()["raw_memories.md"].endswith(f"{raw}\n")
    assert raw.index(late.id) < raw.index(early.id)
    assert "Alice lives in Lisbon." in raw
    assert "favourite colour is teal" in raw


def test_there_is_one_summary_file_per_retained_rollout(here: Here) -> None:
    """G6."""
    sessions = [here.learned(key, text) for key, text in {"a": HOME, "b": COLOUR}.items()]
    here.tick()
    found = {name: text for name, text in here.files().items() if "rollout_summaries/" in name}
    assert len(found) == 2
    for session in sessions:
        assert sum(session.id in text for text in found.values()) == 1


def test_a_summary_keeps_its_name_when_its_session_goes_on(here: Here) -> None:
    """G6: stable names; the page of one session is one page."""
    session = here.learned("a", HOME)
    here.tick()
    before = here.summaries()
    session.append("user", COLOUR, name="Alice")
    session.sleep()
    here.memory.work()
    assert here.summaries() == before
    assert "teal" in here.body(before[0])


def test_stale_summaries_that_are_no_longer_retained_are_pruned(opened: Open) -> None:
    """G6: pages and files."""
    here = opened(consolidation_top_n=1)
    old = here.learned("old", HOME)
    here.tick()
    assert any(old.id in text for text in here.files().values())
    here.learned("new", COLOUR)
    here.tick()
    assert len(here.summaries()) == 1
    assert not any(old.id in text for text in here.pages().values())
    assert not any(old.id in text for text in here.files().values())


def test_if_there_are_no_inputs_the_job_is_successful_and_nobody_is_asked(opened: Open) -> None:
    """G7: a memory that has become too old is the last one; no agent starts."""
    here = opened(keeper, max_unused_days=10)
    here.learned("a", HOME)
    assert here.tick() == 1
    before = len(here.server.requests)
    here.clock.advance(11 * DAY)
    here.sweep()
    assert len(here.server.requests) == before
    state = here.space.generations.state()
    assert (state.job, state.consolidated) == (JobState.IDLE, state.changed)
    generation = here.space.generations.get()
    assert (generation.number, generation.made_by, generation.removed) == (2, "rules", 1)
    assert not any("Lisbon" in text for text in here.pages().values())


def test_a_space_that_never_had_any_input_gets_empty_pages_and_nobody_is_asked(
    opened: Open,
) -> None:
    """G7: asked for by hand."""
    here = opened(keeper)
    assert here.space.generations.run().failed == 0
    assert here.server.requests == []
    assert here.space.generations.get().documents == 3
    assert here.summaries() == []
    assert here.space.generations.run().generations == 0, "nothing has changed"


# "If there is input, it then spawns an internal consolidation sub-agent"


def test_an_internal_agent_is_asked_where_a_model_is_set(opened: Open) -> None:
    """G8."""
    here = opened(keeper)
    here.learned("a", HOME)
    assert here.tick() == 1
    generation = here.space.generations.get()
    assert generation.made_by.startswith("openai:scripted/consolidation-")
    assert generation.spent.calls == len(here.server.requests) == 3
    assert generation.note == "3 sections written; 0 left as they were."
    assert here.files()["memory_summary.md"].endswith("Somebody who talks about home.\n")


def test_the_prompt_has_the_diff_of_this_selection_and_the_last(opened: Open) -> None:
    """G3, G8: what was added, retained and removed, and of the facts which are new."""
    here = opened(keeper, consolidation_top_n=2)
    here.learned("leaves", HOME)
    here.learned("stays", COLOUR)
    here.tick()
    first = here.server.requests[0].prompt
    assert "2 added, 0 retained, 0 removed" in first
    assert ", new)" not in first, "all of it is"
    before = len(here.server.requests)
    here.learned("comes", DRINK)
    assert here.tick() == 1
    request = here.server.requests[before]
    assert "1 added, 1 retained, 1 removed (unselected)" in request.prompt
    (fact,) = [text for text in request.prompt.splitlines() if "tea over coffee" in text]
    assert ", new)" in fact
    (known,) = [text for text in request.prompt.splitlines() if "teal" in text and "- f" in text]
    assert ", new)" not in known
    assert "Lisbon" not in "".join(each.prompt for each in here.server.requests[before:])


def test_it_has_tools_over_memory_and_no_others(opened: Open) -> None:
    """G8: no network, no approvals, nobody to delegate to."""
    here = opened(keeper)
    here.learned("a", HOME)
    here.tick()
    for request in here.server.requests:
        assert {tool.name for tool in request.tools} == {READING}


def test_it_writes_its_own_pages_and_no_others(opened: Open) -> None:
    """G8: it answers with text, and has no tool that writes, delegates or reaches out."""
    wanted = (
        ("document_write", {"path": "~/memory/people/alice", "body": "It was me."}),
        ("spawn_agent", {"task": "do my work"}),
        ("web_fetch", {"url": "http://x.test"}),
    )

    def overreaching(received: Received) -> Scripted:
        is_begun = received.messages[-1].role is ChatRole.TOOL
        return keeper(received) if is_begun else calls(*wanted)

    here = opened(overreaching)
    here.learned("a", HOME)
    here.space.documents.write("~/memory/people/alice", "A page of somebody's own.")
    assert here.tick() == 1
    answers = [each.text for each in here.server.requests[-1].messages if each.call_id]
    assert len(answers) == 3
    assert all("no tool" in text for text in answers), answers
    assert here.body("~/memory/people/alice") == "A page of somebody's own."


def test_nothing_of_its_run_is_remembered(opened: Open) -> None:
    """G8: memory is off for itself; it has no session, and what it said is nobody's memory."""
    here = opened(keeper)
    session = here.learned("a", HOME)
    here.tick()
    here.memory.work(all=True)
    assert [each.id for each in here.space.sessions.list(100)] == [session.id]
    assert len(here.space.sessions.extractions()) == 1
    assert here.memory.store.agents.list(SPACE, 100) == []


def test_the_lease_is_renewed_while_the_agent_runs(opened: Open) -> None:
    """ "watches the agent status and heartbeats the global job lease while it runs". G1, G10."""
    gate = Gate()

    def slow(received: Received) -> Scripted:
        return held(gate, keeper(received))

    here = opened(slow, lease_seconds=60, agent_seconds_max=3600)
    here.learned("a", HOME)
    worker = here.memory.worker()
    with Background(worker.tick) as running:
        assert gate.arrived.wait(WAIT_SECONDS)
        for _ in range(3):
            here.clock.advance(50)
            worker.renew_leases()
        assert here.job().lease_expires_at == here.clock.now() + timedelta(seconds=60)
        assert here.memory.worker().tick().generations == 0, "nobody else gets it"
        gate.open()
    assert running.result.generations == 1


def test_the_job_is_marked_successful_when_the_agent_finishes(opened: Open) -> None:
    """G10."""
    here = opened(keeper)
    here.learned("a", HOME)
    here.tick()
    job = here.job()
    assert (job.state, job.failures, job.last_error) == (JobState.IDLE, 0, None)
    assert job.finished_at == here.clock.now()


def later(failing: Scripted) -> Script:
    """A model that writes the first generation and fails at the second."""

    def script(received: Received) -> Scripted:
        return failing if "Generation 1 was" in received.prompt else keeper(received)

    return script


def test_the_job_is_marked_failed_with_its_reason_and_backs_off(opened: Open) -> None:
    """G10: a model that says nothing useful is a failure; one that is away is waited for."""
    useless = calls(("document_write", {"path": "~/memory/MEMORY", "body": ""}))
    here = opened(later(useless), backoff_seconds=60, backoff_seconds_max=60)
    here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    assert here.memory.worker().tick().failed == 1
    job = here.job()
    assert (job.state, job.failures) == (JobState.DUE, 1)
    assert job.last_error is not None
    assert "did not finish" in job.last_error
    state = here.space.generations.state()
    assert state.generation == 1
    assert state.last_error == job.last_error


def test_a_model_that_is_away_burns_no_attempt(opened: Open) -> None:
    """G10: the job waits and says why."""
    here = opened(later(status(503, "down for maintenance")))
    here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    assert here.memory.worker().tick().postponed == 1
    job = here.job()
    assert (job.state, job.failures, job.pauses) == (JobState.DUE, 0, 1)
    assert job.last_error is not None
    assert "ModelUnavailable" in job.last_error


# "Selection diff behavior"


def test_success_marks_the_exact_snapshots_it_consumed(opened: Open) -> None:
    """G4: `selected_for_phase2` with its `source_updated_at`; what was not selected is not."""
    here = opened(consolidation_top_n=1)
    old, new = here.learned("old", HOME), here.learned("new", COLOUR)
    here.tick()
    taken, left = here.extraction(new), here.extraction(old)
    assert taken.selected_for_phase2
    assert taken.selected_for_phase2_source_updated_at == taken.source_updated_at
    assert not left.selected_for_phase2
    assert left.selected_for_phase2_source_updated_at is None


def test_a_failed_run_marks_nothing(opened: Open) -> None:
    """G4."""
    here = opened(later(status(503, "away")))
    here.learned("a", HOME)
    here.tick()
    session = here.learned("b", COLOUR)
    here.tick()
    assert not here.extraction(session).selected_for_phase2


def test_phase_1_preserves_the_baseline_until_the_next_success(here: Here) -> None:
    """G3, G4."""
    session = here.learned("a", HOME)
    here.tick()
    before = here.extraction(session)
    here.clock.advance(60)
    session.append("user", COLOUR, name="Alice")
    session.sleep()
    assert here.memory.worker().tick().processed == 1
    refreshed = here.extraction(session)
    assert refreshed.source_updated_at > before.source_updated_at
    assert refreshed.selected_for_phase2
    assert refreshed.selected_for_phase2_source_updated_at == before.source_updated_at
    here.tick()
    after = here.extraction(session)
    assert after.selected_for_phase2_source_updated_at == refreshed.source_updated_at


def test_what_was_selected_before_is_retained_and_what_is_new_is_added(here: Here) -> None:
    """G3."""
    here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    assert here.picked() == {"added": ["b"], "retained": ["a"], "removed": []}
    here.tick()
    assert here.picked() == {"added": [], "retained": ["a", "b"], "removed": []}


def test_a_refreshed_session_stays_added_until_its_new_snapshot_is_consumed(opened: Open) -> None:
    """G3: a run that fails in between does not change that."""
    answers: list[Any] = [True, False, True]

    def wavering(received: Received) -> Scripted:
        if asked(received)[:1] not in ([], ["Sessions"]) and not answers.pop(0):
            return status(503, "away")
        return keeper(received)

    here = opened(wavering)
    session = here.learned("a", HOME)
    assert here.tick() == 1
    here.clock.advance(60)
    session.append("user", COLOUR, name="Alice")
    session.sleep()
    assert here.memory.worker().tick().processed == 1
    assert here.picked()["added"] == ["a"]
    assert here.tick() == 0
    assert here.picked()["added"] == ["a"]
    here.clock.advance(DAY)
    assert here.tick() == 1
    assert here.picked() == {"added": [], "retained": ["a"], "removed": []}


def test_what_was_selected_and_is_outside_the_top_n_is_removed(opened: Open) -> None:
    """G3: though its row still exists."""
    here = opened(consolidation_top_n=1)
    session = here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    assert here.picked() == {"added": ["b"], "retained": [], "removed": ["a"]}
    (removed,) = here.space.generations.preview().selection.removed
    assert removed.because is RemovedBecause.UNSELECTED
    here.tick()
    assert here.picked() == {"added": [], "retained": ["b"], "removed": []}
    assert not here.extraction(session).selected_for_phase2


def test_while_the_agent_works_the_evidence_of_what_is_removed_can_still_be_read(
    opened: Open,
) -> None:
    """G6: the union of both selections is staged; what is published has only the current one."""
    gate, waits = Gate(), threading.Event()

    def slow(received: Received) -> Scripted:
        return held(gate, keeper(received)) if waits.is_set() else keeper(received)

    here = opened(slow, consolidation_top_n=1, agent_seconds_max=3600)
    here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    waits.set()
    with Background(here.memory.worker().tick) as running:
        assert gate.arrived.wait(WAIT_SECONDS)
        (staged,) = here.root.glob(".alice.staged-*")
        raw = (staged / "raw_memories.md").read_text()
        summaries = "".join(each.read_text() for each in staged.glob("rollout_summaries/*.md"))
        gate.open()
    assert running.result.generations == 1
    assert "Lisbon" in raw
    assert "teal" in raw
    assert "Lisbon" in summaries
    assert not any("Lisbon" in text for text in here.pages().values())


# "Watermark behavior"


def test_the_claim_includes_the_latest_input_known_then(here: Here) -> None:
    """G5."""
    here.learned("a", HOME)
    here.learned("b", COLOUR)
    assert claimed(here).read_upto == here.space.generations.state().changed == 2


def test_completion_is_the_newest_of_what_was_claimed_and_what_was_loaded(opened: Open) -> None:
    """G5: what came between the claim and the load is part of it."""
    here = opened()
    here.learned("a", HOME)
    claim = claimed(here)
    here.learned("b", COLOUR)
    run = here.memory.pipeline.consolidator().run
    worker = here.memory.worker()
    report = run(claim, worker._holder, threading.Event())
    assert report.generations == 1
    state = here.space.generations.state()
    assert state.consolidated == 2 > claim.read_upto
    assert state.job is JobState.IDLE, "there is nothing left that it has not seen"


def test_the_watermark_is_stored_on_success_and_not_on_failure(opened: Open) -> None:
    """G5."""
    answers = iter([True, False, True])

    def second_time(received: Received) -> Scripted:
        if asked(received)[:1] not in ([], ["Sessions"]) and not next(answers):
            return status(503, "away")
        return keeper(received)

    here = opened(second_time)
    here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    here.tick()
    state = here.space.generations.state()
    assert (state.changed, state.consolidated) == (2, 1)
    here.clock.advance(DAY)
    here.tick()
    state = here.space.generations.state()
    assert (state.changed, state.consolidated) == (2, 2)


def test_without_new_input_it_is_not_dirty(here: Here) -> None:
    """G5: nothing is due, and nothing is made."""
    here.learned("a", HOME)
    here.tick()
    assert here.space.generations.state().waits_for(here.clock.now()) is Waiting.NOTHING_CHANGED
    assert not here.memory.work()
    assert here.space.generations.state().generation == 1


def test_input_that_arrives_during_a_run_leaves_the_job_dirty(opened: Open) -> None:
    """G4, G5: it is not consumed by a run that has not read it."""
    gate = Gate()
    answers = iter([gate])

    def slow(received: Received) -> Scripted:
        waiting = next(answers, None)
        return keeper(received) if waiting is None else held(waiting, keeper(received))

    here = opened(slow, agent_seconds_max=3600)
    here.learned("a", HOME)
    with Background(here.memory.worker().tick) as running:
        assert gate.arrived.wait(WAIT_SECONDS)
        late = here.learned("b", COLOUR)
        gate.open()
    assert running.result.generations == 1
    state = here.space.generations.state()
    assert (state.generation, state.job) == (1, JobState.DUE)
    assert state.consolidated < state.changed
    assert not here.extraction(late).selected_for_phase2
    assert here.tick() == 1
    assert here.extraction(late).selected_for_phase2


def test_late_input_that_is_older_than_the_watermark_makes_it_dirty(here: Here) -> None:
    """G5: revisions are counted, not seconds: a backlog is not hidden by what came before it."""
    patient = LeasePolicy(lease_seconds=3600)  # no lease is longer
    here.told("late", HOME)
    here.clock.advance(DAY)
    early = here.memory.store.leases.claim("slow", patient, here.clock.now())
    assert isinstance(early, Claim), "somebody has the older session and takes its time"
    here.learned("newer", COLOUR)
    assert here.space.generations.run().generations == 1
    assert here.space.generations.get().added == 1
    here.memory.store.leases.release(early)
    assert here.memory.worker().tick().processed == 1
    assert here.space.generations.state().job is JobState.DUE
    assert here.picked() == {"added": ["late"], "retained": ["newer"], "removed": []}


def test_the_watermark_never_moves_backwards(here: Here) -> None:
    """G5: a clock that was set back hides no input, and takes nothing back."""
    here.learned("a", HOME)
    here.tick()
    before = here.space.generations.state().consolidated
    here.clock.advance(-2 * DAY)
    here.learned("b", COLOUR)
    assert here.picked()["added"] == ["b"]
    assert here.space.generations.run().generations == 1
    assert here.space.generations.state().consolidated > before


def test_time_alone_makes_it_dirty(opened: Open) -> None:
    """G5: a memory that expires is an input, too."""
    here = opened(max_unused_days=10)
    here.learned("a", HOME)
    here.tick()
    here.clock.advance(10 * DAY + 1)
    assert not here.memory.worker().drain(), "nothing was said"
    here.sweep()
    assert here.space.generations.get().removed == 1


# "refreshing the on-disk memory workspace and producing the higher-level outputs"


def test_what_it_leaves_is_a_workspace_of_files_and_the_outputs_above_them(here: Here) -> None:
    """G6, G8: the same on every store where `memories_root` is set."""
    here.learned("a", HOME)
    here.learned("b", COLOUR)
    here.tick()
    names = {name for name in here.files() if "rollout_summaries/" not in name}
    assert {"MEMORY.md", "memory_summary.md", "raw_memories.md"} <= names
    assert "Alice lives in Lisbon." in here.files()["MEMORY.md"]
    assert here.body(SUMMARY) in here.files()["memory_summary.md"]
