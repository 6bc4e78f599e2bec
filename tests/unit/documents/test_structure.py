"""Moves, creations and deletions: found in an order that works, or left over."""

from __future__ import annotations

from recollect.documents.paths import DEPTH_MAX, DocumentPath, memory_root, read_path
from recollect.documents.structure import Creating, Deleting, Moving, Ordering, Sketch


def ordering(
    *paths: str,
    moves: dict[str, str] | None = None,
    creations: tuple[str, ...] = (),
    deletions: tuple[str, ...] = (),
    staying: tuple[str, ...] = (),
    bare: tuple[str, ...] | None = None,
) -> Ordering:
    """Documents are called by where they stand."""
    made = Ordering(
        sketch=Sketch(memory_root(), [(path, read_path(path)) for path in paths]),
        moves={path: read_path(to) for path, to in (moves or {}).items()},
        creations={read_path(path).key: read_path(path) for path in creations},
        deletions=list(deletions),
        bare=None if bare is None else frozenset(bare),
    )
    made.run({path: read_path(path) for path in staying})
    return made


def short(path: DocumentPath) -> str:
    return path.text.removeprefix("~/memory/")


def told(made: Ordering) -> list[str]:
    said = []
    for step in made.steps:
        match step:
            case Moving():
                said.append(f"{short(step.source)} > {short(step.target)}")
            case Creating():
                said.append(f"+ {short(step.target)}")
            case Deleting():
                said.append(f"- {short(step.source)}")
    return said


def test_a_page_moves_before_what_is_below_it_which_is_then_there_already() -> None:
    made = ordering("a", "a/b", "a/b/c", moves={"a": "x", "a/b": "x/b", "a/b/c": "x/b/c"})
    assert told(made) == ["a > x"]


def test_what_was_carried_along_and_stays_goes_back() -> None:
    made = ordering("a", "a/b", "a/c", moves={"a": "x"}, staying=("a/b",))
    assert told(made) == ["a > x", "x/b > a/b"]


def test_a_place_is_taken_when_it_is_free() -> None:
    assert told(ordering("a", "b", moves={"a": "b", "b": "c"})) == ["b > c", "a > b"]
    assert told(ordering("a", "b", moves={"a": "b"}, deletions=("b",))) == ["- b", "a > b"]
    assert told(ordering("a", moves={"a": "b"}, creations=("a",))) == ["a > b", "+ a"]


def test_what_would_change_places_is_left_over() -> None:
    made = ordering("a", "b", moves={"a": "b", "b": "a"})
    assert made.steps == []
    assert set(made.moves) == {"a", "b"}
    assert "something else" in made.sketch.problem("a", read_path("b"))


def test_nothing_moves_below_itself() -> None:
    made = ordering("a", moves={"a": "a/b/c"})
    assert set(made.moves) == {"a"}
    assert "below itself" in made.sketch.problem("a", read_path("a/b/c"))


def test_a_page_that_moves_below_itself_steps_aside() -> None:
    made = ordering("a", "a/b", moves={"a": "a/c"}, staying=("a/b",), bare=())
    assert told(made) == ["a > moving-1", "moving-1/b > a/b", "moving-1 > a/c"]
    made = ordering("a", "moving-1", moves={"a": "a/b/c"}, bare=())
    assert told(made) == ["a > moving-2", "moving-2 > a/b/c"]


def test_a_page_that_says_nothing_gives_way() -> None:
    made = ordering("a", "b", "b/c", "b/d", moves={"a": "b"}, staying=("b", "b/c"), bare=("b",))
    assert told(made) == [
        *("b > moving-1", "a > b", "moving-1/c > b/c", "moving-1/d > b/d", "- moving-1")
    ]
    assert not made.is_stuck


def test_whoever_steps_aside_for_nothing_is_stuck() -> None:
    made = ordering("a", "b", "b/c", "x", moves={"a": "b", "b/c": "x"}, bare=("b",))
    assert made.is_stuck
    assert not ordering("a", "b", "b/c", moves={"a": "b"}).is_stuck


def test_a_new_page_below_one_that_leaves_is_made_when_that_has_left() -> None:
    made = ordering("x", moves={"x": "y"}, creations=("x/new",))
    assert told(made) == ["x > y", "+ x/new"]
    made = ordering(*("p", "p/x"), moves={"p": "q"}, creations=("p/x/new",), staying=("p/x",))
    assert told(made) == ["p > q", "q/x > p/x", "+ p/x/new"]


def test_many_moves_take_one_pass() -> None:
    count = 2000
    paths = [f"old/{number}" for number in range(count)]
    made = ordering("old", *paths, moves={path: f"new{path[3:]}" for path in paths})
    assert len(made.steps) == count


def test_nothing_is_moved_too_deep() -> None:
    made = ordering("a", "a/b", moves={"a": "/".join("x" * (DEPTH_MAX - 1))})
    assert set(made.moves) == {"a"}


def test_a_change_of_case_is_a_move() -> None:
    assert told(ordering("ana", moves={"ana": "Ana"})) == ["ana > Ana"]


def test_the_lowest_is_deleted_first_and_what_has_others_below_it_is_left_over() -> None:
    assert told(ordering("a", "a/b", deletions=("a", "a/b"))) == ["- a/b", "- a"]
    made = ordering("a", "a/b", deletions=("a",))
    assert made.steps == []
    assert made.deletions == ["a"]


def test_a_page_whose_children_all_moved_away_can_be_deleted() -> None:
    made = ordering("a", "a/b", moves={"a/b": "c"}, deletions=("a",))
    assert told(made) == ["a/b > c", "- a"]


def test_a_new_page_below_keeps_its_parent() -> None:
    made = ordering("a", creations=("a/new",), deletions=("a",))
    assert told(made) == ["+ a/new"]
    assert made.deletions == ["a"]


def test_parents_are_made_before_children() -> None:
    assert told(ordering(creations=("a/b", "a"))) == ["+ a", "+ a/b"]


def test_a_new_page_is_made_before_something_is_moved_below_it() -> None:
    made = ordering("a", "b", moves={"a": "c", "b": "a/b"}, creations=("a",))
    assert told(made) == ["a > c", "+ a", "b > a/b"]


def test_a_taken_place_is_left_over() -> None:
    made = ordering("a", creations=("A",))
    assert made.steps == []
    assert list(made.creations) == ["memory\x01a"]


def test_the_root_can_be_created_where_there_is_none() -> None:
    assert [
        step.target
        for step in ordering(creations=("~/memory",)).steps
        if isinstance(step, Creating)
    ] == [memory_root()]
    assert ordering("~/memory", creations=("~/memory",)).steps == []
