"""One exchange over real HTTP: what a server or the network may do to it.

Holds the model faults of the promises (refused, reset, slow, broken, truncated, huge) one by one;
`test_http.py` has what a call does about them.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from recollect.errors import (
    InvalidOutput,
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    OutputCut,
    PromptTooLong,
)
from recollect_conformance.scripted import (
    CHUNK_BYTES,
    KEY,
    Gate,
    Reply,
    ScriptedServer,
    Step,
    answer,
    cut_at_length,
    empty,
    error_midway,
    filtered,
    held,
    html,
    huge,
    invalid_json,
    raw,
    refusal,
    refusing_url,
    reset,
    status,
    trickle,
    truncated,
)
from tests.unit.models.asking import SCHEMA, asking

MEGABYTE = 1_048_576


def error_of(step: Step, provider: str, *, is_structured: bool = False) -> ModelError:
    """The error that one try comes to."""
    with ScriptedServer([step]) as server:
        model = server.model(provider, model_retries=0)
        with pytest.raises(ModelError) as caught:
            model.complete(asking(schema=SCHEMA if is_structured else None))
        assert len(server.requests) == 1
        return caught.value


PASSING: dict[str, Step] = {
    "html": html(),
    "html of a gateway": html(502),
    "broken json": invalid_json(),
    "not json": raw(b"upstream connect error"),
    "nothing": raw(b""),
    "no content": raw(b"", code=204),
    "an empty object": raw(b"{}"),
    "a list": raw(b"[1, 2]"),
    "truncated": truncated(),
    "reset at once": reset(),
    "reset midway": reset("Half of"),
    "overloaded midway": error_midway("overloaded_error"),
    "an unknown error midway": error_midway("mystery"),
    **{f"status {code}": status(code) for code in (408, 429, 500, 502, 503, 504, 529)},
}
OTHERS: dict[str, tuple[Step, type[ModelError]]] = {
    "empty": (empty(), InvalidOutput),
    "white space": (answer(" \n "), InvalidOutput),
    "cut at length": (cut_at_length(), OutputCut),
    "refused": (refusal(), ModelRejected),
    "filtered": (filtered(), ModelRejected),
    "bad request": (status(400), ModelRejected),
    "unknown model": (status(404, kind="model_not_found"), ModelDenied),
    "unprocessable": (status(422), ModelRejected),
    "too large": (status(413), PromptTooLong),
    "too long": (status(400, kind="context_length_exceeded"), PromptTooLong),
    "too long, found out midway": (error_midway("context_length_exceeded"), PromptTooLong),
    "no key": (status(401), ModelDenied),
    "forbidden": (status(403), ModelDenied),
    "no credit": (status(429, kind="insufficient_quota"), ModelDenied),
    "no key, found out midway": (error_midway("authentication_error"), ModelDenied),
    "moved": (status(307, headers={"location": "http://elsewhere.invalid/"}), ModelDenied),
}


@pytest.mark.parametrize("is_structured", [True, False])
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_is_unavailable(fault: str, provider: str, is_structured: bool) -> None:
    error = error_of(PASSING[fault], provider, is_structured=is_structured)
    assert type(error) is ModelUnavailable


@pytest.mark.parametrize("fault", OTHERS)
def test_every_other_fault_has_the_type_that_says_what_to_do(fault: str, provider: str) -> None:
    step, expected = OTHERS[fault]
    assert type(error_of(step, provider)) is expected


def test_a_connection_that_is_refused_is_unavailable(provider: str) -> None:
    with ScriptedServer() as server, refusing_url() as url:
        model = server.model(provider, model_base_url=url, model_retries=0)
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            model.complete(asking())


def test_a_document_that_ends_before_its_length_is_unavailable(provider: str) -> None:
    def play(reply: Reply) -> None:
        reply.head(200, {"content-length": "1000"})
        reply.write(b'{"choices": [{"message": {"content": "Half of')

    assert type(error_of(play, provider)) is ModelUnavailable


def test_a_compressed_answer_is_not_unpacked(provider: str) -> None:
    """A few kilobytes may hold gigabytes."""
    step = raw(gzip.compress(b" " * MEGABYTE), headers={"content-encoding": "gzip"})
    error = error_of(step, provider)
    assert type(error) is ModelUnavailable
    assert "compressed" in str(error)


def _document_without_end(reply: Reply) -> None:
    reply.head(200, {"content-type": "application/json"})
    reply.write(b'{"choices": [{"message": {"content": "')
    for _ in range(100 * MEGABYTE // CHUNK_BYTES):
        reply.write(b"x" * CHUNK_BYTES)


def _error_without_end(reply: Reply) -> None:
    reply.head(500, {"content-type": "text/plain"})
    for _ in range(100 * MEGABYTE // CHUNK_BYTES):
        reply.write(b"x" * CHUNK_BYTES)


def _padding_without_end(reply: Reply) -> None:
    reply.head(200, {"content-type": "application/json"})
    for _ in range(100 * MEGABYTE // CHUNK_BYTES):
        reply.write(b" " * CHUNK_BYTES)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (huge(100 * MEGABYTE), InvalidOutput),
        (huge(100 * MEGABYTE, has_lines=False), InvalidOutput),
        (_document_without_end, InvalidOutput),
        (_padding_without_end, InvalidOutput),
        (_error_without_end, ModelUnavailable),
    ],
)
def test_an_answer_of_100_mb_is_not_read_to_its_end(
    step: Step, expected: type[ModelError], provider: str
) -> None:
    with ScriptedServer([step]) as server:
        model = server.model(provider, model_answer_bytes_max=100_000, model_retries=0)
        with pytest.raises(expected):
            model.complete(asking(output_tokens_max=64))
    assert server.bytes_sent < 20 * MEGABYTE  # what the operating system takes off a server's hands


def test_an_answer_as_long_as_it_may_be_is_read(provider: str) -> None:
    text = "x" * 100_000
    with ScriptedServer([text]) as server:
        model = server.model(provider, model_answer_bytes_max=100_000)
        assert model.complete(asking()).text == text


@pytest.mark.parametrize("fault", ["silent", "one byte at a time"])
def test_a_call_ends_when_its_time_is_up_whatever_the_server_does(
    fault: str, provider: str
) -> None:
    step = held(Gate(), "Hello") if fault == "silent" else trickle()
    with ScriptedServer([step]) as server:
        model = server.model(provider, model_timeout_seconds=0.3)
        with pytest.raises(ModelUnavailable, match=r"in time|within 0\.3 s"):
            model.complete(asking())
        assert len(server.requests) == 1  # no time was left for another try


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_what_is_on_this_machine_is_never_asked_for_by_a_proxy(
    variable: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(["Hello"]) as server, refusing_url() as proxy:
        monkeypatch.setenv(variable, proxy)
        url = server.url.replace("127.0.0.1", host)
        model = server.model(model_base_url=url, model_retries=0)
        assert model.complete(asking()).text == "Hello"


def test_what_is_elsewhere_is_asked_for_by_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ScriptedServer(["Hello"]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        model = proxy.model(model_base_url="http://models.invalid")
        assert model.complete(asking()).text == "Hello"
        assert proxy.requests[0].path == "http://models.invalid/v1/chat/completions"


def test_a_redirect_is_not_followed_with_the_key(provider: str) -> None:
    with ScriptedServer() as elsewhere:
        step = status(307, headers={"location": f"{elsewhere.url}/v1/chat/completions"})
        assert type(error_of(step, provider)) is ModelDenied
        assert elsewhere.requests == []


def test_a_prompt_arrives_as_it_was(provider: str) -> None:
    prompt = 'Grüße 😀 "quoted" \\ \u2028 ' + "x" * 200_000
    with ScriptedServer(["Hello"]) as server:
        server.model(provider).complete(asking(prompt))
        assert server.requests[0].prompt == prompt


def everything_about(error: BaseException) -> str:
    """What anybody could see of an error: its words, its chain and what hangs on each."""
    seen: list[str] = []
    chain: BaseException | None = error
    while chain is not None:
        seen += [str(chain), repr(chain), repr(vars(chain)), repr(chain.args)]
        seen += [repr(getattr(value, "headers", "")) for value in vars(chain).values()]
        chain = chain.__cause__ or chain.__context__
    return "\n".join(seen)


def _echo(received_headers: Any) -> Step:
    return status(401, f"Incorrect API key provided: {json.dumps(dict(received_headers))}")


@pytest.mark.parametrize("fault", ["echoed", "reset", "refused", "a good answer", "html"])
def test_a_key_is_never_in_an_error_a_repr_or_a_log_line(
    fault: str, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    steps = {"reset": reset(), "html": html(500), "a good answer": answer("Hello")}
    with ScriptedServer(lambda received: steps.get(fault) or _echo(received.headers)) as server:
        with refusing_url() as nowhere:
            url = nowhere if fault == "refused" else server.url
            model = server.model(
                provider, model_base_url=url, pause=lambda _seconds: None, model_retries=1
            )
            shown = repr(model) + repr(vars(model))
            try:
                shown += repr(model.complete(asking()))
            except ModelError as error:
                shown += everything_about(error)
        assert fault == "refused" or any(KEY in str(each.headers) for each in server.requests)
    shown += caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    assert len(shown) > 500
    assert KEY not in shown
