"""The dry run of `recollect work`: what would be read and sent, and what it may cost at most."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

import recollect
from recollect.descriptors import agent_label
from recollect.interfaces.cli.history import indented
from recollect.interfaces.cli.output import counted, harmless, one_line, spent_in_words
from recollect.interfaces.views import view

if TYPE_CHECKING:  # what `work --help` need not load
    from recollect.extraction.plan import PlannedSession, WorkPlan

NO_PRICES = "To have it priced, set model_input_price and model_output_price (per million tokens)."


def read_plan(
    memory: recollect.Memory,
    space: str | None,
    session_id: str | None,
    *,
    is_all: bool,
    again: bool,
) -> WorkPlan:
    """The plan of a run; of one session, if it is named."""
    plan = memory.plan(space, all=is_all, again=again)
    if session_id is None:
        return plan
    of_it = tuple(each for each in plan.sessions if each.session.id == session_id)
    return dataclasses.replace(plan, sessions=of_it, is_cut=plan.is_cut and not of_it)


def plan_shape(plan: WorkPlan, *, with_prompts: bool) -> dict[str, Any]:
    return {
        "dry_run": True,
        "extractor": plan.extractor,
        "records": plan.records,
        "at_most": view(plan.spent),
        "not_included": dict(plan.not_included),
        "is_cut": plan.is_cut,
        "sessions": [_session_shape(each, with_prompts=with_prompts) for each in plan.sessions],
    }


def _session_shape(planned: PlannedSession, *, with_prompts: bool) -> dict[str, Any]:
    session = planned.session
    shape = {
        "session_id": session.id,
        "space": session.space,
        "key": session.key,
        "agent": agent_label(session.agent_id),
        "first_seq": planned.first,
        "last_seq": planned.upto,
        "records": planned.records,
        "at_most": view(planned.spent),
    }
    return shape | ({"prompt": planned.prompt} if with_prompts else {})


def plan_lines(
    plan: WorkPlan, settings: recollect.Settings, *, with_prompts: bool
) -> Iterator[str]:
    """The plan as people read it."""
    yield f"{click.style('Extractor', bold=True)}  {one_line(plan.extractor)}"
    for each in plan.sessions:
        yield from _session_lines(each, with_prompts=with_prompts)
    if plan.is_cut:
        yield f"  … and more than these {counted(len(plan.sessions), 'session')}"
    yield from total_lines(plan, settings)


def _session_lines(planned: PlannedSession, *, with_prompts: bool) -> Iterator[str]:
    session = planned.session
    yield f"  {session.id}  {one_line(session.key)} (space {one_line(session.space)})"
    what = f"records {planned.first}–{planned.upto}"
    sent = f"; at most {spent_in_words(planned.spent)}" if planned.spent.calls else ""
    yield f"    {what}{sent}"
    if with_prompts and planned.prompt is not None:
        yield indented(harmless(planned.prompt))


def total_lines(plan: WorkPlan, settings: recollect.Settings) -> Iterator[str]:
    """All of it in one line, what it leaves out, and how to know what it costs."""
    read = f"{counted(len(plan.sessions), 'session')}, {counted(plan.records, 'record')}"
    if not plan.spent.calls and not plan.not_included:
        yield f"Would read {read}. Nothing would be sent to a model."
        return
    if plan.spent.calls:
        yield f"Would read {read}, and take at most {spent_in_words(plan.spent)}."
    else:
        yield f"Would read {read}. Nothing would be sent to a model for extraction."
    if plan.not_included:
        jobs = " and ".join(f"the {job} ({by})" for job, by in plan.not_included.items())
        yield f"Not included: {one_line(jobs)}. What they take depends on what they find."
    if plan.spent.calls and plan.spent.cost_micros is None:
        yield NO_PRICES
    calls = counted(settings.spend_calls_per_day, "call")
    tokens = counted(settings.spend_tokens_per_day, "token")
    yield f"A space may use {calls} and {tokens} a day (spend_*_per_day)."
