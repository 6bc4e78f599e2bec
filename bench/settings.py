"""What a run is told: where, how much, and on which databases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the benchmark. Everything it makes lies in `directory`."""

    directory: Path
    quick: bool
    peers: bool  # other libraries may be installed and run
    postgres_url: str | None
    postgres_missing: str  # why there is no URL
    data: Path | None = None  # a directory with data sets

    def scaled(self, full: int, quick: int) -> int:
        return quick if self.quick else full
