"""From what a caller says to what the store keeps: it comes back as it went in, or is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import recollect
from recollect.collection import (
    KEY_BYTES_MAX,
    METADATA_BYTES_MAX,
    NAME_CHARS_MAX,
    Message,
    check_label,
    check_seq,
    check_space,
    check_summary,
    encode_key,
    prepare,
    prepare_many,
    prepare_plain,
    read_time,
)
from recollect.errors import InvalidMessage, InvalidValue, TooLarge
from recollect.messages import Role
from recollect.types.records import NewRecord
from tests.tables import every_row
from tests.unit.strategies import any_text, json_values, messages

LIMIT = 1024


def plain(role: str, content: str, **more: Any) -> NewRecord:
    return prepare_plain(role, content, record_bytes_max=LIMIT, **more)


def prepared(message: object) -> NewRecord:
    return prepare(message, record_bytes_max=LIMIT)


# keys


def test_a_text_is_its_own_key() -> None:
    assert encode_key("telegram:42:main") == "telegram:42:main"


def test_a_tuple_is_the_same_key_as_its_parts_joined() -> None:
    assert encode_key(("a", "b", "c")) == encode_key("a:b:c")
    assert encode_key(("telegram", 42, "main")) == "telegram:42:main"
    assert encode_key(("chat", -7)) == "chat:-7"


def test_parts_that_contain_the_separator_stay_apart() -> None:
    keys = [("a:b", "c"), ("a", "b:c"), ("a", "b", "c"), ("a%3Ab", "c"), ("a:b:c",)]
    assert len({encode_key(key) for key in keys}) == len(keys)


_parts = st.text(st.sampled_from(":%3A25 aö😀"), max_size=5)
_keys = st.lists(_parts, min_size=1, max_size=4).map(tuple)


@given(_keys, _keys)
def test_two_different_tuples_never_make_one_key(one: Any, other: Any) -> None:
    assume(one != other)
    assume(("",) not in (one, other))  # an empty key is refused
    assert encode_key(one) != encode_key(other)


@every_row(
    "key",
    [
        "",
        (),
        ("",),
        None,
        5,
        5.0,
        b"a",
        ["a", "b"],
        ("a", None),
        ("a", True),
        ("a", 1.5),
        ("a", ("b",)),
        "a\nb",
        "a\0b",
        "a\x7f",
        "\x1b[0m",
        ("a", "b\tc"),
        "\ud800",
        ("a", "\udfff"),
        ("a", 10**5000),
    ],
)
def test_what_is_no_key_is_refused(key: Any) -> None:
    with pytest.raises(InvalidValue):
        encode_key(key)


def test_a_key_has_a_longest_length_in_bytes() -> None:
    assert encode_key("ö" * (KEY_BYTES_MAX // 2)) == "ö" * (KEY_BYTES_MAX // 2)
    with pytest.raises(TooLarge):
        encode_key("ö" * (KEY_BYTES_MAX // 2) + "x")
    with pytest.raises(TooLarge):
        encode_key((":" * (KEY_BYTES_MAX // 3), "x"))  # escapes count


@every_row("name", ["", None, 5, "a\nb", "x" * (KEY_BYTES_MAX + 1), "\ud800"])
def test_what_is_no_space_is_refused(name: Any) -> None:
    with pytest.raises(InvalidValue):
        check_space(name)


def test_spaces_and_labels_pass_as_they_are() -> None:
    assert check_space("acme/alice ö") == "acme/alice ö"
    assert check_label("web", "a source") == "web"
    assert check_label(None, "a source") is None


def test_the_error_of_a_label_names_what_it_is() -> None:
    with pytest.raises(InvalidValue, match="a project"):
        check_label("", "a project")


@every_row("seq", [-1, 1.0, "1", None, True, 2**62])
def test_what_is_no_seq_is_refused(seq: Any) -> None:
    with pytest.raises(InvalidValue):
        check_seq(seq)


@pytest.mark.parametrize("seq", [0, 1, 2**62 - 1])
def test_a_seq_is_a_whole_number_from_zero(seq: int) -> None:
    assert check_seq(seq) == seq


# times


def test_an_aware_time_becomes_utc() -> None:
    there = datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    read = read_time(there)
    assert read == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert read is not None
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    ["2026-05-01T12:00:00+00:00", "2026-05-01T12:00:00Z", "2026-05-01 14:00+02:00"],
)
def test_a_time_may_be_iso_text(text: str) -> None:
    assert read_time(text) == datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_no_time_is_no_time() -> None:
    assert read_time(None) is None


class Nowhere(tzinfo):
    """A zone that does not know how far it is from UTC."""

    def utcoffset(self, _moment: datetime | None) -> None:
        return None

    def dst(self, _moment: datetime | None) -> None:
        return None

    def tzname(self, _moment: datetime | None) -> str:
        return "nowhere"


@every_row(
    "value",
    [
        datetime(2026, 5, 1),  # noqa: DTZ001
        datetime(2026, 5, 1, tzinfo=Nowhere()),
        "2026-05-01T12:00:00",
        "2026-05-01",
        "yesterday",
        "",
        "2026-13-01T00:00:00Z",
        1_777_636_800,
        1.5,
        True,
        b"2026-05-01T12:00:00Z",
        "0001-01-01T00:00:00+01:00",  # before the first moment there is
        "9999-12-31T23:59:59-01:00",  # after the last one
    ],
)
def test_what_is_no_certain_time_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValue):
        read_time(value)


# records


def test_plain_text_needs_no_body() -> None:
    given_plain = plain("user", "hello", name="ada")
    given_dict = prepared({"role": "user", "content": "hello", "name": "ada"})
    assert given_plain == given_dict == NewRecord(role=Role.USER, content="hello", name="ada")


def test_the_short_way_carries_time_key_and_metadata() -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    record = plain("user", "x", at=at, key="k", metadata={"a": "ö"})
    assert (record.said_at, record.append_key) == (at, "k")
    assert record.metadata is not None
    assert json.loads(record.metadata) == {"a": "ö"}
    envelope = Message(
        message={"role": "user", "content": "x"}, at=at, key="k", metadata={"a": "ö"}
    )
    assert prepared(envelope) == record


@every_row(
    "message",
    [
        {"role": "user", "content": "hello", "id": "m1"},
        {"role": "human", "content": "hello"},
        {"role": "User", "content": "hello"},
        {"role": "user", "content": ["hello"]},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": "hello", "tool_calls": []},
        {"role": "user", "content": None},
        {"role": "user"},
        {"role": "user", "content": "hello", "name": None},
    ],
)
def test_what_text_alone_would_lose_is_kept_verbatim(message: dict[str, Any]) -> None:
    record = prepared(message)
    assert record.body is not None
    assert json.loads(record.body) == message
    assert record.content in ("hello", "")


@pytest.mark.parametrize("content", ["a\0b", "\ud800", "\0", "a\udfff\0"])
def test_characters_no_database_can_hold_survive_in_the_body(content: str) -> None:
    for record in (
        plain("user", content, name="ada"),
        prepared({"role": "user", "content": content, "name": "ada"}),
    ):
        assert record.body is not None
        assert json.loads(record.body) == {"role": "user", "content": content, "name": "ada"}
        assert "\0" not in record.content + record.body
        (record.content + record.body).encode()


def test_the_odd_way_carries_time_key_and_metadata_too() -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    record = plain("user", "a\0b", at=at, key="k", metadata={"a": 1})
    assert (record.said_at, record.append_key, record.metadata) == (at, "k", '{"a": 1}')


def test_a_replacement_character_of_ones_own_is_plain_text() -> None:
    assert plain("user", "\ufffd").body is None
    assert prepared({"role": "user", "content": "\ufffd"}).body is None


# sizes


@pytest.mark.parametrize("character", ["x", "ö", "€", "😀"])
def test_a_text_may_be_as_large_as_the_limit_and_not_a_byte_larger(character: str) -> None:
    size = len(character.encode())
    fitting = character * (LIMIT // size) + "x" * (LIMIT % size)
    assert plain("user", fitting).content == fitting
    with pytest.raises(TooLarge, match=r"1,025 bytes; the limit is 1,024"):
        plain("user", fitting + "x")


@pytest.mark.parametrize("character", ["x", "ö", "€", "😀"])
def test_a_message_is_measured_as_json(character: str) -> None:
    size = len(character.encode())
    room = LIMIT - len(json.dumps({"role": "user", "content": "", "id": 1}))
    fitting = character * (room // size) + "x" * (room % size)
    body = prepared({"role": "user", "content": fitting, "id": 1}).body
    assert body is not None
    assert len(body.encode()) == LIMIT
    with pytest.raises(TooLarge):
        prepared({"role": "user", "content": fitting + "x", "id": 1})


def test_a_summary_has_the_limit_of_a_record() -> None:
    assert check_summary("ö" * 512, LIMIT) == "ö" * 512
    with pytest.raises(TooLarge):
        check_summary("ö" * 512 + "x", LIMIT)


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"]])
def test_a_summary_is_text(text: Any) -> None:
    with pytest.raises(InvalidValue):
        check_summary(text, LIMIT)


def test_a_summary_shows_where_a_character_could_not_be_stored() -> None:
    assert check_summary("a\0b\ud800", LIMIT) == "a\ufffdb\ufffd"


# metadata and names


def test_metadata_has_a_limit() -> None:
    room = METADATA_BYTES_MAX - len('{"a": ""}')
    assert plain("user", "x", metadata={"a": "x" * room}).metadata is not None
    with pytest.raises(TooLarge):
        plain("user", "x", metadata={"a": "x" * (room + 1)})
    with pytest.raises(TooLarge):
        plain("user", "x", metadata={"a": "ö" * (room // 2) + "ö"})


@every_row(
    "metadata",
    [
        {"a": math.nan},
        {"a": math.inf},
        {"a": {1, 2}},
        {"a": b"x"},
        {"a": object()},
        {("a", "b"): 1},
        [1],
        "text",
        5,
    ],
)
def test_metadata_that_is_not_json_is_refused(metadata: Any) -> None:
    with pytest.raises(InvalidValue):
        plain("user", "x", metadata=metadata)
    with pytest.raises(InvalidValue):
        prepared(Message(message={"role": "user"}, metadata=metadata))


def test_metadata_inside_itself_is_refused() -> None:
    metadata: dict[str, Any] = {}
    metadata["self"] = metadata
    with pytest.raises(InvalidValue):
        plain("user", "x", metadata=metadata)


@pytest.mark.parametrize("metadata", [None, {}])
def test_no_metadata_takes_no_room(metadata: Any) -> None:
    assert plain("user", "x", metadata=metadata).metadata is None


@pytest.mark.parametrize("name", ["x" * (NAME_CHARS_MAX + 1), "a\0b", "\ud800"])
def test_a_name_that_cannot_be_stored_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue):
        plain("user", "x", name=name)
    with pytest.raises(InvalidValue):
        prepared({"role": "user", "content": "x", "name": name})


def test_the_longest_name_is_accepted() -> None:
    assert plain("user", "x", name="ö" * NAME_CHARS_MAX).name == "ö" * NAME_CHARS_MAX


@pytest.mark.parametrize("content", [None, 5, b"x", ["x"]])
def test_the_short_way_takes_text_only(content: Any) -> None:
    with pytest.raises(InvalidMessage):
        plain("user", content)


@every_row("content", ["x", "a\0b"])
@every_row(
    "more",
    [{"name": 5}, {"at": "yesterday"}, {"key": ""}, {"key": "a\nb"}, {"key": "x" * 1025}],
)
def test_both_ways_check_the_same(content: str, more: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        plain("user", content, **more)


@pytest.mark.parametrize("content", ["x", "a\0b"])
def test_both_ways_refuse_an_unknown_role(content: str) -> None:
    with pytest.raises(InvalidMessage, match="wizard"):
        plain("wizard", content)


# batches


def test_the_error_of_a_batch_names_the_message_at_fault() -> None:
    batch = [{"role": "user", "content": "a"}, {"role": "user", "content": 5}]
    with pytest.raises(InvalidMessage, match=r"^message 2: .*none of them was stored$"):
        prepare_many(batch, record_bytes_max=LIMIT, batch_records_max=10)


def test_the_error_of_a_batch_keeps_its_type() -> None:
    batch = [{"role": "user", "content": "x" * LIMIT}, {"role": "user", "content": "x" * 1025}]
    with pytest.raises(TooLarge, match=r"^message 2: "):
        prepare_many(batch, record_bytes_max=LIMIT, batch_records_max=10)


def test_a_batch_has_a_limit() -> None:
    batch = [{"role": "user", "content": str(number)} for number in range(3)]
    ready = prepare_many(batch, record_bytes_max=LIMIT, batch_records_max=3)
    assert [record.content for record in ready] == ["0", "1", "2"]
    with pytest.raises(TooLarge, match="3 records at once; the limit is 2"):
        prepare_many(batch, record_bytes_max=LIMIT, batch_records_max=2)


# there and back


@pytest.fixture(scope="module")
def session() -> Iterator[recollect.Session]:
    with recollect.open(":memory:") as memory:
        yield memory.space().session("k")


@given(any_text)
def test_any_text_comes_back_as_it_was(session: recollect.Session, text: str) -> None:
    stored = session.append("user", text)
    (read,) = session.recent(1)
    assert read == stored
    assert read.content == text
    assert read.message == {"role": "user", "content": text}


@given(messages)
def test_any_message_comes_back_as_it_was(
    session: recollect.Session, message: dict[str, Any]
) -> None:
    (stored,) = session.append_many([message])
    (read,) = session.recent(1)
    assert read == stored
    assert read.message == message


@given(st.dictionaries(any_text, json_values, max_size=3))
def test_any_metadata_comes_back_as_it_was(
    session: recollect.Session, metadata: dict[str, Any]
) -> None:
    session.append("user", "x", metadata=metadata)
    (read,) = session.recent(1)
    assert read.metadata == metadata


def test_a_surrogate_pair_comes_back_as_the_character_it_stands_for(
    session: recollect.Session,
) -> None:
    assert session.append("user", "\ud83d\ude00").content == "😀"
