"""Runs one contender at recall in a process of its own and prints what it measured, as JSON.

Needs nothing of this project beside Recollect's own line, so that it runs in the peers'
environments as well: `python recall_worker.py <contender> <directory> <file>`. The file has the
texts, the questions, the text each is about, and the vector of every one of them: the same for all
contenders, and made beforehand, so that nobody's embedder is measured.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import statistics
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

BEST = 10
BATCH = 100

Vectors = dict[str, list[float]]


class Contender(Protocol):
    """Stores texts, and finds those that fit a question."""

    version: str

    async def add(self, texts: Sequence[str]) -> None: ...

    async def search(self, question: str) -> list[str]: ...


class Known:
    """Implements Recollect's `Embedder` by looking up what was made beforehand."""

    name = "known"
    batch_texts = BATCH

    def __init__(self, vectors: Vectors) -> None:
        self._protocol = importlib.import_module("recollect.embedding.protocol")
        self._vectors = vectors
        self.dimensions = len(next(iter(vectors.values())))

    def embed(self, texts: Sequence[str], **_: object) -> Any:
        nothing = [0.0] * self.dimensions  # to be asked how long a vector is
        found = (array("f", self._vectors.get(text, nothing)).tobytes() for text in texts)
        return self._protocol.Embedded(vectors=tuple(found))

    def close(self) -> None:
        pass


class Recollect:
    """Records in sessions of a hundred, found by their words."""

    def __init__(self, directory: Path, vectors: Vectors) -> None:
        recollect = importlib.import_module("recollect")
        self.version = recollect.__version__
        self._memory = recollect.open(
            str(directory / "recollect.db"),
            settings=recollect.Settings(),
            embedder=self._embedder(vectors),
        )
        self._space = self._memory.space()
        self._sessions = 0

    def _embedder(self, vectors: Vectors) -> Known | None:  # noqa: ARG002
        return None

    async def add(self, texts: Sequence[str]) -> None:
        self._sessions += 1
        session = self._space.session(("bench", self._sessions))
        session.append_many([{"role": "user", "content": text} for text in texts])
        while self._memory.pipeline.embed_some():
            pass

    async def search(self, question: str) -> list[str]:
        return [hit.text for hit in self._space.recall(question, BEST)]


class RecollectVectors(Recollect):
    """The same, by their vectors as well."""

    def _embedder(self, vectors: Vectors) -> Known | None:
        return Known(vectors)


class Mem0:
    """Qdrant in a directory, and no model: `infer=False`."""

    def __init__(self, directory: Path, vectors: Vectors) -> None:
        self.version = metadata.version("mem0ai")
        self._vectors = vectors
        module = importlib.import_module("mem0")
        store = {
            "path": str(directory / "qdrant"),
            "on_disk": True,
            "embedding_model_dims": len(next(iter(vectors.values()))),
            "collection_name": "bench",
        }
        self._memory = module.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(directory / "history.db"),
            }
        )
        self._memory.embedding_model = self

    def embed(self, text: str, *_: object) -> list[float]:
        return self._vectors[text]

    def embed_batch(self, texts: Sequence[str], *_: object) -> list[list[float]]:
        return [self._vectors[text] for text in texts]

    async def add(self, texts: Sequence[str]) -> None:
        messages = [{"role": "user", "content": text} for text in texts]
        self._memory.add(messages, user_id="bench", infer=False)

    async def search(self, question: str) -> list[str]:
        found = self._memory.search(question, top_k=BEST, filters={"user_id": "bench"})
        return [each["memory"] for each in found["results"]]


class LangGraph:
    """SqliteStore with an index of vectors."""

    def __init__(self, directory: Path, vectors: Vectors) -> None:
        self.version = metadata.version("langgraph-checkpoint-sqlite")
        _load_extensions()
        module = importlib.import_module("langgraph.store.sqlite")
        index = {
            "dims": len(next(iter(vectors.values()))),
            "embed": lambda texts: [vectors[text] for text in texts],
            "text_fields": ["content"],
        }
        path = str(directory / "langgraph.db")
        self._opened = module.SqliteStore.from_conn_string(path, index=index)
        self._store = self._opened.__enter__()
        self._store.setup()
        self._base = importlib.import_module("langgraph.store.base")
        self._next = 0

    async def add(self, texts: Sequence[str]) -> None:
        puts = []
        for text in texts:
            self._next += 1
            key = f"{self._next:012d}"
            puts.append(self._base.PutOp(("bench",), key, {"role": "user", "content": text}))
        self._store.batch(puts)

    async def search(self, question: str) -> list[str]:
        found = self._store.search(("bench",), query=question, limit=BEST)
        return [item.value["content"] for item in found]


class McpMemoryService:
    """Its storage in one SQLite file, without the server around it."""

    def __init__(self, directory: Path, vectors: Vectors) -> None:
        self.version = metadata.version("mcp-memory-service")
        _load_extensions()
        module = importlib.import_module("mcp_memory_service.storage.sqlite_vec")
        self._memory = importlib.import_module("mcp_memory_service.models.memory").Memory
        self._storage = module.SqliteVecMemoryStorage(str(directory / "mcp.db"))
        self._storage._initialize_embedding_model = self._be_ready
        self._storage._generate_embedding = vectors.__getitem__
        self._vectors = vectors
        self._dimensions = len(next(iter(vectors.values())))
        self._is_open = False

    async def _be_ready(self) -> None:
        self._storage.embedding_model = self
        self._storage.embedding_dimension = self._dimensions

    def encode(self, texts: Sequence[str], **_: object) -> list[list[float]]:
        """As the library's own model is called when there are several texts."""
        return [self._vectors[text] for text in texts]

    async def add(self, texts: Sequence[str]) -> None:
        if not self._is_open:
            await self._storage.initialize()
            self._is_open = True
        memories = [
            self._memory(content=text, content_hash=hashlib.sha256(text.encode()).hexdigest())
            for text in texts
        ]
        stored = await self._storage.store_batch(memories)
        failed = [said for is_stored, said in stored if not is_stored]
        if failed:
            raise RuntimeError(failed[0])

    async def search(self, question: str) -> list[str]:
        found = await self._storage.retrieve(question, n_results=BEST)
        return [each.memory.content for each in found]


CONTENDERS: dict[str, Callable[[Path, Vectors], Contender]] = {
    "recollect": Recollect,
    "recollect-vectors": RecollectVectors,
    "mem0": Mem0,
    "langgraph": LangGraph,
    "mcp-memory-service": McpMemoryService,
}


def _load_extensions() -> None:
    """Many Pythons come with an SQLite that loads no extensions; this one does."""
    sys.modules["sqlite3"] = importlib.import_module("pysqlite3")
    sys.modules["sqlite3.dbapi2"] = importlib.import_module("pysqlite3.dbapi2")


async def _measure(contender: Contender, given: dict[str, Any]) -> dict[str, Any]:
    texts: list[str] = given["texts"]
    before = time.process_time()
    for first in range(0, len(texts), BATCH):
        await contender.add(texts[first : first + BATCH])
    added = time.process_time() - before
    await contender.search(given["questions"][0])  # what is made on first use
    cpu, wall, found = [], [], 0
    for question, about in zip(given["questions"], given["about"], strict=True):
        started = time.perf_counter(), time.process_time()
        best = await contender.search(question)
        cpu.append((time.process_time() - started[1]) * 1000)
        wall.append((time.perf_counter() - started[0]) * 1000)
        found += about in best
    return {
        "version": contender.version,
        "add_cpu_us": added / len(texts) * 1e6,
        "cpu_p50_ms": statistics.median(cpu),
        "cpu_p95_ms": sorted(cpu)[int(len(cpu) * 0.95)],
        "wall_p50_ms": statistics.median(wall),
        "found": found / len(cpu),
    }


def main() -> None:
    name, directory, file = sys.argv[1:]
    given = json.loads(Path(file).read_text(encoding="utf-8"))
    contender = CONTENDERS[name](Path(directory), given["vectors"])
    print(json.dumps(asyncio.run(_measure(contender, given))))


if __name__ == "__main__":
    main()
