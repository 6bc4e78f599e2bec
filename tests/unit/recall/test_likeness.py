"""T6: what says the same is told from what only sounds like it."""

from __future__ import annotations

from hypothesis import given

from recollect.recall.statements import Likeness, Wording
from tests.tables import every_row
from tests.unit.strategies import any_text

# Long enough that one word more or less leaves nine tenths of all words shared.
TALE = (
    "Anna likes going by train from Bergen to her old friends near Oslo every summer because they "
    "own a small house there with three boats"
)


def likeness(later: str, earlier: str) -> Likeness:
    return Wording.of(later).compared(Wording.of(earlier))


@every_row(
    ("later", "earlier"),
    [
        ("the user LIKES tea.", "The user likes tea"),
        ("likes tea", "The user likes tea"),
        ("Über-Café", "uber cafe"),
        (TALE.replace("small", "really small"), TALE),
        (TALE.replace("likes", "liked"), TALE),
        (TALE, TALE.replace("small", "really small")),
        ("The budget is 1,000", "The budget is 1,000 in 2026."),
    ],
)
def test_what_brings_nothing_new_is_the_same(later: str, earlier: str) -> None:
    assert likeness(later, earlier) is Likeness.SAME


@every_row(
    ("later", "earlier"),
    [
        ("The user does not like tea", "The user likes tea"),
        (TALE.replace("likes", "never likes"), TALE),
        ("It is not so that the user likes tea", "The user likes tea very much, so they say"),
        ("The user likes tea", "It is not true that the user likes tea"),
        (TALE.replace("three", "3"), TALE.replace("three", "4")),
        (TALE.replace("three", "10001"), TALE.replace("three", "10002")),
        (TALE.replace("summer", "summer since 2024"), TALE),
        (TALE.replace("Oslo", "Hamar"), TALE),
        (f"They said the user likes tea, and then: {TALE}", "The user likes tea"),
        ("tea", "teapot"),
        ("The budget is 1,000,000", "The budget is 1,000"),
        ("The budget is 1,000", "The budget is 1,000,000"),
        ("We meet at 5:30", "We meet at 5"),
        ("It runs on version 2", "It runs on version 2.1"),
        ("The rent is 950.50", "The rent is 950"),
        ("It is -5 degrees outside", "It is 5 degrees outside"),
        ("It costs $5", "It costs €5"),
        ("🍵", "🍺"),
        ("", ""),
    ],
)
def test_what_may_say_something_else_is_another(later: str, earlier: str) -> None:
    assert likeness(later, earlier) is Likeness.OTHER


def test_what_says_a_little_more_is_fuller() -> None:
    assert likeness("The user likes tea with milk", "The user likes tea") is Likeness.FULLER


@given(any_text, any_text)
def test_any_two_texts_can_be_compared(one: str, other: str) -> None:
    assert likeness(one, one) is (Likeness.SAME if Wording.of(one).words else Likeness.OTHER)
    is_same = Likeness.SAME in (likeness(one, other), likeness(other, one))
    assert not is_same or Wording.of(one).words & Wording.of(other).words
