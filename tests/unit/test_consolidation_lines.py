"""What people are told of consolidation: each reason to wait, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from recollect.consolidation.run import Preview
from recollect.interfaces.cli.commands import Target
from recollect.interfaces.cli.generations import (
    SHOWN,
    WHY_REMOVED,
    Consolidation,
    consolidation_lines,
    consolidation_view,
    preview_lines,
    why_in_words,
)
from recollect.types.facts import NOTHING_SPENT
from recollect.types.generations import (
    ConsolidationState,
    Generation,
    Pick,
    Removed,
    RemovedBecause,
    Selection,
    Waiting,
)
from recollect.types.records import JobState
from tests.tables import every_row

NOW = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=30)
STATE = replace(ConsolidationState.untouched("alice"), generation=2, changed=4, consolidated=4)
GENERATION = Generation(
    space="alice",
    number=2,
    made_at=NOW,
    made_by="rules",
    note="",
    added=1,
    retained=2,
    removed=0,
    documents=6,
    changed=4,
    spent=NOTHING_SPENT,
    is_whole=True,
)
EVERYWHERE = Target(store=None, named_space=None, as_json=False)


def plain(lines: Iterable[str]) -> list[str]:
    """Without our own colours."""
    return [click.unstyle(line) for line in lines]


def at(**changed: Any) -> Consolidation:
    """A space that stands like this."""
    state = replace(STATE, **changed)
    return Consolidation(state=state, current=GENERATION, coming=None, by_workers=True)


def due(**changed: Any) -> Consolidation:
    return at(changed=5, job=JobState.DUE, **changed)


CASES = {
    Waiting.NOTHING_CHANGED: (at(), "nothing has changed since", None),
    Waiting.RUNNING: (due(), "the next one is being made", None),
    Waiting.PAUSED: (at(paused_at=NOW), "resume it: recollect generations resume --space a", None),
    Waiting.PARKED: (due(), "fix the cause, then: recollect consolidate --space a --now", None),
    Waiting.BACKOFF: (due(due_at=LATER, failures=2), "next try: 2026-05-04 09:30:00Z", LATER),
    Waiting.COOLDOWN: (due(due_at=LATER), "not before 2026-05-04 09:30:00Z", LATER),
    Waiting.PHASE_1: (due(phase1_due=3), "waits for 3 sessions still to be distilled", NOW),
    Waiting.READY: (due(), "waits for a worker; at once: recollect consolidate --space a", NOW),
}
STATES = {Waiting.RUNNING: JobState.CLAIMED, Waiting.PARKED: JobState.PARKED}


@every_row("waiting", Waiting)
def test_every_reason_to_wait_is_told_with_what_comes_next(waiting: Waiting) -> None:
    """G10: why a job is not running, and when it will."""
    each, words, next_at = CASES[waiting]
    if waiting in STATES:
        each = replace(each, state=replace(each.state, job=STATES[waiting]))
    assert each.state.waits_for(NOW) is waiting
    assert words in why_in_words(each, NOW, " --space a")
    assert each.state.next_attempt_at(NOW) == next_at
    shape = consolidation_view(each, NOW)
    assert (shape["waits_for"], shape["next_attempt_at"]) == (waiting.value, next_at)


def test_what_was_put_off_is_no_cooldown() -> None:
    each = due(due_at=LATER, last_error="SpendCapReached: the day's tokens are used up")
    told = plain(consolidation_lines(each, NOW, EVERYWHERE))
    assert told[1].startswith("  postponed until 2026-05-04 09:30:00Z")
    assert told[2] == "  error: SpendCapReached: the day's tokens are used up"


def test_the_time_at_which_memories_grow_old_is_told() -> None:
    each = at(expires_at=LATER)
    assert why_in_words(each, NOW, "").endswith("a memory expires 2026-05-04 09:30:00Z")
    assert each.state.next_attempt_at(NOW) == LATER


def test_workers_that_do_not_consolidate_are_not_waited_for() -> None:
    each = replace(due(), by_workers=False)
    assert "(consolidation = off); by hand: recollect consolidate" in why_in_words(each, NOW, "")


def test_a_space_is_named_only_where_there_may_be_others() -> None:
    made = "generation 2, made 2026-05-04 09:00:00Z by rules: 6 documents of 3 memories"
    assert next(consolidation_lines(at(), NOW, EVERYWHERE)) == f"alice: {made}"
    of_one = replace(EVERYWHERE, named_space="alice")
    assert next(consolidation_lines(at(), NOW, of_one)) == made
    none = replace(at(generation=0), current=None)
    assert next(consolidation_lines(none, NOW, of_one)) == "no generation yet"
    restored = replace(at(), current=replace(GENERATION, restored_from=1))
    assert "generation 2, restored from 1, made" in next(consolidation_lines(restored, NOW, of_one))


def test_what_failed_is_told_with_its_count() -> None:
    each = due(due_at=LATER, failures=2, last_error="InvalidOutput: no\x1b[31m sources")
    told = plain(consolidation_lines(each, NOW, EVERYWHERE))
    assert told[-1] == r"  failed 2 x; last error: InvalidOutput: no\x1b[31m sources"


def selected(**changed: Any) -> Selection:
    picks = tuple(
        Pick(session_id=f"s{number}", revision=1, source_updated_at=NOW, path=None)
        for number in range(SHOWN + 1)
    )
    selection = Selection(
        space="alice",
        revision=5,
        added=picks,
        retained=(),
        removed=(),
        generation=2,
        digest=None,
    )
    return replace(selection, **changed)


def test_a_long_selection_is_cut_and_counted() -> None:
    preview = Preview(selection=selected(), made_by="rules", is_unchanged=False)
    told = plain(preview_lines(preview, {"s0": "telegram:42"}))
    assert told[:2] == [
        "Space 'alice': generation 2.",
        f"The next one would be made of {SHOWN + 1} memories, by rules.",
    ]
    assert told[2] == f"Added     {SHOWN + 1}"
    assert told[3] == "  s0  telegram:42  (new; last heard from 2026-05-04 09:00:00Z)"
    assert "  … and 1 more (--json)" in told


@every_row("because", RemovedBecause)
def test_every_reason_to_be_removed_is_told(because: RemovedBecause) -> None:
    selection = selected(removed=(Removed(session_id="gone", because=because),))
    preview = Preview(selection=selection, made_by="rules", is_unchanged=False)
    assert f"  gone  –  ({because.value}: {WHY_REMOVED[because]})" in list(
        preview_lines(preview, {})
    )
