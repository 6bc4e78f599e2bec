"""The process a hook runs in: where its store and its files are, its deadline, its log, its rest.

A hook never keeps an agent waiting beyond its deadline, and never fails where the agent sees it. An
agent calls from whatever it works on. What is named from there would be another place each time, in
the middle of somebody's project: only what an option says itself may be.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Self
from urllib.parse import quote

from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.hooks.events import Event
from recollect.importers.projects import project_of


def project(event: Event) -> str | None:
    """The project of an event; an agent that does not name its directory calls from there."""
    return project_of(event.directory or str(Path.cwd()))


def _file_of(address: str) -> tuple[str, bool]:
    """The path of a store that is a file, or nothing; and whether it is named by a URL."""
    scheme, separator, path = address.partition(":///")
    if separator and scheme == "sqlite":
        return "" if path == ":memory:" else path, True
    return "" if "://" in address or address == ":memory:" else address, False


def is_relative(address: str) -> bool:
    """Whether it depends on the working directory which store is meant."""
    path, is_url = _file_of(address)
    if is_url:
        return path != "" and not path.startswith(("/", "%2F", "%2f", "~"))
    return path != "" and not Path(path).expanduser().is_absolute()


def absolute(address: str) -> str:
    """The same store, named so that it is found from anywhere."""
    path, is_url = _file_of(address)
    if is_url:
        return f"sqlite:///{quote(str(Path.cwd()))}/{path}" if is_relative(address) else address
    return str(Path(path).expanduser().absolute()) if path else address


def expect_one_place(settings: Settings) -> None:
    """InvalidSetting: there would be a store, or files of hooks, wherever an agent works."""
    names = {"data_dir": settings.data_dir}
    if settings.store is not None:
        names["store"] = settings.store
    elif settings.sqlite_path is not None:
        names["sqlite_path"] = str(settings.path())
    for name, value in names.items():
        origin = settings.origins.get(name, "")
        if value and origin != "argument" and is_relative(value):
            raise InvalidSetting(
                f"{name} ({origin}) is a relative path, and an agent calls from wherever it works: "
                "nothing is told or kept; name the whole path"
            )


def log_folder(settings: Settings | None, environment: Mapping[str, str]) -> Path | None:
    """Where to say what went wrong, also with settings that cannot be read."""
    try:
        if settings is not None and not is_relative(settings.data_dir):
            return data_folder(settings)
        named = environment.get("RECOLLECT_DATA_DIR")
        if named and not is_relative(named):
            return Path(named).expanduser()
        return data_folder(Settings())
    except RuntimeError:  # without a home there is no place that is known by itself
        return None


def data_folder(settings: Settings) -> Path | None:
    """Where hooks may keep files; nowhere when memory is off, or where nobody is at home."""
    try:
        return Path(settings.data_dir).expanduser() if settings.data_dir else None
    except RuntimeError:
        return None


def hook_folder(settings: Settings) -> Path | None:
    """What they keep for each conversation."""
    folder = data_folder(settings)
    return None if folder is None else folder / "hooks"


def token(*parts: str) -> str:
    """A name for a file there, for any texts."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode(errors="surrogatepass"))
    return digest.hexdigest()


IDS_MAX = 500
FILE_BYTES_MAX = 200_000


class ShownIds:
    """The ids of what stood in the blocks of one conversation."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._path = None if folder is None else folder / f"{name}.json"

    def ids(self) -> list[str]:
        """In the order in which they were told; none where that cannot be read."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                told = json.loads(file.read(FILE_BYTES_MAX))
        except (OSError, ValueError, RecursionError):
            return []
        return [each for each in told if isinstance(each, str)] if isinstance(told, list) else []

    def keep(self, ids: Iterable[str]) -> None:
        """Remember these, and no others."""
        if self._path is None:
            return
        kept = list(dict.fromkeys(ids))[-IDS_MAX:]
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            aside = self._path.with_suffix(f".{os.getpid()}")
            aside.write_text(json.dumps(kept), encoding="utf-8")
            aside.replace(self._path)

    def forget(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)


LAST_WORDS_SECONDS = 0.2


def _leave() -> None:
    os._exit(0)


class Deadline:
    """Watches from a thread of its own, which nothing that the others wait for can stop."""

    def __init__(
        self,
        seconds: float,
        last_words: Callable[[], None],
        leave: Callable[[], None] = _leave,
    ) -> None:
        self._last_words = last_words
        self._leave = leave
        self._lock = threading.Lock()
        self._is_over = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def speak(self, say: Callable[[], None]) -> bool:
        """Say something, unless it is too late for that."""
        with self._lock:
            if self._is_over:
                return False
            say()
            return True

    def _end(self) -> None:
        # An answer on its way out is short; one that nobody takes must not hold us here.
        is_ours = self._lock.acquire(timeout=LAST_WORDS_SECONDS)
        self._is_over = True
        try:
            # A log on a disk that hangs is no reason to stay either.
            words = threading.Thread(target=self._said_quietly, daemon=True)
            words.start()
            words.join(LAST_WORDS_SECONDS)
        finally:
            if is_ours:
                self._lock.release()
            self._leave()

    def _said_quietly(self) -> None:
        with contextlib.suppress(OSError):
            self._last_words()


LOCKS_MAX = 200  # files of sessions that nobody has touched for longest go first


def send(arguments: Sequence[str], payload: bytes, environment: Mapping[str, str]) -> None:
    """Start `recollect` with these arguments, on its own; it reads the payload."""
    with tempfile.TemporaryFile() as given:  # whole before it starts, whatever becomes of us
        given.write(payload)
        given.seek(0)
        # -P: the agent's directory is somebody's project, and no place to import from.
        subprocess.Popen(
            [sys.executable, "-P", "-m", "recollect", *arguments],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )


@contextlib.contextmanager
def alone(folder: Path, name: str, *, waits: bool) -> Iterator[bool]:
    """Whether it is our turn, which ends with the process. One is at it and one is next.

    Who comes third is not needed: the next one has not begun, and reads what is new now as well.
    Those who have to wait get their turn in any case.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder / f"{name}.lock") as turn:
        if _locked(turn, waits=waits):
            yield True
            return
        with _opened(folder / f"{name}.next") as line:
            is_next = _locked(line, waits=False) and _locked(turn, waits=True)
        yield is_next


def tidy(folder: Path) -> None:
    """Delete the oldest files of a folder; a process that has one open keeps its copy."""
    with contextlib.suppress(OSError):
        by_age = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime)
        for path in by_age[:-LOCKS_MAX]:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield number
    finally:
        os.close(number)


def _locked(number: int, *, waits: bool) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


NAME = "hooks.log"
BYTES_MAX = 256 * 1024  # then it becomes the one before, and a new one begins
LINE_CHARS_MAX = 500


class Journal:
    """Adds lines to a file; without a folder, or where that fails, they are lost."""

    def __init__(self, folder: Path | None, agent: str, clock: Clock | None = None) -> None:
        self._path = None if folder is None else folder / NAME
        self._agent = agent
        self._clock = clock or SystemClock()

    def note(self, reason: str) -> str:
        """Write a line; it is also what comes back."""
        words = "".join(each if each.isprintable() else " " for each in reason)
        told = " ".join(words.split())[:LINE_CHARS_MAX]
        line = f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ} {self._agent} {os.getpid()} {told}"
        if self._path is not None:
            with contextlib.suppress(OSError, ValueError):  # ValueError: no file is called so
                _add(self._path, line)
        return line


def _add(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # One write of a short line at the end: those of two processes do not mix.
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(number).st_size
        os.write(number, f"{line}\n".encode(errors="backslashreplace"))
    finally:
        os.close(number)
    if size > BYTES_MAX:
        path.replace(path.with_name(f"{path.name}.1"))
