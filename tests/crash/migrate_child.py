"""A process that migrates or restores a store and is killed on the way, again and again.

It forks a life for every attempt; the n-th dies at the n-th point that it reaches. What each died
at is printed, a line each, until one comes to its end.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable

import recollect
import recollect.store.postgres
from recollect import crashpoints
from recollect.clock import SystemClock
from recollect.config import Settings
from recollect.operations.backup import Restoring
from recollect.operations.migrating import migrate
from recollect.store.opening import open_store

ATTEMPTS_MAX = 60


def die_at(nth: int) -> Callable[[str], None]:
    reached = itertools.count(1)

    def kill(point: str) -> None:
        if next(reached) == nth:
            print(point, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


def migrate_one(source: str, target: str, nth: int) -> None:
    with recollect.open(source) as memory:
        other = open_store(target, memory.settings, memory.clock)
        crashpoints.arm(die_at(nth))
        migrate(memory.store, other)
        crashpoints.arm(None)
        other.close()


def restore_one(source: str, target: str, nth: int) -> None:
    crashpoints.arm(die_at(nth))
    Restoring(source, Settings(), SystemClock()).restore(target, replace=True)
    crashpoints.arm(None)


LIVES = {"migrate": migrate_one, "restore": restore_one}


def main(life: str, source: str, target: str) -> int:
    for nth in range(1, ATTEMPTS_MAX):
        child = os.fork()
        if child == 0:
            LIVES[life](source, target, nth)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if life == "restore":
            recollect.open(target).close()  # whatever happened, it is a store
        if status != -signal.SIGKILL:
            return status
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
