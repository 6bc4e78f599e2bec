"""Runs the API on a socket until a signal says to stop; then ends what is under way, tidily.

Whoever does not send the head of a request in time is left, as is whoever does not read.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import uvicorn
from starlette.routing import BaseRoute
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.errors import InvalidValue
from recollect.interfaces.http.app import Api, build_app

CONNECTIONS_MAX = 1024
HEAD_SECONDS = 15.0
HEAD_BYTES_MAX = 65_536
KEEP_ALIVE_SECONDS = 30
GRACE_SECONDS = 10
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class ImpatientProtocol(H11Protocol):
    """Waits only so long for the head of a request, however slowly its bytes come in."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_head()  # the next request has begun
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Server(uvicorn.Server):
    """Tells the API first when it is to stop, so that no stream keeps it from doing so."""

    def __init__(self, api: Api, pages: Sequence[BaseRoute] = ()) -> None:
        self._api = api
        super().__init__(
            uvicorn.Config(
                build_app(api, pages),
                http=ImpatientProtocol,
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
