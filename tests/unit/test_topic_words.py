"""What asks for a fact of a known topic, and what a fact is indexed by because of it (T5)."""

from __future__ import annotations

from recollect.extraction.rules import rulebook
from recollect.stemming import asked_stems, asking_words, indexed_fact
from tests.tables import every_row

# Of a project: its facts have the words they are asked with.
_SAY_IT_THEMSELVES = frozenset({"use", "rule"})


def found_by(topic: str | None, question: str, *, rule: str | None = None) -> bool:
    words = indexed_fact("Nobody is asked like this.", topic, {"rule": rule} if rule else {})
    return not set(asked_stems(question)).isdisjoint(words.split())


@every_row(
    ("topic", "question"),
    [
        ("user:home", "Where does she live?"),
        ("user:home", "What is his address?"),
        ("alice:home-city", "Which town are they living in?"),
        ("residence", "Where is home?"),
        ("user:employer", "Who employs her?"),
        ("user:job", "What is his profession?"),
        ("user:wife:name", "What is the name of their spouse?"),
        ("user:birthday", "When was she born?"),
        ("user:age", "How old is she?"),
        ("user:diet", "What food can he eat?"),
        ("user:marital-status", "Is she married?"),
        ("user:pet-name", "Are there pets?"),
    ],
)
def test_a_topic_is_asked_for_by_words_that_its_fact_need_not_have(
    topic: str, question: str
) -> None:
    assert found_by(topic, question)
    assert not found_by(None, question)


def test_what_is_liked_is_not_taken_for_what_a_topic_is_about() -> None:
    assert not found_by("user:likes:city", "Where does she live?")
    assert not found_by("user:favourite-city", "Where does she live?")
    assert not found_by("user:test-command", "Where does she live?")


def test_a_rule_without_a_topic_says_what_its_facts_are_about() -> None:
    assert found_by(None, "Does she have pets?", rule="pets")
    assert asking_words(None, {"not": "a name"}) == ()


def test_a_word_that_the_fact_has_is_not_indexed_twice() -> None:
    words = indexed_fact("Ana lives in a house.", "ana:home", {}).split()
    assert words.count("live") == words.count("hous") == 1
    assert words[:5] == ["ana", "live", "in", "a", "hous"]


def test_every_topic_of_the_rules_is_known() -> None:
    for rule in rulebook.load().rules:
        kin = sorted(rule.needs) if rule.topic == "{kin}:name" else [""]
        for name in kin:
            topic = (rule.topic or "home").replace("{kin}", name)
            assert len(asking_words(f"user:{topic}")) > 1, (rule.name, topic)
        assert rule.project_topic is None or rule.project_topic.split(":")[0] in _SAY_IT_THEMSELVES
