"""Topic pages follow their facts: what is corrected, what ends, who takes a page over. Row N10."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.documents.scope import Holder
from recollect.errors import NotAllowed, NotFound
from recollect.space import Space
from recollect.types.facts import FactEdit
from recollect.types.pages import Author, AuthorKind

ANA = "~/memory/people/ana"
BESIDE = f"{ANA}/facts"
SETTINGS = {"consolidation_cooldown_seconds": 0.0}


@pytest.fixture
def memory(durable_store_url: str) -> Iterator[recollect.Memory]:
    with recollect.open(durable_store_url, settings=SETTINGS, clock=ManualClock()) as opened:
        yield opened


@pytest.fixture
def space(memory: recollect.Memory) -> Space:
    space = memory.space("a")
    say(memory, space, "I live in Porto. I am vegetarian.")
    assert body(space).count("- ") == 2
    return space


def say(memory: recollect.Memory, space: Space, text: str, key: str = "chat") -> recollect.Session:
    session = space.session(key)
    session.append("user", text, name="Ana")
    session.sleep()
    memory.work(all=True)
    return session


def body(space: Space, path: str = ANA) -> str:
    return space.documents.read(path).body


def fact_about(space: Space, word: str) -> recollect.Fact:
    return next(fact for fact in space.facts.list() if word in fact.content)


def found(space: Space, query: str) -> str:
    return " ".join(hit.text for hit in space.recall(query, kinds=["fact", "document"]))


def test_an_edited_fact_is_what_the_page_says_at_once(
    memory: recollect.Memory, space: Space
) -> None:
    space.facts.update(fact_about(space, "Porto").id, "Ana lives in Braga.")
    for _ in range(2):
        assert ("Porto" in body(space), "Braga" in body(space)) == (False, True)
        assert "vegetarian" in body(space)
        assert "Porto" not in found(space, "Where does Ana live?")
        assert "Braga" in found(space, "Where does Ana live?")
        memory.work(all=True)


def test_a_deleted_fact_leaves_the_page_at_once_and_for_good(
    memory: recollect.Memory, space: Space
) -> None:
    space.facts.delete(fact_about(space, "Porto").id)
    assert ("Porto" in body(space), "vegetarian" in body(space)) == (False, True)
    memory.work(all=True)
    assert "Porto" not in found(space, "Where does Ana live?")


def test_a_page_goes_with_its_last_fact_and_its_folder_with_its_last_page(space: Space) -> None:
    for fact in space.facts.list():
        space.facts.delete(fact.id)
    paths = {node.path for node in space.documents.tree("~/memory")}
    assert not {path for path in paths if path.startswith("~/memory/people")}


def test_what_is_over_is_said_of_earlier(memory: recollect.Memory, space: Space) -> None:
    fact = fact_about(space, "Porto")
    space.facts.update(fact.id, valid_to="2020-01-01T00:00:00+00:00")
    current, _, earlier = body(space).partition("## Earlier")
    assert ("Porto" in current, "Porto" in earlier) == (False, True)


def test_what_ends_is_rendered_anew_when_its_time_has_come(
    memory: recollect.Memory, space: Space
) -> None:
    clock = memory.clock
    assert isinstance(clock, ManualClock)
    fact = fact_about(space, "Porto")
    space.facts.update(fact.id, valid_to=clock.now().replace(year=clock.now().year + 1))
    assert "Earlier" not in body(space)
    clock.advance(400 * 86_400)
    memory.work()
    assert "## Earlier" in body(space)
    version = space.documents.read(ANA).version
    memory.work()
    assert space.documents.read(ANA).version == version, "once"


def test_what_is_superseded_is_not_said_as_if_it_held(
    memory: recollect.Memory, space: Space
) -> None:
    say(memory, space, "I moved, I live in Braga now.", key="later")
    current, _, earlier = body(space).partition("## Earlier")
    assert ("Porto" in current, "Braga" in current, "Porto" in earlier) == (False, True, True)


def test_a_rendered_page_keeps_no_earlier_versions(memory: recollect.Memory, space: Space) -> None:
    before = space.documents.read(ANA).version
    for number in range(5):
        say(memory, space, f"I have a cat called Tom{number}.", key=f"k{number}")
    page = space.documents.read(ANA)
    assert page.version > before
    assert [each.number for each in space.documents.history(ANA)] == [page.version]


def test_the_same_again_makes_no_version(memory: recollect.Memory, space: Space) -> None:
    before = space.documents.read(ANA)
    say(memory, space, "I live in Porto. I am vegetarian.", key="again")
    after = space.documents.read(ANA)
    assert (after.version, after.body) == (before.version, before.body)
    assert len({each.session_id for each in after.sources}) == 2, "it rests on both"


def test_what_nobody_came_to_render_is_rendered_by_the_next_work(
    memory: recollect.Memory, space: Space
) -> None:
    """As after a crash between a change and the rendering: the page is empty, never stale."""
    edit = FactEdit(content="Ana lives in Braga.")
    fact = fact_about(space, "Porto")
    assert memory.store.facts.update("a", fact.id, edit, memory.clock.now()) is not None
    assert body(space) == ""
    memory.work()
    assert ("Braga" in body(space), "vegetarian" in body(space)) == (True, True)


# who owns a page


def test_a_rendered_page_is_not_edited_in_places_and_says_what_to_do(space: Space) -> None:
    fact = fact_about(space, "Porto")
    line = next(each for each in body(space).splitlines() if "Porto" in each)
    with pytest.raises(NotAllowed, match=f"recollect facts edit {fact.id}"):
        space.documents.patch(ANA, line, "- Ana lives in Braga.")
    with pytest.raises(NotAllowed, match="add a fact"):
        space.documents.append(ANA, "Ana sings.")
    with pytest.raises(NotAllowed, match="stays while they do"):
        space.documents.move(ANA, "~/memory/people/anna")
    with pytest.raises(NotAllowed, match="delete those"):
        space.documents.delete(ANA)


@pytest.mark.parametrize("kind", [AuthorKind.PERSON, AuthorKind.AGENT])
def test_who_writes_a_whole_page_has_it_and_its_facts_are_beside_it(
    memory: recollect.Memory, space: Space, kind: AuthorKind
) -> None:
    facts = body(space)
    mine = space.documents.held_by(Holder(author=Author(kind, "somebody")))
    mine.write(ANA, "She sings.")
    assert (body(space), body(space, BESIDE)) == ("She sings.", facts)
    say(memory, space, "I have a cat called Tom.", key="later")
    assert body(space) == "She sings."
    assert "Tom" in body(space, BESIDE)
    assert [each.body for each in space.documents.history(ANA)] == ["She sings."]
    mine.append(ANA, "Often.")
    assert "Often." in body(space)


def test_who_deletes_their_page_gives_the_path_back(memory: recollect.Memory, space: Space) -> None:
    facts = body(space)
    space.documents.write(ANA, "She sings.")
    space.documents.delete(ANA)
    assert body(space) == facts
    with pytest.raises(NotFound):
        space.documents.read(BESIDE)


def test_what_else_stands_below_a_page_is_in_the_way_of_its_deletion(space: Space) -> None:
    space.documents.write(ANA, "She sings.")
    space.documents.write(f"{ANA}/songs", "Fado.")
    with pytest.raises(recollect.RecollectError, match="has 1 documents below it"):
        space.documents.delete(ANA)
    assert "Porto" in body(space, BESIDE)


def test_what_a_person_wrote_stays_when_a_fact_is_forgotten_and_the_rest_goes(
    space: Space,
) -> None:
    fact = fact_about(space, "Porto")
    space.documents.write(ANA, "She sings.")
    receipt = space.forget(fact=fact.id)
    assert (receipt.is_complete, receipt.left) == (True, ())
    assert (body(space), "Porto" in body(space, BESIDE)) == ("She sings.", False)


@pytest.mark.parametrize("edit", ["Ana's sister is called Maria.", None])
def test_nothing_is_left_of_what_was_corrected_when_its_session_is_forgotten(
    memory: recollect.Memory, space: Space, edit: str | None
) -> None:
    """P11, N10."""
    session = say(memory, space, "My sister is called Rita.", key="other")
    fact = fact_about(space, "Rita")
    if edit is None:
        space.facts.delete(fact.id)
    else:
        space.facts.update(fact.id, edit)
    space.forget(session=session.id)
    tree = [node.path for node in space.documents.tree("~/memory")]
    gone = [each.path for each in space.documents.deleted("~/memory")]
    said = [each for path in (*tree, *gone) for each in space.documents.history(path)]
    assert not [each for each in said if "rita" in f"{each.path} {each.title} {each.body}".lower()]
    assert not [each for each in said if "Maria" in each.body]
    assert "Porto" in body(space)


def test_a_fact_that_is_on_no_page_changes_none(space: Space) -> None:
    before = space.documents.tree()
    own = space.facts.add("The sky is blue.")
    space.facts.update(own.id, "The sky is grey.")
    space.facts.delete(own.id)
    assert space.documents.tree() == before
