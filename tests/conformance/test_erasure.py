"""P11 for SQLite files: after forgetting, no byte of what was forgotten is in any file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import apsw
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.messages import Role
from recollect.store.opening import open_store
from recollect.types.facts import SessionsMeant, Staged, content_key
from recollect.types.records import MarkCause, NewRecord, SessionBirth
from recollect_conformance import Harness
from recollect_conformance.harness import NEVER, SPACE
from recollect_conformance.lessons import (
    POLICY,
    claim,
    contents,
    draft,
    due,
    edit,
    facts,
    learn,
    lesson,
    record,
    statement,
    teach,
)

# Each stands in another column; all are forgotten.
PLACES = (
    *("content", "body", "name", "metadata", "summary", "rawmemory", "rollout", "slug", "quote"),
    *("fact", "tag", "factmeta", "topic", "withdrawn", "deleted", "edited", "before", "error"),
    "staged",
)
TEXTS = ("rawmemory", "rollout", "slug")
CANARIES = {name: f"zq{name}xv{number:03}" for number, name in enumerate(PLACES)}


@pytest.fixture(params=["wal", "journal"])
def settings(request: pytest.FixtureRequest) -> Settings:
    return Settings(sqlite_wal=request.param == "wal")


@pytest.fixture
def store(tmp_path: Path, settings: Settings) -> Iterator[Harness]:
    path = tmp_path / "memory.db"
    with closing(Harness(lambda: open_store(path, settings, ManualClock()))) as harness:
        yield harness


def everywhere(directory: Path) -> bytes:
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    return b"\0".join(file.read_bytes() for file in files)


def left_of(words: list[str], directory: Path) -> list[str]:
    """Which of the words stand in a file, in any case and in either encoding of SQLite's."""
    found = everywhere(directory).lower()
    return [
        word
        for word in words
        if word.lower().encode() in found or word.lower().encode("utf-16-le") in found
    ]


def tell_everything(store: Harness) -> str:
    """A session with a canary in every place that can hold a word; the id of the session."""
    said = CANARIES
    ref = store.key()
    body = f'{{"role": "user", "content": "{said["body"]}"}}'
    store.say(
        ref,
        NewRecord(
            role=Role.USER,
            content=said["content"],
            name=said["name"],
            body=body,
            metadata=f'{{"k": "{said["metadata"]}"}}',
        ),
        policy=NEVER,
    )
    store.records.set_summary(ref, said["summary"], store.now())
    store.sleep(ref)
    found = replace(
        statement(said["fact"], quote=said["quote"], topic=said["topic"]),
        tags=(said["tag"],),
        metadata={said["factmeta"]: said["factmeta"]},
    )
    others = [statement(said[name]) for name in ("withdrawn", "deleted", "before")]
    texts = draft(memory=said["rawmemory"], summary=said["rollout"])
    made = replace(texts, rollout_slug=said["slug"], facts=(found, *others))
    record(store, claim(store), lesson(made))
    by_content = {fact.content: fact for fact in facts(store)}
    store.handle.facts.delete(SPACE, by_content[said["deleted"]].id, store.now())
    edit(store, by_content[said["before"]].id, content=said["edited"])
    learn(store, lesson(replace(made, facts=(found,)), is_whole=True))
    _, claimed = due(store)
    unfinished = draft(statement(said["staged"]), memory=said["staged"])
    staged = Staged(pass_number=1, upto=1, extractor="rules", draft=unfinished)
    store.handle.leases.stage(claimed, staged)
    store.handle.leases.fail(claimed, said["error"], 0, POLICY, store.now())
    return claimed.key


def test_no_byte_of_a_forgotten_session_is_left_in_any_file(store: Harness, tmp_path: Path) -> None:
    teach(store, statement("something else is kept"), key="other")
    session = tell_everything(store)
    # Its texts were rendered anew when facts of it were taken back: they are forgotten below.
    held = [word for name, word in CANARIES.items() if name not in TEXTS]
    assert left_of(held, tmp_path) == held
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert left_of(list(CANARIES.values()), tmp_path) == []
    assert contents(store) == ["something else is kept"]


@pytest.mark.parametrize("what", ["session", "record", "fact"])
def test_no_byte_of_what_a_session_came_to_is_left_in_any_file(
    store: Harness, tmp_path: Path, what: str
) -> None:
    """Forgotten as a whole or in part: texts that may say it are rendered from what is left."""
    words = [CANARIES[name] for name in (*TEXTS, "staged")]
    made = draft(statement("likes tea", 1), memory=words[0], summary=words[1])
    session = learn(store, lesson(replace(made, rollout_slug=words[2])))
    _, claimed = due(store)
    unfinished = draft(statement(words[3]), memory=words[3])
    staged = Staged(pass_number=1, upto=1, extractor="rules", draft=unfinished)
    store.handle.leases.stage(claimed, staged)
    assert left_of(words, tmp_path) == words
    erasure = store.handle.erasure
    match what:
        case "session":
            erasure.forget_session(SPACE, session, store.now())
        case "record":
            erasure.forget_record(SPACE, session, 1, store.now())
        case _:
            erasure.forget_fact(SPACE, facts(store)[0].id, store.now())
    assert left_of(words, tmp_path) == []


def test_no_byte_of_what_is_known_about_a_forgotten_session_is_left_in_any_file(
    store: Harness, tmp_path: Path
) -> None:
    """P11: neither why it ended nor where it was; its append keys are known by digests."""
    words = ["zqprojectxv", "zqreasonxv", "zqappendxv"]
    ref = store.key(birth=SessionBirth(project=f"/{words[0]}"))
    keyed = replace(store.text(), append_key=words[2])
    store.say(ref, keyed)
    store.sessions.rotate(ref, MarkCause.RESET, store.now(), store.new_id, reason=words[1])
    assert left_of(words, tmp_path) == words
    for session in store.sessions.rotations(ref):
        store.handle.erasure.forget_session(SPACE, session.id, store.now())
    assert left_of(words, tmp_path) == []
    [again] = store.say(ref, keyed)
    assert again.is_forgotten
    assert left_of(words, tmp_path) == []


def test_no_byte_of_a_forgotten_record_is_left_in_any_file(store: Harness, tmp_path: Path) -> None:
    """P11: nor of what rests on it, in the tables, the index, the log and the journal."""
    teach(store, statement("something else is kept"), key="other")
    session = tell_everything(store)
    receipt = store.handle.erasure.forget_record(SPACE, session, 1, store.now())
    assert receipt is not None
    assert receipt.is_complete
    assert left_of(list(CANARIES.values()), tmp_path) == []
    assert contents(store) == ["something else is kept"]


def test_no_byte_of_a_forgotten_fact_is_left_in_any_file(store: Harness, tmp_path: Path) -> None:
    """P11: what keeps it from coming back is a digest, and goes with the session."""
    session = tell_everything(store)
    known = {fact.content: fact for fact in facts(store, every=True)}
    of_facts = [CANARIES[name] for name in ("fact", "tag", "factmeta", "topic", "quote")]
    own = [*of_facts, CANARIES["edited"], CANARIES["before"]]
    for content in (CANARIES["fact"], CANARIES["edited"]):
        store.handle.erasure.forget_fact(SPACE, known[content].id, store.now())
    assert left_of(own, tmp_path) == []
    digest = content_key(CANARIES["fact"])
    assert left_of([digest], tmp_path) == [digest]
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert left_of([digest, *CANARIES.values()], tmp_path) == []


def test_no_byte_of_a_forgotten_space_is_left_in_any_file(store: Harness, tmp_path: Path) -> None:
    """P11: with the names of keys, agents and sources, which sessions leave behind."""
    ref = store.key("zqkeyxv", agent="/user/zqagentxv", birth=SessionBirth(source="zqsourcexv"))
    store.append(ref, policy=NEVER)
    tell_everything(store)
    names = ["zqkeyxv", "zqagentxv", "zqsourcexv"]
    assert left_of(names, tmp_path) == names
    now, erasure = store.now(), store.handle.erasure
    listed = erasure.forgettable(SPACE, SessionsMeant(), now, None, 100)
    erasure.forget_sessions(SPACE, [each.id for each in listed], now)
    erasure.forget_facts(SPACE, now, now)
    assert erasure.forget_space(SPACE, now, now).is_complete
    ids = [each.id for each in listed]
    assert left_of([*CANARIES.values(), *names, *ids], tmp_path) == []


def test_no_byte_of_many_and_long_texts_is_left_in_any_file(store: Harness, tmp_path: Path) -> None:
    """Enough for inner pages of every tree, overflow pages, and several segments of the index."""
    numbers = range(0, 1200, 2)
    secrets = [f"zq{number * 7919 % 10007:05}xv" for number in numbers]
    kept = [f"zq{number * 7919 % 10007:05}yw" for number in range(1, 1200, 2)]
    sessions = []
    for key, words in (("secret", secrets), ("kept", kept)):
        ref = store.key(key)
        for word in words[:40]:
            text = f"{word} " * 2000
            store.say(ref, NewRecord(role=Role.USER, content=text), policy=NEVER)
        for first in range(0, len(words), 60):
            said = [statement(f"likes {word} and {word}s") for word in words[first : first + 60]]
            session = teach(store, *said, key=key)
        sessions.append(session)
    assert left_of(secrets, tmp_path) == secrets
    receipt = store.handle.erasure.forget_session(SPACE, sessions[0], store.now())
    assert receipt is not None
    assert receipt.facts == len(secrets)
    assert left_of(secrets, tmp_path) == []
    assert left_of(kept, tmp_path) == kept
    assert len(facts(store)) == len(kept)


@pytest.mark.parametrize("seed", [4, 7, 8])
def test_no_byte_is_left_where_pages_were_split(tmp_path: Path, seed: int) -> None:
    """Copies of what was moved to another page stay behind in the gap of the first."""
    print(f"seed {seed}")
    random = Random(seed)
    settings = {"pipeline": "extraction"}
    url = f"sqlite:///{tmp_path / 'memory.db'}?synchronous=off"
    with recollect.open(url, settings=settings) as memory:
        space, words = memory.space("a"), {}
        for number in range(40):
            session, word = space.session(f"k{number}"), f"qwy{number:02d}jibo"
            for turn in range(random.choice([3, 10, 30])):
                said = f"My favourite sauce number {turn} is {word}. I live in {word} street."
                session.append("user", said, name=f"Zor{word}")
            session.sleep()
            words[word] = session
        memory.work()
        forgotten = random.sample(sorted(words), 20)
        assert left_of(forgotten, tmp_path) == forgotten
        for word in forgotten:
            space.forget(session=words[word])
        assert left_of(forgotten, tmp_path) == []


def test_a_reader_in_the_way_keeps_nobody_from_forgetting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log is emptied when nobody reads any more; the store says that it was not."""
    path = tmp_path / "memory.db"
    settings = Settings(sqlite_busy_timeout_ms=1)
    with closing(Harness(lambda: open_store(path, settings, ManualClock()))) as store:
        session = tell_everything(store)
        with closing(apsw.Connection(str(path))) as reader:
            reader.execute("BEGIN; SELECT count(*) FROM facts").fetchall()
            receipt = store.handle.erasure.forget_session(SPACE, session, store.now())
            assert receipt is not None
            assert "is being read" in caplog.text
            reader.execute("ROLLBACK")
        assert facts(store, every=True) == []
    assert left_of(list(CANARIES.values()), tmp_path) == []


def test_no_byte_is_left_where_an_index_was_merged_again_and_again(tmp_path: Path) -> None:
    """P11: what was deleted from an index of words is not named in it as deleted either."""
    settings = {"pipeline": "extraction", "consolidation_cooldown_seconds": 0.0}
    places = [f"zanzi{number}bar{number}q" for number in range(10)]
    with recollect.open(tmp_path / "memory.db", settings=settings) as memory:
        space = memory.space()
        sessions = []
        for number, place in enumerate(places):
            sessions.append(space.session(f"chat:{number}"))
            sessions[-1].append("user", f"My favourite city is {place}.")
            sessions[-1].end()
            memory.work()
        assert space.generations.state().generation == len(places)
        for number, session in enumerate(sessions):
            space.forget(session=session)
            assert left_of(places[: number + 1], tmp_path) == []
            assert left_of(places[number + 1 :], tmp_path) == places[number + 1 :]
