"""What model calls take: reserved against the caps before a call, settled after it.

Owns X11: no call is made that could exceed what a space may use in a day or a worker in its run.
"""

from __future__ import annotations

import dataclasses
import threading
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import (
    CallCancelled,
    InvalidOutput,
    ModelError,
    SpendCapReached,
)
from recollect.extraction.model import tokens_of
from recollect.models.protocol import Completion, Model, Request, Usage, cost_micros
from recollect.observing.traces import INPUT, MODEL, OUTPUT, PURPOSE, spanned
from recollect.types.facts import NOTHING_SPENT, CallOutcome, Caps, NewCall, OverCap, Spent

if TYPE_CHECKING:
    from recollect.store.relational.extractions import Ledger

RUN_PAUSE_SECONDS = 60.0  # after which another run, with a budget of its own, may go on


class Budget:
    """What one worker may use while it runs, anew every day. Safe to share between its threads."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self._lock = threading.Lock()
        self._spent = NOTHING_SPENT
        self._day = clock.now().date()

    def take(self, tokens: int) -> None:
        today = self.clock.now().date()
        calls_max = self.settings.spend_calls_per_run
        tokens_max = self.settings.spend_tokens_per_run
        with self._lock:
            if today != self._day:
                self._day, self._spent = today, NOTHING_SPENT
            if self._spent.calls + 1 > calls_max:
                raise _run_over(f"{calls_max:,} calls")
            if self._spent.tokens + tokens > tokens_max:
                raise _run_over(f"{tokens_max:,} tokens")
            self._spent = self._spent.plus(Spent(calls=1, input_tokens=tokens))

    def correct(self, taken: int, used: int) -> None:
        """A call turned out to take more or less than was taken for it."""
        with self._lock:
            known = self._spent
            # What was taken yesterday is not given back today.
            left = max(known.input_tokens + used - taken, 0)
            self._spent = dataclasses.replace(known, input_tokens=left)


def _run_over(cap: str) -> SpendCapReached:
    return SpendCapReached(
        f"this run may use {cap}; raise spend_*_per_run or run again",
        delay_seconds=RUN_PAUSE_SECONDS,
    )


class Till:
    """Makes the model calls of one piece of work, each paid for, and adds up what they took.

    Without a session they are for the space as a whole.
    """

    def __init__(
        self,
        model: Model,
        ledger: Ledger,
        budget: Budget,
        space: str,
        session_id: str | None = None,
        attempt: int = 1,
    ) -> None:
        self._model = model
        self._ledger = ledger
        self._settings = budget.settings
        self._budget = budget
        self._space = space
        self._session_id = session_id
        self._attempt = attempt
        self.spent = NOTHING_SPENT

    def ask(self, request: Request, what: str) -> Completion:
        """Reserve, call, settle. What a call may take at most has to fit before it is made."""
        most = Spent(
            calls=1, input_tokens=tokens_of(request), output_tokens=request.output_tokens_max
        )
        self._budget.take(most.tokens)
        try:
            call_id = self._reserve(most, what)
        except BaseException:
            self._budget.correct(most.tokens, 0)
            raise
        try:
            completion = self._called(request, what)
        except ModelError as error:
            is_invalid = isinstance(error, InvalidOutput)
            outcome = CallOutcome.INVALID if is_invalid else CallOutcome.FAILED
            # What was begun before it failed may be billed.
            begun = max(error.tries_begun, int(isinstance(error, InvalidOutput | CallCancelled)))
            self._settle(call_id, most, begun, None, outcome)
            raise
        self._settle(call_id, most, completion.tries_lost, completion.usage, CallOutcome.ANSWERED)
        return completion

    def _called(self, request: Request, what: str) -> Completion:
        asked = {MODEL: self._model.name, PURPOSE: what}
        with spanned("model", asked, traced=self._settings.traces) as note:
            completion = self._model.complete(request)
            used = completion.usage
            note({INPUT: used.input_tokens, OUTPUT: used.output_tokens})
            return completion

    def _reserve(self, most: Spent, what: str) -> int:
        now = self._budget.clock.now()
        call = NewCall(
            space=self._space,
            session_id=self._session_id,
            purpose=what,
            model=self._model.name,
            attempt=self._attempt,
            input_tokens=most.input_tokens,
            output_tokens=most.output_tokens,
        )
        caps = Caps(
            tokens_per_day=self._settings.spend_tokens_per_day,
            calls_per_day=self._settings.spend_calls_per_day,
        )
        reserved = self._ledger.reserve(call, caps, now)
        if isinstance(reserved, OverCap):
            raise SpendCapReached(
                f"space {self._space} may use {reserved.cap} and has used "
                f"{reserved.spent.calls:,} calls and {reserved.spent.tokens:,} tokens; "
                "raise spend_*_per_day or wait for the next day (UTC)",
                delay_seconds=_until_tomorrow(now),
            )
        return reserved.call_id

    def _settle(
        self, call_id: int, most: Spent, lost: int, answered: Usage | None, outcome: CallOutcome
    ) -> None:
        """What an answer took, and all that a try may take for each that was lost."""
        used = Usage(input_tokens=0, output_tokens=0) if answered is None else answered
        taken = Usage(
            input_tokens=used.input_tokens + most.input_tokens * lost,
            output_tokens=used.output_tokens + most.output_tokens * lost,
        )
        spent = Spent(
            calls=1 if answered is not None else min(lost, 1),
            input_tokens=taken.input_tokens,
            output_tokens=taken.output_tokens,
            cost_micros=cost_micros(taken, self._settings),
        )
        self._budget.correct(most.tokens, spent.tokens)
        self._ledger.settle(self._space, call_id, spent, outcome)
        self.spent = self.spent.plus(spent)


def _until_tomorrow(now: datetime) -> float:
    midnight = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return (midnight - now).total_seconds()
