"""The HTTP API as a web application: reads requests, hands each to a thread, sends the answers.

The core is synchronous, so a bounded number of threads answers; a bounded number of requests waits
for them. Bodies are limited in size and in time. A page in a browser elsewhere gets nothing: no
cross-origin header is ever sent, and every request needs its key.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.errors import RecollectError
from recollect.ids import Ids
from recollect.interfaces.http.dispatch import Answered, Dispatcher, problem_for, response_of
from recollect.interfaces.http.events import POLL_SECONDS, Streams, picture
from recollect.interfaces.http.hosting import Hosts
from recollect.interfaces.http.limits import Rate
from recollect.interfaces.http.mem0 import PREFIX as MEM0
from recollect.interfaces.http.messages import Answer, Request, Response, Stream
from recollect.interfaces.http.metrics import TEXT_TYPE, Metrics
from recollect.interfaces.http.openapi import description
from recollect.interfaces.http.problems import refusal
from recollect.interfaces.http.reading import Head
from recollect.interfaces.http.route import Reach, Routes
from recollect.interfaces.http.table import ROUTES, Table
from recollect.interfaces.http.threads import Threads
from recollect.memory import Memory

EAGER_BYTES = 65_536  # more than this is read only for those who have a key
UNMATCHED = "unmatched"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
NO_STORE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
HEALTH = "/healthz"
OWN_PATHS = ("/v1/", f"{MEM0}/")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server allows; every one of them is a bound."""

    body_bytes_max: int = 8_388_608
    body_seconds: float = 30.0
    send_seconds: float = 60.0
    threads: int = 16
    waiting_max: int = 512
    rate_per_second: float = 100.0  # for each key; 0: no limit
    burst: int = 200
    poll_seconds: float = POLL_SECONDS


class Api:
    """Answers everything below /v1 and /mem0, /healthz and /metrics."""

    def __init__(
        self, memory: Memory, limits: Limits | None = None, agents: Sequence[str] = ()
    ) -> None:
        self.limits = limits or Limits()
        self.metrics = Metrics()
        self._is_over = False
        self._memory = memory
        self.routes = (*ROUTES, *self._own_routes())
        self._table = Table(self.routes)
        self._hosts = Hosts(memory, tuple(agents))
        rate = Rate(memory.clock, self.limits.rate_per_second, self.limits.burst)
        self._dispatcher = Dispatcher(memory, rate, self._hosts)
        self._ids = Ids(memory.clock)
        self._threads = Threads(self.limits.threads)
        self._streams = Streams(self.run, self.is_stopping, self.limits.poll_seconds)

    def _own_routes(self) -> Routes:
        own = Routes()

        @own("GET", "/v1/openapi.json", answer=dict[str, Any], reach=Reach.OWN)
        def openapi(_: Request) -> dict[str, Any]:
            """This description."""
            return description(self.routes)

        @own("GET", "/metrics", reach=Reach.STORE, media_type=TEXT_TYPE)
        def metrics(request: Request) -> str:
            """What the server has done, for Prometheus."""
            return self.metrics.text(request.memory)

        return own

    def start(self) -> None:
        """Begin what goes on by itself: the agents that are run here."""
        self._hosts.start()

    def stop(self) -> None:
        """End what would go on: the streams."""
        self._is_over = True

    def is_stopping(self) -> bool:
        return self._is_over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began = self._memory.clock.now()
        head = self._head(scope)
        answered = await self._answered(scope, head, receive)
        outcome = answered.outcome
        status = outcome.status if isinstance(outcome, Response) else 200
        seconds = (self._memory.clock.now() - began).total_seconds()
        route = head.match.template if head.match else UNMATCHED
        route = HEALTH if scope["path"] == HEALTH else route
        method = head.method if head.method in METHODS else "OTHER"
        self.metrics.count(method, route, status, seconds)
        _log.info(
            "%s %s %d %.1f ms request=%s key=%s",
            method,
            route,
            status,
            seconds * 1000,
            head.request_id,
            answered.key_id,
        )
        if isinstance(outcome, Stream):
            await self._stream(outcome, answered, head, receive, send)
        else:
            await self._send(outcome, head, send)

    def _head(self, scope: Scope) -> Head:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        path = raw.partition(b"?")[0].decode("latin-1")
        asked = headers.get("x-request-id", "")
        return Head(
            method=scope["method"],
            target=f"{path}?{scope['query_string'].decode('latin-1')}",
            match=self._table.match(path_segments(path)),
            query=scope["query_string"],
            headers=headers,
            request_id=asked if _REQUEST_ID.fullmatch(asked) else self._ids.new(),
        )

    async def _answered(self, scope: Scope, head: Head, receive: Receive) -> Answered:
        try:
            if {"content-length", "transfer-encoding"} <= head.headers.keys():
                # Whoever stands before this server may have read it otherwise.
                raise refusal(400, "framing", "a body has one length", Connection="close")
            if scope["path"] == HEALTH:
                return Answered(outcome=await self.run(self._health))
            body = await self._body(head, receive)
            answered: Answered = await self.run(partial(self._dispatcher.answer, head, body))
            if isinstance(answered.outcome, Stream) and self._streams.is_full(
                answered.key_id or ""
            ):
                raise refusal(503, "streams", "too many streams are open", Retry_After="30")
        except Exception as error:  # the same as in a thread: it becomes an answer
            return Answered(outcome=response_of(problem_for(error, head.request_id).answer()))
        return answered

    def _health(self) -> Response:
        try:
            self._memory.store.api_keys.list("", 0)
        except RecollectError:
            return response_of(Answer(content={"status": "store unreachable"}, status=503))
        return response_of(Answer(content={"status": "ok"}))

    async def _body(self, head: Head, receive: Receive) -> bytes:
        """All of it. Whoever sends much has to show a key first."""
        if is_much(head.headers):
            await self.run(partial(self._dispatcher.admit, head))
        return await self.received(head.headers, receive)

    async def received(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """A body within the limits of size and time. Refusal: it is not, or not all came."""
        size, is_chunked = _announced(headers)
        limit = self.limits.body_bytes_max
        if size > limit:
            raise _too_large(limit)
        if not size and not is_chunked:
            return b""
        chunks: list[bytes] = []
        total, more = 0, True
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise refusal(400, "left", "the client left in the middle of the body")
                    chunk = message.get("body", b"")
                    more = message.get("more_body", False)
                    total += len(chunk)
                    if total > limit:
                        raise _too_large(limit)
                    chunks.append(chunk)
        except TimeoutError as error:
            raise refusal(408, "slow", "the body did not come in time") from error
        return b"".join(chunks)

    async def run(self, job: Callable[[], Any]) -> Any:
        """In a thread, of which there are so many."""
        if self._threads.waiting >= self.limits.waiting_max:
            raise refusal(503, "busy", "too many requests wait", Retry_After="1")
        return await self._threads.run(job)

    async def _send(self, answer: Response, head: Head, send: Send) -> None:
        headers = [
            (b"content-type", answer.media_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            (b"x-request-id", head.request_id.encode()),
            *NO_STORE,
            *((name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers),
        ]
        start = {"type": "http.response.start", "status": answer.status, "headers": headers}
        await send(start)
        body = b"" if head.method == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _stream(
        self, stream: Stream, answered: Answered, head: Head, receive: Receive, send: Send
    ) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"x-request-id", head.request_id.encode()),
            *NO_STORE,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        key_id = answered.key_id or ""
        look = partial(self._seen, head, stream.space)
        await self._streams.serve(key_id, look, receive, send)

    def _seen(self, head: Head, space: str) -> dict[str, Any]:
        """What a stream tells. Refusal: its key is over, and so is it."""
        self._dispatcher.admit(head)
        return picture(self._memory, space)


def _announced(headers: Mapping[str, str]) -> tuple[int, bool]:
    """How long a body is said to be, and whether nobody knows."""
    declared = headers.get("content-length", "")
    size = int(declared) if declared.isascii() and declared.isdigit() else 0
    return size, "transfer-encoding" in headers


def is_much(headers: Mapping[str, str]) -> bool:
    """Whether so much is announced that its sender has to be known first."""
    size, is_chunked = _announced(headers)
    return size > EAGER_BYTES or is_chunked


def path_segments(path: str) -> Sequence[str]:
    """The parts of a path, each decoded by itself: a slash may be part of a name."""
    try:
        return [unquote(part, errors="strict") for part in path.removeprefix("/").split("/")]
    except UnicodeDecodeError:
        return ()


def _too_large(limit: int) -> Exception:
    return refusal(413, "too-large", f"a body has at most {limit:,} bytes")


def build_app(api: Api, pages: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The API as an application, and pages beside it."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield

    others = Starlette(routes=[*pages, Mount("/", app=api)], lifespan=lifespan)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # What is the API's goes straight there: it needs nothing of what is around pages.
        is_apis = scope["type"] == "http" and scope["path"].startswith(OWN_PATHS)
        await (api if is_apis else others)(scope, receive, send)

    return app
