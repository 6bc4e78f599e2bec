"""Stores that search wrongly, to show that the conformance suite has teeth.

Some are wrong by a method; some leave out one of their statements, or have it with another word in
it, or keep their index otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from recollect.store.relational.database import Database
from recollect.store.relational.search import Search
from recollect.types.facts import Trust
from recollect.types.recall import (
    Entry,
    EntryKind,
    Extent,
    Filters,
    Found,
    HitUsage,
    Reach,
    Sought,
    StatementRevision,
    UsageKind,
)


class LooseSearch(Search):
    """Does not look at one of the filters."""

    def __init__(self, database: Database, dropped: str) -> None:
        super().__init__(database)
        self._unasked: Mapping[str, Any] = {dropped: getattr(Filters(), dropped)}

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        return super().candidates(space, sought, replace(filters, **self._unasked), now, reach)


class LateSearch(Search):
    """Filters what it has found, by when much has taken the place of what is asked for."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        found = super().candidates(space, sought, Filters(kinds=filters.kinds), now, reach)
        kept = [
            entry
            for entry in found.entries
            if self.load(space, {entry.kind: [entry.key]}, filters, now)
        ]
        return replace(found, entries=tuple(kept))


class StaleSearch(Search):
    """Answers a question as it did the first time."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._answers: dict[object, Found] = {}

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        asked = (space, sought.stems, sought.times, filters, now)
        if asked not in self._answers:
            self._answers[asked] = super().candidates(space, sought, filters, now, reach)
        return self._answers[asked]


class LeakySearch(Search):
    """Looks around."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        found = super().candidates(space, sought, filters, now, reach)
        others = super().candidates("a", sought, filters, now, reach).entries
        more = () if space == "a" else others
        return replace(found, entries=(*found.entries, *more))

    def load(
        self, space: str, keys: Mapping[EntryKind, Sequence[int]], filters: Filters, now: datetime
    ) -> list[Entry]:
        found = super().load(space, keys, filters, now)
        return found or super().load("theirs", keys, filters, now)


class PickySearch(Search):
    """Takes some of the stems for all of them."""

    def __init__(self, database: Database, is_taken: Callable[[int, str], bool]) -> None:
        super().__init__(database)
        self._is_taken = is_taken

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        taken = [stem for at, stem in enumerate(sought.stems) if self._is_taken(at, stem)]
        return super().candidates(space, replace(sought, stems=tuple(taken)), filters, now, reach)


class TwistedSearch(Search):
    """Says something else about what it has found."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        return self.twist(super().candidates(space, sought, filters, now, reach))

    def twist(self, found: Found) -> Found:
        return found


class RepeatingSearch(TwistedSearch):
    def twist(self, found: Found) -> Found:
        return replace(found, entries=found.entries * 2)


class TrustingSearch(TwistedSearch):
    """Takes everything for a person's word."""

    def twist(self, found: Found) -> Found:
        trusted = tuple(replace(entry, trust=Trust.USER) for entry in found.entries)
        return replace(found, entries=trusted)


class ShortSightedSearch(TwistedSearch):
    """Counts what it sees."""

    def twist(self, found: Found) -> Found:
        seen = {
            kind: Extent(
                entries=min(extent.entries, 1000),
                holders={stem: min(count, 1000) for stem, count in extent.holders.items()},
            )
            for kind, extent in found.extents.items()
        }
        return replace(found, extents=seen)


class NumblingSearch(TwistedSearch):
    """Names a record by its number alone."""

    def twist(self, found: Found) -> Found:
        named = tuple(replace(entry, id=str(entry.key)) for entry in found.entries)
        return replace(found, entries=named)


class GreedySearch(Search):
    """Goes as far as it likes."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        far = replace(reach, loaded=dict.fromkeys(EntryKind, 10_000))
        return super().candidates(space, sought, filters, now, far)


class PunctualSearch(Search):
    """Believes that nothing can have been said after now."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        known = replace(filters, as_of=filters.as_of or now)
        return super().candidates(space, sought, known, now, reach)


class CursorySearch(Search):
    """Loads a beginning, in any order."""

    def load(
        self, space: str, keys: Mapping[EntryKind, Sequence[int]], filters: Filters, now: datetime
    ) -> list[Entry]:
        found = super().load(space, keys, filters, now)
        return [replace(entry, text=entry.text[:4000]) for entry in found]


class UnorderedSearch(Search):
    def load(
        self, space: str, keys: Mapping[EntryKind, Sequence[int]], filters: Filters, now: datetime
    ) -> list[Entry]:
        return sorted(super().load(space, keys, filters, now), key=lambda entry: entry.key)


class CountingSearch(Search):
    """Counts the same use as often as it hears of it."""

    numbers = itertools.count()

    def use(self, space: str, usage: HitUsage) -> int:
        again = replace(usage, turn_id=f"{usage.turn_id} {next(self.numbers)}")
        return super().use(space, again)


class OneWaySearch(Search):
    def use(self, space: str, usage: HitUsage) -> int:
        return super().use(space, replace(usage, kind=UsageKind.SHOWN))


class ShowingSearch(Search):
    """Takes what is only shown for used as well."""

    def use(self, space: str, usage: HitUsage) -> int:
        if usage.kind is UsageKind.SHOWN:
            used = replace(usage, kind=UsageKind.CITED, turn_id=f"{usage.turn_id} shown")
            super().use(space, used)
        return super().use(space, usage)


class GroundlessSearch(Search):
    def use(self, space: str, usage: HitUsage) -> int:
        groundless = tuple(replace(hit, sources=()) for hit in usage.hits)
        return super().use(space, replace(usage, hits=groundless))


class SharedSearch(Search):
    """Counts uses for everybody."""

    def use(self, space: str, usage: HitUsage) -> int:
        super().use("theirs", usage)
        return super().use(space, usage)


class TidySearch(Search):
    """Drops every use."""

    def prune(self, before: datetime) -> int:
        return super().prune(before.replace(year=before.year + 1))


class ForgivingSearch(Search):
    """Does not know what people have taken back."""

    def revisions(
        self, space: str, sessions: Sequence[str], now: datetime, since: datetime | None = None
    ) -> list[StatementRevision]:
        found = super().revisions(space, sessions, now, since)
        return [each for each in found if not each.is_withdrawn]


class SteadySearch(Search):
    """Does not know what took the place of what."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        return super().candidates(space, replace(sought, replaced=0), filters, now, reach)


Broken = tuple[Callable[[Database], Search], str]

# What is wrong, and the case that has to notice.
BROKEN_SEARCH: dict[str, Broken] = {
    f"a search that does not look at {name}": (partial(LooseSearch, dropped=name), case)
    for name, case in {
        "kinds": "only_some_kinds_are_found",
        "since": "records_are_found_by_time",
        "until": "records_are_found_by_time",
        "as_of": "records_are_found_as_of_a_time",
        "agent": "records_are_found_by_whose_they_are",
        "project": "records_are_found_by_whose_they_are",
        "session_id": "records_are_found_by_whose_they_are",
        "tags": "entries_are_found_by_tags",
        "trust": "entries_are_found_by_trust",
        "where": "entries_are_found_by_metadata",
        "or_past": "ended_facts_are_found_on_request",
    }.items()
}
BROKEN_SEARCH |= {
    f"a search that filters too late, of {what}": (LateSearch, case)
    for what, case in {
        "records": "records_are_found_by_whose_they_are",
        "times": "records_are_found_by_time",
        "the past": "records_are_found_as_of_a_time",
        "facts": "facts_are_found_by_their_sources",
        "named times": "a_named_time_is_narrowed_down",
    }.items()
}
BROKEN_SEARCH |= {
    f"a search that does not follow {what}": (StaleSearch, case)
    for what, case in {
        "what is committed": "what_is_committed_is_found_at_once",
        "facts": "facts_are_found_as_they_are",
        "supersession": "superseded_facts_are_not_found",
        "documents": "documents_are_found_as_they_are",
        "extractions": "extractions_are_found_as_they_are",
        "forgetting": "nothing_forgotten_is_found",
        "purges": "purged_records_are_not_found",
        "modes": "a_mode_decides_at_any_time",
        "uses": "old_uses_are_dropped",
    }.items()
}
BROKEN_SEARCH |= {
    "a search of all spaces": (LeakySearch, "nothing_of_another_space_is_found"),
    "entries of other spaces": (LeakySearch, "keys_of_others_give_nothing"),
    "a search for the first word": (
        partial(PickySearch, is_taken=lambda at, _: at == 0),
        "rare_words_count_for_more",
    ),
    "a search for plain words": (
        partial(PickySearch, is_taken=lambda _, stem: stem.isascii()),
        "every_kind_of_word_finds_a_record",
    ),
    "a search for words without digits": (
        partial(PickySearch, is_taken=lambda _, stem: stem.isalpha()),
        "every_kind_of_word_finds_what_was_learned",
    ),
    "what people took back": (ForgivingSearch, "what_holds_no_more_is_told"),
    "what people took back later": (ForgivingSearch, "what_holds_no_more_since_a_time_is_told"),
    "what has changed": (SteadySearch, "what_changed_is_found"),
    "entries that come twice": (RepeatingSearch, "what_is_alike_comes_along"),
    "everything a person's word": (TrustingSearch, "a_child_is_told_by_an_agent"),
    "a count of what is seen": (ShortSightedSearch, "many_entries_are_reckoned"),
    "records without a name": (NumblingSearch, "an_entry_says_what_it_is"),
    "more than was asked for": (GreedySearch, "the_newest_of_equals_are_found"),
    "a clock that is believed": (PunctualSearch, "a_slow_clock_hides_nothing"),
    "texts that are cut": (CursorySearch, "entries_come_by_their_keys"),
    "entries in another order": (UnorderedSearch, "entries_come_by_their_keys"),
    "uses that count again": (CountingSearch, "a_use_is_counted_once_in_a_turn"),
    "uses at once that count again": (CountingSearch, "uses_at_once_are_counted_once"),
    "uses of one kind": (OneWaySearch, "every_kind_is_counted"),
    "uses by being shown": (ShowingSearch, "to_be_shown_is_not_to_be_used"),
    "places by being shown": (ShowingSearch, "being_shown_keeps_no_place"),
    "facts that stand by being shown": (ShowingSearch, "standing_facts_are_bounded"),
    "uses that rest on nothing": (GroundlessSearch, "a_use_counts_for_its_grounds"),
    "uses of no session": (GroundlessSearch, "a_record_counts_for_its_session"),
    "uses in another space": (SharedSearch, "a_use_is_counted_in_its_space"),
    "uses that do not stay": (TidySearch, "old_uses_are_dropped"),
}

# What a store may leave out, and the case that has to notice.
MUTED_SEARCH: dict[str, str] = {
    "record_postings": "every_record_is_found",
    "asked_record_postings": "records_are_found_by_whose_they_are",
    "fact_postings": "what_is_committed_is_found_at_once",
    "asked_fact_postings": "facts_are_found_by_their_sources",
    "summary_postings": "what_is_committed_is_found_at_once",
    "document_postings": "what_is_committed_is_found_at_once",
    "unindexed_records": "what_is_committed_is_found_at_once",
    "record_extent": "few_entries_are_counted",
    "fact_extent": "few_entries_are_counted",
    "summary_extent": "few_entries_are_counted",
    "document_extent": "few_entries_are_counted",
    "load_records": "every_record_of_a_batch_is_found",
    "load_neighbours": "neighbours_come_along",
    "timed_records": "records_are_found_by_a_named_time",
    "load_facts": "facts_are_found_as_they_are",
    "load_summaries": "extractions_are_found_as_they_are",
    "load_documents": "documents_are_found_as_they_are",
    "show_fact": "to_be_shown_is_not_to_be_used",
    "insert_usages": "a_use_is_counted_once_in_a_turn",
    "use_fact": "a_use_counts_for_its_grounds",
    "use_extraction": "a_use_counts_for_its_grounds",
    "count_usages": "every_kind_is_counted",
    "forget_usages": "uses_of_forgotten_sessions_are_gone",
    "purge_usages": "uses_of_purged_documents_are_gone",
    "aged_usages": "old_uses_are_dropped",
    "prune_usages": "old_uses_are_dropped",
}
MUTED_VECTORS: dict[str, str] = {
    "lock_embedded": "another_model_begins_anew",
    "newest_record": "every_kind_is_embedded",
    "hold_record": "every_kind_is_embedded",
    "hold_fact": "every_kind_is_embedded",
    "hold_summary": "every_kind_is_embedded",
    "hold_document": "every_kind_is_embedded",
    "put_vector": "every_kind_is_embedded",
    "tell_dropped": "a_change_drops_the_vector",
    "drop_vectors": "a_change_drops_the_vector",
    "reopen_vectors": "what_is_remembered_again_is_embedded",
    "embed_again": "what_is_remembered_again_is_embedded",
    "unembedded_records": "every_kind_is_embedded",
    "unembedded_facts": "every_kind_is_embedded",
    "unembedded_summaries": "every_kind_is_embedded",
    "unembedded_documents": "every_kind_is_embedded",
    "vectors_after": "changes_are_told_once",
    "dropped_after": "a_change_drops_the_vector",
    "newest_dropped": "who_holds_nothing_is_told_of_nothing_that_went",
    "models": "another_model_begins_anew",
    "use_model": "another_model_begins_anew",
    "delete_vectors_of": "another_model_begins_anew",
}
# What locks has to be seen with two writers; a model that is not forgotten is looked for in vain.
# How far a model has come, and what is not told any more, only make others quicker.
NOT_MUTED_VECTORS = frozenset(
    {"lock_vectors", "forget_model", "embedded_upto", "set_embedded_upto", "first_unembedded"}
    | {"old_dropped", "prune_dropped", "set_pruned"}
)
# On SQLite, where this is asked, nothing is to be done.
NOT_MUTED_SEARCH = frozenset({"post", "unpost"})


@dataclass(frozen=True, slots=True)
class Altered:
    """Words of SQLite's statements that are others, and the case that has to notice."""

    caught_by: str
    where: str  # the name of a query; empty: all of them
    old: str
    new: str = ""


ALTERED_QUERIES = (
    Altered("what_may_not_be_learned_is_not_found", "load_records", "s.remembered AND"),
    Altered("what_may_not_be_learned_is_not_found", "unindexed_records", "s.remembered AND"),
    Altered("what_may_not_be_learned_is_not_found", "timed_records", "s.remembered AND", "1 AND"),
    Altered(
        "keys_of_others_give_nothing",
        "load_records",
        "h.space = :space AND s.space = :space AND k.space = :space AND",
    ),
    Altered("keys_of_others_give_nothing", "load_facts", "f.space = :space AND"),
    Altered(
        "keys_of_others_give_nothing",
        "load_summaries",
        "e.space = :space AND s.space = :space AND k.space = :space AND",
    ),
    Altered("keys_of_others_give_nothing", "load_documents", "d.space = :space AND"),
    Altered("neighbours_come_along", "load_neighbours", "h.session_id = c.session_id AND"),
    Altered("neighbours_come_along", "load_neighbours", "c.seq + 2", "c.seq + 1"),
    Altered("neighbours_come_along", "load_neighbours", "c.seq - 2", "c.seq - 1"),
    Altered("neighbours_pass_the_filters", "load_neighbours", "h.said_at >= :since AND"),
    Altered(
        "records_are_found_by_whose_they_are",
        "unindexed_records",
        "(:any_agent OR k.agent_id = :agent)",
        "1",
    ),
    Altered(
        "records_are_found_by_whose_they_are",
        "asked_record_postings",
        "(:any_project OR s.project = :project OR (:or_no_project AND s.project IS NULL))",
        "1",
    ),
    Altered(
        "what_is_of_no_project_may_come_along",
        "",
        "OR (:or_no_project AND s.project IS NULL)",
    ),
    Altered(
        "what_is_of_no_project_may_come_along",
        "",
        "(:or_no_project AND d.author_kind",
        "(d.author_kind",
    ),
    Altered("records_are_found_by_a_named_time", "timed_records", "h.said_at DESC, h.id DESC", "1"),
    Altered("a_named_time_is_narrowed_down", "timed_records", "h.said_at < :until", "1"),
    Altered("the_newest_of_equals_are_found", "fact_postings", "DESC", "ASC"),
    Altered("many_entries_are_reckoned", "record_extent", "o.id LIMIT 1", "o.id DESC LIMIT 1"),
    Altered("a_mode_decides_about_summaries", "", "s.remembered AND (:any_trust", "(:any_trust"),
    Altered("a_background_agent_is_told_by_nobody", "", " OR substr(k.agent_id, 1, 6) <> '/user/'"),
    Altered("agents_hide_nobodys_word", "", "THEN :agents_word ELSE", "THEN 1 ELSE"),
    Altered("others_metadata_hides_nothing", "", "AND (:any_fields OR", "AND (1 OR"),
    Altered(
        "facts_are_found_as_they_were_worded",
        "load_facts",
        "CASE WHEN :is_now THEN f.content",
        "CASE WHEN 1 THEN f.content",
    ),
    Altered("facts_say_what_they_said", "list_facts", "WHEN :is_now THEN", "WHEN 1 THEN"),
    Altered("facts_say_what_they_said", "reworded_facts", "h.created_at > :at", "0"),
    Altered("facts_say_what_they_said", "", "SELECT min(n.id)", "SELECT max(n.id)"),
    Altered("clocks_may_differ", "", ":is_now AND (f.valid_from", "0 AND (f.valid_from"),
    Altered("clocks_may_differ", "", ":is_now AND f.superseded_at", "0 AND f.superseded_at"),
    Altered("what_is_left_out_does_not_hold", "", "(f.extractor IS NULL OR", "(1 OR"),
    Altered("what_is_left_out_does_not_hold", "", "OR f.own_trust IS NOT NULL"),
    Altered("what_is_left_out_does_not_hold", "", "AND NOT EXISTS (", "AND EXISTS ("),
    Altered("what_was_superseded_is_believed_meanwhile", "left_out", "f.deleted_at IS NULL", "0"),
    Altered("what_was_superseded_is_believed_meanwhile", "superseded_once", "h.space =", "0 ="),
    Altered("summaries_are_found_by_filters", "", "e.generated_at <= :known AND"),
    Altered("a_changed_text_is_of_its_time", "", "e.reworded_at <= :known", "1"),
    Altered("summaries_are_found_by_filters", "", "e.source_updated_at < :until", "1"),
    Altered("documents_are_found_by_time", "", "d.updated_at < :until", "1"),
    Altered("documents_are_found_as_they_are", "", "d.deleted_at IS NULL AND (d.body", "(d.body"),
    Altered(
        "facts_are_found_as_of_a_time",
        "",
        "f.superseded_at > :at AND NOT",
        "1 OR NOT",
    ),
    Altered("facts_are_found_by_their_sources", "", "f.valid_from >= :since", "1"),
    Altered("a_use_reaches_no_other_space", "use_extraction", "space = :space AND"),
    Altered("a_use_is_counted_in_its_space", "use_fact", "space = :space AND"),
)
ALTERED_SCHEMA = (
    # What is deleted stays in an index. (That of records is compared with its rows.)
    Altered(
        "extractions_are_found_as_they_are",
        "",
        "AFTER DELETE ON extractions WHEN old.words IS NOT NULL",
        "AFTER DELETE ON extractions WHEN false",
    ),
    Altered(
        "extractions_are_found_as_they_are",
        "",
        "AFTER UPDATE OF words ON extractions\nWHEN old.words IS NOT new.words",
        "AFTER UPDATE OF words ON extractions\nWHEN false",
    ),
    Altered(
        "facts_are_found_as_they_are",
        "",
        "AFTER UPDATE OF words ON facts WHEN old.words IS NOT new.words",
        "AFTER UPDATE OF words ON facts WHEN false",
    ),
)
