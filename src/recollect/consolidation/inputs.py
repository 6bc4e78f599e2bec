"""What a run of consolidation reads: the selection, the facts it supports, and memories on demand.

Bounded by what is selected and by the settings; memories in full are read only where a page needs
them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256

from recollect.config import Settings
from recollect.consolidation.artifacts import raw_memory, subject_of, summary_page
from recollect.generation import BY_RULES, Memo, Pick, Selection, Standing
from recollect.store.protocol import Generations
from recollect.topics.claims import due_on

MEMOS_PAGE = 200
RAW_MEMOS_MAX = 256  # that are read for the page of raw memories
DIGEST_VERSION = 1  # of how generations are written by rules: raised, all are written anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What one generation is made of."""

    selection: Selection
    standings: tuple[Standing, ...]
    store: Generations
    today: date

    @property
    def is_restored(self) -> bool:
        """Whether the current generation is an earlier one, made current again by hand."""
        current = self.store.get(self.selection.space, self.selection.generation)
        return current is not None and current.restored_from is not None

    @property
    def written_by(self) -> str:
        """Who wrote what the current generation says; empty: nobody, or it is not known."""
        number: int | None = self.selection.generation
        made_by = ""
        while number is not None:
            found = self.store.get(self.selection.space, number)
            made_by = "" if found is None else found.made_by
            number = None if found is None else found.restored_from
        return made_by

    @property
    def is_empty(self) -> bool:
        return not self.selection.picks and not self.standings

    def memos(self, picks: Sequence[Pick]) -> list[Memo]:
        """Memories in full, in this order."""
        return self.store.memos(self.selection.space, [pick.session_id for pick in picks])

    def newest(self, limit: int) -> tuple[Pick, ...]:
        """The memories of the sessions that were spoken in last."""
        picks = sorted(self.selection.picks, key=lambda pick: pick.session_id)
        picks.sort(key=lambda pick: pick.source_updated_at, reverse=True)
        return tuple(picks[:limit])

    def by_subject(self, picks: Sequence[Pick]) -> tuple[Pick, ...]:
        """Memories in the order in which they are best read: by what they are about, then time."""
        subjects = {
            memo.extraction.session_id: subject_of(memo)
            for start in range(0, len(picks), MEMOS_PAGE)
            for memo in self.memos(picks[start : start + MEMOS_PAGE])
        }

        def order(pick: Pick) -> tuple[tuple[str, str], datetime, str]:
            subject = subjects.get(pick.session_id, ("", ""))
            return subject, pick.source_updated_at, pick.session_id

        return tuple(sorted(picks, key=order))

    def evidence(self, picks: Sequence[Pick]) -> Mapping[str, str]:
        """What sessions came to, by their ids."""
        return {memo.extraction.session_id: raw_memory(memo) for memo in self.memos(picks)}

    def texts(self) -> Iterator[str]:
        """Everything that what is selected says."""
        picks = self.selection.picks
        for start in range(0, len(picks), MEMOS_PAGE):
            for memo in self.memos(picks[start : start + MEMOS_PAGE]):
                yield memo.extraction.raw_memory
                yield memo.extraction.rollout_summary
                # Also what its page and the index call it, partly in words that every page has.
                page = summary_page(memo, "")
                yield f"{page.title}\n{page.description}\n{page.body}"
        for standing in self.standings:
            yield standing.fact.content

    @property
    def told(self) -> tuple[str, ...]:
        """Facts that somebody added, and what no session stands behind."""
        facts = (each.fact for each in self.standings)
        return tuple(each.content for each in facts if each.extractor is None or not each.sources)

    @property
    def dated(self) -> Selection:
        """The selection for who tells what is open by the day: it expires when that changes."""
        days = [due for each in self.standings if (due := due_on(each.fact)) and due >= self.today]
        if not days or (first := min(days)) >= date.max:
            return self.selection
        day = first + timedelta(days=1)
        changes_at = datetime(day.year, day.month, day.day, tzinfo=UTC)
        expires_at = min(filter(None, (self.selection.expires_at, changes_at)))
        return replace(self.selection, expires_at=expires_at)

    def digest(self, made_by: str) -> str:
        """The same for the same inputs and the same maker: then there is nothing to make."""
        selection = self.selection
        parts = [
            DIGEST_VERSION,
            made_by,
            sorted((pick.session_id, pick.revision) for pick in selection.picks),
            sorted(_fingerprint(each) for each in self.standings),
        ]
        if made_by == BY_RULES and (over := self._over()):
            parts.append(over)
        return sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()

    def _over(self) -> list[str]:
        """What was to be done and is past; a model is not asked anew for every day that passes."""
        dated = ((due_on(each.fact), each.fact.id) for each in self.standings)
        return sorted(id_ for due, id_ in dated if due is not None and due < self.today)


def read_inputs(store: Generations, space: str, settings: Settings, now: datetime) -> Inputs:
    selection = store.select(space, settings.selection_policy, now)
    sessions = [pick.session_id for pick in selection.picks]
    standings = store.standings(space, sessions, now, settings.consolidation_facts_max)
    today = now.astimezone(UTC).date()
    return Inputs(selection=selection, standings=tuple(standings), store=store, today=today)


def _fingerprint(standing: Standing) -> tuple[str, ...]:
    fact = standing.fact
    sources = sorted({source.session_id for source in fact.sources})
    return (fact.id, fact.content, str(fact.trust), str(fact.valid_from), *fact.tags, *sources)
