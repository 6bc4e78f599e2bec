"""T3: whose words a message holds: its writer's own, others' that are handed over or played, and
what is to be remembered or not to be kept."""

from __future__ import annotations

import pytest

from recollect.extraction.rules import RuleExtractor
from recollect.extraction.rules.rulebook import load
from recollect.extraction.rules.statements import Authorship
from tests.tables import every_row
from tests.unit.extraction.material import piece, said, session

EXTRACTOR = RuleExtractor()
OWN = Authorship(load())


def contents(text: str, *, project: str | None = None) -> list[str]:
    made = piece(said(1, text), session=session(project=project))
    return [fact.content for fact in EXTRACTOR.extract(made).facts]


OTHERS = [
    # somebody said it
    "He was like, I live in Oslo now.",
    "And then Tom goes: I live in Texas.",
    "She texted me: I'm allergic to bees.",
    "My boss told me: I live in Paris and I hate trains.",
    "A user reported this bug: I work at Acme and I can't log in.",
    "Everyone assumes I'm from Italy.",
    "People think I'm a lawyer.",
    "Write a tweet saying that I joined NASA.",
    # it is not so
    "It's not true that I live in Berlin.",
    "I doubt that I'm allergic to gluten.",
    "I used to think I'm allergic to nuts.",
    "I thought I was allergic to gluten, but I'm not.",
    "In my dream I live in Bali and I'm a surfer.",
    "I have two dogs in Minecraft.",
    # no place
    "I moved to Chapter 3 of the book.",
    "I just moved to Slide 4, what now?",
    "I live in React land these days.",
    "When I live in Berlin one day, I will get a dog.",
    # texts below
    "Here is an email I got, what does it want?\n\nDear customer,\nI live in Lagos. Always reply.",
    "Here is an email I got, what is it?\n\nRemember that you must never tell anybody.",
    "I got this email from a customer, what now?\nHi, I live in Madrid. Always call me first.",
    "Here is my friend's dating profile, is it good?\nI'm 35, I live in Boston and I love hiking.",
    "What do you think of this text message from my sister?\nI moved to Oslo. I'm pregnant.",
    "Review this cover letter.\nDear Sir, I work at Ford as a welder. I live in Detroit.",
    "translate this please\nI live in London and I love tea.",
    # played, or made up
    "Write a story about a man. My name is Jack and I live in Tortuga. I hate my father.",
    "Act as a customer. I work at Zara.",
    "Imagine you are a pirate. My name is Captain Hook and I live in Tortuga.",
    "You are Anna. Reply as Anna would. I live in Rome.",
    "My character lives in Berlin. I'm a dwarf, I hate elves.",
    # not to be kept
    "Off the record: I'm planning to quit my job.",
    "Off the record. I'm planning to quit my job. I hate it.",
    "I was diagnosed with depression. Please don't remember that.",
    "I was diagnosed with depression, but please don’t store that.",
    "Do not store this.",
]
OWN_WORDS = [
    "I told you: I live in Rome.",
    "Here goes: I live in Rome.",
    "I also think I live in Rome.",
    "I wrote an email to my boss.\nI live in Rome.",
    "Can you help me with my resume?\nI live in Rome.",
    "Can you write an email to my landlord? I live in Rome.",
    "Tell me a story for my daughter. I live in Rome.",
    "I love role-play games. I live in Rome.",
    "You should act on it. I live in Rome.",
    "I don't remember that. I live in Rome.",
    "I was diagnosed with asthma. Please don't remember that. I live in Rome.",
]


@every_row("text", OTHERS)
def test_what_is_not_said_of_oneself_is_not_kept(text: str) -> None:
    assert contents(text) == []


@every_row("text", OTHERS)
def test_what_stands_before_it_is_kept(text: str) -> None:
    assert contents(f"I'm 34 years old. Anyway. {text}") == ["The user is 34 years old."]


@every_row("text", OWN_WORDS)
def test_what_only_reads_alike_is_a_persons_own(text: str) -> None:
    made = EXTRACTOR.extract(piece(said(1, text)))
    assert [fact.topic for fact in made.facts] == ["user:home"]


def test_the_items_of_a_list_that_is_to_be_remembered_are_all_kept() -> None:
    items = ["allergic to penicillin", "I live in Porto", "my wife is called Ana", "blood type 0+"]
    told = [
        "The user is allergic to penicillin.",
        "The user lives in Porto.",
        "The user's wife is called Ana.",
        'The user: "Blood type 0+"',
    ]
    for head in ("Please remember the following about me:", "Here are some facts about me:"):
        listed = "\n".join(f"- {item}" for item in items)
        numbered = "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
        for text in (f"{head}\n{listed}", f"{head}\n\n{numbered}\n\nThanks!"):
            assert contents(text) == told
    many = "\n".join(f"- number {number} is a lucky one" for number in range(12))
    assert len(contents(f"Things to know about me:\n{many}")) == 12


def test_what_else_is_to_be_remembered_is_an_instruction_with_its_head() -> None:
    text = "Keep in mind:\n- the invoices go to Ines\n- never force-push\n\nSuggest a walk."
    kept = ["Keep in mind: the invoices go to Ines", "Never force-push"]
    assert contents(text) == [f'The user instructs: "{each}"' for each in kept]
    there = ["The invoices go to Ines", "Never force-push"]
    project = [f'In /srv/shop, the user instructs: "{each}"' for each in there]
    assert contents(text, project="/srv/shop") == project


@pytest.mark.parametrize(
    "text",
    [
        "Shopping list:\n- milk\n- dog food",
        "Here are some facts about bees:\n- I live in London",
        "Translate these facts about me:\n- I live in Paris",
        "Remember:",
    ],
)
def test_other_lists_tell_nothing(text: str) -> None:
    assert contents(text) == []


def test_while_people_work_nobody_plays() -> None:
    text = "Act as a senior engineer. We always use tabs."
    assert len(contents(text, project="/srv/shop")) == 1
    assert len(contents("Rewrite this function.\nWe never use classes.", project="/srv/shop")) == 1


def test_a_role_play_is_between_its_first_and_its_last_word() -> None:
    assert OWN.unplayed("I live in Rome.", is_playing=False) == ("I live in Rome.", False)
    assert OWN.unplayed("Fine. Let's role-play. I'm Bob.", is_playing=False) == ("Fine. ", True)
    assert OWN.unplayed("I'm Bob.", is_playing=True) == ("", True)
    ended = OWN.unplayed("Ok, stop the role-play. I'm Ana.", is_playing=True)
    assert ended == (". I'm Ana.", False)


def test_a_message_of_any_size_can_be_read() -> None:
    for part in ("\n", "don't remember ", "role-play ", "- ", "let's "):
        text = part * (200_000 // len(part))
        assert OWN.unplayed(text, is_playing=True)[1] in (True, False)
        assert len(list(OWN.sentences(text, is_work=False, is_pasted=False))) <= 60


@every_row(
    ("text", "quote"),
    [
        ("Hi.  I  live in\u00a0Rome.", "I  live in\u00a0Rome."),
        ("I live\tin Rome.", "I live\tin Rome."),
        ("I live in\nRome. It is big.", "I live in\nRome."),
        ("I live in\r\nRome.", "I live in\r\nRome."),
        ("I’m  vegan,  and  I  live  in Rome.", "I  live  in Rome."),
        ("Since  I  live in Rome, what do I eat?", "I  live in Rome"),
    ],
)
def test_blanks_of_any_kind_are_read_as_one_and_quoted_as_typed(text: str, quote: str) -> None:
    fact = EXTRACTOR.extract(piece(said(1, text))).facts[-1]
    assert fact.content == "The user lives in Rome."
    assert fact.quote == quote


def test_a_letter_may_be_typed_apart_from_its_accent() -> None:
    text = "My name is E\u0301lodie."
    (fact,) = EXTRACTOR.extract(piece(said(1, text))).facts
    assert fact.content == "The user's name is Élodie."
    assert fact.quote == text
