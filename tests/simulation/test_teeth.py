"""The simulation bites: each way in which leases are got wrong is caught within 200 seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import ModuleType

import pytest

from recollect import phase1
from recollect.store.protocol import Store
from recollect.store.relational import jobs, leases, marks, modes, records
from recollect.store.sql import queries
from recollect.types.agents import HandOver
from recollect.types.facts import Learned
from recollect.types.records import Claim, Outcome, Overtaken, Recorded, StaleClaim
from tests.simulation.play import SeedFailed, play, stage
from tests.simulation.world import SharedTimeHolder, new_store

SEEDS = 200


@pytest.fixture
def store() -> Iterator[Store]:
    store = new_store()
    yield store
    store.close()


@pytest.fixture(autouse=True)
def on_stage() -> Iterator[None]:
    with stage():
        yield


def caught(store: Store, holder: type[SharedTimeHolder] = SharedTimeHolder) -> str:
    """What the checkers say, within the first seeds; nothing if they do not notice."""
    for seed in range(SEEDS):
        try:
            play(store, seed, holder)
        except SeedFailed as failure:
            return str(failure).partition("\n")[0]
    return ""


# A query, what is taken out of it, and what is put in its place.
SQL_MISTAKES = {
    "record without the token": ("lock_claim", "AND token = :token AND state = 'claimed'", ""),
    "renew without the token": ("renew_claim", "AND token = :token", ""),
    "fail without the token": ("fail_claim", "AND token = :token", ""),
    "give back without the token": ("give_back", "AND token = :token", ""),
    "finish a sweep without the token": ("finish_recurring", "AND token = :token", ""),
    "a claim keeps the token": ("claim_job", "token = token + 1", "token = token"),
    "giving back keeps the token": ("give_back", "token = token + 1,", ""),
    "a failure keeps the token": ("fail_claim", "token = token + 1,", ""),
    "leases that ran out are left": ("expired_claims", "state = 'claimed' AND", "0 AND"),
    "leases that ran out stay": (
        "claim_job",
        "OR (state = 'claimed'",
        "OR (0 AND state = 'claimed'",
    ),
    "takeovers are not counted": ("claim_job", "'claimed' THEN 1", "'claimed' THEN 0"),
    "workers may die for ever": ("park_exhausted", "takeovers >=", "0 AND takeovers >="),
    "the cap is not counted": ("count_running", "count(*)", "0 * count(*)"),
    "the newest goes first": (
        "hold_first_due",
        "ORDER BY first_due_at",
        "ORDER BY -first_due_at",
    ),
    "the mark is cleared, come what may": (
        "advance_cursor",
        "(invalidated_at = :claimed_mark",
        "(1",
    ),
    "a piece clears the mark": ("advance_cursor", "(:is_last AND", "(1 AND"),
    "the mark stays": ("advance_cursor", "(:is_last AND", "(0 AND"),
    "the turns are not counted again": ("advance_cursor", "h.role = 'user'", "h.role = 'x'"),
    "a range begins too late": (
        "insert_range",
        ":first_seq, :last_seq",
        ":last_seq, :last_seq",
    ),
    "progress is not noted": ("note_progress", "failures = 0", "failures = failures"),
    "giving back burns an attempt": (
        "give_back",
        "state = 'due',",
        "state = 'due', failures = failures + 1,",
    ),
    "the sweep marks nothing": ("mark_idle", "AND waiting AND", "AND 0 AND"),
    "marks can be lowered": (
        "invalidate",
        "COALESCE(invalidated_at, processed_until",
        "COALESCE(processed_until",
    ),
    "the swap does not compare": (
        "mark_processed",
        "invalidated_at = :expected",
        "invalidated_at > 0",
    ),
    "an append does not mark": (
        "sequence_records",
        "THEN last_seq + :count",
        "THEN invalidated_at",
    ),
    "a purge keeps the mark": (
        "skip_to_end",
        "processed_until = NULLIF(last_seq, 0)",
        "last_seq = last_seq",
    ),
    "reviving does nothing": ("revive_jobs", "state = 'due'", "state = state"),
    "clearing a mark keeps the token": ("rest_extract", "token = token + 1,", ""),
    "clearing a mark keeps the job": ("rest_extract", "state = 'idle'", "state = state"),
    "a mark makes no job": ("make_extract_due", "'due', :marked_at", "'idle', :marked_at"),
    "a mark hurries what backs off": (
        "make_extract_due",
        "IN ('idle', 'parked')",
        "IN ('idle', 'parked', 'due')",
    ),
    "activity does not revive": ("make_extract_due", "IN ('idle', 'parked')", "IN ('idle')"),
}


@pytest.mark.parametrize("mistake", SQL_MISTAKES)
def test_a_mistake_in_a_statement_is_caught(
    store: Store, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    query, old, new = SQL_MISTAKES[mistake]
    right = queries("sqlite")[query]
    assert old in right
    monkeypatch.setitem(queries("sqlite"), query, right.replace(old, new))
    assert caught(store)


# Where marks are set and cleared, and the job is left as it was.
FORGOTTEN_JOBS = (
    (records, "mark_made"),
    (marks, "mark_made"),
    (jobs, "mark_made"),
    (marks, "mark_cleared"),
    (jobs, "mark_cleared"),
    (leases, "mark_cleared"),
    (modes, "mark_cleared"),
)


@pytest.mark.parametrize(
    ("module", "name"),
    FORGOTTEN_JOBS,
    ids=lambda each: getattr(each, "__name__", each).rpartition(".")[2],
)
def test_a_job_that_is_forgotten_with_a_mark_is_caught(
    store: Store, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    monkeypatch.setattr(module, name, lambda *_: None)
    assert caught(store)


class ReadsTheMaximumAgain(SharedTimeHolder):
    """Takes what is there when the model is done for what the model has seen."""

    def record(
        self,
        claim: Claim,
        upto: int,
        outcome: Outcome,
        reason: str | None = None,
        learned: Learned | None = None,
        handed: HandOver | None = None,
    ) -> Recorded | Overtaken | StaleClaim:
        newest = self.store.marks.max_seq(claim.space, claim.key)
        if upto == claim.read_upto and newest is not None:
            claim, upto = dataclasses.replace(claim, read_upto=newest), newest
        return super().record(claim, upto, outcome, reason, learned, handed)


def test_reading_the_maximum_after_the_model_call_is_caught(store: Store) -> None:
    assert "M10" in caught(store, ReadsTheMaximumAgain)


def test_a_worker_that_records_what_it_has_not_read_is_caught(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phase1.Run, "reached", lambda run, loaded, verdict: run.claim.read_upto)
    assert "P3" in caught(store)
