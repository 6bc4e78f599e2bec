"""Waits for an answer: with patience, open to Ctrl-C, and not for what nobody can give now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from recollect.agents.reply import Reply, Ticket
from recollect.clock import Clock
from recollect.domain import JobState
from recollect.errors import AnswerPending, StoreError
from recollect.interfaces.cli.chat_input import Interrupts
from recollect.interfaces.cli.chat_partner import Place
from recollect.interfaces.cli.chat_voice import Voice
from recollect.interfaces.cli.output import moment, one_line

STEP_SECONDS = 0.2
LOOK_STEPS = 5  # between two looks at what keeps an answer from coming
PATIENCE_SECONDS = 30.0  # with a next try that is as far off as this


class StoppedWaitingError(Exception):
    """Somebody pressed Ctrl-C, or the process is to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How long to wait, and who can stop it. `timeout` none: for ever."""

    place: Place
    voice: Voice
    interrupts: Interrupts
    clock: Clock
    timeout: float | None

    def wait(self, ticket: Ticket) -> Reply:
        """The answer. AnswerPending: not in time, or not before long. TurnFailed: there is none."""
        told = ""
        steps = 0
        is_shown = False
        try:
            while True:
                try:
                    return ticket.result(STEP_SECONDS)
                except AnswerPending:
                    steps += 1
                if self.interrupts.is_any:
                    raise StoppedWaitingError
                if self.timeout is not None and steps * STEP_SECONDS >= self.timeout:
                    raise AnswerPending(f"no answer within {self.timeout:g} s")
                if steps % LOOK_STEPS == 0:
                    trouble = self._trouble()
                    if trouble and trouble != told:
                        told = self._tell(trouble, is_shown=is_shown)
                        is_shown = False
                    if not is_shown:
                        self.voice.working()
                        is_shown = True
        finally:
            if is_shown:
                self.voice.worked()

    def _tell(self, trouble: str, *, is_shown: bool) -> str:
        if is_shown:
            self.voice.worked()
        self.voice.note(f"No answer yet: {trouble}")
        return trouble

    def _trouble(self) -> str:
        """Why there is no answer, if a try has failed. AnswerPending: the next one is far off."""
        try:
            state = self.place.state
        except StoreError as error:
            return one_line(str(error))
        if state is None or state.job_state is not JobState.DUE or state.next_try_at is None:
            return ""
        now = self.clock.now()
        if state.last_error is None or state.next_try_at <= now:
            return ""
        trouble = f"{one_line(state.last_error)}; next try {moment(state.next_try_at)}"
        if state.next_try_at > now + timedelta(seconds=self._patience):
            raise AnswerPending(f"no answer yet: {trouble}")
        return trouble

    @property
    def _patience(self) -> float:
        return PATIENCE_SECONDS if self.timeout is None else self.timeout
