"""N3: what was shown, opened and cited is told apart, and counts once per turn."""

from __future__ import annotations

import pytest

from recollect.errors import InvalidValue
from recollect.recall.pack import pack
from recollect.recall.usage import Used, cited, cited_hits, opened, shown
from recollect.types.recall import Context, EntryKind, Hit, UsageKind
from tests.tables import every_row
from tests.unit.recall.found import NOW, hit

TEA = hit("The user likes tea", name="tea")
OSLO = hit("The user lives in Oslo", name="oslo")
AGAIN = hit("the user likes TEA", name="again")
TALK = hit("I drank it all", name="s1:4", kind=EntryKind.RECORD)
FAR = hit("Nobody asked", name="far")
BLOCK = pack([TEA, OSLO, AGAIN, TALK], max_tokens=500, now=NOW)


@every_row(
    ("used", "ids"),
    [
        ("m1", ["tea"]),
        ("[m2]", ["oslo"]),
        ("oslo", ["oslo"]),
        ("s1:4", ["s1:4"]),
        (TALK, ["s1:4"]),
        (BLOCK.citations[1], ["oslo"]),
        ("She lives in Oslo [m2] and drinks tea [m1, m2].", ["oslo", "tea"]),
        (["m3", OSLO, "tea", "m1"], ["s1:4", "oslo", "tea"]),
        ((each for each in ("m1", "m1")), ["tea"]),
        (AGAIN, ["tea"]),
        ("again", ["tea"]),
        (["m9", FAR, "far", "nothing", ""], []),
        ([], []),
    ],
)
def test_whatever_says_what_was_used_leads_to_the_hits(used: Used, ids: list[str]) -> None:
    assert [each.id for each in cited_hits(BLOCK, used)] == ids


def test_a_mark_goes_before_an_id_that_is_spelt_like_one() -> None:
    block = pack([hit("One thing", name="m2"), hit("Another", name="x")], max_tokens=500, now=NOW)
    assert [each.id for each in cited_hits(block, "m2")] == ["x"]


@pytest.mark.parametrize("used", [[7], [None], [["m1"]]])
def test_what_is_no_mark_hit_id_or_text_is_an_error(used: list[Used]) -> None:
    with pytest.raises(InvalidValue, match="used takes"):
        cited_hits(BLOCK, used)


def test_an_empty_block_has_nothing_to_cite() -> None:
    assert cited_hits(Context(text=""), ["m1", TEA, "[m1]"]) == ()
    assert not cited(Context(text=""), "m1", turn_id="t", at=NOW)


def test_the_three_kinds_are_told_apart() -> None:
    usages = [
        shown(BLOCK, turn_id="t1", at=NOW),
        opened([OSLO, OSLO], turn_id="t1", at=NOW),
        cited(BLOCK, "Tea [m1]", turn_id="t1", at=NOW),
    ]
    assert [(each.kind, [one.id for one in each.hits]) for each in usages] == [
        (UsageKind.SHOWN, ["tea", "oslo", "s1:4"]),
        (UsageKind.OPENED, ["oslo"]),
        (UsageKind.CITED, ["tea"]),
    ]


def test_usage_of_nothing_is_false() -> None:
    nothing: list[Hit] = []
    assert not opened(nothing, turn_id="t", at=NOW)
    assert opened([TEA], turn_id="t", at=NOW)


def test_what_was_opened_are_hits_or_what_stands_behind_citations() -> None:
    found = opened([TEA, BLOCK.citations[0]], turn_id="t", at=NOW)
    assert (found.kind, found.hits) == (UsageKind.OPENED, (TEA,))
    assert opened(OSLO, turn_id="t", at=NOW).hits == (OSLO,)
    with pytest.raises(InvalidValue):
        opened("m1", turn_id="t", at=NOW)  # type: ignore[arg-type]
