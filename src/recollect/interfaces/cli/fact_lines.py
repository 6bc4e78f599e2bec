"""Facts as people read them: a statement, whose word it is, and the records it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime

import click

from recollect.interfaces.cli.output import NONE, counted, labelled, moment, one_line
from recollect.knowledge import Fact, FactChange, Source

SHOWN_SOURCES = 3  # of a fact in a list; `facts show` has all


def fact_lines(fact: Fact, keys: Mapping[str, str]) -> Iterator[str]:
    """A fact in a list. `keys` are the stable keys of sessions, by id."""
    said = NONE if fact.valid_from is None else f"{fact.valid_from:%Y-%m-%d}"
    heading = [fact.id, said, fact.trust.value, ", ".join(fact.tags)]
    yield click.style("  ".join(one_line(word) for word in heading if word), dim=True)
    yield f"    {one_line(fact.content)}"
    for line in (*_sources(fact, keys), *_usage(fact), *standing(fact)):
        yield f"    {line}"


def fact_in_full(
    fact: Fact, keys: Mapping[str, str], newer: Fact | None, now: datetime
) -> Iterator[str]:
    """Every field of a fact; `newer` is the one that superseded it."""
    over = moment(fact.valid_to)
    values = {
        "Fact": fact.id,
        "Says": fact.content,
        "Space": fact.space,
        "Tags": ", ".join(fact.tags) or NONE,
        "Trust": fact.trust.value,
        "Topic": fact.topic or NONE,
        "Metadata": json.dumps(dict(fact.metadata), ensure_ascii=False) if fact.metadata else NONE,
        "Holds": "yes" if fact.holds(now) and fact.superseded_by is None else "no",
        "Valid": f"from {moment(fact.valid_from)}" + ("" if over == NONE else f" until {over}"),
        "Superseded": _superseded(fact, newer),
        "Made by": fact.extractor or "somebody, by hand",
        "Created": moment(fact.created_at),
        "Updated": moment(fact.updated_at),
        "Usage": "; ".join(_usage(fact)) or NONE,
    }
    yield from labelled({name: value for name, value in values.items() if value != NONE})
    yield ""
    if not fact.sources:
        yield "No source: it was added by hand."
    for source in fact.sources:
        key = keys.get(source.session_id)
        where = source.session_id if key is None else f"{key} ({source.session_id})"
        yield f"{click.style('Source', bold=True)}  {one_line(where)}{_records(source)}"
        if source.quote:
            yield f"        “{one_line(source.quote)}”"


def history_lines(change: FactChange) -> Iterator[str]:
    """One entry of a fact's history."""
    event = click.style(f"{change.event:<10}", fg="cyan")
    other = "" if change.other_id is None else f" by fact {one_line(change.other_id)}"
    yield f"{moment(change.at)}  {event}{other}  ({one_line(change.by)})"
    yield f"    {one_line(change.content)}"


def source_in_words(source: Source, keys: Mapping[str, str]) -> str:
    """Where something comes from, on one line."""
    return one_line(keys.get(source.session_id, source.session_id)) + _records(source)


def standing(fact: Fact) -> Iterator[str]:
    """What keeps a fact from holding for ever, if anything does."""
    if fact.superseded_by is not None:
        words = f"superseded by {one_line(fact.superseded_by)}, {moment(fact.valid_to)}"
        yield click.style(words, fg="yellow")
    elif fact.valid_to is not None:
        yield f"until {moment(fact.valid_to)}"


def _sources(fact: Fact, keys: Mapping[str, str]) -> Iterator[str]:
    words = [source_in_words(source, keys) for source in fact.sources[:SHOWN_SOURCES]]
    if len(fact.sources) > SHOWN_SOURCES:
        words.append(f"{len(fact.sources) - SHOWN_SOURCES:,} more")
    if fact.extractor is None:
        words.append("by hand")
    if words:
        yield f"from {'; '.join(words)}" if fact.sources else words[0]


def _usage(fact: Fact) -> Iterator[str]:
    """How often it was told, and of use: what is told and never used can be seen."""
    if fact.shown_count or fact.usage_count:
        used = f"used {counted(fact.usage_count, 'time')}" if fact.usage_count else "never used"
        yield f"shown {counted(fact.shown_count, 'time')}, {used}"


def _records(source: Source) -> str:
    if not source.seq:
        return ""
    if source.seq == source.seq_to:
        return f", record {source.seq}"
    return f", records {source.seq}–{source.seq_to}"


def _superseded(fact: Fact, newer: Fact | None) -> str:
    if fact.superseded_by is None:
        return NONE
    return f"by {fact.superseded_by}" + ("" if newer is None else f": {newer.content}")
