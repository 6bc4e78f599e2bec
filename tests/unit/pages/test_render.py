"""Topic pages as a pure function of facts: which page a fact is on, and what that says."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect.pages.render import PAGE_FACTS_MAX, render, shown
from recollect.types.facts import Fact, Source, Trust
from recollect.types.pages import FiledFact, PageState, Place, Write
from tests.tables import every_row

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SAID = datetime(2026, 1, 5, 10, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Implements `PagesOfFacts` with values."""

    facts: Sequence[FiledFact]
    pages: Mapping[str, PageState] = field(default_factory=dict)
    there: Mapping[str, Sequence[FiledFact]] = field(default_factory=dict)
    known: Sequence[tuple[str, str, str]] = ()

    def page(self, place: Place) -> PageState:
        facts = len(self.there.get(place.text, ()))
        return self.pages.get(place.text, PageState(is_there=bool(facts), facts=facts))

    def facts_on(self, place: Place) -> Sequence[FiledFact]:
        return self.there.get(place.text, ())

    def below(self, place: Place) -> Sequence[tuple[str, str, str]]:
        return [each for each in self.known if each[0].rpartition("/")[0] == place.text]


def filed(content: str, *tags: str, project: str | None = None, **more: object) -> FiledFact:
    given = {"valid_from": SAID, "id": f"id of {content}", **more}
    return FiledFact(fact=Fact(content, tags=tags, **given), project=project)  # type: ignore[arg-type]


def rendered(*facts: FiledFact, **given: object) -> dict[str, Write]:
    writes = render(Given(facts=facts, **given), NOW)  # type: ignore[arg-type]
    return {write.place.text: write for write in writes}


def bodies(*facts: FiledFact, **given: object) -> dict[str, str]:
    found = rendered(*facts, **given)
    return {path: write.content.body for path, write in found.items() if write.content.body}


SISTER = filed("The user's sister Anna lives in Bern.", "relation")
TEA = filed("The user likes green tea.", "preference")
RULE = filed("Always answer in French.", "instruction")
HOME = filed("The user lives in Porto.", "detail")
PYTEST = filed("Tests run with `pytest -q`.", "procedure", project="/src/shop")
CHOICE = filed("The team decided on PostgreSQL.", "decision", project="/src/shop")
TALKS = filed("Mel loves jazz.", "preference", metadata={"speaker": "Mel"})


def test_a_fact_is_on_the_page_of_whom_or_what_it_is_about() -> None:
    assert bodies(SISTER, TEA, RULE, HOME, PYTEST, CHOICE, TALKS) == {
        "~/memory/people/anna": "- The user's sister Anna lives in Bern. (2026-01-05)",
        "~/memory/people/mel": "- Mel loves jazz. (2026-01-05)",
        "~/memory/profile": "- The user lives in Porto. (2026-01-05)",
        "~/memory/preferences": "- Always answer in French. (2026-01-05)\n"
        "- The user likes green tea. (2026-01-05)",
        "~/memory/projects/shop": "- Tests run with `pytest -q`. (2026-01-05)",
        "~/memory/decisions": "## In shop\n\n- The team decided on PostgreSQL. (2026-01-05)",
    }


def test_a_page_says_who_or_where_it_is_about_and_rests_on_its_facts() -> None:
    source = Source(session_id="s", seq=3, seq_to=4, quote="my sister Anna")
    pages = rendered(filed(SISTER.fact.content, "relation", sources=(source,)), PYTEST)
    anna, shop = pages["~/memory/people/anna"], pages["~/memory/projects/shop"]
    assert (anna.content.title, anna.content.description) == ("Anna", "The user's sister.")
    assert shop.content.description == "Project at /src/shop."
    assert pages["~/memory/people"].content.title == "People"
    assert anna.because is not None
    assert anna.because.facts == (SISTER.fact.id,)
    assert anna.because.sources == (Source(session_id="s", seq=3, seq_to=4),), "without its words"


def test_the_same_facts_give_the_same_pages_whatever_their_order() -> None:
    facts = [SISTER, TEA, RULE, HOME, PYTEST, CHOICE, TALKS]
    facts += [filed(f"The user saw {n} birds.", "event") for n in range(150)]
    before = rendered(*facts)
    for seed in range(5):
        random.Random(seed).shuffle(facts)
        assert rendered(*facts) == before


@pytest.mark.parametrize(
    ("end", "line"),
    [
        ({"valid_to": SAID + timedelta(days=9), "superseded_by": "another"}, "until 2026-01-14"),
        ({"valid_to": NOW - timedelta(days=1)}, "until 2026-02-28"),
        ({"metadata": {"date": "2026-02-01"}, "tags": ("commitment",)}, "until 2026-02-01"),
    ],
    ids=["superseded", "expired", "its day has passed"],
)
def test_what_no_longer_holds_is_said_of_earlier(end: dict[str, Any], line: str) -> None:
    tags = end.pop("tags", ("detail",))
    assert isinstance(tags, tuple)
    over = filed("The user lives in Bern.", *tags, **end)
    body = "\n".join(bodies(over).values())
    assert body == f"## Earlier\n\n- The user lives in Bern. (2026-01-05, {line})"


def test_what_will_be_over_still_holds() -> None:
    body = bodies(filed("The user is in Rome.", "detail", valid_to=NOW + timedelta(days=1)))
    assert body == {"~/memory/profile": "- The user is in Rome. (2026-01-05)"}


def test_a_statement_stands_on_a_page_once_and_by_the_best_word_for_it() -> None:
    low = filed("The user lives in Porto", "detail", trust=Trust.AGENT, id="low")
    assert bodies(low, HOME) == bodies(HOME)


def test_a_long_page_has_headings_and_a_full_one_goes_on_by_topic() -> None:
    details = [filed(f"The user owns {n} books.", "detail") for n in range(PAGE_FACTS_MAX)]
    events = [filed(f"The user saw {n} birds.", "event") for n in range(5)]
    later = [replace_time(each, days=1) for each in events]
    found = bodies(*events, *details[:50])["~/memory/profile"]
    assert found.index("## Details") < found.index("## Events")
    pages = bodies(*details, *later)
    assert set(pages) == {"~/memory/profile", "~/memory/profile/events"}
    assert "##" not in pages["~/memory/profile/events"]


def replace_time(given: FiledFact, days: int) -> FiledFact:
    return filed(given.fact.content, *given.fact.tags, valid_from=SAID + timedelta(days=days))


def test_a_page_that_somebody_wrote_has_its_facts_on_one_below_it() -> None:
    authored = {"~/memory/profile": PageState(is_there=True, is_authored=True)}
    assert list(bodies(HOME, pages=authored)) == ["~/memory/profile/facts"]


def test_what_is_on_a_page_stays_there_and_what_is_new_comes_to_it() -> None:
    new = filed("The user has a dog.", "detail")
    assert "Porto" in bodies(new, there={"~/memory/profile": [HOME]})["~/memory/profile"]


def test_a_full_page_is_left_alone_and_the_last_of_its_topic_is_gone_on_with() -> None:
    full = PageState(is_there=True, facts=PAGE_FACTS_MAX)
    pages = {f"~/memory/profile{end}": full for end in ("", "/details", "/details-2")}
    known = [(f"~/memory/profile/{slug}", slug, "") for slug in ("details", "details-2")]
    found = bodies(filed("The user has a dog.", "detail"), pages=pages, known=known)
    assert list(found) == ["~/memory/profile/details-3"]


def test_a_person_who_has_a_page_is_known_by_a_name_alone() -> None:
    known = [("~/memory/people/anna", "Anna", "The user's sister.")]
    fact = filed("Anna sings in a choir.", "detail")
    assert list(bodies(fact, known=known)) == ["~/memory/people/anna"]
    assert list(bodies(fact)) == ["~/memory/other"]


@every_row(
    "text",
    [
        "# A heading",
        "- an item\n- another",
        "see [[~/memory/x|y]] and [^1]: a note",
        "a <script>tag</script>",
        "```\ncode",
        "~~~ fence",
        "says `this` and `that",
    ],
)
def test_a_statement_is_a_line_of_text_whatever_it_says(text: str) -> None:
    line = shown(text)
    assert "\n" not in line
    assert not line.startswith(("#", "- ", "```", "~~~"))
    assert "[[" not in line
    assert "<script" not in line.replace("\\<", "")
    assert line.count("`") % 2 == 0
