"""Compares what texts say: whether one says the same as another, what of one answers a question,
and what no longer holds.

Careful on one side only: what is shown twice costs a line, what is taken for the same and is not
would be lost. A number, a negation or another word in the place of one makes another statement, and
a fact rarely says all of the record it was learned from. Where a person has corrected or deleted a
fact, the words it was learned from are not shown; where something else took its place, or it has
ended, they are shown as outdated.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from recollect.stemming import STOP_WORDS, search_terms, stem, stems, words
from recollect.types.facts import Source, Trust
from recollect.types.recall import Entry, EntryKind, Hit, StatementRevision

SENTENCE = re.compile(r"[^.!?\n。！？]+(?:[.!?。！？]+[\"'”’)]*|\n+|\Z)\s*|[.!?\n。！？]+\s*")

OVERLAP_MIN = 0.9  # of all words of both, how many they share
CONTAINED_MIN = 0.5  # of a longer text's words: below, it is about more than the shorter one
LONGEST = 2  # words of a text, of which one that says the same has at least one
STEM_CHARS = 4  # words with the same beginning are forms of one

# With what makes it another one: 5, -5, 5:30, 5.50, $5 and 5% are six.
_NUMBER = re.compile(r"(?:(?<!\w)[-−+])?[$€£¥]?\d(?:[.,:/'’-]?\d)*+[%‰°]?")
_NEGATIONS = frozenset(
    """
    no not never none neither nor without cannot nobody nothing hardly t didn doesn don isn wasn
    won nicht kein keine nie ne pas jamais non sin нет не
    """.split()  # noqa: SIM905
)


def denies(text: str) -> bool:
    """Whether something is said not to be so."""
    return not _NEGATIONS.isdisjoint(words(text).split())


class Likeness(Enum):
    """How what comes later relates to what is there already."""

    OTHER = "other"
    SAME = "same"  # nothing in it is new
    FULLER = "fuller"  # it says that, and a little more


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a text, to be compared."""

    text: str
    line: str  # with a blank at either end, so that words are found whole
    words: frozenset[str]
    longest: frozenset[str]  # the words that tell most about a text, if any do

    @classmethod
    @lru_cache(maxsize=2048)  # a list and a block compare much of the same
    def of(cls, text: str) -> Wording:
        line = words(text)
        each = frozenset(line.split())
        longest = frozenset(sorted(each, key=len)[-LONGEST:])
        return cls(text, f" {line} ", each, longest)

    @property
    def numbers(self) -> frozenset[str]:
        return frozenset(_NUMBER.findall(self.text))

    def compared(self, earlier: Wording) -> Likeness:
        """What this is to one that came earlier. A text without words is like no other."""
        if not self.words or not earlier.words:
            return Likeness.OTHER
        if self.line == earlier.line:
            return Likeness.SAME if self.numbers == earlier.numbers else Likeness.OTHER
        is_within = self.line in earlier.line and self.numbers <= earlier.numbers
        is_around = earlier.line in self.line and self.numbers >= earlier.numbers
        sizes = sorted((len(self.words), len(earlier.words)))
        if not is_within and not is_around and sizes[0] < OVERLAP_MIN * sizes[1]:
            return Likeness.OTHER
        added, missing = self.words - earlier.words, earlier.words - self.words
        if not _NEGATIONS.isdisjoint(added | missing):
            return Likeness.OTHER
        if is_around:
            share = len(earlier.line) / len(self.line)
            return Likeness.FULLER if share >= CONTAINED_MIN else Likeness.OTHER
        shared = len(self.words) - len(added)
        is_close = shared >= OVERLAP_MIN * (shared + len(added) + len(missing))
        is_reworded = is_close and self.numbers == earlier.numbers
        is_same = is_within or (is_reworded and _is_rewording(added, missing))
        return Likeness.SAME if is_same else Likeness.OTHER


def _is_rewording(added: frozenset[str], missing: frozenset[str]) -> bool:
    """Whether what differs is a word more or less, or the form of one, and no number."""
    if any(character.isdigit() for word in added | missing for character in word):
        return False
    if not added or not missing:
        return True
    return {word[:STEM_CHARS] for word in added} == {word[:STEM_CHARS] for word in missing}


COVERED_MIN = 0.8  # of the words of a line or a sentence: those that a fact has
PLEASANTRY_CHARS = 80
CLAUSE_MIN = 0.6  # of a clause's words: those of a statement that it makes
LEFT_WORDS_MIN = 2  # that say something, of what is left when a part does not hold
MATTER_MIN = 0.5  # of a text, that is no request
REST_WORDS_MIN = 5  # that say something, beside what facts say of a record
WORDS_MAX = 2000
STANDS_FOR_MAX = 3  # records that a fact's source may name to stand for each of them

# What a page writes around a statement: its records, its days, where a link leads.
_AROUND = re.compile(r"\[#[^\]\n]*\]|\(\d{4}-\d\d-\d\d[^)\n]*\)|\[\[[^\]|\n]*\|?|\]\]")
_CLAUSE = re.compile(
    r"[,;:]\s+(?:(?:and|but|so)\s+)?|\s+(?:and|but)\s+(?=(?:I|we|my|he|she|they|it)\b)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(#{1,6}) ")
_NOTHING = re.compile(r"^outcome: uncertain$", re.MULTILINE)  # of a session, and nobody asks for it
_LINK = re.compile(r"\s*[-*+] \[\[[^\]\n]*\]\](?::[^\n]*)?\s*|See also: [^\n]*")
_LABEL_LEVEL = 7  # of a line that ends in a colon, below all headings
_PERSON = frozenset({"user"})  # "I" in a record, "the user" in what was made of it

# A wish that tells little about who has it, besides questions: "I'm looking for some tips."
_WISH = re.compile(
    r"\W*(?:(?:also|and|but|by the way|hey|hi|now|okay|ok|so|well)\b,?\s+)*I(?:"
    r"(?:(?:\s+am|['’]m|\s+was)\s+(?:\w+ly\s+|also\s+|just\s+)?(?:hoping|looking)\s+(?:for|to\s+get)"
    r"|(?:['’]d|\s+would)\s+like(?:\s+to\s+get)?|\s+(?:\w+ly\s+|also\s+|just\s+)?(?:need|want))"
    r"\s+(?:\w+\s+){0,3}(?:advice|assistance|guidance|help|ideas?|info(?:rmation)?|inspiration|input"
    r"|insights?|recommendations?|resources?|suggestions?|tips?)\b"
    r"|\s+was\s+wondering\s+(?:if|whether)\s+you\b)[^.!?]*[.!?]\s*\Z",
    re.IGNORECASE,
)

# What people say to each other without saying anything, besides stop words.
_PLEASANTRIES = frozenset(
    map(
        stem,
        """
        absolutely agree agreed ah aha alright amazing anytime appreciate aw awesome bye
        care catch cheers congrats congratulations cool definitely doin doing enjoy exactly
        excellent fantastic fine go going gonna good goodbye goodnight gotcha great ha haha
        hear hello helpful hey hi hmm hope hugs interesting keep know later lol long lot
        luck makes morning much nice night nope noted now oh ok okay perfect please pleasure
        problem really right see sense sharing soon sorry sounds sure take talk telling
        thank thanks think thx time tomorrow totally true understood way welcome well
        worries wow ya yay yeah yep yes yup
        """.split(),  # noqa: SIM905
    )
)


Place = tuple[str, int]
_SAID = (EntryKind.FACT, EntryKind.RECORD)


def place_of(hit: Hit) -> Place | None:
    """The session and the number of a record."""
    if hit.kind is not EntryKind.RECORD or not hit.sources:
        return None
    return hit.sources[0].session_id, hit.sources[0].seq


class Statements:
    """What hits say, each in the best form there is: a fact before what it was learned from, both
    before a text that was made of them."""

    def __init__(self, shown: Iterable[tuple[Hit, str]]) -> None:
        self._learned: dict[Place, list[str]] = defaultdict(list)
        self._texts: list[str] = []
        for hit, text in shown:
            if hit.kind in _SAID:
                self._texts.append(text)
            if hit.kind is EntryKind.FACT:
                for source in hit.sources:
                    for seq in range(
                        source.seq, min(source.seq_to, source.seq + STANDS_FOR_MAX) + 1
                    ):
                        self._learned[source.session_id, seq].append(hit.text)

    def rest_of(self, hit: Hit, text: str) -> str:
        """What of a hit's text nothing else says so well; nothing where it is not worth a line."""
        if hit.kind in _SAID:
            place = place_of(hit)
            return sentences_beyond(text, self._learned[place]) if place in self._learned else text
        rest = lines_beyond(text, self._texts)
        self._texts.append(rest)
        return rest


class Revisions:
    """What became of what was said, by session."""

    def __init__(self, revisions: Iterable[StatementRevision]) -> None:
        self._of_session: dict[str, list[StatementRevision]] = defaultdict(list)
        for each in revisions:
            self._of_session[each.session_id].append(each)

    def apply(self, entry: Entry) -> bool:
        """Change what was said, or was made of it by a machine, so that it says what holds.

        Whether anything is left of it.
        """
        if entry.kind is EntryKind.RECORD:
            for each in self._of_session.get(entry.session_id, ()):
                if each.seq <= entry.seq <= each.seq_to:
                    _revise(entry, each)
        elif entry.kind is EntryKind.SUMMARY:
            entry.text = without_lines(entry.text, self._of_session.get(entry.session_id, ()))
        elif entry.kind is EntryKind.DOCUMENT and entry.trust is not Trust.USER:
            entry.text = without_lines(entry.text, self._of_session.get("", ()))
        return bool(entry.text.strip())


def _revise(record: Entry, revision: StatementRevision) -> None:
    if revision.is_withdrawn:
        rest = without_stated(record.text, revision.statement)
        # Where a fact has it in other words, without those it is from.
        record.text = without_stated(record.text, revision.quote) if rest == record.text else rest
    elif states(record.text, revision.statement) or states(record.text, revision.quote):
        record.until, record.replaced_by = revision.at, revision.now


def without_lines(text: str, revisions: Sequence[StatementRevision]) -> str:
    """A text of many lines without those that say what does not hold any more."""
    rest = lines_beyond(text, [each.statement for each in revisions])
    withdrawn = [each for each in revisions if each.is_withdrawn]
    if not withdrawn:
        return rest
    return "\n".join(
        line
        for line in rest.splitlines()
        if not any(
            states(line, each.statement) and not states(line, each.now) for each in withdrawn
        )
    )


def says_nothing(text: str, names: Collection[str] = ()) -> bool:
    """Whether it is only a greeting, thanks or a nod, whomever it names."""
    if len(text) > PLEASANTRY_CHARS:
        return False
    return all(
        word in STOP_WORDS or stem(word) in _PLEASANTRIES or word in names
        for word in words(text).split()
    )


def only_asks(text: str) -> bool:
    """Whether somebody only asked something: that tells little about them."""
    return text.rstrip().endswith("?") and all(
        sentence.rstrip().endswith("?") or says_nothing(sentence)
        for sentence in SENTENCE.findall(text)
    )


def without_small_talk(text: str, asked: Collection[str], names: Collection[str]) -> str:
    """What somebody said without greetings, thanks and nods, whomever they name, and without
    questions and wishes that have none of the stems that are asked for, unless it is mostly that.

    A text of nothing but small talk stays as it is.
    """
    sentences = SENTENCE.findall(text)
    kept = [sentence for sentence in sentences if not says_nothing(sentence, names)] or sentences
    text = text if len(kept) == len(sentences) else "".join(kept).strip()
    telling = [each for each in kept if not _only_wants(each) or _has_any(each, asked)]
    rest = "".join(telling).strip()
    return rest if len(rest) >= MATTER_MIN * len(text) else text


def _only_wants(sentence: str) -> bool:
    return sentence.rstrip().endswith("?") or _WISH.match(sentence) is not None


def _has_any(sentence: str, asked: Collection[str]) -> bool:
    return any(stem(word) in asked for word in words(sentence).split())


def sentences_beyond(text: str, facts: Sequence[str]) -> str:
    """What somebody said without the sentences that one of these facts says.

    Nothing is left of it where the rest is not worth a line.
    """
    covered = [(_said(fact), denies(fact)) for fact in facts]
    sentences = SENTENCE.findall(text)
    kept = [sentence for sentence in sentences if not _is_covered(sentence, covered)]
    if len(kept) == len(sentences):
        return text
    rest = "".join(kept).strip()
    return rest if len(_stems(rest) - _PLEASANTRIES) >= REST_WORDS_MIN else ""


def without_stated(text: str, statement: str) -> str:
    """What somebody said without a statement: without the clauses that make it, or the sentence.

    Nothing is left of it where the rest is not worth a line.
    """
    said = _said(statement)
    rest = "".join(_rest_of(sentence, said) for sentence in SENTENCE.findall(text)).strip()
    if not said or rest == text.strip():
        return text
    return rest if len(_stems(rest) - _PLEASANTRIES) >= LEFT_WORDS_MIN else ""


def says_all(statement: str, text: str) -> bool:
    """Whether a statement says every sentence of a text."""
    covered = [(_said(statement), denies(statement))]
    return all(
        _is_covered(sentence, covered) for sentence in SENTENCE.findall(text) if _said(sentence)
    )


def states(text: str, statement: str) -> bool:
    """Whether a statement is made in a text."""
    said = _said(statement)
    return bool(said) and any(_makes(_said(each), said) for each in SENTENCE.findall(text))


def _makes(sentence: frozenset[str], statement: frozenset[str]) -> bool:
    shared = len(sentence & statement)
    return shared >= COVERED_MIN * len(statement) or 0 < COVERED_MIN * len(sentence) <= shared


def _rest_of(sentence: str, statement: frozenset[str]) -> str:
    """A sentence without the clauses that make a statement; without any clause if none does."""
    if not _makes(_said(sentence), statement):
        return sentence
    clauses = [(clause.strip(), _said(clause)) for clause in _CLAUSE.split(sentence)]
    kept = [clause for clause, said in clauses if len(said & statement) < CLAUSE_MIN * len(said)]
    return f"{', '.join(kept)} " if 0 < len(kept) < len(clauses) else ""


def _stems(text: str) -> set[str]:
    """Those of the words that say something."""
    return {stem(word) for word in search_terms(text, WORDS_MAX)}


def lines_beyond(text: str, facts: Sequence[str]) -> str:
    """A text of many lines without those that one of these facts says, or that say nothing."""
    covered = [(_said(fact), denies(fact)) for fact in facts]
    if not covered and _NOTHING.search(text) is None:
        return text
    return _without(text, lambda line: _is_covered(line, covered) or bool(_NOTHING.match(line)))


def without_links(text: str) -> str:
    """A text of many lines without those that only lead to a page."""
    return _without(text, lambda line: bool(_LINK.fullmatch(line)))


def _without(text: str, is_left_out: Callable[[str], bool]) -> str:
    """The lines that are not left out, and the headings that something follows."""
    kept: list[str] = []
    above: list[tuple[int, str]] = []  # headings that nothing has followed yet
    for line in text.splitlines():
        level = _level(line)
        if level is not None:
            above = [each for each in above if each[0] < level]
        if is_left_out(line):
            continue
        if level is not None:
            above.append((level, line))
            continue
        if line.strip():
            kept += (heading for _, heading in above)
            above = []
        kept.append(line)
    return "\n".join(kept).strip()


def _level(line: str) -> int | None:
    heading = _HEADING.match(line)
    if heading is not None:
        return len(heading[1])
    return _LABEL_LEVEL if line.rstrip().endswith(":") else None


def _is_covered(line: str, covered: Sequence[tuple[frozenset[str], bool]]) -> bool:
    said = _said(line)
    if not said:
        return False
    is_denied = denies(line)
    for fact, fact_denies in covered:
        missing = said - fact
        if fact_denies is is_denied and len(missing) <= (1 - COVERED_MIN) * len(said):
            return all(word.isalpha() for word in missing)
    return False


@lru_cache(maxsize=8192)  # the same few pages are looked at in every turn
def _said(line: str) -> frozenset[str]:
    return frozenset(_stems(_AROUND.sub(" ", line)) - _PERSON)


# the part of a long text that answers best: a document is found as a whole and shown in parts

PASSAGE_CHARS = 700
BEARING_SHARE = 0.5  # of what the best line of a page has of a question
SCANNED_CHARS = 65_536  # of a text; what follows is not looked through

CUT = "…"

_LEADS_ON = re.compile(r"[-*+] \[\[[^\]\n]*\]\](?::[^\n]*)?|#{1,6} [^\n]*|See also: [^\n]*")
# The sessions that the summary of memory lists last; each has a summary that is found by itself.
LISTED_SESSIONS = re.compile(
    r"^## Last sessions\n+(?:- \d{4}-\d\d-\d\d [^\n]*(?:\n|\Z))+", re.MULTILINE
)
_BREAK = re.compile(r"\n\s*\n|\n(?=#{1,6} |[-*+] |\d+[.)] )")

# What a page written by rules says about its lines; the sources of a hit have it.
_NOTE_LABEL = r"\[\^[0-9a-f]{10}\]"
_NOTES = re.compile(rf"^{_NOTE_LABEL}: [^\n]*(?:\n|\Z)", re.MULTILINE)
_NOTE_MARK = re.compile(rf"[ \t]?{_NOTE_LABEL}")
_MADE_FROM = re.compile(r" ?\((?:\[\[~/memory/rollout_summaries/[^\]\n]*\]\](?:, |; )?)+\)")
_NO_SOURCES = re.compile(r"^## Sources[ \t]*\s*\Z", re.MULTILINE)


def without_notes(text: str) -> str:
    """A page without the footnotes and links that say where its lines come from."""
    if "[^" not in text and "([[" not in text:
        return text
    bare = _MADE_FROM.sub("", _NOTE_MARK.sub("", _NOTES.sub("", text)))
    return text if bare == text else _NO_SOURCES.sub("", bare).rstrip()


def best_passage(text: str, worth: Mapping[str, float]) -> str:
    """The passage with the most of the stems that are asked for, by what each is worth.

    A short text is its own passage. Of equals the first counts, so that a text that has none of
    them is shown from its beginning.
    """
    if len(text) <= PASSAGE_CHARS:
        return text.strip()
    return max(_passages(text[:SCANNED_CHARS]), key=lambda passage: _worth(passage, worth)).strip()


def bearing(text: str, worth: Mapping[str, float], chars_max: int) -> str:
    """The lines and paragraphs of a text that bear on what is asked for: the best of them, within
    so many characters, in their order. Nothing where none has anything of it."""
    pieces = _pieces(LISTED_SESSIONS.sub("", text[:SCANNED_CHARS]))
    found = [piece for piece in pieces if not _LEADS_ON.fullmatch(piece)]
    values = [_worth(piece, worth) for piece in found]
    least = BEARING_SHARE * max(values, default=0.0)
    chosen: list[int] = []
    room = chars_max
    for at in sorted(range(len(found)), key=lambda at: -values[at]):
        if not values[at] or values[at] < least or (chosen and len(found[at]) > room):
            break
        chosen.append(at)
        room -= len(found[at])
    return "\n".join(found[at] for at in sorted(chosen))


def excerpt(text: str, worth: Mapping[str, float], chars_max: int) -> str:
    """The sentences of a text that answer best, next to each other, within so many characters."""
    if len(text) <= chars_max:
        return text
    sentences = SENTENCE.findall(text[:SCANNED_CHARS])
    values = [_worth(sentence, worth) for sentence in sentences]
    best, chosen = -1.0, (0, 1)
    for first in range(len(sentences)):
        length, value = 0, 0.0
        for last in range(first, len(sentences)):
            length += len(sentences[last])
            if length > chars_max and last > first:
                break
            value += values[last]
            if value > best:
                best, chosen = value, (first, last + 1)
    first, end = _widened(sentences, *chosen, chars_max)
    kept = "".join(sentences[first:end]).strip()
    return f"{CUT + ' ' if first else ''}{kept}{' ' + CUT if end < len(sentences) else ''}"


def _widened(sentences: Sequence[str], first: int, end: int, chars_max: int) -> tuple[int, int]:
    """As much around the chosen sentences as there is room for, what follows first."""
    room = chars_max - sum(map(len, sentences[first:end]))
    while end < len(sentences) and len(sentences[end]) <= room:
        room -= len(sentences[end])
        end += 1
    while first and len(sentences[first - 1]) <= room:
        first -= 1
        room -= len(sentences[first])
    return first, end


def _worth(passage: str, worth: Mapping[str, float]) -> float:
    found = set(stems(passage))
    return sum(value for term, value in worth.items() if term in found)


def _passages(text: str) -> list[str]:
    """Paragraphs and list items, joined while they are short and cut where they are long."""
    found: list[str] = [""]
    for piece in _pieces(text):
        if found[-1] and len(found[-1]) + len(piece) > PASSAGE_CHARS:
            found.append("")
        found[-1] = f"{found[-1]}\n{piece}" if found[-1] else piece
    return found


def _pieces(text: str) -> list[str]:
    return [
        part[start : start + PASSAGE_CHARS]
        for part in (piece.strip() for piece in _BREAK.split(text))
        if part
        for start in range(0, len(part), PASSAGE_CHARS)
    ]


# an entry as it is shown


def hit_of(
    entry: Entry,
    redact: Callable[[str], str],
    at: datetime,
    text: str | None = None,
    score: float = 0.0,
    why: Mapping[str, float] = MappingProxyType({}),
) -> Hit:
    """An entry as it is shown at a time: its own text, or what is shown of it, redacted already."""
    is_over = entry.kind in _SAID and entry.has_ended(at)
    return Hit(
        id=entry.id,
        kind=entry.kind,
        text=redact(entry.text) if text is None else text,
        score=score,
        why=why,
        sources=tuple(
            replace(source, quote=redact(source.quote)) if source.quote else source
            for source in _sources_of(entry)
        ),
        at=entry.at,
        trust=entry.trust,
        title=redact(entry.title),
        speaker=redact(entry.speaker or entry.role),
        tags=tuple(map(redact, entry.tags)),
        usage_count=entry.usage_count,
        outdated_at=entry.until if is_over else None,
        replaced_by=redact(entry.replaced_by) if is_over else "",
    )


def _sources_of(entry: Entry) -> tuple[Source, ...]:
    if entry.kind in (EntryKind.RECORD, EntryKind.SUMMARY):
        first = max(entry.seq, 1)
        return (Source(session_id=entry.session_id, seq=first, seq_to=max(entry.seq_to, first)),)
    # A session without a place adds nothing where its records are named.
    placed = {each.session_id for each in entry.sources if each.seq}
    return tuple(each for each in entry.sources if each.seq or each.session_id not in placed)
