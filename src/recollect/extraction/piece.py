"""What goes into an extractor and what an extractor is: blocks of a session in, a draft out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from recollect.messages import Role
from recollect.types.facts import Draft, Extraction, Fact
from recollect.types.records import SessionState


class BlockKind(StrEnum):
    """What a block shows."""

    SAID = "said"  # words of a person or an agent
    CALL = "call"  # a tool was called: its arguments, as a digest
    RESULT = "result"  # what a tool answered, as a digest
    NOTE = "note"
    ATTACHMENT = "attachment"  # an image or a file, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One memory-relevant part of a record, redacted. Several blocks may stem from one record."""

    seq: int
    at: datetime
    role: Role
    kind: BlockKind
    text: str
    speaker: str | None = None  # the name that was given, where one was
    tool: str | None = None
    call_id: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a session, ready to be extracted: what is new, and what is known already.

    `upto` is the last record the piece covers; blocks may end before it, when the rest of its
    records have nothing to say. `known` are live facts that the new records may contradict, and
    `topics` are names of topics that the space has for such facts.
    """

    session: SessionState
    blocks: tuple[Block, ...]
    first: int
    upto: int
    previous: Extraction | None
    known: tuple[Fact, ...] = ()
    topics: tuple[str, ...] = ()
    is_background: bool = False  # no person takes part: a cron job, a system agent, a sub-agent
    is_lost: Callable[[], bool] = lambda: False


class Extractor(Protocol):
    """Makes a draft of a piece: of all of it, or of as much as it can take at once (`upto`).

    Raises rather than guesses: an error is retried, a draft that says nothing is believed.
    """

    @property
    def name(self) -> str:
        """Which extractor made something, with its version: `rules/3`, `openai:gpt-x/prompt-3`."""
        ...

    def extract(self, piece: Piece) -> Draft: ...
