"""Eight threads that append to one file: the syncs they need, the appends they get done."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.bare import BareSqlite
from bench.report import Line
from bench.settings import Run
from bench.stores import SPACE, make_key, open_memory, sqlite_address
from bench.syncs import CountingVFS
from bench.texts import make_texts

THREADS = 8
GROUP = f"{THREADS} threads appending to one file, every append durable"

Append = Callable[[], object]


def measure_threads(run: Run) -> Iterator[Line]:
    """Syncs per append through a counting VFS; appends per second without one."""
    appends = run.scaled(400, 50)
    rounds = run.scaled(5, 1)
    counted = [_syncs_per_append(run, appends, number) for number in range(rounds)]
    wal, total = (statistics.median(values) for values in zip(*counted, strict=True))
    yield Line(
        group=GROUP,
        name="syncs per append",
        measured=wal,
        target=1 / 3,
        is_ratio=False,
        note=f"of the log; with checkpoints {total:.2f}; a thread alone and bare apsw: 1",
    )
    speeds = [_speeds(run, appends, number) for number in range(rounds)]
    eight, alone, bare = (max(values) for values in zip(*speeds, strict=True))
    yield Line(
        group=GROUP,
        name="appends per second, against one thread",
        measured=eight,
        limit=alone,
        unit="/s",
        note="higher is better",
    )
    yield Line(
        group=GROUP,
        name=f"appends per second, against bare apsw in {THREADS} threads",
        measured=eight,
        limit=bare,
        unit="/s",
        note="higher is better; a connection each, a sync each",
    )


def _syncs_per_append(run: Run, appends: int, number: int) -> tuple[float, float]:
    """Syncs of the log, and of all files, per append in the steady state."""
    vfs = CountingVFS(f"bench-counting-{number}")
    address = sqlite_address(run.directory / f"counted-{number}.db", vfs=vfs.name)
    with open_memory(address) as memory:
        sessions = [memory.space(SPACE).session(("thread", n)) for n in range(THREADS)]
        actions = [_appender(session.append) for session in sessions]
        _together(actions, 5)  # the log exists and has its header from here on
        vfs.syncs.clear()
        _together(actions, appends)
        wal, total = vfs.syncs["wal"], vfs.syncs.total()
    vfs.close()
    return wal / (appends * THREADS), total / (appends * THREADS)


def _speeds(run: Run, appends: int, number: int) -> tuple[float, float, float]:
    """Appends per second of eight threads, of one, and of eight with bare connections."""
    with open_memory(sqlite_address(run.directory / f"threads-{number}.db")) as memory:
        sessions = [memory.space(SPACE).session(("thread", n)) for n in range(THREADS)]
        actions = [_appender(session.append) for session in sessions]
        _together(actions, 5)
        eight = THREADS * appends / _together(actions, appends)
        alone = appends / _together(actions[:1], appends)
    return eight, alone, _bare_speed(run.directory / f"threads-bare-{number}.db", appends)


def _bare_speed(path: Path, appends: int) -> float:
    refs = [make_key(sqlite_address(path), f"thread:{n}") for n in range(THREADS)]
    bare = [BareSqlite(path, ref, synchronous="full") for ref in refs]
    texts = make_texts(THREADS)
    actions: list[Append] = [
        lambda b=b, text=text: b.append(text)  # type: ignore[misc]
        for b, text in zip(bare, texts, strict=True)
    ]
    _together(actions, 2)
    fewer = max(appends // 4, 10)  # they wait for each other's locks, in growing steps
    speed = THREADS * fewer / _together(actions, fewer)
    for connection in bare:
        connection.close()
    return speed


def _appender(append: Callable[[str, str], object]) -> Append:
    text = make_texts(1)[0]
    return lambda: append("user", text)


def _together(actions: list[Append], calls: int) -> float:
    """Run every action in a thread of its own, all starting at once; the seconds it took."""
    barrier = threading.Barrier(len(actions) + 1)
    failures: list[BaseException] = []

    def work(action: Append) -> None:
        barrier.wait()
        try:
            for _ in range(calls):
                action()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    barrier.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    if failures:
        raise failures[0]
    return elapsed
