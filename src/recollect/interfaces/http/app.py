"""The HTTP API as a web application: reads requests, hands each to a thread, sends the answers.

The core is synchronous, so a bounded number of threads answers; a bounded number of requests waits
for them. The order of the checks is part of the contract: without a key a client learns nothing;
with one, nothing outside the key's space; only then is it told what is wrong with its request.
Bodies are limited in size and in time. A page of another origin gets nothing: no cross-origin
header is ever sent, and every request needs its key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.clock import ticks
from recollect.compat.mem0 import Memory as Mem0Memory
from recollect.errors import DocumentExists, Gone, InvalidValue, NotFound, RecollectError
from recollect.ids import Ids
from recollect.interfaces.http import mem0, routes
from recollect.interfaces.http.bearer import Authenticator
from recollect.interfaces.http.limits import (
    DoneOnce,
    DoneRequest,
    Rate,
    RepeatableRequest,
    ServingProcess,
)
from recollect.interfaces.http.metrics import TEXT_TYPE, Metrics
from recollect.interfaces.http.openapi import IDEMPOTENCY_CHARS_MAX, description
from recollect.interfaces.http.operations import (
    AdmittedRequest,
    Guarded,
    KeyReach,
    Operation,
    Repeat,
    operation,
)
from recollect.interfaces.http.problems import (
    JSON_TYPE,
    NO_KEY,
    NOTHING_HERE,
    HttpAnswer,
    HttpProblem,
    Refusal,
    problem_for,
    refusal,
)
from recollect.interfaces.views import view
from recollect.memory import DEFAULT_SPACE, Memory
from recollect.observing.actors import acting
from recollect.types.access import ApiKey
from recollect.types.records import JobState

EAGER_BYTES = 65_536  # more than this is read only for those who have a key
PARAMETERS_MAX = 50
NESTED_MAX = 64
SPACES_HELD = 256
LEARNERS_MAX = 4  # threads that wait at once until what mem0's `add` was given is learned
UNMATCHED = "unmatched"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
NO_STORE: Mapping[str, str] = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
HEALTH, READY = "/healthz", "/readyz"
OPERATIONS: tuple[Operation, ...] = (*routes.OPERATIONS, *mem0.OPERATIONS)

POLL_SECONDS = 1.0
STREAMS_MAX = 64
STREAMS_OF_KEY_MAX = 16  # so that the tabs of one do not keep all others from theirs
QUIET_POLLS = 15  # after so many without a change, a sign of life
POLLS_MAX = 3600

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ETAG = re.compile(r'"([0-9]{1,18})"', re.ASCII)
_IDEMPOTENCY_KEY = re.compile(rf"[\x21-\x7e]{{1,{IDEMPOTENCY_CHARS_MAX}}}")
_log = logging.getLogger(__name__)

T = TypeVar("T")
G = TypeVar("G", bound=Guarded)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What the server allows; every one of them is a bound."""

    body_bytes_max: int = 8_388_608
    body_seconds: float = 30.0
    threads: int = 16
    waiting_max: int = 512
    rate_per_second: float = 100.0  # for each key; 0: no limit
    burst: int = 200
    poll_seconds: float = POLL_SECONDS


class RawSegment(Convertor[str]):
    """A segment of a path as it was sent, decoded by itself: a slash may be part of a name."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


register_url_convertor("segment", RawSegment())


@dataclass(slots=True, kw_only=True)
class HttpExchange:
    """A request on its way to an answer, and who turned out to ask."""

    request: Request
    template: str  # of its path; UNMATCHED: there is none
    methods: Mapping[str, Any]  # what stands at its path
    id: str
    key: ApiKey | None = None
    visit: Any = None  # of a page: the browser that has signed in

    @property
    def path(self) -> str:
        """As it was sent."""
        found: str = self.request.scope["path"]
        return found

    @property
    def query(self) -> bytes:
        found: bytes = self.request.scope["query_string"]
        return found


class Surface(Protocol):
    """What answers requests: the API, or the pages."""

    headers: Mapping[str, str]  # of every answer

    def known(self, exchange: HttpExchange, /) -> object:
        """Return the client, if it is known. None, or a refusal: it may not send a large body."""

    def answer(self, exchange: HttpExchange, body: bytes, /) -> Response:
        """The answer, made in a thread; what is raised becomes a problem."""

    def failed(self, exchange: HttpExchange, problem: HttpProblem, /) -> Response:
        """Return the answer that states a problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """All that stands at one path, as an ASGI application."""

    api: Api
    surface: Surface
    template: str
    methods: Mapping[str, Guarded]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, request = ticks(), Request(scope, receive)
        asked = request.headers.get("x-request-id", "")
        exchange = HttpExchange(
            request=request,
            template=self.template,
            methods=self.methods,
            id=asked if _REQUEST_ID.fullmatch(asked) else self.api.ids.new(),
        )
        try:
            response = await self._answered(exchange)
        except Exception as error:  # the one place that nothing passes
            response = self.surface.failed(exchange, problem_for(error, exchange.id))
        self.api.note(exchange, response.status_code, ticks() - began)
        response.headers.update({**self.surface.headers, "x-request-id": exchange.id})
        if self.api.is_stopping():
            response.headers["connection"] = "close"  # the next request finds another process
        await response(scope, receive, send)

    async def _answered(self, exchange: HttpExchange) -> Response:
        sent, body = exchange.request.headers, b""
        if "content-length" in sent and "transfer-encoding" in sent:
            # A proxy in front of this server may have read it otherwise.
            words = "a request must not have both Content-Length and Transfer-Encoding"
            raise refusal(400, "framing", words, Connection="close")
        size, is_chunked = _announced(sent)
        is_much = size > EAGER_BYTES or is_chunked  # read only once the client is known
        if not is_much or await self.api.run(partial(self.surface.known, exchange)) is not None:
            body = await self.api.received(exchange.request)
        return await self.api.run(partial(self.surface.answer, exchange, body))


def router(api: Api, surface: Surface, guarded: Iterable[Guarded], *others: str) -> ASGIApp:
    """All that stands somewhere, by path; each place of a path is a segment as it was sent."""
    paths: dict[str, dict[str, Guarded]] = {path: {} for path in others}
    # What is written out goes before what may be anything.
    for each in sorted(
        guarded, key=lambda each: [part[:1] == "{" for part in each.path.split("/")]
    ):
        methods = paths.setdefault(each.path, {})
        assert each.method not in methods, f"two operations are {each.method} {each.path}"
        methods[each.method] = each
    endpoint = partial(Endpoint, api=api, surface=surface)
    default = endpoint(template=UNMATCHED, methods={})
    made = [
        Route(path.replace("}", ":segment}"), endpoint(template=path, methods=methods))
        for path, methods in paths.items()
    ]
    found = Router(made, redirect_slashes=False, default=default)

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        path = raw.partition(b"?")[0].decode("latin-1")
        try:
            unquote(path, errors="strict")
        except UnicodeDecodeError:
            app: ASGIApp = default
        else:
            app = found
        await app({**scope, "path": path, "root_path": ""}, receive, send)

    return routed


def allowed(exchange: HttpExchange, methods: Mapping[str, G], method: str, key: ApiKey) -> G:
    """What is asked for. Refusal: what a key does not open is not there."""
    space = exchange.request.path_params.get("space")
    is_open = space is None or key.opens(space)
    if not methods or not is_open:
        raise Refusal(NOTHING_HERE)
    if next(iter(methods.values())).reach is KeyReach.STORE and key.space is not None:
        raise Refusal(NOTHING_HERE)
    found = methods.get(method)
    if found is None:
        there = ", ".join(sorted(methods))
        words = f"this path allows {there} (got {method})"
        raise refusal(405, "method-not-allowed", words, Allow=there)
    if not key.scope.includes(found.scope):
        words = f"a key of scope {found.scope.value} is required (this one has {key.scope.value})"
        raise refusal(403, "scope", words)
    return found


class Api:
    """Answers everything below /v1 and /mem0, /healthz, /readyz and /metrics."""

    headers = NO_STORE

    def __init__(
        self, memory: Memory, limits: ServerLimits | None = None, agents: Sequence[str] = ()
    ) -> None:
        self.limits = limits or ServerLimits()
        self.metrics = Metrics()
        self.ids = Ids(memory.clock)
        self.operations = (*OPERATIONS, *self._own())
        self._process = ServingProcess(memory)
        self.rate = Rate(
            memory.clock,
            self.limits.rate_per_second,
            self.limits.burst,
            lambda: self._process.count,
        )
        self.space = lru_cache(SPACES_HELD)(memory.space)
        self._is_over = False
        self._memory = memory
        self._hosts = routes.Hosts(memory, tuple(agents), self.is_stopping)
        self._authenticator = Authenticator(memory)
        self._done = DoneOnce(memory)
        self._mem0 = Mem0Memory(memory, clock=memory.clock, learners_max=LEARNERS_MAX)
        self._pool = ThreadPoolExecutor(self.limits.threads, "recollect-http")
        self._under_way = 0
        self._streams: Counter[str] = Counter()  # that are open, by key
        self._router = router(self, self, self.operations, HEALTH, READY)

    def _own(self) -> tuple[Operation, Operation]:
        @operation("GET /v1/openapi.json", answer=dict[str, Any], reach=KeyReach.OWN)
        def openapi(_: AdmittedRequest) -> dict[str, Any]:
            """This description."""
            return description(self.operations)

        @operation("GET /metrics", answer=str, reach=KeyReach.STORE, media_type=TEXT_TYPE)
        def metrics(request: AdmittedRequest) -> str:
            """What the server has done, for Prometheus."""
            return self.metrics.text(request.memory)

        return openapi, metrics

    def start(self) -> None:
        """Begin what goes on by itself: the agents that are run here, and being one of several."""
        self._hosts.start()
        self._process.start()

    def stop(self) -> None:
        """End what would go on: the streams. It is not ready from now on."""
        self._is_over = True

    def is_stopping(self) -> bool:
        return self._is_over

    def beside(self, pages: Sequence[BaseRoute] = ()) -> ASGIApp:
        """The application of a server: the API, and pages beside it."""
        routes = [*pages, Mount("/", app=self)]
        return Router(routes, redirect_slashes=False, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[None]:
        """Let the threads go when the server has stopped; one still busy ends with its job."""
        try:
            yield
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._process.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._router(scope, receive, send)

    def note(self, exchange: HttpExchange, status: int, seconds: float) -> None:
        """Count a request, and log it without its content."""
        asked, template = exchange.request.method, exchange.template
        method = asked if asked in METHODS else "OTHER"
        self.metrics.count(method, template, status, seconds)
        key_id = exchange.key.id if exchange.key else None
        words = "%s %s %d %.1f ms request=%s key=%s"
        _log.info(words, method, template, status, seconds * 1000, exchange.id, key_id)

    async def received(self, request: Request) -> bytes:
        """A body within the limits of size and time. Refusal: it is not, or not all came."""
        size, is_chunked = _announced(request.headers)
        limit, body = self.limits.body_bytes_max, bytearray()
        too_large = refusal(413, "too-large", f"the body must be at most {limit:,} bytes")
        if size > limit:
            raise too_large
        if not size and not is_chunked:
            return b""
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise too_large
        except TimeoutError as error:
            raise refusal(408, "slow", "the body was not received in time") from error
        except ClientDisconnect as error:
            raise refusal(400, "left", "the connection was closed within the body") from error
        return bytes(body)

    async def run(self, job: Callable[[], T]) -> T:
        """What a job returns that is run in a thread. Refusal: too many wait for one."""
        if self._under_way >= self.limits.threads + self.limits.waiting_max:
            raise refusal(503, "busy", "too many requests are waiting; try again", Retry_After="1")
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, job)
        finally:
            self._under_way -= 1

    def failed(self, _: HttpExchange, problem: HttpProblem) -> Response:
        return problem.answer().response()

    # In a thread.

    def known(self, exchange: HttpExchange) -> ApiKey:
        """Return the key of a request. Refusal: it has no valid one."""
        headers = exchange.request.headers
        shown = headers.get("authorization", "")
        if not shown and exchange.path.startswith(f"{mem0.PREFIX}/"):  # where its clients put it
            shown = f"Bearer {headers.get('x-api-key', '')}"
        key = self._authenticator.authenticate(shown)
        if key is None:
            raise Refusal(NO_KEY)
        return key

    def answer(self, exchange: HttpExchange, body: bytes) -> Response:
        if exchange.template == HEALTH:
            return HttpAnswer(content={"status": "ok"}).response()
        if exchange.template == READY:
            trouble = self._not_ready()
            content = {"status": trouble or "ready"}
            return HttpAnswer(content=content, status=503 if trouble else 200).response()
        exchange.key = self.known(exchange)
        with acting(f"key:{exchange.key.id}"):
            return self._answer_to(exchange, exchange.key, body).response()

    def _not_ready(self) -> str:
        """Why no requests should be sent here; empty: nothing speaks against it."""
        if self._is_over:
            return "stopping"
        store = self._memory.store
        try:
            is_ours = store.serving.schema_version() == store.describe().schema_version
        except RecollectError:
            return "store unreachable"
        return "" if is_ours else "the store was migrated: restart this server"

    def _answer_to(self, exchange: HttpExchange, key: ApiKey, body: bytes) -> HttpAnswer:
        self.rate.check(key.id)
        method = exchange.request.method
        found: Operation = allowed(exchange, exchange.methods, method, key)
        repeated = _idempotency_key(exchange, found)
        request = AdmittedRequest(
            memory=self._memory,
            mem0=self._mem0,
            post=self._hosts.post,
            space=self.space(exchange.request.path_params.get("space", DEFAULT_SPACE)),
            key=key,
            changes=partial(self._changes_of, exchange, key),
            expected_version=_expected_version(exchange, found),
            idempotency_key=repeated,
        )
        if repeated is None or found.again is None:
            return self._handled(exchange, request, found, body)
        asked = f"{method} {exchange.path}?{exchange.query.decode('latin-1')}"
        once = RepeatableRequest(key_id=key.id, asked=asked, idempotency_key=repeated, body=body)
        done = self._done.begin(once)
        if done is not None:
            return self._handled_again(request, found, done)
        try:
            answer = self._handled(exchange, request, found, body)
            done = DoneRequest(status=answer.status, ids=answer.ids)
            return answer
        finally:
            self._done.keep(once, done)

    def _handled(
        self, exchange: HttpExchange, request: AdmittedRequest, found: Operation, body: bytes
    ) -> HttpAnswer:
        given = _read_arguments(exchange, found, body)
        try:
            return found.answered(found.handler(request, **given), self._memory.clock.now())
        except DocumentExists as error:
            if request.expected_version is None:
                raise
            raise refusal(412, "document-exists", str(error)) from error

    def _handled_again(
        self, request: AdmittedRequest, found: Operation, done: DoneRequest
    ) -> HttpAnswer:
        """Return the current state of what the first request made. Gone: it no longer exists."""
        assert found.again is not None
        try:
            made = found.again(request, done.ids)
        except NotFound as error:
            raise Gone(
                "this Idempotency-Key was used, and what was made then was deleted or forgotten"
                " since; use a new key to do it again"
            ) from error
        return replace(found.answered(made, self._memory.clock.now()), status=done.status)

    # What changes in a space, as it does.

    def _changes_of(self, exchange: HttpExchange, key: ApiKey) -> AsyncIterator[str]:
        def look() -> Any:
            self.known(exchange)  # Refusal: the key is over, and so is the stream
            return picture(self._memory, exchange.request.path_params["space"])

        return self.changes(key.id, look)

    def changes(self, key_id: str, look: Callable[[], Any]) -> AsyncIterator[str]:
        """Server-sent events with what `look` sees, whenever it is something else.

        A client that missed some has missed nothing that the next one does not say. Refusal: there
        is no room for one more stream of this key, or the server is about to stop.
        """
        if self._is_over:
            raise refusal(503, "stopping", "this server is about to stop", Retry_After="1")
        if self._streams.total() >= STREAMS_MAX or self._streams[key_id] >= STREAMS_OF_KEY_MAX:
            raise refusal(503, "streams", "too many event streams are open", Retry_After="30")
        return self._changes(key_id, look)

    async def _changes(self, key_id: str, look: Callable[[], Any]) -> AsyncIterator[str]:
        before, quiet = None, 0
        self._streams[key_id] += 1
        try:
            for _ in range(POLLS_MAX):
                if self._is_over:
                    return
                try:
                    seen = await self.run(look)
                except (RecollectError, Refusal):  # over for this client; it learns why by asking
                    return
                quiet += 1
                if seen != before:
                    yield f"event: status\ndata: {json.dumps(seen)}\n\n"
                    before, quiet = seen, 0
                elif quiet >= QUIET_POLLS:
                    yield ": still here\n\n"
                    quiet = 0
                await asyncio.sleep(self.limits.poll_seconds)
        finally:
            self._streams[key_id] -= 1
            self._streams += Counter()  # which drops those that are at nought


def picture(memory: Memory, space: str) -> dict[str, Any]:
    """What there is to see of a space at once; asked for so often that it is no whole status."""
    store, now = memory.store, memory.clock.now()
    marked, waiting = store.marks.counts(space)
    counts = store.leases.counts(space)
    generation = store.generations.states(space, 1, "", now)
    return {
        "marked_count": marked,
        "waiting_count": waiting,
        "job_counts": {
            state.value: counts.get(state, 0) for state in JobState if state is not JobState.IDLE
        },
        "spent_today": view(store.ledger.spent(space, now)),
        "generation": generation[0].generation if generation else 0,
    }


def _announced(headers: Mapping[str, str]) -> tuple[int, bool]:
    """Return the announced length of a body, and whether it is unknown (chunked)."""
    declared = headers.get("content-length", "")
    size = int(declared) if declared.isascii() and declared.isdigit() else 0
    return size, "transfer-encoding" in headers


def _read_arguments(exchange: HttpExchange, found: Operation, body: bytes) -> dict[str, Any]:
    """What path, query and body give. InvalidValue: it is unknown, missing, there twice or wrong.

    No body at all is an object without fields.
    """
    pairs = read_pairs(exchange.query)
    query = dict(pairs)
    if len(query) < len(pairs):
        raise InvalidValue("query: a parameter was given twice")
    given = found.inputs.read_parameters(exchange.request.path_params, query)
    if found.inputs.body is not None:
        return {**given, **found.inputs.read_body(_json(exchange, body) if body else {})}
    if body:
        raise InvalidValue("body: must be empty here")
    return given


def read_pairs(encoded: bytes) -> list[tuple[str, str]]:
    """Names and values as a query or a form has them. InvalidValue: they cannot be read."""
    try:
        return parse_qsl(
            encoded.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=PARAMETERS_MAX,
            errors="strict",
        )
    except ValueError as error:
        raise InvalidValue(
            f"query: cannot be read (at most {PARAMETERS_MAX} parameters, URL-encoded UTF-8)"
        ) from error


def media_type_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().casefold()


def _json(exchange: HttpExchange, body: bytes) -> Any:
    if media_type_of(exchange.request) != JSON_TYPE:
        raise refusal(415, "not-json", f"send the body as {JSON_TYPE}")
    try:
        content = _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise refusal(400, "malformed", "the body is not JSON in UTF-8") from error
    if body.count(b"[") + body.count(b"{") > NESTED_MAX and _is_deep(content):
        raise InvalidValue(f"body: must not be nested more than {NESTED_MAX} levels deep")
    return content


def _not_a_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number


# Half a character may be sent, which msgspec's own decoder refuses: it is stored as it came.
_DECODER = json.JSONDecoder(parse_constant=_not_a_number, parse_float=_finite)


def _is_deep(content: Any) -> bool:
    layer = [content]
    for _ in range(NESTED_MAX):
        held = (each.values() if isinstance(each, dict) else each for each in layer)
        layer = [each for below in held for each in below if isinstance(each, dict | list)]
    return bool(layer)


def _expected_version(exchange: HttpExchange, found: Operation) -> int | None:
    """The version that is to be changed; 0: there must be none yet."""
    headers = exchange.request.headers
    if not found.is_conditional:
        return None
    if "if-none-match" in headers:
        if headers["if-none-match"].strip() != "*":
            raise InvalidValue("If-None-Match must be *: there must be no such document yet")
        return 0
    if "if-match" not in headers:
        return None
    version = _ETAG.fullmatch(headers["if-match"].strip())
    if version is None:
        raise InvalidValue('If-Match must be one version, as its ETag says it: "3"')
    return int(version[1])


def _idempotency_key(exchange: HttpExchange, found: Operation) -> str | None:
    given = exchange.request.headers.get("idempotency-key")
    if given is None or found.repeat is Repeat.PLAIN:
        return None
    if not _IDEMPOTENCY_KEY.fullmatch(given):
        raise InvalidValue(
            f"Idempotency-Key must be 1 to {IDEMPOTENCY_CHARS_MAX} visible ASCII characters"
        )
    return given
