"""T3, T4: what follows from the order in which things are said in a session: a role play, words
that are taken back, corrections, agreements."""

from __future__ import annotations

from dataclasses import replace

from recollect.extraction.piece import Block
from recollect.extraction.rules import RuleExtractor
from recollect.extraction.rules.conversation import PAUSE
from recollect.types.facts import NewFact
from tests.unit.extraction.material import answered, piece, said

EXTRACTOR = RuleExtractor()


def talk(*texts: str) -> list[Block]:
    """A person and an agent by turns."""
    speak = (said, answered)
    return [speak[place % 2](place + 1, text) for place, text in enumerate(texts)]


def learned(*texts: str) -> list[NewFact]:
    return list(EXTRACTOR.extract(piece(*talk(*texts))).facts)


def contents(*texts: str) -> list[str]:
    return [fact.content for fact in learned(*texts)]


def test_nothing_is_learned_from_a_role_play_until_it_is_over() -> None:
    opening = "I live in Rome. Let's role-play. You are a barista and I'm a customer."
    played = "Hi, I'm Bob. I live in Texas and I'm allergic to milk."
    over = "Ok, stop the role-play. I'm allergic to nuts."
    assert contents(opening, "Welcome!", played, "Oat milk?", "Yes, I work at Zara.") == [
        "The user lives in Rome."
    ]
    assert contents(opening, "Welcome!", played, "Ok?", over, "Fine.", "I work at Siemens.") == [
        "The user lives in Rome.",
        "The user is allergic to nuts.",
        "The user works at Siemens.",
    ]


def test_after_a_long_while_nobody_plays_any_more() -> None:
    *played, last = talk("Let's role-play.", "Who are you?", "I'm vegan.")
    assert EXTRACTOR.extract(piece(*played, last)).is_empty
    (fact,) = EXTRACTOR.extract(piece(*played, replace(last, at=last.at + PAUSE))).facts
    assert fact.content == "The user is vegan."


def test_a_message_may_take_back_the_one_before_it() -> None:
    told = ("I live in Rome.", "Nice.", "I was diagnosed with depression.", "I am sorry.")
    assert contents(*told, "Please don't remember that.") == ["The user lives in Rome."]
    assert contents(*told, "Forget what I said about that.") == ["The user lives in Rome."]
    assert len(contents(*told, "I don't remember that.")) == 2


def test_a_correction_takes_what_it_corrects_along() -> None:
    assert contents("My number is 555-0100. Correction: 555-0199.") == [
        "The user's number is 555-0100. Correction: 555-0199."
    ]
    (fact,) = learned("I live in Rome. Actually, it's Ostia.")
    assert (fact.content, fact.topic) == (
        "The user lives in Rome. Actually, it's Ostia.",
        "user:home",
    )
    said_before = contents("Her name is Anna.", "Ok.", "Sorry, I mistyped: her name is Hanna.")
    assert said_before == [
        'The user corrects: "Her name is Anna. Sorry, I mistyped: her name is Hanna."'
    ]
    assert contents("I live in Rome. No, use pytest, not unittest.") == [
        "The user lives in Rome.",
        'The user corrects: "Use pytest, not unittest."',
    ]


def test_a_question_that_is_answered_with_yes_is_no_agreement() -> None:
    for question in (
        "Should I also tell you about the weather in Rome today?",
        "Shall we look at the next question of the quiz now?",
        "Let's look at the second chapter of your book together.",
    ):
        assert contents("Hi.", question, "Yes, please do.") == []


def test_a_long_agreement_is_cut_between_two_words() -> None:
    proposal = "I suggest we keep the parser in its own module" + " and its tests beside it" * 20
    (fact,) = learned("Hi.", f"{proposal}.", "Ok.")
    assert len(fact.quote) <= 300
    assert f"{proposal}.".startswith(f"{fact.quote} ")
    assert fact.content == f'Agreed with the user: "{fact.quote} …"'


def test_an_agreement_never_begins_in_the_middle_of_a_sentence() -> None:
    long = "word " * 60 + "we should keep the old parser " + "word " * 40
    assert contents("Hi.", f"{long}. {'It is so. ' * 60}", "Ok.") == []
