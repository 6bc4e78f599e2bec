"""N4: a dry run says what would be read, sent and spent, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast

import psycopg
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.extraction import plan as planning
from recollect.extraction.plan import PlannedSession, WorkPlan
from recollect.store.sqlite import SqliteDatabase
from recollect.types.facts import NOTHING_SPENT
from recollect.types.records import Mode
from recollect_conformance.scripted import ScriptedServer, status
from tests.scripted_answers import NOTHING, OTHERS_BY_RULES, extracted

HOME = "I live in Lisbon."
MOVED = "I moved to Porto."
OUTPUT_TOKENS = 1000

Open = Callable[..., recollect.Memory]
Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda _: extracted()) as server:
        yield server


@pytest.fixture
def opened(server: ScriptedServer, clock: ManualClock) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_it(address: str = ":memory:", **settings: Any) -> recollect.Memory:
            given = {
                "model": "openai:scripted",
                "model_base_url": server.url,
                **OTHERS_BY_RULES,
                "model_output_tokens_max": OUTPUT_TOKENS,
                "model_retries": 0,
            }
            memory = recollect.open(address, settings=given | settings, clock=clock)
            return stack.enter_context(memory)

        yield open_it


def told(memory: recollect.Memory, key: str, *texts: str, space: str = "a") -> recollect.Session:
    session = memory.space(space).session(key, agent="assistant")
    for text in texts or (HOME,):
        session.append("user", text)
    return session


def marked(memory: recollect.Memory, key: str, *texts: str, space: str = "a") -> recollect.Session:
    session = told(memory, key, *texts, space=space)
    session.sleep()
    return session


def spans(plan: WorkPlan) -> dict[str, tuple[int, int]]:
    """Which records of which key would be read."""
    return {each.session.key: (each.first, each.upto) for each in plan.sessions}


def only(plan: WorkPlan) -> PlannedSession:
    (planned,) = plan.sessions
    return planned


# What is behind an index of words are tables of its own; it cannot be read as one itself.
TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"


def dump(memory: recollect.Memory) -> Rows:
    """Every row of every table, behind the store's back."""
    database = cast("Any", memory.store)._database
    if isinstance(database, SqliteDatabase):
        with database._alone():
            run = database._writer.execute
            names = [row[0] for row in run(TABLES)]
            return {name: sorted(run(f'SELECT * FROM "{name}"'), key=repr) for name in names}
    with psycopg.connect(database._conninfo, autocommit=True) as connection:
        found = connection.execute(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = %s", (database._schema,)
        )
        return {
            name: sorted(
                connection.execute(f'SELECT * FROM "{database._schema}"."{name}"'.encode()),
                key=repr,
            )
            for (name,) in found.fetchall()
        }


# nothing changes


def test_a_plan_changes_no_row(
    opened: Open, durable_store_url: str, server: ScriptedServer, clock: ManualClock
) -> None:
    memory = opened(durable_store_url)
    marked(memory, "done")
    memory.work()  # from here on the store has its salt, which the first to redact leaves in it
    asked = len(server.requests)
    marked(memory, "due", "my password is hunter2butlonger")
    told(memory, "waiting")
    clock.advance(10)
    before = dump(memory)
    assert before["sessions"]
    for every in (False, True):
        for again in (False, True):
            assert memory.plan(all=every, again=again).sessions
    assert dump(memory) == before
    assert len(server.requests) == asked


def test_a_plan_leaves_no_more_than_its_salt_in_a_store_that_nobody_worked_on(opened: Open) -> None:
    memory = opened()
    marked(memory, "due")
    before = dump(memory)
    memory.plan(all=True, again=True)
    changed = {name for name, rows in dump(memory).items() if rows != before[name]}
    assert changed == {"properties"}


# which sessions


def test_what_is_due_would_be_read(opened: Open, clock: ManualClock) -> None:
    memory = opened()
    marked(memory, "due", HOME, MOVED)
    told(memory, "waiting")
    plan = memory.plan()
    assert spans(plan) == {"due": (1, 2)}
    assert (plan.records, plan.is_cut) == (2, False)


def test_all_adds_what_waits_for_a_mark(opened: Open) -> None:
    memory = opened()
    marked(memory, "due")
    told(memory, "waiting", HOME, MOVED)
    assert spans(memory.plan(all=True)) == {"due": (1, 1), "waiting": (1, 2)}


def test_again_adds_what_has_been_read_from_its_first_record(opened: Open) -> None:
    memory = opened()
    session = marked(memory, "done", HOME, MOVED)
    memory.work()
    assert memory.plan().sessions == ()
    assert spans(memory.plan(again=True)) == {"done": (1, 2)}
    session.append("user", "more")
    session.sleep()
    assert [(each.first, each.upto) for each in memory.plan(again=True).sessions] == [
        (3, 3),
        (1, 2),
    ]


def test_a_pass_that_is_due_is_planned_once(opened: Open) -> None:
    memory = opened()
    marked(memory, "done", HOME, MOVED)
    memory.work()
    memory.request_again()
    assert spans(memory.plan()) == {"done": (1, 2)}
    assert len(memory.plan(again=True).sessions) == 1


def test_only_what_is_new_would_be_read_unless_the_settings_ask_for_all_of_it(
    opened: Open, server: ScriptedServer, tmp_path: object
) -> None:
    """X9, and the switch for who wants it otherwise."""
    address = f"sqlite:///{tmp_path}/memory.db?synchronous=off"
    memory = opened(address)
    session = marked(memory, "k", HOME)
    memory.work()
    session.append("user", MOVED)
    session.sleep()
    new = only(memory.plan())
    assert ((new.first, new.upto), HOME in (new.prompt or "")) == ((2, 2), False)
    whole = only(opened(address, extract_whole_session=True).plan())
    assert ((whole.first, whole.upto), HOME in (whole.prompt or "")) == ((1, 2), True)


def test_one_space_is_planned_where_one_is_named(opened: Open) -> None:
    memory = opened()
    marked(memory, "mine", space="a")
    marked(memory, "theirs", space="b")
    told(memory, "waiting", space="b")
    assert spans(memory.plan("a", all=True, again=True)) == {"mine": (1, 1)}
    assert spans(memory.plan("b")) == {"theirs": (1, 1)}
    assert memory.plan("nobody's", all=True).sessions == ()


def test_what_backs_off_is_not_due(opened: Open, clock: ManualClock) -> None:
    with ScriptedServer(lambda _: status(500)) as failing:
        memory = opened(model_base_url=failing.url, backoff_seconds=3600)
        marked(memory, "k")
        memory.work()
        assert memory.plan(all=True).sessions == ()
        clock.advance(3601)
        assert spans(memory.plan()) == {"k": (1, 1)}


def test_what_must_not_be_remembered_would_not_be_sent(opened: Open) -> None:
    memory = opened()
    session = marked(memory, "k")
    session.mode = Mode.POLLUTED
    assert memory.plan(all=True, again=True).sessions == ()


def test_a_plan_has_an_end(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SESSIONS_MAX", 2)
    memory = opened()
    marked(memory, "one")
    assert not memory.plan(all=True).is_cut
    for key in ("two", "three"):
        told(memory, key)
    plan = memory.plan(all=True)
    assert (len(plan.sessions), plan.is_cut) == (2, True)


# what it would take


def test_a_plan_holds_at_least_what_the_work_takes(opened: Open, server: ScriptedServer) -> None:
    memory = opened(model_input_price=3.0, model_output_price=7.0)
    marked(memory, "one")
    marked(memory, "two", HOME, MOVED)
    plan = memory.plan()
    assert (plan.spent.calls, plan.spent.output_tokens) == (2, 2 * OUTPUT_TOKENS)
    assert plan.spent.cost_micros == 3 * plan.spent.input_tokens + 7 * plan.spent.output_tokens
    assert plan.extractor == "openai:scripted/prompt-3"
    memory.work()
    assert len(server.requests) == plan.spent.calls
    assert memory.status().spent_today.tokens <= plan.spent.tokens


def test_the_prompt_is_the_one_that_is_sent(opened: Open, server: ScriptedServer) -> None:
    memory = opened()
    marked(memory, "k", HOME, "my password is hunter2butlonger")
    prompt = only(memory.plan()).prompt
    memory.work()
    (sent,) = server.requests
    assert prompt == f"{sent.system}\n\n{sent.prompt}"
    assert "hunter2" not in prompt


def test_a_long_session_takes_no_more_calls_than_were_planned(
    opened: Open, server: ScriptedServer
) -> None:
    memory = opened(extract_chunk_tokens=500, model_window_tokens=8000)
    marked(memory, "k", *(f"Record {n}. " + "word " * 300 for n in range(8)))
    planned = only(memory.plan())
    assert planned.spent.calls > 2
    assert "Record 0." in (planned.prompt or "")
    assert memory.work().processed == 1
    assert 2 < len(server.requests) <= planned.spent.calls


def test_records_with_nothing_to_say_cost_nothing(opened: Open) -> None:
    memory = opened()
    session = memory.space("a").session("k", agent="assistant")
    session.append("system", "You are a helpful assistant.")
    session.sleep()
    planned = only(memory.plan())
    assert (planned.records, planned.spent, planned.prompt) == (1, NOTHING_SPENT, None)


@pytest.mark.parametrize(("extractor", "name"), [("rules", "rules/"), ("none", "none")])
def test_without_a_model_nothing_is_sent(opened: Open, extractor: str, name: str) -> None:
    plan_of = opened(extractor=extractor)
    marked(plan_of, "k", HOME, MOVED)
    plan = plan_of.plan()
    assert plan.extractor.startswith(name)
    assert (only(plan).records, plan.spent, only(plan).prompt) == (2, NOTHING_SPENT, None)


def test_an_empty_store_has_an_empty_plan(opened: Open) -> None:
    plan = opened().plan(all=True, again=True)
    assert (plan.sessions, plan.records, plan.spent, plan.is_cut) == ((), 0, NOTHING_SPENT, False)


def test_a_session_that_came_to_nothing_can_be_planned_again(opened: Open) -> None:
    with ScriptedServer([NOTHING]) as server:
        memory = opened(model_base_url=server.url)
        marked(memory, "k")
        memory.work()
        assert spans(memory.plan(again=True)) == {"k": (1, 1)}
