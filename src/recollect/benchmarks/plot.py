"""A bar chart as SVG text: panels below each other, a group of bars for each figure.

What is measured is blue, what it is compared with grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from recollect.errors import InvalidValue

WIDTH = 860
PANEL_HEIGHT = 300
MARGIN = 40
TITLE_HEIGHT = 34
LABEL_HEIGHT = 24
LEGEND_LINE = 18
BAR_GAP = 2
BASELINE_COLOURS = ("#b9c0c8", "#98a1ab", "#788390", "#5c6773")
RECALL_COLOURS = ("#2f7fc1", "#12508a")


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A title, and for each label a figure by series; `ours` are the series that are measured."""

    title: str
    groups: Mapping[str, Mapping[str, float]]
    series: tuple[str, ...]
    ours: frozenset[str]
    most: float = 1.0  # the top of the scale; figures are shares where nothing else is said

    def shown(self, value: float) -> str:
        """A figure as it is written: a share with its decimals, others as far as they matter."""
        if self.most <= 1:
            return f"{value:.3f}"
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    @property
    def height(self) -> int:
        return PANEL_HEIGHT + LEGEND_LINE * len(self.series)

    @property
    def colours(self) -> dict[str, str]:
        left = {True: list(RECALL_COLOURS), False: list(BASELINE_COLOURS)}
        return {name: left[name in self.ours].pop(0) for name in self.series}


def draw(path: Path, panels: Iterable[Panel]) -> None:
    try:
        path.write_text(bar_chart(panels), encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"{path} cannot be written: {error.strerror}") from error


def bar_chart(panels: Iterable[Panel]) -> str:
    """All panels as one picture."""
    drawn = list(panels)
    size = f'width="{WIDTH}" height="{sum(panel.height for panel in drawn)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect {size} fill="white"/>',
    ]
    top = 0
    for panel in drawn:
        lines += _panel(panel, top)
        top += panel.height
    return "\n".join([*lines, "</svg>", ""])


def _panel(panel: Panel, top: int) -> Iterator[str]:
    yield _text(MARGIN, top + 22, panel.title, 'font-size="15" font-weight="bold"')
    floor = top + PANEL_HEIGHT - LABEL_HEIGHT
    scale = floor - top - TITLE_HEIGHT - 14
    for tenth in range(0, 11, 2):
        level = floor - scale * tenth / 10
        yield (
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{level:.1f}" y2="{level:.1f}"'
            ' stroke="#e3e6ea"/>'
        )
        label = f"{tenth / 10:.1f}" if panel.most <= 1 else panel.shown(panel.most * tenth / 10)
        yield _text(MARGIN - 6, level + 4, label, 'text-anchor="end" fill="#667"')
    colours = panel.colours
    group_width = (WIDTH - 2 * MARGIN) / max(len(panel.groups), 1)
    for place, (label, shares) in enumerate(panel.groups.items()):
        left = MARGIN + place * group_width
        yield _text(left + group_width / 2, floor + 17, label, 'text-anchor="middle"')
        bar_width = (group_width - 24) / max(len(shares), 1)
        for number, (name, share) in enumerate(shares.items()):
            x = left + 12 + number * bar_width
            yield from _bar(
                x, floor, bar_width - BAR_GAP, scale * share / panel.most, colours[name]
            )
            middle, above = x + bar_width / 2, floor - scale * share / panel.most - 4
            yield _text(middle, above, panel.shown(share), 'text-anchor="middle" font-size="10"')
    for number, (name, colour) in enumerate(colours.items()):
        y = top + PANEL_HEIGHT + LEGEND_LINE * number
        yield f'<rect x="{MARGIN}" y="{y}" width="12" height="12" fill="{colour}"/>'
        yield _text(MARGIN + 18, y + 10, name)


def _bar(x: float, floor: float, width: float, height: float, colour: str) -> Iterator[str]:
    yield (
        f'<rect x="{x:.1f}" y="{floor - height:.1f}" width="{width:.1f}" height="{height:.1f}"'
        f' fill="{colour}"/>'
    )


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'
