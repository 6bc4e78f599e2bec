"""The rule file holds together: what it names exists, and what it says can be read."""

from __future__ import annotations

import re
import string
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from recollect.extraction.rules import rulebook
from recollect.extraction.rules.cues import Setting
from recollect.extraction.rules.wording import Occasion
from recollect.knowledge import FactTag

FILE = Path(rulebook.__file__).with_name("en.toml")
DATA = tomllib.loads(FILE.read_text(encoding="utf-8"))
BOOK = rulebook.load()


@pytest.mark.parametrize("rule", BOOK.rules, ids=lambda rule: rule.name)
def test_every_rule_can_be_tried(rule: rulebook.Rule) -> None:
    assert rule.needs
    assert FactTag(rule.tag)
    assert 0 < rule.confidence < 1
    assert rule.setting in (None, *Occasion)
    groups = set(rule.pattern.groupindex) | {"pair"}
    for topic in (rule.topic, rule.project_topic):
        named = {name for _, name, _, _ in string.Formatter().parse(topic or "") if name}
        assert named <= groups


def test_rules_have_names_of_their_own() -> None:
    names = [rule.name for rule in BOOK.rules]
    assert len(names) == len(set(names))


def test_weights_are_given_to_cues_that_exist() -> None:
    for setting in Setting:
        assert set(DATA["weights"][setting]) <= {"bias", *BOOK.cues.bits}


@pytest.mark.parametrize("name", sorted(DATA["phrases"]))
def test_every_phrase_compiles_and_is_asked_for(name: str) -> None:
    assert BOOK.phrase(name).flags & re.IGNORECASE
    source = " ".join(path.read_text(encoding="utf-8") for path in FILE.parent.glob("*.py"))
    assert f'"{name}"' in source


def test_every_word_list_is_used_by_a_rule() -> None:
    used = set(re.findall(r"\{([a-z_]+)\}", " ".join(rule["pattern"] for rule in DATA["rules"])))
    assert used == set(DATA["words"])


def test_the_rule_file_is_read_on_first_use_only() -> None:
    code = (
        "import sys; import recollect.extraction.rules as rules; rules.RuleExtractor();"
        "assert 'tomllib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
