"""Prompt files: their versions, their variables, and the user's own in their place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import recollect
from recollect.errors import InvalidSetting
from recollect.models.prompts import PROMPT_BYTES_MAX, Prompt, load_prompt


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    directory = tmp_path / "shipped"
    directory.mkdir()
    (directory / "ask.md").write_text("version: 3\n\nAnswer {{ question }} in {{language}}.\n")
    return directory


@pytest.fixture
def own(tmp_path: Path) -> Path:
    directory = tmp_path / "own"
    directory.mkdir()
    return directory


def test_a_prompt_has_the_version_and_the_text_of_its_file(shipped: Path) -> None:
    prompt = load_prompt(shipped, "ask")
    assert prompt.version == "3"
    assert prompt.text == "Answer {{ question }} in {{language}}."
    assert prompt.variables == ("question", "language")


def test_a_version_may_stand_between_dashes(shipped: Path) -> None:
    (shipped / "ask.md").write_text("---\ntitle: x\nversion: 4.1\n---\nHello\n\nversion: 9\n")
    prompt = load_prompt(shipped, "ask")
    assert (prompt.version, prompt.text) == ("4.1", "Hello\n\nversion: 9")


def test_a_version_further_down_is_text(shipped: Path) -> None:
    (shipped / "ask.md").write_text("Hello\n\nversion: 9\n")
    prompt = load_prompt(shipped, "ask")
    assert (prompt.version, prompt.text) == ("0", "Hello\n\nversion: 9")


def test_filling_a_prompt_does_not_look_at_what_it_inserts() -> None:
    prompt = Prompt(name="ask", text="{{a}} and {{b}}", version="1")
    assert prompt.fill(a="{{b}}", b="\\1 {{a}}") == "{{b}} and \\1 {{a}}"


def test_a_prompt_is_filled_with_exactly_its_variables() -> None:
    prompt = Prompt(name="ask", text="{{a}} {{typo}}", version="1")
    with pytest.raises(InvalidSetting, match=r"ask: \{\{typo\}\} is not known; \{\{b\}\} is missi"):
        prompt.fill(a="", b="")


def test_a_file_of_the_users_own_replaces_a_prompt_and_says_so_in_the_version(
    shipped: Path, own: Path
) -> None:
    (own / "ask.md").write_text("Reply to {{question}} in {{language}}.")
    replaced = load_prompt(shipped, "ask", str(own))
    assert replaced.text == "Reply to {{question}} in {{language}}."
    assert replaced.version.startswith("3+")

    (own / "ask.md").write_text("Reply politely to {{question}} in {{language}}.")
    assert load_prompt(shipped, "ask", str(own)).version != replaced.version


def test_a_file_of_the_users_own_may_have_a_version_of_its_own(shipped: Path, own: Path) -> None:
    (own / "ask.md").write_bytes(b"\xef\xbb\xbfversion: mine\r\n\r\n{{question}} {{language}}\r\n")
    replaced = load_prompt(shipped, "ask", str(own))
    assert replaced.version.startswith("mine+")
    assert replaced.text == "{{question}} {{language}}"


def test_without_a_file_of_that_name_the_shipped_prompt_stays(shipped: Path, own: Path) -> None:
    assert load_prompt(shipped, "ask", str(own)) == load_prompt(shipped, "ask")


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("extract-request", "{{transcript}}", "{{words}} is missing"),
        ("extract-lines", "Be brief, {{name}}.", "extract-lines: {{name}} is not known"),
        ("consolidation", "", "consolidation.md is empty"),
        ("extracts", "Be brief.", "did you mean extract.md"),
    ],
)
def test_what_cannot_replace_a_prompt_is_refused_when_a_memory_is_opened(
    own: Path, file: str, text: str, complaint: str
) -> None:
    (own / "README.md").write_text("What these are for.")
    (own / "chat.md").write_text("{{agent}} {{now}} {{instructions}} {{agent}}")
    settings = {"prompts_dir": str(own)}
    recollect.open(":memory:", settings=settings).close()
    (own / f"{file}.md").write_text(text)
    with pytest.raises(InvalidSetting, match=re.escape(complaint)):
        recollect.open(":memory:", settings=settings)


@pytest.mark.parametrize(
    "content", [b"", b"version: 2\n\n  \n", b"\xff\xfe\x00", b"x" * (PROMPT_BYTES_MAX + 1)]
)
def test_a_file_that_is_no_prompt_is_an_invalid_setting(
    shipped: Path, own: Path, content: bytes
) -> None:
    (own / "ask.md").write_bytes(content)
    with pytest.raises(InvalidSetting, match="prompts_dir"):
        load_prompt(shipped, "ask", str(own))


def test_a_directory_in_the_place_of_a_prompt_is_an_invalid_setting(
    shipped: Path, own: Path
) -> None:
    (own / "ask.md").mkdir()
    with pytest.raises(InvalidSetting, match="cannot be read"):
        load_prompt(shipped, "ask", str(own))


def test_a_prompts_dir_that_is_none_is_an_invalid_setting(shipped: Path, own: Path) -> None:
    with pytest.raises(InvalidSetting, match="not a directory"):
        load_prompt(shipped, "ask", str(own / "missing"))
