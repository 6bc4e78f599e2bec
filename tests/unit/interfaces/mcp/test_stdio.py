"""Lines as they come off a pipe or a file: bounded, whole, in whatever pieces they were written."""

from __future__ import annotations

import os
import tempfile
import threading

import anyio

from recollect.interfaces.mcp.stdio import TOO_LONG, bounded_lines


def lines_of(written: bytes, bytes_max: int) -> list[bytes]:
    reads, writes = os.pipe()

    def write() -> None:
        with os.fdopen(writes, "wb") as stream:
            stream.write(written)

    async def read(descriptor: int) -> list[bytes]:
        return [line async for line in bounded_lines(descriptor, bytes_max)]

    writer = threading.Thread(target=write)
    writer.start()
    found = anyio.run(read, reads)
    writer.join()
    os.close(reads)
    with tempfile.TemporaryFile() as file:
        file.write(written)
        file.seek(0)
        assert anyio.run(read, file.fileno()) == found
    return found


def test_lines_come_whole_and_empty_ones_do_not_come() -> None:
    assert lines_of(b"one\n\n  \r\ntwo\nthree", 100) == [b"one", b"two", b"three"]


def test_a_line_over_the_limit_is_dropped_and_what_follows_is_read() -> None:
    written = b"a" * 10 + b"\n" + b"b" * 11 + b"\n" + b"c" * 1_000_000 + b"\nlast\n"
    assert lines_of(written, 10) == [b"a" * 10, TOO_LONG, TOO_LONG, b"last"]


def test_a_line_over_the_limit_without_an_end_is_never_held() -> None:
    assert lines_of(b"x" * 5_000_000, 1000) == []
