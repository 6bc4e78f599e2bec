"""What every test can ask for: fresh stores on both databases, and one PostgreSQL per test run.

The process that runs the session (with pytest-xdist the controller, otherwise the only one) starts
the server; the workers get its URL. Without a server the tests that need it are skipped with the
reason, unless CI is set: then it is an error.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import hypothesis
import psycopg
import pytest

from tests.kept_connections import keep_connections
from tests.postgres_schemas import Schemas
from tests.postgres_server import SETTINGS_KILLABLE, PostgresServer, PostgresUnavailable, url_with
from tests.sqlite_stores import copy_stores_in_memory, put_empty_store

pytest.register_assert_rewrite("recollect_conformance")
hypothesis.settings.register_profile("test", deadline=None, print_blob=True)
hypothesis.settings.register_profile(
    "torture", deadline=None, print_blob=True, max_examples=2_000, stateful_step_count=200
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPostgres:
    """The run's PostgreSQL: its URL, or else the reason why there is none."""

    url: str = ""
    problem: str = ""


MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 4 * 2**30  # a whole run leaves a tenth of it

SHARED_POSTGRES = pytest.StashKey[SharedPostgres]()


class WorkerNode(Protocol):
    """What this file needs of pytest-xdist's handle on a worker."""

    config: pytest.Config
    workerinput: dict[str, object]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-postgres", action="store_true", help="skip the tests that need a PostgreSQL server"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    _keep_files_in_memory(config)
    # A job in the background inherits an ignored Ctrl-C, and would hand it on to what it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Whatever the machine's default: every worker and every process that a test starts would
    # compile and rewrite the same modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    hypothesis.settings.load_profile("torture" if _torture() else "test")


@pytest.hookimpl(wrapper=True)
def pytest_sessionstart(session: pytest.Session) -> Iterator[None]:
    # A wrapper, because the workers and the report's header come to life in this very hook.
    config = session.config
    config.stash[SHARED_POSTGRES] = _handed_down(config) or _start_shared_postgres(config)
    return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerNode) -> None:
    shared = node.config.stash[SHARED_POSTGRES]
    node.workerinput["postgres"] = (shared.url, shared.problem)


def pytest_report_header(config: pytest.Config) -> str | None:
    shared = config.stash.get(SHARED_POSTGRES, None)
    if shared is None:
        return None
    torture = "on" if _torture() else "off (RECOLLECT_TORTURE)"
    return f"postgres: {shared.problem or 'started for this run'}; torture: {torture}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # First, so that -m sees the marks this adds.
    for item in items:
        if "postgres_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgres)
    if not _torture():
        tortures = [item for item in items if item.get_closest_marker("torture")]
        items[:] = [item for item in items if not item.get_closest_marker("torture")]
        config.hook.pytest_deselected(items=tortures)


def _keep_files_in_memory(config: pytest.Config) -> None:
    """Where nobody looks at them afterwards and there is room: no test is about a real disk.

    A killed process loses nothing that it wrote, to either kind, and power cuts are made up.
    """
    is_worker, is_chosen = hasattr(config, "workerinput"), config.option.basetemp is not None
    if not os.environ.get("CI") or _torture() or is_worker or is_chosen or not _has_room(MEMORY):
        return
    directory = tempfile.mkdtemp(prefix="recollect-", dir=MEMORY)
    config.option.basetemp = directory
    config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))


def _has_room(directory: Path) -> bool:
    return directory.is_dir() and shutil.disk_usage(directory).free > MEMORY_BYTES_MIN


def _torture() -> bool:
    return bool(os.environ.get("RECOLLECT_TORTURE"))


def _handed_down(config: pytest.Config) -> SharedPostgres | None:
    workerinput = getattr(config, "workerinput", None)
    if workerinput is None:
        return None
    url, problem = cast("tuple[str, str]", workerinput["postgres"])
    return SharedPostgres(url=url, problem=problem)


def _start_shared_postgres(config: pytest.Config) -> SharedPostgres:
    if config.getoption("collectonly"):
        return SharedPostgres(problem="not started, the tests are only collected")
    if config.getoption("no_postgres"):
        return _without_postgres("not started (--no-postgres)")
    try:
        server = PostgresServer()
    except PostgresUnavailable as error:
        return _without_postgres(f"not available: {error}")
    config.add_cleanup(server.close)
    return SharedPostgres(url=server.url)


def _without_postgres(problem: str) -> SharedPostgres:
    if os.environ.get("CI"):
        message = f"CI is set, and PostgreSQL is {problem}"
        raise pytest.UsageError(message)
    return SharedPostgres(problem=problem)


@pytest.fixture(scope="session")
def postgres_url(pytestconfig: pytest.Config) -> str:
    """The URL of the run's PostgreSQL, as its superuser. Do not stop it; see own_postgres."""
    shared = pytestconfig.stash[SHARED_POSTGRES]
    if shared.problem:
        pytest.skip(f"PostgreSQL is {shared.problem}")
    return shared.url


@pytest.fixture
def postgres_schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that does not exist yet and is gone after the test."""
    name = f"t_{secrets.token_hex(8)}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        # A test that failed may have left a transaction open, which would keep the schema for ever.
        connection.execute("SET lock_timeout = '10s'")
        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE'.encode())


@pytest.fixture
def postgres_store_url(postgres_url: str, postgres_schema: str) -> str:
    """A fresh store on the run's PostgreSQL."""
    return url_with(postgres_url, schema=postgres_schema)


@pytest.fixture(scope="session")
def postgres_schemas(postgres_url: str) -> Iterator[Schemas]:
    schemas = Schemas(postgres_url)
    yield schemas
    schemas.close()


@pytest.fixture
def lent_store_url(postgres_schemas: Schemas) -> Iterator[str]:
    """A store on the run's PostgreSQL that holds nothing; another test may have used it before."""
    name = postgres_schemas.lend()
    yield postgres_schemas.url(name)
    postgres_schemas.take_back(name)


@pytest.fixture(scope="session")
def partitioned_schemas(postgres_url: str) -> Iterator[Schemas]:
    schemas = Schemas(postgres_url, partitions="2")
    yield schemas
    schemas.close()


@pytest.fixture
def partitioned_store_url(partitioned_schemas: Schemas) -> Iterator[str]:
    """The same in hash partitions by space."""
    name = partitioned_schemas.lend()
    yield partitioned_schemas.url(name)
    partitioned_schemas.take_back(name)


@pytest.fixture(scope="session", autouse=True)
def stores_in_memory_are_copied() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        copy_stores_in_memory(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def connections_to_lent_stores_are_kept() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        keep_connections(patch)
        yield


@pytest.fixture
def lent_store_path(tmp_path: Path) -> Path:
    """A file with a store that holds nothing."""
    path = tmp_path / "memory.db"
    put_empty_store(path)
    return path


@pytest.fixture(
    params=["sqlite-file", "sqlite-memory", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def store_url(request: pytest.FixtureRequest) -> str:
    """An empty store, on each kind in turn; the file does not wait for the disk."""
    match request.param:
        case "sqlite-file":
            return f"sqlite:///{request.getfixturevalue('lent_store_path')}?synchronous=off"
        case "sqlite-memory":
            return ":memory:"
        case _:
            return str(request.getfixturevalue("lent_store_url"))


@pytest.fixture(params=["sqlite-file", pytest.param("postgres", marks=pytest.mark.postgres)])
def durable_store_url(request: pytest.FixtureRequest) -> str:
    """An empty store that outlives the process, on each kind in turn, with default durability."""
    if request.param == "sqlite-file":
        return f"sqlite:///{request.getfixturevalue('lent_store_path')}"
    return str(request.getfixturevalue("lent_store_url"))


@pytest.fixture(params=["sqlite-file", pytest.param("postgres", marks=pytest.mark.postgres)])
def new_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same where there is nothing yet: no schema either, for tests that are about making it."""
    if request.param == "sqlite-file":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return str(request.getfixturevalue("postgres_store_url"))


@pytest.fixture(scope="module")
def own_postgres(postgres_url: str) -> Iterator[PostgresServer]:
    """A PostgreSQL of the module's own, to be stopped, started and killed at will.

    It needs the shared one only to be skipped for the same reason.
    """
    server = PostgresServer(SETTINGS_KILLABLE)
    yield server
    server.close()
