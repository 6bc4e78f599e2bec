"""`recollect facts` and `recollect quarantine`: what was learned, and changes by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from recollect.errors import NotFound
from recollect.facts import Facts
from recollect.interfaces.cli.commands import Output, Target, command, group, listed
from recollect.interfaces.cli.output import NONE, counted, fields, labelled, moment, one_line
from recollect.interfaces.cli.parameters import (
    After,
    AsOf,
    FactId,
    KeyOrId,
    Limit,
    Pair,
    Tags,
    Text,
    Words,
    find_fact,
    find_session,
    read_text,
    session_keys,
)
from recollect.languages import named_languages
from recollect.space import Space
from recollect.types.facts import UNCHANGED, Fact, FactChange, Reader, Source

SHOWN_SOURCES = 3  # of a fact in a list; `facts show` has all


@group(lists="list")
def facts() -> None:
    """What was learned, statement by statement; without a verb, the list of it.

    A fact says whose word it is (user, agent or tool), when it was said, and which records support
    it. A newer statement on the same topic supersedes an older one; nothing is destroyed.

    Examples:
      recollect facts
      recollect facts search where does Ana live
    """


@command(facts)
def list_(
    at: Target,
    *,
    tag: str | None = None,
    session: KeyOrId | None = None,
    as_of: AsOf = None,
    every: bool = False,
    limit: Limit = 50,
    after: After = None,
) -> Output:
    """List the facts that hold, newest first.

    Options:
      tag T: Only those with this tag, such as preference.
      session: Only those that come from this session.
      every: Include what is superseded, over or not valid yet.

    Examples:
      recollect facts list --session telegram:42:main --every
      recollect facts list --as-of 2026-05-01T12:00:00Z --json
    """
    if every and as_of is not None:
        raise click.UsageError("Give --every or --as-of, not both.")
    found = at.space.facts.list(
        limit,
        None if after is None else find_fact(at.space, after),
        tag=tag,
        session=None if session is None else find_session(at.space, session).id,
        as_of=as_of,
        every=every,
    )
    nothing = ""
    if not found and any((tag, session, as_of, every)):
        nothing = f"No such facts in space {at.quoted_space}. See all: recollect facts list --every"
    elif not found:
        nothing = _nothing(at)
    return listed(at, found, facts_lines(found, at.space), nothing, limit=limit, after=after)


def _nothing(at: Target) -> str:
    space, none = at.space, f"No facts in space {at.quoted_space}"
    if any(at.memory.store.marks.counts(space.name)) or not space.sessions.list(1):
        return f"{none} yet. Learn from what was said: recollect work --all"
    again = f"{none}, and nothing new to learn from. To go through it all again: recollect work"
    languages = f"\nWithout a model, facts are learned from {named_languages()}."
    return f"{again} --again{'' if at.memory.settings.model else languages}"


@command(facts)
def search(
    at: Target,
    words: Words = (),
    *,
    metadata: Pair | None = None,
    as_of: AsOf = None,
    limit: Limit = 10,
    after: After = None,
) -> Output:
    """Find facts with any of the WORDS, the best first.

    Options:
      metadata: Instead of WORDS: those with this value under this key.
      after ID: With --metadata, the next page: those after this one.

    Examples:
      recollect facts search vegetarian dinner
      recollect facts search --metadata city=Lisbon --json
    """
    if bool(words) == (metadata is not None):
        raise click.UsageError("Give WORDS to look for, or --metadata KEY=VALUE.")
    if words and after is not None:
        raise click.UsageError("--after goes with --metadata, not with WORDS.")
    space, nothing = at.space, "Nothing found. See all: recollect facts"
    if metadata is None:
        found = space.facts.search(" ".join(words), limit, as_of=as_of)
        return Output(found, facts_lines(found, space), "" if found else nothing)
    before = None if after is None else find_fact(space, after)
    found = space.facts.search_metadata(*metadata, limit, before, as_of=as_of)
    return listed(at, found, facts_lines(found, space), nothing, limit=limit, after=after)


@command(facts, makes_store=True)
def add(
    at: Target,
    text: Text = None,
    *,
    tags: Tags = (),
    metadata: tuple[Pair, ...] = (),
    fact_id: str | None = None,
) -> Output:
    """Add a fact by hand. The same statement is stored only once.

    TEXT that is - or missing is read from standard input. Secrets in it are replaced by
    placeholders. Facts that people add or edit are never changed by extraction.

    Options:
      metadata: VALUE is JSON if it reads as such, else text. May be given several times.
      fact_id, --id ID: Its id; replaces what has this id.

    Example:
      recollect facts add "The office is in Lisbon." --tag work --metadata city=Lisbon --id office
    """
    content = read_text(text, "recollect facts add")
    if fact_id == "":
        raise click.UsageError("--id is empty.")
    given = Fact(content, id=fact_id or "", tags=tags, metadata=dict(metadata))
    return _did("Stored", at.space.facts.add(given))


@command(facts)
def edit(
    at: Target,
    fact_id: FactId,
    text: Text = None,
    *,
    tags: Tags = (),
    metadata: tuple[Pair, ...] = (),
) -> Output:
    """Change what a fact says, its tags or its metadata; no extraction changes it afterwards.

    TEXT that is - is read from standard input. Its history keeps what it said before.

    Options:
      tags, --tag T: Replaces its tags.
      metadata: Replaces its metadata.

    Examples:
      recollect facts edit 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 "Ana lives in Porto."
      recollect facts edit office --tag place --tag work
    """
    if text is None and not tags and not metadata:
        raise click.UsageError("Say what to change: TEXT, --tag or --metadata.")
    content = UNCHANGED if text is None else read_text(text, "recollect facts edit ID -")
    find_fact(at.space, fact_id)
    changed = at.space.facts.update(
        fact_id, content, tags=tags or UNCHANGED, metadata=dict(metadata) or UNCHANGED
    )
    return replace(_did("Changed", changed), notes=told_notes(changed.told))


def told_notes(told: Sequence[Reader]) -> Iterator[str]:
    """Who was told what is not so, or gone by now."""
    if told:
        yield f"Was told to {'; '.join(one_line(each.words) for each in told)}."


def _did(did: str, fact: Fact, value: Any = None) -> Output:
    return Output(value or fact, f"{did} fact {one_line(fact.id)}: {one_line(fact.content)}")


def _removed(
    at: Target, fact_id: str, did: str, remove: Callable[[Facts, str], list[Reader]]
) -> Output:
    fact = find_fact(at.space, fact_id)
    told = remove(at.space.facts, fact_id)
    value = {"space": at.space_name, did.lower(): fact, "told": told}
    return replace(_did(did, fact, value), notes=told_notes(told))


@command(facts)
def delete(at: Target, fact_id: FactId) -> Output:
    """Delete a fact. Its session does not bring it back, and what it superseded holds again.

    Its history stays; to erase that too, use recollect forget --fact.

    Example:
      recollect facts delete 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    return _removed(at, fact_id, "Deleted", Facts.delete)


@command(facts)
def show(at: Target, fact_id: FactId) -> Output:
    """Show everything known about one fact, and the words it comes from.

    Example:
      recollect facts show 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --json
    """
    fact = find_fact(at.space, fact_id)
    return Output(fact, _fact_in_full(fact, at))


@command(facts)
def history(at: Target, fact_id: FactId) -> Output:
    """Show the changes of a fact, oldest first; also of one that was deleted.

    Example:
      recollect facts history 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    changes = at.space.facts.history(fact_id)
    if not changes:
        raise NotFound(
            f"there was never a fact {fact_id!r} in space {at.space_name!r};"
            " recollect facts lists them"
        )
    return Output(changes, (line for change in changes for line in _change_lines(change)))


@group(lists="list")
def quarantine() -> None:
    """Text from tools and web pages that reads like an instruction; without a verb, the list of it.

    Such facts can be found, but are never put into a prompt. A person approves one, which makes it
    that person's word, or rejects it, which deletes it.

    Examples:
      recollect quarantine
      recollect quarantine approve 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """


@command(quarantine, name="list")
def list_quarantined(at: Target, *, limit: Limit = 50, after: After = None) -> Output:
    """List what is in quarantine, newest first.

    Example:
      recollect quarantine list --space alice
    """
    found = at.space.facts.quarantined(limit, None if not after else find_fact(at.space, after))
    nothing = f"Nothing in space {at.quoted_space} is in quarantine."
    return listed(at, found, facts_lines(found, at.space), nothing, limit=limit, after=after)


@command(quarantine)
def approve(at: Target, fact_id: FactId) -> Output:
    """Approve a fact: it becomes a person's word, and may be put into prompts.

    Its history records this. It still goes when the session it comes from is forgotten.

    Example:
      recollect quarantine approve 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    find_fact(at.space, fact_id)
    return _did("Approved", at.space.facts.approve(fact_id))


@command(quarantine)
def reject(at: Target, fact_id: FactId) -> Output:
    """Delete a fact. Its session does not bring it back.

    Its history stays; to erase that too, use recollect forget --fact ID.

    Example:
      recollect quarantine reject 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    return _removed(at, fact_id, "Rejected", Facts.reject)


# Facts as people read them


def facts_lines(found: Sequence[Fact], space: Space) -> Iterator[str]:
    """Facts in a list: a statement, whose word it is, and the records it comes from."""
    keys = session_keys(space, found)
    for fact in found:
        said = NONE if fact.valid_from is None else f"{fact.valid_from:%Y-%m-%d}"
        heading = [fact.id, said, fact.trust.value, ", ".join(fact.tags)]
        yield click.style("  ".join(one_line(word) for word in heading if word), dim=True)
        yield f"    {one_line(fact.content)}"
        words = [source_in_words(source, keys) for source in fact.sources[:SHOWN_SOURCES]]
        if len(fact.sources) > SHOWN_SOURCES:
            words.append(f"{len(fact.sources) - SHOWN_SOURCES:,} more")
        words += ["by hand"] if fact.extractor is None else []
        origin = "; ".join(words) if not fact.sources else f"from {'; '.join(words)}"
        for line in filter(None, (origin, _usage(fact), *standing(fact))):
            yield f"    {line}"


def _fact_in_full(fact: Fact, at: Target) -> Iterator[str]:
    until = "" if fact.valid_to is None else f" until {moment(fact.valid_to)}"
    labels = fields(
        "fact=id says=content space tags trust topic metadata holds valid superseded made_by"
        " created_at updated_at usage",
        metadata=lambda _: fact.metadata and json.dumps(dict(fact.metadata), ensure_ascii=False),
        holds=lambda _: fact.holds(at.memory.clock.now()) and fact.superseded_by is None,
        valid=lambda _: f"from {moment(fact.valid_from)}{until}",
        superseded=lambda _: _superseded(fact, at.space),
        made_by=lambda _: fact.extractor or "a person",
        usage=_usage,
    )
    yield from labelled(labels, fact)
    yield ""
    if not fact.sources:
        yield "No source: it was added by hand."
    keys = session_keys(at.space, [fact])
    for source in fact.sources:
        key = keys.get(source.session_id)
        where = source.session_id if key is None else f"{key} ({source.session_id})"
        yield f"{click.style('Source', bold=True)}  {one_line(where)}{_records(source)}"
        if source.quote:
            yield f"        “{one_line(source.quote)}”"


def _superseded(fact: Fact, space: Space) -> str:
    if fact.superseded_by is None:
        return ""
    newer = space.facts.get(fact.superseded_by)
    return f"by {fact.superseded_by}" + ("" if newer is None else f": {newer.content}")


def _change_lines(change: FactChange) -> Iterator[str]:
    event = click.style(f"{change.event:<10}", fg="cyan")
    other = "" if change.other_id is None else f" by fact {one_line(change.other_id)}"
    yield f"{moment(change.at)}  {event}{other}  ({one_line(change.by)})"
    yield f"    {one_line(change.content)}"


def source_in_words(source: Source, keys: Mapping[str, str]) -> str:
    """Where something comes from, on one line. `keys` are the keys of sessions, by id."""
    return one_line(keys.get(source.session_id, source.session_id)) + _records(source)


def standing(fact: Fact) -> Iterator[str]:
    """The end of a fact's validity, if it has one."""
    if fact.superseded_by is not None:
        words = f"superseded by {one_line(fact.superseded_by)}, {moment(fact.valid_to)}"
        yield click.style(words, fg="yellow")
    elif fact.valid_to is not None:
        yield f"until {moment(fact.valid_to)}"


def _usage(fact: Fact) -> str:
    """The counts of showing and using a fact, so that unused facts are visible."""
    if not fact.shown_count and not fact.usage_count:
        return ""
    used = f"used {counted(fact.usage_count, 'time')}" if fact.usage_count else "never used"
    return f"shown {counted(fact.shown_count, 'time')}, {used}"


def _records(source: Source) -> str:
    if not source.seq:
        return ""
    if source.seq == source.seq_to:
        return f", record {source.seq}"
    return f", records {source.seq}–{source.seq_to}"
