"""N7 and P3 under kill -9: an import dies at every point, and the next one goes on behind it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import recollect
from recollect.clock import ManualClock
from recollect.importers.generic import GenericJsonl
from recollect.importers.running import Importing
from tests.crash.import_child import ImportChildren
from tests.crash.worker_child import EPOCH, SETTINGS
from tests.hosted_agents import SPACE

KILLED = -signal.SIGKILL
REACHED_MAX = 200  # far above how many points one life passes
MUST = {"key.created", "import.noted", "append.sequenced", "append.inserted"}
MUST |= {"write.committing", "write.committed"}
MESSAGES = 8


def write_log(path: Path, session: str) -> list[str]:
    said = [f"{session} says {number}" for number in range(MESSAGES)]
    lines = [
        {"session": session, "id": f"{session}-{number}", "role": "user", "content": text}
        for number, text in enumerate(said)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return said


def words(memory: recollect.Memory, session: str) -> list[str]:
    found = memory.space(SPACE).find_session(("jsonl", session))
    return [] if found is None else [record.content for record in found.all()]


def test_no_moment_of_an_import_is_a_bad_one_to_die_at(
    durable_store_url: str, tmp_path: Path
) -> None:
    died_at: list[str] = []
    with (
        ImportChildren(tmp_path, durable_store_url, SETTINGS) as children,
        recollect.open(durable_store_url, settings=SETTINGS, clock=ManualClock(EPOCH)) as memory,
    ):
        for nth in range(1, REACHED_MAX):
            session = f"session-{nth}"
            log = tmp_path / f"{session}.jsonl"
            said = write_log(log, session)
            order = {"nth": nth, "point": "", "log": str(log), "now": EPOCH.isoformat()}
            child = children.start("import", **order)
            assert children.wait(child.pid) in (0, KILLED), child.said("trace")
            died = child.said("died")
            stored = words(memory, session)
            assert stored == said[: len(stored)], died
            Importing(memory, SPACE, GenericJsonl()).run([log])
            assert words(memory, session) == said, died
            if not died:
                break
            died_at += died
        else:
            raise AssertionError("no life ever passed")
    print(f"died {len(died_at)} times: {sorted(set(died_at))}")
    assert set(died_at) >= MUST
