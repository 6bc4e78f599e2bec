"""Use after fork and after close: typed errors, and whoever still owns the store goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import recollect
from recollect.errors import StoreClosed, StoreForked
from tests.crash.soundness import assert_store_is_sound

SPACE = "s"

Uses = dict[str, Callable[[], object]]


def every_use(memory: recollect.Memory, session: recollect.Session) -> Uses:
    """Every public way to reach the store."""
    space = memory.space(SPACE)
    session_id = session.id
    return {
        "append": lambda: session.append("user", "late"),
        "append_many": lambda: session.append_many([{"role": "user", "content": "late"}]),
        "recent": session.recent,
        "all": session.all,
        "all rotations": lambda: session.all(rotations=True),
        "count": session.count,
        "len": lambda: len(session),
        "max_seq": lambda: session.max_seq,
        "count_since": lambda: session.count_since(0),
        "state": lambda: session.state,
        "id": lambda: session.id,
        "mode": lambda: session.mode,
        "set_mode": lambda: session.set_mode("disabled"),
        "summary": lambda: session.summary,
        "set_summary": lambda: session.set_summary("late"),
        "purge": session.purge,
        "reset": session.reset,
        "compact": session.compact,
        "sleep": session.sleep,
        "end": session.end,
        "session": lambda: space.session("new", agent="a"),
        "find_session": lambda: space.find_session("k", agent="a"),
        "get": lambda: space.sessions.get(session_id),
        "list": space.sessions.list,
        "invalidate": lambda: space.sessions.invalidate(session_id, 1),
        "find_invalidated": space.sessions.find_invalidated,
        "mark_processed": lambda: space.sessions.mark_processed(session_id, 1, 1),
        "sessions.max_seq": lambda: space.sessions.max_seq(session_id),
        "sessions.count_since": lambda: space.sessions.count_since(session_id, 0),
        "records": lambda: space.sessions.records(session_id),
        "ranges": lambda: space.sessions.ranges(session_id),
        "spaces": memory.spaces,
        "sweep_idle": memory.sweep_idle,
        "status": memory.status,
    }


def not_refused(uses: Uses, refusal: type[recollect.RecollectError], advice: str) -> list[str]:
    """The uses that did not raise what they should have raised."""
    wrong = []
    for name, use in uses.items():
        try:
            use()
        except refusal as error:
            if advice not in str(error):
                wrong.append(f"{name}: {error}")
        except Exception as error:
            wrong.append(f"{name}: {error!r}")
        else:
            wrong.append(f"{name}: no error")
    return wrong


def test_every_use_after_close_is_refused(store_url: str) -> None:
    memory = recollect.open(store_url)
    session = memory.space(SPACE).session("k", agent="a")
    session.append("user", "one")
    uses = every_use(memory, session)
    memory.close()
    assert not_refused(uses, StoreClosed, "open it again") == []
    memory.close()


def in_a_child(
    job: Callable[[], list[str]], meanwhile: Callable[[], object] = lambda: None
) -> None:
    """Run a job in a forked child, and another one beside it; fail with what the child reports."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads is the point
        pid = os.fork()
    if pid == 0:
        try:
            report = "\n".join(job())
        except BaseException:
            report = traceback.format_exc()
        os.write(writing, report.encode()[:60_000])
        os._exit(0)
    os.close(writing)
    meanwhile()
    with os.fdopen(reading) as pipe:
        report = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert report == ""


def test_every_use_in_a_forked_child_is_refused_and_the_parent_goes_on(store_url: str) -> None:
    with recollect.open(store_url) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        session.append("user", "before")
        uses = every_use(memory, session)

        def child() -> list[str]:
            wrong = not_refused(uses, StoreForked, "open it again in the child")
            memory.close()  # of no effect here, as it is not the child's to close
            return wrong

        in_a_child(child)
        session.append("user", "after")
        assert assert_store_is_sound(memory, SPACE, stored=["before", "after"]) == 2


def test_a_forked_child_may_open_the_store_again(durable_store_url: str) -> None:
    with recollect.open(durable_store_url) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        stored = ["before"]
        session.append("user", "before")

        def child() -> list[str]:
            with recollect.open(durable_store_url) as own:
                for number in range(20):
                    text = f"child {number}"
                    own.space(SPACE).session("k", agent="a").append("user", text)
                assert_store_is_sound(own, SPACE, stored=["before"])
            return []

        in_a_child(child)
        stored += [f"child {number}" for number in range(20)]
        for number in range(20):
            session.append("user", f"parent {number}")
            stored.append(f"parent {number}")
        assert assert_store_is_sound(memory, SPACE, stored=stored) == 41
    with recollect.open(durable_store_url) as memory:
        assert assert_store_is_sound(memory, SPACE, stored=stored) == 41


def test_what_a_forked_child_stores_outlives_the_parents_close(durable_store_url: str) -> None:
    """M8: the parent believes to be the last to close the file; the child must have locked it."""
    memory = recollect.open(durable_store_url)
    memory.space(SPACE).session("k", agent="a").append("user", "before")
    opened, tell_opened = os.pipe()
    closed, tell_closed = os.pipe()

    def child() -> list[str]:
        session = recollect.open(durable_store_url).space(SPACE).session("k", agent="a")
        session.append("user", "beside the parent")
        os.write(tell_opened, b".")
        assert os.read(closed, 1) == b"."
        session.append("user", "after the parent")
        return []

    def close() -> None:
        os.close(tell_opened)  # so that a child that fails is not waited for
        os.read(opened, 1)
        memory.close()
        os.write(tell_closed, b".")

    in_a_child(child, close)
    for end in (opened, closed, tell_closed):
        os.close(end)
    stored = ["before", "beside the parent", "after the parent"]
    with recollect.open(durable_store_url) as memory:
        assert assert_store_is_sound(memory, SPACE, stored=stored) == 3


def test_forks_beside_threads_that_write_and_read_lose_nothing(lent_store_path: Path) -> None:
    """M8: a fork waits for those who are at work, and they go on after it."""
    over = threading.Event()
    with recollect.open(lent_store_path) as memory, ThreadPoolExecutor(3) as threads:

        def write(thread: int) -> list[str]:
            session = memory.space(SPACE).session(f"thread {thread}", agent="a")
            said: list[str] = []
            while not over.is_set():
                said.append(session.append("user", f"{thread}/{len(said)}").content)
                assert session.recent(1)[0].content == said[-1]
            return said

        def child(name: str) -> list[str]:
            with recollect.open(lent_store_path) as own:
                own.space(SPACE).session("child", agent="a").append("user", name)
            return []

        child("first")  # and all is loaded: a fork during an import is Python's own trouble
        writing = [threads.submit(write, thread) for thread in range(3)]
        names = [f"child {number}" for number in range(4)]
        try:
            for name in names:
                in_a_child(partial(child, name))
        finally:
            over.set()
        stored = ["first", *names, *(text for each in writing for text in each.result())]
        assert_store_is_sound(memory, SPACE, stored=stored)


def test_a_file_that_is_at_work_when_the_process_forks_is_refused_to_the_child(
    lent_store_path: Path,
) -> None:
    """M8: it could not be closed before, and the child's locks on it would be none."""
    with recollect.open(lent_store_path) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        uses: Uses = {
            "append": lambda: session.append("user", "late"),
            "open": lambda: recollect.open(lent_store_path),
        }

        def fork_inside(_: object) -> None:
            in_a_child(lambda: not_refused(uses, StoreForked, "'spawn'"))

        memory.store._database.read(SPACE, fork_inside)  # type: ignore[attr-defined]
        session.append("user", "one")
        assert assert_store_is_sound(memory, SPACE, stored=["one"], absent=["late"]) == 1
        in_a_child(lambda: [] if recollect.open(lent_store_path).spaces() == [SPACE] else ["none"])


def test_a_fork_while_another_thread_writes_leaves_no_lock_behind(durable_store_url: str) -> None:
    """A lock that was held at the fork is never released in the child: nobody may wait for it."""
    with recollect.open(durable_store_url) as memory:
        session = memory.space(SPACE).session("k", agent="a")

        def fork_inside(_: object) -> None:
            in_a_child(lambda: not_refused({"append": append}, StoreForked, "in the child"))

        def append() -> None:
            session.append("user", "late")

        memory.store._database.write(SPACE, fork_inside)  # type: ignore[attr-defined]
        session.append("user", "one")
        assert assert_store_is_sound(memory, SPACE, stored=["one"], absent=["late"]) == 1


FORK_AND_EXIT = """
import os, sys, warnings
import recollect
warnings.simplefilter("ignore", DeprecationWarning)
memory = recollect.open(sys.argv[1])
session = memory.space("s").session("k", agent="a")
session.append("user", "before")
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
session.append("user", "after")
memory.close()
"""


def test_a_child_that_ends_in_good_order_takes_nothing_from_the_parent(
    durable_store_url: str,
) -> None:
    """It runs its exit handlers and collects its garbage, the parent's connections among it."""
    command = [sys.executable, "-c", FORK_AND_EXIT, durable_store_url]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    with recollect.open(durable_store_url) as memory:
        assert assert_store_is_sound(memory, SPACE, stored=["before", "after"]) == 2
