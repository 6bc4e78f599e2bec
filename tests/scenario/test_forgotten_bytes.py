"""P11 in a SQLite file, byte by byte: what is forgotten is nowhere in it, whatever it went through.

Copies of text survive its deletion where a page of the file was split, and where an index was
merged. So texts are written, grown, moved and forgotten at random, of sizes that split pages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.operations.backup import back_up

STEPS = 60
FILLING = " There is nothing to say about the weather of that day."
PAGES = {2: 12, 5: 12, 10: 8, 13: 8}  # the kinds of pages with cells, and how long their heads are


def dirty_pages(file: Path) -> Iterator[int]:
    """The numbers of pages that have something between their cell pointers and their cells."""
    data = file.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    for start in range(0, len(data), size):
        page = data[start : start + size]
        head = 100 if start == 0 else 0
        if page[head] in PAGES:
            cells, first = (int.from_bytes(page[head + at : head + at + 2], "big") for at in (3, 5))
            if any(page[head + PAGES[page[head]] + 2 * cells : first]):
                yield start // size + 1


def saying(directory: Path, words: set[str]) -> list[tuple[str, str]]:
    """Files and the words in them; an index leaves out how a word begins like the one before."""
    files = {file.name: file.read_bytes() for file in directory.iterdir() if file.is_file()}
    return [(name, word) for name in files for word in words if word[3:].encode() in files[name]]


@pytest.mark.parametrize("seed", range(2))
def test_what_is_forgotten_is_in_no_part_of_the_file(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path, there, gone = tmp_path / "memory.db", dict[str, str](), set[str]()
    settings = {"memories_root": "none", "consolidation": "off" if seed else "on"}
    with recollect.open(f"sqlite:///{path}?synchronous=off", settings=settings) as memory:
        space = memory.space("alice")
        for step in range(STEPS):
            what = chance.random()
            if what < 0.65 or not there:
                word = "zq" + "".join(chance.choices("abcdefghijklmnop", k=8))
                session = space.session(f"key-{step}", agent="assistant")
                session.append("user", f"I love {word}." + FILLING * chance.choice([0, 0, 4, 200]))
                session.append("user", f"My friend Tom{step} likes {word} as well.")
                session.end()
                there[word] = session.id
                page = f"notes/{step % 7}"
                space.documents.write(page, FILLING * chance.choice([1, 60, 400]) + str(step))
            elif what < 0.8:
                memory.work()
            else:
                word = chance.choice(sorted(there))
                assert space.forget(session=there.pop(word)).is_complete
                gone.add(word)
                assert saying(tmp_path, gone) == []
                assert list(dirty_pages(path)) == []
        back_up(memory.store, tmp_path / "backup.db")
    assert saying(tmp_path, gone) == []
    assert list(dirty_pages(path)) == list(dirty_pages(tmp_path / "backup.db")) == []
