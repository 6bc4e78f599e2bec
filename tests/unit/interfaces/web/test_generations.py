"""N10: generations on pages: what each was made of, how two differ, going back, and waiting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.interfaces.web import operating as pages
from recollect.types.access import Scope
from tests.e2e.web_world import PagedWorld, Visitor, words_of
from tests.unit.interfaces.web.markup import read_markup

GENERATIONS = "/ui/s/alice/generations"
EVIL = "<script>alert(1)</script><b-evil>"
WRITTEN = EVIL.replace("<", "\\<")  # as Markdown says it


@pytest.fixture(scope="module")
def world() -> Iterator[PagedWorld]:
    """Three generations: of Lisbon, of tea as well, and of something hostile on top."""
    with recollect.open(":memory:") as memory:
        made = PagedWorld(memory)
        for number, text in enumerate(
            ("I moved to Lisbon in May.", "I prefer green tea.", f"I prefer {EVIL} biscuits.")
        ):
            session = memory.space("alice").session(f"talk {number}")
            session.append("user", text)
            session.sleep()
            memory.work()
        yield made


@pytest.fixture(scope="module")
def writer(world: PagedWorld) -> Visitor:
    return world.visitor("alice", Scope.WRITE)


def test_generations_are_listed_a_page_at_a_time(
    world: PagedWorld, writer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = writer.get(GENERATIONS).text
    assert "Generation 3 current" in words_of(page)
    made = world.memory.space("alice").generations.get(2)
    assert f"by {made.made_by} 1 1 0 {made.documents}, {made.changed} changed" in words_of(page)
    assert "nothing changed" in page
    assert "Older generations" not in page
    monkeypatch.setattr(pages, "LISTED", 2)
    first = read_markup(writer.get(GENERATIONS).text)
    [older] = [v for _, name, v in first.attributes if name == "href" and "cursor=" in v]
    second = words_of(writer.get(older).text)
    assert "Generation 1" in second
    assert "Generation 2" not in second
    assert writer.get(f"{GENERATIONS}?cursor=x").status_code == 422


def test_a_generation_shows_how_it_differs_from_the_one_before_or_any_other(
    world: PagedWorld, writer: Visitor
) -> None:
    held = world.memory.space("alice").generations

    def compared(query: str) -> tuple[str, list[str], list[str]]:
        page = writer.get(f"{GENERATIONS}/{query}").text
        lines = [each.partition("</span>")[0] for each in page.split('<span class="')]
        added = [each[5:] for each in lines if each.startswith('add">')]
        gone = [each[6:] for each in lines if each.startswith('gone">')]
        return page, added, gone

    page, added, _ = compared("2")
    assert "What changed since generation 1" in words_of(page)
    assert any("green tea" in line for line in added)
    assert not any("Lisbon in May" in line for line in added)
    for change in held.diff(1, 2):
        assert f">{change.path}</a>" in page
    _, added, _ = compared("3?against=1")
    assert any("green tea" in line for line in added)
    assert any("biscuits" in line for line in added)
    _, added, gone = compared("1?against=2")
    assert any("green tea" in line for line in gone)
    assert "the oldest one that is kept" in writer.get(f"{GENERATIONS}/1").text


def test_a_difference_is_text_and_a_long_one_is_shortened(
    writer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = writer.get(f"{GENERATIONS}/3").text
    made = read_markup(page)
    assert WRITTEN in "".join(made.text)
    assert "b-evil" not in made.tags
    assert page.count("<script") == 2
    monkeypatch.setattr(pages, "LINES_SHOWN", 3)
    short = writer.get(f"{GENERATIONS}/3").text
    assert len(short) < len(page)
    assert "more lines" in short
    whole = writer.get(f"{GENERATIONS}/3?against=2&whole=yes").text
    assert whole == page


@pytest.mark.parametrize(
    ("path", "status"),
    [("9", 404), ("0", 404), ("x", 422), ("-1", 422), ("9" * 5000, 422), ("1?against=9", 404)],
)
def test_a_generation_that_is_not_there_is_not_found(
    writer: Visitor, path: str, status: int
) -> None:
    assert writer.get(f"{GENERATIONS}/{path}").status_code == status


def test_generations_pause_and_resume(world: PagedWorld, writer: Visitor) -> None:
    held = world.memory.space("alice").generations
    reader = world.visitor("alice", Scope.READ)
    assert reader.send(f"{GENERATIONS}/pause").status_code == 403
    assert held.state().paused_at is None
    assert "Paused: no generation is made" in writer.send(f"{GENERATIONS}/pause").text
    assert held.state().paused_at is not None
    assert "not by itself" in reader.get(GENERATIONS, hx_request="true").text
    assert "Resumed." in writer.send(f"{GENERATIONS}/resume").text
    assert held.state().paused_at is None


def test_an_earlier_generation_is_restored_as_the_newest() -> None:
    with recollect.open(":memory:") as memory:
        world = PagedWorld(memory)
        space = memory.space("alice")
        for number, text in enumerate(("I moved to Lisbon in May.", "I prefer green tea.")):
            session = space.session(f"talk {number}")
            session.append("user", text)
            session.sleep()
            memory.work()
        writer, reader = world.visitor("alice", Scope.WRITE), world.visitor("alice", Scope.READ)
        assert "/rollback" not in reader.get(f"{GENERATIONS}/1").text
        assert reader.send(f"{GENERATIONS}/1/rollback").status_code == 403
        assert "/rollback" not in writer.get(f"{GENERATIONS}/2").text
        page = writer.send(f"{GENERATIONS}/1/rollback")
        assert page.url.path == f"{GENERATIONS}/3"
        assert "Restored, as generation 3." in page.text
        assert "Restored from generation 1" in words_of(page.text)
        assert space.generations.diff(1, 3) == []
        assert "both are the same" in writer.get(f"{GENERATIONS}/3?against=1").text
        assert writer.send(f"{GENERATIONS}/1/rollback").status_code == 409
