"""`recollect worker`: a worker in the foreground, until it is told to stop."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click

import recollect
from recollect.errors import InvalidValue, RecollectError
from recollect.interfaces.cli.logs import logged
from recollect.interfaces.cli.output import counted, json_line, note, one_line, write_json
from recollect.interfaces.cli.signals import told_to_stop
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.http.metrics import store_lines
from recollect.memory import Memory
from recollect.observing.exposition import TEXT_TYPE
from recollect.observing.metrics import VERBS
from recollect.worker import Worker

PATH = "/metrics"
READ_SECONDS = 10


@contextmanager
def metrics_served(memory: Memory, host: str, port: int) -> Iterator[str]:
    """Serve the figures of this process until the end of the context; where, as a URL.

    InvalidValue: it cannot listen there.
    """
    handler = type("Handler", (_Handler,), {"text": staticmethod(lambda: _text(memory))})
    kind = _OverIPv6 if ":" in host else ThreadingHTTPServer
    try:
        server = kind((host, port), handler)
    except (OSError, OverflowError) as error:
        raise InvalidValue(f"cannot listen on {host}:{port}: {error}") from error
    thread = threading.Thread(target=server.serve_forever, name="recollect-metrics", daemon=True)
    thread.start()
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _text(memory: Memory) -> str:
    return "\n".join([*VERBS.lines(), *store_lines(memory)]) + "\n"


class _OverIPv6(ThreadingHTTPServer):
    """For an address like ::1."""

    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    """Answers whoever asks for the figures."""

    text: Callable[[], str]
    timeout = READ_SECONDS

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != PATH:
            return self._answer(HTTPStatus.NOT_FOUND, f"there is {PATH}\n")
        try:
            text = self.text()
        except RecollectError as error:  # whoever scrapes sees that the store is away
            return self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{type(error).__name__}\n")
        return self._answer(HTTPStatus.OK, text)

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", TEXT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its own name
        """Nothing: a line for every scrape says nothing."""


METRICS_HOST = "127.0.0.1"


@click.command("worker")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="Sessions processed at the same time. Default: the setting worker_concurrency.",
)
@click.option(
    "--name",
    metavar="OWNER",
    help="What status calls this worker. Default: host, process and a random part.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Serve /metrics for Prometheus on this port; 0: any that is free. Default: not at all.",
)
@click.option(
    "--metrics-host",
    default=METRICS_HOST,
    show_default=True,
    metavar="NAME",
    help="Where --metrics-port listens.",
)
@click.option("--verbose", is_flag=True, help="Also log what is read, not only what came of it.")
@click.option("--quiet", is_flag=True, help="Log only what goes wrong.")
@with_target
def command(
    target: Target,
    concurrency: int | None,
    name: str | None,
    metrics_port: int | None,
    metrics_host: str,
    verbose: bool,
    quiet: bool,
) -> None:
    """Process sessions as they are marked, until told to stop.

    Any number of workers, on any number of machines, may share a store: each session is processed
    by one at a time, and if that one dies another takes over when its lease has run out. A worker
    also runs the idle sweep, and looks for forgotten sessions when it starts.

    SIGTERM and Ctrl-C stop it: it claims nothing more, lets what runs finish, and after
    worker_grace_seconds gives back what has not. A second one ends it at once, which costs the
    others no more than the time of a lease. It logs a line for each session on standard error;
    with --json each is an object. It works for all spaces, whatever --space says.

    \b
    Examples:
      recollect worker
      recollect worker --store postgresql://localhost/memory --concurrency 16 --name worker-1
      RECOLLECT_LEASE_SECONDS=300 recollect worker --quiet
      recollect worker --metrics-port 9464
    """
    target.note_all_spaces("a worker works for all of them; recollect work takes one")
    if verbose and quiet:
        raise click.UsageError("Give --verbose or --quiet, not both.")
    if name is not None and not name.strip():
        raise click.UsageError("--name is empty.")
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    with (
        logged(level, as_json=target.as_json),
        target.open(
            worker_concurrency=concurrency, metrics=None if metrics_port is None else True
        ) as memory,
        _metrics(memory, metrics_host, metrics_port) as figures,
        told_to_stop() as wait_until_told,
    ):
        worker = memory.worker(owner=name)
        worker.start()
        _say_ready(worker, memory, as_json=target.as_json)
        if figures is not None:
            note(json_line({"metrics": figures}) if target.as_json else f"Figures: {figures}")
        told = wait_until_told()
        if not target.as_json:
            grace = memory.settings.worker_grace_seconds
            note(f"Stopping ({told.name}), within {grace:g} s; once more ends it at once.")
        worker.stop()
    if target.as_json:
        write_json({"owner": worker.owner, "stopped_by": told.name})
    else:
        note("Stopped.")


def _metrics(
    memory: recollect.Memory, host: str, port: int | None
) -> AbstractContextManager[str | None]:
    return nullcontext() if port is None else metrics_served(memory, host, port)


def _say_ready(worker: Worker, memory: recollect.Memory, *, as_json: bool) -> None:
    settings, store = memory.settings, memory.store.describe()
    if as_json:
        ready = {
            "owner": worker.owner,
            "store": {"kind": store.kind, "location": store.location},
            "concurrency": settings.worker_concurrency,
            "tick_seconds": settings.worker_tick_seconds,
            "lease_seconds": worker.lease_seconds,
        }
        note(json_line({"ready": ready}))
        return
    note(
        f"Worker {one_line(worker.owner)} is ready: {store.kind}, {one_line(store.location)};"
        f" {counted(settings.worker_concurrency, 'session')} at a time,"
        f" looks every {settings.worker_tick_seconds:g} s, lease {worker.lease_seconds:g} s."
    )
