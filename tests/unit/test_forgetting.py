"""P11: forgetting by whatever is named, from the store, the pages and the files at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.crashpoints import arm
from recollect.errors import InvalidValue, NotFound, PermanentFailure, UsageError
from recollect.processing import Verdict, Work
from recollect.space import Space
from recollect.types.facts import Draft, NewFact, Trust
from recollect.types.records import Outcome

SETTINGS = {"pipeline": "both", "consolidation_cooldown_seconds": 0.0}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[recollect.Memory]:
    settings = SETTINGS | {"memories_root": str(tmp_path / "memories")}
    with recollect.open(tmp_path / "memory.db", settings=settings, clock=ManualClock()) as opened:
        yield opened


@pytest.fixture
def space(memory: recollect.Memory) -> Space:
    return memory.space("a")


def tell(space: Space, key: str, *said: str, **more: Any) -> recollect.Session:
    session = space.session(key, **more)
    for text in said:
        session.append("user", text)
    session.end()
    return session


def left_of(word: str, directory: Path) -> list[str]:
    """The files in which a word stands, in any case."""
    files = sorted(each for each in directory.rglob("*") if each.is_file())
    return [each.name for each in files if word.encode() in each.read_bytes().lower()]


@pytest.mark.parametrize("project", ["home", "/srv/shop/home", None])
def test_a_session_is_forgotten_beside_others_whose_pages_begin_like_its_own(
    memory: recollect.Memory, space: Space, project: str | None
) -> None:
    """P11, G11: what every session's page says is nobody's memory, and stands in nobody's way."""
    sessions = []
    for food in ("rye bread", "green tea", "plum jam"):
        said = (f"I prefer {food}.", "I moved to Lisbon.")
        sessions.append(tell(space, food, *said, project=project))
        memory.work(all=True)
    receipt = space.forget(session=sessions[0])
    assert (receipt.sessions, receipt.is_complete) == (1, True)
    summary = space.documents.read("~/memory/memory_summary").body
    assert ("rye" in summary, "plum" in summary) == (False, True)


@pytest.mark.parametrize("value", ["false", "", 0, 1, None])
def test_what_merely_counts_as_a_yes_erases_nothing(
    space: Space, tmp_path: Path, value: Any
) -> None:
    space.facts.add("Ana is tall")
    space.documents.write("/people/ana", "Tall.")
    destructive: list[Callable[[], object]] = [
        lambda: space.forget(everything=value),
        lambda: space.documents.delete("/people/ana", below=value),
        lambda: space.documents.publish(tmp_path / "files", discard_edits=value),
        lambda: space.documents.load(tmp_path, allow_deletions=value),
    ]
    for act in destructive:
        with pytest.raises(InvalidValue, match="True or False"):
            act()
    assert space.facts.count() == 1
    assert space.documents.read("/people/ana").body == "Tall."


@pytest.mark.parametrize(
    "wanted",
    [{}, {"session": "a", "fact": "b"}, {"everything": False}, {"source": "a", "agent": "b"}],
)
def test_exactly_one_thing_is_forgotten_at_a_time(space: Space, wanted: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="exactly one of"):
        space.forget(**wanted)


@pytest.mark.parametrize("name", ["", "a", "a:", "a:-1", "a:x", "a:" + "9" * 30])
def test_a_record_is_named_by_its_session_and_its_number(space: Space, name: str) -> None:
    with pytest.raises(InvalidValue):
        space.forget(record=name)


@pytest.mark.parametrize(
    "wanted",
    [
        *({"session": "x"}, {"record": "x:1"}, {"fact": "x"}),
        *({"document": "x"}, {"agent": "x"}, {"source": "x"}),
    ],
)
def test_what_is_not_there_is_not_found_in_any_space(
    memory: recollect.Memory, space: Space, wanted: dict[str, str]
) -> None:
    tell(memory.space("theirs"), "chat", "I live in Porto.")
    with pytest.raises(NotFound):
        space.forget(**wanted)  # type: ignore[arg-type]


def test_a_thing_of_another_space_is_as_if_it_was_not_there(
    memory: recollect.Memory, space: Space
) -> None:
    theirs = memory.space("theirs")
    session = tell(theirs, "chat", "I live in Porto.", agent="bob", source="codex")
    theirs.documents.write("notes", "theirs")
    memory.work()
    [fact] = theirs.facts.list()
    for wanted in (
        {"session": session.id},
        {"record": f"{session.id}:1"},
        {"fact": fact.id},
        {"document": "notes"},
        {"agent": "bob"},
        {"source": "codex"},
    ):
        with pytest.raises(NotFound):
            space.forget(**wanted)  # type: ignore[arg-type]
    space.forget(everything=True)
    assert [each.content for each in theirs.facts.list()] == [fact.content]
    assert len(theirs.sessions.records(session.id)) == 1
    assert theirs.documents.read("notes").body == "theirs"


def test_no_byte_of_a_record_is_left_and_the_rest_is_learned_again(
    memory: recollect.Memory, space: Space, tmp_path: Path
) -> None:
    session = tell(space, "chat", "My favourite city is zanzibarq.", "I live in Portoq.")
    memory.work()
    assert "MEMORY.md" in left_of("zanzibarq", tmp_path)
    [record, _] = space.sessions.records(session.id)
    receipt = space.forget(record=record)
    assert (receipt.records, receipt.facts, receipt.is_complete) == (1, 1, True)
    assert left_of("zanzibarq", tmp_path) == []
    assert [each.content for each in space.facts.list()] == ["The user lives in Portoq."]
    memory.work()
    assert "Portoq" in space.sessions.extraction(session.id).raw_memory  # type: ignore[union-attr]
    assert "MEMORY.md" in left_of("portoq", tmp_path)
    assert left_of("zanzibarq", tmp_path) == []
    again = space.forget(record=f"{session.id}:1")
    assert (again.records, again.facts) == (0, 0)


def test_a_forgotten_fact_leaves_the_handbook_at_once_and_is_not_learned_again(
    memory: recollect.Memory, space: Space, tmp_path: Path
) -> None:
    space.facts.add("The user likes zanzibarq.")
    tell(space, "chat", "I live in Portoq.")
    memory.work()
    added = next(each for each in space.facts.list() if "zanzibarq" in each.content)
    assert "MEMORY.md" in left_of("zanzibarq", tmp_path)
    space.forget(fact=added.id)
    assert left_of("zanzibarq", tmp_path) == []
    learned = next(each for each in space.facts.list() if "Portoq" in each.content)
    space.forget(fact=learned.id)
    memory.request_again()
    memory.work()
    assert space.facts.list() == []
    with pytest.raises(NotFound):
        space.forget(fact=learned.id)


def test_a_forgotten_document_is_gone_with_what_is_below_it_and_from_the_files(
    memory: recollect.Memory, space: Space, tmp_path: Path
) -> None:
    space.documents.write("~/memory/plans/trip", "To zanzibarq.")
    tell(space, "chat", "I live in Portoq.")
    memory.work()
    assert "trip.md" in left_of("zanzibarq", tmp_path)
    receipt = space.forget(document="~/memory/plans")
    assert (receipt.documents, receipt.versions, receipt.is_complete) == (2, 2, True)
    assert left_of("zanzibarq", tmp_path) == []
    assert "MEMORY.md" in left_of("portoq", tmp_path)


def test_all_sessions_of_a_source_or_an_agent_are_forgotten(
    memory: recollect.Memory, space: Space, tmp_path: Path
) -> None:
    for number in range(3):
        tell(space, f"log:{number}", f"I like zanzibarq{number}.", source="claude-code")
    tell(space, "chat", "I like quinceq.", agent="bob")
    tell(space, "other", "I live in Portoq.")
    memory.work()
    receipt = space.forget(source="claude-code")
    assert (receipt.source, receipt.sessions, receipt.records) == ("claude-code", 3, 3)
    assert left_of("zanzibarq", tmp_path) == []
    receipt = space.forget(agent={"type": "user", "id": "bob"})
    assert (receipt.agent_id, receipt.sessions) == ("/user/bob", 1)
    assert left_of("quinceq", tmp_path) == []
    assert [each.content for each in space.facts.list()] == ["The user lives in Portoq."]
    assert space.forget(agent="bob").sessions == 0, "nothing is left of it"


@pytest.mark.parametrize(
    "wanted",
    [
        lambda session, _: {"session": session},
        lambda session, _: {"session": session.id},
        lambda _, record: {"record": record},
        lambda _, record: {"record": f"{record.session_id}:1"},
        lambda *_: {"agent": "scratch"},
        lambda *_: {"source": "web"},
        lambda *_: {"everything": True},
    ],
)
def test_what_an_agent_without_memory_was_told_is_forgotten_like_everything_else(
    tmp_path: Path,
    wanted: Callable[[recollect.Session, recollect.Record], dict[str, Any]],
) -> None:
    with recollect.open(tmp_path / "m.db", settings={"agents": {"scratch": False}}) as memory:
        space = memory.space("a")
        space.session("kept", source="web").append("user", "Zebra, too.")
        session = space.session("k", agent="scratch", source="web")
        record = session.append("user", "The word is Zebra.")
        named = wanted(session, record)
        receipt = space.forget(**named)
        is_both = bool(named.keys() & {"source", "everything"})
        assert (receipt.records, receipt.is_complete) == (1 + is_both, True)
        found = [space.session(key, agent) for key, agent in (("k", "scratch"), ("kept", None))]
        left = [each.content for session in found for each in session.all() if each.content]
        assert left == ([] if is_both else ["Zebra, too."])


def test_no_byte_of_a_space_is_left_but_its_books(
    memory: recollect.Memory, space: Space, tmp_path: Path
) -> None:
    session = tell(space, "zanzibarq:1", "I live in Zanzibarq.", agent="zanzibarq")
    space.documents.write("zanzibarq", "zanzibarq")
    space.facts.add(recollect.Fact("zanzibarq", id="zanzibarq"))
    tell(memory.space("b"), "chat", "I live in Portoq.")
    memory.work()
    receipt = space.forget(everything=True)
    assert (receipt.sessions, receipt.is_complete) == (2, True), "with the memory-agent's"
    assert left_of("zanzibarq", tmp_path) == []
    assert (memory.spaces(), space.sessions.list()) == (["b"], [])
    with pytest.raises(NotFound, match="open it again"):
        session.append("user", "hello")
    tell(space, "zanzibarq:1", "I live in Lisbonq.")
    memory.work()
    assert [each.content for each in space.facts.list()] == ["The user lives in Lisbonq."]


class StoppedError(Exception):
    """The process ends here."""


@pytest.mark.parametrize("wanted", [{"source": "api"}, {"everything": True}, {"session": "last"}])
def test_whoever_is_stopped_anywhere_goes_on_by_asking_again(
    memory: recollect.Memory, space: Space, tmp_path: Path, wanted: dict[str, Any]
) -> None:
    """P11: after every transaction of it once; what others said stays on the pages they share."""
    is_one = "session" in wanted
    for number in range(3):
        word = "lisbonq" if is_one and number < 2 else "zanzibarq"
        session = tell(space, f"k{number}", f"I like {word}{number}.")
        memory.work()
    wanted = {"session": session.id} if is_one else wanted
    stops = 0
    while True:
        reached = 0

        def stop(name: str, limit: int = stops) -> None:
            nonlocal reached
            reached += name == "write.committed"
            if reached > limit and name == "write.committed":
                raise StoppedError

        arm(stop)
        try:
            space.forget(**wanted)
        except StoppedError:
            stops += 1
            continue
        finally:
            arm(None)
        break
    assert stops >= 3
    assert left_of("zanzibarq", tmp_path) == []
    assert len(space.facts.list()) == (2 if is_one else 0)


class Slow:
    """Reads a session, is overtaken by somebody who has it forgotten, and tells all it read."""

    def __init__(self, forget: Callable[[Work], object], *, fails: bool) -> None:
        self._forget = forget
        self._fails = fails

    def process(self, work: Work) -> Verdict:
        said = " ".join(record.content for record in work.records)
        self._forget(work)
        if self._fails:
            raise PermanentFailure(said)
        fact = NewFact(
            content=said, seq=1, seq_to=1, valid_from=work.records[0].at, trust=Trust.USER
        )
        draft = Draft(upto=work.upto, raw_memory=said, rollout_summary=said, facts=(fact,))
        return Verdict(outcome=Outcome.EXTRACTED, draft=draft, extractor="slow/1")


@pytest.mark.parametrize("fails", [False, True], ids=["learns", "fails"])
@pytest.mark.parametrize("what", ["session", "record", "agent", "source", "everything"])
def test_no_byte_is_left_of_what_is_forgotten_while_a_worker_is_at_it(
    memory: recollect.Memory, space: Space, tmp_path: Path, what: str, *, fails: bool
) -> None:
    """P11: neither of what it learned nor of why it failed."""
    tell(space, "chat", "I live in Zanzibarq.", "My cat is zanzibarq.", agent="bob")

    def forget(work: Work) -> None:
        named: dict[str, Any] = {"session": work.session.id, "agent": "bob", "source": "api"}
        if what == "record":
            for record in work.records:
                space.forget(record=record)
        else:
            space.forget(**{what: named.get(what, True)})

    assert memory.work(Slow(forget, fails=fails)).stale >= 1
    assert left_of("zanzibarq", tmp_path) == []
    memory.work()
    assert left_of("zanzibarq", tmp_path) == []
