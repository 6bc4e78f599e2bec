"""What is forgotten goes from the pages that memory-agents filed by rules; nothing else goes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta

import pytest

import recollect
from recollect.agents.withdrawing import REASON, finish, withdraw
from recollect.clock import ManualClock
from recollect.documents.changeset import Changeset
from recollect.documents.tree import Documents
from recollect.errors import NotFound
from recollect.knowledge import Trust
from recollect.topics.claims import Claim
from recollect.worker import Worker
from tests.hosted_agents import ON_BOTH

FACT = "019a8f3f-1111-7abc-8def-0123456789ab"
TEAL = "My favourite colour is teal."
ANA = "My sister Ana works at the port."


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def told(
    memory: recollect.Memory,
    text: str,
    key: str,
    space: str = "alice",
    name: str | None = "Alice",
) -> recollect.Session:
    session = memory.space(space).session(key)
    session.append("user", text, name=name)
    session.sleep()
    memory.work()
    return session


def said(space: recollect.Space) -> str:
    documents = space.documents
    return "\n".join(documents.read(node.path).body for node in documents.tree("~/memory"))


def test_forgetting_a_session_takes_its_lines_off_the_pages(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = told(memory, TEAL, "a")
    told(memory, ANA, "b")
    assert "teal" in said(space)
    space.forget(session=session)
    assert "teal" not in said(space)
    assert "Ana" in said(space)
    assert session.id not in said(space)


def test_what_another_session_says_as_well_stays(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    first = told(memory, TEAL, "a")
    second = told(memory, TEAL, "b")
    space.forget(session=first)
    assert "teal" in said(space)
    assert first.id not in said(space)
    space.forget(session=second)
    assert "teal" not in said(space)


def test_what_people_wrote_stays(memory: recollect.Memory, space: recollect.Space) -> None:
    session = told(memory, TEAL, "a")
    space.documents.write("~/memory/by-hand", f"Teal, says session {session.id}.")
    space.forget(session=session)
    assert "Teal, says session" in said(space)


def test_where_nothing_was_filed_nothing_is_written(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    told(memory, TEAL, "a")
    before = said(space)
    assert withdraw(space.documents, ["another"], now=clock.now()) == ()
    assert said(space) == before


def test_a_second_time_does_nothing(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    session = told(memory, TEAL, "a")
    written = withdraw(space.documents, [session.id], now=clock.now())
    assert written
    assert withdraw(space.documents, [session.id], now=clock.now()) == ()


def test_it_says_why(memory: recollect.Memory, space: recollect.Space, clock: ManualClock) -> None:
    session = told(memory, TEAL, "a")
    told(memory, "My favourite food is soup.", "b")
    changed = withdraw(space.documents, [session.id], now=clock.now())
    left = [path for path in changed if space.documents.find(path) is not None]
    assert left
    assert {space.documents.history(path)[0].reason for path in left} == {REASON}


def test_other_spaces_are_left_alone(memory: recollect.Memory, space: recollect.Space) -> None:
    mine = told(memory, TEAL, "a")
    told(memory, TEAL, "a", space="bob")
    space.forget(session=mine)
    assert "teal" in said(memory.space("bob"))


def test_no_version_and_no_deleted_page_says_what_was_forgotten(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    """P11. A page that others share loses the versions that say it; one of its own is purged."""
    session = told(memory, f"{TEAL} {ANA}", "a")
    told(memory, "My favourite colour is amber, and I prefer tea.", "b")
    documents = space.documents
    paths = [node.path for node in documents.tree("~/memory")]
    space.forget(session=session)
    kept = [
        version.body
        for path in paths
        if documents.find(path) is not None
        for version in documents.history(path)
    ]
    assert any("tea" in body for body in kept)
    assert not any("teal" in body or "Ana" in body for body in kept)
    for gone in documents.deleted("~/memory"):
        bodies = [version.body for version in documents.history(gone.path)]
        assert not any("teal" in body or "Ana" in body for body in bodies)


def said_by_user(memory: recollect.Memory, text: str, key: str) -> recollect.Session:
    return told(memory, text, key, name=None)


# who is faster


@pytest.mark.parametrize("also", ["", "I work at Acme."])
def test_what_others_write_meanwhile_is_not_written_over(
    memory: recollect.Memory,
    space: recollect.Space,
    clock: ManualClock,
    also: str,
) -> None:
    """D5, P11. The pages are read again, and what was forgotten goes all the same."""
    if also:
        said_by_user(memory, also, "b")
    session = said_by_user(memory, "I live in Lisbon.", "a")

    def faster(_topics: Collection[str]) -> Sequence[Claim]:
        if "roof" not in space.documents.read("~/memory/profile").body:
            space.documents.append("~/memory/profile", "There is a leak in the roof.")
        return ()

    withdraw(space.documents, [session.id], now=clock.now(), holding=faster)
    body = space.documents.read("~/memory/profile").body
    assert "roof" in body
    assert "Lisbon" not in body


def test_a_page_that_is_gone_meanwhile_is_no_error(
    memory: recollect.Memory,
    space: recollect.Space,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P11. Of two who forget at once, one erases the page under the hands of the other."""
    session = said_by_user(memory, TEAL, "a")
    said_by_user(memory, "My favourite tea is sencha.", "b")
    history = Documents.history

    def erased(held: Documents, *given: object, **more: object) -> object:
        if withdrawn:
            space.documents.purge("~/memory/preferences")
        return history(held, *given, **more)  # type: ignore[arg-type]

    withdrawn: list[bool] = []
    commit = Changeset.commit

    def committed(changeset: Changeset) -> object:
        made = commit(changeset)
        withdrawn.append(True)
        return made

    monkeypatch.setattr(Changeset, "commit", committed)
    monkeypatch.setattr(Documents, "history", erased)
    assert withdraw(space.documents, [session.id], now=clock.now())
    finish(space.documents)
    assert withdrawn
    assert space.documents.find("~/memory/preferences") is None


def test_what_holds_again_and_is_forgotten_before_it_is_filed_does_not_stay_there(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    """P11."""
    session = said_by_user(memory, "I live in Lisbon.", "a")
    said_by_user(memory, "I live in Porto.", "b")
    other = Claim(text="The user lives in Faro.", trust=Trust.USER, at=clock.now(), fact_id=FACT)
    answers = [[other]]

    def forgotten_next(_topics: Collection[str]) -> Sequence[Claim]:
        return answers.pop() if answers else ()

    withdraw(space.documents, [session.id], now=clock.now(), holding=forgotten_next)
    page = space.documents.read("~/memory/profile")
    assert not any("Faro" in each.body for each in space.documents.history(page.path))


# pages that people have touched

ZOE = "My sister Zoe lives in Faro."
PAGE = "~/memory/people/zoe"


@pytest.fixture
def kept(store_url: str) -> Iterator[recollect.Memory]:
    """A memory on each kind of store in turn."""
    with recollect.open(store_url) as memory:
        yield memory


def _tagged(documents: Documents) -> None:
    documents.write(PAGE, documents.read(PAGE).body, title="Sis", tags=["family"])


def _moved_and_back(documents: Documents) -> None:
    documents.move(PAGE, "~/memory/x")
    documents.move("~/memory/x", PAGE)


def _elsewhere(documents: Documents) -> None:
    documents.move("~/memory/people", "~/memory/friends")
    documents.move("~/memory/friends/zoe", "~/memory/family/zoe")


def _restored(documents: Documents) -> None:
    documents.append(PAGE, "Bring flowers.")
    documents.restore(PAGE, 1)


def _deleted(documents: Documents) -> None:
    documents.delete(PAGE, references="leave")


@ON_BOTH
@pytest.mark.parametrize("touch", [_tagged, _moved_and_back, _elsewhere, _restored, _deleted])
def test_a_page_is_erased_whoever_has_touched_it(
    kept: recollect.Memory, touch: Callable[[Documents], None]
) -> None:
    """P11. Nothing can be restored, where nothing of a person's is left on it."""
    session = said_by_user(kept, ZOE, "a")
    documents = kept.space("alice").documents
    touch(documents)
    kept.space("alice").forget(session=session)
    gone = documents.deleted("~/memory")
    for page in [*(each.id for each in documents.tree("~/memory")), *(each.id for each in gone)]:
        versions = documents.history(page)
        assert not any("Faro" in f"{each.body}{each.description}" for each in versions)
    assert not [each for each in gone if each.path.endswith("zoe")]
    with pytest.raises(NotFound):
        documents.restore(PAGE)


@ON_BOTH
def test_what_a_person_wrote_on_a_deleted_page_can_be_restored_alone(
    kept: recollect.Memory,
) -> None:
    """P11."""
    session = said_by_user(kept, ZOE, "a")
    documents = kept.space("alice").documents
    documents.append(PAGE, "Bring flowers.")
    documents.delete(PAGE, references="leave")
    before = [node.path for node in documents.tree("~/memory")]
    kept.space("alice").forget(session=session)
    assert {node.path for node in documents.tree("~/memory")} <= {*before}
    assert "Bring flowers." in documents.restore(PAGE).body
    for version in documents.history(PAGE):
        assert "Faro" not in version.body
        assert (version.title, version.description) == ("untitled", "")


@ON_BOTH
def test_a_page_that_stays_for_what_a_person_wrote_is_not_called_by_what_is_gone(
    kept: recollect.Memory,
) -> None:
    """P11. Nor listed by it; what is learned of it later gives it its name back."""
    session = said_by_user(kept, ZOE, "a")
    said_by_user(kept, "My brother Tom lives in Porto.", "b")
    space = kept.space("alice")
    space.documents.append(PAGE, "Bring flowers.")
    space.forget(session=session)
    page = space.documents.read(PAGE)
    assert "Bring flowers." in page.body
    assert (page.title, page.description) == ("untitled", "")
    assert "Zoe" not in space.documents.read("~/memory/people").body
    assert "Tom" in space.documents.read("~/memory/people").body
    assert [each.title for each in space.documents.history(PAGE)] == ["untitled"]
    said_by_user(kept, "My cousin Ada lives in Braga.", "c")
    assert "zoe" not in space.documents.read("~/memory/people").body.casefold()
    said_by_user(kept, "My sister Zoe likes opera.", "d")
    page = space.documents.read(PAGE)
    assert (page.title, page.description) == ("Zoe", "The user's sister.")
    assert "Zoe" in space.documents.read("~/memory/people").body


def test_what_a_person_called_it_stays(memory: recollect.Memory, space: recollect.Space) -> None:
    session = said_by_user(memory, ZOE, "a")
    body = f"{space.documents.read(PAGE).body}\n\nBring flowers."
    space.documents.write(PAGE, body, title="Sis", description="My dear.")
    space.forget(session=session)
    page = space.documents.read(PAGE)
    assert (page.title, page.description) == ("Sis", "My dear.")


# what holds again


def _forget_session(space: recollect.Space, session: recollect.Session, _fact: str) -> None:
    space.forget(session=session)


def _forget_fact(space: recollect.Space, _session: recollect.Session, fact: str) -> None:
    space.forget(fact=fact)


def _delete_fact(space: recollect.Space, _session: recollect.Session, fact: str) -> None:
    space.facts.delete(fact)


def _disable(_space: recollect.Space, session: recollect.Session, _fact: str) -> None:
    session.set_mode("disabled")


@ON_BOTH
@pytest.mark.parametrize("go", [_forget_session, _forget_fact, _delete_fact, _disable])
def test_what_holds_again_stands_on_its_page_as_that(
    kept: recollect.Memory, go: Callable[[recollect.Space, recollect.Session, str], None]
) -> None:
    """T4, A7. What had superseded it is gone: it is not `until` any more."""
    space = kept.space("alice")
    said_by_user(kept, "I live in Lisbon.", "a")
    newer = said_by_user(kept, "I live in Porto.", "b")
    assert "until" in space.documents.read("~/memory/profile").body
    [porto] = space.facts.list()
    go(space, newer, porto.id)
    assert [fact.content for fact in space.facts.list()] == ["The user lives in Lisbon."]
    body = space.documents.read("~/memory/profile").body
    assert "Lisbon" in body
    assert "until" not in body
    assert "Porto" not in body


@pytest.mark.parametrize("go", [_forget_session, _delete_fact])
def test_and_is_filed_where_it_is_on_no_page(
    memory: recollect.Memory,
    space: recollect.Space,
    go: Callable[[recollect.Space, recollect.Session, str], None],
) -> None:
    """T4, A7. Both were learned before the memory-agent came to either."""
    sessions = [space.session(key) for key in ("a", "b")]
    for day, (session, city) in enumerate(zip(sessions, ("Lisbon", "Porto"), strict=True)):
        said_at = memory.clock.now() + timedelta(days=day - 9)
        session.append("user", f"I live in {city}.", at=said_at)
        session.sleep()
    both = dataclasses.replace(memory.settings, worker_batch=len(sessions))
    distiller = memory.pipeline.processor(memory.pipeline.budget())
    Worker(memory.store, both, memory.clock, distiller).tick()  # and comes to no agent
    memory.work()
    assert "Lisbon" not in space.documents.read("~/memory/profile").body
    [porto] = space.facts.list()
    go(space, sessions[1], porto.id)
    assert "- The user lives in Lisbon." in space.documents.read("~/memory/profile").body
