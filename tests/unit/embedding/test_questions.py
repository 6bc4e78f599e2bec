"""N1, P8: recall does not wait for an endpoint that is down, and finds its way back to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.embedding.protocol import PAUSE_SECONDS, Embedded, QuestionEmbedder, never
from recollect.errors import CallCancelled, ModelUnavailable
from recollect_conformance.scripted import Gate, ScriptedServer, Step, held, status
from recollect_conformance.scripted_embedder import HashEmbedder, embeddings_by
from recollect_conformance.scripted_frames import Received

ANSWERS = embeddings_by(HashEmbedder())


class Endpoint:
    """A server whose next answers are another step, as long as there is one."""

    def __init__(self) -> None:
        self.instead: Step | None = None
        self.server = ScriptedServer(self._play)

    def _play(self, received: Received) -> Step:
        return self.instead or ANSWERS(received)

    @property
    def asked(self) -> int:
        return len(self.server.requests)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    with endpoint.server:
        yield endpoint


@pytest.fixture
def space(
    endpoint: Endpoint, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[recollect.Space]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    settings = {
        "embedder": "openai:m",
        "embedder_base_url": endpoint.server.url,
        "embedder_question_seconds": 2.0,
        "model_retries": 0,
    }
    with recollect.open(":memory:", settings=settings, clock=clock) as memory:
        space = memory.space()
        space.facts.add("a red car")
        memory.work()
        assert "similarity" in space.recall("car")[0].why
        yield space


def test_an_endpoint_that_says_nothing_is_waited_for_no_longer_than_a_question_may(
    space: recollect.Space, endpoint: Endpoint, clock: ManualClock
) -> None:
    gate = Gate()
    endpoint.instead = held(gate, status(503, "late"))

    def pass_time() -> None:
        assert gate.arrived.wait(30)
        clock.advance(2.0)

    waiting = threading.Thread(target=pass_time)
    waiting.start()
    [hit] = space.recall("car")
    waiting.join()
    gate.open()
    assert hit.text == "a red car"
    assert "similarity" not in hit.why


def test_after_a_failure_recall_goes_by_words_for_a_while_and_asks_again_then(
    space: recollect.Space, endpoint: Endpoint, clock: ManualClock
) -> None:
    endpoint.instead = status(503, "down")
    assert "similarity" not in space.recall("car")[0].why
    asked = endpoint.asked
    endpoint.instead = None
    clock.advance(PAUSE_SECONDS - 1)
    assert "similarity" not in space.recall("car")[0].why
    assert endpoint.asked == asked, "it was left alone"
    clock.advance(1)
    assert "similarity" in space.recall("car")[0].why
    assert endpoint.asked > asked


class Patient(HashEmbedder):
    """Is asked whether anybody waits, and gives up when nobody does."""

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        if is_cancelled():
            raise CallCancelled("nobody waits")
        return super().embed(texts, is_cancelled=is_cancelled)


def test_whoever_gives_up_by_themselves_silences_nobody(clock: ManualClock) -> None:
    asked = QuestionEmbedder(Patient(), clock, 2.0)
    with pytest.raises(CallCancelled):
        asked.embed(["car"], is_cancelled=lambda: True)
    assert asked.embed(["car"]).vectors == HashEmbedder().embed(["car"]).vectors


def test_how_many_numbers_there_are_is_found_out_within_the_same_limits(
    clock: ManualClock,
) -> None:
    class Silent(HashEmbedder):
        def embed(
            self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never
        ) -> Embedded:
            raise ModelUnavailable("nobody is there")

    silent = QuestionEmbedder(Silent(), clock, 2.0)
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            _ = silent.dimensions
    assert QuestionEmbedder(HashEmbedder(16), clock, 2.0).dimensions == 16
