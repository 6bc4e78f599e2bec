"""N10, P11: sessions on pages: records, marks and what came of them, and what is done about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect import Attachment, Mode
from recollect.interfaces.web.sessions import CHARS_SHOWN, RECORDS
from recollect.interfaces.web.view import PAGE
from recollect.types.access import Scope
from recollect.types.records import JobKind, JobState
from tests.e2e.web_world import PagedWorld, Visitor, words_of
from tests.unit.interfaces.web.markup import read_markup

EVIL = "\"'><b-evil onload=alert(1)></pre><script>alert(1)</script>"
SESSIONS = "/ui/s/alice/sessions"


@pytest.fixture(scope="module")
def world() -> Iterator[PagedWorld]:
    with recollect.open(":memory:") as memory:
        yield PagedWorld(memory)


@pytest.fixture(scope="module")
def admin(world: PagedWorld) -> Visitor:
    return world.visitor("alice")


def said(world: PagedWorld, key: str, *texts: str) -> recollect.Session:
    session = world.memory.space("alice").session(key)
    for text in texts:
        session.append("user", text)
    return session


def learned(world: PagedWorld, key: str, *texts: str) -> recollect.Session:
    session = said(world, key, *texts)
    session.sleep()
    world.memory.work()
    return session


def test_sessions_are_listed_the_newest_first_a_page_at_a_time() -> None:
    with recollect.open(":memory:") as memory:
        world = PagedWorld(memory)
        for number in range(PAGE + 2):
            said(world, f"talk-{number:03}", "hello")
        visitor = world.visitor("alice", Scope.READ)
        first = visitor.get(SESSIONS).text
        assert first.index(f"talk-{PAGE + 1:03}") < first.index("talk-002")
        assert "talk-001" not in first
        made = read_markup(first)
        [older] = [
            value for _, name, value in made.attributes if "cursor=" in value and name == "href"
        ]
        second = visitor.get(older).text
        assert "talk-001" in second
        assert "talk-000" in second
        assert "talk-002" not in second
        assert visitor.get(f"{SESSIONS}?cursor=nonsense").status_code == 422


def test_a_session_is_found_by_its_key_by_its_id_and_by_how_it_stands(
    world: PagedWorld, admin: Visitor
) -> None:
    world.memory.space("alice").session("found:once", project="home")
    once = learned(world, "found:once", "I moved to Lisbon in May.")
    before = once.id
    once.reset()
    once.append("user", "hello again")
    marked = said(world, "found:marked", "hello")
    marked.sleep()

    def ids(query: str) -> set[str]:
        made = read_markup(admin.get(f"{SESSIONS}?{query}").text)
        found = [value for _, name, value in made.attributes if name == "href"]
        return {each.removeprefix(f"{SESSIONS}/") for each in found if f"{SESSIONS}/" in each}

    assert ids("q=found:once") == {before, once.id}
    assert ids(f"q={before}") == {before}
    assert before in ids("q=who+moved+to+Lisbon"), "by what was said, where no key is so called"
    assert ids("q=zanzibar") == set()
    assert marked.id in ids("show=marked")
    assert once.id not in ids("show=marked")
    assert once.id in ids("show=waiting")
    assert marked.id not in ids("show=waiting")
    assert admin.get(f"{SESSIONS}?show=nonsense").status_code == 422
    row = words_of(admin.get(f"{SESSIONS}?q={before}").text)
    for told in ("moved to Lisbon", "found:once", "assistant", "api · home", "1 message", "1 fact"):
        assert told in row
    world.memory.work(all=True)


def test_records_marks_and_what_came_of_them_stand_side_by_side(
    world: PagedWorld, admin: Visitor
) -> None:
    session = said(world, "whole", "I prefer green tea.")
    session.append(
        "assistant", tool_calls=[{"id": "1", "name": "look_up", "arguments": {"of": "tea"}}]
    )
    session.append("tool", "the shop is closed", tool_call_id="1", is_error=True)
    scan = Attachment(kind="file", uri="files/9", media_type="application/pdf", name="menu.pdf")
    session.append("user", "See here.", attachments=[scan], metadata={"channel": "mail"})
    session.sleep()
    world.memory.work()
    session.append("user", "And biscuits.")
    session.append("assistant", "Noted.")
    session.sleep()
    page = admin.get(f"{SESSIONS}/{session.id}").text
    shown = words_of(page)
    assert 'Calls look_up { "of": "tea" }' in shown
    assert "A tool failed the shop is closed" in shown
    assert '<span class="tag bad">error</span>' in page
    assert "Attached: file menu.pdf · application/pdf · files/9" in shown
    assert '"channel": "mail"' in shown
    done, line = "Records 1 to 4: extracted, pass 1, by rules", "Processed until record 4"
    assert page.index('id="record-4"') < page.index(done) < page.index(line)
    assert page.index(line) < page.index('id="record-5"') < page.index('id="record-6"')
    assert page.index('id="record-6"') < page.index("Marked until record 6 (sleep)")
    extraction = world.memory.space("alice").sessions.extraction(session.id)
    assert extraction is not None
    assert f"By {extraction.extractor}" in shown
    [fact] = world.memory.space("alice").facts.list(session=session.id)
    assert f'href="/ui/s/alice/facts/{fact.id}"' in page
    assert fact.content in shown
    assert "Model calls" not in shown, "no model was asked about it"
    session.end()
    world.memory.work()


def test_a_long_session_is_read_in_pages_and_a_long_record_on_request(
    world: PagedWorld, admin: Visitor
) -> None:
    session = said(world, "long", *(f"line {number}" for number in range(1, RECORDS + 3)))
    session.append("user", "a" * CHARS_SHOWN + "the end of it")
    at = f"{SESSIONS}/{session.id}"
    first = admin.get(at).text
    assert f"record-{RECORDS}" in first
    assert f'id="record-{RECORDS + 1}"' not in first
    second = admin.get(f"{at}?from={RECORDS + 1}").text
    assert 'id="record-1"' not in second
    assert f'id="record-{RECORDS + 3}"' in second
    assert "the end of it" not in second
    number = RECORDS + 3
    assert f'href="{at}?from={RECORDS + 1}&amp;whole={number}#record-{number}"' in second
    assert "the end of it" in admin.get(f"{at}?from={RECORDS + 1}&whole={number}").text
    part = admin.get(f"{at}?from={RECORDS + 1}", hx_request="true").text
    assert "<html" not in part
    assert f'id="record-{number}"' in part
    for wrong in ("x", "-1", "9" * 30):
        assert admin.get(f"{at}?from={wrong}").status_code == 422
    assert "no more records" in admin.get(f"{at}?from={number + 1}").text


def test_whether_a_session_may_become_memory_is_decided_for_the_current_one(
    world: PagedWorld, admin: Visitor
) -> None:
    session = said(world, "mode", "hello")
    first = session.id
    page = admin.send(f"{SESSIONS}/{first}/mode", {"mode": "polluted"})
    assert "It counts as polluted" in page.text
    assert session.mode is Mode.POLLUTED
    assert admin.send(f"{SESSIONS}/{first}/mode", {"mode": "nonsense"}).status_code == 422
    session.reset()
    assert admin.send(f"{SESSIONS}/{first}/mode", {"mode": "enabled"}).status_code == 409
    page = admin.get(f"{SESSIONS}/{first}")
    assert f'href="{SESSIONS}/{session.id}">session {session.id}' in page.text
    assert "/mode" not in page.text
    state = world.memory.space("alice").sessions.get(first)
    assert state is not None
    assert state.mode is Mode.POLLUTED


def test_a_session_is_distilled_ended_and_processed_again_on_request(
    world: PagedWorld, admin: Visitor
) -> None:
    session = said(world, "acts", "I prefer rye bread.")
    at = f"{SESSIONS}/{session.id}"
    assert "Distil it now" in admin.get(at).text
    assert "a worker distils it next" in admin.send(f"{at}/mark").text
    assert session.state.invalidated_at == 1
    assert "Distil it now" not in admin.get(at).text
    world.memory.work()
    assert "A new pass is due" in admin.send(f"{at}/again").text
    leases = world.memory.store.leases
    job = leases.get("alice", JobKind.EXTRACT_AGAIN, session.id)
    assert job is not None
    assert job.state is JobState.DUE
    assert "No new pass: one is due already" in admin.send(f"{at}/again").text
    world.memory.work()
    assert "Record 1: extracted, pass 2" in words_of(admin.get(at).text)
    ended = admin.send(f"{at}/end")
    assert "Ended. What is said under its key next" in ended.text
    assert session.state.ended_at is not None


def test_a_session_is_forgotten_with_a_receipt(world: PagedWorld, admin: Visitor) -> None:
    space = world.memory.space("alice")
    session = learned(world, "gone", "I prefer the canary-colour.", "I moved to Faro in July.")
    gone = session.id
    assert len(space.facts.list(session=gone)) == 2
    page = admin.send(f"{SESSIONS}/{gone}/forget")
    assert page.url.path == SESSIONS
    assert "Forgotten for good: 2 records, 2 facts, 2 sources, 1 extraction" in words_of(page.text)
    assert space.facts.list(session=gone, every=True) == []
    assert space.sessions.records(gone) == []
    assert "canary" not in admin.get(f"{SESSIONS}/{gone}").text
    page = admin.get(f"{SESSIONS}/{gone}")
    assert "Nothing else is kept of it" in page.text
    assert "worth remembering" not in page.text
    assert "Forgotten on" in admin.get(SESSIONS).text
    assert admin.send(f"{SESSIONS}/none/forget").status_code == 404


def test_a_record_is_forgotten_and_its_place_says_so(world: PagedWorld, admin: Visitor) -> None:
    session = learned(world, "one", "I prefer the canary-flower.", "I moved to Porto in June.")
    at = f"{SESSIONS}/{session.id}"
    page = admin.send(f"{at}/records/1/forget")
    assert "Forgotten for good: 1 record, 1 fact, 1 source" in words_of(page.text)
    assert "This record was forgotten." in page.text
    assert "canary-flower" not in page.text
    assert "Porto" in page.text
    assert not [record for record in session.all() if "canary" in record.content]
    for wrong in ("7", "x", "9" * 40):
        assert admin.send(f"{at}/records/{wrong}/forget").status_code in (404, 422)


def test_a_key_that_may_only_read_is_offered_nothing_and_refused_everything(
    world: PagedWorld,
) -> None:
    session = learned(world, "kept", "I prefer oats.")
    reader, writer = world.visitor("alice", Scope.READ), world.visitor("alice", Scope.WRITE)
    at = f"{SESSIONS}/{session.id}"
    for visitor, refused in (
        (reader, ("mode", "mark", "end", "again", "forget", "records/1/forget")),
        (writer, ("again", "forget", "records/1/forget")),
    ):
        page = visitor.get(at).text
        for action in refused:
            assert f'action="{at}/{action}"' not in page
            assert visitor.send(f"{at}/{action}", {"mode": "disabled"}).status_code == 403
    assert f'action="{at}/mode"' in writer.get(at).text
    assert session.mode is Mode.ENABLED
    assert session.count() == 1
    assert world.visitor("bob").get(f"/ui/s/bob/sessions/{session.id}").status_code == 404


def test_whatever_was_said_is_text(world: PagedWorld, admin: Visitor) -> None:
    """P12: also in the names of tools, files, speakers and agents."""
    space = world.memory.space("alice")
    session = space.session(f"evil {EVIL}", f"agent {EVIL}", source=EVIL, project=EVIL)
    session.append("user", f"I prefer {EVIL}", name=EVIL, metadata={EVIL: EVIL})
    session.append("assistant", tool_calls=[{"id": "1", "name": EVIL, "arguments": {EVIL: EVIL}}])
    session.append("tool", EVIL, tool_call_id="1", is_error=True)
    file = Attachment(kind="file", uri=EVIL, media_type=EVIL, name=EVIL)
    session.append("user", EVIL, attachments=[file])
    session.sleep()
    world.memory.work()
    for path in (SESSIONS, f"{SESSIONS}/{session.id}"):
        page = admin.get(path)
        made = read_markup(page.text)
        assert EVIL in "".join(made.text)
        assert "b-evil" not in made.tags
        assert not [each for each in made.attributes if each[1].startswith("on")]
        assert page.text.count("<script") == 2
