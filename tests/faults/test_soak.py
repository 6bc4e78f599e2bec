"""Half an hour of everything at once: a server, two workers, clients. Nothing it takes grows.

Clients append, recall and forget through HTTP, each in a space of its own and with as many sessions
as before at any moment, so that what is kept stays the same and all that grows is a leak. Short of
half an hour with RECOLLECT_SOAK_SECONDS.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

import recollect
from recollect.interfaces.http.bearer import make_key
from recollect.types.access import Scope
from tests.faults.flatness import Course, course
from tests.postgres_server import SETTINGS_KILLABLE, PostgresServer

SOAK_SECONDS = float(os.environ.get("RECOLLECT_SOAK_SECONDS", "1800"))
LOOKS = 300
CLIENTS = 3
SESSIONS_MAX = 20  # that a client keeps; it forgets one before it begins another
PAUSE_SECONDS = 0.02  # between requests of one client: steady, not as fast as it goes
# What may be added over the whole time after the warm-up. Memory: of what a process takes; caches
# of words and of lines, some kilobytes for each session, are full only after thousands of them.
MEMORY_GROWTH = 0.1
MEMORY_GROWTH_MIB_MIN = 8.0
DESCRIPTORS_GROWTH = 2.0
WAL_GROWTH_MIB = 8.0
MIB = 2**20
# A log of this size is written anew many times in half an hour; by default it may take a gigabyte.
SMALL_WAL = {"max_wal_size": "64MB", "min_wal_size": "32MB"}

RUN = "import sys; from recollect.interfaces.cli.main import main; main()"


@contextmanager
def command(*arguments: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    """A command of ours, told to stop at the end, which it has to do without complaint."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")
    }
    environment["RECOLLECT_IDLE_SWEEP_SECONDS"] = "5"
    with (
        log.open("w") as sink,
        subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments],
            stdout=subprocess.PIPE,
            stderr=sink,
            env=environment,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=60)
    assert process.returncode == 0, log.read_text()[-2000:]


class Client:
    """Talks, asks and forgets, in a space of its own, until it is told to stop."""

    def __init__(self, url: str, secret: str, number: int, seed: int) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        self._space = f"client-{number}"
        self._random = random.Random(seed + number)
        self._sessions: dict[str, str] = {}  # by key
        self._talks = 0
        self.done: dict[str, int] = {}

    def run(self, stop: threading.Event) -> None:
        with closing(self._connection):
            while not stop.wait(PAUSE_SECONDS):
                self._talk()

    def _talk(self) -> None:
        match self._random.random():
            case chance if chance < 0.4 or not self._sessions:
                self._append()
            case chance if chance < 0.9:
                self._post("recall", {"query": f"which town does heron {self._talks} like?"})
            case _:
                self._post("context", {"query": "what is to be known?"})

    def _append(self) -> None:
        self._talks += 1
        said = f"I live in Town{self._talks % 50} and my heron is called Rex{self._talks % 70}."
        messages = [{"role": "user", "content": f"{said} {turn}"} for turn in range(6)]
        key = f"talk:{self._talks % SESSIONS_MAX}"
        if key in self._sessions:
            self._post("forget", {"session": self._sessions[key]})
        stored = self._post("append", {"key": key, "messages": messages})
        self._sessions[key] = stored["session_id"]

    def _post(self, verb: str, body: Any) -> Any:
        path = f"/v1/spaces/{self._space}/{verb}"
        self._connection.request("POST", path, json.dumps(body).encode(), self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status in (200, 201), f"{verb}: {answer.status} {content[:300]!r}"
        self.done[verb] = self.done.get(verb, 0) + 1
        return json.loads(content)


def soak(address: str, directory: Path, wal_bytes: Callable[[], int]) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}, {SOAK_SECONDS:g} s")
    with recollect.open(address) as memory:
        _, secret = make_key(memory, "soak", space=None, scope=Scope.ADMIN)
    with ExitStack() as stack:
        serving = ("serve", "--no-work", "--port", "0", "--rate", "0", "--json")
        server = stack.enter_context(
            command(*serving, "--store", address, log=directory / "serve.log")
        )
        url = _url_of(server)
        processes = {"serve": psutil.Process(server.pid)}
        for name in ("worker 1", "worker 2"):
            worker = stack.enter_context(
                command("worker", "--quiet", "--store", address, log=directory / f"{name}.log")
            )
            processes[name] = psutil.Process(worker.pid)
        clients = [Client(url, secret, number, seed) for number in range(CLIENTS)]
        courses = _watched(processes, clients, wal_bytes)
    done = {verb: sum(each.done.get(verb, 0) for each in clients) for verb in clients[0].done}
    print(", ".join(f"{many:,} × {verb}" for verb, many in done.items()))
    print("\n".join(map(str, courses)))
    for log in directory.glob("*.log"):
        assert "Traceback" not in log.read_text(), f"{log.name}: {log.read_text()[-2000:]}"
    grown = [str(each) for each in courses if each.growth > _allowed(each)]
    assert not grown, grown
    _assert_work_was_done(address)


def _url_of(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    said = ""
    while not said.rstrip().endswith("}"):
        line = server.stdout.readline()
        assert line, "the server has ended"
        said += line
    return str(json.loads(said)["url"])


def _watched(
    processes: dict[str, psutil.Process], clients: list[Client], wal_bytes: Callable[[], int]
) -> list[Course]:
    """Look again and again while the clients are at it; what they meet is raised here."""
    looks: dict[str, list[tuple[float, float]]] = {}
    stop = threading.Event()
    broken: list[BaseException] = []

    def run(client: Client) -> None:
        try:
            client.run(stop)
        except BaseException as error:
            broken.append(error)
            stop.set()

    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    while (now := time.monotonic() - began) < SOAK_SECONDS and not stop.is_set():
        for name, process in processes.items():
            memory, handles = process.memory_info().rss / MIB, process.num_fds()
            looks.setdefault(f"{name}, memory in MiB", []).append((now, memory))
            looks.setdefault(f"{name}, descriptors", []).append((now, handles))
        looks.setdefault("write-ahead log in MiB", []).append((now, wal_bytes() / MIB))
        stop.wait(SOAK_SECONDS / LOOKS)
    stop.set()
    for thread in threads:
        thread.join()
    if broken:
        raise broken[0]
    return [course(name, found) for name, found in looks.items()]


def _allowed(grown: Course) -> float:
    if grown.name.endswith("descriptors"):
        return DESCRIPTORS_GROWTH
    if grown.name.startswith("write-ahead log"):
        return WAL_GROWTH_MIB
    return max(MEMORY_GROWTH_MIB_MIN, MEMORY_GROWTH * grown.middle)


def _assert_work_was_done(address: str) -> None:
    """The workers kept up: what waits is no more than what the clients keep."""
    with recollect.open(address) as memory:
        assert memory.status(limit=0).marked_count <= CLIENTS * SESSIONS_MAX
        for number in range(CLIENTS):
            sessions = memory.space(f"client-{number}").sessions.list(limit=100)
            assert any(each.processed_until for each in sessions)


@pytest.mark.torture
def test_nothing_grows_on_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    log = path.with_name("memory.db-wal")
    soak(str(path), tmp_path, lambda: log.stat().st_size if log.exists() else 0)


@pytest.mark.torture
def test_nothing_grows_on_postgres(tmp_path: Path, postgres_url: str) -> None:
    """`postgres_url` only to be skipped where there is none."""
    server = PostgresServer(SETTINGS_KILLABLE | SMALL_WAL)
    try:
        wal = server.directory / "data" / "pg_wal"
        soak(server.url, tmp_path, lambda: sum(file.stat().st_size for file in _files(wal)))
    finally:
        server.close()


def _files(directory: Path) -> list[Path]:
    """A segment may be gone between the listing and the look."""
    return [file for file in directory.iterdir() if file.is_file() and file.exists()]
