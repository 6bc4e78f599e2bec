"""Runs the API on a socket until a signal says to stop; then ends what is under way, tidily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn
from starlette.routing import BaseRoute

from recollect.interfaces.http.app import Api, build_app
from recollect.interfaces.http.listening import (
    CONNECTIONS_MAX,
    GRACE_SECONDS,
    KEEP_ALIVE_SECONDS,
    listening,
    shown_address,
    stopped_once,
)
from recollect.interfaces.http.protocol import HEAD_BYTES_MAX, protocol


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
        say_ready(shown_address(host, listener))
        with stopped_once():
            Server(api, pages).run(sockets=[listener])
