"""Who was seen speaking is remembered, within bounds."""

from __future__ import annotations

from recollect.recall.recaller import KnownSpeakers


def test_speakers_of_a_space_are_its_own() -> None:
    known = KnownSpeakers()
    known.saw("a", ["ana"])
    known.saw("a", ["bo"])
    assert (set(known.of("a")), set(known.of("b"))) == ({"ana", "bo"}, set())


def test_those_seen_last_are_kept() -> None:
    known = KnownSpeakers(spaces_max=2, names_max=2)
    for name in ("ana", "bo", "ana", "cy"):
        known.saw("a", [name])
    assert set(known.of("a")) == {"ana", "cy"}
    for space in ("b", "a", "c"):
        known.saw(space, ["di"])
    assert (set(known.of("b")), set(known.of("c"))) == (set(), {"di"})
    assert "di" in known.of("a")
