"""P11, N10: whatever becomes of facts, in any order, no page says what does not hold any more.

A word stands for a statement. It is said in a session of its own, and corrected, deleted, left out
or forgotten, while a person writes, takes over and deletes pages. Looked at from outside: at every
page, at what is recalled, and at the bytes in the store.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import recollect
from recollect.errors import NotFound
from recollect.session import Session
from tests.hosted_agents import ON_BOTH, raw

ALICE = "~/memory/people/alice"
NOTES = "~/notes"
STEPS = 40
SETTINGS = {"consolidation": "off"}


@dataclass(slots=True, kw_only=True)
class World:
    """What was said, and what has become of it."""

    memory: recollect.Memory
    random: random.Random
    sessions: dict[str, Session] = field(default_factory=dict)  # of each word that holds
    left_out: dict[str, Session] = field(default_factory=dict)
    void: set[str] = field(default_factory=set)  # what a session says still, and no page
    erased: set[str] = field(default_factory=set)
    first: dict[str, str] = field(default_factory=dict)  # what was said in a session, by its id
    noted: dict[str, str] = field(default_factory=dict)  # a person's page, by the session
    kept: set[str] = field(default_factory=set)  # what such a page says
    said: int = 0

    @property
    def space(self) -> recollect.Space:
        return self.memory.space("alice")

    def word(self) -> str:
        self.said += 1
        letters = "".join(chr(ord("a") + int(digit)) for digit in str(1000 + self.said))
        return f"zq{letters}x"

    def fact(self, word: str) -> recollect.Fact:
        [found] = [each for each in self.space.facts.list(500) if word in each.content]
        return found

    def some(self) -> str | None:
        return self.random.choice(sorted(self.sessions)) if self.sessions else None

    # what happens

    def say(self) -> None:
        word = self.word()
        session = self.space.session(f"s{self.said}")
        session.append("user", f"I love {word}.", name="Alice")
        session.sleep()
        self.memory.work()
        self.sessions[word] = session
        self.first[session.id] = word

    def edit(self) -> None:
        if word := self.some():
            after = self.word()
            self.space.facts.update(self.fact(word).id, f"Alice loves {after}.")
            self.sessions[after] = self.sessions.pop(word)
            self.void.add(word)

    def delete(self) -> None:
        if word := self.some():
            self.space.facts.delete(self.fact(word).id)
            del self.sessions[word]
            self.void.add(word)

    def end(self) -> None:
        if word := self.some():
            self.space.facts.update(self.fact(word).id, valid_to="2020-01-01T00:00:00Z")
            self.space.facts.delete(self.fact_of_any_time(word).id)
            del self.sessions[word]
            self.void.add(word)

    def fact_of_any_time(self, word: str) -> recollect.Fact:
        [found] = [each for each in self.space.facts.list(500, every=True) if word in each.content]
        return found

    def leave_out(self) -> None:
        word = self.some()
        if word and not self.is_edited(word):
            self.sessions[word].set_mode("disabled")
            self.left_out[word] = self.sessions.pop(word)

    def is_edited(self, word: str) -> bool:
        return self.first[self.sessions[word].id] != word

    def take_back(self) -> None:
        if self.left_out:
            word = self.random.choice(sorted(self.left_out))
            self.left_out[word].set_mode("enabled")
            self.memory.work()
            self.sessions[word] = self.left_out.pop(word)

    def forget(self) -> None:
        if word := self.some():
            session = self.sessions[word]
            way = self.random.choice(["session", "record", "fact"])
            if way == "fact":
                receipt = self.space.forget(fact=self.fact(word).id)
            elif way == "record":
                receipt = self.space.forget(record=f"{session.id}:1")
            else:
                receipt = self.space.forget(session=session)
            named = {self.noted[session.id]} if session.id in self.noted else set()
            assert set(receipt.left) == named
            assert receipt.is_complete is not bool(named)
            del self.sessions[word]
            (self.void if way == "fact" else self.erased).add(word)
            if way != "fact":  # what was said there before it was edited goes as well
                self.void.discard(self.first[session.id])
                self.erased.add(self.first[session.id])

    def note(self) -> None:
        if (word := self.some()) and self.sessions[word].id not in self.noted:
            path = f"{NOTES}/{len(self.noted)}"
            self.space.documents.write(path, f"About {word}.", facts=[self.fact(word).id])
            self.noted[self.sessions[word].id] = path
            self.kept.add(word)

    def take_over(self) -> None:
        self.space.documents.write(ALICE, "She sings.")

    def give_back(self) -> None:
        page = self.space.documents.find(ALICE)
        if page is not None and page.body == "She sings.":
            self.space.documents.delete(ALICE)

    def work(self) -> None:
        self.memory.work()

    # what is seen

    def check(self) -> None:
        pages = [self.space.documents.read(node.path) for node in self.space.documents.tree()]
        rendered = [page for page in pages if not page.path.startswith(NOTES)]
        for word in self.sessions:
            saying = [page.path for page in rendered if word in page.body]
            assert len(saying) == 1, (word, saying)
        for word in {*self.left_out, *self.void, *self.erased}:
            assert not [page.path for page in rendered if word in f"{page.body} {page.title}"]
            hits = self.space.recall(word, 20, kinds=["document"])
            assert not [hit.id for hit in hits if word in hit.text and NOTES not in hit.id]
        for page in rendered:
            assert page.is_rendered or page.body in ("", "She sings.")
            if page.is_rendered:
                assert len(self.space.documents.history(page.path)) == 1

    def check_bytes(self, directory: Path) -> None:
        files = [each.read_bytes() for each in directory.rglob("*") if each.is_file()]
        tables = ("documents", "document_versions", "derived_inputs", "facts", "session_history")
        rows = [str(row) for table in tables for row in raw(self.memory, f"SELECT * FROM {table}")]
        for word in self.erased - self.kept:
            assert not [1 for content in files if word.encode() in content], word
            assert not [row for row in rows if word in row], word


@ON_BOTH
@pytest.mark.parametrize("seed", range(3))
def test_no_page_says_what_does_not_hold(store_url: str, tmp_path: Path, seed: int) -> None:
    with recollect.open(store_url, settings=SETTINGS) as memory:
        world = World(memory=memory, random=random.Random(seed))
        steps: list[Callable[[], None]] = [
            *(world.say, world.say, world.say, world.edit, world.delete, world.end),
            *(world.forget, world.forget),
            *(world.leave_out, world.take_back, world.note, world.take_over, world.give_back),
            world.work,
        ]
        world.say()
        world.say()
        world.forget()
        done: list[str] = []
        for _ in range(STEPS):
            step = world.random.choice(steps)
            done.append(step.__name__)
            try:
                step()
                world.check()
            except (AssertionError, NotFound) as error:
                raise AssertionError(f"seed {seed}, after {', '.join(done)}") from error
        world.say()
        session = world.sessions[max(world.sessions)]
        world.erased.add(max(world.sessions))
        world.space.forget(session=session)
        del world.sessions[max(world.sessions)]
        world.check()
        world.check_bytes(tmp_path)
