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
from recollect.interfaces.http.bearer import Doorkeeper
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
    read_query,
)
from recollect.interfaces.http.reply import Ask, Given, Reply, Watch
from recollect.interfaces.http.route import Reader, Route
from recollect.memory import DEFAULT_SPACE, Memory
from recollect.observing.actors import acting
from recollect.store.key_protocol import ApiKey

SPACES_HELD = 256
LEARNERS_MAX = 4  # threads that wait at once until what mem0's `add` was given is learned

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came of a request, and whose it was."""

    outcome: Given | Watch
    key_id: str | None = None


class Desk:
    """Answers requests from a memory, any number at a time."""

    def __init__(self, memory: Memory, rate: Rate, hosts: Hosts) -> None:
        self._memory = memory
        self._rate = rate
        self._door = Doorkeeper(memory)
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
            outcome = given(told(error, head.request_id).reply())
        return Answered(outcome=outcome, key_id=key_id)

    def admit(self, head: Head) -> ApiKey:
        """Whose request it is. Refusal: nobody's."""
        shown = head.headers.get("authorization", "")
        if not shown and head.target.startswith(f"{PREFIX}/"):  # where mem0's clients put it
            shown = f"Bearer {head.headers.get('x-api-key', '')}"
        key = self._door.admitted(shown)
        if key is None:
            raise Refusal(NO_KEY)
        return key

    def _answer(self, head: Head, key: ApiKey, body: bytes) -> Given | Watch:
        wait = self._rate.taken(key.id)
        if wait:
            raise refusal(
                429, "too-many-requests", f"again in {wait} seconds", Retry_After=str(wait)
            )
        route = allowed(head.match, head.method, key)
        ask = partial(self._asked, head, key, route, body)
        asked = read_idempotency_key(head, route)
        if asked is None or route.again is None:
            reply = _handled(route, ask())
        else:
            place = place_of(key.id, f"{head.method} {head.target}", asked)
            reply = self._once(route, route.again, ask, body, place)
        return reply if isinstance(reply, Watch) else given(reply)

    def _once(
        self, route: Route, again: Reader, ask: Callable[[], Ask], body: bytes, place: Place
    ) -> Reply | Watch:
        match self._done.begin(place, body):
            case Done() as before:
                return _read_again(again, ask(), before)
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
            reply = _handled(route, ask())
            if isinstance(reply, Reply):
                done = Done(status=reply.status, ids=reply.ids)
            return reply
        finally:
            self._done.keep(place, done)

    def _asked(self, head: Head, key: ApiKey, route: Route, body: bytes) -> Ask:
        assert head.match is not None
        return Ask(
            memory=self._memory,
            mem0=self._mem0,
            hosts=self._hosts,
            space=self._space(head.match.places.get("space", DEFAULT_SPACE)),
            key=key,
            path=head.match.places,
            query=read_query(head, route),
            body=read_body(head, route, body),
            expected_version=read_expected(head, route),
            idempotency_key=read_idempotency_key(head, route),
        )


def _handled(route: Route, ask: Ask) -> Reply | Watch:
    try:
        return route.handler(ask)
    except DocumentExists as error:
        if ask.expected_version is None:
            raise
        raise refusal(412, "document-exists", str(error)) from error


def _read_again(again: Reader, ask: Ask, done: Done) -> Reply:
    """What the first request made, as it stands now. Gone: it does not any more."""
    try:
        return replace(again(ask, done.ids), status=done.status)
    except NotFound as error:
        raise Gone(
            "this Idempotency-Key was used, and what was made then was deleted or forgotten since; "
            "use a new key to do it again"
        ) from error


def given(reply: Reply) -> Given:
    """An answer as it goes out."""
    return Given(
        status=reply.status,
        media_type=reply.media_type,
        headers=tuple(reply.headers.items()),
        body=reply.encoded(),
    )


def told(error: Exception, request_id: str) -> Problem:
    """What the caller is told. What only the operator can mend is logged, without its words."""
    if isinstance(error, Refusal):
        return error.problem
    problem = problem_of(error) if isinstance(error, RecollectError) else FAILED
    if problem.status >= 500:
        frame = _last(traceback.extract_tb(error.__traceback__))
        _log.error("request %s failed: %s%s", request_id, type(error).__name__, frame)
    return problem


def _last(frames: Sequence[traceback.FrameSummary]) -> str:
    return f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
