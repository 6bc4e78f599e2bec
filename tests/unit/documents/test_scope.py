"""G8, A8: who may see and change what, decided on where a document stands."""

from __future__ import annotations

import pytest

import recollect
from recollect.documents.paths import read_path
from recollect.documents.scope import OF_CONSOLIDATION, Holder, is_of_consolidation
from recollect.documents.tree import Documents
from recollect.errors import DocumentReferenced, NotAllowed, NotFound
from recollect.types.pages import Author, AuthorKind
from tests.tables import every_row

PERSON = Author(kind=AuthorKind.PERSON, name="user")
AGENT = Author(kind=AuthorKind.AGENT, name="a")
CONSOLIDATION = Author(kind=AuthorKind.CONSOLIDATION, name="c")
PART = "~/memory/agents/a"


@pytest.fixture
def mine(memory: recollect.Memory) -> Documents:
    return memory.space("alice").documents


@pytest.fixture
def part(mine: Documents) -> Documents:
    return mine.held_by(Holder(author=AGENT, root=read_path(PART)))


@every_row("name", sorted(OF_CONSOLIDATION))
@every_row("shown", [str.lower, str.upper, str.title])
def test_the_five_names_belong_to_consolidation(name: str, shown: object) -> None:
    assert callable(shown)
    for path in (f"~/memory/{shown(name)}", f"~/memory/{shown(name)}/below"):
        assert is_of_consolidation(read_path(path))
        Holder(author=CONSOLIDATION).check_write(read_path(path))
        for author in (PERSON, AGENT):
            with pytest.raises(NotAllowed):
                Holder(author=author).check_write(read_path(path))


@pytest.mark.parametrize(
    "path", ["~/memory", "~/memory/tea", "~/memory/tea/skills", "~/memory/memory.txt"]
)
def test_everything_else_in_memory_belongs_to_agents_and_people(path: str) -> None:
    for author in (PERSON, AGENT):
        Holder(author=author).check_write(read_path(path))
    with pytest.raises(NotAllowed):
        Holder(author=CONSOLIDATION).check_write(read_path(path))


def test_outside_memory_nothing_belongs_to_consolidation() -> None:
    assert not is_of_consolidation(read_path("~/skills/x"))
    Holder(author=PERSON).check_write(read_path("~/skills/x"))


@pytest.mark.parametrize("path", ["~/memory/agents", "~/memory/agents/ab", "~/desk", "~/memory/b"])
def test_a_part_ends_where_its_root_does(path: str) -> None:
    holder = Holder(author=AGENT, root=read_path(PART))
    with pytest.raises(NotAllowed):
        holder.check_read(read_path(path))
    holder.check_read(read_path(f"{PART}/below"))


def test_a_root_stays_where_it_is() -> None:
    holder = Holder(author=AGENT, root=read_path(PART))
    with pytest.raises(NotAllowed):
        holder.check_uproot(read_path(PART))
    with pytest.raises(NotAllowed):
        Holder().check_uproot(read_path("~/memory"))
    holder.check_uproot(read_path(f"{PART}/below"))


def test_an_id_from_outside_is_as_good_as_none(mine: Documents, part: Documents) -> None:
    outside = mine.write("private", "Mine.").id
    unknown = outside[:-12] + "0" * 12
    said = []
    for document_id in (outside, unknown):
        assert part.find(document_id) is None
        with pytest.raises(NotFound) as refused:
            part.append(document_id, "x")
        said.append(str(refused.value).replace(document_id, "it"))
    assert said[0] == said[1]


def test_an_old_path_inside_does_not_lead_outside(mine: Documents, part: Documents) -> None:
    mine.write(f"{PART}/left", "Mine.")
    mine.move(f"{PART}/left", "private/left")
    assert part.find(f"{PART}/left") is None
    for change in (part.read, part.history, part.restore, part.delete):
        with pytest.raises(NotFound) as refused:
            change(f"{PART}/left")
        assert "private" not in str(refused.value)
    part.write(f"{PART}/left", "New.")
    assert mine.read("private/left").body == "Mine."


def test_versions_from_when_it_stood_outside_are_not_shown(
    mine: Documents, part: Documents
) -> None:
    mine.write("private/came", "The draft.")
    mine.write("private/came", "Clean.")
    mine.move("private/came", f"{PART}/came")
    assert part.read(f"{PART}/came").body == "Clean."
    assert [each.number for each in part.history(f"{PART}/came")] == [3]
    with pytest.raises(NotFound):
        part.version(f"{PART}/came", 1)
    with pytest.raises(NotFound):
        part.restore(f"{PART}/came", 1)
    assert [each.number for each in mine.history(f"{PART}/came")] == [3, 2, 1]


def test_who_refers_from_outside_is_not_named(mine: Documents, part: Documents) -> None:
    mine.write(f"{PART}/page", "Here.")
    mine.write("private/list", f"See [[{PART}/page]].")
    assert part.links(f"{PART}/page").incoming == ()
    for how, refusal in (("refuse", DocumentReferenced), ("unlink", NotAllowed)):
        with pytest.raises(refusal) as refused:
            part.delete(f"{PART}/page", references=how)
        assert "private" not in str(refused.value)
    with pytest.raises(DocumentReferenced, match="private"):
        mine.delete(f"{PART}/page")


def test_who_refers_from_outside_by_the_time_of_a_commit_is_not_named(
    mine: Documents, part: Documents
) -> None:
    mine.write(f"{PART}/page", "Here.")
    edits = part.changeset()
    edits.delete(f"{PART}/page")
    mine.write("private/list", f"See [[{PART}/page]].")
    with pytest.raises(DocumentReferenced) as refused:
        edits.commit()
    assert "private" not in str(refused.value)


def test_what_is_broken_or_orphaned_outside_is_not_listed(mine: Documents, part: Documents) -> None:
    mine.write("private/deep/list", "See [[private/nothing]].")
    mine.write(f"{PART}/deep/list", f"See [[{PART}/nothing]].")
    assert [each.source for each in part.broken_links()] == [f"{PART}/deep/list"]
    assert not any("private" in path for path in part.orphans())


def test_consolidation_writes_nothing_outside_its_pages() -> None:
    """G8: neither in the memory of others nor beside it."""
    held = Holder(author=Author(AuthorKind.CONSOLIDATION, "c"))
    for path in ("~/elsewhere/x", "~/notes", "~/memory/people", "~/memory", "~/skills"):
        with pytest.raises(NotAllowed):
            held.check_write(read_path(path))
        with pytest.raises(NotAllowed):
            held.check_uproot(read_path(path))
    held.check_write(read_path("~/memory/skills/x"))


@pytest.mark.parametrize("name", ["ｓｋｉｌｌｓ", "Ｓkills", "ﬁ", "raw＿memories"])
def test_a_name_in_another_width_is_the_same_name(name: str) -> None:
    agent = Holder(author=Author(AuthorKind.AGENT, "a"))
    path = read_path(f"{name}/x")
    if name == "ﬁ":
        agent.check_write(path)
    else:
        with pytest.raises(NotAllowed):
            agent.check_write(path)
