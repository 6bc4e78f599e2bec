"""Replays a person's own sessions, and finds what they had to say to an agent a second time.

Sessions go into a temporary store in order of time, each learned by rules before the next one that
began after its end. A statement that the rules find in what a person wrote counts if they wrote the
same in a session that had ended before. It was held if a line says it in the recap at the session's
start, in the block for the prompt before it, or in the one for the rest of its own prompt: its own
words ask nothing. A change of mind is new, and so is a rule in another project.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import count
from math import log

from recollect.benchmarks.ingest import Progress, SetClock, append
from recollect.collection import Message
from recollect.extraction.grounding import stems
from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.extraction.rules.extractor import RuleExtractor
from recollect.extraction.rules.sentences import sentences
from recollect.extraction.run import PieceReader
from recollect.extraction.scope import PROJECT_TAGS
from recollect.extraction.transcript import shortened
from recollect.hooks.context import at_prompt, at_start
from recollect.memory import Memory
from recollect.messages import Role
from recollect.models.tokens import estimate_tokens
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.stemming import STOP_WORDS, words
from recollect.types.facts import FactTag, Trust
from recollect.types.records import Record, SessionState

BUDGETS = (400, 800, 1000)
ALL = "all"
ALIKE_MIN = 0.5  # of the telling words of two sentences, by their worth, to say the same
TOLD_MIN = 0.8  # of the words they share, for a line to say it
SHORT_STEMS = 3  # a sentence with so few is the same only where the other has them all
TITLE_CHARS, QUOTE_CHARS = 60, 300
TYPED_CHARS_MAX = 1500  # what is longer was pasted

_LASTING = frozenset(FactTag) - {FactTag.EVENT, FactTag.COMMITMENT, FactTag.OBSERVATION}
_RULES = frozenset({FactTag.INSTRUCTION, FactTag.PREFERENCE, FactTag.CORRECTION})
_AGAIN = re.compile(
    r"\b(?:I(?:'ve| have)? (?:already |just )?(?:told|said|mentioned|asked)\b|as I (?:\w+ )?said|"
    r"like I said|how (?:many times|often) (?:do|must|should) I|once more:|(?:yet )?again[,:])",
    re.IGNORECASE,
)
_NOT_SO = re.compile(
    r"\s*(?:no(?! (?:problem|worries))|nope|wrong|stop|that's (?:wrong|not))\b", re.IGNORECASE
)
_NEGATED = re.compile(
    r"\b(?:not|never|no|none|without|stop|avoid|cannot|don't|\w+n't|instead of|rather than)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"`([^`\n]+ [^`\n]+)`")


class RetoldKind(StrEnum):
    """How something was said again."""

    REPEATED = "repeated"  # an instruction or a preference
    CORRECTED = "corrected"  # an agent did otherwise, and was told again
    EXPLAINED = "explained again"  # a fact, a decision, a command


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedSentence:
    """A sentence that a person said to an agent, and where."""

    text: str
    at: datetime
    session: str
    title: str  # how the session begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Retelling:
    """Something that was said again. `held` is what told it by budget; `tokens` are those it took.

    Of a correction these are also the tokens of what the agent had done since the prompt before.
    """

    kind: RetoldKind
    said: QuotedSentence
    before: QuotedSentence
    tokens: int
    held: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFound:
    """All of one kind: how many, and by budget the share that was held and the tokens saved."""

    found: int
    tokens: int
    held: Mapping[int, float]
    saved: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """What a replay came to. `recap_tokens` is what a session's recap took, on average."""

    sessions: int
    prompts: int
    statements: int
    recap_tokens: Mapping[int, int]
    kinds: Mapping[str, KindFound]
    retold: tuple[Retelling, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparedSentence:
    """A sentence of a prompt as it is compared. Its `tag`: the rules find a statement in it."""

    utterance: QuotedSentence
    stems: frozenset[str]
    block: Block
    project: str | None
    tag: FactTag | None

    @property
    def commands(self) -> list[str]:
        return _COMMAND.findall(self.utterance.text)

    def is_said_in(
        self, earlier: _ComparedSentence, weigh: Callable[[Iterable[str]], float]
    ) -> bool:
        """Whether the other says the same: no other number, no other way round."""
        if self.block.speaker != earlier.block.speaker:
            return False
        if self.tag is FactTag.CORRECTION and earlier.tag in _RULES and self._reminds_of(earlier):
            return True
        both, fewest = self.stems & earlier.stems, min(len(self.stems), len(earlier.stems))
        if fewest < SHORT_STEMS:
            is_alike = self.stems == earlier.stems and self.tag in _RULES and bool(earlier.tag)
        elif fewest == SHORT_STEMS:
            is_alike = len(both) == fewest and bool(earlier.tag)
        else:
            is_alike = weigh(both) >= ALIKE_MIN * weigh(self.stems | earlier.stems)
        return is_alike and _is_same_way(self.utterance.text, earlier.utterance.text)

    def _reminds_of(self, earlier: _ComparedSentence) -> bool:
        """Whether it has nothing but words of the other, on the same side of what negates."""
        text = _AGAIN.sub(" ", _NOT_SO.sub("", self.utterance.text))
        own, others = _sides(text), _sides(earlier.utterance.text)
        return any(own) and own[0] <= others[0] and own[1] <= others[1]


class Mining:
    """One replay. `own` is where the sessions are, and only read; `memory` was empty."""

    def __init__(self, own: Space, memory: Memory, clock: SetClock, progress: Progress) -> None:
        self._own = own
        self._memory = memory
        self._space = memory.space("bench")
        self._clock = clock
        self._progress = progress
        self._reader = PieceReader(
            store=memory.store, redactor=memory.runtime.redactor(), known_max=0
        )
        self._extractor = RuleExtractor()
        # By stem, and by command.
        self._heard: dict[str, list[_ComparedSentence]] = defaultdict(list)
        self._count = self._prompts = self._statements = 0
        self._recaps: list[Mapping[int, int]] = []

    def run(self) -> Mined:
        found: list[Retelling] = []
        going: list[tuple[datetime, int, Piece, Sequence[Record]]] = []
        sessions, order = self._sessions(), count()
        for number, (began, state) in enumerate(sessions):
            self._progress("sessions replayed", number, len(sessions))
            while going and going[0][0] < began:
                self._learn(*heapq.heappop(going)[2:])
            records = self._records(state)
            piece = self._reader.piece(state, records, None)
            if not piece.is_background:
                found += self._retold(piece, began)
            heapq.heappush(going, (records[-1].at, next(order), piece, records))
        self._progress("sessions replayed", len(sessions), len(sessions))
        return self._summed_up(len(sessions), found)

    def _sessions(self) -> list[tuple[datetime, SessionState]]:
        """Those that may be remembered and hold anything, by when they began."""
        found, last = [], None
        while page := self._own.sessions.list(LIST_MAX, last):
            for state in page:
                first = self._own.sessions.records(state.id, 0, 1) if state.remembered else ()
                found += [(record.at, state) for record in first]
            last = page[-1]
        return sorted(found, key=lambda each: (each[0], each[1].id))

    def _records(self, state: SessionState) -> list[Record]:
        found: list[Record] = []
        while page := self._own.sessions.records(state.id, found[-1].seq if found else 0):
            found += page
        return found

    def _learn(self, piece: Piece, records: Sequence[Record]) -> None:
        """Have a session in the store and learned from, and keep what was said for comparison."""
        state = piece.session
        handle = self._space.session(
            ("mine", state.id), source="bench", project=state.project, parent=state.parent
        )
        messages = [
            Message(message=each.message, at=each.at, metadata=each.metadata) for each in records
        ]
        append(handle, messages, self._clock, self._memory.settings.batch_records_max)
        self._memory.work(all=True, space=self._space.name)
        for said in self._said(piece):
            self._count += 1
            for key in (*said.stems, *said.commands):
                self._heard[key].append(said)

    def _retold(self, piece: Piece, began: datetime) -> Iterator[Retelling]:
        """What a session says again, told or not by what its agent would have been given."""
        project = piece.session.project
        self._clock.set(began)
        recaps = {
            budget: at_start(self._memory, self._space.name, project, max_tokens=budget).text
            for budget in BUDGETS
        }
        self._recaps.append({budget: estimate_tokens(text) for budget, text in recaps.items()})
        self._prompts += sum(1 for _ in _prompts(piece))
        counted: set[str] = set()  # said twice in one session it is one retelling
        for said in self._said(piece):
            if said.tag not in _LASTING:
                continue
            self._statements += 1
            before = self._before(said)
            if before is None or before.utterance.text in counted:
                continue
            counted.add(before.utterance.text)
            kind = _kind(said, piece)
            tokens = estimate_tokens(said.utterance.text)
            if kind is RetoldKind.CORRECTED:
                tokens += _undone(piece, said.block)
            yield Retelling(
                kind=kind,
                said=said.utterance,
                before=before.utterance,
                tokens=tokens,
                held=self._held(said, before, piece, recaps),
            )

    def _said(self, piece: Piece) -> Iterator[_ComparedSentence]:
        """What a person states in a session, and the other sentences that ask nothing.

        What an agent found to work counts as said.
        """
        prompts = {block.seq: block for block in _prompts(piece)}
        first = next(iter(prompts.values()), None)
        if first is None or piece.is_background:
            return
        title = shortened(_plain(first.text), TITLE_CHARS)

        def said(text: str, block: Block, tag: FactTag | None) -> _ComparedSentence:
            return _ComparedSentence(
                utterance=QuotedSentence(
                    text=_plain(text)[:QUOTE_CHARS],
                    at=block.at,
                    session=piece.session.id,
                    title=title,
                ),
                stems=_telling(text),
                block=block,
                project=piece.session.project,
                tag=tag,
            )

        stated: list[tuple[int, str]] = []
        for fact in self._extractor.extract(piece).facts:
            tag, block = FactTag(fact.tags[0]), prompts.get(fact.seq)
            if tag is FactTag.PROCEDURE:
                yield replace(said(fact.content, block or first, None), stems=frozenset())
            elif block is not None and fact.trust is Trust.USER:
                stated.append((block.seq, _plain(fact.quote)))
                # What happened on a day is told once.
                yield said(fact.quote, block, None if "date" in fact.metadata else tag)
        for block in prompts.values():
            for at, text in enumerate(map(_plain, sentences(block.text))):
                if any(seq == block.seq and (text in q or q in text) for seq, q in stated):
                    continue
                if _AGAIN.search(text) or (at == 0 and _NOT_SO.match(text)):
                    yield said(text, block, FactTag.CORRECTION)
                elif _COMMAND.search(text) or "?" not in text:
                    yield said(text, block, FactTag.PROCEDURE if _COMMAND.search(text) else None)

    def _weight(self, stems: Iterable[str]) -> float:
        """What telling words are worth: the rarer in what was said so far, the more."""
        return sum(log(1 + self._count / (1 + len(self._heard.get(stem, ())))) for stem in stems)

    def _before(self, said: _ComparedSentence) -> _ComparedSentence | None:
        """The latest of an earlier session that says the same."""
        known = {id(each): each for stem in said.stems for each in self._heard.get(stem, ())}
        same = [each for each in known.values() if said.is_said_in(each, self._weight)]
        same += [each for command in said.commands for each in self._heard.get(command, ())]
        if said.tag in PROJECT_TAGS:
            same = [each for each in same if each.project in (None, said.project)]
        return max(same, key=lambda each: each.utterance.at, default=None)

    def _held(
        self,
        said: _ComparedSentence,
        before: _ComparedSentence,
        piece: Piece,
        recaps: Mapping[int, str],
    ) -> dict[int, str]:
        """What told it within each budget: recap or prompt; empty: nothing did."""
        earlier = [block for block in _prompts(piece) if block.seq < said.block.seq]
        own = map(_plain, sentences(said.block.text))
        rest = " ".join(text for text in own if not said.stems & _telling(text))
        asked = [(earlier[-1].text, earlier[-1].at)] if earlier else []
        asked += [(rest, said.block.at)] if rest else []
        found = {}
        for budget in BUDGETS:
            found[budget] = "recap" if _tells(recaps[budget], said, before) else ""
            for prompt, at in () if found[budget] else asked:
                self._clock.set(at)
                name, project = self._space.name, piece.session.project
                block = at_prompt(self._memory, name, project, prompt, max_tokens=budget)
                if _tells(block.text, said, before):
                    found[budget] = "prompt"
        return found

    def _summed_up(self, sessions: int, found: Sequence[Retelling]) -> Mined:
        by_kind = {kind.value: [each for each in found if each.kind is kind] for kind in RetoldKind}
        return Mined(
            sessions=sessions,
            prompts=self._prompts,
            statements=self._statements,
            recap_tokens={
                budget: sum(each[budget] for each in self._recaps) // max(len(self._recaps), 1)
                for budget in BUDGETS
            },
            kinds={name: _summed(of) for name, of in (by_kind | {ALL: found}).items() if of},
            retold=tuple(sorted(found, key=lambda each: -each.tokens)),
        )


def _summed(found: Sequence[Retelling]) -> KindFound:
    return KindFound(
        found=len(found),
        tokens=sum(each.tokens for each in found),
        held={
            budget: sum(bool(each.held[budget]) for each in found) / len(found)
            for budget in BUDGETS
        },
        saved={
            budget: sum(each.tokens for each in found if each.held[budget]) for budget in BUDGETS
        },
    )


def _prompts(piece: Piece) -> Iterator[Block]:
    """What a person typed."""
    for block in piece.blocks:
        is_said = block.kind is BlockKind.SAID and block.role is Role.USER
        if is_said and len(block.text) <= TYPED_CHARS_MAX:
            yield block


def _telling(text: str) -> frozenset[str]:
    return stems(" ".join(word for word in words(text).split() if word not in STOP_WORDS))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _is_same_way(text: str, other: str) -> bool:
    is_negated = [bool(_NEGATED.search(each)) for each in (text, other)]
    numbers = [frozenset(re.findall(r"\d[\d.,:]*", each)) for each in (text, other)]
    return is_negated[0] == is_negated[1] and numbers[0] == numbers[1]


def _sides(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The telling words before what negates, and those behind it."""
    negated = _NEGATED.search(text)
    start, end = negated.span() if negated else (len(text), len(text))
    return _telling(text[:start]), _telling(text[end:])


def _tells(block: str, said: _ComparedSentence, before: _ComparedSentence) -> bool:
    """Whether a line of a block says what was said twice."""
    if said.commands:
        return any(command in block for command in said.commands)
    both = said.stems & before.stems
    sought = both if len(both) >= SHORT_STEMS else before.stems  # "No, pnpm" is all of the rule
    least = len(sought) if len(sought) <= SHORT_STEMS else TOLD_MIN * len(sought)
    return any(len(sought & _telling(line)) >= least for line in block.splitlines())


def _kind(said: _ComparedSentence, piece: Piece) -> RetoldKind:
    is_answer = any(
        block.seq < said.block.seq and block.role is Role.ASSISTANT for block in piece.blocks
    )
    is_no = _NOT_SO.match(said.block.text) or _AGAIN.search(said.utterance.text)
    if is_answer and (is_no or said.tag is FactTag.CORRECTION):
        return RetoldKind.CORRECTED
    return RetoldKind.REPEATED if said.tag in _RULES else RetoldKind.EXPLAINED


def _undone(piece: Piece, corrected: Block) -> int:
    """The tokens of what an agent had said and done since the prompt before."""
    tokens = 0
    for block in piece.blocks:
        if block.seq >= corrected.seq:
            break
        is_prompt = block.kind is BlockKind.SAID and block.role is Role.USER
        tokens = 0 if is_prompt else tokens + estimate_tokens(block.text)
    return tokens
