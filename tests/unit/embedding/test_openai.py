"""Embeddings over HTTP: what is sent, what is believed of the answer, and what is given up."""

from __future__ import annotations

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from recollect.config import Settings
from recollect.embedding.protocol import floats, zero_bytes
from recollect.errors import (
    CallCancelled,
    InvalidOutput,
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
)
from recollect_conformance.scripted import (
    KEY,
    Gate,
    ScriptedServer,
    Step,
    held,
    html,
    raw,
    reset,
    status,
    truncated,
)
from recollect_conformance.scripted_embedder import (
    USAGE_TOKENS,
    HashEmbedder,
    embeddings,
    embeddings_by,
)
from recollect_conformance.scripted_frames import Received
from tests.unit.embedding.conftest import Opener

HASH = HashEmbedder()
WAIT_SECONDS = 30


def answering(content: Any) -> Step:
    return raw(json.dumps(content).encode())


def vectors_of(*rows: list[Any]) -> Step:
    return answering({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]})


def test_texts_come_back_as_the_vectors_the_server_made(open_for: Opener) -> None:
    texts = ["We moved to Leeds.", "", "  \n", "Bees dance.", "蜂が踊る"]
    with ScriptedServer(embeddings_by(HASH)) as server:
        embedder = open_for(server, embedder="openai:text-embedding-9")
        embedded = embedder.embed(texts)
        (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "text-embedding-9", "input": [texts[0], *texts[3:]]}
    for found, expected in zip(embedded.vectors, HASH.embed(texts).vectors, strict=True):
        assert floats(found) == pytest.approx(floats(expected), abs=1e-6)
    assert embedded.vectors[1] == embedded.vectors[2] == zero_bytes(HASH.dimensions)
    assert embedder.dimensions == HASH.dimensions
    assert embedder.name == "openai:text-embedding-9"


def test_vectors_are_made_one_long_and_put_in_the_order_of_their_index(open_for: Opener) -> None:
    data = [{"index": 1, "embedding": [0, 5]}, {"index": 0, "embedding": [-3, 4]}]
    with ScriptedServer([answering({"data": data})]) as server:
        first, second = open_for(server).embed(["a", "b"]).vectors
    assert floats(first) == pytest.approx((-0.6, 0.8))
    assert floats(second) == (0, 1)


def test_a_server_that_gives_no_index_means_the_order(open_for: Opener) -> None:
    data = [{"embedding": [1, 0]}, {"embedding": [0, 1]}]
    with ScriptedServer([answering({"data": data})]) as server:
        assert [floats(each) for each in open_for(server).embed(["a", "b"]).vectors] == [
            (1, 0),
            (0, 1),
        ]


def test_no_texts_are_asked_of_nobody(open_for: Opener) -> None:
    with ScriptedServer() as server:
        embedded = open_for(server).embed([])
        assert embedded.vectors == ()
        assert server.requests == []


def test_what_leaves_the_machine_was_redacted_before_it_was_cut(open_for: Opener) -> None:
    secret = "hunter" + "2" * 40
    with ScriptedServer(embeddings_by(HASH)) as server:
        embedder = open_for(
            server, redact=lambda text: text.replace(secret, "[secret]"), text_bytes_max=20
        )
        embedder.embed([f"{'x' * 12}{secret} and more"])
        assert server.requests[0].body["input"] == ["x" * 12 + "[secret]"]


def test_many_texts_go_in_batches_and_stay_in_order(open_for: Opener) -> None:
    texts = [f"number {number}" if number % 4 else "" for number in range(20)]
    with ScriptedServer(embeddings_by(HASH)) as server:
        embedder = open_for(server, batch_texts=4)
        embedded = embedder.embed(texts)
        assert [len(each.body["input"]) for each in server.requests] == [4, 4, 4, 3]
    assert embedder.batch_texts == 4
    for found, expected in zip(embedded.vectors, HASH.embed(texts).vectors, strict=True):
        assert floats(found) == pytest.approx(floats(expected), abs=1e-6)
    assert embedded.usage is not None
    assert embedded.usage.input_tokens == 4 * USAGE_TOKENS
    assert not embedded.usage.is_estimate


def test_tokens_nobody_counted_are_estimated(open_for: Opener) -> None:
    step = embeddings(HASH.embed(["a", "b"]).vectors, tokens=None)
    with ScriptedServer([step]) as server:
        usage = open_for(server).embed(["word " * 40, "b"]).usage
    assert usage is not None
    assert usage.is_estimate
    assert 40 <= usage.input_tokens <= 80
    assert usage.output_tokens == 0


def test_any_text_can_be_sent(open_for: Opener) -> None:
    texts = ["\ud800 half a character", "\0", "😀" * 100_000, "x" * 1_000_000]
    with ScriptedServer(embeddings_by(HASH)) as server:
        embedded = open_for(server).embed(texts)
        sent = server.requests[0].body["input"]
    assert len(embedded.vectors) == 4
    assert max(len(text.encode()) for text in sent) <= 8000


UNUSABLE: dict[str, Step] = {
    "no data": answering({"object": "list"}),
    "a chat": answering({"choices": [{"message": {"content": "Hello"}}]}),
    "too few": vectors_of([1.0, 2.0]),
    "too many": vectors_of([1.0], [2.0], [3.0]),
    "two sizes": vectors_of([1.0, 2.0], [1.0]),
    "no numbers": vectors_of([1.0], []),
    "a word": vectors_of([1.0], ["one"]),
    "nothing": vectors_of([1.0], [None]),
    "not finite": raw(b'{"data": [{"embedding": [1.0]}, {"embedding": [NaN]}]}'),
    "endless": raw(b'{"data": [{"embedding": [1.0]}, {"embedding": [1e999]}]}'),
    "one place twice": answering({"data": [{"index": 0, "embedding": [1.0]}] * 2}),
    "a place that is none": answering(
        {"data": [{"index": at, "embedding": [1.0]} for at in (1, 2)]}
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_answer_that_is_none_is_refused(name: str, open_for: Opener) -> None:
    with ScriptedServer([UNUSABLE[name]]) as server, pytest.raises(InvalidOutput):
        open_for(server).embed(["a", "b"])


def test_vectors_of_another_size_than_before_are_refused(open_for: Opener) -> None:
    with ScriptedServer([vectors_of([1.0, 0.0]), vectors_of([1.0, 0.0, 0.0])]) as server:
        embedder = open_for(server)
        embedder.embed(["a"])
        with pytest.raises(InvalidOutput, match="3 numbers, where 2 numbers"):
            embedder.embed(["b"])


def test_a_size_that_is_asked_for_is_sent_named_and_insisted_on(open_for: Opener) -> None:
    with ScriptedServer([vectors_of([1.0, 0.0]), vectors_of([1.0, 0.0, 0.0])]) as server:
        embedder = open_for(server, dimensions=2)
        assert (embedder.name, embedder.dimensions) == ("openai:m/2", 2)
        assert server.requests == []
        embedder.embed(["a"])
        assert server.requests[0].body["dimensions"] == 2
        with pytest.raises(InvalidOutput, match="3 numbers"):
            embedder.embed(["b"])


def test_the_size_is_asked_for_when_it_is_not_known(open_for: Opener) -> None:
    with ScriptedServer(embeddings_by(HashEmbedder(24))) as server:
        embedder = open_for(server)
        assert embedder.dimensions == 24
        assert embedder.dimensions == 24
        assert embedder.embed([""]).vectors == (zero_bytes(24),)
        assert len(server.requests) == 1


PASSING: dict[str, Step] = {
    "429": status(429),
    "503": status(503),
    "html": html(),
    "reset": reset(),
    "broken off": truncated(),
}


@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_fault_is_tried_again(fault: str, open_for: Opener) -> None:
    step = embeddings(HASH.embed(["a"]).vectors)
    with ScriptedServer([PASSING[fault], PASSING[fault], step]) as server:
        embedded = open_for(server).embed(["a"])
        assert len(server.requests) == 3
    assert len(embedded.vectors) == 1


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (status(401), ModelDenied),
        (status(404), ModelDenied),
        (status(400, "dimensions is not supported"), ModelRejected),
    ],
)
def test_a_fault_that_lasts_says_what_to_do(
    step: Step, expected: type[ModelError], open_for: Opener
) -> None:
    with ScriptedServer([step]) as server:
        with pytest.raises(expected):
            open_for(server, dimensions=9).embed(["a"])
        assert len(server.requests) == 1


def test_what_was_answered_before_a_batch_failed_is_counted_with_the_error(
    open_for: Opener,
) -> None:
    one = embeddings(HASH.embed(["a"]).vectors)
    with (
        ScriptedServer([one, one, status(400)]) as server,
        pytest.raises(ModelRejected) as caught,
    ):
        open_for(server, batch_texts=1).embed(["a", "b", "c"])
    assert caught.value.tries_begun == 2


def _small_window(bytes_max: int, total_max: int) -> Any:
    """A server that takes texts up to a size, and so much in all."""

    def answered(received: Received) -> Step:
        sizes = [len(text.encode()) for text in received.body["input"]]
        if max(sizes) > bytes_max or sum(sizes) > total_max:
            return status(400, "This model's maximum context length is smaller than that")
        return embeddings_by(HASH)(received)

    return answered


def test_a_batch_that_is_too_long_is_halved_until_it_fits(open_for: Opener) -> None:
    texts = [f"{number} " * 50 for number in range(10, 18)]
    with ScriptedServer(_small_window(1000, 500)) as server:
        vectors = open_for(server).embed(texts).vectors
    for found, expected in zip(vectors, HASH.embed(texts).vectors, strict=True):
        assert floats(found) == pytest.approx(floats(expected), abs=1e-6)


def test_a_text_that_is_too_long_is_cut_and_the_next_one_at_once(open_for: Opener) -> None:
    with ScriptedServer(_small_window(1000, 10**9)) as server:
        embedder = open_for(server)
        embedder.embed(["word " * 2000, "b"])
        asked = len(server.requests)
        embedder.embed(["other " * 2000])
        assert len(server.requests) == asked + 1
        assert 500 <= len(server.requests[-1].body["input"][0]) <= 1000


def test_a_server_for_which_everything_is_too_long_is_given_up(open_for: Opener) -> None:
    with ScriptedServer(_small_window(3, 10**9)) as server:
        with pytest.raises(PromptTooLong):
            open_for(server).embed(["word " * 2000])
        assert len(server.requests) < 10


def test_a_call_nobody_waits_for_ends(open_for: Opener) -> None:
    gate, cancelled = Gate(), threading.Event()
    with ThreadPoolExecutor(1) as threads, ScriptedServer([held(gate, "never")]) as server:
        embedder = open_for(server)
        call = threads.submit(embedder.embed, ["a"], is_cancelled=cancelled.is_set)
        assert gate.arrived.wait(WAIT_SECONDS)
        cancelled.set()
        with pytest.raises(CallCancelled):
            call.result(WAIT_SECONDS)


def test_an_answer_without_an_end_is_given_up(open_for: Opener) -> None:
    body = b'{"data": [{"embedding": [' + b"0.123456789," * 1_000_000 + b"1]}]}"
    with ScriptedServer([raw(body)]) as server, pytest.raises(InvalidOutput, match="longer than"):
        open_for(server, batch_texts=1).embed(["a"])


def test_large_vectors_in_a_large_batch_fit(open_for: Opener) -> None:
    row = [math.sin(number) for number in range(4096)]
    with ScriptedServer([vectors_of(*[row] * 64)]) as server:
        embedder = open_for(server, settings=Settings(model_answer_bytes_max=1024))
        assert len(embedder.embed(["a"] * 64).vectors) == 64
        assert embedder.dimensions == 4096


def test_a_server_that_is_gone_is_unavailable(open_for: Opener) -> None:
    with ScriptedServer() as server:
        embedder = open_for(server, settings=Settings(model_retries=0))
    with pytest.raises(ModelUnavailable):
        embedder.embed(["a"])


def test_threads_may_share_an_embedder(open_for: Opener) -> None:
    texts = [f"text {number}" for number in range(40)]
    with ScriptedServer(embeddings_by(HASH)) as server, ThreadPoolExecutor(8) as threads:
        embedder = open_for(server)
        found = list(threads.map(lambda text: embedder.embed([text]).vectors[0], texts))
    for vector, expected in zip(found, HASH.embed(texts).vectors, strict=True):
        assert floats(vector) == pytest.approx(floats(expected), abs=1e-6)


def test_the_key_is_not_shown(open_for: Opener) -> None:
    with ScriptedServer() as server:
        assert KEY not in repr(open_for(server))
