"""What keeps a staged generation from being published. Rows G9, G11 and the X7 of phase 2."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recollect
from recollect.consolidation.handbook import handbook
from recollect.consolidation.pages import MEMORY, RAW, SKILLS, SUMMARIES, SUMMARY, skill_path
from recollect.consolidation.validation import (
    PROBLEMS_MAX,
    QUOTES_MAX,
    GenerationGrounds,
    PageProblem,
    WrittenLimits,
    blocks,
    echoes,
    is_quoted,
    losses,
    problems,
    spoken,
)
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.types.facts import Fact, FactTag, Source, Trust
from recollect.types.generations import Removed, RemovedBecause, Standing
from recollect.types.pages import Author, AuthorKind
from tests.unit.strategies import any_text

TEA = f"{SUMMARIES}/2026-05-01-tea-1a2b3c4d"
DEPLOY = f"{SUMMARIES}/2026-05-03-deploy-5e6f7a8b"
TO_TEA = f"[[{TEA}|2026-05-01]]"
TO_DEPLOY = f"[[{DEPLOY}|2026-05-03]]"
TEA_SAYS = "Alice said that she drinks green tea every morning before the first meeting."
DEPLOY_SAYS = (
    "The deployment failed until make ship was run with a clean checkout of the repository."
)
HANDBOOK = f"""What is known here.

## Preferences

- Alice drinks green tea in the morning {TO_TEA}

## How things are done

- `make ship` needs a clean checkout {TO_DEPLOY}
"""
SKILL_BODY = (
    f"When a release is due.\n\n1. `make ship`\n2. look at the log\n\n- it fails {TO_DEPLOY}\n"
)
AT = datetime(2026, 5, 4, tzinfo=UTC)
GONE_ID = "0197a000-0000-7000-8000-00000000dead"


@dataclass(kw_only=True)
class Staged:
    """A generation on its way: what stands in the tree, and what is laid over it."""

    documents: Documents
    pages: StagedPages = field(init=False)
    removed: tuple[Removed, ...] = ()
    told: tuple[str, ...] = ()
    kept_asked: int = 0

    def __post_init__(self) -> None:
        self.pages = StagedPages(self.documents, "consolidation")

    def good(self) -> Staged:
        """All that a generation has to have."""
        self.write(TEA, TEA_SAYS)
        self.write(DEPLOY, DEPLOY_SAYS)
        self.write(RAW, "## Tea\n\nShe drinks tea.")
        self.write(MEMORY, HANDBOOK)
        self.write(SUMMARY, "Alice drinks tea and ships with make.")
        return self

    def published(self) -> Staged:
        """The same, and a new pages on top of it."""
        self.good().pages.commit()
        return self

    def write(self, path: str, body: str, **given: str) -> None:
        self.pages.write(path, body, **given)  # type: ignore[arg-type]

    def skill(self, name: str = "ship-it", body: str = SKILL_BODY, **given: str) -> None:
        self.write(skill_path(name), body, **{"title": name, "description": "To ship."} | given)

    def remove(self, path: str, because: RemovedBecause = RemovedBecause.UNSELECTED) -> None:
        self.removed += (Removed(session_id=GONE_ID, because=because, path=path),)

    def kept(self) -> Iterable[str]:
        self.kept_asked += 1
        gone = {each.path for each in self.removed}
        return [says for path, says in ((TEA, TEA_SAYS), (DEPLOY, DEPLOY_SAYS)) if path not in gone]

    def grounds(self, selected: int = 2) -> GenerationGrounds:
        return GenerationGrounds(
            selected=selected,
            before=self.documents,
            removed=self.removed,
            kept=self.kept,
            by_hand=self.told,
        )

    def problems(self, selected: int = 2, limits: WrittenLimits | None = None) -> list[PageProblem]:
        grounds = self.grounds(selected)
        redact = self.documents._redactor().redact
        return problems(self.pages, grounds, redact=redact, limits=limits or WrittenLimits())

    def only(self, limits: WrittenLimits | None = None) -> PageProblem:
        (found,) = self.problems(limits=limits)
        return found


@pytest.fixture
def staged(memory: recollect.Memory) -> Staged:
    author = Author(kind=AuthorKind.CONSOLIDATION, name="consolidation")
    holder = Holder(author=author, root=memory_root())
    return Staged(documents=memory.space("alice").documents.held_by(holder))


# what has to be there


def test_a_good_generation_has_no_problems(staged: Staged) -> None:
    staged.good().skill()
    assert staged.problems() == []


@pytest.mark.parametrize("path", [MEMORY, SUMMARY, RAW])
@pytest.mark.parametrize("body", [None, "", " \n\t\n"])
def test_a_page_that_is_missing_or_blank_is_a_problem(
    staged: Staged, path: str, body: str | None
) -> None:
    staged.good()
    if body is None:
        staged.pages.delete(path, references="leave")
    else:
        staged.write(path, body)
    assert staged.only().text == f"{path} is missing or says nothing: write it"


def test_nothing_has_to_be_there_when_nothing_is_selected(staged: Staged) -> None:
    """G7."""
    staged.write(SUMMARY, "")
    assert staged.problems(selected=0) == []


def test_what_agents_and_people_wrote_is_not_touched(memory: recollect.Memory) -> None:
    """G8: whoever holds the pages."""
    documents = memory.space("alice").documents
    staged = Staged(documents=documents.held_by(Holder(root=memory_root())))
    staged.write("~/memory/people/anna", "She lied.")
    assert "~/memory/people/anna belongs to" in staged.problems(selected=0)[0].text


@pytest.mark.parametrize(
    ("path", "body", "limits"),
    [
        (SUMMARY, "word " * 801, WrittenLimits()),
        (MEMORY, "é " * 33_000, WrittenLimits(memory_bytes=65_536)),
        (SUMMARY, "four words are enough", WrittenLimits(summary_chars=20)),
    ],
)
def test_a_page_that_is_too_long_is_a_problem(
    staged: Staged, path: str, body: str, limits: WrittenLimits
) -> None:
    staged.good().write(path, body)
    found = [each.text for each in staged.problems(limits=limits)]
    assert any(text.startswith(path) and "shorten it" in text for text in found)


def test_a_page_may_be_as_long_as_its_limit(staged: Staged) -> None:
    staged.good().write(SUMMARY, "x" * 4000)
    assert staged.problems() == []


# skills


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("ship-it", {"title": "Ship it"}, "its title has to be its name, ship-it"),
        ("ship-it", {"description": " "}, "has no description"),
        ("ship-it", {"body": " "}, "says nothing"),
        ("ship-it", {"body": "1. make ship\n"}, "cites no summary"),
        ("Ship it", {}, "1 to 64 letters a to z"),
        ("ship-it", {"body": SKILL_BODY + "\n" * 500}, "lines, and may have 500"),
        ("ship-it", {"body": SKILL_BODY + "x" * 24_600}, "bytes, and may have 24,576"),
    ],
)
def test_a_skill_is_described_cited_and_short(
    staged: Staged, name: str, given: dict[str, str], says: str
) -> None:
    staged.good().skill(name, **given)
    found = staged.only()
    assert found.text.startswith(skill_path(name))
    assert says in found.text


def test_a_skill_without_its_page_is_a_problem(staged: Staged) -> None:
    staged.good().skill()
    staged.pages.delete(skill_path("ship-it"), references="leave")
    assert staged.only().text.startswith(f"{SKILLS}/ship-it has no page SKILL")


def test_a_skill_is_one_page(staged: Staged) -> None:
    staged.good().skill()
    staged.write(f"{SKILLS}/ship-it/script", "rm -rf /")
    staged.write(f"{skill_path('ship-it')}/more", "and more")
    assert [each.text.partition(" ")[0] for each in staged.problems()] == [
        f"{SKILLS}/ship-it/script",
        f"{SKILLS}/ship-it/SKILL/more",
    ]


def test_there_are_only_so_many_skills(staged: Staged) -> None:
    staged.good()
    for number in range(3):
        staged.skill(f"skill-{number}")
    assert staged.problems(limits=WrittenLimits(skills=3)) == []
    assert "there are 3 skills" in staged.only(WrittenLimits(skills=2)).text


# sources


@pytest.mark.parametrize(
    "line",
    [
        "- Alice likes jazz",
        "* Alice likes jazz",
        "  - Alice likes jazz [[~/memory/people/alice]]",
        f"- Alice likes jazz `{TO_TEA}`",
        f"- Alice likes jazz [[{SUMMARIES}]]",
        "1. Alice likes jazz",
        "Alice likes jazz. " * 20,
    ],
)
def test_a_claim_that_cites_no_summary_is_a_problem(staged: Staged, line: str) -> None:
    staged.good().write(MEMORY, f"{HANDBOOK}\n\n## More\n\n{line}\n")
    (found,) = [each for each in staged.problems() if "without a source" in each.text]
    assert "1 claim without" in found.text
    assert found.quotes[0].startswith("line 14: ")


@pytest.mark.parametrize(
    "line",
    [
        f"- Alice likes jazz {TO_TEA}",
        f"- Alice likes jazz\n  and tea\n  {TO_TEA}",
        f"- [[{TEA}|Tea]]: what Alice drinks",
        "- On music:",
        "- (nothing yet)",
        "- _nothing yet_",
        "```\n- Alice likes jazz\n```",
        "~~~sh\n- Alice likes jazz\n```\n- and tea\n~~~",
        "12 more are left out here.",
        f"Alice likes jazz. {TO_TEA} " + "She does. " * 40,
    ],
)
def test_what_cites_or_claims_nothing_is_none(staged: Staged, line: str) -> None:
    staged.good().write(MEMORY, f"{HANDBOOK}\n\n## More\n\n{line}\n")
    assert staged.problems() == []


def test_what_was_added_by_hand_needs_no_summary(staged: Staged) -> None:
    staged.told = ("The office is closed on the last Friday of every month.", "Bob is left-handed")
    line = "- The office is closed on the last Friday of every month (2026-05-01)"
    staged.good().write(MEMORY, f"{HANDBOOK}{line}\n- *Bob* is left-handed.\n")
    assert staged.problems() == []
    staged.write(MEMORY, f"{HANDBOOK}- The office is closed on Mondays\n")
    assert "1 claim without" in staged.only().text


def test_the_steps_of_a_skill_have_the_sources_of_their_page(staged: Staged) -> None:
    staged.good().skill(body=f"{SKILL_BODY}- never on a Friday\n")
    found = staged.only()
    assert "1 claim without" in found.text
    assert found.quotes == ("line 7: - never on a Friday",)


def test_many_problems_of_a_kind_are_one_with_a_few_quotes(staged: Staged) -> None:
    staged.good().write(MEMORY, HANDBOOK + "\n".join(f"- claim {n}" for n in range(100)))
    found = staged.only()
    assert "100 claims without" in found.text
    assert len(found.quotes) == QUOTES_MAX + 1
    assert found.quotes[-1] == "and 92 more"


def test_problems_are_as_many_as_somebody_can_mend(staged: Staged) -> None:
    staged.good()
    for number in range(PROBLEMS_MAX + 10):
        staged.skill(f"skill-{number}", description="")
    assert len(staged.problems()) == PROBLEMS_MAX


# links


@pytest.mark.parametrize("path", [MEMORY, SUMMARY, skill_path("ship-it")])
def test_a_link_that_leads_nowhere_is_a_problem(staged: Staged, path: str) -> None:
    staged.good().skill()
    body = staged.pages.read(path).body
    staged.write(path, f"{body}\n\nSee [[~/memory/nowhere]] and [[~/memory/nowhere|this]].")
    found = staged.only()
    assert found.text.startswith(f"{path}: 1 link to what is not there")
    assert found.quotes == ("~/memory/nowhere",)


def test_a_link_outside_memory_leads_nowhere(memory: recollect.Memory, staged: Staged) -> None:
    memory.space("alice").documents.write("~/secret/keys", "hidden")
    staged.good().write(SUMMARY, "See [[~/secret/keys]].")
    assert staged.only().quotes == ("~/secret/keys",)


def test_links_given_with_a_page_count_as_well(staged: Staged) -> None:
    staged.good()
    staged.pages.write(SUMMARY, "Alice.", links=["~/memory/nowhere"])
    assert staged.only().quotes == ("~/memory/nowhere",)


def test_a_link_to_what_people_wrote_is_fine(memory: recollect.Memory, staged: Staged) -> None:
    memory.space("alice").documents.write("~/memory/people/anna", "Anna.")
    staged.good().write(SUMMARY, "See [[~/memory/people/anna]].")
    assert staged.problems() == []


def test_evidence_may_quote_what_looks_like_a_link(staged: Staged) -> None:
    staged.good().write(RAW, "She wrote [[ -f x ]] and [[~/memory/nowhere]].")
    staged.write(DEPLOY, f"{DEPLOY_SAYS} [[~/memory/nowhere]]")
    assert staged.problems() == []


# forgetting


def test_a_link_to_a_removed_memory_is_a_problem_while_its_page_still_stands(
    staged: Staged,
) -> None:
    """G11: the page stays to be read during the run."""
    staged.published().remove(TEA)
    found = staged.problems()
    assert [each.text.partition(": ")[2].partition(":")[0] for each in found] == [
        "1 claim without a source",
        "1 link to memories that were removed",
    ]
    assert found[1].quotes == (TEA,)


def test_a_claim_with_another_source_stays_without_the_removed_one(staged: Staged) -> None:
    """G11: what a kept memory supports as well is not forgotten."""
    staged.good().write(MEMORY, HANDBOOK.replace(TO_TEA, f"{TO_TEA} {TO_DEPLOY}"))
    staged.pages.commit()
    staged.remove(TEA)
    assert "1 link to memories" in staged.only().text
    staged.write(MEMORY, HANDBOOK.replace(TO_TEA, TO_DEPLOY))
    assert staged.problems() == []


@pytest.mark.parametrize("path", [MEMORY, SUMMARY, skill_path("ship-it")])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_only_a_removed_memory_said_is_a_problem(
    staged: Staged, path: str, is_deleted: bool
) -> None:
    """G11: also when its page is gone from the staged tree, and under another source's link."""
    staged.published().skill()
    staged.write(MEMORY, HANDBOOK.replace(TO_TEA, TO_DEPLOY))
    staged.remove(TEA, RemovedBecause.FORGOTTEN)
    if is_deleted:
        staged.pages.delete(TEA, references="leave")
    body = staged.pages.read(path).body
    staged.write(path, f"{body}\n\nShe Drinks GREEN tea, every morning before the first standup.\n")
    found = staged.only()
    assert f"{path}: 1 passage that only removed memories said" in found.text
    assert found.quotes == ("she drinks green tea every morning before the first",)


def test_an_echo_in_a_title_or_a_description_is_one(staged: Staged) -> None:
    staged.published().skill(description="She drinks green tea every morning before the shipping.")
    staged.write(MEMORY, HANDBOOK.replace(TO_TEA, TO_DEPLOY))
    staged.remove(TEA)
    assert "1 passage" in staged.only().text


def test_what_a_kept_memory_says_in_the_same_words_stays(staged: Staged) -> None:
    staged.published().remove(TEA)
    staged.write(MEMORY, HANDBOOK.replace(TO_TEA, TO_DEPLOY) + f"\n{TEA_SAYS}\n")
    assert "1 passage" in staged.only().text
    staged.told = (TEA_SAYS,)
    assert staged.problems() == []


def test_kept_texts_are_read_only_where_something_is_suspected(staged: Staged) -> None:
    """An incremental run does not read all there is."""
    staged.published().remove(TEA)
    staged.write(MEMORY, HANDBOOK.replace(TO_TEA, TO_DEPLOY))
    assert staged.problems() == []
    assert staged.kept_asked == 0


def test_the_id_of_a_removed_session_is_not_named(staged: Staged) -> None:
    staged.published().remove(TEA)
    staged.write(MEMORY, HANDBOOK.replace(TO_TEA, TO_DEPLOY))
    staged.write(SUMMARY, f"Alice (session {GONE_ID}) ships.")
    assert "names 1 session that was removed" in staged.only().text


def test_a_removed_memory_without_a_page_is_no_obstacle(staged: Staged) -> None:
    staged.good().removed = (Removed(session_id=GONE_ID, because=RemovedBecause.FORGOTTEN),)
    assert staged.problems() == []


def test_problems_quote_nobody_in_what_may_be_logged(staged: Staged) -> None:
    """P11: an error outlives what was forgotten."""
    staged.published().remove(TEA)
    staged.write(SUMMARY, TEA_SAYS)
    assert staged.problems()
    for each in staged.problems():
        assert "green tea" not in each.text
    assert any("green tea" in str(each) for each in staged.problems())


# secrets


def test_a_secret_is_a_problem(staged: Staged) -> None:
    """X7: redaction has looked already; a page from before it knew better has not."""
    staged.good()
    found = problems(
        staged.pages, staged.grounds(), redact=lambda text: text.replace("make ship", "***")
    )
    assert [each.text.partition(" holds")[0] for each in found] == [MEMORY]


# what was lost


def handbook_of(count: int) -> str:
    return "\n".join(f"- claim {n} [[{SUMMARIES}/s{n}|day]]" for n in range(count))


def cited(staged: Staged, before: int) -> Staged:
    for number in range(before):
        staged.write(f"{SUMMARIES}/s{number}", f"session {number}")
    staged.write(MEMORY, handbook_of(before))
    staged.pages.commit()
    return staged


@pytest.mark.parametrize(
    ("before", "after", "is_lost"),
    [(8, 8, False), (8, 4, False), (8, 3, True), (8, 0, True), (4, 1, True), (3, 0, False)],
)
def test_a_handbook_that_loses_most_of_its_sources_is_a_problem(
    staged: Staged, before: int, after: int, is_lost: bool
) -> None:
    cited(staged, before).write(MEMORY, handbook_of(after))
    assert bool(losses(staged.pages, staged.grounds())) is is_lost


def test_what_was_removed_is_no_loss(staged: Staged) -> None:
    cited(staged, 8).write(MEMORY, handbook_of(2))
    for number in range(2, 8):
        staged.remove(f"{SUMMARIES}/s{number}")
    assert losses(staged.pages, staged.grounds()) == []


# the parts


def test_lines_are_counted_where_they_begin() -> None:
    found = list(blocks("# Head\n\n- one\n  more\n- two\n\ntext\nmore"))
    assert [(each.line, each.text) for each in found] == [
        (1, "# Head"),
        (3, "- one more"),
        (5, "- two"),
        (7, "text more"),
    ]
    assert [each.bullet for each in found] == [None, "one more", "two", None]


def test_scripts_without_blanks_are_compared_by_their_characters() -> None:
    said = "每天早上第一次会议之前她都喝一杯绿茶然后才开始工作"
    page = f"笔记：{said}。"
    assert echoes({"p": page}, [said], list) == {"p": [" ".join(said)]}
    assert echoes({"p": page}, [said], lambda: [f"我们记得{said}吗"]) == {}
    assert echoes({"p": "她都喝一杯绿茶"}, [said], list) == {}


def test_what_is_quoted_is_known_by_its_words() -> None:
    known = [spoken(each) for each in ("Bob is left-handed", "In srv/app, use tabs", "Vegetarian")]
    assert is_quoted("- **Bob** is left-handed, they say (2026)", known)
    assert is_quoted("- Use tabs (inferred) (2026-05-01)", known)
    assert is_quoted("- Vegetarian (2026-05-01)", known)
    assert not is_quoted("- Bob is right-handed, and no vegetarian", known)
    assert not is_quoted("anything at all", [])


# what rules write

HOSTILE = st.sampled_from(
    [
        *("[[~/memory/nowhere]]", "\n- x y z\n", "```", "# head", "In /srv/app, ", "`[[", "🎉"),
        *("(inferred)", ":", "1. ", "_", "a\u200bb", "cafe\u0301", "每天早上", "| a | b |"),
        *("<b>", "---", "use `make ship` to ship", "word " * 90),
    ]
)
WORDS = st.lists(HOSTILE | any_text | st.text("ab c", max_size=9), min_size=1, max_size=5)
GIVEN = st.tuples(
    WORDS.map(" ".join),
    st.sets(st.sampled_from(["one", "two"])),
    st.sets(st.sampled_from(list(FactTag))),
    st.sampled_from(list(Trust)),
    st.sampled_from([None, "/srv/app"]),
)


def standing(given: tuple[str, set[str], set[FactTag], Trust, str | None]) -> Standing:
    text, sessions, tags, trust, project = given
    sources = tuple(Source(session_id=each, seq=1, seq_to=2) for each in sorted(sessions))
    fact = Fact(
        text,
        sources=sources,
        source_count=len(sources),
        tags=tuple(sorted(tags)),
        trust=trust,
        topic="topic" if project else None,
        valid_from=AT,
    )
    return Standing(fact=fact, project=project if sources else None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=st.lists(GIVEN, max_size=8))
def test_whatever_facts_say_what_rules_write_of_them_is_valid(
    staged: Staged, facts: list[tuple[str, set[str], set[FactTag], Trust, str | None]]
) -> None:
    """A space whose generation cannot be published would never get another."""
    standings = [standing(each) for each in facts]
    staged.pages = StagedPages(staged.documents, "consolidation")
    staged.good().write(RAW, "Raw.")
    for page in handbook(standings, ("one", "two")):
        staged.pages.write(page.path, page.body, title=page.title, description=page.description)
    found = [str(each) for each in staged.problems()]
    # What a page of rules rests on stands behind it, not in it.
    beside = ("without a source", "cites no summary", f"{SUMMARY} is")
    assert [each for each in found if not any(one in each for one in beside)] == []
