"""A server and two workers as processes of their own on one PostgreSQL (mission N9)."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
from collections import Counter
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import urlsplit

import recollect
from recollect.interfaces.http.bearer import make_key
from recollect.types.access import Scope
from tests.crash.worker_child import wait_for
from tests.e2e.command_line import line_with, started

SESSIONS = 12
RECORDS = 6  # one more than mark a session
SPACES = ("alice", "bob")
WORKER = ("worker", "--concurrency", "1", "--json")


def post(url: str, secret: str, path: str, body: Any) -> Any:
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        connection.request("POST", f"/v1/spaces/{path}", json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
    assert answer.status in (200, 201), content
    return content


def serving_at(server: subprocess.Popen[bytes]) -> str:
    assert server.stdout is not None
    said = b""
    while not said.rstrip().endswith(b"}"):
        said += server.stdout.readline()
    return str(json.loads(said)["url"])


def test_two_workers_share_what_a_server_takes_in_and_one_is_enough_when_the_other_dies(
    lent_store_url: str,
) -> None:
    with ExitStack() as stack, recollect.open(lent_store_url) as memory:
        _, secret = make_key(memory, "test", space=None, scope=Scope.WRITE)
        serve = ("serve", "--no-work", "--port", "0", "--json", "--store", lent_store_url)
        url = serving_at(stack.enter_context(started(*serve)))
        workers = [
            stack.enter_context(started(*WORKER, "--name", name, "--store", lent_store_url))
            for name in ("w1", "w2")
        ]
        for worker in workers:
            line_with(worker.stderr, b"ready")
        for number in range(SESSIONS):
            said = [
                {"role": "user", "content": f"I moved to Town{number}x{turn}."}
                for turn in range(RECORDS)
            ]
            body = {"key": f"talk:{number}", "messages": said}
            post(url, secret, f"{SPACES[number % 2]}/append", body)
            if number == SESSIONS // 2:
                workers[0].send_signal(signal.SIGKILL)
        # What the dead one held is taken over when its lease is over, in other tests.
        wait_for(lambda: memory.status(limit=0).marked_count <= 1)
        ranges = Counter[str]()
        for space in SPACES:
            for session in memory.space(space).sessions.list(limit=100):
                if session.key.startswith("talk:") and session.processed_until is not None:
                    spans = memory.space(space).sessions.ranges(session.id)
                    ranges[session.id] = sum(span.last_seq - span.first_seq + 1 for span in spans)
        assert len(ranges) >= SESSIONS - 1
        assert set(ranges.values()) == {RECORDS}, "each record was processed once"
        found = post(url, secret, "alice/recall", {"query": "who moved to Town2x1?"})
        assert found["hits"]
        workers[1].send_signal(signal.SIGTERM)
        assert workers[1].wait(timeout=30) == 0
