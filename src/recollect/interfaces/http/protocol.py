"""A connection, between the socket and uvicorn: which parser reads it, and how long anyone waits.

Whoever does not send the head of a request in time is left, as is whoever reads nothing of what is
sent. The head of an answer goes out together with its body: to send twice costs more than the rest
of the protocol. Nothing is said on a connection that a client could take for another answer.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.interfaces.http.messages import PROBLEM_TYPE
from recollect.interfaces.http.problems import Problem

HEAD_SECONDS = 15.0
HEAD_BYTES_MAX = 65_536
UNREAD_SECONDS = 60.0
JOINED_BYTES_MAX = 65_536  # more than this is not copied to save a call


class Joined(asyncio.Transport):
    """A transport that keeps the head of an answer until its body comes."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._head = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._head and _is_head(data):
            self._head = bytes(data)
        elif self._head and len(data) <= JOINED_BYTES_MAX:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self.flush()
            self._transport.write(data)

    def flush(self) -> None:
        """Send what is kept: nothing follows it."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        if not self._transport.is_closing():
            self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()


def _is_head(data: bytes | bytearray | memoryview) -> bool:
    """Of an answer; one that only says to go on is sent at once."""
    if isinstance(data, memoryview):
        return False
    return data.startswith(b"HTTP/1.1 ") and data[9:10] != b"1" and data.endswith(b"\r\n\r\n")


def _refusal(words: str) -> bytes:
    """An answer to what is no request that an application could be asked."""
    problem = Problem(status=400, kind="malformed", detail=words)
    body = problem.answer().encoded()
    head = (
        "HTTP/1.1 400 Bad Request",
        f"content-type: {PROBLEM_TYPE}",
        f"content-length: {len(body)}",
        "connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body


class Impatient(asyncio.Protocol):
    """Mixed into a protocol of uvicorn's, whichever parser it has."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any  # of a request and its answer; its class is uvicorn's, one for each parser
    flow: Any

    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _joined: Joined

    def connection_made(self, transport: Any) -> None:
        self._joined = Joined(transport)
        super().connection_made(self._joined)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and not self._is_answering():
            self._wait_for_head()  # the next request has begun
        is_next = self._is_answering() and not self.cycle.more_body
        is_unwanted = self._is_draining()
        super().data_received(data)
        if is_next:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self.flow.pause_reading()  # until what came before is answered
        elif self._is_answering():
            self._stop_waiting()
        elif self._deadline is not None and not is_unwanted:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with a request, unless the client took it for the answer to another."""
        if self._is_draining():
            self._leave()
        elif self._is_answering() and not self._is_at_fault():
            self.cycle.keep_alive = False  # what came before is answered, and that is the end
        elif not self.transport.is_closing():
            self.transport.write(_refusal(msg))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def on_response_complete(self) -> None:
        self._joined.flush()
        super().on_response_complete()  # type: ignore[misc]  # uvicorn's

    def timeout_keep_alive_handler(self) -> None:
        self._leave()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _is_at_fault(self) -> bool:
        """Whether what is wrong belongs to the only request there is, and nothing is said yet."""
        is_alone = not getattr(self, "pipeline", ())
        return is_alone and self.cycle.more_body and not self.cycle.response_started

    def _is_draining(self) -> bool:
        """Whether the rest of a body comes that nobody wants: its request has been answered.

        Whoever closed now would take that answer from a client who is still sending.
        """
        raise NotImplementedError

    def _wait_for_head(self) -> None:
        self._head_bytes = 0
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
        """Whoever has taken nothing meanwhile is left; slowly is enough."""
        if self.transport.get_write_buffer_size() < unread_before:
            self._watch()
        else:
            self.transport.abort()

    def _leave(self) -> None:
        """Close, and do not wait for ever until what was sent before is read."""
        self.transport.close()
        if self._unread is None and self.transport.get_write_buffer_size():
            self._watch()


class ImpatientH11(Impatient, H11Protocol):
    """With the parser that is always there."""

    def _is_draining(self) -> bool:
        return self._is_over() and self.conn.their_state in (h11.SEND_BODY, h11.ERROR)

    def _is_over(self) -> bool:
        return self.conn.our_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)


class ImpatientFast(Impatient):
    """Mixed in where the fast parser is. A request to upgrade is one as any other to it.

    By itself it takes the body of such a one for another protocol: what is in it would be lost, or
    read as requests.
    """

    parser: Any
    headers: list[tuple[bytes, bytes]]
    url: bytes

    _data = b""

    def data_received(self, data: bytes) -> None:
        self._data = data
        super().data_received(data)
        self._data = b""

    def on_headers_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_headers_complete()  # type: ignore[misc]  # uvicorn's

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()  # type: ignore[misc]  # uvicorn's
            self.cycle.more_body = False  # uvicorn leaves it where the answer was first

    def _unsupported_upgrade_warning(self) -> None:
        """Read it once more, without what asks for the upgrade, and then what comes after it."""
        asked, data, self._data = sys.exception(), self._data, b""
        method: bytes = self.parser.get_method()
        if asked is None or not data or method == b"CONNECT":  # once in what came at once is enough
            self.send_400_response("There is nothing to upgrade to.")
            return
        first = b" ".join((method, self.url, b"HTTP/" + self.parser.get_http_version().encode()))
        kept = [b": ".join(each) for each in self.headers if each[0] != b"upgrade"]
        super().data_received(b"\r\n".join((first, *kept, b"", data[asked.args[0] :])))

    def _is_draining(self) -> bool:
        cycle = self.cycle
        return cycle is not None and cycle.response_complete and cycle.more_body


def protocol() -> type[asyncio.Protocol]:
    """With the fast parser where it is installed."""
    try:
        uvicorns = importlib.import_module("uvicorn.protocols.http.httptools_impl")
    except ModuleNotFoundError:
        return ImpatientH11
    return type("ImpatientHttpTools", (ImpatientFast, uvicorns.HttpToolsProtocol), {})
