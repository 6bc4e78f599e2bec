"""One session in full: its state, what it came to, the facts beside their records, what it took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from recollect.descriptors import agent_label
from recollect.domain import MarkCause, Mode, Range, Record, SessionState
from recollect.interfaces.cli.fact_lines import standing
from recollect.interfaces.cli.history import digest, indented
from recollect.interfaces.cli.output import (
    NONE,
    cost,
    counted,
    harmless,
    labelled,
    moment,
    number,
    one_line,
    shortened,
    table,
)
from recollect.interfaces.views import view
from recollect.knowledge import Call, Extraction, Fact, Spent
from recollect.session import LIST_MAX
from recollect.space import Space


def state_in_words(state: SessionState) -> str:
    match state.ended_by:
        case None:
            words = ["active"]
        case MarkCause.END:
            words = ["ended"]
        case cause:
            words = [f"ended by {cause}"]
    if not state.remembered:
        words.append("never remembered")
    if state.mode is not Mode.ENABLED:
        words.append(f"memory {state.mode}")
    if state.ephemeral:
        words.append("ephemeral")
    return ", ".join(words)


def mark_in_words(state: SessionState) -> str:
    return NONE if state.invalidated_at is None else f"{state.invalidated_at} ({state.marked_by})"


RECORD_CHARS = 160
CALLS_SHOWN = 20
RANGES = ("RECORDS", "OUTCOME", "PASS", "ATTEMPT", "TOKENS", "COST", "AT", "BY", "REASON")
CALLS = ("AT", "PURPOSE", "OUTCOME", "ATTEMPT", "IN", "OUT", "COST", "MODEL")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """Everything there is about a session, apart from what was said in it."""

    state: SessionState
    count: int
    ranges: tuple[Range, ...]
    extraction: Extraction | None
    facts: tuple[Fact, ...]  # oldest first; also those that do not hold any more
    calls: tuple[Call, ...]  # newest first


def read_report(space: Space, state: SessionState) -> SessionReport:
    facts: list[Fact] = []
    while page := _facts_after(space, state, facts[-1] if facts else None):
        facts += page
    calls: list[Call] = []
    while batch := space.sessions.calls(state.id, LIST_MAX, calls[-1] if calls else None):
        calls += batch
    return SessionReport(
        state=state,
        count=space.sessions.count_since(state.id, 0),
        ranges=tuple(space.sessions.ranges(state.id)),
        extraction=space.sessions.extraction(state.id),
        facts=tuple(reversed(facts)),
        calls=tuple(calls),
    )


def _facts_after(space: Space, state: SessionState, last: Fact | None) -> list[Fact]:
    return space.facts.list(LIST_MAX, last, session=state.id, every=True)


def report_shape(report: SessionReport) -> dict[str, Any]:
    extraction = report.extraction
    return view(report.state) | {
        "records": report.count,
        "ranges": view(report.ranges),
        "extraction": view(extraction),
        "facts": view(report.facts),
        "calls": view(report.calls),
    }


def report_lines(space: Space, report: SessionReport, limit: int) -> Iterator[str]:
    """The report as people read it, with the facts of the first `limit` records that have any."""
    yield from labelled(_values(report))
    yield from _processed_lines(report.ranges)
    yield from _extraction_lines(report.extraction)
    yield from _fact_lines(space, report, limit)
    yield from _call_lines(report.calls)


def _values(report: SessionReport) -> dict[str, str]:
    state = report.state
    ended = "" if state.ended_at is None else f" at {moment(state.ended_at)}"
    marked = "" if state.marked_at is None else f", since {moment(state.marked_at)}"
    last = f"{report.count:,}, the last has seq {state.last_seq}" if state.last_seq else "none"
    values = {
        "Session": state.id,
        "Space": state.space,
        "Key": state.key,
        "Agent": agent_label(state.agent_id),
        "State": state_in_words(state) + ended,
        "Rotation": str(state.rotation),
        "Source": state.source,
        "Project": state.project or NONE,
        "Parent": state.parent or NONE,
        "Records": last,
        "Mark": mark_in_words(state) + marked,
        "Cursor": number(state.processed_until),
        "Unprocessed": str(state.unprocessed),
        "Created": moment(state.created_at),
        "Last activity": moment(state.last_activity_at),
    }
    return {name: value for name, value in values.items() if value != NONE or name == "Mark"}


def _headed(title: str, more: str = "") -> Iterator[str]:
    yield ""
    yield click.style(title, bold=True) + (f"  {more}" if more else "")


def _processed_lines(ranges: tuple[Range, ...]) -> Iterator[str]:
    if not ranges:
        yield from _headed("Processed", "nothing of it yet; do it: recollect work --all")
        return
    yield ""
    yield from table(RANGES, [_range_row(each) for each in ranges])


def _range_row(each: Range) -> tuple[str, ...]:
    return (
        f"{each.first_seq}–{each.last_seq}",
        each.outcome.value,
        str(each.pass_number),
        number(each.attempt),
        _tokens(each.spent),
        _cost(each.spent.cost_micros) if each.spent.tokens else NONE,
        moment(each.at),
        each.extractor or NONE,
        each.reason or NONE,
    )


def _tokens(spent: Spent) -> str:
    return f"{spent.tokens:,}" if spent.tokens else NONE


def _cost(micros: int | None) -> str:
    return cost(micros).removeprefix("cost ")


def _extraction_lines(extraction: Extraction | None) -> Iterator[str]:
    if extraction is None:
        yield from _headed("Extraction", "none: nothing was learned from it")
        return
    made = f"by {one_line(extraction.extractor)}, pass {extraction.pass_number}"
    made += f", records 1–{extraction.upto}, {moment(extraction.generated_at)}"
    yield from _headed("Extraction", made)
    if extraction.rollout_slug:
        yield f"  {one_line(extraction.rollout_slug)}"
    texts = {"Summary": extraction.rollout_summary, "Memory": extraction.raw_memory}
    for title, text in texts.items():
        if text.strip():
            yield f"  {click.style(title, bold=True)}"
            yield indented(harmless(text.strip("\n")))


def _fact_lines(space: Space, report: SessionReport, limit: int) -> Iterator[str]:
    """Facts under the record each comes from, in the order in which it was said."""
    if not report.facts:
        yield from _headed("Facts", "none")
        return
    yield from _headed("Facts", f"{len(report.facts):,}, under the records they come from")
    by_seq: dict[tuple[int, int], list[Fact]] = {}
    for fact in report.facts:
        for source in fact.sources:
            if source.session_id == report.state.id:
                by_seq.setdefault((source.seq, source.seq_to), []).append(fact)
    for place in sorted(by_seq)[:limit]:
        yield from _record_lines(space, report.state, *place)
        for fact in by_seq[place]:
            yield from _statement_lines(fact)
    if len(by_seq) > limit:
        yield f"  … and those of {counted(len(by_seq) - limit, 'more place')} (--limit)"


def _record_lines(space: Space, state: SessionState, seq: int, seq_to: int) -> Iterator[str]:
    if not seq:
        yield "        somewhere in the session"
        return
    found = space.sessions.records(state.id, seq - 1, 1)
    record = found[0] if found and found[0].seq == seq else None
    number_in_words = str(seq) if seq == seq_to else f"{seq}–{seq_to}"
    yield f"  {number_in_words:>4}  {'(not kept)' if record is None else _said(record)}"


def _said(record: Record) -> str:
    speaker = one_line(record.name) if record.name else record.role.value
    words = " ".join(filter(None, map(digest, record.parts)))
    return f"{click.style(speaker, fg='cyan')}: {shortened(words, RECORD_CHARS)}"


def _statement_lines(fact: Fact) -> Iterator[str]:
    said = ", ".join((*fact.tags, fact.trust.value))
    yield f"        → {one_line(fact.content)}"
    yield click.style(f"          {one_line(said)}  {one_line(fact.id)}", dim=True)
    yield from (f"          {line}" for line in standing(fact))


def _call_lines(calls: tuple[Call, ...]) -> Iterator[str]:
    if not calls:
        return
    yield from _headed("Model calls", f"{len(calls):,}, newest first")
    for line in table(CALLS, [_call_row(call) for call in calls[:CALLS_SHOWN]]):
        yield f"  {line}"
    if len(calls) > CALLS_SHOWN:
        yield f"  … and {len(calls) - CALLS_SHOWN:,} more (--json)"


def _call_row(call: Call) -> tuple[str, ...]:
    return (
        moment(call.at),
        call.purpose,
        call.outcome.value,
        str(call.attempt),
        f"{call.input_tokens:,}",
        f"{call.output_tokens:,}",
        _cost(call.cost_micros),
        call.model,
    )
