"""`recollect quarantine`: what tools said that reads like a command, and a person's word on it."""

from __future__ import annotations

import click

from recollect.interfaces.cli.arguments import find_fact, limit_option, session_keys
from recollect.interfaces.cli.fact_lines import fact_lines
from recollect.interfaces.cli.groups import ListingGroup
from recollect.interfaces.cli.options import target_options
from recollect.interfaces.cli.output import note, one_line, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view

LISTED = 50


@click.group("quarantine", cls=ListingGroup)
@target_options
def command(**_given: object) -> None:
    """What tools and web pages said that reads like a command; without a verb, the list of it.

    Such facts are found by whoever looks for them, and are never put into a prompt by themselves.
    A person approves one, and it is that person's word from then on; or rejects it, and it is gone.

    \b
    Examples:
      recollect quarantine
      recollect quarantine approve 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
      recollect quarantine reject 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """


@command.command("list")
@limit_option(LISTED, "facts")
@click.option("--after", metavar="ID", help="The next page: the facts listed after this one.")
@with_target
def list_(target: Target, limit: int, after: str | None) -> None:
    """List what is in quarantine, newest first.

    \b
    Examples:
      recollect quarantine list --space alice
      recollect quarantine list --limit 500 --json
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        found = space.facts.quarantined(limit, None if after is None else find_fact(space, after))
        keys = {} if target.as_json else session_keys(space, found)
    if target.as_json:
        write_json(view(found))
        return
    for fact in found:
        for line in fact_lines(fact, keys):
            write(line)
    if len(found) == limit:
        following = f"recollect quarantine list --after {found[-1].id}{target.arguments}"
        note(f"There may be more: {following}")
    elif not found and after is None:
        note(f"Nothing in space {one_line(target.space_name)!r} is in quarantine.")


command.lists_by(list_)


@command.command("approve", short_help="Vouch for a fact: it may be put into prompts.")
@click.argument("fact_id", metavar="ID")
@with_target
def approve(target: Target, fact_id: str) -> None:
    """Vouch for a fact: it is a person's word from then on, and may be put into prompts.

    Its history says so. It still goes when the session it comes from is forgotten.

    \b
    Example:
      recollect quarantine approve 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        find_fact(space, fact_id)
        fact = space.facts.approve(fact_id)
    if target.as_json:
        write_json(view(fact))
    else:
        write(f"Approved fact {one_line(fact.id)}: {one_line(fact.content)}")


@command.command("reject")
@click.argument("fact_id", metavar="ID")
@with_target
def reject(target: Target, fact_id: str) -> None:
    """Delete a fact. Its session does not bring it back.

    Its history stays; to have nothing left of it, forget it: recollect forget --fact ID.

    \b
    Example:
      recollect quarantine reject 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        fact = find_fact(space, fact_id)
        space.facts.reject(fact_id)
    if target.as_json:
        write_json({"space": space.name, "rejected": view(fact)})
    else:
        write(f"Rejected fact {one_line(fact.id)}: {one_line(fact.content)}")
