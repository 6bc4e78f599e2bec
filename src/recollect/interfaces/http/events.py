"""What changes in a space, as it does: a stream of server-sent events, each a whole picture.

A client that missed some has missed nothing that the next one does not say. Streams are bounded in
number and in time, and end when their client or the server does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from starlette.types import Receive, Send

from recollect.domain import JobState
from recollect.errors import RecollectError
from recollect.interfaces.http.problems import Refusal
from recollect.interfaces.views import view
from recollect.memory import Memory

STREAMS_MAX = 64
STREAMS_OF_KEY_MAX = 16  # so that the tabs of one do not keep all others from theirs
POLL_SECONDS = 1.0
QUIET_POLLS = 15  # after so many without a change, a sign of life
POLLS_MAX = 3600
SEND_SECONDS = 30.0

Run = Callable[[Callable[[], Any]], Awaitable[Any]]


def picture(memory: Memory, space: str) -> dict[str, Any]:
    """What there is to see of a space at once; asked for so often that it is no whole status."""
    store, now = memory.store, memory.clock.now()
    marked, waiting = store.marks.counts(space)
    counts = store.leases.counts(space)
    generation = store.generations.states(space, 1, "", now)
    return {
        "marked_count": marked,
        "waiting_count": waiting,
        "job_counts": {
            state.value: counts.get(state, 0) for state in JobState if state is not JobState.IDLE
        },
        "spent_today": view(store.ledger.spent(space, now)),
        "generation": generation[0].generation if generation else 0,
    }


class Streams:
    """The streams that are open."""

    def __init__(
        self, run: Run, is_stopping: Callable[[], bool], poll_seconds: float = POLL_SECONDS
    ) -> None:
        self._run = run
        self._is_stopping = is_stopping
        self._poll_seconds = poll_seconds
        self._open: Counter[str] = Counter()  # by whose they are

    def is_full(self, key_id: str) -> bool:
        """Whether there is no room for one more of this key."""
        return self._open.total() >= STREAMS_MAX or self._open[key_id] >= STREAMS_OF_KEY_MAX

    async def serve(
        self, key_id: str, look: Callable[[], Any], receive: Receive, send: Send
    ) -> None:
        """Tell what `look` sees whenever it is something else, until somebody leaves.

        It raises where the one who looks may not any more; then that is the end of it.
        """
        self._open[key_id] += 1
        try:
            async with anyio.create_task_group() as tasks:

                async def until_left() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass
                    tasks.cancel_scope.cancel()

                tasks.start_soon(until_left)
                with suppress(TimeoutError):  # a client that reads no more has left as well
                    await self._report(look, send)
                tasks.cancel_scope.cancel()
        finally:
            self._open[key_id] -= 1
            self._open += Counter()  # which drops those that are at nought

    async def _report(self, look: Callable[[], Any], send: Send) -> None:
        before, quiet = None, 0
        for _ in range(POLLS_MAX):
            if self._is_stopping():
                break
            try:
                seen = await self._run(look)
            except (RecollectError, Refusal):  # over for this client; it learns why when it asks
                break
            quiet += 1
            if seen != before:
                await _send(send, f"event: status\ndata: {json.dumps(seen)}\n\n")
                before, quiet = seen, 0
            elif quiet >= QUIET_POLLS:
                await _send(send, ": still here\n\n")
                quiet = 0
            await anyio.sleep(self._poll_seconds)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send(send: Send, chunk: str) -> None:
    with anyio.fail_after(SEND_SECONDS):
        await send({"type": "http.response.body", "body": chunk.encode(), "more_body": True})
