"""Visits are few, short and everybody's own, and what a page is to say comes from here."""

from __future__ import annotations

import recollect
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.web.visits import VISITS_OF_KEY_MAX, Visit, Visits
from recollect.types.access import Scope


def test_whoever_signs_in_again_and_again_crowds_nobody_out() -> None:
    """P9: the holder of any key could otherwise sign everybody else out."""
    with recollect.open(":memory:") as memory:
        visits = Visits(memory)
        mine, theirs = (
            make_key(memory, name, space=name, scope=Scope.READ)[1] for name in ("me", "them")
        )
        other = visits.begin(theirs)
        tokens = [visits.begin(mine) for _ in range(VISITS_OF_KEY_MAX + 5)]
        assert other is not None
        assert visits.of(other) is not None
        assert [visits.of(token or "") is not None for token in tokens] == [False] * 5 + [
            True
        ] * VISITS_OF_KEY_MAX


def test_only_what_this_visit_has_signed_is_said() -> None:
    mine, other = Visit(token="a"), Visit(token="b")
    signed = mine.signed("Forgotten: 3 records of ü.")
    assert mine.told(signed) == "Forgotten: 3 records of ü."
    assert other.told(signed) == ""
    for wrong in ("", ".", "!", signed[:-1], signed + "0", f"eA==.{mine.csrf}", "é.ü"):
        assert mine.told(wrong) == ""
    assert len(mine.signed("ü" * 10_000)) < 4000
