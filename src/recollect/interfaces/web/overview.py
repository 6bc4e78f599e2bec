"""The first page of a space: how much there is, where the pipeline stands, and what it costs."""

from __future__ import annotations

from datetime import timedelta

from recollect.domain import JobState
from recollect.interfaces.web.plots import Plot, days_until, plot
from recollect.interfaces.web.view import SPACE, Asked, Live, Page, View, shown

DAYS = 30
LATEST = 8
MICROS = 1_000_000


def overview(asked: Asked) -> Page:
    space, memory = asked.space, asked.memory
    status = memory.status(space.name, LATEST)
    consolidation = space.generations.state()
    return Page(
        template="overview.html",
        fragment="_overview.html",
        content={
            "status": status,
            "counts": {state.value: status.job_counts.get(state, 0) for state in JobState},
            "fact_count": space.facts.count(),
            "sessions": status.sessions,
            "consolidation": consolidation,
            "waits_for": consolidation.waits_for(asked.now).value,
            "next_generation_at": consolidation.next_attempt_at(asked.now),
            "facts": space.facts.list(LATEST),
            "plots": _plots(asked),
        },
    )


def _plots(asked: Asked) -> list[Plot]:
    days = days_until(asked.now, DAYS)
    ledger = asked.memory.store.ledger
    spent = dict(ledger.spent_daily(asked.space.name, days[0], days[-1] + timedelta(days=1)))
    tokens = {day: (each.input_tokens, each.output_tokens) for day, each in spent.items()}
    costs = {
        day: (each.cost_micros / MICROS,)
        for day, each in spent.items()
        if each.cost_micros is not None
    }
    calls = {day: (each.calls,) for day, each in spent.items()}
    return [
        plot("Tokens a day", ("read", "written"), days, tokens),
        plot("Cost a day", ("spent",), days, costs),
        plot("Model calls a day", ("calls",), days, calls),
    ]


def live(asked: Asked) -> Live:
    return Live(space=asked.space.name, key_id=asked.key.id)


VIEWS: tuple[View, ...] = (
    shown(SPACE, "overview", overview),
    shown(f"{SPACE}/live", "live", live),
)
