"""Commands for a store as a whole: spaces, archives, backups, checks, the audit log, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from recollect.clock import SystemClock
from recollect.config import Described, Settings, described
from recollect.errors import NotFound
from recollect.interfaces.cli.commands import Opt, Output, Target, address_of, command
from recollect.interfaces.cli.output import NONE, counted, fields, one_line, table, tabled
from recollect.interfaces.cli.parameters import Time, progress_shown
from recollect.interfaces.views import view
from recollect.operations.backup import Restoring, back_up
from recollect.operations.checks import Defect, Diagnosis, Gravity, examine
from recollect.operations.checks import repair as repaired
from recollect.operations.migrating import count_spaces
from recollect.session import LIST_MAX
from recollect.store.address import without_password
from recollect.types.access import AuditEntry
from recollect.verbs import VERBS

if TYPE_CHECKING:
    from recollect.models.served import ModelServer

NewFile = Annotated[Path, Opt(metavar="PATH", is_file=True)]
WHOLE_STORE = "this concerns the whole store; recollect export takes one space"


@command()
def spaces(at: Target) -> Output:
    """List the spaces of a store with their sessions, records, facts and documents.

    Superseded facts and deleted items do not count. With --space only that one.

    Example:
      recollect spaces
    """
    found = count_spaces(at.memory.store)
    if at.named_space is not None:
        found = [each for each in found if each.space == at.named_space]
        if not found:
            raise NotFound(f"there is no space {at.named_space!r}")
    columns = fields("space sessions records facts documents since=created_at")
    nothing = "No space holds anything yet; recollect append makes one."
    return Output({"spaces": found}, tabled(columns, found), "" if found else nothing)


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

    The archive is a zip of JSON Lines, the documents as Markdown, and a manifest with a digest of
    every member. The same content gives the same bytes, from SQLite and from PostgreSQL. It is a
    snapshot; others can go on writing. Vectors, indexes, leases and API keys are left out; deleted
    documents and facts are included until they are purged or forgotten. PATH must not exist yet.

    Example:
      recollect export alice.zip --space alice
    """
    memory = at.memory
    with progress_shown(at):
        done = memory.export(path, at.named_space)
    what = f"{done.size_bytes:,} bytes), {_contents(done.spaces)}"
    return Output(done, f"Wrote {one_line(str(done.path))} ({what}.")


@command(makes_store=True)
def load(at: Target, path: NewFile) -> Output:
    """Load an archive that recollect export wrote: all its spaces or, with --space, one.

    The archive is checked before anything is written. None of its spaces may be in the store,
    unless it is exactly the same: so an interrupted load can simply be run again. Each space is
    loaded as a whole or not at all, and is compared with the archive before it counts.

    Example:
      recollect load memory.zip --store new.db
    """
    memory = at.memory
    with progress_shown(at):
        done = memory.load(path, at.named_space)
    same = (
        f"Space {one_line(each)!r} was already there, unchanged." for each in done.already_there
    )
    return Output(done, [f"Loaded {_contents(done.spaces)}.", *same])


@command()
def migrate(at: Target, *, to: str) -> Output:
    """Copy a whole store into another one, from SQLite to PostgreSQL or the other way round.

    The other store must be empty, or hold what an interrupted migration from here left there: run
    the command again, and it continues. At the end both are compared, table by table. Stop
    everything that writes to the source first. API keys are copied; vectors are made anew. All
    spaces are copied, whatever --space says.

    Options:
      to URL: The store to copy everything into.

    Example:
      recollect migrate --to postgresql://localhost/recollect
    """
    at.ignores_space(WHOLE_STORE)
    memory = at.memory
    with progress_shown(at):
        done = memory.migrate(to)
    same = f"{one_line(done.target)} now holds the same as {one_line(done.source)}:"
    return Output(done, [same, f"{_contents(done.spaces)}. Every table was compared."])


@command()
def backup(at: Target, path: NewFile) -> Output:
    """Copy the store into PATH, a new file, while others go on reading and writing.

    A store on SQLite becomes a database file, which is checked before it gets its name; one on
    PostgreSQL an archive of all spaces, without vectors, API keys and the salt of redaction.
    recollect restore creates a store from either, on either. It is always the whole store, whatever
    --space says.

    Example:
      recollect backup memory-2026-01-01.db
    """
    at.ignores_space(WHOLE_STORE)
    store = at.memory.store
    with progress_shown(at):
        done = back_up(store, path)
    what = f"{done.kind}, {done.size_bytes:,} bytes, {counted(done.spaces, 'space')}"
    return Output(done, f"Wrote {one_line(str(done.path))} ({what}).")


@command()
def restore(
    at: Target,
    path: Annotated[Path, Opt(metavar="PATH", exists=True, is_file=True)],
    *,
    replace: bool = False,
) -> Output:
    """Create the store that --store names from the backup PATH: a database file or an archive.

    A backup is checked before anything happens. With --replace a file that nobody has open is kept
    as <name>.before-<time>, and the restored one gets its name in one step. On a server, restore
    into a new schema (?schema=<name>). It is always the whole store, whatever --space says.

    Options:
      replace: Replace an existing store, which is kept under another name.

    Example:
      recollect restore memory-2026-01-01.db --store new.db
    """
    at.ignores_space(WHOLE_STORE)
    restoring = Restoring(path, at.settings(), SystemClock())
    with progress_shown(at):
        done = restoring.restore(at.address(), replace=replace)
    lines = [f"Restored {one_line(done.store)} with {counted(done.spaces, 'space')}."]
    if done.kept is not None:
        lines.append(f"The previous store is kept as {one_line(str(done.kept))}.")
    return Output(done, lines)


# Checks


@command()
def doctor(at: Target, *, repair: bool = False) -> Output:
    """Check a whole store: its files, its references, its indexes, its links and its jobs.

    The exit code is 1 if something is wrong; a note is only worth knowing. A repair deletes nothing
    that was remembered; what it cannot repair comes with advice. It looks at all spaces, whatever
    --space says.

    Options:
      repair: Repair what can be repaired safely.

    Example:
      recollect doctor --repair
    """
    at.ignores_space(WHOLE_STORE)
    look = repaired if repair else examine
    found = look(at.memory.store, at.memory.clock.now())
    value = {
        "store": found.store.location,
        "schema_version": found.store.schema_version,
        "sound": found.is_sound,
        "findings": view(found.findings),
        "repaired": view(found.repaired),
    }
    return Output(value, _diagnosis_lines(found), exit_code=0 if found.is_sound else 1)


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

TARGETS_SHOWN = 3


@command()
def audit(
    at: Target,
    *,
    actor: str | None = None,
    verb: str | None = None,
    since: Time | None = None,
    limit: Annotated[int, Opt(metavar="N", at_least=1, at_most=1_000_000)] = 50,
) -> Output:
    """Show who did what, newest first: in one space with --space, else in all of them.

    The setting audit decides what is recorded: off (the default), writes, or all, which includes
    reads. An entry without an outcome was cut short, or is under way. No entry contains any text of
    a conversation.

    Options:
      actor WHO: Only what this actor did, as it is shown.
      verb VERB: Only this, as in records.append.
      since: Only from then on: a day, or an ISO time with a zone.
      limit: At most N entries, the newest.

    Example:
      recollect audit --space alice --verb erasure.forget_session --since 2026-05-01
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
    columns = fields(
        "at actor space verb outcome targets",
        outcome=lambda entry: entry.outcome or "under way, or cut short",
        targets=_targets,
    )
    return Output(found, tabled(columns, found), notes)


def _targets(entry: AuditEntry) -> str:
    more = len(entry.targets) - TARGETS_SHOWN
    return ", ".join(entry.targets[:TARGETS_SHOWN]) + (f" and {more} more" if more > 0 else "")


# Settings, and the list of verbs


@command()
def config(at: Target) -> Output:
    """Show every setting: its value, where it comes from, its default and its bounds.

    No store is opened, and passwords in addresses are not shown.

    Example:
      RECOLLECT_MARK_THRESHOLD=10 recollect config --json
    """
    settings = at.settings()
    view = _settings_view(settings)
    rows = [
        (name, each["value"], each["origin"], each["default"], bounds_in_words(setting))
        for (name, each), setting in zip(view["settings"].items(), described(), strict=True)
    ]
    rows += [
        (f"agents.{name}.memory.enabled", on, _origin(settings, "agents"), True, "")
        for name, on in settings.agents.items()
    ]
    titles = ("SETTING", "VALUE", "FROM", "DEFAULT")
    lines = table(
        (*titles, "BOUNDS"), [(*map(value_in_words, row[:4]), str(row[4])) for row in rows]
    )
    return Output(view, lines, f"Commands without --store open {one_line(_opened(settings))}.")


@command()
def models(at: Target) -> Output:
    """List the language models that answer on this machine, and how to use each.

    Asked are Ollama, LM Studio and llama.cpp's server where they usually are, or where their own
    variables say (OLLAMA_HOST, LMSTUDIO_BASE_URL, LLAMA_ARG_HOST and LLAMA_ARG_PORT), and the
    server that model, model_base_url or OPENAI_BASE_URL names. No other is contacted.

    Example:
      recollect models
    """
    from recollect.models.served import model_servers  # brings the HTTP client

    servers = model_servers(at.settings())
    found = [(server, model) for server in servers for model in server.models]
    value = {
        "models": [
            view(model) | {"provider": server.provider, "use": server.setting(model)}
            for server, model in found
        ],
        "servers": [
            {"title": each.title, "url": each.url, "problem": each.problem, "remedy": each.remedy}
            for each in servers
        ],
    }
    columns = fields(
        "model window schema use",
        model=lambda pair: pair[1].name,
        window=lambda pair: pair[1].window_tokens,
        schema=lambda pair: {True: "yes", None: "tried"}.get(pair[1].takes_schema, "no"),
        use=lambda pair: pair[0].setting(pair[1]),
    )
    return Output(
        value, tabled(columns, found), [_nothing_of(each) for each in servers if not each.models]
    )


def _nothing_of(server: ModelServer) -> str:
    """Why a server has no model to use, and what to do."""
    where = f"{server.title} at {server.url}"
    if server.problem is None:
        return f"{where} has no models; {server.remedy}."
    is_gone = "cannot be reached" in server.problem
    what = (
        f"Nothing answers on {server.url} ({server.title})"
        if is_gone
        else f"{where}: {server.problem}"
    )
    return f"{what}; {server.remedy}." if server.remedy else f"{what}."


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
    address = address_of(settings)
    return without_password(address) if address else "nothing: data_dir is empty and memory is off"


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

    Example:
      recollect verbs
    """
    names = ("name", "says", "scope", "effect", "is_idempotent", "http", "commands", "tools")
    value = [
        {
            **{name: getattr(verb, name) for name in names},
            "python": verb.method is not None,
            "pages": verb.pages or None,
            "example": verb.example or None,
        }
        for verb in VERBS
    ]
    columns = fields("verb=name scope effect command=commands http mcp=tools")
    return Output(value, tabled(columns, VERBS))
