"""Search: what is committed is found at once, by any of its words, in its own space alone."""

from __future__ import annotations

from dataclasses import replace

from recollect.messages import Role
from recollect.types.recall import Entry, Filters, Reach, Sought
from recollect_conformance.case import case
from recollect_conformance.findings import (
    ALONE,
    DOCUMENT,
    FACT,
    NEWEST,
    RECORD,
    SUMMARY,
    entries,
    extent,
    found,
    load,
    look,
    numbered,
    reaching,
    sum_up,
    tell,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import add, day, fact_named, statement, teach
from recollect_conformance.pages import apply, write, writing
from recollect_conformance.promises.fact_search import ANY_TEXT, ASKED, SAID

KINDS = (RECORD, FACT, SUMMARY, DOCUMENT)
NAMES = ("a", "A", "1", "11", "z", "1z", "tea", "a b", '"', "' OR 1=1", "ü", "日本語", "a" * 200)


def _everything(store: Harness, word: str, space: str = SPACE) -> None:
    """One thing of each kind that has a word."""
    tell(store, f"{word} was said", space=space)
    add(store, f"{word} is a fact", space=space)
    sum_up(store, f"{word} sums it up", space=space)
    write(store, "page", f"{word} is written", space=space)


def _kinds(store: Harness, word: str, space: str = SPACE) -> list[str]:
    return sorted(entry.kind.value for entry in entries(store, word, space=space))


@case("N1", "what is committed is found at once, whatever kind it is of")
def what_is_committed_is_found_at_once(store: Harness) -> None:
    assert _kinds(store, "saffron") == []
    _everything(store, "saffron")
    assert _kinds(store, "saffron") == ["document", "fact", "record", "summary"]
    assert _kinds(store, "nothing of it") == []


@case("N1", "an entry says what it is, where it comes from and when it was said")
def an_entry_says_what_it_is(store: Harness) -> None:
    [told] = tell(store, "saffron was said", said=day(3), role=Role.ASSISTANT)
    [record] = entries(store, "saffron")
    assert (record.kind, record.id) == (RECORD, f"{told.session_id}:{told.seq}")
    assert (record.session_id, record.seq, record.role) == (told.session_id, 1, "assistant")
    assert (record.text, record.at, record.trust.value) == (told.content, day(3), "agent")
    session = teach(store, statement("likes cardamom", 1, said=day(4), topic="spice"))
    [fact] = entries(store, "cardamom", FACT)
    assert (fact.id, fact.topic) == (fact_named(store, "likes cardamom").id, "spice")
    assert fact.at == day(4)
    [whole] = load(store, {FACT: [fact.key]})
    assert (whole.session_id, whole.seq) == (session, 1)
    assert [(source.session_id, source.seq) for source in whole.sources] == [(session, 1)]
    sum_up(store, "about ginger", key="other")
    [summary] = entries(store, "ginger")
    assert (summary.kind, summary.text, summary.id) == (SUMMARY, "about ginger", summary.session_id)
    page = write(store, "page", "of nutmeg", title="Spices")
    [document] = entries(store, "nutmeg")
    assert (document.kind, document.id, document.title) == (DOCUMENT, page.path, "Spices")
    for entry in (record, fact, summary):
        assert entry.stems, "an entry comes with what it is found by"


@case("N1", "a record is found before an index takes it and after, across any number of appends")
def every_record_is_found(store: Harness) -> None:
    said = numbered("saffron", range(2 * NEWEST + 40))
    looks = {1, 2, NEWEST - 1, NEWEST, NEWEST + 1, NEWEST + 2, 2 * NEWEST, len(said)}
    for count, text in enumerate(said, 1):
        tell(store, text)
        if count in looks:
            for each in (said[0], said[count // 2], text):
                assert found(store, each.split()[1]) == [each], (count, each)
    everything = reaching(len(said))
    assert found(store, "saffron", reach=everything) == sorted(said)


@case("N1", "every record of a large batch is found")
def every_record_of_a_batch_is_found(store: Harness) -> None:
    tell(store, *numbered("before", range(3)))
    said = numbered("saffron", range(3 * NEWEST))
    tell(store, *said)
    for number in range(0, len(said), 17):
        assert found(store, f"saffron{number}") == [said[number]]
    assert found(store, "saffron", reach=reaching(len(said))) == sorted(said)
    assert len(found(store, "before")) == 3


@case("N1 P11", "records are found and told apart when others were deleted before them")
def records_after_deleted_ones_are_found(store: Harness) -> None:
    everything = reaching(3 * NEWEST)
    for turn in range(3):
        size = NEWEST + 44 + turn
        gone = tell(store, *numbered(f"gone{turn}", range(size)), key=f"gone {turn}")
        store.handle.erasure.forget_session(SPACE, gone[0].session_id, store.now())
        said = numbered(f"kept{turn}", range(size))
        tell(store, *said, key=f"kept {turn}")
        assert found(store, f"gone{turn}", reach=everything) == []
        assert found(store, f"gone{turn}7") == []
        assert found(store, f"kept{turn}", reach=everything) == sorted(said), turn
        kept = store.current(store.key(f"kept {turn}"))
        store.handle.erasure.forget_session(SPACE, kept.id, store.now())
        assert found(store, f"kept{turn}", reach=everything) == []


def _assert_words(store: Harness, *kinds: object) -> None:
    for asked, expected in ASKED.items():
        texts = {entry.kind: entry.text for entry in _best_of(store, asked, SAID[expected])}
        assert set(texts) == set(kinds), (asked, texts)


def _best_of(store: Harness, asked: str, said: str) -> list[Entry]:
    return [entry for entry in entries(store, asked) if said in entry.text]


@case("T5", "words of every kind and script are found, in records before and after an index")
def every_kind_of_word_finds_a_record(store: Harness) -> None:
    tell(store, *SAID.values())
    _assert_words(store, RECORD)
    tell(store, *(f"filler{number}" for number in range(NEWEST)))
    _assert_words(store, RECORD)


@case("T5", "every kind of word is found in facts, in documents and in what sessions came to")
def every_kind_of_word_finds_what_was_learned(store: Harness) -> None:
    for number, text in enumerate(SAID.values()):
        add(store, text)
        sum_up(store, text, key=f"key {number}")
        write(store, f"page {number}", text)
    _assert_words(store, FACT, SUMMARY, DOCUMENT)
    assert found(store, "31.4 2.31", FACT, SUMMARY, DOCUMENT) == [], "a version is one word"


@case("T5", "words are found in other forms, also those that no rule makes")
def other_forms_are_found(store: Harness) -> None:
    tell(store, "She bought running shoes; the children were painting houses")
    for asked in ("buy", "buying", "run", "shoe", "child", "paint", "painted", "house"):
        assert len(found(store, asked)) == 1, asked


@case("T5", "what a session came to is found by its memory as well as by its summary")
def a_summary_is_found_by_its_memory(store: Harness) -> None:
    sum_up(store, "about spices", memory="- likes saffron")
    assert found(store, "saffron") == found(store, "spices") == ["about spices"]


@case("T5 P12", "any text is a legal question, and harms nothing")
def any_text_can_be_sought(store: Harness) -> None:
    _everything(store, "saffron")
    before, everything = found(store, "saffron"), found(store, "saffron word")
    for text in ANY_TEXT:
        assert set(found(store, text)) <= set(everything), text[:40]
        assert set(found(store, f"saffron {text}"[:20_000])) >= set(before), text[:40]
    for stem in ANY_TEXT[:-3]:
        odd = Sought(stems=(stem.replace("\0", "").replace("\ud800", ""),))
        store.handle.search.candidates(SPACE, odd, Filters(), day(365), ALONE)


@case("T5 P12", "any text can be said, and is found by a word of it")
def any_text_can_be_said(store: Harness) -> None:
    said = [f"saffron {text}" for text in ANY_TEXT if "\0" not in text and "\ud800" not in text]
    tell(store, *said)
    found_texts = found(store, "saffron", reach=replace(reaching(len(said)), chars=200_000))
    assert found_texts == sorted(said)


@case("T5", "what has the rarer words is found, however much has the common ones")
def rare_words_count_for_more(store: Harness) -> None:
    tell(store, "tea with saffron")
    add(store, "tea with saffron")
    tell(store, *numbered("tea", range(NEWEST + 80)))
    teach(store, *(statement(text) for text in numbered("tea", range(130))), key="facts")
    few = reaching(5, postings=1)
    for kind in (RECORD, FACT):
        texts = found(store, "tea saffron", kind, reach=few)
        assert len(texts) == 5, kind
        assert "tea with saffron" in texts, kind


@case("T5", "of equals the newest are found, as many as are asked for")
def the_newest_of_equals_are_found(store: Harness) -> None:
    said = numbered("tea", range(NEWEST + 80))
    tell(store, *said)
    assert found(store, "tea", reach=reaching(5)) == sorted(said[-5:])
    teach(store, *(statement(f"tea {number}") for number in range(100, 230)), key="facts")
    few = reaching(3, postings=1)
    assert found(store, "tea", FACT, reach=few) == ["tea 227", "tea 228", "tea 229"]


@case("N1", "only the kinds that are asked for are found")
def only_some_kinds_are_found(store: Harness) -> None:
    _everything(store, "saffron")
    for kind in KINDS:
        assert [entry.kind for entry in entries(store, "saffron", kind)] == [kind]
        only = look(store, "saffron", filters=Filters(kinds=frozenset({kind})))
        assert set(only.extents) == {kind}
    assert entries(store, "saffron", filters=Filters(kinds=frozenset())) == []


@case("T5 P9", "nothing of another space is found, however it is called and whatever it has")
def nothing_of_another_space_is_found(store: Harness) -> None:
    for number, name in enumerate(NAMES):
        tell(store, f"saffron {number} tea", space=name)
        add(store, f"saffron {number} tea", space=name)
        sum_up(store, f"saffron {number} tea", space=name)
        write(store, "page", f"saffron {number} tea", space=name)
    for number, name in enumerate(NAMES):
        texts = found(store, "saffron tea", space=name)
        assert texts == [f"saffron {number} tea"] * 4, name
    assert found(store, "saffron", space="nobody") == []


@case("T5 P9", "however much others say, a space finds what it has")
def a_crowd_hides_nothing(store: Harness) -> None:
    tell(store, "saffron is mine")
    add(store, "saffron is mine")
    tell(store, *numbered("saffron", range(NEWEST + 60)), space="crowd")
    said = [statement(text) for text in numbered("saffron", range(120))]
    teach(store, *said, key="facts", space="crowd")
    few = reaching(5, postings=1)
    assert found(store, "saffron", reach=few) == ["saffron is mine"] * 2
    for kind in (RECORD, FACT):
        assert extent(store, "saffron", kind).holders == {"saffron": 1}


@case("N1", "entries come by their keys with their whole text, in the order of the keys")
def entries_come_by_their_keys(store: Harness) -> None:
    long = "saffron " + "and more " * 2000
    told = tell(store, long, "saffron again")
    cut = entries(store, "saffron", RECORD, reach=Reach(beside=0, chars=20))
    assert sorted(entry.text for entry in cut) == ["saffron again", long[:20]]
    keys = [entry.key for entry in sorted(cut, key=lambda entry: entry.seq)]
    for wanted in (keys, keys[::-1], keys[:1]):
        loaded = load(store, {RECORD: wanted})
        assert [entry.key for entry in loaded] == wanted
        texts = {entry.key: entry.text for entry in loaded}
        assert all(texts[key] == told[keys.index(key)].content for key in wanted)
    assert load(store, {}) == load(store, {RECORD: []}) == []


@case("N1 P9", "a key of another space, of another kind or of nothing gives nothing")
def keys_of_others_give_nothing(store: Harness) -> None:
    _everything(store, "saffron")
    _everything(store, "saffron", "theirs")
    for kind in KINDS:
        [own] = entries(store, "saffron", kind)
        [their] = entries(store, "saffron", kind, space="theirs")
        assert [entry.key for entry in load(store, {kind: [own.key]})] == [own.key]
        assert load(store, {kind: [their.key, 2**40, -1, 0]}) == []
        assert load(store, {kind: [own.key]}, space="theirs") == []
        alike = Sought(stems=(), alike={kind: [their.key, own.key]})
        assert [entry.key for entry in look(store, "", sought=alike).entries] == [own.key]


@case("N1", "what is alike comes along, once")
def what_is_alike_comes_along(store: Harness) -> None:
    tell(store, "saffron", "ginger")
    add(store, "cardamom")
    [ginger] = entries(store, "ginger")
    [cardamom] = entries(store, "cardamom")
    alike = Sought(stems=(), alike={RECORD: [ginger.key, ginger.key], FACT: [cardamom.key]})
    texts = [entry.text for entry in look(store, "saffron ginger", sought=alike).entries]
    assert sorted(texts) == ["cardamom", "ginger", "saffron"]


@case("T5", "how many entries there are and have a word is exact where they are few")
def few_entries_are_counted(store: Harness) -> None:
    for number in range(12):
        rare = " saffron" if number % 6 == 0 else ""
        text = f"tea{rare} number{number}"
        tell(store, text)
        add(store, text)
        sum_up(store, text, key=f"key {number}")
        apply(store, writing(f"page {number}", text))
    for kind, more in ((RECORD, 12), (FACT, 0), (SUMMARY, 0), (DOCUMENT, 0)):
        counted = extent(store, "tea saffron nobody", kind)
        assert counted.entries == 12 + more, kind  # each session has a record more
        assert counted.holders == {"tea": 12, "saffron": 2, "nobodi": 0}, kind


@case("T5", "how many there are is about right where they are many, whatever others have")
def many_entries_are_reckoned(store: Harness) -> None:
    tell(store, *numbered("before", range(900)), space="theirs")
    for first in range(0, 3000, 500):
        tell(store, *(_weighted(number) for number in range(first, first + 500)))
    tell(store, *numbered("after", range(300)), space="theirs")
    teach(store, *(statement(_weighted(number)) for number in range(3000)), key="facts")
    for kind in (RECORD, FACT):
        counted = extent(store, "common half tenth saffron", kind)
        assert 2400 <= counted.entries <= 3600, (kind, counted)
        for word, right in (("common", 3000), ("half", 1500), ("tenth", 300)):
            assert 0.8 * right <= counted.holders[word] <= 1.2 * right, (kind, counted)
        assert counted.holders["saffron"] == 3, (kind, counted)


def _weighted(number: int) -> str:
    """Words that every, every second, every tenth and every thousandth text has."""
    words = {"common": 1, "half": 2, "tenth": 10, "saffron": 1000}
    return " ".join([f"n{number}", *(word for word, step in words.items() if number % step == 0)])
