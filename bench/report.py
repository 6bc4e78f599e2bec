"""Lines of the result: what was measured, against which limit and target, and the verdict."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import apsw


class Verdict(StrEnum):
    """What a line says about its target."""

    REACHED = "reached"
    MISSED = "missed"
    SHOWN = "–"  # no target: for comparison
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure. `limit` is the same done by the raw database, or the small case of a pair."""

    group: str
    name: str
    unit: str = ""
    measured: float | None = None
    limit: float | None = None
    target: float | None = None  # the most that `figure` may be
    is_ratio: bool = True
    note: str = ""

    @property
    def figure(self) -> float | None:
        """What the target is about: measured / limit, or what was measured alone."""
        if not self.is_ratio or self.measured is None:
            return self.measured
        return self.measured / self.limit if self.limit else None

    @property
    def verdict(self) -> Verdict:
        if self.measured is None:
            return Verdict.SKIPPED
        if self.target is None or self.figure is None:
            return Verdict.SHOWN
        return Verdict.REACHED if self.figure <= self.target else Verdict.MISSED


def skipped(group: str, name: str, why: str) -> Line:
    return Line(group=group, name=name, note=why)


def as_table(lines: Iterable[Line]) -> Iterator[str]:
    """The result as aligned text."""
    heads = ("what", "measured", "limit", "ratio", "target", "verdict", "")
    rows = [(line.group, _cells(line)) for line in lines]
    widths = [max(len(row[i]) for row in [heads, *(cells for _, cells in rows)]) for i in range(6)]
    group = None
    yield _aligned(heads, widths)
    for name, cells in rows:
        if name != group:
            group = name
            yield f"\n{group}"
        yield _aligned(cells, widths)


def as_text(line: Line) -> str:
    """One figure on a line of its own, with what it is about."""
    cells = [cell.strip() for cell in _cells(line)]
    return f"{line.group}: {'; '.join(cell for cell in cells if cell)}"


def as_json(lines: Iterable[Line], context: dict[str, Any]) -> dict[str, Any]:
    """The result to keep: rounded, without empty fields."""
    return {"context": context, "lines": [_plain(line) for line in lines]}


def describe_machine() -> dict[str, Any]:
    """What a reader needs to judge the figures; nothing that names the machine."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "apsw": apsw.apsw_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }


def _cells(line: Line) -> tuple[str, ...]:
    return (
        f"  {line.name}",
        _number(line.measured, line.unit),
        _number(line.limit, line.unit),
        f"{line.figure:.2f} ×" if line.is_ratio and line.figure is not None else "",
        _target(line),
        line.verdict.value,
        line.note,
    )


def _target(line: Line) -> str:
    if line.target is None:
        return ""
    return f"≤ {line.target:.2f} ×" if line.is_ratio else f"≤ {_number(line.target, line.unit)}"


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    first, *numbers, verdict, note = cells
    columns = [first.ljust(widths[0])]
    columns += [cell.rjust(width) for cell, width in zip(numbers, widths[1:5], strict=True)]
    return "  ".join([*columns, verdict.ljust(widths[5]), note]).rstrip()


def _plain(line: Line) -> dict[str, Any]:
    fields = dataclasses.asdict(line) | {"figure": line.figure, "verdict": line.verdict.value}
    kept = {name: value for name, value in fields.items() if value not in (None, "")}
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in kept.items()
    }
