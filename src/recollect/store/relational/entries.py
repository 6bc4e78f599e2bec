"""Converts rows to entries, and applies the conditions of a search that its query cannot."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from recollect.clock import from_micros
from recollect.messages import Role
from recollect.stemming import indexed_fact
from recollect.store.relational.database import Row
from recollect.store.relational.document_rows import read_provenance
from recollect.store.relational.rows import source
from recollect.types.facts import Source, Trust
from recollect.types.pages import AuthorKind
from recollect.types.recall import (
    AllOf,
    AnyOf,
    Condition,
    Entry,
    EntryKind,
    Filters,
    NoneOf,
    Operator,
    Where,
)

_TRUST_OF_AUTHOR = {
    AuthorKind.PERSON: Trust.USER,
    AuthorKind.AGENT: Trust.AGENT,
    AuthorKind.CONSOLIDATION: Trust.AGENT,
}
# Whose word a record is: of the session of an agent that another one started, nobody's.
_TRUST_OF_ROLE = {
    role.value: {Role.USER: Trust.USER, Role.ASSISTANT: Trust.AGENT}.get(role, Trust.TOOL)
    for role in Role
}
_PERSON = Role.USER.value
_RECORD, _AGENT = EntryKind.RECORD, Trust.AGENT  # asked for hundreds of times for a question


def record_entry(row: Row) -> Entry:
    key, session_id, seq, role, name, content, words, said_at, metadata, is_child = row
    trust = _AGENT if is_child and role == _PERSON else _TRUST_OF_ROLE[role]
    # By position up to what a record has: one name among them, and it takes twice as long.
    return Entry(
        _RECORD,
        key,
        f"{session_id}:{seq}",
        content,
        words or "",
        from_micros(said_at),
        trust,
        session_id,
        seq,
        0,
        role,
        name or "",
        "",
        None,
        (),
        {} if metadata is None else json.loads(metadata),
    )


def fact_entry(row: Row) -> Entry:
    sources = read_sources(row[11])
    ends = [end for end in row[12:14] if end is not None]
    metadata = {} if row[7] == "{}" else json.loads(row[7])
    return Entry(
        kind=EntryKind.FACT,
        key=row[0],
        id=row[1],
        text=row[2],
        stems=row[3] or indexed_fact(row[2], row[9], metadata),
        at=from_micros(row[4]),
        trust=Trust(row[5]),
        session_id=sources[0].session_id if sources else "",
        seq=sources[0].seq if sources else 0,
        topic=row[9],
        tags=() if row[6] == "[]" else tuple(json.loads(row[6])),
        metadata=metadata,
        usage_count=row[8],
        is_superseded=row[10] is not None,
        until=from_micros(min(ends)) if ends else None,
        sources=sources,
        replaced_by=row[14] or "",
        about=tuple(json.loads(row[15])) if row[15] else (),
        happened=_span(row[16], row[17]),
    )


def _span(start: int | None, end: int | None) -> tuple[datetime, datetime] | None:
    return None if start is None or end is None else (from_micros(start), from_micros(end))


def read_sources(text: str | None) -> tuple[Source, ...]:
    """Where a fact comes from; none where nobody asked."""
    return tuple(map(source, json.loads(text))) if text else ()


def summary_entry(row: Row) -> Entry:
    key, session_id, summary, words, updated_at, usage_count, upto = row
    return Entry(
        kind=EntryKind.SUMMARY,
        key=key,
        id=session_id,
        text=summary,
        stems=words or "",
        at=from_micros(updated_at),
        trust=Trust.AGENT,
        session_id=session_id,
        seq_to=max(upto, 1),
        usage_count=usage_count,
    )


def _document_entry(row: Row) -> Entry:
    key, path, title, description, body, words, updated_at, tags, author_kind, grounds = row
    sources, facts = read_provenance(grounds)
    return Entry(
        kind=EntryKind.DOCUMENT,
        key=key,
        id=path,
        text=body or description or title,
        stems=words,
        at=from_micros(updated_at),
        trust=_TRUST_OF_AUTHOR[AuthorKind(author_kind)],
        title=title,
        tags=tuple(json.loads(tags)),
        sources=sources,
        facts=facts,
    )


READ: Mapping[EntryKind, Callable[[Row], Entry]] = {
    EntryKind.RECORD: record_entry,
    EntryKind.FACT: fact_entry,
    EntryKind.SUMMARY: summary_entry,
    EntryKind.DOCUMENT: _document_entry,
}


def passes(entry: Entry, filters: Filters) -> bool:
    """Whether it has the tags, the trust and the metadata that are asked for."""
    if filters.trust is not None and entry.trust not in filters.trust:
        return False
    if any(tag not in entry.tags for tag in filters.tags):
        return False
    return _holds(filters.where, entry.metadata)


def _holds(where: Where, metadata: Mapping[str, Any]) -> bool:
    match where:
        case AllOf(parts):
            return all(_holds(part, metadata) for part in parts)
        case AnyOf(parts):
            return any(_holds(part, metadata) for part in parts)
        case NoneOf(parts):
            return not any(_holds(part, metadata) for part in parts)
        case Condition():
            return _is_met(where, metadata)


def _is_met(condition: Condition, metadata: Mapping[str, Any]) -> bool:
    if condition.operator is Operator.EXISTS:
        return (condition.field in metadata) == bool(condition.value)
    if condition.field not in metadata:
        return condition.operator in (Operator.NE, Operator.NIN)
    value, wanted = metadata[condition.field], condition.value
    match condition.operator:
        case Operator.EQ:
            return _same(value, wanted)
        case Operator.NE:
            return not _same(value, wanted)
        case Operator.IN:
            return any(_same(value, each) for each in wanted)
        case Operator.NIN:
            return not any(_same(value, each) for each in wanted)
        case Operator.CONTAINS:
            return _contains(value, wanted)
        case Operator.ICONTAINS:
            return _contains(_folded(value), _folded(wanted))
        case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
            return _compares(condition.operator, value, wanted)


def _same(value: object, wanted: object) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def _contains(value: object, wanted: object) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    return isinstance(value, list) and any(_same(each, wanted) for each in value)


def _folded(value: object) -> object:
    if isinstance(value, list):
        return [_folded(each) for each in value]
    return value.casefold() if isinstance(value, str) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compares(operator: Operator, value: Any, wanted: Any) -> bool:
    """Numbers with numbers and texts with texts, such as dates; nothing else has an order."""
    are_numbers = _is_number(value) and _is_number(wanted)
    if not are_numbers and not (isinstance(value, str) and isinstance(wanted, str)):
        return False
    match operator:
        case Operator.GT:
            return bool(value > wanted)
        case Operator.GTE:
            return bool(value >= wanted)
        case Operator.LT:
            return bool(value < wanted)
        case _:
            return bool(value <= wanted)
