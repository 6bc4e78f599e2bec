"""Asks a store for what a recap is made of, and makes it fit to be told: redacted, without orders
that no person gave, without what no longer holds.

A session begins with it, and an agent waits: nothing is loaded here that only questions need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from recollect.errors import InvalidValue
from recollect.extraction.scope import named, place_of
from recollect.knowledge import FactTag, Source, Trust
from recollect.orders import bare, commands, told
from recollect.recall.filters import read_filters
from recollect.recall.pack import CHARS_PER_TOKEN_MAX, FACTS_MAX
from recollect.recall.passages import without_notes
from recollect.recall.recap import Past, Recap, pack_recap, read_past
from recollect.recall.told import untold
from recollect.recollection import (
    Context,
    Entry,
    EntryKind,
    Filters,
    Hit,
    PastSession,
)

if TYPE_CHECKING:
    from recollect.runtime import Runtime
    from recollect.store.protocol import Store

FACTS_LOOKED_AT = 60  # of what people want, of what is known, and of what was added
SESSIONS_LOOKED_AT = 20
SUMMARY_PATH = "~/memory/memory_summary"
SUMMARY_CHARS_MIN = 1500  # redacted beyond what is shown, so that no secret is cut in two
_PLANS = {FactTag.GOAL.value, FactTag.COMMITMENT.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recapper:
    """Tells what a session begins with, of one space."""

    runtime: Runtime
    store: Store
    space: str
    redact: Callable[[str], str] | None = None  # one that remembers what it has redacted

    def context(
        self,
        max_tokens: int | None = None,
        *,
        max_facts: int = FACTS_MAX,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        beside: str | None = None,
        after: Context | None = None,
    ) -> Context:
        """The recap of the project that is asked for, else of the person.

        `beside` is the session that the prompt shows anyway, `after` a block that stands before
        it: nothing of that is said again, and marks go on from there.
        """
        tokens = self.runtime.settings.recap_tokens if max_tokens is None else max_tokens
        if type(tokens) is not int or type(max_facts) is not int:
            raise InvalidValue("max_tokens and max_facts are whole numbers")
        asked = read_filters(filters, kinds=kinds, as_of=as_of)
        if tokens <= 0:
            return Context(text="")
        shown = () if after is None else after.citations
        recap = self._recap(asked, tokens, beside or "", {each.hit.id for each in shown})
        block = pack_recap(recap, max_tokens=tokens, max_facts=max_facts, first=len(shown) + 1)
        return replace(block, id=self.runtime.ids.new()) if block else block

    def _recap(self, filters: Filters, tokens: int, beside: str, shown: set[str]) -> Recap:
        now = self.runtime.now()
        redact = self.redact or cache(self.runtime.redactor().keyed(self.space).redact)
        latest = self.store.search.latest(
            self.space,
            filters,
            now,
            facts=FACTS_LOOKED_AT,
            sessions=SESSIONS_LOOKED_AT,
            beside=beside,
        )
        place = place_of(filters.project)
        has_facts = EntryKind.FACT in filters.kinds

        def hits(entries: Iterable[Entry]) -> list[Hit]:
            found = [entry for entry in entries if has_facts and entry.id not in shown]
            return [_hit(entry, redact) for entry in sorted(found, key=_age)]

        # What reads like an order is an instruction of the person, or nobody's.
        orders = [each for each in latest.added if commands(each.text)]
        instructions = [each for each in orders if each.trust is Trust.USER]
        added = [
            each for each in latest.added if each.metadata.get("project") and each not in orders
        ]
        known = [
            each for each in latest.known if each.trust is Trust.USER or not commands(each.text)
        ]
        sessions = latest.sessions if EntryKind.SUMMARY in filters.kinds else ()
        wanted = hits([*latest.instructions, *instructions])
        told_of = [each for each in sessions if each.entry.id not in shown]
        said = [each.text for each in wanted]
        return Recap(
            instructions=wanted,
            sessions=self._past(told_of, said, filters, redact),
            plans=hits([each for each in known if not _PLANS.isdisjoint(each.tags)]),
            known=hits([*(each for each in known if _PLANS.isdisjoint(each.tags)), *added]),
            summary=self._summary(filters, tokens, redact),
            project=named(redact(place)) if place else "",
            place=redact(place),
        )

    def _past(
        self,
        sessions: Sequence[PastSession],
        known: Sequence[str],
        filters: Filters,
        redact: Callable[[str], str],
    ) -> list[Past]:
        """What sessions came to, without what no longer holds; at another time, as it was said."""
        now = self.runtime.now()
        revised: dict[str, list[str]] = defaultdict(list)
        if filters.as_of is None:
            ids = sorted(each.entry.id for each in sessions)
            for revision in self.store.search.revisions(self.space, ids, now):
                revised[revision.session_id].append(revision.statement)
        found: list[Past] = []
        for each in sessions:

            def fit(text: str, session_id: str = each.entry.id) -> str:
                def is_persons(order: str) -> bool:
                    # Seldom asked for, and slow to load.
                    from recollect.recall.vouching import voucher

                    return voucher(self.store, self.space, now, session_id)(order)

                gone = revised[session_id]
                said = redact(text)
                return told(untold(said, gone) if gone else said, is_persons)

            past = read_past(each, _hit(each.entry, redact), fit, known)
            if past is not None:
                found.append(past)
        return found

    def _summary(self, allowed: Filters, tokens: int, redact: Callable[[str], str]) -> str:
        """What the space's memory comes to, once consolidation has written it.

        It is about everything: who asks for less, or for another time, is not told.
        """
        everything = Filters(
            kinds=allowed.kinds,
            as_of=allowed.as_of,
            trust=allowed.trust,
            or_no_project=allowed.or_no_project,
        )
        is_told = EntryKind.DOCUMENT in allowed.kinds and Trust.AGENT in (allowed.trust or Trust)
        if allowed != everything or not is_told:
            return ""
        from recollect.documents.paths import read_path  # of a project nobody asks for it

        found = self.store.documents.find(self.space, read_path(SUMMARY_PATH).place)
        if found is None or (allowed.as_of is not None and found.updated_at > allowed.as_of):
            return ""
        chars_max = CHARS_PER_TOKEN_MAX * tokens
        text = redact(without_notes(found.body)[: chars_max + SUMMARY_CHARS_MIN])
        if len(found.body) > chars_max:
            text = text[: min(chars_max, max(len(text) - SUMMARY_CHARS_MIN, 0))]
        # Whoever writes this page has left out orders that no person gave.
        return bare(text)


def _age(entry: Entry) -> tuple[float, int]:
    return -entry.at.timestamp(), -entry.key


def _hit(entry: Entry, redact: Callable[[str], str]) -> Hit:
    sources = entry.sources
    if entry.kind is EntryKind.SUMMARY:
        sources = (Source(session_id=entry.session_id, seq=1, seq_to=max(entry.seq_to, 1)),)
    return Hit(
        id=entry.id,
        kind=entry.kind,
        text=redact(entry.text),
        score=0.0,
        why={},
        sources=tuple(
            replace(source, quote=redact(source.quote)) if source.quote else source
            for source in sources
        ),
        at=entry.at,
        trust=entry.trust,
        tags=tuple(map(redact, entry.tags)),
        usage_count=entry.usage_count,
    )
