"""Which embedder the settings and the environment name."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import pytest

from recollect.config import Settings
from recollect.embedding.openai import open_embedder
from recollect.embedding.protocol import Embedder
from recollect.errors import InvalidSetting, MissingExtra
from recollect_conformance.scripted import KEY, ScriptedServer
from recollect_conformance.scripted_embedder import HashEmbedder, embeddings_by
from tests.tables import every_row
from tests.unit.embedding.conftest import named


def opened(embedder: str, environ: dict[str, str] | None = None, **more: Any) -> Embedder | None:
    settings = Settings(**named({"embedder": embedder} | more))
    return open_embedder(settings, str, environ or {})


@pytest.mark.parametrize("name", ["none", "", " none "])
def test_without_an_embedder_there_is_none(name: str) -> None:
    assert opened(name, {"OPENAI_API_KEY": KEY}) is None
    assert open_embedder(Settings(), str, {}) is None


def test_the_scripted_embedder_is_one() -> None:
    assert isinstance(HashEmbedder(), Embedder)


@every_row(
    ("name", "environ", "more", "complaint"),
    [
        ("openai:m", {}, {}, "set OPENAI_API_KEY"),
        ("openai:m", {"OPENAI_API_KEY": " "}, {}, "set OPENAI_API_KEY"),
        ("openai:m", {"OPENAI_API_KEY": "two words"}, {}, "holds characters"),
        ("openai:", {"OPENAI_API_KEY": KEY}, {}, "names no model"),
        ("openai", {"OPENAI_API_KEY": KEY}, {}, "names no model"),
        ("openai:m", {}, {"base_url": "ftp://h"}, "http or https"),
        ("openai:m", {"OPENAI_BASE_URL": "http://me:pass@h/"}, {}, "user name or password"),
        ("anthropic:m", {"OPENAI_API_KEY": KEY}, {}, "openai:<name>"),
        ("local:other", {}, {}, "openai:<name>"),
        ("text-embedding-3-small", {"OPENAI_API_KEY": KEY}, {}, "openai:<name>"),
    ],
)
def test_what_cannot_be_opened_is_an_invalid_setting(
    name: str, environ: dict[str, str], more: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidSetting, match=complaint):
        opened(name, environ, **more)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "/v1/embeddings"),
        ("/v1/", "/v1/embeddings"),
        ("/api/v3", "/api/v3/embeddings"),
        ("/v1/embeddings", "/v1/embeddings"),
        ("/d?api-version=1", "/d/embeddings?api-version=1"),
    ],
)
def test_a_base_url_may_be_given_with_or_without_the_version(path: str, expected: str) -> None:
    with ScriptedServer(embeddings_by(HashEmbedder())) as server:
        embedder = opened("openai:llama3:8b", base_url=server.url + path)
        assert embedder is not None
        embedder.embed(["a"])
        embedder.close()
        assert server.requests[0].path == expected
        assert server.requests[0].body["model"] == "llama3:8b"
        assert "authorization" not in server.requests[0].headers


def test_the_environment_says_where_the_provider_is_unless_the_settings_do() -> None:
    with ScriptedServer(embeddings_by(HashEmbedder())) as server:
        for environ, base_url in (
            (server.url, None),
            ("http://models.invalid", server.url),
        ):
            embedder = opened("openai:m", {"OPENAI_BASE_URL": environ}, base_url=base_url)
            assert embedder is not None
            embedder.embed(["a"])
            embedder.close()
        assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["local", "wordllama"])
def test_without_the_extra_the_error_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def without_numpy(module: str, *rest: Any) -> Any:
        if module == "recollect.embedding.local":
            raise ImportError("No module named 'numpy'")
        return real_import(module, *rest)

    monkeypatch.setattr(builtins, "__import__", without_numpy)
    with pytest.raises(MissingExtra, match=r"pip install 'recollect\[embed\]'"):
        opened(name)


def test_neither_numpy_nor_the_http_client_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, recollect, recollect.embedding.openai; "
        "print({'numpy', 'httpx2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
