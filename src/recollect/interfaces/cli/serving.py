"""`recollect serve`, `keys` and `mcp`: this memory over HTTP, and for agents that speak MCP."""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import click
from click.core import ParameterSource

from recollect.collection import check_label, check_space
from recollect.errors import InvalidSetting, InvalidValue, MissingExtra, NotFound
from recollect.importers.projects import project_of
from recollect.interfaces.cli.commands import Arg, Opt, Output, Target, command, group
from recollect.interfaces.cli.output import moment, note, one_line, table, write_json
from recollect.interfaces.cli.running import logged
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.mcp.clients import AGENTS, has_project, snippet
from recollect.interfaces.views import view
from recollect.session import LIST_MAX
from recollect.space import DEFAULT_AGENT
from recollect.store.address import without_password
from recollect.types.access import ApiKey, Scope

if TYPE_CHECKING:
    from recollect.interfaces.mcp.server import MemoryOnDemand
    from recollect.interfaces.mcp.tools import Terms

FIRST_KEY = "first"
LOCAL_HOST = "127.0.0.1"
TOKEN_VARIABLE = "RECOLLECT_MCP_TOKEN"
SERVER = "recollect.interfaces.mcp.server"

Work = Annotated[
    bool,
    Opt(
        "Also process sessions in the background, as recollect worker does.",
        name="--work/--no-work",
    ),
]


def _extra(module: str, needs: str) -> Any:
    """A module that needs an optional dependency."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("recollect"):
            raise
        raise MissingExtra(needs) from error


# HTTP


@command()
def serve(
    at: Target,
    *,
    host: Annotated[str, Opt("Where to listen.", "NAME")] = LOCAL_HOST,
    port: Annotated[
        int, Opt("On which port; 0: any that is free.", "N", at_least=0, at_most=65_535)
    ] = 8400,
    work: Work = True,
    rate: Annotated[
        float,
        Opt(
            "Requests per second for each key, with bursts of twice as many; 0: no limit.",
            "N",
            at_least=0,
            at_most=1_000_000,
        ),
    ] = 100.0,
    body_bytes_max: Annotated[
        int, Opt("The largest body of a request.", "N", at_least=1024, at_most=1_073_741_824)
    ] = 8_388_608,
    agents: Annotated[
        tuple[str, ...],
        Opt(
            "Also run this agent, which answers what is posted to it. May be given several times.",
            "NAME",
            "--agent",
        ),
    ] = (),
    pages: Annotated[
        bool, Opt("Also serve the web page, at /ui.", name="--pages/--no-pages")
    ] = True,
    verbose: Annotated[bool, Opt("Log a line for each request, without its content.")] = False,
) -> None:
    """Serve this memory over HTTP: the web page at /ui, the API at /v1, /healthz and /metrics.

    Every request needs a key, on this machine as well: recollect keys creates them. Where there is
    none yet, the first one is created and shown on the terminal, once; it opens every space. A
    worker distils sessions, unless --no-work says that other processes do. All spaces are served,
    whatever --space says: a key determines which one is seen.

    SIGTERM and Ctrl-C stop it: it accepts no more requests and lets those under way finish. Put a
    proxy with TLS in front of it where others can reach it.

    Examples:
      recollect serve
      recollect serve --agent assistant
      recollect serve --host 0.0.0.0 --port 80 --store postgresql://localhost/memory --no-work
      curl -H "Authorization: Bearer $KEY" http://127.0.0.1:8400/v1/spaces
    """
    at.ignores_space("all of them are served, and keys are bound to one")
    needs = "recollect serve needs a web server and templates: pip install 'recollect[http]'"
    app = _extra("recollect.interfaces.http.app", needs)
    server = _extra("recollect.interfaces.http.server", needs)
    site = _extra("recollect.interfaces.web.site", needs) if pages else None
    level = logging.INFO if verbose else logging.WARNING
    with logged(level, as_json=at.as_json), at.open(metrics=True) as memory:
        burst = max(1, round(2 * rate))
        limits = app.ServerLimits(body_bytes_max=body_bytes_max, rate_per_second=rate, burst=burst)
        if work:
            memory.worker().start()

        def say_ready(url: str) -> None:
            if at.as_json:
                write_json({"url": url})
            else:
                note(f"Serving {url}/v1" + (f", and for people {url}/ui" if pages else ""))
            # The first key is made where somebody can see it: a log is no place for a secret.
            if not memory.store.api_keys.list("", 1):
                if sys.stderr.isatty():
                    key, secret = make_key(memory, FIRST_KEY, space=None, scope=Scope.ADMIN)
                    first = "The first key, for every space, shown only now"
                    note(f"{first} ({key.id}):\n  {secret}")
                else:
                    create = f"recollect keys create NAME --all-spaces{at.arguments}"
                    note(f"There is no key yet: {create}")
            # What was loaded so far stays: no collection has to go through it with every request.
            gc.freeze()

        api = app.Api(memory, limits, agents)
        api.start()
        routes = site.Site(api, memory).routes() if site is not None else ()
        server.serve(api, address=(host, port), say_ready=say_ready, pages=routes)


@group(lists="list")
def keys() -> None:
    """Keys for recollect serve; without a verb, the list of them.

    A key opens one space, or all of them, for reading, for writing as well, or for admin, which
    includes forgetting and purging. Its secret is shown once, when it is created: the store keeps
    only a digest.

    Examples:
      recollect keys create phone --space alice
      recollect keys create dashboard --all-spaces --scope read --days 90
      recollect keys revoke 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """


@command(keys, makes_store=True)
def create(
    at: Target,
    name: Annotated[str, Arg()],
    *,
    all_spaces: Annotated[bool, Opt("It opens every space, including future ones.")] = False,
    scope: Annotated[
        str,
        Opt("What it allows; each scope includes those before it.", choices=tuple(Scope)),
    ] = Scope.WRITE.value,
    days: Annotated[
        int | None,
        Opt("Valid for N days. Default: until it is revoked.", "N", at_least=1, at_most=36_500),
    ] = None,
) -> Output:
    """Create a key called NAME and print its secret, once.

    Only the secret goes to standard output, so that it can be passed on.

    Examples:
      recollect keys create phone --space alice
      recollect keys create backup --all-spaces --scope admin --days 7 --json
    """
    if all_spaces == (at.named_space is not None):
        raise click.UsageError("Say what it opens: --space NAME or --all-spaces.")
    until = None if days is None else at.memory.clock.now() + timedelta(days=days)
    key, secret = make_key(
        at.memory, name, space=at.named_space, scope=Scope(scope), expires_at=until
    )
    opens = "every space" if key.space is None else f"space {one_line(key.space)!r}"
    told = f"Key {key.id} opens {opens} ({key.scope.value}). Its secret, shown only now:"
    return Output(view(key) | {"secret": secret}, secret, before=told)


@command(keys)
def list_(
    at: Target,
    *,
    limit: Annotated[int, Opt("At most N keys.", "N", at_least=1, at_most=LIST_MAX)] = LIST_MAX,
    after: Annotated[str, Opt("The next page: those after this one.", "ID")] = "",
) -> Output:
    """List keys, oldest first, including expired and revoked ones; never a secret.

    Examples:
      recollect keys list
      recollect keys list --space alice --json
    """
    found = at.memory.store.api_keys.list(after, limit)
    shown = [key for key in found if at.named_space is None or key.space == at.named_space]
    nothing = f"No keys. Create one: recollect keys create NAME{at.arguments} --space NAME"
    headers = ("ID", "NAME", "SPACE", "SCOPE", "CREATED", "EXPIRES", "REVOKED", "LAST USED")
    rows = [_key_row(key) for key in shown]
    return Output(shown, table(headers, rows) if rows else (), "" if rows else nothing)


def _key_row(key: ApiKey) -> tuple[str, ...]:
    times = (key.created_at, key.expires_at, key.revoked_at, key.last_used_at)
    return (key.id, key.name, key.space or "(all)", key.scope.value, *map(moment, times))


@command(keys)
def revoke(at: Target, key_id: Annotated[str, Arg()]) -> Output:
    """Revoke a key for good; the next request with it is refused.

    Example:
      recollect keys revoke 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    if not at.memory.store.api_keys.revoke(key_id, at.memory.clock.now()):
        raise NotFound(f"no active key {key_id!r}; recollect keys lists them")
    return Output({"id": key_id, "revoked": True}, f"Key {one_line(key_id)} is revoked.")


# MCP


def read_address(text: str) -> tuple[str, int]:
    """HOST:PORT; a port alone is on this machine."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidValue("HOST:PORT, as in 127.0.0.1:8765")
    return host.strip("[]") or LOCAL_HOST, int(port)


def read_spaces(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidValue("names separated by commas, as in alice,bob")
    if any(step in (".", "..") for name in names for step in name.split("/")):
        # On its way a client would walk these, and come out at another space.
        raise InvalidValue("a space that is served by path cannot have the steps . or ..")
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedMemory:
    """The options that say what an agent is served."""

    agent: Annotated[str, Opt("Who writes what is added.", "NAME")] = DEFAULT_AGENT
    directory: Annotated[
        str | None,
        Opt(
            "Recall what belongs to this project or to none. Default: that of the working"
            " directory; none with --http.",
            "DIRECTORY",
            "--project",
        ),
    ] = None
    no_project: Annotated[bool, Opt("Recall across all projects.")] = False
    read_only: Annotated[bool, Opt("Leave out all tools that change anything.")] = False
    work: Work = True


@command()
def mcp(
    at: Target,
    *,
    address: Annotated[
        tuple[str, int] | None,
        Opt(
            "Serve streamable HTTP at /mcp instead of standard input and output.",
            "HOST:PORT",
            "--http",
            read=read_address,
        ),
    ] = None,
    token: Annotated[
        str | None,
        Opt(
            f"What HTTP clients have to send as a bearer token. Default: {TOKEN_VARIABLE}.",
            "SECRET",
            envvar=TOKEN_VARIABLE,
        ),
    ] = None,
    spaces: Annotated[
        Sequence[str] | None,
        Opt(
            "With --http: these spaces as well, each at /spaces/NAME/mcp.", "A,B", read=read_spaces
        ),
    ] = None,
    served: ServedMemory,
    config_for: Annotated[
        str | None,
        Opt(
            f"Only print how an agent is configured to start this: {', '.join(AGENTS)}.",
            "AGENT",
            "--config",
            choices=AGENTS,
        ),
    ] = None,
    verbose: Annotated[bool, Opt("Log more on standard error.")] = False,
) -> Output | None:
    """Give an agent this memory over the Model Context Protocol.

    The agent starts this command itself and talks to it over standard input and output; --config
    prints how to set that up. It gets tools to search, read, list, add, correct and delete
    memories, a context for a task, and notes as files. The space is the one of --space: no agent
    can name another. The store is opened after the handshake, and a worker distils sessions,
    unless --no-work says that another process does.

    With --http it serves any number of clients, on this machine only, or for others with a token.

    Examples:
      recollect mcp --config claude-code
      recollect mcp --config codex --space work
      recollect mcp --agent claude-code --project ~/src/shop
      recollect mcp --http 127.0.0.1:8765
      RECOLLECT_MCP_TOKEN=… recollect mcp --http 0.0.0.0:8765 --spaces alice,bob --read-only
    """
    if spaces and address is None:
        raise click.UsageError("--spaces goes with --http: standard input serves one space.")
    if served.directory is not None and served.no_project:
        raise click.UsageError("Give --project or --no-project, not both.")
    if token == "":
        raise click.UsageError(f"--token (or {TOKEN_VARIABLE}) is empty.")
    if config_for is not None:
        made = snippet(config_for, [*_program(), "mcp", *_arguments(at, config_for, served)])
        value = {"agent": made.agent, "where": made.place, "text": made.text}
        return Output(value, made.text, before=made.place)
    level = logging.INFO if verbose else logging.WARNING
    with logged(level, as_json=at.as_json), _without_collecting():
        memory, terms = _prepared(at, served, is_http=address is not None)
        try:
            if address is None:
                _serve_stdio(memory, terms)
            else:
                _serve_http(memory, terms, address, spaces or (), token)
        finally:
            memory.close()
    return None


def _mcp_module(name: str) -> Any:
    return _extra(name, "recollect mcp needs the MCP SDK: pip install 'recollect[mcp]'")


def _prepared(at: Target, served: ServedMemory, *, is_http: bool) -> tuple[MemoryOnDemand, Terms]:
    """Who keeps the memory, and on which terms; the store is not opened yet."""
    server = _mcp_module(SERVER)
    at = at if is_http else at.anywhere()
    is_anywhere = served.no_project or (is_http and served.directory is None)
    terms = server.Terms(
        space=check_space(at.space_name),
        agent=check_label(served.agent, "an agent's name"),
        project=None if is_anywhere else project_here(served.directory),
        read_only=served.read_only,
    )
    at.settings()  # what is wrong with them is said before the handshake
    work = served.work and not served.read_only
    return server.MemoryOnDemand(lambda: at.open(served.agent), work=work), terms


def project_here(directory: str | None) -> str | None:
    """The project of a directory, or of the working directory where that is one of somebody.

    Applications start their servers at the root of the disk, or at home: that is no project.
    """
    if directory is not None:
        return project_of(str(Path(directory).expanduser().absolute()))
    try:
        here = Path.cwd()
        is_project = here not in (Path(here.anchor), Path.home())
    except (OSError, RuntimeError):  # it is gone, or there is no home
        return None
    return project_of(str(here)) if is_project else None


def _serve_stdio(memory: MemoryOnDemand, terms: Terms) -> None:
    stdio, server = _mcp_module("recollect.interfaces.mcp.stdio"), _mcp_module(SERVER)
    if sys.stdin is not None and sys.stdin.isatty():
        note("Waiting for an agent that speaks MCP on standard input. How to set one up: --config")
    made = server.MemoryServer(memory, terms)
    _collect_again()
    stdio.serve_stdio(made)


def _serve_http(
    memory: MemoryOnDemand,
    terms: Terms,
    address: tuple[str, int],
    spaces: Sequence[str],
    token: str | None,
) -> None:
    http = _mcp_module("recollect.interfaces.mcp.http")
    others = {name: replace(terms, space=check_space(name)) for name in spaces}
    servers = http.servers_for(memory, terms, others)
    _collect_again()

    def say_ready(url: str) -> None:
        memory.warm()
        for path in servers:
            note(f"Serving MCP at {url}{quote(path)}")

    http.serve_http(servers, address=address, token=token, say_ready=say_ready)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """The SDK makes a great many classes as it is loaded, and a collector finds nothing in them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _collect_again() -> None:
    gc.freeze()
    gc.enable()


def _program() -> list[str]:
    """The command of this installation, as an absolute path."""
    script = Path(sys.executable).with_name("recollect")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "recollect"]


def _arguments(at: Target, agent: str, served: ServedMemory) -> list[str]:
    source = click.get_current_context().get_parameter_source("agent")
    is_named = source is not ParameterSource.DEFAULT
    arguments = ["--store", _store_address(at), "--space", at.space_name]
    arguments += ["--agent", served.agent if is_named else agent]
    if served.directory is not None:
        arguments += ["--project", project_here(served.directory) or served.directory]
    elif served.no_project or not has_project(agent):
        arguments.append("--no-project")
    arguments += ["--read-only"] if served.read_only else []
    return arguments + ([] if served.work else ["--no-work"])


def _store_address(at: Target) -> str:
    """The store, wherever the agent will be started."""
    settings = at.settings()
    if settings.store is None and settings.database == "per-agent":
        raise InvalidSetting("database is per-agent, each agent has a store of its own: --store")
    address = settings.store or str(settings.path())
    if "://" in address:
        shown = without_password(address)
        if shown != address:
            note("The password is left out: give it to the agent's environment (PGPASSWORD).")
            shown = shown.replace(":***@", "@")
        scheme, _, path = shown.partition(":///")
        return f"{scheme}:///{Path(path).expanduser().absolute()}" if scheme == "sqlite" else shown
    return address if address == ":memory:" else str(Path(address).expanduser().absolute())
