"""What a scripted model answers when it is asked to extract: whole answers, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# For a script that answers extraction, or a chat, alone.
OTHERS_BY_RULES: dict[str, Any] = {"memory_agent_model": "rules", "consolidation_model": "rules"}


def fact(content: str, records: Sequence[int], **changes: Any) -> dict[str, Any]:
    """One fact of an answer; what is not given is as plain as it can be."""
    return {
        "content": content,
        "kind": "detail",
        "records": list(records),
        "quote": "",
        "topic": None,
        "supersedes": [],
        "until": None,
    } | changes


def extracted(
    *facts: Mapping[str, Any],
    raw_memory: str | Sequence[Any] = "## Home\noutcome: success",
    rollout_summary: str | Sequence[Any] = "The user talked about home.",
    rollout_slug: str | None = "talk-about-home",
) -> dict[str, Any]:
    """A whole answer."""
    return {
        "raw_memory": raw_memory,
        "rollout_summary": rollout_summary,
        "rollout_slug": rollout_slug,
        "facts": list(facts),
    }


NOTHING: dict[str, Any] = extracted(raw_memory="", rollout_summary="", rollout_slug=None)
