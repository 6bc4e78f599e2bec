"""`recollect serve`: this memory over HTTP, for whoever has a key."""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from dataclasses import dataclass
from typing import Any

import click

import recollect
from recollect.errors import MissingExtra
from recollect.interfaces.cli.logs import logged
from recollect.interfaces.cli.output import note, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.http.bearer import make_key
from recollect.store.key_protocol import Scope

HOST, PORT = "127.0.0.1", 8400
FIRST_KEY = "first"
RATE, RATE_MAX = 100.0, 1_000_000.0
BODY_BYTES, BODY_BYTES_MIN, BODY_BYTES_MAX = 8_388_608, 1024, 1_073_741_824


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the command was told."""

    host: str
    port: int
    work: bool
    rate: float
    body_bytes_max: int
    agents: tuple[str, ...]
    pages: bool
    verbose: bool


@click.command("serve")
@click.option("--host", default=HOST, show_default=True, metavar="NAME", help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    metavar="N",
    help="On which port; 0: any that is free.",
)
@click.option(
    "--work/--no-work",
    default=True,
    show_default=True,
    help="Also process sessions in the background, as recollect worker does.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, RATE_MAX),
    default=RATE,
    show_default=True,
    metavar="N",
    help="Requests a second for each key, twice as many at once; 0: no limit.",
)
@click.option(
    "--body-bytes-max",
    type=click.IntRange(BODY_BYTES_MIN, BODY_BYTES_MAX),
    default=BODY_BYTES,
    show_default=True,
    metavar="N",
    help="The largest body of a request.",
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME",
    help="Also run this agent, which answers what is posted to it; may be repeated.",
)
@click.option(
    "--pages/--no-pages", default=True, show_default=True, help="Also serve the web page, at /ui."
)
@click.option("--verbose", is_flag=True, help="Log a line for each request, without its content.")
@with_target
def command(target: Target, /, **options: Any) -> None:
    """Serve this memory over HTTP: the web page at /ui, the API at /v1, /healthz and /metrics.

    Every request needs a key, on this machine as well: recollect keys makes them. Where there is
    none yet, the first one is made and shown on the terminal, this once; it opens every space. A
    worker distils what sessions leave, unless --no-work says that other processes do. All spaces
    are served, whatever --space says: a key says which one is seen.

    SIGTERM and Ctrl-C stop it: it takes no more requests and lets those under way finish. Put a
    proxy that speaks TLS before it where others can reach it.

    \b
    Examples:
      recollect serve
      recollect serve --agent assistant
      recollect serve --host 0.0.0.0 --port 80 --store postgresql://localhost/memory --no-work
      curl -H "Authorization: Bearer $KEY" http://127.0.0.1:8400/v1/spaces
    """
    asked = _Asked(**options)
    target.note_all_spaces("all of them are served, and keys are bound to one")
    app, server = (
        _needed("recollect.interfaces.http.app"),
        _needed("recollect.interfaces.http.server"),
    )
    site = _needed("recollect.interfaces.web.site") if asked.pages else None
    level = logging.INFO if asked.verbose else logging.WARNING
    with logged(level, as_json=target.as_json), target.open(metrics=True) as memory:
        limits = app.Limits(
            body_bytes_max=asked.body_bytes_max,
            rate_per_second=asked.rate,
            burst=max(1, round(2 * asked.rate)),
        )
        if asked.work:
            memory.worker().start()

        def say_ready(url: str) -> None:
            if target.as_json:
                write_json({"url": url})
            else:
                note(f"Serving {url}/v1" + (f", and for people {url}/ui" if asked.pages else ""))
            _say_key(memory, target)
            # What was loaded so far stays: no collection has to go through it with every request.
            gc.freeze()

        api = app.Api(memory, limits, asked.agents)
        api.start()
        routes = site.Site(api, memory).routes() if site is not None else ()
        server.serve(api, address=(asked.host, asked.port), say_ready=say_ready, pages=routes)


def _say_key(memory: recollect.Memory, target: Target) -> None:
    """Make the first key, where somebody can see it: a log is no place for a secret."""
    if memory.store.api_keys.list("", 1):
        return
    if not sys.stderr.isatty():
        note(f"There is no key yet: recollect keys create NAME --all-spaces{target.arguments}")
        return
    key, secret = make_key(memory, FIRST_KEY, space=None, scope=Scope.ADMIN)
    note(f"The first key, for every space, shown this once ({key.id}):\n  {secret}")


def _needed(module: str) -> Any:
    """A module that needs a web server, which is an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("recollect"):
            raise
        raise MissingExtra(
            "recollect serve needs a web server and templates: pip install 'recollect[http]'"
        ) from error
