"""N9: `recollect serve` over real sockets: clients that are many, slow or huge, and its end."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

import recollect
from recollect.interfaces.cli.serving import keys
from recollect.interfaces.http import guards
from recollect.interfaces.http.app import Api, ServerLimits
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.http.server import Server, listening
from recollect.types.access import Scope
from tests.e2e.command_line import line_with

SERVE = "from recollect.interfaces.cli.serving import serve; serve()"
WAIT_SECONDS = 30.0


class Served:
    """A server in a thread of this process."""

    def __init__(self, memory: recollect.Memory, url: str, server: Server) -> None:
        self.memory = memory
        self.url = url
        self.server = server
        _, self.secret = make_key(memory, "tests", space=None, scope=Scope.ADMIN)
        self.bearer = {"Authorization": f"Bearer {self.secret}"}

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, headers=self.bearer, timeout=WAIT_SECONDS)

    def connected(self) -> socket.socket:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)


@contextmanager
def served(store: Path, limits: ServerLimits) -> Iterator[Served]:
    with recollect.open(store) as memory, listening("127.0.0.1", 0) as listener:
        api = Api(memory, limits)
        server = Server(api.beside(), api.stop)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Served(memory, f"http://127.0.0.1:{listener.getsockname()[1]}", server)
        finally:
            server.stop()
            thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Served]:
    limits = ServerLimits(
        rate_per_second=0, body_seconds=0.2, body_bytes_max=100_000, poll_seconds=0.01
    )
    with served(tmp_path / "m.db", limits) as made:
        yield made


def test_a_server_that_has_stopped_leaves_no_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with served(tmp_path / "m.db", ServerLimits()) as here, here.client() as http:
        assert http.get("/healthz").status_code == 200
        begun = set(threading.enumerate()) - before
        own = [thread for thread in begun if thread.name.startswith("recollect-http")]
    assert own
    for thread in own:
        thread.join(WAIT_SECONDS)
    assert not [thread for thread in own if thread.is_alive()]


def test_what_is_appended_over_http_is_recalled_over_http(here: Served) -> None:
    with here.client() as http:
        said = {"key": "telegram:42:main", "messages": [{"role": "user", "content": "I like tea."}]}
        stored = http.post("/v1/spaces/alice/append", json=said)
        assert stored.status_code == 201
        [hit] = http.post("/v1/spaces/alice/recall", json={"query": "tea"}).json()["hits"]
        assert hit["text"] == "I like tea."
        assert hit["sources"][0]["session_id"] == stored.json()["session_id"]
        assert http.get("/v1/spaces").json()["spaces"] == [{"name": "alice"}]
    assert here.memory.space("alice").session("telegram:42:main").count() == 1


def test_clients_that_come_at_once_are_all_served(here: Served) -> None:
    def talk(number: int) -> set[int]:
        with here.client() as http:
            path = f"/v1/spaces/s{number % 3}/append"
            said = {"key": f"k{number}", "messages": [{"role": "user", "content": "hello"}]}
            return {http.post(path, json=said).status_code for _ in range(5)}

    with ThreadPoolExecutor(max_workers=24) as threads:
        assert set().union(*threads.map(talk, range(24))) == {201}
    counted = [here.memory.space(f"s{n % 3}").session(f"k{n}").count() for n in range(24)]
    assert counted == [5] * 24


def test_a_body_that_is_too_large_or_too_slow_is_refused(here: Served) -> None:
    with here.client() as http:
        large = http.post("/v1/spaces/a/facts", content=b"x" * 200_000)
        assert large.status_code == 413
        chunked = http.post("/v1/spaces/a/facts", content=iter([b"x" * 70_000] * 3))
        assert chunked.status_code == 413
    with httpx2.Client(base_url=here.url) as stranger:
        assert stranger.post("/v1/spaces/a/facts", content=b"x" * 200_000).status_code == 401
    with here.connected() as slow:
        head = (
            f"POST /v1/spaces/a/facts HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n{bearer(here)}"
        )
        slow.sendall(f"{head}\r\n{{".encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def bearer(here: Served) -> str:
    return f"Authorization: {here.bearer['Authorization']}\r\n"


def test_a_client_that_never_ends_its_head_is_left(
    here: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "HEAD_SECONDS", 0.2)
    with here.connected() as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        assert slow.recv(100) == b""
    with here.connected() as kept:
        for _ in range(2):
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            read = b""
            while not read.endswith(b'{"status":"ok"}'):
                read += kept.recv(4096)
        kept.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        assert kept.recv(100) == b""


def test_a_head_that_trickles_in_or_never_ends_is_left(
    here: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "HEAD_SECONDS", 0.3)
    with here.connected() as slow:
        slow.settimeout(0.02)
        slow.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        assert until_left(slow, b"x")[1] < 100  # bytes after which it was left
    monkeypatch.setattr(guards, "HEAD_SECONDS", WAIT_SECONDS)
    with here.connected() as endless:
        endless.settimeout(0.02)
        endless.sendall(b"GET /healthz HTTP/1.1\r\n")
        said, sent = until_left(endless, b"X-More: " + b"x" * 8000 + b"\r\n")
        assert b" 400 " in said or not said  # it may be gone before it is read
        assert sent < 100
    with here.client() as http:
        assert http.get("/healthz").status_code == 200


def until_left(connection: socket.socket, more: bytes) -> tuple[bytes, int]:
    """Send more and more; what was said, and how often it was sent before the end."""
    said, sent = b"", 0
    with suppress(ConnectionError):
        while True:
            sent += 1
            connection.sendall(more)
            try:
                chunk = connection.recv(4096)
            except TimeoutError:
                continue
            said += chunk
            if not chunk:
                break
    return said, sent


def test_a_client_that_does_not_read_is_left_and_one_that_reads_slowly_is_not(
    here: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "UNREAD_SECONDS", 0.2)
    session = here.memory.space("a").session("long")
    session.append_many([{"role": "user", "content": "x" * 100_000}] * 200)
    head = f"GET /v1/spaces/a/sessions/{session.id}/records HTTP/1.1\r\nHost: x\r\n{bearer(here)}"
    with here.client() as http, narrow(here) as deaf:
        deaf.sendall(f"{head}\r\n".encode())
        deadline = time.monotonic() + WAIT_SECONDS
        http.get("/healthz")
        while len(here.server.server_state.connections) > 1:  # all but that of the other client
            assert http.get("/healthz").status_code == 200
            assert time.monotonic() < deadline, "whoever does not read is kept"
        read = 0
        with suppress(ConnectionError):
            while chunk := deaf.recv(1_000_000):
                read += len(chunk)
        assert 0 < read < 20_000_000
    monkeypatch.setattr(guards, "UNREAD_SECONDS", 5.0)
    with narrow(here) as slow:
        slow.sendall(f"{head}Connection: close\r\n\r\n".encode())
        read = 0
        while chunk := slow.recv(200_000):
            read += len(chunk)
        assert read > 20_000_000


def narrow(here: Served) -> socket.socket:
    """A connection that takes little at a time, asked for nothing yet."""
    made = socket.socket()
    made.settimeout(WAIT_SECONDS)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, _, port = here.url.removeprefix("http://").partition(":")
    made.connect((host, int(port)))
    return made


GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def parsed(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "m.db", ServerLimits(rate_per_second=0, body_bytes_max=100_000)) as made:
        yield made


def statuses(here: Served, *sent: bytes) -> list[int]:
    """What is answered to what is sent piece by piece, until the server closes."""
    said = b""
    with here.connected() as connection:
        for piece in sent:
            connection.sendall(piece)
            if piece is not sent[-1]:
                said += connection.recv(65_536)  # something is said to each of them
        while chunk := connection.recv(65_536):
            said += chunk
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3})", said)]


def posting(here: Served, *more: str) -> bytes:
    lines = ("Host: x", "Content-Type: application/json", bearer(here).strip(), *more)
    return ("POST /v1/spaces/a/facts HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode()


LAST = GET + b"Connection: close\r\n\r\n"


def test_a_refusal_reaches_whoever_is_still_sending(parsed: Served) -> None:
    large = posting(parsed, "Content-Length: 300000")
    assert statuses(parsed, large, b"x" * 300_000 + LAST) == [413, 200]
    stranger = large.replace(bearer(parsed).encode(), b"")
    assert statuses(parsed, stranger, b"x" * 300_000 + LAST) == [401, 200]


def test_what_asks_for_an_upgrade_is_answered_with_its_body_and_what_follows(
    parsed: Served,
) -> None:
    said = b'{"content": "GET /healthz HTTP/1.1"}'
    asks = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    head = posting(parsed, *asks, f"Content-Length: {len(said)}")
    assert statuses(parsed, head + said + LAST) == [201, 200]
    assert [fact.content for fact in parsed.memory.space("a").facts.list()] == [
        "GET /healthz HTTP/1.1"
    ]


def test_what_is_wrong_with_the_next_request_is_not_said_of_this_one(parsed: Served) -> None:
    said = b'{"content": "Tea is hot."}'
    told = statuses(parsed, posting(parsed, f"Content-Length: {len(said)}") + said + b"\0\r\n\r\n")
    assert told[0] == 201
    assert told[1:] in ([], [400])


def test_a_request_of_two_lengths_is_refused(parsed: Served) -> None:
    head = posting(parsed, "Content-Length: 2", "Transfer-Encoding: chunked")
    assert statuses(parsed, head + b"2\r\n{}\r\n0\r\n\r\n" + LAST) == [400]


def test_what_is_no_request_is_answered_with_a_problem(parsed: Served) -> None:
    """V-2: an over-long head as well."""
    for sent in (b"NONSENSE\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000):
        with parsed.connected() as socket:
            socket.sendall(sent)
            read = b""
            while chunk := socket.recv(65_536):
                read += chunk
        head, _, body = read.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 "), read
        assert b"content-type: application/problem+json" in head
        assert json.loads(body)["type"] == "urn:recollect:problem:malformed"


def test_who_leaves_in_the_middle_of_a_body_leaves_nothing_behind(here: Served) -> None:
    head = f"POST /v1/spaces/a/facts HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n{bearer(here)}"
    for _ in range(3):
        with here.connected() as gone:
            gone.sendall(f'{head}Content-Type: application/json\r\n\r\n{{"content": '.encode())
    with here.client() as http:
        assert http.get("/v1/spaces/a/facts").json()["facts"] == []
        assert http.head("/v1/spaces/a/facts").status_code == 405
        assert http.head("/healthz").status_code == 200


def test_events_tell_of_a_change_and_end_with_the_server(here: Served) -> None:
    with here.client() as http, http.stream("GET", "/v1/spaces/alice/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        first = data(lines)
        assert first["marked_count"] == 0
        session = here.memory.space("alice").session("a")
        session.append("user", "something")
        session.sleep()
        told = data(lines)
        while told["marked_count"] == 0:  # it may have been seen before it was marked
            told = data(lines)
        assert told["job_counts"]["due"] == 1
        here.memory.space("bob").session("a").append("user", "of no concern")
        here.server.stop()
        assert [line for line in lines if "data" in line] == []


def test_events_end_with_their_key(here: Served) -> None:
    key, secret = make_key(here.memory, "short", space="alice", scope=Scope.READ)
    bearer = {"Authorization": f"Bearer {secret}"}
    with here.client() as http:
        with http.stream("GET", "/v1/spaces/alice/events", headers=bearer) as stream:
            lines = stream.iter_lines()
            assert data(lines)["marked_count"] == 0
            here.memory.store.api_keys.revoke(key.id, here.memory.clock.now())
            assert [line for line in lines if "data" in line] == []
        assert http.get("/v1/spaces/alice/events", headers=bearer).status_code == 401


def data(lines: Iterator[str]) -> Any:
    line = next(line for line in lines if line.startswith("data: "))
    return json.loads(line.removeprefix("data: "))


def test_a_key_has_so_many_requests_and_no_other_key_suffers(tmp_path: Path) -> None:
    with served(tmp_path / "m.db", ServerLimits(rate_per_second=0.001, burst=3)) as here:
        with here.client() as http:
            answers = [http.get("/v1/spaces") for _ in range(4)]
            assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
            assert int(answers[-1].headers["retry-after"]) > 900
        _, other = make_key(here.memory, "other", space="a", scope=Scope.READ)
        with httpx2.Client(base_url=here.url, headers={"Authorization": f"Bearer {other}"}) as http:
            assert http.get("/v1/spaces").status_code == 200


def test_a_store_that_is_gone_is_said_without_its_words(here: Served) -> None:
    here.memory.store.close()
    with here.client() as http:
        assert http.get("/healthz").json() == {"status": "ok"}
        assert http.get("/readyz").status_code == 503
        failed = http.get("/v1/spaces")
        assert failed.status_code == 503
        assert failed.headers["retry-after"] == "1"
        assert "m.db" not in failed.text


def keys_command(*arguments: str) -> str:
    result = CliRunner().invoke(keys, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """N9: keys are made, used, listed and revoked; the process ends with 0."""
    store = ["--store", str(tmp_path / "m.db")]
    secret = keys_command("create", "phone", "--space", "alice", *store).strip()
    [listed] = json.loads(keys_command("list", "--json", *store))
    assert listed["space"] == "alice"
    assert secret not in json.dumps(listed)
    arguments = [sys.executable, "-c", SERVE, "--port", "0", *store]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, cwd=tmp_path) as running:
        try:
            ready = line_with(running.stderr, b"Serving").decode()
            found = re.search(r"http://\S+(?=/v1)", ready)
            assert found is not None
            headers = {"Authorization": f"Bearer {secret}"}
            with httpx2.Client(base_url=found[0], headers=headers) as http:
                added = http.post("/v1/spaces/alice/facts", json={"content": "Tea is hot."})
                assert added.status_code == 201
                assert http.get("/v1/spaces/bob/facts").status_code == 404
                assert http.get("/healthz").json() == {"status": "ok"}
                keys_command("revoke", listed["id"], *store)
                assert http.get("/v1/spaces/alice/facts").status_code == 401
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=60) == 0
        finally:
            running.kill()
    with recollect.open(tmp_path / "m.db") as memory:
        assert [fact.content for fact in memory.space("alice").facts.list()] == ["Tea is hot."]
    assert secret.encode() not in (tmp_path / "m.db").read_bytes()


def test_a_key_opens_what_it_was_made_for_and_nothing_by_default(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "m.db")]
    for arguments in (("create", "x"), ("create", "x", "--all-spaces", "--space", "a")):
        assert CliRunner().invoke(keys, [*arguments, *store]).exit_code == 2
    refused = CliRunner().invoke(keys, ["revoke", "none", *store])
    assert refused.exit_code == 1
