"""What was forgotten, as a page says it: in numbers, and whether anything is left to be done."""

from __future__ import annotations

from recollect.interfaces.views import places_left
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
    said = f"Forgotten for good: {gone or 'nothing was left of it'}.{_not_done(receipt)}"
    if receipt.may_remain:
        said += f" Has the same words: {', '.join(receipt.may_remain)}."
    return said


def _not_done(receipt: Receipt) -> str:
    if receipt.left:
        return f" Left, and may still say it: {', '.join(places_left(receipt))}."
    return "" if receipt.is_complete else " Somebody reads the files just now: run doctor later."


def _many(count: int, one: str) -> str:
    if count == 1:
        return one
    return f"{one[:-1]}ies" if one.endswith("y") else f"{one}s"
