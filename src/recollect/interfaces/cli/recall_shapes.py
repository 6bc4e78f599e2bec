"""The JSON shapes of what was recalled: a hit, and a block for a prompt with what it is made of."""

from __future__ import annotations

from typing import Any

from recollect.interfaces.cli.shapes import source_shape
from recollect.recollection import Citation, Context, Hit, Omission


def hit_shape(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.id,
        "kind": hit.kind.value,
        "text": hit.text,
        "score": hit.score,
        "why": dict(hit.why),
        "sources": [source_shape(source) for source in hit.sources],
        "at": hit.at,
        "trust": hit.trust.value,
        "title": hit.title,
        "speaker": hit.speaker,
        "tags": list(hit.tags),
        "usage_count": hit.usage_count,
    }


def context_shape(block: Context) -> dict[str, Any]:
    return {
        "id": block.id,
        "text": block.text,
        "token_count": block.token_count,
        "citations": [_citation_shape(citation) for citation in block.citations],
        "omitted": [_omission_shape(omission) for omission in block.omitted],
    }


def _citation_shape(citation: Citation) -> dict[str, Any]:
    return {
        "mark": citation.mark,
        "hit": hit_shape(citation.hit),
        "sources": [source_shape(source) for source in citation.sources],
    }


def _omission_shape(omission: Omission) -> dict[str, Any]:
    return {
        "hit": hit_shape(omission.hit),
        "reason": str(omission.reason),
        "instead": omission.instead or None,
    }
