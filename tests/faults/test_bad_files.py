"""Files and schemas that are damaged, foreign, too new or forbidden: typed errors with advice."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg
import pytest

import recollect
from recollect.errors import NotAStore, SchemaTooNew, StoreCorrupt, StoreDenied, StoreError
from tests.crash.soundness import assert_store_is_sound
from tests.postgres_server import url_with

SEED = 20261115
PAGE_BYTES = 4096
NOBODY = 65534
RESTORE = re.compile("restore a backup|choose another path")


def fill(path: Path, records: int = 60) -> None:
    with recollect.open(path) as memory:
        for key in range(3):
            session = memory.space("s").session(f"k:{key}", agent="a")
            texts = [f"{key}-{n} ".ljust(600, ".") for n in range(records)]
            session.append_many([{"role": "user", "content": text} for text in texts])
            session.set_summary("what was said")
            session.compact(retain=3)


def read_all(path: Path) -> None:
    with recollect.open(path) as memory:
        assert_store_is_sound(memory, "s")
        for key in range(3):
            session = memory.space("s").session(f"k:{key}", agent="a")
            assert len(session.all(rotations=True)) == 60
            assert session.summary == "what was said"


@pytest.fixture(scope="module")
def sound_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    fill(path)
    read_all(path)
    return path


def damaged(sound_file: Path, directory: Path, offset: int, garbage: bytes) -> Path:
    path = directory / "damaged.db"
    content = bytearray(sound_file.read_bytes())
    content[offset : offset + len(garbage)] = garbage
    path.write_bytes(content)
    return path


def test_a_file_without_its_header_is_no_store(sound_file: Path, tmp_path: Path) -> None:
    path = damaged(sound_file, tmp_path, 0, b"\xff" * 16)
    with pytest.raises(NotAStore, match="choose another path"):
        recollect.open(path)


def test_every_damaged_page_is_found_or_does_not_matter(sound_file: Path, tmp_path: Path) -> None:
    pages = sound_file.stat().st_size // PAGE_BYTES
    advice: list[str] = []
    for page in range(pages):
        path = damaged(sound_file, tmp_path, page * PAGE_BYTES, b"\xa5" * PAGE_BYTES)
        try:
            read_all(path)
        except (StoreCorrupt, NotAStore) as error:
            advice.append(str(error))
        except AssertionError:
            continue  # an index that misses rows; every error that is raised has its type
    print(f"{len(advice)} of {pages} damaged pages were refused")
    assert len(advice) > pages // 3  # many a page is of an index that is not read here
    assert [said for said in advice if not RESTORE.search(said)] == []


def test_flipped_bytes_never_raise_anything_but_our_errors(
    sound_file: Path, tmp_path: Path
) -> None:
    print(f"seed {SEED}")
    choice = random.Random(SEED)
    size = sound_file.stat().st_size
    refused = 0
    for _ in range(150):
        offset = choice.randrange(100, size)
        path = damaged(sound_file, tmp_path, offset, choice.randbytes(choice.choice((1, 8, 64))))
        try:
            read_all(path)
        except recollect.RecollectError:
            refused += 1
        except AssertionError:
            continue  # a text that says something else; SQLite has no checksums
    print(f"{refused} of 150 were refused")


def test_a_file_that_was_cut_off_is_corrupt(sound_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    path.write_bytes(sound_file.read_bytes()[: 3 * PAGE_BYTES])
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        read_all(path)


def test_damage_that_appears_while_the_store_is_open_is_corrupt(
    sound_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(sound_file, path)
    size = path.stat().st_size
    with recollect.open(path) as memory:
        session = memory.space("s").session("k:0", agent="a")
        with path.open("r+b") as file:
            file.seek(PAGE_BYTES)
            file.write(b"\xa5" * (size - PAGE_BYTES))
        with pytest.raises(StoreCorrupt, match="restore a backup"):
            session.all(rotations=True)
        with pytest.raises(StoreCorrupt, match="restore a backup"):
            session.append("user", "one more")


def test_a_text_file_is_no_store_and_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Remember the milk.\n" * 200)
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="choose another path"):
        recollect.open(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_no_store_and_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE notes (body TEXT); INSERT INTO notes VALUES ('milk')")
    other.close()
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="choose another path"):
        recollect.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_a_file_that_is_refused_is_not_kept_open(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Remember the milk.\n" * 200)
    with pytest.raises(NotAStore) as caught:
        recollect.open(path)
    # The error is still there, and so are the frames it came through.
    assert caught.value.__traceback__ is not None
    assert not [c for c in apsw.connections() if c.filename == str(path)]


def test_another_programs_schema_is_no_store(
    postgres_url: str, postgres_schema: str, postgres_store_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_schema}".encode())
        connection.execute(f"CREATE TABLE {postgres_schema}.notes (body TEXT)".encode())
    with pytest.raises(NotAStore, match="schema=<name>"):
        recollect.open(postgres_store_url)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_is_refused_and_stays_as_it_was(
    postgres_url: str, postgres_schema: str, encoding: str
) -> None:
    def tables(database: str) -> list[tuple[object, ...]]:
        with psycopg.connect(postgres_url, dbname=database) as connection:
            query = "SELECT nspname FROM pg_namespace UNION SELECT relname FROM pg_class"
            return sorted(connection.execute(query).fetchall())

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {postgres_schema} ENCODING '{encoding}' TEMPLATE template0"
            " LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'".encode()
        )
    try:
        before = tables(postgres_schema)
        url = url_with(postgres_url, dbname=postgres_schema)
        for _ in range(2):
            with pytest.raises(StoreError, match=f"{encoding}.* ENCODING 'UTF8' TEMPLATE"):
                recollect.open(url)
        assert tables(postgres_schema) == before
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {postgres_schema}".encode())


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    fill(path)
    read_all(path)


def test_a_file_of_a_newer_version_is_refused_and_stays_as_it_was(
    sound_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "newer.db"
    shutil.copy(sound_file, path)
    newer = apsw.Connection(str(path))
    newer.pragma("journal_mode", "delete")
    newer.execute("INSERT INTO schema_version VALUES (999, 'from the future', 0)")
    newer.close()
    with pytest.raises(SchemaTooNew, match="Upgrade Recollect"):
        recollect.open(path)
    assert sqlite_version(path) == 999


def sqlite_version(path: Path) -> object:
    connection = apsw.Connection(str(path))
    version = connection.execute("SELECT max(version) FROM schema_version").get
    connection.close()
    return version


def test_a_schema_of_a_newer_version_is_refused(
    postgres_url: str, postgres_schema: str, postgres_store_url: str
) -> None:
    recollect.open(postgres_store_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        row = (999, "from the future", 0)
        insert = f"INSERT INTO {postgres_schema}.schema_version VALUES (%s, %s, %s)"
        connection.execute(insert.encode(), row)
    with pytest.raises(SchemaTooNew, match="Upgrade Recollect"):
        recollect.open(postgres_store_url)


def test_a_path_below_a_file_is_denied(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreDenied, match="check that the path is right"):
        recollect.open(tmp_path / "file" / "memory.db")


def test_a_directory_is_no_place_to_write_to(tmp_path: Path) -> None:
    with pytest.raises(StoreDenied, match="check the"):
        recollect.open(tmp_path)


# Root may write everywhere, so that another user has to try.
AS_SOMEBODY_ELSE = """
import os, sys
import platformdirs, recollect
# Somebody else may not be allowed to read what Python is made of: it is loaded by using it first.
with recollect.open(":memory:") as memory:
    memory.space("s").session("k:0", agent="a").append("user", "first")
recollect.RecollectError
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({nobody})
    os.setuid({nobody})
try:
    with recollect.open(sys.argv[1]) as memory:
        memory.space("s").session("k:0", agent="a").append("user", "one more")
except recollect.RecollectError as error:
    print(type(error).__name__, error)
else:
    print("stored")
"""


def said_by_somebody_else(path: Path, **environment: str) -> str:
    code = AS_SOMEBODY_ELSE.format(nobody=NOBODY)
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=path.parent,
        env=os.environ | {"XDG_CONFIG_HOME": str(path.parent)} | environment,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """A directory that others may enter; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o777)
        yield directory
        for path in directory.iterdir():
            path.chmod(0o700)


def test_somebody_else_may_use_a_public_directory(public_directory: Path) -> None:
    """The ground of the four tests below: what is denied there is denied for its own reason."""
    assert said_by_somebody_else(public_directory / "memory.db") == "stored\n"


def test_a_directory_that_is_read_only_is_denied(public_directory: Path) -> None:
    directory = public_directory / "read-only"
    directory.mkdir()
    directory.chmod(0o555)
    said = said_by_somebody_else(directory / "memory.db")
    assert said.startswith("StoreDenied")
    assert "may write to it and to its directory" in said


def test_a_file_beside_which_no_log_can_be_written_is_denied(
    sound_file: Path, public_directory: Path
) -> None:
    directory = public_directory / "read-only"
    directory.mkdir()
    path = directory / "memory.db"
    shutil.copy(sound_file, path)
    path.chmod(0o666)
    directory.chmod(0o555)
    said = said_by_somebody_else(path)
    assert said.startswith("StoreDenied")
    assert "check" in said
    assert "permissions" in said


@pytest.mark.parametrize("mode", [0o444, 0o000], ids=["read-only", "closed"])
def test_a_file_that_may_not_be_written_is_denied(
    sound_file: Path, public_directory: Path, mode: int
) -> None:
    path = public_directory / "memory.db"
    shutil.copy(sound_file, path)
    path.chmod(mode)
    said = said_by_somebody_else(path)
    assert said.startswith("StoreDenied")
    assert "check" in said
    assert "permission" in said


def test_a_configuration_directory_that_is_closed_to_the_user_holds_no_settings(
    public_directory: Path,
) -> None:
    closed = public_directory / "config"
    closed.mkdir()
    closed.chmod(0o000)
    path = public_directory / "memory.db"
    assert said_by_somebody_else(path, XDG_CONFIG_HOME=str(closed)) == "stored\n"
