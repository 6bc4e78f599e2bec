"""X5, invariant 6: what is right in an answer is kept; one without its shape is an error.

Never nothing to remember, and never more than the records, names and sizes allow.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidOutput
from recollect.extraction.parse import ANSWER_SCHEMA, AnswerLimits, handles_of, parse, slug
from recollect.extraction.piece import Piece
from recollect.types.facts import Draft, FactFaults, FactTag, NewFact, Trust
from tests.tables import every_row
from tests.unit.extraction.material import (
    answer,
    answered,
    at,
    extraction,
    fact,
    known,
    piece,
    resulted,
    said,
)
from tests.unit.strategies import json_values

TEA = said(1, "I prefer tea over coffee, at least until the end of May.")
PIECE = piece(
    TEA,
    answered(2, "Noted. Tea it is."),
    resulted(4, "The weather in Oslo is fine today"),
    upto=9,
    known=(
        known("The user prefers coffee.", "id-coffee"),
        known("Oslo is rainy.", "id-oslo", trust=Trust.TOOL),
        known("Somebody else's.", "id-foreign", space="other"),
    ),
)
LIMITS = AnswerLimits(fact_chars_max=200, memory_chars_max=1000, facts_max=5)


def parsed(text: str, of: Piece = PIECE) -> Draft:
    return parse(text, of, handles_of(of), LIMITS)


def the_fact(**given: Any) -> NewFact:
    (read,) = parsed(answer(fact("The user prefers tea over coffee.", **given))).facts
    return read


# right answers


def test_an_answer_becomes_a_draft_of_the_whole_piece() -> None:
    draft = parsed(answer(fact("The user prefers tea over coffee.", quote="tea over coffee")))
    assert (draft.upto, draft.raw_memory, draft.rollout_summary) == (9, "## Tea", "Tea.")
    assert draft.rollout_slug == "tea"
    assert draft.facts == (
        NewFact(
            content="The user prefers tea over coffee.",
            seq=1,
            seq_to=1,
            valid_from=at(1),
            trust=Trust.USER,
            quote="tea over coffee",
            tags=("preference",),
            is_single=False,
        ),
    )


def test_blank_texts_and_no_facts_are_nothing_to_remember() -> None:
    text = answer(raw_memory=" ", rollout_summary="", rollout_slug=None)
    assert parsed(text) == Draft(upto=9)
    assert parsed(text).is_empty


@pytest.mark.parametrize(
    "around", ["{}", "  {}\n", "```json\n{}\n```", "```\n{}\n```", "```json {} ```"]
)
def test_a_fence_around_the_whole_is_taken_off(around: str) -> None:
    assert parsed(around.replace("{}", answer())).raw_memory == "## Tea"


def test_the_records_of_a_fact_are_a_range_and_its_time_is_that_of_the_last() -> None:
    read = the_fact(records=[2, 1])
    assert (read.seq, read.seq_to, read.valid_from) == (1, 2, at(2))


@every_row("kind", list(FactTag))
def test_every_kind_is_understood(kind: FactTag) -> None:
    assert the_fact(kind=kind.value).tags == (kind.value,)


@every_row(
    ("given", "topic"),
    [
        (None, None),
        ("", None),
        (" Alice: Drink ", "alice:-drink"),
        ("alice:drink", "alice:drink"),
        ("../../etc/passwd", "etc/passwd"),
        ("飲み物", "飲み物"),
        ("a" * 500, "a" * 80),
        ("'; DROP TABLE facts; --", "drop-table-facts"),
    ],
)
def test_a_topic_is_brought_into_one_form(given: str | None, topic: str | None) -> None:
    assert the_fact(topic=given).topic == topic


@every_row(
    ("until", "valid_to"),
    [
        (None, None),
        ("", None),
        ("2026-05-31", datetime(2026, 6, 1, tzinfo=UTC)),
        ("2026-05-01", datetime(2026, 5, 2, tzinfo=UTC)),  # the day it was said
        ("2026-04-30", None),  # over before it was said: it ends nothing
        ("0001-01-01", None),
    ],
)
def test_a_fact_may_hold_until_the_end_of_a_day(until: str, valid_to: datetime | None) -> None:
    assert the_fact(until=until).valid_to == valid_to


@every_row(
    ("given", "made"),
    [
        (None, None),
        ("", None),
        ("---", None),
        ("Fix the Build", "fix-the-build"),
        ("../../etc/passwd", "etc-passwd"),
        ("..\\..\\x", "x"),
        ("a/b\x00c", "a-b-c"),
        ("日本", None),
        ("x" * 200, "x" * 60),
    ],
)
def test_a_slug_is_safe_in_a_file_s_name(given: str | None, made: str | None) -> None:
    assert slug(given) == made
    assert parsed(answer(rollout_slug=given)).rollout_slug == made


def test_statements_are_on_one_line_and_read_as_they_are_written() -> None:
    (read,) = parsed(answer(fact("Tea\n\nover \u202ecoffee\u200b\x1b[31m"))).facts
    assert read.content == "Tea over coffee"


def test_a_statement_that_stands_twice_is_kept_once() -> None:
    twice = (
        fact("The weather in Oslo is fine.", [4]),
        fact("the weather in Oslo is fine", [4]),
        fact("Prefers tea.", [1]),
    )
    assert [read.content for read in parsed(answer(*twice)).facts] == [
        "The weather in Oslo is fine.",
        "Prefers tea.",
    ]


def test_of_a_statement_that_stands_twice_the_better_word_is_kept() -> None:
    both = piece(said(1, "Tea is good"), resulted(2, "Tea is good"), upto=2)
    facts = parsed(answer(fact("Tea is good", [2]), fact("Tea is good", [1])), both).facts
    assert [(read.trust, read.seq) for read in facts] == [(Trust.USER, 1)]


# what was there before


def test_nothing_to_remember_stays_nothing_whatever_was_there_before() -> None:
    before = piece(TEA, previous=extraction())
    blank = answer(raw_memory="", rollout_summary="", rollout_slug=None)
    assert parsed(blank, before).is_empty


# about whom, and when


def test_what_happened_on_a_day_does_not_end_with_it() -> None:
    for kind in ("event", "commitment"):
        read = the_fact(kind=kind, until="2026-05-31")
        assert (read.valid_to, days_of(read)) == (None, ("2026-05-31", "2026-05-31"))
        read = the_fact(kind=kind, when="2026-05-04", until="2026-05-31")
        assert (read.valid_to, days_of(read)) == (None, ("2026-05-04", "2026-05-04"))
    assert the_fact(kind="detail", until="2026-05-31").valid_to == datetime(2026, 6, 1, tzinfo=UTC)


def test_wrong_records_are_mended_by_a_quote_that_one_of_them_has() -> None:
    mended = parsed(answer(fact("Prefers tea over coffee.", [77], quote="prefer tea over coffee")))
    assert [(read.seq, read.quote) for read in mended.facts] == [(1, "prefer tea over coffee")]
    assert mended.faults == FactFaults(mended=1)


# parts of texts

BEFORE = piece(
    TEA, previous=extraction(raw_memory="## Tea\n- likes it green\n\n## Cat\n- named Pixel, grey")
)


@pytest.mark.parametrize(
    ("given", "memory"),
    [
        ([], "## Tea\n- likes it green\n\n## Cat\n- named Pixel, grey"),
        (
            [{"replaces": "r2", "text": "## Cat\n- named Pixel, grey, shy"}],
            "## Tea\n- likes it green\n\n## Cat\n- named Pixel, grey, shy",
        ),
        (
            [{"text": "## [r2] Cat\n- named Pixel, grey, shy"}],  # as it was shown
            "## Tea\n- likes it green\n\n## Cat\n- named Pixel, grey, shy",
        ),
        (
            [{"text": "## Cat\n- shy"}],  # of the same title: it adds
            "## Tea\n- likes it green\n\n## Cat\n- named Pixel, grey\n- shy",
        ),
        (
            [{"replaces": "r1", "text": "## Dog\n- named Rex"}],  # one that has nothing of it
            "## Tea\n- likes it green\n\n## Cat\n- named Pixel, grey\n\n## Dog\n- named Rex",
        ),
        (
            [{"replaces": "r9", "text": "## Dog\n- named Rex"}, 5, {"text": 1}, {}, None],
            "## Tea\n- likes it green\n\n## Cat\n- named Pixel, grey\n\n## Dog\n- named Rex",
        ),
        (
            "## Dog\n- named Rex\n\n## Cat\n- named Pixel, grey",  # a text, and nothing twice
            "## Tea\n- likes it green\n\n## Cat\n- named Pixel, grey\n\n## Dog\n- named Rex",
        ),
    ],
)
def test_an_answer_changes_the_parts_it_names_and_adds_the_others(given: Any, memory: str) -> None:
    assert parsed(answer(raw_memory=given), BEFORE).raw_memory == memory


# superseding


def test_known_facts_have_short_names_and_only_those_of_the_space() -> None:
    assert {name: fact.id for name, fact in handles_of(PIECE).items()} == {
        "f1": "id-coffee",
        "f2": "id-oslo",
    }


def test_a_fact_supersedes_known_ones_by_name() -> None:
    assert the_fact(supersedes=["f1", "f2", "f1"]).supersedes == ("id-coffee", "id-oslo")


def test_a_tool_does_not_supersede_what_a_person_said() -> None:
    text = answer(fact("The weather in Oslo is fine.", [4], supersedes=["f1", "f2"]))
    (read,) = parsed(text).facts
    assert (read.trust, read.supersedes) == (Trust.TOOL, ("id-oslo",))


# wrong answers

FACT = fact("The user prefers tea.")
WRONG: dict[str, str] = {
    "empty": "",
    "blank": " \n\t",
    "prose": "There is nothing to remember.",
    "none": "none",
    "refusal": "I cannot help with that.",
    "HTML": "<html><body>502 Bad Gateway</body></html>",
    "cut off": answer(FACT)[:-20],
    "cut off in a fence": f"```json\n{answer(FACT)}",
    "words before": f"Here it is: {answer()}",
    "words after": f"{answer()} I hope this helps.",
    "words around a fence": f"Here:\n```json\n{answer()}\n```",
    "two fences": f"```json\n{answer()}\n```\n```json\n{answer()}\n```",
    "two answers": answer() * 2,
    "a list": f"[{answer()}]",
    "a number": "5",
    "null": "null",
    "text": '"none"',
    "an empty object": "{}",
    "single quotes": "{'raw_memory': ''}",
    "a comment": "// memory\n" + answer(),
    "a comma too many": answer()[:-1] + ",}",
    "a byte order mark": "\ufeff" + answer(),
    "NaN": answer(raw_memory="%").replace('"%"', "NaN"),
    "a key twice": answer()[:-1] + ', "facts": []}',
    "too deep": "[" * 100_000,
    "a number without end": answer(fact("x")).replace("[1]", "[" + "9" * 10_000 + "]"),
    "too long": answer(raw_memory="x" * 1001),
    "a summary too long": answer(rollout_summary="x" * 1001),
    "far too long": answer(raw_memory="x" * 10_000_000),
    **{
        f"without {key}": json.dumps({k: v for k, v in json.loads(answer()).items() if k != key})
        for key in ("raw_memory", "rollout_summary", "facts")
    },
}
VALUES: dict[str, list[Any]] = {
    "raw_memory": [None, 1, True, {}],
    "rollout_summary": [None, 1.5, False, {"text": "x"}],
    "facts": [None, "none", {}, "[]", 0],
}


def any_of(*given: Any) -> tuple[Any, ...]:
    return given


# By the part of a fact: what a model may give for it, and what is read; else it is as if left out.
MENDED: dict[str, list[tuple[Any, Any]]] = {
    "kind": [
        ("Preference", ("preference",)),
        (" PREFERENCE\n", ("preference",)),
        *(
            (odd, ("observation",))
            for odd in any_of(1, [], {}, ["preference"], "fact", "preferences")
        ),
    ],
    "records": [
        *((one, (1, 1)) for one in (1, "1", "#1", "[#1]", ["1"], [" #1 "], [1, 3], [500, 1, -1])),
        *(
            (one, (1, 1))
            for one in ([1, None], [1, True], [1, [4]], [1, "x"], [1, 1.5], [2**70, 1])
        ),
        (["4", 1], (1, 4)),
    ],
    "quote": [
        *(
            (odd, TEA.text)
            for odd in any_of(1, [], {}, True, "I never said that", "The weather in Oslo")
        ),
        *(
            (alike, "I prefer tea over coffee, at")
            for alike in ("I PREFER tea over coffee, at", "I prefer tea over coffee, at…")
        ),
    ],
    "topic": [(odd, None) for odd in any_of(1, [1], {}, True)],
    "about": [
        *(
            (one, ("Alice",))
            for one in ("Alice", ["Alice"], [" Alice\n", "Alice"], ["Alice", 1, {}])
        ),
        *((odd, ()) for odd in any_of(1, {}, True, [""], [[]])),
    ],
    "when": [
        ("2026-05-04", ("2026-05-04", "2026-05-04")),
        ("2026-05", ("2026-05-01", "2026-05-31")),
        ("2024-02", ("2024-02-01", "2024-02-29")),
        ("2023", ("2023-01-01", "2023-12-31")),
        ("2026-05-04/2026-05-10", ("2026-05-04", "2026-05-10")),
        ("2025-11/2026-02", ("2025-11-01", "2026-02-28")),
        *((day, ("2022-06-01", "2022-06-30")) for day in ("June 2022", "2022-06-01 to 2022-06-30")),
        ("yesterday", ("2026-04-30", "2026-04-30")),
        *((odd, None) for odd in any_of(1, [1], {}, True, "long ago", "2026-02-30", "2026-13")),
        *((odd, None) for odd in ("2026-05-10/2026-05-04", "2026-00", "07/05/2026", "/", "9999")),
    ],
    "single": [(True, True), *((odd, False) for odd in any_of(1, "true", [True], {}))],
    "supersedes": [
        *((name, ("id-coffee",)) for name in ("f1", "F1", [" f1"], ["f1", "f9"], ["f1", 1, None])),
        *(
            (name, ())
            for name in any_of("f3", ["f0"], ["id-coffee"], ["id-foreign"], ["*"], 1, {}, [{}])
        ),
    ],
    "until": [
        *((day, "2026-05-31") for day in ("31.05.2026", "20260531", "2026-W22-7", "2026/05/31")),
        *((day, "2026-05-31") for day in ("May 2026", "31 May 2026", "31. Mai 2026")),
        ("2026-05-31T00:00:00Z", "2026-05-31"),
        ("2026-5-1", "2026-05-01"),
        ("tomorrow", "2026-05-02"),
        ("June 2022", None),  # over before it was said: it ends nothing
        *((odd, None) for odd in any_of(1, [1], {}, True, "soon", "2026-02-30", "9999-12-31x")),
        *((odd, None) for odd in ("07/05/2026", "May or June 2026", "2026-05-31 " * 1000)),
    ],
}


def days_of(read: NewFact) -> tuple[str, str] | None:
    """The first and last day on which it happened."""
    if read.happened_from is None or read.happened_to is None:
        return None
    return f"{read.happened_from:%Y-%m-%d}", f"{read.happened_to - timedelta(days=1):%Y-%m-%d}"


READ: dict[str, Callable[[NewFact], object]] = {
    "kind": lambda read: read.tags,
    "records": lambda read: (read.seq, read.seq_to),
    "quote": lambda read: read.quote,
    "about": lambda read: read.about,
    "when": days_of,
    "topic": lambda read: read.topic,
    "single": lambda read: read.is_single,
    "supersedes": lambda read: read.supersedes,
    "until": lambda read: read.valid_to and f"{read.valid_to - timedelta(days=1):%Y-%m-%d}",
}
AS_ASKED = {
    *map(repr, ("2026-05-04", "2026-05", "2024-02", "2023", "2026-05-04/2026-05-10")),
    *map(repr, (None, "", [], True, ["Alice"])),
}
LEFT_OUT = ("kind", "about", "when", "quote", "topic", "single", "supersedes", "until")
DROPPED: dict[str, Any] = {
    "null": None,
    "a text": "The user prefers tea.",
    "a number": 1,
    "a list": [FACT],
    **{
        f"content {odd!r:.9}": FACT | {"content": odd}
        for odd in any_of(None, 1, [], {}, "", " \n", "\u200b")
    },
    "content too long": FACT | {"content": "x" * 201},
    **{
        f"records {odd!r}": FACT | {"records": odd}
        for odd in any_of(None, {}, [], [True], [None], [[1]], [1.5], [0], [3], [9], [2**70], "1-2")
    },
    "no content": {key: value for key, value in FACT.items() if key != "content"},
    "no records": {key: value for key, value in FACT.items() if key != "records"},
}
QUOTES = [
    # of a record, of an answer
    ("I don't  take\nmilk", "I don’t take milk"),
    ("I don’t take milk", "i don't take milk"),
    ("Tea -- not coffee -- please", "Tea—not coffee—please"),
    ("well-known tea", "well‑known tea"),
    ("Well... tea, then", "Well… tea, then"),
    ("Well … tea, then", "Well... tea, then"),
    ("She said “tea”, always", 'said "tea"'),
    ("a (tea) + [b]*", "(tea) + [b]*"),
]


@every_row("text", WRONG.values())
def test_a_wrong_answer_is_refused(text: str) -> None:
    with pytest.raises(InvalidOutput):
        parsed(text)


@every_row(("key", "value"), [(key, value) for key, values in VALUES.items() for value in values])
def test_a_wrong_value_is_refused(key: str, value: object) -> None:
    with pytest.raises(InvalidOutput, match=key):
        parsed(answer(**{key: value}))


@every_row("text", WRONG.values())
def test_a_complaint_is_short_and_on_one_line(text: str) -> None:
    with pytest.raises(InvalidOutput) as refused:
        parsed(text)
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


# wrong facts in right answers

OTHER = fact("The weather in Oslo is fine today.", [4])


@every_row(
    ("key", "value", "expected"),
    [(key, value, read) for key, values in MENDED.items() for value, read in values],
)
def test_a_part_with_one_meaning_is_mended_and_any_other_left_out(
    key: str, value: object, expected: object
) -> None:
    draft = parsed(answer(OTHER, FACT | {key: value}))
    assert READ[key](draft.facts[1]) == expected
    is_as_asked = repr(value) in AS_ASKED and (value is not True or key == "single")
    assert draft.faults == FactFaults(mended=0 if is_as_asked else 1)
    others = READ.keys() - ({key} if key != "records" else {*READ})
    assert all(READ[other](draft.facts[1]) == READ[other](the_fact()) for other in others)


@pytest.mark.parametrize("key", LEFT_OUT)
def test_what_may_be_left_out_may_be_null_or_missing(key: str) -> None:
    kept = [
        parsed(answer({**FACT, key: None})),
        parsed(answer({name: value for name, value in FACT.items() if name != key})),
    ]
    assert kept[0] == kept[1]
    assert (len(kept[0].facts), kept[0].faults) == (1, FactFaults())


@every_row("given", DROPPED.values())
def test_a_fact_that_says_or_rests_on_nothing_is_dropped_and_the_others_kept(given: object) -> None:
    draft = parsed(answer(given, OTHER))
    assert [read.content for read in draft.facts] == [OTHER["content"]]
    assert draft.faults == FactFaults(dropped=1)


@every_row("given", DROPPED.values())
def test_an_answer_of_which_nothing_is_left_is_refused(given: object) -> None:
    with pytest.raises(InvalidOutput, match=r"none of the facts can be used: facts\[0\] "):
        parsed(answer(given, given, raw_memory="", rollout_summary=" "))
    assert parsed(answer(given)).raw_memory == "## Tea", "something else is said"


def test_a_fact_in_which_a_key_stands_twice_is_dropped() -> None:
    text = answer(FACT, OTHER).replace('"kind"', '"quote"', 1)
    draft = parsed(text)
    assert [read.content for read in draft.facts] == [OTHER["content"]]


def test_facts_beyond_as_many_as_an_answer_may_hold_are_dropped() -> None:
    draft = parsed(answer(*(fact(f"Tea number {number}.") for number in range(8))))
    assert (len(draft.facts), draft.faults) == (5, FactFaults(dropped=3))


@pytest.mark.parametrize("given", [{"id": "id-coffee"}, {"space": "other"}, {"trust": "user"}])
def test_keys_that_nobody_asked_for_say_nothing(given: dict[str, Any]) -> None:
    draft = parsed(answer(OTHER | given, **given))
    assert draft == parsed(answer(OTHER))
    assert draft.facts[0].trust is Trust.TOOL


def test_half_a_character_is_not_stored() -> None:
    draft = parsed(answer(fact("tea %"), raw_memory="%").replace("%", "\\ud800"))
    assert (draft.raw_memory, draft.facts[0].content) == ("\ufffd", "tea \ufffd")


@every_row(("said_so", "quote"), QUOTES)
def test_a_quote_is_given_as_the_record_writes_it(said_so: str, quote: str) -> None:
    of = piece(said(1, f"Hello. {said_so}. Bye."))
    (read,) = parsed(answer(fact("Tea, not coffee.", quote=quote)), of).facts
    assert read.quote in " ".join(said_so.split())
    assert len(read.quote) >= len(quote) - 4


@every_row("sign", ["-", " -", "...", "…", " ", "- ", "'", "a-"])
def test_an_odd_quote_takes_no_longer_than_another(sign: str) -> None:
    """P8: backtracking would take years."""
    of = piece(said(1, f"Tea {sign * 20_000}"))
    assert the_fact(quote=f"{sign * 400}x").quote == TEA.text
    assert parsed(answer(fact("Tea.", quote=f"{sign * 400}x")), of).faults.mended <= 1


@given(json_values)
def test_whatever_json_comes_is_a_draft_or_refused(value: object) -> None:
    with pytest.raises(InvalidOutput):
        parsed(json.dumps(value))


@given(st.text(max_size=200))
def test_whatever_text_comes_is_refused(text: str) -> None:
    with pytest.raises(InvalidOutput):
        parsed(text)


@given(
    st.fixed_dictionaries(
        {key: json_values | st.sampled_from([FACT[key]]) for key in FACT if key != "content"}
    )
)
def test_whatever_facts_come_are_right_or_refused(fields: dict[str, Any]) -> None:
    try:
        draft = parsed(answer(fact("The user prefers tea.") | fields))
    except InvalidOutput:
        return
    for read in draft.facts:
        assert {read.seq, read.seq_to} <= {1, 2, 4}
        assert set(read.supersedes) <= {"id-coffee", "id-oslo"}
        assert set(read.tags) <= {tag.value for tag in FactTag}


# the schema says what the parser wants


def test_the_schema_and_the_parser_agree() -> None:
    item = ANSWER_SCHEMA["properties"]["facts"]["items"]
    assert {*ANSWER_SCHEMA["required"], "rollout_slug"} == set(json.loads(answer()))
    assert {*item["required"], *LEFT_OUT} == set(item["properties"]) | {"kind"}
    assert ANSWER_SCHEMA["additionalProperties"] is item["additionalProperties"] is False
    assert item["properties"]["kind"]["enum"] == [tag.value for tag in FactTag]
