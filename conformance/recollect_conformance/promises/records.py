"""The history: numbers without holes, and every record read back as it went in."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from recollect.messages import Role
from recollect.types.records import NewRecord, Record
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness, seqs

PLANES = "aé\u00a0→語\ufeff\u202e\ufffd\U0001f9e0\U000e0001\U0010ffff\t\r\n\x01\x7f\\'\"%s:name"


def _read_back(store: Harness, given: NewRecord) -> Record:
    """A record as it is read back, after a check that append said the same."""
    ref = store.key()
    [said] = store.say(ref, given)
    [read] = store.records.recent(ref, 1)
    assert read == said, "append returns what is read back"
    assert store.records.after(SPACE, said.session_id, said.seq - 1, 1) == [said]
    return read


def _message(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


@case("M1", "records are numbered 1, 2, 3 … without a hole")
def records_are_numbered_without_a_hole(store: Harness) -> None:
    ref = store.key()
    said = store.append(ref, 12)
    assert seqs(said) == list(range(1, 13))
    assert seqs(store.everything(ref)) == list(range(1, 13))
    assert store.current(ref).last_seq == 12


@case("M1", "every session counts for itself")
def every_session_counts_for_itself(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    for _ in range(3):
        store.append(one)
        store.append(two)
    assert seqs(store.everything(one)) == seqs(store.everything(two)) == [1, 2, 3]


@case("M1", "a batch is numbered in its order, and single records go on from there")
def a_batch_is_numbered_in_its_order(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    batch = [store.text() for _ in range(100)]
    said = store.say(ref, *batch)
    assert seqs(said) == list(range(2, 102))
    assert [record.content for record in said] == [given.content for given in batch]
    assert seqs(store.append(ref)) == [102]
    assert store.everything(ref)[1:-1] == said


@case("T1", "an empty batch stores nothing")
def an_empty_batch_stores_nothing(store: Harness) -> None:
    ref = store.key()
    before = store.current(ref)
    store.clock.advance(1)
    assert store.say(ref) == []
    assert store.current(ref) == before


@case("T1", "append returns exactly what is read back")
def append_returns_what_is_read_back(store: Harness) -> None:
    said_at = datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)
    body = _message(role="assistant", name="Ada", content=[{"type": "text", "text": "hello"}])
    read = _read_back(
        store,
        NewRecord(
            role=Role.ASSISTANT,
            content="hello",
            name="Ada",
            body=body,
            said_at=said_at,
            append_key="turn-1",
            metadata='{"model": "m"}',
        ),
    )
    assert read.session_id == store.current(store.key()).id
    assert (read.seq, read.role, read.content, read.name) == (1, Role.ASSISTANT, "hello", "Ada")
    assert (read.body, read.at, read.created_at) == (body, said_at, store.now())
    assert (read.key, read.metadata) == ("turn-1", {"model": "m"})


@case("T1", "a record without particulars has none, and was said when it was stored")
def a_plain_record_has_no_particulars(store: Harness) -> None:
    read = _read_back(store, NewRecord(role=Role.USER, content="hello"))
    assert (read.name, read.body, read.key, read.metadata) == (None, None, None, {})
    assert read.at == read.created_at == store.now()
    assert read.message == {"role": "user", "content": "hello"}


@case("T1", "every role is kept")
def every_role_is_kept(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(NewRecord(role=role, content=role.value) for role in Role))
    assert [record.role for record in store.everything(ref)] == list(Role)


@case("T1", "text of every plane, control characters and quotes come back as they went in")
def text_of_every_plane_comes_back(store: Harness) -> None:
    read = _read_back(store, NewRecord(role=Role.USER, content=PLANES, name=PLANES[:10]))
    assert read.content == PLANES
    assert read.name == PLANES[:10]


@case("T1", "empty text is text, and white space is kept")
def empty_text_is_text(store: Harness) -> None:
    for content in ("", " ", "\n", "  two  spaces \n\n"):
        assert _read_back(store, NewRecord(role=Role.USER, content=content)).content == content


@case("T1", "a NUL and lone surrogates, which no column holds, come back from the verbatim message")
def what_no_column_holds_comes_back(store: Harness) -> None:
    words = "a\x00b\ud800c\udfffd\ufffde"
    body = json.dumps({"role": "user", "content": words}, ensure_ascii=True)
    given = NewRecord(role=Role.USER, content="a\ufffdb\ufffdc\ufffdd\ufffde", body=body)
    read = _read_back(store, given)
    assert read.content == words
    assert read.message["content"] == words


@case("T1", "parts, tool calls and attachments survive")
def parts_and_tool_calls_survive(store: Harness) -> None:
    body = _message(
        role="assistant",
        content=[
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
        ],
        tool_calls=[
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"ü": 1}'}}
        ],
    )
    read = _read_back(store, NewRecord(role=Role.ASSISTANT, content="look", body=body))
    assert read.body == body
    [call] = read.tool_calls
    assert (call.id, call.name, call.arguments) == ("c1", "f", '{"ü": 1}')
    [attachment] = read.attachments
    assert attachment.uri == "https://example.org/cat.png"
    assert read.content == "look"


@case("T1", "tool results and errors survive")
def tool_results_and_errors_survive(store: Harness) -> None:
    body = _message(role="tool", tool_call_id="c1", content="no such file", is_error=True)
    read = _read_back(store, NewRecord(role=Role.TOOL, content="no such file", body=body))
    [result] = read.tool_results
    assert (result.call_id, result.text, result.is_error) == ("c1", "no such file", True)
    assert read.is_error


@case("T1", "metadata of any shape survives")
def metadata_of_any_shape_survives(store: Harness) -> None:
    metadata = {"a.b": [1, 2.5, None, True], "": {"nested": {"語": "🧠"}}, "big": 2**60}
    given = NewRecord(role=Role.USER, content="x", metadata=json.dumps(metadata))
    assert _read_back(store, given).metadata == metadata


@case("T1", "times keep their microseconds, before 1970 and far from now")
def times_keep_their_microseconds(store: Harness) -> None:
    for moment in (
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 2, 28, 1, 2, 3, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ):
        read = _read_back(store, NewRecord(role=Role.USER, content="x", said_at=moment))
        assert read.at == moment
        assert read.at.utcoffset() == timedelta(0)
        assert read.created_at == store.now()


@case("T1", "records keep the order of their numbers, whenever they were said")
def the_order_is_that_of_the_numbers(store: Harness) -> None:
    ref = store.key()
    for year in (2026, 1990, 2030):
        at = datetime(year, 1, 1, tzinfo=UTC)
        store.say(ref, NewRecord(role=Role.USER, content=str(year), said_at=at))
    assert store.words(ref) == ["2026", "1990", "2030"]


@case("T1", "a record of a megabyte is kept")
def a_record_of_a_megabyte_is_kept(store: Harness) -> None:
    content = "0123456789abcdeé" * 65_536
    assert _read_back(store, NewRecord(role=Role.USER, content=content)).content == content


@case("T1", "recent gives the newest n, oldest first: fewer, as many, more, none")
def recent_gives_the_newest(store: Harness) -> None:
    ref = store.key()
    said = store.append(ref, 5)
    assert store.records.recent(ref, 3) == said[2:]
    assert store.records.recent(ref, 5) == said
    assert store.records.recent(ref, 6) == said
    assert store.records.recent(ref, 0) == []
    assert store.records.recent(ref, None) == said


@case("T1", "a conversation without a word is empty, not an error")
def a_silent_conversation_is_empty(store: Harness) -> None:
    ref = store.key()
    assert store.records.recent(ref, 5) == store.everything(ref) == []
    assert store.records.all_rotations(ref) == []
    assert store.records.count(ref) == 0
    assert store.records.summary(ref) == ""


@case("M10", "records above a seq come in order, a page at a time")
def records_come_a_page_at_a_time(store: Harness) -> None:
    ref = store.key()
    said = store.append(ref, 7)
    session = said[0].session_id
    found: list[Record] = []
    while page := store.records.after(SPACE, session, found[-1].seq if found else 0, 3):
        assert len(page) <= 3
        found += page
    assert found == said
    assert store.records.after(SPACE, session, 7, 3) == []
    assert store.records.after(SPACE, session, 0, 0) == []
    assert store.records.after(SPACE, "nobody", 0, 3) == []


@case("T1", "the count is that of the records")
def the_count_is_that_of_the_records(store: Harness) -> None:
    ref, other = store.key("one"), store.key("two")
    for expected in range(4):
        assert store.records.count(ref) == len(store.everything(ref)) == expected
        store.append(ref)
        store.append(other, 2)


@case("M7", "max_seq and count_since are exact, none and nothing for an empty session")
def max_seq_and_count_since_are_exact(store: Harness) -> None:
    ref, other = store.key("one"), store.key("two")
    session = store.current(ref).id
    assert store.marks.max_seq(SPACE, session) is None
    assert store.marks.count_since(SPACE, session, 0) == 0
    store.append(ref, 4)
    store.append(other, 9)
    assert store.marks.max_seq(SPACE, session) == 4
    assert [store.marks.count_since(SPACE, session, seq) for seq in range(6)] == [4, 3, 2, 1, 0, 0]
    assert store.marks.max_seq(SPACE, "nobody") is None
    assert store.marks.count_since(SPACE, "nobody", 0) == 0


@case("M14", "an append is activity, and activity never goes back")
def activity_never_goes_back(store: Harness) -> None:
    ref = store.key()
    born = store.now()
    noted = store.clock.advance(60)
    store.append(ref)
    session = store.current(ref)
    assert (session.created_at, session.last_activity_at) == (born, noted)
    store.clock.advance(-30)
    store.append(ref)
    assert store.current(ref).last_activity_at == noted


@case("M14", "reading and marking are no activity")
def reading_and_marking_are_no_activity(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2, policy=NEVER)
    active = store.now()
    store.clock.advance(60)
    store.everything(ref)
    store.invalidate(ref, 1)
    store.sleep(ref)
    assert store.process(ref, 1, 2)
    assert store.current(ref).last_activity_at == active
