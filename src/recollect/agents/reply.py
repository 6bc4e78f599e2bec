"""What a turn of an agent gives to whoever waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from recollect.agents.loop import Stop
from recollect.domain import Record
from recollect.errors import AnswerPending, RecollectError
from recollect.recollection import Citation

POLL_SECONDS = 0.25  # between looks at the store, for an answer that another process may give


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An agent's answer. `citations` are what it was reminded of, with where that comes from."""

    text: str
    turn_id: str
    stop: Stop = Stop.ANSWERED
    citations: tuple[Citation, ...] = ()
    cited: tuple[str, ...] = ()  # the marks of those it relied on
    tokens: int = 0
    is_offline: bool = False  # no model was asked


def stored_reply(record: Record | None, turn_id: str) -> Reply:
    """An answer as it is stored; of a turn that has none, such as a reset, an empty one."""
    if record is None:
        return Reply(text="", turn_id=turn_id)
    return Reply(
        text=record.content,
        turn_id=turn_id,
        stop=Stop(record.metadata.get("stop", Stop.ANSWERED)),
        is_offline=record.metadata.get("responder") == "offline",
    )


class Ticket:
    """Something that was posted. `result()` waits for what comes of it."""

    def __init__(self, item_id: str, look: Callable[[], Reply | RecollectError | None]) -> None:
        self.id = item_id
        self._look = look
        self._settled = threading.Event()
        self._outcome: Reply | RecollectError | None = None
        self.last_error: str | None = None  # of a try that failed and is made again

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set()

    def settle(self, outcome: Reply | RecollectError) -> None:
        """Give whoever waits what they wait for; the first outcome counts."""
        if not self._settled.is_set():
            self._outcome = outcome
            self._settled.set()

    def result(self, timeout: float | None = None) -> Reply:
        """The answer, from this process or another one.

        AnswerPending: there is none yet; it may come later. TurnFailed: there will be none.
        """
        waited = 0.0
        while not self._settled.is_set():
            step = POLL_SECONDS if timeout is None else min(POLL_SECONDS, timeout - waited)
            if step <= 0 or self._settled.wait(step):
                break
            waited += step
            found = self._look()
            if found is not None:
                self.settle(found)
        match self._outcome:
            case Reply():
                return self._outcome
            case None:
                why = f" ({self.last_error})" if self.last_error else ""
                raise AnswerPending(f"no answer after {timeout:g} s{why}; it may still come")
            case error:
                raise error
