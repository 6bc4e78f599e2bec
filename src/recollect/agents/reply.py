"""Replies of agents, and the futures that wait for them; without a model, from memory alone.

A reply made without a model begins with a mark that identifies it, so that memory never learns from
its own output.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from recollect.agents.loop import Stop
from recollect.errors import AnswerPending, RecollectError
from recollect.quoting import OFFLINE
from recollect.types.recall import Citation, Context, EntryKind
from recollect.types.records import Record

POLL_SECONDS = 0.25  # between looks at the store, for an answer that another process may give
ANSWERS_MAX = 5
WORDS = "words"  # the part of a score that is for words in common
ANSWER_CHARS_MAX = 300
NOTHING = (
    f"{OFFLINE} I find nothing about this in memory. No model is set, so I can only tell what I "
    "remember; what you say is kept and becomes memory."
)
FROM_MEMORY = f"{OFFLINE} From memory, since no model is set:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An agent's answer. `citations` are what it was reminded of, with where that comes from."""

    text: str
    turn_id: str
    stop: Stop = Stop.ANSWERED
    citations: tuple[Citation, ...] = ()
    cited: tuple[str, ...] = ()  # the marks of those it relied on
    tokens: int = 0
    is_offline: bool = False  # no model was asked


def stored_reply(record: Record | None, turn_id: str) -> Reply:
    """An answer as it is stored; of a turn that has none, such as a reset, an empty one."""
    if record is None:
        return Reply(text="", turn_id=turn_id)
    return Reply(
        text=record.content,
        turn_id=turn_id,
        stop=Stop(record.metadata.get("stop", Stop.ANSWERED)),
        is_offline=record.metadata.get("responder") == "offline",
    )


class Ticket:
    """A message that was posted. `result()` waits for its outcome."""

    def __init__(self, item_id: str, look: Callable[[], Reply | RecollectError | None]) -> None:
        self.id = item_id
        self._look = look
        self._lock = threading.Lock()
        self._settled = threading.Event()
        self._waiting: list[Callable[[], None]] = []
        self._outcome: Reply | RecollectError | None = None
        self.last_error: str | None = None  # of a try that failed and is made again

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set()

    def settle(self, outcome: Reply | RecollectError) -> None:
        """Set the outcome and wake the waiting callers; the first outcome counts."""
        with self._lock:
            if self._settled.is_set():
                return
            self._outcome = outcome
            self._settled.set()
            waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell()

    @contextmanager
    def telling(self, tell: Callable[[], None]) -> Iterator[None]:
        """Have it said when there is an outcome, for those who wait for other things as well."""
        with self._lock:
            is_settled = self._settled.is_set()
            if not is_settled:
                self._waiting.append(tell)
        if is_settled:
            tell()
        try:
            yield
        finally:
            with self._lock, suppress(ValueError):
                self._waiting.remove(tell)

    def look(self) -> None:
        """Ask the store whether another process has answered."""
        found = self._look()
        if found is not None:
            self.settle(found)

    def result(self, timeout: float | None = None) -> Reply:
        """The answer, from this process or another one.

        AnswerPending: there is none yet; it may come later. TurnFailed: there will be none.
        Gone: there was one, and it was deleted or forgotten.
        """
        waited = 0.0
        while not self._settled.is_set():
            step = POLL_SECONDS if timeout is None else min(POLL_SECONDS, timeout - waited)
            if step <= 0 or self._settled.wait(step):
                break
            waited += step
            self.look()
        return self.outcome(timeout)

    def outcome(self, waited: float | None = 0) -> Reply:
        """The answer if there is one, after so many seconds; raises as `result` does."""
        match self._outcome:
            case Reply():
                return self._outcome
            case None:
                why = f" ({self.last_error})" if self.last_error else ""
                raise AnswerPending(f"no answer after {waited or 0:g} s{why}; it may still come")
            case error:
                raise error


def respond(block: Context, asked: Collection[tuple[str, int]] = ()) -> str:
    """What memory says about a message, with where each line comes from; see `answers`."""
    best = answers(block, asked)
    if not best:
        return NOTHING
    return "\n".join([FROM_MEMORY, *(_line(citation) for citation in best)])


def answers(block: Context, asked: Collection[tuple[str, int]] = ()) -> tuple[Citation, ...]:
    """What of a block answers a message.

    `asked` are the records of the message itself, by session and seq: they answer nothing.
    """
    found = [each for each in block.citations if _answers(each) and not _is_among(each, asked)]
    return tuple(_best(found))


def _answers(citation: Citation) -> bool:
    """Whether it has words in common with the message, and is not a question itself."""
    hit = citation.hit
    is_question = hit.kind is EntryKind.RECORD and hit.text.rstrip().endswith("?")
    return not is_question and hit.why.get(WORDS, 0.0) > 0


def _is_among(citation: Citation, asked: Collection[tuple[str, int]]) -> bool:
    is_record = citation.hit.kind is EntryKind.RECORD
    return is_record and any((each.session_id, each.seq) in asked for each in citation.hit.sources)


def _best(citations: Sequence[Citation]) -> Sequence[Citation]:
    """Facts, where there are any: the rest says the same at greater length."""
    facts = [each for each in citations if each.hit.kind is EntryKind.FACT]
    return (facts or citations)[:ANSWERS_MAX]


def _line(citation: Citation) -> str:
    text = " ".join(citation.hit.text.split())
    if len(text) > ANSWER_CHARS_MAX:
        text = f"{text[:ANSWER_CHARS_MAX].rstrip()}…"
    sources = citation.sources or citation.hit.sources
    where = f"session {sources[0].session_id}, record {sources[0].seq}, " if sources else ""
    return f"- {text} ({where}{citation.hit.at:%Y-%m-%d})"
