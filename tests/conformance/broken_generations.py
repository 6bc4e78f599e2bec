"""Stores that select, publish or forget generations wrongly, to show that the suite has teeth."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from recollect.ids import SYSTEM_RANDOMNESS, NewId, Randomness
from recollect.store.relational.documents import DocumentStore
from recollect.store.relational.generations import GenerationStore
from recollect.store.relational.leases import Leases
from recollect.types.generations import (
    GenerationDraft,
    Outdated,
    Published,
    RemovedBecause,
    Selection,
    SelectionClock,
    SelectionPolicy,
)
from recollect.types.records import CapReached, Claim, LeasePolicy, NothingDue, StaleClaim


class SelectingGenerations(GenerationStore):
    """Selects something else than it was asked for."""

    def select(self, space: str, policy: SelectionPolicy, now: datetime) -> Selection:
        return self.twisted(super().select(space, self.bent(policy), now))

    def bent(self, policy: SelectionPolicy) -> SelectionPolicy:
        return policy

    def twisted(self, selection: Selection) -> Selection:
        return selection


class OneClockGenerations(SelectingGenerations):
    """Knows one clock."""

    def bent(self, policy: SelectionPolicy) -> SelectionPolicy:
        return replace(policy, clock=SelectionClock.GENERATED)


class GreedyGenerations(SelectingGenerations):
    """Selects everything there is."""

    def bent(self, policy: SelectionPolicy) -> SelectionPolicy:
        return replace(policy, top_n=2**31)


class HoardingGenerations(SelectingGenerations):
    """Selects what nobody has used for ages."""

    def bent(self, policy: SelectionPolicy) -> SelectionPolicy:
        return replace(policy, max_unused_days=10_000)


class UnrankedGenerations(SelectingGenerations):
    """Takes what was made first for the best."""

    def twisted(self, selection: Selection) -> Selection:
        return replace(selection, added=tuple(sorted(selection.added, key=lambda p: p.session_id)))


class VagueGenerations(SelectingGenerations):
    """Does not say why something is removed, and forgets what was forgotten."""

    def twisted(self, selection: Selection) -> Selection:
        because = RemovedBecause.UNSELECTED
        vague = tuple(replace(each, because=because) for each in selection.removed)
        return replace(selection, removed=vague)


class TimelessGenerations(SelectingGenerations):
    """Does not know that time alone changes things."""

    def twisted(self, selection: Selection) -> Selection:
        return replace(selection, expires_at=None)


class PublishingGenerations(GenerationStore):
    """Publishes something else than it was given."""

    def publish(
        self, claim: Claim, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Published | Outdated | StaleClaim:
        return super().publish(claim, self.twisted(draft, now), now, new_id)

    def twisted(self, draft: GenerationDraft, now: datetime) -> GenerationDraft:
        return draft


class HastyGenerations(PublishingGenerations):
    """Takes what is there by now for what was read."""

    def twisted(self, draft: GenerationDraft, now: datetime) -> GenerationDraft:
        policy = SelectionPolicy(top_n=100, max_unused_days=30)
        return replace(draft, selection=self.select(draft.selection.space, policy, now))


class OverlookingGenerations(PublishingGenerations):
    """Completes whatever changed, seen or not."""

    def twisted(self, draft: GenerationDraft, now: datetime) -> GenerationDraft:
        [state] = self.states(draft.selection.space, 1, "", now)
        return replace(draft, selection=replace(draft.selection, revision=state.changed))


class RestlessGenerations(PublishingGenerations):
    """Never waits."""

    def twisted(self, draft: GenerationDraft, now: datetime) -> GenerationDraft:
        return replace(draft, cooldown_seconds=0.0)


class KeepingGenerations(PublishingGenerations):
    """Keeps all of them."""

    def twisted(self, draft: GenerationDraft, now: datetime) -> GenerationDraft:
        return replace(draft, kept=10_000)


class ChurningGenerations(PublishingGenerations):
    """Makes a generation of nothing new."""

    def twisted(self, draft: GenerationDraft, now: datetime) -> GenerationDraft:
        return replace(draft, digest=f"{draft.digest} at {now}")


class ForgivingGenerations(PublishingGenerations):
    """Does not look whether what it publishes may be remembered still."""

    def twisted(self, draft: GenerationDraft, now: datetime) -> GenerationDraft:
        return replace(draft, selection=replace(draft.selection, added=(), retained=()))


class UnfencedGenerations(GenerationStore):
    """Writes the documents first and looks at the token afterwards."""

    def publish(
        self, claim: Claim, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Published | Outdated | StaleClaim:
        given = draft.changes
        DocumentStore(self._database).apply(
            claim.key, given.edits, given.because, given.limits, now, new_id
        )
        return super().publish(claim, draft, now, new_id)


class WillingLeases(Leases):
    """Lets anybody consolidate."""

    def claim(
        self,
        owner: str,
        policy: LeasePolicy,
        now: datetime | None,
        lane: str | None = "",
        randomness: Randomness = SYSTEM_RANDOMNESS,
    ) -> Claim | NothingDue | CapReached:
        return super().claim(owner, replace(policy, consolidates=True), now, lane, randomness)


class ImpatientLeases(Leases):
    """Waits for nothing to be distilled."""

    def claim(
        self,
        owner: str,
        policy: LeasePolicy,
        now: datetime | None,
        lane: str | None = "",
        randomness: Randomness = SYSTEM_RANDOMNESS,
    ) -> Claim | NothingDue | CapReached:
        return super().claim(owner, replace(policy, patience_seconds=0.0), now, lane, randomness)


class PatientLeases(Leases):
    """Waits for ever."""

    def claim(
        self,
        owner: str,
        policy: LeasePolicy,
        now: datetime | None,
        lane: str | None = "",
        randomness: Randomness = SYSTEM_RANDOMNESS,
    ) -> Claim | NothingDue | CapReached:
        return super().claim(owner, replace(policy, patience_seconds=1e9), now, lane, randomness)


BROKEN_GENERATIONS: dict[str, tuple[type[GenerationStore | Leases], str]] = {
    "a selection by one clock": (OneClockGenerations, "both_clocks_are_kept"),
    "a selection of everything": (GreedyGenerations, "no_more_are_selected_than_may"),
    "a selection of the unused": (HoardingGenerations, "what_is_unused_is_not_selected"),
    "a selection without a rank": (UnrankedGenerations, "the_most_used_comes_first"),
    "a removal without a reason": (VagueGenerations, "the_forbidden_is_removed"),
    "a forgetting that is a removal": (VagueGenerations, "earlier_versions_go_with_the_forgotten"),
    "a selection out of time": (TimelessGenerations, "time_alone_makes_a_space_due"),
    "a memory consumed unseen": (HastyGenerations, "a_refresh_during_a_run_is_not_consumed"),
    "a watermark ahead of what was read": (
        OverlookingGenerations,
        "input_during_a_run_leaves_it_due",
    ),
    "a generation without a cooldown": (RestlessGenerations, "a_change_waits_for_the_cooldown"),
    "a generation kept for ever": (KeepingGenerations, "old_generations_are_dropped"),
    "a generation of nothing new": (ChurningGenerations, "nothing_changed_moves_the_watermark"),
    "a generation of the forgotten": (
        ForgivingGenerations,
        "a_run_on_what_was_forgotten_is_outdated",
    ),
    "pages outside of the fence": (UnfencedGenerations, "a_stale_claim_publishes_nothing"),
    "a worker that consolidates unasked": (WillingLeases, "only_some_workers_consolidate"),
    "a worker without patience": (ImpatientLeases, "phase_one_comes_first"),
    "a worker with too much patience": (PatientLeases, "patience_ends"),
}

# What a store may leave out, and the case that has to notice.
MUTED_GENERATIONS: dict[str, str] = {
    "select_memories_by_source": "both_clocks_are_kept",
    "selected_before": "the_forbidden_is_removed",
    "removed_memories": "the_forgotten_is_removed",
    "summary_documents": "the_consumed_is_retained",
    "load_memo": "memories_are_read_in_full",
    "standing_facts": "facts_stand_on_what_is_selected",
    "standing_sources": "a_fact_of_many_sources_stands_on_any",
    "project_of_session": "a_standing_fact_knows_its_project",
    "lost_memories": "a_run_is_outdated_by_what_it_retained",
    "bury_memory": "the_emptied_is_removed",
    "note_urgent": "what_is_urgent_does_not_wait",
    "has_memory": "a_mode_does_not_wait_without_facts",
    "consume_memory": "a_generation_is_published_whole",
    "deselect_memory": "the_unselected_is_removed",
    "drop_tombstone": "nothing_to_remember_empties_memory",
    "close_document": "what_did_not_change_is_shared",
    "open_document": "a_generation_names_its_documents",
    "current_version": "a_write_of_the_same_changes_nothing",
    "opened_document": "a_generation_is_amended",
    "amend_generation": "a_generation_is_amended",
    "amend_digest": "a_generation_is_amended",
    "insert_generation": "a_generation_is_published_whole",
    "complete_consolidation": "a_generation_is_published_whole",
    "finish_consolidation": "a_generation_is_published_whole",
    "lock_consolidation": "a_generation_is_published_whole",
    "list_generations": "generations_are_listed",
    "documents_of_generation": "a_generation_names_its_documents",
    "prune_generations": "old_generations_are_dropped",
    "prunable_documents": "old_generations_are_dropped",
    "forgettable_documents": "earlier_versions_go_with_the_forgotten",
    "drop_generation_document": "earlier_versions_go_with_the_forgotten",
    "has_generation_document": "a_page_that_went_is_kept_for_long_enough",
    "spoil_generations": "earlier_generations_are_not_whole",
    "expire_selection": "time_alone_makes_a_space_due",
    "prunable_memories": "old_memories_are_pruned",
    "prune_memory": "old_memories_are_pruned",
    "request_consolidation": "a_space_is_requested",
    "hurry_consolidation": "a_cooldown_is_lifted",
    "pause_consolidation": "a_pause_voids_a_run",
    "rest_consolidation": "a_pause_voids_a_run",
    "resume_consolidation": "a_pause_voids_a_run",
    "is_paused": "a_pause_voids_a_run",
    "consolidation_states": "where_consolidation_stands_is_told",
    "files_published": "files_follow_generations",
    "without_files": "files_follow_generations",
    "claim_consolidation": "a_space_is_claimed_on_demand",
}
