"""A process that forks writers on request and lets a test kill them at any instant.

It has imported everything and opened nothing, so that a fork is a fresh process that costs a few
milliseconds. Reads one JSON object per line: {"start": {…}} forks a writer and answers its pid,
{"wait": pid} answers its wait status. A writer tells what it intends and what was acknowledged in a
journal of its own, one line per write(), which a kill -9 cannot take back.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg  # noqa: F401  # imported here once, so that no writer has to
import psycopg_pool  # noqa: F401

import recollect
import recollect.store.postgres
from recollect import crashpoints
from recollect.collection import Message
from recollect.documents.tree import Documents

SPACE = "crash"
AGENT = "assistant"
KEYS = ("telegram:1:main", "telegram:2:main", "slack:1:main")

Order = dict[str, Any]


class Journal:
    """What one writer says it did."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **entry: Any) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")

    def do(self, contents: list[str], write: Callable[[], object], key: str | None = None) -> None:
        self.write(intended=contents, key=key)
        write()
        self.write(acknowledged=contents)


def append_at_random(order: Order, journal: Journal) -> None:
    """Until killed: mostly appends to three sessions that all writers share, and all that marks."""
    choice = random.Random(order["seed"])
    with recollect.open(order["url"], settings=order["settings"]) as memory:
        space = memory.space(SPACE)
        sessions = [space.session(key, agent=AGENT) for key in KEYS]
        for key, contents in order["retries"]:
            journal.do(contents, partial(append_keyed, sessions[0], contents[0], key), key)
        for number in itertools.count():
            texts = [f"{order['name']}-{number}-{part}" for part in range(3)]
            session = choice.choice(sessions)
            match choice.choices(
                ("append", "many", "keyed", "reset", "compact", "end", "sleep", "process"),
                (12, 4, 6, 1, 1, 1, 1, 3),
            )[0]:
                case "append":
                    journal.do(texts[:1], partial(session.append, "user", texts[0]))
                case "many":
                    journal.do(texts, partial(session.append_many, messages(texts)))
                case "keyed":
                    key = f"key-{texts[0]}"
                    journal.do(texts[:1], partial(append_keyed, sessions[0], texts[0], key), key)
                case "reset":
                    session.reset()
                case "compact":
                    session.compact("what was said", retain=2)
                case "end":
                    session.end()
                case "sleep":
                    session.sleep()
                case "process":
                    process_marks(space)


def reach_every_point(order: Order, journal: Journal) -> None:
    """A life of a store that passes every crash point; killed at the n-th time it is at one."""
    left = itertools.count(order["nth"], -1)

    def die(name: str) -> None:
        if name == order["point"] and next(left) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    crashpoints.arm(die)
    name = order["name"]
    with recollect.open(order["url"], settings=order["settings"]) as memory:
        space = memory.space(SPACE)
        main = space.session(KEYS[0], agent=AGENT)
        journal.do([f"{name}-one"], partial(main.append, "user", f"{name}-one"))
        # With the one above exactly one more than the threshold: marked, and then processed.
        many = [f"{name}-many-{number}" for number in range(5)]
        journal.do(many, lambda: main.append_many(messages(many)))
        process_marks(space)
        # The same key and content in every life of the store: stored once, however often it dies.
        journal.do(["keyed"], lambda: append_keyed(main, "keyed", "the key"), "the key")
        main.set_summary("what was said")
        main.reset()
        journal.do([f"{name}-two"], lambda: main.append("user", f"{name}-two"))
        main.compact("what was said", retain=2)
        main.sleep()
        main.end()
        journal.do([f"{name}-three"], lambda: main.append("user", f"{name}-three"))
        main.set_mode("disabled")
        main.set_mode("enabled")
        other = space.session(KEYS[1], agent=AGENT)
        other.append("user", f"{name}-purged")
        other.purge()
        third = space.session(KEYS[2], agent=AGENT)
        third.append("user", f"{name}-forgotten")
        space.forget(session=third)
        memory.sweep_idle()
    crashpoints.arm(None)


def edit_documents(order: Order, journal: Journal) -> None:
    """Edits of every kind to one tree; killed at the n-th time it is at a point.

    What it says it appended to the hub is in the hub, line by line; a set of edits is on two pages.
    """
    left = itertools.count(order["nth"], -1)

    def die(name: str) -> None:
        if name == order["point"] and next(left) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    name = order["name"]
    with recollect.open(order["url"], settings=order["settings"]) as memory:
        documents = memory.space(SPACE).documents
        if documents.find("hub") is None:
            documents.write("hub", "the hub")
        documents.purge("kept")  # what earlier lives left, which was looked at
        crashpoints.arm(die)
        edits: tuple[Callable[[], object], ...] = (
            lambda: documents.write(f"{name}/page/below", f"to the [[hub]] from {name}"),
            lambda: documents.write(f"{name}/page", "again", links=["hub", "nowhere"]),
            lambda: documents.move(name, f"kept/{name}"),
            lambda: documents.move(f"{name}/page", f"kept/{name}/PAGE"),
            lambda: documents.delete(f"kept/{name}", below=True),
            lambda: documents.restore(f"kept/{name}"),
            lambda: documents.write(f"{name}/referrer", f"[[kept/{name}/page/below|it]]"),
            lambda: documents.delete(f"kept/{name}/page/below", references="unlink"),
            lambda: commit_pair(documents, name),
            lambda: documents.purge(f"{name}/referrer"),
        )
        for number, edit in enumerate(edits):
            edit()
            line = f"{name}-{number}"
            journal.do([line], partial(documents.append, "hub", line))
    crashpoints.arm(None)


def commit_pair(documents: Documents, name: str) -> None:
    """Two pages that are there together or not at all."""
    pair = documents.changeset()
    pair.write(f"{name}/one", "one of two")
    pair.write(f"{name}/two", "two of two", links=[f"{name}/one"])
    pair.commit()


def append_for_a_while(order: Order, journal: Journal) -> None:
    """Append as fast as it goes for some seconds, and report the slowest append."""
    with recollect.open(order["url"], settings=order["settings"]) as memory:
        sessions = [memory.space(SPACE).session(key, agent=AGENT) for key in KEYS]
        slowest, until = 0.0, time.monotonic() + order["seconds"]
        for number in itertools.count():
            text = f"{order['name']}-{number}"
            started = time.monotonic()
            if started > until:
                break
            # Every other one with a key, which is looked up before anything is written.
            sessions[number % 3].append("user", text, key=text if number % 2 else None)
            slowest = max(slowest, time.monotonic() - started)
            journal.write(acknowledged=[text])
    journal.write(slowest=slowest)


def open_and_append(order: Order, journal: Journal) -> None:
    with recollect.open(order["url"], settings=order["settings"]) as memory:
        session = memory.space(SPACE).session(KEYS[0], agent=AGENT)
        journal.do([order["name"]], lambda: session.append("user", order["name"]))
        journal.write(version=memory.status().store.schema_version)


def append_keyed(session: recollect.Session, text: str, key: str) -> None:
    session.append("user", text, key=key)


def messages(texts: list[str]) -> list[Message]:
    return [Message(message={"role": "user", "content": text}) for text in texts]


def process_marks(space: recollect.Space) -> None:
    for marked in space.sessions.find_invalidated(2):
        assert marked.invalidated_at is not None
        space.sessions.mark_processed(marked.id, marked.invalidated_at, marked.invalidated_at)


LIVES: dict[str, Callable[[Order, Journal], None]] = {
    "random": append_at_random,
    "points": reach_every_point,
    "documents": edit_documents,
    "storm": append_for_a_while,
    "open": open_and_append,
}


def live(order: Order, gate: int) -> int:
    journal = Journal(order["journal"])
    journal.write(born=os.getpid())
    try:
        os.read(gate, 1)  # ends when the test opens the gate for all
        LIVES[order["life"]](order, journal)
    except BaseException as error:
        journal.write(failed=repr(error), trace=traceback.format_exc())
        return 1
    journal.write(finished=True)
    return 0


def warm_up() -> None:
    """Load what is loaded when it is first used, so that no life has to."""
    with recollect.open(":memory:") as memory:
        memory.space(SPACE).session(KEYS[0], agent=AGENT).append("user", "warm")
        memory.space(SPACE).documents.write("hub", "warm")


def main() -> None:
    gate = int(sys.argv[1])
    warm_up()
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            pid = os.fork()
            if pid == 0:
                # Not sys.exit: this process is a copy and has nothing of its own to clean up.
                os._exit(live(order["start"], gate))
            answer = pid
        else:
            answer = os.waitpid(order["wait"], 0)[1]
        print(answer, flush=True)


if __name__ == "__main__":
    main()
