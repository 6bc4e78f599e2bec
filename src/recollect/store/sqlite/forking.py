"""Handles forks of a process that has SQLite files open: the child inherits no connection.

SQLite keeps in memory which locks a process holds on a file. A child inherits that memory but none
of the locks: a connection in it would believe itself protected, and be overwritten. So every file
is closed before a fork, and opened again when it is next used. A file that is in use for too long
stays open; the child may then not open it at all.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from threading import get_ident
from typing import NamedTuple, Protocol

from recollect.errors import StoreForked

WAIT_SECONDS = 2.0  # of a fork, for those who are at work on a file


class Inode(NamedTuple):
    """What a file is to SQLite, whatever it is called."""

    device: int
    number: int


class Forkable(Protocol):
    """What has SQLite files open."""

    @property
    def gate(self) -> Gate: ...

    def suspend(self) -> None:
        """Close everything, where nobody is at work any more."""
        ...

    def abandon(self) -> Inode | None:
        """Called in the child. The file that is open in the parent still, if one is."""
        ...


class Gate:
    """Counts the threads at work on a file, and keeps them out while the process forks.

    Entering is cheap, since every operation enters: a thread notes that it is inside before it
    looks whether the gate is shut; the one that shuts it does so before it looks who is inside.
    """

    __slots__ = ("_inside", "_is_shut", "_turn")

    def __init__(self) -> None:
        self._turn = threading.Condition(threading.Lock())
        self._inside: dict[int, int] = {}  # threads, and how often each has come in
        self._is_shut = False

    def __enter__(self) -> None:
        thread, inside = get_ident(), self._inside
        times = inside.get(thread, 0)
        inside[thread] = times + 1
        if self._is_shut and not times:  # a thread that is inside may enter again: it is waited for
            self._wait_outside(thread)

    def __exit__(self, *_: object) -> None:
        thread, inside = get_ident(), self._inside
        times = inside[thread]
        if times > 1:
            inside[thread] = times - 1
            return
        del inside[thread]
        if self._is_shut:
            with self._turn:
                self._turn.notify_all()

    def _wait_outside(self, thread: int) -> None:
        with self._turn:
            while self._is_shut:
                self._inside.pop(thread, None)
                self._turn.notify_all()
                self._turn.wait()
            self._inside[thread] = 1

    def shut(self) -> bool:
        """Let no thread in, and wait for those inside; false: they took too long."""
        with self._turn:
            self._is_shut = True
            if get_ident() in self._inside:
                return False  # the thread that forks is at work on the file itself
            return self._turn.wait_for(lambda: not self._inside, WAIT_SECONDS)

    def open(self) -> None:
        with self._turn:
            self._is_shut = False
            self._turn.notify_all()


def watch(database: Forkable) -> None:
    """See to it that forks do no harm to what a database is about to open."""
    with _forks:
        _watched.add(database)


def refuse_inherited(path: Path) -> None:
    """Keep a child from opening what its parent had open when it forked."""
    if _inherited and inode_of(path) in _inherited:
        raise in_use(str(path))


def in_use(location: str) -> StoreForked:
    return StoreForked(
        f"{location} was in use when this process was forked, and cannot be opened safely in the "
        "child; start processes with the method 'spawn', or fork before the store is opened"
    )


def inode_of(path: Path) -> Inode | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return Inode(found.st_dev, found.st_ino)


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_inherited: set[Inode] = set()
_forks = threading.Lock()  # one at a time: nobody opens again what another is about to inherit
_shut: list[Forkable] = []


def _before_fork() -> None:
    _forks.acquire()
    _shut.extend(_watched)  # none of them goes before the fork is over
    for database in _shut:
        if database.gate.shut():
            database.suspend()


def _after_fork_in_parent() -> None:
    for database in _shut:
        database.gate.open()
    _shut.clear()
    _forks.release()


def _after_fork_in_child() -> None:
    if _forks.locked():
        _forks.release()
    _shut.clear()
    found = {database.abandon() for database in _watched}
    _inherited.update(inode for inode in found if inode is not None)
    _watched.clear()  # they are the parent's


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
