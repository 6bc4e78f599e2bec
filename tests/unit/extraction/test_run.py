"""Invariants 6 and 7: what an extractor returns is redacted and bounded before it can be stored."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import InvalidOutput, SpendCapReached
from recollect.extraction.model import ModelExtractor
from recollect.extraction.piece import Extractor, Piece
from recollect.extraction.rules import RuleExtractor
from recollect.extraction.run import TOPICS_MAX, ExtractionProcessor
from recollect.extraction.spend import Budget
from recollect.models.protocol import Completion, Request, Usage
from recollect.processing import Verdict, Work
from recollect.redaction import load_redactor
from recollect.types.facts import NOTHING_SPENT, Draft, Extraction, Fact, NewFact, Trust
from recollect.types.records import Claim, JobKind, Outcome, Record, SessionState
from tests.unit.extraction.material import START, answer, at, extraction, fact, records, session

# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6
TEA = {"role": "user", "name": "Alice", "content": "I prefer tea over coffee."}
GOOD = answer(fact("The user prefers tea over coffee.", [1]))
SALT = b"a salt of the test's own"


@dataclass
class Proposing:
    """An extractor that proposes what the test says."""

    draft: Draft
    name: str = "proposing/1"
    pieces: list[Piece] = field(default_factory=list)

    def extract(self, piece: Piece) -> Draft:
        self.pieces.append(piece)
        return self.draft


@dataclass
class Saying:
    """A model that says what the test says."""

    text: str = GOOD
    requests: list[Request] = field(default_factory=list)
    name: str = "openai:m"
    window_tokens: int = 128_000

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        usage = Usage(input_tokens=100, output_tokens=20)
        return Completion(text=self.text, usage=usage, model="m")

    def close(self) -> None: ...


Make = Callable[..., ExtractionProcessor]


@pytest.fixture
def make(memory: recollect.Memory, clock: ManualClock) -> Make:
    def processor(extractor: Extractor | Saying | None, **given: Any) -> ExtractionProcessor:
        settings = Settings(data_dir="", **given)
        redactor = load_redactor(settings, SALT)
        if isinstance(extractor, Saying):
            extractor = ModelExtractor(model=extractor, settings=settings, redact=redactor.redact)
        return ExtractionProcessor(memory.store, Budget(settings, clock), redactor, extractor)

    return processor


def work(*messages: Mapping[str, Any], **given: Any) -> Work:
    said: list[Record] = records(*(messages or (TEA,)))
    claim = Claim(
        job_id=1,
        kind=JobKind.EXTRACT,
        space="default",
        key="session-id-1",
        owner="me",
        token=1,
        attempt=2,
        expires_at=START,
        read_upto=said[-1].seq,
        claimed_mark=said[-1].seq,
    )
    made: dict[str, Any] = {
        "claim": claim,
        "session": session(),
        "records": tuple(said),
        "is_lost": lambda: False,
    }
    return Work(**(made | given))


def new_fact(content: str = "The user prefers tea.", **given: Any) -> NewFact:
    made: dict[str, Any] = {
        "seq": 1,
        "seq_to": 1,
        "valid_from": at(1),
        "trust": Trust.USER,
    }
    return NewFact(content=content, **(made | given))


def stored(verdict: Verdict) -> Draft:
    assert verdict.draft is not None
    return verdict.draft


# what is stored


EVERYWHERE: Mapping[str, Draft] = {
    "raw_memory": Draft(upto=1, raw_memory=f"## Key\nuse {SECRET} here"),
    "rollout_summary": Draft(upto=1, rollout_summary=f"The key is {SECRET}."),
    "rollout_slug": Draft(upto=1, raw_memory="m", rollout_slug=SECRET),
    "content": Draft(upto=1, facts=(new_fact(f"The key is {SECRET}."),)),
    "quote": Draft(upto=1, facts=(new_fact(quote=f"my key is {SECRET}"),)),
    "tags": Draft(upto=1, facts=(new_fact(tags=("detail", SECRET)),)),
    "metadata": Draft(upto=1, facts=(new_fact(metadata={"deep": [{"at": SECRET}]}),)),
    "a key of the metadata": Draft(upto=1, facts=(new_fact(metadata={SECRET: 1}),)),
    "topic": Draft(upto=1, facts=(new_fact(topic=f"key:{SECRET}"),)),
}


@pytest.mark.parametrize("draft", EVERYWHERE.values(), ids=EVERYWHERE.keys())
def test_no_field_stores_a_secret(make: Make, draft: Draft) -> None:
    assert SECRET in repr(draft)
    kept = stored(make(Proposing(draft)).process(work()))
    assert SECRET not in repr(kept)
    assert "redacted" in repr(kept)
    assert len(kept.facts) == len(draft.facts)


def test_a_value_is_redacted_by_the_name_it_has_in_the_metadata(make: Make) -> None:
    draft = Draft(upto=1, facts=(new_fact(metadata={"db_password": "Tr0ub4dor&3", "port": 5432}),))
    (kept,) = stored(make(Proposing(draft)).process(work())).facts
    assert kept.metadata["port"] == 5432
    assert kept.metadata["db_password"].startswith("[redacted:")


def test_what_holds_no_secret_is_stored_as_it_was_proposed(make: Make) -> None:
    draft = Draft(
        upto=1,
        raw_memory="## Tea\nThe user prefers tea.",
        rollout_summary="Tea.",
        rollout_slug="tea",
        facts=(
            new_fact(
                quote="I prefer tea",
                tags=("preference",),
                metadata={"n": 1, "deep": {"list": [True, None, 1.5]}},
                topic="user:drink",
                supersedes=("f-1",),
                valid_to=at(9),
            ),
        ),
    )
    assert make(Proposing(draft)).process(work()) == Verdict(
        outcome=Outcome.EXTRACTED, upto=1, draft=draft, extractor="proposing/1"
    )


def test_what_is_stored_is_no_longer_than_its_limits(make: Make) -> None:
    draft = Draft(
        upto=1,
        raw_memory="m" * 5000,
        rollout_summary="s" * 5000,
        rollout_slug="s" * 500,
        facts=(new_fact("f" * 5000), new_fact("f" * 100)),
    )
    processor = make(Proposing(draft), fact_chars_max=100, memory_chars_max=500)
    kept = stored(processor.process(work()))
    assert max(len(kept.raw_memory), len(kept.rollout_summary)) <= 500
    assert len(kept.rollout_slug or "") <= 80
    long, right = kept.facts
    assert len(long.content) <= 100
    assert right.content == "f" * 100


def test_a_secret_that_makes_a_text_longer_does_not_make_it_too_long(make: Make) -> None:
    words = " ".join(f"password{n}={n}Kq7!xR2" for n in range(40))
    draft = Draft(upto=1, facts=(new_fact(words[:400]),))
    (kept,) = stored(make(Proposing(draft), fact_chars_max=400).process(work())).facts
    assert len(kept.content) <= 400


def test_an_error_that_quotes_an_answer_quotes_no_secret(make: Make) -> None:
    class Refusing(Saying):
        def complete(self, request: Request) -> Completion:
            raise InvalidOutput(f"the answer ends in {SECRET[:38]}")

    with pytest.raises(InvalidOutput) as raised:
        make(Refusing(), extract_repairs=0).process(work())
    assert "the answer ends in" in str(raised.value)
    assert SECRET[:38] not in str(raised.value)


# what is asked


def test_without_an_extractor_records_are_read_and_nothing_is_learned(make: Make) -> None:
    verdict = make(None).process(work())
    assert (verdict.outcome, verdict.draft, verdict.extractor) == (Outcome.NO_OUTPUT, None, "none")


SILENT = (
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "## Relevant Memory\n\n- the user prefers tea\n"},
)


def test_records_with_nothing_to_say_are_done_without_a_call(
    make: Make, memory: recollect.Memory
) -> None:
    model = Saying()
    verdict = make(model).process(work(*SILENT))
    assert verdict == Verdict(
        outcome=Outcome.NO_OUTPUT, upto=2, draft=Draft(upto=2), extractor="openai:m/prompt-3"
    )
    assert (model.requests, memory.space().sessions.calls()) == ([], [])


def test_an_extractor_is_given_what_matters_redacted_and_whole(make: Make) -> None:
    proposing = Proposing(Draft(upto=3))
    before = extraction()
    lost = [False]
    told = {"role": "user", "content": f"my key is {SECRET}"}
    given = work(SILENT[0], TEA, told, previous=before, is_lost=lambda: lost[0])
    here = session(project=f"/src/{SECRET}")
    make(proposing).process(dataclasses.replace(given, session=here))
    (piece,) = proposing.pieces
    assert (piece.first, piece.upto, piece.previous) == (1, 3, before)
    assert [block.seq for block in piece.blocks] == [2, 3]
    assert SECRET not in repr(piece)
    assert not piece.is_lost()
    lost[0] = True
    assert piece.is_lost()


@pytest.mark.parametrize(
    ("draft", "outcome"),
    [
        (Draft(upto=1), Outcome.NO_OUTPUT),
        (Draft(upto=1, raw_memory=" \n", rollout_slug="tea"), Outcome.NO_OUTPUT),
        (Draft(upto=1, raw_memory="m"), Outcome.EXTRACTED),
        (Draft(upto=1, rollout_summary="s"), Outcome.EXTRACTED),
        (Draft(upto=1, facts=(new_fact(),)), Outcome.EXTRACTED),
    ],
)
def test_a_draft_that_says_nothing_is_no_output(make: Make, draft: Draft, outcome: Outcome) -> None:
    assert make(Proposing(draft)).process(work()).outcome is outcome


def test_a_draft_of_less_than_the_piece_goes_no_further(make: Make) -> None:
    draft = Draft(upto=2, raw_memory="m")
    assert make(Proposing(draft)).process(work(TEA, TEA, TEA)).upto == 2


@pytest.mark.parametrize("upto", [0, 4])
def test_a_draft_of_other_records_is_refused(make: Make, upto: int) -> None:
    with pytest.raises(AssertionError, match="other records"):
        make(Proposing(Draft(upto=upto, raw_memory="m"))).process(work(TEA, TEA, TEA))


def test_rules_take_nothing_from_the_ledger(make: Make, memory: recollect.Memory) -> None:
    verdict = make(RuleExtractor()).process(work())
    assert (verdict.spent, memory.space().sessions.calls()) == (NOTHING_SPENT, [])
    assert verdict.extractor.startswith("rules/")
    assert "tea" in repr(stored(verdict).facts)


def test_every_call_of_a_model_is_paid_for_by_who_asked(
    make: Make, memory: recollect.Memory
) -> None:
    processor = make(Saying("prose"), extract_repairs=1)
    with pytest.raises(InvalidOutput):
        processor.process(work())
    calls = memory.space().sessions.calls("session-id-1")
    assert [(call.purpose, call.attempt) for call in calls] == [
        ("repair", 2),
        ("repair", 2),
        ("extract", 2),
    ]
    verdict = make(Saying()).process(work())
    assert (verdict.spent.calls, verdict.spent.tokens) == (1, 120)


def test_the_pieces_of_one_worker_share_its_budget_and_another_has_its_own(make: Make) -> None:
    processor = make(Saying(), spend_calls_per_run=1)
    processor.process(work())
    with pytest.raises(SpendCapReached):
        processor.process(work())
    make(Saying(), spend_calls_per_run=1).process(work())


def test_a_background_session_has_no_person_in_it(make: Make) -> None:
    """T4: there, what stands under the user's role is some program's word."""
    background: SessionState = dataclasses.replace(session(), agent_id="/cron/nightly")
    for each, trust in ((session(), Trust.USER), (background, Trust.AGENT)):
        model = Saying()
        (kept,) = stored(make(model).process(work(session=each))).facts
        assert kept.trust is trust
        is_told = "no person takes part" in model.requests[0].prompt
        assert is_told is (each is background)


# what is known


def learn(memory: recollect.Memory, *facts: NewFact) -> None:
    """Facts as an extractor has left them."""
    alone = memory.space().session("before", agent="assistant")
    alone.append("user", "something")
    alone.sleep()
    report = memory.work(Learning(Draft(upto=1, raw_memory="m", facts=facts)))
    assert report.processed == 1


@dataclass
class Learning:
    draft: Draft

    def process(self, given: Work) -> Verdict:
        return Verdict(outcome=Outcome.EXTRACTED, draft=self.draft, extractor="earlier/1")


def sent(make: Make, *messages: Mapping[str, Any], **given: Any) -> str:
    model = Saying(json.dumps(json.loads(answer()) | {"raw_memory": "m"}))
    make(model, **given).process(work(*messages))
    return model.requests[0].prompt


EARLIER = NewFact(
    content="The user prefers coffee.",
    seq=1,
    seq_to=1,
    valid_from=START - timedelta(days=200),
    trust=Trust.USER,
)


def test_a_model_is_shown_the_facts_that_what_people_said_may_be_about(
    make: Make, memory: recollect.Memory
) -> None:
    elsewhere = dataclasses.replace(EARLIER, content="The user owns a boat.")
    learn(memory, EARLIER, elsewhere)
    prompt = sent(make, TEA)
    assert "f1 (" in prompt
    assert EARLIER.content in prompt
    assert elsewhere.content not in prompt


def test_a_model_is_not_shown_facts_about_what_only_others_said(
    make: Make, memory: recollect.Memory
) -> None:
    learn(memory, EARLIER)
    assistant = {"role": "assistant", "content": "Would you like tea or coffee?"}
    assert EARLIER.content not in sent(make, {"role": "user", "content": "Hello."}, assistant)


def test_a_model_is_shown_no_fact_that_people_added_or_edited(
    make: Make, memory: recollect.Memory
) -> None:
    """It could not change it anyway: what people add stays theirs."""
    facts = memory.space().facts
    facts.add(Fact("The user prefers cocoa over coffee.", valid_from=EARLIER.valid_from))
    learn(memory, EARLIER)
    (known,) = (each for each in facts.list() if each.content == EARLIER.content)
    assert EARLIER.content in sent(make, TEA)
    assert "cocoa" not in sent(make, TEA)
    facts.update(known.id, tags=["mine"])
    assert EARLIER.content not in sent(make, TEA)


def test_a_model_is_shown_no_fact_of_another_space(make: Make, memory: recollect.Memory) -> None:
    learn(memory, EARLIER)
    model = Saying(answer())
    elsewhere = work(session=session(space="bob"))
    make(model).process(elsewhere)
    assert EARLIER.content not in model.requests[0].prompt


def test_a_model_is_shown_no_fact_that_was_over_when_it_was_said(
    make: Make, memory: recollect.Memory
) -> None:
    learn(memory, dataclasses.replace(EARLIER, valid_to=START - timedelta(days=1)))
    assert EARLIER.content not in sent(make, TEA)


def test_a_model_is_shown_no_more_facts_than_the_settings_say(
    make: Make, memory: recollect.Memory
) -> None:
    many = [dataclasses.replace(EARLIER, content=f"The user prefers coffee {n}.") for n in range(9)]
    learn(memory, *many)
    assert sent(make, TEA, extract_known_facts=3).count("The user prefers coffee") == 3
    assert sent(make, TEA, extract_known_facts=0).count("The user prefers coffee") == 0


def test_a_model_is_shown_what_a_session_is_about_and_the_topics_in_use(
    make: Make, memory: recollect.Memory
) -> None:
    def about(name: str, number: int) -> NewFact:
        content = f"{name} keeps a diary about number {number}."
        topic = f"{name.lower()}:diary-{number}"
        return dataclasses.replace(EARLIER, content=content, topic=topic, is_single=False)

    mira = [about("Mira", number) for number in range(3)]
    learn(memory, *mira, *(about("Jon", number) for number in range(60)))
    prompt = sent(
        make, {"role": "user", "name": "Mira", "content": "Hello!"}, extract_known_facts=3
    )
    assert re.findall(r"^\| (f\d) \(.*\): (\w+)", prompt, re.MULTILINE) == [
        *(("f1", "Mira"), ("f2", "Mira"), ("f3", "Mira"))
    ]
    topics = prompt.partition("topics in use: ")[2].partition("\n")[0].split(", ")
    assert set(topics) > {fact.topic for fact in mira}
    assert len(topics) == TOPICS_MAX


def test_rules_are_shown_what_is_known(make: Make, memory: recollect.Memory) -> None:
    learn(memory, EARLIER)
    proposing = Proposing(Draft(upto=1))
    make(proposing).process(work())
    assert [fact.content for fact in proposing.pieces[0].known] == ["The user prefers coffee."]


def test_what_the_session_came_to_before_is_sent_redacted(make: Make) -> None:
    before: Extraction = extraction(raw_memory=f"## Key\n{SECRET}")
    model = Saying()
    make(model).process(work(previous=before))
    assert "[r1] ## Key" in model.requests[0].prompt
    assert SECRET not in model.requests[0].prompt
