"""A fact is corrected, deleted or forgotten: what was learned says so everywhere, and keeps to it.

Rows T4, N6 and N10, promise P11. The record itself stays: that is what was said, not what was
learned.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect_conformance.scripted import ScriptedServer
from tests.scripted_answers import OTHERS_BY_RULES, extracted, fact

SAID = "I live in Lisbon. I like fado."
ASKED = "where does Ana live? Lisbon"
LEARNED = ("fact", "summary", "document")

Change = Callable[[recollect.Space, str], object]


def corrected(space: recollect.Space, fact_id: str) -> None:
    space.facts.update(fact_id, "Ana lives in Faro.")


def deleted(space: recollect.Space, fact_id: str) -> None:
    space.facts.delete(fact_id)


def forgotten(space: recollect.Space, fact_id: str) -> None:
    receipt = space.forget(fact=fact_id)
    assert (receipt.facts, receipt.sources, receipt.records) == (1, 1, 0)
    assert receipt.extractions == 0, "they are there still, without it"


CHANGES = pytest.mark.parametrize("change", [corrected, deleted, forgotten])


def opened(url: str, root: Path, **settings: Any) -> recollect.Memory:
    return recollect.open(url, settings={"memories_root": str(root), **settings})


def told(memory: recollect.Memory) -> recollect.Session:
    """A session that begins with the statement, so that it is called after it as well."""
    session = memory.space("ana").session("chat")
    session.append("user", SAID, name="Ana")
    session.append("assistant", "Noted.")
    session.append("user", "I work as a nurse.", name="Ana")
    session.sleep()
    memory.work()
    return session


def known(space: recollect.Space, words: str) -> recollect.Fact:
    [found] = [each for each in space.facts.list() if words in each.content]
    return found


def recalled(space: recollect.Space, session: recollect.Session) -> str:
    """All that is made of records and shown to somebody who asks, apart from the pages."""
    texts = space.sessions.extraction(session.id)
    assert texts is not None
    hits = space.recall(ASKED, kinds=["fact", "summary"])
    return "\n".join(
        [
            f"{texts.raw_memory}\n{texts.rollout_summary}\n{texts.rollout_slug}",
            *(hit.text for hit in hits),
            space.context(ASKED, kinds=["fact", "summary"]).text.partition("## Relevant")[2],
        ]
    ).lower()


def everything(space: recollect.Space, session: recollect.Session, root: Path) -> str:
    """The same with pages, their names, and the published files."""
    pages = [space.documents.read(node.path) for node in space.documents.tree()]
    files = [f"{each}\n{each.read_text()}" for each in root.rglob("*.md")]
    hits = space.recall(ASKED, kinds=["document"])
    return "\n".join(
        [
            recalled(space, session),
            *(f"{each.path} {each.title} {each.description}\n{each.body}" for each in pages),
            *(hit.text for hit in hits),
            space.context(ASKED, kinds=LEARNED).text,
            *files,
        ]
    ).lower()


@CHANGES
def test_what_was_learned_says_it_nowhere_any_more(
    store_url: str, tmp_path: Path, change: Change
) -> None:
    with opened(store_url, tmp_path) as memory:
        space = memory.space("ana")
        session = told(memory)
        assert "lisbon" in recalled(space, session)
        change(space, known(space, "Lisbon").id)
        assert "lisbon" not in recalled(space, session), "at once"
        memory.work()
        assert "lisbon" not in everything(space, session, tmp_path), "without a pause"
        memory.work(again=True)
        assert "lisbon" not in everything(space, session, tmp_path), "gone through again"
        session.append("user", "I like tea.", name="Ana")
        session.sleep()
        memory.work()
        left = everything(space, session, tmp_path)
        assert "lisbon" not in left, "more was said"
        for words in ("ana likes fado.", "ana works as a nurse.", "ana likes tea."):
            assert words in recalled(space, session), "the rest is there still"
        assert ("ana lives in faro." in recalled(space, session)) is (change is corrected)
        assert space.sessions.records(session.id)[0].content == SAID


@CHANGES
def test_nor_does_what_a_model_wrote(store_url: str, tmp_path: Path, change: Change) -> None:
    answer = extracted(
        fact("Ana lives in Lisbon.", [1], quote="I live in Lisbon."),
        fact("Ana likes fado.", [1], quote="I like fado.", kind="preference"),
        raw_memory="## Ana\n- The user lives in Lisbon, which she likes.\n- Ana likes fado.",
        rollout_summary=(
            "Ana introduced herself. Ana lives in Lisbon and is new here. She likes fado a lot. "
            'She said "I live in Lisbon", and we left it at that.'
        ),
        rollout_slug="ana-of-lisbon",
    )
    with ScriptedServer(lambda _: answer) as server:
        model = {"model": "openai:scripted", "model_base_url": server.url} | OTHERS_BY_RULES
        with opened(store_url, tmp_path, **model) as memory:
            space = memory.space("ana")
            session = told(memory)
            change(space, known(space, "Lisbon").id)
            for again in (False, True):
                memory.work(again=again)
                assert "lisbon" not in everything(space, session, tmp_path)
                texts = space.sessions.extraction(session.id)
                assert texts is not None
                home = ["- Ana lives in Faro. [#1, user]"] if change is corrected else []
                stands = "\n".join([*home, "- Ana likes fado. [#1, user]"])
                assert texts.rollout_summary == texts.raw_memory == stands
            assert len(server.requests) > 1, "it was asked again, and said the same"


@CHANGES
def test_a_page_of_other_facts_of_the_session_is_left_as_it_is(
    store_url: str, tmp_path: Path, change: Change
) -> None:
    with opened(store_url, tmp_path) as memory:
        space = memory.space("ana")
        session = space.session("chat")
        session.append("user", SAID, name="Ana")
        session.append("user", "I live in Porto.", name="Ben")
        session.sleep()
        memory.work()
        before = space.documents.read("~/memory/people/ben")
        change(space, known(space, "Lisbon").id)
        assert space.documents.read("~/memory/people/ben") == before


def test_a_correction_of_a_correction_is_what_is_said(store_url: str, tmp_path: Path) -> None:
    with opened(store_url, tmp_path) as memory:
        space = memory.space("ana")
        session = told(memory)
        home = known(space, "Lisbon").id
        for place in ("Faro", "Porto", "Lisbon"):
            space.facts.update(home, f"Ana lives in {place}.")
        memory.work(again=True)
        left = everything(space, session, tmp_path)
        assert "ana lives in lisbon." in left
        assert not {"faro", "porto"} & set(left.replace(".", " ").split())
