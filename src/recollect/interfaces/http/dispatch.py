"""Where a request is answered, in one thread from the key to the bytes: who, whether, what.

The order is part of what is promised: without a key nobody learns anything; with one, nobody learns
what lies outside its space; only then is it told what is wrong with a request.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from recollect.compat.mem0 import Memory as Mem0Memory
from recollect.errors import DocumentExists, Gone, NotFound, RecollectError
from recollect.interfaces.http.access import allowed
from recollect.interfaces.http.bearer import Authenticator
from recollect.interfaces.http.hosting import Hosts
from recollect.interfaces.http.limits import (
    Done,
    DoneOnce,
    First,
    OtherRequest,
    Place,
    Rate,
    UnderWay,
    place_of,
)
from recollect.interfaces.http.mem0 import PREFIX
from recollect.interfaces.http.messages import Answer, Request, Response, Stream
from recollect.interfaces.http.problems import (
    FAILED,
    NO_KEY,
    Problem,
    Refusal,
    problem_of,
    refusal,
)
from recollect.interfaces.http.reading import (
    Head,
    read_body,
    read_expected,
    read_idempotency_key,
    read_parameters,
)
from recollect.interfaces.http.route import Reader, Route, answer_of
from recollect.memory import DEFAULT_SPACE, Memory
from recollect.observing.actors import acting
from recollect.store.key_protocol import ApiKey

SPACES_HELD = 256
LEARNERS_MAX = 4  # threads that wait at once until what mem0's `add` was given is learned

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came of a request, and whose it was."""

    outcome: Response | Stream
    key_id: str | None = None


class Dispatcher:
    """Answers requests from a memory, any number at a time."""

    def __init__(self, memory: Memory, rate: Rate, hosts: Hosts) -> None:
        self._memory = memory
        self._rate = rate
        self._authenticator = Authenticator(memory)
        self._done = DoneOnce(memory.clock)
        self._hosts = hosts
        self._mem0 = Mem0Memory(memory, clock=memory.clock, learners_max=LEARNERS_MAX)
        self._space = lru_cache(SPACES_HELD)(memory.space)

    def answer(self, head: Head, body: bytes) -> Answered:
        """The answer; whatever goes wrong becomes one."""
        key_id = None
        try:
            key = self.admit(head)
            key_id = key.id
            with acting(f"key:{key.id}"):
                outcome = self._answer(head, key, body)
        except Exception as error:  # the one place that nothing passes
            outcome = response_of(problem_for(error, head.request_id).answer())
        return Answered(outcome=outcome, key_id=key_id)

    def admit(self, head: Head) -> ApiKey:
        """Whose request it is. Refusal: nobody's."""
        shown = head.headers.get("authorization", "")
        if not shown and head.target.startswith(f"{PREFIX}/"):  # where mem0's clients put it
            shown = f"Bearer {head.headers.get('x-api-key', '')}"
        key = self._authenticator.authenticate(shown)
        if key is None:
            raise Refusal(NO_KEY)
        return key

    def _answer(self, head: Head, key: ApiKey, body: bytes) -> Response | Stream:
        wait = self._rate.taken(key.id)
        if wait:
            raise refusal(
                429, "too-many-requests", f"again in {wait} seconds", Retry_After=str(wait)
            )
        route = allowed(head.match, head.method, key)
        handle = partial(self._handled, head, key, route, body)
        asked = read_idempotency_key(head, route)
        if asked is None or route.again is None:
            answer = handle()
        else:
            place = place_of(key.id, f"{head.method} {head.target}", asked)
            again = partial(self._handled_again, head, key, route, route.again)
            answer = self._once(handle, again, body, place)
        return answer if isinstance(answer, Stream) else response_of(answer)

    def _once(
        self,
        handle: Callable[[], Answer | Stream],
        again: Callable[[Done], Answer],
        body: bytes,
        place: Place,
    ) -> Answer | Stream:
        match self._done.begin(place, body):
            case Done() as before:
                return again(before)
            case UnderWay():
                raise refusal(
                    409, "under-way", "the first one is still being answered", Retry_After="1"
                )
            case OtherRequest():
                raise refusal(
                    422, "idempotency-key-reused", "this Idempotency-Key came with another body"
                )
            case First():
                pass
        done: Done | None = None
        try:
            answer = handle()
            if isinstance(answer, Answer):
                done = Done(status=answer.status, ids=answer.ids)
            return answer
        finally:
            self._done.keep(place, done)

    def _handled(self, head: Head, key: ApiKey, route: Route, body: bytes) -> Answer | Stream:
        request = self._request(head, key, route)
        given = {**read_parameters(head, route), **read_body(head, route, body)}
        try:
            return answer_of(route, route.handler(request, **given))
        except DocumentExists as error:
            if request.expected_version is None:
                raise
            raise refusal(412, "document-exists", str(error)) from error

    def _handled_again(
        self, head: Head, key: ApiKey, route: Route, again: Reader, done: Done
    ) -> Answer:
        """What the first request made, as it stands now. Gone: it does not any more."""
        try:
            answer = answer_of(route, again(self._request(head, key, route), done.ids))
        except NotFound as error:
            raise Gone(
                "this Idempotency-Key was used, and what was made then was deleted or forgotten"
                " since; use a new key to do it again"
            ) from error
        assert isinstance(answer, Answer)
        return replace(answer, status=done.status)

    def _request(self, head: Head, key: ApiKey, route: Route) -> Request:
        assert head.match is not None
        return Request(
            memory=self._memory,
            mem0=self._mem0,
            hosts=self._hosts,
            space=self._space(head.match.places.get("space", DEFAULT_SPACE)),
            key=key,
            expected_version=read_expected(head, route),
            idempotency_key=read_idempotency_key(head, route),
        )


def response_of(reply: Answer) -> Response:
    """An answer as it goes out."""
    return Response(
        status=reply.status,
        media_type=reply.media_type,
        headers=tuple(reply.headers.items()),
        body=reply.encoded(),
    )


def problem_for(error: Exception, request_id: str) -> Problem:
    """The problem to answer with. What only the operator can mend is logged, without its words."""
    if isinstance(error, Refusal):
        return error.problem
    problem = problem_of(error) if isinstance(error, RecollectError) else FAILED
    if problem.status >= 500:
        frame = _last(traceback.extract_tb(error.__traceback__))
        _log.error("request %s failed: %s%s", request_id, type(error).__name__, frame)
    return problem


def _last(frames: Sequence[traceback.FrameSummary]) -> str:
    return f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
