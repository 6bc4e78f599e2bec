"""A model for tests that answers from a script, over real HTTP and in both protocols.

    with ScriptedServer([{"facts": []}, status(429, headers={"retry-after": "1"})]) as server:
        model = server.model()            # or server.model("anthropic"), server.settings()
        model.complete(Request(system="…", prompt="…"))
        assert server.requests[0].prompt == "…"

A script is a list of steps, used up one by one, or a function from what was received to a step.
A step is made by one of the functions below; a string or an object stands for an answer of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from recollect.clock import Clock
from recollect.config import Settings
from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.messages import ToolCall
from recollect.models.protocol import Model, Usage
from recollect.models.served import open_model
from recollect_conformance.scripted_frames import Ending, Received, frames_for

KEY = "scripted_d41f7a2c"
USAGE = Usage(input_tokens=100, output_tokens=20)
POLL_SECONDS = 0.02
CHUNK_BYTES = 65_536
EVENT_STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


class Gate:
    """Where a step waits. `arrived` is set when it does; `open` lets it go on."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    def wait(self, closing: threading.Event) -> None:
        self.arrived.set()
        while not self._opened.wait(POLL_SECONDS) and not closing.is_set():
            pass


class Reply:
    """What a step answers with: one request and the connection it came by."""

    def __init__(self, handler: _Handler, received: Received) -> None:
        self._handler = handler
        self.received = received
        self.closing = handler.server.closing
        self.frames = frames_for(received)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        handler = self._handler
        handler.send_response_only(status)
        for name, value in {"connection": "close", **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()

    def write(self, content: bytes) -> None:
        self._handler.wfile.write(content)
        self._handler.server.count_sent(len(content))

    def events(self, events: Iterator[dict[str, Any]] | Iterator[dict[str, Any] | str]) -> None:
        for event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            kind = "" if isinstance(event, str) else event.get("type", "")
            name = f"event: {kind}\n" if kind else ""
            self.write(f"{name}data: {data}\n\n".encode())

    def reset(self) -> None:
        """Break the connection the rude way, without a farewell."""
        connection = self._handler.connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(connection.detach())


Step = Callable[[Reply], None]
Scripted = Step | str | Mapping[str, Any]
Called = tuple[str, Mapping[str, Any] | str]  # a tool's name and its arguments
Script = Sequence[Scripted] | Callable[[Received], Scripted]


def answer(
    content: str | Mapping[str, Any],
    *,
    usage: Usage | None = USAGE,
    ending: Ending = Ending.WHOLE,
    is_streamed: bool | None = None,
) -> Step:
    """A whole answer: a text, or an object as JSON. `is_streamed`: None is as it was asked."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)

    def play(reply: Reply) -> None:
        streamed = reply.received.is_streamed if is_streamed is None else is_streamed
        if not streamed:
            _document(reply, json.dumps(reply.frames.document(text, ending, usage)).encode())
            return
        reply.head(200, EVENT_STREAM)
        reply.events(reply.frames.opening())
        reply.events(reply.frames.pieces(text))
        reply.events(reply.frames.closing(ending, usage))

    return play


def calls(
    *given: Called,
    text: str = "",
    usage: Usage | None = USAGE,
    ending: Ending = Ending.WHOLE,
    is_streamed: bool | None = None,
    has_ids: bool = True,
) -> Step:
    """An answer that calls tools: `calls(("document_read", {"path": "~/memory/a.md"}))`.

    Arguments that are text are sent as they are, broken or not; an object is sent as its JSON.
    """

    def play(reply: Reply) -> None:
        made = _tool_calls(given, reply.received, has_ids=has_ids)
        streamed = reply.received.is_streamed if is_streamed is None else is_streamed
        if not streamed:
            whole = reply.frames.document(text, ending, usage, made)
            _document(reply, json.dumps(whole).encode())
            return
        _begin(reply, text, has_text=bool(text))
        reply.events(reply.frames.calls(made))
        reply.events(reply.frames.closing(ending, usage))

    return play


def calls_cut(*given: Called, text: str = "") -> Step:
    """A stream whose connection ends in the middle of the calls."""

    def play(reply: Reply) -> None:
        made = _tool_calls(given, reply.received)
        _begin(reply, text, has_text=bool(text))
        events = list(reply.frames.calls(made))
        reply.events(iter(events[: len(events) // 2 + 1]))

    return play


def _tool_calls(
    given: Sequence[Called], received: Received, *, has_ids: bool = True
) -> list[ToolCall]:
    """Ids are unique in a conversation, as every real provider's are."""
    turn = len(received.messages)
    return [
        ToolCall(f"scripted_{turn}_{number}" if has_ids else None, name, arguments)
        for number, (name, arguments) in enumerate(given)
    ]


def _document(reply: Reply, body: bytes, *, claimed_bytes: int | None = None) -> None:
    length = len(body) if claimed_bytes is None else claimed_bytes
    reply.head(200, JSON | {"content-length": str(length)})
    reply.write(body)


def cut_at_length(text: str = '{"facts": [') -> Step:
    """An answer that ran into the limit of its tokens."""
    return answer(text, ending=Ending.LENGTH)


def refusal() -> Step:
    return answer("", ending=Ending.REFUSED)


def filtered() -> Step:
    """An answer that a content filter stopped."""
    return answer("", ending=Ending.FILTERED)


def empty() -> Step:
    return answer("")


def fenced(content: Mapping[str, Any]) -> Step:
    """JSON inside a Markdown code fence, with words around it."""
    return answer(f"Here it is:\n```json\n{json.dumps(content)}\n```\nAnything else?")


def status(
    code: int,
    message: str | Mapping[str, Any] = "scripted error",
    *,
    kind: str = "scripted_error",
    headers: Mapping[str, str] | None = None,
) -> Step:
    """An HTTP error. `message` may be the whole body, as an object."""
    body = {"error": {"message": message, "type": kind, "code": kind}}
    return raw(
        json.dumps(body if isinstance(message, str) else message).encode(),
        code=code,
        headers=JSON | dict(headers or {}),
    )


def raw(body: bytes, *, code: int = 200, headers: Mapping[str, str] = JSON) -> Step:
    """Exactly these bytes."""

    def play(reply: Reply) -> None:
        reply.head(code, dict(headers) | {"content-length": str(len(body))})
        reply.write(body)

    return play


def html(code: int = 200) -> Step:
    page = b"<!DOCTYPE html><html><body>Sign in to the network</body></html>"
    return raw(page, code=code, headers={"content-type": "text/html"})


def invalid_json() -> Step:
    """A body that breaks off inside, though the connection does not."""
    return raw(b'{"model": "scripted-1", "choices": [{"mess')


def error_midway(kind: str, message: str = "scripted error", text: str = "Half of") -> Step:
    """A stream that turns into an error after its first words."""

    def play(reply: Reply) -> None:
        _begin(reply, text)
        reply.events(iter([{"type": "error", "error": {"type": kind, "message": message}}]))

    return play


def _begin(reply: Reply, text: str, *, has_text: bool = True) -> None:
    reply.head(200, EVENT_STREAM)
    reply.events(reply.frames.opening(has_text=has_text))
    reply.events(reply.frames.pieces(text))


def truncated(text: str = '{"facts": [') -> Step:
    """An answer whose connection ends before it does: a stream or a document, as asked."""

    def play(reply: Reply) -> None:
        if reply.received.is_streamed:
            _begin(reply, text)
        else:
            _document(reply, text.encode(), claimed_bytes=len(text) + 1000)

    return play


def reset(text: str | None = None) -> Step:
    """A connection that breaks: at once, or in the middle of an answer that began with `text`."""

    def play(reply: Reply) -> None:
        if text is not None:
            _begin(reply, text)
        reply.reset()

    return play


def held(gate: Gate, step: Scripted) -> Step:
    """Silence, not even a status, until the gate opens; then a step."""

    def play(reply: Reply) -> None:
        gate.wait(reply.closing)
        _as_step(step)(reply)

    return play


def drip(gate: Gate, before: str, after: str = "", *, usage: Usage | None = USAGE) -> Step:
    """A stream that stops after its first words until the gate opens."""

    def play(reply: Reply) -> None:
        _begin(reply, before)
        gate.wait(reply.closing)
        reply.events(reply.frames.pieces(after))
        reply.events(reply.frames.closing(Ending.WHOLE, usage))

    return play


def trickle(text: str = "Half of") -> Step:
    """A stream that is never silent and never ends: a byte at a time, until the client leaves."""

    def play(reply: Reply) -> None:
        _begin(reply, text)
        while not reply.closing.wait(POLL_SECONDS):
            reply.write(b":")

    return play


def huge(size: int, *, has_lines: bool = True) -> Step:
    """An answer of this many bytes: a stream of events, or one line without an end."""

    def play(reply: Reply) -> None:
        reply.head(200, EVENT_STREAM)
        reply.events(reply.frames.opening())
        frame = json.dumps(next(reply.frames.pieces("x" * 40)))
        chunk = f"data: {frame}\n\n".encode() * (CHUNK_BYTES // len(frame) + 1)
        if not has_lines:
            reply.write(b"data: ")
            chunk = b"x" * CHUNK_BYTES
        for _ in range(size // len(chunk) + 1):
            reply.write(chunk)

    return play


def _as_step(scripted: Scripted) -> Step:
    return scripted if callable(scripted) else answer(scripted)


@contextlib.contextmanager
def refusing_url() -> Iterator[str]:
    """An address where every connection is refused: taken, and nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def _large(received: Received) -> Scripted:
    """One model with a window as long as a large model's."""
    if received.path != "/v1/models":
        return status(404, "Not Found")
    models = {"data": [{"id": "scripted", "max_model_len": 128_000}]}
    return raw(json.dumps(models).encode())


class ScriptedServer:
    """Serves the script until the end of the `with` block. Models it made are closed with it."""

    def __init__(
        self, script: Script = (), describe: Callable[[Received], Scripted] | None = None
    ) -> None:
        self.requests: list[Received] = []
        self._script = script
        self._describe = describe or _large  # answers what is asked about the server by GET
        self._server = _Server(self._play)
        self._models = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": POLL_SECONDS}
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._models.close()
        self._server.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if error is None and self._server.errors:
            raise self._server.errors[0]  # the script itself failed

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def bytes_sent(self) -> int:
        """Bytes of bodies that went out, or into the operating system's hands."""
        return self._server.bytes_sent

    def settings(self, provider: str = "openai", **changes: Any) -> Settings:
        """Settings whose model is this server."""
        given = {"model": f"{provider}:scripted", "model_base_url": self.url}
        return Settings(**given | changes)

    def model(
        self,
        provider: str = "openai",
        *,
        clock: Clock | None = None,
        pause: Callable[[float], object] | None = None,
        randomness: Randomness = SYSTEM_RANDOMNESS,
        **changes: Any,
    ) -> Model:
        """A real client of this server. `changes` are settings."""
        opened = open_model(
            self.settings(provider, **changes),
            {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY},
            randomness=randomness,
            clock=clock,
            pause=pause,
        )
        assert opened is not None
        self._models.callback(opened.close)
        return opened

    def _play(self, reply: Reply) -> None:
        if reply.received.is_question:
            _as_step(self._describe(reply.received))(reply)
            return
        with self._lock:
            number = len(self.requests)
            self.requests.append(reply.received)
        if callable(self._script):
            step = self._script(reply.received)
        elif number < len(self._script):
            step = self._script[number]
        else:
            step = status(400, f"the script has no step for request {number + 1}")
        _as_step(step)(reply)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # joined when the server closes
    request_queue_size = 128

    def __init__(self, play: Step) -> None:
        self.play = play
        self.closing = threading.Event()
        self.errors: list[BaseException] = []
        self.bytes_sent = 0
        self._counting = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def count_sent(self, size: int) -> None:
        with self._counting:
            self.bytes_sent += size

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        error = sys.exception()
        if error is not None:
            self.errors.append(error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 60  # of a client that neither reads nor leaves
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(
            path=self.path,
            headers=headers,
            body=json.loads(body or b"{}"),
            is_question=self.command == "GET",
        )
        with contextlib.suppress(ConnectionError, TimeoutError):  # the client left: its right
            self.server.play(Reply(self, received))

    do_GET = do_POST  # noqa: N815 (what a server is asked about itself, without a body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: what was asked is in `requests`."""
