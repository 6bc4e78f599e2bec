"""The reference of the HTTP API, from the table of routes that the server itself is made from."""

from __future__ import annotations

from itertools import groupby

from recollect.interfaces.http.app import OPERATIONS
from recollect.interfaces.http.openapi import chapter, documented
from recollect.interfaces.http.operations import SPACE, KeyReach, Operation, Repeat
from recollect.interfaces.http.problems import TITLES
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
    for title, routes in groupby(OPERATIONS, key=chapter):
        rows = list(map(_row, routes))
        headers = ("method and path", "does", "scope", "takes", "retry")
        sections.append(f"## {title}\n\n{table(headers, rows)}")
    statuses = sorted({status for route in OPERATIONS for status in documented(route)})
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


def _row(route: Operation) -> tuple[str, ...]:
    path = route.path.removeprefix(SPACE) if route.path.startswith(f"{SPACE}/") else route.path
    path = f"…{path}" if path != route.path else path
    scope = route.scope.value + {KeyReach.STORE: ", all spaces"}.get(route.reach, "")
    retry = [] if route.repeat is Repeat.PLAIN else [f"`{route.repeat.value}`"]
    retry += ["`If-Match`"] if route.is_conditional else []
    return f"`{route.method} {path}`", route.summary, scope, _taken(route), ", ".join(retry)


def _taken(route: Operation) -> str:
    query, body = route.inputs.query, route.inputs.fields
    names = [(f"`?{name}`", needed) for name, needed in query.items()]
    names += [(f"`{name}`", needed) for name, needed in body.items()]
    return " ".join(f"**{shown}**" if needed else shown for shown, needed in names)
