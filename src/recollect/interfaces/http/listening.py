"""What every server here needs: an address to listen on, and signals that end it once."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from recollect.errors import InvalidValue

CONNECTIONS_MAX = 1024
KEEP_ALIVE_SECONDS = 30
GRACE_SECONDS = 10
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def listening(host: str, port: int) -> socket.socket:
    """InvalidValue: nobody can listen there."""
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
