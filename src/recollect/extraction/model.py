"""Extraction by a language model: what is sent, what is asked again, and how much at a time.

One call of `extract` makes a draft of as much as the model takes at once. Every call to the model
goes through `ask`, so that whoever owns the extractor can count it and cap it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path

from recollect.config import Settings
from recollect.errors import (
    CallCancelled,
    InvalidOutput,
    ModelError,
    ModelRejected,
    PromptTooLong,
)
from recollect.extraction.digest import Redact, one_line, shortened
from recollect.extraction.grounding import Grounds
from recollect.extraction.lines import parse_lines
from recollect.extraction.parse import ANSWER_SCHEMA, DEFAULT_LIMITS, Limits, handles_of, parse
from recollect.extraction.piece import Piece
from recollect.extraction.scope import scoped
from recollect.extraction.sections import Earlier
from recollect.extraction.transcript import Chunk, chunk, cost, fenced, quoted, render
from recollect.extraction.withheld import is_withheld
from recollect.knowledge import Draft, Fact
from recollect.models.prompts import Prompt, load_prompt
from recollect.models.protocol import Completion, Model, Request
from recollect.models.tokens import Calibration, estimate_request, estimate_tokens
from recollect.orders import commands

# A request and what it is for: `extract`, or `repair` of an answer that could not be used.
Ask = Callable[[Request, str], Completion]

PROMPTS = Path(__file__).parent / "prompts"
CHUNK_TOKENS_MIN = 200
HALVINGS_MAX = 6
WINDOW_MARGIN = 0.05  # of the window: the estimate of tokens is one
OUTPUT_SHARE_MAX = 0.35  # of a small window, for the answer
PREVIOUS_SHARE = 0.3  # of the answer's length, for what is shown of each of the two earlier texts
CHARS_PER_TOKEN = 3  # where a text is cut to tokens: rather too short
KNOWN_CHARS_MAX = 300
COMPLAINT_CHARS_MAX = 500
ANSWER_CHARS_SHOWN = 1500
_NOTHING = "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The texts a model is given. A file of the user's own has to have the same variables."""

    system: Prompt
    request: Prompt
    repair: Prompt

    @classmethod
    def load(cls, settings: Settings) -> Prompts:
        def prompt(name: str, *variables: str) -> Prompt:
            loaded = load_prompt(PROMPTS, name, settings.prompts_dir)
            loaded.fill(**dict.fromkeys(variables, ""))  # raises here rather than in every job
            return loaded

        is_lines = settings.model_structured == "lines"
        return cls(
            system=prompt("extract-lines" if is_lines else "extract"),
            request=prompt(
                "extract-request", "session", "previous", "known", "transcript", "words"
            ),
            repair=prompt("extract-repair", "request", "complaint", "answer"),
        )

    @property
    def version(self) -> str:
        """One version where all have the same, else each that there is."""
        return "-".join(dict.fromkeys(p.version for p in (self.system, self.request, self.repair)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the next call would take at most, and how far it would get."""

    input_tokens: int
    output_tokens: int
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sending:
    """A request and what its answer is read with: the blocks, handles and texts it shows."""

    request: Request
    piece: Piece
    handles: Mapping[str, Fact]
    earlier: Earlier


class _NoWholeAnswer(Exception):
    """The model gave no whole answer. Less material may get one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExtractor:
    """Makes drafts with a model. Safe to share between threads.

    The blocks of a piece are redacted; `redact` is for what else is sent. Without `ask` the model
    itself is asked.
    """

    model: Model
    settings: Settings
    ask: Ask | None = None
    prompts: Prompts | None = None  # none: those of the settings
    redact: Redact = str
    calibration: Calibration = field(default_factory=Calibration)

    def __post_init__(self) -> None:
        if self.prompts is None:
            object.__setattr__(self, "prompts", Prompts.load(self.settings))

    @property
    def name(self) -> str:
        kind = "lines" if self._is_lines else "prompt"
        return f"{self.model.name}/{kind}-{self._prompts.version}"

    def preview(self, piece: Piece) -> Request:
        """The request that would be sent next."""
        return self._sending(piece, 1).request

    def estimate(self, piece: Piece) -> Estimate:
        """What `extract` would take if the first answer can be used; nothing is sent."""
        if not piece.blocks:
            return Estimate(input_tokens=0, output_tokens=0, upto=piece.upto)
        sending = self._sending(piece, 1)
        counted = tokens_of(sending.request)
        return Estimate(
            input_tokens=round(counted * self.calibration.ratio),
            output_tokens=sending.request.output_tokens_max,
            upto=sending.piece.upto,
        )

    def extract(self, piece: Piece) -> Draft:
        if not piece.blocks:
            return Draft(upto=piece.upto)
        failure: ModelError | None = None
        sent = ""
        for halvings in range(HALVINGS_MAX + 1):
            sending = self._sending(piece, 2**halvings)
            if sending.request.prompt == sent:  # there is no less to send
                break
            sent = sending.request.prompt
            try:
                return self._draft(sending)
            except PromptTooLong as error:
                failure = ModelRejected(f"too long, however little is sent: {error}")
            except _NoWholeAnswer as error:
                is_second = isinstance(failure, InvalidOutput)
                failure = InvalidOutput(str(error))
                if is_second:
                    break
        assert failure is not None
        raise failure

    def _draft(self, sending: _Sending) -> Draft:
        """A draft of what is sent, asked for again while the answer cannot be used."""
        request, purpose = sending.request, "extract"
        for repairs_left in range(self.settings.extract_repairs, -1, -1):
            text = self._answer(request, purpose)
            try:
                return self._parsed(text, sending)
            except InvalidOutput as error:
                if repairs_left == 0:
                    raise
                complaint = one_line(str(error), COMPLAINT_CHARS_MAX)
            prompt = self._prompts.repair.fill(
                request=sending.request.prompt,
                complaint=fenced(complaint),
                answer=fenced(shortened(text, ANSWER_CHARS_SHOWN)),
            )
            request, purpose = replace(sending.request, prompt=prompt), "repair"
        raise AssertionError("the last repair returns or raises")

    def _answer(self, request: Request, purpose: str) -> str:
        if request.is_cancelled():
            raise CallCancelled("the session is somebody else's by now")
        try:
            completion = (
                self.model.complete(request) if self.ask is None else self.ask(request, purpose)
            )
        except InvalidOutput as error:  # of the call itself: cut off, empty, without end
            raise _NoWholeAnswer(str(error)) from error
        if not completion.usage.is_estimate:
            self.calibration.learn(
                estimated=tokens_of(request), counted=completion.usage.input_tokens
            )
        return completion.text

    def _parsed(self, text: str, sending: _Sending) -> Draft:
        limits = Limits(
            fact_chars_max=self.settings.fact_chars_max,
            memory_chars_max=min(self.settings.memory_chars_max, DEFAULT_LIMITS.memory_chars_max),
        )
        if self._is_lines:
            draft = parse_lines(text, sending.piece, limits)
        else:
            draft = parse(text, sending.piece, sending.handles, limits, self.redact)
        grounds = Grounds(sending.piece)
        slug = draft.rollout_slug
        draft = replace(
            draft,
            raw_memory=grounds.told(draft.raw_memory),
            rollout_summary=grounds.told(draft.rollout_summary),
            rollout_slug=None if slug and commands(slug) else slug,
            facts=tuple(fact for fact in draft.facts if not is_withheld(fact)),
        )
        if not self._is_lines and not draft.is_empty:
            draft = sending.earlier.grown(draft)
        project = sending.piece.session.project
        return scoped(draft, self.redact(project) if project else None)

    def _sending(self, piece: Piece, divisor: int) -> _Sending:
        """What is sent of a piece: all that fits, or that part of it."""
        handles = _some(handles_of(piece), divisor)
        output_tokens = self._output_tokens
        share = int(output_tokens // divisor * PREVIOUS_SHARE * CHARS_PER_TOKEN)
        chars_max = max(share, KNOWN_CHARS_MAX)
        said = "\n".join(block.text for block in piece.blocks)
        earlier = Earlier.of(piece.previous, said, chars_max)
        around = {
            "session": _session(piece, self.redact),
            "previous": earlier.rendered(self.redact, chars_max) or _NOTHING,
            "known": self._known(handles),
            "words": f"{output_tokens // 2:,}",
        }
        system = self._prompts.system.fill()
        empty = self._request(piece, system, {**around, "transcript": ""})
        part = self._part(piece, self._room(empty, output_tokens), divisor)
        is_rest = part.taken == len(piece.blocks)
        upto = piece.upto if is_rest else piece.blocks[part.taken].seq - 1
        shown = replace(piece, blocks=part.blocks, upto=upto)
        transcript = render(shown.blocks, is_background=piece.is_background)
        return _Sending(
            request=self._request(piece, system, {**around, "transcript": transcript}),
            piece=shown,
            handles=handles,
            earlier=earlier,
        )

    def _part(self, piece: Piece, room: int, divisor: int) -> Chunk:
        """What fits into the room, or a fraction of that."""
        estimate = self.calibration.estimate
        most = chunk(piece.blocks, max(room, CHUNK_TOKENS_MIN), estimate)
        if divisor == 1:
            return most
        budget = cost(most.blocks, estimate) // divisor
        return chunk(piece.blocks, max(budget, CHUNK_TOKENS_MIN), estimate)

    def _request(self, piece: Piece, system: str, values: Mapping[str, str]) -> Request:
        return Request(
            system=system,
            prompt=self._prompts.request.fill(**values),
            schema=None if self._is_lines else ANSWER_SCHEMA,
            schema_name="memory",
            output_tokens_max=self._output_tokens,
            is_cancelled=piece.is_lost,
        )

    @property
    def _is_lines(self) -> bool:
        return self.settings.model_structured == "lines"

    @property
    def _prompts(self) -> Prompts:
        assert self.prompts is not None
        return self.prompts

    @property
    def _output_tokens(self) -> int:
        share = int(self.model.window_tokens * OUTPUT_SHARE_MAX)
        return min(self.settings.model_output_tokens_max, share)

    def _room(self, empty: Request, output_tokens: int) -> int:
        """The tokens that are left for a transcript, a later complaint included."""
        repair = 0
        if self.settings.extract_repairs:
            shown_chars = COMPLAINT_CHARS_MAX + ANSWER_CHARS_SHOWN
            repair = estimate_tokens(self._prompts.repair.text) + shown_chars // CHARS_PER_TOKEN
        taken = round((tokens_of(empty) + repair) * self.calibration.ratio) + output_tokens
        window = int(self.model.window_tokens * (1 - WINDOW_MARGIN))
        return min(window - taken, self.settings.extract_chunk_tokens)

    def _known(self, handles: Mapping[str, Fact]) -> str:
        lines = [
            f"{handle} {_about(fact)}{one_line(self.redact(fact.content), KNOWN_CHARS_MAX)}"
            for handle, fact in handles.items()
        ]
        return fenced("\n".join(lines)) if lines else _NOTHING


def _some(handles: Mapping[str, Fact], divisor: int) -> dict[str, Fact]:
    """As many of the known facts as a smaller request has room for; the first are the likeliest."""
    return dict(list(handles.items())[: len(handles) // divisor])


def _about(fact: Fact) -> str:
    day = None if fact.valid_from is None else f"{fact.valid_from.astimezone(UTC):%Y-%m-%d}"
    topic = None if fact.topic is None else f"topic {quoted(fact.topic)}"
    told = ", ".join(each for each in (day, topic) if each)
    return f"({told}): " if told else ": "


def _session(piece: Piece, redact: Redact) -> str:
    """What is known about the session itself: nothing that names a space, a key or an id."""

    def lines() -> Iterator[str]:
        if piece.is_background:
            yield "A background session: no person takes part."
        else:
            yield "A session of a person with an agent."
        if piece.session.project:
            yield f"Project: {quoted(redact(piece.session.project))}"
        if piece.first > 1:
            yield f"Records before #{piece.first} have been dealt with."

    return "\n".join(lines())


def tokens_of(request: Request) -> int:
    """The tokens of a request by the plain estimate: all that is sent is counted."""
    return estimate_request(request)
