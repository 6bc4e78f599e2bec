"""T3, T4: what stands until further notice, what replaces it, and what is only of the moment."""

from __future__ import annotations

from recollect.extraction.rules import RuleExtractor
from recollect.types.facts import Fact, NewFact
from tests.tables import every_row
from tests.unit.extraction.material import START, piece, said, session

EXTRACTOR = RuleExtractor()


def facts_of(text: str, *known: Fact, project: str | None = None) -> tuple[NewFact, ...]:
    made = piece(said(1, text), known=known, session=session(project=project))
    return EXTRACTOR.extract(made).facts


CHANGES = [
    ("The user lives in Berlin.", "user:home", "We moved to Hamburg last weekend."),
    ("The user lives in Berlin.", "user:home", "We live in Oslo now."),
    ("The user works at Google.", "user:employer", "I started a new job at Acme."),
    ("The user works at Google.", "user:employer", "I started at Acme last week."),
    ("The user works at Google.", "user:employer", "I joined Acme."),
    ("The user works at Google.", "user:employer", "I just joined Bosch Rexroth as an engineer."),
    ("The user works at Google.", "user:employer", "I left Google."),
    ("The user works at Google.", "user:employer", "I quit Google to work for myself."),
    ("The user hates sushi.", "user:likes:sushi", "I like sushi again, actually."),
    ("The user loves coffee.", "user:likes:coffee", "I quit coffee two weeks ago."),
    ("The user loves coffee.", "user:likes:coffee", "I gave up coffee, I drink tea now."),
]
NO_CHANGES = [
    ("The user lives in Berlin.", "user:home", "We moved to Postgres last week."),
    ("The user lives in Berlin.", "user:home", "We moved our office to Frankfurt."),
    ("The user works at Google.", "user:employer", "I joined LinkedIn."),
    ("The user works at Google.", "user:employer", "I joined Riverside Book Club."),
    ("The user works at Google.", "user:employer", "I work with Python."),
    ("The user works at Google.", "user:employer", "I left Siemens."),
    ("The user works at Google.", "user:employer", "I left Paris yesterday."),
    ("The user works at Google.", "user:employer", "I start at Spotify on November 1st."),
    ("The user's boss is Ines.", "user:boss:name", "I told my boss I'm pregnant."),
]
OF_THE_MOMENT = [
    "No, that's all.",
    "No, that's fine.",
    "No, that's wrong.",
    "Sorry, my bad.",
    "Actually, I'm also curious about the price.",
    "Actually, I'm not sure about that.",
    "You can also use wood chips instead of logs.",
    "I hate to say it, but you're wrong.",
    "Don't send it yet.",
    "Don't do that.",
    "Please don't change anything else in this paragraph.",
    "Do not include the introduction this time.",
    "I prefer the second one.",
    "I prefer not to answer that.",
    "I'd rather have the short version.",
    "I like the template, it's simple.",
    "I love talking to you.",
    "I think I'll use a notes app from now on.",
    "You should never have deleted that.",
    "I need you to write a poem.",
    "I'm married to the idea of using Rust.",
    "I can't stand up, my leg hurts.",
    "I joined for Fun.",
    "Don't forget that.",
    "Stop talking.",
]
STANDING = [
    "I'd rather have short answers.",
    "I prefer the window seat.",
    "I prefer it when you answer in German.",
    "I prefer not to eat meat.",
    "I like the sea.",
    "Don't use emojis in your answers, I hate them.",
    "Please don't call me on Sundays.",
    "From now on I will write in German, please do the same.",
    "Never have meetings on Fridays.",
    "I want you to write shorter answers.",
    "Stop apologizing.",
    "No, use pnpm instead.",
    "Actually, I'm not a doctor.",
    "You're wrong about the date.",
]


@every_row(("known", "topic", "now"), CHANGES)
def test_what_changed_replaces_what_was(known: str, topic: str, now: str) -> None:
    old = Fact(known, id="f-1", topic=topic, valid_from=START, space="default")
    fact = facts_of(now, old)[0]
    assert (fact.topic, fact.supersedes) == (topic, ("f-1",))


@every_row(("known", "topic", "now"), NO_CHANGES)
def test_what_only_reads_like_a_change_replaces_nothing(known: str, topic: str, now: str) -> None:
    old = Fact(known, id="f-1", topic=topic, valid_from=START, space="default")
    assert [fact.supersedes for fact in facts_of(now, old) if fact.supersedes] == []


@every_row("text", OF_THE_MOMENT)
def test_what_is_of_the_moment_is_not_kept(text: str) -> None:
    assert facts_of(text) == ()


@every_row("text", STANDING)
def test_what_stands_is_kept(text: str) -> None:
    (fact,) = facts_of(text)
    assert fact.quote == text


def test_a_new_job_that_has_not_begun_is_known() -> None:
    (fact,) = facts_of("I start at Spotify on November 1st.")
    assert (fact.tags[0], fact.topic) == ("detail", None)


def test_a_manner_that_is_not_wanted_is_kept_at_work_too() -> None:
    opening = said(1, "Refactor the cart module.")
    made = piece(opening, said(2, "And stop apologizing"), session=session(project="/srv/shop"))
    (fact,) = EXTRACTOR.extract(made).facts
    assert fact.content == 'In /srv/shop, the user instructs: "And stop apologizing"'
