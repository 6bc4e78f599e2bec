"""`recollect facts`: what was learned, statement by statement, and changes by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import click

import recollect
from recollect.clock import SystemClock
from recollect.errors import NotFound
from recollect.interfaces.cli.arguments import (
    find_fact,
    find_session,
    limit_option,
    read_given_time,
    read_text,
    session_keys,
)
from recollect.interfaces.cli.fact_lines import fact_in_full, fact_lines, history_lines
from recollect.interfaces.cli.groups import ListingGroup
from recollect.interfaces.cli.options import known_keys, target_options
from recollect.interfaces.cli.output import note, one_line, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.knowledge import UNCHANGED, Fact
from recollect.languages import named_languages
from recollect.space import Space

LISTED = 50
FOUND = 10
_BY_RULES = f"Without a model, facts are learned from {named_languages()}."


def _read_pairs(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any]:
    """KEY=VALUE; a value that reads as JSON is that, any other is text."""
    pairs: dict[str, Any] = {}
    for each in given:
        key, sign, text = each.partition("=")
        if not key or not sign:
            raise click.BadParameter(f"KEY=VALUE, as in mood=glad: {each!r}", context, parameter)
        try:
            pairs[key] = json.loads(text)
        except (ValueError, RecursionError):
            pairs[key] = text
    return pairs


_as_of = click.option(
    "--as-of",
    callback=read_given_time,
    metavar="TIME",
    help="As it was believed at a time, ISO with a zone. Default: now.",
)
_metadata = click.option(
    "--metadata",
    multiple=True,
    callback=_read_pairs,
    metavar="KEY=VALUE",
    help="VALUE is JSON if it reads as such, else text. May be given several times.",
)


@click.group("facts", cls=ListingGroup)
@target_options
def command(**_given: object) -> None:
    """What was learned, statement by statement; without a verb, the list of it.

    A fact says whose word it is (user, agent or tool), when it was said, and which records bear it
    out. A newer statement on the same topic supersedes an older one; nothing is destroyed.

    \b
    Examples:
      recollect facts
      recollect facts search where does Ana live
      recollect facts add "Ana is allergic to penicillin." --tag detail
    """


@command.command("list")
@click.option("--tag", metavar="T", help="Only those with this tag, such as preference.")
@click.option(
    "--session",
    metavar="KEY-OR-ID",
    shell_complete=known_keys,
    help="Only those that come from this session.",
)
@_as_of
@click.option("--every", is_flag=True, help="Also what is superseded, over or not valid yet.")
@limit_option(LISTED, "facts")
@click.option("--after", metavar="ID", help="The next page: the facts listed after this one.")
@with_target
def list_(
    target: Target, /, limit: int, session: str | None, after: str | None, **more: Any
) -> None:
    """List the facts that hold, newest first.

    \b
    Examples:
      recollect facts list --tag preference
      recollect facts list --session telegram:42:main --every
      recollect facts list --as-of 2026-05-01T12:00:00Z --json
    """
    if more["every"] and more["as_of"] is not None:
        raise click.UsageError("Give --every or --as-of, not both.")
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        found = space.facts.list(
            limit,
            None if after is None else find_fact(space, after),
            session=None if session is None else find_session(space, session).id,
            **more,
        )
        _write_facts(target, space, found)
        if target.as_json:
            return
        if len(found) == limit:
            after = found[-1].id
            note(f"There may be more: recollect facts list --after {after}{target.arguments}")
        elif not found and after is None:
            is_narrowed = session is not None or any(more.values())
            note(_nothing_narrower(space) if is_narrowed else _nothing(memory, space))


command.lists_by(list_)


def _write_facts(target: Target, space: Space, facts: Iterable[Fact]) -> None:
    facts = list(facts)
    if target.as_json:
        write_json(view(facts))
        return
    keys = session_keys(space, facts)
    for fact in facts:
        for line in fact_lines(fact, keys):
            write(line)


def _nothing_narrower(space: Space) -> str:
    return f"No such facts in space {one_line(space.name)!r}. See all: recollect facts list --every"


def _nothing(memory: recollect.Memory, space: Space) -> str:
    name = one_line(space.name)
    is_learned = not any(memory.store.marks.counts(space.name)) and bool(space.sessions.list(1))
    if is_learned:
        none = f"No facts in space {name!r}, and nothing new to learn from."
        again = f"{none} To go through it all again: recollect work --again"
        return again if memory.settings.model else f"{again}\n{_BY_RULES}"
    return f"No facts in space {name!r} yet. Learn from what was said: recollect work --all"


@command.command("search")
@click.argument("words", nargs=-1)
@click.option(
    "--metadata",
    callback=lambda context, parameter, pair: _read_pairs(
        context, parameter, () if pair is None else (pair,)
    ),
    metavar="KEY=VALUE",
    help="Instead of WORDS: those with this value under this key.",
)
@_as_of
@limit_option(FOUND, "facts")
@click.option("--after", metavar="ID", help="With --metadata, the next page: those after this one.")
@with_target
def search(
    target: Target,
    words: tuple[str, ...],
    metadata: dict[str, Any],
    as_of: datetime | None,
    limit: int,
    after: str | None,
) -> None:
    """Find facts with any of the WORDS, the best first.

    \b
    Examples:
      recollect facts search vegetarian dinner
      recollect facts search --metadata city=Lisbon --json
    """
    if bool(words) == bool(metadata):
        raise click.UsageError("Give WORDS to look for, or --metadata KEY=VALUE.")
    if words and after is not None:
        raise click.UsageError("--after goes with --metadata, not with WORDS.")
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        if words:
            found = space.facts.search(" ".join(words), limit, as_of=as_of)
        else:
            ((key, value),) = metadata.items()
            before = None if after is None else find_fact(space, after)
            found = space.facts.search_metadata(key, value, limit, before, as_of=as_of)
        _write_facts(target, space, found)
    if target.as_json:
        return
    if not found:
        note("Nothing found. See all: recollect facts")
    elif metadata and len(found) == limit:
        note(f"There may be more: give the same with --after {found[-1].id}")


@command.command("add")
@click.argument("text", required=False)
@click.option("--tag", "tags", multiple=True, metavar="T", help="May be given several times.")
@_metadata
@click.option("--id", "fact_id", metavar="ID", help="Its id; replaces what has this id.")
@with_target
def add(
    target: Target,
    text: str | None,
    tags: tuple[str, ...],
    metadata: dict[str, Any],
    fact_id: str | None,
) -> None:
    """Add a fact by hand. The same statement again is stored once.

    TEXT that is - or missing is read from standard input. Secrets in it are replaced by
    placeholders. What people add or edit is theirs: no extraction changes it.

    \b
    Examples:
      recollect facts add "Ana is allergic to penicillin." --tag detail
      recollect facts add "The office is in Lisbon." --metadata city=Lisbon --id office
    """
    text = read_text(text, "recollect facts add")
    if fact_id == "":
        raise click.UsageError("--id is empty.")
    with target.open() as memory:
        space = memory.space(target.space_name)
        fact = space.facts.add(Fact(text, id=fact_id or "", tags=tags, metadata=metadata))
    _write_one(target, "Stored", fact)


@command.command("edit", short_help="Change what a fact says; it is yours from then on.")
@click.argument("fact_id", metavar="ID")
@click.argument("text", required=False)
@click.option("--tag", "tags", multiple=True, metavar="T", help="Replaces its tags.")
@click.option(
    "--metadata",
    multiple=True,
    callback=_read_pairs,
    metavar="KEY=VALUE",
    help="Replaces its metadata.",
)
@with_target
def edit(
    target: Target,
    fact_id: str,
    text: str | None,
    tags: tuple[str, ...],
    metadata: dict[str, Any],
) -> None:
    """Change what a fact says, its tags or its metadata; it is yours from then on.

    TEXT that is - is read from standard input. Its history keeps what it said before.

    \b
    Examples:
      recollect facts edit 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 "Ana lives in Porto."
      recollect facts edit office --tag place --tag work
    """
    if text is None and not tags and not metadata:
        raise click.UsageError("Say what to change: TEXT, --tag or --metadata.")
    content = UNCHANGED if text is None else read_text(text, "recollect facts edit ID -")
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        find_fact(space, fact_id)
        fact = space.facts.update(
            fact_id, content, tags=tags or UNCHANGED, metadata=metadata or UNCHANGED
        )
    _write_one(target, "Changed", fact)


def _write_one(target: Target, does: str, fact: Fact) -> None:
    if target.as_json:
        write_json(view(fact))
    else:
        write(f"{does} fact {one_line(fact.id)}: {one_line(fact.content)}")


@command.command("delete")
@click.argument("fact_id", metavar="ID")
@with_target
def delete(target: Target, fact_id: str) -> None:
    """Delete a fact. Its session does not bring it back, and what it superseded holds again.

    Its history stays; to have nothing left of it, recollect forget --fact.

    \b
    Example:
      recollect facts delete 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        fact = find_fact(space, fact_id)
        space.facts.delete(fact_id)
    if target.as_json:
        write_json({"space": space.name, "deleted": view(fact)})
    else:
        write(f"Deleted fact {one_line(fact.id)}: {one_line(fact.content)}")


@command.command("show", short_help="Show one fact, and the words it comes from.")
@click.argument("fact_id", metavar="ID")
@with_target
def show(target: Target, fact_id: str) -> None:
    """Show one fact: all that is known about it, and the words it comes from.

    \b
    Example:
      recollect facts show 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --json
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        fact = find_fact(space, fact_id)
        if target.as_json:
            write_json(view(fact))
            return
        newer = None if fact.superseded_by is None else space.facts.get(fact.superseded_by)
        keys = session_keys(space, [fact])
    for line in fact_in_full(fact, keys, newer, SystemClock().now()):
        write(line)


@command.command("history", short_help="Show what has happened to a fact.")
@click.argument("fact_id", metavar="ID")
@with_target
def history(target: Target, fact_id: str) -> None:
    """Show what has happened to a fact, oldest first; also to one that was deleted.

    \b
    Example:
      recollect facts history 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        changes = space.facts.history(fact_id)
    if not changes:
        raise NotFound(
            f"no fact {fact_id!r} was ever in space {space.name!r}; recollect facts lists them"
        )
    if target.as_json:
        write_json(view(changes))
        return
    for change in changes:
        for line in history_lines(change):
            write(line)
