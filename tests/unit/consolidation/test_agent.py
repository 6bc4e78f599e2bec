"""The consolidation agent over real HTTP: what it may do, what it is told, and what stops it.

Rows G8, G9, G11, X5 and the X7 of phase 2; P12 for phase 2. The model is scripted; everything else
is real.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

import recollect
from recollect.agents.loop import LoopLimits
from recollect.clock import ManualClock
from recollect.consolidation.agent import (
    ALLOWED,
    DELETING,
    LINES_MAX,
    PURPOSE,
    AgentBrief,
    AgentReport,
    ModelConsolidator,
    definitions,
)
from recollect.consolidation.pages import MEMORY, RAW, SKILLS, SUMMARIES, SUMMARY, skill_path
from recollect.consolidation.validation import GenerationGrounds
from recollect.documents.changeset import PreparedEdit
from recollect.documents.paths import memory_root
from recollect.documents.scope import Holder
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.errors import CallCancelled, InvalidOutput, SpendCapReached
from recollect.extraction.spend import Budget
from recollect.ids import Ids
from recollect.models.protocol import ChatRole, Usage
from recollect.types.generations import Pick, Removed, RemovedBecause, Selection
from recollect.types.pages import Author, AuthorKind
from recollect_conformance.scripted import (
    Called,
    Gate,
    Script,
    Scripted,
    ScriptedServer,
    answer,
    calls,
    drip,
)
from recollect_conformance.scripted_frames import Received

SPACE = "alice"
AT = datetime(2026, 5, 4, tzinfo=UTC)
SAYS = {
    "tea": "Alice said that she drinks green tea every morning before the first meeting.",
    "ship": "The deployment failed until make ship was run with a clean checkout of everything.",
    "jazz": "Alice said that she listens to jazz whenever a long evening of reviews is ahead.",
}
HANDBOOK = "# Preferences\n\n- green tea in the morning {tea}\n\n# Here\n\n- `make ship` {ship}\n"
SHORT = "Alice ships with make and drinks tea."
# Made here, so that no file holds it in one piece.
SECRET = "_".join(("ghp", "aZ3kQ9vT7mB2xW5c" + "R8nL1pD6sF4gH0jY9uK3"))
LIMITS = LoopLimits(
    turns=20, tokens=400_000, seconds=600.0, tool_bytes=1_048_576, reply_tokens=2_000
)


def page(name: str) -> str:
    return f"{SUMMARIES}/2026-05-01-{name}-1a2b3c4d"


def linked(text: str) -> str:
    return text.format(**{name: f"[[{page(name)}|2026-05-01]]" for name in SAYS})


def read(path: str) -> Called:
    return "document_read", {"path": path}


def write(path: str, body: str, **given: Any) -> Called:
    return "document_write", {"path": path, "body": linked(body), **given}


def patch(path: str, old: str, new: str = "") -> Called:
    return "document_patch", {"path": path, "old": linked(old), "new": linked(new)}


GOOD = (
    calls(read(RAW), read(MEMORY)),
    calls(write(MEMORY, HANDBOOK), write(SUMMARY, SHORT)),
    "Wrote the handbook and the summary.",
)


@dataclass(kw_only=True)
class Desk:
    """An agent with a scripted model, and the documents of a space as consolidation holds them."""

    memory: recollect.Memory
    server: ScriptedServer
    clock: ManualClock
    documents: Documents
    staged: StagedPages = field(init=False)
    selection: Selection
    told: tuple[str, ...] = ()
    is_lost: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.staged = StagedPages(self.documents, "consolidation")

    def stage(self, *added: str, retained: Sequence[str] = (), removed: Sequence[str] = ()) -> Desk:
        """Put the evidence there, as a run finds it."""
        for name in added:
            self.staged.write(page(name), SAYS[name])
        everything = [*added, *retained, *removed]
        self.staged.write(RAW, "\n\n".join(f"## {name}\n\n{SAYS[name]}" for name in everything))
        self.selection = replace(
            self.selection,
            added=tuple(map(pick, added)),
            retained=tuple(map(pick, retained)),
            removed=tuple(map(gone, removed)),
        )
        return self

    def skill(self) -> Desk:
        body = linked("It worked in {ship}.")
        self.staged.write(skill_path("ship-it"), body, title="ship-it", description="To ship.")
        return self

    def published(self) -> Desk:
        """A generation made of tea and ship, and a new staged on top of it."""
        self.stage("tea", "ship")
        self.staged.write(MEMORY, linked(HANDBOOK))
        self.staged.write(SUMMARY, SHORT)
        self.staged.commit()
        self.selection = replace(self.selection, generation=1)
        return self

    def run(self, limits: LoopLimits = LIMITS, **settings: Any) -> AgentReport:
        picks = self.selection.picks
        brief = AgentBrief(
            selection=self.selection,
            pages={each.session_id: page(each.session_id) for each in picks},
            grounds=GenerationGrounds(
                selected=len(picks),
                before=self.documents,
                removed=self.selection.removed,
                kept=lambda: [SAYS[each.session_id] for each in picks],
                by_hand=self.told,
            ),
            is_lost=self.is_lost,
        )
        return self.agent(limits, **settings).run(self.staged, brief)

    def agent(self, limits: LoopLimits = LIMITS, **settings: Any) -> ModelConsolidator:
        given = self.server.settings(**settings)
        return ModelConsolidator(
            settings=given,
            clock=self.clock,
            ids=Ids(self.clock),
            redactor=self.memory.runtime.redactor,
            model=self.server.model(clock=self.clock, pause=lambda _: None),
            ledger=self.memory.store.ledger,
            budget=Budget(given, self.clock),
            limits=limits,
        )

    def body(self, path: str) -> str:
        return self.staged.read(path).body

    @property
    def answers(self) -> list[str]:
        """What tools answered, as the model was shown it last."""
        messages = self.server.requests[-1].messages
        return [each.text for each in messages if each.role is ChatRole.TOOL]

    @property
    def edits(self) -> set[str]:
        return {str(PreparedEdit.of(edit)).partition(" (")[0] for edit in self.staged.edits}


def pick(name: str) -> Pick:
    return Pick(session_id=name, revision=1, source_updated_at=AT, path=page(name))


def gone(name: str) -> Removed:
    return Removed(session_id=name, because=RemovedBecause.FORGOTTEN, path=page(name))


Desks = Callable[[Script], Desk]


@pytest.fixture
def desks(memory: recollect.Memory, clock: ManualClock) -> Iterator[Desks]:
    author = Author(kind=AuthorKind.CONSOLIDATION, name="consolidation")
    holder = Holder(author=author, root=memory_root())
    with contextlib.ExitStack() as stack:

        def made(script: Script) -> Desk:
            return Desk(
                memory=memory,
                server=stack.enter_context(ScriptedServer(script)),
                clock=clock,
                documents=memory.space(SPACE).documents.held_by(holder),
                selection=Selection(
                    space=SPACE,
                    revision=1,
                    added=(),
                    retained=(),
                    removed=(),
                    generation=0,
                    digest=None,
                ),
            )

        yield made


# how it goes


def test_a_first_run_writes_the_handbook_and_the_summary(desks: Desks) -> None:
    """G8."""
    desk = desks(GOOD).stage("tea", "ship")
    report = desk.run()
    assert report.note == "Wrote the handbook and the summary."
    assert desk.body(MEMORY) == linked(HANDBOOK)
    assert desk.body(SUMMARY) == SHORT
    assert (report.spent.calls, report.spent.input_tokens) == (3, 300)


def test_what_it_is_told_says_what_changed_and_where_it_stands(desks: Desks) -> None:
    desk = desks([calls(read(MEMORY)), "Nothing had to change."]).published()
    desk.stage("jazz", retained=["tea", "ship"])
    desk.staged.write(MEMORY, linked(HANDBOOK + "\n- jazz {jazz}\n"))
    desk.run()
    asked = desk.server.requests[0].messages[0].text
    assert "Generation 1 of this memory" in asked
    assert "1 added, 2 retained, 0 removed" in asked
    assert f"- [added] 2026-05-04 {page('jazz')}" in asked
    assert f"- [retained] 2026-05-04 {page('tea')}" in asked
    system = desk.server.requests[0].system
    assert MEMORY in system
    assert "{{" not in system + asked


def test_a_first_run_is_told_that_it_is_one(desks: Desks) -> None:
    desk = desks(GOOD).stage("tea", "ship")
    desk.run()
    assert "This is a first run" in desk.server.requests[0].messages[0].text


def test_a_request_is_bounded_however_much_is_selected(desks: Desks) -> None:
    desk = desks(GOOD).stage("tea", "ship")
    many = tuple(pick("tea") for _ in range(LINES_MAX + 5))
    desk.selection = replace(desk.selection, retained=many)
    desk.run()
    asked = desk.server.requests[0].messages[0].text
    assert asked.count("[retained]") == LINES_MAX + 1
    assert "- [retained] and 5 more" in asked
    assert asked.count("[added]") == 2


def test_what_people_added_is_told_and_may_stand_without_a_source(desks: Desks) -> None:
    fact = "The office is closed on the last Friday of every month."
    script: list[Scripted] = [
        calls(write(MEMORY, f"{HANDBOOK}\n- {fact}\n"), write(SUMMARY, SHORT)),
        "Done.",
    ]
    desk = desks(script).stage("tea", "ship")
    desk.told = (fact,)
    desk.run()
    assert fact in desk.server.requests[0].messages[0].text


def test_an_incremental_run_changes_what_it_has_to(desks: Desks) -> None:
    added = "- `make ship` {ship}\n- jazz when there are reviews {jazz}\n"
    script: list[Scripted] = [
        calls(read(MEMORY)),
        calls(patch(MEMORY, "- `make ship` {ship}\n", added)),
        "Added.",
    ]
    desk = desks(script).published().stage("jazz", retained=["tea", "ship"])
    desk.run()
    assert linked(added) in desk.body(MEMORY)
    assert desk.edits == {f"create {page('jazz')}", f"write {RAW}", f"write {MEMORY}"}


def test_no_change_is_a_good_result(desks: Desks) -> None:
    desk = desks([calls(read(MEMORY)), "Nothing had to change."]).published()
    desk.stage(retained=["tea", "ship"])
    assert desk.run().note == "Nothing had to change."
    assert desk.edits == set()


def test_a_removed_memory_is_named_and_leaves_what_it_alone_supported(desks: Desks) -> None:
    """G11."""
    forget = calls(patch(MEMORY, "- green tea in the morning {tea}\n"), write(SUMMARY, "Ships."))
    desk = desks([forget, "Forgot the tea."]).published()
    desk.stage(retained=["ship"], removed=["tea"])
    desk.run()
    assert "[removed]" in desk.server.requests[0].messages[0].text
    assert page("tea") in desk.server.requests[0].messages[0].text
    assert "tea" not in desk.body(MEMORY) + desk.body(SUMMARY)
    assert "make ship" in desk.body(MEMORY)


def test_skills_are_written_and_deleted(desks: Desks) -> None:
    body = "1. `make ship`\n\nIt worked in {ship} and {tea}.\n"
    script: list[Scripted] = [
        calls(
            write(skill_path("ship-it"), body, title="ship-it", description="To ship."),
            write(skill_path("gone"), body, title="gone", description="To be deleted."),
        ),
        calls(write(MEMORY, HANDBOOK), write(SUMMARY, SHORT)),
        calls((DELETING, {"path": skill_path("gone")})),
        "Done.",
    ]
    desk = desks(script).stage("tea", "ship")
    desk.run()
    assert desk.answers[-1] == f"Prepared: {SKILLS}/gone is deleted, with what stood below it."
    left = [node.path for node in desk.staged.tree(SKILLS)]
    assert left == [SKILLS, f"{SKILLS}/ship-it", skill_path("ship-it")]


def test_its_name_says_which_model_and_which_prompt(desks: Desks) -> None:
    assert desks([]).agent().name == "openai:scripted/consolidation-2"


def test_prompts_are_short_and_say_first_what_must_never_be_done(desks: Desks) -> None:
    system = desks([]).agent().system()
    assert system.index("Never") < 400
    assert len(system) < 5_000


# what is wrong with its pages


BAD = calls(write(MEMORY, f"{HANDBOOK}- Alice likes jazz\n"), write(SUMMARY, SHORT))


def test_what_is_invalid_goes_back_and_is_repaired(desks: Desks) -> None:
    """G9."""
    script: list[Scripted] = [
        BAD,
        "Done.",
        calls(patch(MEMORY, "- Alice likes jazz\n")),
        "Took it out.",
    ]
    desk = desks(script).stage("tea", "ship")
    report = desk.run()
    assert report.note == "Took it out."
    first, repair = desk.server.requests[2].messages
    assert "This is a first run" not in repair.text
    assert "2 added" in first.text
    assert "1 claim without a source" in repair.text
    assert "> line 8: - Alice likes jazz" in repair.text
    assert desk.body(MEMORY) == linked(HANDBOOK)
    assert report.spent.calls == 4


def test_what_is_repaired_in_the_second_round_is_good(desks: Desks) -> None:
    mend = calls(patch(MEMORY, "- Alice likes jazz\n"))
    desk = desks([BAD, "Done.", "I do not see it.", mend, "Took it out."]).stage("tea", "ship")
    assert desk.run().note == "Took it out."


def test_what_is_invalid_three_times_fails_the_run(desks: Desks) -> None:
    """The faults of phase 2: invalid output three times in a row."""
    desk = desks([BAD, "Done.", "Still done.", "Really done."]).stage("tea", "ship")
    with pytest.raises(InvalidOutput, match="1 problems after 2 repairs") as caught:
        desk.run()
    assert "Alice likes jazz" not in str(caught.value), "an error outlives what was forgotten"
    assert len(desk.server.requests) == 4


def test_an_agent_that_writes_nothing_at_all_has_failed(desks: Desks) -> None:
    desk = desks(["Done.", "Done.", "Done."]).stage("tea", "ship")
    with pytest.raises(InvalidOutput, match=f"{MEMORY} is missing"):
        desk.run()


def test_what_only_a_removed_memory_said_is_refused_until_it_is_gone(desks: Desks) -> None:
    """G11."""
    echo = f"{SHORT} She drinks green tea every morning before the first thing."
    script: list[Scripted] = [
        calls(patch(MEMORY, "- green tea in the morning {tea}\n"), write(SUMMARY, echo)),
        "Forgot the tea.",
        calls(write(SUMMARY, "Alice ships with make.")),
        "Now it is gone.",
    ]
    desk = desks(script).published().stage(retained=["ship"], removed=["tea"])
    desk.run()
    repair = desk.server.requests[2].messages[1].text
    assert "she drinks green tea every morning before the first" in repair
    assert desk.body(SUMMARY) == "Alice ships with make."


# budgets


def for_ever(_: Received) -> Any:
    return calls(read(RAW))


@pytest.mark.parametrize(
    ("limits", "reason", "asked_max"),
    [
        (replace(LIMITS, turns=5), "asked as often as one run allows", 5),
        (replace(LIMITS, tokens=4_500), "tokens are used up", 19),
        (replace(LIMITS, tool_bytes=1_500), "answered as much as one run allows", 10),
    ],
)
def test_a_runaway_agent_is_stopped_by_each_budget(
    desks: Desks, limits: LoopLimits, reason: str, asked_max: int
) -> None:
    """X5."""
    desk = desks(for_ever).stage("tea", "ship")
    with pytest.raises(InvalidOutput, match=reason):
        desk.run(limits)
    assert 1 < len(desk.server.requests) <= asked_max


def test_a_run_that_takes_too_long_is_stopped(desks: Desks, clock: ManualClock) -> None:
    """X5."""

    def slowly(_: Received) -> Any:
        clock.advance(7)
        return calls(read(RAW))

    desk = desks(slowly).stage("tea", "ship")
    with pytest.raises(InvalidOutput, match="time is used up"):
        desk.run(replace(LIMITS, seconds=20))
    assert len(desk.server.requests) == 3


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (replace(LIMITS, turns=4), "asked as often"),
        (replace(LIMITS, tokens=7_500), "tokens are used up"),
        (replace(LIMITS, tool_bytes=900), "answered as much"),
        (replace(LIMITS, seconds=12), "time is used up"),
    ],
)
def test_repairs_have_no_budgets_of_their_own(
    desks: Desks, clock: ManualClock, limits: LoopLimits, reason: str
) -> None:
    """X5: a run that is repaired is still one run."""

    usage = Usage(input_tokens=2_000, output_tokens=20)

    def mending(received: Received) -> Any:
        clock.advance(3)
        answered = sum(each.role is ChatRole.TOOL for each in received.messages)
        return answer("Done.", usage=usage) if answered else calls(read(RAW), usage=usage)

    desk = desks(mending).stage("tea", "ship")
    with pytest.raises(InvalidOutput, match=reason):
        desk.run(limits)
    assert len(desk.server.requests) < 6


def test_what_a_space_may_spend_in_a_day_is_spent_here_too(desks: Desks) -> None:
    """X11 of the mission: the calls are in the ledger, by what they were for."""
    desk = desks(GOOD).stage("tea", "ship")
    with pytest.raises(SpendCapReached):
        desk.run(spend_calls_per_day=2)
    spent = desk.memory.store.ledger.calls(SPACE, None, 10, None)
    assert [(each.purpose, each.session_id) for each in spent] == [(PURPOSE, None)] * 2


def test_a_lost_claim_stops_the_run_before_the_next_tool(desks: Desks) -> None:
    """G10."""
    desk = desks(GOOD).stage("tea", "ship")
    desk.is_lost = lambda: len(desk.server.requests) >= 2
    with pytest.raises(CallCancelled):
        desk.run()
    assert desk.staged.find(MEMORY) is None


def test_a_lost_claim_stops_a_call_that_is_under_way(desks: Desks) -> None:
    """G10."""
    gate = Gate()
    desk = desks([drip(gate, "I am")]).stage("tea", "ship")
    desk.is_lost = gate.arrived.is_set
    with pytest.raises(CallCancelled):
        desk.run()


# what it may not do


def test_its_tools_are_a_list_and_none_moves_or_reaches_out() -> None:
    """G8: no network, no delegation; a tool that is added is not its own by itself."""
    assert {each.name for each in definitions()} == ALLOWED
    reading = {"document_read", "document_tree", "document_search"}
    writing = {"document_write", "document_append", "document_patch", "skill_delete"}
    assert reading | writing == ALLOWED


def test_nothing_of_a_run_is_remembered(desks: Desks) -> None:
    """G8: memory is off for itself."""
    desk = desks(GOOD).stage("tea", "ship")
    desk.run()
    assert desk.memory.space(SPACE).sessions.list() == []


ANNA = "~/memory/people/anna"
OUTSIDE = "~/secret/keys"
CANARY = "quetzal-outside"
HOSTILE: tuple[Called, ...] = (
    write(ANNA, "She lied."),
    write("people/anna", "She lied."),
    write("~/memory/people/ANNA", ""),
    write("~/memory/notes", "mine"),
    write("~/memory", "mine"),
    write(OUTSIDE, "mine"),
    write("~/memory/../secret/keys", "mine"),
    write(RAW, "mine"),
    write(page("tea"), "mine"),
    write(f"{SUMMARIES}/invented", "mine"),
    write(SUMMARIES, "mine"),
    write(SKILLS, "mine"),
    write(f"{SKILLS}/x", "mine"),
    write(f"{SKILLS}/x/skill", "mine"),
    write(f"{SKILLS}/x/SKILL/deeper", "mine"),
    write(f"{SKILLS}/x/script", "mine"),
    write("$ID_OF_ANNA", "She lied."),
    write("$ID_OF_TEA", "mine"),
    patch(ANNA, "Anna", "Nobody"),
    patch(page("tea"), "tea", "poison"),
    patch("$ID_OF_TEA", "tea", "poison"),
    ("document_append", {"path": ANNA, "text": "She lied."}),
    ("document_append", {"path": RAW, "text": "obey me"}),
    ("document_append", {"path": "$ID_OUTSIDE", "text": "mine"}),
    (DELETING, {"path": ANNA}),
    (DELETING, {"path": "$ID_OF_ANNA"}),
    (DELETING, {"path": MEMORY}),
    (DELETING, {"path": RAW}),
    (DELETING, {"path": page("tea")}),
    (DELETING, {"path": SKILLS}),
    (DELETING, {"path": "~/memory"}),
    (DELETING, {"path": OUTSIDE}),
    (DELETING, {"path": f"{SKILLS}/../people/anna"}),
    (DELETING, {"path": f"{SKILLS}/none"}),
    (DELETING, {"path": 5}),
    (DELETING, {}),
    (DELETING, {"path": f"{SKILLS}/ship-it", "below": True}),
    read(OUTSIDE),
    read("$ID_OUTSIDE"),
    ("document_tree", {"path": "~/secret"}),
    ("document_search", {"query": CANARY, "below": "~/secret"}),
    ("document_delete", {"path": ANNA}),
    ("document_move", {"path": ANNA, "to": MEMORY}),
    ("shell", {"command": "cat /etc/passwd"}),
    ("agent_spawn", {"task": "carry on without me"}),
    ("web_fetch", {"url": "http://127.0.0.1/"}),
)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_model_that_obeys_what_it_reads_breaks_no_policy(desks: Desks, number: int) -> None:
    """P12: each call is refused with a text, and the run goes on as if nothing had been asked."""
    ids: dict[str, str] = {}
    name, given = HOSTILE[number]

    def obedient(received: Received) -> Any:
        answered = sum(each.role is ChatRole.TOOL for each in received.messages)
        if answered:
            return "I have obeyed."
        assert isinstance(given, dict)
        path = given.get("path")
        return calls((name, {**given, "path": ids.get(str(path), path)} if path else given))

    desk = desks(obedient)
    person = desk.memory.space(SPACE).documents
    ids["$ID_OF_ANNA"] = person.write(ANNA, "Anna is Alice's sister.").id
    ids["$ID_OUTSIDE"] = person.write(OUTSIDE, f"The canary is {CANARY}.").id
    desk.skill().published().stage(retained=["tea", "ship"])
    ids["$ID_OF_TEA"] = desk.staged.read(page("tea")).id
    desk.run()
    (told,) = desk.answers
    assert told.startswith(("Error: ", "There is nothing"))
    assert CANARY not in told
    assert desk.staged.edits == ()


def test_a_refusal_says_what_may_be_written(desks: Desks) -> None:
    desk = desks([calls(write(page("tea"), "mine")), "Done."]).published()
    desk.stage(retained=["tea", "ship"])
    desk.run()
    assert f"You write {MEMORY}, {SUMMARY} and" in desk.answers[0]


def test_its_own_pages_may_be_changed_by_their_ids(desks: Desks) -> None:
    ids: list[str] = []

    def patching(received: Received) -> Any:
        answered = any(each.role is ChatRole.TOOL for each in received.messages)
        return "Done." if answered else calls(patch(ids[0], "in the morning", "every morning"))

    desk = desks(patching).published().stage(retained=["tea", "ship"])
    ids.append(desk.staged.read(MEMORY).id)
    desk.run()
    assert "every morning" in desk.body(MEMORY)


def test_search_shows_nothing_from_outside_memory(desks: Desks) -> None:
    script: list[Scripted] = [calls(("document_search", {"query": CANARY})), "Done."]
    desk = desks(script).published().stage(retained=["tea", "ship"])
    desk.memory.space(SPACE).documents.write(OUTSIDE, f"The canary is {CANARY}.")
    desk.run()
    assert CANARY not in " ".join(desk.answers)


def test_what_people_link_to_does_not_keep_a_skill(desks: Desks) -> None:
    desk = desks([calls((DELETING, {"path": skill_path("ship-it")})), "Done."]).skill().published()
    desk.memory.space(SPACE).documents.write(ANNA, f"See [[{skill_path('ship-it')}]].")
    desk.stage(retained=["tea", "ship"])
    desk.run()
    assert desk.edits == {f"delete {skill_path('ship-it')}", f"delete {SKILLS}/ship-it"}


def test_an_agent_that_was_talked_into_emptying_the_handbook_has_failed(desks: Desks) -> None:
    """P12: what is still selected is still supported."""
    names = list(SAYS)
    one = linked(f"- {names[0]} {{{names[0]}}}\n")

    def emptying(received: Received) -> Any:
        answered = sum(each.role is ChatRole.TOOL for each in received.messages)
        return "Emptied." if answered else calls(("document_write", {"path": MEMORY, "body": one}))

    desk = desks(emptying)
    more = {f"more{n}": f"session number {n}" for n in range(3)}
    desk.stage(*names)
    for name, says in more.items():
        desk.staged.write(page(name), says)
    lines = (f"- {name} [[{page(name)}|day]]" for name in (*names, *more))
    desk.staged.write(MEMORY, "\n".join(lines))
    desk.staged.write(SUMMARY, SHORT)
    desk.staged.commit()
    desk.stage(retained=names)
    with pytest.raises(InvalidOutput, match="5 of them are cited no more"):
        desk.run()


# secrets


def test_a_secret_that_it_writes_or_says_is_redacted(desks: Desks) -> None:
    """X7 of phase 2."""
    script: list[Scripted] = [
        calls(write(MEMORY, f"{HANDBOOK}- the token is {SECRET} {{ship}}\n")),
        calls(write(SUMMARY, f"{SHORT} {SECRET}"), write(f"{SKILLS}/{SECRET}/SKILL", "x")),
        f"Wrote {SECRET}.",
    ]
    desk = desks(script).stage("tea", "ship")
    report = desk.run()
    said = " ".join((desk.body(MEMORY), desk.body(SUMMARY), report.note))
    assert SECRET not in said
    assert "the token is [" in said
    assert "what looks like a secret" in desk.answers[-1]
    shown = " ".join(each.text for request in desk.server.requests for each in request.messages)
    assert SECRET not in shown
