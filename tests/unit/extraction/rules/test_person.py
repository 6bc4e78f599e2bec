"""What somebody says of themselves is told in the third person, or not at all."""

from __future__ import annotations

import pytest

from recollect.extraction.rules.person import Narrator, third_person
from recollect.extraction.rules.rulebook import load
from tests.tables import every_row

BOOK = load()
NARRATOR = Narrator(BOOK.verbs, BOOK.person)


@every_row(
    ("said", "told"),
    [
        ("I live in Porto", "Ana lives in Porto"),
        ("I'm tired", "Ana is tired"),
        ("I am tired", "Ana is tired"),
        ("I was in Rome", "Ana was in Rome"),
        ("I've seen it", "Ana has seen it"),
        ("I have a car", "Ana has a car"),
        ("I don't smoke", "Ana doesn't smoke"),
        ("I haven't slept", "Ana hasn't slept"),
        ("I'll go", "Ana will go"),
        ("I'd like a tea", "Ana would like a tea"),
        ("I'd seen it", "Ana had seen it"),
        ("I go home", "Ana goes home"),
        ("I watch films", "Ana watches films"),
        ("I study law", "Ana studies law"),
        ("I play chess", "Ana plays chess"),
        ("I moved out", "Ana moved out"),
        ("I went out", "Ana went out"),
        ("I can swim", "Ana can swim"),
        ("I really love tea", "Ana really loves tea"),
        ("I never eat fish", "Ana never eats fish"),
        ("I need rest", "Ana needs rest"),
        ("my dog is old", "Ana's dog is old"),
        ("the house is mine", "the house is Ana's"),
        ("they gave me a book", "they gave Ana a book"),
        ("I love my dog", "Ana loves their dog"),
        ("I bought myself a bike", "Ana bought themselves a bike"),
        ("I think I like it", "Ana thinks they like it"),
        ("I know I was late", "Ana knows they were late"),
        ("I said I'm busy", "Ana said they are busy"),
        ("I hear I've won", "Ana hears they have won"),
        ("I live in Porto and work at a bank", "Ana lives in Porto and works at a bank"),
        ("I moved out and love it", "Ana moved out and loves it"),
        ("I'm planning a party and want a cake", "Ana is planning a party and wants a cake"),
        ("I want to relax and have fun", "Ana wants to relax and have fun"),
        ("my wife and I live in Porto", "Ana's wife and they live in Porto"),
        ("I no longer smoke", "Ana no longer smokes"),
        ("I carved out some me-time", "Ana carved out some me-time"),
        ("I drove down the I-95", "Ana drove down the I-95"),
        ("I live in Porto and love pizza", "Ana lives in Porto and loves pizza"),
        ("Painting helps me with my moods", "Painting helps Ana with their moods"),
        ("Running is my passion", "Running is Ana's passion"),
    ],
)
def test_the_first_person_becomes_the_third(said: str, told: str) -> None:
    assert NARRATOR.tell(said, "Ana") == told


@every_row(
    "said",
    [
        "we live in Porto",
        "I told you so",
        "our house is old",
        "so do I",
        "nor have I",
        'I said "no"',
        "do I live here?",
        "I grok it",
        "Marrying my partner in Porto was the best part",
        "I can be me without fear",
        "I love the peace and love theme",
        "the sky is blue",
        "I",
        "",
    ],
)
def test_what_cannot_be_told_safely_is_left_to_be_quoted(said: str) -> None:
    assert NARRATOR.tell(said, "Ana") is None


@pytest.mark.parametrize(
    ("verb", "third"), [("try", "tries"), ("play", "plays"), ("go", "goes"), ("fix", "fixes")]
)
def test_verbs_take_their_ending(verb: str, third: str) -> None:
    assert third_person(verb) == third
