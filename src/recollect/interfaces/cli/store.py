"""Commands for a store as a whole: spaces, archives, backups, checks, the audit log, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import click

from recollect.clock import SystemClock
from recollect.config import Described, Settings, described
from recollect.errors import NotFound
from recollect.interfaces.cli.commands import Arg, Opt, Output, Target, command
from recollect.interfaces.cli.output import (
    NONE,
    counted,
    moment,
    one_line,
    progress_bar,
    table,
)
from recollect.interfaces.cli.parameters import read_day_or_time
from recollect.operations.backup import Restoring, back_up
from recollect.operations.checks import Defect, Gravity
from recollect.operations.doctor import Diagnosis, examine
from recollect.operations.doctor import repair as repaired
from recollect.operations.migrating import count_spaces
from recollect.progress import listening
from recollect.session import LIST_MAX
from recollect.store.address import without_password
from recollect.types.access import AuditEntry
from recollect.verbs import VERBS, Verb

NewFile = Annotated[Path, Arg("PATH", is_file=True)]
WHOLE_STORE = "this concerns the whole store; recollect export takes one space"


@contextmanager
def _progress(at: Target) -> Iterator[None]:
    """Have what runs inside show how far it has got."""
    with (
        progress_bar(as_json=at.as_json) as show,
        listening(lambda each: show(each.what, each.done, each.whole)),
    ):
        yield


@command()
def spaces(at: Target) -> Output:
    """List the spaces of a store with their sessions, records, facts and documents.

    Superseded facts and deleted items do not count. With --space only that one.

    Examples:
      recollect spaces
      recollect spaces --store postgresql://localhost/recollect --json
    """
    found = count_spaces(at.memory.store)
    if at.named_space is not None:
        found = [each for each in found if each.space == at.named_space]
        if not found:
            raise NotFound(f"there is no space {at.named_space!r}")
    rows = [
        (
            each.space,
            *(f"{n:,}" for n in (each.sessions, each.records, each.facts, each.documents)),
            moment(each.created_at),
        )
        for each in found
    ]
    headers = ("SPACE", "SESSIONS", "RECORDS", "FACTS", "DOCUMENTS", "SINCE")
    nothing = "No space holds anything yet; recollect append makes one."
    return Output({"spaces": found}, table(headers, rows) if rows else (), "" if found else nothing)


# Archives


def _contents(counts: Mapping[str, Mapping[str, int]]) -> str:
    """`2 spaces: 3 sessions, 120 records, 40 facts, 12 documents`, as they stand in the tables."""
    named = {"sessions": "session", "session_history": "record", "facts": "fact"}
    named |= {"documents": "document"}
    totals = [
        counted(sum(each.get(rows, 0) for each in counts.values()), noun)
        for rows, noun in named.items()
    ]
    return f"{counted(len(counts), 'space')}: {', '.join(totals)}"


@command()
def export(at: Target, path: NewFile) -> Output:
    """Write everything that is remembered into a new archive, PATH: all spaces, or one (--space).

    The archive is a zip: JSON Lines for every kind of row (sessions, records, facts and their
    history, documents and their versions, generations, imports, spending), the documents as
    Markdown, and a manifest with a digest of every member. The same content gives the same bytes,
    from SQLite and from PostgreSQL. It is a snapshot; others can go on writing. Vectors, indexes
    and leases, which are made anew, are left out; so are API keys. Deleted documents and facts are
    included until they are purged or forgotten. PATH must not exist yet.

    Examples:
      recollect export memory.zip
      recollect export alice.zip --space alice
      recollect export all.zip --store postgresql://localhost/recollect --json
    """
    memory = at.memory
    with _progress(at):
        done = memory.export(path, at.named_space)
    what = f"{done.size_bytes:,} bytes), {_contents(done.spaces)}"
    return Output(
        {"path": done.path, "size_bytes": done.size_bytes, "spaces": done.spaces},
        f"Wrote {one_line(str(done.path))} ({what}.",
    )


@command(makes_store=True)
def load(at: Target, path: NewFile) -> Output:
    """Load an archive that recollect export wrote: all its spaces or, with --space, one.

    The archive is checked before anything is written; one that was truncated or changed is refused.
    None of its spaces may be in the store, unless it is exactly the same: so an interrupted load
    can simply be run again. Each space is loaded as a whole or not at all, and is compared with the
    archive before it counts. Vectors are made anew by the worker.

    Examples:
      recollect load memory.zip --store new.db
      recollect load memory.zip --space alice
      recollect load memory.zip --store postgresql://localhost/recollect
    """
    memory = at.memory
    with _progress(at):
        done = memory.load(path, at.named_space)
    lines = [f"Loaded {_contents(done.spaces)}."]
    lines += [
        f"Space {one_line(name)!r} was already there, unchanged." for name in done.already_there
    ]
    return Output(
        {"path": done.path, "spaces": done.spaces, "already_there": done.already_there}, lines
    )


@command()
def migrate(
    at: Target, *, to: Annotated[str, Opt("The store to copy everything into.", "URL")]
) -> Output:
    """Copy a whole store into another one, from SQLite to PostgreSQL or the other way round.

    The other store must be empty, or hold what an interrupted migration from here left there: run
    the command again, and it continues. At the end both are read and compared, table by table. The
    source is only read. Stop everything that writes to it first; later writes are detected, and
    the migration then has to be run once more. API keys are copied; vectors are made anew. All
    spaces are copied, whatever --space says.

    Examples:
      recollect migrate --to postgresql://localhost/recollect
      recollect migrate --store postgresql://localhost/recollect --to memory.db
    """
    at.ignores_space(WHOLE_STORE)
    memory = at.memory
    with _progress(at):
        done = memory.migrate(to)
    return Output(
        {
            "source": done.source,
            "target": done.target,
            "spaces": done.spaces,
            "already_there": done.already_there,
        },
        [
            f"{one_line(done.target)} now holds the same as {one_line(done.source)}:",
            f"{_contents(done.spaces)}. Every table was compared.",
        ],
    )


@command()
def backup(at: Target, path: NewFile) -> Output:
    """Copy the store into PATH, a new file, while others go on reading and writing.

    A store on SQLite becomes a database file, which is checked before it gets its name. A store on
    PostgreSQL becomes an archive of all spaces, as recollect export writes it, from one snapshot:
    without vectors, API keys and the salt of redaction; to copy the server use its own tools.
    recollect restore creates a store from either, on either. It is always the whole store, whatever
    --space says; recollect export takes one space.

    Examples:
      recollect backup memory-2026-01-01.db
      recollect backup memory.zip --store postgresql://localhost/recollect
    """
    at.ignores_space(WHOLE_STORE)
    store = at.memory.store
    with _progress(at):
        done = back_up(store, path)
    what = f"{done.kind}, {done.size_bytes:,} bytes, {counted(done.spaces, 'space')}"
    return Output(
        {
            "path": done.path,
            "kind": done.kind,
            "size_bytes": done.size_bytes,
            "spaces": done.spaces,
        },
        f"Wrote {one_line(str(done.path))} ({what}).",
    )


@command()
def restore(
    at: Target,
    path: Annotated[Path, Arg("PATH", exists=True, is_file=True)],
    *,
    replace: Annotated[
        bool, Opt("Replace an existing store, which is kept under another name.")
    ] = False,
) -> Output:
    """Create the store that --store names from the backup PATH: a database file or an archive.

    An existing store is never overwritten. With --replace a file that nobody has open is kept as
    <name>.before-<time>, and the restored one gets its name in one step. A backup is checked before
    anything happens. On a server, restore into a new schema (?schema=<name>). It is always the
    whole store, whatever --space says; recollect load takes one space.

    Examples:
      recollect restore memory-2026-01-01.db --store new.db
      recollect restore memory-2026-01-01.db --replace
      recollect restore memory.zip --store 'postgresql://localhost/recollect?schema=restored'
    """
    at.ignores_space(WHOLE_STORE)
    restoring = Restoring(path, at.settings(), SystemClock())
    with _progress(at):
        done = restoring.restore(at.address(), replace=replace)
    lines = [f"Restored {one_line(done.store)} with {counted(done.spaces, 'space')}."]
    if done.kept is not None:
        lines.append(f"The previous store is kept as {one_line(str(done.kept))}.")
    return Output(
        {
            "path": done.path,
            "kind": done.kind,
            "store": done.store,
            "spaces": done.spaces,
            "kept": done.kept,
        },
        lines,
    )


# Checks


@command()
def doctor(
    at: Target, *, repair: Annotated[bool, Opt("Repair what can be repaired safely.")] = False
) -> Output:
    """Check a whole store: its files, its references, its indexes, its links and its jobs.

    The exit code is 1 if something is wrong; a note is only worth knowing. --repair rebuilds
    indexes, binds links, counts documents, reconciles marks and jobs and makes parked jobs due
    again. It deletes nothing that was remembered. What it cannot repair comes with advice. It looks
    at all spaces, whatever --space says.

    Examples:
      recollect doctor
      recollect doctor --repair
      recollect doctor --store postgresql://localhost/recollect --json
    """
    at.ignores_space(WHOLE_STORE)
    look = repaired if repair else examine
    found = look(at.memory.store, at.memory.clock.now())
    value = {
        "store": found.store.location,
        "schema_version": found.store.schema_version,
        "sound": found.is_sound,
        "findings": [_finding_view(each) for each in found.findings],
        "repaired": [_finding_view(each) for each in found.repaired],
    }
    return Output(value, _diagnosis_lines(found), exit_code=0 if found.is_sound else 1)


def _finding_view(finding: Defect) -> dict[str, Any]:
    return {
        "check": finding.check,
        "gravity": finding.gravity.value,
        "count": finding.count,
        "says": finding.says,
        "examples": list(finding.examples),
        "advice": finding.advice,
        "repair": finding.mending.value,
    }


def _diagnosis_lines(found: Diagnosis) -> Iterator[str]:
    def headline(word: str, colour: str, finding: Defect) -> str:
        times = counted(finding.count, "time")
        return f"{click.style(word, fg=colour)}  {finding.check}: {finding.says} ({times})"

    store = found.store
    yield f"{one_line(store.location)} ({store.kind}, schema version {store.schema_version})"
    yield from (headline("repaired", "green", each) for each in found.repaired)
    for finding in found.findings:
        colour = "red" if finding.gravity is Gravity.WRONG else "yellow"
        yield headline(finding.gravity.value, colour, finding)
        yield from (f"    {one_line(example)}" for example in finding.examples)
        yield f"    {finding.advice}"
    if found.is_sound:
        yield "Nothing is wrong."


# The audit log

ENTRIES_MAX = 1_000_000
TARGETS_SHOWN = 3
CUT_SHORT = "under way, or cut short"


@command()
def audit(
    at: Target,
    *,
    actor: Annotated[str | None, Opt("Only what this actor did, as it is shown.", "WHO")] = None,
    verb: Annotated[str | None, Opt("Only this, as in records.append.", "VERB")] = None,
    since: Annotated[
        datetime | None,
        Opt("Only from then on: a day, or an ISO time with a zone.", "TIME", read=read_day_or_time),
    ] = None,
    limit: Annotated[
        int, Opt("At most N entries, the newest.", "N", at_least=1, at_most=ENTRIES_MAX)
    ] = 50,
) -> Output:
    """Show who did what, newest first: in one space with --space, else in all of them.

    The setting audit decides what is recorded: off (the default), writes, or all, which includes
    reads. An entry is written before something is done, and its outcome afterwards; one without an
    outcome was cut short, or is under way. No entry contains any text of a conversation. A worker
    drops what is older than audit_days.

    Examples:
      recollect audit
      recollect audit --space alice --verb erasure.forget_session --json
      recollect audit --actor key:019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --since 2026-05-01T00:00Z
    """
    found: list[AuditEntry] = []
    while len(found) < limit:
        size = min(LIST_MAX, limit - len(found))
        last = found[-1] if found else None
        read = at.memory.audit(at.named_space, size, last, actor=actor, verb=verb, since=since)
        found += read
        if len(read) < size:
            break
    notes = [] if found else ["Nothing is recorded here."]
    if at.memory.settings.audit == "off":
        notes.append(
            "Nothing is being recorded: set audit to writes or all (RECOLLECT_AUDIT=writes)."
        )
    headers = ("AT", "ACTOR", "SPACE", "VERB", "OUTCOME", "TARGETS")
    return Output(
        found, table(headers, [_audit_row(each) for each in found]) if found else (), notes
    )


def _audit_row(entry: AuditEntry) -> tuple[str, ...]:
    shown = ", ".join(entry.targets[:TARGETS_SHOWN])
    more = len(entry.targets) - TARGETS_SHOWN
    return (
        moment(entry.at),
        entry.actor,
        NONE if entry.space is None else entry.space,
        entry.verb,
        entry.outcome or CUT_SHORT,
        f"{shown} and {more} more" if more > 0 else shown or NONE,
    )


# Settings, and the list of verbs


@command()
def config(at: Target) -> Output:
    """Show every setting: its value, where it comes from, its default and its bounds.

    An option wins over RECOLLECT_… in the environment, which wins over recollect.toml or
    recollect.yaml in the working directory or the user's configuration directory. No store is
    opened, and passwords in addresses are not shown.

    Examples:
      recollect config
      RECOLLECT_MARK_THRESHOLD=10 recollect config --json
    """
    settings = at.settings()
    rows = [
        (
            setting.name,
            value_in_words(_value(settings, setting)),
            _origin(settings, setting.name),
            value_in_words(setting.default),
            bounds_in_words(setting),
        )
        for setting in described()
    ]
    rows += [
        (
            f"agents.{name}.memory.enabled",
            value_in_words(on),
            _origin(settings, "agents"),
            "true",
            "",
        )
        for name, on in settings.agents.items()
    ]
    return Output(
        _settings_view(settings),
        table(("SETTING", "VALUE", "FROM", "DEFAULT", "BOUNDS"), rows),
        f"Commands without --store open {one_line(_opened(settings))}.",
    )


def value_in_words(value: object) -> str:
    """A setting's value as a settings file would spell it."""
    match value:
        case None:
            return NONE
        case bool():
            return "true" if value else "false"
        case "":
            return '""'
        case _:
            return str(value)


def bounds_in_words(setting: Described) -> str:
    if setting.choices is not None:
        return " | ".join(setting.choices)
    if setting.type is bool:
        return "true | false"
    if setting.minimum is None or setting.maximum is None:
        return ""
    return f"{setting.minimum:g} … {setting.maximum:.12g}"


def _value(settings: Settings, setting: Described) -> Any:
    value = getattr(settings, setting.name)
    return without_password(value) if setting.name == "store" and value else value


def _origin(settings: Settings, name: str) -> str:
    return settings.origins.get(name, "default")


def _opened(settings: Settings) -> str:
    if settings.database == "per-agent" and settings.origins.get("store") != "argument":
        return f"nothing: database is per-agent, in {settings.path('NAME')}"
    if settings.store is not None:
        return without_password(settings.store)
    if not settings.data_dir and settings.sqlite_path is None:
        return "nothing: data_dir is empty and memory is off"
    return str(settings.path())


def _settings_view(settings: Settings) -> dict[str, Any]:
    return {
        "settings": {
            setting.name: {
                "value": _value(settings, setting),
                "origin": _origin(settings, setting.name),
                "default": setting.default,
                "minimum": setting.minimum,
                "maximum": setting.maximum,
                "choices": setting.choices,
                "environment": setting.environment_name,
                "doc": setting.doc,
            }
            for setting in described()
        },
        "agents": {
            name: {
                "memory": {"enabled": enabled},
                "data_dir": settings.agent_data_dirs.get(name),
                "origin": _origin(settings, "agents"),
            }
            for name, enabled in settings.agents.items()
        },
    }


@command()
def verbs(_at: Target) -> Output:
    """List every operation, and where it can be found.

    Each is a method in Python, and a coroutine of the same name in recollect.aio. SCOPE is what a
    key of the HTTP API needs for it, EFFECT is what it does to what is remembered.

    Examples:
      recollect verbs
      recollect verbs --json
    """
    value = [
        {
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
        for verb in VERBS
    ]

    def row(verb: Verb) -> tuple[str, ...]:
        places = (verb.commands, verb.http, verb.tools)
        return (verb.name, verb.scope, verb.effect, *(", ".join(each) or NONE for each in places))

    rows = [row(verb) for verb in VERBS]
    return Output(value, table(("VERB", "SCOPE", "EFFECT", "COMMAND", "HTTP", "MCP"), rows))
