"""Tells whether a person gave an order that a machine wrote down: by what the person said.

One record of theirs, or one fact that is their word, has to say it. Pages and summaries are read
again long after they were written, so this is asked when they are told, and not taken from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from recollect.extraction.grounding import says
from recollect.extraction.injected import without_instructions
from recollect.patterns import LazyPattern
from recollect.quoting import without_recalled
from recollect.recall.question import ask, sought
from recollect.store.protocol import Store
from recollect.types.facts import Trust
from recollect.types.recall import Entry, EntryKind, Filters, Reach

CHARS = 20_000  # of a record or a fact that may say it
_PERSONS = Filters(
    kinds=frozenset({EntryKind.FACT, EntryKind.RECORD}), trust=frozenset({Trust.USER})
)
_REACH = Reach(loaded={EntryKind.FACT: 20, EntryKind.RECORD: 20}, beside=0, chars=CHARS)
# What pages write behind a statement: links, days, notes, and that it was inferred.
_REMARKS = LazyPattern(
    r"\[\[[^\]\n]*\]\]|\[\^\w+\]|\((?:in|inferred|(?:until|more|since|and|[\d,;\s-])+)?\s*\)"
)


def voucher(
    store: Store, space: str, now: datetime, session_id: str | None = None
) -> Callable[[str], bool]:
    """Whether a person said it, in that session or in any."""
    filters = replace(_PERSONS, session_id=session_id)

    def is_persons(order: str) -> bool:
        text = _REMARKS.sub(" ", _REMARKS.sub(" ", order))  # brackets may be left empty
        wanted = replace(sought(ask(text, now)), times=())
        found = store.search.candidates(space, wanted, filters, now, _REACH)
        return any(says(_said(each), text) for each in found.entries if not each.is_superseded)

    return is_persons


def _said(entry: Entry) -> str:
    """The words of a person, without what was put before a model in their name."""
    if entry.kind is EntryKind.FACT:
        return entry.text
    return without_instructions(without_recalled(entry.text))
