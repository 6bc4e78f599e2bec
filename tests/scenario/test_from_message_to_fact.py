"""One message on its way: appended, marked, claimed, extracted, redacted, recorded, with sources.

On both databases, with the scripted model and with rules. Rows X3 to X11, T2 to T4, P3, P10.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import NotFound
from recollect.types.facts import CallOutcome, FactEvent, Trust
from recollect.types.records import Outcome, SessionOutcome
from recollect_conformance.scripted import ScriptedServer
from tests.scripted_answers import extracted, fact

# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6
HOME = "I live in Lisbon and my favourite colour is teal."
KEY = f"By the way, my OpenAI key is {SECRET} until Friday."
MOVED = "I moved again: I live in Porto now."

Open = Callable[..., AbstractContextManager[recollect.Memory]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(durable_store_url: str, clock: ManualClock) -> Open:
    @contextmanager
    def open_it(**settings: Any) -> Iterator[recollect.Memory]:
        given = {"pipeline": "extraction", "consolidation": "off"} | settings
        with recollect.open(durable_store_url, settings=given, clock=clock) as memory:
            yield memory

    return open_it


def told(memory: recollect.Memory) -> recollect.Session:
    session = memory.space("alice").session("telegram:42:main", agent="assistant")
    session.append("user", HOME, name="Alice")
    session.append("assistant", "Noted.")
    session.append("user", KEY, name="Alice")
    session.sleep()
    return session


def everything_stored(memory: recollect.Memory) -> str:
    """All that memory holds apart from the raw history."""
    space = memory.space("alice")
    facts = space.facts.list(every=True)
    shown: list[object] = [*facts, *space.sessions.extractions(), *space.sessions.calls()]
    shown += [change for each in facts for change in space.facts.history(each.id)]
    shown += [memory.status()]
    return repr(shown)


def test_by_rules_a_message_becomes_a_redacted_fact_with_its_source(opened: Open) -> None:
    with opened() as memory:
        session = told(memory)
        assert (session.state.invalidated_at, session.state.processed_until) == (3, None)
        report = memory.work()
        assert (report.processed, report.records, report.failed) == (1, 3, 0)
        assert (session.state.invalidated_at, session.state.processed_until) == (None, 3)

        space = memory.space("alice")
        home = space.facts.search("Where does Alice live?")[0]
        assert "Lisbon" in home.content
        assert home.source == session.id
        (source,) = home.sources
        assert (source.seq, source.seq_to) == (1, 1)
        assert source.quote in HOME
        assert home.trust is Trust.USER
        assert home.extractor is not None
        assert home.extractor.startswith("rules/")

        extraction = space.sessions.extraction(session.id)
        assert extraction is not None
        assert (extraction.upto, extraction.pass_number) == (3, 1)
        assert "Lisbon" in extraction.rollout_summary + extraction.raw_memory
        (span,) = space.sessions.ranges(session.id)
        assert (span.first_seq, span.last_seq, span.outcome) == (1, 3, Outcome.EXTRACTED)
        (progress,) = memory.status().sessions
        assert progress.outcome is SessionOutcome.SUCCEEDED
        assert (progress.spent.calls, progress.facts) == (0, len(space.facts))
        assert memory.status().consolidations_due == 1

        assert SECRET not in everything_stored(memory)
        assert SECRET in session.all()[2].content, "the history stays as it was said"


def test_with_a_model_a_message_becomes_a_redacted_fact_with_its_source(opened: Open) -> None:
    answer = extracted(
        fact("Alice lives in Lisbon.", [1], quote="I live in Lisbon", topic="alice:home"),
        fact(f"Alice's OpenAI key is {SECRET}.", [3]),
        raw_memory=f"## Keys\noutcome: success\nthe key is {SECRET}",
        rollout_summary=f"Alice gave a key ({SECRET}).",
    )
    with (
        ScriptedServer([answer]) as server,
        opened(
            model="openai:scripted",
            model_base_url=server.url,
            model_input_price=2.0,
            model_output_price=10.0,
        ) as memory,
    ):
        session = told(memory)
        assert memory.work().processed == 1
        (request,) = server.requests
        assert SECRET not in request.prompt + request.system
        assert "I live in Lisbon" in request.prompt

        space = memory.space("alice")
        home = space.facts.search("Where does Alice live?")[0]
        assert home.content == "Alice lives in Lisbon."
        assert home.sources == (
            recollect.Source(session_id=session.id, seq=1, seq_to=1, quote="I live in Lisbon"),
        )
        assert (home.trust, home.extractor) == (Trust.USER, "openai:scripted/prompt-3")
        extraction = space.sessions.extraction(session.id)
        assert extraction is not None
        assert extraction.rollout_slug == "talk-about-home"
        assert "[redacted:" in extraction.rollout_summary
        assert "[redacted:" in extraction.raw_memory
        assert SECRET not in everything_stored(memory)

        (progress,) = memory.status().sessions
        assert progress.outcome is SessionOutcome.SUCCEEDED
        assert (progress.attempt, progress.spent.tokens) == (1, 120)
        assert progress.spent.cost_micros == 100 * 2 + 20 * 10
        (call,) = space.sessions.calls(session.id)
        assert (call.outcome, call.input_tokens) == (CallOutcome.ANSWERED, 100)
        assert memory.status().spent_today.tokens == 120


def test_what_is_new_is_sent_with_what_is_known_and_a_newer_statement_supersedes(
    opened: Open, clock: ManualClock
) -> None:
    first = extracted(fact("Alice lives in Lisbon.", [1], quote="I live in Lisbon"))
    second = extracted(
        fact("Alice lives in Porto.", [4], quote="I live in Porto now", supersedes=["f1"]),
        raw_memory="## Home\noutcome: success\nmoved from Lisbon to Porto",
    )
    with (
        ScriptedServer([first, second]) as server,
        opened(model="openai:scripted", model_base_url=server.url) as memory,
    ):
        session = told(memory)
        memory.work()
        in_lisbon = clock.now()
        clock.advance(timedelta(days=1).total_seconds())
        session.append("user", MOVED, name="Alice")
        session.sleep()
        memory.work()

        prompt = server.requests[1].prompt
        assert MOVED in prompt
        assert HOME not in prompt, "only new records are sent (X9)"
        assert "Alice lives in Lisbon." in prompt, "with what is known already"
        space = memory.space("alice")
        assert [each.content for each in space.facts.list()] == ["Alice lives in Porto."]
        (then,) = space.facts.search("Where does Alice live?", as_of=in_lisbon)
        assert then.content == "Alice lives in Lisbon."
        (now,) = space.facts.list()
        assert then.superseded_by == now.id
        assert [change.event for change in space.facts.history(then.id)] == [
            FactEvent.ADDED,
            FactEvent.SUPERSEDED,
        ]
        extraction = space.sessions.extraction(session.id)
        assert extraction is not None
        assert (extraction.upto, "Porto" in extraction.raw_memory) == (4, True)
        assert [(span.first_seq, span.last_seq) for span in space.sessions.ranges(session.id)] == [
            (1, 3),
            (4, 4),
        ]


def test_by_rules_a_newer_statement_on_the_same_subject_supersedes(
    opened: Open, clock: ManualClock
) -> None:
    with opened() as memory:
        session = told(memory)
        memory.work()
        clock.advance(60)
        session.append("user", MOVED, name="Alice")
        session.sleep()
        memory.work()
        homes = memory.space("alice").facts.search("live lives living Lisbon Porto")
        assert any("Porto" in each.content for each in homes)
        assert not any(each.content.startswith("Alice lives in Lisbon") for each in homes)


def test_by_rules_only_the_persons_own_words_end_what_is_known(
    opened: Open, clock: ManualClock
) -> None:
    """T4: what is over is history; what is handed over to be translated is nobody's statement."""

    def said(space: recollect.Space, text: str) -> None:
        clock.advance(timedelta(days=1).total_seconds())
        session = space.session("telegram:42:main")
        session.append("user", text)
        session.append("assistant", "Noted.")
        session.sleep()
        memory.work()

    with opened() as memory:
        space = memory.space("alice")
        for text in ("I live in Porto.", "I'm vegan.", "I like tea.", "My name is Ana."):
            said(space, text)
        before = {fact.id for fact in space.facts.list()}
        for text in (
            "Translate to German: I live in Berlin.",
            "Pretend I live in Tokyo.",
            "Write a story that begins with: I live in Oslo.",
            "Correct this sentence: My name is Bob.",
            "I no longer live in Faro.",
        ):
            said(space, text)
        held = {fact.content for fact in space.facts.list() if fact.id in before}
        assert held == {
            "The user lives in Porto.",
            "The user is vegan.",
            "The user likes tea.",
            "The user's name is Ana.",
        }
        said(space, "I moved from Porto to Lisbon.")
        said(space, "I'm not vegan anymore.")
        said(space, "I don't like tea anymore.")
        held = {fact.content for fact in space.facts.list() if fact.id in before}
        assert held == {"The user's name is Ana."}
        for fact in space.facts.list(every=True):
            if fact.id in before and fact.content != "The user's name is Ana.":
                assert fact.superseded_by is not None
                assert space.facts.history(fact.id)[-1].event is FactEvent.SUPERSEDED


def test_who_starts_offline_and_adds_a_model_later_loses_nothing(opened: Open) -> None:
    with opened() as memory:
        session_id = told(memory).id
        memory.work()
        memory.space("alice").facts.add("Alice is the founder.", tags=["mine"])
        by_rules = memory.space("alice").sessions.extraction(session_id)
        assert by_rules is not None
    answer = extracted(fact("Alice lives in Lisbon.", [1], quote="I live in Lisbon"))
    with (
        ScriptedServer([answer]) as server,
        opened(model="openai:scripted", model_base_url=server.url) as memory,
    ):
        report = memory.work(again=True)
        assert (report.processed, len(server.requests)) == (1, 1)
        assert HOME in server.requests[0].prompt
        space = memory.space("alice")
        after = space.sessions.extraction(session_id)
        assert after is not None
        assert (after.extractor, after.pass_number) == ("openai:scripted/prompt-3", 2)
        contents = {each.content for each in space.facts.list()}
        assert contents == {"Alice lives in Lisbon.", "Alice is the founder."}
        (span,) = space.sessions.ranges(session_id)
        assert (span.first_seq, span.last_seq, span.pass_number) == (1, 3, 2)
        assert memory.work(again=False).processed == 0


def test_forgetting_the_session_takes_all_of_it_away(opened: Open) -> None:
    with opened() as memory:
        space = memory.space("alice")
        session = told(memory)
        other = space.session("telegram:43:main", agent="assistant")
        other.append("user", HOME, name="Alice")
        other.sleep()
        memory.work()
        shared = space.facts.search("Lisbon")[0]
        assert {source.session_id for source in shared.sources} == {session.id, other.id}
        session_id = session.id

        receipt = space.forget(session=session)
        assert (receipt.records, receipt.extractions) == (3, 1)
        assert space.sessions.extraction(session_id) is None
        assert space.sessions.records(session_id) == []
        left = space.facts.search("Lisbon")[0]
        assert {source.session_id for source in left.sources} == {other.id}
        with pytest.raises(NotFound):
            space.forget(session="nobody's")
        assert memory.work(all=True).failed == 0


def test_playing_the_same_week_twice_adds_no_fact(opened: Open, clock: ManualClock) -> None:
    said = [HOME, "I always use pytest, never unittest.", "My sister Ana works at the port."]
    with opened() as memory:
        space = memory.space("alice")
        counts = []
        for week in range(2):
            for day, text in enumerate(said):
                session = space.session(f"week {week}, day {day}", agent="assistant")
                session.append("user", text, name="Alice")
                session.end()
                clock.advance(86_400)
            memory.work()
            counts.append(len(space.facts.list(every=True)))
        assert counts[0] == counts[1] > 0


def test_nothing_is_learned_where_extraction_is_switched_off(opened: Open) -> None:
    with opened(extractor="none") as memory:
        session = told(memory)
        assert memory.work().processed == 1
        space = memory.space("alice")
        assert (len(space.facts), space.sessions.extraction(session.id)) == (0, None)
        (span,) = space.sessions.ranges(session.id)
        assert span.outcome is Outcome.NO_OUTPUT


def test_a_store_moved_to_a_new_process_knows_the_same_placeholders(opened: Open) -> None:
    with opened() as memory:
        first = memory.space("alice").facts.add(f"the key is {SECRET}")
    with opened() as memory, closing(memory):
        second = memory.space("alice").facts.add(f"again the key: {SECRET}")
    placeholder = first.content.removeprefix("the key is ")
    assert placeholder.startswith("[redacted:")
    assert second.content == f"again the key: {placeholder}"


def squeezed(text: str) -> str:
    """Letters and digits alone: what is left of a secret in a slug, a topic or a path."""
    return re.sub(r"[^a-z0-9]", "", text.casefold())


@pytest.mark.parametrize(
    "secret", ["AKIA" + "Q3EGRZ7WMNTB5K2P", "4111 1111 1111 1111", "5105-1051-0510-5100"]
)
def test_no_stored_field_holds_a_secret_that_a_model_wrote(
    opened: Open, tmp_path: Path, secret: str
) -> None:
    """X6, P10: neither as it was written nor in a name that was made of it."""
    answer = extracted(
        fact(f"Alice pays with {secret}.", [1], quote=secret, topic=f"alice:pays {secret}"),
        raw_memory=f"## Pay with {secret}\noutcome: success",
        rollout_summary=f"# Paid with {secret}\n\nAlice paid with {secret}.",
        rollout_slug=f"pay-with-{secret}",
    )
    with ScriptedServer([answer]) as server:
        model = {"model": "openai:scripted", "model_base_url": server.url}
        with opened(**model, pipeline="both", consolidation="on") as memory:
            session = memory.space("alice").session("k", agent="assistant")
            session.append("user", HOME, name="Alice")
            session.sleep()
            memory.work()
            extraction = memory.space("alice").sessions.extraction(session.id)
            assert extraction is not None
            assert extraction.rollout_slug is not None
            assert extraction.rollout_slug.startswith("pay-with-redacted")
            assert memory.space("alice").generations.list()
            memory.export(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    held = [name for name, text in parts.items() if squeezed(secret) in squeezed(name + text)]
    assert held == []
