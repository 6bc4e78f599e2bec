"""A bar chart of results as SVG text: a panel for each file, a group for each of its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from recollect.benchmarks.metrics import SESSION_FIGURES, TURN_FIGURES
from recollect.benchmarks.recall import RECALLS, Result, Row
from recollect.benchmarks.tasks import Task

WIDTH = 860
PANEL_HEIGHT = 300
MARGIN = 40
TITLE_HEIGHT = 34
LABEL_HEIGHT = 24
LEGEND_LINE = 18
BAR_GAP = 2
BASELINE_COLOURS = ("#b9c0c8", "#98a1ab", "#788390", "#5c6773")
RECALL_COLOURS = ("#2f7fc1", "#12508a")

# What a file is about comes first in what is said of it.
HEADLINES = {
    Task.LOCOMO: TURN_FIGURES[:3],
    Task.LONGMEMEVAL: SESSION_FIGURES,
}


def bar_chart(results: Sequence[Result]) -> str:
    """The headline figures of each file, one bar for each method."""
    height = sum(map(_panel_height, results))
    size = f'width="{WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect {size} fill="white"/>',
    ]
    top = 0
    for result in results:
        lines += _panel(result, top)
        top += _panel_height(result)
    return "\n".join([*lines, "</svg>", ""])


def _panel_height(result: Result) -> int:
    return PANEL_HEIGHT + LEGEND_LINE * len(result.rows)


def _panel(result: Result, top: int) -> Iterator[str]:
    figures = HEADLINES[result.task]
    title = f"{result.file} ({result.split}): {result.questions:,} questions"
    yield _text(MARGIN, top + 22, title, 'font-size="15" font-weight="bold"')
    floor = top + PANEL_HEIGHT - LABEL_HEIGHT
    scale = floor - top - TITLE_HEIGHT - 14
    for tenth in range(0, 11, 2):
        level = floor - scale * tenth / 10
        yield (
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{level:.1f}" y2="{level:.1f}"'
            ' stroke="#e3e6ea"/>'
        )
        yield _text(MARGIN - 6, level + 4, f"{tenth / 10:.1f}", 'text-anchor="end" fill="#667"')
    group_width = (WIDTH - 2 * MARGIN) / len(figures)
    colours = _colours(result.rows)
    for place, figure in enumerate(figures):
        left = MARGIN + place * group_width
        yield _text(left + group_width / 2, floor + 17, figure, 'text-anchor="middle"')
        told = [(row, colour) for row, colour in colours if figure in row.mean]
        bar_width = (group_width - 24) / max(len(told), 1)
        for number, (row, colour) in enumerate(told):
            x = left + 12 + number * bar_width
            yield from _bar(x, floor, bar_width - BAR_GAP, scale * row.mean[figure], colour)
            middle, above = x + bar_width / 2, floor - scale * row.mean[figure] - 4
            label = f"{row.mean[figure]:.3f}"
            yield _text(middle, above, label, 'text-anchor="middle" font-size="10"')
    for number, (row, colour) in enumerate(colours):
        y = top + PANEL_HEIGHT + LEGEND_LINE * number
        yield f'<rect x="{MARGIN}" y="{y}" width="12" height="12" fill="{colour}"/>'
        yield _text(MARGIN + 18, y + 10, row.name)


def _colours(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Greys for what recall is compared with."""
    left = {True: list(RECALL_COLOURS), False: list(BASELINE_COLOURS)}
    return [(row, left[row.name in RECALLS].pop(0)) for row in rows]


def _bar(x: float, floor: float, width: float, height: float, colour: str) -> Iterator[str]:
    yield (
        f'<rect x="{x:.1f}" y="{floor - height:.1f}" width="{width:.1f}" height="{height:.1f}"'
        f' fill="{colour}"/>'
    )


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'
