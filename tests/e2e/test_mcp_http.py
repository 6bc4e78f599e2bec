"""N7, P9: `recollect mcp --http` with real clients: who may come in, and to which space."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

import recollect
from recollect.interfaces.http import guards
from recollect.interfaces.http.server import Server, listening
from recollect.interfaces.mcp.http import build_app
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
                assert refused.headers["www-authenticate"] == "Bearer"
    assert_nobody_was_here(served)


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
    app = build_app({}, token="gr\u00fcn-\u7eff")

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
        running = Server(build_app({}, token=TOKEN))
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
