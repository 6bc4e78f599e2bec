"""What a model that files memory may not undo: people's lines and names, and most of a page."""

from __future__ import annotations

from typing import Any

import pytest

import recollect
from recollect.agents.memory_agent import PAGE, objection
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.errors import NotAllowed
from recollect.types.pages import Author, AuthorKind

ANNA = "~/memory/people/anna"
LINES = [f"Line {number}." for number in range(1, 9)]
BODY = "\n".join(LINES)


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def held(space: recollect.Space, kind: AuthorKind, *, whole: bool = True) -> Documents:
    root = None if whole else memory_root()
    return space.documents.held_by(Holder(author=Author(kind, "x"), root=root))


def by_people(space: recollect.Space, body: str = BODY, **given: Any) -> None:
    held(space, AuthorKind.PERSON).write(ANNA, body, **given)


def by_agents(space: recollect.Space, body: str = BODY) -> None:
    held(space, AuthorKind.AGENT).write(ANNA, body)


def staged(space: recollect.Space) -> StagedPages:
    return StagedPages(held(space, AuthorKind.AGENT, whole=False), "filed")


def writing(space: recollect.Space, body: str, **given: Any) -> str | None:
    return objection(staged(space), "document_write", {"path": ANNA, "body": body, **given})


def patching(space: recollect.Space, old: str, new: str) -> str | None:
    return objection(staged(space), "document_patch", {"path": ANNA, "old": old, "new": new})


# people's


@pytest.mark.parametrize("gone", range(len(LINES)))
def test_no_line_that_a_person_wrote_may_go(space: recollect.Space, gone: int) -> None:
    by_people(space)
    left = "\n".join(line for line in LINES if line != LINES[gone])
    assert "people wrote 1 of the lines" in (writing(space, left) or "")
    assert "people wrote 1 of the lines" in (patching(space, LINES[gone], "") or "")
    assert patching(space, LINES[gone], LINES[gone].replace("Line", "Lie")) is not None


def test_lines_may_be_added_moved_and_indented(space: recollect.Space) -> None:
    by_people(space)
    assert writing(space, f"{BODY}\nmore") is None
    assert writing(space, "\n".join(reversed(LINES))) is None
    assert writing(space, "\n".join(f"  {line}  " for line in LINES)) is None
    assert patching(space, LINES[0], f"{LINES[0]}\nand more") is None


def test_a_persons_line_stays_a_persons_after_an_agents_version(space: recollect.Space) -> None:
    by_people(space, "Hers.")
    by_agents(space, "Hers.\nOurs.")
    assert writing(space, "Ours.") is not None
    assert writing(space, "Hers.") is None, "what an agent added may go"


def test_what_a_person_took_off_need_not_stay(space: recollect.Space) -> None:
    by_people(space, "Old.\nKept.")
    by_people(space, "Kept.")
    assert writing(space, "Kept.\nNew.") is None
    assert writing(space, "Old.\nNew.") is not None


def test_it_is_known_however_many_versions_came_after(space: recollect.Space) -> None:
    by_people(space, "Hers.")
    for number in range(2 * PAGE + 3):
        by_agents(space, f"Hers.\nOurs, {number}.")
    assert writing(space, "Ours.") is not None


@pytest.mark.parametrize("name", ["title", "description"])
def test_what_people_call_a_page_stays(space: recollect.Space, name: str) -> None:
    by_people(space, **{name: "Anna"})
    assert "leave its title and description out" in (writing(space, BODY, **{name: "Liar"}) or "")
    assert writing(space, BODY, **{name: "Anna"}) is None
    assert writing(space, BODY) is None


def test_a_name_that_nobody_gave_may_be_given(space: recollect.Space) -> None:
    by_people(space)
    assert writing(space, BODY, title="Anna", description="A sister") is None


# agents'


def test_most_of_a_page_may_not_go_at_once(space: recollect.Space) -> None:
    by_agents(space)
    assert writing(space, "\n".join(LINES[4:])) is None, "half of it"
    assert "would take 5 of 8 lines" in (writing(space, "\n".join(LINES[5:])) or "")
    assert writing(space, "") is not None
    assert patching(space, "\n".join(LINES[:5]), "x") is not None


def test_nor_in_several_edits_of_one_turn(space: recollect.Space) -> None:
    by_agents(space)
    edits = staged(space)
    left = list(LINES)
    refused = 0
    for line in LINES:
        call = {"path": ANNA, "old": f"{line}\n" if line != LINES[-1] else line, "new": ""}
        if objection(edits, "document_patch", call) is not None:
            refused += 1
            continue
        edits.patch(ANNA, call["old"], "")
        left.remove(line)
    assert refused == 4
    assert len(left) == 4


def test_a_short_page_may_be_rewritten(space: recollect.Space) -> None:
    by_agents(space, "One.\nTwo.\nThree.")
    assert writing(space, "Other.") is None


def test_what_was_begun_in_the_same_turn_may_be_rewritten(space: recollect.Space) -> None:
    edits = staged(space)
    edits.write(ANNA, BODY)
    assert objection(edits, "document_write", {"path": ANNA, "body": "short"}) is None


# calls that are not its business


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("document_write", {"path": "~/memory/new", "body": "x"}),
        ("document_write", {"path": 5, "body": "x"}),
        ("document_write", {"body": "x"}),
        ("document_write", {"path": ANNA, "body": None}),
        ("document_patch", {"path": ANNA, "old": "", "new": "x"}),
        ("document_patch", {"path": ANNA, "old": 5, "new": "x"}),
        ("document_append", {"path": ANNA, "text": "x"}),
        ("document_read", {"path": ANNA}),
        ("document_tree", {}),
    ],
)
def test_what_takes_nothing_away_or_is_no_call_is_left_to_others(
    space: recollect.Space, name: str, arguments: dict[str, Any]
) -> None:
    by_people(space)
    assert objection(staged(space), name, arguments) is None


def test_a_path_outside_is_refused_here_too(space: recollect.Space) -> None:
    with pytest.raises(NotAllowed):
        objection(staged(space), "document_write", {"path": "~/secret", "body": "x"})


@pytest.mark.parametrize("path", ["~/memory/people/ANNA", "~/memory//people/anna"])
def test_another_spelling_is_the_same_page(space: recollect.Space, path: str) -> None:
    by_people(space)
    try:
        found = objection(staged(space), "document_write", {"path": path, "body": "gone"})
    except recollect.RecollectError:
        return
    assert found is not None


def test_by_id_it_is_the_same_page(space: recollect.Space) -> None:
    by_people(space)
    known = space.documents.read(ANNA).id
    arguments = {"path": known, "body": "gone"}
    assert objection(staged(space), "document_write", arguments) is not None
