"""Recall in a project: its own, what belongs to no project, and nothing of another one's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recollect.types.pages import Author, AuthorKind, Because, Content, Write
from recollect.types.recall import Filters
from recollect.types.records import KeyRef, SessionBirth
from recollect_conformance.case import case
from recollect_conformance.findings import (
    DOCUMENT,
    FACT,
    LATER,
    RECORD,
    SUMMARY,
    found,
    learn_in,
    tell_in,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import add, day, statement
from recollect_conformance.pages import apply, place


def _open(store: Harness, key: str, project: str | None) -> KeyRef:
    return store.key(key, agent="/user/coder", birth=SessionBirth(project=project))


@case("N1 P12", "beside a project's own, what belongs to no project may be found, and no other's")
def what_is_of_no_project_may_come_along(store: Harness) -> None:
    for key, project in (("a", "x"), ("b", "y"), ("c", None)):
        ref = _open(store, key, project)
        rule = replace(statement(f"saffron {key}"), metadata={"project": project})
        learn_in(store, ref, rule, statement(f"likes saffron {key}"), summary=f"saffron of {key}")
        tell_in(store, _open(store, f"{key} again", project), f"saffron says {key}")
    add(store, "saffron by hand")
    for project in ("x", "y"):
        add(store, f"saffron added in {project}", metadata={"project": project})
    for kind in (AuthorKind.PERSON, AuthorKind.AGENT):  # an agent writes of all that it was told
        page = Write(place=place(kind.value), content=Content(title="x", body=f"saffron {kind}"))
        apply(store, page, because=Because(author=Author(kind, "ana")))
    own = Filters(project="x", or_no_project=True)
    persons = [f"likes saffron {key}" for key in "abc"]  # what names no project is the person's
    for asked, expected in (
        (FACT, [*persons, "saffron a", "saffron added in x", "saffron by hand", "saffron c"]),
        (SUMMARY, ["saffron of a", "saffron of c"]),
        (RECORD, ["saffron says a", "saffron says c"]),
        (DOCUMENT, ["saffron person"]),
    ):
        assert sorted(found(store, "saffron", asked, filters=own)) == expected, asked
    alone = found(store, "saffron", FACT, filters=Filters(project="x"))
    assert sorted(alone) == ["likes saffron a", "saffron a", "saffron added in x"]
    assert found(store, "saffron", DOCUMENT, filters=Filters(project="x")) == []
    narrow = Filters(project="x", or_no_project=True, agent="/user/writer")
    assert found(store, "saffron", filters=narrow) == []


@case("N1 N14", "the latest of a project is its own and the person's, without what is shown anyway")
def the_latest_of_a_project(store: Harness) -> None:
    sessions: dict[str, str] = {}
    for at, (key, project) in enumerate((("a", "x"), ("b", "y"), ("c", None), ("d", "x"))):
        rule = replace(
            statement(f"use {key}"), tags=("instruction",), metadata={"project": project}
        )
        likes = replace(statement(f"likes {key}"), tags=("preference",))
        sessions[key] = learn_in(
            store, _open(store, key, project), rule, likes, summary=key, said=day(at + 1)
        )
    add(store, "by hand")

    def latest(beside: str = "", **given: Any) -> tuple[list[str], list[str], list[str]]:
        filters = Filters(**given)
        found = store.handle.search.latest(
            SPACE, filters, LATER, facts=9, sessions=9, beside=beside
        )
        texts = [sorted(entry.text for entry in some) for some in (found.instructions, found.added)]
        return texts[0], texts[1], [each.entry.text for each in found.sessions]

    persons = [f"likes {key}" for key in "abcd"]
    assert latest(project="x") == ([*persons, "use a", "use c", "use d"], ["by hand"], ["d", "a"])
    assert latest() == latest(or_no_project=True) == ([*persons, "use c"], ["by hand"], ["c"])
    assert latest(sessions["d"], project="x")[2] == ["a"]
    assert latest(project="x", until=day(3))[2] == ["a"]
    assert latest(project="z") == ([*persons, "use c"], ["by hand"], [])
    few = store.handle.search.latest(SPACE, Filters(project="x"), LATER, facts=2, sessions=1)
    assert (len(few.instructions), [each.entry.text for each in few.sessions]) == (2, ["d"])
