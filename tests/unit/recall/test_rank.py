"""Ranking: what goes before what, and the reasons it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.recall.question import Phrase, Question, Term, speakers_asked
from recollect.recall.rank import (
    Candidates,
    Corpus,
    Similarities,
    rank,
)
from recollect.times import TimeRange
from recollect.times.spans import Precision
from recollect.types.facts import Trust
from tests.tables import every_row

NOW = datetime(2023, 6, 1, tzinfo=UTC)
COMMON, RARE = 900, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One candidate, before all of them stand side by side."""

    id: str
    text: str
    speaker: str
    session: str | None
    seq: int
    trust: Trust
    said_at: datetime
    uses: int
    turn: int | None
    happened: tuple[datetime, datetime] | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate with what it was ranked by."""

    id: str
    score: float
    parts: Mapping[str, float]


def entry(
    id: str,  # noqa: A002
    text: str,
    *,
    speaker: str = "",
    session: str | None = None,
    seq: int = 0,
    trust: Trust = Trust.USER,
    said_at: datetime = NOW - timedelta(days=30),
    uses: int = 0,
    turn: int | None = None,
    happened: tuple[datetime, datetime] | None = None,
) -> Told:
    return Told(
        id=id,
        text=text,
        speaker=speaker,
        session=session,
        seq=seq,
        trust=trust,
        said_at=said_at,
        uses=uses,
        turn=turn,
        happened=happened,
    )


def side_by_side(entries: Sequence[Told]) -> Candidates:
    """What has no turn of its own goes by its place."""
    return Candidates(
        stems=[f" {each.text} " for each in entries],
        said_at=[each.said_at for each in entries],
        trusts=[each.trust for each in entries],
        speakers=[each.speaker for each in entries],
        subjects=["" for _ in entries],
        happened=[each.happened for each in entries],
        owned=["" for _ in entries],
        have_changed=[False for _ in entries],
        sessions=[each.session for each in entries],
        seqs=[each.seq for each in entries],
        uses=[each.uses for each in entries],
        turns=[at if each.turn is None else each.turn for at, each in enumerate(entries)],
    )


def asked(words: str, *times: TimeRange) -> Question:
    return Question(
        terms=tuple(Term(stem=word, word=word) for word in words.split()),
        asked_at=NOW,
        times=times,
    )


def order(
    question: Question,
    *entries: Told,
    holders: dict[str, int] | None = None,
    similarities: Similarities | None = None,
) -> list[str]:
    return [
        each.id for each in ranked(question, *entries, holders=holders, similarities=similarities)
    ]


def ranked(
    question: Question,
    *entries: Told,
    holders: dict[str, int] | None = None,
    similarities: Similarities | None = None,
) -> list[Placed]:
    corpus = Corpus(entries=1000, holders=holders or {})
    found = rank(question, corpus, side_by_side(entries), similarities)
    return [Placed(entries[each.at].id, each.score, each.parts) for each in found]


def test_nothing_to_rank_is_an_empty_list() -> None:
    day = TimeRange(start=NOW, end=NOW, text="today", span=(0, 5), precision=Precision.DAY)
    assert ranked(asked("harbour")) == []
    assert ranked(asked("harbour", day)) == []


def test_a_question_without_words_ranks_what_there_is() -> None:
    assert len(ranked(asked(""), entry("a", "harbour"), entry("b", "boat"))) == 2


def test_a_rare_word_tells_more_than_a_common_one() -> None:
    found = order(
        asked("day harbour"),
        entry("common", "a day out"),
        entry("rare", "the harbour wall"),
        holders={"day": COMMON, "harbour": RARE},
    )
    assert found == ["rare", "common"]


def test_words_count_as_words_and_not_as_letters() -> None:
    [first, second] = ranked(asked("art"), entry("a", "art class"), entry("b", "start party"))
    assert first.id == "a"
    assert "words" not in second.parts


def test_a_word_that_begins_alike_counts_a_little() -> None:
    found = ranked(
        asked("volunteer"),
        entry("kin", "voluntari work"),
        entry("same", "volunteer work"),
        entry("other", "paid work"),
    )
    assert [each.id for each in found] == ["same", "kin", "other"]
    assert 0 < found[1].parts["words"] < found[0].parts["words"]


def test_a_long_entry_pays_for_its_length() -> None:
    long = "harbour " + "word " * 400
    assert order(asked("harbour"), entry("long", long.strip()), entry("short", "harbour")) == [
        "short",
        "long",
    ]


def test_an_answer_beside_the_words_goes_before_a_stranger() -> None:
    found = ranked(
        asked("harbour"),
        entry("stranger", "thanks", session="t", seq=9),
        entry("words", "which harbour", session="s", seq=4),
        entry("answer", "oban", session="s", seq=5),
    )
    assert [each.id for each in found] == ["words", "answer", "stranger"]
    assert found[1].parts["neighbours"] > 0


def test_a_turn_one_further_counts_less_than_the_one_beside() -> None:
    found = order(
        asked("harbour"),
        entry("a", "well", session="s", seq=7),
        entry("b", "oban", session="s", seq=6),
        entry("c", "a harbour", session="s", seq=4),
        entry("d", "oban", session="s", seq=5),
    )
    assert found == ["c", "d", "b", "a"]


def test_turns_of_different_sessions_are_no_neighbours() -> None:
    found = ranked(
        asked("harbour"),
        entry("words", "which harbour", session="s", seq=4),
        entry("other", "oban", session="t", seq=5),
    )
    assert "neighbours" not in found[1].parts


def test_the_person_asked_about_speaks_first() -> None:
    found = order(
        asked("mel paint"),
        entry("about", "mel your paint", speaker="caroline"),
        entry("self", "well this is my own paint", speaker="melanie"),
    )
    assert found == ["self", "about"]


def test_a_name_is_known_by_its_beginning_and_by_each_of_its_parts() -> None:
    terms = asked("mel smith jo").terms
    assert speakers_asked(terms, {"melanie", "anna smith", "john", "", "mark"}) == {
        "melanie",
        "anna smith",
    }


def test_a_word_that_a_name_begins_with_is_a_word() -> None:
    said = (entry("name", "i drove home", speaker="carla"), entry("word", "the car is here"))
    found = ranked(asked("car level"), *said, holders={"car": RARE})
    assert found[0].id == "word"
    assert all("speaker" not in each.parts for each in found)
    [term] = asked("car").terms
    as_written = replace(asked("car"), terms=(replace(term, is_capital=True),))
    assert "speaker" in ranked(as_written, said[0], holders={"car": RARE})[0].parts


def test_a_question_of_nothing_but_a_name_still_finds_it() -> None:
    found = ranked(asked("mel"), entry("a", "hello mel", speaker="melanie"), entry("b", "bye"))
    assert found[0].parts["words"] > 0


def test_what_was_said_in_the_time_asked_for_goes_first() -> None:
    may = TimeRange(
        start=datetime(2023, 5, 1, tzinfo=UTC),
        end=datetime(2023, 5, 2, tzinfo=UTC),
        text="1 May",
        span=(0, 5),
        precision=Precision.DAY,
    )
    times = [may.start - timedelta(days=20), may.end + timedelta(hours=5), may.start]
    entries = [entry(name, "paint", said_at=at) for name, at in zip("abc", times, strict=True)]
    assert order(asked("paint", may), *entries) == ["c", "b", "a"]


def test_what_happened_in_the_time_asked_for_counts_as_said_then() -> None:
    may = TimeRange(
        start=datetime(2023, 5, 1, tzinfo=UTC),
        end=datetime(2023, 6, 1, tzinfo=UTC),
        text="May",
        span=(0, 3),
        precision=Precision.MONTH,
    )
    trips = [(may.end, may.end + timedelta(days=9)), (may.end - timedelta(days=3), may.end)]
    long_after = may.end + timedelta(days=200)
    entries = [
        entry(name, "trip", said_at=long_after, happened=happened)
        for name, happened in zip("abc", (None, *trips), strict=True)
    ]
    assert order(asked("trip", may), *entries)[0] == "c"


def test_a_time_that_holds_everything_says_nothing() -> None:
    year = TimeRange(
        start=NOW - timedelta(days=365), end=NOW, text="2023", span=(0, 4), precision=Precision.YEAR
    )
    found = ranked(asked("paint", year), entry("a", "paint"), entry("b", "paint"))
    assert all("time" not in each.parts for each in found)


def test_what_is_there_for_its_time_alone_does_not_make_the_time_common() -> None:
    may = TimeRange(
        start=NOW - timedelta(days=31),
        end=NOW - timedelta(days=29),
        text="1 May",
        span=(0, 5),
        precision=Precision.DAY,
    )
    before = NOW - timedelta(days=90)
    by_words = [entry(f"w{at}", "paint", said_at=before) for at in range(30)]
    by_time = [entry(f"t{at}", "tea") for at in range(60)]
    sought = entry("sought", "paint")
    alone = ranked(asked("paint", may), sought, *by_words)[0]
    among = ranked(asked("paint", may), sought, *by_words, *by_time)[0]
    assert alone.id == among.id == "sought"
    assert among.parts["time"] == alone.parts["time"] > 0


def test_a_person_goes_before_an_agent_and_a_tool() -> None:
    found = order(
        asked("harbour"),
        entry("agent", "harbour", trust=Trust.AGENT),
        entry("person", "harbour", trust=Trust.USER),
    )
    assert found == ["person", "agent"]
    tool = ranked(asked("harbour"), entry("tool", "harbour", trust=Trust.TOOL))[0]
    assert tool.score < ranked(asked("harbour"), entry("person", "harbour"))[0].score


def test_what_the_agent_said_counts_in_full_where_it_is_asked_for() -> None:
    told = (
        entry("person", "harbour", trust=Trust.USER),
        entry("agent", "harbour paint", trust=Trust.AGENT),
    )
    question = asked("harbour paint")
    by_agent = replace(question, asks_agent=True)
    agent, person = (ranked(by_agent, *told)[at] for at in (0, 1))
    assert (agent.id, person.id) == ("agent", "person")
    plain = {each.id: each.score for each in ranked(question, *told)}
    assert agent.score > plain["agent"]
    assert person.score == plain["person"]


def test_a_session_that_has_the_words_together_lifts_its_entries() -> None:
    found = order(
        asked("harbour paint"),
        entry("alone", "harbour", session="s", seq=1),
        entry("together", "harbour", session="t", seq=1),
        entry("far", "paint", session="t", seq=30),
    )
    assert found.index("together") < found.index("alone")


def test_what_belongs_to_no_session_is_not_put_at_a_disadvantage() -> None:
    found = order(
        asked("harbour"),
        entry("turn", "harbour", session="s", seq=1),
        entry("fact", "harbour"),
    )
    assert found == ["fact", "turn"]


def test_likeness_in_meaning_finds_what_has_no_word() -> None:
    alike = Similarities(cosines=[0.1, 0.7], usual=0.1, spread=0.1)
    found = ranked(asked("boat"), entry("not", "tea"), entry("meant", "ship"), similarities=alike)
    assert found[0].id == "meant"
    assert found[0].parts["similarity"] > 0


def test_where_all_are_less_alike_than_usual_the_most_alike_still_counts() -> None:
    """A question is less like a text than texts are like each other, by far in some models."""
    cosines = {"a": 0.1, "b": 0.15, "c": 0.2, "meant": 0.3}
    alike = Similarities(cosines=[*cosines.values()], usual=0.6, spread=0.1)
    entries = [entry(name, "tea") for name in cosines]
    found = ranked(asked("boat"), *entries, similarities=alike)
    assert found[0].id == "meant"
    assert found[0].parts["similarity"] > found[1].parts["similarity"] > 0


def test_likeness_counts_in_the_spreads_of_its_model() -> None:
    narrow = Similarities(cosines=[0.85], usual=0.8, spread=0.02)
    wide = Similarities(cosines=[0.85], usual=0.8, spread=0.2)
    [of_narrow] = ranked(asked("boat"), entry("a", "ship"), similarities=narrow)
    [of_wide] = ranked(asked("boat"), entry("a", "ship"), similarities=wide)
    assert of_narrow.parts["similarity"] > of_wide.parts["similarity"]


def test_likeness_counts_less_where_the_candidates_are_far_apart_in_it() -> None:
    """Many things in one space: two of its texts have little in common, as is usual there."""

    def best(*others: float) -> float:
        alike = Similarities(cosines=[0.6, *others * 50], usual=0.1, spread=0.1)
        entries = [entry(f"{at:03}", "ship") for at in range(len(alike.cosines))]
        return ranked(asked("boat"), *entries, similarities=alike)[0].parts["similarity"]

    assert best(0.0, 0.5) < best(0.0, 0.1)


def test_between_equals_the_newer_and_the_more_used_go_first() -> None:
    old = entry("a", "harbour", said_at=NOW - timedelta(days=900))
    new = entry("b", "harbour", said_at=NOW - timedelta(days=1))
    used = entry("c", "harbour", said_at=NOW - timedelta(days=1), uses=20)
    assert order(asked("harbour"), old, new, used) == ["c", "b", "a"]


def test_age_never_outweighs_a_word() -> None:
    old = entry("old", "harbour paint", said_at=NOW - timedelta(days=3000))
    new = entry("new", "harbour", said_at=NOW, uses=1000)
    assert order(asked("harbour paint"), new, old) == ["old", "new"]


def test_a_score_is_the_sum_of_its_reasons() -> None:
    found = ranked(
        asked("mel harbour"),
        entry("a", "harbour", speaker="melanie", session="s", seq=1, uses=3),
        entry("b", "so", session="s", seq=2, trust=Trust.AGENT),
        entry("c", "harbour"),
        similarities=Similarities(cosines=[None, 0.9, None], usual=0.1, spread=0.2),
    )
    for each in found:
        assert each.score == pytest.approx(sum(each.parts.values()))


def test_only_as_many_as_wanted_are_returned() -> None:
    corpus = Corpus(entries=9, holders={})
    entries = side_by_side([entry(name, "harbour") for name in "abc"])
    assert len(rank(asked("harbour"), corpus, entries, limit=2)) == 2


@every_row("limit", [0, 1, 2, 3, 4, 5, 9])
def test_the_best_are_the_same_however_many_are_wanted(limit: int) -> None:
    """Also where the last that is wanted and the first that is not have the same score."""
    corpus = Corpus(entries=9, holders={})
    texts = ("harbour", "harbour", "boat", "harbour wall", "harbour")
    entries = side_by_side([entry(text, text, turn=-at) for at, text in enumerate(texts)])
    everything = rank(asked("harbour"), corpus, entries)
    assert [each.at for each in everything[:3]] == [4, 1, 0]
    assert rank(asked("harbour"), corpus, entries, limit=limit) == everything[:limit]


def test_kin_adds_nothing_to_a_word_that_is_there() -> None:
    alone, among_kin = "volunteer boat wall", "volunteer voluntary volunteering"
    one, other = ranked(asked("volunteer"), entry("a", alone), entry("b", among_kin))
    assert one.parts["words"] == other.parts["words"]


def test_the_order_does_not_depend_on_the_order_of_what_was_found() -> None:
    entries = [entry(name, "harbour", session=name, turn=turn) for turn, name in enumerate("bdcea")]
    assert order(asked("harbour"), *entries) == list("bdcea")
    assert order(asked("harbour"), *reversed(entries)) == list("bdcea")


def test_words_that_stand_together_in_the_question_count_more_where_they_do_in_an_entry() -> None:
    question = replace(asked("fish market"), phrases=(Phrase(("fish", "market")),))
    apart, together = entry("a", "market for fish", turn=1), entry("b", "fish market far", turn=2)
    first, second = ranked(question, apart, together)
    assert (first.id, second.id) == ("b", "a")
    assert 0 < first.parts["phrase"] < first.parts["words"]
    assert "phrase" not in second.parts


def test_what_stands_in_quotation_marks_counts_more_than_words_that_stand_together() -> None:
    def worth(*, is_quoted: bool) -> float:
        phrase = Phrase(("the", "red", "boat"), is_quoted=is_quoted)
        question = replace(asked("red boat"), phrases=(phrase,))
        [found] = ranked(question, entry("a", "see the red boat now"))
        return found.parts.get("phrase", 0.0)

    assert worth(is_quoted=True) > 0
    assert worth(is_quoted=False) == 0  # "the" is not worth a search


def test_a_phrase_does_not_reach_from_one_entry_into_the_next() -> None:
    question = replace(asked("fish market"), phrases=(Phrase(("fish", "market")),))
    found = ranked(question, entry("a", "fish"), entry("b", "market"))
    assert all("phrase" not in each.parts for each in found)
