"""The inputs of a run of consolidation, and the pages that it stages.

Reads the selection, the facts it supports, and memories in full only where a page needs them: what
it costs is bounded by what is selected and by the settings. Pages are rendered by pure functions;
those that say what they said are not written. Evidence is staged first, and what is over goes last:
until then, the pages of what is removed are there to be read. Nobody else sees any of it before it
is published.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from recollect.config import Settings
from recollect.consolidation.evidence import (
    SummarizedSession,
    raw_memories,
    raw_memory,
    summarized,
    summary_page,
    summary_path,
)
from recollect.consolidation.handbook import Handbook, WrittenText, handbook
from recollect.consolidation.pages import MEMORY, RAW, SKILLS, SUMMARY, Page
from recollect.consolidation.parts import CurrentInputs, WrittenPart, standing, texts_of
from recollect.documents.editing import OnReferences
from recollect.documents.paths import read_path
from recollect.documents.staged import StagedPages
from recollect.session import LIST_MAX
from recollect.topics.claims import due_on
from recollect.types.facts import Source
from recollect.types.generations import (
    BY_RULES,
    GenerationDocument,
    Memo,
    Pick,
    Removed,
    RemovedBecause,
    Selection,
    Standing,
)

if TYPE_CHECKING:
    from recollect.store.relational.generations import GenerationStore

MEMOS_PAGE = 200
RAW_MEMOS_MAX = 256  # that are read for the page of raw memories, and listed as sessions
DIGEST_VERSION = 2  # of how generations are rendered: raised, all are rendered anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What one generation is made of."""

    selection: Selection
    standings: tuple[Standing, ...]
    store: GenerationStore
    today: date

    @classmethod
    def read(cls, store: GenerationStore, space: str, settings: Settings, now: datetime) -> Inputs:
        selection = store.select(space, settings.selection_policy, now)
        sessions = [pick.session_id for pick in selection.picks]
        standings = store.standings(space, sessions, now, settings.consolidation_facts_max)
        today = now.astimezone(UTC).date()
        return cls(selection=selection, standings=tuple(standings), store=store, today=today)

    def of(self, pages: Iterable[GenerationDocument]) -> Inputs:
        """The same for the sessions of an earlier generation: others are removed from it."""
        sessions, now = {each.session_id for each in pages}, self.selection
        over = (
            Removed(session_id=each.session_id, because=RemovedBecause.UNSELECTED, path=each.path)
            for each in now.picks
            if each.session_id not in sessions
        )
        selection = replace(
            now,
            added=tuple(each for each in now.added if each.session_id in sessions),
            retained=tuple(each for each in now.retained if each.session_id in sessions),
            removed=(*now.removed, *over),
        )
        return replace(self, selection=selection)

    def rest_of(self, facts: Iterable[str], since: datetime) -> set[str]:
        """Those of some facts that hold, and say what they said at some time."""
        known = {each.fact.id: each.fact for each in self.standings}
        found = (known[each] for each in facts if each in known)
        return {each.id for each in found if each.updated_at is None or each.updated_at <= since}

    @property
    def grounds(self) -> tuple[Sequence[Source], Sequence[str]]:
        """The sources of a page that names none: everything that its author was shown."""
        sessions = sorted(pick.session_id for pick in self.selection.picks)
        facts = sorted(each.fact.id for each in self.standings if each.fact.id)
        return [Source(session_id=each, seq=0, seq_to=0) for each in sessions], facts

    @property
    def parts(self) -> tuple[WrittenPart, ...]:
        """What a model wrote of the current generation, by part."""
        number = self.selection.generation
        return WrittenPart.read(self.store.parts(self.selection.space, number) if number else "")

    @property
    def is_empty(self) -> bool:
        return not self.selection.picks and not self.standings

    def memos(self, picks: Iterable[Pick]) -> Iterator[Memo]:
        """Memories in full, in this order, read a page at a time."""
        ids = [pick.session_id for pick in picks]
        for start in range(0, len(ids), MEMOS_PAGE):
            yield from self.store.memos(self.selection.space, ids[start : start + MEMOS_PAGE])

    def opened(self, session: SummarizedSession) -> str:
        """What a session came to, in full: its memory, then its summary."""
        memos = self.store.memos(self.selection.space, [session.session_id])
        summaries = (summary_page(memo, session.path).body for memo in memos)
        return "\n\n".join([*map(raw_memory, memos), *summaries])

    @property
    def dated(self) -> Selection:
        """The selection for a render that says what is open: it expires when that changes."""
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
        if made_by == BY_RULES:  # a model is not asked anew for every day that passes
            dated = ((due_on(each.fact), each.fact.id) for each in self.standings)
            over = sorted(id_ for due, id_ in dated if due is not None and due < self.today)
            parts += [over] if over else []
        return sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def _fingerprint(standing: Standing) -> tuple[str, ...]:
    fact = standing.fact
    sources = sorted({source.session_id for source in fact.sources})
    return (fact.id, fact.content, str(fact.trust), str(fact.valid_from), *fact.tags, *sources)


@dataclass(slots=True, kw_only=True)
class Stage:
    """One generation while it is made. For one thread."""

    pages: StagedPages
    inputs: Inputs
    places: dict[str, str] = field(default_factory=dict)  # of summaries, by session
    written: tuple[tuple[str, str], ...] = ()  # session and path, new ones

    @property
    def is_whole(self) -> bool:
        """Whether every page that has to be there is."""
        paths, picks = (MEMORY, SUMMARY, RAW), self.inputs.selection.picks
        is_there = all(self.pages.find(path) is not None for path in paths)
        return is_there and all(pick.path is not None for pick in picks)

    def render(self, kept: Iterable[WrittenPart] = ()) -> tuple[WrittenPart, ...]:
        """Write every page by rules, but for the texts of a model that stand; their parts.

        Nothing of what is news for the model is in those.
        """
        self.put_summaries()
        sessions = self.sessions(self.put_raw())
        stands = self.standing(kept)
        book = self.book(sessions, by_subject=bool(stands))
        self.put_book(book, {name: text for name, (text, _) in stands.items()})
        self.prune()
        return tuple(
            WrittenPart(
                names=tuple(each for each in part.names if each in stands), inputs=part.inputs
            )
            for part in kept
            if any(each in stands for each in part.names)
        )

    def book(self, sessions: Iterable[SummarizedSession], *, by_subject: bool = False) -> Handbook:
        """What rules say on every page of the handbook."""
        inputs = self.inputs
        return handbook(
            inputs.standings, self.places, sessions, today=inputs.today, by_subject=by_subject
        )

    def sessions(self, memos: Iterable[Memo]) -> list[SummarizedSession]:
        """The sessions that pages of memory list."""
        places = self.places
        return [
            summarized(each, places[each.extraction.session_id])
            for each in memos
            if each.extraction.session_id in places
        ]

    def standing(
        self, parts: Iterable[WrittenPart]
    ) -> dict[str, tuple[WrittenText, frozenset[str]]]:
        """The texts of a model that rest on nothing but what stands."""
        parts = tuple(parts)
        names = {name for part in parts for name in part.names if name.startswith("~")}
        pages = {
            name: WrittenText(text=found.body, description=found.description)
            for name in names
            if (found := self.pages.find(name)) is not None
        }
        memory = self.pages.find(MEMORY)
        texts = texts_of("" if memory is None else memory.body, pages)
        inputs = self.inputs
        return standing(parts, CurrentInputs.of(inputs.standings, inputs.selection.picks), texts)

    def put_book(self, book: Handbook, written: Mapping[str, WrittenText]) -> None:
        """Write the handbook's pages; skills that are none of them are over."""
        pages = book.pages(written)
        self.put(*pages)
        self.keep_skills(page.path for page in pages)

    def keep_skills(self, paths: Iterable[str]) -> None:
        """Delete what is below the skills and none of these pages, nor above one."""
        kept = [read_path(path) for path in paths]
        nodes = self.pages.tree(SKILLS, limit=LIST_MAX)[1:]
        self.drop(
            node.path
            for node in nodes
            if not any(path.is_within(read_path(node.path)) for path in kept)
        )

    def put_summaries(self) -> None:
        """Write the pages of sessions that are new or changed, and those that are missing."""
        selection = self.inputs.selection
        self.places = {pick.session_id: pick.path for pick in selection.picks if pick.path}
        missing = (pick for pick in selection.retained if pick.path is None)
        memos = self.inputs.memos([*selection.added, *missing])
        placed = [(memo, self._place(memo)) for memo in memos]
        before = set(self.places.values())
        self.written = tuple((memo.extraction.session_id, path) for memo, path in placed)
        self.places |= dict(self.written)
        self.drop(before.difference(self.places.values()))
        self.put(*(summary_page(memo, path) for memo, path in placed))

    def _place(self, memo: Memo) -> str:
        """Where the page of a session stands, from the first time on.

        One whose short name is gone, for it said what is not said any more, has another place.
        """
        own = summary_path(memo)
        is_named = memo.extraction.rollout_slug is not None
        return self.places.get(memo.extraction.session_id, own) if is_named else own

    def put_raw(self, also: Iterable[Memo] = ()) -> list[Memo]:
        """Write what sessions came to in one page; `also` of those that are being removed."""
        picks = sorted(self.inputs.selection.picks, key=lambda pick: pick.session_id)
        picks.sort(key=lambda pick: pick.source_updated_at, reverse=True)
        newest = picks[:RAW_MEMOS_MAX]
        memos = [*self.inputs.memos(newest), *also]
        others = len(self.inputs.selection.picks) - len(newest)
        self.put(raw_memories(memos, places=self.places, others=others))
        return memos

    def prune(self) -> None:
        """Delete the pages of what is removed."""
        kept = set(self.places.values())
        removed = (each.path for each in self.inputs.selection.removed)
        self.drop(path for path in removed if path is not None and path not in kept)

    def removed_memos(self) -> list[Memo]:
        """What is being removed and still there, to be read once more."""
        removed = self.inputs.selection.removed
        ids = [each.session_id for each in removed[:RAW_MEMOS_MAX]]
        return self.inputs.store.memos(self.inputs.selection.space, ids)

    def put(self, *pages: Page) -> None:
        for page in pages:
            self.pages.write(
                page.path,
                page.body,
                title=page.title,
                description=page.description,
                tags=page.tags,
                sources=page.sources,
                facts=page.facts,
            )

    def drop(self, paths: Iterable[str]) -> None:
        """Delete pages, what is below first: a generation notes of each that it is gone."""
        for path in sorted(paths, reverse=True):
            if self.pages.find(path) is not None:
                self.pages.delete(path, references=OnReferences.LEAVE)
