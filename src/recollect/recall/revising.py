"""Keeps out of recall what no longer holds as it was said: corrected, deleted, replaced, ended.

A fact knows which records it was learned from. Where a person has corrected or deleted it, the
words it was learned from are not shown; where something else took its place, or it has ended, they
are shown as outdated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from recollect.recall.told import states, untold, without_stated
from recollect.recollection import Entry, EntryKind, Revision


class Revisions:
    """What became of what was said, by record."""

    def __init__(self, revisions: Iterable[Revision]) -> None:
        self._of_session: dict[str, list[Revision]] = defaultdict(list)
        for each in revisions:
            self._of_session[each.session_id].append(each)

    def apply(self, entry: Entry) -> bool:
        """Change a record, or a session's summary, so that it says what holds.

        Whether anything is left of it.
        """
        found = self._of_session.get(entry.session_id, ())
        if entry.kind is EntryKind.SUMMARY:
            entry.text = untold(entry.text, [each.statement for each in found])
        if entry.kind is not EntryKind.RECORD:
            return bool(entry.text.strip())
        for each in found:
            if not each.seq <= entry.seq <= each.seq_to:
                continue
            if each.is_withdrawn:
                entry.text = _without(entry.text, each)
            elif states(entry.text, each.statement) or states(entry.text, each.quote):
                entry.until, entry.replaced_by = each.at, each.now
        return bool(entry.text.strip())


def _without(text: str, revision: Revision) -> str:
    """A text without a statement; where a fact has it in other words, without those it is from."""
    rest = without_stated(text, revision.statement)
    return without_stated(text, revision.quote) if rest == text else rest
