"""The loop of a chat: reads a line, waits for the answer and prints it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from recollect.agency import AgentState
from recollect.agents.reply import Reply, Ticket
from recollect.agents.system import AgentSystem
from recollect.clock import Clock
from recollect.descriptors import Descriptor
from recollect.domain import JobState, SessionState
from recollect.errors import AnswerPending, RecollectError, StoreError
from recollect.interfaces.cli.arguments import session_keys
from recollect.interfaces.cli.chat_terminal import Interrupts, Lines, Voice
from recollect.interfaces.cli.output import counted, moment, one_line
from recollect.interfaces.cli.recall import hit_lines
from recollect.interfaces.cli.sessions import agent_state_lines
from recollect.interfaces.views import view
from recollect.memory import Memory
from recollect.recollection import Context
from recollect.session import Session
from recollect.space import Space

QUERY_CHARS_MAX = 4000
PROGRESS_LOOKED_AT = 50  # sessions, the most recently begun first


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A conversation of an agent. Nothing is made in the store before something is said in it."""

    memory: Memory
    agent: Descriptor
    space_name: str
    key: str
    is_remembered: bool

    @property
    def space(self) -> Space:
        return self.memory.space(self.space_name)

    @property
    def session(self) -> Session | None:
        """The conversation; none: nothing was ever said in it."""
        return self.space.find_session(self.key, self.agent)

    @property
    def state(self) -> AgentState | None:
        session = self.session
        return None if session is None else session.store.agents.get(session.ref)

    def recalled(self, text: str) -> Context:
        """What a turn would be reminded of that begins with this text."""
        session = self.session
        return self.memory.space(self.space_name).context(
            text[:QUERY_CHARS_MAX],
            self.memory.settings.agent_memory_tokens,
            beside=None if session is None else session.id,
        )

    def end(self) -> SessionState | None:
        """End the conversation, which marks it; as it stood. None: nothing was said in it."""
        session = self.session
        if session is None or not session.state.last_seq:
            return None
        before = session.state
        session.end()
        return before

    def is_learned(self, session_id: str) -> bool:
        """Whether nothing is left to be learned from a session, its memory-agent included."""
        state = self.space.sessions.get(session_id)
        if state is None or state.invalidated_at is not None:
            return state is None
        progress = self.memory.store.extractions.progress(self.space_name, PROGRESS_LOOKED_AT)
        return not any(each.handed_over for each in progress if each.session_id == session_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """The agent as somebody talks to it."""

    place: Place
    system: AgentSystem

    def say(self, text: str) -> Ticket:
        place = self.place
        return self.system.post(place.agent, text, space=place.space_name, key=place.key)

    def reset(self) -> Ticket:
        place = self.place
        return self.system.reset(place.agent, space=place.space_name, key=place.key)


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


COMMANDS = {
    "/new": "begin an empty conversation; what was said becomes memory",
    "/memory TEXT": "show what would be recalled for a text, and where it comes from",
    "/status": "show how the agent stands: state, session, queue, next signal",
    "/help": "show this",
    "/quit": "end the session, as the end of input does (Ctrl-D)",
    "//TEXT": "say /TEXT to the agent",
}
STOPPED = "Stopped waiting. The answer may still come, and is shown then; Ctrl-C once more leaves."
ONCE_MORE = "Ctrl-C once more leaves, and the session stays open; Ctrl-D ends it."


class Ending(Enum):
    """How a talk ended."""

    ENDED = "ended"  # the input, or by /quit
    LEFT = "left"  # by Ctrl-C, twice; or the process was told to


@dataclass(slots=True, kw_only=True)
class Talk:
    """Reads lines until they end, and has them answered one by one."""

    partner: Partner
    voice: Voice
    interrupts: Interrupts
    lines: Lines
    clock: Clock
    timeout: float | None
    failed: int = 0  # messages that got no answer
    _late: list[Ticket] = field(default_factory=list)  # not answered while somebody waited
    _shown: set[str] = field(default_factory=set)  # turns that were

    def run(self) -> Ending:
        while True:
            self.show_late()
            try:
                line = self.interrupts.read(self.lines)
            except KeyboardInterrupt:
                if self._is_left():
                    return Ending.LEFT
                self.voice.note("", ONCE_MORE)
                continue
            if line is None:
                return Ending.ENDED
            if line.strip():
                self.interrupts.count = 0
                if self._heed(line) is Ending.ENDED:
                    return Ending.ENDED
                if self.interrupts.is_any and self._is_left():
                    return Ending.LEFT

    def _is_left(self) -> bool:
        is_wanted = self.interrupts.is_told_to_leave or self.interrupts.count > 1
        return is_wanted or not self.lines.is_terminal

    def _heed(self, line: str) -> Ending | None:
        text = line.strip()
        if not text.startswith("/"):
            self.say(line)
            return None
        if text.startswith("//"):
            self.say(text[1:])
            return None
        name, _, rest = text.partition(" ")
        if name == "/quit":
            return Ending.ENDED
        commands: dict[str, Callable[[], None]] = {
            "/new": self._new,
            "/status": self._status,
            "/help": self._help,
            "/memory": lambda: self._memory(rest.strip()),
        }
        heeded = commands.get(name)
        if heeded is None:
            self.voice.note(
                f"There is no command {one_line(name)}. /help lists those there are;"
                f" /{one_line(text)} says it to the agent."
            )
            return None
        try:
            heeded()
        except RecollectError as error:
            self._went_wrong(error)
        return None

    # what is said

    def say(self, text: str) -> None:
        """Say something, and show what is answered."""
        try:
            ticket = self.partner.say(text)
        except RecollectError as error:
            self._went_wrong(error)
            return
        self._await(ticket, self._answer)

    def show_late(self) -> None:
        """Show the answers that came when nobody waited for them any more."""
        for ticket in [each for each in self._late if each.is_settled]:
            self._late.remove(ticket)
            try:
                reply = ticket.result(0)
            except RecollectError as error:
                self._went_wrong(error)
                continue
            if reply.turn_id not in self._shown:
                self._shown.add(reply.turn_id)
                self.voice.note("To what you said before:")
                self.voice.answer(reply)

    @property
    def unanswered(self) -> int:
        return sum(not each.is_settled for each in self._late)

    def _answer(self, reply: Reply) -> None:
        self._shown.add(reply.turn_id)
        self.show_late()  # they came before
        self.voice.answer(reply)

    def _await(self, ticket: Ticket, then: Callable[[Reply], None]) -> None:
        waiting = Waiting(
            place=self.partner.place,
            voice=self.voice,
            interrupts=self.interrupts,
            clock=self.clock,
            timeout=self.timeout,
        )
        try:
            reply = waiting.wait(ticket)
        except StoppedWaitingError:
            self._late.append(ticket)
            if self.lines.is_terminal:
                self.voice.note("", STOPPED)
            return
        except AnswerPending as error:
            self._late.append(ticket)
            self._went_wrong(error)
            return
        except RecollectError as error:
            self._went_wrong(error)
            return
        then(reply)

    def _went_wrong(self, error: RecollectError) -> None:
        self.failed += 1
        self.voice.error(error)

    # commands

    def _new(self) -> None:
        if self.partner.place.session is None:
            self.voice.note("Nothing was said yet: the conversation is empty.")
            return
        self._await(self.partner.reset(), self._begun)

    def _begun(self, _reply: Reply) -> None:
        self.voice.note("A new conversation begins. What was said becomes memory.")

    def _status(self) -> None:
        state = self.partner.place.state
        unstored = self.partner.system.unstored
        shape = None if state is None else view(state) | {"unstored": unstored}
        lines = ["Nothing was said to it yet."]
        if state is not None:
            lines = list(agent_state_lines(state, self.clock.now()))
        if unstored:
            lines.append(f"{counted(unstored, 'record')} wait for the store")
        self.voice.told("status", shape, lines)

    def _help(self) -> None:
        width = max(map(len, COMMANDS))
        lines = [f"{name.ljust(width)}  {what}" for name, what in COMMANDS.items()]
        self.voice.told("help", COMMANDS, lines)

    def _memory(self, text: str) -> None:
        if not text:
            self.voice.note("Say about what: /memory TEXT")
            return
        if not self.partner.place.is_remembered:
            self.voice.note("Memory is off in this chat: nothing is recalled, and nothing kept.")
            return
        block = self.partner.place.recalled(text)
        hits = [citation.hit for citation in block.citations]
        lines = ["Nothing would be recalled for this."]
        if hits:
            keys = session_keys(self.partner.place.space, hits)
            lines = [
                line
                for rank, hit in enumerate(hits, start=1)
                for line in hit_lines(rank, hit, keys)
            ]
        self.voice.told("memory", view(block), lines)
