"""Recall in a project: its own, what belongs to no project, and nothing of another one's."""

from __future__ import annotations

from dataclasses import replace

from recollect.document import Author, AuthorKind, Because, Content, Write
from recollect.domain import KeyRef, SessionBirth
from recollect.recollection import Filters
from recollect_conformance.case import case
from recollect_conformance.findings import (
    DOCUMENT,
    FACT,
    RECORD,
    SUMMARY,
    found,
    learn_in,
    tell_in,
)
from recollect_conformance.harness import Harness
from recollect_conformance.lessons import add, statement
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
