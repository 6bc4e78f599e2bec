"""What the tests of embedders share: real clients of a scripted server, closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from recollect.config import Settings
from recollect.embedding.openai import open_embedder
from recollect.embedding.protocol import Embedder
from recollect_conformance.scripted import KEY, ScriptedServer

Opener = Callable[..., Embedder]


def named(wanted: dict[str, Any]) -> dict[str, Any]:
    """What is wanted, by the names of its settings."""
    short = {"batch_texts": "batch"}
    return {"embedder": "openai:m"} | {
        name if name == "embedder" else f"embedder_{short.get(name, name)}": value
        for name, value in wanted.items()
    }


@pytest.fixture
def open_for() -> Iterator[Opener]:
    """Opens an embedder whose provider is a server; keywords are of what is wanted."""
    with ExitStack() as stack:

        def opened(
            server: ScriptedServer,
            *,
            redact: Callable[[str], str] = str,
            settings: Settings | None = None,
            **wanted: Any,
        ) -> Embedder:
            embedder = open_embedder(
                replace(settings or Settings(), **named({"base_url": server.url} | wanted)),
                redact,
                {"OPENAI_API_KEY": KEY},
                pause=lambda _seconds: None,
            )
            assert embedder is not None
            stack.callback(embedder.close)
            return embedder

        yield opened
