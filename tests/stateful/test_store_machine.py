"""Any sequence of calls leaves the store as a plain-dictionary model says, on every database.

Hypothesis makes up the sequences. A failure is printed as a short program, with a blob that replays
it; with CI set the sequences are the same in every run.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis import Phase
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from recollect.clock import SystemClock
from recollect.config import Settings
from recollect.errors import AppendKeyReused
from recollect.messages import Role
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.records import (
    MarkCause,
    MarkPolicy,
    MarkUnit,
    Mode,
    NewRecord,
    SessionBirth,
    SessionState,
    Unattended,
)
from recollect_conformance import Harness, OpenStore
from tests.conformance.broken_stores import BROKEN, broken_store
from tests.postgres_schemas import Schemas
from tests.postgres_server import url_with
from tests.sqlite_stores import put_empty_store
from tests.stateful.model import Model, ModelKey, ModelSession, Reused

FreshStore = Callable[[], AbstractContextManager[OpenStore]]

SPACES = ("space-a", "space-b")
IDLE_SECONDS = 600
LONG_LOOK_EVERY = 5  # steps; everything is looked at once more at the end
PAGE = 10_000  # above anything a run can make

KEYS = Bundle("keys")
ROLES = st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL])
POLICIES = st.builds(
    MarkPolicy, threshold=st.integers(0, 6), unit=st.sampled_from(list(MarkUnit))
) | st.just(MarkPolicy())
# Few keys and few words, so that the same key meets the same and other content.
RECORDS = st.lists(
    st.builds(
        NewRecord,
        role=ROLES,
        content=st.sampled_from(["yes", "no"]),
        append_key=st.none() | st.sampled_from(["k1", "k2", "k3"]),
    )
    | st.builds(NewRecord, role=ROLES, content=st.text("abcé語🧠 ", max_size=8)),
    min_size=1,
    max_size=7,
)


class StoreMachine(RuleBasedStateMachine):
    """Does everything to the store and to the model, and compares them after each step."""

    steps = 0  # of all machines together

    def __init__(self, fresh_store: FreshStore, *, volatile: bool) -> None:
        super().__init__()
        self._opened = ExitStack()
        open_again = self._opened.enter_context(fresh_store())
        self.store = Harness(open_again, volatile=volatile)
        self._opened.callback(self.store.close)
        self.model = Model()
        self.steps_here = 0
        self.touched: ModelKey | None = None
        self.seen: dict[str, SessionState] = {}

    def teardown(self) -> None:
        try:
            for key in self.model.keys.values():
                self._compare_key(key)
            for space in (*SPACES, None):
                self._compare_space(space)
        finally:
            self._opened.close()

    # what can be done

    @initialize(target=KEYS)
    def open_first_key(self) -> ModelKey:
        return self._open(SPACES[0], "key-1", "/user/assistant", SessionBirth())

    @rule(
        target=KEYS,
        space=st.sampled_from(SPACES),
        name=st.sampled_from(["key-1", "key-2"]),
        agent=st.sampled_from(["/user/assistant", "/user/other", "/memory-agent/assistant"]),
        ephemeral=st.sampled_from([False, False, False, True]),
        mode=st.sampled_from([Mode.ENABLED, Mode.ENABLED, Mode.DISABLED]),
    )
    def open_key(self, space: str, name: str, agent: str, ephemeral: bool, mode: Mode) -> ModelKey:
        return self._open(space, name, agent, SessionBirth(ephemeral=ephemeral, mode=mode))

    @rule(key=KEYS, records=RECORDS, policy=POLICIES, seconds=st.integers(-2, 30))
    def append(
        self, key: ModelKey, records: list[NewRecord], policy: MarkPolicy, seconds: int
    ) -> None:
        self.store.clock.advance(seconds)
        self._append(key, records, policy)

    @rule(key=KEYS, count=st.integers(1, 8))
    def append_words(self, key: ModelKey, count: int) -> None:
        records = [NewRecord(role=Role.USER, content=f"word {n}") for n in range(count)]
        self._append(key, records, MarkPolicy())

    @rule(
        key=KEYS,
        which=st.integers(0, 9),
        above=st.integers(-4, 4),
        cause=st.sampled_from(MarkCause),
    )
    def invalidate(self, key: ModelKey, which: int, above: int, cause: MarkCause) -> None:
        session = self._touch(key).sessions[which % len(key.sessions)]
        seq = max(0, session.last_seq + above)
        self.store.marks.invalidate(key.ref.space, session.id, seq, cause, self.store.now())
        session.set_mark(seq, cause, self.store.now())

    @rule(key=KEYS)
    def sleep(self, key: ModelKey) -> None:
        session = self._touch(key).current
        session.set_mark(session.last_seq, MarkCause.SLEEP, self.store.now())
        assert self.store.sleep(key.ref) == session.state

    @rule(key=KEYS, which=st.integers(0, 9), below=st.integers(-2, 5), wrong=st.integers(-1, 1))
    def mark_processed(self, key: ModelKey, which: int, below: int, wrong: int) -> None:
        session = self._touch(key).sessions[which % len(key.sessions)]
        expected = max(0, (session.mark or session.last_seq) + wrong * (which % 2))
        until = max(0, (session.mark or session.last_seq) - below)
        cleared = self.store.marks.mark_processed(
            key.ref.space, session.id, until, expected, self.store.now()
        )
        assert cleared == session.process(until, expected)

    @rule(
        key=KEYS,
        cause=st.sampled_from([MarkCause.RESET, MarkCause.COMPACTION]),
        summary=st.none() | st.sampled_from(["", "so far"]),
        retain=st.integers(0, 6),
    )
    def rotate(self, key: ModelKey, cause: MarkCause, summary: str | None, retain: int) -> None:
        new = self.store.sessions.rotate(
            self._touch(key).ref,
            cause,
            self.store.now(),
            self.store.new_id,
            summary=summary,
            retain=retain,
        )
        key.rotate(new.id, cause, self.store.now(), summary, retain)
        assert new == key.current.state

    @rule(key=KEYS)
    def end(self, key: ModelKey) -> None:
        session = self._touch(key).current
        session.close(MarkCause.END, self.store.now())
        assert self.store.end(key.ref) == session.state

    @rule(key=KEYS, mode=st.sampled_from(Mode))
    def set_mode(self, key: ModelKey, mode: Mode) -> None:
        self._touch(key).set_mode(mode, self.store.now())
        assert self.store.set_mode(key.ref, mode) == key.current.state

    @rule(key=KEYS)
    def purge(self, key: ModelKey) -> None:
        self._touch(key).purge()
        self.store.records.purge(key.ref, self.store.now())

    @rule(key=KEYS, content=st.sampled_from(["", "short", "short and good"]))
    def set_summary(self, key: ModelKey, content: str) -> None:
        self._touch(key).current.summary = content
        self.store.records.set_summary(key.ref, content, self.store.now())

    @rule(
        space=st.none() | st.sampled_from(SPACES),
        seconds=st.integers(0, IDLE_SECONDS),
        limit=st.integers(0, 3),
    )
    def sweep(self, space: str | None, seconds: int, limit: int) -> None:
        self.store.clock.advance(seconds)
        since = self.store.now() - timedelta(seconds=IDLE_SECONDS)
        which = Unattended(oldest=since - timedelta(days=36_500), newest=since)
        swept = self.store.marks.mark_idle(space, which, self.store.now(), limit)
        expected = self.model.idle(space, since)[:limit]
        assert sorted(swept) == sorted((s.ref.space, s.id) for s in expected)
        for session in expected:
            session.set_mark(session.last_seq, MarkCause.IDLE, self.store.now())

    @rule()
    def reopen(self) -> None:
        if not self.store.is_volatile:
            self.store.reopen()

    # what has to hold

    @invariant()
    def the_store_agrees_with_the_model(self) -> None:
        StoreMachine.steps += 1
        self.steps_here += 1
        if self.touched is not None:
            key, self.touched = self.touched, None
            assert self.store.everything(key.ref) == key.current.shown
            self._compare_ranges(key.current)
            self._compare_space(key.ref.space)
            if self.steps_here % LONG_LOOK_EVERY == 0:
                self._compare_key(key)

    def _compare_key(self, key: ModelKey) -> None:
        ref, session = key.ref, key.current
        assert self.store.sessions.find_key(ref.space, ref.key, ref.agent_id) == ref
        assert self.store.current(ref) == session.state
        assert self.store.everything(ref) == session.shown
        assert self.store.records.recent(ref, 3) == session.shown[-3:]
        assert self.store.records.count(ref) == len(session.shown)
        assert self.store.records.summary(ref) == session.summary
        assert self.store.records.all_rotations(ref) == key.everything
        for each in key.sessions:
            self._compare_ranges(each)
            self._compare_numbers(each)

    def _compare_ranges(self, session: ModelSession) -> None:
        """Invariant 3: every record below the cursor is in exactly one range."""
        found = self.store.marks.ranges(session.ref.space, session.id)
        assert [(r.first_seq, r.last_seq, r.outcome) for r in found] == session.ranges
        covered = [seq for r in found for seq in range(r.first_seq, r.last_seq + 1)]
        assert [seq for seq in covered if seq <= session.cursor + 1] == [
            *range(1, session.cursor + 1)
        ]

    def _compare_numbers(self, session: ModelSession) -> None:
        space = session.ref.space
        newest = max(session.records, default=None)
        assert self.store.marks.max_seq(space, session.id) == newest
        above = [seq for seq in session.records if seq > session.cursor]
        assert self.store.marks.count_since(space, session.id, session.cursor) == len(above)

    def _compare_space(self, space: str | None) -> None:
        assert self.store.marks.counts(space) == self.model.counts(space)
        if space is None:
            assert self.store.sessions.spaces("", PAGE) == self.model.spaces()
            return
        listed = self.store.sessions.list(space, PAGE, None)
        expected = [session.state for session in self.model.sessions(space)]
        assert sorted(listed, key=_by_id) == sorted(expected, key=_by_id)
        assert self.store.marks.find_invalidated(space, PAGE) == self.model.find_invalidated(space)
        for session in listed:
            _check_progress(self.seen.get(session.id), session)
            self.seen[session.id] = session

    def _open(self, space: str, name: str, agent: str, birth: SessionBirth) -> ModelKey:
        ref = self.store.key(name, space=space, agent=agent, birth=birth)
        names = (space, name, agent)
        if names not in self.model.keys:
            session = ModelSession(
                ref=ref,
                id=self.store.current(ref).id,
                rotation=1,
                birth=birth,
                mode=birth.mode,
                created_at=self.store.now(),
                last_activity_at=self.store.now(),
            )
            self.model.keys[names] = ModelKey(ref=ref, sessions=[session])
        key = self.model.keys[names]
        assert ref == key.ref
        return self._touch(key)

    def _append(self, key: ModelKey, records: Sequence[NewRecord], policy: MarkPolicy) -> None:
        self._touch(key)
        try:
            key.check_keys(records)
        except Reused:
            with pytest.raises(AppendKeyReused):
                self.store.say(key.ref, *records, policy=policy)
            return
        said = self.store.say(key.ref, *records, policy=policy)
        if key.needs_session_for(records):
            cause = key.current.ended_by or MarkCause.END
            key.open_next(self.store.current(key.ref).id, cause, self.store.now())
        assert said == key.append(records, policy, self.store.now())

    def _touch(self, key: ModelKey) -> ModelKey:
        self.touched = key
        return key


def _by_id(session: SessionState) -> str:
    return session.id


def _check_progress(before: SessionState | None, after: SessionState) -> None:
    """Invariant 2: the cursor within the records, the mark above it, nothing that goes back."""
    cursor = after.processed_until or 0
    assert 0 <= cursor <= after.last_seq
    assert after.invalidated_at is None or after.invalidated_at > cursor
    assert (after.invalidated_at is None) == (after.marked_at is None) == (after.marked_by is None)
    if before is None:
        return
    assert after.last_seq >= before.last_seq
    assert cursor >= (before.processed_until or 0)
    assert after.last_activity_at >= before.last_activity_at
    if before.ended_at is not None:
        assert (after.ended_at, after.ended_by) == (before.ended_at, before.ended_by)
    if after.marked_at == before.marked_at and after.invalidated_at is not None:
        assert after.invalidated_at >= (before.invalidated_at or 0)


# where the stores come from


@contextmanager
def fresh_in_memory() -> Iterator[OpenStore]:
    yield lambda: open_store(":memory:", Settings(), SystemClock())


def fresh_in_files(directory: Path) -> FreshStore:
    numbers = itertools.count()

    @contextmanager
    def fresh_store() -> Iterator[OpenStore]:
        path = directory / f"{next(numbers)}.db"
        put_empty_store(path)
        yield lambda: open_store(f"sqlite:///{path}?synchronous=off", Settings(), SystemClock())
        for file in directory.glob(f"{path.name}*"):
            file.unlink()

    return fresh_store


def fresh_in_schemas(postgres_url: str, schemas: Schemas) -> FreshStore:
    @contextmanager
    def fresh_store() -> Iterator[OpenStore]:
        schema = schemas.lend()
        url = url_with(postgres_url, schema=schema)
        yield lambda: open_store(url, Settings(), SystemClock())
        schemas.take_back(schema)

    return fresh_store


def run_machine(
    fresh_store: FreshStore, settings: hypothesis.settings, *, volatile: bool = False
) -> int:
    """Run it and give the number of steps that were taken."""

    class Machine(StoreMachine):
        def __init__(self) -> None:
            super().__init__(fresh_store, volatile=volatile)

    before = StoreMachine.steps
    run_state_machine_as_test(Machine, settings=settings)
    return StoreMachine.steps - before


def short(examples: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=examples,
        stateful_step_count=50,
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=list(hypothesis.HealthCheck),
    )


TORTURE = hypothesis.settings(
    max_examples=1_700,
    stateful_step_count=200,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def test_a_store_in_memory_does_as_the_model_does() -> None:
    assert run_machine(fresh_in_memory, short(60), volatile=True) > 1_000


def test_a_store_in_a_file_does_as_the_model_does(tmp_path: Path) -> None:
    assert run_machine(fresh_in_files(tmp_path), short(50)) > 1_000


def test_a_store_in_postgresql_does_as_the_model_does(
    postgres_url: str, postgres_schemas: Schemas
) -> None:
    assert run_machine(fresh_in_schemas(postgres_url, postgres_schemas), short(15)) > 200


@pytest.mark.torture
@pytest.mark.parametrize("kind", ["sqlite-memory", "sqlite-file", "postgres"])
def test_a_million_steps_do_as_the_model_does(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    match kind:
        case "sqlite-memory":
            fresh_store: FreshStore = fresh_in_memory
        case "sqlite-file":
            fresh_store = fresh_in_files(tmp_path)
        case _:
            url = request.getfixturevalue("postgres_url")
            fresh_store = fresh_in_schemas(url, request.getfixturevalue("postgres_schemas"))
    steps = run_machine(fresh_store, TORTURE, volatile=kind == "sqlite-memory")
    assert steps > 300_000


@pytest.mark.parametrize(
    "name",
    [
        "a mark that can be lowered",
        "a swap without a comparison",
        "a cursor past what was read",
        "append keys that are lost",
        "a batch in pieces",
        "recent in the wrong order",
        "a mode that is not set",
        "a reset that keeps records",
    ],
)
def test_the_machine_notices_a_store_that_is_wrong(name: str) -> None:
    @contextmanager
    def fresh_store() -> Iterator[OpenStore]:
        def open_broken() -> Store:
            return broken_store(open_store(":memory:", Settings(), SystemClock()), BROKEN[name])

        yield open_broken

    settings = hypothesis.settings(
        short(300),
        phases=[Phase.generate],
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError):
        run_machine(fresh_store, settings, volatile=True)
