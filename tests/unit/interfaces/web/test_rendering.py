"""N10: templates that all compile, links that lead somewhere, and times as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.interfaces.web.operating import days_until, plot
from recollect.interfaces.web.rendering import Renderer, ago, files, moment, static
from recollect.interfaces.web.site import BY_NAME, VIEWS

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_every_template_compiles() -> None:
    renderer = Renderer(BY_NAME)
    assert len(renderer.templates()) > 20
    for name in renderer.templates():
        renderer.compiled(name)


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


@pytest.mark.parametrize(
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


def test_bars_are_as_high_as_their_numbers() -> None:
    days = days_until(NOW, 3)
    drawn = plot("Tokens", ("in", "out"), days, {days[0]: (30, 10), days[2]: (80, 0)})
    heights = [(bar.kind, bar.height) for bar in drawn.bars]
    assert [kind for kind, _ in heights] == ["first", "second", "first"]
    assert heights[0][1] == pytest.approx(3 * heights[1][1], abs=0.2)
    assert heights[2][1] == pytest.approx(2 * (heights[0][1] + heights[1][1]), abs=0.2)
    lowest = {bar.y + bar.height for bar in drawn.bars if bar.kind == "first"}
    assert lowest == {float(drawn.floor)}
    assert [row[0] for row in drawn.rows] == ["2026-03-02", "2026-03-04"]


def test_nothing_is_an_empty_picture() -> None:
    assert plot("Cost", ("spent",), days_until(NOW, 30), {}).is_empty
    assert plot("Cost", ("spent",), days_until(NOW, 30), {days_until(NOW, 1)[0]: (0,)}).is_empty
