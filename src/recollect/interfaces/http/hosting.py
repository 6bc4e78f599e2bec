"""Takes messages for agents, runs those that are to be run here, and waits for some answers."""

from __future__ import annotations

import threading

from recollect.agents.profile import AgentProfile
from recollect.agents.reply import Reply
from recollect.agents.system import AgentSystem
from recollect.descriptors import Descriptor
from recollect.errors import AnswerPending, RecollectError, TurnFailed
from recollect.memory import Memory

WAITING_MAX = 4  # requests that wait for an agent at a time; the others are told to ask again


class Hosts:
    """`names` are the agents that are run here; all others are left to other processes."""

    def __init__(self, memory: Memory, names: tuple[str, ...] = ()) -> None:
        self._memory = memory
        self._names = names
        self._lock = threading.Lock()
        self._system: AgentSystem | None = None
        self._places = threading.BoundedSemaphore(WAITING_MAX)

    def start(self) -> None:
        """Run those that are to be run here, if there are any."""
        if self._names:
            self._agents().start(learn=False)

    def post(
        self, agent: str, words: str, *, space: str, key: str, message_id: str | None, seconds: int
    ) -> tuple[str, Reply | RecollectError | None]:
        """A message's id, and what came of it in so many seconds; none: nothing yet.

        Gone: it was said before, and its answer was forgotten.
        """
        ticket = self._agents().post(agent, words, space=space, key=key, id=message_id)
        if message_id is not None:
            ticket.look()  # it may have been said before
        is_waited_for = seconds > 0 and self._places.acquire(blocking=False)
        try:
            return ticket.id, ticket.result(seconds if is_waited_for else 0)
        except AnswerPending:
            return ticket.id, None
        except TurnFailed as failed:
            return ticket.id, failed
        finally:
            if is_waited_for:
                self._places.release()

    def _agents(self) -> AgentSystem:
        with self._lock:
            if self._system is None:
                profiles: dict[str | Descriptor, AgentProfile]
                profiles = {name: AgentProfile() for name in self._names}
                self._system = self._memory.agents(profiles, only=True)
            return self._system
