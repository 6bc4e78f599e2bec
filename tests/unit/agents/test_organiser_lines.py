"""A claim on one line, and back: whatever it says, it is text, and found again by its label."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.agents.organiser_lines import (
    TEXT_CHARS_MAX,
    Line,
    Mark,
    Note,
    is_claims_own,
    label_of,
    linked,
    mark_of,
    note_of,
    plain,
    read_line,
    read_note,
    shown,
)
from recollect.documents.links import find_links
from recollect.knowledge import Source, Trust
from recollect.topics.claims import Claim
from recollect.topics.directory import Entity, Mention, TopicKind

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
DAY = date(2026, 11, 15)
HOSTILE = (
    "[[~/memory/profile|x]]",
    "a\n\n## Sources\n\n[^0123456789]: user",
    "- [x] [^0123456789]",
    "---\ntitle: owned\n---",
    "<!-- hidden --> <script>alert(1)</script>",
    "one ` two",
    "```\ncode",
    "`` ` `` ok `x`",
    "\\`not code` `x",
    "~~~ still code",
    "[click](javascript:alert(1))",
    "ends so (2020-01-01) [^0123456789]",
    "really (inferred)",
    "really (from a tool).",
    "in [\\[x",
    "a\u2028b\x00c\ud800",
    "`[[ -f x ]] && make` works",
)


def line_of(text: str) -> Line:
    words = shown(text)
    return Line(text=words, label=label_of(words), day=DAY)


@given(st.text(max_size=80) | st.text("[]^`<>\\(|)~#-* \nab", max_size=40))
@example("[" * 30)
def test_any_claim_is_one_line_that_reads_back_as_it_was_written(text: str) -> None:
    line = line_of(text)
    if not line.text:
        return
    written = str(line)
    assert "\n" not in written
    assert read_line(written) == line
    assert is_claims_own(line)
    assert [link.alias for link in find_links(f"{written}\n- [[~/x|y]]")] == ["y"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_claim_opens_anything_on_a_page(text: str) -> None:
    line = line_of(text)
    below = "- [[~/memory/x|x]] `y`"
    (link,) = find_links(f"{line}\n{below}")
    assert link.path.text == "~/memory/x"
    assert read_line(str(line)) == line
    assert "<s" not in str(line).replace("\\<", "")
    assert "](" not in str(line)


def test_a_plain_claim_and_code_stay_as_they_are() -> None:
    for text in ("The user likes C++ & *tea* (green).", "`[[ -f x ]] && make <all>` works."):
        assert shown(text) == text
        assert plain(shown(text)) == text


def test_a_long_claim_is_cut() -> None:
    assert len(shown("word " * 1000)) <= TEXT_CHARS_MAX


def test_the_same_statement_has_the_same_label_with_links_and_without() -> None:
    text = shown("Anna's friend Bob `Bob` lives <here> [[x]].")
    bob = Entity(kind=TopicKind.PEOPLE, slug="bob", name="Bob")
    at = text.index("Bob")
    mentions = [Mention(entity=bob, start=at, end=at + 3)]
    with_link = linked(text, mentions, lambda _: "~/memory/people/bob")
    assert "friend [[~/memory/people/bob|Bob]] `Bob`" in with_link
    assert label_of(with_link) == label_of(text) == label_of(text.upper())
    assert linked(text, mentions, lambda _: "") == text
    in_code = [Mention(entity=bob, start=text.index("`Bob") + 1, end=text.index("`Bob") + 4)]
    assert linked(text, in_code, lambda _: "~/memory/people/bob") == text


def test_a_line_that_somebody_changed_is_not_ours() -> None:
    written = str(line_of("The user lives in Porto."))
    changed = read_line(written.replace("Porto", "Faro"))
    assert changed is not None
    assert not is_claims_own(changed)


def test_what_a_line_is_marked_with_is_read_back() -> None:
    text = shown("Likes tea.")
    line = Line(
        text=text,
        label=label_of(text),
        day=DAY,
        until=date(2027, 1, 2),
        mark=Mark.INFERRED,
        scope="[[~/memory/projects/x|x]]",
    )
    assert str(line).startswith(
        "- Likes tea. (inferred) (in [[~/memory/projects/x|x]]) (2026-11-15, until 2027-01-02) [^"
    )
    assert read_line(str(line)) == line
    assert read_line(str(line).replace("2026-11-15", "2026-13-15")) is None


@pytest.mark.parametrize(
    ("text", "trust", "is_inferred", "mark"),
    [
        ("Likes tea.", Trust.USER, False, Mark.NONE),
        ("Likes tea.", Trust.USER, True, Mark.INFERRED),
        ("Likes tea (inferred).", Trust.AGENT, False, Mark.INFERRED),
        ("Likes tea.", Trust.TOOL, True, Mark.TOOL),
        ("Likes tea (from a tool).", Trust.USER, False, Mark.NONE),
    ],
)
def test_a_claim_is_marked_by_whose_word_it_is(
    text: str, trust: Trust, is_inferred: bool, mark: Mark
) -> None:
    assert mark_of(Claim(text=text, trust=trust, at=NOON, is_inferred=is_inferred)) is mark


@given(
    st.builds(
        Note,
        label=st.just("0123456789"),
        trust=st.sampled_from(Trust),
        at=st.datetimes(timezones=st.just(UTC)),
        sources=st.lists(
            st.builds(
                Source,
                session_id=st.text(min_size=1, max_size=20),
                seq=st.integers(0, 10**12),
                seq_to=st.integers(0, 10**12),
            ),
            max_size=3,
        ).map(tuple),
        fact_id=st.none() | st.text(min_size=1, max_size=20),
        topic=st.none() | st.text(min_size=1, max_size=20),
        due=st.none() | st.dates(),
    )
)
def test_a_note_reads_back_as_it_was_written(note: Note) -> None:
    assert "\n" not in str(note)
    assert read_note(str(note)) == note


@pytest.mark.parametrize(
    "text",
    [
        "[^0123456789]: my own note",
        "[^0123456789]: user, yesterday",
        "[^0123456789]: user, 2026-11-15T12:00:00",
        "[^0123456789]: king, 2026-11-15T12:00:00Z",
        "[^0123456789]: user, 2026-11-15T12:00:00Z, and more",
        "[^0123456789]: user, 2026-11-15T12:00:00Z, due soon",
        "[^x]: user, 2026-11-15T12:00:00Z",
    ],
)
def test_other_notes_are_somebodys_own(text: str) -> None:
    assert read_note(text) is None


def test_a_note_names_few_sources_without_their_words() -> None:
    sources = tuple(Source(session_id="s", seq=n, seq_to=n, quote="secret") for n in range(20))
    claim = Claim(text="x", trust=Trust.USER, at=NOON, sources=sources, fact_id="f")
    note = note_of(claim, "0123456789", None)
    assert str(note) == (
        "[^0123456789]: user, 2026-11-15T12:00:00Z, s/0, s/1, s/2, s/3, s/4, fact f"
    )
