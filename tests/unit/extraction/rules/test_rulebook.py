"""The rule file holds together: what it names exists, and what it says can be read."""

from __future__ import annotations

import re
import string
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from recollect import languages
from recollect.extraction.rules import RuleExtractor, rulebook
from recollect.extraction.rules.weighing import Setting
from recollect.extraction.rules.wording import Occasion
from recollect.types.facts import FactTag
from tests.tables import every_row
from tests.unit.extraction.material import piece, said

FILE = Path(rulebook.__file__).with_name("en.toml")
DATA = tomllib.loads(FILE.read_text(encoding="utf-8"))
BOOK = rulebook.load()
LANGUAGES = tomllib.loads(Path(languages.__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RULES = [(language, rule) for language in LANGUAGES for rule in rulebook.load(language).rules]


@every_row(("language", "rule"), RULES)
def test_every_rule_can_be_tried(language: str, rule: rulebook.Rule) -> None:
    assert rule.needs or language != "en"
    assert FactTag(rule.tag)
    assert 0 < rule.confidence < 1
    assert rule.setting in (None, *Occasion)
    assert set(rule.unless) <= set(DATA["phrases"])
    groups = set(rule.pattern.groupindex) | {"pair"}
    for topic in (rule.topic, rule.project_topic):
        named = {name for _, name, _, _ in string.Formatter().parse(topic or "") if name}
        assert named <= groups


@every_row("language", LANGUAGES)
def test_rules_have_names_of_their_own(language: str) -> None:
    names = [rule.name for rule in rulebook.load(language).rules]
    assert len(names) == len(set(names))


def test_every_language_has_a_name() -> None:
    assert set(LANGUAGES) == set(languages.LANGUAGES)


@every_row("language", LANGUAGES)
def test_a_language_says_nothing_that_is_not_asked_for(language: str) -> None:
    said = tomllib.loads(FILE.with_name(f"{language}.toml").read_text(encoding="utf-8"))
    assert said["language"] == language
    assert set(said["phrases"]) <= set(DATA["phrases"]) | {"slot_address", "leans"}
    for name in said["phrases"]:
        rulebook.load(language).phrase(name)


@every_row(
    ("text", "language"),
    [
        ("I've been to Nîmes", "en"),
        ("Ich bin müde", "de"),
        ("no me gusta", "es"),
        ("j'habite ici", "fr"),
        ("eu moro aqui", "pt"),
        ("mi chiamo Ada", "it"),
        ("ik woon hier", "nl"),
        ("ok", "en"),
        ("", "en"),
    ],
)
def test_a_language_is_told_by_its_small_words(text: str, language: str) -> None:
    assert languages.language_of(text) == language
    assert languages.language_of("ok", language) == language


def test_weights_are_given_to_cues_that_exist() -> None:
    for setting in Setting:
        assert set(DATA["weights"][setting]) <= {"bias", *BOOK.cues.bits}


@every_row("name", sorted(DATA["phrases"]))
def test_every_phrase_compiles_and_is_asked_for(name: str) -> None:
    if name != "past":  # told by cues
        assert BOOK.phrase(name).flags & re.IGNORECASE
    source = " ".join(path.read_text(encoding="utf-8") for path in FILE.parent.glob("*.py"))
    assert f'"{name}"' in source or any(name in rule.unless for rule in BOOK.rules)


def test_every_word_list_is_used_by_a_rule_a_phrase_or_another() -> None:
    patterns = [rule["pattern"] for rule in DATA["rules"]]
    patterns += [*DATA["phrases"].values(), *DATA["words"].values()]
    assert set(re.findall(r"\{([a-z_]+)\}", " ".join(patterns))) == set(DATA["words"])


def test_the_rule_file_is_read_on_first_use_only() -> None:
    code = (
        "import sys; import recollect.extraction.rules as rules; rules.RuleExtractor();"
        "assert 'tomllib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@every_row(
    "name",
    ["Élodie", "Øyvind", "Łukasz", "Çağla", "Renée", "Юлия", "Νίκος", "Đặng", "李明", "محمد"],
)
def test_names_may_begin_with_any_letter(name: str) -> None:
    assert facts_of(f"My name is {name}.") == [(f"The user's name is {name}.", "user:name")]
    assert facts_of(f"I live in {name}.") == [(f"The user lives in {name}.", "user:home")]
    (sister,) = facts_of(f"My sister {name} lives in Faro.")
    assert sister == (f"The user's sister {name} lives in Faro.", None)
    (wife,) = facts_of(f"My wife is called {name}.")
    assert wife == (f"The user's wife is called {name}.", "user:wife:name")
    assert facts_of(f"I joined {name}.") == [(f"The user joined {name}.", "user:employer")]


@pytest.mark.parametrize(
    ("text", "content", "topic"),
    [
        ("my name is ana", "The user's name is ana.", "user:name"),
        ("hi, my name's ana costa btw", "The user's name's ana costa btw.", "user:name"),
        ("i live in lisbon", "The user lives in lisbon.", "user:home"),
        ("i'm living in new york now", "The user is living in new york now.", "user:home"),
        ("please call me ana", "Please call the user ana.", "user:called"),
    ],
)
def test_whoever_writes_no_capitals_has_a_name_and_a_home_too(
    text: str, content: str, topic: str
) -> None:
    assert facts_of(text) == [(content, topic)]


@every_row(
    "text",
    [
        "my name is on the list",
        "my name is spelled wrong",
        "My name is wrong.",
        "i live in fear",
        "i live in constant fear",
        "i live in student housing",
        "i live in the past",
        "i live in vim",
        "I live in squalour.",
        "call me later",
        "please call me tomorrow",
        "call me maybe",
        "she said i live in lisbon",
        "imagine i live in lisbon",
    ],
)
def test_other_words_in_small_letters_are_no_names(text: str) -> None:
    assert facts_of(text) == []


def facts_of(text: str) -> list[tuple[str, str | None]]:
    facts = RuleExtractor().extract(piece(said(1, text))).facts
    return [(fact.content, fact.topic) for fact in facts]
