"""What must hold while spaces are consolidated, checked past the interface after every call.

The ledger is a plain account of what was said, forgotten and switched off; which memories belong to
a generation is worked out here once more, from the rows alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import apsw

from recollect.clock import to_micros
from recollect.config import Settings
from recollect.consolidation.pages import MEMORY, SKILLS, SUMMARY
from recollect.documents.links import find_links
from recollect.types.generations import Generation, GenerationDraft, Outdated, Published
from recollect.types.records import StaleClaim
from tests.simulation.checkers import Violation

_REAL_TABLES = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
)
# What is fresh by this was so before anybody used it.
_OLDEST = "COALESCE(min(e.last_usage, e.generated_at), e.generated_at)"


class SpaceRow(NamedTuple):
    """Where the consolidation of a space stands."""

    space: str
    changed: int
    consolidated: int
    generation: int
    paused_at: int | None


@dataclass(slots=True)
class Ledger:
    """What happened, told from outside."""

    said: dict[str, set[str]] = field(default_factory=dict)  # by session
    space_of: dict[str, str] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)  # sessions
    withdrawn: set[str] = field(default_factory=set)  # what facts said that a person deleted
    restored: set[str] = field(default_factory=set)  # spaces whose newest generation is an old one
    seen: Counter[str] = field(default_factory=Counter)

    def words_of(self, sessions: set[str]) -> set[str]:
        return {word for session in sessions for word in self.said.get(session, ())}


class Checker:
    """Holds the last rows, and every call against the next ones."""

    def __init__(self, connection: apsw.Connection, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings
        self.ledger = Ledger()
        self.last = self._spaces()

    # rows

    def _rows(self, statement: str, *given: object) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(statement, given, can_cache=False))

    def _spaces(self) -> dict[str, SpaceRow]:
        found = self._rows(
            "SELECT space, changed, consolidated, generation, paused_at FROM consolidations"
        )
        return {row[0]: SpaceRow(*row) for row in found}

    def image(self) -> bytes:
        return self._connection.serialize("main")

    def pages(self, space: str) -> dict[str, str]:
        """What consolidation says in a space."""
        found = self._rows(
            "SELECT d.path, d.title || ' ' || d.description || ' ' || d.body FROM documents d"
            " WHERE d.space = ? AND d.deleted_at IS NULL AND d.author_kind = 'consolidation'",
            space,
        )
        return dict(found)

    def summarised(self, space: str) -> dict[str, str]:
        """The sessions of the current generation, and their pages."""
        found = self._rows(
            "SELECT g.session_id, d.path FROM generation_documents g"
            " JOIN documents d ON d.space = g.space AND d.id = g.document_id"
            " WHERE g.space = ? AND g.last_generation IS NULL AND g.session_id IS NOT NULL"
            " AND d.deleted_at IS NULL",
            space,
        )
        return dict(found)

    def consumed(self, space: str) -> dict[str, int]:
        """The sessions that are marked as part of it, and in which state."""
        found = self._rows(
            "SELECT session_id, selected_revision FROM extractions"
            " WHERE space = ? AND selected_for_phase2",
            space,
        )
        return dict(found)

    def is_current(self, claim: Any) -> bool:
        statement = "SELECT 1 FROM jobs WHERE id = ? AND token = ? AND state = 'claimed'"
        return bool(self._rows(statement, claim.job_id, claim.token))

    # after every call

    def after(self, name: str, args: tuple[Any, ...], result: Any, was_current: bool) -> None:
        before, self.last = self.last, self._spaces()
        for space, row in self.last.items():
            self._check_space(before.get(space), row, name)
        match name:
            case "append":
                for record in result:
                    self.ledger.said.setdefault(record.session_id, set()).add(record.content)
                    self.ledger.space_of[record.session_id] = args[0].space
            case "forget_session" if result is not None:
                self.ledger.forgotten.add(args[1])
                self.ledger.seen["forgotten"] += 1
            case "publish":
                self._check_published(args[1], result, was_current, before)
            case "restore":
                self.ledger.restored.add(args[0])
                self.ledger.seen["restored"] += 1
                self._check_pages(args[0])
            case _:
                pass

    def _check_space(self, old: SpaceRow | None, new: SpaceRow, name: str) -> None:
        _expect(new.consolidated <= new.changed, "G5: it is further than there is anything", new)
        if old is None:
            return
        _expect(old.consolidated <= new.consolidated, f"G5: {name} moved the watermark back", new)
        _expect(old.changed <= new.changed, f"G5: {name} took a change back", new)
        step = new.generation - old.generation
        _expect(step in (0, 1), f"G9: {name} left out a generation, or went back", old, new)
        if step:
            _expect(name in ("publish", "restore"), f"G9: {name} made a generation", new)

    def _check_published(
        self, draft: GenerationDraft, result: object, was_current: bool, before: Any
    ) -> None:
        space = draft.selection.space
        if not was_current:
            _expect(isinstance(result, StaleClaim), "P5: a lost claim published", result)
        match result:
            case StaleClaim():
                self.ledger.seen["a stale run"] += 1
                _expect(not was_current, "the current claim was called stale")
            case Outdated():
                self.ledger.seen["an outdated run"] += 1
                _expect(self.last[space].generation == before[space].generation, "G9: outdated")
            case Published(generation=None, is_due_again=is_due):
                self.ledger.seen["nothing changed"] += 1
                self.ledger.seen["due again"] += is_due
            case Published(generation=made, is_due_again=is_due):
                assert made is not None
                self.ledger.seen["a generation"] += 1
                self.ledger.seen["due again"] += is_due
                self.ledger.seen["something removed"] += bool(draft.selection.removed)
                self.ledger.restored.discard(space)
                self._check_made(draft, made)
            case _:
                raise Violation(f"publish answers {result}")

    def _check_made(self, draft: GenerationDraft, made: Generation) -> None:
        space, selection = made.space, draft.selection
        numbers = [
            row[0] for row in self._rows("SELECT number FROM generations WHERE space = ?", space)
        ]
        _expect(numbers.count(made.number) == 1, "G9: a number was used twice", numbers)
        _expect(made.number == max(numbers), "G9: the newest is not the newest", numbers)
        picked = {pick.session_id: pick.revision for pick in selection.picks}
        consumed = self.consumed(space)
        _expect(consumed.keys() == picked.keys(), "G4: other memories were consumed", consumed)
        for pick in selection.added:
            _expect(consumed[pick.session_id] == pick.revision, "G4: another state was consumed")
        _expect(self.summarised(space).keys() == picked.keys(), "G6: other summaries are there")
        self._check_pages(space)

    def _check_pages(self, space: str) -> None:
        """Every link of what is read leads somewhere; what it rests on is selected."""
        pages = self.pages(space)
        keys = {path.casefold() for path in pages}
        for path, text in pages.items():
            if path in (MEMORY, SUMMARY) or path.startswith(SKILLS):
                for link in find_links(text):
                    _expect(link.path.text.casefold() in keys, "G9: a link to nowhere", path, link)

    def check_forgotten(self, space: str, session_id: str) -> None:
        """G11: who forgot something finds it on no page any more."""
        self._expect_unsaid(space, self.ledger.words_of({session_id}))

    def _expect_unsaid(self, space: str, words: set[str]) -> None:
        for path, text in self.pages(space).items():
            found = words & set(text.replace(".", " ").split())
            _expect(not found, "G11: it stands there still", path, sorted(found))

    # the end

    def is_at_rest(self) -> bool:
        open_jobs = self._rows("SELECT 1 FROM jobs WHERE state <> 'idle' AND space <> ''")
        return not open_jobs and all(row.consolidated == row.changed for row in self.last.values())

    def check_rest(self, now: Any) -> None:
        """G5: where nothing is due, only what was used since may make another selection."""
        for space in self.last.keys() - self.ledger.restored:
            fresh = self._fresh(space, to_micros(now))
            young = self._fresh(space, to_micros(now), _OLDEST)
            found = self.summarised(space).keys()
            least = min(len(young), self._settings.consolidation_top_n)
            _expect(found <= set(fresh), "G5: it is over, and nothing is due", space, found)
            _expect(len(found) >= least, "G5: there is more, and nothing is due", space, found)

    def check_end(self, now: Any) -> None:
        """Each generation is what the rules select, and of what was forgotten nothing is left."""
        for space in self.last:
            wanted = self._selected(space, to_micros(now))
            if space not in self.ledger.restored:
                found = self.summarised(space)
                _expect(found.keys() == wanted, "G2: another selection", space, wanted, found)
                _expect(self.consumed(space).keys() == wanted, "G4: another baseline", space)
                self._check_summaries(space, found)
            others = {each for each in self.ledger.said if self.ledger.space_of[each] == space}
            if space not in self.ledger.restored:
                self._expect_unsaid(space, self.ledger.words_of(others - wanted))
                self._expect_unsaid(space, self.ledger.withdrawn)
            self._check_pages(space)
        self._check_rows()

    def _check_summaries(self, space: str, found: dict[str, str]) -> None:
        """G6: the page of a session says what the session came to, as it is now."""
        pages = self.pages(space)
        for session, path in found.items():
            ((told,),) = self._rows(
                "SELECT rollout_summary FROM extractions WHERE session_id = ?", session
            )
            left_out = set(told.split()) - set(pages[path].split())
            _expect(not left_out, "G6: a summary leaves something out", path, left_out)

    def _selected(self, space: str, now: int) -> set[str]:
        """The rule, told once more: the most used first, then the latest."""
        return set(self._fresh(space, now)[: self._settings.consolidation_top_n])

    def _fresh(
        self, space: str, now: int, age: str = "COALESCE(e.last_usage, e.generated_at)"
    ) -> list[str]:
        """What may be selected, the best first: remembered, and within the window."""
        unused = timedelta(days=self._settings.max_unused_days) // timedelta(microseconds=1)
        found = self._rows(
            f"SELECT e.session_id, e.usage_count, {age}, e.source_updated_at"
            " FROM extractions e JOIN sessions s ON s.id = e.session_id"
            " WHERE e.space = ? AND s.remembered",
            space,
        )
        fresh = [row for row in found if row[2] >= now - unused]
        fresh.sort(key=lambda row: (row[1], row[2], row[3], row[0]), reverse=True)
        return [row[0] for row in fresh]

    def _check_rows(self) -> None:
        """Of a session that was forgotten no row says anything, in any version of any page."""
        words = self.ledger.words_of(self.ledger.forgotten)
        tables = [row[0] for row in self._rows(_REAL_TABLES)]
        for table in tables if words else ():
            text = repr(self._rows(f"SELECT * FROM {table}"))
            found = [word for word in words if word in text]
            _expect(not found, "G11: forgotten, and in a table", table, found)


def _expect(truth: bool, violation: str, *details: object) -> None:
    if not truth:
        raise Violation(" | ".join((violation, *map(str, details))))
