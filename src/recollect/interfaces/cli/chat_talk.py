"""A talk with an agent: what is said, what is answered, and commands that begin with a slash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from recollect.agents.reply import Reply, Ticket
from recollect.clock import Clock
from recollect.errors import AnswerPending, RecollectError
from recollect.interfaces.cli.agent_lines import state_lines
from recollect.interfaces.cli.chat_input import Interrupts, Lines
from recollect.interfaces.cli.chat_partner import Partner
from recollect.interfaces.cli.chat_voice import Voice
from recollect.interfaces.cli.chat_waiting import StoppedWaitingError, Waiting
from recollect.interfaces.cli.output import counted, one_line
from recollect.interfaces.cli.recall import session_keys
from recollect.interfaces.cli.recall_lines import hit_lines
from recollect.interfaces.views import view

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
            lines = list(state_lines(state, self.clock.now()))
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
