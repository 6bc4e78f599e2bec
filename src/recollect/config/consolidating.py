"""The settings of consolidation; a part of the settings, which inherit them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.config.describing import setting

if TYPE_CHECKING:
    from recollect.generation import SelectionPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationSettings:
    """When memory is consolidated, from what, by whom, and where it is published."""

    consolidation: str = setting(
        "on", "Whether workers consolidate what was learned.", choices=("on", "off")
    )
    consolidation_model: str | None = setting(
        None,
        "The model that writes the handbook of a space. None: the one that `model` names. `rules`: "
        "no model, it is written by rules.",
    )
    max_unused_days: int = setting(
        30,
        "A memory that was not used for so long leaves the next generation.",
        minimum=1,
        maximum=36_500,
    )
    consolidation_top_n: int = setting(
        256, "The most memories a generation is made of.", minimum=1, maximum=100_000
    )
    consolidation_clock: str = setting(
        "generated_at",
        "The age of a memory that was never used: from when it was made, or from what was said "
        "last in its session.",
        choices=("generated_at", "source_updated_at"),
    )
    consolidation_facts_max: int = setting(
        1000,
        "The most facts a handbook is made of, the most used first.",
        minimum=1,
        maximum=20_000,
    )
    consolidation_cooldown_seconds: float = setting(
        1800.0,
        "How long after a generation a worker waits before it makes the next. `work`, "
        "`consolidate --now`, forgetting, corrections and changes of mode do not wait.",
        minimum=0,
        maximum=31_536_000,
    )
    consolidation_patience_seconds: float = setting(
        3600.0,
        "How long consolidation waits for a space in which there is always something to distil.",
        minimum=0,
        maximum=31_536_000,
    )
    generations_kept: int = setting(
        20, "Generations that can be restored; older ones are erased.", minimum=1, maximum=10_000
    )
    memories_root: str | None = setting(
        None,
        "The directory below which each space is published as files. None: `memories` beside "
        "`memory.db`, `<name>-memories` beside any other SQLite file; nowhere for PostgreSQL. "
        "`none`: nowhere.",
    )
    extraction_retention_days: float = setting(
        365.0,
        "What a session came to is dropped when no generation has it and nobody has used it for so "
        "long; its facts and its records stay.",
        minimum=1,
        maximum=36_500,
    )

    polluting_tools: str = setting(
        "",
        "Tools that bring in what nobody here said, separated by commas, `*` for any part of a "
        "name: `web_*, mcp__*`. A session that calls one is polluted from then on: nothing is "
        "learned from it, and it leaves the next generation.",
    )

    @property
    def selection_policy(self) -> SelectionPolicy:
        from recollect.generation import SelectionClock, SelectionPolicy  # where it is done

        return SelectionPolicy(
            top_n=self.consolidation_top_n,
            max_unused_days=self.max_unused_days,
            clock=SelectionClock(self.consolidation_clock),
        )
