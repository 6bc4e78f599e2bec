"""`recollect append` and `recollect history`: store messages in a session and list its records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, BinaryIO, assert_never

import click

import recollect
from recollect import collection
from recollect.descriptors import agent_label
from recollect.errors import InvalidMessage, InvalidValue, RecollectError
from recollect.interfaces.cli.commands import Opt, Output, Target, command, read_agent
from recollect.interfaces.cli.output import counted, harmless, indented, moment, one_line, shortened
from recollect.interfaces.cli.parameters import Agent, Key, Number, Text, Time, read_text
from recollect.interfaces.views import view
from recollect.messages import Attachment, Opaque, Part, Reasoning, Role, ToolCall, ToolResult
from recollect.messages import Text as TextPart
from recollect.types.records import MarkUnit, Mode, Record, SessionState

DIGEST_CHARS = 200
SHOWN = 20


def _read_object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidValue('a JSON object, as in {"mood": "glad"}')
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageOptions:
    """What may be said of a message besides its text; those of a file say it for themselves.

    Options:
      role: Who said it. Default: user.
      name SPEAKER: The speaker's name.
      said_at, --at: When it was said, ISO with a zone. Default: now.
      metadata JSON: An object to keep with it.
    """

    role: Role | None = None
    name: str | None = None
    said_at: Time | None = None
    metadata: Annotated[dict[str, Any] | None, Opt(read=_read_object)] = None

    def given(self) -> dict[str, Any]:
        return {"name": self.name, "at": self.said_at, "metadata": self.metadata}


@command(makes_store=True)
def append(
    at: Target,
    key: Key,
    text: Text = None,
    *,
    said: MessageOptions,
    agent: str | None = None,
    append_key: str | None = None,
    source: str | None = None,
    project: str | None = None,
    messages: BinaryIO | None = None,
) -> Output:
    """Add a message to the session behind KEY.

    The message is stored durably when the command returns. TEXT that is - or missing is read from
    standard input. KEY is any stable name, such as channel:chat:thread; a new one starts a session.

    Options:
      agent NAME: Whose session. Default: who uses KEY, or assistant.
      append_key, --key ID: Makes a retry safe: the same ID stores once. With --messages, message
        7 gets ID:7.
      source NAME: Where a new session comes from. Default: cli.
      project NAME: The project a new session belongs to.
      messages FILE: Append OpenAI- or Anthropic-style messages: a JSON array or JSON lines; - is
        standard input.

    Examples:
      recollect append telegram:42:main "I moved to Lisbon in May." --name Ana
      git log -1 | recollect append cli:recollect:main --agent coder --role note
      recollect append import:2026 --messages chat.jsonl --key chat-2026
    """
    entries: dict[str, Any] = {}
    content, who = "", said.role or Role.USER
    settings = at.settings()
    # What cannot be stored is refused before a session begins that would have nothing in it.
    limit = settings.record_bytes_max
    if messages is None:
        content = read_text(text, "recollect append KEY")
        collection.prepare_plain(
            who, content, record_bytes_max=limit, key=append_key, **said.given()
        )
    else:
        entries = _checked(messages, text, said, limit)
    started = at.memory.clock.now()
    session = at.space.session(
        key, agent=read_agent(agent), source=source or "cli", project=project
    )
    if messages is None:
        records = [session.append(who, content, key=append_key, **said.given())]
    else:
        records = _append_messages(session, entries, append_key, settings.batch_records_max)
    state = session.state
    value = records if messages is not None else {**view(records[0]), "session": state}
    if not at.memory.runtime.store_of(session.agent)[1]:
        off = f"Memory is off for {one_line(agent_label(state.agent_id))}: nothing was kept."
        return Output(value, (), off)
    stored = [record for record in records if record.seq]
    is_known = append_key is not None and all(each.created_at < started for each in stored)
    lines, notes = _stored_in_words(stored, state, settings, is_known=is_known), ""
    if not records:
        notes = "There are no messages in it; nothing was stored."
    elif len(stored) < len(records):
        lost = counted(len(records) - len(stored), "message")
        notes = f"Forgotten, and not stored again under this key: {lost}."
    return Output(value, lines if stored else (), notes)


def _checked(
    file: BinaryIO, text: str | None, said: MessageOptions, record_bytes_max: int
) -> dict[str, Any]:
    """The messages of a file by their places in it; all are refused if one cannot be stored."""
    if text is not None:
        raise click.UsageError("Give TEXT or --messages, not both.")
    for option, value in {"role": said.role, **said.given()}.items():
        if value is not None:
            raise click.UsageError(f"--{option} does not go with --messages.")
    name = getattr(file, "name", "<stdin>")
    name = "standard input" if name == "<stdin>" else str(name)
    messages, place = dict[str, Any](), "line 1"
    try:
        for place, read in _parsed(file.read().decode("utf-8-sig")):
            messages[place] = read()
            if not isinstance(messages[place], dict):
                raise InvalidMessage("a message is an object, not text, a list or a number")
            collection.prepare(messages[place], record_bytes_max=record_bytes_max)
    except InvalidValue as error:
        raise type(error)(f"{name}, {place}: {error}; nothing was stored") from error
    except UnicodeDecodeError as error:
        where = f"at byte {error.start}"
        raise InvalidMessage(f"{name}: not UTF-8 text ({where}); nothing was stored") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.lineno > 1:
            place = f"line {error.lineno}"
        raise InvalidMessage(f"{name}, {place}: not JSON ({error}); nothing was stored") from error
    return messages


def _parsed(text: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """How each message is read, behind its place: in an array, or on a line of its own."""
    start = text.lstrip()
    if start.startswith("[") or start.partition("\n")[0].strip() == "{":
        found = json.loads(text)
        listed = found if isinstance(found, list) else [found]
        for at in range(1, len(listed) + 1):
            yield f"message {at}", partial(listed.__getitem__, at - 1)
        return
    # Not splitlines(): a JSON string may hold a line separator that is no end of line.
    for at, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"line {at}", partial(json.loads, line)


def _append_messages(
    session: recollect.Session, messages: Mapping[str, Any], key: str | None, batch_max: int
) -> list[Record]:
    """Store the messages batch by batch; an error on the way says how far they are stored."""
    stored: list[Record] = []
    places, keyed = list(messages), key is not None
    for start in range(0, len(places), batch_max):
        batch = enumerate(places[start : start + batch_max], start=start + 1)
        envelopes = [
            recollect.Message(message=messages[place], key=f"{key}:{at}" if keyed else None)
            for at, place in batch
        ]
        try:
            stored += session.append_many(envelopes)
        except RecollectError as error:
            far = f"stored {len(stored):,} of {len(places):,} messages, go on at {places[start]}"
            raise type(error)(f"{error}; {far}") from error
    return stored


def _stored_in_words(
    records: Sequence[Record], state: SessionState, settings: recollect.Settings, *, is_known: bool
) -> Iterator[str]:
    who = f"{harmless(state.key)}, {harmless(agent_label(state.agent_id))}"
    where = f"session {state.id} ({who})"
    does = "Already stored under this key:" if is_known else "Stored"
    if len(records) == 1:
        yield f"{does} record {records[0].seq} of {where}."
    else:
        count = counted(len(records), "record")
        yield f"{does} {count}, {records[0].seq} to {records[-1].seq} of {where}."
    if state.invalidated_at is not None:
        marked = click.style(f"Marked up to record {state.invalidated_at}", fg="green")
        yield f"{marked} ({state.marked_by}); {counted(state.unprocessed, 'record')} unprocessed."
    elif not state.remembered:
        yield "Not marked: this agent's sessions are never remembered."
    elif state.mode is not Mode.ENABLED:
        yield f"Not marked: memory is {state.mode} for this session."
    else:
        unit = "records" if settings.mark_policy.unit is MarkUnit.RECORDS else "completed turns"
        yield (
            f"Not marked: {counted(state.unprocessed, 'record')} unprocessed;"
            f" more than {settings.mark_threshold:,} {unit} mark a session."
        )


# Reading


@command()
def history(
    at: Target,
    key: Key,
    *,
    agent: Agent = None,
    limit: Number | None = None,
    every: bool = False,
    rotations: bool = False,
) -> Output:
    """Show what was said in the session behind KEY, oldest first.

    Tool calls and their results are shortened; --json has everything. A key nobody has used is
    empty, not an error.

    Options:
      limit: The newest N records. Default: 20.
      every, --all: Every record.
      rotations: Include what was said under KEY before a reset or compaction.

    Example:
      recollect history cli:recollect:main --agent coder --all --rotations --json
    """
    if every and limit is not None:
        raise click.UsageError("Give --all or --limit, not both.")
    session = at.space.find_session(key, read_agent(agent))
    records, left_out = [], 0
    if session is not None:
        newest = None if every else limit or SHOWN
        is_cut = newest is not None and not rotations
        records = session.recent(newest or 0) if is_cut else session.all(rotations=rotations)
        count = session.count() if is_cut else len(records)
        records = records[-newest:] if newest else records
        left_out = count - len(records)
    summary = "" if session is None else session.summary
    before = notes = ""
    if left_out:
        before = f"{counted(left_out, 'earlier record')} not shown; --all shows every one."
    elif not records and not summary:
        where = f"under {one_line(key)!r} in space {at.quoted_space}"
        notes = f'Nothing was said {where} yet. Say it: recollect append {one_line(key)} "Hello"'
    return Output(records, _record_lines(records, summary), notes, before=before)


def _record_lines(records: Sequence[Record], summary: str | None) -> Iterator[str]:
    if summary:
        yield f"{click.style('Summary', bold=True)}\n{indented(harmless(summary))}"
    has_several = len({record.session_id for record in records}) > 1
    previous = None
    for record in records:
        if has_several and record.session_id != previous:
            yield click.style(f"── session {record.session_id}", dim=True)
        previous = record.session_id
        speaker = f" ({one_line(record.name)})" if record.name else ""
        error = click.style(" error", fg="red") if record.is_error else ""
        role = click.style(record.role.value, fg="cyan")
        yield f"{record.seq:>4}  {moment(record.at)}  {role}{speaker}{error}"
        yield from map(indented, filter(None, map(digest, record.parts)))


def digest(part: Part) -> str:
    """A part of a message as a person reads it; what a program said is cut short."""
    match part:
        case TextPart(text=text):
            return harmless(text)
        case Reasoning(text=text):
            return f"(reasoning, {counted(len(text), 'character')})"
        case ToolCall(name=name, arguments=arguments):
            given = arguments if isinstance(arguments, str) else json.dumps(arguments)
            shown = "" if arguments is None else shortened(given, DIGEST_CHARS)
            return f"→ {one_line(name)}({shown})"
        case ToolResult(text=text, is_error=is_error):
            return f"← {'error: ' if is_error else ''}{shortened(text, DIGEST_CHARS)}"
        case Attachment(kind=kind, uri=uri, media_type=media_type, name=name):
            words = [one_line(word) for word in (kind, name, media_type, uri) if word]
            return f"[{', '.join(words)}]"
        case Opaque(type=kind):
            return f"[{one_line(kind)}]"
        case _:
            assert_never(part)
