"""Hits for tests: short to write, with every field that matters open."""

from __future__ import annotations

from datetime import UTC, datetime

from recollect.types.facts import Source, Trust
from recollect.types.recall import EntryKind, Hit

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def day(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}T09:30:00+00:00")


def hit(
    text: str,
    *,
    name: str = "",
    kind: EntryKind = EntryKind.FACT,
    trust: Trust = Trust.USER,
    at: datetime = NOW,
    speaker: str = "",
    title: str = "",
    seq: int = 1,
) -> Hit:
    return Hit(
        id=name or f"{kind}-{text[:20]}",
        kind=kind,
        text=text,
        score=1.0,
        why={"lexical": 1.0},
        sources=(Source(session_id="s", seq=seq, seq_to=seq, quote=text[:20]),),
        at=at,
        trust=trust,
        speaker=speaker,
        title=title,
    )
