"""Guards a connection between the socket and uvicorn: its timeouts, and what is not a request.

A client that does not send the head of a request in time is disconnected, as is one that reads
nothing of its answer. Nothing is sent that a client could take for another answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.interfaces.http.problems import PROBLEM_TYPE, HttpProblem

HEAD_SECONDS = 15.0
HEAD_BYTES_MAX = 65_536
UNREAD_SECONDS = 60.0


class JoinedWrites:
    """A transport that sends the head of an answer with what follows: two packets cost more."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        is_head = data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n")
        if is_head and data[9:10] != b"1":  # one that only says to go on is sent at once
            self._head = data
        elif self._head or data:
            data, self._head = self._head + data, b""
            self._transport.write(data)

    def close(self) -> None:
        if self._head and not self._transport.is_closing():
            self._transport.write(self._head)
        self._transport.close()


class GuardedProtocol(H11Protocol):
    """uvicorn's, for clients that keep it waiting."""

    _deadline: asyncio.TimerHandle | None = None  # of the head of a request
    _unread: asyncio.TimerHandle | None = None  # of what was sent and nobody has read

    def connection_made(self, transport: Any) -> None:
        super().connection_made(JoinedWrites(transport))  # type: ignore[arg-type]  # it is one
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and not self._is_answering():
            self._wait_for_head()  # the next request has begun
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with a request, unless the client took it for the answer to another."""
        if self._is_draining():
            self._leave()
        elif self._is_answering() and (not self.cycle.more_body or self.cycle.response_started):
            self.cycle.keep_alive = False  # what came before is answered, and that is the end
        elif not self.transport.is_closing():
            self.transport.write(_refusal(msg))
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self._leave()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _is_draining(self) -> bool:
        """Whether the rest of a body still arrives although its request has been answered.

        Closing now would take that answer from a client that is still sending.
        """
        is_over = self.conn.our_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)
        return is_over and self.conn.their_state in (h11.SEND_BODY, h11.ERROR)

    def _wait_for_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._leave)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch(self) -> None:
        self._stop_watching()
        unread = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self._look_again, unread)

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _look_again(self, unread_before: int) -> None:
        """Disconnect a client that has read nothing meanwhile; a slow one stays."""
        if self.transport.get_write_buffer_size() < unread_before:
            self._watch()
        else:
            self.transport.abort()

    def _leave(self) -> None:
        """Close without waiting for ever until the client has read what was sent before."""
        self.transport.close()
        if self._unread is None and self.transport.get_write_buffer_size():
            self._watch()


def _refusal(detail: str) -> bytes:
    """An answer to what is no request that an application could be asked."""
    body = HttpProblem(status=400, kind="malformed", detail=detail).answer().encoded()
    head = f"content-type: {PROBLEM_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close"
    return f"HTTP/1.1 400 Bad Request\r\n{head}\r\n\r\n".encode() + body
