"""T3: which sentences of a person become facts, of what kind and about what; and which do not."""

from __future__ import annotations

import pytest

from recollect.extraction.rules import RuleExtractor
from recollect.types.facts import NewFact, Trust
from tests.tables import every_row
from tests.unit.extraction.material import answered, piece, said

EXTRACTOR = RuleExtractor()


def facts_of(text: str, *, name: str | None = None) -> tuple[NewFact, ...]:
    return EXTRACTOR.extract(piece(said(1, text, name=name))).facts


def only(text: str) -> NewFact:
    facts = facts_of(text)
    assert len(facts) == 1, facts
    return facts[0]


DETAILS = [
    ("My name is Maria.", "The user's name is Maria.", "user:name"),
    ("You can call me Max.", 'The user: "You can call me Max."', "user:called"),
    ("I live in Lisbon.", "The user lives in Lisbon.", "user:home"),
    ("I just moved to Porto.", "The user just moved to Porto.", "user:home"),
    ("i live in Berlin", "The user lives in Berlin.", "user:home"),
    ("I no longer live in Rome.", "The user no longer lives in Rome.", "user:home"),
    ("I moved from Porto to Rome.", "The user moved from Porto to Rome.", "user:home"),
    ("I moved away from Porto.", "The user moved away from Porto.", "user:home"),
    ("I'm 34 years old.", "The user is 34 years old.", "user:age"),
    ("I work at Siemens.", "The user works at Siemens.", "user:employer"),
    ("I no longer work at Siemens.", "The user no longer works at Siemens.", "user:employer"),
    (
        "I started a new job at Acme in March.",
        "The user started a new job at Acme in March (2026-03).",
        "user:employer",
    ),
    ("I work as a data analyst.", "The user works as a data analyst.", "user:job"),
    ("I'm from Poland.", "The user is from Poland.", "user:origin"),
    ("I grew up in Leeds.", "The user grew up in Leeds.", "user:origin"),
    ("I'm married.", "The user is married.", "user:marital-status"),
    ("I am a nurse.", "The user is a nurse.", None),
    ("I'm allergic to peanuts.", "The user is allergic to peanuts.", None),
    ("I'm vegan.", "The user is vegan.", "user:diet"),
    ("I’m vegetarian.", "The user is vegetarian.", "user:diet"),
    ("I'm not vegan anymore.", "The user is not vegan anymore.", "user:diet"),
    ("I was vegan.", "The user was vegan.", None),
    ("I have two kids.", "The user has two kids.", None),
    ("I have a dog.", "The user has a dog.", None),
    ("I studied physics at MIT.", "The user studied physics at MIT.", None),
    (
        "I've been learning guitar for three years.",
        "The user has been learning guitar for three years.",
        None,
    ),
]
RELATIONS = [
    ("My wife's name is Ana.", "The user's wife's name is Ana.", "user:wife:name"),
    ("My husband Tom is a pilot.", "The user's husband Tom is a pilot.", "user:husband:name"),
    ("My boss is called Ines.", "The user's boss is called Ines.", "user:boss:name"),
    ("My brother Luis lives in Rome.", "The user's brother Luis lives in Rome.", None),
    ("My dog is called Rex.", "The user's dog is called Rex.", None),
    ("I have a cat named Tiger.", "The user has a cat named Tiger.", None),
]
PREFERENCES = [
    ("I love sushi.", "The user loves sushi.", "user:likes:sushi"),
    ("I hate cilantro.", "The user hates cilantro.", "user:likes:cilantro"),
    ("I don't like olives.", "The user doesn't like olives.", "user:likes:olives"),
    ("I don't like tea anymore.", "The user doesn't like tea anymore.", "user:likes:tea"),
    ("I no longer like tea.", "The user no longer likes tea.", "user:likes:tea"),
    ("I really enjoy hiking.", "The user really enjoys hiking.", "user:likes:hiking"),
    (
        "I prefer tabs over spaces.",
        "The user prefers tabs over spaces.",
        "user:prefers:spaces-or-tabs",
    ),
    (
        "I prefer spaces to tabs.",
        "The user prefers spaces to tabs.",
        "user:prefers:spaces-or-tabs",
    ),
    (
        "My favourite colour is green.",
        "The user's favourite colour is green.",
        "user:favourite:colour",
    ),
    ("My favorite editor is Vim.", "The user's favorite editor is Vim.", "user:favourite:editor"),
    ("I'd rather have short answers.", "The user would rather have short answers.", None),
    ("I'm a big fan of jazz.", "The user is a big fan of jazz.", None),
    ("I don't eat meat.", "The user doesn't eat meat.", None),
    ("I no longer drink coffee.", "The user no longer drinks coffee.", None),
]
INSTRUCTIONS = [
    "Always use British spelling.",
    "Never commit to main.",
    "Please always answer in German.",
    "From now on, use pnpm.",
    "Going forward, keep answers short.",
    "Remember that the invoices go to Ines.",
    "Please remember that I'm left-handed.",
    "Keep in mind that we deploy on Tuesdays.",
    "Don't use emojis in commit messages.",
    "Please don't add comments.",
    "Whenever you edit a file, run the tests.",
    "By default, write tests with pytest.",
    "I want you to use metric units.",
    "You should never push without asking.",
    "Make sure to always lint first.",
    "FYI our staging server is called blue.",
    "For the record, we close at six.",
    "Stop apologising in every answer.",
]
CORRECTIONS = [
    ("No, use pytest, not unittest.", 'The user corrects: "Use pytest, not unittest."'),
    (
        "That's wrong, the port is 5433.",
        'The user corrects: "That\'s wrong, the port is 5433."',
    ),
    ("I meant the second table.", 'The user corrects: "I meant the second table."'),
    ("Actually, it's spelled Siobhan.", 'The user corrects: "It\'s spelled Siobhan."'),
    ("Please use uv instead.", 'The user corrects: "Please use uv instead."'),
    ("Nope, that's not what I asked for.", 'The user corrects: "That\'s not what I asked for."'),
    ("Not Python 3.10, but 3.12.", 'The user corrects: "Not Python 3.10, but 3.12."'),
    ("You're mistaken about the date.", 'The user corrects: "You\'re mistaken about the date."'),
    (
        "Correction: the deadline is May 12.",
        'The user corrects: "Correction: the deadline is May 12." (2026-05-12)',
    ),
]
DECISIONS = [
    ("We decided to use Postgres.", 'The user: "We decided to use Postgres."'),
    ("I've decided to quit smoking.", "The user has decided to quit smoking."),
    ("We agreed on a weekly sync.", 'The user: "We agreed on a weekly sync."'),
    ("I finally settled on the blue one.", "The user finally settled on the blue one."),
    ("Let's use FastAPI.", 'The user: "Let\'s use FastAPI."'),
    ("Let's stick with SQLite.", 'The user: "Let\'s stick with SQLite."'),
    ("We use trunk-based development.", 'The user: "We use trunk-based development."'),
]
GOALS = [
    ("My goal is to run a marathon.", "The user's goal is to run a marathon."),
    ("I want to learn Spanish.", "The user wants to learn Spanish."),
    ("I'm saving up for a house.", "The user is saving up for a house."),
    ("I'm training for a triathlon.", "The user is training for a triathlon."),
    ("I plan to open a bakery.", "The user plans to open a bakery."),
    ("My dream is to write a novel.", "The user's dream is to write a novel."),
]
# All of them said on Friday, 1 May 2026.
COMMITMENTS = [
    (
        "I have a dentist appointment tomorrow.",
        "The user has a dentist appointment tomorrow (2026-05-02).",
    ),
    (
        "My flight to Oslo is on May 20.",
        "The user's flight to Oslo is on May 20 (2026-05-20).",
    ),
    (
        "I promised to send the report by Tuesday.",
        "The user promised to send the report by Tuesday (2026-05-05).",
    ),
    ("Our wedding is next month.", 'The user: "Our wedding is next month." (2026-06)'),
    (
        "I'm flying to Berlin next week.",
        "The user is flying to Berlin next week (week of 2026-05-04).",
    ),
    (
        "Remind me to call Ana on Monday.",
        "Remind the user to call Ana on Monday (2026-05-04).",
    ),
]
EVENTS = [
    ("I bought a new car yesterday.", "The user bought a new car yesterday (2026-04-30)."),
    (
        "I ran my first marathon two weeks ago.",
        "The user ran their first marathon two weeks ago (week of 2026-04-13).",
    ),
    (
        "I visited Japan in 2019 with my sister.",
        "The user visited Japan in 2019 with their sister.",
    ),
    (
        "My grandmother passed away last winter.",
        "The user's grandmother passed away last winter (2025-12 to 2026-02).",
    ),
]
OBSERVATIONS = [
    "Our production database runs on Postgres 15.",
    "The staging server is at blue.example.com.",
    "My team is five people.",
]
NOTHING = [
    # questions
    "Do I live in Lisbon?",
    "Should I always use tabs?",
    "What is my name?",
    "Is my wife called Ana?",
    "Would you say I'm old?",
    "What if I always use tabs?",
    "Remember me?",
    "How do I install numpy?",
    "Did I tell you that I moved to Porto?",
    "Can you help me?",
    "Could you explain that again?",
    "Hello there, how are you?",
    # not meant, or only supposed
    "If I lived in Lisbon, I would surf.",
    "I wish I lived in Rome.",
    "I might live in Rome some day.",
    "Imagine I am a pirate.",
    "Suppose I work at Google.",
    "Let's say I have two kids.",
    "Act as a pirate who lives in Nassau.",
    "In this story I am a knight.",
    "Just kidding, I love spiders.",
    "Pretend that I live in Rome.",
    # somebody else's words
    'She said "I live in Paris".',
    "He told me “I hate cilantro” once.",
    'He told me "always use tabs" yesterday.',
    "> I live in Paris",
    "```\nI live in Paris.\n```",
    "<result>\nI live in Paris.\n</result>",
    "She said 'I live in Paris' and left.",
    "He said: I live in Paris.",
    'She wrote "I live in Oslo. My name is Bob. I love sushi." to me.',
    # words that are handed over
    "Translate to German: I live in Berlin.",
    "Translate: which bakery should I try, given that I live in Oslo?",
    "Please translate this to French: I live in Berlin. My name is Bob.",
    "Can you rephrase: I hate cilantro.",
    "Correct this sentence: My name is Bob.",
    "Could you please fix the grammar: My name is Bob. I lives in Rome.",
    "Write a story that begins with: I live in Oslo.",
    "Write a story that begins with:\nI live in Oslo. My name is Bob.",
    "Summarise: I work at Siemens.",
    "Say: I'm vegan. My name is Bob.",
    "Print 'I live in Oslo' ten times.",
    "Reply with: My wife's name is Ana.",
    "Example: I live in Madrid.",
    "E.g.: I live in Madrid.",
    "For instance: I love sushi.",
    "Test input: My name is Bob.",
    "User: I live in Madrid.",
    "How do you say in Czech: I live in Prague.",
    "In my novel the hero says: I live in Prague.",
    # only supposed
    "Pretend I live in Tokyo.",
    "Let's pretend my name is Bob.",
    "Assume I live in Rome.",
    "Assuming I work at Google, what is my salary?",
    "Supposing I live in Rome, I pay less.",
    "As a test I live in Prague for now.",
    "For the test, my name is Bob.",
    "For the test user, my name is Bob.",
    "Say I live in Rome.",
    "I never said I like jazz.",
    "I was told I like jazz.",
    # requests that are done when they are done
    "Write a poem about the sea.",
    "Fix the bug in main.py.",
    "Please translate this text.",
    "I need help with my homework.",
    "I have a question about regexes.",
    "I'd like to know more.",
    "I would love some help.",
    "I'm interested in learning more about bees.",
    "I like the idea of a garden.",
    "I'm trying to understand closures.",
    # small talk
    "Thanks a lot!",
    "Great, thank you so much!",
    "Ok.",
    "I think so.",
    "I don't know.",
    "I see.",
    "I have no idea.",
    "I'm not sure.",
    "That makes sense.",
    "Sounds good to me.",
    "Never mind.",
    "Actually, never mind.",
    "No problem.",
    "No.",
    "Stop.",
    "Don't worry about it.",
    "I always wondered why.",
    "I never thought of that.",
    "I remember that well.",
    # what anybody may say
    "The sky is blue.",
    "Python is a programming language.",
    "I'm getting an error.",
    "???",
    "lol",
    "I",
]


def check(text: str, tag: str, content: str, topic: str | None) -> None:
    fact = only(text)
    assert (fact.tags[0], fact.content, fact.topic) == (tag, content, topic)
    assert fact.quote == text
    assert fact.trust is Trust.USER
    assert 0.5 <= fact.metadata["confidence"] <= 1


@every_row(("text", "content", "topic"), DETAILS)
def test_a_personal_detail_is_kept(text: str, content: str, topic: str | None) -> None:
    check(text, "detail", content, topic)


@every_row(("text", "content", "topic"), RELATIONS)
def test_who_is_who_is_kept(text: str, content: str, topic: str | None) -> None:
    check(text, "relation", content, topic)


@every_row(("text", "content", "topic"), PREFERENCES)
def test_a_preference_is_kept(text: str, content: str, topic: str | None) -> None:
    check(text, "preference", content, topic)


@every_row("text", INSTRUCTIONS)
def test_a_standing_instruction_is_kept_in_its_words(text: str) -> None:
    check(text, "instruction", f'The user instructs: "{text}"', None)


@every_row(("text", "content"), CORRECTIONS)
def test_a_correction_is_kept_in_its_words(text: str, content: str) -> None:
    check(text, "correction", content, None)


@every_row(("text", "content"), DECISIONS)
def test_a_decision_is_kept(text: str, content: str) -> None:
    check(text, "decision", content, None)


@every_row(("text", "content"), GOALS)
def test_a_goal_is_kept(text: str, content: str) -> None:
    check(text, "goal", content, None)


@every_row(("text", "content"), COMMITMENTS)
def test_a_commitment_is_kept_with_its_date(text: str, content: str) -> None:
    check(text, "commitment", content, None)


@pytest.mark.parametrize(("text", "content"), EVENTS)
def test_what_happened_is_kept_with_its_date(text: str, content: str) -> None:
    check(text, "event", content, None)


@pytest.mark.parametrize("text", OBSERVATIONS)
def test_what_holds_of_the_surroundings_is_kept(text: str) -> None:
    assert only(text).tags == ("observation",)


@every_row("text", NOTHING)
def test_what_nobody_stated_is_not_kept(text: str) -> None:
    assert facts_of(text) == ()


def test_the_tables_are_not_thinned_out() -> None:
    kept = len(DETAILS) + len(RELATIONS) + len(PREFERENCES) + len(INSTRUCTIONS) + len(GOALS)
    more = len(CORRECTIONS) + len(DECISIONS) + len(COMMITMENTS) + len(EVENTS) + len(OBSERVATIONS)
    assert kept + more + len(NOTHING) >= 150


def test_a_request_in_the_shape_of_a_question_may_be_a_standing_one() -> None:
    assert only("Could you always use type hints?").content == (
        'The user instructs: "Always use type hints"'
    )


def test_the_clause_of_a_question_that_is_taken_for_granted_is_kept() -> None:
    fact = only("Since I live in Oslo, which bakery should I try?")
    assert (fact.content, fact.topic) == ("The user lives in Oslo.", "user:home")


def test_what_only_asks_behind_a_statement_is_left_out() -> None:
    fact = only("I'm planning a trip to Chicago and was wondering if you know good hotels.")
    assert fact.content == "The user is planning a trip to Chicago."


def test_a_text_to_work_on_is_not_what_the_person_says() -> None:
    text = "Please proofread the following email:\n\nI live in Paris. I always use tabs."
    assert facts_of(text) == ()
    assert facts_of("I live in Oslo. Translate this:\nI live in Paris.")[0].topic == "user:home"


@every_row(
    ("text", "contents"),
    [
        ("Note: I live in Porto.", ['The user instructs: "Note: I live in Porto."']),
        ("Remember: I live in Porto.", ['The user instructs: "Remember: I live in Porto."']),
        ("Update: I moved to Lisbon.", ["Update: the user moved to Lisbon."]),
        (
            "I live in Oslo. Translate this: I live in Paris. My name is Bob.",
            ["The user lives in Oslo."],
        ),
        (
            "Fix the error in line 3: it never ends. I'm allergic to nuts.",
            ["The user is allergic to nuts."],
        ),
        (
            'Print "I live in Oslo. My name is Bob." and stop. I love sushi.',
            ["The user loves sushi."],
        ),
        ("I'm studying for a test in Rome.", ["The user is studying for a test in Rome."]),
        (
            "In my role as a nurse I work at Siemens.",
            ["In the user's role as a nurse they work at Siemens."],
        ),
    ],
)
def test_what_stands_around_words_of_others_is_the_persons_own(
    text: str, contents: list[str]
) -> None:
    assert [fact.content for fact in facts_of(text)] == contents


def test_an_odd_sentence_does_not_lose_the_next() -> None:
    """T3: one exchange is never lost because the next was odd."""
    odd = '\ud83d\ufffd ((( "unclosed “quote <b> ``\n'
    assert [fact.content for fact in facts_of(f"{odd}I live in Lisbon.")] == [
        "The user lives in Lisbon."
    ]
    assert "The user loves sushi." in [f.content for f in facts_of(f"I love sushi. {odd}")]


def test_the_speakers_name_stands_for_the_user() -> None:
    (fact,) = facts_of("I live in Lisbon with my sister.", name="Maria")
    assert fact.content == "Maria lives in Lisbon with their sister."
    assert fact.topic == "maria:home"
    assert fact.metadata["speaker"] == "Maria"


def test_people_among_themselves_instruct_nobody() -> None:
    talk = piece(said(1, "Always use tabs.", name="Ana"), said(2, "I live in Rome.", name="Ben"))
    tags = [fact.tags[0] for fact in EXTRACTOR.extract(talk).facts]
    assert "instruction" not in tags
    assert "detail" in tags


def test_an_answer_carries_the_question() -> None:
    talk = piece(
        said(1, "Which instrument do you play?", name="Ana"),
        said(2, "We both play the cello since our childhood in Prague.", name="Ben"),
    )
    (fact,) = EXTRACTOR.extract(talk).facts
    assert fact.content == (
        'Ben, asked "Which instrument do you play?": '
        '"We both play the cello since our childhood in Prague."'
    )


def test_a_proposal_is_kept_only_if_it_was_taken_up() -> None:
    proposal = answered(1, "I suggest we keep the parser in its own module.")
    (fact,) = EXTRACTOR.extract(piece(proposal, said(2, "Yes, do that."))).facts
    assert fact.content == (
        'Agreed with the user: "I suggest we keep the parser in its own module."'
    )
    assert (fact.seq, fact.seq_to) == (1, 2)
    assert fact.trust is Trust.AGENT
    assert fact.tags == ("observation", "agreed")
    assert EXTRACTOR.extract(piece(proposal, said(2, "Hm, let me think."))).facts == ()


def test_what_an_agent_says_of_itself_is_nobodys_detail() -> None:
    assert EXTRACTOR.extract(piece(answered(1, "I live in Paris. I love sushi."))).is_empty


def test_a_statement_that_ends_by_itself_has_an_end() -> None:
    fact = only("I live in Rome until June 15.")
    assert fact.valid_to is not None
    assert fact.valid_to.date().isoformat() == "2026-06-16"
    assert only("I live in Rome.").valid_to is None


def test_of_very_many_statements_in_one_message_the_surest_are_kept() -> None:
    text = " ".join(f"I have a dog in house {number}." for number in range(30))
    assert len(facts_of(f"{text} My name is Maria.")) == 6
    assert facts_of(f"{text} My name is Maria.")[-1].topic == "user:name"


def test_a_lower_threshold_keeps_more() -> None:
    text = "I went for a walk in the park."
    assert facts_of(text) == ()
    lenient = RuleExtractor(threshold=0.0)
    assert len(lenient.extract(piece(said(1, text))).facts) == 1


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (
            "could you always give prices in Swiss francs please",
            'The user instructs: "Always give prices in Swiss francs please"',
        ),
        ("Can you always answer briefly", 'The user instructs: "Always answer briefly"'),
        (
            "I can't do stairs anymore since the knee operation",
            "The user can't do stairs anymore since the knee operation.",
        ),
        ("I can no longer drive.", "The user can no longer drive."),
        (
            "It's Katherine with a K, not Catherine",
            'The user corrects: "It\'s Katherine with a K, not Catherine"',
        ),
    ],
)
def test_a_wish_in_a_question_a_loss_and_a_spelling_are_kept(text: str, content: str) -> None:
    assert [fact.content for fact in facts_of(text)] == [content]


@every_row(
    "text",
    [
        "I'm getting a 404 from the API",
        "I keep getting an error",
        "We're seeing a timeout in the logs",
        "Fwd: Always use tabs in this repo",
        "the docs say: always use tabs",
        "I can't find it anymore",
    ],
)
def test_a_report_of_trouble_and_what_others_wrote_teach_nothing(text: str) -> None:
    assert facts_of(text) == ()
