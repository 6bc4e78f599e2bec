"""Keeps up with logs that grow: looks at the files again and again, and reads what is new of them.

Any number of watchers may look at the same files: what one has stored is known to all. What a
watcher brings in is learned from when its session has been quiet for a while, by the idle sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from recollect.errors import StoreError
from recollect.importers.folders import Lookout
from recollect.importers.items import ImportProgress, ImportReport, ImportSource
from recollect.importers.running import Importing
from recollect.memory import Memory

_log = logging.getLogger(__name__)

INTERVAL_SECONDS = 2.0


class _ToldToStop(Exception):
    """In the middle of a look, between two batches: nothing is half stored."""


class Watching:
    """A watch over the files of a source. `look()` once, or `run()` until told to stop."""

    def __init__(
        self, memory: Memory, space: str, source: ImportSource, paths: Sequence[Path]
    ) -> None:
        self._memory = memory
        self._space = space
        self._source = source
        self._lookout = Lookout(source.is_file, paths)

    def look(self, is_over: Callable[[], bool] = lambda: False) -> ImportReport:
        """Read what is new since the last look. A folder that is not there yet is waited for.

        `is_over` is asked between batches and ends the look early; the next one goes on there.
        """

        def ask(_progress: ImportProgress) -> None:
            if is_over():
                raise _ToldToStop

        importing = Importing(self._memory, self._space, self._source, progress=ask)
        try:
            for file in self._lookout.changed():
                importing.read(file)
                self._lookout.note(file)
        except _ToldToStop:
            self._lookout.forget()
        return importing.report

    def run(
        self,
        wait: Callable[[float], bool],
        told: Callable[[ImportReport], None],
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        """Look until `wait`, which pauses for some seconds, says that it is over.

        It is asked in the middle of a long look, too. A store that cannot be reached for a while is
        tried again: the files do not run away.
        """
        stopped = False

        def is_over() -> bool:
            nonlocal stopped
            stopped = stopped or wait(0)
            return stopped

        while not stopped:
            try:
                told(self.look(is_over))
            except StoreError as error:
                if not error.retry_helps:
                    raise
                _log.warning("the store cannot be written to, and is tried again: %s", error)
                self._lookout.forget()
            stopped = stopped or wait(interval_seconds)
