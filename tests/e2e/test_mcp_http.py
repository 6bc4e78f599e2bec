"""N7, P9: `recollect mcp --http` with real clients: who may come in, and to which space."""

from __future__ import annotations

import base64
import hmac
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent, TextResourceContents

import recollect
from recollect.errors import InvalidValue
from recollect.interfaces.http import guards
from recollect.interfaces.http.server import Server, listening
from recollect.interfaces.mcp.access import ClientAccess, access_of
from recollect.interfaces.mcp.http import build_app, servers_for
from recollect.interfaces.mcp.server import MemoryOnDemand
from recollect.interfaces.mcp.tools import Terms
from tests.e2e.command_line import ENTRY_POINT, line_with
from tests.unit.interfaces.mcp.talking import Answered, answered

TOKEN = "a-token-of-this-test"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "add_memory", "arguments": {"text": "Mallory was here."}},
}
METADATA = "/.well-known/oauth-protected-resource"
ACCEPTING = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server: where it is, and the store behind it."""

    url: str
    store: Path
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for alice at /mcp, and for bob at /spaces/bob/mcp; carol is not served."""
    directory = tmp_path_factory.mktemp("served")
    store = directory / "m.db"
    with recollect.open(store) as memory:
        for name in ("alice", "bob", "carol"):
            memory.space(name).facts.add(f"The herons belong to {name}.", tags=[name])
    options = ["--store", str(store), "--space", "alice", "--spaces", "bob", "--token", TOKEN]
    arguments = [sys.executable, "-c", ENTRY_POINT, "mcp", "--http", "127.0.0.1:0", *options]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, cwd=directory) as running:
        try:
            ready = line_with(running.stderr, b"Serving MCP").decode()
            url = ready.split()[-1].removesuffix("/mcp")
            yield Served(url=url, store=store, process=running)
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=60) == 0
        finally:
            running.kill()


class AuthorizationServer:
    """A server on this machine that publishes its metadata and one key, and signs tokens."""

    def __enter__(self) -> Self:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = {**jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)}
        self.public_pem = self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        keys = {"keys": [{**public, "kid": "one", "alg": "RS256", "use": "sig"}]}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:  # noqa: N805 - the names are the base class's
                told = {
                    "/.well-known/oauth-authorization-server": {
                        "issuer": self.url,
                        "jwks_uri": f"{self.url}/keys",
                    },
                    "/keys": keys,
                }.get(handler.path)
                handler.send_response(404 if told is None else 200)
                handler.end_headers()
                handler.wfile.write(json.dumps(told).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    def token(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": "one"})


def unsigned_part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def hmac_signed(head: dict[str, Any], claims: dict[str, Any], key: bytes) -> str:
    """As if a public key were the secret of both: the library refuses to make such a token."""
    signed = f"{unsigned_part(head)}.{unsigned_part(claims)}"
    signature = hmac.digest(key, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def with_client(url: str, calls: list[tuple[str, dict[str, Any]]]) -> list[Answered]:
    """Calls of one real client of the official SDK."""

    async def talk() -> list[Answered]:
        async with (
            httpx2.AsyncClient(headers=BEARER) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return [answered(await client.call_tool(name, given)) for name, given in calls]

    return anyio.run(talk)


def test_each_path_has_its_own_space_and_no_argument_another(served: Served) -> None:
    """P9: the space is that of the URL."""
    with recollect.open(served.store) as memory:
        ids = {name: memory.space(name).facts.list()[0].id for name in ("alice", "bob", "carol")}
    paths = {"alice": "/mcp", "bob": "/spaces/bob/mcp"}
    for own, path in paths.items():
        others = [name for name in ids if name != own]
        answers = with_client(
            served.url + path,
            [
                ("search_memories", {"query": "whose are the herons"}),
                ("list_memories", {}),
                *(("get_memory", {"id": ids[name]}) for name in others),
                ("search_memories", {"query": "herons", "space": others[0]}),
                ("get_memory", {"id": ids[own]}),
            ],
        )
        said = "".join(answer.text + json.dumps(answer.values) for answer in answers)
        assert f"belong to {own}" in said
        assert not any(f"belong to {name}" in said for name in others)
        assert [answer.is_error for answer in answers] == [False, False, True, True, True, False]


def test_the_tools_work_over_http_as_over_a_pipe(served: Served) -> None:
    kept = with_client(
        served.url + "/mcp",
        [
            ("add_memory", {"text": "Ana feeds the geese."}),
            ("context", {"query": "who feeds the geese?"}),
            ("memory", {"command": "create", "path": "/memories/x.md", "file_text": "geese"}),
            ("memory", {"command": "view", "path": "/memories/x.md"}),
        ],
    )
    assert not any(answer.is_error for answer in kept)
    assert "Ana feeds the geese." in kept[1].text
    assert "geese" in kept[3].text


def test_nobody_comes_in_without_the_token(served: Served) -> None:
    with httpx2.Client() as http:
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": f"Bearer {TOKEN}x"},
            {"Authorization": "Bearer \xe9"},
        ):
            for path in ("/mcp", "/spaces/bob/mcp", "/spaces/carol/mcp", "/", "/no"):
                given = {**ACCEPTING, **headers}.items()
                sent = [(name.encode(), value.encode("latin-1")) for name, value in given]
                refused = http.post(served.url + path, json=CALL, headers=sent)
                assert refused.status_code == 401
                told = f'resource_metadata="{served.url}{METADATA}{path}"'
                assert refused.headers["www-authenticate"].startswith("Bearer ")
                assert refused.headers["www-authenticate"].endswith(told)
    assert_nobody_was_here(served)


def test_the_metadata_of_a_resource_tell_nothing_about_what_is_served(served: Served) -> None:
    with httpx2.Client() as http:
        for path in ("/mcp", "/spaces/bob/mcp", "/spaces/carol/mcp"):
            found = http.get(f"{served.url}{METADATA}{path}")
            assert found.json() == {
                "resource": served.url + path,
                "resource_name": "Recollect",
                "bearer_methods_supported": ["header"],
            }
        beside = http.get(f"{served.url}{METADATA}x")
        assert beside.status_code == 401


def test_resources_and_prompts_are_those_of_the_path(served: Served) -> None:
    async def talk() -> tuple[str, str, list[str]]:
        async with (
            httpx2.AsyncClient(headers=BEARER) as http,
            Client(
                streamable_http_client(f"{served.url}/spaces/bob/mcp", http_client=http)
            ) as client,
        ):
            about = await client.read_resource("recollect://about/whose%20are%20the%20herons")
            asked = await client.get_prompt("recall", {"about": "whose are the herons"})
            listed = await client.list_resources()
        (content,), (message,) = about.contents, asked.messages
        uris = [each.uri for each in listed.resources]
        assert isinstance(content, TextResourceContents)
        assert isinstance(message.content, TextContent)
        return content.text, message.content.text, uris

    told, asked, uris = anyio.run(talk)
    assert "belong to bob" in told
    assert "belong to bob" in asked
    assert "alice" not in told + asked
    assert uris[0] == "recollect://recap"


def test_tokens_of_the_authorization_server_open_the_resource_they_are_for(
    tmp_path: Path,
) -> None:
    public = "https://memory.example.com"
    with AuthorizationServer() as issuer:
        made = access_of(None, public, issuer.url)
        with recollect.open(tmp_path / "m.db") as memory:
            memory.space("alice").facts.add("The herons belong to alice.")
        opened = MemoryOnDemand(lambda: recollect.open(tmp_path / "m.db"), work=False)
        terms = Terms(space="alice", agent="test")
        app = build_app(servers_for(opened, terms, {"bob": terms}), made, "0.0.0.0")

        async def statuses(tokens: list[str]) -> list[int]:
            async with (
                app.router.lifespan_context(app),
                httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http,
            ):
                sent = [
                    await http.post(
                        f"{public}/mcp",
                        json={**CALL, "method": "tools/list", "params": {}},
                        headers={**ACCEPTING, "Authorization": f"Bearer {token}"},
                    )
                    for token in tokens
                ]
                metadata = await http.get(f"{public}{METADATA}/mcp")
                assert metadata.json()["authorization_servers"] == [issuer.url]
            return [each.status_code for each in sent]

        good = {"iss": issuer.url, "aud": f"{public}/mcp", "exp": 4_000_000_000, "sub": "ana"}
        stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        shared = issuer.public_pem  # as if it were a secret
        tokens = [
            issuer.token(good),
            issuer.token({**good, "aud": [f"{public}/mcp", "https://other.example"]}),
            issuer.token({**good, "aud": f"{public}/spaces/bob/mcp"}),
            issuer.token({**good, "iss": "https://evil.example"}),
            issuer.token({**good, "exp": 1}),
            issuer.token({name: good[name] for name in ("iss", "aud")}),
            jwt.encode(good, stranger, algorithm="RS256", headers={"kid": "one"}),
            f"{unsigned_part({'alg': 'none', 'kid': 'one'})}.{unsigned_part(good)}.",
            hmac_signed({"alg": "HS256", "kid": "one"}, good, shared),
            "not.a.token",
            "nonsense",
        ]
        assert anyio.run(statuses, tokens) == [200, 200] + [401] * 9
        opened.close()


def test_an_authorization_server_without_metadata_is_refused_at_the_start() -> None:
    with AuthorizationServer() as issuer, pytest.raises(InvalidValue, match="no metadata"):
        access_of(None, "https://memory.example.com", issuer.url + "/elsewhere")
    with pytest.raises(InvalidValue, match="https"):
        access_of(None, "https://memory.example.com", "http://login.example.com")
    with pytest.raises(InvalidValue, match="give a token"):
        access_of(None, "https://memory.example.com", None)
    with pytest.raises(InvalidValue, match="without a path"):
        access_of(TOKEN, "https://example.com/memory", None)


def test_what_is_not_served_is_not_there(served: Served) -> None:
    with httpx2.Client(headers={**BEARER, **ACCEPTING}) as http:
        for path in (
            "/spaces/carol/mcp",
            "/spaces/bob%2F..%2Fcarol/mcp",
            "/spaces/BOB/mcp",
            "/spaces//mcp",
            "/mcp/",
            "/",
        ):
            assert http.post(served.url + path, json=CALL).status_code == 404
    assert_nobody_was_here(served)


def test_a_page_in_a_browser_gets_nowhere_and_neither_does_a_huge_body(served: Served) -> None:
    with httpx2.Client(headers={**BEARER, **ACCEPTING}) as http:
        url = served.url + "/mcp"
        for origin in (
            *("https://evil.example", "null", "http://127.0.0.1:1@evil.com", "http://"),
            *("http://localhost:80.evil.com", "http://127.0.0.1:1/x", "https://127.0.0.1:1"),
        ):
            foreign = http.post(url, json=CALL, headers={"Origin": origin})
            assert foreign.status_code == 403, origin
        for host in (
            "evil.example",
            "127.0.0.1:1@evil.com",
            "localhost:80.evil.com",
            "127.0.0.1:x",
        ):
            rebound = http.post(url, json=CALL, headers={"Host": host})
            assert rebound.status_code == 421, host
        huge = {**CALL, "params": {"name": "add_memory", "arguments": {"text": "x" * 5_000_000}}}
        assert http.post(url, json=huge).status_code == 413
        broken = http.post(url, content=b"\xff{", headers={"Content-Type": "application/json"})
        assert broken.status_code == 400
    assert_nobody_was_here(served)


def test_what_is_no_request_of_ours_is_refused_and_not_an_error(served: Served) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    with httpx2.Client(headers={**BEARER, "Accept": "application/json"}) as http:
        refused = http.get(served.url + "/mcp", headers=upgrade)
        assert 400 <= refused.status_code < 500


def test_a_token_may_have_any_letters() -> None:
    app = build_app({}, ClientAccess(token="gr\u00fcn-\u7eff"))

    async def answered_with(token: bytes) -> int:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http:
            headers = [(b"Authorization", b"Bearer " + token)]
            return (await http.get("http://127.0.0.1/", headers=headers)).status_code

    assert anyio.run(answered_with, "gr\u00fcn-\u7eff".encode()) == 404
    assert anyio.run(answered_with, "gr\u00fcn-\u7eff".encode("utf-16")) == 401


def test_whoever_never_ends_a_head_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """P8: else strangers without a token could hold all connections there may be."""
    monkeypatch.setattr(guards, "HEAD_SECONDS", 0.2)
    with listening("127.0.0.1", 0) as listener:
        running = Server(build_app({}, ClientAccess(token=TOKEN)))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with socket.create_connection(listener.getsockname(), timeout=60) as slow:
                slow.sendall(b"POST /mcp HTTP/1.1\r\nX-Slow: ")
                assert slow.recv(100) == b""
        finally:
            running.should_exit = True
            thread.join(60)
        assert not thread.is_alive()


def assert_nobody_was_here(served: Served) -> None:
    with recollect.open(served.store) as memory:
        for name in ("alice", "bob", "carol"):
            facts = memory.space(name).facts.list()
            assert not any("Mallory" in fact.content or "xxx" in fact.content for fact in facts)
