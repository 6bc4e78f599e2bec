"""The HTTP API as a web application: reads requests, hands each to a thread, sends the answers.

The core is synchronous, so a bounded number of threads answers; a bounded number of requests waits
for them. In a thread a request is answered in an order that is part of what is promised: without a
key nobody learns anything; with one, nobody learns what lies outside its space; only then is it
said what is wrong with a request. Bodies are limited in size and in time. A page in a browser
elsewhere gets nothing: no cross-origin header is ever sent, and every request needs its key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import Headers
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
    First,
    OtherRequest,
    Rate,
    UnderWay,
    place_of,
)
from recollect.interfaces.http.metrics import TEXT_TYPE, Metrics
from recollect.interfaces.http.openapi import IDEMPOTENCY_CHARS_MAX, description
from recollect.interfaces.http.operations import (
    AdmittedRequest,
    Guarded,
    KeyReach,
    Operation,
    Reader,
    Repeat,
    operation,
)
from recollect.interfaces.http.problems import (
    JSON_TYPE,
    NO_KEY,
    NOTHING_HERE,
    HttpAnswer,
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
NO_STORE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
HEALTH = "/healthz"
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


G = TypeVar("G", bound=Guarded)


def by_path(guarded: Iterable[G]) -> dict[str, dict[str, G]]:
    """What stands at each path, by method; what is written out goes before what may be anything."""
    found: dict[str, dict[str, G]] = {}
    for each in sorted(guarded, key=_places_last):
        methods = found.setdefault(each.path, {})
        assert each.method not in methods, f"two operations are {each.method} {each.path}"
        methods[each.method] = each
    return found


def _places_last(guarded: Guarded) -> list[bool]:
    return [part.startswith("{") for part in guarded.path.split("/")]


def router(apps: Mapping[str, ASGIApp], default: ASGIApp) -> ASGIApp:
    """The applications by path; each of their places is a segment as it was sent."""
    made = [Route(path.replace("}", ":segment}"), app) for path, app in apps.items()]
    found = Router(made, redirect_slashes=False, default=default)

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        path = raw.partition(b"?")[0].decode("latin-1")
        app = found if is_utf8(path) else default
        await app({**scope, "path": path, "root_path": ""}, receive, send)

    return routed


def is_utf8(path: str) -> bool:
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def allowed(methods: Mapping[str, G], places: Mapping[str, str], method: str, key: ApiKey) -> G:
    """What is asked for. Refusal: what a key does not open is not there."""
    if not methods:
        raise Refusal(NOTHING_HERE)
    space = places.get("space")
    is_closed = next(iter(methods.values())).reach is KeyReach.STORE and key.space is not None
    if is_closed or (space is not None and not key.opens(space)):
        raise Refusal(NOTHING_HERE)
    found = methods.get(method)
    if found is None:
        there = ", ".join(sorted(methods))
        raise refusal(
            405, "method-not-allowed", f"this path allows {there} (got {method})", Allow=there
        )
    if not key.scope.includes(found.scope):
        raise refusal(
            403,
            "scope",
            f"a key of scope {found.scope.value} is required (this one has {key.scope.value})",
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A request without its body."""

    method: str
    template: str
    methods: Mapping[str, Any]  # what stands at its path
    places: Mapping[str, str]
    path: str  # as it was sent
    query: bytes
    headers: Headers
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """What came of a request, and whose it was."""

    response: Response
    key_id: str | None = None


class Api:
    """Answers everything below /v1 and /mem0, /healthz and /metrics."""

    def __init__(
        self, memory: Memory, limits: ServerLimits | None = None, agents: Sequence[str] = ()
    ) -> None:
        self.limits = limits or ServerLimits()
        self.metrics = Metrics()
        self.operations = (*OPERATIONS, *self._own())
        self._is_over = False
        self._memory = memory
        self._hosts = routes.Hosts(memory, tuple(agents), self.is_stopping)
        self._rate = Rate(memory.clock, self.limits.rate_per_second, self.limits.burst)
        self._authenticator = Authenticator(memory)
        self._done = DoneOnce(memory.clock)
        self._mem0 = Mem0Memory(memory, clock=memory.clock, learners_max=LEARNERS_MAX)
        self._space = lru_cache(SPACES_HELD)(memory.space)
        self._ids = Ids(memory.clock)
        self._pool = ThreadPoolExecutor(self.limits.threads, "recollect-http")
        self._under_way = 0
        self._streams: Counter[str] = Counter()  # that are open, by key
        paths = {
            path: self._at(path, methods) for path, methods in by_path(self.operations).items()
        }
        self._router = router({HEALTH: self._at(HEALTH, {}), **paths}, self._at(UNMATCHED, {}))

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
        """Begin what goes on by itself: the agents that are run here."""
        self._hosts.start()

    def stop(self) -> None:
        """End what would go on: the streams."""
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._router(scope, receive, send)

    def _at(self, template: str, methods: Mapping[str, Operation]) -> ASGIApp:
        """The application at a path."""
        return AsgiApp(partial(self._serve, template, methods))

    async def _serve(
        self,
        template: str,
        methods: Mapping[str, Operation],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        began, headers = ticks(), Headers(scope=scope)
        asked = headers.get("x-request-id", "")
        head = Head(
            method=scope["method"],
            template=template,
            methods=methods,
            places=scope.get("path_params", {}),
            path=scope["path"],
            query=scope["query_string"],
            headers=headers,
            request_id=asked if _REQUEST_ID.fullmatch(asked) else self._ids.new(),
        )
        answered = await self._answered(head, receive)
        response = answered.response
        self.note(head, response.status_code, began, key_id=answered.key_id)
        response.headers["x-request-id"] = head.request_id
        for name, value in NO_STORE.items():
            response.headers[name] = value
        await response(scope, receive, send)

    def note(self, head: Head, status: int, began: float, *, key_id: str | None = None) -> None:
        """Count a request, and log it without its content."""
        method, seconds = head.method if head.method in METHODS else "OTHER", ticks() - began
        self.metrics.count(method, head.template, status, seconds)
        words = "%s %s %d %.1f ms request=%s key=%s"
        _log.info(words, method, head.template, status, seconds * 1000, head.request_id, key_id)

    async def _answered(self, head: Head, receive: Receive) -> AnsweredRequest:
        try:
            if "content-length" in head.headers and "transfer-encoding" in head.headers:
                # Whoever stands before this server may have read it otherwise.
                raise refusal(
                    400,
                    "framing",
                    "a request must not have both Content-Length and Transfer-Encoding",
                    Connection="close",
                )
            if head.template == HEALTH:
                return AnsweredRequest(response=await self.run(self._health))
            if is_much(head.headers):  # whoever sends much has to show a key first
                await self.run(partial(self._admitted, head))
            body = await self.received(head.headers, receive)
            return await self.run(partial(self._answer, head, body))
        except Exception as error:  # the same as in a thread: it becomes an answer
            return AnsweredRequest(response=problem_for(error, head.request_id).answer().response())

    def _health(self) -> Response:
        try:
            self._memory.store.api_keys.list("", 0)
        except RecollectError:
            return HttpAnswer(content={"status": "store unreachable"}, status=503).response()
        return HttpAnswer(content={"status": "ok"}).response()

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
                        raise refusal(400, "left", "the connection was closed within the body")
                    chunk = message.get("body", b"")
                    more = message.get("more_body", False)
                    total += len(chunk)
                    if total > limit:
                        raise _too_large(limit)
                    chunks.append(chunk)
        except TimeoutError as error:
            raise refusal(408, "slow", "the body was not received in time") from error
        return b"".join(chunks)

    async def run(self, job: Callable[[], T]) -> T:
        """What a job returns that is run in a thread. Refusal: too many wait for one."""
        if self._under_way >= self.limits.threads + self.limits.waiting_max:
            raise refusal(503, "busy", "too many requests are waiting; try again", Retry_After="1")
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, job)
        finally:
            self._under_way -= 1

    # In a thread.

    def _answer(self, head: Head, body: bytes) -> AnsweredRequest:
        """The answer; whatever goes wrong becomes one."""
        key_id = None
        try:
            key = self._admitted(head)
            key_id = key.id
            with acting(f"key:{key.id}"):
                response = self._answer_to(head, key, body)
        except Exception as error:  # the one place that nothing passes
            response = problem_for(error, head.request_id).answer().response()
        return AnsweredRequest(response=response, key_id=key_id)

    def _admitted(self, head: Head) -> ApiKey:
        """Whose request it is. Refusal: nobody's."""
        shown = head.headers.get("authorization", "")
        if not shown and head.path.startswith(f"{mem0.PREFIX}/"):  # where mem0's clients put it
            shown = f"Bearer {head.headers.get('x-api-key', '')}"
        key = self._authenticator.authenticate(shown)
        if key is None:
            raise Refusal(NO_KEY)
        return key

    def _answer_to(self, head: Head, key: ApiKey, body: bytes) -> Response:
        self._rate.check(key.id)
        found = allowed(head.methods, head.places, head.method, key)
        asked = _idempotency_key(head, found)
        if asked is None or found.again is None:
            return self._handled(head, key, found, body).response()
        place = place_of(key.id, f"{head.method} {head.path}?{head.query.decode('latin-1')}", asked)
        match self._done.begin(place, body):
            case DoneRequest() as before:
                return self._handled_again(head, key, found, found.again, before).response()
            case UnderWay():
                raise refusal(
                    409,
                    "under-way",
                    "the first request with this Idempotency-Key is still being answered",
                    Retry_After="1",
                )
            case OtherRequest():
                raise refusal(
                    422, "idempotency-key-reused", "this Idempotency-Key was used with another body"
                )
            case First():
                pass
        done: DoneRequest | None = None
        try:
            answer = self._handled(head, key, found, body)
            done = DoneRequest(status=answer.status, ids=answer.ids)
            return answer.response()
        finally:
            self._done.keep(place, done)

    def _handled(self, head: Head, key: ApiKey, found: Operation, body: bytes) -> HttpAnswer:
        request = self._request(head, key, found)
        given = _read_arguments(head, found, body)
        try:
            return found.answered(found.handler(request, **given), self._memory.clock.now())
        except DocumentExists as error:
            if request.expected_version is None:
                raise
            raise refusal(412, "document-exists", str(error)) from error

    def _handled_again(
        self, head: Head, key: ApiKey, found: Operation, again: Reader, done: DoneRequest
    ) -> HttpAnswer:
        """What the first request made, as it stands now. Gone: it does not any more."""
        try:
            made = again(self._request(head, key, found), done.ids)
        except NotFound as error:
            raise Gone(
                "this Idempotency-Key was used, and what was made then was deleted or forgotten"
                " since; use a new key to do it again"
            ) from error
        return replace(found.answered(made, self._memory.clock.now()), status=done.status)

    def _request(self, head: Head, key: ApiKey, found: Operation) -> AdmittedRequest:
        return AdmittedRequest(
            memory=self._memory,
            mem0=self._mem0,
            post=self._hosts.post,
            space=self._space(head.places.get("space", DEFAULT_SPACE)),
            key=key,
            changes=partial(self._changes_of, head, key),
            expected_version=_expected_version(head, found),
            idempotency_key=_idempotency_key(head, found),
        )

    # What changes in a space, as it does.

    def _changes_of(self, head: Head, key: ApiKey) -> AsyncIterator[str]:
        space = head.places["space"]

        def look() -> Any:
            self._admitted(head)  # Refusal: the key is over, and so is the stream
            return picture(self._memory, space)

        return self.changes(key.id, look)

    def changes(self, key_id: str, look: Callable[[], Any]) -> AsyncIterator[str]:
        """Server-sent events with what `look` sees, whenever it is something else.

        A client that missed some has missed nothing that the next one does not say. Refusal: there
        is no room for one more stream of this key.
        """
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


@dataclass(frozen=True, slots=True)
class AsgiApp:
    """An application; Starlette takes a function for one of a request and a response."""

    serve: Callable[[Scope, Receive, Send], Awaitable[None]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, receive, send)


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
    """How long a body is said to be, and whether nobody knows."""
    declared = headers.get("content-length", "")
    size = int(declared) if declared.isascii() and declared.isdigit() else 0
    return size, "transfer-encoding" in headers


def is_much(headers: Mapping[str, str]) -> bool:
    """Whether so much is announced that its sender has to be known first."""
    size, is_chunked = _announced(headers)
    return size > EAGER_BYTES or is_chunked


def _too_large(limit: int) -> Exception:
    return refusal(413, "too-large", f"the body must be at most {limit:,} bytes")


def _read_arguments(head: Head, found: Operation, body: bytes) -> dict[str, Any]:
    """What path, query and body give. InvalidValue: it is unknown, missing, there twice or wrong.

    No body at all is an object without fields.
    """
    given = found.inputs.read_parameters(head.places, _query(head))
    if found.inputs.body is not None:
        return {**given, **found.inputs.read_body(_json(head, body) if body else {})}
    if body:
        raise InvalidValue("body: must be empty here")
    return given


def _query(head: Head) -> dict[str, str]:
    try:
        given = parse_qsl(
            head.query.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=PARAMETERS_MAX,
            errors="strict",
        )
    except ValueError as error:
        raise InvalidValue(
            f"query: cannot be read (at most {PARAMETERS_MAX} parameters, URL-encoded UTF-8)"
        ) from error
    query = dict(given)
    if len(query) < len(given):
        raise InvalidValue("query: a parameter was given twice")
    return query


def _json(head: Head, body: bytes) -> Any:
    media_type = head.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media_type != JSON_TYPE:
        raise refusal(415, "not-json", f"send the body as {JSON_TYPE}")
    try:
        content = _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise refusal(400, "malformed", "the body is not JSON in UTF-8") from error
    if body.count(b"[") + body.count(b"{") > NESTED_MAX:
        _check_depth(content)
    return content


def _not_a_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("larger than any number")
    return number


# Half a character may be sent, which msgspec's own decoder refuses: it is stored as it came.
_DECODER = json.JSONDecoder(parse_constant=_not_a_number, parse_float=_finite)


def _check_depth(content: Any) -> None:
    layer, depth = [content], 0
    while layer:
        depth += 1
        if depth > NESTED_MAX:
            raise InvalidValue(f"body: must not be nested more than {NESTED_MAX} levels deep")
        layer = [
            below
            for each in layer
            if isinstance(each, dict | list)
            for below in (each.values() if isinstance(each, dict) else each)
        ]


def _expected_version(head: Head, found: Operation) -> int | None:
    """The version that is to be changed; 0: there must be none yet."""
    if not found.is_conditional:
        return None
    if "if-none-match" in head.headers:
        if head.headers["if-none-match"].strip() != "*":
            raise InvalidValue("If-None-Match must be *: there must be no such document yet")
        return 0
    given = head.headers.get("if-match")
    if given is None:
        return None
    version = _ETAG.fullmatch(given.strip())
    if version is None:
        raise InvalidValue('If-Match must be one version, as its ETag says it: "3"')
    return int(version[1])


def _idempotency_key(head: Head, found: Operation) -> str | None:
    given = head.headers.get("idempotency-key")
    if given is None or found.repeat is Repeat.PLAIN:
        return None
    if not _IDEMPOTENCY_KEY.fullmatch(given):
        raise InvalidValue(
            f"Idempotency-Key must be 1 to {IDEMPOTENCY_CHARS_MAX} visible ASCII characters"
        )
    return given
