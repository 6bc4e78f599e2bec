"""N21, N22, N23: what was told can be shown again, who was told is named, and a memory is tested.

Looked at from outside: at blocks and what comes of them, at receipts, and at the store's bytes.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import InvalidValue, NotFound
from recollect.recall.checking import added_to, proposed, read_cases
from recollect.types.recall import LineState
from tests.hosted_agents import ON_BOTH, raw

TORTURE = bool(os.environ.get("RECOLLECT_TORTURE"))
BLOCKS, CHANGES = (1000, 10_000) if TORTURE else (40, 60)
PLACES = [
    "Lisbon",
    "Oslo",
    "Rome",
    "Paris",
    "Quito",
    "Lima",
    "Cairo",
    "Delhi",
    "Tokyo",
    "Perth",
    "Turin",
    "Malmo",
    "Ghent",
    "Porto",
]
JOBS = ["baker", "pilot", "nurse", "judge", "tailor", "farmer"]
FACTS = ["I live in {place}.", "My friend {name} works as a {job} in {place}.", "I like {place}."]
BYTES_MAX = 500
MORE = "We took the train, and ate something that I had never tasted before in all my life."


@pytest.fixture
def memory(store_url: str, tmp_path: Path) -> Iterator[recollect.Memory]:
    settings = {"data_dir": str(tmp_path / "data"), "contexts_kept": 5000}
    with recollect.open(store_url, settings=settings, clock=ManualClock()) as opened:
        yield opened


def say(memory: recollect.Memory, key: str, *said: str) -> recollect.Session:
    """Say something, and have it learned."""
    session = memory.space("alice").session(key)
    for text in said:
        session.append("user", text)
        session.append("assistant", "Noted.")
    session.end()
    memory.work(all=True)
    return session


@dataclass(slots=True, kw_only=True)
class World:
    """A space that is talked to, told from, corrected and forgotten, at random."""

    memory: recollect.Memory
    random: random.Random
    blocks: dict[str, recollect.Context] = field(default_factory=dict)
    sessions: list[str] = field(default_factory=list)
    said: int = 0

    @property
    def space(self) -> recollect.Space:
        return self.memory.space("alice")

    def say(self) -> None:
        self.said += 1
        pick = self.random.choice
        text = pick(FACTS).format(place=pick(PLACES), job=pick(JOBS), name=f"Zed{self.said}")
        session = self.space.session(f"k{self.said}")
        session.append_many([{"role": "user", "content": text}])
        session.end()
        self.sessions.append(session.id)

    def learn(self) -> None:
        self.memory.work(all=True)

    def tell(self) -> None:
        asked = self.random.choice(["", "where do I live", "who works in {}", "do I like {}"])
        query = asked.format(self.random.choice(PLACES))
        tokens = self.random.choice([200, 800, 2000])
        block = self.space.context(query, tokens)
        if block:
            self.blocks[block.id] = block

    def edit(self) -> None:
        if found := self.space.facts.list(50):
            fact = self.random.choice(found)
            self.space.facts.update(fact.id, f"{fact.content} Corrected {self.said}.")

    def delete(self) -> None:
        if found := self.space.facts.list(50):
            self.space.facts.delete(self.random.choice(found).id)

    def forget(self) -> None:
        if self.sessions:
            session_id = self.sessions.pop(self.random.randrange(len(self.sessions)))
            self.space.forget(session=session_id)

    def change(self) -> None:
        usual: list[Callable[[], None]] = [self.say, self.say, self.say, self.edit, self.delete]
        self.random.choice([*usual * 4, self.forget, self.learn])()

    def judge(self) -> dict[LineState, int]:
        """Every block is what it was, or says of each line that it is not, what became of it."""
        seen = dict.fromkeys(LineState, 0)
        for block_id, block in self.blocks.items():
            told = self.space.replay(block_id)
            assert told.is_identical == (told.text == block.text), block_id
            before, now = block.text.split("\n"), told.text.split("\n")
            assert len(before) == len(now)
            lines = {line.mark: line for line in told.lines if line.mark}
            assert [*lines] == [each.mark for each in block.citations]
            for citation in block.citations:
                line = lines[citation.mark]
                seen[line.state] += 1
                assert line.text is None or line.text in before
                if line.state is LineState.ERASED:
                    assert line.id in ("", citation.hit.id)  # or what replaced it is erased
                else:
                    assert (line.kind, line.id) == (citation.hit.kind, citation.hit.id)
            missing = [old for old, new in zip(before, now, strict=True) if old != new]
            assert len(missing) == sum(line.text is None for line in told.lines)
        return seen


@ON_BOTH
def test_every_block_is_shown_again_byte_for_byte_or_says_what_became_of_each_line(
    memory: recollect.Memory,
) -> None:
    """N21: a thousand blocks and ten thousand changes where there is time."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    world = World(memory=memory, random=random.Random(seed))
    for _ in range(20):
        world.say()
    world.learn()
    while len(world.blocks) < BLOCKS:
        world.tell()
    assert all(memory.space("alice").replay(each).is_identical for each in world.blocks)
    for _ in range(CHANGES):
        world.change()
    world.learn()
    seen = world.judge()
    assert seen[LineState.SAME], seen
    assert any(seen[each] for each in LineState if each is not LineState.SAME), seen


@ON_BOTH
def test_a_corrected_line_is_shown_as_it_was_told_and_says_what_holds_now(
    memory: recollect.Memory,
) -> None:
    say(memory, "k", "I live in Rome.")
    space = memory.space("alice")
    block = space.context("where do I live", 400)
    [fact] = [each for each in space.facts.list() if "Rome" in each.content]
    changed = space.facts.update(fact.id, "The user lives in Lisbon.")
    told = space.replay(block.id)
    assert (told.is_identical, told.text) == (True, block.text)
    assert [(each.state, each.now) for each in told.lines if each.id == fact.id] == [
        (LineState.CORRECTED, "The user lives in Lisbon.")
    ]
    assert [(each.name, each.times) for each in changed.told] == [("library", 1)]
    assert [each.times for each in space.facts.delete(fact.id)] == [1]
    assert {each.state for each in space.replay(block.id).lines} >= {LineState.DELETED}


@ON_BOTH
def test_why_says_for_a_mark_or_a_line_of_an_answer_where_it_came_from(
    memory: recollect.Memory,
) -> None:
    session = say(memory, "k", "I live in Rome.", "My dog is called Rex.")
    space = memory.space("alice")
    block = space.context("where do I live", 400)
    assert {each.mark for each in space.why().lines} == {each.mark for each in block.citations}
    [line] = space.why("m1").lines
    assert (line.id, line.mark) == (block.citations[0].hit.id, "m1")
    assert "words" in line.reasons
    assert {each.session_id for each in line.sources} == {session.id}
    found = space.why("You live in Rome, as far as I know.").lines
    assert found
    assert all("Rome" in (each.text or "") for each in found)
    assert space.why("Bananas are yellow and curved.").lines == ()
    assert space.why(block.id).id == block.id
    with pytest.raises(NotFound, match="keeps no block"):
        space.replay("nothing of the kind")


@ON_BOTH
def test_what_is_forgotten_is_in_nothing_that_was_told_nor_in_a_question(
    memory: recollect.Memory,
) -> None:
    """P11: also in the question that quotes it and found something else."""
    session = say(memory, "k", "My secret garden is called Zanzibarix.", "Zanzibarix has roses.")
    say(memory, "other", "I live in Lisbon.")
    space = memory.space("alice")
    blocks = [
        space.context("what is Zanzibarix called?", 400),
        space.context("Zanzibarix secret garden Lisbon", 60),
        space.context("", 400),
    ]
    assert all(blocks)
    beside = space.context("where do I live", 400, beside=session.id)
    receipt = space.forget(session=session.id)
    assert receipt.told
    assert receipt.told[0].name == "library"
    rows = [str(row) for row in raw(memory, "SELECT * FROM contexts")]
    assert rows
    assert not [row for row in rows if "anzibar" in row]
    for block in blocks:
        told = space.replay(block.id)
        assert "anzibar" not in f"{told.text}{told.query}{told.settings}".lower()
        assert any(line.state is LineState.ERASED for line in told.lines)
    assert space.replay(beside.id).query == "", "it was said in that session"
    space.forget(everything=True)
    assert raw(memory, "SELECT * FROM contexts") == []


def test_a_block_that_is_late_does_not_bring_back_what_was_erased(
    store_url: str, tmp_path: Path
) -> None:
    """Another process told it a moment before, and writes it down a moment later."""
    if store_url == ":memory:":
        store_url = str(tmp_path / "memory.db")
    with recollect.open(store_url) as one, recollect.open(store_url) as other:
        session = say(one, "k", "My secret garden is called Zanzibarix.")
        kept = other.runtime.told
        block = other.space("alice").context("the garden Zanzibarix", 400)
        pending, kept._pending = kept._pending, []
        one.space("alice").forget(session=session.id)
        kept._pending = pending
        told = other.space("alice").replay(block.id)
        assert {line.state for line in told.lines} == {LineState.ERASED}
        assert "anzibar" not in f"{told.text}{told.query}"


@ON_BOTH
def test_a_block_takes_few_bytes_and_is_kept_for_a_while(memory: recollect.Memory) -> None:
    clock = memory.clock
    assert isinstance(clock, ManualClock)
    for number in range(30):
        session = memory.space("alice").session(f"k{number}")
        for place in PLACES:
            session.append("user", f"Day {number}: I went to {place} with Zed{number}.")
    space = memory.space("alice")
    for place in PLACES:
        assert space.context(f"who went to {place} with me?", 800)
    memory.runtime.told.flush()
    columns = "space, id, reader, coalesce(session_id, ''), query, refs"
    sizes = [
        sum(len(str(part)) for part in row[:-1]) + len(bytes(row[-1])) + 8
        for row in raw(memory, f"SELECT {columns}, told FROM contexts")
    ]
    assert len(sizes) == len(PLACES)
    assert sum(sizes) / len(sizes) <= BYTES_MAX, sizes
    clock.advance(timedelta(days=91).total_seconds())
    memory.pipeline.sweep()
    assert raw(memory, "SELECT * FROM contexts") == []


def test_nothing_is_kept_where_it_is_off_or_cannot_be_and_telling_goes_on(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "off.db", settings={"contexts_kept": 0}) as memory:
        say(memory, "k", "I live in Rome.")
        assert memory.space("alice").context("where do I live")
        with pytest.raises(NotFound, match="contexts_kept"):
            memory.space("alice").why()
    with recollect.open(tmp_path / "broken.db") as memory:
        say(memory, "k", "I live in Rome.")
        raw(
            memory,
            "CREATE TRIGGER full BEFORE INSERT ON contexts BEGIN SELECT RAISE(FAIL, ''); END",
        )
        assert memory.space("alice").context("where do I live")
        memory.runtime.told.flush()
        assert raw(memory, "SELECT * FROM contexts") == []


# tests for a memory


CASE = {"ask": "where do I live", "expect": "lives  in ROME", "forbid": ["Lisbon"]}


@ON_BOTH
def test_a_case_names_what_is_missing_and_the_line_that_must_not_be_there(
    memory: recollect.Memory,
) -> None:
    say(memory, "k", "I live in Rome.")
    space = memory.space("alice")
    [checked] = space.check([CASE])
    assert checked.is_passed, checked
    [fact] = [each for each in space.facts.list() if "Rome" in each.content]
    space.facts.update(fact.id, "The user lives in Lisbon.")
    [checked] = space.check([CASE])
    assert checked.missing == ("lives  in ROME",)
    assert [each.hit.id for each in checked.forbidden if each.hit] == [fact.id]
    [mine, theirs] = space.check([CASE, {**CASE, "space": "alice"}, {**CASE, "space": "bob"}])
    assert mine.missing == theirs.missing
    with pytest.raises(NotFound):
        space.why()  # a test tells nobody anything


@pytest.mark.parametrize("suffix", ["yaml", "toml", "json"])
def test_a_correction_proposes_a_case_that_holds_from_then_on(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"checks.{suffix}"
    with recollect.open(tmp_path / "memory.db") as memory:
        say(memory, "k", "I live in Rome.")
        space = memory.space("alice")
        space.context("where do I live")
        [fact] = [each for each in space.facts.list() if "Rome" in each.content]
        with pytest.raises(NotFound, match="nobody has corrected"):
            proposed(memory.runtime, "alice", fact.id)
        space.facts.update(fact.id, "The user lives in Lisbon.")
        case = proposed(memory.runtime, "alice", fact.id)
        assert (case.ask, case.expect) == ("where do I live", ("Lisbon",))
        added_to(file, case)
        added_to(file, case)
        assert read_cases(file) == [case]
        assert [each.is_passed for each in space.check(file)] == [True]


@pytest.mark.parametrize(
    "given", ["no list", [{"ask": 3, "expect": "x"}], [{"ask": "x"}], [{"a": 1}]]
)
def test_what_is_no_case_is_refused_by_its_number(tmp_path: Path, given: object) -> None:
    file = tmp_path / "checks.json"
    file.write_text(json.dumps(given), encoding="utf-8")
    with pytest.raises(InvalidValue, match="case"):
        read_cases(file)
