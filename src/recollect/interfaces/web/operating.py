"""What runs a memory, on pages: its overview, jobs, generations of memory, spaces and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from recollect import collection
from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.http.operations import KeyReach, cursor_behind, read_mark
from recollect.interfaces.http.problems import problem_of
from recollect.interfaces.web.rendering import SIDES, DiffLine, diff_lines
from recollect.interfaces.web.view import (
    HOME,
    SPACE,
    Answer,
    Asked,
    Live,
    Moved,
    PageView,
    WebPage,
    done,
    shown,
)
from recollect.session import LIST_MAX
from recollect.sweeps import sweep_idle
from recollect.types.access import ApiKey, Scope
from recollect.types.generations import DocumentChange, Generation, GenerationChange, Waiting
from recollect.types.records import Job, JobKind, JobState

WIDTH, HEIGHT = 420, 140
LEFT, BOTTOM, TOP = 46, 22, 10
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One part of a day's bar, and what it stands for in words."""

    x: float
    y: float
    width: float
    height: float
    kind: str  # first or second: the parts that are stacked
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotMark:
    """A line across, or a day below, with its words."""

    at: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A picture of days, ready to be drawn; the numbers stay beside it for who cannot see it."""

    title: str
    names: tuple[str, ...]
    bars: tuple[Bar, ...]
    levels: tuple[PlotMark, ...]
    days: tuple[PlotMark, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    floor: int = HEIGHT - BOTTOM

    @property
    def is_empty(self) -> bool:
        return not self.bars


def days_until(last: datetime, count: int) -> list[datetime]:
    """The midnights of so many days, the last one included."""
    midnight = last.replace(hour=0, minute=0, second=0, microsecond=0)
    return [midnight - timedelta(days=count - 1 - each) for each in range(count)]


def plot(
    title: str,
    names: Sequence[str],
    days: Sequence[datetime],
    values: Mapping[datetime, Sequence[float]],
    unit: str = "",
) -> Plot:
    """Bars for days; each value is stacked upon those before it."""
    none = (0.0,) * len(names)
    totals = [sum(values.get(day, none)) for day in days]
    top = _rounded(max(totals, default=0.0))
    floor, room = HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP
    step = (WIDTH - LEFT) / max(len(days), 1)
    bars = []
    for place, day in enumerate(days):
        y = float(floor)
        for name, kind, value in zip(
            names, ("first", "second"), values.get(day, none), strict=False
        ):
            height = room * value / top if top else 0.0
            if height <= 0:
                continue
            y -= height
            bars.append(
                Bar(
                    x=round(LEFT + place * step + step * 0.12, 1),
                    y=round(y, 1),
                    width=round(step * 0.76, 1),
                    height=round(height, 1),
                    kind=kind,
                    meaning=f"{day:%Y-%m-%d}: {_said(value)}{unit} {name}",
                )
            )
    return Plot(
        title=title,
        names=tuple(names),
        bars=tuple(bars),
        levels=tuple(
            PlotMark(at=round(floor - room * part, 1), words=f"{_said(top * part)}{unit}")
            for part in (0.5, 1.0)
            if top
        ),
        days=tuple(
            PlotMark(at=round(LEFT + place * step + step / 2, 1), words=f"{day:%d %b}")
            for place, day in enumerate(days)
            if (len(days) - 1 - place) % 7 == 0
        ),
        rows=tuple(
            (f"{day:%Y-%m-%d}", tuple(_said(value) + unit for value in values[day]))
            for day in days
            if day in values
        ),
    )


def _rounded(value: float) -> float:
    """The next number above that people like to read."""
    if value <= 0:
        return 0.0
    size = 1.0
    while size * 10 < value:
        size *= 10
    while size > value:
        size /= 10
    return next(size * step for step in _STEPS if size * step >= value)


def _said(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:,.4g} M"
    if value >= 10_000:
        return f"{value / 1000:,.4g} k"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


DAYS = 30
LATEST = 8
MICROS = 1_000_000


def overview(asked: Asked) -> WebPage:
    space, memory = asked.space, asked.memory
    status = memory.status(space.name, LATEST)
    consolidation = space.generations.state()
    return WebPage(
        template="overview.html",
        fragment="_overview.html",
        content={
            "status": status,
            "counts": {state.value: status.job_counts.get(state, 0) for state in JobState},
            "fact_count": space.facts.count(),
            "sessions": status.sessions,
            "consolidation": consolidation,
            "waits_for": consolidation.waits_for(asked.now).value,
            "next_generation_at": consolidation.next_attempt_at(asked.now),
            "facts": space.facts.list(LATEST),
            "plots": _plots(asked),
        },
    )


def _plots(asked: Asked) -> list[Plot]:
    days = days_until(asked.now, DAYS)
    ledger = asked.memory.store.ledger
    spent = dict(ledger.spent_daily(asked.space.name, days[0], days[-1] + timedelta(days=1)))
    tokens = {day: (each.input_tokens, each.output_tokens) for day, each in spent.items()}
    costs = {
        day: (each.cost_micros / MICROS,)
        for day, each in spent.items()
        if each.cost_micros is not None
    }
    calls = {day: (each.calls,) for day, each in spent.items()}
    return [
        plot("Tokens a day", ("read", "written"), days, tokens),
        plot("Cost a day", ("spent",), days, costs),
        plot("Model calls a day", ("calls",), days, calls),
    ]


def live(asked: Asked) -> Live:
    return Live(space=asked.space.name, key_id=asked.key.id)


JOBS = f"{SPACE}/jobs"
SHOWN = 200
_ORDER = {JobState.PARKED: 0, JobState.CLAIMED: 1, JobState.DUE: 2, JobState.IDLE: 3}
_OF_SESSIONS = frozenset({JobKind.EXTRACT, JobKind.EXTRACT_AGAIN})


def jobs(asked: Asked) -> WebPage:
    leases, now = asked.memory.store.leases, asked.now
    # Parked ones first, whatever became due before them: they wait for whoever looks here.
    found = sorted(leases.jobs(asked.space.name, LIST_MAX), key=lambda job: _ORDER[job.state])
    counts = leases.counts(asked.space.name)
    return WebPage(
        template="jobs.html",
        fragment="_jobs.html",
        content={
            "jobs": [_row(job, now) for job in found[:SHOWN]],
            "counts": {state.value: counts.get(state, 0) for state in JobState},
            "left_out": sum(counts.values()) - min(len(found), SHOWN),
            "has_stuck": any(_is_stuck(job) for job in found),
        },
    )


def _row(job: Job, now: datetime) -> dict[str, object]:
    return {
        "job": job,
        "why": job.why(now),
        "next": job.next_attempt_at(now),
        "is_of_session": job.kind in _OF_SESSIONS,
        "is_of_space": job.kind is JobKind.CONSOLIDATE,
        "is_stuck": _is_stuck(job),
    }


def _is_stuck(job: Job) -> bool:
    """Whether a retry changes anything for it."""
    return job.state is JobState.PARKED or job.is_paused


def retry_jobs(asked: Asked) -> Moved:
    """Those of one session, or all of the space."""
    one = asked.form.get("job") or None
    revived = asked.memory.retry(one, asked.space.name)
    if not revived:
        return _back(asked, "Nothing was parked or paused any more.")
    said = "1 job has" if revived == 1 else f"{revived:,} jobs have"
    return _back(asked, f"{said} another chance, from the first attempt on.")


def make_due(asked: Asked) -> Moved:
    memory, space = asked.memory, asked.space.name
    marked = sweep_idle(memory.store, memory.clock.now(), memory.settings, space=space, all=True)
    hurried = memory.store.generations.hurry(space)
    sessions = "1 session" if marked == 1 else f"{marked:,} sessions"
    waits = ", and the next generation waits for nothing more" if hurried else ""
    return _back(asked, f"{sessions} marked{waits}. Whoever works on this store begins at once.")


def _back(asked: Asked, said: str) -> Moved:
    return Moved(to=f"{HOME}/s/{quote(asked.space.name, safe='')}/jobs", said=said)


GENERATIONS = f"{SPACE}/generations"
ONE = f"{GENERATIONS}/{{number}}"
LISTED = 20
COMPARED = 100  # others to choose from
NUMBER_CHARS_MAX = 18
LINES_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """What became of one document, and how much of it is not shown."""

    path: str
    change: str
    lines: tuple[DiffLine, ...]
    left_out: int


def generations(asked: Asked) -> WebPage:
    cursor, before = asked.wanted("cursor"), None
    if cursor is not None:
        before = read_mark(cursor, int)
    found = asked.space.generations.list(LISTED, before)
    state = asked.space.generations.state()
    waits_for = state.waits_for(asked.now)
    return WebPage(
        template="generations.html",
        fragment="_generations.html",
        content={
            "generations": found,
            "state": state,
            "waits_for": waits_for.value,
            "is_bad": waits_for in (Waiting.PARKED, Waiting.BACKOFF),
            "next_at": state.next_attempt_at(asked.now),
            "cursor": cursor or "",
            "following": cursor_behind(found[-1]) if len(found) == LISTED else None,
        },
    )


def generation(asked: Asked) -> WebPage:
    held = asked.space.generations
    found = held.get(_number(asked.path["number"]))
    others = [each.number for each in held.list(COMPARED) if each.number != found.number]
    given = asked.wanted("against")
    against = _number(given) if given is not None else _before(found, others)
    is_whole = asked.wanted("whole") is not None
    changes = [] if against is None else held.diff(against, found.number)
    return WebPage(
        template="generation.html",
        content={
            "generation": found,
            "current": held.state().generation,
            "others": others,
            "against": against,
            "changes": [_shown(each, is_whole) for each in changes],
            "is_whole": is_whole,
        },
    )


def _before(found: Generation, others: Sequence[int]) -> int | None:
    """The newest of those that came before; none: it is the oldest that is kept."""
    return max((number for number in others if number < found.number), default=None)


def _shown(change: GenerationChange, is_whole: bool) -> ShownChange:
    has_head = change.change is DocumentChange.CHANGED
    lines = diff_lines(change.text, SIDES if has_head else 0)
    kept = lines if is_whole else lines[:LINES_SHOWN]
    return ShownChange(
        path=change.path,
        change=change.change.value,
        lines=tuple(kept),
        left_out=len(lines) - len(kept),
    )


def _number(given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) <= NUMBER_CHARS_MAX):
        raise InvalidValue("a generation is named by its number")
    return int(given)


def rollback(asked: Asked) -> Moved:
    made = asked.space.generations.rollback(_number(asked.path["number"]))
    return Moved(
        to=f"{_place(asked)}/{made.number}",
        said=f"Restored, as generation {made.number}. It stays until something is learned.",
    )


def pause(asked: Asked) -> Moved:
    asked.space.generations.pause()
    return Moved(to=_place(asked), said="Paused: no generation is made until it is resumed.")


def resume(asked: Asked) -> Moved:
    asked.space.generations.resume()
    return Moved(to=_place(asked), said="Resumed.")


def _place(asked: Asked) -> str:
    return f"{HOME}/s/{quote(asked.space.name, safe='')}/generations"


KEYS = f"{HOME}/keys"
DAYS_MAX = 36_500


def home(asked: Asked) -> Answer:
    """Straight into the one space there is to see, or the list of them."""
    if asked.key.space is not None:
        return Moved(to=f"{HOME}/s/{quote(asked.key.space, safe='')}")
    return spaces(asked)


def spaces(asked: Asked) -> WebPage:
    after = asked.query.get("after", "")
    found = asked.memory.spaces(LIST_MAX, after)
    return WebPage(
        template="spaces.html",
        content={
            "spaces": found,
            "following": found[-1] if len(found) == LIST_MAX else None,
        },
    )


def keys(asked: Asked) -> WebPage:
    return _listed(asked)


def _listed(
    asked: Asked,
    *,
    secret: str | None = None,
    made: str | None = None,
    wrong: InvalidValue | None = None,
) -> WebPage:
    """The keys; with the secret of a new one, or what is wrong about it and all that was typed."""
    after = collection.check_id(asked.query.get("after", ""))
    found = asked.memory.store.api_keys.list(after, LIST_MAX)
    return WebPage(
        template="keys.html",
        status=200 if wrong is None else problem_of(wrong).status,
        content={
            "keys": sorted(found, key=lambda each: each.created_at, reverse=True),
            "scopes": [scope.value for scope in Scope],
            "following": found[-1].id if len(found) == LIST_MAX else None,
            "secret": secret,
            "made": made,
            "typed": asked.form,
            "wrong": wrong,
        },
    )


def create_key(asked: Asked) -> WebPage:
    try:
        made, secret = _made(asked)
    except InvalidValue as error:
        return _listed(asked, wrong=error)
    # Shown in the answer itself: a secret that is shown once is kept nowhere until a next page.
    return _listed(asked, secret=secret, made=made.name)


def _made(asked: Asked) -> tuple[ApiKey, str]:
    days = asked.field("days").strip()
    is_number = days.isascii() and days.isdigit() and len(days) <= len(str(DAYS_MAX))
    if days and not (is_number and 0 < int(days) <= DAYS_MAX):
        raise InvalidValue(f"a key lasts from 1 to {DAYS_MAX:,} days, or without an end")
    scope = asked.field("scope")
    if scope not in set(Scope):
        raise InvalidValue(f"a scope is one of {', '.join(Scope)}")
    return make_key(
        asked.memory,
        asked.field("name"),
        space=asked.field("space").strip() or None,
        scope=Scope(scope),
        expires_at=asked.now + timedelta(days=int(days)) if days else None,
    )


def revoke_key(asked: Asked) -> Moved:
    key_id = asked.path["key"]
    if not asked.memory.store.api_keys.revoke(key_id, asked.now):
        raise NotFound("there is no such key, or it was revoked before")
    return Moved(to=KEYS, said="The key is revoked. Whoever used it is out from now on.")


VIEWS: tuple[PageView, ...] = (
    shown(SPACE, "overview", overview),
    shown(f"{SPACE}/live", "live", live),
    shown(JOBS, "jobs", jobs),
    done(f"{JOBS}/retry", "retry_jobs", retry_jobs, Scope.WRITE),
    done(f"{JOBS}/due", "make_due", make_due, Scope.ADMIN),
    shown(GENERATIONS, "generations", generations),
    done(f"{GENERATIONS}/pause", "pause_generations", pause, Scope.WRITE),
    done(f"{GENERATIONS}/resume", "resume_generations", resume, Scope.WRITE),
    shown(ONE, "generation", generation),
    done(f"{ONE}/rollback", "rollback_generation", rollback, Scope.WRITE),
    shown(HOME, "home", home, reach=KeyReach.OWN),
    shown(f"{HOME}/spaces", "spaces", spaces, reach=KeyReach.STORE),
    shown(KEYS, "keys", keys, scope=Scope.ADMIN, reach=KeyReach.STORE),
    done(KEYS, "create_key", create_key, Scope.ADMIN, reach=KeyReach.STORE),
    done(f"{KEYS}/{{key}}/revoke", "revoke_key", revoke_key, Scope.ADMIN, reach=KeyReach.STORE),
)
