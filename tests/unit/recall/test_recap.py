"""The block of a recap: never over its budget, whole, and nothing in it but data."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.models.tokens import estimate_tokens
from recollect.quoting import FENCE, without_recalled
from recollect.recall.recap import Past, Recap, joined, pack_recap, read_past
from recollect.types.facts import Trust
from recollect.types.recall import Context, Entry, EntryKind, Hit, PastSession
from tests.unit.recall.found import hit
from tests.unit.recall.test_pack import HOSTILE
from tests.unit.strategies import any_text

AT = datetime(2026, 3, 1, tzinfo=UTC)


def past(text: str, memory: str = "", name: str = "s") -> Past:
    entry = Entry(
        kind=EntryKind.SUMMARY,
        key=1,
        id=name,
        text=text,
        stems="",
        at=AT,
        trust=Trust.AGENT,
        session_id=name,
    )
    session = PastSession(entry=entry, raw_memory=memory, slug="a-slug")
    found = read_past(session, hit(text, name=name, kind=EntryKind.SUMMARY), str)
    assert found is not None
    return found


def packed(recap: Recap, max_tokens: int = 2000) -> Context:
    return pack_recap(recap, max_tokens=max_tokens, max_facts=10)


def made_of(text: str) -> Recap:
    facts: list[Hit] = [hit(text, name=text)]
    return Recap(
        instructions=facts,
        sessions=[past(text, f"## {text}\noutcome: fail")] if text.strip() else [],
        plans=facts,
        known=facts,
        summary=text,
        project=text,
        place=text,
    )


texts = any_text | st.text("ab ./#-[m1]<\n", max_size=200) | st.sampled_from(HOSTILE)


@given(texts, st.integers(-1, 400))
def test_it_is_never_over_its_budget(text: str, max_tokens: int) -> None:
    block = packed(made_of(text), max_tokens)
    assert block.token_count == (estimate_tokens(block.text) if block else 0)
    assert block.token_count <= max(max_tokens, 0)


@given(texts, any_text, any_text)
def test_it_is_taken_out_of_any_text(text: str, before: str, after: str) -> None:
    """N5: what was recalled is never learned a second time, and nothing breaks out."""
    assume("memory" not in (before + after).lower())
    block = packed(made_of(text))
    assert without_recalled(f"{before}\n{block.text}\n{after}") == f"{before}\n\n{after}"
    for citation in block.citations:
        assert block.text.partition("\n\n")[2].count(f"[{citation.mark}]") == 1


BY_RULES = """# Fix it

## What was asked
- Fix it [#1]
- Why? [#3]

## What came out
outcome: success
last said by the agent: See a.md. It works.
"""
BY_A_MODEL = "Fixed two things.\n\nOne was quick."
TWO_TASKS = "## One\noutcome: fail\n## Two\noutcome: success"
TWICE = "## Fix it\noutcome: fail\n## Fix it\noutcome: success"


@pytest.mark.parametrize(
    ("summary", "memory", "line"),
    [
        (
            BY_RULES,
            "## Task 1: Fix it\ntask_outcome: success",
            "Fix it. Done. Last said by the agent: See a.md. It works. Also asked: Why?",
        ),
        (
            BY_A_MODEL,
            TWO_TASKS,
            "Fixed two things. Still open: One. Done: Two. One was quick.",
        ),
        ("Ana is in.\nBen is out.", "- Ana is in.", "Ana is in. Ben is out."),
        ("", "", "a slug."),
        ("Fix it", TWICE, "Fix it. Done."),
    ],
)
def test_a_session_is_a_line_whatever_wrote_its_texts(summary: str, memory: str, line: str) -> None:
    block = packed(Recap(sessions=[past(summary, memory)]))
    assert f"\n- {line} [m1] (2026-" in block.text


def test_what_is_left_is_told_once_and_not_if_nothing_is() -> None:
    told = past("Did it\n\nIt works. Next: write a test.", "- Next steps: none\n- Open – the docs")
    block = packed(Recap(sessions=[told]))
    assert "- Did it. It works. [m1]" in block.text
    assert "## Open\n\n- The docs [m2]" in block.text
    assert block.text.count("rite a test.") == 1
    assert "one" not in block.text.lower().replace("done", "")


def test_a_later_part_has_what_is_left_over_and_rules_leave_room() -> None:
    rules = [
        hit(f"Keep rule {number} of the house always", name=str(number)) for number in range(9)
    ]
    sessions = [past(f"Session {number} was long", name=str(number)) for number in range(5)]
    block = packed(Recap(instructions=rules, sessions=sessions), 175)
    assert 1 < block.text.count("Keep rule") < len(rules)
    assert block.text.count("was long") > 1
    assert {omission.reason.value for omission in block.omitted} == {"does not fit into the budget"}  # type: ignore[attr-defined]


def test_two_blocks_are_joined_with_marks_that_go_on() -> None:
    found = packed(Recap(instructions=[hit("Tea", name="tea")]))
    recap = pack_recap(
        Recap(instructions=[hit("Oslo", name="oslo")]), max_tokens=100, max_facts=10, first=2
    )
    both = joined(found, recap)
    assert [each.mark for each in both.citations] == ["m1", "m2"]
    assert both.text == f"{found.text}\n\n{recap.text}"
    assert both.token_count == estimate_tokens(both.text)
    assert joined(found, Context(text="")) is found
    assert joined(Context(text=""), recap) is recap
    assert both.text.count(f"<{FENCE}>") == 2
