"""The figures of a ranking, reckoned by hand."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from recollect.benchmarks.figures import average, of_sessions, of_turns, percentile, timed
from recollect.benchmarks.tasks import Query, session_of

OTHERS = [f"z:{number}" for number in range(20)]


def query(*turns: str, sessions: tuple[str, ...] = ()) -> Query:
    return Query(
        id="q",
        text="?",
        category="any",
        asked_at=datetime(2026, 1, 1, tzinfo=UTC),
        turns=frozenset(turns),
        sessions=frozenset(sessions or map(session_of, turns)),
    )


def test_shares_count_how_much_of_the_evidence_stands_early() -> None:
    order = ["z:0", "a:1", *OTHERS[1:4], "b:1", *OTHERS[4:]]
    figures = of_turns(query("a:1", "b:1"), order)
    assert (figures["R@5"], figures["R@10"], figures["MRR"]) == (0.5, 1.0, 0.5)
    gained = 1 / math.log2(3) + 1 / math.log2(7)
    assert figures["nDCG@10"] == pytest.approx(gained / (1 + 1 / math.log2(3)))


def test_the_eleventh_is_too_late_for_ten() -> None:
    assert of_turns(query("a:1"), [*OTHERS[:9], "a:1"])["R@10"] == 1.0
    late = of_turns(query("a:1"), [*OTHERS[:10], "a:1"])
    assert (late["R@10"], late["nDCG@10"]) == (0.0, 0.0)
    assert late["MRR"] == pytest.approx(1 / 11)


def test_a_perfect_order_has_every_figure_at_one() -> None:
    figures = of_turns(query("a:1", "b:1"), ["b:1", "a:1", *OTHERS])
    assert set(figures.values()) == {1.0}


def test_an_empty_answer_is_worth_nothing_and_not_left_out() -> None:
    figures = of_turns(query("a:1"), [])
    assert set(figures.values()) == {0.0}
    assert len(figures) == 7


def test_a_session_stands_where_its_first_turn_does() -> None:
    order = ["x:1", "x:2", "x:3", "x:4", "x:5", "a:9", "a:1"]
    figures = of_turns(query("a:1"), order)
    assert (figures["R@5"], figures["session R@5"]) == (0.0, 1.0)
    assert figures["session nDCG@10"] == pytest.approx(1 / math.log2(3))


def test_without_known_turns_only_sessions_count() -> None:
    figures = of_turns(query(sessions=("a", "b")), ["a:1", *OTHERS])
    assert set(figures) == {"session any@5", "session R@5", "session nDCG@10"}
    assert (figures["session any@5"], figures["session R@5"]) == (1.0, 0.5)


def test_any_of_five_does_not_look_at_the_sixth() -> None:
    order = ["u", "v", "w", "x", "y", "a"]
    assert of_sessions(query("a:1"), order)["session any@5"] == 0.0
    assert of_sessions(query("a:1"), order[1:])["session any@5"] == 1.0


def test_a_mean_is_over_the_questions_that_have_the_figure() -> None:
    assert average([{"R@5": 1.0, "MRR": 0.5}, {"R@5": 0.0}]) == {"R@5": 0.5, "MRR": 0.5}


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(20, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.95)) == (10.0, 19.0)
    assert percentile([3.0], 0.95) == 3.0


def test_work_is_timed_and_its_result_handed_on() -> None:
    result, cpu_ms = timed(lambda: sum(range(1000)))
    assert result == 499_500
    assert cpu_ms >= 0
