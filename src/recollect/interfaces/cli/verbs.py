"""`recollect verbs`: everything that can be asked of a memory, and where each surface has it."""

from __future__ import annotations

from typing import Any

import click

from recollect.interfaces.cli.output import NONE, table, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.verbs import VERBS, Verb

HEADERS = ("VERB", "SCOPE", "EFFECT", "COMMAND", "HTTP", "MCP")


@click.command("verbs")
@with_target
def command(target: Target) -> None:
    """List every verb with the places where it can be found.

    A verb is a method in Python, and the same name is a coroutine in recollect.aio. Its scope is
    what a key of the HTTP API needs for it, its effect is what it does to what is remembered.

    \b
    Examples:
      recollect verbs
      recollect verbs --json
    """
    if target.as_json:
        write_json([_shape(verb) for verb in VERBS])
        return
    for line in table(HEADERS, [_row(verb) for verb in VERBS]):
        write(line)


def _shape(verb: Verb) -> dict[str, Any]:
    return {
        "name": verb.name,
        "says": verb.says,
        "scope": verb.scope.value,
        "effect": verb.effect.value,
        "is_idempotent": verb.is_idempotent,
        "python": verb.method is not None,
        "http": list(verb.http),
        "commands": list(verb.commands),
        "tools": list(verb.tools),
        "pages": verb.pages or None,
        "example": verb.example or None,
    }


def _row(verb: Verb) -> tuple[str, ...]:
    places = (verb.commands, verb.http, verb.tools)
    return (verb.name, verb.scope, verb.effect, *(", ".join(each) or NONE for each in places))
