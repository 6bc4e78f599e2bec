"""`recollect facts` and `recollect review`: what was learned, and what people decide about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import click

from recollect.errors import NotFound, NotWaiting
from recollect.facts import Facts
from recollect.interfaces.cli.commands import Output, Target, command, group, listed
from recollect.interfaces.cli.output import NONE, counted, fields, labelled, moment, one_line
from recollect.interfaces.cli.parameters import (
    After,
    AsOf,
    FactId,
    FactIds,
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
from recollect.types.facts import UNCHANGED, Fact, FactChange, Proposal, Reader, Source
from recollect.types.recall import About

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


@command(makes_store=True)
def remember(at: Target, words: Words = ()) -> Output:
    """Store what WORDS say, and show what was known already and what it replaces.

    Dates and whom it is about are understood where that is easy. To store a statement exactly as it
    is, with tags or metadata: recollect facts add.

    Examples:
      recollect remember Ben moved to Faro in May
      echo "Always answer in German." | recollect remember
    """
    made = at.space.remember(read_text(" ".join(words) or None, "recollect remember"))
    did = "Known already:" if made.is_known else "Remembered"
    lines = [f"{did} fact {one_line(made.fact.id)}: {one_line(made.fact.content)}"]
    lines += [f"  replaces {one_line(each.id)}: {one_line(each.content)}" for each in made.replaced]
    return Output(made, lines)


@command()
def about(at: Target, name: Words = (), *, limit: Limit = 50, after: After = None) -> Output:
    """Show everything known of NAME: a person, a project or a thing, by any of its names.

    What holds, by kind, what held before, a timeline, the pages about it and the sessions it came
    up in.

    Options:
      limit: Statements at a time.
      after ID: The next page of statements: those after this one.

    Examples:
      recollect about Ana
      recollect about shop-api --json
    """
    if not name:
        raise click.UsageError("Give NAME: whom or what it is about.")
    found = at.space.about(" ".join(name), limit, after)
    if not (found.current or found.earlier or found.pages or found.sessions):
        nothing = f"Nothing is known of {found.name!r} in space {at.quoted_space}."
        return Output(found, (), nothing if after is None else "")
    more = "" if found.next is None else f"More statements: --after {one_line(found.next)}"
    return Output(found, _about_lines(found, at.space), more)


def _about_lines(found: About, space: Space) -> Iterator[str]:
    also = f"  also: {', '.join(map(one_line, found.spellings))}" if found.spellings else ""
    counts = f"{counted(found.count, 'fact')}, {counted(len(found.sessions), 'session')}"
    yield click.style(one_line(found.name), bold=True) + f"{also}  ({counts})"
    keys = session_keys(space, found.current)
    for kind, facts in groupby(found.current, key=lambda fact: next(iter(fact.tags), "other")):
        yield f"\n{click.style(kind.capitalize(), bold=True)}"
        for fact in facts:
            source = source_in_words(fact.sources[0], keys) if fact.sources else "by hand"
            yield f"  {one_line(fact.content)}  {click.style(f'({source})', dim=True)}"
    moments = (f"{each.at:%Y-%m-%d}  {each.event:<8}  {each.text}" for each in found.timeline)
    pages = (f"{hit.id}  {hit.title}" for hit in found.pages)
    sessions = (
        f"{each.last_at:%Y-%m-%d}  {each.key}  {counted(each.facts, 'fact')}"
        + (f", named in {counted(each.records, 'record')}" if each.records else "")
        for each in found.sessions
    )
    earlier = (fact.content for fact in found.earlier)
    parts = {"Earlier": earlier, "Timeline": moments, "Pages": pages, "Sessions": sessions}
    for title, lines in parts.items():
        if told := [f"  {one_line(line)}" for line in lines]:
            yield f"\n{click.style(title, bold=True)}"
            yield from told


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


@command(facts)
def delete(at: Target, fact_id: FactId) -> Output:
    """Delete a fact. Its session does not bring it back, and what it superseded holds again.

    Its history stays; to erase that too, use recollect forget --fact.

    Example:
      recollect facts delete 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    fact = find_fact(at.space, fact_id)
    told = at.space.facts.delete(fact_id)
    value = {"space": at.space_name, "deleted": fact, "told": told}
    return replace(_did("Deleted", fact, value), notes=told_notes(told))


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
def review() -> None:
    """What was learned and waits for a person; without a verb, the list of it.

    By the setting `review` all that is learned waits, or instructions do. Text from tools and web
    pages that reads like an instruction always does. Nobody is told of it before it is accepted.

    Examples:
      recollect review
      recollect review accept --kind preference
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which facts that wait are meant.

    Options:
      kind T: Those with this tag, such as preference or instruction.
      project: Those of this project.
      session: Those learned from this session.
      person NAME: Those that name this person, or anything else.
    """

    kind: str | None = None
    project: str | None = None
    session: KeyOrId | None = None
    person: str | None = None

    def of(self, space: Space) -> Mapping[str, str | None]:
        session = None if self.session is None else find_session(space, self.session).id
        chosen = {"kind": self.kind, "project": self.project, "person": self.person}
        return {**chosen, "session": session}


@command(review, name="list")
def list_waiting(at: Target, *, chosen: Chosen, limit: Limit = 50, after: After = None) -> Output:
    """List what waits, newest first: + is new, - is what it would end.

    Examples:
      recollect review list --project shop-api
      recollect review list --person Ana --json
    """
    before = None if after is None else find_fact(at.space, after)
    found = at.space.facts.waiting(limit, before, **chosen.of(at.space))
    nothing = f"Nothing in space {at.quoted_space} waits for review."
    return listed(at, found, _proposed_lines(found, at.space), nothing, limit=limit, after=after)


@command(review)
def accept(
    at: Target, fact_ids: FactIds = (), *, chosen: Chosen, everything: bool = False
) -> Output:
    """Accept facts: agents are told of them, and they end what they replace.

    Options:
      everything, --all: All that waits in the space.

    Examples:
      recollect review accept 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
      recollect review accept --kind preference --project shop-api
    """
    return _decided("Accepted", at, Facts.accept, fact_ids, chosen, everything=everything)


@command(review, name="edit")
def accept_edited(at: Target, fact_id: FactId, text: Text = None) -> Output:
    """Accept a fact in other words. TEXT that is - is read from standard input.

    Example:
      recollect review edit 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 "Ana lives in Porto."
    """
    content = read_text(text, "recollect review edit ID -")
    if not find_fact(at.space, fact_id).waits:
        raise NotWaiting(f"fact {fact_id!r} does not wait for review; recollect facts edit does it")
    return _did("Accepted", at.space.facts.update(fact_id, content))


@command(review)
def reject(
    at: Target, fact_ids: FactIds = (), *, chosen: Chosen, everything: bool = False
) -> Output:
    """Delete facts that wait; no session brings these statements back.

    Their history stays; to erase that too, use recollect forget --fact ID.

    Options:
      everything, --all: All that waits in the space.

    Example:
      recollect review reject --session telegram:42:main
    """
    return _decided("Rejected", at, Facts.reject, fact_ids, chosen, everything=everything)


def _decided(
    did: str,
    at: Target,
    decide: Callable[..., Sequence[Fact]],
    fact_ids: Sequence[str],
    chosen: Chosen,
    *,
    everything: bool,
) -> Output:
    given = chosen.of(at.space)
    if bool(fact_ids) + bool(any(given.values())) + everything != 1:
        raise click.UsageError("Give IDs; --kind, --project, --session or --person; or --all.")
    for fact_id in fact_ids:
        find_fact(at.space, fact_id)
    done = decide(at.space.facts, fact_ids, **given, everything=everything)
    lines = (f"{did} fact {one_line(fact.id)}: {one_line(fact.content)}" for fact in done)
    return Output(done, lines, "" if done else "Nothing of that waits for review.")


def _proposed_lines(found: Sequence[Proposal], space: Space) -> Iterator[str]:
    """What waits as a difference: what is new with its sources, and what it would end."""
    keys = session_keys(space, [each.fact for each in found])
    for each in found:
        sign = "ends" if each.is_end else "replaces" if each.replaces else "new"
        yield from _fact_lines(each.fact, keys, sign)
        for other in each.replaces:
            yield click.style(f"  - {one_line(other.content)}  ({one_line(other.id)})", fg="red")


# Facts as people read them


def facts_lines(found: Sequence[Fact], space: Space) -> Iterator[str]:
    """Facts in a list: a statement, whose word it is, and the records it comes from."""
    keys = session_keys(space, found)
    for fact in found:
        yield from _fact_lines(fact, keys)


def _fact_lines(fact: Fact, keys: Mapping[str, str], sign: str = "") -> Iterator[str]:
    said = NONE if fact.valid_from is None else f"{fact.valid_from:%Y-%m-%d}"
    heading = [fact.id, said, fact.trust.value, ", ".join(fact.tags), sign]
    yield click.style("  ".join(one_line(word) for word in heading if word), dim=True)
    stated = one_line(fact.content)
    yield click.style(f"  + {stated}", fg="green") if sign else f"    {stated}"
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
        "fact=id says=content space about kind tags trust topic metadata happened holds valid"
        " superseded made_by created_at updated_at usage",
        about=lambda _: ", ".join(fact.about),
        happened=_happened,
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


def _happened(fact: Fact) -> str:
    if fact.happened_from is None or fact.happened_to is None:
        return ""
    return f"from {moment(fact.happened_from)} until {moment(fact.happened_to)}"


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
    """What keeps a fact from being told: its end, if it has one, or a review."""
    if fact.waits:
        yield click.style("waits for review: recollect review", fg="yellow")
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
