"""How a statement stands on a page: one line with its day, its sources, and how far to trust it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recollect.consolidation.filing import Filed, project_name
from recollect.consolidation.lines import link, shown
from recollect.knowledge import Trust
from recollect.topics.directory import TopicKind

LINKS_MAX = 3  # to the sessions that bear a statement out, the newest

_DAY = re.compile(r"\d{4}-\d\d-\d\d(?=-)")
_MARKED = re.compile(r"\s*\((?:inferred|from a tool)\)[\s.]*$", re.IGNORECASE)


def line(filed: Filed, places: Mapping[str, str], *, is_at_home: bool = True) -> str:
    """A statement as an item of a list; not at home it says what it holds for."""
    scope = "" if is_at_home and filed.topic else scope_of(filed)
    told = ", ".join([*([scope] if scope else ()), *_since(filed, places)])
    return f"- {words(filed, is_at_home=is_at_home)} ({told})"


def words(filed: Filed, *, is_at_home: bool = True) -> str:
    """What a statement says, and whether anybody said it."""
    text = _unmarked(filed)
    if is_at_home and filed.topic is not None and filed.topic.kind is TopicKind.PROJECTS:
        text = without_place(text, filed.topic.about)
    return f"{shown(text)}{_mark(filed)}"


def scope_of(filed: Filed) -> str:
    """What it holds for; empty: it holds everywhere."""
    return f"in {project_name(filed.project)}" if filed.project else ""


def without_place(text: str, place: str) -> str:
    """What is done in a project, told where it is clear which one is meant."""
    opening = f"In {' '.join(place.split())}, "
    bare = text.removeprefix(opening) if place else text
    return bare[:1].upper() + bare[1:] if bare != text else text


def _since(filed: Filed, places: Mapping[str, str]) -> list[str]:
    """When it was said, and the pages of the sessions that bear it out."""
    pages = {places[each] for each in filed.statement.sessions if each in places}
    newest = sorted(pages, key=lambda path: path.rpartition("/")[2], reverse=True)
    day = str(filed.statement.day)
    days = [_day_of(path) or day for path in newest[:LINKS_MAX]]
    told = [] if day in days else [day]
    told += [link(path, day) for path, day in zip(newest, days, strict=False)]
    if len(newest) > LINKS_MAX:
        told.append(f"{len(newest) - LINKS_MAX} more")
    return told


def _day_of(path: str) -> str:
    match = _DAY.match(path.rpartition("/")[2])
    return match[0] if match else ""


def _unmarked(filed: Filed) -> str:
    """The text without a mark of its own where it gets ours."""
    text = filed.claim.text
    return (_MARKED.sub("", text) or text) if _mark(filed) else text


def _mark(filed: Filed) -> str:
    if filed.claim.trust is Trust.TOOL:
        return " (from a tool)"
    return " (inferred)" if filed.claim.is_inferred else ""
