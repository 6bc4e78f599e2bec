"""What may be found, as the queries want it: filters become parameters.

What a query cannot decide, such as most conditions on metadata, is decided afterwards, entry by
entry; here is whatever would otherwise leave too few of those that were found.
"""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any

from recollect.clock import to_micros
from recollect.descriptors import cache_key, read_descriptor
from recollect.messages import Role
from recollect.store.relational.text import storable
from recollect.types.facts import Trust
from recollect.types.recall import AllOf, Condition, Filters, Operator, Where

SOURCES_MAX = 20  # of a fact that is shown, and facts of a document
WORDS_CHARS = 4000  # of what an entry is found by, to score it; what was found behind counts once
_EVER = 2**62


def asked_for(space: str, filters: Filters, now: datetime, chars_max: int) -> dict[str, Any]:
    """What is asked for, as the queries want it."""
    at = now if filters.as_of is None else filters.as_of
    until = _EVER if filters.until is None else to_micros(filters.until)
    if filters.as_of is not None:
        until = min(until, to_micros(filters.as_of) + 1)
    agent = filters.agent
    if agent is not None and not agent.startswith("/"):
        agent = cache_key(read_descriptor(agent))
    return {
        "space": space,
        "at": to_micros(at),
        "known": _EVER if filters.as_of is None else to_micros(filters.as_of),
        "since": -_EVER if filters.since is None else to_micros(filters.since),
        "until": until,
        "any_session": filters.session_id is None,
        "session_id": filters.session_id or "",
        "any_agent": agent is None,
        "agent": agent or "",
        "any_tags": not filters.tags,
        "tags": json.dumps(list(filters.tags), ensure_ascii=False),
        "is_now": filters.as_of is None,
        "or_past": filters.or_past,
        **_asked_of(filters.trust),
        "any_fields": not (fields := plain_fields(filters.where)),
        "fields": json.dumps(fields, ensure_ascii=False),
        "any_project": filters.project is None and not filters.or_no_project,
        "project": filters.project or "",
        "or_no_project": filters.or_no_project,
        "chars_max": chars_max,
        "words_max": WORDS_CHARS,
        "sources_max": SOURCES_MAX,
    }


def _asked_of(trust: frozenset[Trust] | None) -> dict[str, Any]:
    """Whose word is asked for. What users say depends on the session: not all are people."""
    wanted = frozenset(Trust) if trust is None else trust
    said_by = {role: Trust.AGENT if role is Role.ASSISTANT else Trust.TOOL for role in Role}
    return {
        "any_trust": trust is None,
        "trusts": json.dumps(sorted(wanted)),
        "roles": json.dumps([role.value for role in Role if said_by[role] in wanted]),
        "peoples_word": Trust.USER in wanted,
        "agents_word": Trust.AGENT in wanted,
    }


def plain_fields(where: Where) -> dict[str, list[Any]]:
    """The fields of metadata that have to have one of some plain values, by those values."""
    match where:
        case AllOf(parts):
            return {name: values for part in parts for name, values in plain_fields(part).items()}
        case Condition(operator=Operator.EQ | Operator.IN):
            listed = where.value if where.operator is Operator.IN else [where.value]
            return (
                {where.field: list(listed)} if all(map(_is_plain, (where.field, *listed))) else {}
            )
        case _:
            return {}


def _is_plain(value: object) -> bool:
    """Whether every database reads it in JSON as it is meant."""
    if isinstance(value, float):
        return math.isfinite(value)
    return (
        value is None
        or isinstance(value, int)
        or (isinstance(value, str) and storable(value) == value)
    )
