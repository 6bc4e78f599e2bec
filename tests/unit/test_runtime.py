"""What everything of a memory shares, made on first use: its redactor with the store's salt, its
model, processors."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import AppendKeyReused, InvalidSetting, StoreClosed
from recollect.models.jobs import Brought
from recollect.models.protocol import Completion, Model, Request, Usage
from recollect.pipeline import Pipeline
from recollect.runtime import Runtime
from recollect.store.whole import Access
from recollect_conformance.scripted import ScriptedServer
from tests.scripted_answers import OTHERS_BY_RULES
from tests.tables import every_row

# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6


@dataclass
class Borrowed:
    """A model that somebody else has opened, and will close."""

    name: str = "openai:borrowed"
    window_tokens: int = 8000
    closed: int = 0
    asked: int = 0

    def complete(self, request: Request) -> Completion:
        self.asked += 1
        text = json.dumps(
            {"raw_memory": "m", "rollout_summary": "", "rollout_slug": None, "facts": []}
        )
        return Completion(text=text, usage=Usage(input_tokens=1, output_tokens=1), model="b")

    def close(self) -> None:
        self.closed += 1


def runtime(memory: recollect.Memory, model: Model | None = None, **settings: Any) -> Runtime:
    given = Settings(data_dir="", **settings)
    return Runtime(memory.store, given, ManualClock(), Brought(model=model))


def marked(memory: recollect.Memory) -> recollect.Session:
    session = memory.space().session("k", agent="assistant")
    session.append("user", "I live in Lisbon.")
    session.sleep()
    return session


# the salt


def test_two_memories_on_one_store_write_the_same_placeholder(durable_store_url: str) -> None:
    with (
        recollect.open(durable_store_url, settings={}) as one,
        recollect.open(durable_store_url, settings={}) as two,
    ):
        first = one.space().facts.add(f"first {SECRET}").content.removeprefix("first ")
        second = two.space().facts.add(f"second {SECRET}").content.removeprefix("second ")
    with recollect.open(durable_store_url, settings={}) as later:
        third = later.space().facts.add(f"third {SECRET}").content.removeprefix("third ")
    assert first == second == third
    assert first.startswith("[redacted:")


def test_two_memories_that_come_at_once_agree_on_a_salt(durable_store_url: str) -> None:
    barrier, found = threading.Barrier(4), []

    def redact() -> None:
        with recollect.open(durable_store_url, settings={}) as memory:
            barrier.wait(20)
            found.append(runtime(memory).redactor().redact(SECRET))

    with recollect.open(durable_store_url, settings={}):  # makes the store
        threads = [threading.Thread(target=redact) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert (len(found), len(set(found))) == (4, 1)


def test_two_stores_write_different_placeholders() -> None:
    """So that nobody can look a secret up by its placeholder."""
    with (
        recollect.open(":memory:", settings={}) as one,
        recollect.open(":memory:", settings={}) as two,
    ):
        assert runtime(one).redactor().redact(SECRET) != runtime(two).redactor().redact(SECRET)


def test_the_redactor_is_made_once_and_follows_the_settings(memory: recollect.Memory) -> None:
    shared = runtime(memory)
    assert shared.redactor() is shared.redactor()
    assert SECRET not in shared.redactor().redact(SECRET)
    assert runtime(memory, redaction_allow=SECRET).redactor().redact(SECRET) == SECRET


# the model


def test_a_model_of_the_settings_is_opened_once_and_closed_with_the_memory() -> None:
    with ScriptedServer() as server:
        settings = server.settings(data_dir="")
        with recollect.open(":memory:", settings=settings) as memory:
            shared = Runtime(memory.store, settings, ManualClock())
            opened = shared.models.main()
            assert opened is not None
            assert shared.models.main() is opened
            shared.close()
            with pytest.raises(recollect.RecollectError, match="closed"):
                opened.complete(Request(system="s", prompt="p"))
            assert server.requests == []


def test_a_model_of_somebody_else_is_used_and_left_open() -> None:
    model = Borrowed()
    with recollect.open(":memory:", settings=OTHERS_BY_RULES, model=model) as memory:
        session = marked(memory)
        assert memory.work().processed == 1
        extraction = memory.space().sessions.extraction(session.id)
        assert extraction is not None
        assert extraction.extractor == "openai:borrowed/prompt-3"
    assert (model.asked, model.closed) == (1, 0)


def test_a_model_is_not_looked_for_where_nobody_asks_for_one() -> None:
    """A key that is missing is no concern of who works by rules."""
    settings = {"model": "openai:", "extractor": "rules"} | OTHERS_BY_RULES
    with recollect.open(":memory:", settings=settings) as memory:
        marked(memory)
        assert memory.work().processed == 1
    with (
        recollect.open(":memory:", settings=settings | {"extractor": "auto"}) as memory,
        pytest.raises(InvalidSetting, match="names no model"),
    ):
        memory.work()


def test_a_model_may_be_named_beside_the_settings() -> None:
    with ScriptedServer() as server:
        settings = {"model_base_url": server.url, "model": "openai:other"}
        with recollect.open(":memory:", settings=settings, model="openai:named") as memory:
            assert memory.plan().extractor == "openai:named/prompt-3"


def test_every_worker_has_a_budget_of_its_own(memory: recollect.Memory) -> None:
    shared = runtime(memory)
    assert Pipeline(shared).processor() is not Pipeline(shared).processor()


# after closing


AFTERWARDS: Mapping[str, Callable[[recollect.Memory], object]] = {
    "work": lambda memory: memory.work(),
    "plan": lambda memory: memory.plan(),
    "request_again": lambda memory: memory.request_again(),
    "retry": lambda memory: memory.retry(),
    "a tick": lambda memory: memory.worker().tick(),
    "facts.add": lambda memory: memory.space().facts.add("x"),
    "facts.list": lambda memory: memory.space().facts.list(),
    "facts.search": lambda memory: memory.space().facts.search("x"),
    "forget": lambda memory: memory.space().forget(session="s"),
}


@every_row("settings", [{}, {"extractor": "rules"}, {"extractor": "none"}])
@every_row("use", AFTERWARDS.values())
@every_row("was_used", [False, True])
def test_a_closed_memory_is_closed(
    settings: dict[str, Any], use: Callable[[recollect.Memory], object], was_used: bool
) -> None:
    with recollect.open(":memory:", settings=settings) as memory:
        if was_used:
            marked(memory)
            memory.work()
    with pytest.raises(StoreClosed):
        use(memory)


def test_a_closed_memory_opens_no_model() -> None:
    with ScriptedServer() as server, recollect.open(":memory:", settings={}) as memory:
        shared = Runtime(memory.store, server.settings(data_dir=""), ManualClock())
        shared.close()
        shared.close()
        with pytest.raises(StoreClosed, match="open it again"):
            shared.models.main()


# redact_on_append: what it is to keep no secret at all


@pytest.fixture
def strict(store_url: str) -> Any:
    with recollect.open(store_url, settings={"redact_on_append": True}) as memory:
        yield memory.space().session("k", agent="assistant")


def call(arguments: str) -> dict[str, Any]:
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": "connect", "arguments": arguments},
    }


def test_nothing_of_a_record_keeps_a_secret(strict: recollect.Session) -> None:
    strict.append(
        "user", f"my key is {SECRET}", name=f"Alice {SECRET}", metadata={"deep": [SECRET]}
    )
    strict.append(
        "assistant", f"I use {SECRET}", tool_calls=[call(json.dumps({"token": SECRET, "n": 1}))]
    )
    strict.append("tool", f"connected with {SECRET}", tool_call_id="c1")
    strict.append("user", parts=[{"type": "text", "text": f"again: {SECRET}"}])
    strict.append_many([{"role": "user", "content": [{"type": "text", "text": SECRET}]}])
    records = strict.all()
    assert len(records) == 5
    assert SECRET not in repr(records)
    first, second, third, *_ = records
    placeholder = first.content.removeprefix("my key is ")
    assert placeholder.startswith("[redacted:")
    assert (first.name, first.metadata) == (f"Alice {placeholder}", {"deep": [placeholder]})
    (called,) = second.tool_calls
    assert placeholder in json.dumps(called.arguments)
    assert third.content == f"connected with {placeholder}"
    assert placeholder in strict.all()[3].content


def test_nothing_that_is_said_about_a_conversation_keeps_a_secret(
    strict: recollect.Session,
) -> None:
    """P10: summaries and reasons are written by hosts, and whoever exports takes them along."""
    strict.append("user", "hello")
    strict.set_summary(f"uses {SECRET}")
    assert strict.summary.startswith("uses [redacted:")
    strict.compact(summary=f"still uses {SECRET}")
    assert strict.summary.startswith("still uses [redacted:")
    strict.append("user", "hello again")
    strict.reset(f"leaked {SECRET}")
    with strict.store.whole(Access.READ) as whole:
        stored = repr([[*whole.stream(f"SELECT * FROM {table}")] for table in whole.tables()])
    assert "still uses [redacted:" in stored
    assert "leaked [redacted:" in stored
    assert SECRET not in stored


def test_what_is_no_secret_is_kept_to_the_letter(strict: recollect.Session) -> None:
    plain = [
        {"role": "user", "content": "I live in Lisbon \u2028 é 東京"},
        {"role": "assistant", "content": None, "tool_calls": [call('{"n": 1.50, "e": "é"}')]},
    ]
    given = {"n": [1, 2.5, None, True], "é": "ü"}
    with recollect.open(":memory:", settings={}) as memory:
        loose = memory.space().session("k", agent="assistant")
        for session in (strict, loose):
            session.append_many(plain)
            session.append("user", "x", name="Alice", metadata=given)
        kept = [(r.role, r.content, r.name, r.metadata, r.tool_calls) for r in strict.all()]
        assert kept == [(r.role, r.content, r.name, r.metadata, r.tool_calls) for r in loose.all()]


def test_the_same_append_again_returns_what_is_stored(strict: recollect.Session) -> None:
    def append(text: str) -> recollect.Record:
        return strict.append("user", text, key="once", metadata={"password": "Tr0ub4dor&3"})

    first = append(f"my key is {SECRET}")
    assert append(f"my key is {SECRET}") == first
    assert strict.all() == [first]
    assert "Tr0ub4dor" not in repr(first)
    with pytest.raises(AppendKeyReused):
        append(f"my key is not {SECRET}")


def test_without_the_setting_records_are_kept_verbatim(memory: recollect.Memory) -> None:
    """P10: raw history stays as it was said; what leaves it is redacted."""
    session = memory.space().session("k", agent="assistant")
    session.append("user", f"my key is {SECRET}", metadata={"k": SECRET})
    (record,) = session.all()
    assert (record.content, record.metadata) == (f"my key is {SECRET}", {"k": SECRET})


def test_what_many_a_process_never_needs_is_not_loaded_with_the_package() -> None:
    """`import recollect` stays fast: redaction, extraction and the HTTP client come when used."""
    script = (
        "import sys, recollect; print([name for name in sys.modules if name.startswith("
        "('recollect.redaction', 'recollect.extraction', 'recollect.models', 'httpx2'))])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
