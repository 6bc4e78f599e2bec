"""X5, invariant 6: a model's answer is right in every part, or an error and never nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidOutput
from recollect.extraction.parse import ANSWER_SCHEMA, AnswerLimits, handles_of, parse, slug
from recollect.extraction.piece import Piece
from recollect.types.facts import Draft, FactTag, NewFact, Trust
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


@pytest.mark.parametrize("kind", list(FactTag))
def test_every_kind_is_understood(kind: FactTag) -> None:
    assert the_fact(kind=kind.value).tags == (kind.value,)


@pytest.mark.parametrize("quote", ["", "I never said that", "The weather in Oslo"])
def test_a_quote_that_the_cited_records_do_not_have_is_replaced_by_their_own_words(
    quote: str,
) -> None:
    assert the_fact(quote=quote).quote == TEA.text


def test_a_quote_may_differ_in_its_spaces() -> None:
    assert the_fact(quote=" tea \n over\tcoffee ").quote == "tea over coffee"


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "name", ["f3", "f0", "F1", " f1", "id-coffee", "id-foreign", "*", "", "f1; DROP TABLE facts"]
)
def test_names_that_were_not_given_are_refused(name: str) -> None:
    with pytest.raises(InvalidOutput, match="the known facts are f1, f2"):
        the_fact(supersedes=[name])


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
    "NaN": answer(rollout_slug="%").replace('"%"', "NaN"),
    "Infinity": answer(rollout_slug="%").replace('"%"', "-Infinity"),
    "a key twice": answer()[:-1] + ', "facts": []}',
    "a key of a fact twice": answer(FACT).replace('"kind"', '"quote"', 1),
    "a key too many": answer(notes="x"),
    "a space": answer(space="other"),
    "a path": answer(path="/etc/passwd"),
    "a fact's key too many": answer(FACT | {"trust": "user"}),
    "a fact's id": answer(FACT | {"id": "id-coffee"}),
    "a fact's space": answer(FACT | {"space": "other"}),
    "too deep": "[" * 100_000,
    "a number without end": answer(fact("x")).replace("[1]", "[" + "9" * 10_000 + "]"),
    "too long": answer(raw_memory="x" * 1001),
    "a summary too long": answer(rollout_summary="x" * 1001),
    "far too long": answer(raw_memory="x" * 10_000_000),
    "half a character": answer(raw_memory="%").replace("%", "\\ud800"),
    "half a character in a fact": answer(fact("tea %")).replace("%", "\\udfff"),
    "too many facts": answer(*(fact(f"Tea number {at}.") for at in range(6))),
    **{
        f"without {key}": json.dumps({k: v for k, v in json.loads(answer()).items() if k != key})
        for key in json.loads(answer())
    },
    **{
        f"a fact without {key}": answer({k: v for k, v in FACT.items() if k != key}) for key in FACT
    },
}
VALUES: dict[str, list[Any]] = {
    "raw_memory": [None, 1, True, [], {}, ["x"]],
    "rollout_summary": [None, 1.5, False, [], {}],
    "rollout_slug": [1, True, [], {}],
    "facts": [None, "none", {}, "[]", 0, [None], ["Tea."], [[]], [[FACT]], [1]],
}
FACT_VALUES: dict[str, list[Any]] = {
    "content": [None, 1, [], {}, "", " \n", "\u200b\u202e", "x" * 201],
    "kind": [None, 1, [], ["preference"], "", "Preference", "fact", "preference "],
    "records": [
        None, 1, "1", {}, [], ["1"], [1.0], [True], [None], [[1]], {"first": 1, "last": 2},
        [0], [-1], [3], [9], [10], [1, 3], [2**70], [1] * 201,
    ],
    "quote": [None, 1, [], {}, True],
    "topic": [1, [], {}, True],
    "supersedes": [None, "f1", 1, {}, [1], [None], [["f1"]], [{}]],
    "until": [
        1, [], {}, True, "tomorrow", "2026-02-30", "31.05.2026", "2026-5-1", "20260531",
        "2026-05-31T00:00:00Z", "9999-12-31", "2026-W22-7", "٢٠٢٦-٠٥-٣١", "-2026-05-31",
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_is_refused(text: str) -> None:
    with pytest.raises(InvalidOutput):
        parsed(text)


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in VALUES.items() for value in values]
)
def test_a_wrong_value_is_refused(key: str, value: object) -> None:
    with pytest.raises(InvalidOutput, match=key):
        parsed(answer(**{key: value}))


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in FACT_VALUES.items() for value in values]
)
def test_a_wrong_value_in_a_fact_is_refused(key: str, value: object) -> None:
    with pytest.raises(InvalidOutput, match=rf"facts\[1\].{key}"):
        parsed(answer(FACT, fact("The user prefers tea, they say.") | {key: value}))


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_a_complaint_is_short_and_on_one_line(text: str) -> None:
    with pytest.raises(InvalidOutput) as refused:
        parsed(text)
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


def test_one_wrong_fact_refuses_the_whole_answer() -> None:
    with pytest.raises(InvalidOutput):
        parsed(answer(FACT, fact("Unfounded.", [77])))


def test_a_record_that_was_not_shown_cannot_be_cited_even_if_it_is_part_of_the_piece() -> None:
    for seq in (3, 5, 9):
        with pytest.raises(InvalidOutput, match=f"names {seq}"):
            the_fact(records=[seq])


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
    assert set(ANSWER_SCHEMA["required"]) == set(json.loads(answer()))
    assert set(item["required"]) == set(item["properties"]) == set(FACT)
    assert ANSWER_SCHEMA["additionalProperties"] is item["additionalProperties"] is False
    assert item["properties"]["kind"]["enum"] == [tag.value for tag in FactTag]
