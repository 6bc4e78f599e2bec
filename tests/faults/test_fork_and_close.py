"""Use after fork and after close: typed errors, and whoever still owns the store goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable

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


def in_a_child(job: Callable[[], list[str]]) -> None:
    """Run a job in a forked child and fail with what it reports."""
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
