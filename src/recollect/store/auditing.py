"""Writes down who does what before it is done, and what came of it afterwards.

Nothing happens that is not written down: where an entry cannot be written, the verb is not carried
out. An entry has only ids that Recollect makes. What somebody chose (a stable key, an agent's name,
a path) may say who they are, and goes away with what is forgotten.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recollect.clock import Clock
from recollect.domain import Claim, KeyRef
from recollect.errors import RecollectError
from recollect.ids import Ids
from recollect.observing.actors import actor
from recollect.observing.seam import End, Kind, StoreVerb
from recollect.store.audit_protocol import DONE, Audit, AuditEntry

TARGETS_MAX = 20
_OURS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_log = logging.getLogger(__name__)


class Auditor:
    """Implements `Observer` by entries in the store itself, each in a transaction of its own."""

    def __init__(self, audit: Audit, clock: Clock, *, reads: bool) -> None:
        self._audit = audit
        self._clock = clock
        self._ids = Ids(clock)
        self._kinds = {Kind.WRITE, Kind.READ} if reads else {Kind.WRITE}

    def minds(self, verb: StoreVerb) -> bool:
        return verb.kind in self._kinds

    def begin(self, verb: StoreVerb, args: Sequence[Any], named: Mapping[str, Any]) -> End:
        given = verb.given(args, named)
        if given.get("limit") == 0:  # a page of nothing shows nothing
            return _unwritten
        entry = AuditEntry(
            id=self._ids.new(),
            space=verb.space(args, named),
            at=self._clock.now(),
            actor=actor(),
            verb=verb.name,
            targets=_distinct(_asked_for(given)),
        )
        self._audit.begin(entry)

        def end(error: BaseException | None, result: object) -> None:
            outcome = DONE if error is None else type(error).__name__
            targets = _distinct((*entry.targets, *_named_by(result)))
            try:
                self._audit.end(replace(entry, outcome=outcome, targets=targets))
            except RecollectError as failed:  # it was done, also where the store is closed by now
                _log.warning("the outcome of %s is not in the audit: %s", verb.name, _name(failed))

        return end


def _unwritten(error: BaseException | None, result: object) -> None:
    del error, result


def _name(error: BaseException) -> str:
    return type(error).__name__


def _asked_for(given: Mapping[str, Any]) -> Iterator[str]:
    """What a verb is done to, as far as it was told by an id."""
    for name, value in given.items():
        match value:
            case KeyRef(key_id=number):
                yield f"key:{number}"
            case Claim(job_id=number, key=key):
                yield f"job:{number}"
                yield from _ours((key,))
            case str() if name.endswith("_id") or name == "key":
                yield from _ours((value,))
            case tuple() | list() if name.endswith("_ids"):
                yield from _ours(value[:TARGETS_MAX])


def _named_by(result: object) -> Iterator[str]:
    """What came of a verb, as far as it has an id."""
    several = result[:TARGETS_MAX] if isinstance(result, list | tuple) else (result,)
    for each in several:
        yield from _ours((getattr(each, "id", None), getattr(each, "session_id", None)))


def _ours(ids: Iterable[object]) -> Iterator[str]:
    """Only what Recollect itself has made."""
    return (each for each in ids if isinstance(each, str) and _OURS.fullmatch(each))


def _distinct(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))[:TARGETS_MAX]
