"""N10: jobs on pages: why each waits, what went wrong, another chance, and everything at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.leases import Leaseholder
from recollect.types.access import Scope
from recollect.types.records import Claim, JobKind, JobState
from tests.e2e.web_world import PagedWorld, words_of
from tests.unit.interfaces.web.markup import read_markup

EVIL = "it broke <script>alert(1)</script><b-evil>"
JOBS = "/ui/s/alice/jobs"


@pytest.fixture
def world() -> Iterator[PagedWorld]:
    with recollect.open(":memory:") as memory:
        yield PagedWorld(memory)


def due(world: PagedWorld, key: str) -> str:
    session = world.memory.space("alice").session(key)
    session.append("user", "I prefer tea.")
    session.sleep()
    return session.id


def claimed(world: PagedWorld, session_id: str) -> tuple[Leaseholder, Claim]:
    memory = world.memory
    holder = Leaseholder(
        memory.store, memory.settings.lease_policy, memory.clock, owner="worker-<7>"
    )
    claim = holder.claim()
    assert isinstance(claim, Claim)
    assert claim.key == session_id
    return holder, claim


def parked(world: PagedWorld, key: str) -> str:
    session_id = due(world, key)
    holder, claim = claimed(world, session_id)
    holder.fail(claim, EVIL, is_final=True)
    return session_id


def state_of(world: PagedWorld, session_id: str) -> JobState:
    job = world.memory.store.leases.get("alice", JobKind.EXTRACT, session_id)
    assert job is not None
    return job.state


def test_each_job_says_why_it_waits_and_what_went_wrong(world: PagedWorld) -> None:
    visitor = world.visitor("alice", Scope.READ)
    assert "Nothing is due." in visitor.get(JOBS).text
    failed = parked(world, "a")
    claimed(world, working := due(world, "b"))
    waiting = due(world, "c")
    page = visitor.get(JOBS).text
    made, said = read_markup(page), words_of(page)
    assert "1 due 1 at work 1 parked" in said
    links = [value for tag, name, value in made.attributes if "/sessions/" in value]
    assert links == [f"/ui/s/alice/sessions/{each}" for each in (failed, working, waiting)]
    assert "parked: failed 1 x, taken over 0 x" in said
    assert "claimed by worker-<7>" in said
    assert "the lease ends in" in said
    assert "waiting for a worker" in said
    assert EVIL in "".join(made.text)
    assert "b-evil" not in made.tags
    assert page.count("<script") == 2
    assert "<form" not in visitor.get(JOBS, hx_request="true").text
    assert words_of(world.visitor("bob").get("/ui/s/bob/jobs").text).count("Nothing is due.") == 1


def test_a_parked_job_gets_another_chance_alone_or_with_the_others(world: PagedWorld) -> None:
    first, second, third = (parked(world, key) for key in "abc")
    reader, writer = world.visitor("alice", Scope.READ), world.visitor("alice", Scope.WRITE)
    assert reader.send(f"{JOBS}/retry").status_code == 403
    assert {state_of(world, each) for each in (first, second, third)} == {JobState.PARKED}
    assert "1 job has another chance" in writer.send(f"{JOBS}/retry", {"job": second}).text
    assert state_of(world, second) is JobState.DUE
    assert state_of(world, first) is JobState.PARKED
    assert "2 jobs have another chance" in writer.send(f"{JOBS}/retry").text
    assert {state_of(world, each) for each in (first, second, third)} == {JobState.DUE}
    assert "Nothing was parked" in writer.send(f"{JOBS}/retry").text


def test_a_retry_does_not_reach_into_another_space(world: PagedWorld) -> None:
    """P9."""
    failed = parked(world, "a")
    stranger = world.visitor("bob")
    for form in ({}, {"job": failed}):
        assert "Nothing was parked" in stranger.send("/ui/s/bob/jobs/retry", form).text
    assert state_of(world, failed) is JobState.PARKED


def test_everything_is_due_at_once_when_an_admin_says_so(world: PagedWorld) -> None:
    spaces = [world.memory.space(name) for name in ("alice", "bob")]
    sessions = [space.session("quiet") for space in spaces]
    for session in sessions:
        session.append("user", "I prefer tea.")
    writer, admin = world.visitor("alice", Scope.WRITE), world.visitor("alice")
    assert f"{JOBS}/due" not in writer.get(JOBS).text
    assert writer.send(f"{JOBS}/due").status_code == 403
    assert [session.state.invalidated_at for session in sessions] == [None, None]
    assert "1 session marked" in words_of(admin.send(f"{JOBS}/due").text)
    assert [session.state.invalidated_at for session in sessions] == [1, None]
