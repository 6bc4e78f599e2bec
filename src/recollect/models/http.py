"""A model behind HTTP: one deadline over all tries, retries, pauses, and a limit on calls at once.

Calls run on threads of the model's own while the caller's waits and watches, so that a call ends
when it is cancelled or its time is up, however silent the server is.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import logging
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import (
    CallCancelled,
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
)
from recollect.ids import Randomness
from recollect.models.admission import POLL_SECONDS, admission_to
from recollect.models.answers import Answer
from recollect.models.conversation import identified
from recollect.models.exchange import Exchange, Post, open_client
from recollect.models.faults import Fault, ProviderFault, error_from
from recollect.models.protocol import Completion, Pause, Request, Usage
from recollect.models.tokens import (
    Calibration,
    estimate_calls,
    estimate_request,
    estimate_tokens,
)
from recollect.models.wire import Dialect, Wire
from recollect.observing.telling import told

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
    ) -> None:
        self._wire = wire
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
        return f"{self._wire.provider}:{self._wire.model}"

    @property
    def window_tokens(self) -> int:
        return self._settings.model_window_tokens

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
            raise CallCancelled("nobody waits for the answer any more")

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
                _log.info("%s: %s; again in %.1f s", self.name, told(error), wait)
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
            _log.info("%s: %s; trying without", self.name, told(failure))
            dialect = simpler
        raise failure

    def _simpler(self, request: Request, dialect: Dialect, fault: Fault) -> Dialect | None:
        simpler = self._wire.simpler(dialect, fault)
        if simpler is None or (request.schema is None and _differs_in_form(simpler, dialect)):
            return None  # the words that object to a form were about something else
        return simpler

    def _error(self, request: Request, fault: Fault) -> ModelError:
        message = fault.message
        if self._wire.key:
            message = message.replace(self._wire.key, "[key]")
        return error_from(
            dataclasses.replace(fault, message=message),
            host=self._host,
            now=self._clock.now(),
            pause_seconds=self._settings.model_pause_seconds,
            has_tools=bool(request.tools),
        )

    def _asked(self, call: _Call, dialect: Dialect) -> Answer:
        """One exchange, watched while it lasts."""
        exchange = Exchange(self._client, self._post(call, dialect), self._wire.read)
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

    def _too_late(self) -> ModelUnavailable:
        seconds = self._settings.model_timeout_seconds
        return ModelUnavailable(f"{self._host}: no whole answer within {seconds:g} s")

    def _post(self, call: _Call, dialect: Dialect) -> Post:
        left = self._left(call)
        if left <= 0:
            raise self._too_late()
        body = self._wire.body(call.request, dialect)
        answer_bytes_max = self._settings.model_answer_bytes_max
        return Post(
            url=self._wire.url,
            host=self._host,
            headers=self._wire.headers(),
            body=json.dumps(body, separators=(",", ":")).encode(),
            seconds=left,
            answer_bytes_max=answer_bytes_max,
            wire_bytes_max=answer_bytes_max + FRAME_BYTES * call.request.output_tokens_max,
            has_tools=bool(call.request.tools),
        )

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


def _differs_in_form(one: Dialect, other: Dialect) -> bool:
    return one.structured is not other.structured
