"""Spans of verbs, jobs and model calls, as the real OpenTelemetry collects them (N9)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace

import recollect
from recollect.clock import ManualClock
from recollect.errors import StoreClosed
from recollect_conformance.scripted import ScriptedServer, status
from recollect_conformance.scripted_embedder import HashEmbedder
from tests.scripted_answers import OTHERS_BY_RULES, extracted, fact

CANARY = "zanzibar"
SDK_MISSING = "opentelemetry-sdk collects the spans here"


@pytest.fixture(scope="module")
def exporter() -> Any:
    """Collects what this process traces."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason=SDK_MISSING)
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    collecting = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(collecting))
    trace.set_tracer_provider(provider)  # once in a process
    return collecting


@pytest.fixture
def spans(exporter: Any) -> Iterator[Any]:
    exporter.clear()
    yield lambda: {span.name: span for span in exporter.get_finished_spans()}
    exporter.clear()


def test_a_verb_is_a_span_below_the_hosts_own(spans: Any) -> None:
    with (
        recollect.open(":memory:", settings={"traces": True}) as memory,
        trace.get_tracer("host").start_as_current_span("a request"),
    ):
        memory.space("alice").session("k").append("user", "hello")
    found = spans()
    appended, request = found["recollect.records.append"], found["a request"]
    assert appended.parent.span_id == request.context.span_id
    assert found["recollect.sessions.open_key"].parent.span_id == request.context.span_id
    assert dict(appended.attributes) == {"recollect.verb": "records.append"}
    assert appended.status.is_ok or appended.status.is_unset


def test_an_error_is_told_by_its_class_alone(spans: Any) -> None:
    memory = recollect.open(":memory:", settings={"traces": True})
    memory.close()
    with pytest.raises(StoreClosed):
        memory.space(CANARY).facts.get(CANARY)
    failed = spans()["recollect.facts.get"]
    assert not failed.status.is_ok
    assert failed.attributes["error.type"] == "StoreClosed"
    assert failed.events == ()
    assert failed.status.description is None


def test_a_job_holds_its_verbs_and_its_model_calls(
    exporter: Any, spans: Any, clock: ManualClock
) -> None:
    told = extracted(fact("The user lives in Lisbon.", [1]))
    with (
        ScriptedServer([told]) as server,
        recollect.open(
            ":memory:",
            settings={"traces": True, "pipeline": "extraction", "model_base_url": server.url}
            | OTHERS_BY_RULES,
            model="openai:scripted",
            embedder=HashEmbedder(),
            clock=clock,
        ) as memory,
    ):
        session = memory.space("alice").session("k")
        session.append("user", "I live in Lisbon.")
        session.sleep()
        memory.work()
    found = spans()
    job = found["recollect.job.extract"]
    assert job.attributes == {"recollect.job": "extract"}
    calls = [span for span in exporter.get_finished_spans() if span.name == "recollect.model"]
    called = {span.attributes["recollect.purpose"]: span for span in calls}
    assert set(called) == {"extract", "embed"}
    asked = called["extract"]
    assert asked.attributes["gen_ai.request.model"] == "openai:scripted"
    assert asked.attributes["gen_ai.usage.input_tokens"] > 0
    within = (found["recollect.leases.load"], found["recollect.leases.record"], asked)
    assert {span.parent.span_id for span in within} == {job.context.span_id}


def test_no_span_has_a_word_of_what_it_is_about(exporter: Any, spans: Any) -> None:
    with (
        ScriptedServer([status(400, f"no {CANARY}")]) as server,
        recollect.open(
            ":memory:",
            settings={"traces": True, "model_base_url": server.url},
            model="openai:scripted",
        ) as memory,
    ):
        space = memory.space(CANARY)
        session = space.session(f"telegram:{CANARY}", agent=CANARY)
        session.append("user", f"I moved to {CANARY}.")
        space.facts.add(f"{CANARY} is warm.")
        space.documents.write(CANARY, f"# {CANARY}")
        space.recall(CANARY)
        session.sleep()
        memory.work()
    shown = " ".join(span.to_json() for span in exporter.get_finished_spans())
    assert spans()["recollect.model"].attributes["error.type"]
    assert CANARY not in shown


def test_without_the_extra_it_is_said_what_to_install_and_off_nothing_is_loaded() -> None:
    blocked = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "import recollect\n"
        "from recollect.errors import MissingExtra\n"
        "recollect.open(':memory:').close()\n"
        "try:\n"
        "    recollect.open(':memory:', settings={'traces': True})\n"
        "except MissingExtra as error:\n"
        "    print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", blocked], check=True, capture_output=True, text=True, timeout=60
    )
    assert "pip install 'recollect[otel]'" in told.stdout
