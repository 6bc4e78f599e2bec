"""`recollect mcp`: the memory of a space for every agent that speaks the Model Context Protocol."""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
from click.core import ParameterSource

from recollect.collection import check_label, check_space
from recollect.errors import InvalidSetting, MissingExtra
from recollect.importers.projects import project_of
from recollect.interfaces.cli.logs import logged
from recollect.interfaces.cli.output import note, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.mcp.clients import AGENTS, has_project, snippet
from recollect.space import DEFAULT_AGENT
from recollect.store.address import without_password

if TYPE_CHECKING:
    from recollect.interfaces.mcp.server import MemoryOnDemand
    from recollect.interfaces.mcp.tools import Terms

TOKEN_VARIABLE = "RECOLLECT_MCP_TOKEN"
HTTP_HOST = "127.0.0.1"
SERVER = "recollect.interfaces.mcp.server"


def read_address(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, int] | None:
    """HOST:PORT; a port alone is on this machine."""
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise click.BadParameter("HOST:PORT, as in 127.0.0.1:8765", context, parameter)
    return host.strip("[]") or HTTP_HOST, int(port)


def read_spaces(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...]:
    """Names separated by commas."""
    names = tuple(name.strip() for name in (text or "").split(","))
    if text is not None and not all(names):
        raise click.BadParameter("names separated by commas, as in alice,bob", context, parameter)
    if any(step in (".", "..") for name in names for step in name.split("/")):
        # On its way a client would walk these, and come out at another space.
        raise click.BadParameter("no path leads to a space with the steps . or ..")
    return () if text is None else tuple(dict.fromkeys(names))


@click.command("mcp")
@click.option(
    "--http",
    "address",
    callback=read_address,
    metavar="HOST:PORT",
    help="Serve streamable HTTP at /mcp instead of standard input and output.",
)
@click.option(
    "--token",
    envvar=TOKEN_VARIABLE,
    metavar="SECRET",
    help=f"What HTTP clients have to send as a bearer token. Default: {TOKEN_VARIABLE}.",
)
@click.option(
    "--spaces",
    callback=read_spaces,
    metavar="A,B",
    help="With --http: these spaces as well, each at /spaces/NAME/mcp.",
)
@click.option(
    "--agent",
    default=DEFAULT_AGENT,
    show_default=True,
    metavar="NAME",
    help="Who writes what is added.",
)
@click.option(
    "--project",
    "directory",
    metavar="DIRECTORY",
    help="Recall what belongs to this project or to none. Default: that of the working directory;"
    " none with --http.",
)
@click.option("--no-project", is_flag=True, help="Recall across all projects.")
@click.option("--read-only", is_flag=True, help="Leave out all that changes anything.")
@click.option(
    "--work/--no-work",
    default=True,
    show_default=True,
    help="Also process sessions in the background, as recollect worker does.",
)
@click.option(
    "--config",
    "config_for",
    type=click.Choice(AGENTS),
    metavar="AGENT",
    help=f"Only print how an agent is told to start this: {', '.join(AGENTS)}.",
)
@click.option("--verbose", is_flag=True, help="Log more on standard error.")
@with_target
def command(
    target: Target,
    /,
    address: tuple[str, int] | None,
    spaces: tuple[str, ...],
    config_for: str | None,
    verbose: bool,
    **given: Any,
) -> None:
    """Give an agent this memory over the Model Context Protocol.

    The agent starts this command itself and talks to it over standard input and output; how to
    tell it, --config prints. It gets tools to search, read, list, add, correct and delete memories,
    a context for a task, and notes as files. The space is the one of --space: no agent can name
    another. The store is opened after the handshake, and a worker distils what sessions leave,
    unless --no-work says that another process does.

    With --http it serves any number of clients, on this machine only, or for others with a token.

    \b
    Examples:
      recollect mcp --config claude-code
      recollect mcp --config codex --space work
      recollect mcp --agent claude-code --project ~/src/shop
      recollect mcp --http 127.0.0.1:8765
      RECOLLECT_MCP_TOKEN=… recollect mcp --http 0.0.0.0:8765 --spaces alice,bob --read-only
    """
    if spaces and address is None:
        raise click.UsageError("--spaces is for --http: over a pipe there is one space.")
    if given["directory"] is not None and given["no_project"]:
        raise click.UsageError("Give --project or --no-project, not both.")
    if given["token"] == "":
        raise click.UsageError(f"--token (or {TOKEN_VARIABLE}) is empty.")
    if config_for is not None:
        _print_snippet(target, config_for, given)
        return
    level = logging.INFO if verbose else logging.WARNING
    with logged(level, as_json=target.as_json), _without_collecting():
        memory, terms = _prepared(target, is_http=address is not None, **given)
        try:
            if address is None:
                _serve_stdio(memory, terms)
            else:
                _serve_http(memory, terms, address, spaces, given["token"])
        finally:
            memory.close()


def _prepared(
    target: Target,
    *,
    is_http: bool,
    agent: str,
    directory: str | None,
    no_project: bool,
    read_only: bool,
    work: bool,
    token: str | None,  # noqa: ARG001 - is not part of the terms
) -> tuple[MemoryOnDemand, Terms]:
    """Who keeps the memory, and on which terms; the store is not opened yet."""
    server = _needed(SERVER)
    target = target if is_http else target.anywhere()
    is_anywhere = no_project or (is_http and directory is None)
    terms = server.Terms(
        space=check_space(target.space_name),
        agent=check_label(agent, "an agent's name"),
        project=None if is_anywhere else project_here(directory),
        read_only=read_only,
    )
    target.settings()  # what is wrong with them is said before the handshake
    memory = server.MemoryOnDemand(lambda: target.open(agent), work=work and not read_only)
    return memory, terms


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
    stdio, server = _needed("recollect.interfaces.mcp.stdio"), _needed(SERVER)
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
    http = _needed("recollect.interfaces.mcp.http")
    others = {name: replace(terms, space=check_space(name)) for name in spaces}
    servers = http.servers_for(memory, terms, others)
    _collect_again()

    def say_ready(url: str) -> None:
        memory.warm()
        for path in servers:
            note(f"Serving MCP at {url}{quote(path)}")

    http.serve_http(servers, address=address, token=token, say_ready=say_ready)


def _needed(module: str) -> Any:
    """A module that needs the SDK, which is an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("recollect"):
            raise
        raise MissingExtra(
            "recollect mcp needs the MCP SDK: pip install 'recollect[mcp]'"
        ) from error


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


def _print_snippet(target: Target, agent: str, given: Mapping[str, Any]) -> None:
    """How to tell an agent to start this very installation on this very store."""
    made = snippet(agent, [*_program(), "mcp", *_arguments(target, agent, given)])
    if target.as_json:
        write_json({"agent": made.agent, "where": made.place, "text": made.text})
        return
    note(made.place)
    write(made.text)


def _program() -> list[str]:
    """The command of this installation, as an absolute path."""
    script = Path(sys.executable).with_name("recollect")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "recollect"]


def _arguments(target: Target, agent: str, given: Mapping[str, Any]) -> list[str]:
    source = click.get_current_context().get_parameter_source("agent")
    is_named = source is not ParameterSource.DEFAULT
    arguments = ["--store", _store_address(target), "--space", target.space_name]
    arguments += ["--agent", given["agent"] if is_named else agent]
    if given["directory"] is not None:
        arguments += ["--project", project_here(given["directory"]) or given["directory"]]
    elif given["no_project"] or not has_project(agent):
        arguments.append("--no-project")
    arguments += ["--read-only"] if given["read_only"] else []
    return arguments + ([] if given["work"] else ["--no-work"])


def _store_address(target: Target) -> str:
    """The store, wherever the agent will be started."""
    settings = target.settings()
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
