"""Extraction by a model: what it is sent of a piece, and what becomes of its answer."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path

from recollect.config import Settings
from recollect.errors import CallCancelled, InvalidOutput, ModelError, ModelRejected, PromptTooLong
from recollect.extraction.grounding import Grounds, held_tag, seated_people
from recollect.extraction.parse import (
    ANSWER_SCHEMA,
    DEFAULT_LIMITS,
    AnswerLimits,
    handles_of,
    lead_of,
    merged,
    parse,
    plain,
)
from recollect.extraction.parts import Earlier
from recollect.extraction.piece import BlockKind, Piece
from recollect.extraction.scope import scoped
from recollect.extraction.transcript import (
    Redact,
    TranscriptChunk,
    chunk,
    cleaned,
    cost,
    fenced,
    one_line,
    quoted,
    render,
    shortened,
)
from recollect.messages import Role
from recollect.models.prompts import Prompt, load_prompt
from recollect.models.protocol import Completion, Model, Request
from recollect.models.tokens import Calibration, estimate_request, estimate_tokens
from recollect.patterns import LazyPattern
from recollect.types.facts import Draft, Fact, FactFaults, FactTag, NewFact

CLAUSE_WORDS_MIN = 4  # what has fewer says nothing beside the secret: "keep it safe"
_CLAUSE = LazyPattern(r"[,;]\s|\.\s|\s(?:and|but|so)\s")
# By itself: the address of a database is worth knowing without the password in it.
_SECRET = LazyPattern(r"(?<![^\s\"“'‘`(])\[redacted:[a-z0-9-]{1,64}:[0-9a-f]{8}\](?![\w/@:])")
# A command that worked is worth knowing without the token in it.
_DONE = frozenset({FactTag.PROCEDURE.value, FactTag.LESSON.value})


def is_withheld(fact: NewFact) -> bool:
    """Whether every clause that says something says a secret, which nobody can read any more."""
    if "[redacted:" not in fact.content or not _DONE.isdisjoint(fact.tags):
        return False
    clauses = _CLAUSE.split(fact.content)
    hidden = [clause for clause in clauses if _SECRET.search(clause)]
    plain = [clause for clause in clauses if not _SECRET.search(clause)]
    return bool(hidden) and all(len(clause.split()) < CLAUSE_WORDS_MIN for clause in plain)


_BULLET = re.compile(r"(?:[-*+•‣◦⁃∙·–—]|\(?\d{1,3}[.):]|\(?[a-z][.)])\s+(?:\[[ xX]\]\s+)?")
_EMPHASIS = re.compile(r"(\*\*|__|`)(.+?)\1")
_KIND = re.compile(rf"\[?({'|'.join(FactTag)})\]?\s*[:–—-]\s+", re.IGNORECASE)
_EDGES = " \t.,;:!?*_`'\"“”‘’()[]{}<>-–—…•#"
_NONES = (
    "none nothing null nil n/a na no empty nada ninguno ninguna nichts keine aucun aucune rien "
    "nessuno nessuna nenhum nenhuma geen niets ingen inga нет ничего 无 沒有 没有 なし 없음"
)
_NONE = frozenset(_NONES.split())
_NONE_SIGNS = frozenset({"-", "–", "—", "[]", "{}", "()", '""'})  # alone on a line
BULLETS_MAX = 3  # of one line: "- 1. (a) …"
NONE_CHARS_MAX = 200  # a longer line says something
_NO_FACTS = re.compile(
    r"(?:there (?:is|are|was|were) |i (?:found|see|have) |contains? )?"
    r"(?:no|none|nothing|not any)"
    r"(?: (?:of|the|new|relevant|durable|lasting|useful|memorable|user))*"
    r"(?: (?:facts?|memor(?:y|ies)|information|items?|things?|statements?|preferences?|note))?"
    r"(?: (?:found|here|worth|was|were|are|is|to|be|been|found|remember(?:ed|ing)?|extract(?:ed)?"
    r"|record(?:ed)?|report(?:ed)?|add(?:ed)?|store[d]?|save[d]?|note[d]?|new|available|present"
    r"|in|this|the|conversation|transcript|session))*",
    re.IGNORECASE,
)


def parse_lines(text: str, piece: Piece, limits: AnswerLimits = DEFAULT_LIMITS) -> Draft:
    """The draft that some lines stand for. "None", however it is spelt, is an empty one."""
    if len(text) > limits.answer_chars_max:
        raise InvalidOutput(f"the answer has {len(text):,} characters; be far shorter")
    given = [line for each in cleaned(text).splitlines() if (line := _bare(each))]
    if not given:
        raise InvalidOutput("the answer is empty; answer one fact per line, or none")
    lines = [line for line in given if not is_none(line) and not line.endswith(":")]
    if not lines and any(is_none(line) for line in given):
        return Draft(upto=piece.upto)
    grounds = Grounds(piece)
    read = [_fact(line, grounds, limits) for line in lines[: limits.facts_max]]
    facts = [fact for fact in read if fact is not None]
    if not facts:
        raise InvalidOutput("no line says anything the transcript says; answer none if that is so")
    faults = FactFaults(dropped=len(lines) - len(facts))
    return replace(_draft(merged(facts), piece), faults=faults)


def is_listed(text: str) -> bool:
    """Whether a text is a list of facts, rather than prose: each line has a bullet or its kind."""
    lines = [line.lstrip() for line in text.splitlines() if line.strip(_EDGES)]
    said = [line for line in lines if not line.startswith("#") and not line.endswith(":")]
    return bool(said) and all(_BULLET.match(line) or _KIND.match(_bare(line)) for line in said)


def is_none(line: str) -> bool:
    """Whether a line says that there is nothing."""
    if len(line) > NONE_CHARS_MAX:
        return False
    bare = " ".join(line.casefold().strip(_EDGES).split())
    return bare in _NONE or line.strip() in _NONE_SIGNS or bool(bare and _NO_FACTS.fullmatch(bare))


def _bare(line: str) -> str:
    """A line without bullet, number and emphasis; headings, rules and code fences are no lines."""
    line = plain(line.lstrip().removeprefix("| "))  # small models repeat how they were shown it
    if line in _NONE_SIGNS:
        return line
    if line.startswith(("```", "#")) or not line.strip(_EDGES):
        return ""
    for _ in range(BULLETS_MAX):
        bullet = _BULLET.match(line)
        line = line[bullet.end() :] if bullet else line
    return _EMPHASIS.sub(r"\2", line)


def _fact(line: str, grounds: Grounds, limits: AnswerLimits) -> NewFact | None:
    """What a line says, if it is short enough to be one fact and has words of the transcript."""
    kind = _KIND.match(line)
    content = line[kind.end() :] if kind else line
    block = grounds.best(content) if len(content) <= limits.fact_chars_max else None
    if block is None:
        return None
    tag = FactTag(kind[1].lower()) if kind else FactTag.OBSERVATION
    trust = grounds.trust(content, (block,))
    return NewFact(
        content=content,
        seq=block.seq,
        seq_to=block.seq,
        valid_from=block.at,
        trust=trust,
        quote=lead_of(block),
        tags=(held_tag(tag, trust).value,),
    )


def _draft(facts: tuple[NewFact, ...], piece: Piece) -> Draft:
    """The texts that such a model does not write are made of the facts, after those there were."""
    before = piece.previous
    known = "" if before is None else before.raw_memory
    told = "" if before is None else before.rollout_summary
    new = [fact.content for fact in facts if fact.content not in known]
    return Draft(
        upto=piece.upto,
        raw_memory="\n".join([*([known] if known else []), *(f"- {content}" for content in new)]),
        rollout_summary="\n".join([*([told] if told else []), *map(_sentence, new)]),
        rollout_slug=None if before is None else before.rollout_slug,
        facts=facts,
    )


def _sentence(content: str) -> str:
    return content if content.endswith((".", "!", "?", "。")) else content + "."


# A request and what it is for: `extract`, or `repair` of an answer that could not be used.
Ask = Callable[[Request, str], Completion]

PROMPTS = Path(__file__).parent / "prompts"
CHUNK_TOKENS_MIN = 200
JSON_WINDOW_TOKENS_MIN = 4096  # in a smaller one the form alone takes half of the room
HALVINGS_MAX = 6
WINDOW_MARGIN = 0.05  # of the window: the estimate of tokens is one
OUTPUT_SHARE_MAX = 0.35  # of a small window, for the answer
PREVIOUS_SHARE = 0.3  # of the answer's length, for what is shown of each of the two earlier texts
CHARS_PER_TOKEN = 3  # where a text is cut to tokens: rather too short
KNOWN_CHARS_MAX = 300
COMPLAINT_CHARS_MAX = 500
ANSWER_CHARS_SHOWN = 1500
SPEAKERS_MAX = 20
_NOTHING, _FORM = "(none)", "form"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The texts a model is given. A file of the user's own has to have the same variables.

    Work and talk are remembered in forms of their own, of which one stands in the system prompt, if
    that has a place for it.
    """

    system: Prompt
    lines: Prompt  # for a small window, and for a model whose JSON cannot be read
    forms: Mapping[str, Prompt]
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
            system=prompt("extract-lines") if is_lines else prompt("extract", _FORM),
            lines=prompt("extract-lines"),
            forms={form: prompt(f"extract-{form}") for form in ("task", "chat")},
            request=prompt(
                "extract-request", "session", "previous", "known", "transcript", "words"
            ),
            repair=prompt("extract-repair", "request", "complaint", "answer"),
        )

    def system_for(self, piece: Piece) -> str:
        """The system prompt with the form that fits a piece."""
        if _FORM not in self.system.variables:
            return self.system.fill()
        return self.system.fill(**{_FORM: self.forms["task" if is_work(piece) else "chat"].text})

    @property
    def version(self) -> str:
        """One version where all have the same, else each that there is."""
        all_of_them = (self.system, *self.forms.values(), self.request, self.repair)
        return "-".join(dict.fromkeys(each.version for each in all_of_them))


def is_work(piece: Piece) -> bool:
    """Whether something is worked on: in a project, with tools, or by programs alone."""
    tools = (BlockKind.CALL, BlockKind.RESULT)
    has_tools = any(block.kind in tools for block in piece.blocks)
    is_placed = bool(piece.session.project) and not seated_people(piece)
    return has_tools or piece.is_background or is_placed


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
                return self._understood(text, sending)
            except InvalidOutput as error:
                if repairs_left == 0:
                    return self._asked_in_lines(sending, error)
                complaint = one_line(str(error), COMPLAINT_CHARS_MAX)
            prompt = self._prompts.repair.fill(
                request=sending.request.prompt,
                complaint=fenced(complaint),
                answer=fenced(shortened(text, ANSWER_CHARS_SHOWN)),
            )
            request, purpose = replace(sending.request, prompt=prompt), "repair"
        raise AssertionError("the last repair returns or raises")

    def _understood(self, text: str, sending: _Sending) -> Draft:
        """A draft of an answer that is in form, or that says in lines what it should in JSON."""
        try:
            return self._parsed(text, sending, is_lines=self._is_lines)
        except InvalidOutput:
            if not self._may_be_lines or not is_listed(text):
                raise
            with contextlib.suppress(InvalidOutput):
                draft = self._parsed(text, sending, is_lines=True)
                if draft.facts:  # it was not asked to say none, so that is no answer
                    return draft
            raise

    def _asked_in_lines(self, sending: _Sending, error: InvalidOutput) -> Draft:
        """A draft of the form that any model can answer in, where its JSON cannot be used."""
        if not self._may_be_lines or not self.settings.extract_repairs:
            raise error
        system = self._prompts.lines.fill()
        text = self._answer(replace(sending.request, system=system, schema=None), "repair")
        is_json = text.lstrip().startswith(("{", "```"))  # it puts right what it began with
        return self._parsed(text, sending, is_lines=not is_json)

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

    def _parsed(self, text: str, sending: _Sending, *, is_lines: bool) -> Draft:
        piece = sending.piece
        limits = AnswerLimits(
            fact_chars_max=self.settings.fact_chars_max,
            memory_chars_max=min(self.settings.memory_chars_max, DEFAULT_LIMITS.memory_chars_max),
        )
        if is_lines:
            draft = parse_lines(text, piece, limits)
        else:
            draft = parse(text, piece, sending.handles, limits, self.redact, sending.earlier)
        draft = replace(draft, facts=tuple(fact for fact in draft.facts if not is_withheld(fact)))
        if draft.is_empty and draft.faults.dropped:
            raise InvalidOutput(
                "nothing of the answer can be used: no fact, and only orders besides"
            )
        return scoped(draft, self.redact(project) if (project := piece.session.project) else None)

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
            "known": self._known(handles, piece.topics),
            "words": f"{output_tokens // 2:,}",
        }
        is_lines = self._is_lines
        system = self._prompts.lines.fill() if is_lines else self._prompts.system_for(piece)
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

    def _part(self, piece: Piece, room: int, divisor: int) -> TranscriptChunk:
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
        is_small = self.model.window_tokens < JSON_WINDOW_TOKENS_MIN
        return self.settings.model_structured == "lines" or (self._is_free and is_small)

    @property
    def _is_free(self) -> bool:
        return self.settings.model_structured == "auto"

    @property
    def _may_be_lines(self) -> bool:
        """Whether lines will do although JSON was asked for."""
        return self._is_free and not self._is_lines

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

    def _known(self, handles: Mapping[str, Fact], topics: Sequence[str]) -> str:
        lines = [
            f"{handle} {_about(fact)}{one_line(self.redact(fact.content), KNOWN_CHARS_MAX)}"
            for handle, fact in handles.items()
        ]
        if topics:
            lines.append(f"topics in use: {', '.join(map(self.redact, topics))}")
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
        elif seated := seated_people(piece):
            yield "A conversation of people; no agent takes part."
            yield f"In the assistant's seat, a person as well: {named(seated)}"
        else:
            yield "A session of a person with an agent."
        said = [block for block in piece.blocks if block.kind is BlockKind.SAID and block.speaker]
        if users := {block.speaker for block in said if block.role is Role.USER}:
            yield f"In the user's seat: {named(users)}"
        if piece.session.project:
            yield f"Project: {quoted(redact(piece.session.project))}"
        if piece.first > 1:
            yield f"Records before #{piece.first} have been dealt with."

    def named(people: Iterable[str | None]) -> str:
        names = sorted(each for each in people if each)[:SPEAKERS_MAX]
        return ", ".join(quoted(redact(each)) for each in names)

    return "\n".join(lines())


def tokens_of(request: Request) -> int:
    """The tokens of a request by the plain estimate: all that is sent is counted."""
    return estimate_request(request)
