"""`recollect append`: one message from the command line or standard input, or a file of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import click

import recollect
from recollect import collection
from recollect.clock import SystemClock
from recollect.descriptors import agent_label
from recollect.domain import MarkUnit, Mode, Record, SessionState
from recollect.errors import InvalidMessage, InvalidValue, RecollectError
from recollect.interfaces.cli.arguments import read_given_time, read_text
from recollect.interfaces.cli.options import known_keys
from recollect.interfaces.cli.output import counted, harmless, note, one_line, write, write_json
from recollect.interfaces.cli.target import Target, read_agent, with_target
from recollect.interfaces.views import view
from recollect.messages import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message and where it stands: `line 7` of JSON lines, `message 7` of an array."""

    place: str
    message: Any


def read_entries(data: bytes, name: str) -> list[Entry]:
    """Every message of a file, or an error that names the place; an empty file has none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidMessage(f"{name}: not UTF-8 text (at byte {error.start})") from error
    entries = list(_entries(text, name))
    for entry in entries:
        if not isinstance(entry.message, dict):
            raise InvalidMessage(
                f"{name}, {entry.place}: a message is an object, not {_kind(entry.message)};"
                " nothing was stored"
            )
    return entries


def check_entries(entries: list[Entry], name: str, record_bytes_max: int) -> None:
    """Refuse the file as a whole before any of it is stored, if a message cannot be."""
    for entry in entries:
        try:
            collection.prepare(entry.message, record_bytes_max=record_bytes_max)
        except InvalidValue as error:
            raise type(error)(f"{name}, {entry.place}: {error}; nothing was stored") from error


def _entries(text: str, name: str) -> Iterator[Entry]:
    lines = [line for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith("["):
        content = _parse(text, name, "")
        if not isinstance(content, list):
            raise InvalidMessage(f"{name}: expected an array of messages; nothing was stored")
        for position, message in enumerate(content, start=1):
            yield Entry(place=f"message {position}", message=message)
    elif lines and lines[0].strip() == "{":  # one message, written over several lines
        yield Entry(place="message 1", message=_parse(text, name, ""))
    else:
        # Not splitlines(): a JSON string may hold a line separator that is no end of line.
        for position, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                place = f"line {position}"
                yield Entry(place=place, message=_parse(line, name, f", {place}"))


def _parse(text: str, name: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = place or f", line {error.lineno}"
        raise InvalidMessage(
            f"{name}{where}: not JSON ({error.msg}, column {error.colno}); nothing was stored"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"{name}{place}: not JSON ({error}); nothing was stored") from error


def _kind(value: object) -> str:
    match value:
        case list():
            return "an array"
        case str():
            return "text"
        case None:
            return "null"
        case _:
            return f"{value!r:.40}"


def _read_metadata(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", context, parameter) from error
    if not isinstance(content, dict):
        raise click.BadParameter('a JSON object, as in {"mood": "glad"}', context, parameter)
    return content


@click.command("append")
@click.argument("key", shell_complete=known_keys)
@click.argument("text", required=False)
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role], case_sensitive=False),
    help="Who said it. Default: user.",
)
@click.option("--agent", metavar="NAME", help="Whose session. Default: who uses KEY, or assistant.")
@click.option("--name", metavar="SPEAKER", help="The speaker's name.")
@click.option(
    "--at",
    callback=read_given_time,
    metavar="TIME",
    help="When it was said, ISO with a zone. Default: now.",
)
@click.option(
    "--key",
    "append_key",
    metavar="ID",
    help="Makes a retry safe: the same ID stores once. With --messages, message 7 gets ID:7.",
)
@click.option(
    "--metadata", callback=_read_metadata, metavar="JSON", help="An object to keep with it."
)
@click.option("--source", metavar="NAME", default="cli", help="Where a new session comes from.")
@click.option("--project", metavar="NAME", help="The project a new session belongs to.")
@click.option(
    "--messages",
    type=click.File("rb"),
    metavar="FILE",
    help="Append OpenAI- or Anthropic-style messages: a JSON array or JSON lines; - is stdin.",
)
@with_target
def command(
    target: Target,
    /,
    key: str,
    text: str | None,
    messages: BinaryIO | None,
    append_key: str | None,
    agent: str | None,
    **given: Any,
) -> None:
    """Add a message to the session behind KEY.

    The message is stored, durably, when the command returns. TEXT that is - or missing is read from
    standard input. KEY is any stable name, such as channel:chat:thread; a new one starts a session.

    \b
    Examples:
      recollect append telegram:42:main "I moved to Lisbon in May." --name Ana
      git log -1 | recollect append cli:recollect:main --agent coder --role note
      recollect append import:2026 --messages chat.jsonl --key chat-2026
    """
    birth = {"source": given.pop("source"), "project": given.pop("project")}
    if messages is not None:
        _refuse_with_messages(text, given)
        entries = read_entries(messages.read(), _file_name(messages))
    else:
        text = read_text(text, "recollect append KEY")
    with target.open(agent) as memory:
        started = SystemClock().now()
        if messages is not None:
            settings = memory.settings
            check_entries(entries, _file_name(messages), settings.record_bytes_max)
        else:
            role = given.pop("role") or Role.USER.value
            _check_message(role, text or "", append_key, memory.settings, given)
        session = memory.space(target.space_name).session(key, agent=read_agent(agent), **birth)
        if messages is not None:
            records = _append_entries(session, entries, append_key, settings.batch_records_max)
        else:
            records = [session.append(role, text, key=append_key, **given)]
        state = session.state
        is_kept = memory.runtime.store_of(session.agent)[1]
        if not is_kept:
            note(f"Memory is off for {one_line(agent_label(state.agent_id))}: nothing was kept.")
        if target.as_json:
            shapes = view(records)
            write_json(shapes if messages is not None else shapes[0] | {"session": view(state)})
        elif is_kept:
            stored = [record for record in records if record.seq]
            is_known = append_key is not None and all(r.created_at < started for r in stored)
            if len(stored) < len(records):
                said = counted(len(records) - len(stored), "message")
                note(f"Forgotten, and not stored again under this key: {said}.")
            if stored or not records:
                _write_words(stored, state, memory.settings, is_known=is_known)


def _check_message(
    role: str,
    text: str,
    key: str | None,
    settings: recollect.Settings,
    given: Mapping[str, Any],
) -> None:
    """What cannot be stored is refused before a session begins that would have nothing in it."""
    limit = settings.record_bytes_max
    collection.prepare_plain(role, text, record_bytes_max=limit, key=key, **given)


def _refuse_with_messages(text: str | None, given: dict[str, Any]) -> None:
    """The messages of a file say for themselves what these would say."""
    if text is not None:
        raise click.UsageError("Give TEXT or --messages, not both.")
    for name in ("role", "name", "at", "metadata"):
        if given[name] is not None:
            raise click.UsageError(f"--{name} does not go with --messages.")


def _file_name(file: BinaryIO) -> str:
    name = getattr(file, "name", "<stdin>")
    return "standard input" if name == "<stdin>" else str(name)


def _append_entries(
    session: recollect.Session, entries: list[Entry], key: str | None, batch_max: int
) -> list[Record]:
    """Store the messages batch by batch; an error on the way says how far they are stored."""
    stored: list[Record] = []
    for start in range(0, len(entries), batch_max):
        batch = entries[start : start + batch_max]
        try:
            stored += session.append_many(list(_envelopes(batch, key, start)))
        except RecollectError as error:
            far = f"stored {len(stored):,} of {len(entries):,} messages, go on at {batch[0].place}"
            raise type(error)(f"{error}; {far}") from error
    return stored


def _envelopes(batch: list[Entry], key: str | None, start: int) -> Iterator[recollect.Message]:
    for position, entry in enumerate(batch, start=start + 1):
        yield recollect.Message(
            message=entry.message, key=None if key is None else f"{key}:{position}"
        )


def _write_words(
    records: list[Record], state: SessionState, settings: recollect.Settings, *, is_known: bool
) -> None:
    where = f"session {state.id} ({harmless(state.key)}, {harmless(agent_label(state.agent_id))})"
    if not records:
        note("There are no messages in it; nothing was stored.")
        return
    does = "Stored already, under this key:" if is_known else "Stored"
    if len(records) == 1:
        write(f"{does} record {records[0].seq} of {where}.")
    else:
        count = counted(len(records), "record")
        write(f"{does} {count}, {records[0].seq} to {records[-1].seq} of {where}.")
    write(_mark_in_words(state, settings))


def _mark_in_words(state: SessionState, settings: recollect.Settings) -> str:
    if state.invalidated_at is not None:
        marked = click.style(f"Marked up to record {state.invalidated_at}", fg="green")
        return f"{marked} ({state.marked_by}); {counted(state.unprocessed, 'record')} unprocessed."
    if not state.remembered:
        return "Not marked: this agent's sessions are never remembered."
    if state.mode is not Mode.ENABLED:
        return f"Not marked: memory is {state.mode} for this session."
    unit = "records" if settings.mark_policy.unit is MarkUnit.RECORDS else "completed turns"
    return (
        f"Not marked: {counted(state.unprocessed, 'record')} unprocessed;"
        f" more than {settings.mark_threshold:,} {unit} mark a session."
    )
