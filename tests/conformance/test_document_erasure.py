"""P11 and D6 for SQLite files: after a purge, no byte of what was purged is in any file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.types.facts import Source
from recollect.types.pages import (
    Author,
    AuthorKind,
    Because,
    Content,
    NewReference,
    ReferenceKind,
    Write,
)
from recollect_conformance import Harness
from recollect_conformance.harness import SPACE
from recollect_conformance.pages import (
    above,
    apply,
    assert_sound,
    deleting,
    moving,
    page,
    paths,
    place,
    write,
    writing,
)
from tests.conformance.test_erasure import left_of

# Each stands in another column of a document, of its versions or of what refers from it.
PLACES = (
    *("slug", "title", "description", "body", "tag", "link", "alias", "target", "author"),
    *("reason", "session", "quote", "fact", "earlier", "deleted", "movedfrom", "below"),
)
CANARIES = {name: f"zq{name}xv{number:03}" for number, name in enumerate(PLACES)}


@pytest.fixture(params=["wal", "journal"])
def settings(request: pytest.FixtureRequest) -> Settings:
    return Settings(sqlite_wal=request.param == "wal")


@pytest.fixture
def store(tmp_path: Path, settings: Settings) -> Iterator[Harness]:
    path = tmp_path / "memory.db"
    with closing(Harness(lambda: open_store(path, settings, ManualClock()))) as harness:
        yield harness


def tell_everything(store: Harness) -> str:
    """A page with a canary in every place that can hold a word; its path."""
    said = CANARIES
    path = f"secret/{said['slug']}"
    mention = NewReference(
        kind=ReferenceKind.BODY, place=place(said["target"]), alias=said["alias"]
    )
    link = NewReference(kind=ReferenceKind.LINK, place=place(said["link"]))
    content = Content(
        title=said["title"],
        description=said["description"],
        body=said["body"],
        tags=(said["tag"],),
        links=(f"~/{said['link']}",),
    )
    because = Because(
        author=Author(AuthorKind.AGENT, said["author"]),
        reason=said["reason"],
        sources=(Source(session_id=said["session"], seq=1, seq_to=2, quote=said["quote"]),),
        facts=(said["fact"],),
    )
    edit = Write(
        place=place(path), content=content, references=(mention, link), parents=above(path)
    )
    apply(
        store,
        replace(edit, content=replace(content, body=said["earlier"])),
        edit,
        writing(f"{path}/{said['below']}", "below"),
        writing("secret/other", said["deleted"]),
        deleting("secret/other"),
        writing(said["movedfrom"], "moved"),
        moving(said["movedfrom"], "secret/moved"),
        because=because,
    )
    return path


def tails(words: list[str]) -> list[str]:
    """What the index keeps of words that begin like others before them."""
    return [word[3:] for word in words]


def test_no_byte_of_a_purged_page_is_left_in_any_file(store: Harness, tmp_path: Path) -> None:
    write(store, "kept", "something else is kept")
    tell_everything(store)
    canaries = tails(list(CANARIES.values()))
    assert left_of(canaries, tmp_path) == canaries
    store.handle.documents.purge(SPACE, place("secret"))
    assert left_of(canaries, tmp_path) == []
    assert paths(store, "kept", "secret") == ["kept"]
    assert_sound(store, "kept", "secret")


def test_no_byte_of_many_and_long_pages_is_left_in_any_file(store: Harness, tmp_path: Path) -> None:
    """Enough for inner pages of every tree, overflow pages, and several segments of the index."""
    secrets = [f"zq{number * 7919 % 10007:05}xv" for number in range(0, 600, 2)]
    kept = [f"zq{number * 7919 % 10007:05}yw" for number in range(1, 600, 2)]
    for root, words in (("secret", secrets), ("kept", kept)):
        for first in range(0, len(words), 60):
            some = words[first : first + 60]
            edits = [writing(f"{root}/{word}", f"likes {word} and {word}s") for word in some]
            apply(store, *edits)
        for word in words[:30]:
            write(store, f"{root}/{word}", f"{word} " * 2000, mentions=[f"{root}/{word}"])
            apply(store, deleting(f"{root}/{word}"))
    assert left_of(secrets, tmp_path) == secrets
    purged = store.handle.documents.purge(SPACE, place("secret"))
    assert (purged.documents, purged.versions) == (301, 301 + 60)
    assert left_of(secrets, tmp_path) == []
    assert left_of(kept, tmp_path) == kept
    assert len(paths(store, "kept")) == 1 + len(kept) - 30


def test_no_byte_of_a_forgotten_session_is_left_in_the_grounds_of_a_page(
    store: Harness, tmp_path: Path
) -> None:
    session = store.current(store.key()).id
    quotes = [f"zqquote{number}xv" for number in range(40)]
    for number, quote in enumerate(quotes):
        source = Source(session_id=session, seq=1, seq_to=1, quote=quote * 50)
        apply(store, writing("a", f"version {number}"), because=Because(sources=(source,)))
    assert left_of(quotes, tmp_path) == quotes
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert left_of(quotes, tmp_path) == []
    assert page(store, "a").body == "version 39"
