"""The seam around a store: it keeps every promise, and no verb passes beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import StoreError
from recollect.observing.seam import End, Kind, StoreVerb
from recollect.store.observed import AGGREGATES, ObservedStore, verbs_of
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.store.whole import Access
from recollect_conformance import OpenStore, cases, run

EVERY = 4  # cases that one of is run: all of them take as long as all the rest of these tests
WRITES = {
    "sessions": "open_key rotate end set_mode",
    "records": "append trim purge set_summary",
    "marks": "invalidate invalidate_current mark_processed",
    "leases": "record record_pass stage revive",
    "extractions": "request_passes",
    "facts": "add remember update accept reject delete",
    "documents": "apply erase_versions erase_deleted purge",
    "search": "use",
    "agents": "post take step finish rotate set_signal cancel_signal deliver kill",
    "generations": "publish restore amend request pause resume prune",
    "imports": "adopt note",
    "api_keys": "add revoke",
    "erasure": "forget_session forget_record forget_fact forget_sessions forget_agent forget_facts"
    " forget_space",
}


class Tally:
    """Counts what begins and what ends."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()

    def minds(self, verb: StoreVerb) -> bool:
        del verb
        return True

    def begin(self, verb: StoreVerb, args: Sequence[Any], named: Mapping[str, Any]) -> End:
        del args, named
        self.begun[verb.name] += 1

        def end(error: BaseException | None, result: object) -> None:
            del error, result
            self.ended[verb.name] += 1

        return end


def observed(tally: Tally) -> Store:
    return ObservedStore(open_store(":memory:", Settings(), ManualClock()), [tally])


def test_an_observed_store_keeps_the_promises_of_a_store() -> None:
    tally = Tally()

    @contextmanager
    def fresh() -> Iterator[OpenStore]:
        yield lambda: observed(tally)

    report = run(fresh, volatile=True, only=cases()[::EVERY])
    assert [result.explanation for result in report.failures] == []
    assert tally.begun == tally.ended
    assert len(tally.begun) > 80


def test_every_verb_of_every_aggregate_goes_through_the_seam() -> None:
    with closing(observed(Tally())) as store:
        for name in AGGREGATES:
            if name == "vector_search":
                continue
            shown = {each for each in vars(getattr(store, name)) if not each.startswith("_")}
            assert shown == set(verbs_of(name)), name
    assert {name for name in vars(Store) if not name.startswith("_")} == {
        "keep",
        "whole",
        "listen",
        "describe",
        "close",
    }


def test_what_is_a_write_was_thought_about() -> None:
    """A verb that is new is one until it is listed as a read or as upkeep."""
    found = {
        name: {method for method, verb in verbs_of(name).items() if verb.kind is Kind.WRITE}
        for name in AGGREGATES
    }
    assert found == {name: set(WRITES.get(name, "").split()) for name in AGGREGATES}


def test_a_look_at_whole_tables_is_observed_until_its_end() -> None:
    tally = Tally()
    with closing(observed(tally)) as store:
        with store.whole(Access.READ) as whole:
            assert "sessions" in whole.tables()
            assert tally.ended["store.read_whole"] == 0
        assert tally.ended["store.read_whole"] == 1
        with pytest.raises(StoreError), store.whole(Access.WRITE):
            raise StoreError("half-way")
    assert tally.begun == tally.ended == {"store.read_whole": 1, "store.write_whole": 1}


def test_what_compares_vectors_is_handed_out_observed(postgres_store_url: str) -> None:
    tally = Tally()
    inner = open_store(postgres_store_url, Settings(), ManualClock())
    with closing(ObservedStore(inner, [tally])) as store:
        compared = store.vectors.search()
        if compared is None:
            pytest.skip("this server has no pgvector")
        assert compared.additions("alice") == 0
        assert store.vectors.search() is compared
    assert tally.ended == {"vector_search.additions": 1}
