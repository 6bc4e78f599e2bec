"""Searching facts: by words and by metadata; any text and any key is legal."""

from __future__ import annotations

from recollect.types.facts import Fact, FactQuery, MetadataValue, Source, When
from recollect.types.recall import EntryKind
from recollect_conformance.case import case
from recollect_conformance.findings import at, found
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import add, day, edit, facts, statement, teach

KEYS = (
    *("plain", "a.b", "a.b.c", "", " ", "$", "$.a", "[0]", "a[0]", '"', 'say "hi"', "'", "\\"),
    *(
        "\\u0041",
        "ü",
        "e\u0301",
        "日本語",
        "🙂",
        "%",
        "a b",
        "a\nb",
        "?",
        ":name",
        "%s",
        "--",
        "#-1",
    ),
)
VALUES: tuple[MetadataValue, ...] = (
    *("1", "", "true", "null", "1.0", 'say "hi"', "日本語", "a\nb", "\\", "ü", "'", "%"),
    *(1, 0, -1, 2.5, -0.125, 1e22, 2**53 + 1, 2**62, True, False, None),
)
ANY_TEXT = (
    *('"', '""', "'", "*", "tea*", "te", "(", ")", "tea)", "tea AND", "NOT tea", "NEAR(tea)"),
    *("-tea", "+tea", "^tea", "tea:milk", "content:tea", "{tea}", "tea|x", "tea & x", "!tea"),
    *("<->", ":*", "tea:*", "\\", "\\'", "%", "_", ";", "--", "/*", "\x01\x02\x1f\x7f", "\t\n"),
    *("", " ", "\u200b", "日本語", "🙂🙂", "العربية", "é", "\ufffd", "\ud800", "a\0b", "OR", "or"),
    *("x" * 100_000, "tea " * 20_000, "' OR 1=1; DROP TABLE facts"),
)


def _search(store: Harness, *terms: str, limit: int = 100) -> list[str]:
    found = store.handle.facts.search(SPACE, terms, day(1), limit)
    return [fact.content for fact in found]


def _found(store: Harness, key: str, value: MetadataValue) -> list[Fact]:
    return store.handle.facts.search_metadata(SPACE, key, value, day(1), 100)


@case("T2", "a search finds the facts that have any of its words, whatever the case")
def a_search_finds_any_of_its_words(store: Harness) -> None:
    for content in ("likes green tea", "likes coffee", "has a cat"):
        add(store, content)
    assert _search(store, "tea") == ["likes green tea"]
    assert sorted(_search(store, "TEA", "Cat")) == ["has a cat", "likes green tea"]
    assert sorted(_search(store, "likes")) == ["likes coffee", "likes green tea"]
    assert _search(store, "dog") == _search(store) == []


@case("T2", "a search finds words in other forms")
def a_search_finds_other_forms(store: Harness) -> None:
    add(store, "prefers running shoes and painted houses")
    for word in ("run", "runs", "shoe", "house", "painting", "preferred"):
        assert len(_search(store, word)) == 1, word


@case("T2", "the fact with more of the words comes first")
def the_better_match_comes_first(store: Harness) -> None:
    add(store, "green walls in the whole of the house and the garden")
    add(store, "green tea")
    add(store, "black tea and some other things that nobody has asked about")
    assert _search(store, "green", "tea")[0] == "green tea"
    assert _search(store, "green", "tea", limit=1) == ["green tea"]


@case("T2 P12", "any text is a legal search and harms nothing")
def any_text_is_a_legal_search(store: Harness) -> None:
    add(store, "likes tea")
    for text in ANY_TEXT:
        assert _search(store, text, limit=10) in ([], ["likes tea"]), text[:40]
        assert _search(store, text, "tea") == ["likes tea"], text[:40]
    assert _search(store, "tea", *(f"word{number}" for number in range(5000))) == ["likes tea"]
    assert _search(store, "tea", *(["a b c d e f g"] * 5000)) == ["likes tea"]


@case("T2 P12", "any text can be stored as a fact, and found by a word of it")
def any_text_can_be_a_fact(store: Harness) -> None:
    kept = 0
    for number, text in enumerate(ANY_TEXT):
        if "\0" in text or "\ud800" in text:
            continue
        fact = add(store, f"{text} needle", named=f"fact {number}")
        assert fact.content == f"{text} needle"
        kept += 1
    assert len(_search(store, "needle")) == kept


@case("T2", "words of other scripts are found")
def other_scripts_are_found(store: Harness) -> None:
    for content in ("живёт в Киеве", "lebt in Österreich", "μένει στην Αθήνα"):
        add(store, content)
    assert _search(store, "Киеве") == ["живёт в Киеве"]
    assert _search(store, "österreich") == ["lebt in Österreich"]
    assert _search(store, "Αθήνα") == ["μένει στην Αθήνα"]


SAID = {
    "path": "The fix for the flaky build is in src/payments/invoice_sender.py.",
    "url": "The repo is https://github.com/acme/billing-api",
    "mail": "Ana's address is ana.sousa@example.org",
    "name": "Herr Müller leads the team",
    "band": "The band is called The Who",
    "what": "Alice said: it is what it is",
    "version": "The version is v2.31.4-beta",
    "host": "The database runs on db-7.eu.example.org:5432",
    "code": "Call getUserName() with USER_ID=42",
    "wide": "ｆｕｌｌ width and ﬁne print, chapter Ⅷ",
    "greek": "Ο Σίσυφος μένει στην Αθήνα",
    "cyrillic": "живёт в Йошкар-Оле",
    "vietnamese": "thích uống phở ở Huế",
    "korean": "서울에 산다",
    "japanese": "がっこう",
    "chinese": "他住在北京朝阳区",
    "irregular": "Bought boots for the children",
    "parser": "XMLParser fails on 10.0.0.7",
}
ASKED = {
    "invoice sender": "path",
    "payments": "path",
    "src/payments/invoice_sender.py": "path",
    "invoice_sender": "path",
    "SENDER.PY": "path",
    "acme": "url",
    "billing api": "url",
    "https://github.com/acme/billing-api": "url",
    "github.com": "url",
    "ana sousa": "mail",
    "ana.sousa@example.org": "mail",
    "Muller": "name",
    "MÜLLER": "name",
    "Mu\u0308ller": "name",
    "who": "band",
    "what it is": "what",
    "2.31.4": "version",
    "V2.31.4": "version",
    "v2.31.4-beta": "version",
    "eu.example.org": "host",
    "5432": "host",
    "getusername": "code",
    "getUserName": "code",
    "user name": "code",
    "UserName": "code",
    "user_id": "code",
    "full": "wide",
    "fine": "wide",
    "viii": "wide",
    "Ⅷ": "wide",
    "ΣΊΣΥΦΟΣ": "greek",
    "αθηνα": "greek",
    "ЖИВЕТ": "cyrillic",
    "йошкар": "cyrillic",
    "pho": "vietnamese",
    "HUẾ": "vietnamese",
    "서울에": "korean",
    "서울": "korean",
    "がっこう": "japanese",
    "北京": "chinese",
    "朝阳": "chinese",
    "buy": "irregular",
    "a child": "irregular",
    "xml parser": "parser",
    "xmlparser": "parser",
    "10.0.0.7": "parser",
}


@case("T2", "paths, addresses, versions and names are found by the words in them, in any script")
def every_kind_of_word_is_found(store: Harness) -> None:
    for content in SAID.values():
        add(store, content)
    for asked, expected in ASKED.items():
        assert _search(store, asked)[:1] == [SAID[expected]], asked
        assert SAID[expected] in _search(store, *asked.split()), asked
    assert _search(store, "2", "31", "4", "31.4", "2.31", "0.7") == [], "a version is one word"
    assert sorted(_search(store, "example.org")) == sorted((SAID["host"], SAID["mail"]))
    assert _search(store, "京朝") == [SAID["chinese"]], "every two signs that stand together"
    assert _search(store, "か") == _search(store, "울") == _search(store, "send inv") == []


@case("T2 P9", "a search is about one space, whatever it is called and however much others hold")
def a_search_is_about_one_space(store: Harness) -> None:
    names = ("a", "A", "61", "tea", "a b", '"', "' OR 1=1", "ü", "日本語", "a" * 200)
    for number, name in enumerate(names):
        add(store, f"likes tea {name} {number}", space=name)
    for _ in range(20):
        add(store, f"tea and cake and {store.text().content}", space="crowd")
    for number, name in enumerate(names):
        found = store.handle.facts.search(name, ["tea", "61", "a"], day(1), 100)
        assert [fact.content for fact in found] == [f"likes tea {name} {number}"]
    assert store.handle.facts.search("nobody", ["tea", "61"], day(1), 100) == []


@case("T2", "the index follows every change of a fact")
def the_index_follows_every_change(store: Harness) -> None:
    words = ("alpha", "bravo", "carol", "delta")
    for number in range(12):
        add(store, f"says {words[number % 4]} {number}", named=f"fact {number}")
    for number in range(0, 12, 2):
        add(store, f"says {words[(number + 1) % 4]} again {number}", named=f"fact {number}")
    for number in range(0, 12, 3):
        store.handle.facts.delete(SPACE, f"fact {number}", store.now())
    add(store, "says delta at last", named="fact 0")
    for fact in facts(store)[:3]:
        edit(store, fact.id, content=f"{fact.content} bravo")
    session = teach(store, statement("says alpha too"), statement("says carol too"))
    teach(store, statement("says alpha too"), is_whole=True)
    for word in words:
        scanned = sorted(fact.content for fact in facts(store) if word in fact.content.split())
        assert sorted(_search(store, word)) == scanned
    store.handle.erasure.forget_session(SPACE, session, store.now())
    assert "says alpha too" not in _search(store, "alpha")


@case("T2", "metadata is searched by any key, which is never a path")
def metadata_is_searched_by_any_key(store: Harness) -> None:
    for number, key in enumerate(KEYS):
        add(store, f"fact {number}", metadata={key: "here"})
    add(store, "nested", metadata={"a": {"b": "here", "0": "here"}, "x": ["here"]})
    for number, key in enumerate(KEYS):
        assert [fact.content for fact in _found(store, key, "here")] == [f"fact {number}"], key
        assert _found(store, key, "there") == []
    assert _found(store, "x", "here") == _found(store, "b", "here") == []


@case("T2", "metadata values are told apart by kind and value")
def metadata_values_are_told_apart(store: Harness) -> None:
    for number, value in enumerate(VALUES):
        add(store, f"fact {number}", metadata={"a.b": value})
    add(store, "none of it", metadata={"other": 1})
    add(store, "a list", metadata={"a.b": [1]})
    add(store, "an object", metadata={"a.b": {"true": True}})
    for number, value in enumerate(VALUES):
        found = [fact.content for fact in _found(store, "a.b", value)]
        assert found == [f"fact {number}"], repr(value)


@case("T2", "one and true and the text of one are three values; one and one point nought are one")
def one_is_one(store: Harness) -> None:
    for name, value in (("int", 1), ("float", 1.0), ("true", True), ("text", "1")):
        add(store, name, metadata={"n": value})

    def names(value: MetadataValue) -> list[str]:
        return sorted(fact.content for fact in _found(store, "n", value))

    assert names(1) == names(1.0) == ["float", "int"]
    assert (names(True), names("1"), names(False), names("1.0")) == (["true"], ["text"], [], [])


@case("T2", "a key that is there with none is not a key that is missing")
def none_is_a_value(store: Harness) -> None:
    add(store, "none", metadata={"a": None})
    add(store, "missing", metadata={})
    add(store, "text", metadata={"a": "null"})
    assert [fact.content for fact in _found(store, "a", None)] == ["none"]


@case("T2 P12", "odd characters in metadata are replaced, and no search fails over them")
def odd_metadata_fails_no_search(store: Harness) -> None:
    add(store, "odd", metadata={"a\0b": "c\0d", "x": ["\ud800"], "\\u0000": "\\u0000"})
    add(store, "even", metadata={"k": "v"})
    assert [fact.content for fact in _found(store, "k", "v")] == ["even"]
    assert [fact.content for fact in _found(store, "a\0b", "c\0d")] == ["odd"]
    assert [fact.content for fact in _found(store, "\\u0000", "\\u0000")] == ["odd"]


@case("T2", "metadata comes back as it was given")
def metadata_comes_back(store: Harness) -> None:
    given: dict[str, object] = {key: list(VALUES) for key in KEYS} | {"deep": {"a": [{"b": [[]]}]}}
    fact = add(store, "x", metadata=given)
    assert fact.metadata == given
    assert repr(fact.metadata) == repr(given), "true is not 1, and 1 is not 1.0"


@case("T2", "no search gives more than was asked for")
def searches_are_limited(store: Harness) -> None:
    for number in range(5):
        add(store, f"tea {number}", metadata={"a": 1})
        store.clock.advance(1)
    assert len(_search(store, "tea", limit=3)) == 3


@case("T2", "a search by metadata goes on where a page of it ended, newest first")
def a_search_by_metadata_comes_in_pages(store: Harness) -> None:
    for number in range(5):
        add(store, f"tea {number}", metadata={"a": 1})
        store.clock.advance(number % 2)  # some share their moment
    search, pages = store.handle.facts.search_metadata, list[list[Fact]]()
    for _ in range(3):
        before = pages[-1][-1] if pages else None
        pages.append(search(SPACE, "a", 1, day(1), 2, before=before))
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [fact for page in pages for fact in page] == search(SPACE, "a", 1, day(1), 100)


@case("T2", "a search gives the earliest sources, as many as it is asked for, and counts them all")
def a_search_gives_the_sources_it_is_asked_for(store: Harness) -> None:
    sources = [
        Source(session_id=f"s{number}", seq=number, seq_to=number, quote=f"q{number}")
        for number in range(1, 5)
    ]
    for source in sources:
        add(store, "likes tea", sources=[source])
        store.clock.advance(1)
    for asked in (0, 1, 3, 20):
        [found] = store.handle.facts.search(SPACE, ["tea"], day(1), 10, sources_max=asked)
        assert (found.sources, found.source_count) == (tuple(sources[:asked]), 4)
    [found] = store.handle.facts.search(SPACE, ["tea"], day(1), 10)
    assert found.sources == tuple(sources)


@case("T4", "at another time a fact says what it said then, and is found by that")
def facts_say_what_they_said(store: Harness) -> None:
    handle = store.handle.facts
    at(store, day(10))
    fact = add(store, "tea in Rome", metadata={"a": 1})
    add(store, "tea at noon")
    at(store, day(20))
    edit(store, fact.id, content="tea in Oslo")
    for moment, then, other in ((15, "Rome", "Oslo"), (20, "Oslo", "Rome"), (30, "Oslo", "Rome")):
        said, asked = f"tea in {then}", day(moment)
        listed = handle.list(SPACE, FactQuery(at=asked), 10)
        assert sorted(each.content for each in listed) == sorted(("tea at noon", said))
        assert [each.content for each in handle.search(SPACE, [then], asked, 10)] == [said]
        best = handle.search(SPACE, ["tea", then], asked, 10)
        assert [each.content for each in best] == [said, "tea at noon"]
        assert handle.search(SPACE, [other], asked, 10) == []
        assert handle.search_metadata(SPACE, "a", 1, asked, 10)[0].content == said
        [limited] = handle.search(SPACE, ["tea", then], asked, 1)
        assert limited.content == said
    at(store, day(40))
    learned = teach(store, statement("tea for two", said=day(2)))
    [late] = store.handle.facts.list(SPACE, FactQuery(at=day(3), session_id=learned), 10)
    edit(store, late.id, content="tea for three")
    [then_said] = handle.search(SPACE, ["two"], day(3), 10)
    assert then_said.content == "tea for two", "said then, though it was found later"


@case("T4", "what a clock that goes ahead has stored is so now, and what it ended is over")
def clocks_may_differ(store: Harness) -> None:
    def held(on: int) -> list[str]:
        """What holds now, by a clock that shows this day."""
        query = FactQuery(at=day(on), when=When.NOW)
        listed = sorted(fact.content for fact in store.handle.facts.list(SPACE, query, 10))
        searched = store.handle.facts.search(SPACE, ["tea"], day(on), 10, when=When.NOW)
        assert sorted(fact.content for fact in searched) == listed
        assert found(store, "tea", EntryKind.FACT, now=day(on)) == listed
        assert store.handle.facts.count(SPACE, day(on), When.NOW) == len(listed)
        return listed

    at(store, day(5))
    added = add(store, "tea at noon")
    for city, on in (("Rome", 1), ("Oslo", 7)):  # said by a clock that goes ahead of ours
        teach(store, statement(f"tea in {city}", said=day(on), topic="tea"), key=city)
    later = Fact("tea from May on", valid_from=day(9))
    store.handle.facts.add(SPACE, later, store.now(), store.new_id)
    for on in (0, 4, 6, 8):
        assert held(on) == ["tea at noon", "tea in Oslo"]
    assert held(9) == ["tea at noon", "tea from May on", "tea in Oslo"]
    then = store.handle.facts.list(SPACE, FactQuery(at=day(4)), 10)
    assert [fact.content for fact in then] == ["tea in Rome"], "as it was believed at that time"
    assert added.holds(day(4))
    assert not added.is_valid(day(4))
