"""Append keys: a retry stores nothing twice, and a key never stands for two things."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from recollect.errors import AppendKeyReused
from recollect.messages import Role
from recollect.types.facts import SessionsMeant
from recollect.types.records import KeyRef, MarkPolicy, NewRecord, Record, numbered_key
from recollect_conformance.case import case, refused
from recollect_conformance.harness import SPACE, Harness, seqs


def _keyed(key: str, content: str = "hello") -> NewRecord:
    return NewRecord(role=Role.USER, content=content, append_key=key)


@case("T1", "the same key again stores nothing and returns what is stored")
def a_retry_stores_nothing(store: Harness) -> None:
    ref = store.key()
    [first] = store.say(ref, _keyed("k"))
    before = store.current(ref)
    store.clock.advance(60)
    assert store.say(ref, _keyed("k")) == [first]
    assert store.everything(ref) == [first]
    assert store.current(ref) == before


@case("T1", "a key with other content is refused and stores nothing of its batch")
def a_key_with_other_content_is_refused(store: Harness) -> None:
    ref = store.key()
    store.say(ref, _keyed("k"))
    before = store.current(ref)
    with refused(AppendKeyReused):
        store.say(ref, store.text(), _keyed("k", "other"), _keyed("new"))
    assert store.words(ref) == ["hello"]
    assert store.current(ref) == before
    assert seqs(store.append(ref)) == [2]


@case(
    "T1", "other content is another role, name, text, message or metadata; the time is not content"
)
def what_counts_as_other_content(store: Harness) -> None:
    ref = store.key()
    body = json.dumps({"role": "user", "content": "hello", "extra": 1})
    plain, whole = _keyed("plain"), replace(_keyed("whole"), body=body, metadata='{"a": 1}')
    store.say(ref, plain, whole)
    for other in (
        replace(plain, role=Role.ASSISTANT),
        replace(plain, name="Ada"),
        replace(plain, content="hello "),
        replace(plain, body=body),
        replace(plain, metadata='{"a": 1}'),
        replace(whole, body=body.replace("1", "2")),
        replace(whole, body=None),
        replace(whole, metadata='{"a": 2}'),
        replace(whole, metadata=None),
    ):
        with refused(AppendKeyReused):
            store.say(ref, other)
    store.say(ref, replace(plain, said_at=datetime(2020, 1, 1, tzinfo=UTC)), whole)
    assert len(store.everything(ref)) == 2


@case("T1", "a key used twice within one batch stores once")
def a_key_twice_within_a_batch_stores_once(store: Harness) -> None:
    ref = store.key()
    said = store.say(ref, _keyed("k"), store.text(), _keyed("k"))
    assert seqs(said) == [1, 2, 1]
    assert said[0] == said[2]
    assert store.everything(ref) == said[:2]


@case("T1", "a key used twice within one batch for two things is refused")
def a_key_for_two_things_within_a_batch_is_refused(store: Harness) -> None:
    ref = store.key()
    with refused(AppendKeyReused):
        store.say(ref, store.text(), _keyed("k"), _keyed("k", "other"))
    assert store.everything(ref) == []
    assert store.current(ref).last_seq == 0


@case("T1", "a batch of known, new and keyless records stores what is new, in order")
def a_mixed_batch_stores_what_is_new(store: Harness) -> None:
    ref = store.key()
    [known] = store.say(ref, _keyed("known"))
    said = store.say(ref, _keyed("new", "two"), store.text(), _keyed("known"), store.text())
    assert seqs(said) == [2, 3, 1, 4]
    assert said[2] == known
    assert store.everything(ref) == [known, said[0], said[1], said[3]]


@case("T1", "a batch under one key is one thing: more records under it, or fewer, are refused")
def a_batch_under_a_key_is_neither_more_nor_less(store: Harness) -> None:
    ref, other = store.key(), store.key("other")

    def said(ref: KeyRef, *words: str, batch: str = "b") -> list[Record]:
        records = [_keyed(numbered_key(batch, n), word) for n, word in enumerate(words)]
        return store.records.append(ref, records, MarkPolicy(), store.now(), store.new_id, batch)

    first = said(ref, "one", "two")
    for words in ((), ("one",), ("one", "two", "three"), ("two", "one"), ("one", "three")):
        with refused(AppendKeyReused):
            said(ref, *words)
    assert said(ref, "one", "two") == first == store.everything(ref)
    assert store.current(ref).last_seq == 2
    said(ref, "one", batch="c")
    said(other, "one")  # another conversation has keys of its own
    own = [replace(_keyed("own"), content="own"), _keyed("d#1", "two")]
    store.say(ref, own[0])
    mixed = store.records.append(ref, own, MarkPolicy(), store.now(), store.new_id, "d")
    assert store.words(ref) == ["one", "two", "one", "own", "two"]
    assert store.records.append(ref, own, MarkPolicy(), store.now(), store.new_id, "d") == mixed


@case("T1", "keys belong to their stable key: another conversation may use the same")
def append_keys_belong_to_their_stable_key(store: Harness) -> None:
    one, two, other = store.key("one"), store.key("two"), store.key("one", agent="/user/other")
    for ref in (one, two, other):
        store.say(ref, _keyed("k", f"for {ref.key_id}"))
        assert store.words(ref) == [f"for {ref.key_id}"]


@case("T1", "a key is remembered over rotations, and the retry goes back to where it was stored")
def append_keys_survive_rotation(store: Harness) -> None:
    ref = store.key()
    [first] = store.say(ref, _keyed("k"))
    store.reset(ref)
    assert store.say(ref, _keyed("k")) == [first]
    assert store.everything(ref) == []
    with refused(AppendKeyReused):
        store.say(ref, _keyed("k", "other"))
    [second] = store.say(ref, _keyed("k2"))
    assert second.seq == 1
    assert second.session_id != first.session_id


@case("T1", "a retry after the end opens no new session")
def a_retry_after_the_end_opens_no_session(store: Harness) -> None:
    ref = store.key()
    [first] = store.say(ref, _keyed("k"))
    ended = store.end(ref)
    assert store.say(ref, _keyed("k")) == [first]
    assert store.sessions.rotations(ref) == [ended]


@case("M6 T1", "a retry does not count towards the threshold")
def a_retry_does_not_count_towards_the_threshold(store: Harness) -> None:
    ref = store.key()
    for _ in range(8):
        store.say(ref, _keyed("k"))
    store.append(ref, 4)
    assert store.current(ref).invalidated_at is None


@case("T1", "append keys of any script and of a kilobyte are told apart exactly")
def append_keys_are_told_apart_exactly(store: Harness) -> None:
    ref = store.key()
    names = ["k", "K", "k ", "\u00e9", "e\u0301", "🧠" * 256, "x" * 1024, "%s", "'"]
    said = store.say(ref, *(_keyed(name, f"for {name}") for name in names))
    assert seqs(said) == list(range(1, len(names) + 1))
    assert store.say(ref, *(_keyed(name, f"for {name}") for name in names)) == said
    assert [record.key for record in store.everything(ref)] == names


@case("P11 T1", "a retry of what was forgotten stores nothing, and an empty note comes back")
def a_retry_brings_nothing_back(store: Harness) -> None:
    ref = store.key()
    store.say(ref, _keyed("a", "saffron"), _keyed("b", "thyme"))
    session = store.current(ref).id
    assert store.handle.erasure.forget_record(SPACE, session, 1, store.now())
    _comes_back_empty(store, ref, "a")
    assert store.words(ref) == ["", "thyme"]
    assert store.handle.erasure.forget_session(SPACE, session, store.now())
    _comes_back_empty(store, ref, "a", "b")
    assert [each.id for each in store.sessions.rotations(ref)] == [session], "a session was opened"
    said = store.say(ref, _keyed("b", "thyme"), _keyed("c"), _keyed("a"), store.text(), _keyed("c"))
    assert seqs(said) == [0, 1, 0, 2, 1]
    assert store.everything(ref) == [said[1], said[3]]
    store.records.purge(ref, store.now())
    _comes_back_empty(store, ref, "a", "b")


def _comes_back_empty(store: Harness, ref: KeyRef, *keys: str) -> None:
    before = store.everything(ref)
    said = store.say(ref, *(_keyed(key, "said again") for key in keys))
    assert [(each.key, each.seq, each.is_forgotten) for each in said] == [
        (key, 0, True) for key in keys
    ]
    assert {each.session_id for each in said} == {store.current(ref).id}
    assert store.everything(ref) == before


@case("P11 T1 P9", "the key of what was forgotten is that of one conversation, while its space is")
def a_forgotten_key_is_of_one_conversation(store: Harness) -> None:
    ref, erasure = store.key(), store.handle.erasure
    store.say(ref, _keyed("k", "saffron"))
    assert erasure.forget_session(SPACE, store.current(ref).id, store.now())
    others = (store.key("another"), store.key(agent="/user/another"), store.key(space="another"))
    assert [seqs(store.say(each, _keyed("k"))) for each in (ref, *others)] == [[0], [1], [1], [1]]
    rest = erasure.forgettable(SPACE, SessionsMeant(), store.now(), None, 10)
    erasure.forget_sessions(SPACE, [each.id for each in rest], store.now())
    erasure.forget_space(SPACE, store.now(), store.now())
    assert seqs(store.say(store.key(), _keyed("k", "thyme"))) == [1], "the space begins anew"
