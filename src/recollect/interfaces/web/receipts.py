"""What was forgotten, as a page says it: in numbers, and whether anything is left to be done."""

from __future__ import annotations

from pathlib import Path

from recollect.knowledge import Receipt

_COUNTED = (
    ("records", "record"),
    ("facts", "fact"),
    ("sources", "source"),
    ("extractions", "extraction"),
    ("summaries", "summary"),
    ("documents", "document"),
    ("versions", "version"),
    ("items", "item"),
)


def told(receipt: Receipt) -> str:
    """What is gone; what there was none of is not mentioned."""
    counted = [(getattr(receipt, field), one) for field, one in _COUNTED]
    gone = ", ".join(f"{count:,} {_many(count, one)}" for count, one in counted if count)
    return f"Forgotten for good: {gone or 'nothing was left of it'}.{_not_done(receipt)}"


def _not_done(receipt: Receipt) -> str:
    if receipt.left:
        names = ", ".join(Path(each).name for each in receipt.left)
        return f" Could not be removed, and may still say it: {names}."
    return "" if receipt.is_complete else " Somebody reads the files just now: run doctor later."


def _many(count: int, one: str) -> str:
    if count == 1:
        return one
    return f"{one[:-1]}ies" if one.endswith("y") else f"{one}s"
