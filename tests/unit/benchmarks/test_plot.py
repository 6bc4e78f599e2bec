"""The chart is SVG that any reader takes, with a bar for each method and figure."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from recollect.benchmarks.plot import WIDTH, bar_chart
from recollect.benchmarks.recall import BY_WORDS, FTS_SESSIONS, FTS_TURNS, Result, Row
from recollect.benchmarks.tasks import Split, Task

SVG = "{http://www.w3.org/2000/svg}"


def row(name: str, **figures: float) -> Row:
    mean = {figure.replace("_at_", "@").replace("_", " "): each for figure, each in figures.items()}
    return Row(name=name, mean=mean, by_category={}, cpu_ms_p50=1.0, cpu_ms_p95=2.0)


def result(file: str, task: Task, *rows: Row) -> Result:
    return Result(
        file=file,
        task=task,
        split=Split.DEVELOPMENT,
        spaces=1,
        turns=5,
        questions=2,
        rows=rows,
    )


TURNS = result(
    "a & b <dev>.json",
    Task.LOCOMO,
    row(FTS_TURNS, R_at_5=0.25, R_at_10=0.5, nDCG_at_10=0.4),
    row(FTS_SESSIONS, session_R_at_5=0.9),
    row(BY_WORDS, R_at_5=0.75, R_at_10=1.0, nDCG_at_10=0.6),
)
SESSIONS = result(
    "longmemeval.json",
    Task.LONGMEMEVAL,
    row(FTS_SESSIONS, session_any_at_5=0.5, session_R_at_5=0.4, session_nDCG_at_10=0.3),
)


def test_each_bar_is_as_high_as_its_figure_and_within_the_chart() -> None:
    chart = ET.fromstring(bar_chart([TURNS]))
    bars = [rect for rect in chart.iter(f"{SVG}rect") if rect.get("height") != "12"][1:]
    heights = [float(bar.get("height", "")) for bar in bars]
    assert len(heights) == 6  # two methods have these figures, in three groups
    assert [round(height / heights[3], 2) for height in heights] == [0.25, 0.75, 0.5, 1, 0.4, 0.6]
    for bar in bars:
        assert float(bar.get("x", "")) + float(bar.get("width", "")) <= WIDTH
        assert float(bar.get("y", "")) >= 0


def test_each_file_has_a_panel_with_its_name_and_split_and_every_method_named() -> None:
    chart = ET.fromstring(bar_chart([TURNS, SESSIONS]))
    texts = [text.text for text in chart.iter(f"{SVG}text")]
    assert "a & b <dev>.json (development): 2 questions" in texts
    assert "longmemeval.json (development): 2 questions" in texts
    assert texts.count(FTS_SESSIONS) == 2
    assert {"R@10", "session any@5", "0.750"} <= set(texts)


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
