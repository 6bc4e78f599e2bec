"""Consolidation by a model, over real HTTP: what goes wrong changes nothing. G1, G4, G5, G8 to G12.

The model is scripted. By rules it is the same machinery; here is what a model alone can do.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.consolidation.pages import MEMORY, RAW, SUMMARY
from recollect.models.protocol import ChatRole, Usage
from recollect.session import Session
from recollect.types.generations import Waiting
from recollect.types.records import JobState, Mode
from recollect_conformance.scripted import (
    Gate,
    Scripted,
    answer,
    calls,
    cut_at_length,
    held,
    refusal,
    status,
)
from recollect_conformance.scripted_frames import Ending, Received
from tests.consolidated_spaces import (
    DAY,
    SPACE,
    WAIT_SECONDS,
    Background,
    Here,
    Open,
    asked,
    handbook,
    keeper,
    opening,
    told,
    wants_summary,
)
from tests.hosted_agents import ON_BOTH
from tests.security.hostile_templates import CANARY
from tests.security.obedient_model import TOLD_ORDERS

pytestmark = ON_BOTH

HOME = "I live in Lisbon."
COLOUR = "My favourite colour is teal."
DRINK = "I prefer tea over coffee."


@pytest.fixture
def opened(store_url: str, tmp_path: Path) -> Iterator[Open]:
    with opening(store_url, tmp_path / "published") as found:
        yield found


class Sequel:
    """A model that keeps the pages well, but for what it is told to do at its n-th run."""

    def __init__(self) -> None:
        self.instead: Callable[[Received], Scripted] | None = None
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Scripted:
        with self._lock:
            instead = self.instead
        return keeper(received) if instead is None else instead(received)


class Waits:
    """Holds the first request that comes, or the n-th, until it is let go; no other one."""

    def __init__(self, nth: int = 1) -> None:
        self.gate = Gate()
        self._lock = threading.Lock()
        self._left = nth

    def __call__(self, received: Received) -> Scripted:
        with self._lock:
            self._left -= 1
            is_held = self._left == 0
        return held(self.gate, keeper(received)) if is_held else keeper(received)


def published(here: Here) -> tuple[dict[str, str], dict[str, str], int]:
    """All there is to read, and the generation."""
    return here.pages(), here.files(), here.space.generations.state().generation


# a good run


def test_what_the_model_wrote_is_what_is_read(opened: Open) -> None:
    """G8: the handbook, the summary, the files; names come to be links, and the day after that."""

    def script(received: Received) -> Scripted:
        if wants_summary(received):
            return "## Who\n\nAlice [f1], of [[~/memory/nowhere|Lisbon]]."
        if "People" not in asked(received):
            return keeper(received)
        (fact,) = [name for name, text in told(received, "People").items() if "Lisbon" in text]
        return f"## People\n\n- Lives in Lisbon [{fact}]\n- And likes it there. [{fact}]\n- Unnamed"

    here = opened(script)
    here.learned("a", HOME)
    assert here.tick() == 1
    first = here.server.requests[0]
    (page,) = here.summaries()
    day = here.space.documents.read(page).path.rpartition("/")[2][:10]
    lines = f"- Lives in Lisbon ([[{page}|{day}]])\n- And likes it there. ({day})"
    assert f"## People\n\n{lines}\n" in f"{here.body(MEMORY)}\n"
    assert "Unnamed" not in here.body(MEMORY), "a line without a source is dropped"
    assert "Alice, of [\\[~/memory/nowhere" in here.body(SUMMARY), "no link that it made up"
    assert "[f1]" not in here.body(SUMMARY)
    assert lines in here.files()["MEMORY.md"]
    assert "Nothing is written yet" in first.prompt
    assert "bytes" in first.prompt


def test_a_model_opens_what_a_session_came_to_and_nothing_else(opened: Open) -> None:
    """G8: what it opened is what its part rests on."""

    def curious(received: Received) -> Scripted:
        if wants_summary(received) or received.messages[-1].role is ChatRole.TOOL:
            return keeper(received)
        wanted = [("session_read", {"session": each}) for each in ("s1", "s9", "~/memory")]
        return calls(*wanted, ("document_read", {"path": RAW}))

    here = opened(curious)
    here.learned("a", HOME)
    assert here.tick() == 1
    answers = [m.text for each in here.server.requests for m in each.messages if m.call_id]
    assert "task_group" in answers[0]
    assert [text.startswith("Error: there is no session") for text in answers[1:3]] == [True, True]
    assert "there is no tool 'document_read'" in answers[3]


def test_a_server_that_knows_no_tools_is_asked_without_them(opened: Open) -> None:
    def plain(received: Received) -> Scripted:
        return status(400, "no tools here") if received.tools else keeper(received)

    here = opened(plain)
    here.learned("a", HOME)
    assert here.tick() == 1
    assert here.space.generations.get().made_by.startswith("openai:scripted/")


def test_an_answer_that_is_cut_off_is_continued(opened: Open) -> None:
    """G9: nothing of it is thrown away."""

    def cut(received: Received) -> Scripted:
        whole = handbook(received)
        if received.messages[-1].role is ChatRole.USER and len(received.messages) == 1 and whole:
            return answer(whole[: len(whole) // 2], ending=Ending.LENGTH)
        return whole[len(whole) // 2 :] or keeper(received)

    here = opened(cut)
    here.learned("a", HOME, COLOUR)
    assert here.tick() == 1
    assert "Lisbon" in here.body(MEMORY)
    assert "teal" in here.body(MEMORY)
    assert "go on exactly where it stopped" in here.server.requests[1].prompt.replace("\n", " ")


def test_an_order_that_no_person_gave_is_written_on_no_page(opened: Open) -> None:
    """S-2: an order of the user's own stays, and so does what is no order."""
    wish = "Always run the test suite before you deploy."

    def obedient(received: Received) -> Scripted:
        if wants_summary(received):
            return "\n".join(["Somebody who lives in Lisbon.", wish, *TOLD_ORDERS])
        lines = [f"- {line} [s1]" for line in (wish, *TOLD_ORDERS)]
        return "\n".join([f"## {asked(received)[0]}", *lines])

    here = opened(obedient)
    here.learned("a", HOME, wish)
    assert here.tick() == 1
    everything = "\n".join([*here.pages().values(), *here.files().values()])
    assert f"- {wish} ([[" in here.body(MEMORY)
    assert f"Somebody who lives in Lisbon.\n{wish}" in everything
    assert CANARY not in everything


def test_what_a_person_stated_stays_word_for_word(opened: Open) -> None:
    """G9: whatever a model makes of it; a line in a file, a fact that was added or edited."""
    here = opened(lambda r: "Nobody." if wants_summary(r) else f"## {asked(r)[0]}\n\n- Gone [f1]")
    here.learned("a", HOME, "Always answer in English.")
    here.space.facts.add("The office closes at six, except on Fridays.")
    assert here.tick() == 1
    body = here.body(MEMORY)
    assert body.count("The office closes at six, except on Fridays.") == 1
    assert body.count("Always answer in English.") == 1
    home = next(each for each in here.space.facts.list() if "Lisbon" in each.content)
    here.space.facts.update(home.id, content="Alice lives in Porto, near the river.")
    assert here.tick() == 1
    assert here.body(MEMORY).count("Alice lives in Porto, near the river.") == 1


def test_what_is_forgotten_takes_its_part_with_it_and_no_other(opened: Open) -> None:
    """G11: rules render that part at once; the model writes it again, and the rest stands."""
    marks = iter(range(1000))

    def marked(received: Received) -> Scripted:
        if wants_summary(received):
            return "Somebody."
        lines = [f"## {each}\n- Part {next(marks)} [s1]" for each in asked(received)]
        return "\n".join(lines)

    here = opened(marked, consolidation_cooldown_seconds=600)
    gone = here.learned("gone", "I prefer blue cheese.")
    for project in ("/srv/one", "/srv/two"):
        here.learned(project, f"Always use {project} for linting.", project=project)
    assert here.space.generations.run().generations == 1
    parts = set(re.findall(r"Part \d+", here.body(MEMORY)))
    here.space.forget(session=gone)
    left = set(re.findall(r"Part \d+", here.body(MEMORY)))
    assert left
    assert left < parts, "some stand, some went"
    assert "cheese" not in "".join(here.pages().values())
    asked_before = len(here.server.requests)
    here.clock.advance(601)
    assert here.tick() == 1
    prompts = "".join(each.prompt for each in here.server.requests[asked_before:])
    assert "made by rules" in prompts
    assert "cheese" not in prompts
    assert left <= set(re.findall(r"Part \d+", here.body(MEMORY)))


def test_the_next_run_is_told_of_the_generation_there_is(opened: Open) -> None:
    """G3, G8: facts that somebody added are told as well, to be kept word for word."""
    here = opened(keeper)
    here.learned("a", HOME)
    here.tick()
    before_it = len(here.server.requests)
    here.learned("b", COLOUR)
    here.space.facts.add("The office closes at six.")
    assert here.tick() == 1
    prompt = here.server.requests[before_it].prompt
    assert "Generation 1 was made by a model" in prompt
    assert "1 added, 1 retained, 0 removed" in prompt
    assert re.search(r"f\d+ \([\d-]+, new, stated\) The office closes at six\.", prompt)


def test_what_still_holds_is_left_alone(opened: Open) -> None:
    """G8: only what is shown something new is asked for, with what stands and what is new."""
    here = opened(keeper)
    here.learned("a", HOME)
    here.tick()
    first = len(here.server.requests)
    here.learned("b", COLOUR)
    assert here.tick() == 1
    later = here.server.requests[first:]
    assert "People" not in asked(later[0]), "nothing is new there"
    assert "Lisbon" in here.body(MEMORY)
    assert "What stands now:\n\nSomebody who talks" in later[-1].prompt
    assert ", new) " in later[0].prompt
    here.space.generations.run()
    assert len(here.server.requests) == first + len(later), "nothing changed, nobody is asked"


def test_an_empty_handed_model_leaves_its_part_to_the_rules(opened: Open) -> None:
    """G9: by part; it is asked for that part again, later and alone."""
    script = Sequel()

    def careless(received: Received) -> Scripted:
        return "- A claim without a source" if asked(received) else keeper(received)

    script.instead = careless
    here = opened(script)
    here.learned("a", HOME)
    assert here.tick() == 1
    generation = here.space.generations.get()
    assert generation.made_by.startswith("openai:scripted/")
    assert "left to the rules" in generation.note
    assert "Lisbon" in here.body(MEMORY)
    assert "without a source" not in "".join(here.pages().values())
    script.instead = None
    asked_before = len(here.server.requests)
    here.clock.advance(DAY + 1)
    here.sweep()
    assert all(map(asked, here.server.requests[asked_before:])), "not for the summary"


# a bad run


def test_what_is_never_right_is_a_failure_that_leaves_what_there_was(opened: Open) -> None:
    """G9, G10: the job backs off, and the status says why and until when."""
    script = Sequel()
    here = opened(script, backoff_seconds=60, backoff_seconds_max=60)
    here.learned("a", HOME)
    here.tick()
    before = published(here)
    late = here.learned("b", COLOUR)
    script.instead = lambda r: "- I say so" if asked(r) else "[f1]"
    assert here.memory.worker().tick().failed == 1
    assert published(here) == before
    assert not here.extraction(late).selected_for_phase2
    (state,) = here.memory.status(SPACE).consolidations
    assert state.failures == 1
    assert state.last_error is not None
    assert "names a source" in state.last_error
    assert "I say so" not in state.last_error, "an error quotes nobody"
    if state.due_at is not None and state.due_at > here.clock.now():
        assert state.waits_for(here.clock.now()) is Waiting.BACKOFF
    script.instead = None
    here.clock.advance(61)
    assert here.tick() == 1
    assert here.space.generations.state().failures == 0


def test_what_breaks_a_check_is_not_published_and_rules_write_instead(
    opened: Open, tmp_path: Path
) -> None:
    """N23: a check that held, asked with the staged pages in the place of the published ones."""
    checks = tmp_path / "checks.yaml"
    checks.write_text('- {ask: "", forbid: "zebra"}\n- {ask: "", forbid: "Lisbon"}\n')

    def inventive(received: Received) -> Scripted:
        if wants_summary(received):
            return "Somebody who keeps a zebra."
        return re.sub(
            r"^(- ).*( \[f1\])$", r"\1Keeps a zebra.\2", handbook(received), flags=re.MULTILINE
        )

    here = opened(inventive, consolidation_checks=str(checks))
    here.learned("a", HOME)
    assert here.tick() == 1
    generation = here.space.generations.get()
    assert generation.made_by == "rules"
    assert "breaks 1 of consolidation_checks (case 1)" in generation.note
    assert "zebra" not in here.body(SUMMARY)


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        ("[f1]", "names a source"),
        (status(503), "503"),
        (status(401), "check the key"),
        (refusal(), "refused"),
        (cut_at_length(), "tokens are used up"),
    ],
    ids=["invalid", "unavailable", "denied", "refused", "cut off"],
)
def test_a_space_whose_model_fails_has_what_rules_make_until_the_model_writes(
    opened: Open, failing: Scripted, reason: str
) -> None:
    """G9: at once, with the reason; the model is asked again, and shown everything then."""
    script = Sequel()
    script.instead = lambda _: failing
    here = opened(script, model_pause_seconds=60)
    here.learned("a", HOME)
    assert here.tick() == 1
    assert "Lisbon" in here.body(MEMORY)
    assert "Lisbon" in here.files()["MEMORY.md"]
    generation = here.space.generations.get()
    assert generation.made_by == "rules"
    assert generation.note.startswith("openai:scripted/consolidation-3 did not make this: ")
    assert reason in generation.note
    here.sweep()
    assert here.space.generations.state().generation == 1, "not before its time"
    script.instead = None
    before_it = len(here.server.requests)
    here.clock.advance(301)
    here.sweep()
    assert here.space.generations.get().made_by.startswith("openai:scripted/")
    assert "Lisbon" in here.server.requests[before_it].prompt, "it is shown what there is"


def test_a_generation_stays_until_a_model_has_failed_often_and_is_then_made_by_rules(
    opened: Open,
) -> None:
    """G9, G10, P8: from then on the model is left alone for a while, unless somebody asks."""
    script = Sequel()
    here = opened(script, job_failures_max=3, backoff_seconds=0, backoff_seconds_max=3600)
    here.learned("a", HOME)
    here.tick()
    before = published(here)
    here.learned("b", COLOUR)
    script.instead = lambda r: "- Because" if asked(r) else "[f1]"
    for _ in range(2):
        assert here.memory.worker().tick().failed == 1
        assert published(here) == before
    assert here.tick() == 1
    generation = here.space.generations.get()
    assert generation.made_by == "rules instead of openai:scripted/consolidation-3"
    assert "did not make this" in generation.note
    assert "teal" in here.body(MEMORY)
    before_it = len(here.server.requests)
    here.learned("c", DRINK)
    assert here.tick() == 1
    assert len(here.server.requests) == before_it, "it is left alone"
    assert "tea over coffee" in here.body(MEMORY)
    assert "is asked again after" in here.space.generations.get().note
    here.clock.advance(3601)
    here.learned("d", "I work at Acme.")
    assert here.tick() == 1, "asked again, and it has had its tries"
    assert here.space.generations.get().made_by.startswith("rules instead of")
    assert len(here.server.requests) > before_it
    before_it = len(here.server.requests)
    script.instead = None
    here.clock.advance(3601)
    here.sweep()
    assert len(here.server.requests) == before_it, "it is left alone for longer"
    assert here.space.generations.run().generations == 1
    assert here.space.generations.get().made_by.startswith("openai:scripted/")
    assert all(word in here.server.requests[before_it].prompt for word in ("Lisbon", "Acme"))


def test_a_model_that_takes_over_from_rules_is_shown_everything_once(opened: Open) -> None:
    """G3, G8: what rules consumed, no model has written yet."""
    rules = opened()
    rules.learned("a", HOME)
    rules.learned("b", COLOUR)
    assert rules.tick() == 1
    here = opened(keeper, clock=rules.clock)
    here.learned("c", DRINK)
    assert here.tick() == 1
    first = here.server.requests[0].prompt
    assert "was made by rules" in first
    assert all(word in first for word in ("Lisbon", "teal", "tea over coffee"))
    before_it = len(here.server.requests)
    here.learned("d", "I work at Acme.")
    assert here.tick() == 1
    assert "1 added, 3 retained" in here.server.requests[before_it].prompt


def test_what_a_rollback_took_out_is_news_for_the_model(opened: Open) -> None:
    """G3, G9: it is folded in again with what is learned next."""
    here = opened(keeper)
    here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    here.tick()
    here.space.generations.rollback(1)
    assert here.picked() == {"added": ["b"], "retained": ["a"], "removed": []}
    before_it = len(here.server.requests)
    here.learned("c", DRINK)
    assert here.tick() == 1
    prompt = here.server.requests[before_it].prompt
    assert "a person, who went back to generation 1" in prompt
    assert "2 added, 1 retained" in prompt
    assert re.search(r"\(.*new\).*teal", prompt)


def test_what_the_model_wrote_is_written_again_after_something_was_forgotten(opened: Open) -> None:
    """G11: rules write at once, the model once the cooldown is over, from all that is left."""
    here = opened(keeper, consolidation_cooldown_seconds=600)
    gone = here.learned("gone", HOME)
    here.learned("stays", COLOUR)
    assert here.space.generations.run().generations == 1
    here.space.forget(session=gone)
    assert here.space.generations.get().made_by == "rules"
    before_it = len(here.server.requests)
    assert here.tick() == 0, "more may be about to be forgotten"
    here.clock.advance(601)
    assert here.tick() == 1
    prompt = here.server.requests[before_it].prompt
    assert "teal" in prompt
    assert "Lisbon" not in prompt


def test_what_the_model_wrote_is_rendered_at_once_where_a_fact_was_deleted(opened: Open) -> None:
    """G11: whoever wrote it, it rests on what it was written from; the model writes it anew."""
    here = opened(keeper, consolidation_cooldown_seconds=600)
    here.learned("a", HOME)
    here.learned("b", COLOUR)
    here.tick()
    before_it = len(here.server.requests)
    home = next(each for each in here.space.facts.list() if "Lisbon" in each.content)
    here.space.facts.delete(home.id)
    assert "Lisbon" not in here.body(MEMORY)
    assert "Lisbon" not in here.body(SUMMARY)
    assert "teal" in here.body(MEMORY)
    assert len(here.server.requests) == before_it, "rules rendered it"
    assert (here.space.generations.get().number, len(here.space.generations.list())) == (1, 1)
    here.clock.advance(601)
    assert here.tick() == 1
    assert here.space.generations.get().made_by.startswith("openai:scripted/")
    assert "Lisbon" not in "".join(each.prompt for each in here.server.requests[before_it:])


def test_a_line_that_a_person_adds_to_the_handbook_outlives_a_model_that_drops_it(
    opened: Open,
) -> None:
    """G9: the next generations say it too."""
    here = opened(keeper)
    here.learned("a", HOME)
    here.tick()
    file = here.directory / "MEMORY.md"
    file.write_text(f"{file.read_text()}\n- The office closes at six on Fridays.\n")
    for key, text in (("b", COLOUR), ("c", DRINK)):
        here.learned(key, text)
        assert here.tick() == 1
        assert here.space.generations.get().made_by.startswith("openai:scripted/")
        assert here.body(MEMORY).count("- The office closes at six on Fridays.") == 1
        assert "The office closes at six on Fridays." in file.read_text()


@pytest.mark.parametrize("mode", [Mode.DISABLED, Mode.POLLUTED])
def test_a_session_that_is_switched_off_leaves_the_files_while_the_model_is_down(
    opened: Open, mode: Mode
) -> None:
    """G12: without a worker, and without the model."""
    script = Sequel()
    here = opened(script)

    session = here.learned("a", HOME)
    here.learned("b", COLOUR)
    here.tick()
    assert "Lisbon" in here.files()["MEMORY.md"]
    script.instead = lambda _: status(503)
    session.set_mode(mode)
    assert "Lisbon" not in "".join([*here.pages().values(), *here.files().values()])
    assert "teal" in here.files()["MEMORY.md"]
    script.instead = None
    assert here.space.generations.run().generations == 1
    before = published(here)
    session.set_mode(mode)
    assert published(here) == before, "what the model wrote shows nothing of it"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"agent_turns_max": 3}, "as often as one run allows"),
        ({"agent_tokens_max": 12_000, "model_output_tokens_max": 500}, "tokens are used up"),
        ({"agent_tool_bytes_max": 4096}, "answered as much as one run allows"),
        ({"agent_seconds_max": 100}, "time is used up"),
    ],
    ids=["turns", "tokens", "bytes", "seconds"],
)
def test_a_model_that_never_comes_to_an_end_is_stopped(
    opened: Open, limits: dict[str, Any], reason: str
) -> None:
    """G8, G9: by each budget; nothing of the run is left but its cost."""
    script = Sequel()
    # Time is spent by the model's turns.
    here = opened(script, lease_seconds=3600, **{"agent_turns_max": 900} | limits)
    here.learned("a", HOME, *(f"I like the number {number}." for number in range(20)))
    here.tick()
    before = published(here)
    here.learned("b", COLOUR)

    def restless(_: Received) -> Scripted:
        here.clock.advance(10)
        wanted = ("session_read", {"session": "s1"})
        return calls(wanted, usage=Usage(input_tokens=1500, output_tokens=100))

    script.instead = restless
    before_it = len(here.server.requests)
    assert here.memory.worker().tick().failed == 1
    assert 1 < len(here.server.requests) - before_it < 50
    state = here.space.generations.state()
    assert state.last_error is not None
    assert reason in state.last_error
    assert published(here) == before
    spent = here.memory.status(SPACE).spent_today
    assert spent.calls == len(here.server.requests)


# a run that is no longer anybody's


@pytest.mark.parametrize("notices", [True, False])
def test_a_run_whose_lease_was_taken_over_publishes_nothing(opened: Open, notices: bool) -> None:
    """G1, G10, P5: whether its heartbeat tells it or the fence does."""
    script = Waits()
    here = opened(script, lease_seconds=60, agent_seconds_max=86_400)
    here.learned("a", HOME)
    slow = here.memory.worker(owner="slow")
    with Background(slow.tick) as running:
        assert script.gate.arrived.wait(WAIT_SECONDS)
        first = here.job().token
        here.clock.advance(61)
        assert here.memory.worker(owner="quick").tick().generations == 1
        assert here.job().token > first
        before = published(here)
        if notices:
            slow.renew_leases()
        script.gate.open()
    assert (running.result.stale, running.result.generations) == (1, 0)
    assert published(here) == before
    assert here.space.generations.state().failures == 0


def test_two_supervisors_at_once_publish_once(opened: Open) -> None:
    """G1: both ask for the job at the same moment, again and again."""
    here = opened(keeper)
    for round_ in range(4):
        here.learned(f"s{round_}", f"I like the number {round_}.")
        barrier = threading.Barrier(2)

        def run(barrier: threading.Barrier = barrier) -> int:
            worker = here.memory.worker()
            barrier.wait(WAIT_SECONDS)
            return worker.tick().generations

        with Background(run) as one, Background(run) as two:
            pass
        assert one.result + two.result == 1
        assert here.space.generations.state().generation == round_ + 1


def test_what_is_forgotten_during_the_first_run_is_not_published(opened: Open) -> None:
    """G9, G11: the run is outdated; it is made again at once, without it."""
    script = Waits()
    here = opened(script)
    gone = here.learned("gone", HOME)
    here.learned("stays", COLOUR)
    with Background(here.memory.worker().tick) as running:
        assert script.gate.arrived.wait(WAIT_SECONDS)
        here.space.forget(session=gone)
        script.gate.open()
    assert running.result.generations == 0
    assert here.space.generations.list() == []
    assert here.pages() == {}
    assert here.tick() == 1
    assert "Lisbon" not in "".join([*here.pages().values(), *here.files().values()])
    assert here.space.generations.get().added == 1


def test_what_is_forgotten_during_a_later_run_leaves_at_once_and_the_run_is_void(
    opened: Open,
) -> None:
    """G9, G11: by rules, without waiting for the model; then the model has its turn."""
    script = Sequel()
    here = opened(script)
    gone = here.learned("gone", HOME)
    here.learned("stays", COLOUR)
    here.tick()
    here.learned("new", DRINK)
    waits = Waits()
    script.instead = waits
    with Background(here.memory.worker().tick) as running:
        assert waits.gate.arrived.wait(WAIT_SECONDS)
        here.space.forget(session=gone)
        generation = here.space.generations.get()
        assert (generation.number, generation.made_by) == (2, "rules")
        assert "Lisbon" not in "".join([*here.pages().values(), *here.files().values()])
        waits.gate.open()
    assert running.result.generations == 0
    assert here.space.generations.state().generation == 2
    assert here.tick() == 1
    assert here.space.generations.get().made_by.startswith("openai:scripted/")
    assert "Lisbon" not in "".join([*here.pages().values(), *here.files().values()])


@pytest.mark.parametrize("mode", [Mode.DISABLED, Mode.POLLUTED])
def test_a_mode_that_changes_during_a_run_makes_it_outdated(opened: Open, mode: Mode) -> None:
    """G9, G12."""
    script = Waits()
    here = opened(script)
    session = here.learned("a", HOME)
    here.learned("b", COLOUR)
    with Background(here.memory.worker().tick) as running:
        assert script.gate.arrived.wait(WAIT_SECONDS)
        session.set_mode(mode)
        script.gate.open()
    assert (running.result.released, running.result.generations) == (1, 0)
    state = here.space.generations.state()
    assert (state.generation, state.job, state.failures) == (0, JobState.DUE, 0)
    assert here.tick() == 1
    assert "Lisbon" not in "".join(here.pages().values())


def _reset(session: Session) -> None:
    session.append("user", DRINK, name="Alice")
    session.reset()


def _go_on(session: Session) -> None:
    session.append("user", DRINK, name="Alice")
    session.sleep()


@pytest.mark.parametrize("act", [_reset, _go_on])
def test_a_session_that_goes_on_during_a_run_is_news_for_the_next(
    opened: Open, act: Callable[[Session], None]
) -> None:
    """G4, G5: the state that was read is the one that is marked."""
    script = Waits()
    here = opened(script, agent_seconds_max=3600)
    session = here.learned("a", HOME)
    read = here.extraction(session)
    learned_from = session.id
    with Background(here.memory.worker().tick) as running:
        assert script.gate.arrived.wait(WAIT_SECONDS)
        here.clock.advance(10)
        act(session)
        assert here.memory.worker().tick().processed == 1
        script.gate.open()
    assert running.result.generations == 1
    refreshed = here.space.sessions.extraction(learned_from)
    assert refreshed is not None
    assert refreshed.source_updated_at > read.source_updated_at
    assert refreshed.selected_for_phase2_source_updated_at == read.source_updated_at
    assert here.picked()["added"] == ["a"]
    assert here.space.generations.state().job is JobState.DUE
    assert here.tick() == 1
    assert here.picked() == {"added": [], "retained": ["a"], "removed": []}


def test_a_space_that_is_paused_during_a_run_keeps_the_generation_it_has(opened: Open) -> None:
    """G10: whoever was at it has lost it."""
    script = Waits()
    here = opened(script)
    here.learned("a", HOME)
    with Background(here.memory.worker().tick) as running:
        assert script.gate.arrived.wait(WAIT_SECONDS)
        here.space.generations.pause()
        script.gate.open()
    assert running.result.generations == 0
    assert here.space.generations.list() == []
    here.space.generations.resume()
    assert here.tick() == 1


def test_pages_that_a_person_changes_during_a_run_are_not_overwritten(opened: Open) -> None:
    """G9: the run is put off and made again on what there is then."""
    script = Sequel()
    here = opened(script)
    here.learned("a", HOME)
    here.tick()
    here.learned("b", COLOUR)
    waits = Waits(2)  # the pages are staged, and not published
    script.instead = waits
    held_by_hand = here.memory.pipeline.consolidator().held(SPACE)
    with Background(here.memory.worker().tick) as running:
        assert waits.gate.arrived.wait(WAIT_SECONDS)
        page = held_by_hand.read(MEMORY)
        held_by_hand.write(MEMORY, f"{page.body}\n- By hand{page.body.partition('session')[2]}")
        waits.gate.open()
    assert running.result.postponed == 1
    assert "By hand" in here.body(MEMORY)
    job = here.job()
    assert (job.state, job.failures) == (JobState.DUE, 0)
    script.instead = None
    here.clock.advance(DAY)
    assert here.tick() == 1
    assert "teal" in here.body(MEMORY)


def test_two_spaces_are_consolidated_at_the_same_time(opened: Open) -> None:
    """G1: one process, two models' answers under way."""
    gates = [Gate(), Gate()]
    numbers = iter(gates)
    lock = threading.Lock()

    def script(received: Received) -> Scripted:
        with lock:
            gate = next(numbers, None)
        return keeper(received) if gate is None else held(gate, keeper(received))

    # What is due longest goes first: both sessions are distilled before either space's turn.
    here = opened(script, worker_turns="first-come")
    here.told("a", HOME)
    bob = here.memory.space("bob")
    session = bob.session("b", "assistant")
    session.append("user", COLOUR, name="Bob")
    session.sleep()
    here.clock.advance(10)
    for _ in range(2):
        assert here.memory.worker().tick().processed == 1
    with Background(here.memory.worker().tick) as one, Background(here.memory.worker().tick) as two:
        for gate in gates:
            assert gate.arrived.wait(WAIT_SECONDS), "one waits for the other"
        for gate in gates:
            gate.open()
    assert (one.result.generations, two.result.generations) == (1, 1)
    assert "teal" not in "".join(here.pages().values())
    assert "Lisbon" not in bob.documents.read(MEMORY).body


# what it costs


def test_what_a_generation_took_is_in_it_and_in_the_ledger(opened: Open) -> None:
    """X11: the generation, the day of the space."""
    here = opened(keeper)
    here.learned("a", HOME)
    here.tick()
    spent = here.space.generations.get().spent
    today = here.memory.status(SPACE).spent_today
    assert spent.calls == 3, "what is known, the sessions, the summary"
    assert spent.input_tokens > 0
    assert (today.calls, today.tokens) == (spent.calls, spent.tokens)


def test_a_space_that_has_spent_its_day_waits_for_the_next(opened: Open) -> None:
    """X11, G10: no failure, and the status says what it waits for."""
    here = opened(keeper, spend_calls_per_day=2)
    here.learned("a", HOME)
    assert here.tick() == 1
    before = published(here)
    here.learned("b", COLOUR)
    assert here.memory.worker().tick().postponed == 1
    assert len(here.server.requests) == 2, "no call was made that could exceed it"
    job = here.job()
    assert (job.failures, job.is_paused) == (0, True)
    assert job.last_error is not None
    assert "spend_" in job.last_error
    assert job.due_at is not None
    midnight = here.clock.now().replace(hour=0, minute=0, second=0) + timedelta(days=1)
    assert job.due_at >= midnight
    assert published(here) == before
    here.clock.advance(DAY)
    assert here.tick() == 1


# skills


def test_a_skill_is_written_from_what_was_done_in_several_sessions(opened: Open) -> None:
    """G8, G9: with the sessions that show it; NONE takes it away, a rollback brings it back."""
    script = Sequel()
    here = opened(script)

    def skilled(received: Received) -> Scripted:
        if "Write the skill" not in received.prompt:
            return keeper(received)
        return "description: Use when tea is due.\n\n1. boil water [f1]\n"

    script.instead = skilled

    def worked(key: str, *commands: str) -> None:
        session = here.space.session(key, "assistant", project="/srv/tea")
        for text in commands:
            session.append("assistant", content="", tool_calls=[_call(text)])
            session.append("tool", "ok", tool_call_id=text)
        session.append("user", "Great, that works. Thanks!", name="Alice")
        session.sleep()
        here.clock.advance(10)
        assert here.memory.worker().tick().processed == 1

    for key in "ab":
        worked(key, "make lint", "make test")
    assert here.tick() == 1
    (path,) = [each for each in here.pages() if each.endswith("/SKILL")]
    page = here.space.documents.read(path)
    assert page.description == "Use when tea is due."
    assert page.body.startswith("1. boil water\n\nIt worked in [[")
    assert page.title == path.split("/")[-2]
    script.instead = keeper
    worked("c", "make lint", "make test", "make build")
    assert here.tick() == 1
    assert not [name for name in here.files() if name.startswith("skills/")]
    here.space.generations.rollback(1)
    assert [name for name in here.files() if name.startswith("skills/")]


def _call(command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command})
    return {"id": command, "type": "function", "function": {"name": "bash", "arguments": arguments}}
