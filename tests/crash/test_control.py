"""N9, N6, P11 under kill -9: a copy, a restore, a load, a migration and a forgetting die anywhere.

What is copied from stays as it was. What is copied to is not there, is whole, or is gone on with by
the same command; it is compared with its source at the end. What was forgotten half-way is gone
from every file when it is forgotten again. `make torture ARGS="-k control"` dies at every step.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.operations.backup import back_up
from tests.crash.control_child import Lived, Lives
from tests.unit.operations.material import SETTINGS, SPACES, fill

SEED = 20_261_116
STEPS, INSTANTS = 2, 1  # that every life of the suite dies at
WORD = "zanzibarq"
SESSIONS = 4
FORGETTING = {"pipeline": "both", "consolidation_cooldown_seconds": 0.0}


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with Lives() as warm:
        yield warm


def opened(url: str | Path) -> recollect.Memory:
    return recollect.open(url, settings=SETTINGS, clock=ManualClock())


def exported(url: str | Path, directory: Path) -> bytes:
    path = directory / "exported.zip"
    with opened(url) as memory:
        memory.export(path)
    try:
        return path.read_bytes()
    finally:
        path.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A store, copies of it of both kinds, and what it comes to."""

    store: Path
    database: Path
    archive: Path

    @property
    def bytes(self) -> bytes:
        return self.archive.read_bytes()


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    directory = tmp_path_factory.mktemp("material")
    made = Material(
        store=directory / "memory.db",
        database=directory / "backup.db",
        archive=directory / "archive.zip",
    )
    with opened(made.store) as memory:
        fill(memory)
        back_up(memory.store, made.database)
        memory.export(made.archive)
    return made


def deaths(whole: Lived, *, torture: bool) -> Iterator[dict[str, Any]]:
    """Where lives are to die that take so many steps and so long."""
    assert not whole.is_killed
    print(f"seed {SEED}, {whole.steps} steps, {whole.seconds:.3f} s")
    choice = random.Random(SEED)
    every = range(1, whole.steps + 1)
    for nth in every if torture else sorted(choice.sample(every, min(STEPS, whole.steps))):
        yield {"nth": nth}
    for _ in range(50 if torture else INSTANTS):
        yield {"seconds": choice.random() * whole.seconds}


COPIES = (
    ("backup", "store"),
    ("restore", "database"),
    ("restore", "archive"),
    ("load", "archive"),
    ("migrate", "store"),
)


@pytest.mark.parametrize(("life", "source"), COPIES, ids=["-".join(each) for each in COPIES])
@pytest.mark.parametrize(
    "torture", [False, pytest.param(True, marks=pytest.mark.torture)], ids=["some", "control"]
)
def test_whoever_copies_a_store_may_die_anywhere(
    lives: Lives, material: Material, tmp_path: Path, life: str, source: str, *, torture: bool
) -> None:
    """N9: into a file."""
    given = getattr(material, source)
    copied = {"source": str(given), "target": str(tmp_path / "first.db")}
    for number, death in enumerate(deaths(lives.live(life, copied), torture=torture)):
        target = tmp_path / str(number) / "memory.db"
        target.parent.mkdir()
        names = {"source": str(given), "target": str(target)}
        died = lives.live(life, names, **death)
        is_named = life in ("backup", "restore") and target.exists()
        if is_named:  # it has its name when it is whole
            assert exported(target, tmp_path) == material.bytes, death
        elif died.is_killed:
            lives.live(life, names)
        assert exported(target, tmp_path) == material.bytes, death
        if not is_named:
            assert [each.name for each in target.parent.iterdir()] == ["memory.db"], death
        shutil.rmtree(target.parent)
    assert exported(material.store, tmp_path) == material.bytes


@pytest.mark.postgres
@pytest.mark.parametrize(("life", "source"), COPIES[1:], ids=["-".join(x) for x in COPIES[1:]])
def test_whoever_copies_to_a_server_may_die_anywhere(
    lives: Lives,
    material: Material,
    postgres_store_url: str,
    tmp_path: Path,
    life: str,
    source: str,
) -> None:
    """N9: one attempt after the other, each a bit further, as long as it takes."""
    names = {"source": str(getattr(material, source)), "target": postgres_store_url}
    died = sum(lives.live(life, names, nth=nth).is_killed for nth in range(1, 7))
    assert died >= len(SPACES)
    assert not lives.live(life, names).is_killed
    assert exported(postgres_store_url, tmp_path) == material.bytes
    assert exported(material.store, tmp_path) == material.bytes


# forgetting


def remembered(directory: Path) -> Mapping[str, Any]:
    """A store with a word in all that can hold one; what can be forgotten of it, by name."""
    settings = FORGETTING | {"memories_root": str(directory / "memories")}
    with recollect.open(directory / "memory.db", settings=settings) as memory:
        space = memory.space("a")
        for number in range(SESSIONS):
            session = space.session(f"k{number}", source="mail" if number % 2 else "api")
            for turn in range(4):
                said = f"I like {WORD}{number} tea number {turn}. My {WORD} cat is {turn}."
                session.append("user", said, name=f"Ana{WORD}")
            session.append("user", f"My {WORD}r{number} dog is old.")
            session.end()
        memory.work()
        for version in range(3):
            space.documents.write(f"notes/{WORD}", f"{WORD} {version} " * 200, title=WORD)
        fact = space.facts.add(f"The {WORD} key is under the mat.")
        space.facts.update(fact.id, f"The {WORD} key is gone.")
        memory.work()
        session_id = session.id
    return {
        "everything": {"everything": True},
        "session": {"session": session_id},
        "record": {"record": f"{session_id}:5"},
        "source": {"source": "mail"},
        "document": {"document": f"notes/{WORD}"},
        "fact": {"fact": fact.id},
    }


# Of what each leaves, the words that are not to be found any more.
GONE: Mapping[str, Callable[[], list[str]]] = {
    "everything": lambda: [WORD],
    "session": lambda: [f"{WORD}{SESSIONS - 1} tea", f"{WORD}r{SESSIONS - 1} dog"],
    "record": lambda: [f"{WORD}r{SESSIONS - 1} dog"],
    "source": lambda: [f"{WORD}{number} tea" for number in range(1, SESSIONS, 2)],
    "document": lambda: [f"{WORD} {version} {WORD}" for version in range(3)],
    "fact": lambda: [f"{WORD} key"],
}


def left_of(words: list[str], directory: Path) -> list[tuple[str, str]]:
    files = [each for each in directory.rglob("*") if each.is_file()]
    held = {each: each.read_bytes().lower() for each in files}
    return [(word, each.name) for word in words for each in files if word.encode() in held[each]]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Any]]:
    directory = tmp_path_factory.mktemp("full")
    return directory, remembered(directory)


SHORT = [(what, False) for what in ("everything", "source", "document", "fact")]
LONG = [pytest.param(what, True, marks=pytest.mark.torture, id=f"control-{what}") for what in GONE]


@pytest.mark.parametrize(("what", "torture"), [*SHORT, *LONG])
def test_whoever_forgets_may_die_anywhere_and_forgets_again(
    lives: Lives,
    full: tuple[Path, Mapping[str, Any]],
    tmp_path: Path,
    what: str,
    *,
    torture: bool,
) -> None:
    """N6, P11: no byte of it is left in the store, its log, the versions and the files."""
    source, known = full
    words = GONE[what]()
    assert {word for word, _ in left_of(words, source)} == set(words)

    def forget(directory: Path, **death: Any) -> Lived:
        settings = FORGETTING | {"memories_root": str(directory / "memories")}
        url = f"sqlite:///{directory / 'memory.db'}?synchronous=off"  # the machine goes on
        store = {"store": url, "settings": settings, "space": "a"}
        return lives.live("forget", {**store, "wanted": known[what]}, **death)

    def copied(name: str) -> Path:
        return Path(shutil.copytree(source, tmp_path / name, symlinks=True))

    for number, death in enumerate(deaths(forget(copied("whole")), torture=torture)):
        directory = copied(str(number))
        if forget(directory, **death).is_killed:
            forget(directory)
        assert left_of(words, directory) == [], death
        shutil.rmtree(directory)
    assert left_of(words, tmp_path) == []
