"""Pages for operating a memory: overview, jobs, generations, spaces and keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from urllib.parse import quote

from recollect import collection
from recollect.descriptors import is_talking
from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.http.operations import KeyReach
from recollect.interfaces.web.sessions import heading
from recollect.interfaces.web.view import (
    HOME,
    SPACE,
    Asked,
    Live,
    Moved,
    PageView,
    WebPage,
    done,
    read_number,
    shown,
)
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.sweeps import sweep_idle
from recollect.types.access import Scope
from recollect.types.facts import Fact, FactTag, Trust
from recollect.types.generations import Generation, Waiting
from recollect.types.records import JobState

Json = dict[str, Any]

DAYS = 30
LATEST = 8
RECENT, RECENT_SESSIONS = 500, 50  # facts and sessions that the overview looks at
CHANGES = 5
BARS = 30
SUBJECTS = ("~/memory/people/", "~/memory/projects/", "~/memory/places/")
SUBJECTS_SHOWN = 24
_SPANS = ((1, "day"), (7, "week"), (30, "month"), (365, "year"))
MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Values of days, of which each is stacked upon those before it; its template draws it."""

    title: str
    names: tuple[str, ...]
    days: Sequence[datetime]
    values: Mapping[datetime, Sequence[float]]

    @property
    def is_empty(self) -> bool:
        return not any(map(any, self.values.values()))

    @property
    def top(self) -> float:
        """The next number above all of them that people like to read."""
        value, size = max(map(sum, self.values.values()), default=0.0) or 1.0, 1.0
        while size * 10 < value:
            size *= 10
        while size > value:
            size /= 10
        return next(size * step for step in (1, 2, 2.5, 5, 10) if size * step >= value)


def days_until(last: datetime, count: int) -> list[datetime]:
    """The midnights of so many days, the last one included."""
    midnight = last.replace(hour=0, minute=0, second=0, microsecond=0)
    return [midnight - timedelta(days=count - 1 - each) for each in range(count)]


def overview(asked: Asked) -> Json:
    space, memory = asked.space, asked.memory
    status = memory.status(space.name, LATEST)
    consolidation = space.generations.state()
    known = [
        each
        for each in space.facts.list(RECENT, every=True)
        if each.trust is not Trust.TOOL  # what only tools said is no news of anybody
    ]
    listed = space.sessions.list(RECENT_SESSIONS)
    newest = [each for each in listed if is_talking(each.agent_id)][:LATEST]
    pages = space.documents.tree(limit=LIST_MAX)
    return {
        "status": status,
        "counts": _counts(status.job_counts),
        "fact_count": space.facts.count(),
        "sessions": newest,
        "headings": {each.id: heading(asked, each) for each in newest},
        "consolidation": consolidation,
        "waits_for": consolidation.waits_for(asked.now).value,
        "next_generation_at": consolidation.next_attempt_at(asked.now),
        "facts": [each for each in known if each.holds(asked.now)][:LATEST],
        "changed": list(islice(_replaced(space, known), CHANGES)),
        "open": [
            each
            for tag in (FactTag.COMMITMENT, FactTag.GOAL)
            for each in space.facts.list(CHANGES, tag=tag.value)
        ],
        "pages": len(pages),
        "subjects": [
            each for each in pages if each.path.startswith(SUBJECTS) and each.path.count("/") == 3
        ][:SUBJECTS_SHOWN],
        "learned": _learned(known, asked.now),
        "plots": _plots(asked),
    }


def _replaced(space: Space, known: Iterable[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """What was believed before, and what took its place; looked up as it is asked for."""
    for each in known:
        if each.superseded_by and (after := space.facts.get(each.superseded_by)):
            yield each, after


def _learned(known: Sequence[Fact], now: datetime) -> Plot:
    """How much was said that was learned: by day, by week or by month, as far back as it goes."""
    said = [each.valid_from for each in known if each.valid_from and each.valid_from <= now]
    span = max(((now - each).days for each in said), default=0) + 1
    step, name = next((each for each in _SPANS if span <= each[0] * BARS), _SPANS[-1])
    last = now.replace(hour=0, minute=0, second=0, microsecond=0)
    starts = [last - timedelta(days=step * (BARS - 1 - each)) for each in range(BARS)]
    counted = Counter(
        starts[max(0, BARS - 1 - (last + timedelta(days=1) - each) // timedelta(days=step))]
        for each in said
    )
    values = {start: (count,) for start, count in counted.items()}
    return Plot(
        title=f"Facts by the {name} they were said", names=("facts",), days=starts, values=values
    )


def _counts(counts: Mapping[Any, int]) -> dict[str, int]:
    return {state.value: counts.get(state, 0) for state in JobState}


def _plots(asked: Asked) -> list[Plot]:
    days = days_until(asked.now, DAYS)
    until = days[-1] + timedelta(days=1)
    spent = dict(asked.memory.store.ledger.spent_daily(asked.space.name, days[0], until))
    tokens = {day: (each.input_tokens, each.output_tokens) for day, each in spent.items()}
    costs = {
        day: (each.cost_micros / MICROS,)
        for day, each in spent.items()
        if each.cost_micros is not None
    }
    calls = {day: (each.calls,) for day, each in spent.items()}
    return [
        Plot(title="Tokens a day", names=("read", "written"), days=days, values=tokens),
        Plot(title="Cost a day", names=("spent",), days=days, values=costs),
        Plot(title="Model calls a day", names=("calls",), days=days, values=calls),
    ]


JOBS = f"{SPACE}/jobs"
SHOWN = 200
_ORDER = (JobState.PARKED, JobState.CLAIMED, JobState.DUE, JobState.IDLE)


def jobs(asked: Asked) -> Json:
    leases = asked.memory.store.leases
    # Parked ones first, whatever became due before them: they wait for the reader of this page.
    found = leases.jobs(asked.space.name, LIST_MAX)
    found = sorted(found, key=lambda job: _ORDER.index(job.state))
    counts = leases.counts(asked.space.name)
    return {
        "jobs": found[:SHOWN],
        "counts": _counts(counts),
        "left_out": sum(counts.values()) - min(len(found), SHOWN),
        # For those a retry changes something.
        "stuck": {
            (job.kind, job.key) for job in found if job.state is JobState.PARKED or job.is_paused
        },
    }


def retry_jobs(asked: Asked) -> str:
    """Those of one session, or all of the space."""
    revived = asked.memory.retry(asked.form.get("job") or None, asked.space.name)
    if not revived:
        return "Nothing was parked or paused any more."
    said = "1 job has" if revived == 1 else f"{revived:,} jobs have"
    return f"{said} another chance, from the first attempt on."


def make_due(asked: Asked) -> str:
    memory, space = asked.memory, asked.space.name
    marked = sweep_idle(memory.store, memory.clock.now(), memory.settings, space=space, all=True)
    hurried = memory.store.generations.hurry(space)
    sessions = "1 session" if marked == 1 else f"{marked:,} sessions"
    waits = ", and the next generation is due" if hurried else ""
    return f"{sessions} marked{waits}. The workers on this store start at once."


GENERATIONS = f"{SPACE}/generations"
ONE = f"{GENERATIONS}/{{number}}"
LISTED = 20
COMPARED = 100  # others to choose from
LINES_SHOWN = 300


def generations(asked: Asked) -> Json:
    state = asked.space.generations.state()
    waits_for = state.waits_for(asked.now)
    return {
        **asked.page("generations", asked.space.generations.list, int, LISTED),
        "state": state,
        "waits_for": waits_for.value,
        "is_bad": waits_for in (Waiting.PARKED, Waiting.BACKOFF),
        "next_at": state.next_attempt_at(asked.now),
    }


def generation(asked: Asked) -> Json:
    held = asked.space.generations
    found = held.get(_number(asked.path["number"]))
    others = [each.number for each in held.list(COMPARED) if each.number != found.number]
    given = asked.wanted("against")
    # The newest of those that came before; none: it is the oldest that is kept.
    before = max((number for number in others if number < found.number), default=None)
    against = before if given is None else _number(given)
    is_whole = asked.wanted("whole") is not None
    changes = [] if against is None else held.diff(against, found.number)
    return {
        "generation": found,
        "current": held.state().generation,
        "others": others,
        "against": against,
        "changes": changes,
        "lines_max": None if is_whole else LINES_SHOWN,
    }


def _number(given: str) -> int:
    return read_number(given, "the number of a generation")


def rollback(asked: Asked) -> Moved:
    made: Generation = asked.space.generations.rollback(_number(asked.path["number"]))
    said = f"Restored, as generation {made.number}. It stays until something is learned."
    return Moved(to=asked.at("generations", str(made.number)), said=said)


KEYS = f"{HOME}/keys"
DAYS_MAX = 36_500


def home(asked: Asked) -> Moved | WebPage:
    """Straight into the one space there is to see, or the list of them."""
    if asked.key.space is not None:
        return Moved(to=f"{HOME}/s/{quote(asked.key.space, safe='')}")
    return WebPage(template="spaces.html", content=spaces(asked))


def spaces(asked: Asked) -> Json:
    found = asked.memory.spaces(LIST_MAX, asked.query.get("after", ""))
    return {"spaces": found, "following": found[-1] if len(found) == LIST_MAX else None}


def keys(asked: Asked) -> Json:
    after = collection.check_id(asked.query.get("after", ""))
    found = asked.memory.store.api_keys.list(after, LIST_MAX)
    return {
        "keys": sorted(found, key=lambda each: each.created_at, reverse=True),
        "scopes": [scope.value for scope in Scope],
        "following": found[-1].id if len(found) == LIST_MAX else None,
        "secret": None,
        "made": None,
    }


def create_key(asked: Asked) -> WebPage:
    days, scope = asked.field("days").strip(), asked.field("scope")
    if scope not in set(Scope):
        raise InvalidValue(f"a scope is one of {', '.join(Scope)}")
    lasts = read_number(days, "how many days a key lasts", least=1, most=DAYS_MAX) if days else 0
    made, secret = make_key(
        asked.memory,
        asked.field("name"),
        space=asked.field("space").strip() or None,
        scope=Scope(scope),
        expires_at=asked.now + timedelta(days=lasts) if lasts else None,
    )
    # Shown in the answer itself: a secret that is shown once is kept nowhere until a next page.
    content = {**keys(asked), "secret": secret, "made": made.name}
    return WebPage(template="keys.html", content=content)


def revoke_key(asked: Asked) -> None:
    if not asked.memory.store.api_keys.revoke(asked.path["key"], asked.now):
        raise NotFound("there is no such key, or it was revoked before")


_OF_ALL: Json = {"reach": KeyReach.STORE}
_JOBS: Json = {"to": "jobs", "said": str}

VIEWS: tuple[PageView, ...] = (
    shown(SPACE, "overview", overview),
    shown(
        f"{SPACE}/live",
        "live",
        lambda asked: Live(space=asked.space.name, key_id=asked.key.id),
    ),
    shown(JOBS, "jobs", jobs),
    done(f"{JOBS}/retry", "retry_jobs", Scope.WRITE, retry_jobs, **_JOBS),
    done(f"{JOBS}/due", "make_due", Scope.ADMIN, make_due, **_JOBS),
    shown(GENERATIONS, "generations", generations),
    done(
        f"{GENERATIONS}/pause",
        "pause_generations",
        Scope.WRITE,
        lambda asked: asked.space.generations.pause(),
        to="generations",
        said="Paused: no generation is made until it is resumed.",
    ),
    done(
        f"{GENERATIONS}/resume",
        "resume_generations",
        Scope.WRITE,
        lambda asked: asked.space.generations.resume(),
        to="generations",
        said="Resumed.",
    ),
    shown(ONE, "generation", generation),
    done(f"{ONE}/rollback", "rollback_generation", Scope.WRITE, rollback),
    shown(HOME, "home", home, reach=KeyReach.OWN),
    shown(f"{HOME}/spaces", "spaces", spaces, **_OF_ALL),
    shown(KEYS, "keys", keys, scope=Scope.ADMIN, **_OF_ALL),
    done(KEYS, "create_key", Scope.ADMIN, create_key, back="keys", **_OF_ALL),
    done(
        f"{KEYS}/{{key}}/revoke",
        "revoke_key",
        Scope.ADMIN,
        revoke_key,
        to="keys",
        said="The key is revoked. Requests with it are refused from now on.",
        **_OF_ALL,
    ),
)
