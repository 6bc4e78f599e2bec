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
from recollect.errors import InvalidValue, MissingExtra, NotFound
from recollect.hooks.process import absolute
from recollect.importers.projects import project_of
from recollect.interfaces.cli.commands import Opt, Output, Target, command, group, program
from recollect.interfaces.cli.output import fields, note, one_line, tabled, write_json
from recollect.interfaces.cli.running import logged
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.mcp.clients import AGENTS, has_project, snippet
from recollect.interfaces.views import view
from recollect.session import LIST_MAX
from recollect.space import DEFAULT_AGENT
from recollect.store.address import without_password
from recollect.types.access import Scope

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What is served where, and how much of it.

    Options:
      host NAME: Where to listen.
      port: On which port; 0: any that is free.
      rate: Requests per second for each key, with bursts of twice as many; 0: no limit. Several
        servers of one store share it.
      drain N: Once told to stop, go on for N seconds, in which /readyz answers 503 and a balancer
        takes this server out.
      body_bytes_max: The largest body of a request.
      agents, --agent NAME: Also run this agent, which answers what is posted to it. May be given
        several times.
      pages, --pages/--no-pages: Also serve the web page, at /ui.
      verbose: Log a line for each request, without its content.
    """

    host: str = LOCAL_HOST
    port: Annotated[int, Opt(metavar="N", at_least=0, at_most=65_535)] = 8400
    work: Work = True
    rate: Annotated[float, Opt(metavar="N", at_least=0, at_most=1_000_000)] = 100.0
    drain: Annotated[float, Opt(metavar="N", at_least=0, at_most=3600)] = 0.0
    body_bytes_max: Annotated[int, Opt(metavar="N", at_least=1024, at_most=2**30)] = 8_388_608
    agents: tuple[str, ...] = ()
    pages: bool = True
    verbose: bool = False


@command()
def serve(at: Target, *, served: ServeOptions) -> None:
    """Serve this memory over HTTP: the web page at /ui, the API at /v1, and /metrics.

    /healthz says that it is alive, /readyz whether requests should be sent to it.

    Every request needs a key, on this machine as well: recollect keys creates them. Where there is
    none yet, the first one is created and shown on the terminal, once; it opens every space. All
    spaces are served, whatever --space says: a key determines which one is seen.

    SIGTERM and Ctrl-C stop it: it accepts no more requests and lets those under way finish. Put a
    proxy with TLS in front of it where others can reach it.

    Examples:
      recollect serve --agent assistant
      recollect serve --host 0.0.0.0 --port 80 --store postgresql://localhost/memory --no-work
    """
    at.ignores_space("all of them are served, and keys are bound to one")
    needs = "recollect serve needs a web server and templates: pip install 'recollect[http]'"
    app = _extra("recollect.interfaces.http.app", needs)
    server = _extra("recollect.interfaces.http.server", needs)
    site = _extra("recollect.interfaces.web.site", needs) if served.pages else None
    level = logging.INFO if served.verbose else logging.WARNING
    with logged(level, as_json=at.as_json), at.open(metrics=True) as memory:
        burst = max(1, round(2 * served.rate))
        limits = app.ServerLimits(
            body_bytes_max=served.body_bytes_max, rate_per_second=served.rate, burst=burst
        )
        if served.work:
            memory.worker().start()

        def say_ready(url: str) -> None:
            if at.as_json:
                write_json({"url": url})
            else:
                note(f"Serving {url}/v1" + (f", and for people {url}/ui" if served.pages else ""))
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

        api = app.Api(memory, limits, served.agents)
        api.start()
        routes = site.Site(api, memory).routes() if site is not None else ()
        server.serve(
            api,
            address=(served.host, served.port),
            say_ready=say_ready,
            pages=routes,
            drain_seconds=served.drain,
        )


@group(lists="list")
def keys() -> None:
    """Keys for recollect serve; without a verb, the list of them.

    A key opens one space, or all of them, for reading, for writing as well, or for admin, which
    includes forgetting and purging. Its secret is shown once, when it is created: the store keeps
    only a digest.

    Example:
      recollect keys create dashboard --all-spaces --scope read --days 90
    """


@command(keys, makes_store=True)
def create(
    at: Target,
    name: str,
    *,
    all_spaces: bool = False,
    scope: Scope = Scope.WRITE,
    days: Annotated[int | None, Opt(metavar="N", at_least=1, at_most=36_500)] = None,
) -> Output:
    """Create a key called NAME and print its secret, once.

    Only the secret goes to standard output, so that it can be passed on.

    Options:
      all_spaces: It opens every space, including future ones.
      scope: What it allows; each scope includes those before it.
      days: Valid for N days. Default: until it is revoked.

    Examples:
      recollect keys create phone --space alice
      recollect keys create backup --all-spaces --scope admin --days 7 --json
    """
    if all_spaces == (at.named_space is not None):
        raise click.UsageError("Say what it opens: --space NAME or --all-spaces.")
    until = None if days is None else at.memory.clock.now() + timedelta(days=days)
    key, secret = make_key(at.memory, name, space=at.named_space, scope=scope, expires_at=until)
    opens = "every space" if key.space is None else f"space {one_line(key.space)!r}"
    told = f"Key {key.id} opens {opens} ({key.scope.value}). Its secret, shown only now:"
    return Output(view(key) | {"secret": secret}, secret, before=told)


_KEY = fields(
    "id name space scope created_at expires_at revoked_at last_used_at",
    space=lambda key: key.space or "(all)",
)


@command(keys)
def list_(
    at: Target,
    *,
    limit: Annotated[int, Opt("At most N keys.", "N", at_least=1, at_most=LIST_MAX)] = LIST_MAX,
    after: Annotated[str, Opt("The next page: those after this one.", "ID")] = "",
) -> Output:
    """List keys, oldest first, including expired and revoked ones; never a secret.

    Example:
      recollect keys list --space alice
    """
    found = at.memory.store.api_keys.list(after, limit)
    shown = [key for key in found if at.named_space is None or key.space == at.named_space]
    nothing = f"No keys. Create one: recollect keys create NAME{at.arguments} --space NAME"
    return Output(shown, tabled(_KEY, shown), "" if shown else nothing)


@command(keys)
def revoke(at: Target, key_id: str) -> Output:
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
    """The options that say what an agent is served.

    Options:
      agent NAME: Who writes what is added.
      directory, --project DIRECTORY: Recall what belongs to this project or to none. Default: that
        of the working directory; none with --http.
      no_project: Recall across all projects.
      read_only: Leave out all tools that change anything.
    """

    agent: str = DEFAULT_AGENT
    directory: str | None = None
    no_project: bool = False
    read_only: bool = False
    work: Work = True


@command()
def mcp(
    at: Target,
    *,
    address: Annotated[tuple[str, int] | None, Opt(read=read_address)] = None,
    token: Annotated[str | None, Opt(envvar=TOKEN_VARIABLE)] = None,
    spaces: Annotated[Sequence[str] | None, Opt(read=read_spaces)] = None,
    public_url: Annotated[str | None, Opt(metavar="URL")] = None,
    authorization_server: Annotated[str | None, Opt(metavar="URL")] = None,
    served: ServedMemory,
    config_for: Annotated[str | None, Opt(choices=AGENTS)] = None,
    verbose: bool = False,
) -> Output | None:
    """Give an agent this memory over the Model Context Protocol.

    The agent starts this command itself and talks to it over standard input and output; --config
    prints how to set that up. It gets tools to search, read, list, add, correct and delete
    memories, a context for a task, and notes as files, all in the space of --space. With --http it
    serves any number of clients, on this machine only, or for others with a token.

    Options:
      address, --http HOST:PORT: Serve streamable HTTP at /mcp instead of standard input and output.
      token SECRET: What HTTP clients have to send as a bearer token. Default: RECOLLECT_MCP_TOKEN.
      spaces A,B: With --http: these spaces as well, each at /spaces/NAME/mcp.
      public_url: With --http: how clients reach it, as in https://memory.example.com.
      authorization_server: With --http: also accept OAuth tokens that this server issues for
        --public-url and the path of a space.
      config_for, --config: Only print how an agent is configured to start this.
      verbose: Log more on standard error.

    Examples:
      recollect mcp --config claude-code
      recollect mcp --http 127.0.0.1:8765 --spaces alice,bob --read-only
    """
    if spaces and address is None:
        raise click.UsageError("--spaces goes with --http: standard input serves one space.")
    if (public_url or authorization_server) and address is None:
        raise click.UsageError("--public-url and --authorization-server go with --http.")
    if authorization_server and not public_url:
        raise click.UsageError(
            "--authorization-server needs --public-url: its tokens name the address they are for."
        )
    if served.directory is not None and served.no_project:
        raise click.UsageError("Give --project or --no-project, not both.")
    if token == "":
        raise click.UsageError(f"--token (or {TOKEN_VARIABLE}) is empty.")
    if config_for is not None:
        made = snippet(config_for, [*program(), "mcp", *_arguments(at, config_for, served)])
        value = {"agent": made.agent, "where": made.place, "text": made.text}
        return Output(value, made.text, before=made.place)
    level = logging.INFO if verbose else logging.WARNING
    with logged(level, as_json=at.as_json), _without_collecting():
        memory, terms = _prepared(at, served, is_http=address is not None)
        try:
            if address is None:
                _serve_stdio(memory, terms)
            else:
                _serve_http(
                    memory, terms, address, spaces or (), (token, public_url, authorization_server)
                )
        finally:
            memory.close()
    return None


def _mcp_module(name: str) -> Any:
    return _extra(name, "recollect mcp needs the MCP SDK: pip install 'recollect[mcp]'")


def _prepared(at: Target, served: ServedMemory, *, is_http: bool) -> tuple[MemoryOnDemand, Terms]:
    """Return the memory, opened on first use, and the terms of the server."""
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
    access: tuple[str | None, str | None, str | None],
) -> None:
    http = _mcp_module("recollect.interfaces.mcp.http")
    access = _mcp_module("recollect.interfaces.mcp.access").access_of(*access)
    others = {name: replace(terms, space=check_space(name)) for name in spaces}
    servers = http.servers_for(memory, terms, others)
    _collect_again()

    def say_ready(url: str) -> None:
        memory.warm()
        for path in servers:
            note(f"Serving MCP at {url}{quote(path)}")

    http.serve_http(servers, address=address, access=access, say_ready=say_ready)


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
    address = at.address()
    shown = without_password(address)
    if shown != address:
        note("The password is left out: give it to the agent's environment (PGPASSWORD).")
    return absolute(shown.replace(":***@", "@"))
