"""What a request says of its form where the server does not enforce one."""

from __future__ import annotations

import json

import pytest

from recollect.models.wire import Dialect, Structured, system_text
from tests.unit.models.asking import SCHEMA, asking


@pytest.mark.parametrize("structured", [Structured.JSON, Structured.LINES])
def test_a_schema_that_nobody_enforces_stands_in_the_prompt(structured: Structured) -> None:
    text = system_text(asking(schema=SCHEMA), Dialect(structured=structured))
    assert text.startswith("Be brief.\n\n")
    assert json.loads(text.splitlines()[-1]) == SCHEMA
    assert "JSON" in text  # without the word, some servers refuse to answer as JSON


def test_a_schema_that_is_enforced_is_not_said_twice() -> None:
    assert system_text(asking(schema=SCHEMA), Dialect()) == "Be brief."


def test_without_a_schema_the_system_prompt_stays_as_it_is() -> None:
    assert system_text(asking(), Dialect(structured=Structured.LINES)) == "Be brief."


def test_a_setting_fixes_the_form_and_auto_does_not() -> None:
    assert Dialect.of("auto") == Dialect(structured=Structured.SCHEMA)
    for structured in Structured:
        fixed = Dialect(structured=structured, is_structured_fixed=True)
        assert Dialect.of(structured.value) == fixed
