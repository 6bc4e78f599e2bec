"""Writes claims into the pages of memory by rules: what a memory-agent does where no model is set.

A page per topic, one claim per line with its source, merged into what stands there: nothing is said
twice, what people wrote is left alone, what nobody stands for any more goes, and where nothing is
new nothing is written. All in a changeset: whoever gave it commits it, or does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from recollect.agents.organiser_lines import (
    Line,
    Mark,
    Note,
    label_of,
    linked,
    mark_of,
    note_of,
    plain,
    shown,
)
from recollect.agents.organiser_open import OpenPage, key_of
from recollect.agents.organiser_page import gained
from recollect.agents.organiser_shelf import LIMITS, Limits, Shelf, link_to, path_of
from recollect.documents.changeset import Changeset
from recollect.extraction.grounding import rank
from recollect.knowledge import content_key
from recollect.orders import is_quarantined
from recollect.topics.claims import Claim, due_on, merged
from recollect.topics.directory import Entity, Mention, TopicKind, directory_of
from recollect.topics.grouping import Topic, group

# What is so of things that claims are about, as facts name them.
Holding = Callable[[Collection[str]], Sequence[Claim]]


def nothing_holds(_topics: Collection[str]) -> Sequence[Claim]:
    return ()


_SCOPED = frozenset({TopicKind.DECISIONS, TopicKind.OPEN_THREADS, TopicKind.PREFERENCES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Organised:
    """What came of some claims.

    `written` are the paths of pages that are new, changed or deleted. `unchanged` claims stood
    there already; `refused` said nothing, or were a tool's orders; `left` are those that were more
    than one run takes, for the next one. `skipped` are pages that cannot be stored.
    """

    report: str
    written: tuple[str, ...] = ()
    unchanged: int = 0
    refused: int = 0
    left: tuple[Claim, ...] = ()
    skipped: tuple[str, ...] = ()


def organise(
    changeset: Changeset,
    claims: Sequence[Claim],
    *,
    now: datetime,
    gone: Collection[str] = (),
    standing: Collection[str] = (),
    holding: Holding = nothing_holds,
    limits: Limits = LIMITS,
) -> Organised:
    """Prepare the pages that claims ask for; the same claims again ask for nothing.

    `gone` are ids of facts and of sessions that nothing rests on any more, and `standing` those of
    facts that stay without them. What else is so of what was gone from is asked of `holding`, and
    filed as well.
    """
    shelf = Shelf(changeset, limits)
    work = _Work(shelf=shelf, today=now.astimezone(UTC).date())
    lost = work.withdraw(frozenset(gone), frozenset(standing))
    stated = merged([*claims, *(holding(lost) if lost else ())])
    taken, left = stated[: limits.claims_max], tuple(stated[limits.claims_max :])
    meant = [claim for claim in taken if not _is_an_order(claim) and shown(claim.text)]
    work.merge(meant)
    work.retire_what_is_over()
    written = shelf.write()
    return Organised(
        report=work.report(len(written), len(taken) - len(meant), len(left)),
        written=written,
        unchanged=work.unchanged,
        refused=len(taken) - len(meant),
        left=left,
        skipped=tuple(shelf.skipped),
    )


def organise_all(changeset: Changeset, claims: Sequence[Claim], **more: Any) -> Organised:
    """The same of any number of claims, as many at a time as one run takes."""
    done = organise(changeset, claims, **more)
    again = {**more, "gone": ()}
    reports, written, left = [done.report], {*done.written}, done.left
    while left:
        done = organise(changeset, left, **again)
        reports.append(done.report)
        written |= {*done.written}
        if len(done.left) >= len(left):
            break
        left = done.left
    return replace(
        done, report=" ".join(dict.fromkeys(reports)), written=tuple(sorted(written)), left=()
    )


def is_filed(changeset: Changeset, fact_id: str, limits: Limits = LIMITS) -> bool:
    """Whether a page has a line that stands for a fact."""
    pages = Shelf(changeset, limits).naming_ids((fact_id,))
    return any(note.fact_id == fact_id for page in pages for note in page.page.notes().values())


def _is_an_order(claim: Claim) -> bool:
    """A page is an agent's word; what a tool wants done must not become that."""
    return is_quarantined(claim.text, claim.trust)


class _Work:
    """One run."""

    def __init__(self, *, shelf: Shelf, today: date) -> None:
        self._shelf = shelf
        self._directory = directory_of(())
        self._today = today
        self._new: list[tuple[Topic, Claim, str, OpenPage]] = []
        self.unchanged = self._added = self._confirmed = self._retired = self._removed = 0

    def withdraw(self, gone: frozenset[str], standing: Collection[str]) -> set[str]:
        """Remove lines whose facts are gone, and those that rest on sessions that are.

        What comes back is what they were about.
        """
        lost: set[str] = set()
        for page in self._shelf.naming_ids(gone):
            owned = {label for label in page.page.lines() if page.page.is_own(label)}
            removed = page.page.withdraw(gone, standing)
            self._removed += sum(note.label in owned for note in removed)
            page.has_lost |= bool(removed)
            topics = {note.topic for note in removed if note.topic}
            self._settle_untold(page, topics)
            lost |= topics
        return lost

    def _settle_untold(self, page: OpenPage, topics: Collection[str]) -> None:
        """Of claims that no fact tells of, the newest that is left holds again."""
        for other in self._shelf.family_of(page) if topics else ():
            for label, note in list(other.page.notes().items()):
                if note.topic in topics and note.fact_id is None:
                    self._settle(label, other)

    def merge(self, claims: Sequence[Claim]) -> None:
        self._directory = directory_of(claims, self._shelf.known())
        topics = group(claims, self._directory)
        labels = [label_of(shown(claim.text)) for topic in topics for claim in topic.claims]
        elsewhere = self._shelf.having_lines(labels)
        for topic in topics:
            for claim in topic.claims:
                label = label_of(shown(claim.text))
                standing = elsewhere.get(label)
                family = self._shelf.family(topic)
                if standing is not None and standing not in family:
                    family = [standing, *family]
                self._put(topic, claim, label, family)
        self._link()

    def _put(self, topic: Topic, claim: Claim, label: str, family: Sequence[OpenPage]) -> None:
        for page in family:
            if label in page.page.lines():
                self._confirm(page, claim, label)
                return
        key = content_key(plain(shown(claim.text)))
        if any(key in page.said or page.was_taken_out(label) for page in family):
            self.unchanged += 1  # in somebody's own words, or not wanted there by somebody
            return
        note = note_of(claim, label, due_on(claim))
        reworded = self._reworded(claim, family)
        if reworded is not None:
            page, old = reworded
            until = page.page.lines()[old].until
            page.page.replace(old, replace(_line(claim, label), until=until), note)
        else:
            page = self._shelf.with_room(topic, claim)
            page.page.add(_line(claim, label), note)
        page.grounds(claim)
        self._added += 1
        self._new.append((topic, claim, label, page))
        self._settle(label, page)

    def _reworded(self, claim: Claim, family: Sequence[OpenPage]) -> tuple[OpenPage, str] | None:
        """The line of a fact that says something else now."""
        if claim.fact_id is None:
            return None
        for page in family:
            for label, note in page.page.notes().items():
                if note.fact_id == claim.fact_id and page.page.is_own(label):
                    return page, label
        return None

    def _confirm(self, page: OpenPage, claim: Claim, label: str) -> None:
        """A claim that stands there gains what is new about it."""
        known = page.page.notes()[label]
        new = note_of(claim, label, due_on(claim))
        note = gained(known, new)
        if rank(new.trust) > rank(note.trust):
            note = replace(note, trust=new.trust)
        line = page.page.lines()[label]
        mark = _mark(line, known, claim)
        if note == known and (mark is line.mark or not page.page.is_own(label)):
            self.unchanged += 1
        else:
            self._confirmed += 1
            page.page.annotate(note)
            if page.page.is_own(label):
                line = replace(line, day=_day(note.at), mark=mark)
                page.page.replace(label, line, note)
            page.grounds(claim)
        self._settle(label, page)

    def _settle(self, label: str, page: OpenPage) -> None:
        """Of claims on the same thing the newest holds; a weaker word moves no stronger one."""
        mine = page.page.notes()[label]
        if mine.topic is None or not page.page.is_own(label):
            return
        newer: list[Note] = []
        for other_page, other in _on_topic(mine, self._shelf.family_of(page)):
            if _replaces(mine, other):
                self._retire(other_page, other.label, _day(mine.at))
            elif _replaces(other, mine):
                newer.append(other)
        if newer:
            self._retire(page, label, _day(min(newer, key=lambda note: note.said).at))
        elif page.page.is_earlier(label) and not _is_over(mine, self._today):
            page.page.move(label, None)

    def _retire(self, page: OpenPage, label: str, until: date) -> None:
        """To what was so earlier; what is there already was over no later than this."""
        was_over = page.page.lines()[label].until
        if was_over is None or was_over > until:
            page.page.move(label, until)
            self._retired += was_over is None

    def retire_what_is_over(self) -> None:
        """Appointments that have passed are no open threads any more."""
        for page in self._shelf.opened(TopicKind.OPEN_THREADS):
            for label, note in page.page.notes().items():
                if note.due is None or not _is_over(note, self._today):
                    continue
                if page.page.is_own(label) and not page.page.is_earlier(label):
                    self._retire(page, label, note.due)

    # lines and links

    def _link(self) -> None:
        """Lines that are new name others by links, and those know where they are named."""
        for topic, claim, _, page in self._new:
            project = self._project(topic, claim)
            if project is not None:
                self._shelf.expect_project(project)
                self._shelf.refer(path_of(project.kind, project.slug), page)
        for topic, claim, label, page in self._new:
            line = page.page.lines().get(label)
            if line is None:
                continue
            mentions = self._directory.mentions(line.text)
            text = linked(line.text, mentions, partial(self._path, page=page))
            scope = self._scope(topic, claim, mentions)
            page.page.replace(
                label, replace(line, text=text, scope=scope), page.page.notes()[label]
            )
            for mention in mentions:
                if path := self._path(mention, page):
                    self._shelf.refer(path, page)

    def _project(self, topic: Topic, claim: Claim) -> Entity | None:
        """The project a claim holds for that is at home elsewhere."""
        return self._directory.project_of(claim) if topic.kind in _SCOPED else None

    def _scope(self, topic: Topic, claim: Claim, mentions: Sequence[Mention]) -> str:
        """The link to its project of a claim that does not name it itself."""
        project = self._project(topic, claim)
        if project is None or any(each.entity.slug == project.slug for each in mentions):
            return ""
        return link_to(path_of(project.kind, project.slug), project.name)

    def _path(self, mention: Mention, page: OpenPage) -> str:
        """Where somebody who is mentioned has a page, if that is another one."""
        path = path_of(mention.entity.kind, mention.entity.slug)
        return path if self._shelf.is_there(path) and not page.is_at(key_of(path)) else ""

    def report(self, pages: int, refused: int, left: int) -> str:
        parts = [
            (self._added, "added"),
            (self._confirmed, "confirmed"),
            (self._retired, "moved to Earlier"),
            (self._removed, "removed"),
        ]
        told = ", ".join(f"{count} {what}" for count, what in parts if count)
        text = f"Memory was updated on {pages} pages: claims {told or 'linked'}."
        if not pages:
            text = "Nothing new to remember."
        if refused:
            text += f" {refused} left out: nothing to say, or a tool's orders."
        return text + (f" {left} wait for the next run." if left else "")


def _line(claim: Claim, label: str) -> Line:
    return Line(
        text=shown(claim.text),
        label=label,
        day=_day(claim.at),
        mark=mark_of(claim),
    )


def _on_topic(mine: Note, pages: Sequence[OpenPage]) -> list[tuple[OpenPage, Note]]:
    """Other claims on the same thing, as they were written."""
    return [
        (page, note)
        for page in pages
        for label, note in page.page.notes().items()
        if label != mine.label and note.topic == mine.topic and page.page.is_own(label)
    ]


def _replaces(newer: Note, older: Note) -> bool:
    return newer.said > older.said and rank(newer.trust) >= rank(older.trust)


def _mark(line: Line, known: Note, claim: Claim) -> Mark:
    """The mark of a claim that was made again: a stronger word, or none, takes it away."""
    is_stronger = rank(claim.trust) > rank(known.trust)
    is_plain = rank(claim.trust) == rank(known.trust) and mark_of(claim) is Mark.NONE
    return mark_of(claim) if is_stronger or is_plain else line.mark


def _is_over(note: Note, today: date) -> bool:
    return note.due is not None and note.due < today


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
