"""Figures of verbs: how many, how long, which errors; and nothing of what they were about (N9)."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import NotFound, StoreClosed
from recollect.interfaces.http.metrics import Metrics
from recollect.observing.metrics import BOUNDS, VerbMetrics
from recollect.store.observed import ObservedStore
from recollect.store.opening import open_store

CANARY = "zanzibar"
LINE = re.compile(r'(# (HELP|TYPE) \w+ .+)|(\w+(\{(\w+="[^"\n]*",?)+\})? [0-9.e+-]+)')


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> VerbMetrics:
    """The figures of this process, at nought."""
    fresh = VerbMetrics()
    monkeypatch.setattr("recollect.store.observed.VERBS", fresh)
    monkeypatch.setattr("recollect.interfaces.http.metrics.VERBS", fresh)
    return fresh


def test_every_call_is_counted_once_with_its_time(counted: VerbMetrics) -> None:
    with recollect.open(":memory:", settings={"metrics": True}) as memory:
        session = memory.space("alice").session("k")
        for number in range(3):
            session.append("user", f"word {number}")
        session.recent()
    taken = counted.taken()
    assert sum(taken["records.append"].counts) == 3
    assert sum(taken["records.recent"].counts) == 1
    assert taken["records.append"].seconds > 0
    assert len(taken["records.append"].counts) == len(BOUNDS) + 1
    assert counted.errors() == {}


def test_an_error_is_counted_by_its_class(counted: VerbMetrics) -> None:
    memory = recollect.open(":memory:", settings={"metrics": True})
    space = memory.space("alice")
    assert space.facts.get("x") is None
    memory.close()
    for _ in range(2):
        with pytest.raises(StoreClosed):
            space.facts.get("x")
    assert counted.errors() == {("facts.get", "StoreClosed"): 2}
    assert sum(counted.taken()["facts.get"].counts) == 3


def test_the_text_is_prometheus_and_has_nothing_that_anybody_said(counted: VerbMetrics) -> None:
    with recollect.open(":memory:", settings={"metrics": True}) as memory:
        space = memory.space(CANARY)
        session = space.session(f"telegram:{CANARY}", agent=CANARY)
        session.append("user", f"I moved to {CANARY}")
        space.facts.add(f"{CANARY} is warm")
        space.documents.write(CANARY, f"# {CANARY}")
        space.recall(CANARY)
        with pytest.raises(NotFound):
            space.forget(session=CANARY)
        text = Metrics().text(memory)
    lines = text.splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    assert 'recollect_verb_seconds_count{verb="records.append"} 1' in lines
    assert 'recollect_verb_seconds_bucket{verb="facts.add",le="+Inf"} 1' in lines
    assert CANARY not in text
    assert list(counted.lines())


def test_a_store_that_nobody_observes_is_not_wrapped(tmp_path: Path) -> None:
    def opened(**settings: object) -> bool:
        given = Settings(**settings)  # type: ignore[arg-type]  # each by its name
        with closing(open_store(tmp_path / "memory.db", given, ManualClock())) as store:
            return isinstance(store, ObservedStore)

    assert not opened()
    assert opened(metrics=True)
    assert opened(audit="writes")
