"""JSON documents cut into elements: the same ones as a parser finds, in flat memory."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.importers.items import Odd, Trouble
from recollect.importers.streams import elements
from tests.unit.strategies import json_values

CUT_OFF = Odd(trouble=Trouble.BROKEN, detail="cut off")
TOO_DEEP = Odd(trouble=Trouble.TOO_LARGE, detail="nested too deep")


class Dripping(io.RawIOBase):
    """A stream that gives the pieces it is made of, and never more at once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, size: int = -1) -> bytes:
        return next(self._pieces, b"")


def drops(data: bytes, size: int) -> BinaryIO:
    """So that every boundary falls somewhere between two chunks."""
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    return cast(BinaryIO, Dripping(pieces))


def read(data: bytes, *names: str, bytes_max: int = 2**20, size: int = 2**16) -> list[object]:
    return list(elements(drops(data, size), names=names, bytes_max=bytes_max))


def as_json_has_it(value: Any) -> Any:
    return json.loads(json.dumps(value))


sizes = st.integers(1, 7)


@given(values=st.lists(json_values, max_size=5), indent=st.sampled_from([None, 1]), size=sizes)
@pytest.mark.parametrize("name", ["", "results"])
def test_the_elements_are_those_that_a_parser_finds(
    name: str, values: list[Any], indent: int | None, size: int
) -> None:
    document = {"before": values, name: values, "after": {"results": [1]}} if name else values
    data = json.dumps(document, indent=indent).encode()
    assert read(data, "results", size=size) == as_json_has_it(values)


@given(values=st.lists(json_values.map(lambda value: {"v": value}), max_size=5), size=sizes)
def test_an_object_without_a_known_list_is_one_element_and_so_are_several(
    values: list[Any], size: int
) -> None:
    data = "\n".join(json.dumps(value) for value in values).encode()
    assert read(data, "results", size=size) == as_json_has_it(values)


@given(values=st.lists(json_values.map(lambda value: {"v": value}), max_size=4), data=st.data())
def test_a_document_that_is_cut_off_gives_what_was_whole(values: list[Any], data: Any) -> None:
    document = b'{"results": ['
    ends = []
    for value in values:
        document += json.dumps(value).encode()
        ends.append(len(document))
        document += b", "
    cut = data.draw(st.integers(1, len(document)), label="cut")
    *whole, last = read(document[:cut], "results", size=data.draw(sizes))
    assert last == CUT_OFF
    assert whole == as_json_has_it(values)[: sum(end <= cut for end in ends)]


@given(
    data=st.binary(max_size=60) | st.text('[]{}",:\\ 0aé', max_size=60).map(str.encode),
    size=sizes,
)
def test_no_bytes_make_it_raise(data: bytes, size: int) -> None:
    for names in ((), ("a", "0")):
        read(data, *names, size=size)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_read_as_well(encoding: str) -> None:
    values = [{"a": "grüße, 世界 🙂"}, {"b": 2}]
    assert read(json.dumps(values, ensure_ascii=False).encode(encoding)) == values


def test_bytes_that_are_not_text_are_replaced_and_said() -> None:
    found = read(b'[{"a": "x\xffy"}, 1]')
    assert found[0] == {"a": "x\ufffdy"}
    assert isinstance(found[1], Odd)
    assert found[1].trouble is Trouble.BROKEN
    assert found[2] == 1


def test_not_a_number_is_nothing() -> None:
    assert read(b'[{"a": NaN, "b": -Infinity}]') == [{"a": None, "b": None}]


def test_one_broken_element_does_not_spoil_the_others() -> None:
    found = read(b'[{"a": 1}, {"a" 2}, [3}, {"a": 4}]')
    broken = Odd(trouble=Trouble.BROKEN, detail="no JSON")
    assert found == [{"a": 1}, broken, broken, {"a": 4}]


@pytest.mark.parametrize("name", ["", "results"])
def test_an_element_over_the_limit_is_passed_over(name: str) -> None:
    values = [{"a": 1}, {"a": "x" * 200}, {"a": 3}]
    data = json.dumps({name: values} if name else values).encode()
    found = read(data, "results", bytes_max=100)
    assert found == [{"a": 1}, Odd(trouble=Trouble.TOO_LARGE, detail="an element"), {"a": 3}]


def test_a_nesting_bomb_is_passed_over() -> None:
    bomb = b"[" * 100_000 + b"]" * 100_000
    assert read(b"[1, " + bomb + b", 2]") == [1, TOO_DEEP, 2]
    assert read(b'{"a": ' + bomb + b"}") == [TOO_DEEP]


def test_text_that_is_no_document_is_said() -> None:
    stray = Odd(trouble=Trouble.BROKEN, detail="text outside of the document")
    assert read(b"PK\x03\x04 nonsense") == [stray]
    assert read(b'"only a text"') == [stray]
    assert read(b"") == []
    assert read(b" \n ") == []


def test_memory_stays_flat_however_long_the_document_is() -> None:
    element = json.dumps({"text": 'a "quoted" \\ text ' * 500}).encode()

    def peak(count: int) -> int:
        stream = Dripping(b"," + element if number else b"[" for number in range(count + 1))
        tracemalloc.start()
        found = elements(cast(BinaryIO, stream), names=())
        assert sum(isinstance(each, dict) for each in found) == count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    few, many = peak(20), peak(1_000)
    assert many < 2 * few, (few, many)
