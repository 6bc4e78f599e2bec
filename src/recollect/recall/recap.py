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
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import starmap
from typing import TYPE_CHECKING, Any

from recollect.errors import InvalidValue
from recollect.extraction.scope import named, place_of
from recollect.models.tokens import estimate_tokens
from recollect.quarantine import bare, commands, safe_for_models
from recollect.quoting import harmless, quoted, quoted_lines
from recollect.recall.filters import read_filters
from recollect.recall.pack import (
    CHARS_PER_TOKEN_MAX,
    CUT,
    FACTS_MAX,
    ITEM_TOKENS_MIN,
    LINES_MAX,
    REFUSED_MAX,
    BlockLine,
    Packing,
    Reason,
    day_of,
    extract,
    longest,
)
from recollect.recall.statements import (
    LISTED_SESSIONS,
    Wording,
    hit_of,
    lines_beyond,
    says_nothing,
    without_links,
    without_notes,
)
from recollect.stemming import search_terms, stem
from recollect.types.facts import FactTag, Trust
from recollect.types.recall import (
    Context,
    Entry,
    EntryKind,
    Filters,
    Ground,
    Hit,
    PastSession,
    ground_of,
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
    grounds: Sequence[Ground] = ()
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

PARTS = ("## Standing instructions", "## Last sessions", "## Open", "## Known")
SHARES = (0.4, 0.85, 1.0, 1.0)  # of the budget that a part and those above it have at first


def pack_recap(recap: Recap, *, max_tokens: int, max_facts: int, first: int = 1) -> Context:
    """The block of a recap; nothing where there is nothing to say. Its first mark has that number.

    Instructions come first and leave room for the sessions, these for what is open; what has
    no room at first has what is left over.
    """
    packing = _RecapPacking(recap, max_tokens, first)
    packing.fill((max_facts, LINES_MAX, max_facts, max_facts))
    return packing.context(packing.with_summary())


class _RecapPacking(Packing):
    """A recap in the making."""

    def __init__(self, recap: Recap, max_tokens: int, first: int) -> None:
        title = f"# Project {quoted(recap.project)}" if recap.project else ""
        headings = [*PARTS[:-1], f"{PARTS[-1]} here"] if recap.project else PARTS
        super().__init__(headings, max_tokens, first=first, title=title)
        self._recap = recap
        self._tokens = max_tokens
        self._item_tokens = max(ITEM_TOKENS_MIN, min(SESSION_TOKENS, max_tokens // SESSION_SHARE))
        # Of a session, each left out where the line about the session says it.
        self._unfinished: set[int] = set()

    def fill(self, most: Sequence[int]) -> None:
        """Take what fits: each part within its share, then of what is left whatever has room."""
        waiting = list(self._made())
        for is_first in (True, False):
            left: list[BlockLine] = []
            refused = [0] * len(PARTS)  # in a row
            for line in waiting:
                part = line.part
                if line.rank in self._unfinished and self._has_session(line.hit):
                    continue
                limit = int(self._tokens * SHARES[part]) if is_first else self._tokens
                if sum(each.part == part for each in self.lines) >= most[part]:
                    self.leave_out(line.rank, line.hit, Reason.TOO_MANY)
                elif refused[part] >= REFUSED_MAX:
                    left.append(line)
                    self.leave_out(line.rank, line.hit, Reason.NO_ROOM)
                elif not self.join(line):
                    is_taken = self.add(line, limit)
                    refused[part] = 0 if is_taken else refused[part] + 1
                    left += [] if is_taken else [line]
            waiting = left

    def _made(self) -> Iterator[BlockLine]:
        """All that may be told, the parts in their order."""
        recap, standing = self._recap, _standing(self._recap.sessions)
        sessions = zip(recap.sessions[:SESSIONS_MAX], standing, strict=False)
        told: list[tuple[int, Hit, str]] = [
            *((0, hit, quoted(self._here(hit.text))) for hit in recap.instructions),
            *((1, past.hit, self._cut(_account_of(past, still))) for past, still in sessions),
        ]
        later: list[frozenset[str]] = []
        for past, tasks in zip(recap.sessions, standing, strict=True):
            told += [
                (2, past.hit, self._cut(left))
                for left in past.left
                if not any(_is_alike(_words(left), words) for words in later)
            ]
            for task in tasks:
                ended = _ENDED[task.outcome].lower()
                self._unfinished.add(len(told))
                told.append((2, past.hit, f"{self._cut(task.title).rstrip('.')} ({ended})"))
            later += [task.words for task in past.tasks]
        told += [(2, hit, quoted(self._here(hit.text))) for hit in recap.plans]
        told += [(3, hit, quoted(self._here(hit.text))) for hit in recap.known]
        for rank, (part, hit, text) in enumerate(told):
            if text:
                behind, wording = day_of(hit.at), Wording.of(text)
                yield BlockLine(
                    rank=rank, part=part, hit=hit, text=text, wording=wording, behind=behind
                )

    def _here(self, text: str) -> str:
        """A text as it reads under the name of its project."""
        recap = self._recap
        if not recap.place:
            return text
        for opening in (f"In {recap.project}, ", f"In {recap.project}: "):
            if text.startswith(opening):
                text = _capital(text.removeprefix(opening))
        root = f"{recap.place.rstrip('/')}/"
        return text.replace(root, "") if len(root) > 1 else text

    def _cut(self, text: str) -> str:
        return extract(self._here(text), self._item_tokens)

    def _has_session(self, hit: Hit) -> bool:
        return any(line.part == 1 and line.hit.id == hit.id for line in self.lines)

    def with_summary(self) -> str | None:
        """The block with as much of the summary as there is room for; none without room."""
        summary = lines_beyond(self._recap.summary, [line.text for line in self.lines])
        if not summary.strip():
            return None
        room = self._tokens - estimate_tokens(self.text())
        for share in range(room, 0, -max(1, room // SUMMARY_TRIES)):
            shown = _within(summary, share)
            text = self.text(f"## Summary\n\n{shown}")
            if shown and estimate_tokens(text) <= self._tokens:
                return text
        return None


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


def _within(summary: str, share: int) -> str:
    """The summary's lines that fit into its share, and a sign where it goes on."""
    window = summary[: CHARS_PER_TOKEN_MAX * share]
    lines = quoted_lines(window)
    if len(window) == len(summary) and estimate_tokens("\n".join(lines)) <= share:
        return "\n".join(lines)

    def up_to(line_count: int) -> str:
        return harmless("\n".join([*lines[:line_count], CUT]))

    kept = longest(range(1, len(lines)), up_to, share)
    return up_to(kept) if kept else extract(summary, share)


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
        grounds=(*found.grounds, *recap.grounds),
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
        if not block:
            return block
        cited = {(each.hit.kind, each.hit.id) for each in block.citations}
        grounds = [each for each in recap.grounds if (each.kind, each.id) in cited]
        grounds += [each for each in recap.grounds if each.kind is EntryKind.DOCUMENT]
        return replace(block, id=self.runtime.ids.new(), grounds=tuple(grounds))

    def _recap(self, filters: Filters, tokens: int, beside: str, shown: set[str]) -> Recap:
        now = self.runtime.now()
        redact = self.runtime.redacting(self.space)
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
            return [hit_of(entry, redact, now) for entry in sorted(found, key=_age)]

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
        summary, page = self._summary(filters, tokens, redact)
        entries = (*latest.instructions, *latest.added, *latest.known)
        texts = ((each.entry, f"{each.entry.text}\n{each.raw_memory}") for each in sessions)
        return Recap(
            instructions=wanted,
            sessions=self._past(not_shown, said, filters, redact),
            plans=hits([each for each in known if not _PLANS.isdisjoint(each.tags)]),
            known=hits([*(each for each in known if _PLANS.isdisjoint(each.tags)), *added]),
            summary=summary,
            grounds=(*map(ground_of, entries), *starmap(ground_of, texts), *page),
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
                    from recollect.recall.question import voucher

                    return voucher(self.store, self.space, now, session_id)(order)

                gone = revised[session_id]
                said = redact(text)
                return safe_for_models(lines_beyond(said, gone) if gone else said, is_persons)

            past = read_past(each, hit_of(each.entry, redact, now), fit, known)
            if past is not None:
                found.append(past)
        return found

    def _summary(
        self, allowed: Filters, tokens: int, redact: Callable[[str], str]
    ) -> tuple[str, tuple[Ground, ...]]:
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
            return "", ()
        from recollect.documents.paths import read_path  # of a project nobody asks for it

        found = self.store.documents.find(self.space, read_path(SUMMARY_PATH).place)
        if found is None or (allowed.as_of is not None and found.updated_at > allowed.as_of):
            return "", ()
        chars_max = CHARS_PER_TOKEN_MAX * tokens
        # The recap has the last sessions itself.
        body = LISTED_SESSIONS.sub("", found.body).strip()
        text = redact(without_links(without_notes(body))[: chars_max + SUMMARY_CHARS_MIN])
        if len(body) > chars_max:
            text = text[: min(chars_max, max(len(text) - SUMMARY_CHARS_MIN, 0))]
        # Orders that no person gave were left out when the page was written.
        return bare(text), (Ground(EntryKind.DOCUMENT, found.path, found.key, found.body, "", ""),)


def _age(entry: Entry) -> tuple[float, int]:
    return -entry.at.timestamp(), -entry.key
