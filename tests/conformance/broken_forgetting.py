"""What a store may leave out when it forgets, to show that the conformance suite has teeth."""

from __future__ import annotations

# What a store may leave out, and the case that has to notice.
MUTED_FORGETTING: dict[str, str] = {
    "revoke_agent": "a_summary_of_a_forgotten_session_is_not_stored",
    "revoke_consolidation": "a_generation_under_way_is_stale",
    "forget_own_item": "a_parked_message_goes_with_its_record",
    "withdraw_record": "a_record_is_forgotten",
    "count_turns": "a_forgotten_turn_does_not_count",
    "revoke_runs": "a_run_over_a_forgotten_record_is_stale",
    "bury_statement": "a_forgotten_fact_stays_away",
    "bury_piece": "pages_are_made_anew_without_it",
    "forget_uses": "a_fact_is_forgotten",
    "forget_inbox": "an_agent_is_forgotten",
    "forget_own_signals": "an_agent_is_forgotten",
    "forget_life": "work_in_a_forgotten_space_is_stale",
    "drop_agent_job": "work_in_a_forgotten_space_is_stale",
    "forget_changes": "a_space_is_forgotten",
    "drop_told_by": "forgetting_goes_on",
    "drop_ranges": "a_space_is_forgotten",
    "drop_jobs": "work_in_a_forgotten_space_is_stale",
    "drop_sessions": "a_space_is_forgotten",
    "reserve_keys": "the_number_of_a_key_is_not_used_again",
    "drop_key": "a_space_is_forgotten",
    "drop_agents": "a_space_is_forgotten",
    "drop_generations": "a_space_is_forgotten",
    "drop_tombstones": "a_forgotten_space_rests",
    "drop_usages": "a_space_is_forgotten",
    "drop_calls": "the_books_stay",
    "drop_imported": "a_space_is_forgotten",
    "drop_import_cursors": "a_space_is_forgotten",
    "settle_consolidation": "what_came_since_is_consolidated",
    "drop_consolidation_job": "a_forgotten_space_is_named_nowhere",
    "drop_tree": "a_forgotten_space_is_named_nowhere",
    "drop_consolidation": "a_forgotten_space_is_named_nowhere",
    "drop_space": "a_space_is_forgotten",
    "name_project": "a_forgotten_session_names_no_project",
}
# What is left of these leads nowhere; test_erasure.py looks for it.
NOT_MUTED_FORGETTING = frozenset({"forget_statements", "drop_generation_documents"})
