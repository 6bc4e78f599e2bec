"""Many writers of one tree at once: one page per place, every version once, never a circle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from recollect.errors import UsageError
from recollect.store.protocol import Store
from recollect.types.pages import Document, Edit, Move, Rewrite, TreeLimits, Write
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.pages import (
    DEEP,
    LIMITS,
    apply,
    apply_on,
    assert_sound,
    deleting,
    events,
    find,
    grow,
    history,
    into,
    leads_to,
    moving,
    nodes,
    out_of,
    page,
    paths,
    place,
    restoring,
    write,
    writing,
)

THREADS = 8
ROUNDS = 6


def _try(
    store: Harness, handle: Store, edits: Sequence[Edit], limits: TreeLimits = LIMITS
) -> list[Document] | UsageError:
    """The edits, or the typed error with which they were refused."""
    try:
        return apply_on(handle, store, edits, limits=limits)
    except UsageError as error:
        return error


def _race(
    store: Harness, *sets: Sequence[Edit], limits: TreeLimits = LIMITS
) -> list[list[Document] | UsageError]:
    """Every set of edits at the same moment; every other one through another handle."""
    handles = [store.handle]
    if not store.is_volatile:
        handles.append(store.second_handle())
    jobs = [
        partial(_try, store, handles[number % len(handles)], edits, limits)
        for number, edits in enumerate(sets)
    ]
    return store.at_once(*jobs)


def _made(outcomes: Sequence[list[Document] | UsageError]) -> int:
    return sum(isinstance(outcome, list) for outcome in outcomes)


@case("D3 D5", "of many who make the same page at once one makes it")
def one_of_many_makes_a_page(store: Harness) -> None:
    for number in range(ROUNDS):
        edits = [[writing(f"a/{number}", f"by {n}", expected=0)] for n in range(THREADS)]
        assert _made(_race(store, *edits)) == 1
    assert assert_sound(store, "a") == ROUNDS + 1


@case("D3", "names that are the same without case, made at once in every form, are one page")
def names_without_case_at_once_are_one_page(store: Harness) -> None:
    forms = ("Straße", "STRASSE", "strasse", "straſse", "STRAßE", "sTRASSE", "Strasse", "ſtraße")
    for number in range(ROUNDS):
        _race(store, *([writing(f"a/{number}/{form}", form)] for form in forms))
        top, one = nodes(store, f"a/{number}")
        assert (top.version, one.version) == (1, len(forms))
    assert assert_sound(store, "a") == 1 + 2 * ROUNDS


@case("D3", "parents that many make at once are made once")
def parents_at_once_are_made_once(store: Harness) -> None:
    made = _race(store, *([writing(f"a/b/c/{number}")] for number in range(THREADS)))
    assert _made(made) == THREADS
    assert assert_sound(store, "a") == 3 + THREADS


def _under(path: str, other: str) -> Move:
    """A page below another one that has to be there."""
    to = f"{other}/{path.rpartition('/')[2]}"
    return replace(moving(path, to), parents=())


@case("D3", "two moves that cross never make a circle, and lose nothing")
def crossing_moves_never_make_a_circle(store: Harness) -> None:
    for number in range(ROUNDS):
        a, b = f"r{number}/a", f"r{number}/b"
        grow(store, f"{a}/x", f"{b}/y")
        assert _made(_race(store, [_under(a, f"{b}/y")], [_under(b, f"{a}/x")])) == 1
        assert len(nodes(store, f"r{number}")) == 5
    assert assert_sound(store, *(f"r{number}" for number in range(ROUNDS))) == 5 * ROUNDS


@case("D3", "two moves that cross and make what is missing are both made, one after the other")
def crossing_moves_make_what_is_missing(store: Harness) -> None:
    for number in range(ROUNDS):
        a, b = f"r{number}/a", f"r{number}/b"
        grow(store, f"{a}/x", f"{b}/y")
        assert _made(_race(store, [moving(a, f"{b}/y/a")], [moving(b, f"{a}/x/b")])) == 2
        first, second = (a, b) if leads_to(store, f"{a}/x/b/y/a/x") else (b, a)
        assert page(store, f"{first}/{'x' if first == a else 'y'}").body == ""
        assert page(store, second).path.count("/") == 4
    assert assert_sound(store, *(f"r{number}" for number in range(ROUNDS))) == 7 * ROUNDS


@case("D3", "a ring of moves at once never makes a circle, and loses nothing")
def a_ring_of_moves_never_makes_a_circle(store: Harness) -> None:
    names = [f"r/{letter}" for letter in "abcdefgh"]
    for _ in range(ROUNDS):
        grow(store, *names)
        ring = zip(names, [*names[1:], names[0]], strict=True)
        assert _made(_race(store, *([_under(one, two)] for one, two in ring))) < len(names)
        assert assert_sound(store, "r") == 1 + len(names)
        store.handle.documents.purge(SPACE, place("r"))


@case("D3", "of many that are moved to one place at once one gets there")
def one_of_many_gets_to_a_place(store: Harness) -> None:
    grow(store, *(f"a/{number}/x" for number in range(THREADS)))
    assert _made(_race(store, *([moving(f"a/{n}", "b/B")] for n in range(THREADS)))) == 1
    assert len(nodes(store, "b")) == 3
    assert assert_sound(store, "a", "b") == 1 + 2 * THREADS + 1


@case("D5 D1", "of many who change the same version at once one does")
def one_of_many_changes_a_version(store: Harness) -> None:
    write(store, "a", "one")
    for version in range(1, ROUNDS + 1):
        edits = [[writing("a", f"{version} by {n}", expected=version)] for n in range(THREADS)]
        assert _made(_race(store, *edits)) == 1
    assert page(store, "a").version == ROUNDS + 1
    assert len(history(store, page(store, "a"))) == ROUNDS + 1


@case("D5", "who reads, adds and writes again until it is current loses no word of anybody")
def no_word_is_lost_at_once(store: Harness) -> None:
    write(store, "a", "begin")

    def add(number: int) -> None:
        done = False
        while not done:
            known = page(store, "a")
            edit = writing("a", f"{known.body} {number}", expected=known.version)
            done = isinstance(_try(store, store.handle, [edit]), list)

    store.at_once(*(partial(add, number) for number in range(THREADS)))
    first, *words = page(store, "a").body.split()
    assert (first, sorted(map(int, words))) == ("begin", list(range(THREADS)))
    assert page(store, "a").version == THREADS + 1


@case("D5 P6", "sets of edits that are made at once are made one after the other, whole or not")
def sets_of_edits_do_not_mix(store: Harness) -> None:
    names = [f"a/{number}" for number in range(5)]
    grow(store, *names)
    sets = [
        [writing(name, f"{name} by {n}") for name in (names if n % 2 else names[::-1])]
        + ([writing("a", expected=99)] if n % 4 == 0 else [])
        for n in range(THREADS)
    ]
    assert _made(_race(store, *sets)) == THREADS - THREADS // 4
    assert len({page(store, name).body.split()[-1] for name in names}) == 1
    assert {page(store, name).version for name in names} == {1 + THREADS - THREADS // 4}


@case("D1 P12", "no tree grows too large, however many let it grow at once")
def no_tree_grows_too_large_at_once(store: Harness) -> None:
    limits = TreeLimits(documents_max=5, depth_max=DEEP)
    made = _race(store, *([writing(f"a/{n}")] for n in range(THREADS)), limits=limits)
    assert _made(made) == 4
    assert assert_sound(store, "a") == 5


@case("D2 D6", "a page that is deleted while others link to it is broken to them or not deleted")
def deleting_and_linking_at_once_agree(store: Harness) -> None:
    for number in range(ROUNDS):
        grow(store, "b")
        linking = [[writing(f"a/{number}/{n}", links=["b"])] for n in range(THREADS - 1)]
        outcomes = _race(store, *linking, [deleting("b")])
        assert _made(outcomes[:-1]) == THREADS - 1
        is_there = find(store, "b") is not None
        assert is_there == isinstance(outcomes[-1], UsageError)
        for n in range(THREADS - 1):
            assert out_of(store, f"a/{number}/{n}") == [("b", is_there)]
        if is_there:
            assert len(into(store, "b")) == len(store.handle.documents.orphans(SPACE, 1000))
            apply(store, deleting("b", leaves_broken=True))
        store.handle.documents.purge(SPACE, place("a"))


@case("D2", "a page that is made while others link to it is alive to all of them")
def making_and_linking_at_once_agree(store: Harness) -> None:
    for number in range(ROUNDS):
        target = f"b/{number}"
        linking = [[writing(f"a/{number}/{n}", links=[target])] for n in range(THREADS - 1)]
        assert _made(_race(store, *linking, [writing(target)])) == THREADS
        assert len(into(store, target)) == THREADS - 1
    assert_sound(store, "a", "b")


@case("D3 D6", "moving into what is deleted at once leaves the tree whole")
def moving_and_deleting_at_once_agree(store: Harness) -> None:
    for _ in range(ROUNDS):
        grow(store, "a/b", "c/d")
        _race(store, [moving("c/d", "a/b/d")], [deleting("a")], [writing("a/b/new")])
        assert_sound(store, "a", "c")
        for root in ("a", "c"):
            store.handle.documents.purge(SPACE, place(root))


@case("D6 D7", "of many who restore a page at once one does")
def one_of_many_restores(store: Harness) -> None:
    grow(store, "a/b")
    for _ in range(ROUNDS):
        apply(store, deleting("a"))
        assert _made(_race(store, *[[restoring("a")]] * THREADS)) == 1
    assert paths(store, "a") == ["a", "a/b"]
    assert len(events(store, page(store, "a/b"))) == 1 + 2 * ROUNDS
    assert assert_sound(store, "a") == 2


@case("P9 D3", "spaces are written at once without waiting for or seeing each other")
def spaces_are_written_at_once(store: Harness) -> None:
    spaces = [f"space {number}" for number in range(THREADS)]
    store.at_once(*(partial(grow, store, "a/b", "c", space=space) for space in spaces))
    for space in spaces:
        assert assert_sound(store, "a", "c", space=space) == 3


@case("D5", "whatever many add to a page at once is all there, and nobody has to try again")
def all_that_is_added_at_once_is_there(store: Harness) -> None:
    known = write(store, "a", "start")

    def adding(text: str) -> Rewrite:
        def change(document: Document | None) -> Write:
            assert document is not None
            return writing("a", f"{document.body} {text}")

        return Rewrite(place=place("a"), change=change, document_id=known.id)

    for number in range(ROUNDS):
        edits = [[adding(f"{number}-{n}")] for n in range(THREADS)]
        assert _made(_race(store, *edits)) == THREADS
    said = page(store, "a")
    wanted = {f"{number}-{n}" for number in range(ROUNDS) for n in range(THREADS)}
    assert set(said.body.split()) == wanted | {"start"}
    assert said.version == 1 + ROUNDS * THREADS
