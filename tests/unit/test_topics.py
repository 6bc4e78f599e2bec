"""Claims by topic: each has one home, told from its words, whatever the order they come in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from recollect.documents.paths import read_path
from recollect.topics.claims import TopicClaim, claim_of, merged
from recollect.topics.directory import Entity, TopicKind, directory_of
from recollect.topics.grouping import home_of, relation_of
from recollect.topics.subjects import KnownPages, page_slug
from recollect.types.facts import Fact, FactTag, Source, Trust
from tests.tables import every_row

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def claim(text: str, *tags: str, **more: Any) -> TopicClaim:
    return TopicClaim(**{"text": text, "trust": Trust.USER, "at": NOON, "tags": tags, **more})


def home(*claims: TopicClaim, known: KnownPages | None = None) -> str:
    """Where the last of some claims is at home."""
    found = home_of(claims[-1], directory_of(claims, known or KnownPages()))
    return f"{found.kind.value}/{found.slug}"


def homes(claims: list[TopicClaim]) -> list[tuple[str, Entity]]:
    """Where each of some claims is at home, once, in the order they were said."""
    stated = merged(claims)
    names = directory_of(stated)
    return [(each.text, home_of(each, names)) for each in stated]


@every_row(
    ("text", "tag", "expected"),
    [
        ("The user's sister Anna lives in Lisbon.", "relation", "people/anna"),
        ("Anna is the user's sister.", "relation", "people/anna"),
        ("The user's wife is called Maria.", "relation", "people/maria"),
        ("The user's mother is called 美咲.", "relation", "people/美咲"),
        ("The user's dog Rex is five years old.", "relation", "people/rex"),
        ('The user instructs: "Remember that Peter is my manager."', "instruction", "people/peter"),
        ("Anna Maria Kovacs is the user's boss.", "relation", "people/anna-maria-kovacs"),
        ("The user prefers tea over coffee.", "preference", "preferences/preferences"),
        ('The user instructs: "Answer in English."', "instruction", "preferences/preferences"),
        ('The user: "We decided to use SQLite."', "decision", "decisions/decisions"),
        ("The user's goal is to run a marathon.", "goal", "open-threads/open-threads"),
        ("The user has an exam on 2027-03-12.", "commitment", "open-threads/open-threads"),
        ("Which of the two is faster?", "observation", "open-threads/open-threads"),
        ("Which of the two is faster?", "", "open-threads/open-threads"),
        ("The user lives in Porto.", "detail", "profile/profile"),
        ("The user visited their sister Eva in May.", "event", "profile/profile"),
        ("The user's mother lives in Ulm.", "relation", "profile/profile"),
        ("The user's boss is Portuguese.", "relation", "profile/profile"),
        ("`make` works (build).", "procedure", "other/other"),
        ("Water boils at 100 degrees.", "", "other/other"),
        ("The user likes chess.", "", "preferences/preferences"),
        ("The user has two cats.", "", "profile/profile"),
        ("Alice lives in Lisbon.", "detail", "profile/profile"),  # nothing says who that is
    ],
)
def test_a_claim_is_at_home_where_its_words_say(text: str, tag: str, expected: str) -> None:
    assert home(claim(text, *([tag] if tag else []))) == expected


@every_row(
    ("tag", "expected"),
    [
        (FactTag.PROCEDURE, "projects/shop-api"),
        (FactTag.LESSON, "projects/shop-api"),
        (FactTag.OBSERVATION, "projects/shop-api"),
        (FactTag.INSTRUCTION, "projects/shop-api"),  # a rule of one project is no rule elsewhere
        (FactTag.CORRECTION, "projects/shop-api"),
        (FactTag.DECISION, "decisions/decisions"),
        (FactTag.GOAL, "open-threads/open-threads"),
        (FactTag.PREFERENCE, "preferences/preferences"),
        (FactTag.DETAIL, "profile/profile"),
    ],
)
def test_what_is_said_in_a_project_stays_there_unless_it_is_about_a_person(
    tag: FactTag, expected: str
) -> None:
    assert home(claim("The user does it so.", tag, project="/code/ana/shop-api")) == expected


def test_a_project_can_be_named_instead() -> None:
    said = claim("The shop-api project has no tests.", "observation")
    assert home(said) == "projects/shop-api"
    assert home(claim("The whole project has no tests.", "observation")) == "other/other"


def test_two_projects_of_one_name_are_two() -> None:
    first = claim("Here it is so.", "lesson", project="/code/ana/api")
    other = claim("Here it is not so.", "lesson", project="/srv/team/api")
    found = [each for _, each in homes([first, other])]
    assert sorted(each.slug for each in found) == ["api", "team-api"]
    assert {each.about for each in found} == {"/code/ana/api", "/srv/team/api"}


def test_who_is_known_is_known_by_the_first_name() -> None:
    sister = claim("Anna Kovacs is the user's sister.", "relation")
    moved = claim("Anna moved to Porto.", "event")
    assert home(sister, moved) == "people/anna-kovacs"
    known = KnownPages(people={"anna-kovacs": "Anna Kovacs"})
    assert home(moved, known=known) == "people/anna-kovacs"
    assert (
        home(moved, known=KnownPages(people={"a": "Anna Kovacs", "b": "Anna Berg"})) != "people/a"
    )


def test_a_named_speaker_has_a_page_and_the_user_has_another() -> None:
    named = claim("Ana lives in Porto.", "detail", topic="ana:home", metadata={"speaker": "Ana"})
    brother = claim("Ana's brother Tim got married.", "relation", metadata={"speaker": "Ana"})
    likes = claim("Ana likes tea.", "preference", metadata={"speaker": "Ana"})
    assert home(named) == "people/ana"
    assert home(named, brother) == "people/tim"
    assert home(named, likes) == "preferences/preferences"


def test_a_tool_describes_nobody_and_decides_nothing() -> None:
    for text, tag in [
        ("Anna is the user's sister.", "relation"),
        ("The user prefers Pepsi.", "preference"),
        ("We decided to pay at once.", "decision"),
    ]:
        assert home(claim(text, tag, trust=Trust.TOOL)) == "other/other"


def test_a_topic_says_who_somebody_is() -> None:
    told = [claim("My friend Bob loves hiking.", "relation")]
    names = directory_of(told)
    bob = home_of(told[0], names)
    assert (bob.name, relation_of(bob, told, names)) == ("Bob", "The user's friend")


def test_the_same_statement_is_one_claim_with_the_sources_of_all() -> None:
    first = claim("The user lives in Porto.", sources=(Source(session_id="a", seq=1, seq_to=1),))
    again = claim(
        "the user lives in PORTO",
        sources=(Source(session_id="b", seq=2, seq_to=3),),
        at=NOON + timedelta(days=1),
        is_inferred=True,
    )
    (one,) = merged([again, first])
    assert [source.session_id for source in one.sources] == ["a", "b"]
    assert one.at == again.at
    assert not one.is_inferred


def test_a_fact_becomes_a_claim() -> None:
    source = Source(session_id="s", seq=4, seq_to=5, quote="I like tea")
    fact = Fact("Likes tea.", id="f", sources=(source,), valid_from=NOON, tags=("inferred",))
    made = claim_of(fact, "p")
    assert (made.fact_id, made.sources, made.project) == ("f", (source,), "p")
    assert (made.is_inferred, claim_of(replace(fact, tags=()), None).is_inferred) == (True, False)


@every_row("name", ["🦊", "Ω" * 200, "\U00020000" * 60, "con", "a/b", "..", "", "½"])
def test_any_name_has_a_slug(name: str) -> None:
    made = page_slug(name)
    assert read_path(f"~/memory/people/{made}").slug == made
    assert page_slug(name) == made


WORDS = st.sampled_from(
    (
        *("The user's", "the user", "sister", "Anna", "Bob", "is", "my", "friend", "called", ","),
        *("lives in", "Porto", "shop-api", "project", "prefers", "decided", "?", "[[people/x]]"),
        *("`code`", "and", "Will", "Kovacs", "美咲", "'s", "never", "."),
    )
)
CLAIMS = st.lists(
    st.builds(
        claim,
        st.lists(WORDS, min_size=1, max_size=8).map(" ".join) | st.text(max_size=30),
        st.sampled_from([*FactTag, "other"]),
        trust=st.sampled_from(Trust),
        project=st.sampled_from([None, "/a/shop-api", "/b/shop-api", "\\\\x\\y", "  "]),
        metadata=st.sampled_from([{}, {"speaker": "Ana"}, {"speaker": "Bob"}, {"speaker": 7}]),
        topic=st.sampled_from([None, "user:home", "bob:home", ":"]),
    ),
    max_size=12,
)


@given(CLAIMS, st.randoms(use_true_random=False))
@example([claim("A.", "detail", fact_id="2"), claim("a", "detail", fact_id="1")], None)
def test_every_claim_has_one_home_whatever_the_order(claims: list[TopicClaim], order: Any) -> None:
    shuffled = list(reversed(claims))
    if order is not None:
        order.shuffle(shuffled)
    assert homes(shuffled) == homes(claims)


@given(CLAIMS)
def test_a_topic_of_a_person_or_a_project_has_a_page_that_can_be(claims: list[TopicClaim]) -> None:
    for _, home in homes(claims):
        assert home.name.strip()
        if home.kind in (TopicKind.PEOPLE, TopicKind.PROJECTS):
            read_path(f"~/memory/{home.kind}/{home.slug}")


@every_row(
    ("text", "names"),
    [
        ("Anna's friend came.", True),
        ("With Anna Kovacs.", True),
        ("They saw anna.", False),
        ("Hannah came, and Annabel.", False),
        ("They shall meet Will.", False),  # is also a word
    ],
)
def test_a_text_names_who_is_meant(text: str, names: bool) -> None:
    told = [
        claim("Anna Kovacs is the user's sister.", "relation"),
        claim("Will is the user's boss.", "relation"),
    ]
    known = directory_of(told)
    people = [home_of(each, known) for each in told]
    assert [known.names(each, text) for each in people] == [names, False]


def test_who_has_a_longer_name_is_somebody_else() -> None:
    known = directory_of(
        [],
        KnownPages(people={"anna-kovacs": "Anna Kovacs", "anna-berg": "Anna Berg", "anna": "Anna"}),
    )
    anna = known.person("Anna")
    assert anna is not None
    assert [known.names(anna, text) for text in ("Anna Berg came.", "Anna came.")] == [False, True]
