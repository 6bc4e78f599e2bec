"""P6: kill -9 at every step of a publication, while somebody reads: always one whole generation.

And at every step of a load: what was loaded is loaded once, and the next edit is one of that.
This file is also the program that publishes or loads, and dies. One process is warm and forks a
child for each life, which is killed at its nth step: before any operation on files, and within any
write.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import pytest

import recollect
import recollect.documents.publish
from recollect.documents.tree import Documents

STEPS_MAX = 400
READS_MIN = 20
EVENTS = frozenset(
    {"open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir", "os.listdir"}
    | {"fcntl.flock", "ctypes.dlopen"}
)
MANIFEST = ".recollect.json"


# the program


class Death:
    """Ends this process at its nth step."""

    def __init__(self, nth: int) -> None:
        self._left = nth
        self._write, self._fsync = os.write, os.fsync

    def arm(self) -> None:
        sys.addaudithook(lambda event, _arguments: self._step() if event in EVENTS else None)
        os.write = self._torn  # type: ignore[assignment]
        os.fsync = self._synced  # type: ignore[assignment]

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def _torn(self, fd: int, data: memoryview) -> int:
        if self._left == 1:
            self._write(fd, data[: len(data) // 2])
        self._step()
        return self._write(fd, data)

    def _synced(self, fd: int) -> None:
        self._step()
        self._fsync(fd)


def live(url: str, verb: str, directory: str, nth: int) -> NoReturn:
    code = 1
    try:
        with recollect.open(url) as memory:
            documents = memory.space().documents
            Death(nth).arm()
            getattr(documents, verb)(directory)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def warm_up() -> None:
    """Load what is loaded when it is first used, so that no life takes its steps there."""
    with tempfile.TemporaryDirectory() as directory, recollect.open(":memory:") as memory:
        documents = memory.space().documents
        documents.write("work", "warm")
        documents.publish(Path(directory) / "out")
        documents.load(Path(directory) / "out")


def serve(url: str) -> None:
    warm_up()
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            live(url, order["verb"], order["directory"], order["nth"])
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(status, flush=True)


def look(directory: str, said: str) -> None:
    """Read the directory again and again until told to stop; say how often, and what was amiss."""
    reads, again, generations = 0, 0, set()
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    problem = ""
    while not stopped and not problem:
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            problem = repr(error)
            break
        try:
            generations.add(read_generation(fd))
            reads += 1
        except (OSError, ValueError, AssertionError) as error:
            # Whoever is overtaken opens the directory again; whoever is not has seen a half one.
            if Path(directory).stat().st_ino == os.fstat(fd).st_ino:
                problem = repr(error)
            again += 1
        finally:
            os.close(fd)
    report = {"reads": reads, "again": again, "generations": len(generations), "problem": problem}
    Path(said).write_text(json.dumps(report))


def read_generation(folder: int) -> int:
    """The generation in an open directory, after a look at all of it."""
    said = json.loads(read_file(folder, MANIFEST))
    for each in said["files"]:
        assert sha256(read_file(folder, each["path"])).hexdigest() == each["sha256"], each["path"]
    return int(said["generation"])


def read_file(folder: int, name: str) -> bytes:
    with open(name, "rb", opener=lambda path, flags: os.open(path, flags, dir_fd=folder)) as file:
        return file.read()


# the test


class Publisher:
    """The test's side of the program."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "serve", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def publish(self, directory: Path, nth: int = 0) -> int:
        return self._ordered("publish", directory, nth)

    def load(self, directory: Path, nth: int = 0) -> int:
        return self._ordered("load", directory, nth)

    def _ordered(self, verb: str, directory: Path, nth: int) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"verb": verb, "directory": str(directory), "nth": nth}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def documents(url: str) -> Iterator[Documents]:
    with recollect.open(url) as memory:
        made = memory.space().documents
        made.write("people", "All of them.")
        made.write("people/Ana", "Likes tea.")
        made.write("work", "round 0")
        yield made


@pytest.fixture
def publisher(url: str, documents: Documents) -> Iterator[Publisher]:
    made = Publisher(url)
    with contextlib.closing(made):
        yield made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    made = tmp_path / "published"
    made.mkdir()
    return made / "out"


@contextlib.contextmanager
def reader(directory: Path, tmp_path: Path) -> Iterator[dict[str, Any]]:
    said: dict[str, Any] = {}
    report = tmp_path / "report.json"
    process = subprocess.Popen([sys.executable, __file__, "look", str(directory), str(report)])
    try:
        yield said
    finally:
        process.terminate()
        process.wait()
    said |= json.loads(report.read_text())


def generation(directory: Path) -> int:
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return read_generation(folder)
    finally:
        os.close(folder)


def test_readers_see_one_whole_generation_whenever_a_publication_dies(
    publisher: Publisher, documents: Documents, target: Path, tmp_path: Path
) -> None:
    assert publisher.publish(target) == 0
    published = 1
    with reader(target, tmp_path) as said:
        for nth in range(1, STEPS_MAX):
            documents.write("work", f"round {nth}")
            documents.write("people/Bob", "Comes and goes.")
            code = publisher.publish(target, nth)
            assert code in (0, -signal.SIGKILL)
            assert generation(target) in (published, published + 1)
            documents.delete("people/Bob")
            assert publisher.publish(target) == 0
            published = generation(target)
            assert f"round {nth}" in (target / "work.md").read_text()
            assert [each.name for each in target.parent.iterdir()] == ["out"]
            if code == 0:
                break
    print(f"died {nth - 1} times; {said}")
    assert code == 0, "no life ever passed"
    assert nth > READS_MIN, "it never died"
    assert said["problem"] == ""
    assert said["reads"] > READS_MIN
    assert said["generations"] > 1


def test_a_first_publication_that_dies_leaves_a_whole_one_or_none(
    publisher: Publisher, documents: Documents, target: Path, tmp_path: Path
) -> None:
    seen = {True: 0, False: 0}
    for nth in range(1, STEPS_MAX):
        code = publisher.publish(target, nth)
        assert code in (0, -signal.SIGKILL)
        seen[target.exists()] += 1
        if target.exists():
            assert generation(target) == 1
        assert publisher.publish(target) == 0
        assert generation(target) == 1
        assert [each.name for each in target.parent.iterdir()] == ["out"]
        target.rename(tmp_path / f"done-{nth}")
        if code == 0:
            break
    print(f"died {nth - 1} times; there was one after {seen[True]}")
    assert code == 0, "no life ever passed"
    assert seen[False] > 0


def test_a_load_that_dies_is_repeated_without_harm(
    publisher: Publisher, documents: Documents, target: Path
) -> None:
    """D8: whether it died before or after it was committed, or noted."""
    assert publisher.publish(target) == 0
    died: set[bool] = set()
    for nth in range(1, STEPS_MAX):
        before = documents.read("work").version
        (target / "work.md").write_text(f"by hand {nth}\n")
        (target / f"new-{nth}.md").write_text("new\n")
        code = publisher.load(target, nth)
        assert code in (0, -signal.SIGKILL)
        died.add(documents.read("work").version > before)
        assert publisher.load(target) == 0
        assert documents.load(target).is_nothing
        work = documents.read("work")
        assert (work.body, work.version) == (f"by hand {nth}", before + 1)
        assert documents.read(f"new-{nth}").version == 1
        (target / "work.md").write_text(f"by hand again {nth}\n")
        (target / f"new-{nth}.md").unlink()
        loading = documents.load(target)
        assert (loading.changed, loading.conflicts) == (("~/memory/work",), ())
        assert loading.deleted == (f"~/memory/new-{nth}",)
        if code == 0:
            break
    print(f"died {nth - 1} times")
    assert code == 0, "no life ever passed"
    assert died == {True, False}
    assert publisher.publish(target) == 0
    assert generation(target) == 2
    assert [each.name for each in target.parent.iterdir()] == ["out"]


def test_a_conflict_is_not_lost_by_a_load_that_dies(
    publisher: Publisher, documents: Documents, target: Path
) -> None:
    """D8: the file is kept as a copy before it is noted, and published over after that."""
    assert publisher.publish(target) == 0
    for nth in range(1, STEPS_MAX):
        text = f"by hand {nth}\n"
        (target / "work.md").write_text(text)
        documents.append("work", "by somebody else")
        code = publisher.load(target, nth)
        assert code in (0, -signal.SIGKILL)
        assert publisher.load(target) == 0
        assert documents.load(target).is_nothing
        published = documents.publish(target)
        assert "by hand" not in (target / "work.md").read_text()
        copies = {(Path(each) / "work.md") for each in published.kept_aside}
        assert text in {copy.read_text() for copy in copies if copy.exists()}
        if code == 0:
            break
    print(f"died {nth - 1} times")
    assert code == 0, "no life ever passed"
    assert nth > 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", address]:
            serve(address)
        case ["look", place, report]:
            look(place, report)
        case _:
            sys.exit("serve ADDRESS, or look DIRECTORY REPORT")
