"""The chart is SVG that any reader takes, with a bar for each series and label."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from recollect.benchmarks.plot import WIDTH, Panel, bar_chart

SVG = "{http://www.w3.org/2000/svg}"

TURNS = Panel(
    title="a & b <dev>.json",
    groups={
        "R@5": {"FTS5": 0.25, "recall": 0.75},
        "R@10": {"FTS5": 0.5, "recall": 1.0},
        "nDCG@10": {"FTS5": 0.4, "recall": 0.6},
    },
    series=("FTS5", "grep", "recall"),
    ours=frozenset({"recall"}),
)
SESSIONS = Panel(
    title="longmemeval.json",
    groups={"any@5": {"FTS5": 0.5}},
    series=("FTS5",),
    ours=frozenset(),
)


def test_each_bar_is_as_high_as_its_figure_and_within_the_chart() -> None:
    chart = ET.fromstring(bar_chart([TURNS]))
    bars = [rect for rect in chart.iter(f"{SVG}rect") if rect.get("height") != "12"][1:]
    heights = [float(bar.get("height", "")) for bar in bars]
    assert len(heights) == 6  # two series have these figures, in three groups
    assert [round(height / heights[3], 2) for height in heights] == [0.25, 0.75, 0.5, 1, 0.4, 0.6]
    for bar in bars:
        assert float(bar.get("x", "")) + float(bar.get("width", "")) <= WIDTH
        assert float(bar.get("y", "")) >= 0


def test_each_panel_has_its_title_its_labels_and_every_series_named() -> None:
    chart = ET.fromstring(bar_chart([TURNS, SESSIONS]))
    texts = [text.text for text in chart.iter(f"{SVG}text")]
    assert "a & b <dev>.json" in texts
    assert texts.count("FTS5") == 2
    assert {"R@10", "any@5", "0.750", "grep"} <= set(texts)


def test_panels_stand_below_each_other_within_the_chart() -> None:
    chart = ET.fromstring(bar_chart([TURNS, SESSIONS]))
    height = float(chart.get("height", ""))
    lows = [float(text.get("y", "")) for text in chart.iter(f"{SVG}text")]
    assert max(lows) < height
    titles = [
        float(text.get("y", ""))
        for text in chart.iter(f"{SVG}text")
        if text.get("font-size") == "15"
    ]
    assert titles == sorted(titles)
    assert len(titles) == 2
