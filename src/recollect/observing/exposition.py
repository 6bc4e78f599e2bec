"""Figures as Prometheus reads them: written by hand, since it is a few lines."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram:
    """How long something took, by bounds. Not safe to use from several threads at once."""

    __slots__ = ("bounds", "counts", "seconds")

    def __init__(self, bounds: tuple[float, ...] = BUCKETS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds

    def copy(self) -> Histogram:
        same = Histogram(self.bounds)
        same.counts, same.seconds = list(self.counts), self.seconds
        return same


def head(name: str, meaning: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def sample(name: str, labels: Mapping[str, object], value: float) -> str:
    written = ",".join(f'{label}="{escaped(str(each))}"' for label, each in labels.items())
    return f"{name}{{{written}}} {value}" if written else f"{name} {value}"


def histogram(name: str, label: str, value: str, taken: Histogram) -> Iterator[str]:
    """The lines of one histogram, those before it included in every bucket."""
    labelled, total = f'{label}="{escaped(value)}"', 0
    for bound, count in zip((*taken.bounds, "+Inf"), taken.counts, strict=True):
        total += count
        yield f'{name}_bucket{{{labelled},le="{bound}"}} {total}'
    yield f"{name}_sum{{{labelled}}} {taken.seconds:.6f}"
    yield f"{name}_count{{{labelled}}} {total}"


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
