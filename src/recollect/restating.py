"""Takes out of a session's texts what is not said any more, or says there what is said instead.

Owns that a fact that was corrected, deleted or forgotten does not live on in a summary. Pure. A
text is gone through line by line and sentence by sentence: a sentence goes that makes a statement,
quotes the words it was learned from, or has all the words that either of them is known by. What
says it in other words is not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from recollect.patterns import LazyPattern
from recollect.stemming import search_terms, stem, words
from recollect.types.facts import content_key

SAYING_WORDS_MIN = 3  # fewer are nobody's words in particular
TERMS_MIN = 2  # by which a sentence is taken for the statement
CUT_WORDS_MIN = 5  # of a line that was cut off
LINE_CHARS_MAX = 300  # of what is said instead
LEFT_OUT = "…"

_TOKEN = LazyPattern(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*")
_UNSPACED = LazyPattern(
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
_FRAME = LazyPattern(r"\s*(?:(?:>|[-*+•]|\d{1,3}[.)]|#{1,6}|\[[ xX]\])\s+)*")
_LABEL = LazyPattern(r"[^\W_][^:\n]{0,40}: (?=\S)")
_ENDS = LazyPattern(r"[.!?…]+[\"'”’)\]*_]*(?=\s)|[。！？]|;(?=\s)")
_STOPS = ".!?。！？"
_KEYWORDS = "keywords: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """A statement that is not made any more: what it said, and the words it was learned from.

    What it said first stands first: that is what those words say. `keys` are of statements of which
    no word is kept. `instead` is what is said now, if anything.
    """

    statements: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTexts:
    """What a session came to, in words."""

    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None

    @property
    def is_empty(self) -> bool:
        return not (self.raw_memory.strip() or self.rollout_summary.strip())


def restated(texts: SessionTexts, gone: Iterable[Withdrawn], kept: Collection[str]) -> SessionTexts:
    """The texts without what is gone; `kept` are statements that stand, whatever they share."""
    stand = frozenset(map(content_key, kept))
    for each in gone:
        texts = _restated(texts, _Wanted.of(each, stand))
    return texts


def is_telling(quote: str) -> bool:
    """Whether a quote has words enough to be known again by."""
    return len(words(quote).split()) >= SAYING_WORDS_MIN


class _Match(Enum):
    """How a sentence says what is gone."""

    STATEMENT = auto()
    QUOTE = auto()  # in the words it was learned from, or in others that are much like it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """A text as it is known again."""

    key: str
    tokens: tuple[str, ...]
    terms: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Words:
        tokens = tuple(token for token, _, _ in _tokens(text))
        return cls(key=content_key(text), tokens=tokens, terms=_terms(text))

    def is_within(self, terms: frozenset[str]) -> bool:
        return len(self.terms) >= TERMS_MIN and self.terms <= terms


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is looked for, and what is said in its place."""

    statements: tuple[_Words, ...]
    quotes: tuple[_Words, ...]
    keys: frozenset[str]
    kept: frozenset[str]
    instead: str

    @classmethod
    def of(cls, gone: Withdrawn, kept: frozenset[str]) -> _Wanted:
        instead = " ".join(gone.instead.split())
        if len(instead) > LINE_CHARS_MAX:
            instead = instead[: LINE_CHARS_MAX - 1] + LEFT_OUT
        stands = kept | {content_key(gone.instead)} if instead else kept
        said = [_Words.of(text) for text in dict.fromkeys(gone.statements)]
        quoted = [_Words.of(text) for text in dict.fromkeys(gone.quotes) if is_telling(text)]
        new = _terms(instead)
        is_as_learned = bool(instead and said) and said[0].key == content_key(gone.instead)
        return cls(
            statements=tuple(each for each in said if each.tokens and each.key not in stands),
            # What is said now may be what those words say.
            quotes=tuple(
                each for each in quoted if not is_as_learned and not (instead and each.terms <= new)
            ),
            keys=gone.keys - stands,
            kept=stands,
            instead=instead,
        )

    def match(self, sentence: str) -> _Match | None:
        bare = sentence.strip()
        label = _LABEL.match(bare)
        keys = {content_key(bare), content_key(bare[label.end() :] if label else bare)}
        if not bare or keys & self.kept:
            return None
        tokens = tuple(token for token, _, _ in _tokens(bare))
        if any(_says(each, keys, tokens, bare) for each in self.statements):
            return _Match.STATEMENT
        terms = _terms(bare)
        is_like = any(each.is_within(terms) for each in (*self.statements, *self.quotes))
        is_quote = any(_says(each, keys, tokens, bare) for each in self.quotes)
        return _Match.QUOTE if is_like or is_quote or keys & self.keys else None

    def spans(self, text: str) -> Iterator[tuple[int, int, _Match]]:
        """Where a statement or a quote stands word by word, as it may over several sentences."""
        tokens = list(_tokens(text))
        for said, match in (
            *((each.tokens, _Match.STATEMENT) for each in self.statements),
            *((each.tokens, _Match.QUOTE) for each in self.quotes),
        ):
            for at in _runs(said, [token for token, _, _ in tokens]):
                yield tokens[at][1], tokens[at + len(said) - 1][2], match


def _says(said: _Words, keys: Collection[str], tokens: tuple[str, ...], sentence: str) -> bool:
    is_cut = sentence.endswith(LEFT_OUT) and len(tokens) > CUT_WORDS_MIN
    return said.key in keys or (is_cut and said.tokens[: len(tokens) - 1] == tokens[:-1])


def _runs(said: tuple[str, ...], tokens: Sequence[str]) -> Iterator[int]:
    if len(said) < SAYING_WORDS_MIN:
        return
    for at in range(len(tokens) - len(said) + 1):
        if tokens[at] == said[0] and tuple(tokens[at : at + len(said)]) == said:
            yield at


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """The words of a text and where they stand; signs where a script writes no blanks."""
    for found in _TOKEN.finditer(text):
        word = found[0]
        if word.isascii() or _UNSPACED.search(word) is None:
            yield words(word).replace(" ", ""), found.start(), found.end()
        else:
            yield from ((sign, at, at + 1) for at, sign in enumerate(word, start=found.start()))


def _terms(text: str) -> frozenset[str]:
    """What a text is known by; that somebody likes something is part of it."""
    found = [stem(word) for word in search_terms(text, len(text))]
    return frozenset([*found, *(["like"] if "like" in words(text).split() else [])])


# a text


@dataclass(slots=True, kw_only=True)
class _Rewriting:
    """One text while it is gone through."""

    wanted: _Wanted
    fills: bool  # what is said now stands in the first place that is left, of what was like it
    is_said: bool = False
    dropped: int = 0

    def text(self, text: str) -> str:
        lines: list[str] = []
        emptied: set[int] = set()  # the headings that lost something
        for line in text.split("\n"):
            new = self._line(line)
            if new is not None:
                lines.append(new)
            elif (heading := _heading_above(lines)) is not None:
                emptied.add(heading)
        while emptied:
            place = max(emptied)
            emptied.remove(place)
            if _is_bare(lines, place):
                del lines[place]
                above = _heading_above(lines[:place])
                emptied |= set() if above is None else {above}
        if not self.dropped:
            return "\n".join(lines)
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    def _line(self, line: str) -> str | None:
        """The line as it is from now on, none if nothing is left of it."""
        frame, body, note = _parts(line)
        if not body or line.startswith(_KEYWORDS) or content_key(body) in self.wanted.kept:
            return line
        label = _LABEL.match(body)
        is_single = len(list(_sentences(body))) == 1
        is_field = bool(label and not frame.strip() and " " not in label[0][:-2])
        is_name = is_single and ("#" in frame or is_field)
        whole = None if is_single else self.wanted.match(body)
        if whole is _Match.STATEMENT:
            kept: list[str] = self._instead(body, whole, is_name=is_name)
        elif (spoken := self._sentences(body, is_name=is_name)) is None:
            return line
        else:
            kept = spoken
        left = "".join(kept).strip()
        if left:
            return f"{frame}{left}{note}"
        self.dropped += 1
        if len(frame.strip()) > 1 and frame.strip().startswith("#"):
            return f"{frame}{label[0] if label else ''}{LEFT_OUT}"
        return None

    def _sentences(self, body: str, *, is_name: bool) -> list[str] | None:
        """What is left of a line; none: it has nothing of what is looked for."""
        spans = list(self.wanted.spans(body))
        kept: list[str] = []
        is_changed = False
        for start, end in _sentences(body):
            sentence = body[start:end]
            over = [each for each in spans if each[0] < end and start < each[1]]
            match = self.wanted.match(sentence)
            if match is None and (not over or content_key(sentence) in self.wanted.kept):
                kept.append(sentence)
                continue
            is_changed = True
            said = [each for each in over if each[2] is _Match.STATEMENT]
            within = [each for each in said if start <= each[0] and each[1] <= end]
            if within and self.wanted.instead:
                first, last, _ = within[0]
                self.is_said = True
                core = self.wanted.instead.rstrip(_STOPS + " ")
                kept.append(f"{body[start:first]}{core}{body[last:end]}")
            else:
                # One that goes over several sentences is replaced where it begins.
                is_begun = any(start <= each[0] for each in said)
                how = _Match.STATEMENT if is_begun else match or _Match.QUOTE
                kept += self._instead(sentence, how, is_name=is_name)
        return kept if is_changed else None

    def _instead(self, sentence: str, match: _Match, *, is_name: bool) -> list[str]:
        """What stands in the place of a sentence, if anything does."""
        new = self.wanted.instead
        is_first = self.fills and not self.is_said and not is_name
        if not new or not (match is _Match.STATEMENT or is_name or is_first):
            self.dropped += 1
            return []
        self.is_said |= not is_name
        bare = sentence.strip()
        label = _LABEL.match(bare) if is_name else None
        if is_name or not bare.endswith((*_STOPS, LEFT_OUT)):
            new = new.rstrip(_STOPS)
        elif not new.endswith((*_STOPS, LEFT_OUT)):
            new += bare[-1] if bare[-1] in _STOPS else "."
        tail = sentence[len(sentence.rstrip()) :]
        return [f"{label[0] if label else ''}{new}{tail}"]


def _restated(texts: SessionTexts, wanted: _Wanted) -> SessionTexts:
    if not (wanted.statements or wanted.quotes or wanted.keys):
        return texts
    memory, summary = (
        _rewritten(text, wanted) for text in (texts.raw_memory, texts.rollout_summary)
    )
    before, after = (
        _terms_of(each)
        for each in (f"{texts.raw_memory}\n{texts.rollout_summary}", f"{memory}\n{summary}")
    )
    known = frozenset[str]().union(*(each.terms for each in (*wanted.statements, *wanted.quotes)))
    lost = (before | known) - after - _terms(wanted.instead)
    slug = texts.rollout_slug
    is_named_so = slug is not None and bool(_terms(slug.replace("-", " ")) & lost)
    return SessionTexts(
        raw_memory=_without_keywords(memory, lost),
        rollout_summary=summary,
        rollout_slug=None if is_named_so else slug,
    )


def _rewritten(text: str, wanted: _Wanted) -> str:
    rewriting = _Rewriting(wanted=wanted, fills=False)
    new = rewriting.text(text)
    if wanted.instead and rewriting.dropped and not rewriting.is_said:
        return _Rewriting(wanted=wanted, fills=True).text(text)
    return new


def _terms_of(text: str) -> frozenset[str]:
    """The words of a text but for its list of keywords."""
    lines = (line for line in text.split("\n") if not line.startswith(_KEYWORDS))
    return frozenset(stem(word) for line in lines for word in words(line).split())


def _without_keywords(text: str, lost: frozenset[str]) -> str:
    """The text without the keywords of which nothing else is left."""
    lines: list[str] = []
    for line in text.split("\n"):
        if not line.startswith(_KEYWORDS):
            lines.append(line)
            continue
        known = line[len(_KEYWORDS) :].split(", ")
        kept = [each for each in known if not _terms(each) & lost]
        if kept:
            lines.append(_KEYWORDS + ", ".join(kept))
    return "\n".join(lines)


def _parts(line: str) -> tuple[str, str, str]:
    """What a line begins with, what it says, and the records it names behind that."""
    found = _FRAME.match(line)
    frame = found[0] if found else ""
    rest = line[len(frame) :]
    body = rest.rstrip()
    at = body.rfind(" [#") if body.endswith("]") else -1
    return (frame, rest, "") if at < 0 else (frame, rest[:at], rest[at:])


def _sentences(body: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a line begin and end, blanks behind them included."""
    start = 0
    for end in _ENDS.finditer(body):
        stop = end.end()
        stop += len(body[stop:]) - len(body[stop:].lstrip())
        yield start, stop
        start = stop
    if start < len(body):
        yield start, len(body)


def _heading_above(lines: Sequence[str]) -> int | None:
    return next((at for at in range(len(lines) - 1, -1, -1) if lines[at].startswith("##")), None)


def _is_bare(lines: Sequence[str], place: int) -> bool:
    """Whether nothing stands below a heading but the next one."""
    below = next((line for line in lines[place + 1 :] if line.strip()), "#")
    marks = len(lines[place]) - len(lines[place].lstrip("#"))
    return below.startswith("#") and len(below) - len(below.lstrip("#")) <= marks
