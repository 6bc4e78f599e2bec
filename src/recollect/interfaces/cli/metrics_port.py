"""A worker's figures over HTTP: one page, for Prometheus, and nothing else.

It has no key: there is nothing on it but names of verbs and numbers.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from recollect.errors import InvalidValue, RecollectError
from recollect.interfaces.http.metrics import store_lines
from recollect.memory import Memory
from recollect.observing.exposition import TEXT_TYPE
from recollect.observing.metrics import VERBS

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
