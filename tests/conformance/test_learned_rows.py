"""What was learned, row by row: what an upsert keeps (X9), and what the database itself refuses."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from recollect.clock import ManualClock, from_micros
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.store.relational import Connection, learning
from recollect.store.relational.database import Params
from recollect.types.facts import NewFact, Trust
from recollect.types.records import Recorded, StaleClaim
from recollect_conformance import Harness
from recollect_conformance.harness import SPACE
from recollect_conformance.lessons import (
    NOTHING,
    add,
    claim,
    day,
    draft,
    edit,
    extraction,
    facts,
    learn,
    lesson,
    only_fact,
    statement,
    teach,
)
from tests.conformance.catalogue import Catalogue

REFUSED = (apsw.ConstraintError, psycopg.IntegrityError)


@pytest.fixture
def store(durable_store_url: str) -> Iterator[Harness]:
    with closing(Harness(lambda: open_store(durable_store_url, Settings(), ManualClock()))) as it:
        yield it


def mark_as_used(catalogue: Catalogue) -> None:
    """What recall and phase 2 do to an extraction, in later steps."""
    catalogue.run(
        "UPDATE extractions SET usage_count = 7, last_usage = 42, selected_for_phase2 = TRUE,"
        " selected_for_phase2_source_updated_at = 41"
    )


def use(store: Harness, session: str) -> tuple[object, ...]:
    made = extraction(store, session)
    baseline = made.selected_for_phase2_source_updated_at
    return made.usage_count, made.last_usage, made.selected_for_phase2, baseline


USED = (7, from_micros(42), True, from_micros(41))


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_one_draft_does_what_its_statements_would_do_one_after_the_other(
    durable_store_url: str, tmp_path: Path, seed: int
) -> None:
    """T4: a statement may end what a later one of the same draft says again, or be the same."""
    chance = random.Random(seed)
    store = Harness(lambda: open_store(durable_store_url, Settings(), ManualClock()))
    other = f"sqlite:///{tmp_path / 'other.db'}?synchronous=off"
    single = Harness(lambda: open_store(other, Settings(), ManualClock()))
    with closing(store), closing(single):
        for number in range(8):
            made = [_some_statement(chance, number) for _ in range(chance.randint(1, 6))]
            key, is_whole = f"k{number % 10}", chance.random() < 0.3
            learn(store, lesson(draft(*made), is_whole=is_whole), key)
            with _nothing_looked_up_ahead():
                learn(single, lesson(draft(*made), is_whole=is_whole), key)
            assert _told(store) == _told(single), number


def _some_statement(chance: random.Random, today: int) -> NewFact:
    town, seq = chance.choice(["Rome", "Oslo", "Lima"]), chance.randint(1, 3)
    topic = chance.choice(["home", "home", "work", None])
    trust = chance.choice([Trust.USER, Trust.USER, Trust.AGENT])
    return statement(
        f"{topic or 'trip'}: {town}",
        seq,
        said=day(today + chance.randint(0, 3)),
        topic=topic,
        trust=trust,
    )


@contextmanager
def _nothing_looked_up_ahead() -> Iterator[None]:
    """A run that looks at each statement when it makes it."""
    with pytest.MonkeyPatch.context() as patch:
        looked_up = learning._look_up

        def forgetful(
            c: Connection, made: learning.Lesson, statements: Sequence[Params], *, is_whole: bool
        ) -> Any:
            found = looked_up(c, made, statements, is_whole=is_whole)
            made.known.clear()
            return found

        patch.setattr(learning, "_look_up", forgetful)
        yield


def _told(store: Harness) -> list[tuple[object, ...]]:
    told = [
        (fact.content, fact.valid_from, fact.valid_to, fact.trust, fact.source_count)
        for fact in facts(store, every=True)
    ]
    return sorted(told, key=str)


def test_running_a_session_again_keeps_its_use_and_the_baseline_of_phase_2(
    store: Harness, catalogue: Catalogue
) -> None:
    session = learn(store, lesson(draft()))
    mark_as_used(catalogue)
    assert use(store, session) == USED
    learn(store, lesson(draft(memory="new")))
    learn(store, lesson(draft(memory="newer"), is_whole=True))
    learn(store, lesson(draft(memory="newer")))
    learn(store, lesson(NOTHING))
    assert extraction(store, session).raw_memory == "newer"
    assert use(store, session) == USED


def test_a_new_pass_keeps_the_use_and_the_baseline_of_phase_2(
    store: Harness, catalogue: Catalogue
) -> None:
    session = learn(store, lesson(draft()))
    mark_as_used(catalogue)
    store.handle.extractions.request_passes(SPACE, session, store.now())
    learned = lesson(draft(memory="new"), is_whole=True, pass_number=2)
    store.handle.leases.record_pass(claim(store), 1, learned, store.now(), store.new_id)
    assert extraction(store, session).pass_number == 2
    assert use(store, session) == USED


def test_a_pass_over_what_may_not_be_remembered_stores_nothing_and_is_done(
    store: Harness, catalogue: Catalogue
) -> None:
    session = teach(store, statement("likes tea"))
    store.handle.extractions.request_passes(SPACE, session, store.now())
    again = claim(store)
    before = only_fact(store), extraction(store, session)
    catalogue.run("UPDATE sessions SET remembered = FALSE")
    learned = lesson(draft(statement("a ghost"), memory="new"), is_whole=True, pass_number=2)
    record_pass = store.handle.leases.record_pass
    assert record_pass(again, 1, learned, store.now(), store.new_id) == Recorded(is_done=True)
    assert (only_fact(store), extraction(store, session)) == before
    assert store.session(session).pass_number == 1
    assert record_pass(again, 1, learned, store.now(), store.new_id) == StaleClaim()


def test_consolidation_that_has_seen_everything_is_due_again_after_a_change(
    store: Harness, catalogue: Catalogue
) -> None:
    teach(store, statement("likes tea"))
    catalogue.run("UPDATE consolidations SET consolidated = changed")
    assert not store.handle.extractions.revision(SPACE).is_due
    assert store.handle.extractions.count_due(None) == 0
    teach(store, statement("likes tea"))
    assert not store.handle.extractions.revision(SPACE).is_due
    teach(store, statement("has a cat"))
    assert store.handle.extractions.revision(SPACE).is_due
    assert store.handle.extractions.count_due(SPACE) == 1


def test_a_fact_keeps_its_use_when_it_is_replaced_edited_or_said_again(
    store: Harness, catalogue: Catalogue
) -> None:
    add(store, "likes tea", named="mine")
    catalogue.run("UPDATE facts SET usage_count = 7, last_usage = 42")
    add(store, "likes coffee", named="mine")
    fact = only_fact(store)
    assert (fact.usage_count, fact.last_usage) == (7, from_micros(42))
    edit(store, fact.id, tags=("x",))
    assert only_fact(store).usage_count == 7


def test_the_database_itself_holds_a_statement_once_in_a_space(
    store: Harness, catalogue: Catalogue
) -> None:
    teach(store, statement("likes tea"))
    given = "content, words, content_key, tags, metadata, trust"
    columns = f"{given}, created_at, updated_at, valid_from"

    def copy_to(space: str) -> None:
        catalogue.run(
            f"INSERT INTO facts (id, space, {columns}) SELECT 'x', '{space}', {columns} FROM facts"
        )

    with pytest.raises(REFUSED):
        copy_to(SPACE)
    copy_to("other")
    with pytest.raises(REFUSED):
        catalogue.run("UPDATE facts SET space = 'space-a' WHERE id = 'x'")
    catalogue.run("UPDATE facts SET superseded_by = 'y', superseded_at = 1 WHERE id = 'x'")
    catalogue.run("UPDATE facts SET space = 'space-a' WHERE id = 'x'")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE facts SET trust = 'nobody'",
        "UPDATE facts SET own_trust = 'nobody'",
        "UPDATE fact_sources SET trust = 'nobody'",
        "UPDATE facts SET superseded_by = 'x'",
        "UPDATE fact_sources SET seq_to = seq - 1",
        "UPDATE ledger SET outcome = 'guessed'",
    ],
)
def test_the_database_itself_refuses_what_no_store_writes(
    store: Harness, catalogue: Catalogue, damage: str
) -> None:
    teach(store, statement("likes tea"))
    catalogue.run(
        "INSERT INTO ledger (space, purpose, model, attempt, day, input_tokens, output_tokens,"
        " outcome, created_at) VALUES ('space-a', 'x', 'm', 1, 1, 1, 1, 'reserved', 0)"
    )
    with pytest.raises(REFUSED):
        catalogue.run(damage)


def test_what_an_earlier_archive_tells_was_taken_back_stays_away_for_good(
    store: Harness, catalogue: Catalogue
) -> None:
    """T4: it does not say up to which record."""
    teach(store, statement("likes tea"))
    for fact in facts(store):
        store.handle.erasure.forget_fact(SPACE, fact.id, store.now())
    catalogue.run("DELETE FROM fact_history WHERE event = 'unsaid'")
    catalogue.run("UPDATE fact_history SET upto = NULL")
    teach(store, statement("likes tea", 9))
    assert facts(store) == []
