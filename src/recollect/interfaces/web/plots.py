"""Numbers over days as pictures: bars drawn here, so that no script and no style is needed for it.

Coordinates are plain attributes and colours are classes: a strict policy lets nothing else through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WIDTH, HEIGHT = 420, 140
LEFT, BOTTOM, TOP = 46, 22, 10
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One part of a day's bar, and what it stands for in words."""

    x: float
    y: float
    width: float
    height: float
    kind: str  # first or second: the parts that are stacked
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A line across, or a day below, with its words."""

    at: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A picture of days, ready to be drawn; the numbers stay beside it for who cannot see it."""

    title: str
    names: tuple[str, ...]
    bars: tuple[Bar, ...]
    levels: tuple[Mark, ...]
    days: tuple[Mark, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    floor: int = HEIGHT - BOTTOM

    @property
    def is_empty(self) -> bool:
        return not self.bars


def days_until(last: datetime, count: int) -> list[datetime]:
    """The midnights of so many days, the last one included."""
    midnight = last.replace(hour=0, minute=0, second=0, microsecond=0)
    return [midnight - timedelta(days=count - 1 - each) for each in range(count)]


def plot(
    title: str,
    names: Sequence[str],
    days: Sequence[datetime],
    values: Mapping[datetime, Sequence[float]],
    unit: str = "",
) -> Plot:
    """Bars for days; each value is stacked upon those before it."""
    none = (0.0,) * len(names)
    totals = [sum(values.get(day, none)) for day in days]
    top = _rounded(max(totals, default=0.0))
    floor, room = HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP
    step = (WIDTH - LEFT) / max(len(days), 1)
    bars = []
    for place, day in enumerate(days):
        y = float(floor)
        for name, kind, value in zip(
            names, ("first", "second"), values.get(day, none), strict=False
        ):
            height = room * value / top if top else 0.0
            if height <= 0:
                continue
            y -= height
            bars.append(
                Bar(
                    x=round(LEFT + place * step + step * 0.12, 1),
                    y=round(y, 1),
                    width=round(step * 0.76, 1),
                    height=round(height, 1),
                    kind=kind,
                    meaning=f"{day:%Y-%m-%d}: {_said(value)}{unit} {name}",
                )
            )
    return Plot(
        title=title,
        names=tuple(names),
        bars=tuple(bars),
        levels=tuple(
            Mark(at=round(floor - room * part, 1), words=f"{_said(top * part)}{unit}")
            for part in (0.5, 1.0)
            if top
        ),
        days=tuple(
            Mark(at=round(LEFT + place * step + step / 2, 1), words=f"{day:%d %b}")
            for place, day in enumerate(days)
            if (len(days) - 1 - place) % 7 == 0
        ),
        rows=tuple(
            (f"{day:%Y-%m-%d}", tuple(_said(value) + unit for value in values[day]))
            for day in days
            if day in values
        ),
    )


def _rounded(value: float) -> float:
    """The next number above that people like to read."""
    if value <= 0:
        return 0.0
    size = 1.0
    while size * 10 < value:
        size *= 10
    while size > value:
        size /= 10
    return next(size * step for step in _STEPS if size * step >= value)


def _said(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:,.4g} M"
    if value >= 10_000:
        return f"{value / 1000:,.4g} k"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
