"""Which model the settings and the environment name, and where it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.models.served import open_model
from recollect_conformance.scripted import KEY, ScriptedServer
from tests.tables import every_row
from tests.unit.models.asking import asking


def test_without_a_model_in_the_settings_there_is_none() -> None:
    assert open_model(Settings(), {"OPENAI_API_KEY": KEY}) is None


def test_the_http_client_is_not_loaded_before_a_model_is_opened() -> None:
    code = "import sys, recollect.embedding.openai; print('httpx2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@every_row(
    ("model", "environ", "name"),
    [
        ("openai:gpt-9", ["OPENAI_API_KEY"], "openai:gpt-9"),
        (" openai: gpt-9 ", ["OPENAI_API_KEY"], "openai:gpt-9"),
        ("gpt-9", ["OPENAI_API_KEY"], "openai:gpt-9"),
        ("anthropic:claude-9", ["ANTHROPIC_API_KEY"], "anthropic:claude-9"),
        ("claude-9", ["ANTHROPIC_API_KEY"], "anthropic:claude-9"),
        ("claude-9", ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], "anthropic:claude-9"),
        ("claude-9", ["OPENAI_API_KEY"], "openai:claude-9"),  # through somebody's gateway
        ("llama3:8b", ["OPENAI_API_KEY"], "openai:llama3:8b"),
        ("openai:llama3:8b", ["OPENAI_API_KEY"], "openai:llama3:8b"),
        ("gpt-9", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "openai:gpt-9"),
    ],
)
def test_a_model_belongs_to_the_provider_it_names_or_is_known_by(
    model: str, environ: list[str], name: str
) -> None:
    opened = open_model(Settings(model=model), dict.fromkeys(environ, KEY))
    assert opened is not None
    assert opened.name == name
    opened.close()


def test_a_model_says_how_much_it_takes() -> None:
    with ScriptedServer() as server:
        assert server.model(model_window_tokens=9000).window_tokens == 9000


@every_row(
    ("settings", "environ", "complaint"),
    [
        ({"model": "gpt-9"}, {}, "set OPENAI_API_KEY"),
        ({"model": "gpt-9"}, {"OPENAI_API_KEY": "  "}, "set OPENAI_API_KEY"),
        ({"model": "claude-9"}, {}, "set ANTHROPIC_API_KEY"),
        ({"model": "openai:"}, {"OPENAI_API_KEY": KEY}, "names no model"),
        ({"model": "x"}, {"OPENAI_API_KEY": "two words"}, "OPENAI_API_KEY holds characters"),
        ({"model": "x"}, {"OPENAI_API_KEY": "line\nbreak"}, "OPENAI_API_KEY holds characters"),
        ({"model": "x"}, {"OPENAI_API_KEY": "schlüssel"}, "OPENAI_API_KEY holds characters"),
        ({"model": "x", "model_base_url": "ftp://h/v1"}, {}, "http or https"),
        ({"model": "x", "model_base_url": "models.example/v1"}, {}, "http or https"),
        ({"model": "x", "model_base_url": "http://"}, {}, "http or https"),
        ({"model": "x", "model_base_url": "http://h:99999"}, {}, "http or https"),
        ({"model": "x", "model_base_url": "http://[::1"}, {}, "http or https"),
        ({"model": "x", "model_base_url": "http://me:pass@h/"}, {}, "user name or password"),
        ({"model": "x", "model_base_url": "http://a b/"}, {}, "http or https"),
        ({"model": "x", "model_base_url": "http://" + "a" * 70 + "ü/"}, {}, "cannot be used"),
    ],
)
def test_what_cannot_be_opened_is_an_invalid_setting(
    settings: dict[str, str], environ: dict[str, str], complaint: str
) -> None:
    with pytest.raises(InvalidSetting, match=complaint):
        open_model(Settings(**settings), environ)  # type: ignore[arg-type]


def test_a_proxy_that_is_none_is_an_invalid_setting_that_keeps_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = "hunter" + "2-for-the-proxy"
    monkeypatch.setenv("ALL_PROXY", f"gopher://me:{secret}@proxy.example")
    with pytest.raises(InvalidSetting, match="proxy") as caught:
        open_model(Settings(model="x", model_base_url="http://models.example"), {})
    assert secret not in str(caught.value)


def test_a_key_that_is_not_used_is_not_looked_at() -> None:
    environ = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": "two words"}
    opened = open_model(Settings(model="openai:gpt-9"), environ)
    assert opened is not None
    opened.close()


@every_row(
    ("model", "base", "path"),
    [
        ("openai:m", "", "/v1/chat/completions"),
        ("openai:m", "/", "/v1/chat/completions"),
        ("openai:m", "/v1", "/v1/chat/completions"),
        ("openai:m", "/v1/", "/v1/chat/completions"),
        ("openai:m", "/api/v3", "/api/v3/chat/completions"),
        ("openai:m", "/v1/chat/completions", "/v1/chat/completions"),
        ("openai:m", "/d?api-version=1", "/d/chat/completions?api-version=1"),
        ("anthropic:m", "", "/v1/messages"),
        ("anthropic:m", "/v1", "/v1/messages"),
        ("anthropic:m", "/claude", "/claude/v1/messages"),
        ("anthropic:m", "/claude/v1/messages", "/claude/v1/messages"),
    ],
)
def test_a_base_url_may_be_given_with_or_without_the_version(
    model: str, base: str, path: str
) -> None:
    with ScriptedServer(["Hello"]) as server:
        server.model(model=model, model_base_url=server.url + base).complete(asking())
        assert server.requests[0].path == path


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_environment_says_where_the_provider_is_unless_the_settings_do(provider: str) -> None:
    with ScriptedServer(lambda _received: "Hello") as server:
        variable = f"{provider.upper()}_BASE_URL"
        model = open_model(Settings(model=f"{provider}:m"), {variable: server.url})
        assert model is not None
        model.complete(asking())
        model.close()

        settings = Settings(model=f"{provider}:m", model_base_url=server.url)
        model = open_model(settings, {variable: "http://models.invalid"})
        assert model is not None
        model.complete(asking())
        model.close()
        assert len(server.requests) == 2
        assert "authorization" not in server.requests[0].headers
        assert "x-api-key" not in server.requests[0].headers
