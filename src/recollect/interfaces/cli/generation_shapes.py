"""The JSON shapes of consolidation: generations, what the next one would be, and why it waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.generation import ConsolidationState, Generation, Pick, Removed, Selection, Waiting
from recollect.interfaces.cli.shapes import spent_shape

if TYPE_CHECKING:
    from recollect.consolidation.generations import GenerationChange
    from recollect.consolidation.run import Preview


def generation_shape(generation: Generation) -> dict[str, Any]:
    return {
        "space": generation.space,
        "number": generation.number,
        "made_at": generation.made_at,
        "made_by": generation.made_by,
        "note": generation.note,
        "added": generation.added,
        "retained": generation.retained,
        "removed": generation.removed,
        "documents": generation.documents,
        "changed": generation.changed,
        "spent": spent_shape(generation.spent),
        "is_whole": generation.is_whole,
        "restored_from": generation.restored_from,
    }


def next_run(state: ConsolidationState, now: datetime) -> datetime | None:
    """When the next generation is made, if there is a worker; none: not by itself."""
    match state.waits_for(now):
        case Waiting.COOLDOWN | Waiting.BACKOFF:
            return state.due_at
        case Waiting.READY | Waiting.PHASE_1:
            return now
        case Waiting.NOTHING_CHANGED:
            return state.expires_at
        case Waiting.RUNNING | Waiting.PAUSED | Waiting.PARKED:
            return None


def state_shape(state: ConsolidationState, now: datetime) -> dict[str, Any]:
    return {
        "space": state.space,
        "generation": state.generation,
        "waits_for": state.waits_for(now).value,
        "next_attempt_at": next_run(state, now),
        "changed": state.changed,
        "consolidated": state.consolidated,
        "changed_at": state.changed_at,
        "finished_at": state.finished_at,
        "paused_at": state.paused_at,
        "expires_at": state.expires_at,
        "state": state.job.value,
        "due_at": state.due_at,
        "failures": state.failures,
        "last_error": state.last_error,
        "sessions_due": state.phase1_due,
    }


def counts_shape(selection: Selection) -> dict[str, int]:
    return {
        "added": len(selection.added),
        "retained": len(selection.retained),
        "removed": len(selection.removed),
    }


def preview_shape(preview: Preview, keys: Mapping[str, str]) -> dict[str, Any]:
    selection = preview.selection
    return {
        "space": selection.space,
        "generation": selection.generation,
        "made_by": preview.made_by,
        "is_unchanged": preview.is_unchanged,
        "added": [_pick_shape(pick, keys) for pick in selection.added],
        "retained": [_pick_shape(pick, keys) for pick in selection.retained],
        "removed": [_removed_shape(removed, keys) for removed in selection.removed],
        "expires_at": selection.expires_at,
        "documents": [
            {"does": edit.kind.value, "path": edit.path, "based_on": edit.based_on}
            for edit in preview.edits
        ],
    }


def _pick_shape(pick: Pick, keys: Mapping[str, str]) -> dict[str, Any]:
    return {
        "session_id": pick.session_id,
        "key": keys.get(pick.session_id),
        "source_updated_at": pick.source_updated_at,
        "path": pick.path,
    }


def _removed_shape(removed: Removed, keys: Mapping[str, str]) -> dict[str, Any]:
    return {
        "session_id": removed.session_id,
        "key": keys.get(removed.session_id),
        "because": removed.because.value,
        "path": removed.path,
    }


def generation_change_shape(change: GenerationChange) -> dict[str, str]:
    return {"path": change.path, "change": change.change.value, "diff": change.text}
