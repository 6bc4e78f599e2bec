"""Frames over standard input and output: bounded, answered in full, and nothing else among them.

The SDK's own transport takes lines of any length, as many at once as come, drops what is no frame,
cannot be stopped while it reads, and gives up what runs when the input ends. Here a frame has a
limit, only so many requests are open at a time, what is no frame is answered with an error, a
signal ends the server tidily, and at the end of input what was asked is still answered.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from anyio import CancelScope, CapacityLimiter, from_thread, lowlevel, to_thread
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
STOP_SECONDS = 1  # that a client which takes nothing is given, once the server ends
CHUNK_BYTES = 65_536
WRITE_BYTES = select.PIPE_BUF  # a pipe that has room takes so much without waiting
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

TOO_LONG = b""  # what stands for a frame over the limit: no frame is empty


def serve_stdio(server: MemoryServer) -> None:
    """Serve the client at the other end until it hangs up, or a signal says to stop."""
    with _only_frames() as (reads, writes):
        anyio.run(serve_descriptors, server, reads, writes)


async def serve_descriptors(server: MemoryServer, reads: int, writes: int) -> None:
    """The same over two file descriptors."""
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    to_server, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    traffic = _Traffic()
    async with anyio.create_task_group() as tasks:
        scope = tasks.cancel_scope
        tasks.start_soon(_stop_when_told, scope, traffic)
        tasks.start_soon(_write, writes, from_server, traffic, scope)
        tasks.start_soon(_read, reads, to_server, outbound.clone(), traffic)
        await server.run(inbound, outbound, server.create_initialization_options())
        traffic.is_over.set()
        scope.cancel()


async def _stop_when_told(scope: CancelScope, traffic: _Traffic) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    with anyio.open_signal_receiver(*STOP_SIGNALS) as signals:
        async for told in signals:
            _log.info("stopping: %s", told.name)
            traffic.is_over.set()
            scope.cancel()


class _Traffic:
    """Counts requests that were read and are not settled, and waits until there are fewer."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self._open = 0
        self._fewer = anyio.Event()

    def begin(self) -> None:
        self._open += 1

    async def settle(self) -> None:
        self._open -= 1
        self._fewer.set()
        self._fewer = anyio.Event()

    async def wait_below(self, count: int) -> None:
        while self._open >= count:
            await self._fewer.wait()


# in


async def _read(
    descriptor: int,
    to_server: ObjectSendStream[SessionMessage | Exception],
    replies: ObjectSendStream[SessionMessage],
    traffic: _Traffic,
) -> None:
    """Hand every frame on; the stream ends when the input has ended and all is settled."""
    lines_in, lines = anyio.create_memory_object_stream[bytes](0)
    reader = threading.Thread(
        target=_pump,
        args=(descriptor, lines_in, lowlevel.current_token()),
        name="recollect-mcp-input",
        daemon=True,  # a read cannot be cancelled, and nobody waits for it
    )
    reader.start()
    async with to_server, replies:
        async for line in lines:
            await traffic.wait_below(OPEN_MAX)
            message = _parsed(line)
            if isinstance(message, JSONRPCError) and message.id is None:
                await replies.send(SessionMessage(message))
                continue
            is_request = isinstance(message, JSONRPCRequest)
            if is_request:
                traffic.begin()
            unanswered = ServerMessageMetadata(on_request_unanswered=traffic.settle)
            await to_server.send(SessionMessage(message, unanswered if is_request else None))
        with anyio.move_on_after(FINISH_SECONDS):
            await traffic.wait_below(1)


def _parsed(line: bytes) -> JSONRPCMessage:
    """The frame on a line, or the error to answer it with, which has no id."""
    if line is TOO_LONG:
        words = f"a frame has at most {FRAME_BYTES_MAX:,} bytes"
        return _frameless(INVALID_REQUEST, words)
    try:
        message: JSONRPCMessage = jsonrpc_message_adapter.validate_json(
            line.decode("utf-8", errors="replace"), by_name=False
        )
    except ValidationError as error:
        is_json = all(each["type"] != "json_invalid" for each in error.errors())
        code = INVALID_REQUEST if is_json else PARSE_ERROR
        return _frameless(code, "not a JSON-RPC message" if is_json else "not JSON")
    return message


def _frameless(code: int, words: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=words))


def _pump(descriptor: int, lines: ObjectSendStream[bytes], token: lowlevel.EventLoopToken) -> None:
    """Read lines in a thread of its own, each when the one before was taken."""
    try:
        for line in bounded_lines(descriptor, FRAME_BYTES_MAX):
            from_thread.run(lines.send, line, token=token)
        from_thread.run(lines.aclose, token=token)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, RuntimeError):
        return  # the server has ended first


def bounded_lines(descriptor: int, bytes_max: int) -> Iterator[bytes]:
    """The lines that say something; `TOO_LONG` in place of one that nobody should hold."""
    held = bytearray()
    is_skipped = False
    while chunk := _chunk(descriptor):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            held += part
            if is_skipped or len(held) > bytes_max:
                yield TOO_LONG
            elif held.strip():
                yield bytes(held)
            held.clear()
            is_skipped = False
        held += rest
        if len(held) > bytes_max:
            held.clear()
            is_skipped = True
    if held.strip() and not is_skipped:
        yield bytes(held)


def _chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK_BYTES)
    except OSError:
        return b""  # whatever it was, nothing more will come


# out


async def _write(
    descriptor: int,
    from_server: ObjectReceiveStream[SessionMessage],
    traffic: _Traffic,
    scope: CancelScope,
) -> None:
    """Write every frame whole, one after the other; a client that is gone ends the server."""
    alone = CapacityLimiter(1)  # calls that fill the other threads must not hold up answers
    async with from_server:
        async for each in from_server:
            try:
                frame = _frame(each.message)
                await to_thread.run_sync(
                    _write_all, descriptor, frame, traffic.is_over, limiter=alone
                )
            except OSError as error:
                _log.info("the client has hung up: %s", error.strerror)
                scope.cancel()
                return
            if isinstance(each.message, JSONRPCResponse | JSONRPCError) and (
                each.message.id is not None
            ):
                await traffic.settle()


def _frame(message: JSONRPCMessage) -> bytes:
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError as failed:  # what has no encoding
        _log.error("an answer could not be written: %s", trail(failed))
        error = ErrorData(code=INTERNAL_ERROR, message="the answer could not be written")
        request_id = getattr(message, "id", None)
        text = JSONRPCError(jsonrpc="2.0", id=request_id, error=error).model_dump_json()
    return text.encode() + b"\n"


def _write_all(descriptor: int, frame: bytes, is_over: threading.Event) -> None:
    """Write a frame whole. TimeoutError: the server ends, and nobody takes it."""
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    view = memoryview(frame)
    while view:
        # A write cannot be cancelled: who does not read would keep the server for ever.
        if room.poll(STOP_SECONDS * 1000):
            view = view[os.write(descriptor, view[:WRITE_BYTES]) :]
        elif is_over.is_set():
            raise TimeoutError(errno.ETIMEDOUT, "nobody takes the answer")


@contextmanager
def _only_frames() -> Iterator[tuple[int, int]]:
    """Descriptors of our own for the frames: what anybody prints goes to standard error."""
    sys.stdout.flush()
    reads, writes = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        os.dup2(_standard_error(nothing), 1)
        yield reads, writes
    finally:
        sys.stdout.flush()
        os.dup2(reads, 0)
        os.dup2(writes, 1)
        os.close(writes)
        os.close(nothing)  # `reads` stays open: a thread may still wait for it


def _standard_error(otherwise: int) -> int:
    try:
        os.fstat(2)
    except OSError:
        return otherwise
    return 2
