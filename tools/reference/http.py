"""The reference of the HTTP API, from the table of routes that the server itself is made from."""

from __future__ import annotations

from itertools import groupby

from recollect.interfaces.http.openapi import chapter, documented
from recollect.interfaces.http.problems import TITLES
from recollect.interfaces.http.route import SPACE, Reach, Repeat, Route
from recollect.interfaces.http.table import ROUTES
from tools.reference.layout import page, table

PREFACE = """\
`recollect serve` serves these, and `/v1/openapi.json` describes them in full, with every schema:
both are made from one table, and so is this page. `…` stands for `/v1/spaces/{space}`. How keys,
retries, conditions and pages work is in the [guide](../how-to/http.md).

* **Scope** is what a key needs at least: `read`, `write` or `admin`. A key opens one space or all;
  what it does not open looks like what is not there.
* **Takes**: parameters of the query, with a `?`; otherwise fields of the JSON body. What has to be
  given is in bold.
* **Retry**: `append` keeps the `Idempotency-Key` with what was appended, for good; `once`
  does it once, for an hour, and a retry is told what stands there now, or 410. `If-Match` stands
  where a version can be asked for.
"""


def render() -> str:
    sections = []
    for title, routes in groupby(ROUTES, key=chapter):
        rows = list(map(_row, routes))
        headers = ("method and path", "does", "scope", "takes", "retry")
        sections.append(f"## {title}\n\n{table(headers, rows)}")
    statuses = sorted({status for route in ROUTES for status in documented(route)})
    rows = [(str(status), TITLES[status]) for status in statuses if status in TITLES]
    problems = "What goes wrong is `application/problem+json`; [errors](errors.md) has the kinds."
    return page(
        "HTTP",
        PREFACE,
        *sections,
        "## What goes wrong",
        problems,
        table(("status", "title"), rows),
    )


def _row(route: Route) -> tuple[str, ...]:
    path = route.path.removeprefix(SPACE) if route.path.startswith(f"{SPACE}/") else route.path
    path = f"…{path}" if path != route.path else path
    scope = route.scope.value + {Reach.STORE: ", all spaces"}.get(route.reach, "")
    retry = [] if route.repeat is Repeat.PLAIN else [f"`{route.repeat.value}`"]
    retry += ["`If-Match`"] if route.is_conditional else []
    return f"`{route.method} {path}`", route.summary, scope, _taken(route), ", ".join(retry)


def _taken(route: Route) -> str:
    body = route.body or {}
    needed = {*route.needs, *body.get("required", ())}
    names = [(name, f"`?{name}`") for name in route.query]
    names += [(name, f"`{name}`") for name in body.get("properties", ())]
    return " ".join(f"**{shown}**" if name in needed else shown for name, shown in names)
