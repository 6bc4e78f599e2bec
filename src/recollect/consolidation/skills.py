"""Makes skills by rules: procedures that worked in more than one session, with their pitfalls.

A skill is what was done in one project, or with one tool where no project is named. It is worth a
page when there are two procedures to it, or three sessions that it worked in. No tool's word is a
step; what a tool reported to fail may be a pitfall, and is marked as its word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from recollect.consolidation.filing import Filed, best_first, project_name, project_place
from recollect.consolidation.lines import label, link
from recollect.consolidation.pages import (
    Limits,
    Page,
    distinct_facts,
    distinct_sources,
    skill_path,
)
from recollect.consolidation.telling import line, without_place
from recollect.knowledge import FactTag, Trust
from recollect.orders import commands
from recollect.terms import search_terms
from recollect.topics.directory import Entity

NAME_CHARS_MAX = 64
SESSIONS_MIN = 2  # that a procedure worked in
PROCEDURES_MIN = 2  # of a skill, or
SKILL_SESSIONS_MIN = 3
EVIDENCE_MAX = 12
KINDS_MAX = 6

_CODE = re.compile(r"`([^`\n]+)`")
_TOOL = re.compile(r"[a-z0-9][a-z0-9._+-]{0,30}")
_NOT_TOOLS = frozenset({"sudo", "env", "time", "nohup", "cd"})
_NOT_NAME = re.compile(r"[^a-z0-9]+")
# What procedures do, in the order in which one does them.
_KINDS = ("install", "build", "types", "lint", "test", "migrate", "run", "deploy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill and what it is of: a project by its slug; none: a tool."""

    page: Page
    of: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Craft:
    """Procedures that belong together."""

    project: Entity | None
    tool: str
    steps: tuple[Filed, ...]

    @property
    def sessions(self) -> frozenset[str]:
        return frozenset(each for step in self.steps for each in step.statement.sessions)

    @property
    def place(self) -> str:
        return self.project.place if self.project else ""

    @property
    def is_worth_it(self) -> bool:
        return len(self.steps) >= PROCEDURES_MIN or len(self.sessions) >= SKILL_SESSIONS_MIN


def skills_of(filed: Sequence[Filed], places: Mapping[str, str], limits: Limits) -> list[Skill]:
    """The skills that statements come to, by name; of too many those that were of most use."""
    crafts = [craft for craft in _crafts(filed) if craft.is_worth_it]
    best = sorted(crafts, key=_by_use)[: limits.skills]
    lessons = [each for each in filed if _is_lesson(each)]
    named = _named(best)
    return [
        Skill(
            page=_page(name, craft, _pitfalls(craft, lessons), places, limits),
            of=craft.project.slug if craft.project else None,
        )
        for name, craft in sorted(named.items())
    ]


def _crafts(filed: Iterable[Filed]) -> list[_Craft]:
    found: dict[tuple[str, str], list[Filed]] = {}
    projects: dict[str, Entity] = {}
    for each in filed:
        if not _has_repeated(each):
            continue
        if each.project is not None:
            projects[each.project.slug] = each.project
            found.setdefault((each.project.slug, ""), []).append(each)
        elif tool := tool_of(each.claim.text):
            found.setdefault(("", tool), []).append(each)
    return [
        _Craft(project=projects.get(slug), tool=tool, steps=tuple(sorted(steps, key=_by_kind)))
        for (slug, tool), steps in found.items()
    ]


def _has_repeated(filed: Filed) -> bool:
    is_done = filed.tag is FactTag.PROCEDURE and filed.dispute is None
    is_own = filed.claim.trust is Trust.USER or (
        filed.claim.trust is Trust.AGENT and not commands(filed.claim.text)
    )
    return is_done and is_own and len(filed.statement.sessions) >= SESSIONS_MIN


def _is_lesson(filed: Filed) -> bool:
    return filed.tag is FactTag.LESSON and filed.dispute is None


def tool_of(text: str) -> str:
    """The program of the first command that a text quotes; empty if it quotes none."""
    code = _CODE.search(text)
    for word in code[1].split() if code else ():
        name = word.replace("\\", "/").rpartition("/")[2].casefold()
        if "=" in word or name in _NOT_TOOLS:
            continue
        return name if _TOOL.fullmatch(name) else ""
    return ""


def _kind(filed: Filed) -> str:
    return next((tag for tag in filed.claim.tags if tag in _KINDS), "")


def _by_kind(filed: Filed) -> tuple[int, tuple[int, float, int, str]]:
    kind = _kind(filed)
    return _KINDS.index(kind) if kind else len(_KINDS), best_first(filed.statement)


def _by_use(craft: _Craft) -> tuple[int, int, str, str]:
    usage = sum(step.statement.usage for step in craft.steps)
    return -usage, -len(craft.sessions), craft.place, craft.tool


def _named(crafts: Iterable[_Craft]) -> dict[str, _Craft]:
    """Crafts by the names of their skills; where two would have one name, neither has it alone."""
    same: dict[str, list[_Craft]] = {}
    for craft in crafts:
        same.setdefault(_name(craft), []).append(craft)
    return {
        name if len(alike) == 1 else f"{name}-{_digits(craft)}": craft
        for name, alike in same.items()
        for craft in alike
    }


def _name(craft: _Craft) -> str:
    if craft.project is None:
        return f"using-{_ascii(craft.tool)}"
    return f"working-in-{_ascii(project_name(craft.project)) or _digits(craft)}"


def _ascii(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    longest = NAME_CHARS_MAX - len("working-in-") - 9
    return _NOT_NAME.sub("-", plain.lower()).strip("-")[:longest].strip("-")


def _digits(craft: _Craft) -> str:
    told = craft.place or (craft.project.slug if craft.project else craft.tool)
    return sha256(told.encode(errors="surrogatepass")).hexdigest()[:8]


def _pitfalls(craft: _Craft, lessons: Iterable[Filed]) -> list[Filed]:
    """What failed in the same project, or with the same tool, on the way to the same thing."""
    known = {word for step in craft.steps for word in _telling(step, craft.place)}
    return [
        lesson
        for lesson in lessons
        if (lesson.project.slug if lesson.project else "")
        == (craft.project.slug if craft.project else "")
        and known.intersection(_telling(lesson, craft.place))
        and (craft.project is not None or tool_of(lesson.claim.text) == craft.tool)
    ]


def _telling(filed: Filed, place: str) -> list[str]:
    """The words of the commands that a statement quotes, else all its words."""
    text = without_place(filed.claim.text, place)
    return search_terms(" ".join(_CODE.findall(text)) or text)


def _page(
    name: str,
    craft: _Craft,
    pitfalls: Sequence[Filed],
    places: Mapping[str, str],
    limits: Limits,
) -> Page:
    steps = craft.steps[: limits.steps]
    told = [*steps, *pitfalls[: limits.steps]]
    where = _where(craft)
    blocks = [
        f"## When\n\nUse it when {where}.",
        "## Steps\n\n" + "\n".join(line(each, places) for each in steps),
    ]
    if pitfalls:
        lines = "\n".join(line(each, places) for each in pitfalls[: limits.steps])
        blocks.append(f"## Pitfalls\n\n{lines}")
    if evidence := _evidence(told, places):
        blocks.append(f"## Evidence\n\n{evidence}")
    return Page(
        path=skill_path(name),
        title=name,
        description=_description(craft, where),
        body="\n\n".join(blocks),
        sources=distinct_sources(source for each in told for source in each.claim.sources),
        facts=distinct_facts(fact for each in told for fact in each.statement.facts),
        tags=("skill",),
    )


def _where(craft: _Craft) -> str:
    if craft.project is None:
        return f"working with {label(craft.tool)}"
    name, place = project_name(craft.project), project_place(craft.project)
    return f"working in {name} ({place})" if place else f"working in {name}"


def _description(craft: _Craft, where: str) -> str:
    kinds = list(dict.fromkeys(kind for kind in map(_kind, craft.steps) if kind))[:KINDS_MAX]
    what = f"{', '.join(kinds).capitalize()}: " if kinds else ""
    count = len(craft.steps)
    steps = "1 procedure that" if count == 1 else f"{count} procedures that"
    return f"Use when {where}. {what}{steps} worked in {len(craft.sessions)} sessions."


def _evidence(told: Iterable[Filed], places: Mapping[str, str]) -> str:
    sessions = {each for filed in told for each in filed.statement.sessions}
    pages = sorted({places[each] for each in sessions if each in places}, reverse=True)
    lines = "\n".join(f"- {link(path, path.rpartition('/')[2])}" for path in pages[:EVIDENCE_MAX])
    more = len(pages) - EVIDENCE_MAX
    return f"{lines}\n\n{more:,} more are left out here." if more > 0 else lines
