"""What no promise can see: rows about agents that have to be gone, or must not pile up."""

from __future__ import annotations

from contextlib import closing

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.records import MarkCause
from recollect_conformance import Harness, inboxes
from recollect_conformance.harness import SPACE
from tests.conformance.catalogue import Catalogue


def test_nothing_names_a_forgotten_session_in_the_rows_of_agents(
    durable_store_url: str, catalogue: Catalogue
) -> None:
    """P11, where what is left would lead nowhere."""

    def open_it() -> Store:
        return open_store(durable_store_url, Settings(), ManualClock())

    with closing(Harness(open_it)) as store:
        ref, session_id = inboxes.handed_over(store)
        claim = inboxes.work(store)
        inboxes.finish(store, claim, inboxes.take(store, claim))
        store.handle.agents.rotate(claim, MarkCause.COMPACTION, store.now(), store.new_id, retain=5)
        assert store.words(ref) == ["", "an answer"]
        for table in ("told_records", "retained_records", "inbox"):
            assert catalogue.run(f"SELECT count(*) FROM {table}") != [(0,)], table
        store.handle.erasure.forget_session(SPACE, session_id, store.now())
    for table in ("told_records", "retained_records", "inbox"):
        assert catalogue.run(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_a_memory_agent_leaves_one_row_a_session_however_often_it_is_told(
    durable_store_url: str, catalogue: Catalogue
) -> None:
    """P8: a turn that is taken up again does not add to what is known of it."""

    def open_it() -> Store:
        return open_store(durable_store_url, Settings(), ManualClock())

    with closing(Harness(open_it)) as store:
        inboxes.handed_over(store)
        claim = inboxes.work(store)
        for _ in range(3):
            turn = inboxes.take(store, claim)
        assert catalogue.run("SELECT count(*) FROM told_records") == [(1,)]
        inboxes.finish(store, claim, turn)
    assert catalogue.run("SELECT first_seq, last_seq FROM told_records") == [(1, 2)]
