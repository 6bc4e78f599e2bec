"""A whole run against a real small model: from records to what is stored, or to an honest failure.

What the model says is nonsense, so nothing here asks what was learned. The way is what is tried:
a session is read by its extractor and its cursor moves, or the answer is refused and it does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.types.facts import CallOutcome
from recollect.types.records import SessionOutcome, SessionProgress
from tests.scripted_answers import OTHERS_BY_RULES

SAID = (
    ("user", "I live in Lisbon, and I prefer tea over coffee."),
    ("assistant", "Noted."),
    ("user", "Always run the tests before you commit."),
)

# The instructions alone would fill most of so small a window; plain lines leave room to answer.
FORMS = {"lines": {"model_structured": "lines"}, "json": {"model_structured": "schema"}}


@pytest.fixture(params=FORMS)
def memory(request: pytest.FixtureRequest, real_settings: Settings) -> Iterator[recollect.Memory]:
    settings = dataclasses.replace(
        real_settings,
        **FORMS[request.param],  # type: ignore[arg-type]
        data_dir="",
        extractor="model",
        **OTHERS_BY_RULES,
        extract_repairs=0,
        extract_known_facts=0,
        model_output_tokens_max=160,
    )
    with recollect.open(":memory:", settings=settings, clock=ManualClock()) as memory:
        yield memory


def told(memory: recollect.Memory, key: str) -> recollect.Session:
    session = memory.space().session(key, agent="assistant")
    for role, text in SAID:
        session.append(role, text)
    session.sleep()
    return session


def assert_nothing_was_lost(
    memory: recollect.Memory, session: recollect.Session, progress: SessionProgress
) -> None:
    """The cursor has moved if, and only if, what became of the records is stored."""
    space = memory.space()
    spans = space.sessions.ranges(session.id)
    facts = [fact for fact in space.facts.list() if fact.source == session.id]
    extraction = space.sessions.extraction(session.id)
    assert [record.content for record in session.all()] == [text for _, text in SAID]
    if progress.outcome is SessionOutcome.FAILED:
        assert (progress.last_error or "").startswith("InvalidOutput: "), progress.last_error
        assert (spans, facts, extraction) == ([], [], None)
        assert (session.state.processed_until, session.state.invalidated_at) == (None, 3)
        return
    assert [(span.first_seq, span.last_seq) for span in spans] == [(1, 3)]
    assert (session.state.processed_until, session.state.invalidated_at) == (3, None)
    is_silent = progress.outcome is SessionOutcome.SUCCEEDED_NO_OUTPUT
    assert is_silent is (not facts and extraction is None)
    for fact in facts:
        (source,) = fact.sources
        assert 1 <= source.seq <= source.seq_to <= 3


def test_a_real_model_distils_a_session_or_is_refused_and_nothing_is_lost(
    memory: recollect.Memory,
) -> None:
    session = told(memory, "k")
    report = memory.work()
    assert report.processed + report.failed == 1
    (progress,) = memory.status().sessions
    assert progress.outcome in (
        SessionOutcome.SUCCEEDED,
        SessionOutcome.SUCCEEDED_NO_OUTPUT,
        SessionOutcome.FAILED,
    )
    assert (progress.outcome is SessionOutcome.FAILED) is bool(report.failed)
    assert_nothing_was_lost(memory, session, progress)
    calls = memory.space().sessions.calls(session.id)
    assert calls
    assert {call.outcome for call in calls} <= {CallOutcome.ANSWERED, CallOutcome.INVALID}
    assert all(call.input_tokens > 100 for call in calls)
    print(progress.outcome, progress.last_error, memory.space().facts.list())
