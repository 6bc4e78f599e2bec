"""What a session begins with: what people want, what was done last, and what is open.

A recap is of a project, which it names once, or of a person. It has the same bytes while nothing
has changed, so that a prompt that begins with it stays in a cache: it names days and never how long
ago they were. What it shows is redacted, without orders that no person gave and without what no
longer holds. A session begins with it and an agent waits: what only questions need is not loaded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from recollect.errors import InvalidValue
from recollect.extraction.scope import named, place_of
from recollect.models.protocol import estimate_tokens
from recollect.quarantine import bare, commands, safe_for_models
from recollect.quoting import FENCE, harmless, quoted, quoted_lines
from recollect.recall.filters import read_filters
from recollect.recall.pack import (
    CHARS_PER_TOKEN_MAX,
    CUT,
    FACTS_MAX,
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
from recollect.recall.passages import LISTED_SESSIONS, without_notes
from recollect.recall.statements import Likeness, Wording, lines_beyond, says_nothing, without_links
from recollect.recall.usage import mark_of
from recollect.stemming import search_terms, stem
from recollect.types.facts import FactTag, Source, Trust
from recollect.types.recall import (
    Citation,
    Context,
    Entry,
    EntryKind,
    Filters,
    Hit,
    Omission,
    PastSession,
)

if TYPE_CHECKING:
    from recollect.runtime import Runtime
    from recollect.store.protocol import Store


SESSIONS_MAX = 6  # that are shown; of those before only what is open
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
    """What is shown of a session: what it was about, how it ended, and what it left open."""

    hit: Hit
    title: str
    account: str = ""
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
    session: PastSession, hit: Hit, fit: Callable[[str], str], known: Sequence[str] = ()
) -> Past | None:
    """What there is to say about a session, from its texts; nothing where they say nothing.

    `fit` makes what a machine wrote fit to be shown. What is `known` need not be said again.
    """
    title, prose, asked = _read_summary(session.entry.text)
    tasks = _read_tasks(session.raw_memory[-MEMORY_CHARS_MAX:])
    if not tasks and (ended := _OUTCOME.search(session.entry.text)) and title:
        tasks = [Task(title, _outcome(ended[1]))]
    title = title or (tasks[0].title if tasks else session.slug.replace("-", " "))
    lines = [*_lines_of(session.raw_memory[-MEMORY_CHARS_MAX:]), *prose]
    left = dict.fromkeys(filter(None, map(_left_in, _sentences(lines))))
    rest = [
        _capital(each)
        for each in _sentences(prose)
        if not _left_in(each) and not says_nothing(each.partition(": ")[2] or each)
    ]
    more = fit(lines_beyond("\n".join(asked[-ASKED_MAX:]), known)).splitlines() if asked else []
    title, said = fit(title), fit("\n".join(rest)[:PROSE_CHARS_MAX]).splitlines()
    if more:
        said.append(f"Also asked: {'; '.join(more)}")
    # An order may be spread over what is put together here.
    if not fit(" ".join([title, *said])):
        return None
    return Past(
        hit=hit,
        title=title,
        account=" ".join(said),
        tasks=tuple(Task(each, task.outcome) for task in tasks if (each := fit(task.title))),
        left=tuple(filter(None, map(fit, left))),
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
class _RecapLine:
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
    lines: Sequence[_RecapLine]
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
    packing = _RecapPacking(recap, max_tokens, max_facts, first, count_tokens)
    packing.fill()
    return packing.context()


class _RecapPacking:
    """A recap in the making."""

    def __init__(
        self, recap: Recap, max_tokens: int, max_facts: int, first: int, count: CountTokens
    ) -> None:
        self._recap = recap
        self._tokens, self._first, self._count = max_tokens, first, count
        item = max(ITEM_TOKENS_MIN, min(SESSION_TOKENS, max_tokens // SESSION_SHARE))

        def lines(hits: Iterable[Hit]) -> list[_RecapLine]:
            return _each_once(_RecapLine(hit, self._quoted(hit.text)) for hit in hits)

        standing = _standing(recap.sessions)
        sessions = [
            _RecapLine(past.hit, extract(self._here(_account_of(past, still)), item, count))
            for past, still in zip(recap.sessions[:SESSIONS_MAX], standing, strict=False)
        ]
        self._sections = (
            _Section("Standing instructions", 0.4, lines(recap.instructions), max_facts),
            _Section("Last sessions", 0.85, [line for line in sessions if line.text]),
            _Section("Open", 1.0, [*self._open(standing, item), *lines(recap.plans)], max_facts),
            _Section(
                "Known here" if recap.project else "Known", 1.0, lines(recap.known), max_facts
            ),
        )

    def _open(self, standing: Sequence[Sequence[Task]], item: int) -> Iterator[_RecapLine]:
        later: list[frozenset[str]] = []
        for past, tasks in zip(self._recap.sessions, standing, strict=True):
            for left in past.left:
                if not any(_is_alike(_words(left), words) for words in later):
                    yield _RecapLine(past.hit, extract(self._here(left), item, self._count))
            for task in tasks:
                ended = _ENDED[task.outcome].lower()
                text = extract(self._here(task.title), item, self._count)
                yield _RecapLine(past.hit, f"{text.rstrip('.')} ({ended})", is_open=True)
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

    def _taken(self) -> list[_RecapLine]:
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
        summary = lines_beyond(self._recap.summary, [line.text for line in self._taken()])
        if not summary.strip():
            return ""
        room = self._tokens - self._count(self._text())
        for share in range(room, 0, -max(1, room // SUMMARY_TRIES)):
            shown = _within(summary, share, self._count)
            text = self._text(shown)
            if shown and self._count(text) <= self._tokens:
                return text
        return ""


def _each_once(lines: Iterable[_RecapLine]) -> list[_RecapLine]:
    """The lines without those that say the same as one before."""
    kept: list[_RecapLine] = []
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


def _account_of(past: Past, still: Sequence[Task]) -> str:
    """A session in a line: what it was about, how that ended, and what was said about it."""
    is_one = len(past.tasks) == 1
    account = [_sentence(past.title)]
    if is_one and (ended := _ENDED.get(past.tasks[0].outcome)):
        account.append(f"{ended}, still open." if still else _sentence(ended))
    elif still:
        account.append(_sentence(f"Still open: {'; '.join(task.title for task in still)}"))
    done = [each.title for each in past.tasks if each.outcome is _Outcome.SUCCESS]
    if not is_one and (more := [each for each in done if each not in past.account]):
        account.append(_sentence(f"Done: {'; '.join(more)}"))
    return " ".join([*account, past.account]).strip()


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


FACTS_LOOKED_AT = 60  # of what people want, of what is known, and of what was added
SESSIONS_LOOKED_AT = 20
SUMMARY_PATH = "~/memory/memory_summary"
SUMMARY_CHARS_MIN = 1500  # redacted beyond what is shown, so that no secret is cut in two
_PLANS = {FactTag.GOAL.value, FactTag.COMMITMENT.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recapper:
    """Tells what a session begins with, of one space."""

    runtime: Runtime
    store: Store
    space: str
    redact: Callable[[str], str] | None = None  # one that remembers what it has redacted

    def context(
        self,
        max_tokens: int | None = None,
        *,
        max_facts: int = FACTS_MAX,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        beside: str | None = None,
        after: Context | None = None,
    ) -> Context:
        """The recap of the project that is asked for, else of the person.

        `beside` is the session that the prompt shows anyway, `after` a block that stands before
        it: nothing of that is said again, and marks go on from there.
        """
        tokens = self.runtime.settings.recap_tokens if max_tokens is None else max_tokens
        if type(tokens) is not int or type(max_facts) is not int:
            raise InvalidValue("max_tokens and max_facts are whole numbers")
        asked = read_filters(filters, kinds=kinds, as_of=as_of)
        if tokens <= 0:
            return Context(text="")
        shown = () if after is None else after.citations
        recap = self._recap(asked, tokens, beside or "", {each.hit.id for each in shown})
        block = pack_recap(recap, max_tokens=tokens, max_facts=max_facts, first=len(shown) + 1)
        return replace(block, id=self.runtime.ids.new()) if block else block

    def _recap(self, filters: Filters, tokens: int, beside: str, shown: set[str]) -> Recap:
        now = self.runtime.now()
        redact = self.redact or cache(self.runtime.redactor().keyed(self.space).redact)
        latest = self.store.search.latest(
            self.space,
            filters,
            now,
            facts=FACTS_LOOKED_AT,
            sessions=SESSIONS_LOOKED_AT,
            beside=beside,
        )
        place = place_of(filters.project)
        has_facts = EntryKind.FACT in filters.kinds

        def hits(entries: Iterable[Entry]) -> list[Hit]:
            found = [entry for entry in entries if has_facts and entry.id not in shown]
            return [_hit(entry, redact) for entry in sorted(found, key=_age)]

        # What reads like an order is an instruction of the person, or nobody's.
        orders = [each for each in latest.added if commands(each.text)]
        instructions = [each for each in orders if each.trust is Trust.USER]
        added = [
            each for each in latest.added if each.metadata.get("project") and each not in orders
        ]
        known = [
            each for each in latest.known if each.trust is Trust.USER or not commands(each.text)
        ]
        sessions = latest.sessions if EntryKind.SUMMARY in filters.kinds else ()
        wanted = hits([*latest.instructions, *instructions])
        not_shown = [each for each in sessions if each.entry.id not in shown]
        said = [each.text for each in wanted]
        return Recap(
            instructions=wanted,
            sessions=self._past(not_shown, said, filters, redact),
            plans=hits([each for each in known if not _PLANS.isdisjoint(each.tags)]),
            known=hits([*(each for each in known if _PLANS.isdisjoint(each.tags)), *added]),
            summary=self._summary(filters, tokens, redact),
            project=named(redact(place)) if place else "",
            place=redact(place),
        )

    def _past(
        self,
        sessions: Sequence[PastSession],
        known: Sequence[str],
        filters: Filters,
        redact: Callable[[str], str],
    ) -> list[Past]:
        """What sessions came to, without what no longer holds; at another time, as it was said."""
        now = self.runtime.now()
        revised: dict[str, list[str]] = defaultdict(list)
        if filters.as_of is None:
            ids = sorted(each.entry.id for each in sessions)
            for revision in self.store.search.revisions(self.space, ids, now):
                revised[revision.session_id].append(revision.statement)
        found: list[Past] = []
        for each in sessions:

            def fit(text: str, session_id: str = each.entry.id) -> str:
                def is_persons(order: str) -> bool:
                    # Seldom asked for, and slow to load.
                    from recollect.recall.attribution import voucher

                    return voucher(self.store, self.space, now, session_id)(order)

                gone = revised[session_id]
                said = redact(text)
                return safe_for_models(lines_beyond(said, gone) if gone else said, is_persons)

            past = read_past(each, _hit(each.entry, redact), fit, known)
            if past is not None:
                found.append(past)
        return found

    def _summary(self, allowed: Filters, tokens: int, redact: Callable[[str], str]) -> str:
        """What the space's memory comes to, once consolidation has written it.

        It is about everything: who asks for less, or for another time, gets none of it.
        """
        everything = Filters(
            kinds=allowed.kinds,
            as_of=allowed.as_of,
            trust=allowed.trust,
            or_no_project=allowed.or_no_project,
        )
        is_wanted = EntryKind.DOCUMENT in allowed.kinds and Trust.AGENT in (allowed.trust or Trust)
        if allowed != everything or not is_wanted:
            return ""
        from recollect.documents.paths import read_path  # of a project nobody asks for it

        found = self.store.documents.find(self.space, read_path(SUMMARY_PATH).place)
        if found is None or (allowed.as_of is not None and found.updated_at > allowed.as_of):
            return ""
        chars_max = CHARS_PER_TOKEN_MAX * tokens
        # The recap has the last sessions itself.
        body = LISTED_SESSIONS.sub("", found.body).strip()
        text = redact(without_links(without_notes(body))[: chars_max + SUMMARY_CHARS_MIN])
        if len(body) > chars_max:
            text = text[: min(chars_max, max(len(text) - SUMMARY_CHARS_MIN, 0))]
        # Whoever writes this page has left out orders that no person gave.
        return bare(text)


def _age(entry: Entry) -> tuple[float, int]:
    return -entry.at.timestamp(), -entry.key


def _hit(entry: Entry, redact: Callable[[str], str]) -> Hit:
    sources = entry.sources
    if entry.kind is EntryKind.SUMMARY:
        sources = (Source(session_id=entry.session_id, seq=1, seq_to=max(entry.seq_to, 1)),)
    return Hit(
        id=entry.id,
        kind=entry.kind,
        text=redact(entry.text),
        score=0.0,
        why={},
        sources=tuple(
            replace(source, quote=redact(source.quote)) if source.quote else source
            for source in sources
        ),
        at=entry.at,
        trust=entry.trust,
        tags=tuple(map(redact, entry.tags)),
        usage_count=entry.usage_count,
    )
