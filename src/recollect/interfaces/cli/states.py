"""A session's state and mark in a few words."""

from __future__ import annotations

from recollect.domain import MarkCause, Mode, SessionState
from recollect.interfaces.cli.output import NONE


def state_in_words(state: SessionState) -> str:
    match state.ended_by:
        case None:
            words = ["active"]
        case MarkCause.END:
            words = ["ended"]
        case cause:
            words = [f"ended by {cause}"]
    if not state.remembered:
        words.append("never remembered")
    if state.mode is not Mode.ENABLED:
        words.append(f"memory {state.mode}")
    if state.ephemeral:
        words.append("ephemeral")
    return ", ".join(words)


def mark_in_words(state: SessionState) -> str:
    return NONE if state.invalidated_at is None else f"{state.invalidated_at} ({state.marked_by})"
