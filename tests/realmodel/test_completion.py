"""Calls to a real small model, in both protocols: the shape of what comes back, never its sense.

`make test-realmodel` runs this; without RECOLLECT_REALMODEL it is skipped. At a temperature of 0
the model always says the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any
from urllib.parse import urlsplit

import pytest

from recollect.config import Settings
from recollect.errors import CallCancelled, InvalidOutput, PromptTooLong
from recollect.models.protocol import Completion, Model, Request
from recollect.models.served import model_servers, open_model
from tests.realmodel.conftest import WINDOW_TOKENS

# Bounded in every direction: within an open one so small a model loses itself.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "mood": {"type": "string", "enum": ["good", "bad"]},
        "words": {
            "type": "array",
            "items": {"type": "string", "maxLength": 12},
            "minItems": 1,
            "maxItems": 3,
        },
    },
    "required": ["mood", "words"],
    "additionalProperties": False,
}


def asking(prompt: str, **changes: Any) -> Request:
    return Request(**{"system": "You are brief.", "prompt": prompt} | changes)


def assert_counted(completion: Completion, *, output_tokens_max: int) -> None:
    usage = completion.usage
    assert not usage.is_estimate
    assert usage.input_tokens > 5
    assert 0 < usage.output_tokens <= output_tokens_max


def test_a_real_model_answers_in_words(real_model: Model) -> None:
    completion = real_model.complete(asking("Reply with one word: hello.", output_tokens_max=200))
    assert completion.text.strip()
    assert completion.model
    assert_counted(completion, output_tokens_max=200)


@pytest.mark.parametrize("provider", ["openai"], indirect=True)
def test_a_real_model_keeps_to_a_schema(real_model: Model) -> None:
    completion = real_model.complete(
        asking("Say how you feel.", schema=SCHEMA, output_tokens_max=400)
    )
    answer = json.loads(completion.text)
    assert answer.keys() == {"mood", "words"}
    assert answer["mood"] in ("good", "bad")
    assert 1 <= len(answer["words"]) <= 3
    assert all(isinstance(word, str) and len(word) <= 12 for word in answer["words"])
    assert_counted(completion, output_tokens_max=400)


def test_an_answer_that_a_real_server_cuts_off_is_an_error(real_model: Model) -> None:
    with pytest.raises(InvalidOutput, match="cut off"):
        real_model.complete(asking("Count from 1 to 100.", output_tokens_max=5))


def test_a_prompt_that_a_real_server_finds_too_long_is_our_fault(real_model: Model) -> None:
    with pytest.raises(PromptTooLong):
        real_model.complete(asking("word " * 5000))


def test_a_real_model_is_cut_off_in_the_middle_and_answers_the_next_call(
    real_model: Model,
) -> None:
    states: Iterator[bool] = chain([False, False], repeat(True))
    with pytest.raises(CallCancelled):
        real_model.complete(
            asking(
                "Count from 1 to 1000, slowly, in words.",
                output_tokens_max=1500,
                is_cancelled=lambda: next(states),
            )
        )
    completion = real_model.complete(asking("Reply with one word: hello.", output_tokens_max=200))
    assert completion.text.strip()


def test_the_server_is_found_and_says_its_window_without_configuration(
    server_url: str,
) -> None:
    environ = {"LLAMA_ARG_PORT": str(urlsplit(server_url).port)}
    model = open_model(Settings(model="llamacpp"), environ)
    assert model is not None
    assert model.window_tokens == WINDOW_TOKENS
    assert model.complete(asking("Reply with one word: hello.", output_tokens_max=200)).text
    model.close()
    listed = {each.provider: each for each in model_servers(Settings(), environ)}["llamacpp"]
    (found,) = listed.models
    assert (found.window_tokens, listed.setting(found)) == (
        WINDOW_TOKENS,
        "RECOLLECT_MODEL=llamacpp",
    )
