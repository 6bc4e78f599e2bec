"""What was told, on its way into the store: noted at once, written in batches a moment later.

Telling never waits for it and never fails: where the store takes no write, nothing is kept. A
process that dies loses what it told in the last moment. Erasure is not outrun: a batch that comes
late leaves out what has been erased since.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.collection import storable
from recollect.errors import RecollectError
from recollect.observing.actors import actor
from recollect.observing.log_text import loggable
from recollect.references import by_reference, readers_of
from recollect.types.facts import Reader
from recollect.types.recall import Context, KeptContext

if TYPE_CHECKING:
    from recollect.store.protocol import Store

DELAY_SECONDS = 0.3  # for others that come along
BATCH = 64  # that do not wait for it
PENDING_MAX = 1000
QUERY_CHARS_MAX = 160  # of a question
QUERY_CHARS_READ = 400  # further, so that no secret is cut in two and missed
READER_CHARS_MAX = 120
_log = logging.getLogger(__name__)


class ContextLog:
    """Safe to use from any number of threads. `close` writes what is left."""

    def __init__(
        self,
        store: Callable[[], Store],
        redacting: Callable[[str], Callable[[str], str]],
        now: Callable[[], datetime],
        *,
        is_on: bool,
    ) -> None:
        self._store = store
        self._redacting = redacting
        self._now = now
        self._is_on = is_on
        self._pending: list[KeptContext] = []
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def keep(
        self,
        space: str,
        block: Context,
        query: str,
        settings: Mapping[str, Any],
        reader: str | None = None,
    ) -> Context:
        """Keep a block by reference, if there is one to keep; it comes back as it is."""
        if not block or not self._is_on:
            return block
        asked = self._redacting(space)(storable(query[:QUERY_CHARS_READ]))
        given = {name: _plain(value) for name, value in settings.items() if value is not None}
        session_id = given.pop("beside", None)
        refs, told = by_reference(block, given)
        kept = KeptContext(
            space=space,
            id=block.id,
            at=self._now(),
            reader=(reader or actor())[:READER_CHARS_MAX],
            session_id=session_id,
            query=asked if len(asked) <= QUERY_CHARS_MAX else f"{asked[:QUERY_CHARS_MAX]}…",
            refs=refs,
            told=told,
        )
        with self._changed:
            if not self._is_closed and len(self._pending) < PENDING_MAX:
                self._pending.append(kept)
                self._see_to_it()
        return block

    def flush(self) -> None:
        """Write what is pending now; who asks what was told is to find it."""
        with self._writing:
            with self._changed:
                batch, self._pending = self._pending, []
            by_space: dict[str, list[KeptContext]] = defaultdict(list)
            for each in batch:
                by_space[each.space].append(each)
            for space, kept in by_space.items():
                try:
                    self._store().contexts.add(space, kept)
                except RecollectError as error:
                    _log.debug("what was told is not kept: %s", loggable(error))

    def watch(self, space: str) -> Callable[[], tuple[Reader, ...]]:
        """Who was told something that is erased from here on, until what is returned is called."""
        self.flush()
        contexts = self._store().contexts
        before = contexts.refs(space)

        def told() -> tuple[Reader, ...]:
            left = contexts.refs(space)
            lost = (its for name, its in before.items() if left.get(name, ("",))[0] != its[0])
            return tuple(readers_of(its[1:] for its in lost))

        return told

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self.flush()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _see_to_it(self) -> None:
        """Have the rest written in the background, also in a process that was forked."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._write_on, name="recollect-contexts", daemon=True
            )
            self._thread.start()
        elif len(self._pending) in (1, BATCH):
            self._changed.notify_all()

    def _write_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._is_closed)
                self._changed.wait_for(
                    lambda: self._is_closed or len(self._pending) >= BATCH, DELAY_SECONDS
                )
                if self._is_closed:
                    return
            self.flush()


def _plain(value: Any) -> Any:
    """A setting as JSON has it; what says nothing else, in words."""
    match value:
        case str():
            return storable(value)
        case int() | float() | bool():
            return value
        case Mapping():
            return {storable(str(name)): _plain(each) for name, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(each) for each in value]
        case _:
            return storable(str(value))
