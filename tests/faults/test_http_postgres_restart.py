"""PostgreSQL is killed, stopped and started under a loaded HTTP server: clean refusals meanwhile,
nothing that was acknowledged is lost, and the same process goes on when it is back."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2

import recollect
from recollect.interfaces.http.app import Api, ServerLimits
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.http.server import Server, listening
from recollect.types.access import Scope
from tests.crash.soundness import assert_store_is_sound
from tests.postgres_server import PostgresServer, url_with

IMPATIENT = {"postgres_timeout_seconds": 0.3}
SPACE = "s"
CLIENTS = 6
MORE = 40  # answers between two outages
WAIT_SECONDS = 60.0


@contextmanager
def serving(memory: recollect.Memory) -> Iterator[httpx2.Client]:
    """The server in a thread of this process, and a client of it."""
    with listening("127.0.0.1", 0) as listener:
        api = Api(memory, ServerLimits(rate_per_second=0))
        server = Server(api.beside(), api.stop)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        _, secret = make_key(memory, "tests", space=SPACE, scope=Scope.WRITE)
        try:
            with httpx2.Client(
                base_url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1/spaces/{SPACE}",
                headers={"Authorization": f"Bearer {secret}"},
                timeout=WAIT_SECONDS,
            ) as client:
                yield client
        finally:
            server.stop()
            thread.join(WAIT_SECONDS)
    assert not thread.is_alive()


class Load:
    """Clients that append and recall, and try again what was refused for now."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client
        self._changed = threading.Condition()
        self._is_over = False
        self._texts = (f"heron {number}" for number in itertools.count())
        self.stored: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.unclean: list[str] = []

    def run(self) -> None:
        while not self._is_over:
            with self._changed:
                text = next(self._texts)
            said = {"key": "k", "messages": [{"role": "user", "content": text}]}
            if self._tried("append", said, {"Idempotency-Key": text.replace(" ", "-")}):
                with self._changed:
                    self.stored.append(text)
            self._tried("recall", {"query": "heron", "limit": 3}, {})

    def _tried(self, path: str, body: object, headers: dict[str, str]) -> bool:
        """Whether it was answered with success in the end."""
        while not self._is_over:
            answer = self._client.post(f"/{path}", json=body, headers=headers)
            with self._changed:
                self.statuses[answer.status_code] += 1
                if not is_clean(answer):
                    self.unclean.append(f"{path}: {answer.status_code} {answer.text}")
                self._changed.notify_all()
            if answer.is_success:
                return True
        return False

    def wait_for(self, more: int, *statuses: int) -> None:
        """Until there were so many more answers of these."""
        with self._changed:
            goal = self._count(statuses) + more
            assert self._changed.wait_for(
                lambda: self.unclean or self._count(statuses) >= goal, WAIT_SECONDS
            ), self.statuses

    def _count(self, statuses: tuple[int, ...]) -> int:
        return sum(self.statuses[status] for status in statuses)

    def stop(self) -> None:
        self._is_over = True


def is_clean(answer: httpx2.Response) -> bool:
    """Success, or a problem that says to come again and nothing of what went wrong."""
    if answer.is_success:
        return True
    is_problem = answer.headers["content-type"] == "application/problem+json"
    is_for_now = answer.status_code == 503 and "retry-after" in answer.headers
    return is_problem and is_for_now and "rcpg" not in answer.text


def test_requests_fail_cleanly_while_postgresql_is_away_and_go_on_when_it_is_back(
    own_postgres: PostgresServer,
) -> None:
    """N9, P2: every answer is a success or 503 with Retry-After; what was acknowledged is there."""
    url = url_with(own_postgres.url, schema=f"t_{secrets.token_hex(8)}")
    with recollect.open(url, settings=IMPATIENT) as memory, serving(memory) as client:
        load = Load(client)
        with ThreadPoolExecutor(CLIENTS) as threads:
            futures = [threads.submit(load.run) for _ in range(CLIENTS)]
            try:
                for end in (own_postgres.kill, own_postgres.stop):
                    load.wait_for(MORE, 200, 201)
                    end()
                    load.wait_for(CLIENTS, 503)
                    own_postgres.start()
                load.wait_for(MORE, 200, 201)
            finally:
                load.stop()
            for future in futures:
                future.result()
        print(load.statuses)
        assert load.unclean == []
        assert client.get(client.base_url.join("/healthz")).json() == {"status": "ok"}
        assert_store_is_sound(memory, SPACE, stored=load.stored)
