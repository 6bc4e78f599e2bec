"""A small Markdown document that can be read again and grown: a head, sections, lists in them.

Reading never fails: what is not of this shape is kept as it is, so that a text that something else
wrote survives being grown here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from recollect.extraction.piece import Block, BlockKind, Piece
from recollect.extraction.rules.actions import Action, Ending
from recollect.extraction.rules.conversation import PAUSE
from recollect.extraction.rules.rulebook import Rulebook
from recollect.extraction.rules.sentences import sentences
from recollect.extraction.rules.wording import ascii_slug
from recollect.messages import Role
from recollect.quarantine import commands
from recollect.types.facts import Draft, FactTag, NewFact

LINE_CHARS_MAX = 400


@dataclass(slots=True, kw_only=True)
class TextSection:
    """A heading, the lines right below it, and named lists of entries."""

    title: str
    lines: list[str] = field(default_factory=list)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, entries: Iterable[str], limit: int) -> None:
        """Grow a list, each entry once; of more than `limit` entries the oldest go."""
        if listed := _grown_lines(self.lists.pop(name, ()), entries, limit):
            self.lists[name] = listed

    def grow(self, entries: Iterable[str], limit: int) -> None:
        """Grow the lines below the heading in the same way."""
        self.lines = _grown_lines(self.lines, entries, limit)

    def put(self, name: str, value: str) -> None:
        """Set a line `name: value`."""
        line = f"{name}: {one_line(value, LINE_CHARS_MAX)}"
        for place, known in enumerate(self.lines):
            if known.startswith(f"{name}: "):
                self.lines[place] = line
                return
        self.lines.append(line)

    def get(self, name: str) -> str:
        return next(
            (line[len(name) + 2 :] for line in self.lines if line.startswith(f"{name}: ")), ""
        )

    def text(self) -> str:
        lists = [
            "\n".join([f"### {name}", *entries]) for name, entries in self.lists.items() if entries
        ]
        head = "\n".join([f"## {self.title}", *self.lines])
        return "\n".join([head, *lists])


@dataclass(slots=True, kw_only=True)
class Outline:
    """The whole document."""

    front: dict[str, str] = field(default_factory=dict)
    lead: list[str] = field(default_factory=list)  # before the first section
    sections: list[TextSection] = field(default_factory=list)

    def section(self, title: str) -> TextSection:
        """The section of that name, made if there is none."""
        for section in self.sections:
            if section.title == title:
                return section
        self.sections.append(TextSection(title=title))
        return self.sections[-1]

    def text(self) -> str:
        front = []
        if self.front:
            lines = [f"{name}: {value}" for name, value in self.front.items() if value]
            front = ["\n".join(["---", *lines, "---"])]
        lead = ["\n".join(self.lead)] if self.lead else []
        body = [section.text() for section in self.sections if section.lines or section.lists]
        return "\n\n".join([*front, *lead, *body])

    def bounded(self, chars_max: int) -> str:
        """The text, without the lists of the oldest sections and then the oldest sections."""
        text = self.text()
        for section in self.sections[:-1]:
            if len(text) <= chars_max:
                return text
            section.lists.clear()
            text = self.text()
        while len(text) > chars_max and len(self.sections) > 1:
            del self.sections[0]
            text = self.text()
        return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def _grown_lines(known: Iterable[str], entries: Iterable[str], limit: int) -> list[str]:
    new = (one_line(f"- {entry}", LINE_CHARS_MAX) for entry in entries)
    return list(dict.fromkeys((*known, *new)))[-limit:]


def read_outline(text: str) -> Outline:
    """A document from its text."""
    outline = Outline()
    lines = text.strip().split("\n")
    if lines[0] == "---" and "---" in lines[1:]:
        end = lines.index("---", 1)
        for line in lines[1:end]:
            name, colon, value = line.partition(": ")
            if colon:
                outline.front[name] = value
        lines = lines[end + 1 :]
    target = outline.lead
    for line in lines:
        if line.startswith("## "):
            outline.sections.append(TextSection(title=line[3:]))
            target = outline.sections[-1].lines
        elif line.startswith("### ") and outline.sections:
            target = outline.sections[-1].lists.setdefault(line[4:], [])
        elif line.strip():
            target.append(line)
    return outline


def one_line(text: str, chars_max: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


MEMORY_CHARS_MAX = 8_000
SUMMARY_CHARS_MAX = 6_000
SLUG_CHARS_MAX = 60
TITLE_CHARS_MAX = 120
_SLUG_WORDS_MAX = 6
_KEYWORDS_MAX = 12
_LIST_MAX = 12
_POINTS_MAX = 24
_ASKED_MAX = 10
_FILES_MAX = 20
_COMMANDS_MAX = 12
_REQUEST_WORDS_MIN = 3
_ANSWERS = ("thanks", "affirms")  # and no requests
_WORD = re.compile(r"[^\W_][\w'’-]*[^\W_]|[^\W_]")

_SIGNALS = frozenset(
    {FactTag.PREFERENCE, FactTag.INSTRUCTION, FactTag.CORRECTION, FactTag.DECISION, FactTag.GOAL}
)
SIGNALS, KNOWLEDGE, FAILURES, REFERENCES = (
    "Preference signals",
    "Reusable knowledge",
    "Failures",
    "References",
)


class TaskOutcome(StrEnum):
    """How a task ended, as far as one can tell without asking."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAIL = "fail"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a piece came to, ready to be written about."""

    piece: Piece
    facts: tuple[NewFact, ...]
    actions: tuple[Action, ...]

    @property
    def commands(self) -> dict[str, Ending]:
        """The commands that did something, and how each ended the last time."""
        return {
            action.command: action.ending
            for action in self.actions
            if action.command and not action.is_look
        }

    @property
    def files(self) -> dict[str, None]:
        return {
            file: None
            for action in self.actions
            if action.ending is not Ending.FAILED
            for file in action.files
        }


class TextWriter:
    """Writes the texts of one language."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book

    def write(self, told: Told) -> Draft:
        """What a piece came to: its facts, and the three texts about them."""
        asked = self.asked(told.piece.blocks)
        outcome = self._outcome(told)
        title = self._title(told.piece, asked)
        previous = told.piece.previous
        return Draft(
            upto=told.piece.upto,
            raw_memory=self._memory(told, title, outcome),
            rollout_summary=self._summary(told, title, asked, outcome),
            rollout_slug=(previous.rollout_slug if previous else None) or self._slug(title, told),
            facts=told.facts,
        )

    def _memory(self, told: Told, title: str, outcome: TaskOutcome) -> str:
        piece = told.piece
        outline = Outline() if piece.previous is None else read_outline(piece.previous.raw_memory)
        group = piece.session.project or self._book.templates["no_project"]
        task = self._task(outline, piece, title)
        task.put("task", task.get("task") or title)
        task.put("task_group", one_line(group, TITLE_CHARS_MAX))
        if outcome is not TaskOutcome.UNCERTAIN or not task.get("task_outcome"):
            task.put("task_outcome", outcome.value)
        task.put("records", _grown(task.get("records"), told))
        self._list_points(task, told)
        front = {
            "description": outline.front.get("description") or title,
            "task": outline.front.get("task") or title,
            "task_group": one_line(group, TITLE_CHARS_MAX),
            "task_outcome": task.get("task_outcome"),
            "cwd": one_line(piece.session.project or "", TITLE_CHARS_MAX),
            "keywords": ", ".join(self._keywords(outline.front.get("keywords", ""), told)),
        }
        outline.front = {**outline.front, **front}
        before = "" if piece.previous is None else piece.previous.raw_memory
        return _bounded(outline, before, MEMORY_CHARS_MAX)

    def _task(self, outline: Outline, piece: Piece, title: str) -> TextSection:
        """The section of the task at hand: the last one, unless there was a pause since."""
        if outline.sections and _goes_on(piece):
            return outline.sections[-1]
        number = len(outline.sections) + 1
        if outline.sections and (found := re.match(r"Task (\d{1,6}):", outline.sections[-1].title)):
            number = int(found[1]) + 1
        outline.sections.append(TextSection(title=f"Task {number}: {title}"))
        return outline.sections[-1]

    def _list_points(self, task: TextSection, told: Told) -> None:
        lists: dict[str, list[str]] = {SIGNALS: [], KNOWLEDGE: [], FAILURES: [], REFERENCES: []}
        for fact in _weightiest(told.facts, 2 * _LIST_MAX):
            tag = FactTag(fact.tags[0])
            name = SIGNALS if tag in _SIGNALS else KNOWLEDGE
            lists[FAILURES if tag is FactTag.LESSON else name].append(_point(fact))
        if commands := _commands(told):
            lists[REFERENCES].append("commands: " + ", ".join(commands))
        if files := list(told.files)[-_FILES_MAX:]:
            lists[REFERENCES].append("files: " + ", ".join(files))
        for name, entries in lists.items():
            if entries:
                task.add(name, entries, _LIST_MAX)

    def _summary(
        self, told: Told, title: str, asked: Sequence[tuple[int, str]], outcome: TaskOutcome
    ) -> str:
        piece, templates = told.piece, self._book.templates
        outline = (
            Outline() if piece.previous is None else read_outline(piece.previous.rollout_summary)
        )
        if not outline.lead:
            outline.lead = [f"# {title}"]
            if piece.is_background:
                outline.lead.append(templates["background"])
        if asked:
            requests = [f"{text} [#{seq}]" for seq, text in asked]
            outline.section(templates["asked"]).grow(requests, _ASKED_MAX)
        came = outline.section(templates["came_out"])
        if outcome is not TaskOutcome.UNCERTAIN or not came.get("outcome"):
            came.put("outcome", outcome.value)
        if closing := self._closing(piece.blocks):
            came.put(templates["closing"], closing)
        points = [_point(fact) for fact in _weightiest(told.facts, _POINTS_MAX)]
        outline.section(templates["points"]).grow(points, _POINTS_MAX)
        if commands := _commands(told):
            outline.section(templates["commands"]).grow(commands, _COMMANDS_MAX)
        if told.files:
            outline.section(templates["files"]).grow(list(told.files), _FILES_MAX)
        before = "" if piece.previous is None else piece.previous.rollout_summary
        return _bounded(outline, before, SUMMARY_CHARS_MAX)

    def _title(self, piece: Piece, asked: Sequence[tuple[int, str]]) -> str:
        if asked:
            return one_line(asked[0][1], TITLE_CHARS_MAX).rstrip(" .:;,!")
        speakers = dict.fromkeys(
            block.speaker
            for block in piece.blocks
            if block.speaker and block.role is Role.USER and block.kind is BlockKind.SAID
        )
        day = piece.blocks[0].at.date().isoformat() if piece.blocks else ""
        name = "talk" if speakers else "session"
        names = ", ".join(str(speaker) for speaker in list(speakers)[:4])
        return one_line(
            self._book.templates[name].format(names=names, day=day), TITLE_CHARS_MAX
        ).strip()

    def asked(self, blocks: Sequence[Block]) -> list[tuple[int, str]]:
        """What people asked of an agent: the first request of each thing they said."""
        if not any(block.role is Role.ASSISTANT for block in blocks):
            return []
        found: list[tuple[int, str]] = []
        for block in blocks:
            if block.role is Role.USER and block.kind is BlockKind.SAID:
                request = self._request(block.text)
                answers = (self._book.phrase(each).match(request) for each in _ANSWERS)
                if request and ("?" in request or not any(answers)):
                    found.append((block.seq, request))
        return [*found[:1], *found[1:][-(_ASKED_MAX - 1) :]]

    def _request(self, text: str) -> str:
        first = ""
        for sentence in sentences(text[:2000]):
            if len(sentence.split()) < _REQUEST_WORDS_MIN:
                continue
            if "?" in sentence or self._book.phrase("requests").search(sentence):
                return one_line(sentence, TITLE_CHARS_MAX)
            first = first or sentence
        return one_line(first, TITLE_CHARS_MAX)

    def _closing(self, blocks: Sequence[Block]) -> str:
        """How the last words of an agent begin: a claim, and marked as such."""
        for block in reversed(blocks):
            if block.role is Role.ASSISTANT and block.kind is BlockKind.SAID:
                said = list(sentences(block.text[:1000]))
                whole = (each for each in said if len(each.split()) >= _REQUEST_WORDS_MIN)
                found = next(whole, said[0] if said else "")
                return "" if commands(found) else one_line(found, 2 * TITLE_CHARS_MAX)
        return ""

    def _outcome(self, told: Told) -> TaskOutcome:
        """What the last words of a person say, else what the last check showed."""
        words = [
            block.text[:400]
            for block in told.piece.blocks
            if block.role is Role.USER and block.kind is BlockKind.SAID
        ]
        checks = [
            action.ending
            for action in told.actions
            if action.kind and action.ending is not Ending.UNKNOWN
        ]
        passed = bool(checks) and checks[-1] is Ending.PASSED
        has_agent = any(block.role is Role.ASSISTANT for block in told.piece.blocks)
        if words and has_agent and len(words) > 1:
            if self._book.phrase("complains").search(words[-1]):
                return TaskOutcome.PARTIAL if passed else TaskOutcome.FAIL
            if self._book.phrase("thanks").search(words[-1]) and "?" not in words[-1]:
                return TaskOutcome.SUCCESS
        if not checks:
            return TaskOutcome.UNCERTAIN
        if passed:
            return TaskOutcome.SUCCESS
        return TaskOutcome.PARTIAL if Ending.PASSED in checks else TaskOutcome.FAIL

    def _keywords(self, before: str, told: Told) -> list[str]:
        counted: Counter[str] = Counter()
        for fact in told.facts:
            counted.update(self._telling(fact.quote))
        for file in told.files:
            counted[file.replace("\\", "/").rsplit("/", 1)[-1]] += 2
        known = [word for word in before.split(", ") if word]
        new = [word for word, _ in counted.most_common(2 * _KEYWORDS_MAX) if word not in known]
        kept = known[: _KEYWORDS_MAX - min(len(new), _KEYWORDS_MAX // 2)]
        return [*kept, *new[: _KEYWORDS_MAX - len(kept)]]

    def _telling(self, text: str) -> list[str]:
        words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
        return [word for word in words if len(word) > 3 and word not in self._book.stop_words]

    def _slug(self, title: str, told: Told) -> str | None:
        words = [word for word in _WORD.findall(title) if word.lower() not in self._book.stop_words]
        made = slug_of(words[:_SLUG_WORDS_MAX])
        return made or slug_of(self._keywords("", told)[:_SLUG_WORDS_MAX])


def _bounded(outline: Outline, before: str, chars_max: int) -> str:
    """The text within a limit; one that was longer before is a model's, and stays whole."""
    return outline.text() if len(before) > chars_max else outline.bounded(chars_max)


def slug_of(words: Sequence[str]) -> str | None:
    """Words as a name that is safe in a file's name; none where nothing is left of them."""
    made = ascii_slug(" ".join(words))
    if len(made) > SLUG_CHARS_MAX:
        made = made[: SLUG_CHARS_MAX + 1].rpartition("-")[0] or made[:SLUG_CHARS_MAX]
    return made.strip("-") or None


def _goes_on(piece: Piece) -> bool:
    if piece.previous is None or not piece.blocks:
        return False
    return piece.blocks[0].at - piece.previous.source_updated_at < PAUSE


def _commands(told: Told) -> list[str]:
    """The last commands that did something and no fact tells of, checks before any others."""
    kinds = {action.command: action.kind for action in told.actions}
    known = " ".join(fact.content for fact in told.facts)
    new = [command for command in told.commands if f"`{command}`" not in known]
    ranked = sorted(new, key=lambda command: bool(kinds[command]))[-_COMMANDS_MAX:]
    return [
        f"`{command}`" + ("" if ending is Ending.UNKNOWN else f" {ending.value}")
        for command, ending in told.commands.items()
        if command in ranked
    ]


def _weightiest(facts: Sequence[NewFact], count: int) -> list[NewFact]:
    """The surest facts, in the order of the session."""
    best = sorted(
        range(len(facts)), key=lambda place: -float(facts[place].metadata.get("confidence", 0))
    )
    return [facts[place] for place in sorted(best[:count])]


def _point(fact: NewFact) -> str:
    seqs = f"#{fact.seq}" if fact.seq == fact.seq_to else f"#{fact.seq}-{fact.seq_to}"
    return f"{one_line(fact.content, 300)} [{seqs}, {fact.trust.value}]"


def _grown(before: str, told: Told) -> str:
    first = before.partition("-")[0] or str(told.piece.first)
    return f"{first}-{told.piece.upto}"
