"""Lines of JSON from a file: each once, in constant memory, and a half one is waited for."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.importers.items import NOT_UTF8, Odd, Trouble
from recollect.importers.streams import Line, lines


def read(data: bytes, offset: int = 0, number: int = 0, bytes_max: int = 1000) -> list[Line]:
    return list(lines(io.BytesIO(data), offset=offset, number=number, bytes_max=bytes_max))


def troubles(found: list[Line]) -> list[Trouble]:
    return [line.entry.trouble for line in found if isinstance(line.entry, Odd)]


def test_each_line_says_where_the_next_one_begins() -> None:
    data = b'{"a": 1}\n\n  \r\n{"b": 2}\r\n'
    assert read(data) == [Line({"a": 1}, 1, 9), Line({"b": 2}, 4, len(data))]


def test_a_broken_line_is_said_and_the_next_one_is_read() -> None:
    found = read(b'{"a": 1}\n{"b": \n\xff\xfe\x00\n{"c": 3}\n')
    assert [line.entry for line in found if not isinstance(line.entry, Odd)] == [{"a": 1}, {"c": 3}]
    assert [line.number for line in found] == [1, 2, 3, 4]
    assert troubles(found) == [Trouble.BROKEN, Trouble.BROKEN]
    assert not any(line.is_cut for line in found)


def test_a_line_that_is_half_written_is_not_consumed() -> None:
    data = b'{"a": 1}\n{"b": "half'
    *_, last = read(data)
    assert (last.is_cut, last.end) == (True, 9)
    whole = data + b' of it"}\n'
    assert read(whole, offset=last.end, number=1) == [Line({"b": "half of it"}, 2, len(whole))]


def test_a_whole_object_without_an_end_of_line_is_read_and_not_read_again() -> None:
    [line] = read(b'{"a": 1}')
    assert (line.entry, line.is_cut, line.end) == ({"a": 1}, False, 8)
    assert read(b'{"a": 1}\n{"b": 2}\n', offset=8, number=1) == [Line({"b": 2}, 2, 18)]


@pytest.mark.parametrize("tail", [b"12", b"tru", b'"ab', b"[1", b"true"])
def test_what_may_still_become_something_else_is_waited_for(tail: bytes) -> None:
    [line] = read(tail)
    assert line.is_cut


def test_bytes_that_are_no_text_cost_their_characters_and_not_the_line() -> None:
    [line] = read(b'{"a": "caf\xe9"}\n')
    assert line.entry == {"a": "caf\ufffd"}
    assert line.replaced == Odd(trouble=Trouble.BROKEN, detail=NOT_UTF8, line=1)


def test_a_mark_of_utf_8_at_the_beginning_is_no_part_of_it() -> None:
    [line] = read(b'\xef\xbb\xbf{"a": 1}\n')
    assert line.entry == {"a": 1}


def test_a_line_that_is_too_long_is_passed_over() -> None:
    data = b'{"a": "' + b"x" * 5000 + b'"}\n{"b": 2}\n'
    found = read(data)
    assert troubles(found) == [Trouble.TOO_LARGE]
    assert found[1:] == [Line({"b": 2}, 2, len(data))]


def test_a_long_line_that_is_not_over_yet_is_waited_for() -> None:
    data = b'{"a": 1}\n' + b"x" * 5000
    *_, last = read(data)
    assert (last.is_cut, last.end) == (True, 9)


def test_a_nesting_bomb_is_a_broken_line() -> None:
    assert troubles(read(b"[" * 100_000 + b"\n", bytes_max=200_000)) == [Trouble.BROKEN]


def test_a_large_file_without_a_line_is_read_in_constant_memory() -> None:
    class Zeros(io.RawIOBase):
        left = 64 * 2**20

        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

        def seek(self, offset: int, whence: int = 0) -> int:
            return offset

        def readinto(self, buffer: object) -> int:
            assert isinstance(buffer, memoryview)
            count = min(len(buffer), self.left)
            buffer[:count] = b"x" * count
            self.left -= count
            return count

    tracemalloc.start()
    try:
        found = list(lines(io.BufferedReader(Zeros()), bytes_max=10_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert troubles(found) == [Trouble.TOO_LARGE]
    assert peak < 8 * 2**20


@given(st.lists(st.dictionaries(st.text(), st.text(), max_size=2), max_size=6), st.data())
def test_going_on_from_any_line_reads_the_rest(
    entries: list[dict[str, str]], data: st.DataObject
) -> None:
    text = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
    found = read(text, bytes_max=10_000)
    assert [line.entry for line in found] == entries
    if found:
        at = data.draw(st.sampled_from(found))
        rest = read(text, offset=at.end, number=at.number, bytes_max=10_000)
        assert rest == found[at.number :]
