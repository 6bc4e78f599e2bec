"""P3, X9: a session's pieces, each recorded with its cursor; passes that replace all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

import recollect
from recollect import phase1
from recollect.clock import ManualClock
from recollect.errors import InvalidOutput
from recollect.processing import Verdict, Work
from recollect.types.facts import Draft, Extraction, NewFact, Spent, Trust
from recollect.types.records import JobState, Outcome, SessionOutcome

BACKOFF_SECONDS = 60.0

Open = Callable[..., recollect.Memory]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three records make a piece, so that seven make three."""
    monkeypatch.setattr(phase1, "PIECE_RECORDS", 3)


@pytest.fixture
def opened(store_url: str, clock: ManualClock) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_it(**settings: Any) -> recollect.Memory:
            given = {"backoff_seconds": BACKOFF_SECONDS, "backoff_seconds_max": BACKOFF_SECONDS}
            memory = recollect.open(store_url, settings=given | settings, clock=clock)
            return stack.enter_context(memory)

        yield open_it


@dataclass
class Reading:
    """Distils by counting: a memory names all records so far, and each record is a fact."""

    name: str = "reading/1"
    before: Callable[[Work], None] = lambda _: None
    is_silent: Callable[[Work], bool] = lambda _: False
    seqs: list[tuple[int, int]] = field(default_factory=list)
    previous: list[str | None] = field(default_factory=list)

    def process(self, work: Work) -> Verdict:
        self.seqs.append((work.records[0].seq, work.upto))
        earlier: Extraction | None = work.previous
        self.previous.append(None if earlier is None else earlier.raw_memory)
        self.before(work)
        said = () if earlier is None else (earlier.raw_memory,)
        draft = Draft(upto=work.upto)
        if not self.is_silent(work):
            draft = Draft(
                upto=work.upto,
                raw_memory=" ".join((*said, *(record.content for record in work.records))),
                rollout_summary=f"up to {work.upto}",
                facts=tuple(self._fact(record) for record in work.records),
            )
        return Verdict(
            outcome=Outcome.NO_OUTPUT if draft.is_empty else Outcome.EXTRACTED,
            draft=draft,
            extractor=self.name,
            spent=Spent(calls=1, input_tokens=10),
        )

    def _fact(self, record: recollect.Record) -> NewFact:
        return NewFact(
            content=f"{self.name.partition('/')[0]} {record.content}",
            seq=record.seq,
            seq_to=record.seq,
            valid_from=record.at,
            trust=Trust.USER,
        )


def told(memory: recollect.Memory, first: int = 1, last: int = 7) -> recollect.Session:
    session = memory.space().session("k", agent="assistant")
    for number in range(first, last + 1):
        session.append("user", f"r{number}")
    session.sleep()
    return session


def extraction(memory: recollect.Memory, session: recollect.Session) -> Extraction:
    found = memory.space().sessions.extraction(session.id)
    assert found is not None
    return found


def facts(memory: recollect.Memory) -> set[str]:
    return {each.content for each in memory.space().facts.list(limit=1000)}


def spans(memory: recollect.Memory, session: recollect.Session) -> list[tuple[int, int, int]]:
    ranges = memory.space().sessions.ranges(session.id)
    return [(span.first_seq, span.last_seq, span.pass_number) for span in ranges]


def words(last: int, first: int = 1) -> str:
    return " ".join(f"r{number}" for number in range(first, last + 1))


def all_said(name: str, last: int) -> set[str]:
    return {f"{name} r{number}" for number in range(1, last + 1)}


# what is new


def test_a_session_is_read_in_pieces_each_with_what_the_ones_before_came_to(opened: Open) -> None:
    memory, reading = opened(), Reading()
    session = told(memory)
    report = memory.work(reading)
    assert (report.processed, report.records) == (1, 7)
    assert reading.seqs == [(1, 3), (4, 6), (7, 7)]
    assert reading.previous == [None, words(3), words(6)]
    assert spans(memory, session) == [(1, 3, 1), (4, 6, 1), (7, 7, 1)]
    assert extraction(memory, session).raw_memory == words(7)
    assert facts(memory) == all_said("reading", 7)


@pytest.mark.parametrize("last", [3, 6])
def test_a_session_of_whole_pieces_has_no_empty_one_at_its_end(opened: Open, last: int) -> None:
    memory, reading = opened(), Reading()
    session = told(memory, last=last)
    memory.work(reading)
    assert len(reading.seqs) == last // 3
    assert session.state.processed_until == last
    assert session.state.invalidated_at is None


def test_each_piece_is_stored_before_the_next_is_read(opened: Open) -> None:
    memory = opened()
    session = told(memory)
    cursors: list[int | None] = []
    memory.work(Reading(before=lambda _: cursors.append(session.state.processed_until)))
    assert cursors == [None, 3, 6]


def test_a_piece_that_fails_is_where_it_goes_on(opened: Open, clock: ManualClock) -> None:
    memory = opened()
    session = told(memory)

    def broken(work: Work) -> None:
        if work.records[0].seq == 4:
            raise InvalidOutput("prose")

    assert memory.work(Reading(before=broken)).failed == 1
    assert (session.state.processed_until, facts(memory)) == (3, all_said("reading", 3))
    clock.advance(BACKOFF_SECONDS + 1)
    reading = Reading()
    assert memory.work(reading).processed == 1
    assert reading.seqs == [(4, 6), (7, 7)]
    assert reading.previous[0] == words(3)
    assert facts(memory) == all_said("reading", 7)


def test_what_is_said_meanwhile_is_left_for_the_next_run(opened: Open) -> None:
    memory = opened()
    session = told(memory, last=4)
    grown = iter([True])

    def grow(_: Work) -> None:
        if next(grown, False):
            told(memory, 5, 5)

    reading = Reading(before=grow)
    memory.work(reading)
    assert reading.seqs == [(1, 3), (4, 4), (5, 5)], "no claim reads past what it claimed"
    assert session.state.processed_until == 5


def test_a_verdict_on_part_of_a_piece_goes_on_from_there(opened: Open) -> None:
    class Slow(Reading):
        def process(self, work: Work) -> Verdict:
            self.seqs.append((work.records[0].seq, work.upto))
            return Verdict(outcome=Outcome.NO_OUTPUT, upto=work.records[0].seq)

    memory, slow = opened(), Slow()
    session = told(memory, last=3)
    assert memory.work(slow).processed == 1
    assert slow.seqs == [(1, 3), (2, 3), (3, 3)]
    assert session.state.processed_until == 3


@pytest.mark.parametrize("upto", [0, 4])
def test_a_verdict_about_other_records_is_refused(opened: Open, upto: int) -> None:
    class Confused:
        def process(self, _: Work) -> Verdict:
            return Verdict(outcome=Outcome.NO_OUTPUT, upto=upto)

    memory = opened()
    session = told(memory)
    assert memory.work(Confused()).failed == 1
    assert session.state.processed_until is None


def test_a_session_that_is_forgotten_meanwhile_leaves_nothing(opened: Open) -> None:
    memory = opened()
    session = told(memory)
    session_id = session.id
    report = memory.work(Reading(before=lambda _: forget(memory, session_id)))
    assert (report.processed, report.failed, report.stale) == (0, 0, 1)
    assert (facts(memory), memory.space().sessions.extraction(session_id)) == (set(), None)


def forget(memory: recollect.Memory, session_id: str) -> None:
    memory.space().forget(session=session_id)


# the whole session, where the settings say so


def test_a_whole_session_is_read_every_time_and_replaces_what_was_learned(opened: Open) -> None:
    memory = opened(extract_whole_session=True)
    session = told(memory, last=4)
    memory.work(Reading(name="old/1"))
    assert facts(memory) == all_said("old", 4)
    told(memory, 5, 5)
    reading = Reading(name="new/1")
    report = memory.work(reading)
    assert (report.processed, report.records) == (1, 1)
    assert reading.seqs == [(1, 3), (4, 5)]
    assert reading.previous == [None, words(3)], "what was learned before is not carried on"
    assert facts(memory) == all_said("new", 5)
    kept = extraction(memory, session)
    assert (kept.raw_memory, kept.upto, kept.extractor) == (words(5), 5, "new/1")
    assert session.state.processed_until == 5


def test_a_whole_session_is_read_again_by_the_same_extractor_as_well(opened: Open) -> None:
    memory, reading = opened(extract_whole_session=True), Reading()
    told(memory, last=4)
    memory.work(reading)
    told(memory, 5, 5)
    memory.work(reading)
    assert reading.seqs == [(1, 3), (4, 4), (1, 3), (4, 5)]
    assert facts(memory) == all_said("reading", 5)


def test_a_whole_session_is_recorded_once_at_its_end(opened: Open) -> None:
    memory = opened(extract_whole_session=True)
    session = told(memory)
    seen: list[tuple[int | None, set[str]]] = []
    memory.work(
        Reading(before=lambda _: seen.append((session.state.processed_until, facts(memory))))
    )
    assert seen == [(None, set())] * 3
    assert spans(memory, session) == [(1, 7, 1)]


# another pass


def learned_once(memory: recollect.Memory, last: int = 7) -> recollect.Session:
    session = told(memory, last=last)
    memory.work(Reading(name="old/1"))
    assert memory.request_again() == 1
    return session


def test_a_pass_reads_all_pieces_and_replaces_what_was_learned_in_one_step(opened: Open) -> None:
    memory = opened()
    session = learned_once(memory)
    seen: list[tuple[str, int, set[str]]] = []

    def look(_: Work) -> None:
        kept = extraction(memory, session)
        seen.append((kept.extractor, kept.pass_number, facts(memory)))

    reading = Reading(name="new/1", before=look)
    report = memory.work(reading)
    assert (report.processed, report.records) == (1, 7)
    assert reading.seqs == [(1, 3), (4, 6), (7, 7)]
    assert reading.previous == [None, words(3), words(6)]
    assert seen == [("old/1", 1, all_said("old", 7))] * 3, "the old stands until the new is through"
    kept = extraction(memory, session)
    assert (kept.extractor, kept.pass_number, kept.raw_memory) == ("new/1", 2, words(7))
    assert facts(memory) == all_said("new", 7)
    assert spans(memory, session) == [(1, 7, 2)]


def test_a_last_piece_with_nothing_to_say_keeps_what_the_others_said(opened: Open) -> None:
    memory = opened()
    session = learned_once(memory)
    memory.work(Reading(name="new/1", is_silent=lambda work: work.upto == 7))
    kept = extraction(memory, session)
    assert (kept.raw_memory, kept.upto, kept.pass_number) == (words(6), 7, 2)
    assert facts(memory) == all_said("new", 6)


def test_a_first_piece_with_nothing_to_say_gives_the_next_nothing(opened: Open) -> None:
    memory = opened()
    session = learned_once(memory)
    reading = Reading(name="new/1", is_silent=lambda work: work.upto == 3)
    memory.work(reading)
    assert reading.previous == [None, None, words(6, first=4)]
    assert extraction(memory, session).raw_memory == words(7, first=4)


def test_a_pass_that_finds_nothing_takes_everything_back(opened: Open) -> None:
    memory = opened()
    session = learned_once(memory)
    memory.work(Reading(name="new/1", is_silent=lambda _: True))
    assert (facts(memory), memory.space().sessions.extraction(session.id)) == (set(), None)
    (progress,) = memory.status().sessions
    assert progress.outcome is SessionOutcome.SUCCEEDED_NO_OUTPUT


def test_a_pass_that_fails_half_way_changes_nothing_and_is_tried_again(
    opened: Open, clock: ManualClock
) -> None:
    memory = opened()
    session = learned_once(memory)

    def broken(work: Work) -> None:
        if work.upto == 7:
            raise InvalidOutput("prose")

    assert memory.work(Reading(name="new/1", before=broken)).failed == 1
    assert (extraction(memory, session).extractor, facts(memory)) == ("old/1", all_said("old", 7))
    clock.advance(BACKOFF_SECONDS + 1)
    reading = Reading(name="new/1")
    assert memory.work(reading).processed == 1
    assert (reading.seqs, reading.previous) == ([(7, 7)], [words(6)]), "no piece is paid for twice"
    assert extraction(memory, session).raw_memory == words(7)
    assert facts(memory) == all_said("new", 7)


def test_a_pass_that_goes_on_with_another_extractor_mixes_nothing(
    opened: Open, clock: ManualClock
) -> None:
    memory = opened()
    learned_once(memory)

    def broken(work: Work) -> None:
        if work.upto == 7:
            raise InvalidOutput("prose")

    memory.work(Reading(name="one/1", before=broken))
    clock.advance(BACKOFF_SECONDS + 1)
    another = Reading(name="another/1")
    memory.work(another)
    assert another.seqs == [(1, 3), (4, 6), (7, 7)]
    assert facts(memory) == all_said("another", 7)


def test_a_session_that_grows_while_a_pass_runs_is_read_to_its_new_end(
    opened: Open, clock: ManualClock
) -> None:
    """The new records are learned by the old pass meanwhile, and the new one goes on to them."""
    memory = opened(worker_batch=1)  # else it claims what is said meanwhile itself
    session = learned_once(memory, last=4)
    grown = iter([True])

    def grow(work: Work) -> None:
        if work.upto == 4 and next(grown, False):
            told(memory, 5, 5)
            assert memory.work(Reading(name="old/1")).processed == 1

    reading = Reading(name="new/1", before=grow)
    memory.work(reading)
    assert reading.seqs[:2] == [(1, 3), (4, 4)]
    assert reading.seqs[-1][1] == 5, "it goes on to what has been processed meanwhile"
    kept = extraction(memory, session)
    assert (kept.extractor, kept.pass_number, kept.upto) == ("new/1", 2, 5)
    assert kept.raw_memory == words(5)
    assert facts(memory) == all_said("new", 5)
    assert session.state.processed_until == 5


def test_what_waits_for_its_mark_while_a_pass_runs_is_none_of_its_business(opened: Open) -> None:
    memory = opened()
    session = learned_once(memory, last=4)
    session.append("user", "r5")
    reading = Reading(name="new/1")
    memory.work(reading)
    assert reading.seqs == [(1, 3), (4, 4)]
    assert session.state.processed_until == 4
    assert memory.work(Reading(name="new/1"), all=True).processed == 1
    assert facts(memory) == all_said("new", 5)


def test_a_pass_over_what_was_purged_keeps_what_was_learned(opened: Open) -> None:
    memory = opened()
    session = learned_once(memory, last=4)
    session.purge()
    reading = Reading(name="new/1")
    memory.work(reading)
    assert reading.seqs == []
    assert facts(memory) == all_said("old", 4)
    assert memory.status().job_counts.get(JobState.DUE, 0) == 0


def test_without_a_draft_a_pass_leaves_everything_as_it_was(opened: Open) -> None:
    class Deaf:
        def process(self, _: Work) -> Verdict:
            return Verdict(outcome=Outcome.NO_OUTPUT)

    memory = opened()
    session = learned_once(memory)
    assert memory.work(Deaf()).processed == 1
    assert (extraction(memory, session).pass_number, facts(memory)) == (1, all_said("old", 7))


def test_a_pass_over_a_session_that_is_forgotten_meanwhile_leaves_nothing(opened: Open) -> None:
    memory = opened()
    session_id = learned_once(memory).id
    report = memory.work(Reading(name="new/1", before=lambda _: forget(memory, session_id)))
    assert (report.processed, report.failed) == (0, 0)
    assert (facts(memory), memory.space().sessions.extraction(session_id)) == (set(), None)


# what may not be remembered


def test_a_session_that_may_not_be_remembered_is_not_read(opened: Open) -> None:
    memory, reading = opened(), Reading()
    session = told(memory)
    session.mode = recollect.Mode.POLLUTED
    memory.work(reading, all=True)
    assert (reading.seqs, facts(memory)) == ([], set())


def test_of_a_session_that_is_switched_off_while_it_is_read_nothing_is_kept(opened: Open) -> None:
    memory = opened()
    session = told(memory)

    def switch_off(_: Work) -> None:
        session.mode = recollect.Mode.DISABLED

    reading = Reading(before=switch_off)
    assert memory.work(reading).processed == 0
    assert (reading.seqs, facts(memory)) == ([(1, 3)], set())
    assert memory.space().sessions.extraction(session.id) is None


def test_a_pass_shows_nothing_that_was_said_while_it_was_not_to_be_remembered(
    opened: Open,
) -> None:
    memory = opened()
    session = told(memory, last=2)
    memory.work(Reading(name="old/1"))
    session.mode = recollect.Mode.DISABLED
    told(memory, 3, 4)
    memory.work(Reading(name="old/1"))
    session.mode = recollect.Mode.ENABLED
    told(memory, 5, 5)
    memory.work(Reading(name="old/1"))
    reading = Reading(name="new/1")
    memory.work(reading, again=True)
    assert extraction(memory, session).raw_memory == "r1 r2 r5"
    assert facts(memory) == {"new r1", "new r2", "new r5"}
