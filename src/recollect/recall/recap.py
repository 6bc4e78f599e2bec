"""Packs what a session begins with: what people want, what was done last, and what is open.

Pure. A recap is of a project, which it names once, or of a person. It tells the same in the same
bytes while nothing has changed, so that a prompt that begins with it stays in a cache: it names
days and never how long ago they were. Everything is counted, and the count is never above the
budget; what does not fit is passed over. Every line ends in a mark to cite it by, as in any block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from recollect.fences import FENCE
from recollect.models.tokens import estimate_tokens
from recollect.quoting import harmless, quoted, quoted_lines
from recollect.recall.citations import mark_of
from recollect.recall.likeness import Likeness, Wording
from recollect.recall.pack import (
    CHARS_PER_TOKEN_MAX,
    CUT,
    INTRODUCTION,
    ITEM_TOKENS_MIN,
    LINES_MAX,
    PLAIN_INTRODUCTION,
    REFUSED_MAX,
    CountTokens,
    Reason,
    day_of,
    extract,
    longest,
)
from recollect.recall.told import untold
from recollect.recollection import Citation, Context, Hit, Omission, PastSession
from recollect.stems import stem
from recollect.terms import search_terms

SESSIONS_MAX = 6  # that are told about; of those before only what is open
SESSION_TOKENS = 90
SESSION_SHARE = 4  # a budget holds at least so many sessions that had to be cut
SUMMARY_TRIES = 16  # lengths of a summary that are tried before there is no room for it
MEMORY_CHARS_MAX = 20_000  # of a session's memory that are read, the last ones
PROSE_CHARS_MAX = 1500
ASKED_MAX = 3  # things that were asked for besides the first
ALIKE_MIN = 0.5  # of the words of one task that another one has: it goes on with it
WORDS_MAX = 60

_HEADING = re.compile(r"#{1,6}[ \t]+(?:Task \d+: )?")
_OUTCOME = re.compile(r"(?:task_)?outcome:[ \t]*(\w+)", re.IGNORECASE)
_BULLET = re.compile(r"[ \t]*[-*+][ \t]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_RECORDS = re.compile(r"[ \t]*\[#[^\]\n]*\]")
# How a line begins that says what is left to do.
_OPEN = re.compile(
    r"\W*(?:next(?: steps?)?|(?:still )?open|to-?do|remaining|still missing|(?:left )?to be done"
    r"|not (?:yet )?done(?: yet)?|unfinished|pending)\s*(?::|\s[–—-])\s*(?=\w)",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"(?:nothing|none|no|-|–)\b[^\w]*$", re.IGNORECASE)


class _Outcome(StrEnum):
    """How a task ended, as extraction writes it."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAIL = "fail"
    UNCERTAIN = "uncertain"


_ENDED = {_Outcome.SUCCESS: "Done.", _Outcome.PARTIAL: "Partly done", _Outcome.FAIL: "Failed"}
_UNFINISHED = (_Outcome.PARTIAL, _Outcome.FAIL)


@dataclass(frozen=True, slots=True)
class Task:
    """Something that was to be done in a session, and how it ended."""

    title: str
    outcome: _Outcome

    @property
    def words(self) -> frozenset[str]:
        return _words(self.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What is told of a session: what it was about, how it ended, and what it left open."""

    hit: Hit
    title: str
    told: str = ""
    tasks: tuple[Task, ...] = ()
    left: tuple[str, ...] = ()  # what it says itself is to be done


@dataclass(frozen=True, slots=True, kw_only=True)
class Recap:
    """What a recap is made of, the newest first.

    `project` is the name that stands above it, `place` how facts and paths begin that are of it.
    """

    instructions: Sequence[Hit] = ()
    sessions: Sequence[Past] = ()
    plans: Sequence[Hit] = ()
    known: Sequence[Hit] = ()
    summary: str = ""
    project: str = ""
    place: str = ""


def read_past(
    session: PastSession, hit: Hit, told: Callable[[str], str], known: Sequence[str] = ()
) -> Past | None:
    """What is to be told of a session, from its texts; nothing where they say nothing.

    `told` makes what a machine wrote fit to be told. What is `known` need not be said again.
    """
    title, prose, asked = _read_summary(session.entry.text)
    tasks = _read_tasks(session.raw_memory[-MEMORY_CHARS_MAX:])
    if not tasks and (ended := _OUTCOME.search(session.entry.text)) and title:
        tasks = [Task(title, _outcome(ended[1]))]
    title = title or (tasks[0].title if tasks else session.slug.replace("-", " "))
    lines = [*_lines_of(session.raw_memory[-MEMORY_CHARS_MAX:]), *prose]
    left = dict.fromkeys(filter(None, map(_left_in, _sentences(lines))))
    rest = [_capital(each) for each in _sentences(prose) if not _left_in(each)]
    more = told(untold("\n".join(asked[-ASKED_MAX:]), known)).splitlines() if asked else []
    title, said = told(title), told("\n".join(rest)[:PROSE_CHARS_MAX]).splitlines()
    if more:
        said.append(f"Also asked: {'; '.join(more)}")
    # An order may be spread over what is put together here.
    if not told(" ".join([title, *said])):
        return None
    return Past(
        hit=hit,
        title=title,
        told=" ".join(said),
        tasks=tuple(Task(each, task.outcome) for task in tasks if (each := told(task.title))),
        left=tuple(filter(None, map(told, left))),
    )


def _read_summary(summary: str) -> tuple[str, list[str], list[str]]:
    """The title of a summary, what it says about the end, and what else was asked for."""
    title, sections = "", [list[str]()]
    for line in summary.splitlines():
        heading = _HEADING.match(line)
        if not title and line.strip():
            title = _plain(line[heading.end() :] if heading else line)
        elif heading:
            sections.append([])
        elif line.strip():
            sections[-1].append(line)
    ends = next((each for each in sections if any(map(_OUTCOME.match, each))), None)
    if ends is None:
        return title, [line for each in sections for line in each], []
    prose = [line for line in ends if not _OUTCOME.match(line)]
    asked = [] if sections[1] is ends else map(_plain, filter(_BULLET.match, sections[1]))
    return title, prose, [each for each in asked if _key(each) != _key(title)]


def _read_tasks(memory: str) -> list[Task]:
    """The tasks of a session's memory, each with how it ended the last time."""
    found: dict[str, Task] = {}
    title = ""
    for line in memory.splitlines():
        if line.startswith("## "):
            title = _plain(_HEADING.sub("", line, count=1))
        elif title and (outcome := _OUTCOME.match(line)):
            found.pop(title, None)
            found[title] = Task(title, _outcome(outcome[1]))
    return list(found.values())


def _outcome(word: str) -> _Outcome:
    return next((each for each in _Outcome if word.casefold().startswith(each)), _Outcome.UNCERTAIN)


def _lines_of(memory: str) -> Iterator[str]:
    """The lines of a session's memory that may say what is left to do."""
    return (line for line in memory.splitlines() if _OPEN.match(line))


def _sentences(lines: Iterable[str]) -> list[str]:
    return [
        each.strip()
        for line in lines
        for each in _SENTENCE_END.split(_BULLET.sub("", line, count=1))
        if each.strip()
    ]


def _left_in(sentence: str) -> str:
    """What a sentence says is to be done, if it says so."""
    found = _OPEN.match(sentence)
    left = "" if found is None else sentence[found.end() :].strip()
    return "" if _NOTHING.match(left) else _capital(left)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plain(line: str) -> str:
    """A line without its bullet and the records it is from."""
    return _RECORDS.sub("", _BULLET.sub("", line, count=1)).strip()


def _key(text: str) -> str:
    return text.casefold().strip(" .:;,!?…")


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in search_terms(text, WORDS_MAX))


# the block


@dataclass(frozen=True, slots=True)
class _Line:
    hit: Hit
    text: str
    is_open: bool = False  # of a session: left out where a line about the session says it

    def shown(self, mark: str) -> str:
        return f"- {self.text} [{mark}] ({day_of(self.hit.at)})"


@dataclass(slots=True)
class _Section:
    """A part of the recap: what may stand in it, and what does."""

    heading: str
    share: float  # of the budget that it and those above it have before what is below
    lines: Sequence[_Line]
    most: int = LINES_MAX
    taken: list[int] = field(default_factory=list)


def pack_recap(
    recap: Recap,
    *,
    max_tokens: int,
    max_facts: int,
    first: int = 1,
    count_tokens: CountTokens = estimate_tokens,
) -> Context:
    """The block of a recap; nothing where there is nothing to say. Its first mark has that number.

    Instructions come first and leave room for the sessions, these for what is open; what has
    no room at first has what is left over.
    """
    packing = _Packing(recap, max_tokens, max_facts, first, count_tokens)
    packing.fill()
    return packing.context()


class _Packing:
    """A recap in the making."""

    def __init__(
        self, recap: Recap, max_tokens: int, max_facts: int, first: int, count: CountTokens
    ) -> None:
        self._recap = recap
        self._tokens, self._first, self._count = max_tokens, first, count
        item = max(ITEM_TOKENS_MIN, min(SESSION_TOKENS, max_tokens // SESSION_SHARE))

        def lines(hits: Iterable[Hit]) -> list[_Line]:
            return _each_once(_Line(hit, self._quoted(hit.text)) for hit in hits)

        standing = _standing(recap.sessions)
        sessions = [
            _Line(past.hit, extract(self._here(_told_of(past, still)), item, count))
            for past, still in zip(recap.sessions[:SESSIONS_MAX], standing, strict=False)
        ]
        self._sections = (
            _Section("Standing instructions", 0.4, lines(recap.instructions), max_facts),
            _Section("Last sessions", 0.85, [line for line in sessions if line.text]),
            _Section("Open", 1.0, [*self._open(standing, item), *lines(recap.plans)], max_facts),
            _Section("Known here", 1.0, lines(recap.known), max_facts),
        )

    def _open(self, standing: Sequence[Sequence[Task]], item: int) -> Iterator[_Line]:
        later: list[frozenset[str]] = []
        for past, tasks in zip(self._recap.sessions, standing, strict=True):
            for left in past.left:
                if not any(_is_alike(_words(left), words) for words in later):
                    yield _Line(past.hit, extract(self._here(left), item, self._count))
            for task in tasks:
                ended = _ENDED[task.outcome].lower()
                text = extract(self._here(task.title), item, self._count)
                yield _Line(past.hit, f"{text.rstrip('.')} ({ended})", is_open=True)
            later += [task.words for task in past.tasks]

    def _here(self, text: str) -> str:
        """A text as it reads under the name of its project."""
        recap = self._recap
        if not recap.place:
            return text
        for opening in (f"In {recap.project}, ", f"In {recap.project}: "):
            if text.startswith(opening):
                text = text.removeprefix(opening)
                text = _capital(text)
        root = f"{recap.place.rstrip('/')}/"
        return text.replace(root, "") if len(root) > 1 else text

    def _quoted(self, text: str) -> str:
        return quoted(self._here(text))

    def fill(self) -> None:
        """Take what fits: each part within its share, then of what is left whatever has room."""
        for is_first in (True, False):
            for section in self._sections:
                limit = int(self._tokens * section.share) if is_first else self._tokens
                refused = 0  # in a row
                for at, line in enumerate(section.lines):
                    if at in section.taken or len(section.taken) >= section.most:
                        continue
                    if line.is_open and self._has_session(line.hit):
                        continue
                    refused = 0 if self._take(section, at, limit) else refused + 1
                    if refused >= REFUSED_MAX:
                        break

    def _take(self, section: _Section, at: int, limit: int) -> bool:
        """Take a line if there is room for it."""
        before = section.taken
        section.taken = sorted([*before, at])
        if self._count(self._text()) > limit:
            section.taken = before
        return section.taken is not before

    def _has_session(self, hit: Hit) -> bool:
        section = self._sections[1]
        return any(section.lines[at].hit.id == hit.id for at in section.taken)

    def _taken(self) -> list[_Line]:
        return [section.lines[at] for section in self._sections for at in section.taken]

    def _text(self, summary: str = "") -> str:
        parts: list[str] = []
        number = self._first
        for section in self._sections:
            if section.taken:
                marks = map(mark_of, range(number, number + len(section.taken)))
                lines = (section.lines[at] for at in section.taken)
                shown = (line.shown(mark) for line, mark in zip(lines, marks, strict=True))
                parts.append("\n".join([f"## {section.heading}\n", *shown]))
                number += len(section.taken)
        introduction = INTRODUCTION if parts else PLAIN_INTRODUCTION
        if summary:
            parts.append(f"## Summary\n\n{summary}")
        name = f"\n\n# Project {quoted(self._recap.project)}" if self._recap.project else ""
        return "\n\n".join([f"<{FENCE}>\n{introduction}{name}", *parts]) + f"\n</{FENCE}>"

    def context(self) -> Context:
        lines = self._taken()
        text = self._with_summary() or (self._text() if lines else "")
        return Context(
            text=text,
            citations=tuple(
                Citation(mark=mark_of(number), hit=line.hit, sources=line.hit.sources)
                for number, line in enumerate(lines, start=self._first)
            ),
            omitted=tuple(self._omitted()),
            token_count=self._count(text) if text else 0,
        )

    def _omitted(self) -> Iterator[Omission]:
        for section in self._sections:
            reason = Reason.TOO_MANY if len(section.taken) >= section.most else Reason.NO_ROOM
            for at, line in enumerate(section.lines):
                if at not in section.taken and not line.is_open:
                    yield Omission(hit=line.hit, reason=reason)

    def _with_summary(self) -> str:
        """The block with as much of the summary as there is room for; nothing without room."""
        if not self._recap.summary.strip():
            return ""
        room = self._tokens - self._count(self._text())
        for share in range(room, 0, -max(1, room // SUMMARY_TRIES)):
            summary = _within(self._recap.summary, share, self._count)
            text = self._text(summary)
            if summary and self._count(text) <= self._tokens:
                return text
        return ""


def _each_once(lines: Iterable[_Line]) -> list[_Line]:
    """The lines without those that say the same as one before."""
    kept: list[_Line] = []
    wordings: list[Wording] = []
    for line in lines:
        wording = Wording.of(line.text)
        if line.text and all(wording.compared(each) is not Likeness.SAME for each in wordings):
            kept.append(line)
            wordings.append(wording)
    return kept


def _standing(sessions: Sequence[Past]) -> list[list[Task]]:
    """Of each session the tasks that it left unfinished and no later one has taken up."""
    found: list[list[Task]] = []
    later: list[frozenset[str]] = []
    for past in sessions:  # the newest first
        still: list[Task] = []
        for task in reversed(past.tasks):
            words = task.words
            if task.outcome in _UNFINISHED and not any(_is_alike(words, each) for each in later):
                still.insert(0, task)
            later.append(words)
        found.append(still)
    return found


def _is_alike(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two tasks are about the same."""
    return len(words & others) >= max(1, ALIKE_MIN * min(len(words), len(others)))


def _told_of(past: Past, still: Sequence[Task]) -> str:
    """A session in a line: what it was about, how that ended, and what was said about it."""
    is_one = len(past.tasks) == 1
    told = [_sentence(past.title)]
    if is_one and (ended := _ENDED.get(past.tasks[0].outcome)):
        told.append(f"{ended}, still open." if still else _sentence(ended))
    elif still:
        told.append(_sentence(f"Still open: {'; '.join(task.title for task in still)}"))
    done = [each.title for each in past.tasks if each.outcome is _Outcome.SUCCESS]
    if not is_one and (more := [each for each in done if each not in past.told]):
        told.append(_sentence(f"Done: {'; '.join(more)}"))
    return " ".join([*told, past.told]).strip()


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", "…", "。")) else f"{text}."


def _within(summary: str, share: int, count: CountTokens) -> str:
    """The summary's lines that fit into its share, and a sign where it goes on."""
    window = summary[: CHARS_PER_TOKEN_MAX * share]
    lines = quoted_lines(window)
    if len(window) == len(summary) and count("\n".join(lines)) <= share:
        return "\n".join(lines)

    def up_to(line_count: int) -> str:
        return harmless("\n".join([*lines[:line_count], CUT]))

    kept = longest(range(1, len(lines)), lambda end: count(up_to(end)) <= share)
    return up_to(kept) if kept else extract(summary, share, count)


def joined(found: Context, recap: Context) -> Context:
    """A block about a question and a recap whose marks go on from there, as one."""
    if not (found and recap):
        return found or recap
    text = f"{found.text}\n\n{recap.text}"
    return replace(
        found,
        text=text,
        citations=(*found.citations, *recap.citations),
        omitted=(*found.omitted, *recap.omitted),
        token_count=estimate_tokens(text),
    )
