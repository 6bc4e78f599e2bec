"""Rules of a user: what they can say, and how a mistake in them is reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.redaction import load_redactor
from recollect.redaction.loading import FILE_BYTES_MAX, PATTERN_CHARS_MAX, RULES_MAX
from tests.unit.redaction.conftest import SALT
from tests.unit.redaction.test_redactor import bare


def settings(tmp_path: Path, rules: str | None = None, **more: Any) -> Settings:
    if rules is None:
        return Settings(data_dir=str(tmp_path), **more)
    file = tmp_path / "rules.toml"
    file.write_text(rules, encoding="utf-8")
    return Settings(data_dir=str(tmp_path), redaction_rules=str(file), **more)


def test_without_a_file_the_bundled_rules_hold(tmp_path: Path) -> None:
    redactor = load_redactor(settings(tmp_path), SALT)
    assert bare(redactor.redact("password=hunter2x")) == "password=<password>"


def test_a_rule_of_the_user_is_added(tmp_path: Path) -> None:
    rules = """
    [[rules]]
    kind = "acme-ticket"
    keywords = ["ACME"]
    pattern = 'ACME-([0-9]{6})'
    [[rules]]
    kind = "employee"
    pattern = '(?i)employee (?P<number>[0-9]+)'
    group = "number"
    min_length = 4
    allow = ['^9999']
    """
    redactor = load_redactor(settings(tmp_path, rules), SALT)
    text = "ACME-111111, Employee 12345, employee 123, employee 99991, password=hunter2x"
    assert bare(redactor.redact(text)) == (
        "ACME-<acme-ticket>, Employee <employee>, employee 123, employee 99991, password=<password>"
    )


def test_the_users_rule_names_what_both_find(tmp_path: Path) -> None:
    rules = "[[rules]]\nkind = 'ours'\npattern = 'hunter[0-9]x'\n"
    redactor = load_redactor(settings(tmp_path, rules), SALT)
    assert bare(redactor.redact("password=hunter2x")) == "password=<ours>"


def test_a_rule_that_matches_placeholders_leaves_them_alone(tmp_path: Path) -> None:
    rules = "[[rules]]\nkind = 'ours'\npattern = '[a-z]{8}'\n"
    redactor = load_redactor(settings(tmp_path, rules), SALT)
    once = redactor.redact("a password, a secret: abcdefgh")
    assert bare(once) == "a <ours>, a secret: <ours>"
    assert redactor.redact(once) == once


def test_an_entropy_floor_keeps_plain_values(tmp_path: Path) -> None:
    rules = "[[rules]]\nkind = 'ours'\npattern = 'id:([a-z0-9]{8})'\nentropy = 2.5\n"
    redactor = load_redactor(settings(tmp_path, rules), SALT)
    assert bare(redactor.redact("id:aaaaaaab id:q7mt6t5b")) == "id:aaaaaaab id:<ours>"


def test_allowed_values_are_separated_by_commas(tmp_path: Path) -> None:
    redactor = load_redactor(settings(tmp_path, redaction_allow="hunter2x, hunter3x,"), SALT)
    text = "password=hunter2x password=hunter3x password=hunter4x"
    assert bare(redactor.redact(text)) == (
        "password=hunter2x password=hunter3x password=<password>"
    )


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("kind = 'x'\npattern = '('", "no regular expression"),
        ("kind = 'x'\npattern = 'a'\ncolour = 'red'", "there is no 'colour'"),
        ("kind = 'x'\npattern = 'ab'\ngroup = 1", "no group 1"),
        ("kind = 'x'\npattern = 'ab'\ngroup = 'who'", "no group 'who'"),
        ("kind = 'x'\npattern = '(a+)+b'", "repeats a group"),
        ("kind = 'x'\npattern = '(a|aa)+b'", "repeats a group"),
        ("kind = 'x'\npattern = '.{1,9999}b'", "more than 4,096 times"),
        ("kind = 'x'\npattern = '(a)\\1'", "refers back"),
        ("kind = 'x'\npattern = 'a*'", "empty text"),
        ("kind = 'x'\npattern = 'a'\nallow = ['(b+)+']", "allow repeats a group"),
        ("kind = 'x'\npattern = '" + "a" * (PATTERN_CHARS_MAX + 1) + "'", "characters"),
        ("kind = 'Not Kebab'\npattern = 'a'", "kind is needed"),
        ("pattern = 'a'", "kind is needed"),
        ("kind = 'x'", "pattern is needed"),
        ("kind = 'x'\npattern = 5", "pattern is str, not 5"),
        ("kind = 'x'\npattern = 'a'\nkeywords = [1]", "list of texts"),
        ("kind = 'x'\npattern = 'a'\nmin_length = true", "min_length is int"),
        ("kind = 'x'\npattern = 'a'\nentropy = 9", "between 0 and 8"),
    ],
)
def test_a_bad_rule_is_named_with_its_file_and_reason(
    tmp_path: Path, rule: str, reason: str
) -> None:
    good = "[[rules]]\nkind = 'good'\npattern = 'g'\n"
    with pytest.raises(InvalidSetting) as raised:
        load_redactor(settings(tmp_path, f"{good}[[rules]]\n{rule}\n"), SALT)
    message = str(raised.value)
    assert reason in message
    assert f"{tmp_path / 'rules.toml'}: rule 2" in message


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("not toml at all", "is not TOML"),
        ("[other]\n", "there is no 'other'"),
        ("rules = 5\n", "rules are"),
        ("[[rules]]\nkind='x'\npattern='a'\n" * (RULES_MAX + 1), "at most"),
        ("#" * (FILE_BYTES_MAX + 1), "larger than"),
    ],
)
def test_a_bad_file_is_named_with_the_reason(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(InvalidSetting, match=reason) as raised:
        load_redactor(settings(tmp_path, content), SALT)
    assert "rules.toml" in str(raised.value)


def test_a_missing_file_is_an_invalid_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot read"):
        load_redactor(Settings(data_dir="", redaction_rules=str(tmp_path / "none.toml")), SALT)


def test_importing_reads_and_compiles_nothing() -> None:
    program = (
        "import recollect.redaction, recollect.redaction.loading as loading\n"
        "assert loading.bundled_rules.cache_info().currsize == 0\n"
        "rules = loading.bundled_rules().rules\n"
        "assert not any('pattern' in vars(rule) for rule in rules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
