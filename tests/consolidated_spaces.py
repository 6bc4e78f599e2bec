"""Spaces as tests have them consolidated: sessions that are told and left, and a scripted model."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import recollect
from recollect.clock import ManualClock
from recollect.consolidation.pages import SUMMARIES
from recollect.session import Session
from recollect.types.facts import Extraction
from recollect.types.records import Job, JobKind
from recollect_conformance.scripted import Script, Scripted, ScriptedServer
from recollect_conformance.scripted_frames import Received

SPACE = "alice"
WHO = "Alice"
DAY = 86_400.0
WAIT_SECONDS = 20.0
# One job at a time, sessions first, so that a tick is one session or one generation; nothing but
# phases 1 and 2.
SETTINGS: Mapping[str, Any] = {
    "pipeline": "extraction",
    "worker_batch": 1,
    "consolidation_cooldown_seconds": 0,
    "consolidation_patience_seconds": 31_536_000,
}

_SHOWN = re.compile(r"^- ([fs]\d+) \([^)]*\) (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """A memory with one space in it, its clock, and where its files are."""

    memory: recollect.Memory
    clock: ManualClock
    root: Path
    server: ScriptedServer

    @property
    def space(self) -> recollect.Space:
        return self.memory.space(SPACE)

    @property
    def directory(self) -> Path:
        """Where the space is published."""
        return self.root / SPACE

    def told(self, key: str, *texts: str, project: str | None = None) -> Session:
        """A session that was left, with what a person said in it."""
        session = self.space.session(key, "assistant", project=project)
        session.append_many([{"role": "user", "name": WHO, "content": text} for text in texts])
        session.sleep()
        return session

    def learned(self, key: str, *texts: str, project: str | None = None) -> Session:
        """The same, and phase 1 has been over it; a moment passes before."""
        self.clock.advance(10)
        session = self.told(key, *texts, project=project)
        assert self.memory.worker().tick().processed == 1
        return session

    def tick(self) -> int:
        """Let a worker do the next thing that is due; how many generations it made."""
        return self.memory.worker().tick().generations

    def extraction(self, session: Session) -> Extraction:
        found = self.space.sessions.extraction(session.id)
        assert found is not None, "it came to nothing"
        return found

    def use(self, session: Session, query: str) -> None:
        """Have something recalled, and what a session said of it opened, in a turn of its own."""
        hits = self.space.recall(query)
        own = [hit for hit in hits if session.id in {source.session_id for source in hit.sources}]
        before = self.extraction(session).usage_count
        assert self.space.opened(own[0]) == 1
        assert self.extraction(session).usage_count == before + 1

    def picked(self) -> dict[str, list[str]]:
        """The keys of what the next generation would add, retain and remove."""
        selection = self.space.generations.preview().selection
        return {
            "added": sorted(map(self._key, (each.session_id for each in selection.added))),
            "retained": sorted(map(self._key, (each.session_id for each in selection.retained))),
            "removed": sorted(map(self._key, (each.session_id for each in selection.removed))),
        }

    def _key(self, session_id: str) -> str:
        state = self.memory.store.sessions.get(SPACE, session_id)
        assert state is not None
        return state.key

    def body(self, path: str) -> str:
        """What a page says; nothing where there is none."""
        found = self.space.documents.find(path)
        return "" if found is None else found.body

    def summaries(self) -> list[str]:
        """The paths of the pages of sessions."""
        documents = self.space.documents
        if documents.find(SUMMARIES) is None:
            return []
        return [node.path for node in documents.tree(SUMMARIES)[1:]]

    def pages(self) -> dict[str, str]:
        """All that memory says, by path."""
        documents = self.space.documents
        if documents.find("~/memory") is None:
            return {}
        return {node.path: documents.read(node.path).body for node in documents.tree("~/memory")}

    def files(self) -> dict[str, str]:
        """All that is published, by name."""
        found = (each for each in self.directory.rglob("*.md"))
        return {str(each.relative_to(self.directory)): each.read_text() for each in found}

    def sweep(self) -> None:
        """Let the sweep come round, which workers do by themselves, and what it made due."""
        leases = self.memory.store.leases
        leases.ensure_recurring(JobKind.IDLE_SWEEP, self.clock.now())
        leases.make_due(JobKind.IDLE_SWEEP)
        worker = self.memory.worker()
        while worker.tick():
            pass

    def job(self) -> Job:
        found = self.memory.store.leases.get(SPACE, JobKind.CONSOLIDATE, SPACE)
        assert found is not None, "nothing was ever learned"
        return found


Open = Callable[..., Here]


@contextlib.contextmanager
def opening(url: str, root: Path) -> Iterator[Open]:
    """What opens memories on one store; a script makes the consolidation a model's work."""
    with contextlib.ExitStack() as stack:

        def opened(
            script: Script | None = None, *, clock: ManualClock | None = None, **settings: Any
        ) -> Here:
            server = stack.enter_context(ScriptedServer(script or ()))
            clock = clock or ManualClock()
            given = {**SETTINGS, "memories_root": str(root)}
            if script is not None:
                given |= {
                    "consolidation_model": "openai:scripted",
                    "model_base_url": server.url,
                    "model_retries": 0,
                }
            memory = recollect.open(url, settings=given | settings, clock=clock)
            stack.enter_context(memory)
            return Here(memory=memory, clock=clock, root=root, server=server)

        yield opened


def asked(received: Received) -> list[str]:
    """The sections of the handbook that a request wants; none: it wants something else."""
    _, _, task = received.prompt.rpartition("Write what stands below:")
    return re.findall(r"^## (.+)$", task, re.MULTILINE) if task != received.prompt else []


def wants_summary(received: Received) -> bool:
    return "Write the summary" in received.prompt


def told(received: Received, section: str) -> dict[str, str]:
    """What a request shows for a section, by name: facts and sessions."""
    _, _, rest = received.prompt.partition(f"# For the section “{section}”\n")
    return dict(_SHOWN.findall(re.split(r"^(?:# For|Write )", rest, flags=re.MULTILINE)[0]))


def handbook(received: Received) -> str:
    """A line for each fact and session of each section, with its name."""
    return "\n\n".join(
        "\n".join([f"## {each}", *(f"- {text} [{n}]" for n, text in told(received, each).items())])
        for each in asked(received)
    )


def keeper(received: Received) -> Scripted:
    """A model that writes down what it is shown."""
    if wants_summary(received):
        return "Somebody who talks about home."
    return handbook(received) or "NONE"


class Background:
    """Something that goes on while a test looks; what it raised is raised at the end."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._error: BaseException | None = None
        self.result: Any = None

        def guarded() -> None:
            try:
                self.result = run()
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=guarded, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "it never came to an end"
        if self._error is not None:
            raise self._error
