"""Search, row by row: the index agrees with the rows, forgets with them, and catches up (N1, P11).

Also that a store whose statements say something else fails the suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.ids import Randomness
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.store.schema import Migration, migrations
from recollect.store.sql import queries
from recollect.store.sqlite import database as sqlite_connection
from recollect.store.sqlite import files
from recollect.types.recall import UsageKind
from recollect_conformance import Harness, OpenStore, cases, run
from recollect_conformance.findings import (
    NEWEST,
    entries,
    found,
    numbered,
    reaching,
    sum_up,
    tell,
    tell_in,
    use,
    uses,
)
from recollect_conformance.harness import SPACE
from recollect_conformance.lessons import (
    add,
    claim,
    draft,
    edit,
    lesson,
    record,
    statement,
)
from tests.conformance.broken_search import ALTERED_QUERIES, ALTERED_SCHEMA, Altered
from tests.conformance.catalogue import Catalogue
from tests.conformance.test_erasure import left_of

CASES = {case.name: case for case in cases()}
SEED = 20261115
# Each index, its column, and the entries it is about.
INDEXES = {
    "records_fts": "SELECT h.id, h.words, s.number FROM session_history h"
    " JOIN spaces s ON s.space = h.space"
    " WHERE h.id <= (SELECT upto FROM indexed_records) AND h.words IS NOT NULL",
    "extractions_fts": "SELECT e.key, e.words, s.number FROM extractions e"
    " JOIN spaces s ON s.space = e.space WHERE e.words IS NOT NULL",
    "facts_fts": "SELECT f.key, f.words, s.number FROM facts f JOIN spaces s ON s.space = f.space",
}


@pytest.fixture
def store(durable_store_url: str) -> Iterator[Harness]:
    with closing(Harness(lambda: open_store(durable_store_url, Settings(), ManualClock()))) as it:
        yield it


# what the suite notices


def _fails(open_altered: OpenStore, name: str) -> bool:
    class Place:
        def __enter__(self) -> OpenStore:
            return open_altered

        def __exit__(self, *_: object) -> None:
            pass

    [result] = run(Place, volatile=True, only=[CASES[name]]).results
    return not result.passed


def _open_in_memory() -> Store:
    return open_store(":memory:", Settings(), ManualClock())


@pytest.mark.parametrize(
    "altered", ALTERED_QUERIES, ids=lambda each: f"{each.where or 'all'}-{each.old[:30]}"
)
def test_a_store_whose_query_says_something_else_fails_the_case_that_says_so(
    altered: Altered, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = queries("sqlite")
    changed = {
        name: query.replace(altered.old, altered.new)
        for name, query in known.items()
        if altered.where in ("", name) and altered.old in query
    }
    assert changed, "nothing was altered"
    assert not _fails(_open_in_memory, altered.caught_by)
    monkeypatch.setattr(sqlite_connection, "_QUERIES", known | changed)
    assert _fails(_open_in_memory, altered.caught_by)


@pytest.mark.parametrize("altered", ALTERED_SCHEMA, ids=lambda each: each.old[:40])
def test_a_store_that_keeps_its_index_otherwise_fails_the_case_that_says_so(
    altered: Altered, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewritten(migration: Migration) -> Migration:
        changed = (each.replace(altered.old, altered.new) for each in migration.statements)
        return replace(migration, statements=tuple(changed))

    known = migrations("sqlite")
    changed = tuple(map(rewritten, known))
    assert sum(one != two for one, two in zip(known, changed, strict=True)) == 1
    monkeypatch.setattr(files, "migrations", lambda _: changed)
    assert _fails(_open_in_memory, altered.caught_by)


# the index and the rows


def _assert_indexed(connection: apsw.Connection, index: str, rows: str) -> int:
    """The index has every word of every row, and nothing else; how many rows there are."""
    connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 0)")
    columns = "words, own_words" if index == "facts_fts" else "words"
    detail = ", detail = none, columnsize = 0" if index == "records_fts" else ""
    connection.execute(
        "ATTACH ':memory:' AS made;"
        f" CREATE VIRTUAL TABLE made.{index}_made USING fts5 ({columns}, content = '',"
        f" tokenize = 'porter ascii'{detail})"
    )
    found = connection.execute(rows).fetchall()
    for key, said, number in found:
        own = f" {said}".replace(" ", f" {number}z")
        given = (key, said, own) if index == "facts_fts" else (key, own)
        marks = ", ".join("?" * len(given))
        connection.execute(
            f"INSERT INTO made.{index}_made (rowid, {columns}) VALUES ({marks})", given
        )
    kind = "row" if index == "records_fts" else "instance"
    terms = []
    for schema, table in (("main", index), ("made", f"{index}_made")):
        vocabulary = f"{table}_terms"
        connection.execute(
            f"CREATE VIRTUAL TABLE temp.{vocabulary} USING fts5vocab('{schema}', '{table}', {kind})"
        )
        listed = connection.execute(f"SELECT * FROM temp.{vocabulary}").fetchall()
        terms.append(sorted(listed, key=repr))
    assert terms[0] == terms[1]
    if index == "records_fts":  # without detail, which rows have a word is only told by a search
        for term in {row[0] for row in terms[0]}:
            held = [
                connection.execute(
                    f"SELECT rowid FROM {name} WHERE {name.split('.')[-1]} MATCH ? ORDER BY 1",
                    (f'"{term}"',),
                ).fetchall()
                for name in (index, f"made.{index}_made")
            ]
            assert held[0] == held[1], term
    connection.execute(f"DROP TABLE temp.{index}_terms; DROP TABLE temp.{index}_made_terms")
    connection.execute("DETACH made")
    return len(found)


def _assert_all_indexed(connection: apsw.Connection) -> dict[str, int]:
    return {name: _assert_indexed(connection, name, rows) for name, rows in INDEXES.items()}


def test_sqlites_indexes_and_the_rows_agree_after_random_changes(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    choice = Randomness(SEED)
    with closing(Harness(lambda: open_store(path, Settings(), ManualClock()))) as store:
        for step in range(120):
            key, space = f"key {choice.choice(range(6))}", choice.choice((SPACE, "theirs"))
            ref = store.key(key, space=space)
            said = [f"w{choice.choice(range(40))} n{step}" for _ in range(choice.choice((1, 40)))]
            match choice.choice(("tell", "tell", "sum up", "fact", "purge", "forget", "trim")):
                case "tell":
                    tell_in(store, ref, *said)
                case "sum up":
                    sum_up(store, said[0], key=key, space=space)
                case "fact":
                    fact = add(store, said[0], named=f"fact {step % 9}", space=space)
                    if step % 2:
                        edit(store, fact.id, space=space, content=f"{said[0]} edited")
                    if step % 5 == 0:
                        store.handle.facts.delete(space, fact.id, store.now())
                case "purge":
                    store.records.purge(ref, store.now())
                case "trim":
                    store.records.trim(ref, 3)
                case _:
                    session = store.current(ref).id
                    store.handle.erasure.forget_session(space, session, store.now())
    with closing(apsw.Connection(str(path))) as connection:
        counts = _assert_all_indexed(connection)
    assert min(counts.values()) > 0, counts


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE indexed_records SET upto = 0",
        "INSERT INTO records_fts (rowid, words) VALUES (1, '1zghost')",
        "INSERT INTO extractions_fts (rowid, words) VALUES (1, '1zghost')",
        "INSERT INTO facts_fts (rowid, words, own_words) VALUES (9, 'ghost', '1zghost')",
        "DROP TRIGGER session_history_ad; DELETE FROM session_history WHERE id = 3",
    ],
)
def test_a_damaged_index_would_be_noticed(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "memory.db"
    with closing(Harness(lambda: open_store(path, Settings(), ManualClock()))) as store:
        tell(store, *numbered("saffron", range(NEWEST + 5)))
        add(store, "likes saffron")
        sum_up(store, "about saffron")
    with closing(apsw.Connection(str(path))) as connection:
        _assert_all_indexed(connection)
        connection.execute(damage)
        with pytest.raises((AssertionError, apsw.CorruptError)):
            _assert_all_indexed(connection)


# what is forgotten


@pytest.mark.parametrize("wal", [True, False], ids=["wal", "journal"])
@pytest.mark.parametrize("before", [0, 1, NEWEST // 2], ids=lambda count: f"{count} before")
def test_no_byte_of_forgotten_words_is_left_in_any_file(
    tmp_path: Path, wal: bool, before: int
) -> None:
    """P11: in an index, and among the newest records, which it has not taken."""
    path = tmp_path / "memory.db"
    secrets = [f"zq{number * 7919 % 10007:05}xv" for number in range(2 * NEWEST - 1)]
    kept = [f"zq{number * 7919 % 10007:05}yw" for number in range(2 * NEWEST, 3 * NEWEST)]
    settings = Settings(sqlite_wal=wal)
    with closing(Harness(lambda: open_store(path, settings, ManualClock()))) as store:
        tell(store, *(f"likes {word}" for word in kept[:before]), key="kept")
        for first in range(0, len(secrets), 60):
            some = secrets[first : first + 60]
            tell(store, *(f"likes {word} and {word}s" for word in some), key="secret")
            if first % 120:
                tell(store, f"likes {kept[before + first // 60]}", key="kept")
        store.sleep(store.key("secret"))
        made = draft(
            *(statement(f"saw {word}") for word in secrets[:60]),
            memory=" ".join(secrets[60:200]),
            summary=" ".join(secrets[200:]),
        )
        record(store, claim(store), lesson(made))
        use(store, "turn", *entries(store, secrets[0]), kind=UsageKind.CITED)
        tails = [word[4:] for word in secrets]  # an index keeps what differs from the word before
        assert left_of(secrets, tmp_path) == secrets
        session = store.current(store.key("secret")).id
        store.handle.erasure.forget_session(SPACE, session, store.now())
        assert left_of(tails, tmp_path) == []
        assert found(store, " ".join(secrets[:40])) == []
        assert len(found(store, "likes", reach=reaching(1000))) == before + 4


def test_uses_are_of_one_space_and_the_database_itself_holds_each_once(
    store: Harness, catalogue: Catalogue
) -> None:
    add(store, "likes saffron")
    [entry] = entries(store, "saffron")
    use(store, "turn", entry)
    columns = "turn_id, kind, entry_kind, entry_id, session_id, created_at"
    copy = f"INSERT INTO usages (space, {columns}) SELECT '{{}}', {columns} FROM usages"
    with pytest.raises(Exception, match=r"(?i)unique"):
        catalogue.run(copy.format(SPACE))
    catalogue.run(copy.format("theirs"))
    assert uses(store, entry) == {UsageKind.CITED: 1}
    for damage in ("kind = 'guessed'", "entry_kind = 'thought'"):
        with pytest.raises(Exception, match=r"(?i)check"):
            catalogue.run(f"UPDATE usages SET {damage}")
