"""What a session came to is rendered from its facts once anything in it was taken back."""

from __future__ import annotations

from collections.abc import Callable

from recollect.types.facts import Draft, Extraction, Fact, Source
from recollect.types.pages import WRITTEN_BY_MODEL, Author, AuthorKind, Because
from recollect.types.recall import EntryKind, Filters, NewVector
from recollect_conformance.case import case
from recollect_conformance.findings import found
from recollect_conformance.handbooks import (
    COOLDOWN,
    consolidate,
    handbook,
    is_due,
    remember,
)
from recollect_conformance.harness import NEVER, SPACE, Harness
from recollect_conformance.lessons import (
    add,
    draft,
    edit,
    extraction,
    fact_named,
    learn,
    lesson,
    revision,
    statement,
)
from recollect_conformance.pages import apply, find, page, writing

OLD, NEW, OTHER = "Ana lives in Lisbon.", "Ana lives in Faro.", "Ana likes figs."
QUOTE = "I live in Lisbon."
MEMORY = f"## Home\n- {OLD} [#1, user]\n- {OTHER} [#1, user]"
SUMMARY = f"She said: I live in Lisbon. {OTHER} Ana lives in Lisbon and works there."
LEFT = f"- {OTHER} [#1, user]"
MODEL = "letters"

Change = Callable[[Harness, Fact], object]


def _draft(memory: str = MEMORY, summary: str = SUMMARY) -> Draft:
    said = statement(OLD, quote=QUOTE), statement(OTHER, quote="I like figs.")
    return draft(*said, memory=memory, summary=summary)


def _correct(store: Harness, fact: Fact) -> None:
    assert edit(store, fact.id, content=NEW) is not None


def _delete(store: Harness, fact: Fact) -> None:
    assert store.handle.facts.delete(SPACE, fact.id, store.now())


def _forget(store: Harness, fact: Fact) -> None:
    receipt = store.handle.erasure.forget_fact(SPACE, fact.id, store.now())
    assert receipt is not None
    assert (receipt.facts, receipt.extractions) == (1, 0), "the texts of the session go on"


def _texts(made: Extraction) -> str:
    return f"{made.raw_memory}\n{made.rollout_summary}"


@case("T4 N10", "what a session came to says what its facts say since somebody corrected one")
def a_correction_is_in_the_texts(store: Harness) -> None:
    session = learn(store, lesson(_draft()))
    before = revision(store)
    _correct(store, fact_named(store, OLD))
    made = extraction(store, session)
    assert made.raw_memory == made.rollout_summary == f"- {NEW} [#1, user]\n{LEFT}"
    assert made.rollout_slug is None
    assert found(store, "Faro", EntryKind.SUMMARY) == [made.rollout_summary]
    assert revision(store).changed == before.changed + 1


@case("T4 N10 P11", "and nothing of one that was deleted or forgotten; the rest stays")
def nothing_withdrawn_is_in_the_texts(store: Harness) -> None:
    for change in (_delete, _forget):
        session = learn(store, lesson(_draft()), change.__name__)
        change(store, fact_named(store, OLD, every=False))
        made = extraction(store, session)
        assert made.raw_memory == made.rollout_summary == LEFT
        assert made.rollout_summary in found(store, "figs", EntryKind.SUMMARY)
    assert found(store, "works", EntryKind.SUMMARY) == []


@case("T4 P11", "nor does a session say it that is gone through again, or further")
def a_run_brings_no_text_back(store: Harness) -> None:
    for change in (_correct, _delete, _forget):
        key = change.__name__
        session = learn(store, lesson(_draft(), is_whole=True), key)
        change(store, fact_named(store, OLD, every=False))
        after = _texts(extraction(store, session))
        learn(store, lesson(_draft(), is_whole=True), key)
        assert _texts(extraction(store, session)) == after
        learn(store, lesson(draft(memory=MEMORY, summary="She is at home in Lisbon.")), key)
        assert _texts(extraction(store, session)) == after, "in whatever words"


@case("T4 P11", "a session says again what somebody said in it again, and goes on saying it")
def a_text_says_what_was_said_again(store: Harness) -> None:
    for change in (_correct, _delete, _forget):
        key = change.__name__
        session = learn(store, lesson(_draft()), key)
        change(store, fact_named(store, OLD, every=False))
        said = statement(OLD, 2, quote=QUOTE)
        learn(store, lesson(draft(said, memory=MEMORY, summary=SUMMARY)), key)
        assert _texts(extraction(store, session)) == f"{MEMORY}\n{SUMMARY}"
        learn(store, lesson(draft(memory=MEMORY, summary=f"So. {SUMMARY}")), key)
        assert extraction(store, session).rollout_summary == f"So. {SUMMARY}"
        _delete(store, fact_named(store, OLD, every=False))


@case("T4", "a text that was changed since is not what a session came to at an earlier time")
def a_changed_text_is_of_its_time(store: Harness) -> None:
    session = learn(store, lesson(_draft()))
    then = store.clock.advance(60)
    assert found(store, "figs", EntryKind.SUMMARY, filters=Filters(as_of=then)) == [SUMMARY]
    store.clock.advance(60)
    _correct(store, fact_named(store, OLD))
    before, after = Filters(as_of=then), Filters(as_of=store.now())
    made = extraction(store, session).rollout_summary
    for word in ("figs", "Faro"):
        assert found(store, word, EntryKind.SUMMARY, filters=before) == []
        assert found(store, word, EntryKind.SUMMARY, filters=after) == [made]
    assert found(store, "Faro", EntryKind.SUMMARY) == [made]


@case("T4 P11", "of a text that says nothing else nothing is left, and its session is told so")
def a_text_of_nothing_else_goes(store: Harness) -> None:
    for change in (_delete, _forget_all):
        made = draft(statement(OLD, quote=QUOTE), memory=f"## Home\n- {OLD}", summary=OLD)
        session = learn(store, lesson(made), change.__name__)
        consolidate(store)
        change(store, fact_named(store, OLD, every=False))
        assert store.handle.extractions.get(SPACE, session) is None
        consolidate(store)
        assert handbook(store) == []


def _forget_all(store: Harness, fact: Fact) -> None:
    receipt = store.handle.erasure.forget_fact(SPACE, fact.id, store.now())
    assert receipt is not None
    assert receipt.extractions == 1


@case("T4", "what else holds of a session stays in its texts, and so does what others came to")
def other_texts_stay(store: Harness) -> None:
    near = "Ana lives in Lisbon in summer."
    said = statement(OLD, quote=QUOTE), statement(near, quote="In summer I live in Lisbon.")
    mine = learn(store, lesson(draft(*said, memory=f"- {OLD}\n- {near}", summary="")), "mine")
    other = learn(store, lesson(draft(memory=f"- {OLD}", summary="")), "other")
    _delete(store, fact_named(store, OLD))
    assert extraction(store, mine).raw_memory == f"- {near} [#1, user]"
    assert extraction(store, other).raw_memory == f"- {OLD}", "the fact was not learned there"


@case("T4", "an edit that says the same, or of what no session said, leaves every text alone")
def an_edit_of_tags_leaves_texts(store: Harness) -> None:
    session = learn(store, lesson(_draft()))
    before = extraction(store, session)
    known = fact_named(store, OLD)
    edit(store, known.id, tags=("home",))
    edit(store, known.id, content=OLD.upper())
    own = add(store, "Ana has a dog.")
    edit(store, own.id, content="Ana has a cat.")
    _delete(store, own)
    assert extraction(store, session) == before


@case("T4", "what is added under the id of a known fact corrects the texts as well")
def a_replaced_fact_is_in_the_texts(store: Harness) -> None:
    session = learn(store, lesson(_draft()))
    add(store, NEW, named=fact_named(store, OLD).id)
    assert _texts(extraction(store, session)) == f"{LEFT}\n{LEFT}", "nobody says NEW there"


@case("T4 G12", "memory that says what was corrected is made anew at once")
def a_correction_does_not_wait(store: Harness) -> None:
    remember(store, "one", statement(OLD, quote=QUOTE), memory=f"- {OLD}")
    consolidate(store, cooldown_seconds=COOLDOWN)
    _correct(store, fact_named(store, OLD))
    assert is_due(store)
    consolidate(store, cooldown_seconds=COOLDOWN)
    assert handbook(store) == [f"- {NEW} [#1, user]"]


@case("P11 G11", "of the page of a session that said what is forgotten, earlier versions go")
def earlier_pages_do_not_say_it(store: Harness) -> None:
    said = statement(OLD, quote=QUOTE), statement(OTHER, quote="I like figs.")
    session = remember(store, "one", *said, memory=f"- {OLD}\n- {OTHER}")
    consolidate(store)
    _forget(store, fact_named(store, OLD))
    consolidate(store)
    own = page(store, f"memory/rollout_summaries/{session}")
    history = store.handle.documents.history(SPACE, own.id, None, 10)
    assert [each.body for each in history] == [LEFT]


@case("P11 X9", "of a session that lost a record stays what its facts say that are left")
def a_lost_record_leaves_what_others_say(store: Harness) -> None:
    store.say(store.key(), store.text(), store.text(), policy=NEVER)
    said = statement(OLD, 1, quote=QUOTE), statement(OTHER, 2, quote="I like figs.")
    session = learn(store, lesson(draft(*said, memory=MEMORY, summary=SUMMARY)))
    receipt = store.handle.erasure.forget_record(SPACE, session, 1, store.now())
    assert receipt is not None
    assert (receipt.facts, receipt.extractions) == (1, 1)
    assert _texts(extraction(store, session)) == f"- {OTHER} [#2, user]\n- {OTHER} [#2, user]"


@case("P11 A7", "what a model wrote from a fact's records goes with it, and no other page")
def a_models_page_goes_with_a_fact(store: Harness) -> None:
    for change in (_correct, _delete, _forget):
        key = change.__name__
        said = statement(OLD, 1, quote=QUOTE), statement(OTHER, 2, quote="I like figs.")
        session = learn(store, lesson(draft(*said, memory=MEMORY, summary=SUMMARY)), key)
        agent = Author(AuthorKind.AGENT, "/memory-agent/assistant")
        person = Author(AuthorKind.PERSON, "ana")
        for path, author, last in (("a", agent, 1), ("b", agent, 2), ("c", person, 1)):
            source = Source(session_id=session, seq=last, seq_to=last)
            reason = WRITTEN_BY_MODEL if author is agent else "mine"
            because = Because(author=author, reason=reason, sources=(source,))
            apply(store, writing(f"{key}/{path}", OLD), because=because)
        change(store, fact_named(store, OLD, every=False))
        left = [path for path in "abc" if find(store, f"{key}/{path}") is not None]
        assert left == ["b", "c"], change.__name__
        store.handle.facts.delete(SPACE, fact_named(store, OTHER, every=False).id, store.now())
        assert find(store, f"{key}/b") is None


@case("T4 R4", "a text that says something else gets another vector")
def a_changed_text_gets_another_vector(store: Harness) -> None:
    session = learn(store, lesson(_draft()))
    vectors = store.handle.vectors
    pending = vectors.pending(MODEL, 100)
    vectors.put(MODEL, [NewVector(entry=each, vector=b"8 bytes.") for each in pending])
    assert vectors.pending(MODEL, 100) == []
    _delete(store, fact_named(store, OLD))
    changed = [(each.kind, each.text) for each in vectors.pending(MODEL, 100)]
    assert changed == [(EntryKind.SUMMARY, extraction(store, session).rollout_summary)]
