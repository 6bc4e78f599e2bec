"""The demonstration: plays sample sessions into a store; each scene says what came of it.

The short form is what a newcomer sees: a killed worker, what was learned, a question answered with
its sources, a correction, a forgotten session. The full one adds how sessions are marked, how
retries and late messages are handled, and what consolidation makes of it all. Messages carry the
times of a manual clock, so that ten idle minutes take no time; the workers are real processes.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

import recollect
from recollect.clock import ManualClock, SystemClock
from recollect.documents.links import unlinked
from recollect.errors import AppendKeyReused, StoreUnavailable
from recollect.types.records import Outcome, Range
from recollect.worker import Verdict, Work

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
SECONDS_BETWEEN_MESSAGES = 20
THRESHOLD = 5
IDLE_SECONDS = 600
SETTINGS: Mapping[str, Any] = {
    "mark_threshold": THRESHOLD,
    "mark_unit": "records",
    "idle_sweep_seconds": IDLE_SECONDS,
    "extractor": "rules",  # offline, whatever model the user has
    "extract_on_session_start": "off",
    "memory_agent_model": "rules",
    "consolidation_model": "rules",
    "consolidation": "off",  # run by hand, when it is its turn
}
LEASE_SECONDS = 1.0
WORKER_SETTINGS: Mapping[str, Any] = {
    "lease_seconds": LEASE_SECONDS,
    "worker_concurrency": 1,
    "worker_grace_seconds": 5.0,
}
PATIENCE_SECONDS = 20.0  # for a worker to get as far as it has to
POLL_SECONDS = 0.02
# In one piece it would look like a password that somebody left in a file.
_WORDS = ("violet", "anchor", "4711")
PASSWORD = "-".join(_WORDS)
QUESTION = "Where does Ana live now?"
WIDTH = 88


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One thing that is shown. It has happened when it is told."""

    title: str
    lines: tuple[str, ...]
    story: str = ""


def _samples() -> dict[str, dict[str, Any]]:
    text = (resources.files("recollect") / "samples" / "sessions.json").read_text("utf-8")
    return {sample["name"]: sample for sample in json.loads(text)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStage:
    """Where the demonstration takes place."""

    memory: recollect.Memory
    space: recollect.Space
    clock: ManualClock
    samples: Mapping[str, Mapping[str, Any]] = field(default_factory=_samples)

    def session(self, name: str) -> recollect.Session:
        sample = self.samples[name]
        return self.space.session(sample["key"], agent=sample["agent"], source="demo")

    def say(
        self, name: str, first: int = 1, last: int | None = None
    ) -> tuple[recollect.Record, ...]:
        """Append a stretch of a sample's messages, some seconds apart."""
        said: list[recollect.Record] = []
        for message in self.samples[name]["messages"][first - 1 : last]:
            self.clock.advance(SECONDS_BETWEEN_MESSAGES)
            content = message["content"]
            if isinstance(content, str):
                content = content.replace("{password}", PASSWORD)
            said += self.session(name).append_many([{**message, "content": content}])
        return tuple(said)

    def state(self, session_id: str) -> recollect.SessionState:
        state = self.space.sessions.get(session_id)
        assert state is not None
        return state

    def has_unprocessed_of_others(self) -> bool:
        whole, own = self.memory.status(limit=0), self.memory.status(self.space.name, limit=0)
        counts = (own.marked_count, own.waiting_count)
        return (whole.marked_count, whole.waiting_count) != counts


def play(stage: DemoStage, address: str, *, full: bool = False) -> Iterator[Scene]:
    """Play every scene in order, the short form or all of them."""
    marked = _talk(stage)
    yield marked if full else _conversations(stage)
    if full:
        yield from _late_message(stage)
        yield _own_agents(stage)
        yield _retry(stage)
    yield from _work(stage, address)
    yield _learned(stage)
    yield _answer("A question, answered with its sources", stage)
    yield _correction(stage)
    if full:
        yield _history(stage)
        yield _pages(stage)
        yield _reasons(stage)
    yield from _consolidation(stage, full=full)
    yield _forgotten(stage)


# what is said, and how sessions are marked


def _talk(stage: DemoStage) -> Scene:
    """Play the first conversations; what comes back says how each session was marked."""
    lines = []

    def note(cause: str, session_id: str) -> None:
        state = stage.state(session_id)
        mark = "no mark" if state.invalidated_at is None else f"marked up to {state.invalidated_at}"
        lines.append(f"{cause:<11} {state.key:<21} {state.last_seq} records, {mark}")

    stage.say("trip", 1, THRESHOLD)
    note("–", stage.session("trip").id)
    stage.say("trip", THRESHOLD + 1, THRESHOLD + 1)
    note("threshold", stage.session("trip").id)
    stage.say("gift")
    gift = stage.session("gift")
    ended = gift.id
    gift.reset("Ana started over")
    note("reset", ended)
    stage.say("bug")
    bug = stage.session("bug")
    ended = bug.id
    bug.compact("test_two_writers is flaky: two writers may collide over a lock.", retain=3)
    note("compaction", ended)
    stage.say("review")
    note("sleep", stage.session("review").sleep().id)
    stage.say("farewell")
    farewell = stage.session("farewell")
    ended = farewell.id
    farewell.end()
    note("end", ended)
    stage.say("silence")
    stage.clock.advance(IDLE_SECONDS + 1)
    stage.memory.sweep_idle(stage.space.name)
    note("idle sweep", stage.session("silence").id)
    return Scene(
        title="Two agents talk with people, and their sessions are marked",
        story="Every message is stored when append returns. Six things mark a session for "
        f"processing: more than {THRESHOLD} unprocessed records, a reset, a compaction, an agent "
        "that goes to sleep, an end, and a sweep for processes that died without a word.",
        lines=tuple(lines),
    )


def _conversations(stage: DemoStage) -> Scene:
    told = ("trip", 0), ("trip", 2), ("gift", 0), ("bug", 2), ("farewell", 0), ("silence", 0)
    lines = []
    for name, index in told:
        sample = stage.samples[name]
        message = sample["messages"][index]
        speaker = message.get("name", message["role"])
        lines.append(f"{sample['key']:<18} {speaker + ':':<5} {_short(message['content'], 61)}")
    count = sum(state.last_seq for state in stage.space.sessions.list())
    return Scene(
        title="Two agents talk with people",
        lines=(*lines, f"… {count} messages, each stored for good when append returned"),
    )


def _late_message(stage: DemoStage) -> Iterator[Scene]:
    sessions = stage.space.sessions
    trip = stage.session("trip").state
    read = trip.invalidated_at or 0
    stage.say("trip", THRESHOLD + 2)
    refused = sessions.mark_processed(trip.id, read, expected_invalidated_at=read)
    again = stage.session("trip").state.invalidated_at or 0
    cleared = sessions.mark_processed(trip.id, again, expected_invalidated_at=again)
    yield Scene(
        title="A message arrives while a session is being processed",
        story="A worker of your own reads Ana's session up to its mark. Meanwhile she writes again "
        "and the mark rises, so the compare-and-swap refuses to clear it: nothing is skipped.",
        lines=(
            f"mark_processed(…, {read}, expected_invalidated_at={read}) -> {refused}",
            f"mark_processed(…, {again}, expected_invalidated_at={again}) -> {cleared}",
        ),
    )
    stage.memory.request_again(stage.space.name, trip.id)  # that worker kept what it learned


def _own_agents(stage: DemoStage) -> Scene:
    agent = {"type": "memory-agent", "id": "assistant"}
    session = stage.space.session("memory:assistant", agent=agent, source="demo")
    session.append_many([{"role": "assistant", "content": f"Line {n}."} for n in range(8)])
    session.sleep()
    stage.clock.advance(IDLE_SECONDS + 1)
    stage.memory.sweep_idle(stage.space.name)
    state = session.state
    return Scene(
        title="Agents that work on memory are never learned from",
        story="A memory-agent writes eight records, falls asleep and is swept. Its session is "
        "never marked, or memory would feed on itself.",
        lines=(f"{state.key}: {state.last_seq} records, mark {state.invalidated_at or 'none'}",),
    )


def _retry(stage: DemoStage) -> Scene:
    session = stage.session("review")
    first = session.append("user", "Merge it.", key="update-1017")
    second = session.append("user", "Merge it.", key="update-1017")
    try:
        session.append("user", "Do not merge it.", key="update-1017")
        refusal = "stored"
    except AppendKeyReused as error:
        refusal = type(error).__name__
    return Scene(
        title="A retry stores once",
        story="The same message is sent twice under one idempotency key, then another one.",
        lines=(f"first: record {first.seq}; second: record {second.seq}; other words: {refusal}",),
    )


# workers


def _work(stage: DemoStage, address: str) -> Iterator[Scene]:
    """Have everything processed; where nobody else is disturbed, by two workers, one killed."""
    if stage.memory.status(limit=0).store.location == ":memory:":
        why = "a store in the memory of this process has no room for another; use a file"
    elif stage.has_unprocessed_of_others():
        why = "workers work for a whole store, and this one holds other sessions to process"
    else:
        yield _killed_worker(stage, address)
        stage.memory.work(space=stage.space.name)
        return
    report = stage.memory.work(space=stage.space.name)
    yield Scene(
        title="A worker that is killed, left out",
        lines=(f"{why}.", f"work() processed {report.processed} sessions of this space instead."),
    )


def _killed_worker(stage: DemoStage, address: str) -> Scene:
    settings = dataclasses.replace(stage.memory.settings, **WORKER_SETTINGS)
    with recollect.open(address, settings=settings) as memory:
        sessions = memory.space(stage.space.name).sessions
        marked = {state.id: state for state in sessions.find_invalidated(100)}
        pid, session_id, records, at = _kill_a_worker(address, settings)
        worker = memory.worker(owner="second")
        worker.start()
        try:
            _wait_until_processed(sessions)
        finally:
            worker.stop()
        ends: dict[str, Range] = {each: sessions.ranges(each)[-1] for each in marked}
        covered = [each for id_ in marked for each in sessions.ranges(id_)]
    seconds = (ends[session_id].at - at).total_seconds()
    total = sum(state.last_seq for state in marked.values())
    once = sum(each.last_seq - each.first_seq + 1 for each in covered)
    return Scene(
        title="A worker is killed in the middle of its work",
        lines=(
            f"worker 1 (process {pid}): killed after {records} records of {marked[session_id].key}",
            f"worker 2 takes over {seconds:.1f} s later; the lease was {LEASE_SECONDS:g} s",
            f"{total} records to process, {once} processed: none lost, none twice",
        ),
    )


def _kill_a_worker(address: str, settings: recollect.Settings) -> tuple[int, str, int, datetime]:
    """Start a worker and kill it once it has a session in hand: its process, what it had, when."""
    # By standard input: an address may hold a password, which no list of processes should show.
    told = {"store": address, "settings": dataclasses.asdict(settings)}
    with subprocess.Popen(
        [sys.executable, "-P", "-c", "from recollect.demo import stall; stall()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        watch = threading.Timer(PATIENCE_SECONDS, worker.kill)
        watch.start()
        try:
            worker.stdin.write(json.dumps(told) + "\n")
            worker.stdin.flush()
            heard = worker.stdout.readline()
        finally:
            watch.cancel()
            worker.kill()
    if not heard:
        raise StoreUnavailable(
            "the demo's worker found nothing to do; does another worker run here?"
        )
    said = json.loads(heard)
    return worker.pid, said["session"], said["records"], SystemClock().now()


def stall() -> None:
    """Live as the worker that is killed: claim a session, read it, and get no further.

    The first line of standard input says where to work; the process ends with that stream, so that
    it cannot outlive the demonstration.
    """
    told = json.loads(sys.stdin.readline())
    settings = recollect.Settings(**told["settings"] | {"worker_grace_seconds": 0.0})
    with recollect.open(told["store"], settings=settings) as memory:
        memory.worker(_Stalled(), owner="first").start()
        sys.stdin.read()


class _Stalled:
    """Prints what it was given to process, and never finishes."""

    def process(self, work: Work) -> Verdict:
        print(json.dumps({"session": work.session.id, "records": len(work.records)}), flush=True)
        threading.Event().wait()
        return Verdict(outcome=Outcome.NO_OUTPUT)


def _wait_until_processed(sessions: recollect.session.Sessions) -> None:
    clock, pause = SystemClock(), threading.Event()
    deadline = clock.now() + timedelta(seconds=PATIENCE_SECONDS)
    while sessions.find_invalidated(1):
        if clock.now() > deadline:
            raise StoreUnavailable("no worker took over in the demo; does another worker run here?")
        pause.wait(POLL_SECONDS)


# what was learned, and what an agent is told


def _learned(stage: DemoStage) -> Scene:
    """The facts in the order in which they were said, each with the record it comes from."""
    keys = {state.id: state.key for state in stage.space.sessions.list()}
    facts = sorted(
        stage.space.facts.list(), key=lambda fact: (fact.valid_from or fact.created_at, fact.id)
    )
    lines = []
    for fact in facts:
        source = fact.sources[0]
        where = f"{keys[source.session_id]} #{source.seq}"
        lines.append(f"{_short(fact.content, 56):<57} {where}")
    return Scene(
        title="What was learned: facts with their sources, by rules, without a model",
        lines=(*lines, _password_line(stage)),
    )


def _password_line(stage: DemoStage) -> str:
    facts = stage.space.facts.list(every=True)
    texts = [text for fact in facts for text in (fact.content, *(s.quote for s in fact.sources))]
    for extraction in stage.space.sessions.extractions():
        texts += [extraction.raw_memory, extraction.rollout_summary]
    leaks = sum(PASSWORD in text for text in texts)
    return f"(the password that was typed is in {leaks} of {len(texts)} remembered texts)"


def _answer(title: str, stage: DemoStage) -> Scene:
    block = stage.space.context(QUESTION, max_tokens=120)
    lines = [f"context({QUESTION!r}, max_tokens=120) -> {block.token_count} tokens"]
    lines += [line for line in block.text.splitlines() if line.startswith("- ")]
    return Scene(title=title, lines=tuple(lines))


def _correction(stage: DemoStage) -> Scene:
    session = stage.session("trip")
    stage.clock.advance(SECONDS_BETWEEN_MESSAGES)
    session.append("user", "Plans have changed. I live in Porto now.", name="Ana")
    session.sleep()
    stage.memory.work(space=stage.space.name)
    answer = _answer("A change of mind: the new holds, the old is history", stage)
    return dataclasses.replace(answer, lines=("Ana: I live in Porto now.", *answer.lines))


def _history(stage: DemoStage) -> Scene:
    facts = stage.space.facts
    old = next(fact for fact in facts.list(every=True) if fact.superseded_by is not None)
    then = facts.search("Ana lives moved", as_of=old.valid_from)
    changes = [f"{change.at:%H:%M:%S}  {change.event}" for change in facts.history(old.id)]
    return Scene(
        title="What was believed before",
        story="Superseding destroys nothing: a fact has a history, and recall can be asked as of a "
        "time.",
        lines=(
            old.content,
            *changes,
            f"as of {old.valid_from:%Y-%m-%d %H:%M}: {then[0].content if then else 'nothing'}",
        ),
    )


def _pages(stage: DemoStage) -> Scene:
    documents = stage.space.documents
    page = documents.write("people/ana", "Ana plans a trip. See [[places/porto]].", reason="demo")
    again = documents.write("people/ana", page.body, reason="the same once more")
    broken = documents.broken_links()
    documents.write("places/porto", "Hills, tiles and a river.", reason="demo")
    return Scene(
        title="A page in the tree",
        story="Documents are Markdown at a path, with their versions. A link to a page that does "
        "not exist yet works once it does; writing the same again makes no version.",
        lines=(
            f"{page.path}: version {page.version}, then {again.version}",
            f"broken links: {len(broken)} before, {len(documents.broken_links())} now",
        ),
    )


def _reasons(stage: DemoStage) -> Scene:
    lines = []
    for hit in stage.space.recall(QUESTION, limit=3):
        reasons = ", ".join(f"{name} {value:.2f}" for name, value in hit.why.items())
        lines += [f"{hit.score:.2f}  {hit.kind}: {_short(hit.text, 70)}", f"      {reasons}"]
    return Scene(
        title="Recall, with the parts of every score",
        story="Facts, pages, summaries and every record in one list. No model is asked.",
        lines=tuple(lines),
    )


# what it comes to, and how it is forgotten


def _consolidation(stage: DemoStage, *, full: bool) -> Iterator[Scene]:
    generations = stage.space.generations
    generations.run()
    if full:
        handbook = unlinked(stage.space.documents.read("MEMORY").body, lambda _path: True)
        yield Scene(
            title="A generation of memory",
            story="What the sessions came to is consolidated into a handbook, by rules, and "
            "published at once, as pages and as files.",
            lines=(_generation(stage), *filter(None, handbook.splitlines())),
        )
    stage.say("newsletter")
    stage.say("party")
    for name in ("newsletter", "party"):
        stage.session(name).end()
    stage.memory.work(space=stage.space.name)
    generations.run()
    if full:
        changed = [f"{each.change.value} {each.path}" for each in generations.diff(1)]
        yield Scene(
            title="The next generation",
            story="Ben and Ana come back. Only what changed is written, and the generation before "
            "can be restored.",
            lines=(_generation(stage), *changed),
        )


def _generation(stage: DemoStage) -> str:
    made = stage.space.generations.get()
    return (
        f"generation {made.number}, by {made.made_by}: {made.added} memories added, "
        f"{made.retained} retained, {made.removed} removed; {made.documents} pages"
    )


def _forgotten(stage: DemoStage) -> Scene:
    generations, words = stage.space.generations, "surprise party"
    before = generations.get()
    told = _pages_with(stage, words)
    receipt = stage.space.forget(session=stage.session("party").id)
    whole = "complete" if receipt.is_complete else "not complete"
    lines = [
        'Ana said: "I\'m planning a surprise party for Rita in June." Now she wants it forgotten.',
        f"forget(session=…) -> {receipt.records} records, {receipt.facts} fact; {whole}",
        f"pages that mention the {words}: {told} before, {_pages_with(stage, words)} now",
    ]
    files = _files_of(stage)
    if files:
        found = sum(words.encode() in file.read_bytes() for file in files)
        lines.append(f"files that hold these words, of {len(files)} on disk: {found}")
    restorable = "yes" if generations.get(before.number).is_whole else "no"
    lines.append(f"can the generation that knew be restored: {restorable}")
    return Scene(title="A forgotten session, with its receipt", lines=tuple(lines))


def _pages_with(stage: DemoStage, words: str) -> int:
    documents = stage.space.documents
    return sum(words in documents.read(node.path).body for node in documents.tree())


def _files_of(stage: DemoStage) -> list[Path]:
    """The files of a SQLite store and its published pages; none for any other store."""
    path = Path(stage.memory.store.describe().location)
    if not path.is_file():
        return []
    return [file for file in path.parent.rglob(f"{path.stem}*") if file.is_file()] + [
        file for file in (path.parent / "memories").rglob("*.md") if file.is_file()
    ]


def _short(text: str, width: int) -> str:
    return textwrap.shorten(" ".join(text.split()), width, placeholder=" …")
