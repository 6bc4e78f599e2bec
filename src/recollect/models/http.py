"""A model behind HTTP: one deadline over all tries, retries, pauses, and a limit on calls at once.

Calls run on threads of the model's own while the caller's waits and watches, so that a call ends
when it is cancelled or its time is up, however silent the server is.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ipaddress
import json
import logging
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx2

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import (
    CallCancelled,
    InvalidOutput,
    InvalidSetting,
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
)
from recollect.ids import Randomness
from recollect.models.answers import (
    Answer,
    Fault,
    Gathering,
    ProviderFault,
    error_from,
    fault_from_status,
    fault_within,
    shown,
    with_remedy,
)
from recollect.models.protocol import WINDOW_TOKENS, Completion, Pause, Request, Usage
from recollect.models.tokens import Calibration, estimate_calls, estimate_request, estimate_tokens
from recollect.models.wire import Dialect, Wire, identified
from recollect.observing.log_text import loggable

DONE = b"[DONE]"


class BodyReader:
    """Turns chunks of bytes into JSON objects.

    What a body is shows in its first character rather than in its content type, which servers and
    the gateways before them get wrong.
    """

    def __init__(self) -> None:
        self.is_document = False
        self.is_done = False  # the stream said that it ends here
        self._is_known = False
        self._pending: list[bytes] = []  # of a line, or of the document
        self._data: list[bytes] = []  # of an event

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The objects that this chunk completes."""
        if not self._is_known:
            chunk = b"".join([*self._pending, chunk]).lstrip(b"\xef\xbb\xbf \t\r\n")
            self._pending.clear()
            if not chunk:
                return
            self._recognise(chunk)
        if self.is_document or b"\n" not in chunk:
            self._pending.append(chunk)
            return
        *lines, rest = b"".join([*self._pending, chunk]).split(b"\n")
        self._pending = [rest]
        for line in lines:
            yield from self._line(line.rstrip(b"\r"))

    def end(self) -> Iterator[dict[str, Any]]:
        """The objects that the end of the body completes."""
        rest = b"".join(self._pending)
        if not self._is_known:
            raise ModelUnavailable("the server answered with nothing")
        if self.is_document:
            yield _object(rest)
            return
        yield from self._line(rest.rstrip(b"\r"))
        yield from self._line(b"")

    def _recognise(self, start: bytes) -> None:
        self._is_known = True
        if start.startswith(b"<"):
            raise ModelUnavailable("the server answered with an HTML page instead of JSON")
        self.is_document = start.startswith((b"{", b"[", b'"'))
        if not self.is_document and start[:1] not in b":deir":  # a comment, data, event, id, retry
            raise ModelUnavailable("the server answered with something that is not JSON")

    def _line(self, line: bytes) -> Iterator[dict[str, Any]]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            return
        if line or not self._data:
            return  # names of events, ids and comments: the data says it all again
        data = b"\n".join(self._data)
        self._data.clear()
        if data.strip() == DONE:
            self.is_done = True
        elif not self.is_done:
            yield _object(data)


def _object(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelUnavailable("the server answered with broken JSON") from error
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = content[0]  # some gateways wrap an error so
    if not isinstance(content, dict):
        raise ModelUnavailable("the server answered with JSON that is not an answer of a model")
    return content


CONNECT_SECONDS = 10.0
FAULT_BYTES_MAX = 65_536  # of an error's body; its message is short


def open_client(url: str) -> httpx2.Client:
    """A client for one server.

    Every exchange has a connection of its own: it can be cut off at any time, and no call is lost
    to a connection that died unnoticed. What is on this machine is never asked for by a proxy.
    """
    try:
        target = httpx2.URL(url)
        is_local = _is_local(target.host)
        return httpx2.Client(
            verify=target.scheme == "https" or not is_local,  # to load certificates takes 0.1 s
            trust_env=not is_local,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        )
    except (httpx2.InvalidURL, ValueError, ImportError, OSError):
        # Not what was wrong with it: a proxy's address may hold a password.
        raise InvalidSetting(
            "the model's base URL, or the proxy or certificates the environment names, "
            "cannot be used"
        ) from None


def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One question and its answer. `run` waits for it; `cut`, from any thread, ends the wait."""

    client: httpx2.Client
    wire: Wire
    body: bytes = field(repr=False)
    gathering: Gathering
    seconds: float
    wire_bytes_max: int  # of everything, with the frames around each token
    is_taken_on: bool = False  # all of it was sent, and the server has not refused it
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _socket: socket.socket | None = None
    _is_cut: bool = False

    def run(self) -> Answer:
        """The answer, or ProviderFault, or a ModelError."""
        try:
            with self.client.stream(
                "POST",
                self.wire.url,
                content=self.body,
                headers=self._headers(),
                timeout=httpx2.Timeout(self.seconds, connect=min(CONNECT_SECONDS, self.seconds)),
                extensions={"trace": self._watch_connection},
            ) as response:
                if not response.is_success:
                    self.is_taken_on = False
                    raise ProviderFault(_fault(response))
                return self._read(response)
        except httpx2.RequestError as error:
            broken = f"{urlsplit(self.wire.url).netloc} {_explained(error)}"
            if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
                broken = with_remedy(broken, self.wire.remedies.is_down)
        raise ModelUnavailable(broken)  # without the client's error, which holds on to the key

    def cut(self) -> None:
        """End it now. Harmless when it has ended."""
        with self._lock:
            self._is_cut = True
            self._shut_down()

    def _headers(self) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",  # a compressed answer could outgrow every limit
            **self.wire.headers(),
        }

    def _watch_connection(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_body.complete"):
            self.is_taken_on = True
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        with self._lock:
            self._socket = info["return_value"].get_extra_info("socket")
            if self._is_cut:
                self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it is closed already
                # Not the method of a TLS socket, which pulls the reader's state from under it.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _read(self, response: httpx2.Response) -> Answer:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ModelUnavailable("the server compressed its answer, which it was asked not to do")
        body = BodyReader()
        size = 0
        for chunk in response.iter_raw():
            size += len(chunk)
            if size > self.wire_bytes_max:
                raise InvalidOutput(f"the answer is longer than {self.wire_bytes_max} bytes")
            for content in body.feed(chunk):
                self._take(content)
            if body.is_done or self.gathering.is_over:
                break
        else:
            for content in body.end():
                self._take(content)
        if body.is_done:
            self.gathering.end_stream()
        return self.gathering.finish()

    def _take(self, content: Mapping[str, Any]) -> None:
        if fault := fault_within(content):
            raise ProviderFault(fault)
        self.wire.read(content, self.gathering)


def _fault(response: httpx2.Response) -> Fault:
    body = bytearray()
    with contextlib.suppress(httpx2.RequestError):  # the status is worth more than its text
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > FAULT_BYTES_MAX:
                break
    headers = {name.lower(): value for name, value in response.headers.items()}
    return fault_from_status(response.status_code, bytes(body[:FAULT_BYTES_MAX]), headers)


def _explained(error: httpx2.RequestError) -> str:
    match error:
        case httpx2.ConnectTimeout() | httpx2.ConnectError():
            what = "cannot be reached"
        case httpx2.TimeoutException():
            what = "did not answer in time"
        case _:
            what = "broke the connection"
    return f"{what}: {shown(str(error)) or type(error).__name__}"


POLL_SECONDS = 0.1  # how often a waiting call checks whether it was cancelled


class Admission:
    """The door of one provider. Safe to share between threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0
        self._denials: dict[str | None, tuple[str, datetime]] = {}  # by key: why, and until when

    @contextlib.contextmanager
    def slot(self, at_once_max: int, check: Callable[[], None]) -> Iterator[None]:
        """One of the calls that may be under way; `check` may end the wait for it by raising."""
        check()
        while not self._entered(at_once_max):
            check()
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()  # each has a limit of its own

    def _entered(self, at_once_max: int) -> bool:
        with self._changed:
            is_free = self._changed.wait_for(lambda: self._under_way < at_once_max, POLL_SECONDS)
            self._under_way += is_free
            return is_free

    def deny(self, key: str | None, error: ModelDenied, now: datetime) -> None:
        self._denials[key] = (str(error), now + timedelta(seconds=error.delay_seconds))

    def check_denial(self, key: str | None, now: datetime) -> None:
        """Raise the last ModelDenied again while its pause lasts."""
        why, until = self._denials.get(key, ("", now))
        if now < until:
            raise ModelDenied(why, delay_seconds=(until - now).total_seconds())


_admissions: weakref.WeakValueDictionary[str, Admission] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def admission_to(host: str) -> Admission:
    """The one door of a host, for as long as somebody holds on to it."""
    with _lock:
        return _admissions.setdefault(host, Admission())


BACKOFF_SECONDS = 1.0  # the bound of the first wait; it doubles, with full jitter
BACKOFF_SECONDS_MAX = 30.0
FRAME_BYTES = 1024  # what a server wraps around one token of a stream, generously
DIALECTS_MAX = 8  # tries to find out what a server understands

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class _Call:
    """One request on its way, the moment by which it has to be answered, and what broke off."""

    request: Request
    deadline: datetime
    tries_lost: int = 0


class Details(Protocol):
    """Whoever can be asked about a model of a server that says something about itself."""

    def name(self) -> str: ...

    def window_tokens(self) -> int | None: ...


class HttpModel:
    """A Model whose provider is reached over HTTP. Safe to call from any number of threads."""

    def __init__(
        self,
        wire: Wire,
        settings: Settings,
        *,
        clock: Clock,
        randomness: Randomness,
        pause: Pause | None = None,
        server: Details | None = None,
        window_tokens: int = WINDOW_TOKENS,
    ) -> None:
        """`server` is asked what nobody said; `window_tokens` counts where it does not say."""
        self._wire = wire
        self._server = server
        self._window_tokens = window_tokens
        self._settings = settings
        self._clock = clock
        self._randomness = randomness
        self._closed = threading.Event()
        self._pause = pause or self._closed.wait
        self._host = urlsplit(wire.url).netloc
        self._client = open_client(wire.url)
        self._admission = admission_to(self._host)
        self._threads = concurrent.futures.ThreadPoolExecutor(
            settings.model_concurrency, thread_name_prefix="recollect-model"
        )
        self._dialect = Dialect.of(settings.model_structured)
        self.calibration = Calibration()

    @property
    def name(self) -> str:
        return f"{self._wire.provider}:{self._wire.model}".rstrip(":")

    @property
    def window_tokens(self) -> int:
        given = self._settings.model_window_tokens
        said = self._server.window_tokens() if self._server and not given else None
        return given or said or self._window_tokens

    def __repr__(self) -> str:
        return f"<HttpModel {self.name} at {self._host}>"

    def close(self) -> None:
        """Give up what is under way and let the threads go."""
        self._closed.set()
        self._threads.shutdown(cancel_futures=True)
        self._client.close()

    def complete(self, request: Request) -> Completion:
        at_once_max = self._settings.model_concurrency
        with self._admission.slot(at_once_max, lambda: self._check_cancelled(request)):
            seconds = timedelta(seconds=self._settings.model_timeout_seconds)
            call = _Call(request=request, deadline=self._clock.now() + seconds)
            try:
                answer = self._retried(call)
            except ModelError as error:
                error.tries_begun = call.tries_lost
                if isinstance(error, ModelDenied):
                    self._admission.deny(self._wire.key, error, self._clock.now())
                raise
            return self._completion(call, answer)

    def _check_cancelled(self, request: Request) -> None:
        if self._closed.is_set():
            raise CallCancelled("the model was closed")
        if request.is_cancelled():
            raise CallCancelled("the caller no longer waits for the answer")

    def _retried(self, call: _Call) -> Answer:
        """Ask until there is an answer, the retries are used up, or the next would be too late."""
        tries = 0
        while True:
            self._admission.check_denial(self._wire.key, self._clock.now())
            try:
                return self._understood(call)
            except ModelUnavailable as error:
                wait = self._wait_seconds(error, tries)
                if tries >= self._settings.model_retries or wait >= self._left(call):
                    raise
                _log.info("%s: %s; again in %.1f s", self.name, loggable(error), wait)
            self._wait(call, wait)
            tries += 1

    def _wait_seconds(self, error: ModelUnavailable, tries: int) -> float:
        if error.retry_after_seconds:  # 0 is no reason to hurry
            return error.retry_after_seconds
        return self._randomness.uniform(0, min(BACKOFF_SECONDS * 2**tries, BACKOFF_SECONDS_MAX))

    def _wait(self, call: _Call, seconds: float) -> None:
        while seconds > 0:
            self._check_cancelled(call.request)
            step = min(seconds, POLL_SECONDS)
            self._pause(step)
            seconds -= step
        self._check_cancelled(call.request)

    def _left(self, call: _Call) -> float:
        return (call.deadline - self._clock.now()).total_seconds()

    def _understood(self, call: _Call) -> Answer:
        """Ask, leaving out what the server objects to; what it understood is remembered."""
        dialect = known = self._dialect
        for _ in range(DIALECTS_MAX):
            try:
                answer = self._asked(call, dialect)
            except ProviderFault as error:
                simpler = self._simpler(call.request, dialect, error.fault)
                failure = self._error(call.request, error.fault)
                is_refused = isinstance(failure, ModelRejected) or error.fault.status == 404
            else:
                if dialect is not known:  # else it would undo what another thread found out
                    self._dialect = dialect
                return answer
            # A prompt that is too long may be blamed on a parameter too: asking again is no use.
            if simpler is None or not is_refused:
                raise failure
            _log.info("%s: %s; trying without", self.name, loggable(failure))
            dialect = simpler
        raise failure

    def _simpler(self, request: Request, dialect: Dialect, fault: Fault) -> Dialect | None:
        simpler = self._wire.simpler(dialect, fault)
        if simpler and request.schema is None and simpler.structured is not dialect.structured:
            return None  # the words that object to a form were about something else
        return simpler

    def _error(self, request: Request, fault: Fault) -> ModelError:
        message = fault.message
        if self._wire.key:
            message = message.replace(self._wire.key, "[key]")
        return error_from(
            replace(fault, message=message),
            host=self._host,
            now=self._clock.now(),
            pause_seconds=self._settings.model_pause_seconds,
            has_tools=bool(request.tools),
            remedies=self._wire.remedies,
        )

    def _asked(self, call: _Call, dialect: Dialect) -> Answer:
        """One exchange, watched while it lasts."""
        left, request = self._left(call), call.request
        if left <= 0:
            raise self._too_late()
        answer_bytes_max = self._settings.model_answer_bytes_max
        wire = self._whole_wire()
        exchange = Exchange(
            client=self._client,
            wire=wire,
            body=json.dumps(wire.body(request, dialect), separators=(",", ":")).encode(),
            gathering=Gathering(answer_bytes_max, has_tools=bool(request.tools)),
            seconds=left,
            wire_bytes_max=answer_bytes_max + FRAME_BYTES * request.output_tokens_max,
        )
        try:
            future = self._threads.submit(exchange.run)
        except RuntimeError as error:  # the threads are gone
            raise CallCancelled("the model was closed") from error
        try:
            while not concurrent.futures.wait([future], timeout=POLL_SECONDS).done:
                self._check_cancelled(call.request)
                if self._left(call) <= 0:
                    raise self._too_late()
            return future.result()
        except (ModelError, ProviderFault):
            call.tries_lost += exchange.is_taken_on
            raise
        finally:
            future.cancel()
            exchange.cut()

    def _whole_wire(self) -> Wire:
        """The wire with what only the server, or the settings, can say."""
        wire = self._wire
        if self._server is not None and not wire.model:
            wire = replace(wire, model=self._server.name())
        return replace(wire, window_tokens=self.window_tokens) if wire.sets_window else wire

    def _too_late(self) -> ModelUnavailable:
        seconds = self._settings.model_timeout_seconds
        return ModelUnavailable(f"{self._host}: no whole answer within {seconds:g} s")

    def _completion(self, call: _Call, answer: Answer) -> Completion:
        return Completion(
            text=answer.text,
            tool_calls=identified(answer.tool_calls, call.request),
            usage=self._usage(call.request, answer),
            model=answer.model or self.name,
            tries_lost=call.tries_lost,
        )

    def _usage(self, request: Request, answer: Answer) -> Usage:
        sent = estimate_request(request)
        if answer.input_tokens is not None and answer.output_tokens is not None:
            counted = answer.input_tokens
            self.calibration.learn(estimated=sent, counted=counted)
            return Usage(input_tokens=counted, output_tokens=answer.output_tokens)
        answered = estimate_tokens(answer.text) + estimate_calls(answer.tool_calls)
        return Usage(
            input_tokens=answer.input_tokens or self.calibration.corrected(sent),
            output_tokens=answer.output_tokens or self.calibration.corrected(answered),
            is_estimate=True,
        )
