"""X5: which extractor the settings ask for: a model, the rules, the first there is, or none."""

from __future__ import annotations

import pytest

import recollect
from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.extraction.model import ModelExtractor
from recollect.extraction.piece import Extractor
from recollect.extraction.rules import RuleExtractor
from recollect.extraction.run import open_extractor
from recollect.models.protocol import Completion, Model, Request
from recollect.redaction import load_redactor


class Silent:
    """A model that is only looked at."""

    name = "openai:m"
    window_tokens = 8000

    def complete(self, request: Request) -> Completion:
        raise AssertionError("nobody is to ask")

    def close(self) -> None: ...


@pytest.fixture
def model() -> Model:
    return Silent()


def opened(extractor: str, model: Model | None) -> Extractor | None:
    settings = Settings(data_dir="", extractor=extractor)
    return open_extractor(settings, load_redactor(settings, b"salt"), model)


@pytest.mark.parametrize("extractor", ["auto", "model"])
def test_where_there_is_a_model_it_is_used(model: Model, extractor: str) -> None:
    found = opened(extractor, model)
    assert isinstance(found, ModelExtractor)
    assert (found.model, found.name) == (model, "openai:m/prompt-3")
    secret = "sk-" + "proj-" + "Zq8vT3mK" * 6
    assert secret not in found.redact(f"my key is {secret}"), "what it sends is redacted"


def test_without_a_model_auto_is_the_rules() -> None:
    assert isinstance(opened("auto", None), RuleExtractor)


def test_rules_are_rules_whatever_model_there_is(model: Model) -> None:
    assert isinstance(opened("rules", model), RuleExtractor)
    assert isinstance(opened("rules", None), RuleExtractor)


def test_none_is_none_whatever_model_there_is(model: Model) -> None:
    assert opened("none", model) is None


def test_a_model_that_is_asked_for_and_missing_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(InvalidSetting, match=r"RECOLLECT_MODEL.* rules"):
        opened("model", None)


def test_a_missing_model_is_told_to_who_wants_to_work_and_to_nobody_else() -> None:
    with recollect.open(":memory:", settings={"extractor": "model"}) as memory:
        session = memory.space().session("k", agent="assistant")
        session.append("user", "hello")
        session.sleep()
        for work in (memory.work, memory.worker, memory.plan):
            with pytest.raises(InvalidSetting, match="no model is set"):
                work()
        assert session.state.invalidated_at == 1, "the mark waits for who mends it"
