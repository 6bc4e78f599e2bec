"""The consolidation agent: a model that brings a staged handbook up to date, within hard budgets.

Owns G8: it works on a changeset and nothing else, nothing of its run is remembered, and what it
leaves is valid or the run has failed. What is wrong with its pages goes back to it twice; a run
that reaches a bound, or is still invalid then, is InvalidOutput; its changeset is to be dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from recollect.agents.loop import Loop, LoopLimits, LoopResult, Stop
from recollect.agents.toolbox import Toolbox
from recollect.clock import Clock
from recollect.config import Settings
from recollect.consolidation.agent_tools import ALLOWED, tools_over
from recollect.consolidation.pages import MEMORY, RAW, SKILLS, SUMMARIES, SUMMARY
from recollect.consolidation.validation import (
    LIMITS,
    TEMPLATE_LINK,
    Grounds,
    Limits,
    Problem,
    losses,
    problems,
)
from recollect.context.assembly import Limits as Room
from recollect.context.assembly import assemble
from recollect.documents.changeset import Changeset
from recollect.documents.paths import memory_root
from recollect.domain import NewRecord, Record
from recollect.errors import InvalidOutput
from recollect.extraction.digest import one_line
from recollect.extraction.spend import Budget, Purpose, Till
from recollect.generation import Pick, Removed, Selection
from recollect.ids import Ids
from recollect.knowledge import Spent
from recollect.messages import Role
from recollect.models.prompts import Prompt, load_prompt
from recollect.models.protocol import Model
from recollect.redaction import Redactor
from recollect.store.protocol import Ledger

PROMPTS = Path(__file__).parent / "prompts"
PURPOSE = "consolidate"
REPAIRS_MAX = 2
LINES_MAX = 200  # of each kind of memory that a request names one by one
NOTE_CHARS_MAX = 500
TOLD_CHARS_MAX = 600
ERROR_PROBLEMS = 3  # that an error names

_Named = TypeVar("_Named")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBrief:
    """What one run is about.

    The changeset it goes with holds the evidence already: the summaries of all that is selected or
    was removed, and the raw memories of both. `pages` is where the summaries stand, by session;
    `is_lost` says that the claim is held by nobody here any more; `changed` is told of every page
    that the model writes.
    """

    selection: Selection
    pages: Mapping[str, str]
    grounds: Grounds
    attempt: int = 1
    is_lost: Callable[[], bool] = lambda: False
    changed: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """What a run came to: what the model says it did, and what that took."""

    note: str
    spent: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationAgent:
    """Makes generations with a model. Safe to share between threads."""

    settings: Settings
    clock: Clock
    ids: Ids
    redactor: Callable[[], Redactor]
    model: Model
    ledger: Ledger
    budget: Budget
    limits: LoopLimits
    page_limits: Limits = LIMITS

    @property
    def name(self) -> str:
        """Who makes generations here: the model and the version of what it is told."""
        return f"{self.model.name}/consolidation-{self._prompt('consolidation').version}"

    def run(self, changeset: Changeset, brief: AgentBrief) -> AgentReport:
        """Bring the changeset's pages up to date; valid, or InvalidOutput.

        CallCancelled: the claim was lost. The caller drops the changeset after any error.
        """
        run = _Run(
            agent=self,
            changeset=changeset,
            brief=brief,
            till=self._till(brief),
            redact=self.redactor().keyed(brief.selection.space).redact,
            id=self.ids.new(),
            began_at=self.clock.now(),
        )
        result = run.asked(())
        for _ in range(REPAIRS_MAX):
            found = run.problems()
            if not found:
                break
            _log.info("%s: %d problems to repair", brief.selection.space, len(found))
            result = run.asked(found)
        else:
            _check_valid(run.problems())
        note = one_line(run.redact(result.text), NOTE_CHARS_MAX)
        return AgentReport(note=note, spent=run.till.spent)

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

    def request(self, changeset: Changeset, brief: AgentBrief) -> str:
        selection = brief.selection
        is_first = changeset.find(MEMORY) is None or changeset.find(SUMMARY) is None
        run = f"Generation {selection.generation:,} of this memory is to be brought up to date:"
        if is_first:
            run = "This is a first run: there is no handbook yet, or not all of it."
        return self._prompt("consolidation-request").fill(
            run=run,
            added=f"{len(selection.added):,}",
            retained=f"{len(selection.retained):,}",
            removed=f"{len(selection.removed):,}",
            lines="\n".join(_lines(brief)),
        )

    def repair(self, found: Sequence[Problem]) -> str:
        listed = "\n".join(f"{number}. {each}" for number, each in enumerate(found, start=1))
        return self._prompt("consolidation-repair").fill(problems=listed)

    def _till(self, brief: AgentBrief) -> Till:
        purpose = Purpose(space=brief.selection.space, session_id=None, attempt=brief.attempt)
        return Till(self.model, self.ledger, self.settings, self.clock, self.budget, purpose)

    def _prompt(self, name: str) -> Prompt:
        return load_prompt(PROMPTS, name, self.settings.prompts_dir)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run: what it works on, and what it has used of its budgets. For one thread."""

    agent: ConsolidationAgent
    changeset: Changeset
    brief: AgentBrief
    till: Till
    redact: Callable[[str], str]
    id: str
    began_at: datetime
    records: int = 0
    turns: int = 0
    tokens: int = 0
    tool_bytes: int = 0

    def asked(self, found: Sequence[Problem]) -> LoopResult:
        """Let the model work until it says that it is done, with what is left of the budgets.

        For a repair it starts anew from the request: what it did stands in the pages, and what it
        read on the way would only take up the room.
        """
        said = [self.agent.request(self.changeset, self.brief)]
        if found:
            said.append(self.agent.repair(found))
        history = [self._record(NewRecord(role=Role.USER, content=text)) for text in said]
        result = self._loop().run(history, turns_before=self.turns)
        self.turns = result.turns
        self.tokens += result.tokens
        if result.stop is not Stop.ANSWERED:
            raise InvalidOutput(f"the consolidation agent did not come to an end: {result.reason}")
        return result

    def problems(self) -> list[Problem]:
        """What is wrong with the pages as they are now."""
        grounds = self.brief.grounds
        limits = self.agent.page_limits
        found = problems(self.changeset, grounds, redact=self.redact, limits=limits)
        return [*found, *losses(self.changeset, grounds)]

    def _loop(self) -> Loop:
        agent, limits = self.agent, self.agent.limits
        toolbox = Toolbox(
            tools_over(self.changeset, self.brief.changed), allowed=ALLOWED, redact=self.redact
        )
        passed = (agent.clock.now() - self.began_at).total_seconds()
        return Loop(
            ask=lambda request: self.till.ask(request, PURPOSE),
            assemble=partial(
                assemble,
                system=agent.system(),
                tools=toolbox.definitions,
                limits=Room(
                    window_tokens=agent.model.window_tokens,
                    reply_tokens=limits.reply_tokens,
                    max_history_len=agent.settings.max_history_len,
                ),
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
        )

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


def _check_valid(found: Sequence[Problem]) -> None:
    """Without quotes: an error is kept where what was forgotten must not come back."""
    if found:
        named = "; ".join(each.text for each in found[:ERROR_PROBLEMS])
        raise InvalidOutput(
            f"the consolidation agent left {len(found):,} problems after {REPAIRS_MAX} repairs: "
            f"{named}"
        )


# the request


def _lines(brief: AgentBrief) -> Iterator[str]:
    """One line per memory: first what is to be forgotten, then what is new, then the rest."""
    selection = brief.selection
    yield from _bounded(_removed_line, selection.removed, "removed")
    yield from _bounded(partial(_pick_line, brief, "added"), selection.added, "added")
    yield from _bounded(partial(_pick_line, brief, "retained"), selection.retained, "retained")
    if brief.grounds.told:
        yield "\nAdded by hand, without a session. Keep these word for word; they need no link:\n"
        yield from _bounded(lambda told: f"- {one_line(told, TOLD_CHARS_MAX)}", brief.grounds.told)


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
