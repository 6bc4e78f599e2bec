"""N10: charts, links that lead somewhere, and times as people say them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.interfaces.web.rendering import Renderer, ago, figure, files, moment, static
from recollect.interfaces.web.site import BY_NAME, VIEWS
from recollect.types.facts import CallOutcome, Caps, NewCall, Reserved, Spent
from tests.e2e.web_world import PagedWorld
from tests.tables import every_row

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_every_view_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(VIEWS)


def test_a_link_is_one_place_whatever_a_name_says() -> None:
    renderer = Renderer(BY_NAME)
    assert renderer.path("fact", space="a/b c", fact="x?y#z") == "/ui/s/a%2Fb%20c/facts/x%3Fy%23z"
    assert renderer.path("facts", {"q": "a&b", "tag": "", "every": None}, space="s") == (
        "/ui/s/s/facts?q=a%26b"
    )


def test_a_file_that_changes_is_elsewhere() -> None:
    assert {"style.css", "pages.js", "htmx.min.js", "icon.svg"} <= files().keys()
    assert static("style.css").startswith("/ui/static/style.css?v=")


@every_row(
    ("at", "said"),
    [
        (NOW, "just now"),
        (NOW - timedelta(seconds=59), "just now"),
        (NOW - timedelta(minutes=1), "1 minute ago"),
        (NOW - timedelta(hours=47), "1 day ago"),
        (NOW - timedelta(days=65), "2 months ago"),
        (NOW - timedelta(days=800), "2 years ago"),
        (NOW + timedelta(seconds=3), "in a moment"),
        (NOW + timedelta(hours=3), "in 3 hours"),
    ],
)
def test_a_time_is_said_as_people_say_it(at: datetime, said: str) -> None:
    assert f">{said}<" in ago(at, NOW)
    assert f'datetime="{at.isoformat()}"' in ago(at, NOW)
    assert ago(None, NOW) == moment(None) == "–"


def rectangles(spent: Sequence[tuple[int, int, int]]) -> list[dict[str, str]]:
    """The bars of the first chart of an overview: (days ago, tokens read, tokens written)."""
    with recollect.open(":memory:", clock=ManualClock(NOW)) as memory:
        for days, read, written in spent:
            call = NewCall(
                space="a",
                session_id=None,
                purpose="extract",
                model="m",
                attempt=1,
                input_tokens=0,
                output_tokens=0,
            )
            caps = Caps(tokens_per_day=10**9, calls_per_day=10**6)
            reserved = memory.store.ledger.reserve(call, caps, NOW - timedelta(days=days))
            assert isinstance(reserved, Reserved)
            cost = Spent(input_tokens=read, output_tokens=written, cost_micros=None)
            memory.store.ledger.settle("a", reserved.call_id, cost, CallOutcome.ANSWERED)
        page = PagedWorld(memory).visitor().get("/ui/s/a").text
    first = page.partition('<svg class="plot"')[2].partition("</svg>")[0]
    return [dict(re.findall(r'(\w+)="([^"]*)"', each)) for each in re.findall("<rect[^>]*>", first)]


def test_bars_are_as_high_as_their_numbers() -> None:
    bars = rectangles([(2, 30, 10), (0, 80, 0)])
    heights = [float(bar["height"]) for bar in bars]
    assert [bar["class"] for bar in bars] == ["first", "second", "first"]
    assert heights[0] == pytest.approx(3 * heights[1], abs=0.2)
    assert heights[2] == pytest.approx(2 * (heights[0] + heights[1]), abs=0.3)
    lowest = {round(float(bar["y"]) + float(bar["height"])) for bar in bars[::2]}
    assert len(lowest) == 1
    assert float(bars[0]["x"]) < float(bars[2]["x"])


def test_nothing_is_an_empty_picture() -> None:
    assert rectangles([]) == rectangles([(0, 0, 0)]) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.25, "0.25"), (999, "999"), (1234, "1,234"), (12_340, "12.34 k"), (2_500_000, "2.5 M")],
)
def test_a_figure_fits_beside_a_chart(value: float, said: str) -> None:
    assert figure(value) == said
