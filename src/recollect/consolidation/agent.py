"""The consolidation agent: a model that brings a staged handbook up to date, within hard budgets.

Owns G8: it works on staged pages and nothing else, nothing of its run is remembered, and what it
leaves is valid or the run has failed. It is shown what is new in parts that fit its window, each
with a budget of its own, so that how much is selected does not decide whether a run can finish.
What is wrong with its pages goes back to it twice; a run that reaches a bound, or is still invalid
then, is InvalidOutput; its pages are to be dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from recollect.agents.loop import Loop, LoopLimits, LoopResult, Stop
from recollect.agents.memory_agent import without_orders
from recollect.agents.toolbox import Tool, Toolbox, document_definitions
from recollect.clock import Clock
from recollect.config import Settings
from recollect.consolidation.pages import MEMORY, RAW, SKILLS, SUMMARIES, SUMMARY, skill_path
from recollect.consolidation.validation import (
    LIMITS,
    TEMPLATE_LINK,
    GenerationGrounds,
    PageProblem,
    WrittenLimits,
    losses,
    missing_from,
    problems,
)
from recollect.context.assembly import WindowLimits as Room
from recollect.context.assembly import assemble
from recollect.documents.editing import OnReferences
from recollect.documents.paths import DocumentPath, memory_root, read_path, stored_path
from recollect.documents.reading import is_id
from recollect.documents.staged import StagedPages
from recollect.documents.tools import DocumentTools, fenced
from recollect.errors import InvalidOutput, InvalidPath, InvalidValue, NotAllowed
from recollect.extraction.spend import Budget, Purpose, Till
from recollect.extraction.transcript import one_line
from recollect.ids import Ids
from recollect.messages import Role
from recollect.models.prompts import Prompt, load_prompt
from recollect.models.protocol import Completion, Model, Request, ToolDefinition
from recollect.models.tokens import estimate_tokens
from recollect.pages.markdown import shown
from recollect.redaction import Redactor
from recollect.session import LIST_MAX
from recollect.store.protocol import Ledger
from recollect.types.facts import Spent
from recollect.types.generations import Pick, Removed, Selection
from recollect.types.records import NewRecord, Record

PROMPTS = Path(__file__).parent / "prompts"
PURPOSE = "consolidate"
REPAIRS_MAX = 2
LINES_MAX = 200  # of each kind of memory that a request names one by one
LINE_TOKENS = 40  # what it takes to name one
PART_WINDOW_SHARE = 4  # what is new takes at most this part of the window, and so do the pages;
PART_TOKENS_SHARE = 16  # of a run's tokens less, for both are sent with every turn
EVIDENCE_PAGE = 100  # memories that are read at a time
CHARS_PER_TOKEN = 3  # that are safe to promise
ROOM_SHARE = 0.9  # of the handbook's bytes that parts may fill
BY_HAND = "Added by hand"
CUT = (
    "Your answer was cut off at the limit of its tokens, and none of its calls was carried out. Do "
    "the same in smaller steps: at most {:,} characters in one answer, a long page with "
    "document_append, a piece in each answer."
)
NOTE_CHARS_MAX = 500
ADDED_CHARS_MAX = 600
ERROR_PROBLEMS = 3  # that an error names

READING = frozenset({"document_read", "document_tree", "document_search"})
WRITING = frozenset({"document_write", "document_append", "document_patch"})
DELETING = "skill_delete"
ALLOWED = READING | WRITING | {DELETING}

_SKILLS = read_path(SKILLS)
_WRITABLE = frozenset({read_path(MEMORY).key, read_path(SUMMARY).key})
_DELETE = ToolDefinition(
    name=DELETING,
    description="Delete a skill that nothing supports any more, with all that stands below it. "
    "Take links to it off your pages.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": f"Its path, such as {skill_path('a-name')}."}
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)

_Named = TypeVar("_Named")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBrief:
    """What one run is about.

    The pages it goes with hold the evidence already: the summaries of all that is selected or
    was removed, and the raw memories of both. What is `added` is what the handbook does not say
    yet, in the order in which it is to be read. `pages` is where the summaries stand, by session;
    `evidence` gives what sessions came to; `is_lost` says that the claim is held by nobody here any
    more; `changed` is called after every page that the model writes; `is_persons` says whether a
    person gave an order.
    """

    selection: Selection
    pages: Mapping[str, str]
    grounds: GenerationGrounds
    evidence: Callable[[Sequence[Pick]], Mapping[str, str]] = lambda _picks: {}
    attempt: int = 1
    is_lost: Callable[[], bool] = lambda: False
    changed: Callable[[], None] = lambda: None
    is_persons: Callable[[str], bool] = lambda _order: False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """What a run came to: what the model says it did, and what that took."""

    note: str
    spent: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConsolidator:
    """Makes generations with a model. Safe to share between threads."""

    settings: Settings
    clock: Clock
    ids: Ids
    redactor: Callable[[], Redactor]
    model: Model
    ledger: Ledger
    budget: Budget
    limits: LoopLimits
    page_limits: WrittenLimits = LIMITS

    @property
    def name(self) -> str:
        """The maker of generations: the model and the version of its prompt."""
        return f"{self.model.name}/consolidation-{self._prompt('consolidation').version}"

    def run(self, pages: StagedPages, brief: AgentBrief) -> AgentReport:
        """Bring the staged pages up to date; valid, or InvalidOutput.

        CallCancelled: the claim was lost. The caller drops the pages after any error.
        """
        run = _Run(
            agent=self,
            pages=pages,
            brief=brief,
            till=self._till(brief),
            redact=self.redactor().keyed(brief.selection.space).redact,
            id=self.ids.new(),
            began_at=self.clock.now(),
        )
        for part in run.parts():
            result = run.begin(part)
        for _ in range(REPAIRS_MAX):
            found = run.problems()
            if not found:
                break
            _log.info("%s: %d problems to repair", brief.selection.space, len(found))
            result = run.asked(found)
        else:
            _check_valid(run.problems())
        said = one_line(run.redact(result.text), NOTE_CHARS_MAX)
        return AgentReport(note=said, spent=run.till.spent)

    def system(self) -> str:
        limits = self.page_limits
        return self._prompt("consolidation").fill(
            root=str(memory_root()),
            memory=MEMORY,
            summary=SUMMARY,
            skills=SKILLS,
            raw=RAW,
            summaries=SUMMARIES,
            example=TEMPLATE_LINK,
            memory_bytes=f"{limits.memory_bytes:,}",
            summary_chars=f"{limits.summary_chars:,}",
            skill_lines=f"{limits.skill_lines:,}",
        )

    @property
    def room(self) -> Room:
        return Room(
            window_tokens=self.model.window_tokens,
            reply_tokens=self.limits.reply_tokens,
            max_history_len=self.settings.max_history_len,
        )

    def request(self, brief: AgentBrief, run: str, lines: Iterable[str]) -> str:
        selection = brief.selection
        return self._prompt("consolidation-request").fill(
            run=run,
            added=f"{len(selection.added):,}",
            retained=f"{len(selection.retained):,}",
            removed=f"{len(selection.removed):,}",
            lines="\n".join(lines),
        )

    def repair(self, found: Sequence[PageProblem]) -> str:
        listed = "\n".join(f"{number}. {each}" for number, each in enumerate(found, start=1))
        return self._prompt("consolidation-repair").fill(problems=listed)

    def _till(self, brief: AgentBrief) -> Till:
        purpose = Purpose(space=brief.selection.space, session_id=None, attempt=brief.attempt)
        return Till(self.model, self.ledger, self.settings, self.clock, self.budget, purpose)

    def _prompt(self, name: str) -> Prompt:
        return load_prompt(PROMPTS, name, self.settings.prompts_dir)


@dataclass(frozen=True, slots=True, kw_only=True)
class _MemoryBatch:
    """Some of the new memories, which are shown and folded in at once.

    `share` is what they are of all that is not folded in yet. After several parts there is one
    without memories, in which the model looks at the whole.
    """

    number: int = 1
    of: int = 1
    picks: tuple[Pick, ...] = ()
    share: float = 1.0

    @property
    def is_last(self) -> bool:
        return self.number == self.of

    def __str__(self) -> str:
        if self.of == 1:
            return ""
        where = f" This is part {self.number:,} of {self.of:,}"
        if self.is_last:
            return f"{where}: merge what {MEMORY} says twice, then write {SUMMARY} and the skills."
        return f"{where}: fold it into {MEMORY}, and leave {SUMMARY} and the skills for the last."


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run: what it works on, and what its part has used of the budgets. For one thread."""

    agent: ModelConsolidator
    pages: StagedPages
    brief: AgentBrief
    till: Till
    redact: Callable[[str], str]
    id: str
    began_at: datetime
    is_first: bool = field(init=False)
    part_tokens: int = field(init=False)  # what the memories of one part may take
    part: _MemoryBatch = _MemoryBatch()
    records: int = 0
    turns: int = 0
    tokens: int = 0
    tool_bytes: int = 0

    def __post_init__(self) -> None:
        pages = map(self.pages.find, (MEMORY, SUMMARY))
        self.is_first = any(page is None or not page.body.strip() for page in pages)
        agent = self.agent
        budget = agent.room.budget(system=agent.system(), tools=definitions())
        most = agent.limits.tokens // PART_TOKENS_SHARE
        self.part_tokens = max(LINE_TOKENS, min(most, budget.history_tokens // PART_WINDOW_SHARE))

    def parts(self) -> list[_MemoryBatch]:
        """The new memories in parts that fit; one part where all of them do, or there are none."""
        batches: list[list[Pick]] = [[]]
        sizes = [0]
        for pick, text in self._evidence(self.brief.selection.added):
            tokens = LINE_TOKENS + estimate_tokens(text)
            if batches[-1] and sizes[-1] + tokens > self.part_tokens:
                batches.append([])
                sizes.append(0)
            batches[-1].append(pick)
            sizes[-1] += tokens
        count = len(batches) + (len(batches) > 1)
        parts = []
        for at, picks in enumerate(batches):
            share = sizes[at] / max(1, sum(sizes[at:]))
            parts.append(_MemoryBatch(number=at + 1, of=count, picks=tuple(picks), share=share))
        return parts if count == 1 else [*parts, _MemoryBatch(number=count, of=count)]

    def _evidence(self, picks: Sequence[Pick]) -> Iterator[tuple[Pick, str]]:
        """What sessions came to, each no longer than a part."""
        for start in range(0, len(picks), EVIDENCE_PAGE):
            page = picks[start : start + EVIDENCE_PAGE]
            texts = self.brief.evidence(page)
            for pick in page:
                yield pick, texts.get(pick.session_id, "")[: CHARS_PER_TOKEN * self.part_tokens]

    def begin(self, part: _MemoryBatch) -> LoopResult:
        """Let the model work on a part, which has the budgets of a run of its own."""
        self.part, self.began_at = part, self.agent.clock.now()
        self.turns = self.tokens = self.tool_bytes = 0
        return self.asked(())

    def asked(self, found: Sequence[PageProblem]) -> LoopResult:
        """Let the model work until it says that it is done, with what is left of the budgets.

        For a repair it starts anew from the request: what it did stands in the pages, and what it
        read on the way would only take up the room.
        """
        said = [self.agent.request(self.brief, self._opening(), self._lines())]
        if found:
            said.append(self.agent.repair(found))
        history = [self._record(NewRecord(role=Role.USER, content=text)) for text in said]
        result = self._loop().run(history, turns_before=self.turns)
        if result.stop is not Stop.ANSWERED:
            where = f" in part {self.part.number:,} of {self.part.of:,}" if self.part.of > 1 else ""
            raise InvalidOutput(f"the consolidation agent did not finish{where}: {result.reason}")
        return result

    def problems(self) -> list[PageProblem]:
        """What is wrong with the pages as they are now, once people's own lines are in them."""
        self._keep_added()
        grounds = self.brief.grounds
        limits = self.agent.page_limits
        found = problems(self.pages, grounds, redact=self.redact, limits=limits)
        return found if self.is_first else [*found, *losses(self.pages, grounds)]

    def _keep_added(self) -> None:
        """Put what people added back into the handbook where the model left it out, if it fits."""
        page = self.pages.find(MEMORY)
        if page is None or not page.body.strip():
            return
        added = map(shown, self.brief.grounds.by_hand[:LINES_MAX])
        missing = [f"- {self.redact(each)}" for each in missing_from(page.body, added)]
        heading = f"## {BY_HAND}"
        head, _, rest = page.body.partition(f"{heading}\n\n")
        for count in range(len(missing), 0, -1):
            lines = "\n".join(missing[:count])
            body = f"{head.rstrip()}\n\n{heading}\n\n{lines}\n{rest}"
            if len(body.encode()) <= self.agent.page_limits.memory_bytes:
                self.pages.write(MEMORY, body)
                self.brief.changed()
                return

    # what the model is asked

    def _opening(self) -> str:
        if self.is_first:
            return f"This is a first run: write the handbook from all that is selected.{self.part}"
        number = self.brief.selection.generation
        return f"Generation {number:,} of this memory is to be brought up to date.{self.part}"

    def _lines(self) -> Iterator[str]:
        """First what is to be forgotten, then what is new, the rest, the pages, the limits."""
        brief, selection = self.brief, self.brief.selection
        is_beginning = self.part.number == 1
        if is_beginning:
            yield from _bounded(_removed_line, selection.removed, "removed")
        for pick, text in self._evidence(self.part.picks):
            yield _pick_line(brief, "added", pick)
            if text:
                yield fenced(text)
        if is_beginning:
            retained = partial(_pick_line, brief, "retained")
            yield from _bounded(retained, selection.retained, "retained")
        if is_beginning and brief.grounds.by_hand:
            yield f"\n{BY_HAND}, without a session. Keep these word for word; they need no link:\n"
            yield from _bounded(
                lambda each: f"- {one_line(each, ADDED_CHARS_MAX)}", brief.grounds.by_hand
            )
        for path in (MEMORY, SUMMARY):
            yield f"\n{self._page(path)}"
        yield f"\n{self._limits()}"

    def _page(self, path: str) -> str:
        """Return the page, or only its headings where it would take too much of the window."""
        found = self.pages.find(path)
        if found is None or not found.body.strip():
            return f"{path} says nothing yet."
        if estimate_tokens(found.body) <= self.part_tokens:
            return f"{path}, which has {self._size(path)}, says now:\n{fenced(found.body)}"
        lines = enumerate(found.body.split("\n"), start=1)
        headings = [f"{number}: {line}" for number, line in lines if line.startswith("#")]
        return (
            f"{path} has {self._size(path)}. Open what you need with document_read and from_line. "
            f"Its headings, by line:\n{fenced(chr(10).join(headings[:LINES_MAX]))}"
        )

    def _size(self, path: str) -> str:
        """Return the size of a page and its limit, in words."""
        found, limits = self.pages.find(path), self.agent.page_limits
        body = "" if found is None else found.body
        if path == SUMMARY:
            return f"{len(body):,} of {limits.summary_chars:,} characters"
        most = limits.memory_bytes if path == MEMORY else limits.skill_bytes
        return f"{len(body.encode()):,} of {most:,} bytes"

    def _limits(self) -> str:
        """What this part may take, so that nobody has to find out by running into it."""
        limits = self.agent.limits
        text = (
            f"{self._left()} One answer may have {limits.reply_tokens:,} tokens, about "
            f"{CHARS_PER_TOKEN * limits.reply_tokens:,} characters with all its calls; a longer "
            "one is cut off and lost. Write a long page with document_append, in several answers."
        )
        if self.part.is_last:
            return text
        page, most = self.pages.find(MEMORY), self.agent.page_limits.memory_bytes
        room = ROOM_SHARE * most - (0 if page is None else len(page.body.encode()))
        grows = max(0, int(room * self.part.share))
        return f"{text} In this part {MEMORY} may grow by {grows:,} bytes."

    def _left(self) -> str:
        limits = self.agent.limits
        turns, tokens = max(0, limits.turns - self.turns), max(0, limits.tokens - self.tokens)
        return f"You have {turns:,} answers and about {tokens:,} tokens left for this."

    def _loop(self) -> Loop:
        agent, limits = self.agent, self.agent.limits
        brief = self.brief
        tools = tools_over(
            self.pages,
            brief.changed,
            brief.is_persons,
            after=lambda path: f"It has {self._size(path)}. {self._left()}",
        )
        toolbox = Toolbox(tools, allowed=ALLOWED, redact=self.redact)
        passed = (agent.clock.now() - self.began_at).total_seconds()
        return Loop(
            ask=self._ask,
            assemble=partial(
                assemble,
                system=agent.system(),
                tools=toolbox.definitions,
                limits=agent.room,
                redact=self.redact,
            ),
            toolbox=toolbox,
            limits=replace(
                limits,
                tokens=limits.tokens - self.tokens,
                seconds=limits.seconds - passed,
                tool_bytes=limits.tool_bytes - self.tool_bytes,
            ),
            clock=agent.clock,
            keep=self._keep,
            turn_id=self.id,
            is_cancelled=self.brief.is_lost,
            told_when_cut=CUT.format(CHARS_PER_TOKEN * limits.reply_tokens),
        )

    def _ask(self, request: Request) -> Completion:
        self.turns += 1
        before = self.till.spent.tokens
        try:
            return self.till.ask(request, PURPOSE)
        finally:
            self.tokens += self.till.spent.tokens - before

    def _keep(self, records: Sequence[NewRecord]) -> list[Record]:
        """Memory is off: what is said here is known to this run, and to nobody after it."""
        made = [self._record(each) for each in records]
        answers = (each.content for each in made if each.role is Role.TOOL)
        self.tool_bytes += sum(len(text.encode(errors="surrogatepass")) for text in answers)
        return made

    def _record(self, new: NewRecord) -> Record:
        self.records += 1
        now = self.agent.clock.now()
        return Record(
            session_id=self.id,
            seq=self.records,
            role=new.role,
            content=new.content,
            name=new.name,
            body=new.body,
            at=now,
            created_at=now,
            key=new.append_key,
            metadata={},
        )


def _check_valid(found: Sequence[PageProblem]) -> None:
    """Without quotes: an error is kept where what was forgotten must not come back."""
    if found:
        named = "; ".join(each.text for each in found[:ERROR_PROBLEMS])
        raise InvalidOutput(
            f"the consolidation agent left {len(found):,} problems after {REPAIRS_MAX} repairs: "
            f"{named}"
        )


# the request


def _bounded(
    line: Callable[[_Named], str], named: Sequence[_Named], kind: str = ""
) -> Iterator[str]:
    yield from map(line, named[:LINES_MAX])
    if len(named) > LINES_MAX:
        mark = f"[{kind}] " if kind else ""
        yield f"- {mark}and {len(named) - LINES_MAX:,} more, which are not named here"


def _pick_line(brief: AgentBrief, kind: str, pick: Pick) -> str:
    page = brief.pages.get(pick.session_id, "(no page)")
    return f"- [{kind}] {pick.source_updated_at:%Y-%m-%d} {page}"


def _removed_line(removed: Removed) -> str:
    where = removed.path or f"session {removed.session_id}"
    return f"- [removed] {where} ({removed.because})"


# the tools: it reads memory, writes its own few staged pages, and no more


def definitions() -> tuple[ToolDefinition, ...]:
    """The tools as they are described to a model."""
    return (*document_definitions(ALLOWED), _DELETE)


def tools_over(
    pages: StagedPages,
    changed: Callable[[], None],
    is_persons: Callable[[str], bool],
    after: Callable[[str], str],
) -> Iterator[Tool]:
    """The tools over one staged copy; `changed` is called after what may have changed it.

    Orders that `is_persons` does not know to be a person's are not written. `after` is what is said
    of a page behind the result of a call that wrote it.
    """
    documents = DocumentTools(pages)
    for definition in definitions():

        def run(arguments: Mapping[str, Any], name: str = definition.name) -> str:
            if name in READING:
                return documents.call(name, arguments)
            refused = _objection(pages, name, arguments)
            if refused is not None:
                return f"Error: {refused}"
            given, left_out = without_orders(arguments, is_persons)
            done = _deleted(pages, given) if name == DELETING else documents.call(name, given)
            changed()
            if name == DELETING or done.startswith("Error: "):
                return done + left_out
            page = _target(pages, name, arguments["path"])
            return f"{done}{left_out} {after(page.text)}"

        yield Tool(definition=definition, run=run)


def _objection(pages: StagedPages, name: str, arguments: Mapping[str, Any]) -> str | None:
    """Why a call is not carried out; none: it may be, or is checked further in."""
    path = arguments.get("path")
    if name not in WRITING or not isinstance(path, str):
        return None
    try:
        target = _target(pages, name, path)
    except (InvalidPath, NotAllowed):
        return None  # which says so itself
    if target.key in _WRITABLE or _is_skill(target):
        return None
    return (
        f"{target} is not yours to write. You write {MEMORY}, {SUMMARY} and "
        f"{skill_path('<name>')}; the other pages are evidence, or belong to agents and people"
    )


def _target(pages: StagedPages, name: str, path: str) -> DocumentPath:
    """Where a call would write: an id and, unless it writes anew, an old path are followed."""
    if name == "document_write" and not is_id(path):
        return read_path(path)
    found = pages.find(path)
    return read_path(path) if found is None else stored_path(found.path)


def _is_skill(path: DocumentPath) -> bool:
    below = path.slugs[len(_SKILLS.slugs) :]
    return path.is_within(_SKILLS) and len(below) == 2 and below[1] == "SKILL"


def _deleted(pages: StagedPages, arguments: Mapping[str, Any]) -> str:
    path = arguments.get("path")
    if not isinstance(path, str) or len(arguments) != 1:
        raise InvalidValue(f"{DELETING} takes a path and nothing else")
    found = pages.read(path)
    where = stored_path(found.path)
    if not where.is_within(_SKILLS) or where.key == _SKILLS.key:
        raise NotAllowed(f"{where} is not a skill, and only skills can be deleted")
    folder = DocumentPath(where.slugs[: len(_SKILLS.slugs) + 1])
    # One by one, what is below first: a generation notes of each page that it is gone. What people
    # link to it must not keep a skill alive.
    for node in reversed(pages.tree(folder.text, limit=LIST_MAX)):
        pages.delete(node.path, references=OnReferences.LEAVE)
    return f"Prepared: {folder} is deleted, with what stood below it."
