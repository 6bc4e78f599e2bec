"""Runs an application on a socket until a signal stops it; requests in progress are finished."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp

from recollect.errors import InvalidValue
from recollect.interfaces.http.guards import HEAD_BYTES_MAX, GuardedProtocol

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from recollect.interfaces.http.app import Api

CONNECTIONS_MAX = 1024
KEEP_ALIVE_SECONDS = 30
GRACE_SECONDS = 10
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Server(uvicorn.Server):
    """Closes connections that keep it waiting, and says first that it is to stop.

    No stream then keeps it from doing so.
    """

    def __init__(
        self, app: ASGIApp, on_stop: Callable[[], None] | None = None, drain_seconds: float = 0
    ) -> None:
        self._on_stop = on_stop or (lambda: None)
        self._drain_seconds = drain_seconds
        self._is_draining = False
        super().__init__(
            uvicorn.Config(
                app,
                http=GuardedProtocol,
                ws="none",  # nothing here speaks it
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=CONNECTIONS_MAX,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
                h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            )
        )

    def stop(self) -> None:
        self._on_stop()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, once balancers have had the time to see that this server is not ready."""
        is_first = self._drain_seconds > 0 and not self._is_draining
        self._is_draining = True
        self._on_stop()
        if is_first:
            timer = threading.Timer(self._drain_seconds, super().handle_exit, (sig, frame))
            timer.daemon = True
            timer.start()
        else:
            super().handle_exit(sig, frame)

    def serve_at(self, address: tuple[str, int], say_ready: Callable[[str], None]) -> None:
        """Serve until a signal says to stop. InvalidValue: it cannot listen there."""
        host, port = address
        with listening(host, port) as listener:
            say_ready(shown_address(host, listener))
            with stopped_once():
                self.run(sockets=[listener])


def serve(
    api: Api,
    *,
    address: tuple[str, int],
    say_ready: Callable[[str], None],
    pages: Sequence[BaseRoute] = (),
    drain_seconds: float = 0,
) -> None:
    """Serve the API, and pages beside it."""
    Server(api.beside(pages), api.stop, drain_seconds).serve_at(address, say_ready)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there. InvalidValue: nobody can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_MAX)
    except (OSError, OverflowError) as error:
        raise InvalidValue(f"cannot listen on {host}:{port}: {error}") from error


def shown_address(host: str, listener: socket.socket) -> str:
    """Where clients find it."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


@contextmanager
def stopped_once() -> Iterator[None]:
    """A server raises the signal that stopped it once more; by then that has been heeded."""
    before = {each: signal.signal(each, _heeded) for each in STOP_SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _heeded(_signum: int, _frame: object) -> None:
    """Nothing more to do."""
