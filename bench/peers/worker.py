"""Runs one contender in a process of its own and prints what it measured as one line of JSON.

Needs nothing of this project but the texts, so that it runs in the peers' environment as well:
`python worker.py <contender> <directory> <appends> <repetitions>`. With zero repetitions it only
appends, for somebody who counts the syncs from outside.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.texts import make_texts

READ = 20


class Contender(Protocol):
    """One record per durable write, and the newest ones back."""

    version: str

    async def append(self, text: str) -> None: ...

    async def newest(self) -> list[str]: ...

    async def retry(self, text: str, other: str) -> str:
        """What an append that is sent twice comes to, and one that changed in between."""
        ...

    def pragmas(self) -> dict[str, Any]: ...


class Recollect:
    """The synchronous session, called as it is."""

    def __init__(self, directory: Path) -> None:
        recollect = importlib.import_module("recollect")
        self.version = recollect.__version__
        path = str(directory / "recollect.db")
        self._memory = recollect.open(path, settings=recollect.Settings())
        self._session = self._memory.space().session("bench:main")
        self._refused = recollect.RecollectError

    async def append(self, text: str) -> None:
        self._session.append("user", text)

    async def newest(self) -> list[str]:
        return [record.content for record in self._session.recent(READ)]

    async def retry(self, text: str, other: str) -> str:
        before = len(self._session)
        for _ in range(2):
            self._session.append("user", text, key="retried")
        stored = len(self._session) - before
        try:
            self._session.append("user", other, key="retried")
        except self._refused:
            return f"stored {stored}×; other content under the same key refused"
        return f"stored {stored}×; other content under the same key accepted"

    def pragmas(self) -> dict[str, Any]:
        # The settings of the one connection that writes, which nothing public shows.
        return _pragmas(self._session._store._database._writer)


class RecollectAio(Recollect):
    """The same through recollect.aio, which hands every call to a thread."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        aio = importlib.import_module("recollect.aio")
        self._asynchronous = aio.Session(self._session)

    async def append(self, text: str) -> None:
        await self._asynchronous.append("user", text)

    async def newest(self) -> list[str]:
        return [record.content for record in await self._asynchronous.recent(READ)]


class LangGraph:
    """SqliteStore: an item per message in a namespace, under keys the caller makes."""

    def __init__(self, directory: Path) -> None:
        self.version = metadata.version("langgraph-checkpoint-sqlite")
        module = importlib.import_module("langgraph.store.sqlite")
        self._opened = module.SqliteStore.from_conn_string(str(directory / "langgraph.db"))
        self._store = self._opened.__enter__()
        self._store.setup()
        self._namespace = ("bench", "main")
        self._next = 0

    async def append(self, text: str) -> None:
        self._next += 1
        value = {"role": "user", "content": text}
        self._store.put(self._namespace, f"{self._next:012d}", value)

    async def newest(self) -> list[str]:
        found = self._store.search(self._namespace, limit=READ)
        return [item.value["content"] for item in reversed(found)]

    async def retry(self, text: str, other: str) -> str:
        for _ in range(2):
            self._store.put(self._namespace, "retried", {"role": "user", "content": text})
        self._store.put(self._namespace, "retried", {"role": "user", "content": other})
        content = self._store.get(self._namespace, "retried").value["content"]
        if content == other:
            return "stored 1×; other content under the same key overwrites it silently"
        return "stored 1×; other content under the same key ignored"

    def pragmas(self) -> dict[str, Any]:
        return _pragmas(self._store.conn)


class OpenAIAgents:
    """SQLiteSession: its methods are coroutines that run in a thread."""

    def __init__(self, directory: Path) -> None:
        self.version = metadata.version("openai-agents")
        # Not through the package's root, which also loads the whole client library.
        module = importlib.import_module("agents.memory.sqlite_session")
        self._session = module.SQLiteSession("bench:main", directory / "openai-agents.db")

    async def append(self, text: str) -> None:
        await self._session.add_items([{"role": "user", "content": text}])

    async def newest(self) -> list[str]:
        return [item["content"] for item in await self._session.get_items(READ)]

    async def retry(self, text: str, other: str) -> str:  # noqa: ARG002
        before = len(await self._session.get_items())
        for _ in range(2):
            await self._session.add_items([{"role": "user", "content": text}])
        return f"stored {len(await self._session.get_items()) - before}×; there are no append keys"

    def pragmas(self) -> dict[str, Any]:
        return _pragmas(self._session._get_connection())


CONTENDERS: dict[str, Callable[[Path], Contender]] = {
    "recollect": Recollect,
    "recollect-aio": RecollectAio,
    "langgraph": LangGraph,
    "openai-agents": OpenAIAgents,
}


def _pragmas(connection: Any) -> dict[str, Any]:
    names = ("journal_mode", "synchronous")
    return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}


async def _repeat(call: Callable[[], Awaitable[object]], calls: int) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        await call()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu / calls * 1e6, wall / calls * 1e6


async def _measure(contender: Contender, appends: int, repetitions: int) -> dict[str, Any]:
    texts = iter(make_texts(appends * (repetitions + 1) + 100))
    last: list[str] = []

    async def append() -> None:
        last.append(next(texts))
        await contender.append(last[-1])

    await _repeat(append, appends)
    if not repetitions:
        return {}
    written = [await _repeat(append, appends) for _ in range(repetitions)]
    read = [await _repeat(contender.newest, appends) for _ in range(repetitions)]
    return {
        "version": contender.version,
        "append_cpu_us": min(cpu for cpu, _ in written),
        "append_wall_us": min(wall for _, wall in written),
        "read_cpu_us": min(cpu for cpu, _ in read),
        "read_is_newest": await contender.newest() == last[-READ:],
        "retry": await contender.retry(next(texts), next(texts)),
        "pragmas": contender.pragmas(),
    }


def main() -> None:
    name, directory, appends, repetitions = sys.argv[1:]
    contender = CONTENDERS[name](Path(directory))
    print(json.dumps(asyncio.run(_measure(contender, int(appends), int(repetitions)))))


if __name__ == "__main__":
    main()
