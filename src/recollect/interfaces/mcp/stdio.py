"""The transport over standard input and output: bounded frames, all answered, nothing in between.

The SDK's own transport accepts lines of any length and any number of requests at once, drops
invalid frames, cannot be stopped while it reads, and abandons running calls when the input ends.
Here frames and open requests are limited, an invalid frame is answered with an error, a signal ends
the server in order, and at the end of input open requests are still answered.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

import anyio
from anyio import CancelScope, to_thread
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from recollect.interfaces.mcp.server import MemoryServer
from recollect.observing.log_text import trail

_log = logging.getLogger(__name__)

FRAME_BYTES_MAX = 16 * 1024 * 1024
OPEN_MAX = 64  # requests that are read and not answered
THREADS = 8  # calls that run at the same time
FINISH_SECONDS = 30  # for what is still asked when the input ends
CHUNK_BYTES = 65_536
WRITE_BYTES = select.PIPE_BUF  # a pipe that has room takes so much without waiting

TOO_LONG = b""  # what stands for a frame over the limit: no frame is empty


def serve_stdio(server: MemoryServer) -> None:
    """Serve the client at the other end until it hangs up, or a signal says to stop."""
    with _only_frames() as (reads, writes):
        anyio.run(_serve, server, reads, writes)


async def _serve(server: MemoryServer, reads: int, writes: int) -> None:
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    to_server, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    requests = OpenRequests()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_when_told, tasks.cancel_scope)
        tasks.start_soon(_write, writes, from_server, requests, tasks.cancel_scope)
        tasks.start_soon(_read, reads, to_server, outbound.clone(), requests)
        await server.run(inbound, outbound, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _stop_when_told(scope: CancelScope) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for told in signals:
            _log.info("stopping: %s", told.name)
            scope.cancel()


class OpenRequests:
    """Counts requests that were read and are not settled, and waits until there are fewer."""

    def __init__(self) -> None:
        self._count = 0
        self._fewer = anyio.Event()

    def begin(self) -> None:
        self._count += 1

    async def settle(self) -> None:
        self._count -= 1
        self._fewer.set()
        self._fewer = anyio.Event()

    async def wait_below(self, count: int) -> None:
        while self._count >= count:
            await self._fewer.wait()


async def _read(
    descriptor: int,
    to_server: ObjectSendStream[SessionMessage | Exception],
    replies: ObjectSendStream[SessionMessage],
    requests: OpenRequests,
) -> None:
    """Hand every frame on; the stream ends when the input has ended and all is settled."""
    async with to_server, replies:
        async for line in bounded_lines(descriptor, FRAME_BYTES_MAX):
            await requests.wait_below(OPEN_MAX)
            message, metadata = _parsed(line), None
            if isinstance(message, JSONRPCError) and message.id is None:
                await replies.send(SessionMessage(message))
                continue
            if isinstance(message, JSONRPCRequest):
                requests.begin()
                metadata = ServerMessageMetadata(on_request_unanswered=requests.settle)
            await to_server.send(SessionMessage(message, metadata))
        with anyio.move_on_after(FINISH_SECONDS):
            await requests.wait_below(1)


def _parsed(line: bytes) -> JSONRPCMessage:
    """The frame on a line, or the error to answer it with, which has no id."""
    if line is TOO_LONG:
        return _error(INVALID_REQUEST, f"a frame has at most {FRAME_BYTES_MAX:,} bytes")
    text = line.decode("utf-8", errors="replace")
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        if any(each["type"] == "json_invalid" for each in error.errors()):
            return _error(PARSE_ERROR, "not JSON")
        return _error(INVALID_REQUEST, "not a JSON-RPC message")


def _error(code: int, words: str, request_id: int | str | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=words))


async def bounded_lines(descriptor: int, bytes_max: int) -> AsyncIterator[bytes]:
    """The lines that say something; `TOO_LONG` in place of one that nobody should hold."""
    held, is_skipped = bytearray(), False
    while chunk := await _chunk(descriptor):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            held += end
            if is_skipped or len(held) > bytes_max:
                yield TOO_LONG
            elif held.strip():
                yield bytes(held)
            held, is_skipped = bytearray(), False
        held += rest
        if len(held) > bytes_max:
            held, is_skipped = bytearray(), True
    if held.strip() and not is_skipped:
        yield bytes(held)


async def _chunk(descriptor: int) -> bytes:
    with suppress(PermissionError):  # of a file, which nobody waits for
        await anyio.wait_readable(descriptor)
    try:
        return os.read(descriptor, CHUNK_BYTES)
    except OSError:
        return b""  # whatever it was, nothing more will come


async def _write(
    descriptor: int,
    from_server: ObjectReceiveStream[SessionMessage],
    requests: OpenRequests,
    scope: CancelScope,
) -> None:
    """Write every frame whole, one after the other; a client that is gone ends the server."""
    async with from_server:
        async for each in from_server:
            frame = memoryview(_frame(each.message))
            try:
                while frame:
                    with suppress(PermissionError):
                        await anyio.wait_writable(descriptor)
                    frame = frame[os.write(descriptor, frame[:WRITE_BYTES]) :]
            except OSError as error:
                _log.info("the client has hung up: %s", error.strerror)
                scope.cancel()
                return
            if isinstance(each.message, JSONRPCResponse | JSONRPCError) and (
                each.message.id is not None
            ):
                await requests.settle()


def _frame(message: JSONRPCMessage) -> bytes:
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError as failed:  # what has no encoding
        _log.error("an answer could not be written: %s", trail(failed))
        told = _error(
            INTERNAL_ERROR, "the answer could not be written", getattr(message, "id", None)
        )
        text = told.model_dump_json()
    return text.encode() + b"\n"


@contextmanager
def _only_frames() -> Iterator[tuple[int, int]]:
    """Descriptors of our own for the frames: what anybody prints goes to standard error."""
    sys.stdout.flush()
    reads, writes, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is none
            os.dup2(nothing, 1)
        yield reads, writes
    finally:
        sys.stdout.flush()
        os.dup2(reads, 0)
        os.dup2(writes, 1)
        for each in (reads, writes, nothing):
            os.close(each)
