"""Runs the API on a socket until a signal says to stop; then ends what is under way, tidily."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn
from starlette.routing import BaseRoute

from recollect.errors import InvalidValue
from recollect.interfaces.http.app import Api, build_app
from recollect.interfaces.http.protocol import HEAD_BYTES_MAX, protocol

CONNECTIONS_MAX = 1024
KEEP_ALIVE_SECONDS = 30
GRACE_SECONDS = 10
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Server(uvicorn.Server):
    """Tells the API first when it is to stop, so that no stream keeps it from doing so."""

    def __init__(self, api: Api, pages: Sequence[BaseRoute] = ()) -> None:
        self._api = api
        super().__init__(
            uvicorn.Config(
                build_app(api, pages),
                http=protocol(),
                ws="none",
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
        self._api.stop()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._api.stop()
        super().handle_exit(sig, frame)


def serve(
    api: Api,
    *,
    address: tuple[str, int],
    say_ready: Callable[[str], None],
    pages: Sequence[BaseRoute] = (),
) -> None:
    """Serve until a signal says to stop. InvalidValue: it cannot listen there."""
    host, port = address
    with listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        say_ready(f"http://{shown}:{listener.getsockname()[1]}")
        # It raises the signal that stopped it once more; by then that has been heeded.
        before = {each: signal.signal(each, _heeded) for each in STOP_SIGNALS}
        try:
            Server(api, pages).run(sockets=[listener])
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def _heeded(_signum: int, _frame: object) -> None:
    """Nothing more to do."""


def listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_MAX)
    except (OSError, OverflowError) as error:
        raise InvalidValue(f"cannot listen on {host}:{port}: {error}") from error
