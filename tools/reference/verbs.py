"""The reference of the verbs, from the list that the surfaces are held to."""

from __future__ import annotations

from itertools import groupby

from recollect.verbs import VERBS, Verb
from tools.reference.layout import page, table

PREFACE = """\
Everything that can be asked of a memory, once. A verb is a method in [Python](python.md), and a
coroutine of the same name in `recollect.aio`; the other columns say where else it is. `…` stands
for `/v1/spaces/{space}`. `recollect verbs` prints the same, with `--json` for programs.

* **Scope** is what a key of the [HTTP](http.md) API needs for it.
* **Effect**: `read`, `write`, or `destructive` where something is gone afterwards or not as it was;
  `+` stands where doing it twice is not the same as doing it once.

The audit log, spans and metrics name transactions of the store (`records.append`,
`erasure.forget_session`), of which one verb may be several: what is recorded under these names
stays readable.
"""


def render() -> str:
    sections = []
    for owner, verbs in groupby(VERBS, key=lambda verb: verb.name.partition(".")[0]):
        headers = ("verb", "does", "scope", "effect", "command", "HTTP", "MCP")
        sections.append(f"## {owner.capitalize()}\n\n{table(headers, map(_row, verbs))}")
    return page("Verbs", PREFACE, *sections)


def _row(verb: Verb) -> tuple[str, ...]:
    effect = verb.effect.value + ("" if verb.is_idempotent else " +")
    http = [place.replace("/v1/spaces/{space}/", "…/") for place in verb.http]
    places = [", ".join(f"`{each}`" for each in of) for of in (verb.commands, http, verb.tools)]
    return (f"`{verb.name}`", verb.says, verb.scope.value, effect, *places)
